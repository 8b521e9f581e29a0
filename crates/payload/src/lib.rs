//! Video frames in RTP packets, for every transport that has them: payload formats ([`Codec`]), what a
//! sender of ours says of a frame ([`FrameMark`]), and packets put together to frames again
//! ([`Assembler`], [`Numbering`]). Pure; nothing here knows how packets travel.

mod assembler;
mod codec;
mod format;
pub mod h264;
mod mark;
pub mod mpeg2;
mod numbering;
pub mod sequence;

pub use assembler::{Assembler, Piece, Received};
pub use codec::Codec;
pub use format::{Assembled, FRAME_MAX, PayloadError};
pub use mark::{Base, FrameMark};
pub use numbering::Numbering;

use format::start_codes;
