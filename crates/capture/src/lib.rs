//! Packet captures: written and read as pcapng.

pub mod file;
