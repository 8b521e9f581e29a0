//! Logs of QUIC connections: qlog (draft-ietf-quic-qlog-main-schema, -quic-events), as one document or as a sequence of
//! records (RFC 7464, or one in each line).

use std::collections::BTreeSet;

use serde_json::Value;
use suiro_record::words::Cause;

use crate::SourceError;
use crate::hole::{AROUND_NS, BY_CHANCE, Hole, OUTAGE_MIN, seconds_with};
use crate::model::{Effect, Evidence, Happened, Stream};
use crate::times::{self, bounded};
use suiro_analysis::why::wording::{count, size, span};

/// A silence is reported if it is longer than this and longer than four round trips.
const SILENCE_NS: i64 = 200_000_000;
const ROUND_TRIPS: i64 = 4;
/// A window that is full to this share limits.
const FULL: f64 = 0.9;
const LOSS_SHARE: f64 = 0.02;
const LOSS_MIN: usize = 3;

/// What one connection did.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    name: String,
    /// Time zero of its events as time since 1970; 0 if the log does not say.
    zero_ns: i64,
    /// The time of its first event.
    first_ns: Option<i64>,
    sent: Vec<Sent>,
    received: Vec<i64>,
    lost: Vec<(i64, Option<u64>)>,
    metrics: Vec<(i64, Metrics)>,
    /// Events that are not used.
    pub others: usize,
}

/// A packet that was sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    t_ns: i64,
    number: Option<u64>,
    /// Whether the peer has to acknowledge it; true if the log does not say.
    asks: bool,
}

/// `recovery_metrics_updated`; each holds until it changes.
#[derive(Debug, Clone, Copy, Default)]
struct Metrics {
    round_trip_ns: i64,
    least_round_trip_ns: i64,
    window: Option<f64>,
    in_flight: f64,
    timeouts: u64,
}

/// Whether a document is the first, or the whole, of a log.
pub(crate) fn is_qlog(document: &Value) -> bool {
    ["qlog_version", "qlog_format", "file_schema"].iter().any(|key| document[*key].is_string())
}

/// The connections of a log.
pub(crate) fn read(name: &str, documents: &[Value]) -> Result<Vec<Connection>, SourceError> {
    let first = &documents[0];
    if let Some(traces) = first["traces"].as_array() {
        let of = |trace: &Value| {
            let mut connection = Connection::new(name, trace);
            let events = trace["events"].as_array().map_or(&[][..], Vec::as_slice);
            connection.take_all(&trace["common_fields"], events);
            connection
        };
        return Ok(traces.iter().map(of).collect());
    }
    if !first["trace"].is_object() {
        return Err(SourceError::broken(name, "qlog: expected key `traces` or `trace`".into()));
    }
    let mut connection = Connection::new(name, &first["trace"]);
    connection.take_all(&first["trace"]["common_fields"], &documents[1..]);
    Ok(vec![connection])
}

impl Connection {
    fn new(name: &str, trace: &Value) -> Self {
        let side = trace["vantage_point"]["type"].as_str().unwrap_or("endpoint");
        Self { name: format!("{name} ({side})"), ..Self::default() }
    }

    fn take_all(&mut self, common: &Value, events: &[Value]) {
        self.zero_ns = zero(common).unwrap_or(0);
        let format = common["time_format"].as_str().unwrap_or("relative");
        let (mut now, mut metrics) = (0i64, Metrics::default());
        for event in events {
            let Some(time) = event["time"].as_f64().filter(|time| time.abs() < 4e12) else {
                self.others += 1;
                continue;
            };
            let time = (time * 1e6) as i64;
            now = bounded(match format {
                "delta" | "relative_to_previous_event" => now.saturating_add(time),
                "absolute" => time.saturating_sub(self.zero_ns),
                _ => time,
            });
            self.first_ns.get_or_insert(now);
            self.take(now, event, &mut metrics);
        }
    }

    fn take(&mut self, t_ns: i64, event: &Value, metrics: &mut Metrics) {
        let name = event["name"].as_str().unwrap_or_default();
        let name = name.rsplit_once(':').map_or(name, |(_, name)| name);
        let data = &event["data"];
        let number = data["header"]["packet_number"].as_u64();
        match name {
            "packet_sent" => self.sent.push(Sent { t_ns, number, asks: asks(data) }),
            "packet_received" => self.received.push(t_ns),
            "packet_lost" => self.lost.push((t_ns, number)),
            "metrics_updated" | "recovery_metrics_updated" => {
                let ns = |key: &str| data[key].as_f64().map(|ms| (ms.clamp(0.0, 1e9) * 1e6) as i64);
                metrics.round_trip_ns = ns("smoothed_rtt").unwrap_or(metrics.round_trip_ns);
                metrics.least_round_trip_ns = ns("min_rtt").unwrap_or(metrics.least_round_trip_ns);
                metrics.window = data["congestion_window"].as_f64().or(metrics.window);
                metrics.in_flight = data["bytes_in_flight"].as_f64().unwrap_or(metrics.in_flight);
                metrics.timeouts = data["pto_count"].as_u64().unwrap_or(metrics.timeouts);
                self.metrics.push((t_ns, *metrics));
            }
            _ => self.others += 1,
        }
    }

    /// The time of its first event, since 1970 if the log has such times.
    pub fn began(&self) -> Option<i64> {
        Some(self.first_ns?.saturating_add(self.zero_ns))
    }

    /// In one line.
    pub fn stream(&self) -> Stream {
        let mut text = format!(
            "{} sent, {} received, {} lost",
            count(self.sent.len(), "packet"),
            self.received.len(),
            self.lost.len()
        );
        let least =
            self.metrics.iter().rev().map(|(_, it)| it.least_round_trip_ns).find(|ns| *ns > 0);
        let most = self.metrics.iter().map(|(_, it)| it.round_trip_ns).max();
        if let (Some(least), Some(most)) = (least, most) {
            text += &format!(", round trip from {} to {}", span(least), span(most));
        }
        if let Some(share) = self.limited_by_window() {
            text += &format!(
                ", limited by the congestion window for {:.0} % of the time",
                share * 100.0
            );
        }
        let source = self.name.split(" (").next().unwrap_or_default().to_owned();
        Stream { name: format!("quic {}", self.name), source, text }
    }

    /// The share of time in which the window was full; none if it is not in the log.
    fn limited_by_window(&self) -> Option<f64> {
        let (mut full, mut all) = (0i64, 0i64);
        for pair in self.metrics.windows(2) {
            let (from, to) = (pair[0].0, pair[1].0);
            let window = pair[0].1.window?;
            let length = (to - from).max(0);
            all = all.saturating_add(length);
            if pair[0].1.in_flight >= FULL * window {
                full = full.saturating_add(length);
            }
        }
        (all > 0).then(|| full as f64 / all as f64)
    }

    /// What happened to it.
    pub fn effects(&self) -> Vec<Happened> {
        let mut effects = self.silences();
        // Losses within a silence belong to that effect. Effects have times of the day.
        let own = |t_ns: i64| t_ns.saturating_sub(self.zero_ns);
        let silent: Vec<(i64, i64)> =
            effects.iter().map(|it| (own(it.from_ns), own(it.to_ns))).collect();
        let of_silence = |t: i64| silent.iter().any(|it| (it.0..=it.1 + SILENCE_NS).contains(&t));
        let holes: Vec<Hole> = self
            .lost
            .iter()
            .filter(|(t_ns, _)| !of_silence(*t_ns))
            .map(|(t_ns, _)| Hole { t_ns: *t_ns, number: 0, sent_ns: 0, missing: 1 })
            .collect();
        let lost: BTreeSet<u64> = self.lost.iter().filter_map(|it| it.1).collect();
        let came = self.sent.iter().filter(|it| it.number.is_none_or(|n| !lost.contains(&n)));
        let mut came: Vec<i64> = came.map(|it| it.t_ns).collect();
        // A log may be in any order.
        came.sort_unstable();
        for (from, to) in seconds_with(&holes, &came, (LOSS_SHARE, LOSS_MIN)) {
            let lost = holes.iter().filter(|hole| (from..to).contains(&hole.t_ns)).count();
            let came = came.partition_point(|t| *t < to) - came.partition_point(|t| *t < from);
            let all = lost + came;
            let what = format!("{lost} of {} lost in {}", count(all, "packet"), span(to - from));
            let mut loss = self.happened(Effect::Loss, (from, to), what, "packet_lost");
            (loss.cause, loss.because) = self.queue_or_loss((from, to));
            effects.push(loss);
        }
        effects
    }

    /// With a queue, the round trip is longer than the least when it overflows.
    fn queue_or_loss(&self, (from, to): (i64, i64)) -> (Cause, String) {
        let during = self.metrics.iter().filter(|it| (from..to).contains(&it.0)).map(|it| it.1);
        let longest = during.max_by_key(|it| it.round_trip_ns);
        let Some(it) = longest.filter(|it| it.least_round_trip_ns > 0) else {
            let text = "the log has no round trips, which would show whether a queue was full";
            return (Cause::Unknown, text.into());
        };
        let (least, most) = (it.least_round_trip_ns, it.round_trip_ns);
        match most > 2 * least && most - least > 30_000_000 {
            true => (
                Cause::LinkRate,
                format!(
                    "the round trip was {}, and {} without a queue: a queue was full",
                    span(most),
                    span(least)
                ),
            ),
            false => (
                Cause::Loss,
                format!(
                    "the round trip was {} at most, and {} without a queue: no queue was full",
                    span(most),
                    span(least)
                ),
            ),
        }
    }

    /// Times in which nothing came although packets were in flight.
    fn silences(&self) -> Vec<Happened> {
        let metrics_before = |t_ns: i64| {
            let at = self.metrics.partition_point(|it| it.0 < t_ns);
            at.checked_sub(1).map_or_else(Metrics::default, |at| self.metrics[at].1)
        };
        let mut silences = Vec::new();
        for pair in self.received.windows(2) {
            let (received, to) = (pair[0], pair[1]);
            if to - received <= SILENCE_NS {
                continue;
            }
            let asked = self.sent.iter().filter(|it| it.asks && received < it.t_ns && it.t_ns < to);
            let sent: Vec<Option<u64>> = asked.clone().map(|it| it.number).collect();
            let first = asked.map(|it| it.t_ns).min();
            // Idle until then, unless something was in flight that the packet before the silence did not acknowledge.
            let Metrics { in_flight, round_trip_ns, .. } = metrics_before(first.unwrap_or(to));
            let from = if in_flight > 0.0 { Some(received) } else { first };
            let least = SILENCE_NS.max(ROUND_TRIPS * round_trip_ns);
            let Some(from) = from.filter(|from| to - from > least) else { continue };
            let lost = |number: &Option<u64>| {
                number.is_some_and(|n| self.lost.iter().any(|it| it.1 == Some(n)))
            };
            let lost = sent.iter().filter(|number| lost(number)).count();
            let what = format!("nothing came for {}", span(to - from));
            let mut silence = self.happened(Effect::Gap, (from, to), what, "packet_received");
            let flight = size(in_flight as i64);
            (silence.cause, silence.because) = match sent.len() {
                n if lost * 2 >= n && self.is_outage(lost, &sent, (from, to)) => (
                    Cause::Outage,
                    format!(
                        "of {} sent in this time, {lost} were lost: the path carried nothing",
                        count(n, "packet")
                    ),
                ),
                n => (
                    Cause::Unknown,
                    format!(
                        "{flight} were in flight and {} sent, of which {lost} lost; a log or capture of the peer would show whether \
                         they came",
                        count(n, "packet")
                    ),
                ),
            };
            silences.push(silence);
        }
        silences
    }

    /// Whether random loss, as before and after a silence, would lose so many packets in a row less often than [`BY_CHANCE`].
    fn is_outage(&self, lost: usize, silent: &[Option<u64>], (from, to): (i64, i64)) -> bool {
        let around =
            |t: i64| (from - AROUND_NS..=from).contains(&t) || (to..to + AROUND_NS).contains(&t);
        // What was sent in the silence may be declared lost after it.
        let others = self.lost.iter().filter(|it| around(it.0) && !silent.contains(&it.1)).count();
        let all = self.sent.iter().filter(|it| around(it.t_ns)).count();
        let share = others as f64 / all.max(1) as f64;
        lost >= OUTAGE_MIN && share.min(1.0).powi(lost as i32) < BY_CHANCE
    }

    fn happened(
        &self,
        effect: Effect,
        (from_ns, to_ns): (i64, i64),
        what: String,
        event: &str,
    ) -> Happened {
        let source = self.name.split(" (").next().unwrap_or_default();
        let (a, b) = (from_ns as f64 / 1e6, to_ns as f64 / 1e6);
        Happened {
            subject: format!("quic {}", self.name),
            effect,
            from_ns: from_ns.saturating_add(self.zero_ns),
            to_ns: to_ns.saturating_add(self.zero_ns),
            cause: Cause::Unknown,
            what,
            because: String::new(),
            evidence: vec![Evidence::new(source, format!("{event} at {a:.1} to {b:.1} ms"))],
            ssrc: None,
        }
    }
}

/// Whether a packet has to be acknowledged (RFC 9000 §13.2).
fn asks(data: &Value) -> bool {
    let silent = |frame: &Value| {
        matches!(frame["frame_type"].as_str(), Some("ack" | "padding" | "connection_close"))
    };
    let frames = data["frames"].as_array().filter(|frames| !frames.is_empty());
    frames.is_none_or(|frames| !frames.iter().all(silent))
}

/// `reference_time`: milliseconds since 1970, or an object with an epoch.
fn zero(common: &Value) -> Option<i64> {
    let reference = &common["reference_time"];
    let of_text = |value: &Value| times::date(value.as_str()?);
    match reference {
        Value::Object(_) => {
            of_text(&reference["wall_clock_time"]).or_else(|| of_text(&reference["epoch"]))
        }
        other => times::from_ms(other.as_f64()?),
    }
}
