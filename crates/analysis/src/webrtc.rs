//! Ends of WebRTC connections: what the sender's estimate did, over what the path could carry.

use suiro_record::tables::{LinkRow, WebrtcRow, WebrtcSessionRow};
use suiro_record::words::FlowRole;

use crate::group::grouped;
use crate::held::{Stretch, distribution, hold};
use crate::link::Direction;
use crate::period::Period;
use crate::stats::Distribution;
use crate::view::View;

/// From when on after the connection utilisation counts.
const SETTLED_NS: i64 = 20_000_000_000;
/// An estimate within this of the capacity has converged, if it stays there for so long.
const NEAR: std::ops::RangeInclusive<f64> = 0.7..=1.15;
const STAYS_NS: i64 = 2_000_000_000;
/// For how long after a change of the capacity the estimate may still be another's.
const REACTS_NS: i64 = 1_000_000_000;

/// A fall of the capacity is one by this share or more that lasts as long as this.
const FALL: f64 = 0.25;
const FALL_LASTS_NS: i64 = 5_000_000_000;
/// Frames are in time if they are no older than this.
const IN_TIME_MS: f64 = 300.0;
const SECOND_NS: i64 = 1_000_000_000;
const STEP_NS: i64 = 100_000_000;
/// For how long after a fall freezes are looked for.
const AFTER_FALL_NS: i64 = 10_000_000_000;

/// One connection of one endpoint.
pub(crate) struct Connection<'a> {
    /// The endpoint's name, and the number of the connection if it had several.
    pub name: String,
    /// Its session; `None` if there is no row of it.
    pub session: Option<&'a WebrtcSessionRow>,
    /// The intervals within the period, each until the next.
    rows: Vec<Stretch<&'a WebrtcRow>>,
    /// Those of the whole trial.
    all: Vec<Stretch<&'a WebrtcRow>>,
    /// What the narrowest link on its way could carry; none without a limit.
    capacity: Vec<Stretch<f64>>,
    /// When the endpoint's viewer first showed a frame after the session began.
    first_shown_ns: Option<i64>,
    /// When the endpoint's viewer showed each frame within the period, and how old it was then, in milliseconds.
    latencies: Vec<(i64, f64)>,
    /// When the video froze within the period; `None` if that is not known.
    freezes: Option<Vec<(i64, i64)>>,
    period: Period,
}

/// The connections of endpoints in that role, by endpoint and number.
pub(crate) fn connections<'v>(view: &'v View<'_>, role: FlowRole) -> Vec<Connection<'v>> {
    let rows = view.records.webrtc.iter().filter(|row| row.role == role);
    let rows = grouped(rows, |row| (&*row.endpoint, row.session), |row| row.t_ns.as_nanos() as i64);
    let sessions = &view.records.webrtc_sessions;
    let several = |endpoint: &str| rows.keys().filter(|(name, _)| *name == endpoint).count() > 1;
    let connection = |(&(endpoint, number), rows): (&(&'v str, u64), &Vec<&'v WebrtcRow>)| {
        let mut sessions = sessions.iter();
        let session = sessions.find(|row| &*row.endpoint == endpoint && row.session == number);
        let samples = rows.iter().map(|row| {
            // An interval's row is written at its end.
            (nanos(row.t_ns).saturating_sub(row.period_ns.as_nanos_i64()), *row)
        });
        let last = rows.last().map_or(0, |row| nanos(row.t_ns));
        let begun = session.map_or(0, |session| nanos(session.t_ns));
        let screen = view.player(endpoint).map(|player| &player.screen);
        let shown = screen.and_then(|screen| screen.first_shown_ns(begun));
        let all = hold(samples, last, view.duration_ns);
        Connection {
            name: if several(endpoint) {
                format!("{endpoint}.{number}")
            } else {
                endpoint.to_owned()
            },
            session,
            rows: view.period.cut(all.clone()),
            all,
            capacity: session.map(|session| capacity(view, session)).unwrap_or_default(),
            first_shown_ns: shown,
            latencies: screen.map(|screen| screen.latencies().collect()).unwrap_or_default(),
            freezes: screen
                .filter(|screen| screen.knows_freezes())
                .map(|screen| screen.freezes().to_vec()),
            period: view.period,
        }
    };
    rows.iter().map(connection).collect()
}

fn nanos(time: suiro_units::Time) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// The least rate of the links that carried a session's video.
fn capacity(view: &View<'_>, session: &WebrtcSessionRow) -> Vec<Stretch<f64>> {
    let Some(pair) = &session.pair else { return Vec::new() };
    let (local, remote) = pair.split_once('>').unwrap_or((pair, ""));
    let flow = match session.role {
        FlowRole::Receiver => format!("udp {remote}>{local}"),
        _ => format!("udp {local}>{remote}"),
    };
    let carried = |link: &&Direction<'_>| link.rows.iter().any(|row: &&LinkRow| *row.flow == *flow);
    let mut least: Option<Vec<Stretch<f64>>> = None;
    for link in view.links().iter().filter(carried) {
        let Some(asked) = link.asked_stretches() else { continue };
        let asked: Vec<Stretch<f64>> = asked.collect();
        least = Some(match least {
            Some(least) => minimum(&least, &asked),
            None => asked,
        });
    }
    let mut least = least.unwrap_or_default();
    // Neighbours of one rate are one stretch.
    least.dedup_by(|next, before| {
        let same = next.value == before.value && next.from_ns == before.to_ns;
        if same {
            before.to_ns = next.to_ns;
        }
        same
    });
    least
}

/// At each time the lesser, where both are known.
fn minimum(one: &[Stretch<f64>], other: &[Stretch<f64>]) -> Vec<Stretch<f64>> {
    let overlap = |a: &Stretch<f64>, b: &Stretch<f64>| {
        let (from_ns, to_ns) = (a.from_ns.max(b.from_ns), a.to_ns.min(b.to_ns));
        (from_ns < to_ns).then(|| Stretch { from_ns, to_ns, value: a.value.min(b.value) })
    };
    let pairs = one.iter().flat_map(|a| other.iter().map(move |b| (a, b)));
    pairs.filter_map(|(a, b)| overlap(a, b)).collect()
}

impl Connection<'_> {
    /// What `value` makes of the intervals, over time.
    pub fn over_time(&self, value: impl Fn(&WebrtcRow) -> Option<f64>) -> Distribution {
        distribution(&self.rows, |row| value(row))
    }

    /// The sum of `value` over the intervals.
    pub fn total(&self, value: impl Fn(&WebrtcRow) -> u64) -> f64 {
        self.rows.iter().map(|row| value(row.value) as f64).sum()
    }

    /// The stretches of `value`, for bins.
    pub fn stretches(
        &self,
        value: impl Fn(&WebrtcRow) -> Option<f64>,
    ) -> impl Iterator<Item = Stretch<f64>> {
        self.rows.iter().filter_map(move |row| {
            Some(Stretch { from_ns: row.from_ns, to_ns: row.to_ns, value: value(row.value)? })
        })
    }

    /// What the path could carry, for bins.
    pub fn capacity(&self) -> impl Iterator<Item = Stretch<f64>> {
        self.capacity.iter().copied()
    }

    fn capacity_at(&self, t_ns: i64) -> Option<&Stretch<f64>> {
        self.capacity.iter().find(|stretch| (stretch.from_ns..stretch.to_ns).contains(&t_ns))
    }

    fn connected_ns(&self) -> Option<i64> {
        self.session?.connected_ns.map(nanos)
    }

    /// Padding, as a share of what was sent.
    pub fn padding_ratio(&self) -> Option<f64> {
        let bits = |row: &Stretch<&WebrtcRow>| {
            row.value.sent_bps.as_bps() as f64 * row.value.period_ns.as_secs_f64()
        };
        let sent: f64 = self.rows.iter().map(bits).sum();
        let known = self.rows.iter().all(|row| row.value.padding_bytes.is_some());
        (known && sent > 0.0).then(|| self.total(|row| row.padding_bytes.unwrap_or(0)) * 8.0 / sent)
    }

    /// How often the encoder was set to another size or frame rate.
    pub fn steps(&self) -> f64 {
        let mut set: Vec<_> = self
            .rows
            .iter()
            .map(|row| (row.value.width, row.value.height, row.value.fps))
            .collect();
        set.dedup();
        set.len().saturating_sub(1) as f64
    }

    /// How often frames of another encoder were sent; `None` if that is not known.
    pub fn switches(&self) -> Option<f64> {
        let mut sent: Vec<u64> = self.rows.iter().filter_map(|row| row.value.quality).collect();
        sent.dedup();
        Some(sent.len().checked_sub(1)? as f64)
    }

    /// What was sent over what the path could carry, from 20 s after the connection on.
    pub fn utilisation(&self) -> Option<f64> {
        let from = self.connected_ns()?.saturating_add(SETTLED_NS);
        let (mut sent, mut could) = (0.0, 0.0);
        for row in self.rows.iter().filter(|row| row.from_ns >= from) {
            could += self.capacity_at(row.from_ns)?.value * row.length_ns();
            sent += row.value.sent_bps.as_bps() as f64 * row.length_ns();
        }
        (could > 0.0).then(|| sent / could)
    }

    /// How long the estimate took to come near the capacity and stay there, from the connection and from each change of
    /// the capacity on, in seconds, mean of those after which it did.
    pub fn convergence_s(&self) -> Option<f64> {
        let times = self.convergences(self.period.from_ns).into_iter().flatten();
        let times = times.map(|(from, near)| (near - from) as f64 / 1e9);
        Distribution::equal(times).mean()
    }

    /// The longest of these.
    pub fn convergence_max_s(&self) -> Option<f64> {
        let times = self.convergences(self.period.from_ns).into_iter().flatten();
        times.map(|(from, near)| (near - from) as f64 / 1e9).reduce(f64::max)
    }

    /// After how many of these events the estimate did not converge before the next; `None` without any.
    pub fn unconverged(&self) -> Option<f64> {
        let all = self.convergences(self.period.from_ns);
        (!all.is_empty()).then(|| all.iter().filter(|found| found.is_none()).count() as f64)
    }

    /// By how much the estimate was below the capacity at most, as a share of it, once it had converged.
    pub fn undershoot_ratio(&self) -> Option<f64> {
        let converged = self.convergences(0).into_iter().flatten();
        let below = converged.flat_map(|(_, near)| {
            let until = self.capacity_at(near).map_or(near, |stretch| stretch.to_ns);
            self.rows.iter().filter(move |row| row.from_ns >= near && row.from_ns < until)
        });
        let below = below.filter_map(|row| {
            let capacity = self.capacity_at(row.from_ns)?.value;
            Some(1.0 - row.value.estimate_bps?.as_bps() as f64 / capacity)
        });
        below.reduce(f64::max).map(|below| below.max(0.0))
    }

    /// For the connection and each change of the capacity, at that time or later, that lasts as long as an estimate must stay near:
    /// when it was, and when the estimate was near; `None` if it never was.
    fn convergences(&self, since_ns: i64) -> Vec<Option<(i64, i64)>> {
        let Some(connected) = self.connected_ns() else { return Vec::new() };
        let begins = self.capacity.iter().map(|stretch| (stretch.from_ns.max(connected), stretch));
        let later = begins.filter(|(from, _)| *from >= since_ns);
        let lasting = later.filter(|(from, stretch)| stretch.to_ns - from >= STAYS_NS);
        lasting.map(|(from, stretch)| Some((from, from + self.converges(from, stretch)?))).collect()
    }

    fn converges(&self, from: i64, capacity: &Stretch<f64>) -> Option<i64> {
        let within = self.all.iter().filter(|row| row.to_ns > from && row.from_ns < capacity.to_ns);
        let mut near_since: Option<i64> = None;
        for row in within {
            let estimate = row.value.estimate_bps?.as_bps() as f64;
            if !NEAR.contains(&(estimate / capacity.value)) {
                near_since = None;
                continue;
            }
            let since = *near_since.get_or_insert(row.from_ns.max(from));
            if row.to_ns.saturating_sub(since) >= STAYS_NS {
                return Some(since - from);
            }
        }
        None
    }

    /// By how much the estimate exceeded the capacity at most, as a share of it; for a second after a change of the
    /// capacity it does not count.
    pub fn overshoot_ratio(&self) -> Option<f64> {
        let over = self.rows.iter().filter_map(|row| {
            let capacity = self.capacity_at(row.from_ns)?;
            if row.from_ns < capacity.from_ns.saturating_add(REACTS_NS) {
                return None;
            }
            Some(row.value.estimate_bps?.as_bps() as f64 / capacity.value - 1.0)
        });
        over.reduce(f64::max).map(|over| over.max(0.0))
    }

    /// When the capacity fell within the period, after the connection, and until when it did not change again.
    fn falls(&self) -> impl Iterator<Item = (i64, i64)> {
        let connected = self.connected_ns().unwrap_or(i64::MAX);
        let pairs = self.capacity.windows(2);
        pairs.filter_map(move |pair| {
            let [before, after] = pair else { return None };
            let fell = after.value <= before.value * (1.0 - FALL);
            let lasts = after.to_ns - after.from_ns >= FALL_LASTS_NS;
            let counts = after.from_ns >= connected.max(self.period.from_ns);
            (fell && lasts && counts).then_some((after.from_ns, after.to_ns))
        })
    }

    /// From a fall of the capacity until the oldest frame of each later second, 95 % of them, was at most 300 ms old when
    /// it was shown, in seconds; the longest. `None` without a fall, or if that was never so.
    pub fn recovery_s(&self) -> Option<f64> {
        let falls = self.falls().map(|(from, to)| self.recovers(from, to));
        let falls: Option<Vec<f64>> = falls.collect();
        falls?.into_iter().reduce(f64::max)
    }

    /// From when on after a fall 95 % of the frames of a second, of each second until the next change, were shown in
    /// time.
    fn recovers(&self, from: i64, to: i64) -> Option<f64> {
        let late = |second: i64| {
            let within = second..second.saturating_add(SECOND_NS).min(to);
            let shown = self.latencies.iter().filter(|(at, _)| within.contains(at));
            let latency = Distribution::equal(shown.map(|(_, ms)| *ms)).percentile(0.95);
            latency.is_none_or(|ms| ms > IN_TIME_MS)
        };
        let starts = (0..).map(|n| from.saturating_add(n * STEP_NS));
        let starts: Vec<i64> = starts.take_while(|start| *start < to - SECOND_NS).collect();
        let last_late = starts.iter().rposition(|start| late(*start));
        let since = last_late.map_or(0, |index| index + 1);
        starts.get(since).map(|start| (start - from) as f64 / 1e9)
    }

    /// The longest freeze within ten seconds after a fall of the capacity, in seconds.
    pub fn freeze_after_fall_s(&self) -> Option<f64> {
        let falls: Vec<(i64, i64)> = self.falls().collect();
        let near = |from: i64, to: i64| {
            let mut falls = falls.iter();
            falls.any(|(fall, _)| to > *fall && from < fall.saturating_add(AFTER_FALL_NS))
        };
        let lengths = self.freezes.as_ref()?.iter().filter(|(from, to)| near(*from, *to));
        let longest = lengths.map(|(from, to)| to - from).max().unwrap_or(0);
        (!falls.is_empty() && !self.latencies.is_empty()).then(|| longest as f64 / 1e9)
    }

    /// From the offer to the connection, in milliseconds.
    pub fn connect_ms(&self) -> Option<f64> {
        let session = self.session?;
        let took = session.connected_ns?.saturating_since(session.t_ns);
        Some(took.as_millis_f64())
    }

    /// From the offer to the first frame shown, in milliseconds.
    pub fn first_frame_ms(&self) -> Option<f64> {
        let begun = nanos(self.session?.t_ns);
        Some(self.first_shown_ns?.min(self.period.to_ns).saturating_sub(begun) as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use suiro_record::words::Signalling;
    use suiro_units::{BitRate, Time};

    use super::*;

    const S: i64 = 1_000_000_000;

    fn session() -> WebrtcSessionRow {
        WebrtcSessionRow {
            t_ns: Time::ZERO,
            endpoint: "camera".into(),
            session: 1,
            role: FlowRole::Sender,
            signalling: Signalling::Whep,
            answered_ns: Some(Time::ZERO),
            connected_ns: Some(Time::ZERO),
            first_packet_ns: None,
            ended_ns: None,
            ended: None,
            candidates: "".into(),
            pair: None,
            codec: None,
            payload_types: None,
            feedback: None,
            extensions: None,
        }
    }

    fn row(t_ns: i64, estimate_kbps: u64) -> WebrtcRow {
        WebrtcRow {
            t_ns: Time::from_nanos(t_ns as u64),
            endpoint: "camera".into(),
            session: 1,
            role: FlowRole::Sender,
            period_ns: suiro_units::Duration::from_millis(100),
            estimate_bps: Some(BitRate::from_kbps(estimate_kbps)),
            target_bps: None,
            sent_bps: BitRate::from_kbps(0),
            received_bps: BitRate::from_kbps(0),
            rtt_ns: None,
            loss_ratio: None,
            nacks: 0,
            retransmissions: 0,
            padding_bytes: Some(0),
            plis: 0,
            firs: 0,
            queue_bytes: None,
            queue_ns: None,
            width: None,
            height: None,
            fps: None,
            quality: None,
        }
    }

    /// A capacity of 2 Mbit/s that falls to 500 kbit/s after 20 s, for 20 s.
    fn fallen<'a>(
        session: &'a WebrtcSessionRow,
        rows: &'a [WebrtcRow],
        latencies: Vec<(i64, f64)>,
    ) -> Connection<'a> {
        let stretch = |from_ns, to_ns, value| Stretch { from_ns, to_ns, value };
        let samples = rows.iter().map(|row| (nanos(row.t_ns) - S / 10, row));
        let all = hold(samples, 40 * S, 40 * S);
        Connection {
            name: "camera".into(),
            session: Some(session),
            rows: all.clone(),
            all,
            capacity: vec![stretch(0, 20 * S, 2e6), stretch(20 * S, 40 * S, 5e5)],
            first_shown_ns: None,
            latencies,
            freezes: Some(vec![(10 * S, 13 * S), (21 * S, 22 * S)]),
            period: Period { from_ns: 0, to_ns: 40 * S },
        }
    }

    #[test]
    fn an_estimate_converges_after_each_change_or_is_counted() {
        let session = session();
        // Near 2 Mbit/s from the fifth second on; 4 s too much after the fall; at last a fifth too little.
        let estimate = |tenth: i64| match tenth {
            0..50 => 500,
            50..240 => 1800,
            240..300 => 450,
            _ => 400,
        };
        let rows: Vec<WebrtcRow> = (0..400).map(|n| row((n + 1) * S / 10, estimate(n))).collect();
        let connection = fallen(&session, &rows, vec![]);
        assert_eq!(connection.convergence_s(), Some(4.5));
        assert_eq!(connection.convergence_max_s(), Some(5.0));
        assert_eq!(connection.unconverged(), Some(0.0));
        assert!((connection.undershoot_ratio().unwrap() - 0.2).abs() < 1e-9);
        let never: Vec<WebrtcRow> = (0..400).map(|n| row((n + 1) * S / 10, 1800)).collect();
        let connection = fallen(&session, &never, vec![]);
        assert_eq!((connection.convergence_s(), connection.unconverged()), (Some(0.0), Some(1.0)));
        assert_eq!(connection.recovery_s(), None, "nothing was shown");
    }

    #[test]
    fn what_began_in_the_warm_up_is_not_among_the_convergences() {
        let session = session();
        // Never near 2 Mbit/s; near 500 kbit/s from the beginning.
        let rows: Vec<WebrtcRow> = (0..400).map(|n| row((n + 1) * S / 10, 450)).collect();
        let whole = fallen(&session, &rows, vec![]);
        assert_eq!((whole.convergence_s(), whole.unconverged()), (Some(0.0), Some(1.0)));
        let period = Period { from_ns: 5 * S, to_ns: 40 * S };
        let rows = period.cut(whole.all.clone());
        let measured = Connection { rows, period, ..whole };
        assert_eq!((measured.convergence_s(), measured.unconverged()), (Some(0.0), Some(0.0)));
        assert_eq!(measured.over_time(|_| Some(1.0)).mean(), Some(1.0));
        let later = Period { from_ns: 25 * S, ..period };
        let measured = Connection { period: later, ..measured };
        assert_eq!((measured.convergence_s(), measured.unconverged()), (None, None));
        assert_eq!(measured.undershoot_ratio().map(|below| (below * 10.0).round()), Some(1.0));
    }

    #[test]
    fn each_change_of_the_encoder_is_a_switch() {
        let session = session();
        let qualities = [Some(2), Some(2), Some(1), Some(0), Some(1), Some(1)];
        let rows = |of: fn(Option<u64>) -> Option<u64>| -> Vec<WebrtcRow> {
            let at = (1..).map(|n| n * S / 10);
            let rows = at.zip(qualities);
            rows.map(|(at, quality)| WebrtcRow { quality: of(quality), ..row(at, 900) }).collect()
        };
        assert_eq!(fallen(&session, &rows(|quality| quality), vec![]).switches(), Some(3.0));
        assert_eq!(fallen(&session, &rows(|_| Some(0)), vec![]).switches(), Some(0.0));
        assert_eq!(fallen(&session, &rows(|_| None), vec![]).switches(), None, "Chromium sends");
    }

    #[test]
    fn latency_is_back_when_no_later_second_is_late() {
        let session = session();
        let late = |t_ns: i64| match t_ns / S {
            20..23 => 900.0,
            _ => 120.0,
        };
        let latencies: Vec<(i64, f64)> =
            (0..1200).map(|n| n * S / 30).map(|at| (at, late(at))).collect();
        let connection = fallen(&session, &[], latencies);
        let recovery = connection.recovery_s().unwrap();
        assert!((3.0..=3.1).contains(&recovery), "{recovery}");
        assert_eq!(connection.freeze_after_fall_s(), Some(1.0), "that before the fall is another");
    }
}
