//! The receiver: one thread, several streams, every packet and frame verified.

mod record;
mod sequence;
mod showing;
mod track;

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use suiro_units::{Duration, Time};

pub use record::{LeftOut, Recording, RecordingEnd};
pub use showing::{Showing, ToOutput};
pub(crate) use track::blank;
pub use track::{Counts, Frame, Track, Wanted};

use crate::clock;
use crate::measure::Seen;
use crate::output::{Ready, Shown};
use crate::socket::{Datagrams, Inlet};

/// How long a thread rests when it has taken all packets. The kernel stamps packets, so resting does not make any
/// measurement later, and one rest replaces as many wake-ups as bursts arrive meanwhile. The packets of that time
/// should still fit in the CPU's cache. For eight streams on two cores with 2 MB each, 100 µs cost 1.16 cores in all,
/// 50 µs 1.27, 200 µs 1.30, 400 µs 1.43 (medians of three).
const REST: Duration = Duration::from_micros(100);
/// Longest sleep of a thread without packets: the delay until it notices that it should stop.
const IDLE_MS: i64 = 100;
/// Consecutive calls that take one socket's packets, so that the others get their turn.
const TAKES_MAX: usize = 64;

/// One stream.
#[derive(Debug)]
pub struct Lane {
    /// The stream's number in its node.
    pub number: u32,
    inlet: Inlet,
    track: Track,
    recording: Option<Recording>,
    /// The output that shows its frames, until receiving ends.
    output: Option<ToOutput>,
    /// How often packets found the socket's buffer full: so far, and up to the last second.
    dropped: u32,
    dropped_before: u32,
    counts_before: Counts,
}

/// What was counted of one stream in one second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Second {
    /// When it ended.
    pub at: Time,
    /// How long it was.
    pub span: Duration,
    /// The stream's number in its node.
    pub stream: u32,
    /// What was counted in this second.
    pub counts: Counts,
    /// How often packets found the socket's buffer full; those packets are included in the lost ones. Packets that the
    /// kernel had coalesced count once.
    pub dropped: u32,
    /// How evenly packets arrived; `None` if it is unknown for every frame ([`Frame::seen`]).
    pub evenness: Option<Seen>,
    /// CPU time that the thread had, for all its streams.
    pub running: Duration,
}

/// What a receiving thread reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Told {
    /// About a stream, once a second.
    Second(Second),
    /// About a finished frame.
    Frame(u32, Frame),
    /// What a stream showed at a tick.
    Shown(u32, Shown),
}

/// How a thread receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The CPU to stay on; `None` for any.
    pub cpu: Option<usize>,
    /// When to stop, at the latest.
    pub until: Option<Time>,
}

impl Lane {
    /// A stream that is received by `inlet` and written to `recording`, if there is one.
    pub fn new(number: u32, inlet: Inlet, track: Track, recording: Option<Recording>) -> Self {
        let (dropped, dropped_before, counts_before) = (0, 0, Counts::default());
        let output = None;
        Self { number, inlet, track, recording, output, dropped, dropped_before, counts_before }
    }

    /// Its complete frames go to this output, too.
    pub fn shown_by(&mut self, output: ToOutput) {
        self.output = Some(output);
    }

    /// The counts so far.
    pub const fn counts(&self) -> &Counts {
        self.track.counts()
    }

    /// How often packets found the socket's buffer full so far.
    pub const fn dropped(&self) -> u32 {
        self.dropped
    }

    /// The address at which it receives.
    pub const fn address(&self) -> SocketAddrV4 {
        self.inlet.address()
    }

    /// Closes the recording, if there is one, and returns how it ended.
    pub fn end_recording(&mut self) -> Option<RecordingEnd> {
        self.recording.take().map(Recording::end)
    }

    /// Takes what has arrived; returns true if there was anything.
    fn take(
        &mut self,
        buffers: &mut Datagrams,
        lead_ns: i64,
        told: &SyncSender<Told>,
    ) -> std::io::Result<bool> {
        let Self { number, inlet, track, recording, output, .. } = self;
        let mut on_frame = |frame: &Frame, picture: &[u8]| {
            over(*number, frame, picture, (recording, output), told);
        };
        let mut any = false;
        for _ in 0..TAKES_MAX {
            let taken = inlet.take(buffers, |datagram| {
                let stamped =
                    datagram.realtime_ns.map(|ns| ns.wrapping_sub(lead_ns.cast_unsigned()));
                let now = stamped.map_or_else(clock::monotonic, Time::from_nanos);
                for packet in datagram.bytes.chunks(datagram.segment) {
                    track.datagram(now, packet, &mut on_frame);
                }
            })?;
            self.dropped = taken.dropped.unwrap_or(self.dropped);
            any |= taken.messages > 0;
            if taken.messages < Datagrams::MESSAGES {
                break;
            }
        }
        Ok(any)
    }

    fn second(&mut self, at: Time, span: Duration, running: Duration) -> Second {
        let counts = *self.track.counts();
        let before = std::mem::replace(&mut self.counts_before, counts);
        let dropped = self.dropped.wrapping_sub(self.dropped_before);
        self.dropped_before = self.dropped;
        let evenness = self.track.evenness();
        let counts = counts.since(&before);
        Second { at, span, stream: self.number, counts, dropped, evenness, running }
    }
}

fn over(
    number: u32,
    frame: &Frame,
    picture: &[u8],
    (recording, output): (&mut Option<Recording>, &Option<ToOutput>),
    told: &SyncSender<Told>,
) {
    if let Some(recording) = recording {
        recording.frame(frame, picture);
    }
    // Without a common clock, a frame has no tick.
    if let Some(output) = output.as_ref().filter(|_| frame.whole && frame.due.is_some()) {
        let Frame { number: of, content, first, last, .. } = *frame;
        let at = last.unwrap_or(first);
        let ready = Ready { number: of, content, at, taken: clock::monotonic() };
        let _ = output.try_send((number, ready));
    }
    // The thread does not wait for a slow reader: missed reports show as a gap.
    let _ = told.try_send(Told::Frame(number, *frame));
}

/// Receives until `stop` is set or the time is up. Sends its reports to `told`; reports for which it has no room are
/// discarded.
pub fn run(
    lanes: &mut [Lane],
    options: &Options,
    stop: &AtomicBool,
    told: &SyncSender<Told>,
) -> std::io::Result<()> {
    let done = take_all(lanes, options, stop, told);
    // The output ends when no lane has it any more.
    for lane in lanes {
        lane.output = None;
    }
    done
}

fn take_all(
    lanes: &mut [Lane],
    options: &Options,
    stop: &AtomicBool,
    told: &SyncSender<Told>,
) -> std::io::Result<()> {
    clock::prepare_thread(options.cpu)?;
    let mut buffers = Datagrams::new();
    let mut last = (clock::monotonic(), clock::thread_time());
    loop {
        // Asked before the round: what arrived until the request to stop is taken.
        let stopped = stop.load(Ordering::Relaxed);
        let mut any = false;
        let lead_ns = clock::realtime_lead_ns();
        for lane in &mut *lanes {
            any |= lane.take(&mut buffers, lead_ns, told)?;
        }
        let now = clock::monotonic();
        let over = stopped || options.until.is_some_and(|until| now >= until);
        let span = now.saturating_since(last.0);
        if over || span >= Duration::from_secs(1) {
            let running = clock::thread_time();
            for lane in &mut *lanes {
                let second = lane.second(now, span, running.saturating_sub(last.1));
                let _ = told.try_send(Told::Second(second));
            }
            last = (now, running);
        }
        if over {
            break;
        }
        rest(lanes, now, any)?;
    }
    let now = clock::monotonic();
    for lane in lanes {
        let Lane { number, track, recording, output, .. } = lane;
        track.finish(now, &mut |frame, picture| {
            over(*number, frame, picture, (recording, output), told);
        });
    }
    Ok(())
}

fn rest(lanes: &[Lane], now: Time, any: bool) -> std::io::Result<()> {
    if any {
        clock::wait_until(now + REST);
        return Ok(());
    }
    let mut polled: Vec<_> =
        lanes.iter().map(|lane| PollFd::new(&lane.inlet, PollFlags::IN)).collect();
    let time = Timespec { tv_sec: 0, tv_nsec: IDLE_MS * 1_000_000 };
    match poll(&mut polled, Some(&time)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
