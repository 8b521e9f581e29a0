//! What the payload formats share.

/// Largest frame, in bytes, that is taken or put together.
pub const FRAME_MAX: usize = 8 << 20;

/// Why a frame's bytes cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// There is nothing that the format can carry.
    #[error("no {0} in the frame")]
    Empty(&'static str),
    /// The frame is larger than [`FRAME_MAX`].
    #[error("a frame of {0} bytes, more than {FRAME_MAX}")]
    TooLarge(usize),
    /// The bytes are not what the codec makes.
    #[error("byte {at} of the frame: {problem}")]
    Malformed {
        /// Where, from the frame's start.
        at: usize,
        /// What is wrong.
        problem: &'static str,
    },
}

/// What became of a frame's payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembled {
    /// The elementary stream's bytes that could be recovered.
    pub bytes: Vec<u8>,
    /// Whether a decoder needs nothing that precedes the frame.
    pub key: bool,
    /// False if some payload was malformed, or bytes are missing.
    pub whole: bool,
    /// Whether a decoder can make a frame of it, if need be by concealing what is missing.
    pub usable: bool,
}

/// Places of start codes (`00 00 01`) in a byte stream, each with the byte after it; one at the very
/// end, without such a byte, is none.
pub(crate) fn start_codes(bytes: &[u8]) -> impl Iterator<Item = (usize, u8)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at + 3 < bytes.len() {
            let here = at;
            // The third byte says how far the next one can be.
            match bytes[at + 2] {
                0 => at += 1,
                1 if bytes[at] == 0 && bytes[at + 1] == 0 => {
                    at += 3;
                    return Some((here, bytes[here + 3]));
                }
                _ => at += 3,
            }
        }
        None
    })
}
