//! The tests of the stream server, of one program.

mod bench;
mod blocked;
mod gstreamer;
mod stream;
mod timing;
