//! The record of a viewing: the table `frames`, and what is saved next to it.

use std::path::Path;

use suiro_media::screen::Codec;
use suiro_record::tables::FrameRow;
use suiro_record::{Text, Writer};
use suiro_units::Time;

use crate::{LogError, Saver, Seen};

/// Writes the table `frames` of one viewer: a row for each frame, from the first received to the last.
pub struct FrameLog {
    endpoint: Text,
    epoch_unix_ns: u64,
    rows: Writer<FrameRow>,
}

impl FrameLog {
    /// Creates the table in the trial's folder. `epoch_unix_ns` is the trial's epoch, zero of the
    /// viewer's clock, in nanoseconds since 1970.
    ///
    /// # Errors
    /// [`LogError::Record`].
    pub fn create(dir: &Path, name: &str, epoch_unix_ns: u64) -> Result<Self, LogError> {
        let rows = Writer::create_of(dir, name)?;
        Ok(Self { endpoint: name.into(), epoch_unix_ns, rows })
    }

    /// Writes what became of a frame.
    ///
    /// # Errors
    /// [`LogError::Record`].
    pub fn push(&mut self, seen: &Seen) -> Result<(), LogError> {
        let row = self.row(seen);
        Ok(self.rows.push(row)?)
    }

    fn row(&self, seen: &Seen) -> FrameRow {
        let integer = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let nanos = |time: Time| integer(time.as_nanos());
        let in_trial =
            |unix_ns: u64| i64::try_from(i128::from(unix_ns) - i128::from(self.epoch_unix_ns)).ok();
        let outcome = seen.outcome;
        let received = outcome.received;
        let bytes = seen.data.as_ref().map(|data| integer(data.len() as u64));
        FrameRow {
            t_ns: nanos(outcome.displayed().or(received).unwrap_or(outcome.at)),
            endpoint: self.endpoint.clone(),
            frame: integer(outcome.frame),
            captured_ns: seen.captured_unix_ns.and_then(in_trial),
            rung_bps: seen.rate.map(|rate| integer(rate.as_bps())),
            encoded_bytes: bytes.filter(|_| received.is_some()),
            sent_ns: seen.sent_unix_ns.and_then(in_trial),
            received_ns: received.map(nanos),
            decodable: outcome.decodable(),
            damaged: outcome.damaged,
            displayed_ns: outcome.displayed().map(nanos),
        }
    }

    /// Completes the table.
    ///
    /// # Errors
    /// [`LogError::Record`].
    pub fn close(self) -> Result<(), LogError> {
        self.rows.close()?;
        Ok(())
    }
}

/// All that a viewer writes down: the table `frames`, and what it could decode if that is asked for.
pub struct Log {
    frames: FrameLog,
    saved: Option<Saver>,
}

impl Log {
    /// Begins the records of the viewer called `name`, in the trial's folder. With `save`, what could be
    /// decoded is kept, which is coded so.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn create(
        dir: &Path,
        name: &str,
        epoch_unix_ns: u64,
        save: Option<Codec>,
    ) -> Result<Self, LogError> {
        let saved = save.map(|codec| Saver::create(dir, name, codec)).transpose()?;
        Ok(Self { frames: FrameLog::create(dir, name, epoch_unix_ns)?, saved })
    }

    /// Writes down what became of a frame.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn push(&mut self, seen: &Seen) -> Result<(), LogError> {
        if let Some(saved) = &mut self.saved {
            saved.push(seen)?;
        }
        self.frames.push(seen)
    }

    /// Completes the records.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn close(self) -> Result<(), LogError> {
        self.frames.close()?;
        self.saved.map_or(Ok(()), Saver::close)
    }
}

#[cfg(test)]
mod tests {
    use suiro_record::Reader;
    use suiro_units::BitRate;
    use suiro_viewer::{Fate, Outcome};

    use super::*;
    use crate::received;

    /// A frame that was captured 10 ms after the epoch, left 5 ms later, and has three bytes.
    fn seen(frame: u64, fate: Fate, whole: bool) -> Seen {
        let came = fate != Fate::Missing;
        let time = |ms| Some(Time::from_millis(ms)).filter(|_| came);
        Seen {
            outcome: Outcome {
                frame,
                captured: time(10),
                received: time(30),
                fate,
                at: Time::from_millis(80),
                damaged: !whole,
            },
            captured_unix_ns: came.then_some(1_010_000_000),
            sent_unix_ns: came.then_some(1_015_000_000),
            rate: came.then_some(BitRate::from_kbps(700)),
            data: came.then(|| vec![frame as u8; 3]),
        }
    }

    #[test]
    fn rows_say_what_became_of_frames_and_the_file_has_those_that_were_decoded() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::create(dir.path(), "viewer", 1_000_000_000, Some(Codec::H264)).unwrap();
        let fates = [Fate::Displayed, Fate::Missing, Fate::Undecodable, Fate::Skipped];
        for (frame, fate) in (7..).zip(fates) {
            log.push(&seen(frame, fate, true)).unwrap();
        }
        log.close().unwrap();
        let rows: Vec<FrameRow> = Reader::read_all(dir.path()).unwrap();
        let shown = FrameRow {
            t_ns: 80_000_000,
            endpoint: "viewer".into(),
            frame: 7,
            captured_ns: Some(10_000_000),
            rung_bps: Some(700_000),
            encoded_bytes: Some(3),
            sent_ns: Some(15_000_000),
            received_ns: Some(30_000_000),
            decodable: true,
            damaged: false,
            displayed_ns: Some(80_000_000),
        };
        assert_eq!(rows[0], shown);
        let decodable: Vec<bool> = rows.iter().map(|row| row.decodable).collect();
        assert_eq!(decodable, [true, false, false, true]);
        assert_eq!((rows[1].t_ns, rows[1].received_ns), (80_000_000, None), "when it was given up");
        assert_eq!((rows[2].t_ns, rows[2].displayed_ns), (30_000_000, None), "when it came");
        let saved = received(dir.path(), "viewer", Codec::H264);
        assert_eq!(saved.file_name().unwrap(), "received.viewer.h264");
        assert_eq!(std::fs::read(saved).unwrap(), [7, 7, 7, 10, 10, 10]);
    }

    #[test]
    fn what_is_not_asked_for_is_not_saved_and_errors_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::create(dir.path(), "viewer", 0, None).unwrap();
        log.push(&seen(0, Fate::Displayed, false)).unwrap();
        log.close().unwrap();
        assert!(!received(dir.path(), "viewer", Codec::H264).exists());
        let missing = dir.path().join("missing");
        let refused = Saver::create(&missing, "viewer", Codec::Mpeg2);
        let text = refused.unwrap_err().to_string();
        assert!(
            text.contains("saving the received video to") && text.contains("received.viewer.m2v"),
            "{text}"
        );
    }
}
