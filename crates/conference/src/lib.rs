//! A video call as a desktop conference of the 1990s made it: two programs send each other video, and each does
//! everything in one thread. It captures, encodes and sends by a non-blocking UDP socket, receives and decodes. A
//! CPU with too much to do starves all of it at once, which is what study S2 measured.
//!
//! The parts that decide are pure: [`camera`] (what is seen), [`codec`] (frames to bits and back), [`payload`] (bits in
//! RTP packets), [`sender`], [`receiver`] (what became of the frames) and [`schedule`] (when one is due). [`call`] turns
//! the loop, and opens the socket.

pub mod call;
pub mod camera;
pub mod codec;
pub mod payload;
pub mod receiver;
pub mod schedule;
pub mod sender;

pub use call::{CallJob, run, run_job};
