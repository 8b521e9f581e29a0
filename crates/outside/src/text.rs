//! Text that is safe to print on a terminal.

use std::borrow::Cow;

/// `text` with every control character written out: `\x1b` instead of an escape that a terminal
/// would obey. Line feeds and tabs stay. Characters that reorder the text around them (Unicode's
/// bidirectional embeddings, overrides and isolates) are written out too, as `\u{202e}`.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match u32::from(character) {
            _ if !is_unsafe(character) => safe.push(character),
            code @ ..=0xff => safe.push_str(&format!("\\x{code:02x}")),
            code => safe.push_str(&format!("\\u{{{code:x}}}")),
        }
    }
    Cow::Owned(safe)
}

fn is_unsafe(character: char) -> bool {
    let reorders = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (character.is_control() && !matches!(character, '\n' | '\t')) || reorders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_written_out_and_other_text_is_kept() {
        let kept = "p99 4 µs — ok\n\tsecond line";
        assert!(matches!(printable(kept), Cow::Borrowed(text) if text == kept));
        let title = "\x1b]0;owned\x07\x1b[2Jharmless\r\u{9b}31m\u{202e}";
        assert_eq!(printable(title), "\\x1b]0;owned\\x07\\x1b[2Jharmless\\x0d\\x9b31m\\u{202e}");
    }
}
