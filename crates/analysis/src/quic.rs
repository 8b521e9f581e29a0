//! QUIC connections that carry media, and sessions of Media over QUIC.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suiro_record::tables::{FrameRow, MoqDataRow, MoqSessionRow, QuicRow};
use suiro_record::words::FlowRole;
use suiro_units::Duration;

use crate::group::grouped;
use crate::held::{Stretch, distribution, hold};
use crate::stats::Distribution;
use crate::view::View;

/// One connection, at the end that sends more than it receives.
pub(crate) struct Connection<'a> {
    /// The endpoint's name, and the number of the connection if it sends over several.
    pub name: String,
    /// What was seen of it within the period, each until the next look.
    rows: Vec<Stretch<&'a QuicRow>>,
    /// What had been counted in the warm-up.
    before: Option<&'a QuicRow>,
    first: &'a QuicRow,
    last: &'a QuicRow,
}

/// The connections that carry media, by endpoint and number.
pub(crate) fn connections<'v>(view: &'v View<'_>) -> Vec<Connection<'v>> {
    let nanos = |row: &QuicRow| row.t_ns.as_nanos_i64();
    let rows = grouped(&view.records.quic, |row| (&*row.endpoint, row.session), nanos);
    let sends = |rows: &&Vec<&QuicRow>| {
        // An end that does not count what it sends is one that sends media if it has an encoder.
        rows.last().is_some_and(|last| match (last.sent_bytes, last.received_bytes) {
            (Some(sent), Some(received)) => sent > received,
            _ => last.target_bps.is_some(),
        })
    };
    let sending: Vec<_> = rows.iter().filter(|(_, rows)| sends(rows)).collect();
    let several = |name: &str| sending.iter().filter(|((other, _), _)| *other == name).count() > 1;
    let connection = |(&(endpoint, number), rows): (&(&'v str, u64), &Vec<&'v QuicRow>)| {
        let (first, last) = (*rows.first()?, *rows.last()?);
        let samples = rows.iter().map(|row| (nanos(row), *row));
        let name = match several(endpoint) {
            true => format!("{endpoint}.{number}"),
            false => endpoint.to_owned(),
        };
        let before = view.period.last_before(rows, nanos);
        let rows = view.period.cut(hold(samples, nanos(last), view.duration_ns));
        Some(Connection { name, rows, before, first: before.unwrap_or(first), last })
    };
    sending.iter().filter_map(|(key, rows)| connection((key, rows))).collect()
}

impl Connection<'_> {
    /// What `value` makes of the looks, over time.
    pub fn over_time(&self, value: impl Fn(&QuicRow) -> Option<f64>) -> Distribution {
        distribution(&self.rows, |row| value(row))
    }

    /// The stretches of `value`, for bins.
    pub fn stretches(
        &self,
        value: impl Fn(&QuicRow) -> Option<f64>,
    ) -> impl Iterator<Item = Stretch<f64>> {
        self.rows.iter().filter_map(move |row| {
            Some(Stretch { from_ns: row.from_ns, to_ns: row.to_ns, value: value(row.value)? })
        })
    }

    /// What had been counted at the last sample, without what had been in the warm-up, if the end reports it.
    pub fn known(&self, value: impl Fn(&QuicRow) -> Option<u64>) -> Option<f64> {
        let before = self.before.and_then(&value).unwrap_or(0);
        value(self.last).map(|count| count.saturating_sub(before) as f64)
    }

    /// UDP payload sent, over the time from the first look to the last.
    pub fn sent_bps(&self) -> Option<f64> {
        let time = self.last.t_ns.saturating_since(self.first.t_ns).as_secs_f64();
        let bytes = self.last.sent_bytes?.saturating_sub(self.first.sent_bytes?);
        (time > 0.0).then(|| bytes as f64 * 8.0 / time)
    }

    /// Lost packets, as a share of those sent.
    pub fn loss_ratio(&self) -> Option<f64> {
        let sent = self.known(|row| row.sent_packets)?;
        let lost = self.known(|row| row.lost_packets)?;
        (sent > 0.0).then(|| lost / sent)
    }
}

/// How long before the trial's end what a frame refers to may be under way to the viewer, in nanoseconds.
const UNDER_WAY_NS: i64 = 1_000_000_000;

/// One session at its client, and when its viewer first showed a frame.
pub(crate) struct Session<'a> {
    /// The endpoint's name.
    pub name: &'a str,
    row: &'a MoqSessionRow,
    first_shown_ns: Option<i64>,
    /// What became of frames, after the warm-up.
    frames: Vec<&'a FrameRow>,
    /// The numbers of all frames of which there is a row, also in the warm-up.
    known: BTreeSet<i64>,
    /// The least number of a frame that could be decoded, also in the warm-up.
    first_decodable: Option<i64>,
    /// What the encoders of the publisher made; `None` if that is not known.
    encoded: Option<Arc<Encoded>>,
    /// Objects of a data track that came after the warm-up.
    data: Vec<&'a MoqDataRow>,
    /// The numbers of all objects that came, also in the warm-up.
    known_data: BTreeSet<u64>,
    /// When the trial ended.
    end_ns: i64,
}

/// What the encoders of a publisher made and its sender took: numbers of frames and their sizes in bytes.
type Encoded = BTreeSet<(i64, i64)>;

/// The same of every endpoint that publishes.
fn publishers(view: &View<'_>) -> Vec<Arc<Encoded>> {
    let sessions = view.records.moq_sessions.iter();
    let moq: BTreeSet<&str> = sessions.map(|row| &*row.endpoint).collect();
    let mut publishers: BTreeMap<&str, Encoded> = BTreeMap::new();
    for row in view.records.encoder.iter().filter(|row| moq.contains(&*row.endpoint) && !row.lost) {
        let Some(bytes) = row.encoded_bytes.and_then(|bytes| i64::try_from(bytes).ok()) else {
            continue;
        };
        publishers.entry(&row.endpoint).or_default().insert((row.frame, bytes));
    }
    publishers.into_values().map(Arc::new).collect()
}

/// The publisher whose frames most of these are.
fn publisher_of(frames: &[&FrameRow], publishers: &[Arc<Encoded>]) -> Option<Arc<Encoded>> {
    let own = |encoded: &Encoded| {
        let came = frames.iter().filter_map(|frame| Some((frame.frame, frame.encoded_bytes?)));
        came.filter(|frame| encoded.contains(frame)).count()
    };
    let counted = publishers.iter().map(|encoded| (own(encoded), encoded));
    let (count, encoded) = counted.max_by_key(|(count, _)| *count)?;
    (count > 0).then(|| Arc::clone(encoded))
}

/// The sessions of endpoints that view.
pub(crate) fn sessions<'v>(view: &'v View<'_>) -> Vec<Session<'v>> {
    let clients = view.records.moq_sessions.iter().filter(|row| row.role == FlowRole::Client);
    let publishers = publishers(view);
    let session = |row: &'v MoqSessionRow| {
        let player = view.player(&row.endpoint)?;
        let begun = row.t_ns.as_nanos_i64();
        let shown = player.screen.first_shown_ns(begun);
        let frames = view.records.frames.iter();
        let mut frames: Vec<&FrameRow> =
            frames.filter(|frame| frame.endpoint == row.endpoint).collect();
        let encoded = publisher_of(&frames, &publishers);
        let decodable = frames.iter().filter(|frame| frame.decodable);
        let first_decodable = decodable.map(|frame| frame.frame).min();
        let known = frames.iter().map(|frame| frame.frame).collect();
        frames.retain(|frame| !view.period.skips(frame.t_ns));
        let data = view.records.moq_data.iter().filter(|object| object.endpoint == row.endpoint);
        let mut data: Vec<&MoqDataRow> = data.collect();
        let known_data = data.iter().map(|object| object.number).collect();
        data.retain(|object| !view.period.skips(object.t_ns.as_nanos_i64()));
        Some(Session {
            name: &row.endpoint,
            row,
            first_shown_ns: shown,
            frames,
            known,
            first_decodable,
            encoded,
            data,
            known_data,
            end_ns: view.duration_ns,
        })
    };
    clients.filter_map(session).collect()
}

impl Session<'_> {
    /// From the connection's beginning until the session was set up, in milliseconds.
    pub fn set_up_ms(&self) -> Option<f64> {
        Some(self.row.set_up_ns?.saturating_since(self.row.t_ns).as_millis_f64())
    }

    /// From the hand-over to the publisher's QUIC until a frame was there as a whole, in milliseconds.
    pub fn transfer_ms(&self) -> Distribution {
        let took = |frame: &&FrameRow| {
            Some((frame.received_ns?.saturating_sub(frame.sent_ns?) as f64 / 1e6, 1.0))
        };
        Distribution::weighted(self.frames.iter().filter_map(took))
    }

    /// From the publication of an object of a data track until it had arrived, in milliseconds.
    pub fn data_ms(&self) -> Distribution {
        let took = |row: &&MoqDataRow| {
            (row.t_ns.as_nanos_i64().saturating_sub(row.published_ns) as f64 / 1e6, 1.0)
        };
        Distribution::weighted(self.data.iter().map(took))
    }

    /// Numbers of a data track, from the least that arrived after the warm-up to the greatest, that did not arrive. Objects may come
    /// out of order: one of these may have come in the warm-up.
    pub fn data_missing(&self) -> Option<f64> {
        let numbers = || self.data.iter().map(|row| row.number);
        let (first, last) = (numbers().min()?, numbers().max()?);
        let came = self.known_data.range(first..=last).count();
        Some((last - first) as f64 + 1.0 - came as f64)
    }

    /// How often the viewer changed to another quality, if it can.
    pub fn switches(&self) -> Option<f64> {
        self.row.switches.map(|changes| changes as f64)
    }

    /// Mean bit rate of the qualities or encoder that the frames came from, in bit/s.
    pub fn quality_bps(&self) -> Option<f64> {
        let rates: Vec<f64> =
            self.frames.iter().filter_map(|frame| Some(frame.rung_bps? as f64)).collect();
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    }

    /// Mean size of the frames that came, in bytes.
    pub fn frame_bytes(&self) -> Option<f64> {
        let sizes: Vec<f64> =
            self.frames.iter().filter_map(|frame| Some(frame.encoded_bytes? as f64)).collect();
        (!sizes.is_empty()).then(|| sizes.iter().sum::<f64>() / sizes.len() as f64)
    }

    /// Frames that came and could not be decoded, without those of the last [`UNDER_WAY_NS`], and without those before the key
    /// frame with which the viewer joined.
    pub fn frames_undecodable(&self) -> f64 {
        let last_ns = self.end_ns.saturating_sub(UNDER_WAY_NS);
        let came = |frame: &&&FrameRow| frame.received_ns.is_some_and(|at| at <= last_ns);
        let joined = |number: i64| self.first_decodable.is_none_or(|first| number > first);
        let frames = self.frames.iter().filter(came);
        frames.filter(|frame| !frame.decodable && joined(frame.frame)).count() as f64
    }

    /// Frames that an encoder made and that had not come when they were given up, although a later one came; `None` if it is
    /// not known what the encoder made. Those given up in the last [`UNDER_WAY_NS`] do not count.
    pub fn frames_missing(&self) -> Option<f64> {
        let encoded = self.encoded.as_ref()?;
        let came = self.frames.iter().filter(|frame| frame.received_ns.is_some());
        let newest = came.map(|frame| frame.frame).max()?;
        let last_ns = self.end_ns.saturating_sub(UNDER_WAY_NS);
        let is_encoded =
            |number| encoded.range((number, i64::MIN)..=(number, i64::MAX)).next().is_some();
        let is_missing = |frame: &&&FrameRow| {
            frame.received_ns.is_none()
                && frame.frame < newest
                && frame.t_ns <= last_ns
                && is_encoded(frame.frame)
        };
        let missing = self.frames.iter().filter(is_missing).count();
        Some((missing + self.frames_without_row(encoded)) as f64)
    }

    /// Frames that an encoder made and of which the viewer has no row, although a later one had come [`UNDER_WAY_NS`] before the
    /// end: a browser reports only frames that came.
    fn frames_without_row(&self, encoded: &Encoded) -> usize {
        let came =
            || self.frames.iter().filter_map(|frame| Some((frame.received_ns?, frame.frame)));
        let end_ns = came().map(|(at, _)| at).max().unwrap_or(0).min(self.end_ns);
        let last_ns = end_ns.saturating_sub(UNDER_WAY_NS);
        let early = || came().filter(|(at, _)| *at <= last_ns).map(|(_, number)| number);
        let Some((first, last)) = early().min().zip(early().max()) else { return 0 };
        let between = encoded.range((first, i64::MIN)..(last, i64::MIN));
        let numbers: BTreeSet<i64> = between.map(|(number, _)| *number).collect();
        numbers.difference(&self.known).count()
    }

    /// From the connection's beginning to the first frame shown, in milliseconds.
    pub fn first_frame_ms(&self) -> Option<f64> {
        Some(self.first_shown_ns?.saturating_sub(self.row.t_ns.as_nanos_i64()) as f64 / 1e6)
    }
}

/// Smoothed round-trip time in milliseconds.
pub(crate) fn srtt_ms(row: &QuicRow) -> Option<f64> {
    // Before the first acknowledgement it is what the connection assumes.
    row.min_rtt_ns.map(|_| Duration::as_millis_f64(row.srtt_ns))
}
