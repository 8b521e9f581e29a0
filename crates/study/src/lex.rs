//! A formula as words, numbers and signs.

use std::ops::Range;

use suiro_strict::{Refusal, Span};

use crate::unit::{PLAIN, UNITS, Unit};

/// A piece of a formula.
#[derive(Debug, Clone, PartialEq)]
pub enum Token<'t> {
    /// A name or a keyword.
    Word(&'t str),
    /// A name in quotes: never a keyword.
    Quoted(&'t str),
    /// A number and its unit.
    Number(f64, Unit),
    /// `<`, `<=`, `(`, …
    Sign(&'static str),
    /// The end.
    End,
}

/// Longer ones first.
const SIGNS: [&str; 16] =
    ["<=", ">=", "!=", "<", ">", "=", "(", ")", "[", "]", ",", ":", "+", "-", "*", "/"];

/// The pieces of `text` and where they stand; the last is the end.
pub fn tokens(text: &str) -> Result<Vec<(Token<'_>, Range<usize>)>, Refusal<Span>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else {
            tokens.push((Token::End, text.len()..text.len()));
            return Ok(tokens);
        };
        let (token, length) = if first.is_ascii_digit() {
            number(rest).map_err(|(length, what)| Refusal::new(at..at + length, what))?
        } else if first.is_ascii_alphabetic() || first == '_' {
            let length = word(rest);
            (Token::Word(&rest[..length]), length)
        } else if first == '\'' {
            let quoted = rest[1..].find('\'').map(|end| &rest[1..=end]);
            let quoted = quoted.ok_or_else(|| {
                Refusal::new(at..text.len(), "a name in quotes that does not end").expected("`'`")
            })?;
            (Token::Quoted(quoted), quoted.len() + 2)
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            let message = format!("`{}` is not part of the language", first.escape_debug());
            let hint = "a label with characters other than letters, digits and `_` must be in \
            quotes: 'dash-ll'";
            return Err(Refusal::new(at..at + first.len_utf8(), message).hint(hint));
        };
        tokens.push((token, at..at + length));
        at += length;
    }
}

fn word(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// A number, and the unit that follows it, if one does.
fn number(text: &str) -> Result<(Token<'_>, usize), (usize, String)> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let value: f64 = text[..digits]
        .parse()
        .map_err(|_| (digits, format!("`{}` is not a number", &text[..digits])))?;
    let after = text[digits..].trim_start();
    let gap = text.len() - digits - after.len();
    // The longest name first: `ms` is not `m` and `s`, `kbit/s` no `kbit` over something.
    let ends = |length: usize| {
        !after[length..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
    };
    let named = |unit: &&Unit| after.starts_with(unit.name) && ends(unit.name.len());
    match UNITS.iter().filter(named).max_by_key(|unit| unit.name.len()) {
        Some(unit) => {
            Ok((Token::Number(value * unit.factor, *unit), digits + gap + unit.name.len()))
        }
        None => Ok((Token::Number(value, PLAIN), digits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Token<'_>> {
        tokens(text).unwrap().into_iter().map(|(token, _)| token).collect()
    }

    #[test]
    fn numbers_take_their_unit() {
        assert!(matches!(kinds("1.5 kbit/s")[0], Token::Number(1500.0, u) if u.name == "kbit/s"));
        assert!(matches!(kinds("15 %")[0], Token::Number(_, u) if u.name == "%"));
        assert_eq!(kinds("2 * x")[0], Token::Number(2.0, PLAIN));
        assert_eq!(kinds("2 some")[1], Token::Word("some"));
    }

    #[test]
    fn names_in_quotes_may_hold_anything() {
        assert_eq!(kinds("['2 Mbit/s']")[1], Token::Quoted("2 Mbit/s"));
        assert!(tokens("'never").is_err());
        assert!(tokens("a ? b").is_err());
    }
}
