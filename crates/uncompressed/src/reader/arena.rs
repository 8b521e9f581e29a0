//! The memory of a ring: slots of whole pages, side by side.

use std::fs::File;
use std::io;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

/// Slots of the same size in one mapping, aligned to pages: memory of its own, or a store as the page cache
/// has it.
///
/// It hands out raw slots; who may touch which, and when, is settled by the ring's counters.
#[derive(Debug)]
pub struct Arena {
    memory: NonNull<u8>,
    bytes: usize,
    /// Where the first slot begins.
    first: usize,
    slot_bytes: usize,
    /// Slots of the mapping.
    slots: u64,
}

// SAFETY: it is memory and numbers. What is written through `slot` is ordered by its users.
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
        let arena = Self::of(memory, bytes, (0, slot_bytes, slots as u64));
        // Huge pages spare the sender page walks; a kernel without them says no, and that is fine.
        // SAFETY: the advice is about the mapping just made, and changes none of its contents.
        let _ = unsafe { madvise(memory, bytes, Advice::LinuxHugepage) };
        Ok(arena)
    }

    /// Shows `slots` slots of `slot_bytes` of `file`, from byte `first` on, which is the beginning of a page.
    /// They may only be read. Where the file is cut later, the kernel refuses to read them for us (EFAULT),
    /// and who touches them directly dies of SIGBUS.
    pub fn of_file(file: &File, first: usize, slot_bytes: usize, slots: u64) -> io::Result<Self> {
        let all = usize::try_from(slots).ok().and_then(|slots| slot_bytes.checked_mul(slots));
        let bytes = all.filter(|all| *all > 0).and_then(|all| all.checked_add(first));
        let bytes = bytes.ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping, that is only read, takes nothing from anybody.
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
        Self { memory, bytes, first, slot_bytes, slots }
    }

    /// Bytes of a slot.
    pub const fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Slot `index`, counted on and on through the mapping.
    pub fn slot(&self, index: u64) -> NonNull<[u8]> {
        let at = self.first + (index % self.slots) as usize * self.slot_bytes;
        // SAFETY: the slot lies within the mapping, as `index` is taken modulo the slots.
        let begin = unsafe { self.memory.add(at) };
        NonNull::slice_from_raw_parts(begin, self.slot_bytes)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody who could use it is left. It can only fail if it
        // is no mapping.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}
