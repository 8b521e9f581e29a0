//! Dates and durations as manifests write them: ISO 8601, in the profiles of XML Schema
//! (`xs:dateTime`, `xs:duration`) and of RFC 8216 (`EXT-X-PROGRAM-DATE-TIME`).

use suiro_units::Duration;

const SECOND_NS: u64 = 1_000_000_000;
/// The longest duration that a manifest may name: ten years. More is an error of its author.
const LONGEST_S: u64 = 10 * 366 * 86_400;

/// `PnYnMnDTnHnMnS`, to the nanosecond; years and months must be zero, since their length varies.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let (date, time) = match text.trim().strip_prefix('P')?.split_once('T') {
        Some((date, time)) if !time.is_empty() => (date, time),
        Some(_) => return None,
        None => (text.trim().strip_prefix('P')?, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let scales = [("Y", 0), ("M", 0), ("D", 86_400)];
    let days = fields(date, &scales)?;
    let clock = fields(time, &[("H", 3600), ("M", 60), ("S", 1)])?;
    let ns = days.checked_add(clock)?;
    (ns <= LONGEST_S * SECOND_NS).then(|| Duration::from_nanos(ns))
}

/// A run of `NUMBER UNIT` in the order of `scales` (seconds per unit), in nanoseconds. A unit of
/// scale 0 must have the value 0.
fn fields(mut text: &str, scales: &[(&str, u64)]) -> Option<u64> {
    let mut total = 0u64;
    for (unit, scale) in scales {
        let Some((number, rest)) = text.split_once(unit) else { continue };
        let ns = decimal_ns(number)?;
        if *scale == 0 && ns != 0 {
            return None;
        }
        total = total.checked_add(ns.checked_mul(*scale)?)?;
        text = rest;
    }
    text.is_empty().then_some(total)
}

/// A decimal number of seconds, such as `2.002`, in nanoseconds; digits beyond are cut.
pub(crate) fn decimal_ns(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let kept = &fraction[..fraction.len().min(9)];
    let fraction_ns = match kept {
        "" => 0,
        _ => kept.parse::<u64>().ok()? * 10u64.pow(9 - kept.len() as u32),
    };
    whole.parse::<u64>().ok()?.checked_mul(SECOND_NS)?.checked_add(fraction_ns)
}

/// `2026-11-21T01:57:00.5Z` or with an offset such as `+09:00`; without either, UTC. Nanoseconds
/// since 1970, years 1970 to 2500.
pub(crate) fn parse_date_time(text: &str) -> Option<u64> {
    let text = text.trim();
    if !text.is_ascii() {
        return None;
    }
    let (date, time) = text.split_once(['T', 't'])?;
    let number = |t: &str, length: usize| {
        (t.len() == length && t.bytes().all(|b| b.is_ascii_digit()))
            .then(|| t.parse::<u64>().ok())
            .flatten()
    };
    let mut parts = date.splitn(3, '-');
    let year = number(parts.next()?, 4).filter(|y| (1970..=2500).contains(y))?;
    let month = number(parts.next()?, 2).filter(|m| (1..=12).contains(m))?;
    let day = number(parts.next()?, 2).filter(|d| (1..=days_in(year, month)).contains(d))?;
    let (time, offset_s) = split_offset(time)?;
    let mut parts = time.splitn(3, ':');
    let hour = number(parts.next()?, 2).filter(|h| *h < 24)?;
    let minute = number(parts.next()?, 2).filter(|m| *m < 60)?;
    let second_ns = decimal_ns(parts.next()?).filter(|ns| *ns < 61 * SECOND_NS)?;
    let days = days_before(year, month) + day - 1;
    let seconds = i64::try_from(days * 86_400 + hour * 3600 + minute * 60).ok()? - offset_s;
    u64::try_from(seconds).ok()?.checked_mul(SECOND_NS)?.checked_add(second_ns)
}

/// The time of day and its offset from UTC in seconds.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let Some(at) = time.rfind(['+', '-']) else { return Some((time, 0)) };
    let (time, offset) = time.split_at(at);
    let digits: String = offset[1..].chars().filter(|c| *c != ':').collect();
    if digits.len() != 4 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes) = (digits[..2].parse::<i64>().ok()?, digits[2..].parse::<i64>().ok()?);
    let seconds = hours * 3600 + minutes * 60;
    let valid = hours < 24 && minutes < 60;
    valid.then_some((time, if offset.starts_with('-') { -seconds } else { seconds }))
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_in(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to the first of that month.
fn days_before(year: u64, month: u64) -> u64 {
    let years: u64 = (1970..year).map(|y| if is_leap(y) { 366 } else { 365 }).sum();
    years + (1..month).map(|m| days_in(year, m)).sum::<u64>()
}

/// `PT2.5S`: seconds only, exact.
pub(crate) fn format_duration(span: Duration) -> String {
    format!("PT{}S", decimal(span.as_nanos()))
}

/// Nanoseconds as a decimal number of seconds, exact, without trailing zeros.
pub(crate) fn decimal(ns: u64) -> String {
    let (seconds, rest) = (ns / SECOND_NS, ns % SECOND_NS);
    if rest == 0 {
        return seconds.to_string();
    }
    let fraction = format!("{rest:09}");
    format!("{seconds}.{}", fraction.trim_end_matches('0'))
}

/// `2026-11-21T01:57:00.000Z`: UTC, rounded to the nearest millisecond (RFC 8216 §4.3.2.6 asks for
/// millisecond accuracy).
pub(crate) fn format_date_time(unix_ns: u64) -> String {
    let ms = (unix_ns + 500_000) / 1_000_000;
    let (mut days, of_day_ms) = (ms / 86_400_000, ms % 86_400_000);
    let (mut year, mut month) = (1970, 1);
    while days >= if is_leap(year) { 366 } else { 365 } {
        days -= if is_leap(year) { 366 } else { 365 };
        year += 1;
    }
    while days >= days_in(year, month) {
        days -= days_in(year, month);
        month += 1;
    }
    let (s, fraction) = (of_day_ms / 1000, of_day_ms % 1000);
    format!(
        "{year:04}-{month:02}-{:02}T{:02}:{:02}:{:02}.{fraction:03}Z",
        days + 1,
        s / 3600,
        s / 60 % 60,
        s % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations() {
        let ms = |t: &str| parse_duration(t).map(Duration::as_millis_f64);
        assert_eq!(ms("PT2S"), Some(2000.0));
        assert_eq!(ms("PT0H0M6.400S"), Some(6400.0));
        assert_eq!(ms("P0Y0M1DT1H1M1.5S"), Some(90_061_500.0));
        assert_eq!(ms("P1D"), Some(86_400_000.0));
        for bad in
            ["", "P", "PT", "2 s", "PT2", "P1Y", "P2M", "PT-2S", "PT1e9S", "PT1S2M", "P1000000D"]
        {
            assert_eq!(ms(bad), None, "{bad}");
        }
    }

    #[test]
    fn date_times() {
        let at = 1_795_226_220 * SECOND_NS;
        assert_eq!(parse_date_time("2026-11-21T01:57:00Z"), Some(at));
        assert_eq!(parse_date_time("2026-11-21T10:57:00.250+09:00"), Some(at + 250_000_000));
        assert_eq!(parse_date_time("2026-11-20T23:57:00-0200"), Some(at));
        assert_eq!(parse_date_time("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(format_date_time(at + 7_000_000), "2026-11-21T01:57:00.007Z");
        for bad in [
            "",
            "2026",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-21 01:57:00Z",
            "2026-11-21T24:00:00Z",
            "2026-11-21T01:57Z",
            "1969-12-31T23:59:59Z",
            "９-1-1T0:0:0Z",
            "2026-11-21T01:57:00+9",
            "99999999-11-21T01:57:00Z",
        ] {
            assert_eq!(parse_date_time(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn text_round_trips(ns in 0u64..10_000_000_000_000_000_000) {
            let text = format_date_time(ns);
            let parsed = parse_date_time(&text).expect("our own text");
            prop_assert!(parsed.abs_diff(ns) <= 500_000, "{text}");
            prop_assert_eq!(decimal_ns(&decimal(ns)), Some(ns));
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "\\PC{0,40}", dates in "[-0-9T:.+Z]{0,30}", spans in "P[0-9.YMDTHS]{0,20}") {
            for t in [&text, &dates, &spans] {
                let _ = (parse_date_time(t), parse_duration(t), decimal_ns(t));
            }
        }
    }
}
