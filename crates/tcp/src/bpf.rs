//! What all BPF programs that suiro loads have in common.

use libbpf_rs::{ObjectBuilder, OpenObject};

/// A compiled program. An ELF file is read in place, so its headers must be aligned.
#[repr(align(8))]
pub(crate) struct Aligned<T: ?Sized>(pub T);

/// Reads a compiled program; nothing is loaded into the kernel yet.
pub(crate) fn open(program: &'static Aligned<[u8]>) -> libbpf_rs::Result<OpenObject> {
    // What libbpf prints on standard error is in its errors too, except for the verifier's log.
    libbpf_rs::set_print(None);
    ObjectBuilder::default().open_memory(&program.0)
}
