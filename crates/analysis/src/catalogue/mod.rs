//! Every metric: its name, unit, meaning and how it is computed. A file for each kind of thing that is
//! measured.

/// A table of metrics: `family.field [unit, which way is good, digits] label, meaning, how`.
macro_rules! catalogue {
    ($($(#[main $($main:tt)?])? $family:ident . $field:ident [$unit:literal, $better:ident, $digits:literal]
        $label:literal, $doc:literal, $of:ident($value:expr);)+) => {
        &[$($crate::catalogue::Metric {
            family: stringify!($family),
            field: stringify!($field),
            label: $label,
            unit: $unit,
            better: $crate::catalogue::Better::$better,
            digits: $digits,
            main: catalogue!(@main $($($main)? yes)?),
            doc: $doc,
            of: $crate::catalogue::Of::$of($value),
        }),+]
    };
    (@main yes) => { true };
    (@main) => { false };
}

mod fairness;
mod layers;
mod link;
mod player;
mod tcp;
mod uncompressed;
mod web;

use schemars::JsonSchema;
use serde::Serialize;

use crate::link::Direction;
use crate::player::Player;
use crate::rivals::Rivals;
use crate::tcp::Senders;
use crate::uncompressed::{Rings, Streams};
use crate::web::Web;

/// Which way a metric is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// The more the better.
    Higher,
    /// The less the better.
    Lower,
    /// Neither: it describes.
    Neither,
}

/// One metric of the catalogue.
#[derive(Clone, Copy)]
pub struct Metric {
    /// What it belongs to: `flow`, `tcp`, `player`, `video`, `media`, `requests`, `fairness`, `web`, `stream`, `ring`,
    /// `link` or `layers`.
    pub family: &'static str,
    /// Its name within the family; ends in its unit.
    pub field: &'static str,
    /// A few words for tables and figures.
    pub label: &'static str,
    /// `bit/s`, `B`, `s`, `1/s`, `ms`, `µs`, `dB`, `ratio`, `cores`, or empty for counts and scores.
    pub unit: &'static str,
    /// Which way it is good.
    pub better: Better,
    /// Significant digits worth showing.
    pub digits: u8,
    /// True for what a short table shows.
    pub main: bool,
    /// What it means, precisely.
    pub doc: &'static str,
    pub(crate) of: Of,
}

/// What a metric is computed from.
#[derive(Clone, Copy)]
pub(crate) enum Of {
    /// All directions of all links.
    Links(fn(&[Direction]) -> Option<f64>),
    Direction(fn(&Direction) -> Option<f64>),
    Layers(fn(&crate::layers::Direction) -> Option<f64>),
    Senders(fn(&Senders) -> Option<f64>),
    Player(fn(&Player) -> Option<f64>),
    /// Video under a rate control, and the TCP beside it.
    Rivals(fn(&Rivals) -> Option<f64>),
    /// Pages of the web.
    Web(fn(&Web) -> Option<f64>),
    /// All rings of all senders of uncompressed video.
    Rings(fn(&Rings) -> Option<f64>),
    /// All streams of all receivers of uncompressed video.
    Streams(fn(&Streams) -> Option<f64>),
}

impl std::fmt::Debug for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{} [{}]", self.family, self.field, self.unit)
    }
}

const MS_PER_S: f64 = 1e3;

/// The families, in the order of a report.
static FAMILIES: [&[Metric]; 8] = [
    link::FLOW,
    player::METRICS,
    tcp::METRICS,
    uncompressed::METRICS,
    fairness::METRICS,
    web::METRICS,
    link::METRICS,
    layers::METRICS,
];

/// Every metric, in the order of a report.
///
/// In a summary the name is `FAMILY.FIELD`; of a link `link.DIRECTION.FIELD`, or
/// `link.NAME.DIRECTION.FIELD` if the trial has several links. Where several players took part,
/// `player.FIELD` is their mean and `player.NAME.FIELD` each one's (so for `video`, `media`,
/// `requests`); where several hosts send, `tcp.FIELD` is over all their sockets and
/// `tcp.HOST.FIELD` over each one's.
pub fn catalogue() -> impl Iterator<Item = &'static Metric> {
    FAMILIES.into_iter().flatten()
}

/// The catalogue's entry of a summary's metric, and the words that set this one apart from others of
/// the same kind: `link.down.loss_ratio` is `loss_ratio`, `down`. `None` if it is not ours.
pub fn describe(name: &str) -> Option<(&'static Metric, String)> {
    let (family, rest) = name.split_once('.')?;
    let (instance, field) = rest.rsplit_once('.').unwrap_or(("", rest));
    let metric = catalogue().find(|m| m.family == family && m.field == field)?;
    let instance = match instance.rsplit_once('.') {
        Some((link, direction)) if family == "link" => format!("{link} {direction}"),
        _ => instance.to_owned(),
    };
    Some((metric, instance))
}

/// The catalogue as Markdown: `docs/metrics.md`.
pub fn documentation() -> String {
    let mut text = String::from(
        "# Metrics\n\n\
         Generated from `crates/analysis/src/catalogue/` (`SUIRO_REGENERATE=1 cargo test -p suiro-analysis`): do not edit.\n\n\
         These are the `metrics` of `summary.json`. A mean of something sampled is weighted by time;\n\
         a percentile is the least value that is not exceeded in at least that share of the time or\n\
         packets; null means that it could not be measured. With several links a name is\n\
         `link.NAME.DIRECTION.…`; with several players `player.…`, `video.…`, `media.…` and\n\
         `requests.…` are means over them and `player.NAME.…` each one's; with several sending\n\
         hosts `tcp.…` is over all and `tcp.HOST.…` over each one's sockets. A direction of\n\
         `layers` is `SENDER_to_RECEIVER`, of hosts.\n\n\
         | metric | unit | better | meaning |\n|---|---|---|---|\n",
    );
    for metric in catalogue() {
        let place = if ["link", "layers"].contains(&metric.family) { ".DIRECTION" } else { "" };
        let Metric { family, field, unit, doc, .. } = metric;
        let better = match metric.better {
            Better::Higher => "higher",
            Better::Lower => "lower",
            Better::Neither => "",
        };
        text.push_str(&format!("| `{family}{place}.{field}` | {unit} | {better} | {doc} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_end_in_their_unit() {
        let mut names: Vec<_> = catalogue().map(|m| (m.family, m.field)).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        for metric in catalogue() {
            let suffix = match metric.unit {
                "bit/s" => "_bps",
                "B" => "_bytes",
                "s" => "_s",
                "ms" => "_ms",
                "µs" => "_us",
                "cores" => "_cores",
                _ => continue,
            };
            assert!(metric.field.ends_with(suffix), "{metric:?}");
        }
    }

    #[test]
    fn the_documentation_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        if std::env::var_os("SUIRO_REGENERATE").is_some() {
            std::fs::write(path, documentation()).unwrap();
        }
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            found == documentation(),
            "docs/metrics.md is stale: SUIRO_REGENERATE=1 cargo test -p suiro-analysis"
        );
    }

    #[test]
    fn instances_are_described() {
        let instance = |name| describe(name).map(|(m, instance)| (m.field, instance));
        assert_eq!(instance("link.down.loss_ratio"), Some(("loss_ratio", "down".into())));
        assert_eq!(instance("link.a.b.up.loss_ratio"), Some(("loss_ratio", "a.b up".into())));
        assert_eq!(instance("player.stall_s"), Some(("stall_s", String::new())));
        assert_eq!(instance("player.viewer1.stall_s"), Some(("stall_s", "viewer1".into())));
        assert_eq!(instance("player.nonsense"), None);
    }
}
