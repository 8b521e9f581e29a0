//! What is known of a metric and of a quantity over time, whatever computes it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::panel::{Panel, Style};

/// Which direction of a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither: it is descriptive.
    Neither,
}

/// One metric of the catalogue.
#[derive(Clone, Copy)]
pub struct Metric {
    /// What it belongs to, such as `player`: the first word of its name.
    pub family: &'static str,
    /// Its name within the family; ends in its unit.
    pub field: &'static str,
    /// A few words for tables and figures.
    pub label: &'static str,
    /// `bit/s`, `B`, `s`, `1/s`, `ms`, `µs`, `dB`, `ratio`, `cores`, or empty for counts and scores.
    pub unit: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// Significant digits worth showing.
    pub digits: u8,
    /// True for what a short table shows.
    pub main: bool,
    /// What it means, precisely.
    pub doc: &'static str,
}

/// One quantity over time, of which a trial has a series for each instance.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    /// What it belongs to, such as `tcp`: the first word of its name.
    pub family: &'static str,
    /// Its name within the family.
    pub field: &'static str,
    /// The figure it is drawn in; of throughput, where that of a down direction is.
    pub panel: Panel,
    /// A few words for a legend.
    pub label: &'static str,
    /// `bit/s`, `B`, `ms`, `s`, `ratio`, `packets` or `frames`; empty for scores and shares.
    pub unit: &'static str,
    /// How it is drawn.
    pub style: Style,
    /// What it means.
    pub doc: &'static str,
}

impl std::fmt::Debug for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{} [{}]", self.family, self.field, self.unit)
    }
}
