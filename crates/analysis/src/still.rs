//! When CPUs stalled during a trial.

use suiro_record::tables::StandstillRow;
use suiro_record::{Trial, TrialSummary};
use suiro_units::to_i64;

/// The times at which at least one CPU stalled.
pub(crate) struct Still {
    /// From and to, sorted, apart from each other.
    stretches: Vec<(i64, i64)>,
}

impl Still {
    /// `None` if the trial was not watched.
    pub fn of(trial: &Trial, rows: &[StandstillRow]) -> Option<Self> {
        trial.standstills.as_ref()?;
        let mut all: Vec<_> = rows.iter().map(stretch).collect();
        all.sort_unstable();
        let mut stretches: Vec<(i64, i64)> = Vec::new();
        for (from, to) in all {
            match stretches.last_mut() {
                Some((_, end)) if from <= *end => *end = to.max(*end),
                _ => stretches.push((from, to)),
            }
        }
        Some(Self { stretches })
    }

    /// True if a CPU stalled at some time between these two.
    pub fn within(&self, from_ns: i64, to_ns: i64) -> bool {
        let at = self.stretches.partition_point(|(_, end)| *end <= from_ns);
        self.stretches.get(at).is_some_and(|(from, _)| *from < to_ns)
    }
}

/// From when to when a standstill lasted.
fn stretch(row: &StandstillRow) -> (i64, i64) {
    let from = to_i64(row.t_ns.as_nanos());
    (from, from.saturating_add(row.length_ns.as_nanos_i64()))
}

/// What the standstills of a run's valid trials did to streams of uncompressed video, in one line; `None` if no trial was
/// watched.
///
/// ```text
/// CPUs stalled 12 times in 4 trials, for 31.0 ms at most; 14 of 20 late frames fell into one; skew 24.2 ms, \
/// without them 3.1 ms (99 %, worst trial); watching took 0.01 of a CPU
/// ```
pub fn standing_still(trials: &[TrialSummary]) -> Option<String> {
    let valid = || trials.iter().filter(|trial| trial.valid);
    let values = |name: &str| -> Vec<f64> {
        valid().filter_map(|trial| *trial.metrics.get(name)?).collect()
    };
    let sum = |name: &str| values(name).iter().sum::<f64>();
    let most = |name: &str| values(name).into_iter().reduce(f64::max);
    let watched = values("machine.standstills").len();
    let longest = most("machine.standstill_max_ms")?;
    let count = sum("machine.standstills");
    let trials = if watched == 1 { "1 trial".to_owned() } else { format!("{watched} trials") };
    let mut line = if count == 0.0 {
        format!("no CPU stalled in {trials}")
    } else {
        let times = if count == 1.0 { "once".to_owned() } else { format!("{count} times") };
        format!("CPUs stalled {times} in {trials}, for {longest:.1} ms at most")
    };
    if !values("stream.late_frames").is_empty() {
        let (late, still) = (sum("stream.late_frames"), sum("stream.late_still_frames"));
        line += &format!("; {still} of {late} late frames fell into a standstill");
    }
    if let (Some(skew), Some(running)) =
        (most("stream.skew_p99_ms"), most("stream.skew_p99_running_ms"))
    {
        line += &format!("; skew {skew:.1} ms, without them {running:.1} ms (99 %, worst trial)");
    }
    let cores = most("machine.watcher_cores").unwrap_or_default();
    Some(line + &format!("; watching took {cores:.3} of a CPU"))
}
