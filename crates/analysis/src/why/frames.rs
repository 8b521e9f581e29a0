//! Why one frame of real-time video came late, or not at all.

use suiro_record::tables::{FrameRow, LinkRow};
use suiro_record::words::{Cause, LinkCause, Verdict};

use super::endpoints::absent;
use super::links::Carried;
use super::realtime::Stream;
use super::{since, total};

/// A delay that is shorter is part of the usual.
const LEAST_NS: i64 = 20_000_000;
/// A queue that delays longer than that holds more than any flow needs.
const BLOAT_NS: i64 = 200_000_000;
/// For so long before dropped packets the queue is looked at.
const BEFORE_NS: i64 = 500_000_000;
/// Slices of a busy time that are followed back: ten seconds.
const BUSY_MAX: usize = 200;
/// An encoder that makes this much more than it was set to overshoots.
const OVERSHOOT: f64 = 1.25;
/// The time over which what it made counts.
const ENCODED_NS: i64 = 1_000_000_000;
/// A key frame is late if it comes later after a loss than two round trips and this much.
const KEY_FRAME_NS: i64 = 100_000_000;

/// A frame of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'v> {
    pub row: &'v FrameRow,
    /// When it was captured; of one that never came, by its number.
    pub captured_ns: i64,
}

impl<'v> Frame<'v> {
    /// The frames of a viewer in order. None if none of them says when it was captured.
    pub fn all(mut rows: Vec<&'v FrameRow>) -> Vec<Self> {
        rows.sort_by_key(|row| row.frame);
        let known = |row: &&'v FrameRow| Some((row.frame, row.captured_ns?));
        let ends = rows.iter().find_map(known).zip(rows.iter().rev().find_map(known));
        let Some(((first, from), (last, to))) = ends else { return Vec::new() };
        let interval = if last > first { since(to, from) / since(last, first) } else { 0 };
        let (mut number, mut at) = (first, from);
        let frames = rows.into_iter().map(|row| {
            let guess =
                at.saturating_add(row.frame.saturating_sub(number).saturating_mul(interval));
            let captured_ns = row.captured_ns.unwrap_or(guess);
            (number, at) = (row.frame, captured_ns);
            Self { row, captured_ns }
        });
        let mut frames: Vec<Self> = frames.collect();
        frames.sort_by_key(|frame| (frame.captured_ns, frame.row.frame));
        frames
    }
}

impl Stream<'_, '_> {
    /// The cause of a frame's delay or absence; `None` where its own times show nothing.
    pub fn cause(&self, frame: &Frame, broken_since: Option<i64>) -> Option<Cause> {
        let Frame { row: frame, captured_ns: captured } = *frame;
        let sent = frame.sent_ns.unwrap_or(captured.saturating_add(self.usual.sending_ns));
        let waited = since(since(sent, captured), self.usual.sending_ns);
        let transit = frame
            .received_ns
            .map_or(0, |received| since(since(received, sent), self.usual.transit_ns));
        if waited > LEAST_NS && waited > transit {
            return Some(self.before_sending(captured, sent));
        }
        let Some(received) = frame.received_ns else {
            return self.not_received(frame, captured, sent);
        };
        if !frame.decodable {
            return self.not_decodable(broken_since, received);
        }
        if transit > LEAST_NS {
            return Some(self.on_the_way(sent, received));
        }
        let shown = frame.displayed_ns.unwrap_or(received);
        let away = absent(&self.receivers, received, shown.max(received.saturating_add(1)));
        away.map(|_| Cause::ClientProcessor)
    }

    fn before_sending(&self, captured: i64, sent: i64) -> Cause {
        if absent(&self.senders, captured, sent).is_some() {
            return Cause::ServerProcessor;
        }
        if self.overshoots(captured) { Cause::Encoder } else { Cause::Pacing }
    }

    fn not_received(&self, frame: &FrameRow, captured: i64, sent: i64) -> Option<Cause> {
        let until =
            sent.saturating_add(self.usual.transit_ns).saturating_add(self.usual.interval_ns);
        let dropped = self
            .packets(since(sent, LEAST_NS), until)
            .filter(|row| row.verdict == Verdict::Dropped);
        let (mut lost, mut overflowed) = (0, 0);
        for row in dropped {
            match row.cause {
                Some(LinkCause::Queue | LinkCause::Aqm) => overflowed += 1,
                _ => lost += 1,
            }
        }
        if absent(&self.receivers, sent, until).is_some() {
            return Some(Cause::ClientProcessor);
        }
        match (lost, overflowed) {
            (0, 0) if absent(&self.senders, captured, until).is_some() => {
                Some(Cause::ServerProcessor)
            }
            (0, 0) if frame.sent_ns.is_none() && self.overshoots(captured) => Some(Cause::Encoder),
            (0, 0) => None,
            (lost, overflowed) if lost >= overflowed => Some(Cause::Loss),
            _ => Some(self.queue(since(sent, LEAST_NS), until)),
        }
    }

    /// Until a decoder can have asked for a key frame and got it, the loss is to blame; later, the key frame.
    fn not_decodable(&self, broken_since: Option<i64>, received: i64) -> Option<Cause> {
        let since = broken_since?;
        let asked = self.usual.transit_ns.saturating_mul(4).saturating_add(KEY_FRAME_NS);
        if received.saturating_sub(since) > asked {
            return Some(Cause::KeyFrame);
        }
        let from = since.saturating_sub(self.usual.transit_ns).saturating_sub(LEAST_NS);
        let lost = |row: &&LinkRow| row.verdict == Verdict::Dropped;
        let first = self.packets(from, received).find(lost)?;
        match first.cause {
            Some(LinkCause::Queue | LinkCause::Aqm) => Some(self.queue(from, received)),
            _ => Some(Cause::Loss),
        }
    }

    fn on_the_way(&self, sent: i64, received: i64) -> Cause {
        let (mut late, mut wait, mut lost) = (0, 0, false);
        for row in self.packets(since(sent, LEAST_NS), received) {
            if let (Some(due), Some(left)) = (row.scheduled_ns, row.departed_ns) {
                late = late.max(left.saturating_sub(due));
            }
            if let Some(dequeued) = row.dequeued_ns {
                wait = wait.max(dequeued.saturating_sub(row.t_ns));
            }
            lost |= row.verdict == Verdict::Dropped
                && !matches!(row.cause, Some(LinkCause::Queue | LinkCause::Aqm));
        }
        if late > LEAST_NS && late >= wait {
            return Cause::Emulator;
        }
        if absent(&self.receivers, sent, received).is_some() {
            return Cause::ClientProcessor;
        }
        match wait > LEAST_NS {
            true => self.queue(since(sent, LEAST_NS), received),
            false if lost => Cause::Loss,
            false if absent(&self.senders, sent, received).is_some() => Cause::ServerProcessor,
            false => Cause::Unknown,
        }
    }

    /// Who filled the queue that the packets of a stretch of time waited in, or that had no room for them.
    pub fn queue(&self, from: i64, to: i64) -> Cause {
        let wait = |row: &&LinkRow| row.dequeued_ns.map_or(0, |t| since(t, row.t_ns));
        let longest = |from: i64| {
            let packets = self.packets(from, to).map(|row| (wait(&row), row));
            packets.max_by_key(|(wait, _)| *wait)
        };
        // Where all were dropped, those before them show how long the queue was.
        let found = longest(from).filter(|(wait, _)| *wait > 0);
        let Some((waited, row)) = found.or_else(|| longest(since(from, BEFORE_NS))) else {
            return Cause::Unknown;
        };
        let slices = self.slices;
        let range = slices.at(row.t_ns)..slices.at(row.t_ns.saturating_add(waited)) + 1;
        let same = |other: &LinkRow| other.link == row.link && other.direction == row.direction;
        let way = self.data.iter().find(|way| way.rows.first().is_some_and(|first| same(first)));
        if way.is_some_and(|way| way.others_in_queue(range.clone()) >= 0.5) {
            return if waited > BLOAT_NS { Cause::Bufferbloat } else { Cause::Competing };
        }
        // Its own packets waited, and other stations had the medium.
        if way.is_some_and(|way| way.others(range) >= 0.5) {
            return Cause::Competing;
        }
        if self.overshoots(row.t_ns) {
            return Cause::Encoder;
        }
        let fallen = self.data.iter().any(|way| way.way.fall(row.t_ns).is_some());
        if fallen { Cause::RateStep } else { Cause::LinkRate }
    }

    /// Since when the link has not been idle: what waits at a time was sent since then.
    fn busy_since(&self, t_ns: i64) -> i64 {
        let last = self.slices.at(t_ns);
        let busy = |index: &usize| {
            let (from, to) = self.slices.span(*index);
            let queued = |way: &Carried| way.own.get(*index).map_or(0, |load| load.queued_ns);
            self.data.iter().any(|way| queued(way) > since(to, from) / 10 * 9)
        };
        let first = (0..last).rev().take(BUSY_MAX).take_while(busy).last().unwrap_or(last);
        self.slices.span(first).0
    }

    /// Whether the encoder made more than it was set to since the link was idle, or at least in the second before.
    pub fn overshoots(&self, t_ns: i64) -> bool {
        let from = t_ns.saturating_sub(ENCODED_NS).min(self.busy_since(t_ns));
        let (first, last) = (self.captured(from), self.captured(t_ns.saturating_add(1)));
        let frames = &self.frames[first..last];
        let begun = frames.first().map(|frame| frame.captured_ns);
        let bits: i64 =
            total(frames.iter().filter_map(|frame| frame.row.encoded_bytes)).saturating_mul(8);
        let Some(seconds) = begun
            .map(|begun| since(t_ns, begun) as f64 / 1e9 + self.usual.interval_ns as f64 / 1e9)
        else {
            return false;
        };
        let set = self.encoder_bps(from, t_ns);
        set.is_some_and(|bps| bps > 0.0 && bits as f64 / seconds.max(0.2) > OVERSHOOT * bps)
    }
}
