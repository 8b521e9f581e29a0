//! Units of metrics and of constants, and what may be compared with what.

/// What a number measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// A count, a share, a quotient; the base is one.
    Plain,
    /// A time; the base is the second.
    Time,
    /// A rate; the base is the bit per second.
    Rate,
    /// A size; the base is the byte.
    Size,
}

impl Dimension {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "a plain number",
            Self::Time => "a time",
            Self::Rate => "a rate",
            Self::Size => "a size",
        }
    }
}

/// A unit that numbers are written in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// As it is written; empty for plain numbers.
    pub name: &'static str,
    /// What it measures.
    pub dimension: Dimension,
    /// How many base units it is.
    pub factor: f64,
}

/// Of counts and quotients.
pub const PLAIN: Unit = unit("", Dimension::Plain, 1.0);

const fn unit(name: &'static str, dimension: Dimension, factor: f64) -> Unit {
    Unit { name, dimension, factor }
}

/// Every unit that has a name. A bit of a size is an eighth of a byte: some studies print windows in
/// kilobits.
pub const UNITS: &[Unit] = &[
    unit("%", Dimension::Plain, 0.01),
    unit("s", Dimension::Time, 1.0),
    unit("ms", Dimension::Time, 1e-3),
    unit("µs", Dimension::Time, 1e-6),
    unit("bit/s", Dimension::Rate, 1.0),
    unit("kbit/s", Dimension::Rate, 1e3),
    unit("Mbit/s", Dimension::Rate, 1e6),
    unit("Gbit/s", Dimension::Rate, 1e9),
    unit("B", Dimension::Size, 1.0),
    unit("kB", Dimension::Size, 1e3),
    unit("MB", Dimension::Size, 1e6),
    unit("bit", Dimension::Size, 0.125),
    unit("kbit", Dimension::Size, 125.0),
    unit("Mbit", Dimension::Size, 125e3),
];

/// The unit that a metric of a summary is in: its name ends in it.
pub fn of_metric(name: &str) -> Unit {
    let ends = [("_bps", "bit/s"), ("_bytes", "B"), ("_ms", "ms"), ("_us", "µs"), ("_s", "s")];
    let unit = ends.iter().find(|(end, _)| name.ends_with(end)).map(|(_, unit)| *unit);
    unit.and_then(named).unwrap_or(PLAIN)
}

/// The unit of that name.
pub fn named(name: &str) -> Option<Unit> {
    UNITS.iter().find(|unit| unit.name == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_bear_their_unit() {
        assert_eq!(of_metric("tcp.srtt_mean_ms").name, "ms");
        assert_eq!(of_metric("player.stall_s").name, "s");
        assert_eq!(of_metric("player.stalls"), PLAIN);
        assert_eq!(of_metric("link.down.loss_ratio"), PLAIN);
    }

    #[test]
    fn ten_segments_are_some_116_kilobits() {
        let kbit = named("kbit").unwrap();
        assert!((10.0 * 1448.0 / kbit.factor - 115.84).abs() < 1e-9);
    }
}
