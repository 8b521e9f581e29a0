//! Frames that are not encoded, streamed to and from ffmpeg through pipes: nothing is held but
//! the frame at hand.

mod plain;
mod process;
mod source;
mod y4m;

pub use plain::{PlainFormat, PlainPictures};
pub(crate) use process::{Decoder, Encoder, Pieces};
pub(crate) use source::SourcePictures;
pub(crate) use y4m::Header;
