//! The thread that keeps a ring full: it reads a slot in pieces, several at a time. For a store that is mapped, a piece
//! is read by having the kernel populate its pages.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};
use suiro_units::{Duration, Time};

use super::shared::Shared;
use super::{Error, Options, READ_BYTES, Shaper, Source};
use crate::clock;
use crate::store::Store;

/// Makes the kernel read and map the pages of a range (madvise(2), Linux 5.14).
const POPULATE_READ: i32 = libc::MADV_POPULATE_READ;
/// What may happen to a store while it is being read.
const CUT: &str = "the file ends before it should";
/// The error of a mapping in that case, and for a failing disk.
const GONE: &str = "the file ends before it should, or its disk failed";
/// A kernel that cannot populate pages in advance.
const OLD: &str =
    "cannot be sent in place: that needs Linux 5.14\nhint: use --from cached to copy them";

/// The reader of one ring.
pub(super) struct Engine {
    store: Store,
    source: Source,
    file: std::fs::File,
    uring: IoUring,
    shared: Arc<Shared>,
    shaper: Option<Shaper>,
    requests: Vec<Request>,
    /// Requests that are not in use, by index.
    idle: Vec<usize>,
    /// Requests that the kernel is processing.
    under_way: usize,
    /// The next slot to read, counted on without end, and how much of it has been requested.
    next: (u64, usize),
    /// Number of missing pieces of each slot in the ring.
    missing: Vec<usize>,
    /// Slots that are complete.
    filled: u64,
    /// The index in the store of slot 0's frame.
    first: u64,
}

/// A read of a piece of a slot.
#[derive(Debug, Clone, Copy, Default)]
struct Request {
    slot: u64,
    bytes: usize,
    /// When the emulated storage answers; `None` if no storage is emulated.
    due: Option<Time>,
    /// The kernel has answered, but the emulated storage has not.
    held: bool,
}

impl Engine {
    /// A reader of a store from the frame at an index on, which has not started.
    pub fn new(
        (store, first): (Store, u64),
        shared: Arc<Shared>,
        options: &Options,
    ) -> Result<Self, Error> {
        let file = open(&store, options.source)?;
        let depth = options.depth as usize;
        Ok(Self {
            uring: IoUring::new(options.depth).map_err(Error::Uring)?,
            missing: vec![0; shared.slots],
            requests: vec![Request::default(); depth],
            idle: (0..depth).collect(),
            shaper: options.shape.map(Shaper::new),
            under_way: 0,
            next: (0, 0),
            filled: 0,
            first,
            store,
            source: options.source,
            file,
            shared,
        })
    }

    /// Reads until the ring ends, its sender is gone, or a read fails.
    pub fn run(mut self) {
        let outcome = self.keep_full();
        // Whatever happened, the kernel writes into the ring as long as it has requests.
        while self.under_way > 0 && interrupted(self.uring.submit_and_wait(1)).is_ok() {
            self.under_way -= self.uring.completion().count();
        }
        if self.under_way > 0 {
            // There is no way to find out when the kernel is done: the memory must stay.
            std::mem::forget(Arc::clone(&self.shared));
        }
        if let Err(error) = outcome {
            self.shared.fail(error);
        }
    }

    fn keep_full(&mut self) -> Result<(), Error> {
        while !self.shared.stop.load(Ordering::Acquire) {
            self.ask()?;
            if self.idle.len() < self.requests.len() {
                self.wait()?;
                self.collect()?;
                self.deliver()?;
            } else if self.shared.total == Some(self.filled) {
                return Ok(());
            } else {
                // The ring is full: the sender wakes us when it is done with a frame.
                std::thread::park();
            }
        }
        Ok(())
    }

    /// Requests as many pieces as may be in flight.
    fn ask(&mut self) -> Result<(), Error> {
        while !self.idle.is_empty() && self.has_room() {
            let slot_bytes = self.shared.arena.slot_bytes();
            let (slot, begin) = self.next;
            if begin == 0 {
                let pieces = slot_bytes.div_ceil(READ_BYTES);
                let place = self.place(slot);
                self.missing[place] = pieces;
                self.shared.counters.begun.store(slot + 1, Ordering::Relaxed);
            }
            let bytes = READ_BYTES.min(slot_bytes - begin);
            self.read(slot, begin, bytes)?;
            let end = begin + bytes;
            self.next = if end == slot_bytes { (slot + 1, 0) } else { (slot, end) };
        }
        Ok(())
    }

    /// True if the next slot may be written: the sender is done with its contents.
    fn has_room(&self) -> bool {
        let (slot, _) = self.next;
        let released = self.shared.counters.released.load(Ordering::Acquire);
        let exists = self.shared.total.is_none_or(|total| slot < total);
        exists && slot < released + self.shared.slots as u64
    }

    fn read(&mut self, slot: u64, begin: usize, bytes: usize) -> Result<(), Error> {
        let request = self.idle.pop().expect("asked only while a request is idle");
        let due = self.shaper.as_mut().map(|shaper| shaper.due(clock::monotonic(), bytes as u64));
        self.requests[request] = Request { slot, bytes, due, held: false };
        let at = self.store.header().slot_offset(self.index(slot)) + begin as u64;
        // SAFETY: `begin` lies within the slot.
        let to = unsafe { self.shared.arena.slot(slot).cast::<u8>().add(begin) }.as_ptr();
        let read = match self.source {
            Source::Mapped => {
                // Starts at the beginning of the page, which may be larger than that of a store.
                let before = to.addr() % page_bytes();
                let (from, length) = (to.wrapping_sub(before), (bytes + before) as i64);
                opcode::Madvise::new(from.cast(), length, POPULATE_READ).build()
            }
            Source::Direct | Source::Cached | Source::Memory => {
                opcode::Read::new(Fd(self.file.as_raw_fd()), to, bytes as u32).offset(at).build()
            }
        };
        let read = read.user_data(request as u64);
        // SAFETY: the piece is ours until it is published, or only read; the arena lives until `run` has seen all
        // requests end, and so does the file.
        let pushed = unsafe { self.uring.submission().push(&read) };
        pushed.expect("there are as many entries as requests");
        self.under_way += 1;
        Ok(())
    }

    /// Waits until a request completes, in the kernel or in the emulated storage.
    fn wait(&mut self) -> Result<(), Error> {
        let due = self.requests.iter().filter(|request| request.held).filter_map(|r| r.due).min();
        let Some(due) = due else {
            let waited = self.uring.submit_and_wait(usize::from(self.under_way > 0));
            return interrupted(waited);
        };
        let left = due.saturating_since(clock::monotonic());
        if self.under_way == 0 {
            std::thread::park_timeout(left.into());
            return Ok(());
        }
        let timeout = timespec(left);
        let arguments = SubmitArgs::new().timespec(&timeout);
        interrupted(self.uring.submitter().submit_with_args(1, &arguments))
    }

    /// Collects the kernel's completions.
    fn collect(&mut self) -> Result<(), Error> {
        let answers: Vec<_> =
            self.uring.completion().map(|c| (c.user_data() as usize, c.result())).collect();
        self.under_way -= answers.len();
        for (request, result) in answers {
            let Request { slot, bytes, .. } = self.requests[request];
            let failed = |because: String| self.failed(slot, because);
            let is_mapped = self.source == Source::Mapped;
            match (usize::try_from(result), -result) {
                (Ok(_), _) if is_mapped => {}
                (Ok(read), _) if read == bytes => {}
                (Ok(_), _) => return Err(failed(CUT.to_owned())),
                (Err(_), libc::EFAULT) if is_mapped => return Err(failed(GONE.to_owned())),
                (Err(_), libc::EINVAL) if is_mapped => return Err(failed(OLD.to_owned())),
                (Err(_), errno) => {
                    return Err(failed(io::Error::from_raw_os_error(errno).to_string()));
                }
            }
            self.requests[request].held = true;
        }
        Ok(())
    }

    /// Delivers what the storage has answered, and publishes the slots that are complete, in order.
    fn deliver(&mut self) -> Result<(), Error> {
        let now = self.shaper.is_some().then(clock::monotonic);
        for place in 0..self.requests.len() {
            let Request { slot, bytes, due, held } = self.requests[place];
            if !held || due > now {
                continue;
            }
            self.requests[place].held = false;
            self.idle.push(place);
            let read = &self.shared.counters.read_bytes;
            read.store(read.load(Ordering::Relaxed) + bytes as u64, Ordering::Relaxed);
            let slot = self.place(slot);
            self.missing[slot] -= 1;
        }
        while self.filled < self.next.0 && self.missing[self.place(self.filled)] == 0 {
            self.publish()?;
        }
        Ok(())
    }

    fn publish(&mut self) -> Result<(), Error> {
        let index = self.index(self.filled);
        let trailer = if self.source == Source::Mapped {
            self.store.read_trailer(index)?
        } else {
            // SAFETY: all its pieces were read, and only this thread accesses it before it is published.
            let slot = unsafe { self.shared.arena.slot(self.filled).as_ref() };
            self.store.trailer(index, slot)?
        };
        self.filled += 1;
        self.shared.publish(self.filled, trailer);
        Ok(())
    }

    /// The index of a slot in the ring.
    fn place(&self, slot: u64) -> usize {
        self.shared.place(slot)
    }

    /// The index of a slot's frame in the store.
    fn index(&self, slot: u64) -> u64 {
        (self.first + slot) % self.store.header().frames
    }

    fn failed(&self, slot: u64, because: String) -> Error {
        let path = self.store.path().display().to_string();
        Error::Read { path, index: self.index(slot), because }
    }
}

/// Opens a store's file again, to be read as `source` requires.
fn open(store: &Store, source: Source) -> Result<std::fs::File, Error> {
    let mut open = OpenOptions::new();
    open.read(true);
    if source == Source::Direct {
        open.custom_flags(libc::O_DIRECT);
    }
    open.open(store.path()).map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) if source == Source::Direct => {
            Error::Direct { path: store.path().display().to_string(), cause: error }
        }
        _ => store.failed("cannot open")(error).into(),
    })
}

/// A wait that ended early is not an error: what has completed is handled, and the rest is waited for again.
fn interrupted(waited: io::Result<usize>) -> Result<(), Error> {
    match waited.map_err(|error| (error.raw_os_error(), error)) {
        Ok(_) | Err((Some(libc::ETIME | libc::EINTR), _)) => Ok(()),
        Err((_, error)) => Err(Error::Uring(error)),
    }
}

/// Size of a memory page in bytes.
fn page_bytes() -> usize {
    // SAFETY: it reads a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("the system has pages")
}

fn timespec(span: Duration) -> Timespec {
    let ns = span.as_nanos();
    Timespec::new().sec(ns / 1_000_000_000).nsec((ns % 1_000_000_000) as u32)
}
