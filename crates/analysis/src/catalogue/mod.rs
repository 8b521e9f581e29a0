//! Every metric and every series: its name, unit, meaning and how it is computed. A file for each kind
//! of thing that is measured, and a line in the list of families.

/// A table of metrics: `family.field [unit, which way is good, digits] label, meaning, how`.
macro_rules! metrics {
    ($($(#[main $($main:tt)?])? $family:ident . $field:ident [$unit:literal, $better:ident, $digits:literal]
        $label:literal, $doc:literal, $of:expr;)+) => {
        &[$($crate::family::Measure {
            metric: $crate::metric::Metric {
                family: stringify!($family),
                field: stringify!($field),
                label: $label,
                unit: $unit,
                better: $crate::metric::Better::$better,
                digits: $digits,
                main: metrics!(@main $($($main)? yes)?),
                doc: $doc,
            },
            of: $of,
        }),+]
    };
    (@main yes) => { true };
    (@main) => { false };
}

/// A table of series: `family.field [panel, unit, style] label, meaning, how`.
macro_rules! series {
    ($($family:ident . $field:ident [$panel:ident, $unit:literal, $style:ident]
        $label:literal, $doc:literal, $of:expr;)+) => {
        &[$($crate::family::Curve {
            quantity: $crate::metric::Quantity {
                family: stringify!($family),
                field: stringify!($field),
                panel: $crate::panel::Panel::$panel,
                label: $label,
                unit: $unit,
                style: $crate::panel::Style::$style,
                doc: $doc,
            },
            of: $of,
        }),+]
    };
}

mod audio;
mod browser;
mod cache;
mod capture;
mod conference;
mod control;
mod converter;
mod estimate;
mod fairness;
mod flows;
mod harm;
mod layers;
mod link;
mod machine;
mod multicast;
mod player;
mod quic;
mod tcp;
mod uncompressed;
mod web;
mod webrtc;
mod why;

use std::collections::BTreeSet;

use suiro_units::Direction;

use crate::family::Registered;
use crate::instance::{Instance, is_at_hub};
use crate::metric::{Better, Metric, Quantity};

/// The families, in the order of a report.
pub(crate) static FAMILIES: &[&dyn Registered] = &[
    &link::ALL,
    &player::FAMILY,
    &estimate::FAMILY,
    &tcp::FAMILY,
    &uncompressed::STREAMS,
    &converter::FAMILY,
    &machine::FAMILY,
    &uncompressed::RINGS,
    &uncompressed::RING,
    &control::FAMILY,
    &multicast::ROUTERS,
    &multicast::MEMBERSHIPS,
    &fairness::FAMILY,
    &flows::EACH,
    &flows::OTHERS,
    &harm::FAMILY,
    &webrtc::SENDERS,
    &webrtc::RECEIVERS,
    &audio::FAMILY,
    &browser::FAMILY,
    &quic::SENDING,
    &quic::VIEWING,
    &cache::FAMILY,
    &web::FAMILY,
    &conference::FAMILY,
    &link::EACH,
    &capture::FAMILY,
    &layers::FAMILY,
    &why::FAMILY,
];

const MS_PER_S: f64 = 1e3;

/// Every metric, in the order of a report.
///
/// In a summary the name is `FAMILY.FIELD`; of a link `link.DIRECTION.FIELD`, or
/// `link.NAME.DIRECTION.FIELD` if the trial has several links. Where several players took part,
/// `player.FIELD` is their mean and `player.NAME.FIELD` each one's (likewise for `video`, `media`,
/// `requests`); where several hosts send, `tcp.FIELD` is over all their sockets and
/// `tcp.HOST.FIELD` over each one's.
pub fn catalogue() -> impl Iterator<Item = &'static Metric> {
    FAMILIES.iter().flat_map(|family| family.metrics())
}

/// Every quantity that is drawn over time, in the order of families. Its name is that of a metric of the
/// same family: `tcp.FIELD`, `link.DIRECTION.FIELD`.
pub fn quantities() -> impl Iterator<Item = &'static Quantity> {
    FAMILIES.iter().flat_map(|family| family.quantities())
}

/// The catalogue's entry of a summary's metric, and which one of several things of its kind it is of:
/// `link.down.loss_ratio` is `loss_ratio` of the direction down. `None` if it is not ours.
pub fn describe(name: &str) -> Option<(&'static Metric, Instance)> {
    let (family, rest) = name.split_once('.')?;
    let (path, field) = rest.rsplit_once('.').unwrap_or(("", rest));
    let named = |metric: &&Metric| metric.family == family && metric.field == field;
    FAMILIES.iter().find_map(|family| {
        let metric = family.metrics().find(named)?;
        Some((metric, family.instance(path)))
    })
}

/// As [`describe`], of a run that has metrics of these names: they show which links are those of a hub's stations.
pub fn describe_among(
    name: &str,
    names: &BTreeSet<&String>,
) -> Option<(&'static Metric, Instance)> {
    let (metric, instance) = describe(name)?;
    let link = instance.path.rsplit_once('.').map(|(link, _)| link);
    let has = |direction: Direction| {
        let other = |link| format!("link.{link}.{}.{}", direction.name(), metric.field);
        link.is_some_and(|link| names.contains(&other(link)))
    };
    let at_hub = metric.family == "link" && is_at_hub(has);
    Some((metric, instance.at_hub(at_hub)))
}

/// The catalogue as Markdown: `docs/metrics.md`.
pub fn documentation() -> String {
    let mut text = String::from(
        "# Metrics\n\n\
         Generated from `crates/analysis/src/catalogue/` (`make generate`): do not edit.\n\n\
         These are the `metrics` of `summary.json`. A mean of something sampled is weighted by time;\n\
         a percentile is the smallest value that is not exceeded in at least that share of the time or\n\
         packets; null means that the metric could not be measured. With several links a name is\n\
         `link.NAME.DIRECTION.…`; for a hub's stations it is `link.HUB-STATION.up.…`. With several players,\n\
         `player.…`, `video.…`, `media.…` and `requests.…` are means over them, and `player.NAME.…` belongs to one\n\
         player. With several sending hosts, `tcp.…` is over all sockets and `tcp.HOST.…` over those of one host. A\n\
         direction of `layers` is `SENDER_to_RECEIVER`, with the names of hosts.\n\n\
         Of a trial with a warm-up (`warm_up` in the scenario), metrics are about the time after it, and *the trial* is that time,\n\
         unless a metric's meaning says otherwise. Of what begins in the warm-up and lasts longer, such as a stall, the part after\n\
         it counts. Packets, requests and pages count if they come or begin after it, bytes if they are delivered after it. Series\n\
         are of the whole trial. [method.md](method.md#warm-up) has the rule.\n\n\
         | metric | unit | better | meaning |\n|---|---|---|---|\n",
    );
    for (place, metric) in FAMILIES.iter().flat_map(|f| f.metrics().map(|m| (f.place(), m))) {
        let Metric { family, field, unit, doc, .. } = metric;
        let better = match metric.better {
            Better::Higher => "higher",
            Better::Lower => "lower",
            Better::Neither => "",
        };
        text.push_str(&format!("| `{family}{place}.{field}` | {unit} | {better} | {doc} |\n"));
    }
    text.push_str(
        "\n## Series\n\n\
         The report draws these over time, and the charts of a study refer to them by name.\n\
         With several links, players or sending hosts, the names are formed like those of metrics;\n\
         with more than four players, only the mean is drawn.\n\n\
         | series | chart | unit | meaning |\n|---|---|---|---|\n",
    );
    for (place, quantity) in FAMILIES.iter().flat_map(|f| f.quantities().map(|q| (f.place(), q))) {
        let Quantity { family, field, unit, panel, doc, .. } = quantity;
        let title = panel.look().title;
        text.push_str(&format!("| `{family}{place}.{field}` | {title} | {unit} | {doc} |\n"));
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

    #[expect(clippy::disallowed_methods, reason = "the test compares with the file")]
    #[test]
    fn the_documentation_is_current() {
        let path = "../../docs/metrics.md";
        if std::env::var_os("SUIRO_REGENERATE").is_some() {
            std::fs::write(path, documentation()).unwrap();
        }
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert!(found == documentation(), "docs/metrics.md is stale\nhint: make generate");
    }

    #[test]
    fn instances_are_described() {
        let instance = |name| describe(name).map(|(m, instance)| (m.field, instance.words()));
        assert_eq!(instance("link.down.loss_ratio"), Some(("loss_ratio", "down".into())));
        assert_eq!(instance("link.a.b.up.loss_ratio"), Some(("loss_ratio", "a.b up".into())));
        assert_eq!(instance("player.stall_s"), Some(("stall_s", String::new())));
        assert_eq!(instance("player.viewer1.stall_s"), Some(("stall_s", "viewer1".into())));
        assert_eq!(instance("player.nonsense"), None);
    }

    #[test]
    fn an_up_direction_without_a_down_one_is_that_of_a_station() {
        let names = [
            "link.lan-ws1.up.loss_ratio",
            "link.wan.down.loss_ratio",
            "link.wan.up.loss_ratio",
            "capture.lan-ws1.up.loss_ratio",
        ];
        let names = names.map(str::to_owned);
        let all: BTreeSet<&String> = names.iter().collect();
        let towards = |name: &String| describe_among(name, &all).unwrap().1.is_towards_viewers();
        assert_eq!(names.each_ref().map(towards), [true, true, false, false]);
    }
}
