//! Numbers for people: significant digits and fitting units.

/// `value` rounded to `digits` significant decimal digits.
pub(crate) fn significant(value: f64, digits: u8) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let place = i32::from(digits.max(1)) - 1 - value.abs().log10().floor() as i32;
    let power = 10f64.powi(place.abs());
    if place >= 0 { (value * power).round() / power } else { (value / power).round() * power }
}

/// A unit to print in, and how many base units it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale<'a> {
    pub unit: &'a str,
    pub factor: f64,
    /// True of units without steps, such as packets: whole numbers keep all their digits.
    pub counts: bool,
}

/// The unit in which values up to `most` of base unit `unit` read well.
pub(crate) fn scale(unit: &str, most: f64) -> Scale<'_> {
    let most = most.abs();
    let steps: &[(&str, f64)] = match unit {
        "bit/s" => &[("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)],
        "B" => &[("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)],
        "ms" => &[("s", 1e3), ("ms", 1.0)],
        "µs" => &[("s", 1e6), ("ms", 1e3), ("µs", 1.0)],
        "ratio" => &[("%", 0.01)],
        _ => return Scale { unit, factor: 1.0, counts: !matches!(unit, "s" | "cores" | "dB") },
    };
    // Milliseconds stay milliseconds until ten seconds: delays are compared in them.
    let slack = if matches!(unit, "ms" | "µs") { 10.0 } else { 1.0 };
    let fits = |(_, factor): &&(&str, f64)| most >= factor * slack;
    let (unit, factor) = steps.iter().find(fits).or(steps.last()).copied().unwrap_or(("", 1.0));
    Scale { unit, factor, counts: false }
}

/// `value` with `digits` significant digits, in plain decimals.
pub(crate) fn plain(value: f64, digits: u8) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let rounded = significant(value, digits);
    format!("{rounded:.*}", decimals(rounded, digits))
}

/// Decimals that show `digits` significant digits of `value`.
pub(crate) fn decimals(value: f64, digits: u8) -> usize {
    let magnitude = value.abs().log10().floor() as i32;
    usize::try_from((i32::from(digits) - 1 - magnitude).clamp(0, 6)).unwrap_or(0)
}

/// True for a count: it has no fraction, and keeps all its digits.
fn is_count(scaled: f64, scale: Scale) -> bool {
    scale.counts && scaled.fract() == 0.0 && scaled.abs() < 1e9
}

/// A value in its unit.
pub(crate) fn shown(value: f64, scale: Scale, digits: u8) -> String {
    let scaled = value / scale.factor;
    if is_count(scaled, scale) { format!("{scaled}") } else { plain(scaled, digits) }
}

/// A number and its unit: of one, `1 request`.
pub(crate) fn with_unit(number: &str, unit: &str) -> String {
    // The symbols of seconds end in this letter, too.
    let one = unit.strip_suffix('s').filter(|one| number == "1" && one.chars().count() > 2);
    format!("{number} {}", one.unwrap_or(unit)).trim_end().to_owned()
}

/// Half an interval about a value, with as many decimals as the value shows.
pub(crate) fn margin(half: f64, about: f64, scale: Scale, digits: u8) -> String {
    let scaled = about / scale.factor;
    let coarse = scaled == 0.0 || is_count(scaled, scale);
    let places = if coarse { 1 } else { decimals(significant(scaled, digits), digits) };
    format!("{:.places$}", half / scale.factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits() {
        assert_eq!(significant(123_456.0, 3), 123_000.0);
        assert_eq!(significant(0.000_123_456, 3), 0.000_123);
        assert_eq!(plain(4.206, 3), "4.21");
        assert_eq!(plain(9.999, 3), "10.0");
        assert_eq!(plain(1234.5, 3), "1230");
        assert_eq!(plain(12.0, 3), "12.0");
        assert_eq!(plain(0.0, 3), "0");
    }

    #[test]
    fn counts_and_margins() {
        let (count, rate) = (scale("packets", 1.0), scale("bit/s", 3e6));
        assert_eq!(shown(12_345.0, count, 3), "12345");
        assert_eq!(shown(1.5, count, 3), "1.50");
        assert_eq!(shown(3e6, rate, 3), "3.00");
        assert_eq!(margin(12_345.0, 3e6, rate, 3), "0.01");
        assert_eq!(margin(0.66, 2.0, count, 3), "0.7");
    }

    #[test]
    fn one_of_something_is_not_several() {
        let told = with_unit;
        assert_eq!(
            (told("1", "requests"), told("2", "requests")),
            ("1 request".into(), "2 requests".into())
        );
        assert_eq!(
            (told("1", "ms"), told("1", "µs"), told("1", "")),
            ("1 ms".into(), "1 µs".into(), "1".into())
        );
    }

    #[test]
    fn units() {
        assert_eq!(scale("bit/s", 3.2e6), Scale { unit: "Mbit/s", factor: 1e6, counts: false });
        assert_eq!(scale("dB", 40.0).unit, "dB", "whatever is not scaled keeps its unit");
        assert_eq!(scale("ms", 2_400.0).unit, "ms");
        assert_eq!(scale("ms", 24_000.0).unit, "s");
        assert_eq!(scale("ratio", 0.5).unit, "%");
        assert_eq!(scale("bit/s", 0.0).unit, "bit/s");
    }
}
