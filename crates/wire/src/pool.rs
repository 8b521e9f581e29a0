//! Memory for the frames in a link: slots of one size, allocated in chunks, up to a bound.

/// Slots allocated at once.
const CHUNK_SLOTS: usize = 256;
const CACHE_LINE_BYTES: usize = 64;
/// Most memory for one link's frames. 10 Gbit/s × 200 ms fills it; a packet that finds it full is dropped and counted with
/// [`Cause::Limit`](suiro_link::Cause::Limit).
pub(crate) const POOL_BYTES_MAX: usize = 256 << 20;

/// A frame's place in the pool.
pub(crate) type Slot = u32;

/// Frames, each with a value `M` of the caller.
#[derive(Debug)]
pub(crate) struct Pool<M> {
    chunks: Vec<Box<[u8]>>,
    entries: Vec<Entry<M>>,
    free: Vec<Slot>,
    slot_bytes: usize,
    slots_max: usize,
}

#[derive(Debug)]
struct Entry<M> {
    length: u32,
    /// Present while the slot is taken.
    meta: Option<M>,
}

impl<M> Pool<M> {
    /// For frames of up to `frame_bytes`.
    pub(crate) fn new(frame_bytes: usize) -> Self {
        // Whole cache lines, so that adjacent slots do not share one.
        let slot_bytes = frame_bytes.next_multiple_of(CACHE_LINE_BYTES).max(CACHE_LINE_BYTES);
        let slots_max = POOL_BYTES_MAX / slot_bytes;
        Self { chunks: Vec::new(), entries: Vec::new(), free: Vec::new(), slot_bytes, slots_max }
    }

    /// Copies a frame in; `None` if the pool is full or the frame too long.
    pub(crate) fn put(&mut self, frame: &[u8], meta: M) -> Option<Slot> {
        if frame.len() > self.slot_bytes || (self.free.is_empty() && !self.grow()) {
            return None;
        }
        let slot = self.free.pop()?;
        let start = self.start(slot);
        self.chunks[slot as usize / CHUNK_SLOTS][start..start + frame.len()].copy_from_slice(frame);
        self.entries[slot as usize] = Entry { length: frame.len() as u32, meta: Some(meta) };
        Some(slot)
    }

    fn start(&self, slot: Slot) -> usize {
        slot as usize % CHUNK_SLOTS * self.slot_bytes
    }

    fn grow(&mut self) -> bool {
        let have = self.entries.len();
        if have + CHUNK_SLOTS > self.slots_max {
            return false;
        }
        self.chunks.push(vec![0; CHUNK_SLOTS * self.slot_bytes].into_boxed_slice());
        self.entries.extend((0..CHUNK_SLOTS).map(|_| Entry { length: 0, meta: None }));
        // The lowest slot is taken first.
        self.free.extend((have..have + CHUNK_SLOTS).rev().map(|slot| slot as Slot));
        true
    }

    /// The frame in a slot.
    pub(crate) fn frame(&self, slot: Slot) -> &[u8] {
        let (start, length) = (self.start(slot), self.entries[slot as usize].length as usize);
        &self.chunks[slot as usize / CHUNK_SLOTS][start..start + length]
    }

    /// Reads a byte of each cache line of a frame. All lines then come from memory at the same time; the kernel, which
    /// copies the frame from its beginning to its end, would wait for one after the other.
    pub(crate) fn warm(&self, slot: Slot) {
        for line in self.frame(slot).chunks(CACHE_LINE_BYTES) {
            std::hint::black_box(line[0]);
        }
    }

    /// The frame in a slot, mutable.
    pub(crate) fn frame_mut(&mut self, slot: Slot) -> &mut [u8] {
        let (start, length) = (self.start(slot), self.entries[slot as usize].length as usize);
        &mut self.chunks[slot as usize / CHUNK_SLOTS][start..start + length]
    }

    /// The value stored with the frame; `None` if the slot is free.
    pub(crate) fn meta(&self, slot: Slot) -> Option<&M> {
        self.entries.get(slot as usize)?.meta.as_ref()
    }

    /// Frees a slot; `None` if it was free.
    pub(crate) fn take(&mut self, slot: Slot) -> Option<M> {
        let meta = self.entries.get_mut(slot as usize)?.meta.take()?;
        self.free.push(slot);
        Some(meta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_stay_what_they_were() {
        let mut pool = Pool::new(1514);
        let frame = |i: usize| vec![i as u8; 14 + i % 1500];
        let slots: Vec<_> = (0..1000).map(|i| pool.put(&frame(i), i).unwrap()).collect();
        for &slot in slots.iter().skip(1).step_by(2) {
            pool.take(slot).unwrap();
        }
        for i in 1000..1500 {
            pool.put(&frame(i), i).unwrap();
        }
        for (i, &slot) in slots.iter().enumerate().step_by(2) {
            assert_eq!(pool.frame(slot), frame(i));
            assert_eq!(pool.meta(slot), Some(&i));
        }
        assert_eq!(pool.take(slots[0]), Some(0));
        assert_eq!(pool.take(slots[0]), None, "it is free already");
        assert_eq!(pool.chunks.len(), 4, "freed slots are used again");
    }

    #[test]
    fn it_has_a_bound() {
        let mut pool = Pool::new(9014);
        assert!(pool.put(&[0; 9100], ()).is_none(), "longer than a slot");
        let taken = std::iter::from_fn(|| pool.put(&[0; 14], ())).count();
        let bytes = taken * pool.slot_bytes;
        assert!(bytes <= POOL_BYTES_MAX && bytes > POOL_BYTES_MAX / 100 * 98, "{bytes}");
    }
}
