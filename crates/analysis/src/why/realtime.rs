//! Freezes, late and missing frames of real-time video, and what limited its flows.

use suiro_record::flows;
use suiro_record::tables::{LinkRow, WebrtcRow};
use suiro_record::words::{Carries, Cause, Effect, FlowRole};

use super::account;
use super::encoded::{Encoded, Fate};
use super::endpoints::{Absence, absences, absent};
use super::frames::{Broken, Frame};
use super::links::{Carried, Links};
use super::queues::Queues;
use super::rules::Rules;
use super::sessions::Sessions;
use super::slices::Slices;
use super::switches::Switches;
use super::told::Told;
use super::usual::Usual;
use super::wording::{also, milliseconds, opening, whole};
use super::{Crossed, Evidence, Explained, Step, since};
use crate::Records;
use crate::player::Player;
use crate::view::View;

/// A frame is late if it is this much older than usual when it is shown.
const LATE_NS: i64 = 150_000_000;
/// Late and missing frames nearer than this are one stretch.
const JOINED_NS: i64 = 300_000_000;
/// A shorter stretch next to a freeze is not worth a sentence.
const LEAST_NS: i64 = 100_000_000;
/// The same of frames that an encoder leaves out: it often does after each key frame, and these are two seconds apart.
const JOINED_LEFT_OUT_NS: i64 = 2_500_000_000;
/// Fewer late or missing frames than these are not worth a sentence.
const LEAST_FRAMES: usize = 3;
/// A sender writes a row of its queue as often as this, or more often.
pub(super) const ROW_NS: i64 = 110_000_000;
/// Links on the way of a stream, from relay to relay.
const HOPS_MAX: usize = 8;

/// A viewer's stream.
pub(super) struct Stream<'a, 'v> {
    pub records: &'v Records,
    pub rules: Rules,
    pub player: &'v Player<'v>,
    /// Its frames that were captured, in order of capture.
    pub frames: Vec<Frame<'v>>,
    pub data: Vec<Carried<'a, 'v>>,
    /// What goes back to its senders.
    pub back: Vec<Carried<'a, 'v>>,
    pub senders: Vec<Absence<'v>>,
    pub receivers: Vec<Absence<'v>>,
    pub usual: Usual,
    pub slices: Slices,
    /// What its sender's encoders made.
    pub encoded: Encoded<'v>,
    /// The endpoint that makes it; none if unknown.
    sender: Option<&'v str>,
    /// The endpoints that send it, relays included.
    pub sources: Vec<&'v str>,
    /// Their sessions that carry it.
    pub sessions: Sessions<'v>,
    /// What waited in them.
    pub queues: Queues<'v>,
    /// Whether the viewer chooses among qualities.
    chooses: bool,
    /// Where it changed from one to another, and left frames out.
    pub switches: Switches<'v>,
}

/// The streams of all viewers of real-time video.
pub(super) fn streams<'a, 'v>(
    view: &'v View<'_>,
    links: &'a Links<'v>,
    slices: Slices,
) -> Vec<Stream<'a, 'v>> {
    let live = |player: &&Player| player.requests.is_empty() && player.screen.is_known();
    let viewers: Vec<&Player> = view.players().iter().filter(live).collect();
    let alone = viewers.len() == 1;
    let of = |player: &&'v Player<'v>| Stream::of(view, links, player, alone, slices);
    viewers.iter().filter_map(of).collect()
}

impl<'a, 'v> Stream<'a, 'v> {
    fn of(
        view: &'v View<'_>,
        links: &'a Links<'v>,
        player: &'v Player<'v>,
        alone: bool,
        slices: Slices,
    ) -> Option<Self> {
        let own = view.records.frames.iter().filter(|row| *row.endpoint == *player.name);
        let mut frames = Frame::all(own.collect());
        // What was never captured needs no cause.
        let screen = &player.screen;
        frames.retain(|it| it.row.received_ns.is_some() || !screen.is_paused(it.captured_ns));
        if frames.is_empty() {
            return None;
        }
        let (names, senders) = flows_of(view, links, player, alone);
        let data = links.of(&names);
        let turned = names.iter().filter_map(|name| super::turned(name)).collect::<Vec<_>>();
        let (sender, sources) = (senders.last().copied(), senders.clone());
        // With no name, absences would be those of all.
        let senders: Vec<&str> = if senders.is_empty() { vec![""] } else { senders };
        let sessions = view.records.moq_sessions.iter();
        let mut own = sessions.filter(|row| *row.endpoint == *player.name);
        let chooses = own.any(|row| row.switches.is_some());
        let mut stream = Self {
            records: view.records,
            rules: view.rules,
            player,
            frames: Vec::new(),
            data,
            back: links.of(&turned),
            senders: absences(view, &senders),
            receivers: absences(view, &[player.name]),
            usual: Usual::of(frames.iter().map(|it| (it.captured_ns, it.row))),
            slices,
            encoded: Encoded::of(view.records, |it| sender.is_none_or(|sender| sender == it)),
            sender,
            sources,
            sessions: Sessions::of(view.records, &names, alone),
            queues: Queues::default(),
            chooses,
            switches: Switches::of(view.records, player.name),
        };
        stream.queues = stream.waiting_rows();
        stream.encoded.set_qualities(&mut frames);
        let set_to = |frames: &[Frame]| stream.most_left_out(frames);
        let fate = |frame: &Frame| stream.fate(frame);
        Frame::mark_left_out(&mut frames, &stream.data, fate, set_to);
        // Between two qualities an empty path is the viewer's doing: only the sender's own records count.
        for frame in frames.iter_mut().filter(|it| stream.switches.at(it.row.frame).is_some()) {
            frame.left_out = stream.fate(frame).is_some_and(|fate| fate != Fate::Encoded);
        }
        Frame::set_due(&mut frames, |frame| stream.usual.at(frame.captured_ns).age_ns);
        stream.frames = frames;
        Some(stream)
    }

    /// The first frame captured at or after a time.
    pub fn captured(&self, t_ns: i64) -> usize {
        self.frames.partition_point(|frame| frame.captured_ns < t_ns)
    }

    /// Own packets that came to the links within a stretch of time.
    pub fn packets(&self, from: i64, to: i64) -> impl Iterator<Item = &'v LinkRow> {
        self.data.iter().flat_map(move |way| way.within(from, to).iter().copied())
    }

    /// Whether an endpoint makes the stream, or nothing is known of who does.
    pub fn is_sender(&self, endpoint: &str) -> bool {
        self.sender.is_none_or(|sender| sender == endpoint)
    }

    /// Rows of its sender about the session that carries it: other viewers have sessions of their own.
    pub fn webrtc(&self) -> impl Iterator<Item = &'v WebrtcRow> {
        let rows = self.records.webrtc.iter().filter(|row| self.is_sender(&row.endpoint));
        rows.filter(|row| self.sessions.has_webrtc(row))
    }

    /// The links on its way.
    pub fn crossed(&self) -> Crossed {
        Crossed::new(self.player.name, &self.data, &self.back)
    }

    /// What its viewer had to bear.
    pub fn effects(&self) -> Vec<Explained> {
        let freezes = self.player.screen.freezes();
        let due =
            |frame: &Frame| (frame.due_ns, frame.due_ns.saturating_add(self.usual.interval_ns));
        // A late frame is late as long as it is on the screen, and not when it was due. Those of the start were due before
        // there was a screen.
        let begun = self.begun();
        let late = self.runs(JOINED_NS, |frame| {
            let shown = frame.row.displayed_ns?;
            let was_due = frame.captured_ns.saturating_add(self.usual.at(frame.captured_ns).age_ns);
            let is_late = self.lateness(frame)? > LATE_NS && was_due >= begun;
            is_late.then(|| (shown, shown.saturating_add(self.usual.interval_ns)))
        });
        let is_missing = |frame: &Frame| frame.row.displayed_ns.is_none() && !frame.left_out;
        let missing = self.runs(JOINED_NS, |frame| is_missing(frame).then(|| due(frame)));
        let fewer = self.runs(JOINED_LEFT_OUT_NS, |frame| frame.left_out.then(|| due(frame)));
        let one = |effect: Effect| move |span: (i64, i64)| self.effect(effect, span);
        let mut found: Vec<Explained> = freezes.iter().copied().map(one(Effect::Freeze)).collect();
        found.extend(without(late, freezes).into_iter().map(one(Effect::Late)));
        found.extend(without(missing, freezes).into_iter().map(one(Effect::Missing)));
        // A freeze is no end of it: the encoder goes on as before.
        found.extend(fewer.into_iter().map(one(Effect::FrameRate)));
        found.extend(self.constantly_late());
        found.extend(self.smaller());
        found
    }

    /// When the first frame was on the screen.
    fn begun(&self) -> i64 {
        self.player.screen.shown().first().map_or(i64::MAX, |(t_ns, _)| *t_ns)
    }

    /// Stretches of time that frames make up, of which each has its own; `None` of one that is not concerned.
    fn runs(&self, joined_ns: i64, span: impl Fn(&Frame) -> Option<(i64, i64)>) -> Vec<(i64, i64)> {
        let begun = self.begun();
        let mut runs: Vec<(i64, i64, usize)> = Vec::new();
        for (from, to) in self.frames.iter().filter_map(span) {
            if from < begun || from >= self.player.screen.end_ns() {
                continue;
            }
            match runs.last_mut() {
                Some((_, last, count)) if from.saturating_sub(*last) <= joined_ns => {
                    (*last, *count) = ((*last).max(to), *count + 1);
                }
                _ => runs.push((from, to, 1)),
            }
        }
        runs.retain(|(.., count)| *count >= LEAST_FRAMES);
        runs.into_iter().map(|(from, to, _)| (from, to)).collect()
    }

    /// How much older than usual a frame was when it was shown; `None` of one that was not.
    pub fn lateness(&self, frame: &Frame) -> Option<i64> {
        let age = since(frame.row.displayed_ns?, frame.captured_ns);
        Some(since(age, self.usual.at(frame.captured_ns).age_ns))
    }

    /// The frames that should have been seen in a stretch of time, by cause.
    fn effect(&self, effect: Effect, (from, to): (i64, i64)) -> Explained {
        let places = self.concerned(effect, (from, to));
        let concerned = &self.frames[places.clone()];
        let mut shares = self.shares(effect, places);
        if shares.is_empty() {
            shares.push((self.absence_of_frames(from, to), 1.0));
        }
        let silence = self.silent(effect, &shares, (from, to));
        if silence.is_some() {
            shares = vec![(Cause::Application, 1.0)];
        }
        let main = shares.first().map_or(Cause::Unknown, |(cause, _)| *cause);
        let (data, during) = self.underway(effect, concerned, (from, to));
        let told = match silence {
            Some(silence) => Told::of_silence(silence),
            None => self.told(main, concerned, &data, during),
        };
        let by = self.latest(effect, concerned);
        let mut sentence = format!("{}{by}: {}", opening(effect, from, to), told.text());
        sentence.extend(also(&shares, whole(effect)).map(|other| format!("; also {other}")));
        if matches!(effect, Effect::Freeze | Effect::Late) && is_of_a_queue(main) {
            sentence.extend(self.counterfactual(concerned));
        }
        let because = told.because();
        Explained {
            subject: self.player.name.to_owned(),
            effect,
            from_ns: from,
            to_ns: to,
            shares,
            chain: self.chain(effect, concerned, told),
            sentence,
            because,
            change: None,
        }
    }

    /// The causes of those of some frames that suffer, each with its share: of the frames, or of the delay of late ones.
    fn shares(&self, effect: Effect, places: std::ops::Range<usize>) -> Vec<(Cause, f64)> {
        let mut weights: Vec<(Cause, f64)> = Vec::new();
        let mut broken = self.broken_before(places.start);
        for at in places {
            let frame = &self.frames[at];
            match frame.row.decodable {
                true => broken = None,
                false if frame.left_out => {}
                false => {
                    broken = broken.or_else(|| Some(Broken::of(frame)));
                }
            }
            if self.suffers(effect, frame) {
                let cause = self.cause(at, broken).unwrap_or(Cause::Unknown);
                let late = self.lateness(frame).filter(|_| effect == Effect::Late);
                let weight = late.map_or(1.0, |late| late as f64);
                weights.push((self.or_quality(cause, Some(frame)), weight));
            }
        }
        account::shares(weights.into_iter())
    }

    /// Whether a sender of prepared versions ended a frame early, because its rate control allowed no more: the viewer noticed
    /// that only when the next one came.
    pub fn was_cut(&self, at: usize) -> bool {
        let mut after = self.frames[at + 1..].iter();
        let is_last = after.clone().next().is_some_and(|next| next.left_out);
        let next = after.find(|frame| !frame.left_out);
        let received = self.frames[at].row.received_ns;
        let waited = next.zip(received).is_some_and(|(next, at)| at >= next.captured_ns);
        self.encoded.is_prepared() && is_last && waited
    }

    /// The places of the frames that an effect is about. Of a freeze, they are those after the last one on the screen, up to the
    /// one that ends it. Late frames are those on the screen in that time; others were due then.
    fn concerned(&self, effect: Effect, (from, to): (i64, i64)) -> std::ops::Range<usize> {
        let shown = |frame: &Frame| frame.row.displayed_ns;
        if effect == Effect::Late {
            let within = |frame: &Frame| shown(frame).is_some_and(|at| (from..to).contains(&at));
            let first = self.frames.iter().position(within).unwrap_or(0);
            let last = self.frames.iter().rposition(within).map_or(first, |last| last + 1);
            return first..last;
        }
        if let (Effect::Freeze, Some(places)) = (effect, self.between_shown(from, to)) {
            return places;
        }
        let within = |frame: &Frame| (from..to).contains(&frame.due_ns);
        let first = self.frames.iter().position(within);
        let first = first.unwrap_or_else(|| self.captured(from).min(self.frames.len()));
        let last = self.frames.iter().rposition(within).map_or(first, |last| last + 1);
        first..last
    }

    /// The frames after the one that was shown when a freeze began, up to the one that ended it, or to the last that was due. If
    /// that one was cut, also those that were never made and would have ended it before. `None` if no frame began it.
    fn between_shown(&self, from: i64, to: i64) -> Option<std::ops::Range<usize>> {
        let at = |t_ns: i64| self.frames.iter().position(|it| it.row.displayed_ns == Some(t_ns));
        let before = at(from)?;
        let Some(end) = at(to) else {
            let last = self.frames.iter().rposition(|frame| frame.due_ns < to);
            return Some(before + 1..last.unwrap_or(before).max(before) + 1);
        };
        let age_ns = |frame: &Frame| self.usual.at(frame.captured_ns).age_ns;
        let due = |frame: &Frame| frame.captured_ns.saturating_add(age_ns(frame)) < to;
        let never_made = self.frames[end + 1..].iter().take_while(|it| it.left_out && due(it));
        let more = if self.was_cut(end) { never_made.count() } else { 0 };
        (before < end).then(|| before + 1..end + 1 + more)
    }

    /// The packets that an effect is about on each link, and the time in which they came there: from the capture of its first frame
    /// until its last one had come. What came to a link later waited behind them.
    fn underway(
        &self,
        effect: Effect,
        frames: &[Frame],
        (from, to): (i64, i64),
    ) -> (Vec<Carried<'a, 'v>>, (i64, i64)) {
        let concerns = matches!(effect, Effect::Freeze | Effect::Late);
        let Some(first) = frames.first().filter(|_| concerns) else {
            let all = self.data.iter().map(|way| way.before(to)).collect();
            let usual = from.saturating_sub(self.usual.at(from).age_ns);
            // After a late frame, others are due later than usual.
            let captured = frames.first().map_or(usual, |first| first.captured_ns);
            return (all, (captured.min(usual), to));
        };
        let ended = frames.iter().filter_map(|frame| frame.row.received_ns).max();
        let ended = ended.unwrap_or(to).min(to);
        // From the last link of the way to the first: packets came to that one first.
        let mut ways: Vec<&Carried> = self.data.iter().collect();
        ways.sort_by_key(|way| std::cmp::Reverse(way.rows.first().map(|row| row.t_ns)));
        let mut until = ended;
        let mut data = Vec::new();
        for way in ways {
            let left = |row: &&&LinkRow| row.departed_ns.is_some_and(|at| at <= until);
            let rows = way.within(first.captured_ns, until).iter().filter(left);
            until = rows.map(|row| row.t_ns.saturating_add(1)).max().unwrap_or(until);
            data.push(way.before(until));
        }
        (data, (first.captured_ns, ended.max(first.captured_ns)))
    }

    /// Whether a frame is one of those that an effect is about; one in time, next to them, is not.
    fn suffers(&self, effect: Effect, frame: &Frame) -> bool {
        match effect {
            Effect::FrameRate => frame.left_out,
            Effect::Missing => frame.row.displayed_ns.is_none() && !frame.left_out,
            Effect::Late => self.lateness(frame).is_some_and(|late| late > self.rules.old_ns),
            _ => self.lateness(frame).is_none_or(|late| late > self.rules.old_ns),
        }
    }

    /// How late the latest of late frames was.
    fn latest(&self, effect: Effect, frames: &[Frame]) -> String {
        match (effect, frames.iter().filter_map(|frame| self.lateness(frame)).max()) {
            (Effect::Late, Some(most)) => {
                format!(", up to {} older than usual", milliseconds(most))
            }
            _ => String::new(),
        }
    }

    /// Since which frame nothing could be decoded, before another.
    fn broken_before(&self, first: usize) -> Option<Broken> {
        let before = self.frames[..first.min(self.frames.len())].iter().rev();
        let broken =
            before.take_while(|frame| !frame.row.decodable).filter(|frame| !frame.left_out);
        broken.last().map(Broken::of)
    }

    /// When the sender had nothing to send, if nothing else is known of a freeze.
    fn silent(
        &self,
        effect: Effect,
        shares: &[(Cause, f64)],
        (from, to): (i64, i64),
    ) -> Option<(i64, i64)> {
        let is_known = shares.first().is_some_and(|(cause, _)| *cause != Cause::Unknown);
        if effect != Effect::Freeze || is_known {
            return None;
        }
        let age_ns = self.usual.at(from).age_ns;
        self.silence((from.saturating_sub(age_ns), to.saturating_sub(age_ns)))
    }

    /// No frame was captured that should have been seen.
    fn absence_of_frames(&self, from: i64, to: i64) -> Cause {
        let age_ns = self.usual.at(from).age_ns;
        let captured = (from.saturating_sub(age_ns), to.saturating_sub(age_ns));
        match (absent(&self.senders, captured.0, captured.1), absent(&self.receivers, from, to)) {
            (Some(_), _) => Cause::ServerProcessor,
            (None, Some(_)) => Cause::ClientProcessor,
            (None, None) => self.or_quality(Cause::Unknown, self.newest(to)),
        }
    }

    /// The newest frame that had arrived at a time.
    pub fn newest(&self, t_ns: i64) -> Option<&Frame<'v>> {
        let arrived = |frame: &&Frame| frame.row.received_ns.is_some_and(|at| at <= t_ns);
        self.frames.iter().rev().find(arrived)
    }

    /// The bit rate of a frame and that of a link on its way, if the viewer chose a quality that the link does not carry.
    pub fn too_high(&self, frame: &Frame) -> Option<(f64, f64)> {
        let quality = frame.row.rung_bps.filter(|_| self.chooses)? as f64;
        let rates = self.data.iter().filter_map(|way| way.way.rate_bps(frame.captured_ns));
        let rate = rates.min_by(f64::total_cmp)?;
        (quality > rate).then_some((quality, rate))
    }

    /// A link's rate is not to blame, nor is nothing, where the viewer chose a quality that the link does not carry.
    fn or_quality(&self, cause: Cause, frame: Option<&Frame>) -> Cause {
        let blamed = matches!(cause, Cause::LinkRate | Cause::Unknown);
        match frame.filter(|_| blamed).and_then(|frame| self.too_high(frame)) {
            Some(_) => Cause::OversizedRung,
            None => cause,
        }
    }

    /// Exact where the queue's delay alone made the frames late: without it they would have been there.
    fn counterfactual(&self, frames: &[Frame]) -> Option<String> {
        let frame = frames
            .iter()
            .map(|frame| frame.row)
            .max_by_key(|row| row.received_ns.zip(row.sent_ns).map(|(a, b)| since(a, b)))?;
        let (sent, received) = (frame.sent_ns?, frame.received_ns?);
        let came = |row: &&LinkRow| row.departed_ns.is_some_and(|at| at <= received);
        let last = self.packets(sent, received).filter(came).max_by_key(|row| row.departed_ns)?;
        let waited = since(last.dequeued_ns?, last.t_ns);
        let without = since(since(received, sent), waited);
        (waited > LATE_NS && without > 0 && without < waited).then(|| {
            format!(
                "; without the queue frame {} would have arrived {} after it was sent, not {}",
                frame.frame,
                milliseconds(without),
                milliseconds(since(received, sent))
            )
        })
    }

    fn chain(&self, effect: Effect, concerned: &[Frame], told: Told) -> Vec<Step> {
        let mut steps = Vec::new();
        if let (Some(first), Some(last)) = (concerned.first(), concerned.last()) {
            let evidence = Evidence::of("frames", &self.records.frames, first.row, last.row);
            let numbers = (first.row.frame, last.row.frame);
            let what =
                format!("{}: frames {} to {}", super::wording::verb(effect), numbers.0, numbers.1);
            let own =
                format!("endpoint={},frame={}..{}", self.player.name, numbers.0, numbers.1 + 1);
            steps.extend(evidence.map(|evidence| Step { what, evidence: evidence.only(own) }));
        }
        steps.extend(told.steps);
        steps
    }
}

/// Whether a frame would have been there without the queue: what waits for an outage to end waits without one as well.
const fn is_of_a_queue(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::LinkRate | Cause::RateStep | Cause::Competing | Cause::Bufferbloat | Cause::Encoder
    )
}

/// What is left of stretches of time outside of others, which are in order; no stretch that is shorter than [`LEAST_NS`].
fn without(runs: Vec<(i64, i64)>, others: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut left = Vec::new();
    for (begun, to) in runs {
        let mut from = begun;
        for (a, b) in others.iter().filter(|(a, b)| *a < to && *b > begun) {
            left.push((from, *a));
            from = from.max(*b);
        }
        left.push((from, to));
    }
    left.retain(|(from, to)| since(*to, *from) >= LEAST_NS);
    left
}

/// The flows on links that carry a viewer's video, back over relays, and the endpoints that send them, the first last.
fn flows_of<'v>(
    view: &'v View<'_>,
    links: &Links<'v>,
    player: &'v Player,
    alone: bool,
) -> (Vec<String>, Vec<&'v str>) {
    let (mut found, mut senders) = (Vec::new(), Vec::new());
    let mut to = Some(player.name);
    for _ in 0..HOPS_MAX {
        let Some(end) = to else { break };
        let (names, from) = flows_to(view, links, end);
        found.extend(names);
        to = from.filter(|from| *from != player.name && !senders.contains(from));
        senders.extend(to);
    }
    if found.is_empty() && alone && view.records.flows.is_empty() {
        found = busiest(links).into_iter().collect();
    }
    let writes = || {
        let rates = view.records.rate.iter().map(|row| &*row.endpoint);
        rates
            .chain(view.records.webrtc.iter().map(|row| &*row.endpoint))
            .find(|name| *name != player.name)
    };
    if senders.is_empty() && alone {
        senders.extend(writes());
    }
    // A flow crosses several links.
    found.sort_unstable();
    found.dedup();
    (found, senders)
}

/// The flows on links that carry video to an endpoint, and the endpoint that sends them.
fn flows_to<'v>(view: &'v View<'_>, links: &Links<'v>, to: &str) -> (Vec<String>, Option<&'v str>) {
    let mut sender = None;
    let mut found: Vec<String> = Vec::new();
    let names = links.ways.iter().flat_map(|way| way.flows.keys().copied());
    for name in names.filter(|name| name.starts_with("udp ")) {
        let Some(row) = flows::find_named(&view.records.flows, name) else { continue };
        let receives = matches!(row.role, FlowRole::Receiver | FlowRole::Client);
        let (from, end) = match receives {
            true => (row.peer.as_deref(), Some(&*row.endpoint)),
            false => (Some(&*row.endpoint), row.peer.as_deref()),
        };
        if row.carries == Carries::Video && end == Some(to) {
            let towards =
                |end: &str| name.split_once('>').is_some_and(|(_, last)| flows::is_end(end, last));
            if towards(if receives { &row.local } else { &row.remote }) {
                sender = from.or(sender);
                found.push(name.to_owned());
            }
        }
    }
    (found, sender)
}

/// Without table `flows`: the flow of UDP with the most bytes.
fn busiest(links: &Links) -> Option<String> {
    let all = links.ways.iter().flat_map(|way| &way.flows);
    let udp = all.filter(|(name, _)| name.starts_with("udp "));
    let bytes = |rows: &Vec<&LinkRow>| super::total(rows.iter().map(|row| row.size_bytes));
    udp.max_by_key(|(_, rows)| bytes(rows)).map(|(name, _)| (*name).to_owned())
}
