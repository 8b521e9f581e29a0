//! How a server agrees to a WebSocket (RFC 6455 §4.2.2); tungstenite speaks it then. Pure.

use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// RFC 6455 §1.3.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Longest key, in characters: 16 bytes in base64.
const KEY_CHARS: usize = 24;

/// The value of `Sec-WebSocket-Accept` for a key; `None` if it is no key.
pub fn accept(key: &str) -> Option<String> {
    let is_key = key.len() == KEY_CHARS && STANDARD.decode(key).is_ok_and(|key| key.len() == 16);
    let joined = format!("{key}{GUID}");
    let hash = || digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, joined.as_bytes());
    is_key.then(|| STANDARD.encode(hash()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_answered_as_in_rfc_6455() {
        let answer = accept("dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(answer.as_deref(), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        assert_eq!(accept("short"), None);
    }
}
