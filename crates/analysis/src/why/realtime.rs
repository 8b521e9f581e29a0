//! Freezes, late and missing pictures of real-time video, and what limited its flows.

use suiro_record::flows;
use suiro_record::tables::LinkRow;
use suiro_record::words::{Carries, Cause, Effect, FlowRole};

use super::endpoints::{Absence, absences, absent};
use super::frames::Frame;
use super::links::{Carried, Links};
use super::rows::stretches;
use super::slices::Slices;
use super::wording::{also, clause, opening, rate, seconds};
use super::{Evidence, Explained, Step, Subject, since};
use crate::Records;
use crate::player::Player;
use crate::view::View;

/// A picture is late if it is this much older than usual when it is shown.
const LATE_NS: i64 = 150_000_000;
/// Late and missing pictures nearer than this are one stretch.
const JOINED_NS: i64 = 300_000_000;
/// A shorter stretch beside a freeze is not worth a sentence.
const LEAST_NS: i64 = 100_000_000;
/// Fewer late or missing pictures than these are not worth a sentence.
const LEAST_FRAMES: usize = 3;
/// A queue that delays packets by this much limits a flow.
const QUEUED_NS: i64 = 50_000_000;
/// For so long after a loss its repair goes on.
const REPAIR_SLICES: usize = 2;

/// A viewer's stream.
pub(super) struct Stream<'a, 'v> {
    pub records: &'v Records,
    pub player: &'v Player<'v>,
    /// Its frames that were captured, in order of capture.
    pub frames: Vec<Frame<'v>>,
    pub data: Vec<Carried<'a, 'v>>,
    pub senders: Vec<Absence<'v>>,
    pub receivers: Vec<Absence<'v>>,
    pub usual: Usual,
    pub slices: Slices,
    /// The endpoint that sends it; none if unknown.
    sender: Option<&'v str>,
    /// Whether the viewer chooses among qualities.
    chooses: bool,
}

/// What is usual for a stream: the tenth percentile.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usual {
    /// From capture to sending.
    pub sending_ns: i64,
    /// From sending to the last byte received.
    pub transit_ns: i64,
    /// From capture to display.
    pub age_ns: i64,
    /// Between captures; the median.
    pub interval_ns: i64,
}

impl Usual {
    fn of(frames: &[Frame]) -> Self {
        let tenth = |mut of: Vec<i64>| {
            of.sort_unstable();
            of.get(of.len() / 10).copied().unwrap_or(0)
        };
        let known = || frames.iter().map(|frame| frame.row);
        let sending = known().filter_map(|row| Some(since(row.sent_ns?, row.captured_ns?)));
        let transit = known().filter_map(|row| Some(since(row.received_ns?, row.sent_ns?)));
        let age = known().filter_map(|row| Some(since(row.displayed_ns?, row.captured_ns?)));
        let mut apart: Vec<i64> =
            frames.windows(2).map(|pair| since(pair[1].captured_ns, pair[0].captured_ns)).collect();
        apart.sort_unstable();
        Self {
            sending_ns: tenth(sending.collect()),
            transit_ns: tenth(transit.collect()),
            age_ns: tenth(age.collect()),
            interval_ns: apart.get(apart.len() / 2).copied().unwrap_or(0),
        }
    }
}

/// What limited the streams, and what their viewers had to bear.
pub(super) fn explain<'v>(
    view: &'v View<'_>,
    links: &Links<'v>,
    slices: Slices,
) -> (Vec<Subject>, Vec<Explained>) {
    let live = |player: &&Player| player.requests.is_empty() && player.screen.is_known();
    let viewers: Vec<&Player> = view.players().iter().filter(live).collect();
    let (mut subjects, mut effects) = (Vec::new(), Vec::new());
    for player in &viewers {
        let Some(stream) = Stream::of(view, links, player, viewers.len() == 1, slices) else {
            continue;
        };
        subjects.push(stream.subject());
        effects.extend(stream.effects());
    }
    (subjects, effects)
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
        let frames = Frame::all(own.collect());
        if frames.is_empty() {
            return None;
        }
        let (names, sender) = flows_of(view, links, player, alone);
        let senders: Vec<&str> = vec![sender.unwrap_or("")];
        let sessions = view.records.moq_sessions.iter();
        let mut own = sessions.filter(|row| *row.endpoint == *player.name);
        let chooses = own.any(|row| row.switches.is_some());
        let usual = Usual::of(&frames);
        Some(Self {
            records: view.records,
            player,
            frames,
            data: links.of(&names),
            senders: absences(view, &senders),
            receivers: absences(view, &[player.name]),
            usual,
            slices,
            sender,
            chooses,
        })
    }

    /// The first frame captured at or after a time.
    pub fn captured(&self, t_ns: i64) -> usize {
        self.frames.partition_point(|frame| frame.captured_ns < t_ns)
    }

    /// Own packets that came to the links within a stretch of time.
    pub fn packets(&self, from: i64, to: i64) -> impl Iterator<Item = &'v LinkRow> {
        self.data.iter().flat_map(move |way| way.within(from, to).iter().copied())
    }

    /// What the encoder was set to, mean over a stretch of time.
    pub fn encoder_bps(&self, from: i64, to: i64) -> Option<f64> {
        let own = |endpoint: &str| self.sender.is_none_or(|sender| sender == endpoint);
        let records = self.records;
        let rates = records.rate.iter().filter(|row| own(&row.endpoint));
        let rates = rates.filter_map(|row| Some((row.t_ns, row.encoder_bps? as f64)));
        let webrtc = records.webrtc.iter().filter(|row| own(&row.endpoint));
        let webrtc = webrtc
            .filter_map(|row| Some((row.t_ns.as_nanos_i64(), row.target_bps?.as_bps() as f64)));
        let (mut sum, mut count, mut before) = (0.0, 0, None);
        for (t_ns, bps) in rates.chain(webrtc) {
            match t_ns {
                t if t < from => before = Some(bps),
                t if t <= to => (sum, count) = (sum + bps, count + 1),
                _ => {}
            }
        }
        if count > 0 { Some(sum / f64::from(count)) } else { before }
    }

    fn subject(&self) -> Subject {
        let alive = self.packets(0, self.slices.end_ns);
        let times = alive.map(|row| self.slices.at(row.t_ns));
        let (first, last) = times.fold((usize::MAX, 0), |(a, b), t| (a.min(t), b.max(t)));
        let causes: Vec<Option<Cause>> = (0..self.slices.count)
            .map(|index| (first..=last).contains(&index).then(|| self.limited_by(index)))
            .collect();
        let mut limits = stretches(&causes, self.slices);
        for limit in &mut limits {
            limit.evidence.extend(self.link_rows(limit.from_ns, limit.to_ns));
        }
        Subject { name: self.player.name.to_owned(), is_viewer: true, limits }
    }

    fn limited_by(&self, index: usize) -> Cause {
        let (from, to) = self.slices.span(index);
        let most = (to - from) / 2;
        let loads = || self.data.iter().filter_map(|way| way.own.get(index));
        if loads().any(|load| load.late_ns > most) {
            return Cause::Emulator;
        }
        let recent = index.saturating_sub(REPAIR_SLICES)..=index;
        let lost = |index: usize| self.data.iter().any(|way| way.own[index].lost > 0);
        if recent.into_iter().any(lost) {
            return Cause::Loss;
        }
        if loads().any(|load| load.wait_max_ns > QUEUED_NS || load.overflowed > 0) {
            return self.queue(from, to);
        }
        if absent(&self.senders, from, to).is_some() {
            return Cause::ServerProcessor;
        }
        match absent(&self.receivers, from, to) {
            Some(_) => Cause::ClientProcessor,
            None => Cause::Application,
        }
    }

    fn link_rows(&self, from: i64, to: i64) -> Option<Evidence> {
        let rows =
            self.data.iter().map(|way| way.within(from, to)).max_by_key(|rows| rows.len())?;
        Evidence::of("link", &self.records.link, rows.first()?, rows.last()?)
    }

    fn effects(&self) -> Vec<Explained> {
        let freezes = self.player.screen.freezes();
        let late = self.runs(|frame| {
            let age = frame.row.displayed_ns.map(|shown| since(shown, frame.captured_ns));
            age.is_some_and(|age| age > self.usual.age_ns.saturating_add(LATE_NS))
        });
        let missing = self.runs(|frame| frame.row.displayed_ns.is_none());
        let one = |effect: Effect| move |span: (i64, i64)| self.effect(effect, span);
        let mut found: Vec<Explained> = freezes.iter().copied().map(one(Effect::Freeze)).collect();
        found.extend(without(late, &freezes).into_iter().map(one(Effect::Late)));
        found.extend(without(missing, &freezes).into_iter().map(one(Effect::Missing)));
        found
    }

    /// Stretches of time in which frames that this holds for were to be seen.
    fn runs(&self, holds: impl Fn(&Frame) -> bool) -> Vec<(i64, i64)> {
        let due = |frame: &Frame| frame.captured_ns.saturating_add(self.usual.age_ns);
        let begun = self.player.screen.shown().first().map_or(i64::MAX, |(t_ns, _)| *t_ns);
        let mut runs: Vec<(i64, i64, usize)> = Vec::new();
        for frame in self.frames.iter().filter(|frame| holds(frame)) {
            let from = due(frame);
            let to = frame
                .row
                .displayed_ns
                .unwrap_or(from)
                .max(from.saturating_add(self.usual.interval_ns));
            if from < begun || from >= self.player.screen.end_ns() {
                continue;
            }
            match runs.last_mut() {
                Some((_, last, count)) if from.saturating_sub(*last) <= JOINED_NS => {
                    (*last, *count) = ((*last).max(to), *count + 1);
                }
                _ => runs.push((from, to, 1)),
            }
        }
        runs.retain(|(.., count)| *count >= LEAST_FRAMES);
        runs.into_iter().map(|(from, to, _)| (from, to)).collect()
    }

    /// The frames that should have been seen in a stretch of time, by cause.
    fn effect(&self, effect: Effect, (from, to): (i64, i64)) -> Explained {
        let first = self.captured(from.saturating_sub(self.usual.age_ns));
        let last = self.captured(to.saturating_sub(self.usual.age_ns)).max(first + 1);
        let concerned = &self.frames[first.min(self.frames.len())..last.min(self.frames.len())];
        let mut weights: Vec<(Cause, f64)> = Vec::new();
        let mut broken = self.broken_before(first);
        let mut before: Option<Cause> = None;
        for frame in concerned {
            match frame.row.decodable {
                true => broken = None,
                false => {
                    broken = broken.or(Some(frame.row.received_ns.unwrap_or(frame.captured_ns)));
                }
            }
            // A frame that is itself in time, in a stretch that is not, waits for one before it.
            let cause = self.cause(frame, broken).or(before);
            before = cause.or(before);
            let cause = self.or_quality(cause.unwrap_or(Cause::Unknown), Some(frame));
            weights.push((cause, 1.0));
        }
        let known = weights.iter().any(|(cause, _)| *cause != Cause::Unknown);
        if known {
            weights.retain(|(cause, _)| *cause != Cause::Unknown);
        }
        let mut shares = super::shares(weights.into_iter());
        if shares.is_empty() {
            shares.push((self.absence_of_frames(from, to), 1.0));
        }
        let mut sentence =
            format!("{}: {}", opening(effect, from, to), self.reason(&shares, (from, to)));
        sentence.extend(also(&shares).map(|other| format!("; also {other}")));
        sentence.extend(self.counterfactual(concerned));
        let chain = self.chain(effect, (from, to), concerned, &shares);
        let subject = self.player.name.to_owned();
        Explained { subject, effect, from_ns: from, to_ns: to, shares, chain, sentence }
    }

    /// Since when nothing could be decoded, before a frame.
    fn broken_before(&self, first: usize) -> Option<i64> {
        let before = self.frames[..first.min(self.frames.len())].iter().rev();
        let broken = before.take_while(|frame| !frame.row.decodable).last()?;
        Some(broken.row.received_ns.unwrap_or(broken.captured_ns))
    }

    /// No frame was captured that should have been seen.
    fn absence_of_frames(&self, from: i64, to: i64) -> Cause {
        let captured =
            (from.saturating_sub(self.usual.age_ns), to.saturating_sub(self.usual.age_ns));
        match (absent(&self.senders, captured.0, captured.1), absent(&self.receivers, from, to)) {
            (Some(_), _) => Cause::ServerProcessor,
            (None, Some(_)) => Cause::ClientProcessor,
            (None, None) => self.or_quality(Cause::Unknown, self.newest(to)),
        }
    }

    /// The newest frame that had arrived at a time.
    fn newest(&self, t_ns: i64) -> Option<&Frame<'v>> {
        let arrived = |frame: &&Frame| frame.row.received_ns.is_some_and(|at| at <= t_ns);
        self.frames.iter().rev().find(arrived)
    }

    /// The bit rate of a frame and that of a link on its way, if the viewer chose a quality that the link does not carry.
    fn too_high(&self, frame: &Frame) -> Option<(f64, f64)> {
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

    fn reason(&self, shares: &[(Cause, f64)], (from, to): (i64, i64)) -> String {
        let cause = shares.first().map_or(Cause::Unknown, |(cause, _)| *cause);
        let sent = from.saturating_sub(self.usual.age_ns);
        let drops = |queue: bool| {
            let dropped = self
                .packets(sent, to)
                .filter(|row| row.verdict == suiro_record::words::Verdict::Dropped);
            let full = Some(suiro_record::words::LinkCause::Queue);
            dropped.filter(|row| (row.cause == full) == queue).count()
        };
        let waited =
            self.packets(sent, to).filter_map(|row| Some(since(row.dequeued_ns?, row.t_ns))).max();
        let waited = waited
            .map_or(String::new(), |ns| format!("; packets waited up to {} ms", ns / 1_000_000));
        match cause {
            Cause::Loss => format!("the link lost {} packets", drops(false)),
            Cause::RateStep => {
                let falls = self.data.iter().flat_map(|way| &way.way.falls);
                let fall = falls
                    .filter(|fall| fall.from_ns < to && fall.to_ns > sent)
                    .max_by_key(|f| f.from_ns);
                fall.map_or(clause(cause).into(), |fall| {
                    let (was, is) = (rate(fall.before_bps), rate(fall.after_bps));
                    format!("the link fell from {was} to {is} at {}{waited}", seconds(fall.from_ns))
                })
            }
            Cause::LinkRate | Cause::Competing | Cause::Bufferbloat | Cause::Encoder => {
                match drops(true) {
                    0 => format!("{}{waited}", clause(cause)),
                    dropped => format!("{}{waited}, {dropped} were dropped", clause(cause)),
                }
            }
            Cause::OversizedRung => {
                let chosen = self.newest(to).and_then(|frame| self.too_high(frame));
                chosen.map_or(clause(cause).into(), |(quality, carried)| {
                    let (quality, carried) = (rate(quality), rate(carried));
                    format!("the viewer played {quality}, and the link carries {carried}{waited}")
                })
            }
            Cause::Unknown => "not known: table `layers` of both hosts would tell".into(),
            cause => clause(cause).into(),
        }
    }

    /// Exact where the queue's delay alone made the frames late: without it they would have been there.
    fn counterfactual(&self, frames: &[Frame]) -> Option<String> {
        let frame = frames
            .iter()
            .map(|frame| frame.row)
            .max_by_key(|row| row.received_ns.zip(row.sent_ns).map(|(a, b)| since(a, b)))?;
        let (sent, received) = (frame.sent_ns?, frame.received_ns?);
        let last = self.packets(sent, received).max_by_key(|row| row.departed_ns)?;
        let waited = since(last.dequeued_ns?, last.t_ns);
        let without = since(since(received, sent), waited);
        (waited > LATE_NS && without > 0 && without < waited).then(|| {
            format!(
                "; without the queue frame {} would have arrived {} ms after it was sent, not {} ms",
                frame.frame,
                without / 1_000_000,
                since(received, sent) / 1_000_000
            )
        })
    }

    fn chain(
        &self,
        effect: Effect,
        (from, to): (i64, i64),
        concerned: &[Frame],
        shares: &[(Cause, f64)],
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        if let (Some(first), Some(last)) = (concerned.first(), concerned.last()) {
            let evidence = Evidence::of("frames", &self.records.frames, first.row, last.row);
            let what = format!(
                "{}: frames {} to {}",
                super::wording::verb(effect),
                first.row.frame,
                last.row.frame
            );
            steps.extend(evidence.map(|evidence| Step { what, evidence }));
        }
        let cause = shares.first().map_or(Cause::Unknown, |(cause, _)| *cause);
        let absences = match cause {
            Cause::ServerProcessor => &self.senders[..],
            Cause::ClientProcessor => &self.receivers[..],
            _ => &[],
        };
        for absence in absences
            .iter()
            .filter(|absence| absence.overlap_ns(since(from, self.usual.age_ns), to) > 0)
        {
            let what =
                format!("{} did not run from {}", absence.endpoint, seconds(absence.from_ns));
            steps.extend(absence.evidence(self.records).map(|evidence| Step { what, evidence }));
        }
        let evidence = self.link_rows(from.saturating_sub(self.usual.age_ns), to);
        steps.extend(evidence.map(|evidence| Step { what: clause(cause).into(), evidence }));
        steps
    }
}

/// What is left of stretches of time outside of others, which are in order; no stretch that is shorter than two pictures.
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

/// The flows on links that carry a viewer's video, and the endpoint that sends them.
fn flows_of<'v>(
    view: &'v View<'_>,
    links: &Links<'v>,
    player: &Player,
    alone: bool,
) -> (Vec<String>, Option<&'v str>) {
    let told = &view.records.flows;
    let mut sender = None;
    let mut found: Vec<String> = Vec::new();
    let names = links.ways.iter().flat_map(|way| way.flows.keys().copied());
    for name in names.filter(|name| name.starts_with("udp ")) {
        let Some(row) = flows::find_named(told, name) else { continue };
        let receives = matches!(row.role, FlowRole::Receiver | FlowRole::Client);
        let (from, to) = match receives {
            true => (row.peer.as_deref(), Some(&*row.endpoint)),
            false => (Some(&*row.endpoint), row.peer.as_deref()),
        };
        if row.carries == Carries::Video && to == Some(player.name) {
            let towards =
                |end: &str| name.split_once('>').is_some_and(|(_, last)| flows::is_end(end, last));
            if towards(if receives { &row.local } else { &row.remote }) {
                sender = from.or(sender);
                found.push(name.to_owned());
            }
        }
    }
    if found.is_empty() && alone && told.is_empty() {
        found = busiest(links).into_iter().collect();
    }
    let writes = || {
        let rates = view.records.rate.iter().map(|row| &*row.endpoint);
        rates
            .chain(view.records.webrtc.iter().map(|row| &*row.endpoint))
            .find(|name| *name != player.name)
    };
    (found, sender.or_else(|| alone.then(writes).flatten()))
}

/// Without table `flows`: the flow of UDP with the most bytes.
fn busiest(links: &Links) -> Option<String> {
    let all = links.ways.iter().flat_map(|way| &way.flows);
    let udp = all.filter(|(name, _)| name.starts_with("udp "));
    let bytes = |rows: &Vec<&LinkRow>| super::total(rows.iter().map(|row| row.size_bytes));
    udp.max_by_key(|(_, rows)| bytes(rows)).map(|(name, _)| (*name).to_owned())
}
