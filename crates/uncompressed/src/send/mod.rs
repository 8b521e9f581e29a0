//! The sender: one thread, several streams, each packet at its time.

mod blame;
mod lane;
mod patience;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use suiro_units::{Duration, Time};

use blame::{Spent, Steal};
pub use lane::Lane;

use crate::clock;

/// Default number of packets in a burst: with the study's packets, as many as one call takes.
pub const BURST: u32 = 7;
/// Time from the start to the first frame: to fill the caches, and to be in step with other hosts.
pub const LEAD: Duration = Duration::from_millis(100);
/// How old the reading of stolen time may be when a frame ends in time: the next frame's is counted from it.
const STEAL_EVERY: Duration = Duration::from_millis(50);
/// How old it may be when a frame ends late: its unit is a hundredth of a second.
const STEAL_TICK: Duration = Duration::from_millis(10);
/// How long a stream that has no room may keep trying to send its last frame completely, once it should stop.
pub const GIVE_UP: Duration = Duration::from_secs(1);
/// Waits shorter than this are spent awake while a stream catches up: some bursts.
const CATCH_UP_SPIN: Duration = Duration::from_micros(200);
/// How long to wait before a burst that found no room is tried again.
const NO_ROOM: Duration = Duration::from_micros(50);

/// Why a thread stopped sending.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The thread could not be set up.
    #[error(transparent)]
    Thread(#[from] std::io::Error),
    /// The system does not send packets of a stream any more.
    #[error("stream {stream}: packets of {packet} bytes: {cause}")]
    Stream {
        /// The stream's number in its node.
        stream: u32,
        /// Bytes of its largest IP packets.
        packet: u32,
        /// The system's error.
        cause: std::io::Error,
    },
}

/// The counts of a stream's sender. Bytes are those of IP packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets sent.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames sent.
    pub frames: u64,
    /// Frames whose last packet left more than a frame time after it was due.
    pub late: u64,
    /// Of these, because the machine's host took the CPU.
    pub late_steal: u64,
    /// Of these, because another thread had the CPU.
    pub late_preempted: u64,
    /// Of these, because the thread woke late from sleep.
    pub late_waking: u64,
    /// Of these, because there was no room in a socket or an interface's queue.
    pub late_no_room: u64,
    /// Of these, because the thread was too slow.
    pub late_load: u64,
    /// The longest delay of a frame's last packet after its due time.
    pub behind_max: Duration,
    /// Frames skipped because their time was over, or given up at the end because there was no room.
    pub skipped: u64,
    /// Packets that had no route, and ICMP errors about packets that were sent: hosts send fewer of these errors than
    /// there are undelivered packets.
    pub unreachable: u64,
    /// How often there was no room for a burst.
    pub no_room: u64,
}

impl Counts {
    /// Nothing.
    pub const ZERO: Self = Self {
        packets: 0,
        bytes: 0,
        frames: 0,
        late: 0,
        late_steal: 0,
        late_preempted: 0,
        late_waking: 0,
        late_no_room: 0,
        late_load: 0,
        behind_max: Duration::ZERO,
        skipped: 0,
        unreachable: 0,
        no_room: 0,
    };

    /// Combines the two.
    pub fn and(&self, other: &Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            frames: self.frames + other.frames,
            late: self.late + other.late,
            late_steal: self.late_steal + other.late_steal,
            late_preempted: self.late_preempted + other.late_preempted,
            late_waking: self.late_waking + other.late_waking,
            late_no_room: self.late_no_room + other.late_no_room,
            late_load: self.late_load + other.late_load,
            behind_max: self.behind_max.max(other.behind_max),
            skipped: self.skipped + other.skipped,
            unreachable: self.unreachable + other.unreachable,
            no_room: self.no_room + other.no_room,
        }
    }
}

/// What was counted of one stream in one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Second {
    /// When it ended.
    pub at: Time,
    /// How long it was.
    pub span: Duration,
    /// The stream's number in its node.
    pub stream: u32,
    /// What was counted.
    pub counts: Counts,
}

/// What a sending thread reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// About one of its streams.
    Stream(Second),
    /// About itself.
    Thread(ThreadSecond),
}

/// What a sending thread did in one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadSecond {
    /// When it ended.
    pub at: Time,
    /// How long it was.
    pub span: Duration,
    /// CPU time that it used.
    pub running: Duration,
    /// The latest that it woke from sleep.
    pub woke_late_max: Duration,
    /// CPU time that the machine's host took, of all CPUs; `None` if unknown.
    pub steal: Option<Duration>,
}

/// How a thread sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// True to keep the schedule; false to send as fast as possible, to measure the maximum.
    pub paced: bool,
    /// The CPU to pin it to; `None` for any.
    pub cpu: Option<usize>,
    /// When the first frame begins, at the earliest; `None` for as soon as possible.
    pub begin: Option<Time>,
    /// When to stop, at the latest: frames that have begun by then are sent completely.
    pub until: Option<Time>,
}

/// The totals of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// From the first frame's start to the last one's end.
    pub span: Duration,
    /// CPU time that it used.
    pub running: Duration,
}

/// Sends until all streams have ended, `stop` is set, or the time is up; then the current frames are sent completely,
/// unless there is no room for them for [`GIVE_UP`]. Sends its reports to `told`; reports for which it has no room are
/// discarded. Nothing is sent if `stop` is set before the first frame begins.
///
/// # Errors
/// If the thread cannot be pinned to its CPU, or the system does not send packets of a stream any more.
pub fn run(
    lanes: &mut [Lane],
    options: &Options,
    stop: &AtomicBool,
    told: &SyncSender<Told>,
) -> Result<Account, Error> {
    clock::prepare_thread(options.cpu)?;
    // Counting begins with the first packet, not with the wait for it.
    let begin = earliest(lanes, true).filter(|_| options.paced).map(|turn| turn.at);
    let begun = begin.map_or_else(|| Some(clock::monotonic()), |at| clock::wait_unless(stop, at));
    let Some(now) = begun else {
        return Ok(Account { span: Duration::ZERO, running: Duration::ZERO });
    };
    let mut thread = Thread::new(now);
    let spent = thread.spent(false);
    lanes.iter_mut().for_each(|lane| lane.start(spent));
    let mut stopped = None;
    while let Some(Turn { at, lane, burst }) = earliest(lanes, options.paced) {
        if at > thread.now {
            // A stream that waits for room does not catch up, and sleeps.
            thread.wait(at, at == burst.at && burst.is_late(thread.now));
        }
        if stopped.is_none() && is_over(options, stop, thread.now) {
            stopped = Some(thread.now);
            lanes.iter_mut().for_each(Lane::stop);
        }
        let lane = &mut lanes[lane];
        let sent = match lane.send(thread.now, &burst) {
            // The kernel finds no memory behind the frame: its store was mapped, and has changed.
            Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {
                lane.lose();
                continue;
            }
            sent => sent.map_err(|cause| lane.failed(cause))?,
        };
        thread.now = clock::monotonic();
        if sent.no_room && stopped.is_some_and(|since| thread.now >= since + GIVE_UP) {
            lane.give_up();
        }
        if lane.is_frame_over() {
            let spent = thread.spent(lane.is_late(thread.now));
            lane.end_frame(spent, options.paced);
            thread.tell(lanes, Duration::from_secs(1), told);
        }
    }
    thread.tell(lanes, Duration::ZERO, told);
    Ok(thread.account())
}

fn is_over(options: &Options, stop: &AtomicBool, now: Time) -> bool {
    stop.load(Ordering::Relaxed) || options.until.is_some_and(|until| now >= until)
}

/// Which stream is next, with what, and when; at once if that time has passed.
struct Turn {
    at: Time,
    lane: usize,
    burst: crate::pace::Burst,
}

/// The stream that is next; the first of equals. A stream that has no room waits, the others do not.
fn earliest(lanes: &[Lane], paced: bool) -> Option<Turn> {
    let turns = lanes.iter().enumerate().filter_map(|(lane, own)| {
        let burst = own.next()?;
        let scheduled = if paced { burst.at } else { Time::ZERO };
        Some(Turn { at: scheduled.max(own.not_before()), lane, burst })
    });
    turns.min_by_key(|turn| (turn.at, turn.burst.at))
}

/// The time accounting of a thread.
pub(crate) struct Thread {
    /// When it last looked at the clock.
    pub now: Time,
    asleep: Duration,
    waking: Duration,
    woke_late_max: Duration,
    steal: Steal,
    steal_read: Time,
    /// When it began, and its CPU time then.
    begun: (Time, Duration),
    last: (Time, Duration, Option<Duration>),
}

impl Thread {
    pub fn new(now: Time) -> Self {
        let (steal, running) = (Steal::read(), clock::thread_time());
        Self {
            now,
            asleep: Duration::ZERO,
            waking: Duration::ZERO,
            woke_late_max: Duration::ZERO,
            steal,
            steal_read: now,
            begun: (now, running),
            last: (now, running, steal.all),
        }
    }

    /// Waits. A thread that catches up does not sleep if the time is short: waking would cost what it gains, because it may
    /// send only a tenth faster than on time.
    pub fn wait(&mut self, until: Time, catches_up: bool) {
        let asked = until.saturating_since(self.now);
        let is_short = catches_up && asked < CATCH_UP_SPIN;
        self.now = if is_short { clock::spin_until(until) } else { clock::wait_until(until) };
        if is_short || asked <= clock::SPIN {
            // It did not sleep: it used the CPU, or another thread had it.
            return;
        }
        let late = self.now.saturating_since(until);
        self.asleep += asked;
        self.waking += late;
        self.woke_late_max = self.woke_late_max.max(late);
    }

    /// The time spent until now, when a frame ends, `late` or not.
    pub fn spent(&mut self, late: bool) -> Spent {
        let old = if late { STEAL_TICK } else { STEAL_EVERY };
        if self.now.saturating_since(self.steal_read) >= old {
            (self.steal, self.steal_read) = (Steal::read(), self.now);
        }
        Spent {
            at: self.now,
            running: clock::thread_time(),
            asleep: self.asleep,
            waking: self.waking,
            no_room: Duration::ZERO,
            steal: self.steal.own,
        }
    }

    fn account(&self) -> Account {
        let (at, running) = self.begun;
        let span = self.now.saturating_since(at);
        Account { span, running: clock::thread_time().saturating_sub(running) }
    }

    /// Reports the counts, if `least` has passed since the last time.
    fn tell(&mut self, lanes: &mut [Lane], least: Duration, told: &SyncSender<Told>) {
        let (at, running, stolen) = self.last;
        let span = self.now.saturating_since(at);
        if span < least || span.is_zero() {
            return;
        }
        let steal = self.steal.all;
        self.last = (self.now, clock::thread_time(), steal);
        let thread = ThreadSecond {
            at: self.now,
            span,
            running: self.last.1.saturating_sub(running),
            woke_late_max: std::mem::take(&mut self.woke_late_max),
            steal: steal.zip(stolen).map(|(now, then)| now.saturating_sub(then)),
        };
        // The thread does not wait for a slow reader: missed reports show as a gap in time.
        let _ = told.try_send(Told::Thread(thread));
        for lane in lanes {
            let _ = told.try_send(Told::Stream(lane.take(self.now, span)));
        }
    }
}

impl Steal {
    /// The stolen time so far, with that of the CPU that the calling thread is on.
    fn read() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let cpu = rustix::thread::sched_getcpu();
        Self {
            all: blame::parse_steal(&stat, "cpu"),
            own: blame::parse_steal(&stat, &format!("cpu{cpu}")).map(|steal| (cpu, steal)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_spent_awake_does_not_count_as_sleep() {
        let mut thread = Thread::new(clock::monotonic());
        for (wait, catches_up) in
            [(CATCH_UP_SPIN / 2, true), (clock::SPIN, false), (Duration::ZERO, false)]
        {
            let until = thread.now + wait;
            thread.wait(until, catches_up);
            assert!(thread.now >= until);
            let spent = thread.spent(false);
            assert_eq!((spent.asleep, spent.waking), (Duration::ZERO, Duration::ZERO), "{wait}");
        }
    }
}
