//! Published studies: what they printed, and their findings as formulas over measured metrics.
//!
//! A study is a file of `studies/`: strict TOML. `docs/studies.md` documents its keys and the language of findings.
//! This crate reads it and knows nothing of results; `suiro_analysis::findings` judges it.
//!
//! ```
//! let study = suiro_study::find("S0").expect("it is built in");
//! assert_eq!(study.findings[0].id, "S0.1");
//! ```

mod file;
pub mod formula;
mod lex;
pub mod limit;
mod parse;
pub mod unit;

pub use file::parse;
pub use parse::FORMULA_MAX;

use formula::Truth;
use unit::Unit;

/// The studies that come with suiro: id and text.
const BUILT_IN: &[(&str, &str)] = &[
    ("S0", include_str!("../../../studies/s0.toml")),
    ("S1", include_str!("../../../studies/s1.toml")),
    ("S2", include_str!("../../../studies/s2.toml")),
    ("S3", include_str!("../../../studies/s3.toml")),
    ("S4", include_str!("../../../studies/s4.toml")),
    ("S5", include_str!("../../../studies/s5.toml")),
];

/// A published study.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Such as `S0`; a scenario's `study` names it.
    pub id: String,
    /// One line on what it is about.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// How its figures were read.
    pub notes: Option<String>,
    /// The axes that its cells lie on, as the scenario's matrix names them.
    pub axes: Vec<Axis>,
    /// The metrics that it speaks of.
    pub metrics: Vec<Metric>,
    /// Its published tables.
    pub tables: Vec<Table>,
    /// Its published figures.
    pub figures: Vec<Figure>,
    /// Its findings.
    pub findings: Vec<Finding>,
}

/// An axis of a study's cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// Its name in the scenario's matrix.
    pub name: String,
    /// The labels that the study speaks of; a run may have more.
    pub labels: Vec<String>,
}

/// A metric under the name that formulas use.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// The name in formulas.
    pub name: String,
    /// The name in a summary.
    pub metric: String,
    /// What it is, in words for a verdict; `None`: a count's name says it, of others the unit.
    pub title: Option<String>,
    /// The unit that a summary has it in, from its name.
    pub measured_in: Unit,
    /// The unit that the study prints it in.
    pub unit: Unit,
}

impl Metric {
    /// A summary's value in base units.
    pub fn base(&self, value: f64) -> f64 {
        value * self.measured_in.factor
    }

    /// A summary's value in the study's unit.
    pub fn printed(&self, value: f64) -> f64 {
        self.base(value) / self.unit.factor
    }
}

/// One label, or none, per axis of the study.
pub type Place = Vec<Option<usize>>;

/// A published table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Such as `4-1`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How its unit or its figures were read.
    pub note: Option<String>,
    /// The greatest factor, either way, between measured and published for "near".
    pub tolerance: f64,
    /// Titles of its columns.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// A row of a published table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its title.
    pub title: String,
    /// One per column.
    pub entries: Vec<Entry>,
}

/// One published number.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Which of the study's metrics.
    pub metric: usize,
    /// Which cell: a label on every axis.
    pub cell: Vec<usize>,
    /// The number as printed, in the metric's unit.
    pub published: f64,
}

/// A published figure: lines over time, of several cells or of several quantities.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Such as `4.5`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The unit that they are drawn in.
    pub unit: Unit,
    /// The axis that distinguishes the lines; `None`: they are quantities of one cell.
    pub axis: Option<usize>,
    /// Its lines.
    pub lines: Vec<Line>,
    /// Each point is the mean over so many seconds; `None`: as recorded.
    pub mean_over_s: Option<f64>,
    /// The published axis of time ends here, in seconds.
    pub seconds: f64,
    /// What was remarked of stretches of time.
    pub bands: Vec<Band>,
}

/// A line of a published figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What the legend calls it.
    pub label: String,
    /// The time series, such as `tcp.srtt_ms`.
    pub series: String,
    /// Which cell: a label on every axis.
    pub cell: Vec<usize>,
}

/// A stretch of a figure's time and what was remarked of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    /// Where it begins, in seconds.
    pub from: f64,
    /// Where it ends, in seconds.
    pub to: f64,
    /// What was remarked.
    pub text: String,
}

/// A published claim.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Such as `S0.1`.
    pub id: String,
    /// What is claimed.
    pub claim: String,
    /// The published figures, in words.
    pub published: Option<String>,
    /// Why the formula and its bounds are what they are.
    pub note: Option<String>,
    /// Why it may not hold in the lab; printed where it does not.
    pub caveat: Option<String>,
    /// What must be shown before the finding is judged: without it, the run cannot show the finding.
    pub given: Option<Truth>,
    /// The formula as written.
    pub formula: String,
    /// What it means.
    pub truth: Truth,
}

/// The study of that id; `None` if there is none.
pub fn find(id: &str) -> Option<Study> {
    let (id, text) = BUILT_IN.iter().find(|(known, _)| *known == id)?;
    Some(built_in(id, text))
}

/// The ids of all studies.
pub fn ids() -> impl Iterator<Item = &'static str> + Clone {
    BUILT_IN.iter().map(|(id, _)| *id)
}

fn built_in(id: &str, text: &str) -> Study {
    let file = format!("{}.toml", id.to_lowercase());
    parse(text, &file).unwrap_or_else(|error| panic!("built-in studies are right: tested: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the test compares with the folder")]
    #[test]
    fn built_in_studies_are_the_folder_and_can_be_read() {
        let folder = "../../studies";
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut on_disk: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
        on_disk.sort();
        let mut embedded: Vec<String> =
            ids().map(|id| format!("{}.toml", id.to_lowercase())).collect();
        embedded.sort();
        assert_eq!(on_disk, embedded);
        for id in ids() {
            assert_eq!(find(id).unwrap().id, id);
        }
    }
}
