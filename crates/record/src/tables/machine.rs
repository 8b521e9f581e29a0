//! When the machine, or an endpoint on it, stood still.

use suiro_units::{Duration, Time};

use crate::table;
use crate::table::Text;
use crate::words::LatenessSource;

table! {
    /// Whether an endpoint ran while it should have, in about one second. An endpoint of suiro looks at its clock every
    /// 10 ms, on the thread that does its work; a row ends early with a gap of 50 ms or more between two looks. Of a
    /// program of others, and of the programs that a player starts, the lab reads every 100 ms what the kernel's
    /// scheduler says about their threads.
    LatenessRow = "lateness" {
        /// When the period ended.
        t_ns: Time,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// How it was found out.
        source: LatenessSource,
        /// How long the period was.
        period_ns: Duration,
        /// How often it was looked.
        looks: u64,
        /// `heartbeat`: how late a look was, mean (its timer ends up to 1 ms late). `scheduler`: how long a thread waited for a
        /// processor, mean over the times that one got it. Null if there was none.
        mean_ns: Option<Duration>,
        /// The longest time in which it did not run. `heartbeat`: between two looks, 10 ms or more. `scheduler`: for which
        /// a thread that had work waited for a processor, or the program was stopped.
        worst_ns: Duration,
        /// When that began.
        worst_from_ns: Time,
        /// True if the kernel says that the program was stopped by a signal at that time.
        stopped: bool,
    }
}

table! {
    /// A time in which a processor of the machine stood still, in a trial with uncompressed video: not even a timer's
    /// interrupt came. A watcher bound to the processor sleeps to times 4 ms apart, so standstills that are
    /// shorter than that may be missed; those from 1.668 ms on, a tenth of a frame time, are recorded.
    StandstillRow = "standstills" {
        /// When the watcher was due: the standstill began up to 4 ms before.
        t_ns: Time,
        /// How long it lasted from then on.
        length_ns: Duration,
        /// The processor's number, from 0.
        processor: u64,
        /// How long the watcher then waited for its turn, because other threads had the processor; not part of the
        /// standstill.
        queued_ns: Duration,
    }
}
