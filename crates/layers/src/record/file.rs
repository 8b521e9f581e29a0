//! A recording on disk: `layers.json` says what was recorded and how, `layers.parquet` holds the
//! passages. In a folder of several hosts the files are `layers.HOST.json` and `layers.HOST.parquet`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use suiro_record::tables::LayerRow;
use suiro_record::words::Heading;
use suiro_record::{Reader, RecordError, Row, Text, Writer};

use crate::event::{
    ClockStatus, Cost, DropCause, Event, Flow, Key, Moment, PAUSES_MAX, Pause, PointStatus,
    Recording, Second,
};

/// The format number of `layers.json`.
const FORMAT: u32 = 1;
/// A document contains names and counts; this is much more than they need.
const DOCUMENT_BYTES_MAX: u64 = 64 << 20;

/// Why a recording could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file could not be read or written.
    #[error("{path}: {cause}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The document does not have this version's format.
    #[error("{path}: {problem}")]
    Document {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The table is damaged or truncated.
    #[error("{0}\nhint: stop a recorder with Ctrl-C; if it is killed, its table is incomplete")]
    Table(RecordError),
    /// A row contains an invalid value.
    #[error("{path}: row {row}: {problem}")]
    Row {
        /// The file.
        path: PathBuf,
        /// Its number, from 0.
        row: usize,
        /// What is wrong.
        problem: String,
    },
    /// The folder contains no recording.
    #[error(
        "{0}: no recording: layers.json is missing\nhint: make one with `suiro layers record --out DIR`"
    )]
    Missing(PathBuf),
}

impl From<RecordError> for FileError {
    fn from(cause: RecordError) -> Self {
        Self::Table(cause)
    }
}

/// `layers.json`: a [`Recording`] without its events.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: u32,
    host: String,
    boot_id: String,
    kernel: String,
    /// The CLOCK_MONOTONIC time from which `t_ns` of the table counts.
    epoch_monotonic_ns: u64,
    start: Moment,
    end: Moment,
    /// At most [`PAUSES_MAX`]; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pauses: Vec<Pause>,
    asked: Vec<String>,
    flows: Vec<Flow>,
    points: Vec<PointStatus>,
    fragments: u64,
    unjoined: u64,
    unplaced: u64,
    scheduling: Vec<Second>,
    clock: Option<ClockStatus>,
    /// Absent in recordings made before it was measured.
    #[serde(default)]
    cost: Option<Cost>,
}

fn path(dir: &Path, name: Option<&str>, end: &str) -> PathBuf {
    dir.join(match name {
        None => format!("{}.{end}", LayerRow::TABLE),
        Some(name) => format!("{}.{name}.{end}", LayerRow::TABLE),
    })
}

/// Writes the passages of one recording as they arrive.
pub(crate) struct EventWriter {
    rows: Writer<LayerRow>,
    epoch_monotonic_ns: u64,
    host: Text,
    flows: Vec<(Text, bool)>,
    causes: BTreeMap<u16, Text>,
}

impl EventWriter {
    /// Creates the table's file; `causes` are the kernel's names by number.
    pub fn create(
        dir: &Path,
        name: Option<&str>,
        (host, epoch_monotonic_ns): (&str, u64),
        causes: BTreeMap<u16, Text>,
    ) -> Result<Self, RecordError> {
        let rows = match name {
            None => Writer::create(dir)?,
            Some(name) => Writer::create_of(dir, name)?,
        };
        Ok(Self { rows, epoch_monotonic_ns, host: host.into(), flows: Vec::new(), causes })
    }

    /// Appends one; `flows` are those known so far.
    pub fn push(&mut self, event: &Event, flows: &[Flow]) -> Result<(), RecordError> {
        let new = flows.iter().skip(self.flows.len());
        self.flows.extend(new.map(|flow| (Text::from(flow.to_string()), flow.sent)));
        let (flow, sent) = &self.flows[usize::from(event.direction_flow)];
        let (key_kind, key) = event.key.parts();
        let cause = event.cause.map(|DropCause(number)| match self.causes.get(&number) {
            Some(name) => Arc::clone(name),
            None => format!("REASON_{number}").into(),
        });
        self.rows.push(LayerRow {
            t_ns: event.t_ns.wrapping_sub(self.epoch_monotonic_ns).cast_signed(),
            host: Arc::clone(&self.host),
            point: event.point,
            direction: if *sent { Heading::Sent } else { Heading::Received },
            flow: Arc::clone(flow),
            key_kind,
            key: key.cast_signed(),
            ip_id: (event.ip_id != 0).then(|| event.ip_id.into()),
            payload_bytes: event.payload_bytes.into(),
            segments: event.segments.into(),
            cause,
        })
    }

    /// Finishes the table.
    pub fn close(self) -> Result<(), RecordError> {
        self.rows.close()
    }
}

/// Writes `layers.json`.
pub(crate) fn write_document(
    dir: &Path,
    name: Option<&str>,
    epoch_monotonic_ns: u64,
    recording: &Recording,
) -> Result<(), FileError> {
    let Recording { host, boot_id, kernel, start, end, asked, flows, points, .. } =
        recording.clone();
    let document = Document {
        format: FORMAT,
        host,
        boot_id,
        kernel,
        epoch_monotonic_ns,
        start,
        end,
        pauses: recording.pauses.clone(),
        asked,
        flows,
        points,
        fragments: recording.fragments,
        unjoined: recording.unjoined,
        unplaced: recording.unplaced,
        scheduling: recording.scheduling.clone(),
        clock: recording.clock.clone(),
        cost: recording.cost.clone(),
    };
    let path = path(dir, name, "json");
    let text = serde_json::to_string_pretty(&document).expect("names and numbers are JSON");
    let written = suiro_outside::beside::write(&path, (text + "\n").as_bytes());
    written.map_err(|cause| FileError::Io { path, cause })
}

impl Recording {
    /// Writes the recording into a folder, as `suiro layers record` does.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), FileError> {
        let epoch_ns = self.start.monotonic_ns;
        let numbered = self.causes.iter().enumerate();
        let causes = numbered
            .filter_map(|(number, name)| Some((u16::try_from(number).ok()?, Text::clone(name))));
        let mut rows = EventWriter::create(dir, None, (&self.host, epoch_ns), causes.collect())?;
        self.events.iter().try_for_each(|event| rows.push(event, &self.flows))?;
        rows.close()?;
        write_document(dir, None, epoch_ns, self)
    }

    /// The recording in a folder that `suiro layers record` made.
    ///
    /// # Errors
    /// The folder contains no recording, or it is damaged, truncated, or of another version.
    pub fn read(dir: &Path) -> Result<Self, FileError> {
        if !path(dir, None, "json").exists() {
            return Err(FileError::Missing(dir.into()));
        }
        read(dir, None)
    }

    /// All recordings in a folder, for example of a trial, sorted by name.
    ///
    /// # Errors
    /// As [`Recording::read`]; a folder without any is an empty list.
    pub fn read_all(dir: &Path) -> Result<Vec<Self>, FileError> {
        let io = |cause| FileError::Io { path: dir.into(), cause };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(dir).map_err(io)? {
            let file = entry.map_err(io)?.file_name();
            let name = file.to_str().and_then(|file| file.strip_prefix(LayerRow::TABLE));
            if let Some(name) = name.and_then(|name| name.strip_suffix(".json")) {
                match name.strip_prefix('.') {
                    Some(name) => names.push(Some(name.to_owned())),
                    None if name.is_empty() => names.push(None),
                    None => {}
                }
            }
        }
        names.sort();
        names.iter().map(|name| read(dir, name.as_deref())).collect()
    }
}

impl Document {
    /// The document in a text.
    fn parse(text: &str) -> Result<Self, String> {
        let document: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if document.format != FORMAT {
            return Err(format!("expected format {FORMAT}, found {}", document.format));
        }
        match document.pauses.len() {
            0..=PAUSES_MAX => Ok(document),
            more => Err(format!("pauses: expected at most {PAUSES_MAX}, found {more}")),
        }
    }

    /// The recording, without its events.
    fn recording(self) -> Recording {
        let document = self;
        Recording {
            host: document.host,
            boot_id: document.boot_id,
            kernel: document.kernel,
            start: document.start,
            end: document.end,
            pauses: document.pauses,
            asked: document.asked,
            flows: document.flows,
            causes: Vec::new(),
            points: document.points,
            fragments: document.fragments,
            unjoined: document.unjoined,
            unplaced: document.unplaced,
            scheduling: document.scheduling,
            clock: document.clock,
            cost: document.cost,
            events: Vec::new(),
        }
    }
}

/// The recording that a document and rows are, as [`Recording::read`] takes them from files.
///
/// # Errors
/// What is wrong with them.
pub fn of_rows(document: &str, rows: &[LayerRow]) -> Result<Recording, String> {
    let document = Document::parse(document)?;
    let epoch = document.epoch_monotonic_ns;
    let mut recording = document.recording();
    let mut names = Names::new(&recording.flows, epoch);
    recording.events = rows.iter().map(|row| names.event(row)).collect::<Result<_, _>>()?;
    recording.causes = names.causes;
    Ok(recording)
}

fn read(dir: &Path, name: Option<&str>) -> Result<Recording, FileError> {
    let document = read_document(&path(dir, name, "json"))?;
    let epoch = document.epoch_monotonic_ns;
    let mut recording = document.recording();
    let table = path(dir, name, "parquet");
    let mut names = Names::new(&recording.flows, epoch);
    let (mut events, mut problem) = (Vec::new(), None);
    let mut row = 0;
    Reader::each::<LayerRow>(&table, |passage| {
        match names.event(&passage) {
            Ok(event) => events.push(event),
            Err(found) => drop(problem.get_or_insert((row, found))),
        }
        row += 1;
    })?;
    if let Some((row, problem)) = problem {
        return Err(FileError::Row { path: table, row, problem });
    }
    recording.causes = names.causes;
    recording.events = events;
    Ok(recording)
}

fn read_document(path: &Path) -> Result<Document, FileError> {
    let io = |cause| FileError::Io { path: path.into(), cause };
    let text = suiro_outside::file::read_text(path, DOCUMENT_BYTES_MAX).map_err(io)?;
    Document::parse(&text).map_err(|problem| FileError::Document { path: path.into(), problem })
}

/// Converts the words in rows to numbers.
struct Names {
    epoch_monotonic_ns: u64,
    flows: BTreeMap<(String, bool), u16>,
    causes: Vec<Text>,
    /// The latest row's flow: most rows have the same one.
    latest: Option<(Text, bool, u16)>,
}

impl Names {
    fn new(flows: &[Flow], epoch_monotonic_ns: u64) -> Self {
        let flows = (0..=u16::MAX).zip(flows).map(|(at, flow)| ((flow.to_string(), flow.sent), at));
        Self { epoch_monotonic_ns, flows: flows.collect(), causes: Vec::new(), latest: None }
    }

    fn event(&mut self, row: &LayerRow) -> Result<Event, String> {
        let t_ns = self.epoch_monotonic_ns.wrapping_add(row.t_ns.cast_unsigned());
        let key = Key::from_parts(row.key_kind, row.key.cast_unsigned())
            .ok_or_else(|| format!("no key `{}` {}", row.key_kind, row.key))?;
        Ok(Event {
            t_ns,
            point: row.point,
            direction_flow: self.flow(row)?,
            key,
            ip_id: number("ip_id", row.ip_id.unwrap_or(0))?,
            payload_bytes: number("payload_bytes", row.payload_bytes)?,
            segments: number("segments", row.segments)?,
            cause: row.cause.as_ref().map(|cause| self.cause(cause)).transpose()?,
        })
    }

    fn flow(&mut self, row: &LayerRow) -> Result<u16, String> {
        let sent = row.direction == Heading::Sent;
        if let Some((flow, direction, number)) = &self.latest
            && Arc::ptr_eq(flow, &row.flow)
            && *direction == sent
        {
            return Ok(*number);
        }
        let number = self.flows.get(&(row.flow.to_string(), sent));
        let number = *number.ok_or_else(|| format!("flow `{}` is not in layers.json", row.flow))?;
        self.latest = Some((Arc::clone(&row.flow), sent, number));
        Ok(number)
    }

    fn cause(&mut self, cause: &Text) -> Result<DropCause, String> {
        let at = self.causes.iter().position(|known| known == cause).unwrap_or(self.causes.len());
        if at == self.causes.len() {
            self.causes.push(Arc::clone(cause));
        }
        u16::try_from(at).map(DropCause).map_err(|_| "more than 65,535 causes".into())
    }
}

fn number<T: TryFrom<i64>>(column: &str, value: i64) -> Result<T, String> {
    T::try_from(value).map_err(|_| format!("{column} {value} is out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{KernelSample, Point, Protocol};

    fn recording() -> Recording {
        let [local, remote] = ["10.0.0.1:5000", "10.0.0.2:5004"].map(|text| text.parse().unwrap());
        let flow = Flow { protocol: Protocol::Udp, local, remote, sent: true };
        let event = Event {
            t_ns: 1_000_000_100,
            point: Point::SendQdisc,
            direction_flow: 0,
            key: Key::Rtp { ssrc: u32::MAX, sequence: 7 },
            ip_id: 0,
            payload_bytes: 1200,
            segments: 1,
            cause: None,
        };
        let dropped = Event { t_ns: 999_999_999, point: Point::Dropped, ip_id: 9, ..event };
        let dropped = Event { direction_flow: 1, cause: Some(DropCause(0)), ..dropped };
        Recording {
            host: "a".into(),
            boot_id: "b".into(),
            kernel: "6.18".into(),
            start: Moment { monotonic_ns: 1_000_000_000, realtime_ns: 1 },
            end: Moment { monotonic_ns: 2_000_000_000, realtime_ns: 2 },
            pauses: vec![Pause { from_ns: 1_200_000_000, to_ns: 1_300_000_000 }],
            asked: vec!["udp:*:*-*:*".into()],
            flows: vec![flow, Flow { sent: false, ..flow }],
            causes: vec!["SOCKET_RCVBUFF".into()],
            points: vec![PointStatus {
                point: Point::SendCall,
                missing: Some("system calls are not traced".into()),
                events: 0,
                lost: 3,
                skipped: 4,
            }],
            fragments: 1,
            unjoined: 2,
            unplaced: 3,
            scheduling: vec![Second {
                second: 0,
                waiting_ns: Some(5),
                running_ns: None,
                softirq_late_ns: Some(6),
            }],
            clock: None,
            cost: Some(Cost {
                packets: 2,
                recorder_ns: 600,
                writing_ns: 700,
                kernel: Some(KernelSample {
                    packets: 2,
                    runs: 22,
                    run_ns: 3000,
                    lasted_ns: 10_000,
                }),
                kernel_missing: None,
            }),
            events: vec![event, dropped],
        }
    }

    fn write(dir: &Path, name: Option<&str>) -> Recording {
        let mut recording = recording();
        let causes = BTreeMap::from([(6, Text::from("SOCKET_RCVBUFF"))]);
        let mut writer = EventWriter::create(dir, name, ("a", 1_000_000_000), causes).unwrap();
        for event in &recording.events {
            // The kernel's number.
            let event = Event { cause: event.cause.map(|_| DropCause(6)), ..*event };
            writer.push(&event, &recording.flows).unwrap();
        }
        writer.close().unwrap();
        recording.host = name.unwrap_or("a").into();
        write_document(dir, name, 1_000_000_000, &recording).unwrap();
        recording
    }

    #[test]
    fn a_recording_survives_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let written = write(dir.path(), None);
        assert_eq!(Recording::read(dir.path()).unwrap(), written);
        let dir = tempfile::tempdir().unwrap();
        let [b, a] = ["b", "a"].map(|name| write(dir.path(), Some(name)));
        assert_eq!(Recording::read_all(dir.path()).unwrap(), [a, b]);
    }

    #[test]
    fn a_link_at_its_place_is_replaced_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = dir.path().join("elsewhere");
        std::fs::write(&elsewhere, "years of work").unwrap();
        std::os::unix::fs::symlink(&elsewhere, dir.path().join("layers.json")).unwrap();
        let written = write(dir.path(), None);
        assert_eq!(Recording::read(dir.path()).unwrap(), written);
        assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "years of work");
    }

    #[test]
    fn a_recording_without_its_cost_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let written = write(dir.path(), None);
        let document = dir.path().join("layers.json");
        let text = std::fs::read_to_string(&document).unwrap();
        let mut old: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(old.as_object_mut().unwrap().remove("cost").is_some());
        std::fs::write(&document, old.to_string()).unwrap();
        let read = Recording::read(dir.path()).unwrap();
        assert_eq!(read, Recording { cost: None, ..written });
    }

    /// Without one of them, what passed in it would seem lost.
    #[test]
    fn more_pauses_than_a_recording_can_have_are_an_error() {
        let pause = |number: u64| Pause {
            from_ns: 1_200_000_000 + 2 * number,
            to_ns: 1_200_000_001 + 2 * number,
        };
        let written = |count: u64| {
            let dir = tempfile::tempdir().unwrap();
            let recording = Recording { pauses: (0..count).map(pause).collect(), ..recording() };
            recording.write(dir.path()).unwrap();
            (recording, Recording::read(dir.path()))
        };
        let (most, read) = written(1000);
        assert_eq!(read.unwrap(), most);
        let (_, read) = written(1001);
        let error = read.unwrap_err().to_string();
        let told = "layers.json: pauses: expected at most 1000, found 1001";
        assert!(error.ends_with(told), "{error}");
    }

    #[test]
    fn damage_is_reported_with_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let error = Recording::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("no recording") && error.contains("hint: "), "{error}");
        write(dir.path(), None);
        let table = dir.path().join("layers.parquet");
        let whole = std::fs::read(&table).unwrap();
        std::fs::write(&table, &whole[..whole.len() / 2]).unwrap();
        let error = Recording::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("layers.parquet") && error.contains("killed"), "{error}");
        std::fs::write(&table, whole).unwrap();
        let document = dir.path().join("layers.json");
        let text = std::fs::read_to_string(&document).unwrap();
        for (from, to, said) in [
            ("\"format\": 1", "\"format\": 2", "expected format 1, found 2"),
            ("10.0.0.2:5004", "10.0.0.2:5005", "layers.parquet: row 0: flow `udp 10.0.0.1:5000>"),
            ("\"host\"", "\"name\"", "unknown field `name`"),
        ] {
            std::fs::write(&document, text.replace(from, to)).unwrap();
            let error = Recording::read(dir.path()).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
