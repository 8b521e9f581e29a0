//! The tests of control, of one program.

mod common;
mod handover;
mod loopback;
mod schemas;
mod subscription;
