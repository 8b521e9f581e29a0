//! The record of what a sender's encoders made of a camera's frames: table `encoder`.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use suiro_media::live::Captured;
use suiro_record::tables::EncoderRow;
use suiro_record::{RecordError, Text, Writer};
use suiro_units::Time;

/// Writes table `encoder` of one sender. Its encoders, each in a thread of its own, share it.
#[derive(Clone)]
pub struct EncoderLog {
    endpoint: Text,
    quality: u64,
    shared: Arc<Mutex<Shared>>,
}

/// The table until it is complete, and what went wrong first.
struct Shared {
    rows: Option<Writer<EncoderRow>>,
    failed: Option<RecordError>,
}

impl fmt::Debug for EncoderLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { endpoint, quality, .. } = self;
        f.debug_struct("EncoderLog").field("endpoint", endpoint).field("quality", quality).finish()
    }
}

impl EncoderLog {
    /// Creates the table of the endpoint called `name`.
    ///
    /// # Errors
    /// A file cannot be made.
    pub fn create(dir: &Path, name: &str) -> Result<Self, RecordError> {
        let shared = Shared { rows: Some(Writer::create_of(dir, name)?), failed: None };
        Ok(Self { endpoint: name.into(), quality: 0, shared: Arc::new(Mutex::new(shared)) })
    }

    /// The same table, for the encoder of another quality.
    #[must_use]
    pub fn of(&self, quality: usize) -> Self {
        Self { quality: quality as u64, ..self.clone() }
    }

    /// Writes what became of a frame at `now`; `lost` if the sender could not take it. Once the table is complete, nothing.
    pub(crate) fn push(&self, now: Time, captured: &Captured, lost: bool) {
        let mut shared = self.lock();
        let Shared { rows, failed } = &mut *shared;
        let Some(rows) = rows.as_mut().filter(|_| failed.is_none()) else { return };
        let encoded = captured.encoded.as_ref();
        let row = EncoderRow {
            t_ns: now,
            endpoint: self.endpoint.clone(),
            quality: self.quality,
            frame: i64::try_from(captured.number).unwrap_or(i64::MAX),
            captured_ns: captured.captured,
            encoded_bytes: encoded.map(|encoded| encoded.bytes.len() as u64),
            key: encoded.is_some_and(|encoded| encoded.key),
            target_bps: captured.config.bitrate,
            width: captured.config.width.into(),
            height: captured.config.height.into(),
            fps: captured.config.fps.into(),
            missed: captured.missed,
            lost,
        };
        *failed = rows.push(row).err();
    }

    /// Completes the table.
    ///
    /// # Errors
    /// A row could not be written.
    pub fn close(self) -> Result<(), RecordError> {
        let (rows, failed) = {
            let mut shared = self.lock();
            (shared.rows.take(), shared.failed.take())
        };
        match failed {
            Some(error) => Err(error),
            None => rows.map_or(Ok(()), |rows| rows.close().map(drop)),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        // Nothing panics between a change and the next.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use suiro_media::live::{Effort, Encoded, EncoderConfig};
    use suiro_record::Reader;
    use suiro_units::BitRate;

    use super::*;

    fn captured(number: u64, bytes: Option<usize>) -> Captured {
        let bitrate = BitRate::from_kbps(500);
        let config = EncoderConfig {
            width: 640,
            height: 360,
            fps: 30,
            bitrate,
            effort: Effort::Medium,
            may_skip: true,
        };
        Captured {
            number,
            captured: Time::from_millis(number * 33),
            missed: 0,
            references: None,
            encoded: bytes.map(|bytes| Encoded { key: true, bytes: vec![0; bytes] }),
            config,
        }
    }

    #[test]
    fn encoders_share_a_table_and_nothing_is_written_after_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let log = EncoderLog::create(dir.path(), "camera").unwrap();
        let late = log.of(1);
        log.push(Time::from_millis(5), &captured(0, Some(900)), false);
        late.push(Time::from_millis(40), &captured(1, None), false);
        log.push(Time::from_millis(41), &captured(1, Some(70)), true);
        log.close().unwrap();
        late.push(Time::from_millis(70), &captured(2, Some(80)), false);
        late.close().unwrap();
        let rows: Vec<EncoderRow> = Reader::read_all(dir.path()).unwrap();
        let told: Vec<_> =
            rows.iter().map(|row| (row.quality, row.frame, row.encoded_bytes, row.lost)).collect();
        assert_eq!(told, [(0, 0, Some(900), false), (1, 1, None, false), (0, 1, Some(70), true)]);
        assert_eq!((rows[0].fps, rows[0].key, rows[1].key), (30, true, false));
    }
}
