//! One stream as it is sent: which frame, which packet, when.

use suiro_units::{Duration, Time};

use super::blame::{Cause, Spent, cause};
use super::patience::{Patience, go_on_without};
use super::{Counts, Error, NO_ROOM, Second};
use crate::clock;
use crate::epoch::Epoch;
use crate::pace::{Burst, Pace};
use crate::packet::{self, HEADER_BYTES_MAX, Layout};
use crate::reader::{Advance, Frame, Ring};
use crate::socket::{Outlet, Sent};

/// A sender that is this many frames behind skips them: their time is over.
const BEHIND_MAX: u64 = 8;

/// One stream.
#[derive(Debug)]
pub struct Lane {
    /// The stream's number in its node.
    pub number: u32,
    layout: Layout,
    stream: packet::Stream,
    /// One for each path (ST 2022-7): all carry the same packets.
    outlets: Vec<Outlet>,
    /// Of each path.
    patience: Vec<Patience>,
    /// The path that is next to have the current burst, and how many of its packets that path has.
    path: (usize, u32),
    ring: Ring,
    /// The frame that the ring's first one is shown in, if the time determines what is sent; `None` to send the ring's
    /// frames one after the other.
    base: Option<u64>,
    epoch: Epoch,
    pace: Pace,
    /// The frame that is being sent, since the epoch; `None` after the last.
    frame: Option<u64>,
    /// True if the frame is the last one.
    last: bool,
    /// How the thread had spent its time when the frame began.
    before: Spent,
    /// Since when there has been no room; `None` while there is room.
    blocked_since: Option<Time>,
    /// How long there was no room, in total.
    blocked: Duration,
    not_before: Time,
    /// The counts since they were last taken.
    counts: Counts,
    /// The counts that were taken.
    taken: Counts,
}

impl Lane {
    /// A stream that begins with frame `first`.
    pub fn new(
        number: u32,
        (layout, stream): (Layout, packet::Stream),
        outlet: Outlet,
        ring: Ring,
        burst: u32,
        (epoch, first): (Epoch, u64),
    ) -> Self {
        let mut lane =
            Self::standby(number, (layout, stream), vec![outlet], (ring, None), burst, epoch);
        lane.begin(first);
        lane
    }

    /// A stream that does not send until it is asked to ([`Self::begin`]), over several paths. If a frame is given with
    /// the ring, the ring's first frame is the one for that frame, and the time determines what is sent.
    pub fn standby(
        number: u32,
        (layout, stream): (Layout, packet::Stream),
        outlets: Vec<Outlet>,
        (ring, base): (Ring, Option<u64>),
        burst: u32,
        epoch: Epoch,
    ) -> Self {
        let burst = burst.clamp(1, Outlet::packets_max(layout.datagram_bytes()));
        let packets = layout.packets_per_frame();
        let run = if layout.is_even() { packets } else { layout.packets_per_run() };
        let pace = Pace::new(packets, burst, run, layout.geometry().rate().period());
        Self {
            number,
            layout,
            stream,
            patience: vec![Patience::default(); outlets.len()],
            outlets,
            path: (0, 0),
            ring,
            base,
            epoch,
            pace,
            frame: None,
            last: false,
            before: Spent::default(),
            blocked_since: None,
            blocked: Duration::ZERO,
            not_before: Time::ZERO,
            counts: Counts::default(),
            taken: Counts::default(),
        }
    }

    /// The frame that is being sent, or is next; `None` if it does not send.
    pub const fn frame(&self) -> Option<u64> {
        self.frame
    }

    /// The frame that the ring's first one is shown in, if the time determines what is sent.
    pub const fn base(&self) -> Option<u64> {
        self.base
    }

    /// True if nothing of its frame has been sent: between two frames.
    pub fn is_fresh(&self) -> bool {
        let first = self.pace.next().is_some_and(|burst| burst.first == 0);
        self.frame.is_some() && first && self.path == (0, 0)
    }

    /// True if the current frame is sent in place of one that was not there in time.
    pub fn is_starved(&self) -> bool {
        self.frame.is_some() && self.ring.current().repeated
    }

    /// The time by which its current frame's last packet is behind at `now`.
    pub fn behind(&self, now: Time) -> Duration {
        now.saturating_since(self.pace.last_due())
    }

    /// Sends nothing from the current frame on, of which nothing has been sent.
    pub const fn halt(&mut self) {
        self.frame = None;
    }

    /// Sends by other paths from here on: between two frames.
    pub fn reroute(&mut self, outlets: Vec<Outlet>) {
        self.patience = vec![Patience::default(); outlets.len()];
        (self.outlets, self.path) = (outlets, (0, 0));
    }

    /// Sends again, from frame `frame` on.
    pub fn resume(&mut self, frame: u64) {
        self.last = false;
        self.begin(frame);
    }

    /// Its paths, without the rest.
    pub fn into_outlets(self) -> Vec<Outlet> {
        self.outlets
    }

    /// True if it has a path.
    pub const fn is_routed(&self) -> bool {
        !self.outlets.is_empty()
    }

    /// Sends other frames from here on: between two frames.
    pub fn replace(&mut self, ring: Ring, base: u64) {
        (self.ring, self.base) = (ring, Some(base));
        if let Some(frame) = self.frame {
            self.begin(frame);
        }
    }

    /// Moves on to frame `frame` without sending it, as far as it has been read.
    pub fn pass(&mut self, frame: u64) {
        if let Some(base) = self.base {
            self.ring.pass(frame.saturating_sub(base));
        }
    }

    /// What to send next; `None` after the last frame.
    pub fn next(&self) -> Option<Burst> {
        self.frame.and_then(|_| self.pace.next())
    }

    /// No frame begins after the current one.
    pub const fn stop(&mut self) {
        self.last = true;
    }

    /// What is sent.
    pub const fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Sends `burst` at `now`. If there was no room for all of it, the rest is not tried again until some time has
    /// passed, or not at all if other paths have waited for too long.
    pub fn send(&mut self, now: Time, burst: &Burst) -> std::io::Result<Sent> {
        let Self { ring, layout, stream, outlets, path: (path, done), .. } = self;
        let (Some(frame), Some(outlet)) = (self.frame, outlets.get_mut(*path)) else {
            return Ok(Sent::default());
        };
        let content = ring.current();
        let common = common(layout, frame, &content);
        let first = burst.first + *done;
        let packets = (first..burst.first + burst.packets).map(|index| {
            let mut header = [0; HEADER_BYTES_MAX];
            layout.write_header(*stream, &common, index, &mut header);
            (header, &content.bytes[layout.piece(index).range()])
        });
        let sent = outlet.send(packets)?;
        *done += sent.done();
        self.counts.unreachable += u64::from(sent.unreachable + sent.refused);
        self.count(first, sent.packets);
        self.counts.no_room += u64::from(sent.no_room);
        if sent.no_room && !self.goes_on_without(now) {
            self.blocked_since.get_or_insert(now);
            self.not_before = now + NO_ROOM;
            return Ok(sent);
        }
        self.unblock(now);
        self.path = (self.path.0 + 1, 0);
        if self.path.0 >= self.outlets.len() {
            self.path = (0, 0);
            // Not `now`: the thread may have been interrupted since, and the next burst would follow too soon.
            self.pace.sent(clock::monotonic(), burst);
        }
        Ok(sent)
    }

    /// True if the current path, which has no room, goes without the rest of this burst: it has held up the others for half of a
    /// frame time, or did so in the frame before.
    fn goes_on_without(&mut self, now: Time) -> bool {
        let most = self.layout.geometry().rate().period() / 2;
        let waiting =
            self.blocked_since.map_or(Duration::ZERO, |since| now.saturating_since(since));
        go_on_without(&mut self.patience, self.path.0, waiting, most)
    }

    /// The earliest time to send: the beginning of time, unless there was no room.
    pub const fn not_before(&self) -> Time {
        self.not_before
    }

    fn unblock(&mut self, now: Time) {
        if let Some(since) = self.blocked_since.take() {
            let waited = now.saturating_since(since);
            self.blocked += waited;
            if let Some(own) = self.patience.get_mut(self.path.0) {
                own.waited(waited);
            }
            self.not_before = Time::ZERO;
        }
    }

    /// Skips the rest of the current frame, and ends.
    pub const fn give_up(&mut self) {
        if self.frame.take().is_some() {
            self.counts.skipped += 1;
        }
    }

    /// The current frame is no longer available in its ring: this stream sends no more, and the ring records why.
    pub fn lose(&mut self) {
        self.ring.lose();
        self.stop();
        self.give_up();
    }

    /// An error of this stream.
    pub fn failed(&self, cause: std::io::Error) -> Error {
        let packet = packet::IP_UDP_BYTES + self.layout.datagram_bytes() as u32;
        Error::Stream { stream: self.number, packet, cause }
    }

    /// True if all packets of the frame have left.
    pub fn is_frame_over(&self) -> bool {
        self.frame.is_some() && self.pace.next().is_none()
    }

    /// The frame's last packet left at `spent.at`: counts it and moves on to the next frame. If the stream is too far
    /// behind and `may_skip` is set, frames are skipped.
    pub fn end_frame(&mut self, spent: Spent, may_skip: bool) {
        let Some(frame) = self.frame else { return };
        let spent = Spent { no_room: self.blocked, ..spent };
        let rate = self.layout.geometry().rate();
        let late = spent.at.saturating_since(self.pace.last_due());
        self.counts.frames += 1;
        self.counts.behind_max = self.counts.behind_max.max(late);
        if self.is_late(spent.at) {
            self.counts.late += 1;
            match cause(late, &self.before, &spent) {
                Cause::Steal => self.counts.late_steal += 1,
                Cause::Preempted => self.counts.late_preempted += 1,
                Cause::Waking => self.counts.late_waking += 1,
                Cause::NoRoom => self.counts.late_no_room += 1,
                Cause::Load => self.counts.late_load += 1,
            }
        }
        self.before = spent;
        if self.last {
            self.frame = None;
            return;
        }
        let now = self.epoch.frame_at(rate, spent.at);
        let next = if may_skip && now > frame + BEHIND_MAX { now } else { frame + 1 };
        self.counts.skipped += next - frame - 1;
        self.begin(next);
    }

    /// Its first frame begins when the thread has used this much time.
    pub const fn start(&mut self, spent: Spent) {
        self.before = spent;
    }

    /// True if the frame's last packet leaves late at `now`.
    pub fn is_late(&self, now: Time) -> bool {
        let late = now.saturating_since(self.pace.last_due());
        late > self.layout.geometry().rate().period()
    }

    /// The counts since the last call.
    pub fn take(&mut self, at: Time, span: Duration) -> Second {
        let counts = std::mem::take(&mut self.counts);
        self.taken = self.taken.and(&counts);
        Second { at, span, stream: self.number, counts }
    }

    /// The total counts.
    pub fn counts(&self) -> Counts {
        self.taken.and(&self.counts)
    }

    /// Sends frame `frame` next, at its time; nothing if the ring has ended.
    pub fn begin(&mut self, frame: u64) {
        self.patience.iter_mut().for_each(Patience::begin);
        let next = match self.base {
            Some(base) => self.ring.show(frame.saturating_sub(base)),
            None => self.ring.advance(),
        };
        if next == Advance::Ended {
            self.frame = None;
            return;
        }
        let rate = self.layout.geometry().rate();
        self.frame = Some(frame);
        self.pace.begin(self.epoch.start(rate, frame), self.epoch.start(rate, frame + 1));
    }

    fn count(&mut self, first: u32, packets: u32) {
        let pieces = (first..first + packets).map(|index| self.layout.piece(index).bytes);
        let pieces: usize = pieces.sum();
        let header = self.layout.header_bytes() as u64 + u64::from(packet::IP_UDP_BYTES);
        self.counts.packets += u64::from(packets);
        self.counts.bytes += pieces as u64 + header * u64::from(packets);
    }
}

/// What all packets of frame number `frame` have in common. Sequence numbers are derived from the frame's number, so
/// that a sender that restarts continues at the current time.
fn common(layout: &Layout, frame: u64, content: &Frame<'_>) -> packet::Frame {
    packet::Frame {
        timestamp: layout.geometry().rate().rtp_timestamp(frame),
        sequence: (frame as u32).wrapping_mul(layout.packets_per_frame()),
        number: content.number as u32,
        checksum: content.checksum,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};
    use std::sync::atomic::AtomicBool;

    use suiro_units::Bytes;

    use super::*;
    use crate::geometry::Geometry;
    use crate::packet::Format;
    use crate::reader::{self, Options, Source};
    use crate::socket::{Inlet, Route, Segmentation};
    use crate::store::{Content, Header};

    /// A stream of one packet a frame to `inlet`, from frame 0 of the epoch.
    fn lane(inlet: &Inlet) -> Lane {
        let geometry: Geometry = "64x4 4:2:2 10 50".parse().unwrap();
        let layout = Layout::new(Format::Raster, &geometry, 1500).unwrap();
        let route = Route { destination: inlet.address(), source: None, ttl: 1 };
        let bytes = (layout.header_bytes(), layout.datagram_bytes());
        let outlet = Outlet::open(&route, Segmentation::None, bytes.0, bytes.1).unwrap();
        let (source, memory) = (Source::Memory, Bytes::new(1 << 20));
        let (repeat, depth, shape) = (true, reader::DEPTH, None);
        let options = Options { source, frames: 2, memory, repeat, depth, shape };
        let header = Header::new(geometry, Content::Picture);
        let ring = Ring::synthetic(&header, 2, &options, &AtomicBool::new(false)).unwrap();
        let stream = packet::Stream { payload_type: 96, ssrc: 1 };
        let epoch = Epoch::measured(Time::from_secs(1), Time::from_secs(1));
        Lane::new(0, (layout, stream), outlet, ring, 7, (epoch, 50))
    }

    #[test]
    fn the_first_frame_is_late_for_what_happened_since_it_began() {
        let inlet = Inlet::open(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0), None, 1 << 16).unwrap();
        let mut lane = lane(&inlet);
        let begin = lane.next().unwrap().at;
        // A thread that had hardly run, and ran all the time since.
        let before = Spent {
            at: begin,
            running: Duration::from_millis(10),
            steal: None,
            ..Spent::default()
        };
        lane.start(before);
        let late = Duration::from_millis(70);
        while let Some(burst) = lane.next() {
            assert!(!lane.send(begin, &burst).unwrap().no_room);
        }
        assert!(!lane.is_late(begin) && lane.is_late(begin + late) && lane.is_frame_over());
        let spent = Spent { at: begin + late, running: before.running + late, ..before };
        lane.end_frame(spent, true);
        let counts = lane.counts();
        assert_eq!((counts.frames, counts.late, counts.late_load), (1, 1, 1), "{counts:?}");
        // Counts taken for a row still count for the total.
        assert_eq!(lane.take(begin, late).counts, counts);
        assert_eq!(lane.counts(), counts);
    }
}
