//! Why one frame of real-time video came late, or not at all.

use suiro_record::tables::FrameRow;
use suiro_record::words::Cause;

use super::encoded::Fate;
use super::endpoints::absent;
use super::links::Carried;
use super::path::{Seen, queue, slowness};
use super::realtime::Stream;
use super::{since, total};

/// Frames before one that it may have waited for: two seconds at 30 frames per second.
const WAITED_FOR_MAX: usize = 60;

/// A frame of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'v> {
    pub row: &'v FrameRow,
    /// When it was captured; of one that never came, by its number.
    pub captured_ns: i64,
    /// True if it was never sent: the flow carried nothing that it can have been in.
    pub left_out: bool,
    /// The encoder that made it, of several; of one that never came, that of the one before. None if not known.
    pub quality: Option<u64>,
    /// When it would have been on the screen next to the frame before it.
    pub due_ns: i64,
}

/// The first of the frames that could not be decoded, of a row of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Broken {
    pub captured_ns: i64,
    /// When the viewer can have noticed: what had come of it, or was to come.
    pub noticed_ns: i64,
    /// How long it took on its way; 0 if it never came.
    pub transit_ns: i64,
}

impl Broken {
    pub fn of(frame: &Frame) -> Self {
        let Frame { row, captured_ns, .. } = *frame;
        let noticed_ns = row.received_ns.unwrap_or(captured_ns);
        let sent_ns = row.sent_ns.unwrap_or(captured_ns);
        Self { captured_ns, noticed_ns, transit_ns: since(noticed_ns, sent_ns).max(0) }
    }
}

impl<'v> Frame<'v> {
    /// The frames of a viewer in order. None if none of them says when it was captured.
    pub fn all(mut rows: Vec<&'v FrameRow>) -> Vec<Self> {
        rows.sort_by_key(|row| row.frame);
        let known: Vec<(i64, i64)> =
            rows.iter().filter_map(|row| Some((row.frame, row.captured_ns?))).collect();
        let (Some(first), Some(last)) = (known.first(), known.last()) else { return Vec::new() };
        let interval = per_frame(*first, *last);
        // Between its neighbours, so that the order of capture is that of the numbers.
        let guess = |frame: i64| {
            let next = known.partition_point(|(number, _)| *number <= frame);
            let before = next.checked_sub(1).map_or(*first, |at| known[at]);
            let apart = known.get(next).map_or(interval, |after| per_frame(before, *after));
            before.1.saturating_add(since(frame, before.0).saturating_mul(apart))
        };
        let frames = rows.into_iter().map(|row| {
            let captured_ns = row.captured_ns.unwrap_or_else(|| guess(row.frame));
            Self { row, captured_ns, left_out: false, quality: None, due_ns: captured_ns }
        });
        let mut frames: Vec<Self> = frames.collect();
        frames.sort_by_key(|frame| (frame.captured_ns, frame.row.frame));
        frames
    }

    /// Sets when each was due: as long after the frame that was shown before it as it was captured after that; before the first,
    /// at its usual age.
    pub fn set_due(frames: &mut [Self], usual_age_ns: impl Fn(&Self) -> i64) {
        let mut age_ns = frames.first().map_or(0, &usual_age_ns);
        for frame in frames {
            frame.due_ns = frame.captured_ns.saturating_add(age_ns);
            if let Some(shown) = frame.row.displayed_ns {
                age_ns = since(shown, frame.captured_ns).max(usual_age_ns(frame));
            }
        }
    }

    /// Marks the frames that were never made, by the sender's own records. Where there is none: between the frames that were
    /// received before and after them, each link lost nothing, and carried no more than the one before, or the encoder was
    /// set to leave out as many.
    pub fn mark_left_out(
        frames: &mut [Self],
        data: &[Carried],
        fate: impl Fn(&Self) -> Option<Fate>,
        set_to: impl Fn(&[Self]) -> Option<usize>,
    ) {
        let mut before: Option<&FrameRow> = None;
        let mut begun = 0;
        for at in 0..frames.len() {
            let row = frames[at].row;
            let (Some(_), Some(sent)) = (row.received_ns, row.sent_ns) else { continue };
            if let Some(last) = before.filter(|_| at > begun) {
                let is_set = || set_to(&frames[begun..=at]).is_some_and(|most| at - begun <= most);
                let left_out = is_clean_between(last, sent, data)
                    && (is_set() || is_empty_between(last, sent, data));
                frames[begun..at].iter_mut().for_each(|frame| frame.left_out = left_out);
            }
            (before, begun) = (Some(row), at + 1);
        }
        for frame in frames.iter_mut().filter(|frame| frame.row.received_ns.is_none()) {
            let known = fate(frame).map(|fate| fate != Fate::Encoded);
            frame.left_out = known.unwrap_or(frame.left_out);
        }
    }
}

/// The time from one frame to the next, between two frames by number and time of capture.
fn per_frame((first, from): (i64, i64), (last, to): (i64, i64)) -> i64 {
    if last > first { since(to, from) / since(last, first) } else { 0 }
}

/// Whether this leaves a flow less of a link than it had.
const fn takes_rate(cause: Cause) -> bool {
    matches!(cause, Cause::Outage | Cause::RateStep | Cause::Competing | Cause::Bufferbloat)
}

/// Whether a flow lost nothing after a frame, until another was sent.
fn is_clean_between(last: &FrameRow, until: i64, data: &[Carried]) -> bool {
    let drops = |from: i64| Seen::of(data, from, until).drops.most();
    !data.is_empty() && last.sent_ns.is_some_and(|from| drops(from).is_none())
}

/// Whether a flow carried nothing after a frame, until another was sent.
fn is_empty_between(last: &FrameRow, until: i64, data: &[Carried]) -> bool {
    let (Some(from), Some(bytes)) = (last.sent_ns, last.encoded_bytes) else { return false };
    // Headers and checks: a third more, and a packet of feedback.
    let most = bytes.saturating_add(bytes / 3).saturating_add(1500);
    let carried = |way: &Carried| {
        total(way.within(from, until).iter().map(|row| row.payload_bytes.unwrap_or(row.size_bytes)))
    };
    data.iter().all(|way| carried(way) <= most)
}

impl Stream<'_, '_> {
    /// The cause of the delay or absence of the frame at a place; `None` where the records show nothing.
    pub fn cause(&self, at: usize, broken: Option<Broken>) -> Option<Cause> {
        if self.was_cut(at) {
            return Some(Cause::EncoderChoice);
        }
        let frame = &self.frames[at];
        let held = self.held_ns(frame);
        let late = self.lateness(frame).unwrap_or(0);
        match self.own_cause(frame, broken) {
            // In time itself, it waited for one before it.
            None if held > self.rules.least_ns && held >= late / 2 => {
                self.waited_for(at, broken).or(Some(Cause::JitterBuffer))
            }
            own => own,
        }
    }

    /// How much longer than usual a frame was held after it had come.
    fn held_ns(&self, frame: &Frame) -> i64 {
        let held = frame.row.displayed_ns.zip(frame.row.received_ns).map(|(a, b)| since(a, b));
        held.map_or(0, |held| since(held, self.usual.at(frame.captured_ns).held_ns))
    }

    /// The cause of a frame that the one at a place waited for.
    fn waited_for(&self, at: usize, broken: Option<Broken>) -> Option<Cause> {
        let frame = &self.frames[at];
        let (received, shown) = frame.row.received_ns.zip(frame.row.displayed_ns)?;
        let earlier = self.frames[at.saturating_sub(WAITED_FOR_MAX)..at].iter().rev();
        let waited_for = |it: &&Frame| match it.row.received_ns {
            Some(came) => came > received && came <= shown,
            None => !it.left_out,
        };
        let other = earlier.filter(|it| it.row.frame < frame.row.frame).find(waited_for)?;
        self.own_cause(other, broken)
    }

    /// What a frame's own times show: what took longest, of what is more than usual.
    fn own_cause(&self, frame: &Frame, broken: Option<Broken>) -> Option<Cause> {
        let Frame { row, captured_ns: captured, left_out, .. } = *frame;
        if left_out {
            let until = captured.saturating_add(self.usual.interval_ns.max(1));
            let busy = self.encoded.fate(frame) == Some(Fate::Busy);
            let away = busy || absent(&self.senders, captured, until).is_some();
            return Some(if away { Cause::ServerProcessor } else { Cause::EncoderChoice });
        }
        let usual = self.usual.at(captured);
        let sent = row.sent_ns.unwrap_or(captured.saturating_add(usual.sending_ns));
        let waited = since(since(sent, captured), usual.sending_ns);
        let transit = row.received_ns.map_or(0, |at| since(since(at, sent), usual.transit_ns));
        let held = self.held_ns(frame);
        let age = row.displayed_ns.map(|shown| since(shown, captured));
        let late = age.map_or(0, |age| since(age, usual.age_ns));
        if waited.max(transit).max(held) < late / 2 {
            return None;
        }
        if waited > self.rules.least_ns && waited > transit.max(held) {
            return self.before_sending(captured, sent);
        }
        let Some(received) = row.received_ns else {
            return self.not_received(captured, sent).or_else(|| self.switched(frame));
        };
        if !row.decodable {
            return self.not_decodable(broken?, (sent, received));
        }
        if transit > self.rules.least_ns && transit >= held {
            return self.on_the_way(sent, received, transit);
        }
        let shown = row.displayed_ns.unwrap_or(received);
        let away = absent(&self.receivers, received, shown.max(received.saturating_add(1)));
        away.map(|_| Cause::ClientProcessor)
    }

    /// A sender that holds a frame back does so because of what its flow met, or because the encoder made too much; or
    /// by its pacing, if it says that something waited.
    fn before_sending(&self, captured: i64, sent: i64) -> Option<Cause> {
        if absent(&self.senders, captured, sent).is_some() {
            return Some(Cause::ServerProcessor);
        }
        self.held_back(captured, sent)
    }

    fn not_received(&self, captured: i64, sent: i64) -> Option<Cause> {
        let from = since(sent, self.rules.least_ns);
        let transit_ns = self.usual.at(captured).transit_ns;
        let until = sent.saturating_add(transit_ns).saturating_add(self.usual.interval_ns);
        if absent(&self.receivers, sent, until).is_some() {
            return Some(Cause::ClientProcessor);
        }
        if let Some(cause) = self.dropped(from, until) {
            return Some(cause);
        }
        if absent(&self.senders, captured, until).is_some() {
            return Some(Cause::ServerProcessor);
        }
        let out = self.data.iter().any(|way| way.way.is_out(from, until));
        out.then_some(Cause::Outage)
    }

    /// Why the viewer left a frame out between two qualities: it changed. If it changed down, what its flow had met shortly
    /// before is to blame.
    fn switched(&self, frame: &Frame) -> Option<Cause> {
        let switch = self.switches.left_out(frame.row.frame)?;
        let to = frame.captured_ns;
        let from = since(switch.last.captured_ns.unwrap_or(to), self.rules.held_ns);
        let found = || {
            let waited = Seen::of(&self.data, from, to).waited;
            let long = waited.filter(|(ns, _)| *ns > self.rules.queued_ns);
            let queue = long.map(|waited| self.queue(waited));
            // A loss comes before a queue there, but need not be what made it change.
            [self.trouble(from, to), queue].into_iter().flatten().find(|cause| takes_rate(*cause))
        };
        let forced = switch.is_down().then(found).flatten();
        Some(forced.unwrap_or(Cause::QualityChange))
    }

    /// Until a decoder can have asked for a key frame and got it, the loss is to blame; later, the key frame, unless it
    /// was lost as well. A round trip takes as long as frames do at the time.
    fn not_decodable(&self, broken: Broken, (sent, received): (i64, i64)) -> Option<Cause> {
        let usual = self.usual.at(broken.captured_ns);
        let transit = since(received, sent).max(broken.transit_ns).max(usual.transit_ns);
        let round_trips = transit.saturating_add(usual.transit_ns).saturating_mul(2);
        let asked = round_trips.saturating_add(self.rules.key_frame_ns);
        if since(received, broken.noticed_ns) > asked {
            let again = self.dropped(since(since(received, asked), transit), received);
            return Some(again.unwrap_or(Cause::KeyFrame));
        }
        let from = since(since(broken.captured_ns, usual.transit_ns), self.rules.least_ns);
        self.dropped(from, received)
    }

    /// What explains at least half of a delay on the way, or repaired what was lost there.
    fn on_the_way(&self, sent: i64, received: i64, delay: i64) -> Option<Cause> {
        let from = since(sent, self.rules.least_ns);
        let seen = Seen::of(&self.data, from, received);
        if seen.late_ns > self.rules.least_ns && seen.late_ns >= delay / 2 {
            return Some(Cause::Emulator);
        }
        if absent(&self.receivers, sent, received).is_some() {
            return Some(Cause::ClientProcessor);
        }
        if seen.waited_ns() > self.rules.least_ns && seen.waited_ns() >= delay / 2 {
            return seen.waited.map(|waited| self.queue(waited));
        }
        let explains = |ns: i64| ns > self.rules.least_ns && ns >= delay / 2;
        let slow = seen.slow.filter(|(ns, _)| explains(*ns));
        if let Some(cause) = slow.and_then(|slow| slowness(&self.data, slow)) {
            return Some(cause);
        }
        if let Some(cause) = self.dropped(from, received) {
            return Some(cause);
        }
        if self.data.iter().any(|way| way.way.is_out(sent, received)) {
            return Some(Cause::Outage);
        }
        if absent(&self.senders, sent, received).is_some() {
            return Some(Cause::ServerProcessor);
        }
        // What a sender has taken it sends as its pacing or QUIC's windows let it: the congestion's, and that of a receiver
        // that must read.
        if self.held_bytes(sent, received) > 0 {
            if self.was_away(received) && self.waiting_bytes(sent, received) > 0 {
                return Some(Cause::ClientProcessor);
            }
            return self.held_back(sent, received);
        }
        self.back_is_to_blame(from, received).then_some(Cause::AckPath)
    }

    /// Why packets of a stretch of time did not reach the viewer; `None` if all did.
    pub fn dropped(&self, from: i64, to: i64) -> Option<Cause> {
        let seen = Seen::of(&self.data, from, to);
        seen.drops.most()?.cause().or_else(|| {
            // Where all were dropped, those before them show how long the queue was.
            let before =
                || Seen::of(&self.data, from.saturating_sub(self.rules.queue_before_ns), to).waited;
            seen.waited.or_else(before).map(|waited| self.queue(waited))
        })
    }

    /// What happened to the flow in a stretch of time, the worst first.
    pub fn trouble(&self, from: i64, to: i64) -> Option<Cause> {
        self.met(from, to, true)
    }

    /// The same; a queue counts only if `queued`.
    fn met(&self, from: i64, to: i64, queued: bool) -> Option<Cause> {
        if self.data.iter().any(|way| way.way.is_out(from, to)) {
            return Some(Cause::Outage);
        }
        if let Some(cause) = self.dropped(from, to) {
            return Some(cause);
        }
        let seen = Seen::of(&self.data, from, to);
        let back = Seen::of(&self.back, from, to);
        let by_queue =
            |(ns, _): &(i64, _)| *ns > self.rules.queued_ns && !back.outweighs(&seen, self.rules);
        if let Some(waited) = seen.waited.filter(|_| queued).filter(by_queue) {
            return Some(self.queue(waited));
        }
        let slow = seen.slow.filter(|(ns, _)| *ns > self.rules.slow_ns);
        if let Some(cause) = slow.and_then(|slow| slowness(&self.data, slow)) {
            return Some(cause);
        }
        self.back_is_to_blame(from, to).then_some(Cause::AckPath)
    }

    /// Whether acknowledgements and requests of a stretch of time were lost, or waited.
    fn back_is_to_blame(&self, from: i64, to: i64) -> bool {
        let seen = Seen::of(&self.back, from, to);
        let out = self.back.iter().any(|way| way.way.is_out(from, to));
        let dropped = seen.drops.most().is_some();
        out || dropped
            || seen.waited_ns() > self.rules.queued_ns
            || seen.slow_ns() > self.rules.slow_ns
    }

    /// Until when QUIC had held back the packets that a packet waited behind: the link was idle before them, while data waited
    /// for the congestion window, or for that of the receiver. `None` if it had not.
    fn held_until(&self, t_ns: i64) -> Option<i64> {
        let begun = self.data.iter().map(|way| way.busy_since(t_ns)).fold(t_ns, i64::min);
        let before = begun.saturating_sub(self.rules.away_ns);
        let is_held = self.data.iter().all(|way| way.is_idle(before, begun))
            && self.always_waits(before, begun);
        is_held.then_some(begun)
    }

    /// What had held them back for want of acknowledgements.
    fn held_before(&self, begun: i64) -> Option<Cause> {
        self.met(begun.saturating_sub(self.rules.held_ns), begun, false)
    }

    /// Who filled the queue that a packet waited in.
    pub fn queue(&self, waited: (i64, &suiro_record::tables::LinkRow)) -> Cause {
        let until = waited.1.t_ns.saturating_add(waited.0);
        match queue(&self.data, waited) {
            Cause::LinkRate if self.overshoots(waited.1.t_ns) => Cause::Encoder,
            Cause::LinkRate => match self.held_until(waited.1.t_ns) {
                // What was held back for a receiver that did not run comes at once when it runs again.
                Some(_) if self.was_away(until) => Cause::ClientProcessor,
                held => held.and_then(|begun| self.held_before(begun)).unwrap_or(Cause::LinkRate),
            },
            cause => cause,
        }
    }

    /// Whether the receiver did not run shortly before.
    fn was_away(&self, t_ns: i64) -> bool {
        let before = t_ns.saturating_sub(self.rules.held_ns);
        self.receivers.iter().any(|it| it.overlap_ns(before, t_ns) > self.rules.away_ns)
    }

    /// Whether the encoder exceeded its bit rate since the link was idle, or at least in the second before.
    pub fn overshoots(&self, t_ns: i64) -> bool {
        if self.encoded.is_prepared() {
            return false;
        }
        let busy = self.data.iter().map(|way| way.busy_since(t_ns));
        let from = busy.fold(t_ns.saturating_sub(self.rules.encoded_ns), i64::min);
        let made = self.made_bps(from, t_ns).zip(self.encoder_bps(from, t_ns));
        made.is_some_and(|(made, set)| set > 0.0 && made > self.rules.overshoot * set)
    }

    /// What the encoder made in a stretch of time.
    pub fn made_bps(&self, from: i64, to: i64) -> Option<f64> {
        let frames = &self.frames[self.captured(from)..self.captured(to.saturating_add(1))];
        let begun = frames.first()?.captured_ns;
        let bytes = total(frames.iter().filter_map(|frame| frame.row.encoded_bytes));
        let seconds = since(to, begun).saturating_add(self.usual.interval_ns) as f64 / 1e9;
        Some(bytes as f64 * 8.0 / seconds.max(0.2))
    }
}
