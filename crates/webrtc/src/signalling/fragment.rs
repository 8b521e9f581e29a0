//! Candidates that come one by one: `application/trickle-ice-sdpfrag` (RFC 8840).

use crate::peer::CANDIDATES_MAX;

/// Longest fragment that is read, in bytes.
pub const BYTES_MAX: usize = 16 << 10;

/// What a fragment says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fragment {
    /// The user name fragment of the ICE session that it belongs to.
    pub ufrag: Option<String>,
    /// Its password.
    pub password: Option<String>,
    /// The candidates, as SDP writes them: `candidate:…`.
    pub candidates: Vec<String>,
    /// No more will come.
    pub ends: bool,
}

/// Why a text is no fragment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FragmentError {
    /// It is too long.
    #[error("a fragment of {0} bytes, more than {BYTES_MAX}")]
    TooLong(usize),
    /// A line has not the form of SDP.
    #[error("line {line}: expected `a=…` or `m=…`, found `{found}`")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// Its beginning.
        found: String,
    },
    /// There are too many candidates.
    #[error("more than {CANDIDATES_MAX} candidates")]
    TooMany,
    /// It says nothing.
    #[error("neither credentials nor candidates nor their end")]
    Empty,
}

impl Fragment {
    /// Reads a fragment. Attributes that it does not know are passed over (RFC 8866 §5.13).
    ///
    /// # Errors
    /// [`FragmentError`].
    pub fn parse(text: &str) -> Result<Self, FragmentError> {
        if text.len() > BYTES_MAX {
            return Err(FragmentError::TooLong(text.len()));
        }
        let mut fragment = Self::default();
        for (index, line) in text.lines().enumerate() {
            fragment.take(index + 1, line.trim_end())?;
        }
        if fragment == Self::default() {
            return Err(FragmentError::Empty);
        }
        Ok(fragment)
    }

    fn take(&mut self, line: usize, text: &str) -> Result<(), FragmentError> {
        if text.is_empty() || text.starts_with("m=") {
            return Ok(());
        }
        let Some(attribute) = text.strip_prefix("a=") else {
            let found = text.chars().take(40).collect();
            return Err(FragmentError::Line { line, found });
        };
        let (name, value) = attribute.split_once(':').unwrap_or((attribute, ""));
        match name {
            "ice-ufrag" => self.ufrag = Some(value.to_owned()),
            "ice-pwd" => self.password = Some(value.to_owned()),
            "candidate" if self.candidates.len() == CANDIDATES_MAX => {
                return Err(FragmentError::TooMany);
            }
            "candidate" => self.candidates.push(attribute.to_owned()),
            "end-of-candidates" => self.ends = true,
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 9725 figure 5, shortened.
    const EXAMPLE: &str = "a=group:BUNDLE 0 1\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n\
        a=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\n\
        a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0\r\n\
        a=candidate:3471623853 1 udp 2122194687 198.51.100.2 61765 typ host generation 0\r\n\
        a=end-of-candidates\r\n";

    #[test]
    fn the_example_of_the_rfc_is_read() {
        let fragment = Fragment::parse(EXAMPLE).unwrap();
        assert_eq!(fragment.ufrag.as_deref(), Some("EsAw"));
        assert_eq!(fragment.password.as_deref(), Some("P2uYro0UCOQ4zxjKXaWCBui1"));
        assert_eq!(fragment.candidates.len(), 2);
        assert!(fragment.candidates[1].starts_with("candidate:3471623853 1 udp") && fragment.ends);
    }

    #[test]
    fn what_is_no_fragment_is_refused_with_a_reason() {
        let refuse = |text: &str| Fragment::parse(text).unwrap_err().to_string();
        assert_eq!(
            refuse("{\"candidate\": 1}"),
            "line 1: expected `a=…` or `m=…`, found `{\"candidate\": 1}`"
        );
        assert_eq!(refuse("a=mid:0\n"), "neither credentials nor candidates nor their end");
        assert_eq!(refuse(&"a=candidate:1\n".repeat(33)), "more than 32 candidates");
        assert!(refuse(&"a".repeat(20_000)).contains("20000 bytes"));
    }

    proptest! {
        /// Any text is a fragment or an error, and never more than is allowed.
        #[test]
        fn no_text_does_harm(text in "(a=(candidate|ice-ufrag|x)?:?[ -~]{0,20}\r?\n|[ -~]{0,9}\n){0,60}") {
            if let Ok(fragment) = Fragment::parse(&text) {
                prop_assert!(fragment.candidates.len() <= CANDIDATES_MAX);
            }
        }
    }
}
