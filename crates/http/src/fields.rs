//! Structured field values (RFC 8941), as far as CMCD and CMSD need them; pure, and bounded: they come from anybody.
//!
//! A library that reads them strictly (crate sfv) refuses a whole header for one key with a capital letter, which an example
//! of CTA-5004 has (`com.example-myNumericKey`), or for a fourth decimal. A log of what players say must not lose the rest.

/// The longest text that is read, in bytes.
pub const TEXT_MAX: usize = 8192;
/// The most members of a dictionary or a list, and the most items of an inner list.
const MEMBERS_MAX: usize = 64;
/// The most parameters of an item.
const PARAMETERS_MAX: usize = 32;
/// The longest token or key, in bytes. A string may be as long as the text: players report addresses (CTA-5004-B §5).
const WORD_MAX: usize = 1024;
/// Digits of an integer (§3.3.1).
const DIGITS_MAX: usize = 15;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// An integer, or a date.
    Integer(i64),
    /// A decimal number.
    Decimal(f64),
    /// A string, a token, or a byte sequence as it is written.
    Text(String),
    /// A Boolean; a key without a value is true.
    Boolean(bool),
}

/// A member of a dictionary or a list. Of an inner list, its first item.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its key; empty in a list.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// Its parameters, in order.
    pub parameters: Vec<(String, Value)>,
}

impl Value {
    /// As a whole number, decimals rounded.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            // Of at most twelve digits before the point.
            Self::Decimal(number) => Some(number.round() as i64),
            _ => None,
        }
    }

    /// As a number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Decimal(number) => Some(*number),
            _ => None,
        }
    }

    /// As text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// As a Boolean.
    pub fn boolean(&self) -> Option<bool> {
        match self {
            Self::Boolean(value) => Some(*value),
            _ => None,
        }
    }
}

/// Reads a dictionary (§4.2.2).
///
/// # Errors
/// What is wrong, and at which byte.
pub fn dictionary(text: &str) -> Result<Vec<Member>, String> {
    Reader::new(text)?.members(|reader| {
        let key = reader.key()?;
        let value = match reader.take(b'=') {
            true => reader.item_or_list()?,
            false => Value::Boolean(true),
        };
        Ok(Member { key, value, parameters: reader.parameters()? })
    })
}

/// Reads a list (§4.2.1).
///
/// # Errors
/// What is wrong, and at which byte.
pub fn list(text: &str) -> Result<Vec<Member>, String> {
    Reader::new(text)?.members(|reader| {
        let value = reader.item_or_list()?;
        Ok(Member { key: String::new(), value, parameters: reader.parameters()? })
    })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Result<Self, String> {
        match text.len() {
            0..=TEXT_MAX => Ok(Self { bytes: text.as_bytes(), at: 0 }),
            _ => Err(format!("more than {TEXT_MAX} bytes")),
        }
    }

    fn members(
        mut self,
        mut one: impl FnMut(&mut Self) -> Result<Member, String>,
    ) -> Result<Vec<Member>, String> {
        let mut members = Vec::new();
        self.space();
        while self.peek().is_some() {
            if members.len() == MEMBERS_MAX {
                return Err(format!("more than {MEMBERS_MAX} members"));
            }
            members.push(one(&mut self)?);
            self.space();
            match self.next() {
                None => break,
                Some(b',') => self.space(),
                Some(_) => return Err(self.wrong("expected a comma")),
            }
            if self.peek().is_none() {
                return Err(self.wrong("a comma at the end"));
            }
        }
        Ok(members)
    }

    fn wrong(&self, what: &str) -> String {
        format!("byte {}: {what}", self.at)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    fn space(&mut self) {
        while self.take(b' ') || self.take(b'\t') {}
    }

    /// Bytes for as long as they fit.
    fn word(&mut self, fits: impl Fn(u8) -> bool) -> Result<String, String> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let word: Vec<u8> = rest.iter().copied().take_while(|byte| fits(*byte)).collect();
        if word.len() > WORD_MAX {
            return Err(self.wrong("a word that is too long"));
        }
        self.at += word.len();
        String::from_utf8(word).map_err(|_| self.wrong("not ASCII"))
    }

    /// §4.2.3.3. Keys that players made up begin with a capital here and there.
    fn key(&mut self) -> Result<String, String> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'*') {
            return Err(self.wrong("expected a key"));
        }
        self.word(|byte| byte.is_ascii_alphanumeric() || b"_-.*".contains(&byte))
    }

    fn parameters(&mut self) -> Result<Vec<(String, Value)>, String> {
        let mut found = Vec::new();
        while self.take(b';') {
            self.space();
            if found.len() == PARAMETERS_MAX {
                return Err(self.wrong("too many parameters"));
            }
            let key = self.key()?;
            let value = if self.take(b'=') { self.item()? } else { Value::Boolean(true) };
            found.push((key, value));
        }
        Ok(found)
    }

    fn item_or_list(&mut self) -> Result<Value, String> {
        if !self.take(b'(') {
            return self.item();
        }
        let mut first = None;
        for _ in 0..=MEMBERS_MAX {
            self.space();
            if self.take(b')') {
                return first.ok_or_else(|| self.wrong("an empty list"));
            }
            let item = self.item()?;
            self.parameters()?;
            first = first.or(Some(item));
        }
        Err(self.wrong("a list that is too long"))
    }

    /// §4.2.3.1.
    fn item(&mut self) -> Result<Value, String> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'@') => {
                self.at += 1;
                self.number()
            }
            Some(b'?') => {
                self.at += 1;
                match self.next() {
                    Some(b'1') => Ok(Value::Boolean(true)),
                    Some(b'0') => Ok(Value::Boolean(false)),
                    _ => Err(self.wrong("expected ?0 or ?1")),
                }
            }
            Some(b':') => {
                self.at += 1;
                let bytes = self.word(|byte| byte != b':')?;
                self.take(b':').then_some(Value::Text(bytes)).ok_or_else(|| self.wrong("no colon"))
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'*' => {
                let fits =
                    |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte);
                self.word(fits).map(Value::Text)
            }
            _ => Err(self.wrong("expected a value")),
        }
    }

    fn string(&mut self) -> Result<Value, String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.next() {
                Some(b'"') => return Ok(Value::Text(text)),
                Some(b'\\') => match self.next() {
                    Some(byte @ (b'"' | b'\\')) => text.push(char::from(byte)),
                    _ => return Err(self.wrong("a backslash before neither a quote nor another")),
                },
                Some(byte @ 0x20..=0x7e) => text.push(char::from(byte)),
                Some(_) => return Err(self.wrong("a character that no string has")),
                None => return Err(self.wrong("a string without its end")),
            }
        }
    }

    /// §4.2.4.
    fn number(&mut self) -> Result<Value, String> {
        let sign = if self.take(b'-') { -1 } else { 1 };
        let whole = self.word(|byte| byte.is_ascii_digit())?;
        if whole.is_empty() || whole.len() > DIGITS_MAX {
            return Err(self.wrong("not a number of at most 15 digits"));
        }
        if !self.take(b'.') {
            let number: i64 = whole.parse().map_err(|_| self.wrong("not a number"))?;
            return Ok(Value::Integer(sign * number));
        }
        let fraction = self.word(|byte| byte.is_ascii_digit())?;
        if fraction.is_empty() || whole.len() + fraction.len() > DIGITS_MAX {
            return Err(self.wrong("not a decimal number"));
        }
        let number: f64 =
            format!("{whole}.{fraction}").parse().map_err(|_| self.wrong("not a number"))?;
        Ok(Value::Decimal(sign as f64 * number))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_dictionary_by_hand() {
        let found =
            dictionary("br=3200,bs, pr=1.08 ,sid=\"a\\\"b\",ot=v,x=?0,d=-4,n=:aGk=:").unwrap();
        let found: Vec<_> = found.into_iter().map(|m| (m.key, m.value)).collect();
        let text = |text: &str| Value::Text(text.to_owned());
        let expected = [
            ("br", Value::Integer(3200)),
            ("bs", Value::Boolean(true)),
            ("pr", Value::Decimal(1.08)),
            ("sid", text("a\"b")),
            ("ot", text("v")),
            ("x", Value::Boolean(false)),
            ("d", Value::Integer(-4)),
            ("n", text("aGk=")),
        ];
        assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value)));
    }

    #[test]
    fn lists_and_parameters_by_hand() {
        let found = list("\"edge\";etp=96;rtt=8, origin;mb").unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].parameters[0], ("etp".to_owned(), Value::Integer(96)));
        assert_eq!(found[1].parameters, [("mb".to_owned(), Value::Boolean(true))]);
        // CMCD 2 has inner lists, of which the first item counts.
        let found = dictionary("br=(2010;v 128;a),nor=(\"a.m4s\" \"b.m4s\")").unwrap();
        assert_eq!(found[0].value, Value::Integer(2010));
        assert_eq!(found[1].value.text(), Some("a.m4s"));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, why) in [
            ("br=", "byte 3: expected a value"),
            ("br=1,", "byte 5: a comma at the end"),
            ("=1", "byte 0: expected a key"),
            ("br=1 2", "byte 6: expected a comma"),
            ("sid=\"x", "byte 6: a string without its end"),
            ("br=1234567890123456", "byte 19: not a number of at most 15 digits"),
            ("br=()", "byte 5: an empty list"),
            ("br=(1", "byte 5: expected a value"),
            ("sid=\"\u{e9}\"", "byte 6: a character that no string has"),
        ] {
            assert_eq!(dictionary(text).unwrap_err(), why, "{text}");
        }
        assert!(dictionary(&"a,".repeat(5000)).unwrap_err().contains("8192"));
        assert!(dictionary(&"a,".repeat(100)).unwrap_err().contains("64 members"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z0-9=;,() \"\\\\.?:@-]{0,80}", other in "\\PC{0,80}") {
            for text in [&text, &other] {
                let _ = dictionary(text);
                let _ = list(text);
            }
        }
    }
}
