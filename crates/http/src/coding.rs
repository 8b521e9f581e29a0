//! Content codings: gzip, and none (RFC 9110 §8.4, RFC 1952). Manifests are sent in gzip to those who take it; media is
//! compressed already.

use std::io::{self, Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderName, HeaderValue};

/// The name of gzip.
pub(crate) const GZIP: HeaderValue = HeaderValue::from_static("gzip");
/// The name of none.
pub(crate) const IDENTITY: HeaderValue = HeaderValue::from_static("identity");
/// The codings that are in use on the web.
const KNOWN: [&str; 8] =
    ["br", "compress", "dcb", "deflate", "gzip", "x-compress", "x-gzip", "zstd"];

/// Why content cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CodingError {
    /// It was not asked for.
    #[error("the response is in content coding `{0}`, which was not asked for")]
    NotAsked(String),
    /// It is not gzip, or ends early.
    #[error("the response is no gzip, as its head says it is: {0}")]
    Gzip(io::Error),
    /// It is more than it may be.
    #[error("the response is larger than {0} bytes without gzip")]
    TooLarge(u64),
}

/// How the content of a response is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    /// Not at all.
    Identity,
    Gzip,
}

impl Coding {
    /// What the head of a response says, to a request that asked for gzip or did not. What is no known coding (`utf-8`,
    /// `aws-chunked`) says nothing: browsers take the content as it is ("handle content codings" of the Fetch standard).
    ///
    /// # Errors
    /// [`CodingError::NotAsked`].
    pub fn of(headers: &HeaderMap, asked: bool) -> Result<Self, CodingError> {
        let known = members(headers, &CONTENT_ENCODING).filter_map(|said| {
            KNOWN.into_iter().find(|coding| said.trim().eq_ignore_ascii_case(coding))
        });
        match known.collect::<Vec<_>>()[..] {
            [] => Ok(Self::Identity),
            [coding] if asked && is_gzip(coding) => Ok(Self::Gzip),
            ref codings => Err(CodingError::NotAsked(codings.join(", "))),
        }
    }

    /// The content, of at most so many bytes.
    ///
    /// # Errors
    /// [`CodingError`].
    pub fn decode(self, content: Bytes, bytes_max: u64) -> Result<Bytes, CodingError> {
        match self {
            Self::Identity => Ok(content),
            Self::Gzip => gunzip(&content, bytes_max),
        }
    }
}

/// The members of a list, which may have several lines (§5.3).
fn members<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(','))
}

/// Whether a client takes gzip (§12.5.3), even if it prefers others. One that says nothing gets content as it is. What cannot
/// be read is not taken.
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let members: Vec<_> = members(headers, &ACCEPT_ENCODING).map(weighted).collect();
    let of = |is: &dyn Fn(&str) -> bool| {
        let found = members.iter().find(|(coding, _)| is(coding));
        found.map(|(_, is_taken)| *is_taken)
    };
    of(&is_gzip).or_else(|| of(&|coding| coding == "*")).unwrap_or(false)
}

/// §8.4.1.3: `x-gzip` is the same.
fn is_gzip(coding: &str) -> bool {
    ["gzip", "x-gzip"].iter().any(|name| coding.eq_ignore_ascii_case(name))
}

/// A coding, and whether its weight is above zero (§12.4.2).
fn weighted(text: &str) -> (&str, bool) {
    let (coding, weight) = match text.split_once(';') {
        Some((coding, weight)) => (coding, weight.trim()),
        None => (text, "q=1"),
    };
    let value = weight.strip_prefix("q=").or_else(|| weight.strip_prefix("Q="));
    let is_number = |value: &&str| value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = value.filter(is_number).and_then(|value| value.parse::<f64>().ok());
    (coding.trim(), value.is_some_and(|value| value > 0.0))
}

/// Content in gzip.
pub fn gzip(content: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).expect("a vector takes all");
    encoder.finish().expect("a vector takes all").into()
}

/// What content in gzip was, of at most so many bytes.
///
/// # Errors
/// [`CodingError::Gzip`], [`CodingError::TooLarge`].
pub fn gunzip(coded: &[u8], bytes_max: u64) -> Result<Bytes, CodingError> {
    let mut content = Vec::new();
    let mut decoder = MultiGzDecoder::new(coded).take(bytes_max.saturating_add(1));
    decoder.read_to_end(&mut content).map_err(CodingError::Gzip)?;
    match content.len() as u64 > bytes_max {
        true => Err(CodingError::TooLarge(bytes_max)),
        false => Ok(content.into()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn takes(lines: &[&'static str]) -> bool {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(ACCEPT_ENCODING, HeaderValue::from_static(line));
        }
        takes_gzip(&headers)
    }

    #[test]
    fn who_takes_gzip() {
        for line in ["gzip", "gzip, deflate, br", "br;q=1.0 , GZIP ; q=0.001", "x-gzip", "*"] {
            assert!(takes(&[line]), "{line}");
        }
        assert!(takes(&["br", "gzip"]), "lines are one list");
        for line in [
            "",
            "identity",
            "br",
            "gzip;q=0",
            "gzip;q=0.000",
            "*, gzip;q=0",
            "*;q=0",
            "gzip;q=NaN",
            "gzip;q=inf",
            "gzip;weight=1",
            "gzip deflate",
        ] {
            assert!(!takes(&[line]), "{line}");
        }
        assert!(!takes(&[]));
    }

    #[test]
    fn codings_of_responses() {
        let of = |coding: &'static str, asked| {
            let headers = [(CONTENT_ENCODING, HeaderValue::from_static(coding))];
            Coding::of(&headers.into_iter().collect(), asked)
        };
        assert_eq!(Coding::of(&HeaderMap::new(), false).ok(), Some(Coding::Identity));
        for nothing in ["Identity", "", " , ", "utf-8", "aws-chunked"] {
            assert_eq!(of(nothing, false).ok(), Some(Coding::Identity), "{nothing}");
        }
        for gzip in ["X-GZIP", "identity, gzip,"] {
            assert_eq!(of(gzip, true).ok(), Some(Coding::Gzip), "{gzip}");
        }
        for (coding, asked) in [("gzip", false), ("br", true), ("gzip, gzip", true)] {
            let error = of(coding, asked).expect_err("not asked for").to_string();
            assert!(error.contains(&format!("`{coding}`")), "{error}");
        }
        let mut lines = HeaderMap::new();
        for line in ["identity", "GZIP"] {
            lines.append(CONTENT_ENCODING, HeaderValue::from_static(line));
        }
        assert_eq!(Coding::of(&lines, true).ok(), Some(Coding::Gzip), "lines are one list");
    }

    /// A playlist of low latency, whose lines are alike.
    #[test]
    fn a_playlist_is_a_third_or_less() {
        let line = |part| format!("#EXT-X-PART:DURATION=0.25,URI=\"v1/35.{part}.m4s\"\n");
        let playlist: String = (0..30).map(line).collect();
        assert!(gzip(playlist.as_bytes()).len() * 3 < playlist.len());
    }

    #[test]
    fn gzip_that_is_damaged_or_too_large_is_refused() {
        let coded = gzip(b"#EXTM3U\n");
        for damaged in [&coded[..0], &coded[..9], &coded[..coded.len() - 1], b"#EXTM3U\n"] {
            let refused = gunzip(damaged, 100);
            assert!(matches!(refused, Err(CodingError::Gzip(_))), "{damaged:?}: {refused:?}");
        }
        let mut wrong = coded.to_vec();
        let crc = wrong.len() - 8;
        wrong[crc] ^= 1;
        assert!(matches!(gunzip(&wrong, 100), Err(CodingError::Gzip(_))), "its checksum");
        // A thousandth of what it becomes.
        let bomb = gzip(&vec![0; 1 << 20]);
        assert!(bomb.len() < 2000);
        assert!(matches!(gunzip(&bomb, 1000), Err(CodingError::TooLarge(1000))));
        assert_eq!(gunzip(&bomb, 1 << 20).map(|content| content.len()).ok(), Some(1 << 20));
        // §2.2 of RFC 1952: members follow one another.
        let two = [&coded[..], &coded[..]].concat();
        assert_eq!(gunzip(&two, 100).ok().as_deref(), Some(&b"#EXTM3U\n#EXTM3U\n"[..]));
    }

    proptest! {
        #[test]
        fn content_comes_out_as_it_went_in(content in prop::collection::vec(any::<u8>(), 0..3000)) {
            let out = gunzip(&gzip(&content), content.len() as u64).expect("gzip");
            prop_assert_eq!(&out[..], &content[..]);
        }

        #[test]
        fn any_bytes_are_read(data in prop::collection::vec(any::<u8>(), 0..200), text in "[ -~]{0,60}") {
            if let Ok(content) = gunzip(&data, 50) {
                prop_assert!(content.len() <= 50);
            }
            if let Ok(line) = HeaderValue::try_from(text) {
                takes_gzip(&[(ACCEPT_ENCODING, line)].into_iter().collect());
            }
        }
    }
}
