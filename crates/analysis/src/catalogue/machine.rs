//! How the machine's CPUs stalled during a trial.

use suiro_record::Standstills;

use crate::family::{Curve, Family, Measure, Subject};
use crate::instance::Instance;
use crate::view::View;

/// The CPUs of the machine, if they were watched.
pub(super) struct Machine;

/// What watching them said.
pub(super) struct Watched<'v> {
    told: &'v Standstills,
    /// When each standstill began, and how many milliseconds it lasted.
    all: Vec<(i64, f64)>,
}

impl Subject for Machine {
    type One<'v> = Watched<'v>;

    fn instances<'v>(view: &'v View<'_>) -> Vec<(Instance, Watched<'v>)> {
        let all = view.records.standstills.iter();
        let all = all.map(|row| (row.t_ns.as_nanos().cast_signed(), row.length_ns.as_millis_f64()));
        let watched = view.trial.standstills.as_ref();
        let watched = watched.map(|told| Watched { told, all: all.collect() });
        watched.map(|watched| (Instance::only(), watched)).into_iter().collect()
    }
}

pub(super) static FAMILY: Family<Machine> = Family { metrics: METRICS, series: OVER_TIME };

static METRICS: &[Measure<Machine>] = metrics! {
    machine.standstills ["times", Lower, 6] "Standstills of CPUs",
        "How often a CPU of the machine stalled for a tenth of a frame time or longer, all \
        CPUs together, while the endpoints ran. A warm-up counts.",
        |w| Some(w.told.count as f64);
    machine.standstill_total_ms ["ms", Lower, 4] "Standstills, all together",
        "For how long CPUs stalled, all CPUs together. A warm-up counts.",
        |w| Some(w.told.total_s * 1e3);
    machine.standstill_max_ms ["ms", Lower, 3] "Standstill, longest",
        "For how long a CPU stalled at most. A warm-up counts.",
        |w| Some(w.told.longest_s * 1e3);
    machine.watcher_cores ["cores", Lower, 2] "Cost of watching for standstills",
        "CPUs that were busy with watching for standstills, on average. A warm-up counts.",
        |w| Some(w.told.watcher_cores);
};

static OVER_TIME: &[Curve<Machine>] = series! {
    machine.standstill_ms [Lateness, "ms", Bar] "standstill",
        "for how long a CPU stalled, longest",
        |w, bins| bins.max(w.all.iter().copied());
};
