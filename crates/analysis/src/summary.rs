//! The flat metrics of one trial.

use std::collections::BTreeMap;

use suiro_record::Trial;

use crate::Records;
use crate::catalogue::{Of, catalogue};
use crate::layers;
use crate::link::directions;
use crate::player::{Player, players};
use crate::rivals::Rivals;
use crate::tcp::{media_sockets, senders};
use crate::uncompressed::{Rings, Streams};
use crate::web::Web;

/// Every metric of the [`catalogue()`] that applies to what took part, by name; `None` where it could
/// not be measured. What did not take part at all (no player, no TCP) has no entries.
pub fn summarise(trial: &Trial, records: &Records) -> BTreeMap<String, Option<f64>> {
    let links = directions(trial, records);
    let sockets = media_sockets(trial, records);
    let senders = senders(trial, &sockets);
    let players = players(trial, records);
    let rivals = Rivals::of(trial, records);
    let web = Web::of(trial, records);
    let rings = Rings::of(trial, records);
    let streams = Streams::of(trial, records);
    let layers = layers::directions(records);
    let mut metrics = BTreeMap::new();
    let mut put = |name: String, value: Option<f64>| {
        // An empty sum is −0; adding 0 makes it 0.
        metrics.insert(name, value.filter(|value| value.is_finite()).map(|value| value + 0.0));
    };
    for metric in catalogue() {
        let (family, field) = (metric.family, metric.field);
        match metric.of {
            Of::Links(value) => put(format!("{family}.{field}"), value(&links)),
            Of::Direction(value) => {
                for link in &links {
                    put(format!("{}.{field}", link.prefix), value(link));
                }
            }
            Of::Layers(value) => {
                for direction in &layers {
                    put(format!("{}.{field}", direction.prefix), value(direction));
                }
            }
            Of::Senders(value) => {
                for group in &senders {
                    put(format!("{}.{field}", group.prefix), value(group));
                }
            }
            Of::Rivals(value) => {
                if let Some(rivals) = &rivals {
                    put(format!("{family}.{field}"), value(rivals));
                }
            }
            Of::Web(value) => {
                if let Some(web) = &web {
                    put(format!("{family}.{field}"), value(web));
                }
            }
            Of::Rings(value) => {
                if let Some(rings) = &rings {
                    put(format!("{family}.{field}"), value(rings));
                }
            }
            Of::Streams(value) => {
                if let Some(streams) = &streams {
                    put(format!("{family}.{field}"), value(streams));
                }
            }
            Of::Player(value) => {
                for (instance, value) in each_and_mean(&players, value) {
                    put(format!("{family}{instance}.{field}"), value);
                }
            }
        }
    }
    metrics
}

/// The mean over players, and, of several, each one's value.
fn each_and_mean(
    players: &[Player],
    value: fn(&Player) -> Option<f64>,
) -> Vec<(String, Option<f64>)> {
    let each: Vec<_> = players.iter().map(|p| (format!(".{}", p.name), value(p))).collect();
    let measured: Vec<f64> = each.iter().filter_map(|(_, value)| *value).collect();
    let mean = measured.iter().sum::<f64>() / measured.len() as f64;
    let all = (String::new(), (!measured.is_empty()).then_some(mean));
    match players.len() {
        0 => Vec::new(),
        1 => vec![all],
        _ => std::iter::once(all).chain(each).collect(),
    }
}
