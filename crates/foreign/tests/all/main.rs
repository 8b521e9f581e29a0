//! What other programs recorded, made here with a known cause, must be explained by it or by nothing.

mod captures;
mod logs;
mod made;
mod statistics;
mod tcp;

use proptest::prelude::*;
use suiro_foreign::{Source, SourceError, explain};

fn alone(name: &str, content: &[u8]) -> Result<suiro_foreign::Account, SourceError> {
    explain(&[Source { name, content }])
}

#[test]
fn what_is_none_of_the_kinds_is_refused_with_what_was_expected() {
    for (content, expected) in [
        (&b""[..], "x: expected a capture"),
        (b"hello", "a log of ffmpeg"),
        (b"\x1f\x8b\x08", "hint: decompress it first: gunzip"),
        (b"{\"a\": 1}", "this JSON is none of them"),
        (b"{\"a\": ", "x: not JSON: EOF"),
        (b"[]", "this JSON is none of them"),
    ] {
        let error = alone("x", content).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_damaged_capture_is_refused_with_the_place() {
    let mut content = made::capture(&[]);
    content[4] = 3;
    assert!(alone("x", &content).unwrap_err().to_string().starts_with("x: at byte "));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn nothing_makes_it_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        cut in 0usize..20_000,
        flip in proptest::collection::vec((0usize..20_000, any::<u8>()), 0..20),
    ) {
        let _ = alone("x", &bytes);
        for content in made::samples() {
            let mut content = content.to_vec();
            content.truncate(cut);
            for (at, byte) in &flip {
                if let Some(it) = content.get_mut(*at) {
                    *it ^= byte;
                }
            }
            let _ = alone("x", &content);
        }
    }
}
