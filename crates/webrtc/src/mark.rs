//! Our frame mark as a header extension: RTP has a frame's time, but not its number at the source. A peer of another
//! make does not negotiate it, and its frames are counted instead.

use std::sync::OnceLock;
use std::time::Instant;

use str0m::rtp::{Extension, ExtensionSerializer, ExtensionValues};
use suiro_payload::FrameMark;
use suiro_units::{Duration, Time};

/// What the extension is called in SDP.
const URI: &str = "urn:x-suiro:frame-mark";

/// What packets within a frame have in place of a mark.
const WITHIN: u8 = 0;

/// A mark on its way out, and when its frame was captured.
#[derive(Debug)]
pub(super) struct Leaving {
    mark: FrameMark,
    captured: Instant,
    /// As it left. A packet that is sent again has the same: the session keeps it with its values.
    left: OnceLock<FrameMark>,
}

impl Leaving {
    /// Of a packet that was not sent yet.
    pub fn new(mark: FrameMark, captured: Instant) -> Self {
        Self { mark, captured, left: OnceLock::new() }
    }

    /// The mark of a packet that leaves at `now`.
    fn at(&self, now: Option<Instant>) -> FrameMark {
        *self.left.get_or_init(|| match now {
            Some(now) => {
                let waited = Duration::from(now.saturating_duration_since(self.captured));
                self.mark.leaving(Time::ZERO + waited, Time::ZERO)
            }
            None => self.mark,
        })
    }
}

/// A mark that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Came(pub FrameMark);

/// The extension, for a session's map.
pub(super) fn extension() -> Extension {
    Extension::with_serializer(URI, Serializer)
}

#[derive(Debug)]
struct Serializer;

impl ExtensionSerializer for Serializer {
    fn write_to(&self, buffer: &mut [u8], values: &ExtensionValues) -> usize {
        let Some(leaving) = values.user_values.get::<Leaving>() else {
            // RFC 8285 §4.2: in the one-byte form a value has at least one byte.
            buffer[0] = WITHIN;
            return 1;
        };
        // The session sets the time of sending just before it writes the header.
        let bytes = leaving.at(values.abs_send_time).write();
        buffer[..bytes.len()].copy_from_slice(&bytes);
        bytes.len()
    }

    fn parse_value(&self, buffer: &[u8], values: &mut ExtensionValues) -> bool {
        let Some(mark) = FrameMark::read(buffer) else { return false };
        values.user_values.set(Came(mark));
        true
    }

    fn is_video(&self) -> bool {
        true
    }

    fn is_audio(&self) -> bool {
        false
    }
}
