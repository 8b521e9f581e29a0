//! Our frame mark as a header extension: RTP has a frame's time, but not its number at the source. A peer of another
//! make does not negotiate it, and its frames are counted instead.

use std::time::Instant;

use str0m::rtp::{Extension, ExtensionSerializer, ExtensionValues};
use suiro_payload::FrameMark;
use suiro_units::{Duration, Time};

/// What the extension is called in SDP.
const URI: &str = "urn:x-suiro:frame-mark";

/// What packets within a frame have in place of a mark.
const WITHIN: u8 = 0;

/// A mark on its way out, and when its frame was captured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaving {
    pub mark: FrameMark,
    pub captured: Instant,
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
        let waited =
            values.abs_send_time.map(|now| now.saturating_duration_since(leaving.captured));
        let mark = match waited {
            Some(waited) => leaving.mark.leaving(Time::ZERO + Duration::from(waited), Time::ZERO),
            None => leaving.mark,
        };
        let bytes = mark.write();
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
