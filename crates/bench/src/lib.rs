//! Figures of benchmarks. A benchmark reports each with [`Figure::tell`]; `make bench` gathers them, and criterion's, in
//! one table and in `bench.json` (the program `bench-table`).

pub mod criterion;
pub mod table;

use std::fs::OpenOptions;
use std::io::Write;

use serde::{Deserialize, Serialize};

/// The environment variable with the file that figures are appended to, one JSON object per line.
pub const FIGURES: &str = "SUIRO_FIGURES";

/// One measured figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// What was measured: `link, 10000 packets/s: lateness, 99 %`.
    pub name: String,
    /// The measured value.
    pub value: f64,
    /// Its unit; empty for a ratio or a count.
    pub unit: String,
    /// What it should be; `None` if there is no target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// What another program has in the same run; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Peer>,
}

/// What a figure should be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// This value or less.
    AtMost(f64),
    /// This value or more.
    AtLeast(f64),
    /// This share of the peer's value or more.
    OfPeer(f64),
}

/// The same figure of another program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// The measured value, in the figure's unit.
    pub value: f64,
}

impl Figure {
    /// A figure without target and peer.
    pub fn new(name: impl Into<String>, value: f64, unit: impl Into<String>) -> Self {
        Self { name: name.into(), value, unit: unit.into(), target: None, peer: None }
    }

    /// With a target.
    pub fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    /// With what a peer has.
    pub fn beside(mut self, name: impl Into<String>, value: f64) -> Self {
        self.peer = Some(Peer { name: name.into(), value });
        self
    }

    /// The figure over the peer's; without a peer, over the target.
    pub fn ratio(&self) -> Option<f64> {
        let of = match (&self.peer, self.target) {
            (Some(peer), _) => peer.value,
            (None, Some(Target::AtMost(value) | Target::AtLeast(value))) => value,
            (None, Some(Target::OfPeer(_)) | None) => return None,
        };
        let ratio = self.value / of;
        ratio.is_finite().then_some(ratio)
    }

    /// Whether the target is reached; `None` without a target, or if its peer was not measured.
    pub fn reached(&self) -> Option<bool> {
        Some(match self.target? {
            Target::AtMost(most) => self.value <= most,
            Target::AtLeast(least) => self.value >= least,
            Target::OfPeer(share) => self.value >= share * self.peer.as_ref()?.value,
        })
    }

    /// Prints the figure, and appends it to the file that [`FIGURES`] names.
    ///
    /// # Panics
    /// If that file cannot be written: the figure would be missing in the table.
    #[expect(clippy::print_stdout, reason = "a benchmark prints its results")]
    pub fn tell(&self) {
        println!("{}", table::line(self));
        let Some(path) = std::env::var_os(FIGURES) else { return };
        let mut line = serde_json::to_string(self).expect("numbers and texts are JSON");
        line.push('\n');
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|e| panic!("writing {}: {e}", path.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_judged_by_its_direction() {
        let figure = Figure::new("a", 2.0, "ms");
        assert_eq!(figure.reached(), None);
        assert_eq!(figure.clone().target(Target::AtMost(2.0)).reached(), Some(true));
        assert_eq!(figure.clone().target(Target::AtMost(1.9)).reached(), Some(false));
        assert_eq!(figure.clone().target(Target::AtLeast(2.1)).reached(), Some(false));
        let of_peer = figure.target(Target::OfPeer(0.5));
        assert_eq!(of_peer.reached(), None, "the peer was not measured");
        assert_eq!(of_peer.clone().beside("b", 4.0).reached(), Some(true));
        assert_eq!(of_peer.beside("b", 4.1).reached(), Some(false));
    }

    #[test]
    fn a_ratio_is_to_the_peer_before_the_target() {
        let figure = Figure::new("a", 2.0, "ms").target(Target::AtMost(4.0));
        assert_eq!(figure.ratio(), Some(0.5));
        assert_eq!(figure.clone().beside("b", 8.0).ratio(), Some(0.25));
        assert_eq!(figure.beside("b", 0.0).ratio(), None);
    }
}
