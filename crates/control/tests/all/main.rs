//! The tests of control, of one program.

mod common;
mod loopback;
mod schemas;
mod subscription;
