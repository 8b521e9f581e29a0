//! Ends of WebRTC connections: what the sender's estimate did, over what the path could carry.

use suiro_record::tables::{LinkRow, WebrtcRow, WebrtcSessionRow};
use suiro_record::words::FlowRole;

use crate::group::grouped;
use crate::held::{Stretch, distribution, hold};
use crate::link::Direction;
use crate::stats::Distribution;
use crate::view::View;

/// From when on after the connection utilisation counts.
const SETTLED_NS: i64 = 20_000_000_000;
/// An estimate within this of the capacity has converged, if it stays there for so long.
const NEAR: std::ops::RangeInclusive<f64> = 0.7..=1.15;
const STAYS_NS: i64 = 2_000_000_000;
/// For how long after a change of the capacity the estimate may still be another's.
const REACTS_NS: i64 = 1_000_000_000;

/// One connection of one endpoint.
pub(crate) struct Connection<'a> {
    /// The endpoint's name, and the number of the connection if it had several.
    pub name: String,
    /// Its session; `None` if there is no row of it.
    pub session: Option<&'a WebrtcSessionRow>,
    /// The intervals, each until the next.
    rows: Vec<Stretch<&'a WebrtcRow>>,
    /// What the narrowest link on its way could carry; none without a limit.
    capacity: Vec<Stretch<f64>>,
    /// When the endpoint's viewer first showed a picture after the session began.
    first_shown_ns: Option<i64>,
    duration_ns: i64,
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
        let shown = view.player(endpoint).and_then(|player| {
            player.screen.shown().iter().map(|(at, _)| *at).find(|at| *at >= begun)
        });
        Connection {
            name: if several(endpoint) {
                format!("{endpoint}.{number}")
            } else {
                endpoint.to_owned()
            },
            session,
            rows: hold(samples, last, view.duration_ns),
            capacity: session.map(|session| capacity(view, session)).unwrap_or_default(),
            first_shown_ns: shown,
            duration_ns: view.duration_ns,
        }
    };
    rows.iter().map(connection).collect()
}

fn nanos(time: suiro_units::Time) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// The least rate of the links that carried a session's packets.
fn capacity(view: &View<'_>, session: &WebrtcSessionRow) -> Vec<Stretch<f64>> {
    let Some(pair) = &session.pair else { return Vec::new() };
    let flow = format!("udp {pair}");
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
    /// the capacity on, in seconds, mean; `None` if it did not once.
    pub fn convergence_s(&self) -> Option<f64> {
        let connected = self.connected_ns()?;
        let begins = self.capacity.iter().map(|stretch| (stretch.from_ns.max(connected), stretch));
        let mut times = Vec::new();
        for (from, stretch) in begins.filter(|(from, stretch)| *from < stretch.to_ns) {
            times.push(self.converges(from, stretch)? as f64 / 1e9);
        }
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
    }

    fn converges(&self, from: i64, capacity: &Stretch<f64>) -> Option<i64> {
        let within =
            self.rows.iter().filter(|row| row.to_ns > from && row.from_ns < capacity.to_ns);
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

    /// From the offer to the connection, in milliseconds.
    pub fn connect_ms(&self) -> Option<f64> {
        let session = self.session?;
        let took = session.connected_ns?.saturating_since(session.t_ns);
        Some(took.as_millis_f64())
    }

    /// From the offer to the first picture shown, in milliseconds.
    pub fn first_frame_ms(&self) -> Option<f64> {
        let begun = nanos(self.session?.t_ns);
        Some(self.first_shown_ns?.min(self.duration_ns).saturating_sub(begun) as f64 / 1e6)
    }
}
