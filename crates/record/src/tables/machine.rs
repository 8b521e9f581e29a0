//! When the machine, or an endpoint on it, stalled.

use suiro_units::{Duration, Time};

use crate::table;
use crate::table::Text;
use crate::words::LatenessSource;

table! {
    /// Whether an endpoint ran while it should have, in about one second. An endpoint of suiro reads its clock every 10 ms,
    /// on the thread that does its work; a row ends early with a gap of 50 ms or more between two readings. For
    /// other people's programs, and for the programs that a player starts, the lab reads the kernel's scheduler
    /// statistics of their threads every 100 ms; a row ends early with a wait of more than 150 ms.
    LatenessRow = "lateness" {
        /// When the period ended.
        t_ns: Time,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// How it was measured.
        source: LatenessSource,
        /// How long the period was.
        period_ns: Duration,
        /// Number of readings.
        looks: u64,
        /// `heartbeat`: mean lateness of a reading (its timer ends up to 1 ms late). `scheduler`: how long a thread
        /// waited for a CPU, mean over the times that one got it. Null if there was none.
        mean_ns: Option<Duration>,
        /// The longest time in which it did not run. `heartbeat`: between two readings, 10 ms or more. `scheduler`:
        /// while a thread that had work waited for a CPU, or the program was stopped.
        worst_ns: Duration,
        /// When that began.
        worst_from_ns: Time,
        /// True if the program was stopped by a signal at that time, as the kernel reports it.
        stopped: bool,
    }
}

table! {
    /// A time in which a CPU of the machine stalled, in a trial with uncompressed video: not even a timer's
    /// interrupt came. A watcher bound to the CPU sleeps to times 4 ms apart, so standstills that are
    /// shorter than that may be missed; those from 1.668 ms on, a tenth of a frame time, are recorded.
    StandstillRow = "standstills" {
        /// When the watcher was due: the standstill began up to 4 ms before.
        t_ns: Time,
        /// How long it lasted from then on.
        length_ns: Duration,
        /// The CPU's number, from 0.
        processor: u64,
        /// How long the watcher then waited because other threads had the CPU; not part of the standstill.
        queued_ns: Duration,
    }
}
