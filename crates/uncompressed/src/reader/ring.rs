//! The ring, as its reader shares it and its sender sees it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::arena::Arena;
use super::engine::Engine;
use super::meter::Meter;
use super::shared::Shared;
use super::{DEPTH_MAX, Error, FRAMES_MIN, Options, Source};
use crate::checksum;
use crate::geometry::Geometry;
use crate::store::{Header, Store, Trailer};
use crate::synth;

/// How many frames a ring has, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Frames in the ring.
    pub frames: u32,
    /// Frames that were requested (if in memory: that exist); more than `frames` if memory limits the ring.
    pub asked: u32,
    /// Its memory in bytes.
    pub bytes: u64,
}

/// What happened to the sender's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    /// It is the next one.
    New,
    /// The next one was not ready: it is the last one again.
    Repeated,
    /// There are no more frames, and the last one stays: the store has ended, or its reader has failed.
    Ended,
}

/// One frame, in the ring's memory.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Its bytes. With [`Source::Mapped`] they are the file's: direct access is safe only as long as the store is not
    /// written or truncated; having the kernel send them is always safe.
    pub bytes: &'a [u8],
    /// Its number in its sequence.
    pub number: u64,
    /// Its [`crate::checksum`].
    pub checksum: u64,
    /// True if it has been sent before because the next one was not ready.
    pub repeated: bool,
}

/// A ring of frames, as its sender sees it.
#[derive(Debug)]
pub struct Ring {
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
    header: Header,
    bound: Bound,
    /// The frames of a ring that is all memory and is sent repeatedly.
    cycle: Option<u64>,
    /// The frame that [`Self::show`] counts from; not 0 only in a ring that is all memory.
    first: u64,
    /// The frame that the sender has, counted on without end, and its contents.
    current: u64,
    trailer: Trailer,
    repeated: bool,
}

impl Ring {
    /// Opens the store at `path`, whose images must be `wanted` if that is given, and fills the ring. Returns when
    /// the ring is full or has all frames.
    ///
    /// # Errors
    /// If the store cannot be read, the ring has no room, or `stop` is set before it is full.
    ///
    /// # Panics
    /// If the depth is out of bounds.
    pub fn open(
        path: &Path,
        wanted: Option<&Geometry>,
        options: &Options,
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        let mut ring = Self::open_at(path, wanted, options, 0, stop)?;
        if ring.reader.is_some() {
            let full = u64::from(ring.bound.frames).min(ring.shared.total.unwrap_or(u64::MAX));
            ring.shared.wait_for(full, stop)?;
            ring.trailer = ring.shared.trailer(0);
        }
        Ok(ring)
    }

    /// Like [`Self::open`], but begins with the store's frame at index `first`, counted from 0 (if it is repeated,
    /// without end), and returns as soon as that frame is there: the others follow. A ring in memory is filled whole.
    ///
    /// # Errors
    /// As [`Self::open`]; and if the store ends before that frame.
    pub fn open_at(
        path: &Path,
        wanted: Option<&Geometry>,
        options: &Options,
        first: u64,
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        if options.shape.is_some_and(|shape| {
            shape.rate.is_zero() || shape.later.is_some_and(|(_, rate)| rate.is_zero())
        }) {
            return Err(Error::Shape);
        }
        let store = Store::open(path)?.with_frames()?;
        let store = match wanted {
            Some(wanted) => store.of(wanted)?,
            None => store,
        };
        let header = *store.header();
        let asked = match options.source {
            Source::Memory => options.frames.min(u32::try_from(header.frames).unwrap_or(u32::MAX)),
            Source::Direct | Source::Cached | Source::Mapped => options.frames,
        };
        let bound = Bound::of(&header, asked, options)?;
        if options.source == Source::Memory {
            return Ok(Self::load(&store, bound, options.repeat, stop)?.starting_at(first));
        }
        if !options.repeat && first >= header.frames {
            return Err(Error::Over { first, frames: header.frames });
        }
        let first = first % header.frames;
        let total = (!options.repeat).then_some(header.frames - first);
        let arena = match options.source {
            Source::Mapped => mapped(&store)?.rotated(first),
            Source::Direct | Source::Cached | Source::Memory => bound.reserve()?,
        };
        let shared = Shared::new(arena, bound.frames as usize, total);
        let mut ring = Self::of(shared, header, bound, None);
        let engine = Engine::new((store, first), Arc::clone(&ring.shared), options)?;
        let reader = std::thread::Builder::new().name("reader".to_owned());
        ring.reader = Some(reader.spawn(move || engine.run()).map_err(Error::Thread)?);
        ring.shared.wait_for(1, stop)?;
        ring.trailer = ring.shared.trailer(0);
        Ok(ring)
    }

    /// A ring of `frames` synthetic frames ([`synth`]) in memory, sent repeatedly.
    ///
    /// # Errors
    /// If the geometry has no room for the stamp ([`synth::fits`]), the memory has no room for a frame, or `stop` is
    /// set before all are drawn.
    pub fn synthetic(
        header: &Header,
        frames: u32,
        options: &Options,
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        if !synth::fits(&header.geometry) {
            return Err(Error::Stamp(header.geometry));
        }
        let bound = Bound::of(header, frames, options)?;
        let part = u16::try_from(header.part).unwrap_or(u16::MAX);
        let header = Header { frames: bound.frames.into(), ..*header };
        let bytes = header.geometry.frame_bytes();
        let fill = |index: u64, slot: &mut [u8]| {
            let number = header.first + index;
            synth::draw(&header.geometry, number, part, &mut slot[..bytes]);
            Ok(Trailer { number, checksum: checksum::of_frame(&slot[..bytes]) })
        };
        Self::filled(header, bound, options.repeat, (fill, stop))
    }

    fn load(store: &Store, bound: Bound, repeat: bool, stop: &AtomicBool) -> Result<Self, Error> {
        let fill = |index: u64, slot: &mut [u8]| Ok(store.read(index, slot)?);
        Self::filled(*store.header(), bound, repeat, (fill, stop))
    }

    /// A ring that is all memory.
    fn filled(
        header: Header,
        bound: Bound,
        repeat: bool,
        (fill, stop): (impl Fn(u64, &mut [u8]) -> Result<Trailer, Error>, &AtomicBool),
    ) -> Result<Self, Error> {
        let frames = u64::from(bound.frames);
        let shared = Shared::new(bound.reserve()?, bound.frames as usize, Some(frames));
        for index in 0..frames {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            // SAFETY: the arena is not shared yet, and each slot is taken once at a time.
            let trailer = fill(index, unsafe { shared.arena.slot(index).as_mut() })?;
            shared.counters.begun.store(index + 1, Ordering::Relaxed);
            shared.publish(index + 1, trailer);
        }
        Ok(Self::of(shared, header, bound, repeat.then_some(frames)))
    }

    fn of(shared: Shared, header: Header, bound: Bound, cycle: Option<u64>) -> Self {
        let (trailer, shared) = (shared.trailer(0), Arc::new(shared));
        let (reader, current, first, repeated) = (None, 0, 0, false);
        Self { shared, reader, header, bound, cycle, first, current, trailer, repeated }
    }

    /// This ring in memory, with [`Self::show`] counting from frame `first` of its cycle.
    #[must_use]
    pub const fn starting_at(mut self, first: u64) -> Self {
        self.first = first;
        self
    }

    /// The format of the frames; for a ring that reads a store, the store's header.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// How many frames the ring has.
    pub const fn bound(&self) -> Bound {
        self.bound
    }

    /// A meter of this ring.
    pub fn meter(&self) -> Meter {
        let frame_bytes = self.header.geometry.frame_bytes() as u64;
        let in_memory = self.reader.is_none();
        let counters = Arc::clone(&self.shared.counters);
        let failure = Arc::clone(&self.shared.failure);
        Meter::new((counters, failure), self.bound.frames.into(), frame_bytes, in_memory)
    }

    /// Moves on to the next frame without waiting.
    pub fn advance(&mut self) -> Advance {
        let counters = &self.shared.counters;
        let handed = counters.handed.load(Ordering::Relaxed);
        let next = if handed == 0 { 0 } else { self.current + 1 };
        if let Some(cycle) = self.cycle {
            counters.handed.store(handed + 1, Ordering::Relaxed);
            self.current = next % cycle;
            self.trailer = self.shared.trailer(self.current);
            return Advance::New;
        }
        if next < counters.filled.load(Ordering::Acquire) {
            counters.handed.store(handed + 1, Ordering::Relaxed);
            self.take(next);
            return Advance::New;
        }
        if self.shared.total == Some(next) || self.is_drained(next) {
            return Advance::Ended;
        }
        counters.handed.store(handed + 1, Ordering::Relaxed);
        counters.repeats.store(counters.repeats.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.repeated = true;
        Advance::Repeated
    }

    /// Moves on to the frame at `position`, counted from the frame that the ring was opened at (0), without waiting:
    /// for senders whose time determines the frame. Frames before it are skipped. If it is not there yet, the newest
    /// one that is there is sent in its place and counts as repeated. Positions must not decrease.
    pub fn show(&mut self, position: u64) -> Advance {
        let counters = Arc::clone(&self.shared.counters);
        let handed = counters.handed.load(Ordering::Relaxed);
        let position = self.first + position;
        let is_over = self.shared.total.is_some_and(|total| position >= total);
        if let Some(cycle) = self.cycle {
            counters.handed.store(handed + 1, Ordering::Relaxed);
            self.current = position % cycle;
            self.trailer = self.shared.trailer(self.current);
            return Advance::New;
        }
        let filled = counters.filled.load(Ordering::Acquire);
        if is_over || (position >= filled && self.is_drained(position)) {
            return Advance::Ended;
        }
        counters.handed.store(handed + 1, Ordering::Relaxed);
        let newest = position.min(filled.saturating_sub(1));
        if newest > self.current || handed == 0 {
            self.take(newest.max(self.current));
        }
        if position < filled {
            self.repeated = false;
            return Advance::New;
        }
        let repeats = counters.repeats.load(Ordering::Relaxed);
        counters.repeats.store(repeats + 1, Ordering::Relaxed);
        self.repeated = true;
        Advance::Repeated
    }

    /// Moves on to the frame at `position`, or the newest that is there, without handing it to the sender: for a standby.
    pub fn pass(&mut self, position: u64) {
        if self.cycle.is_some() {
            return;
        }
        let filled = self.shared.counters.filled.load(Ordering::Acquire);
        let newest = (self.first + position).min(filled.saturating_sub(1));
        if newest > self.current {
            self.take(newest);
        }
    }

    /// True if all slots are filled, or all frames there are; or the reader has failed, so that no more will come.
    pub fn is_full(&self) -> bool {
        let Some(reader) = &self.reader else { return true };
        let released = self.shared.counters.released.load(Ordering::Relaxed);
        let slots = self.shared.slots as u64;
        let full = (released + slots).min(self.shared.total.unwrap_or(u64::MAX));
        self.shared.counters.filled.load(Ordering::Acquire) >= full || reader.is_finished()
    }

    /// True if the reader has failed and frame `next` will never arrive.
    fn is_drained(&self, next: u64) -> bool {
        // What it read before it failed was published before: under the lock all of it is visible.
        let failure = self.shared.failure();
        failure.is_some() && next >= self.shared.counters.filled.load(Ordering::Acquire)
    }

    fn take(&mut self, next: u64) {
        self.current = next;
        self.trailer = self.shared.trailer(next);
        self.repeated = false;
        // The previous slot must be read completely before it is overwritten.
        self.shared.counters.released.store(next, Ordering::Release);
        if let Some(reader) = &self.reader {
            reader.thread().unpark();
        }
    }

    /// The frame at which the last [`Self::advance`] stopped; the first one before any call.
    pub fn current(&self) -> Frame<'_> {
        // SAFETY: the slot was filled before it was published, because `open` and `filled` waited for the first and
        // `advance` saw the others. It is not released before the next `advance`, which needs `&mut self`, so it is not
        // written while the frame is borrowed. For a mapped store it is the file's own page: a store must not be
        // written while it is being sent.
        let slot = unsafe { self.shared.arena.slot(self.current).as_ref() };
        Frame {
            bytes: &slot[..self.header.geometry.frame_bytes()],
            number: self.trailer.number,
            checksum: self.trailer.checksum,
            repeated: self.repeated,
        }
    }

    /// Moves on to the next frame and returns it; returns the last one again, marked, if the next one is not ready yet,
    /// and `None` after the end.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        (self.advance() != Advance::Ended).then(|| self.current())
    }

    /// Waits until the next frame is ready, for callers that read as fast as they can. Fails if the reader has ended,
    /// or `stop` is set before.
    pub fn wait(&self, stop: &AtomicBool) -> Result<(), Error> {
        let handed = self.shared.counters.handed.load(Ordering::Relaxed);
        let next = if handed == 0 { 0 } else { self.current + 1 };
        if self.cycle.is_some() || self.shared.total.is_some_and(|total| next >= total) {
            return Ok(());
        }
        self.shared.wait_for(next + 1, stop)
    }

    /// Reports that the current frame is no longer available, because its mapped store was truncated.
    pub fn lose(&self) {
        self.shared.fail(Error::Gone { number: self.trailer.number });
    }

    /// Why the reader ended early, or the frames are no longer available; `None` while it works. What is in the ring is
    /// still sent, then the ring ends.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure().as_ref().map(ToString::to_string)
    }
}

/// All frames of a store, in place.
fn mapped(store: &Store) -> Result<Arena, Error> {
    let header = store.header();
    let first = header.slot_offset(0) as usize;
    Arena::of_file(store.file(), first, header.slot_bytes(), header.frames).map_err(|cause| {
        Error::Map { path: store.path().display().to_string(), frames: header.frames, cause }
    })
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(reader) = self.reader.take() {
            reader.thread().unpark();
            // It has reported its failure, if any; a panic was a bug that printed itself.
            let _ = reader.join();
        }
    }
}

impl Bound {
    fn of(header: &Header, asked: u32, options: &Options) -> Result<Self, Error> {
        assert!((1..=DEPTH_MAX).contains(&options.depth), "a depth within its bounds");
        let (slot, memory) = (header.slot_bytes(), options.memory.get());
        let frames = u64::from(asked).min(memory / slot as u64);
        let least = if options.source == Source::Memory { 1 } else { FRAMES_MIN };
        let frames = u32::try_from(frames).expect("not above what was asked for");
        if frames < least {
            return Err(Error::Small { frames: frames.into(), slot, memory });
        }
        Ok(Self { frames, asked, bytes: u64::from(frames) * slot as u64 })
    }

    /// The memory.
    fn reserve(&self) -> Result<Arena, Error> {
        let (bytes, frames) = (self.bytes as usize, self.frames as usize);
        Arena::new(bytes / frames, frames).map_err(|cause| Error::Memory { bytes, cause })
    }
}
