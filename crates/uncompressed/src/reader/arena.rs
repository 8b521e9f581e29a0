//! The memory of a ring: slots of whole pages, side by side.

use std::io;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Slots of the same size in one mapping, aligned to pages.
///
/// It hands out raw slots; who may touch which, and when, is settled by the ring's counters.
#[derive(Debug)]
pub struct Arena {
    memory: NonNull<u8>,
    slot_bytes: usize,
    slots: usize,
}

// SAFETY: it is memory and two numbers. What is written through `slot` is ordered by its users.
unsafe impl Send for Arena {}
// SAFETY: as above; `&Arena` alone reads and writes nothing.
unsafe impl Sync for Arena {}

impl Arena {
    /// Reserves memory for `slots` slots of `slot_bytes`. It is zero, and had from the system when it
    /// is first touched.
    pub fn new(slot_bytes: usize, slots: usize) -> io::Result<Self> {
        let bytes = slot_bytes.checked_mul(slots).filter(|bytes| *bytes > 0);
        let bytes = bytes.ok_or(io::ErrorKind::InvalidInput)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping takes nothing from anybody.
        let memory =
            unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE) }?;
        let memory: NonNull<u8> =
            NonNull::new(memory.cast()).expect("a mapping is not at address 0");
        // Huge pages spare the sender page walks; a kernel without them says no, and that is fine.
        // SAFETY: the advice is about the mapping just made, and changes none of its contents.
        let _ = unsafe { madvise(memory.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
        Ok(Self { memory, slot_bytes, slots })
    }

    /// Number of slots.
    pub const fn slots(&self) -> usize {
        self.slots
    }

    /// Bytes of a slot.
    pub const fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Slot `index`, counted on and on through the ring.
    pub fn slot(&self, index: u64) -> NonNull<[u8]> {
        let at = (index % self.slots as u64) as usize * self.slot_bytes;
        // SAFETY: the slot lies within the mapping, as `index` is taken modulo the slots.
        let begin = unsafe { self.memory.add(at) };
        NonNull::slice_from_raw_parts(begin, self.slot_bytes)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let bytes = self.slot_bytes * self.slots;
        // SAFETY: the mapping is ours, and nobody who could use it is left. It can only fail if it
        // is no mapping.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), bytes) };
    }
}
