//! Rows on their way to disk: collected on the carrier's thread, written on another.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread::JoinHandle;

use suiro_record::tables::LinkRow;
use suiro_record::words::{LinkCause, Verdict};
use suiro_record::{RecordError, Text, Writer};
use suiro_units::{Direction, Time, to_i64};

use crate::flows::FlowId;
use crate::frame::Flow;

/// Rows that are handed over at once.
const BATCH_ROWS: usize = 1024;
/// Batches that may wait for the disk: half a million rows, about 60 MB.
const BATCHES_MAX: usize = 512;

/// A [`LinkRow`] without text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketRow {
    pub arrived: Time,
    pub direction: Direction,
    /// The side that it came from.
    pub from: u16,
    pub number: u64,
    pub flow: FlowId,
    pub size: u32,
    pub payload: Option<u32>,
    pub queue_bytes: u64,
    pub queue_packets: u64,
    pub verdict: Verdict,
    pub cause: Option<LinkCause>,
    pub ecn_marked: bool,
    pub dequeued: Option<Time>,
    pub scheduled: Option<Time>,
    pub departed: Option<Time>,
    /// `None` if the medium is not shared.
    pub attempts: Option<u8>,
}

/// Rows, and the flows that appear in them for the first time, in the order of their numbers.
#[derive(Debug, Default)]
struct Batch {
    flows: Vec<Flow>,
    rows: Vec<PacketRow>,
}

/// The carrier's side, which never waits.
#[derive(Debug)]
pub(crate) struct Recorder {
    batch: Batch,
    full: SyncSender<Batch>,
    spare: Receiver<Vec<PacketRow>>,
    writer: JoinHandle<Result<(), RecordError>>,
    /// Rows that were lost because the queue to the disk was full.
    lost: u64,
}

impl Recorder {
    /// Writes `DIR/link.NAME.parquet`; the rows of packets from a side name the link that `links` has for it.
    pub(crate) fn create(dir: &Path, name: &str, links: &[&str]) -> Result<Self, RecordError> {
        let file = Writer::create_of(dir, name)?;
        let (full, batches) = sync_channel(BATCHES_MAX);
        let (back, spare) = channel();
        let links: Vec<Text> = links.iter().map(|link| Text::from(*link)).collect();
        let writer = std::thread::Builder::new()
            .name("link-records".into())
            .spawn(move || {
                yield_to_others();
                write(file, &links, &batches, |rows| drop(back.send(rows)))
            })
            .map_err(|cause| RecordError::Io { path: dir.to_owned(), cause })?;
        Ok(Self { batch: Batch::default(), full, spare, writer, lost: 0 })
    }

    /// A flow's number is the count of flows before it.
    pub(crate) fn flow(&mut self, flow: Flow) {
        self.batch.flows.push(flow);
    }

    pub(crate) fn row(&mut self, row: PacketRow) {
        if self.batch.rows.len() == BATCH_ROWS {
            self.hand_over();
        }
        self.batch.rows.push(row);
    }

    fn hand_over(&mut self) {
        let mut rows = self.spare.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH_ROWS));
        rows.clear();
        let batch = Batch { flows: Vec::new(), rows };
        let full = std::mem::replace(&mut self.batch, batch);
        // If the writer has ended, joining it gives the reason.
        let (TrySendError::Full(mut refused) | TrySendError::Disconnected(mut refused)) =
            match self.full.try_send(full) {
                Ok(()) => return,
                Err(error) => error,
            };
        self.lost += refused.rows.len() as u64;
        refused.rows.clear();
        // The names must not be lost: later rows refer to them.
        self.batch = refused;
    }

    /// Waits until everything is on disk; returns how many rows were lost.
    pub(crate) fn finish(mut self) -> Result<u64, RecordError> {
        let last = std::mem::take(&mut self.batch);
        // If the writer has ended, the reason is read below.
        let _ = self.full.send(last);
        drop(self.full);
        let written = self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        written.map(|()| self.lost)
    }
}

/// The disk can wait, packets cannot.
fn yield_to_others() {
    // SAFETY: plain numbers; on Linux 0 is the calling thread. Failing costs nothing.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
}

fn write(
    mut file: Writer<LinkRow>,
    links: &[Text],
    batches: &Receiver<Batch>,
    give_back: impl Fn(Vec<PacketRow>),
) -> Result<(), RecordError> {
    let mut flows: Vec<Text> = Vec::new();
    for batch in batches {
        flows.extend(batch.flows.iter().map(|flow| Text::from(flow.to_string())));
        for row in &batch.rows {
            file.push(row.named(links, &flows))?;
        }
        give_back(batch.rows);
    }
    file.close()
}

impl PacketRow {
    fn named(&self, links: &[Text], flows: &[Text]) -> LinkRow {
        LinkRow {
            t_ns: self.arrived.as_nanos_i64(),
            link: Arc::clone(&links[usize::from(self.from)]),
            direction: self.direction,
            packet: to_i64(self.number),
            flow: Arc::clone(&flows[self.flow as usize]),
            size_bytes: self.size.into(),
            payload_bytes: self.payload.map(i64::from),
            queue_bytes: to_i64(self.queue_bytes),
            queue_packets: to_i64(self.queue_packets),
            verdict: self.verdict,
            cause: self.cause,
            ecn_marked: self.ecn_marked,
            dequeued_ns: self.dequeued.map(Time::as_nanos_i64),
            scheduled_ns: self.scheduled.map(Time::as_nanos_i64),
            departed_ns: self.departed.map(Time::as_nanos_i64),
            attempts: self.attempts.map(u64::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use suiro_record::Reader;

    use super::*;

    fn row(i: u64) -> PacketRow {
        PacketRow {
            arrived: Time::from_nanos(i),
            direction: if i.is_multiple_of(2) { Direction::Down } else { Direction::Up },
            from: (i % 2) as u16,
            number: i / 2,
            flow: (i % 3) as FlowId,
            size: 1500,
            payload: (!i.is_multiple_of(3)).then_some(1448),
            queue_bytes: i,
            queue_packets: 1,
            verdict: Verdict::Delivered,
            cause: None,
            ecn_marked: false,
            dequeued: None,
            scheduled: Some(Time::from_nanos(i + 5)),
            departed: Some(Time::from_nanos(i + 6)),
            attempts: (i % 2 == 1).then_some(3),
        }
    }

    #[test]
    fn rows_reach_the_disk_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::create(dir.path(), "hub", &["access", "other"]).unwrap();
        for _ in 0..3 {
            recorder.flow(Flow::Unreadable);
        }
        let count = BATCH_ROWS as u64 * 3 + 5;
        (0..count).for_each(|i| recorder.row(row(i)));
        assert_eq!(recorder.finish().unwrap(), 0);
        let rows = Reader::read_all::<LinkRow>(dir.path()).unwrap();
        assert_eq!(rows.len() as u64, count);
        for (i, row) in (0..).zip(&rows) {
            assert_eq!((row.t_ns, row.packet, row.departed_ns), (i, i / 2, Some(i + 6)));
            let link = ["access", "other"][i as usize % 2];
            assert_eq!((&*row.link, &*row.flow), (link, "ip unreadable"));
            assert_eq!(row.direction, Direction::BOTH[i as usize % 2]);
            assert_eq!(row.attempts, (i % 2 == 1).then_some(3));
        }
    }

    #[test]
    fn a_slow_disk_loses_rows_and_counts_them() {
        // A writer that has not started yet is the slowest possible.
        let (full, batches) = sync_channel::<Batch>(1);
        let (back, spare) = channel();
        let dir = tempfile::tempdir().unwrap();
        let file = Writer::create_of(dir.path(), "slow").unwrap();
        let (go, wait) = channel::<()>();
        let writer = std::thread::spawn(move || {
            wait.recv().unwrap();
            write(file, &["slow".into(), "slow".into()], &batches, |rows| drop(back.send(rows)))
        });
        let mut recorder = Recorder { batch: Batch::default(), full, spare, writer, lost: 0 };
        (0..3).for_each(|_| recorder.flow(Flow::Unreadable));
        (0..BATCH_ROWS as u64).for_each(|i| recorder.row(row(i)));
        recorder.row(row(0));
        recorder.flow(Flow::Other);
        (0..BATCH_ROWS as u64 * 2).for_each(|i| recorder.row(row(i)));
        recorder.row(PacketRow { flow: 3, ..row(0) });
        go.send(()).unwrap();
        let lost = recorder.finish().unwrap();
        let rows = Reader::read_all::<LinkRow>(dir.path()).unwrap();
        assert_eq!(lost + rows.len() as u64, BATCH_ROWS as u64 * 3 + 2);
        assert!(lost >= BATCH_ROWS as u64, "{lost}");
        assert_eq!(&*rows.last().unwrap().flow, "other flows", "names outlive lost rows");
    }
}
