//! The memory of a ring: slots of whole pages, contiguous.

use std::fs::File;
use std::io;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

/// Slots of equal size in one mapping, aligned to pages: either anonymous memory, or a store as the page cache holds
/// it.
///
/// It returns raw slots; the ring's counters determine who may access which slot, and when.
#[derive(Debug)]
pub struct Arena {
    memory: NonNull<u8>,
    bytes: usize,
    /// The offset of the first slot.
    first: usize,
    slot_bytes: usize,
    /// Slots in the mapping.
    slots: u64,
    /// The place in the mapping of slot 0.
    rotation: u64,
}

// SAFETY: it is memory and numbers. Its users order the writes through `slot`.
unsafe impl Send for Arena {}
// SAFETY: as above; `&Arena` alone reads and writes nothing.
unsafe impl Sync for Arena {}

impl Arena {
    /// Reserves memory for `slots` slots of `slot_bytes`. It is zeroed, and allocated by the system when it is first
    /// accessed.
    pub fn new(slot_bytes: usize, slots: usize) -> io::Result<Self> {
        let bytes = slot_bytes.checked_mul(slots).filter(|bytes| *bytes > 0);
        let bytes = bytes.ok_or(io::ErrorKind::InvalidInput)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping does not affect existing memory.
        let memory =
            unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE) }?;
        let arena = Self::of(memory, bytes, (0, slot_bytes, slots as u64));
        // Huge pages save the sender page walks; a kernel without them refuses, which is harmless.
        // SAFETY: the advice is about the mapping just made, and changes none of its contents.
        let _ = unsafe { madvise(memory, bytes, Advice::LinuxHugepage) };
        Ok(arena)
    }

    /// Maps `slots` slots of `slot_bytes` of `file`, from byte `first` on, which must be the beginning of a page. They
    /// are read-only. If the file is truncated later, system calls that read them fail with EFAULT, and direct access
    /// raises SIGBUS.
    pub fn of_file(file: &File, first: usize, slot_bytes: usize, slots: u64) -> io::Result<Self> {
        let all = usize::try_from(slots).ok().and_then(|slots| slot_bytes.checked_mul(slots));
        let bytes = all.filter(|all| *all > 0).and_then(|all| all.checked_add(first));
        let bytes = bytes.ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new read-only mapping does not affect existing memory.
        let memory = unsafe {
            mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file, 0)
        }?;
        Ok(Self::of(memory, bytes, (first, slot_bytes, slots)))
    }

    fn of(
        memory: *mut std::ffi::c_void,
        bytes: usize,
        (first, slot_bytes, slots): (usize, usize, u64),
    ) -> Self {
        let memory = NonNull::new(memory.cast()).expect("a mapping is not at address 0");
        Self { memory, bytes, first, slot_bytes, slots, rotation: 0 }
    }

    /// The same memory, with slot 0 at place `rotation`, taken modulo the slots.
    pub const fn rotated(mut self, rotation: u64) -> Self {
        self.rotation = rotation % self.slots;
        self
    }

    /// Bytes of a slot.
    pub const fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Slot `index`, counted on without end and taken modulo the slots.
    pub fn slot(&self, index: u64) -> NonNull<[u8]> {
        let place = (index % self.slots + self.rotation) % self.slots;
        let at = self.first + place as usize * self.slot_bytes;
        // SAFETY: the slot lies within the mapping, as `index` is taken modulo the slots.
        let begin = unsafe { self.memory.add(at) };
        NonNull::slice_from_raw_parts(begin, self.slot_bytes)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing uses it any more. Unmapping can only fail if it is not a mapping.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}
