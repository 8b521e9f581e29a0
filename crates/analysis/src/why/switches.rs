//! Where a viewer changed to another quality, and the frames that it left out between the two.
//!
//! Table `moq_sessions` only counts changes. Where one was is in the tables `frames` and `encoder`: the last frame that was
//! played is of one encoder of a publisher, and the next one that came, a key frame, of another.

use suiro_record::tables::{EncoderRow, FrameRow};

use crate::Records;

/// A change from one quality to another, between two frames.
#[derive(Debug, Clone, Copy)]
pub(super) struct Switch<'v> {
    /// The last frame of the old quality that was played.
    pub last: &'v FrameRow,
    /// The first frame of the new one.
    pub first: &'v FrameRow,
    /// What the encoders made that these are from.
    old: &'v EncoderRow,
    new: &'v EncoderRow,
}

/// The changes of one viewer between which frames are missing, in order.
#[derive(Debug, Default)]
pub(super) struct Switches<'v> {
    all: Vec<Switch<'v>>,
    /// The rows of all encoders, by the numbers of frames.
    encoded: Vec<&'v EncoderRow>,
}

impl<'v> Switches<'v> {
    /// Those of the viewer with this name; none if its session counts no change.
    pub fn of(records: &'v Records, viewer: &str) -> Self {
        let sessions = records.moq_sessions.iter().filter(|row| *row.endpoint == *viewer);
        if sessions.filter_map(|row| row.switches).all(|changes| changes == 0) {
            return Self::default();
        }
        let mut encoded: Vec<&EncoderRow> = records.encoder.iter().collect();
        encoded.sort_by_key(|row| row.frame);
        let came = |row: &&FrameRow| *row.endpoint == *viewer && row.received_ns.is_some();
        let mut frames: Vec<&FrameRow> = records.frames.iter().filter(came).collect();
        frames.sort_by_key(|row| row.frame);
        let pairs = frames.windows(2);
        let all = pairs.filter_map(|pair| Switch::between(pair[0], pair[1], &encoded)).collect();
        Self { all, encoded }
    }

    /// The change that the frame with this number lies in.
    pub fn at(&self, number: i64) -> Option<&Switch<'v>> {
        let after = self.all.partition_point(|switch| switch.last.frame < number);
        let switch = self.all.get(after.checked_sub(1)?)?;
        (number < switch.first.frame).then_some(switch)
    }

    /// The change in which the viewer left out the frame with this number, which an encoder had made.
    pub fn left_out(&self, number: i64) -> Option<&Switch<'v>> {
        self.at(number).filter(|switch| switch.was_made(number, &self.encoded))
    }
}

impl<'v> Switch<'v> {
    /// The change between two frames that came, if nothing between them did.
    fn between(
        last: &'v FrameRow,
        first: &'v FrameRow,
        encoded: &[&'v EncoderRow],
    ) -> Option<Self> {
        // Of those that come late and at once, a viewer shows the last.
        let is_played = last.displayed_ns.is_some() && first.decodable;
        let is_gap = first.frame > last.frame.saturating_add(1);
        if !is_gap || !is_played || last.rung_bps == first.rung_bps {
            return None;
        }
        let (old, new) = (maker(last, encoded)?, maker(first, encoded)?);
        let changes = old.endpoint == new.endpoint && old.quality != new.quality;
        (changes && new.key).then_some(Self { last, first, old, new })
    }

    /// Whether it is to a lower bit rate.
    pub fn is_down(&self) -> bool {
        self.first.rung_bps < self.last.rung_bps
    }

    /// Whether the encoder of the old quality made a frame; where that had stopped, whether that of the new one did.
    fn was_made(&self, number: i64, encoded: &[&EncoderRow]) -> bool {
        let of = |quality: u64| {
            let is_own =
                |row: &&&EncoderRow| row.endpoint == self.old.endpoint && row.quality == quality;
            about(number, encoded).iter().find(is_own)
        };
        let row = of(self.old.quality).or_else(|| of(self.new.quality));
        row.is_some_and(|row| made(row).is_some())
    }
}

/// The rows about one frame.
fn about<'e, 'v>(number: i64, encoded: &'e [&'v EncoderRow]) -> &'e [&'v EncoderRow] {
    let from = encoded.partition_point(|row| row.frame < number);
    let to = encoded.partition_point(|row| row.frame <= number);
    &encoded[from..to]
}

/// The size of a frame that was made and that its sender took.
fn made(row: &EncoderRow) -> Option<i64> {
    row.encoded_bytes.filter(|_| !row.lost).and_then(|bytes| i64::try_from(bytes).ok())
}

/// The row of the encoder that a frame is from, by its size and bit rate; `None` if several may have made it.
fn maker<'v>(frame: &FrameRow, encoded: &[&'v EncoderRow]) -> Option<&'v EncoderRow> {
    let (bytes, bps) = (frame.encoded_bytes?, frame.rung_bps?);
    let is_own = |row: &&&EncoderRow| {
        made(row) == Some(bytes) && i64::try_from(row.target_bps.as_bps()) == Ok(bps)
    };
    let mut own = about(frame.frame, encoded).iter().filter(is_own);
    let found = *own.next()?;
    own.next().is_none().then_some(found)
}
