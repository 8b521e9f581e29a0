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
pub(crate) struct Scale {
    pub unit: &'static str,
    pub factor: f64,
}

/// The unit in which values up to `most` of base unit `unit` read well.
pub(crate) fn scale(unit: &str, most: f64) -> Scale {
    let most = most.abs();
    let steps: &[(&str, f64)] = match unit {
        "bit/s" => &[("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)],
        "B" => &[("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)],
        "ms" => &[("s", 1e3), ("ms", 1.0)],
        "µs" => &[("s", 1e6), ("ms", 1e3), ("µs", 1.0)],
        "s" => &[("s", 1.0)],
        "ratio" => &[("%", 0.01)],
        "cores" => &[("cores", 1.0)],
        _ => &[("", 1.0)],
    };
    // Milliseconds stay milliseconds until ten seconds: delays are compared in them.
    let slack = if matches!(unit, "ms" | "µs") { 10.0 } else { 1.0 };
    let fits = |(_, factor): &&(&str, f64)| most >= factor * slack;
    let (unit, factor) = steps.iter().find(fits).or(steps.last()).copied().unwrap_or(("", 1.0));
    Scale { unit, factor }
}

/// `value` with `digits` significant digits, in plain decimals; whole numbers keep all their digits.
pub(crate) fn plain(value: f64, digits: u8) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if value.fract() == 0.0 && value.abs() < 1e6 {
        return format!("{value}");
    }
    let rounded = significant(value, digits);
    let magnitude = rounded.abs().log10().floor() as i32;
    let decimals = (i32::from(digits) - 1 - magnitude).clamp(0, 6);
    format!("{rounded:.*}", usize::try_from(decimals).unwrap_or(0))
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
        assert_eq!(plain(12.0, 3), "12");
        assert_eq!(plain(0.0, 3), "0");
    }

    #[test]
    fn units() {
        assert_eq!(scale("bit/s", 3.2e6), Scale { unit: "Mbit/s", factor: 1e6 });
        assert_eq!(scale("ms", 2_400.0).unit, "ms");
        assert_eq!(scale("ms", 24_000.0).unit, "s");
        assert_eq!(scale("ratio", 0.5).unit, "%");
        assert_eq!(scale("bit/s", 0.0).unit, "bit/s");
    }
}
