//! Video sources, encoding ladders and packages; the only crate that runs ffmpeg.
//!
//! [`MediaSpec`] says what is wanted, [`prepare`] makes it (or finds it in the cache) and
//! [`Package`] is the result: segments of every rung with an index, and functions that play them
//! for ever.
//!
//! ffmpeg decodes, scales and encodes. The segments are cut and written here ([`mp4`], [`ts`]),
//! because a laboratory needs them exact: boundaries on the frame, loops of equal length to the
//! sample, parameter sets in every key frame, one elementary stream in both containers.

mod aac;
pub mod cache;
mod checksum;
mod child;
mod cut;
mod encode;
mod error;
pub mod ffmpeg;
mod h264;
pub mod live;
pub mod mosaic;
pub mod mp4;
pub mod package;
mod prepare;
pub mod program;
pub mod quality;
pub mod quantised;
mod raw;
pub mod screen;
pub mod sound;
mod source;
pub mod spec;
pub mod stamp;
pub mod ts;

pub use aac::AudioConfig;
pub use cache::Progress;
pub use error::{MediaError, ParseError};
pub use ffmpeg::Ffmpeg;
pub use h264::{ParameterSets, byte_stream};
pub use package::{Container, Package};
pub use prepare::{prepare, prepare_with};
pub use raw::{PlainFormat, PlainPictures};
pub use spec::MediaSpec;
