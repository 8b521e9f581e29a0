//! A key of a scenario and the values between which another is searched: `links.access.queue.limit=10 kB..1 MB`.

use suiro_study::unit::{self, Unit};

/// Significant digits of a value that is tried: with more, neighbouring values could not be
/// distinguished.
const DIGITS: i32 = 4;

/// Values of a key, from the low to the high end.
#[derive(Debug, Clone, PartialEq)]
pub struct Range {
    /// The key: a parameter's name, or a dotted path.
    pub path: String,
    /// The low end, in `unit`.
    pub low: f64,
    /// The high end.
    pub high: f64,
    unit: String,
    /// True if only whole numbers are values.
    whole: bool,
}

impl std::str::FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXPECTED: &str =
            "expected PATH=LOW..HIGH, such as \"links.access.queue.limit=10 kB..1 MB\"";
        let (path, values) = text.split_once('=').ok_or(EXPECTED)?;
        let (low, high) = values.split_once("..").ok_or(EXPECTED)?;
        let (low, high) = (quantity(low)?, quantity(high)?);
        let (low, high, unit) = same_unit(low, high)?;
        if low >= high {
            return Err(format!("expected a low end below the high one, found {}", values.trim()));
        }
        let whole = match unit.as_str() {
            "" => low.fract() == 0.0 && high.fract() == 0.0,
            unit => matches!(unit, "B" | "bit/s"),
        };
        Ok(Self { path: path.trim().to_owned(), low, high, unit, whole })
    }
}

/// A number and the unit after it.
fn quantity(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end =
        text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(text.len());
    let number = text[..end].parse().ok().filter(|it: &f64| it.is_finite());
    let number =
        number.ok_or_else(|| format!("expected a number with its unit, found {text:?}"))?;
    Ok((number, text[end..].trim()))
}

/// Both ends in the unit of the low one.
fn same_unit(
    (low, one): (f64, &str),
    (high, other): (f64, &str),
) -> Result<(f64, f64, String), String> {
    if one == other {
        return Ok((low, high, one.to_owned()));
    }
    let known = |name: &str| unit::named(name).filter(|unit| !unit.name.is_empty());
    let fit = |(one, other): &(Unit, Unit)| one.dimension == other.dimension;
    match known(one).zip(known(other)).filter(fit) {
        Some((unit, of_high)) => Ok((low, high * of_high.factor / unit.factor, one.to_owned())),
        None => Err(format!("expected two numbers of the same unit, found {one:?} and {other:?}")),
    }
}

impl Range {
    /// A value as the scenario takes it.
    pub fn text(&self, value: f64) -> String {
        format!("{} {}", shortest(value), self.unit).trim().to_owned()
    }

    /// A value between two, or `None` if they are too close to distinguish: within 1 %, or neighbours among whole
    /// numbers.
    ///
    /// It is their geometric mean if they are far apart, so that the search takes as long in each order of magnitude.
    pub fn between(&self, low: f64, high: f64) -> Option<f64> {
        if high - low <= 0.01 * high.abs().max(low.abs()) {
            return None;
        }
        let middle = match low > 0.0 && high / low > 4.0 {
            true => (low * high).sqrt(),
            false => (low + high) / 2.0,
        };
        let middle = if self.whole { middle.round() } else { rounded(middle) };
        (low < middle && middle < high).then_some(middle)
    }
}

fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let power = 10f64.powi(DIGITS - 1 - value.abs().log10().floor() as i32);
    (value * power).round() / power
}

/// A number without digits that only its binary form has.
fn shortest(value: f64) -> String {
    let text = format!("{value:.9}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> Range {
        text.parse().unwrap()
    }

    #[test]
    fn ends_of_different_units_are_joined() {
        let found = range("links.access.queue.limit=10 kB..1 MB");
        assert_eq!((found.low, found.high, &*found.unit), (10.0, 1000.0, "kB"));
        assert_eq!(found.text(found.high), "1000 kB");
        assert_eq!(range("loss=0..0.1").text(0.025), "0.025");
        assert_eq!(range("viewers=1..64").text(8.0), "8");
    }

    #[test]
    fn the_middle_of_what_is_far_apart_is_geometric() {
        let found = range("queue=10 kB..1 MB");
        assert_eq!(found.between(10.0, 1000.0), Some(100.0));
        assert_eq!(found.between(100.0, 200.0), Some(150.0));
        assert_eq!(found.between(100.0, 101.0), None);
        assert_eq!(range("n=1..3").between(1.0, 3.0), Some(2.0));
        assert_eq!(range("n=1..3").between(2.0, 3.0), None, "neighbours");
        assert_eq!(range("loss=0..0.1").between(0.0, 0.1), Some(0.05));
    }

    #[test]
    fn every_search_ends() {
        for text in ["q=1 B..1000 MB", "n=0..1000000", "x=0..1", "d=0.001 ms..100 s"] {
            let found = range(text);
            // Towards each end.
            for low in [true, false] {
                let (mut from, mut to, mut steps) = (found.low, found.high, 0);
                while let Some(middle) = found.between(from, to) {
                    if low {
                        to = middle;
                    } else {
                        from = middle;
                    }
                    steps += 1;
                    assert!(steps < 100, "{text}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in [
            "",
            "queue",
            "queue=5 kB",
            "queue=5 kB..1 kB",
            "queue=1 kB..5 ms",
            "q=x..y",
            "q=1..2 kB",
        ] {
            assert!(text.parse::<Range>().is_err(), "{text}");
        }
    }
}
