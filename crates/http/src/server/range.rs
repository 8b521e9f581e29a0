//! Range requests (RFC 9110 §14): one range of bytes.

use crate::caching::number;

/// What part of a body a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it: no range, or one that may be ignored (§14.2: malformed, several, other units).
    Whole,
    /// First and last byte, within the body.
    Range(u64, u64),
    /// A range that holds no byte of the body: 416.
    Unsatisfiable,
}

/// Reads a `Range` header for a body of `length` bytes.
pub fn part(header: Option<&str>, length: u64) -> Part {
    match header.and_then(parse) {
        None => Part::Whole,
        Some(Spec::From(first, last)) => {
            let last =
                last.map_or(length.saturating_sub(1), |last| last.min(length.saturating_sub(1)));
            if first < length { Part::Range(first, last) } else { Part::Unsatisfiable }
        }
        Some(Spec::Last(count)) => match count.min(length) {
            0 => Part::Unsatisfiable,
            count => Part::Range(length - count, length - 1),
        },
    }
}

enum Spec {
    /// `FIRST-` or `FIRST-LAST`.
    From(u64, Option<u64>),
    /// `-COUNT`.
    Last(u64),
}

fn parse(header: &str) -> Option<Spec> {
    let (unit, ranges) = header.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") || ranges.contains(',') {
        return None;
    }
    let (first, last) = ranges.trim().split_once('-')?;
    // A number beyond 64 bits lies beyond any body.
    match (first, last) {
        ("", count) => number(count).map(Spec::Last),
        (first, "") => number(first).map(|first| Spec::From(first, None)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Spec::From(first, Some(last)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_by_hand() {
        let of_ten = |header| part(Some(header), 10);
        assert_eq!(part(None, 10), Part::Whole);
        assert_eq!(of_ten("bytes=0-0"), Part::Range(0, 0));
        assert_eq!(of_ten("bytes=2-5"), Part::Range(2, 5));
        assert_eq!(of_ten("Bytes=7-"), Part::Range(7, 9));
        assert_eq!(of_ten("bytes=5-99999999999999999999999"), Part::Range(5, 9));
        assert_eq!(of_ten("bytes=-3"), Part::Range(7, 9));
        assert_eq!(of_ten("bytes=-30"), Part::Range(0, 9));
        for unsatisfiable in ["bytes=10-", "bytes=10-12", "bytes=-0"] {
            assert_eq!(of_ten(unsatisfiable), Part::Unsatisfiable, "{unsatisfiable}");
        }
        for ignored in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=5-2",
            "bytes=0-1,3-4",
            "lines=0-1",
            "bytes=a-b",
            "bytes=+1-2",
        ] {
            assert_eq!(of_ten(ignored), Part::Whole, "{ignored}");
        }
        assert_eq!(part(Some("bytes=0-"), 0), Part::Unsatisfiable);
        assert_eq!(part(Some("bytes=-1"), 0), Part::Unsatisfiable);
    }

    proptest! {
        #[test]
        fn a_range_lies_within_the_body(header in "(bytes=)?[-0-9,]{0,30}", length in 0u64..100) {
            if let Part::Range(first, last) = part(Some(&header), length) {
                prop_assert!(first <= last && last < length);
            }
        }
    }
}
