//! What a sender's encoders made of a camera's frames: by table `encoder`, and where there is none, by what the sender says
//! that it had set them to.

use suiro_record::tables::{EncoderRow, RateRow};

use super::Step;
use super::evidence::Evidence;
use super::frames::Frame;
use super::realtime::{ROW_NS, Stream};
use super::wording::{count, rate};
use crate::Records;

/// What a sender says of its frames.
pub(super) struct Encoded<'v> {
    /// The rows of its encoders, by the numbers of frames.
    rows: Vec<&'v EncoderRow>,
    /// The control periods of a sender of prepared versions, in the order of time; of one with an encoder, none.
    versions: Vec<&'v RateRow>,
}

/// What became of a camera's frame at its encoders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// At least one encoder made something of it.
    Encoded,
    /// Left out to keep the bit rate.
    ForRate,
    /// Not taken: the encoder was set to fewer frames per second.
    ForFrameRate,
    /// Not taken because the encoder was busy, or thrown away because its sender was.
    Busy,
}

impl<'v> Encoded<'v> {
    /// Those of the endpoints that this holds for.
    pub fn of(records: &'v Records, is_sender: impl Fn(&str) -> bool) -> Self {
        let mut rows: Vec<&EncoderRow> =
            records.encoder.iter().filter(|row| is_sender(&row.endpoint)).collect();
        rows.sort_by_key(|row| row.frame);
        let own = |row: &&RateRow| row.quantiser.is_some() && is_sender(&row.endpoint);
        let mut versions: Vec<&RateRow> = records.rate.iter().filter(own).collect();
        versions.sort_by_key(|row| row.t_ns);
        Self { rows, versions }
    }

    /// Whether the sender has prepared versions, which are as they are, instead of an encoder.
    pub fn is_prepared(&self) -> bool {
        !self.versions.is_empty()
    }

    /// The rows of some frames by number, the last excluded.
    fn within(&self, from: i64, to: i64) -> &[&'v EncoderRow] {
        let at = |number: i64| self.rows.partition_point(|row| row.frame < number);
        &self.rows[at(from)..at(to).max(at(from))]
    }

    /// The rows about one frame, of the encoder that it is from.
    fn about(&self, frame: &Frame) -> impl Iterator<Item = &'v EncoderRow> {
        let (number, quality) = (frame.row.frame, frame.quality);
        let rows = self.within(number, number.saturating_add(1)).iter().copied();
        rows.filter(move |row| quality.is_none_or(|quality| quality == row.quality))
    }

    /// Sets for all frames of a viewer which encoder they are from: the one that was set to the rate that the frame names.
    pub fn set_qualities(&self, frames: &mut [Frame]) {
        let mut last = None;
        for frame in frames {
            let is_own = |row: &&EncoderRow| {
                frame
                    .row
                    .rung_bps
                    .is_some_and(|bps| i64::try_from(row.target_bps.as_bps()) == Ok(bps))
            };
            last = self.about(frame).find(is_own).map(|row| row.quality).or(last);
            frame.quality = last;
        }
    }

    /// What became of a frame; `None` if the table does not say.
    pub fn fate(&self, frame: &Frame) -> Option<Fate> {
        let own: Vec<&EncoderRow> = self.about(frame).collect();
        if own.is_empty() {
            let at = self.rows.partition_point(|row| row.frame < frame.row.frame);
            let is_own = |row: &&&EncoderRow| frame.quality.is_none_or(|own| own == row.quality);
            let before = self.rows[..at].iter().rfind(is_own)?;
            let next = self.rows[at..].iter().find(is_own)?;
            let fate = if next.missed > 0 { Fate::Busy } else { Fate::ForFrameRate };
            return ran_between(before, next).then_some(fate);
        }
        let fate = |row: &&EncoderRow| match (row.encoded_bytes, row.lost) {
            (Some(_), false) => Fate::Encoded,
            (Some(_), true) => Fate::Busy,
            (None, _) => Fate::ForRate,
        };
        let encoded = own.iter().map(fate).find(|fate| *fate == Fate::Encoded);
        encoded.or_else(|| own.first().map(fate))
    }

    /// What the rate control of a sender of prepared versions allowed, and the bit rate of its version, where it allowed less: the
    /// sender then leaves out frames.
    fn below_version(&self, t_ns: i64) -> Option<(f64, f64)> {
        // A row is about the time before it.
        let row = self.versions.get(self.versions.partition_point(|row| row.t_ns <= t_ns))?;
        let (allowed, version) = (row.target_bps, row.encoder_bps?);
        (allowed < version).then_some((allowed as f64, version as f64))
    }

    /// The bit rates that encoders were set to for some frames, from the least to the most; `None` without any.
    fn targets(&self, frames: &[&Frame]) -> Option<String> {
        let rows = frames.iter().flat_map(|frame| self.about(frame));
        let bps: Vec<f64> = rows.map(|row| row.target_bps.as_bps() as f64).collect();
        let least = rate(bps.iter().copied().min_by(f64::total_cmp)?);
        let most = rate(bps.iter().copied().max_by(f64::total_cmp)?);
        Some(if least == most { most } else { format!("{least} to {most}") })
    }

    /// The rows about some frames by number, the last included, as a step.
    pub fn step(&self, records: &Records, what: &str, (first, last): (i64, i64)) -> Option<Step> {
        let end = last.saturating_add(1);
        let rows = self.within(first, end);
        let places = rows.iter().filter_map(|row| Evidence::row("encoder", &records.encoder, *row));
        let (a, b) = places.fold((usize::MAX, 0), |(a, b), it| (a.min(it.first), b.max(it.last)));
        let row = rows.first().filter(|_| a <= b)?;
        let filter = format!("endpoint={},frame={first}..{end}", row.endpoint);
        let evidence = Evidence { table: "encoder", first: a, last: b, filter };
        Some(Step { what: what.to_owned(), evidence })
    }
}

/// Whether an encoder ran from one of its frames to the next: it was set to so few per second, or missed as many. While nobody
/// receives a quality, its encoder is off, and leaves nothing out. A camera's frames need not be where those of a lower rate would be,
/// so one more frame is allowed for.
fn ran_between(before: &EncoderRow, next: &EncoderRow) -> bool {
    let apart = next.captured_ns.saturating_since(before.captured_ns);
    let fps = before.fps.min(next.fps).max(1);
    apart.as_secs_f64() * fps as f64 <= next.missed.saturating_add(2) as f64
}

impl Stream<'_, '_> {
    fn camera_fps(&self) -> f64 {
        1e9 / self.usual.interval_ns.max(1) as f64
    }

    /// Frames in succession that an encoder leaves out by the frame rate that it is set to, at the time of some frames; `None` if
    /// that is not recorded.
    pub fn most_left_out(&self, frames: &[Frame]) -> Option<usize> {
        let (from, to) = (frames.first()?.captured_ns, frames.last()?.captured_ns);
        let during = (from.saturating_sub(ROW_NS), to.saturating_add(ROW_NS));
        let set = self.set_fps(frames, during)?;
        let camera = self.camera_fps();
        // Rates of cameras are not exact: 29.97 frames per second are 30.
        let of_one = (camera / set.max(1) as f64 - 0.01).ceil();
        Some((of_one as usize).saturating_sub(1))
    }

    /// Frames per second that the encoders of some frames are set to at least, in a stretch of time; `None` if that is not
    /// recorded.
    pub fn set_fps(&self, frames: &[Frame], (from, to): (i64, i64)) -> Option<i64> {
        let during = |t_ns: i64| (from..to).contains(&t_ns);
        let is_own = |row: &EncoderRow| {
            frames.iter().any(|it| it.quality.is_none_or(|it| it == row.quality))
        };
        let encoded = self.encoded.rows.iter().filter(|row| during(row.captured_ns.as_nanos_i64()));
        let encoded = encoded.filter(|row| is_own(row));
        let encoded = encoded.filter_map(|row| i64::try_from(row.fps).ok());
        let rows = self.webrtc().filter(|row| during(row.t_ns.as_nanos_i64()));
        encoded.min().or_else(|| rows.filter_map(|row| row.fps).min())
    }

    /// What the encoder was set to, mean over a stretch of time.
    pub fn encoder_bps(&self, from: i64, to: i64) -> Option<f64> {
        let rates = self.records.rate.iter().filter(|row| self.is_sender(&row.endpoint));
        let rates = rates.filter_map(|row| Some((row.t_ns, row.encoder_bps? as f64)));
        let webrtc = self
            .webrtc()
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

    /// What became of a frame that did not come, as far as its sender says. Of prepared versions, one was left out if nothing was
    /// sent until the next one, or if the rate control allowed less than the version has, and none of its packets was dropped.
    pub fn fate(&self, frame: &Frame) -> Option<Fate> {
        if self.switches.left_out(frame.row.frame).is_some() {
            return Some(Fate::Encoded);
        }
        let from = frame.captured_ns;
        let to = from.saturating_add(self.usual.interval_ns);
        let below =
            || self.encoded.below_version(from).is_some() && self.dropped(from, to).is_none();
        let silent = || {
            let sends = !self.data.is_empty() && self.encoded.is_prepared();
            sends && self.packets(from, to).next().is_none()
        };
        self.encoded.fate(frame).or_else(|| (silent() || below()).then_some(Fate::ForRate))
    }

    /// The frames that a sender of prepared versions left out, and why; `None` if it has an encoder.
    fn told_by_version(&self, frames: &[Frame]) -> Option<String> {
        let left_out = || frames.iter().filter(|frame| frame.left_out);
        let rates = left_out().filter_map(|frame| self.encoded.below_version(frame.captured_ns));
        let (allowed, version) = rates.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(format!(
            "the sender left out {} of {}: its rate control allowed {}, and its lowest version has {}",
            left_out().count(),
            count(frames.len(), "frame"),
            rate(allowed),
            rate(version)
        ))
    }

    /// How many of some frames the encoder left out, and by what; `None` if none.
    pub fn told_left_out(&self, frames: &[Frame]) -> Option<(String, Option<Step>)> {
        let left_out: Vec<&Frame> = frames.iter().filter(|frame| frame.left_out).collect();
        let (first, last) = (frames.first()?, frames.last()?);
        if left_out.is_empty() {
            return None;
        }
        if let Some(clause) = self.told_by_version(frames) {
            return Some((clause, None));
        }
        let all = count(frames.len(), "frame");
        let who = if self.encoded.is_prepared() { "sender" } else { "encoder" };
        let mut clause = format!("the {who} left out {} of {all}", left_out.len());
        let for_rate = |frame: &&&Frame| self.encoded.fate(frame) == Some(Fate::ForRate);
        let for_rate: Vec<&Frame> = left_out.iter().filter(for_rate).copied().collect();
        let (from, to) = (first.captured_ns, last.captured_ns.saturating_add(1));
        // The camera's own rate is no reason.
        let camera = self.camera_fps();
        let set = self.set_fps(frames, (from, to)).filter(|fps| (*fps as f64) < camera - 0.5);
        let by_rate = self.encoded.targets(&for_rate);
        let by_rate = by_rate.map(|targets| format!("to keep its bit rate of {targets}"));
        let by_set = set.map(|fps| format!("because it was set to {fps} frames per second"));
        clause.push_str(&match (by_rate, by_set) {
            (None, None) => String::new(),
            (Some(by_rate), _) if for_rate.len() == left_out.len() => format!(" {by_rate}"),
            (None, Some(by_set)) => format!(" {by_set}"),
            (Some(by_rate), None) => format!(", {} {by_rate}", for_rate.len()),
            (Some(by_rate), Some(by_set)) => {
                format!(", {} {by_rate}, and the others {by_set}", for_rate.len())
            }
        });
        let step = self.encoded.step(self.records, &clause, (first.row.frame, last.row.frame));
        Some((clause, step))
    }

    /// How many of some frames the encoder, or its sender, was too busy for; `None` if for none.
    pub fn told_busy(&self, frames: &[Frame]) -> Option<String> {
        let busy = |frame: &&Frame| self.encoded.fate(frame) == Some(Fate::Busy);
        let missed = frames.iter().filter(busy).count();
        (missed > 0).then(|| {
            format!(
                "the encoder was busy and missed {} of {}",
                missed,
                count(frames.len(), "frame")
            )
        })
    }
}
