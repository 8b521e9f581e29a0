//! The WebSocket protocol (RFC 6455), as far as a server needs it that only sends. Pure.

use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Longest message that a client may send, in bytes.
pub const MESSAGE_MAX: usize = 64 << 10;
/// RFC 6455 §1.3.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Longest key, in characters: 16 bytes in base64.
const KEY_CHARS: usize = 24;

/// What a frame is (RFC 6455 §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Part of a message.
    Message,
    /// The connection ends.
    Close,
    /// It must be answered.
    Ping,
    /// An answer.
    Pong,
}

/// A frame from a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: Kind,
    /// What it carries.
    pub payload: Vec<u8>,
    /// Its length, in bytes.
    pub bytes: usize,
}

/// The value of `Sec-WebSocket-Accept` for a key (RFC 6455 §4.2.2); `None` if it is no key.
pub fn accept(key: &str) -> Option<String> {
    let is_key = key.len() == KEY_CHARS && STANDARD.decode(key).is_ok_and(|key| key.len() == 16);
    let joined = format!("{key}{GUID}");
    let hash = || digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, joined.as_bytes());
    is_key.then(|| STANDARD.encode(hash()))
}

/// The first frame of what came from a client; `None` if it is not complete yet.
///
/// # Errors
/// Why it is no frame of a client, in words: the connection must be closed.
pub fn parse(bytes: &[u8]) -> Result<Option<Frame>, &'static str> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    let kind = match first & 0x0f {
        0..=2 => Kind::Message,
        8 => Kind::Close,
        9 => Kind::Ping,
        10 => Kind::Pong,
        _ => return Err("a frame of an unknown kind"),
    };
    if first & 0x70 != 0 {
        return Err("a frame of an extension that was not agreed on");
    }
    if second & 0x80 == 0 {
        return Err("a frame of a client without a mask");
    }
    let (length, rest) = match (second & 0x7f, rest) {
        (126, [a, b, rest @ ..]) => (usize::from(u16::from_be_bytes([*a, *b])), rest),
        (127, [0, 0, 0, 0, a, b, c, d, rest @ ..]) => {
            (u32::from_be_bytes([*a, *b, *c, *d]) as usize, rest)
        }
        (127, rest) if rest.len() >= 8 => return Err("a frame that is too long"),
        (126 | 127, _) => return Ok(None),
        (short, rest) => (usize::from(short), rest),
    };
    if length > MESSAGE_MAX {
        return Err("a frame that is too long");
    }
    if kind != Kind::Message && (length > 125 || first & 0x80 == 0) {
        return Err("a control frame that is too long or has parts");
    }
    let Some((mask, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    let Some(payload) = rest.get(..length) else { return Ok(None) };
    let payload = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    Ok(Some(Frame { kind, payload, bytes: bytes.len() - rest.len() + length }))
}

/// A frame of a server: a whole message of text, or a control frame.
pub fn frame(kind: Kind, payload: &[u8]) -> Vec<u8> {
    let first = match kind {
        Kind::Message => 0x81,
        Kind::Close => 0x88,
        Kind::Ping => 0x89,
        Kind::Pong => 0x8a,
    };
    let mut bytes = vec![first];
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(length @ 0..126), _) => bytes.push(length),
        (_, Ok(length)) => {
            bytes.push(126);
            bytes.extend(length.to_be_bytes());
        }
        _ => {
            bytes.push(127);
            bytes.extend((payload.len() as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(payload);
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A server's frame as a client sends it: with a mask.
    fn masked(kind: Kind, payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
        let mut bytes = frame(kind, payload);
        bytes[1] |= 0x80;
        let at = bytes.len() - payload.len();
        bytes[at..].iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        bytes.splice(at..at, mask);
        bytes
    }

    #[test]
    fn a_key_is_answered_as_in_rfc_6455() {
        let answer = accept("dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(answer.as_deref(), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        assert_eq!(accept("short"), None);
    }

    #[test]
    fn the_frame_of_rfc_6455_is_read() {
        let hello = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        let read = parse(&hello).unwrap().unwrap();
        assert_eq!((read.kind, &read.payload[..], read.bytes), (Kind::Message, &b"Hello"[..], 11));
        assert_eq!(frame(Kind::Message, b"Hello"), [&[0x81, 5][..], b"Hello"].concat());
    }

    #[test]
    fn what_no_client_may_send_is_refused() {
        assert!(parse(&[0x81, 0x05]).unwrap_err().contains("without a mask"));
        assert!(parse(&[0x83, 0x80]).unwrap_err().contains("unknown kind"));
        assert!(parse(&[0xc1, 0x80]).unwrap_err().contains("extension"));
        assert!(parse(&[0x89, 0xfe, 0, 200]).unwrap_err().contains("control frame"));
        assert!(parse(&[0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0]).unwrap_err().contains("too long"));
        assert!(parse(&[0x81, 0xff, 0, 0, 0, 0, 0, 2, 0, 0]).unwrap_err().contains("too long"));
    }

    proptest! {
        #[test]
        fn a_frame_is_read_when_it_is_complete(payload: Vec<u8>, mask: [u8; 4], more: Vec<u8>) {
            let mut bytes = masked(Kind::Message, &payload, mask);
            let length = bytes.len();
            prop_assert_eq!(parse(&bytes[..length - 1]), Ok(None));
            bytes.extend(more);
            let read = parse(&bytes).unwrap().unwrap();
            prop_assert_eq!((read.payload, read.bytes), (payload, length));
        }
    }
}
