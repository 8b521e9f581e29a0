//! The layers of the study: what happens between a layer's own service access points but not between those of the layer
//! below.

use serde::Serialize;

use super::{Delay, weight};
pub use suiro_record::words::Layer;

use crate::event::{Point, Protocol};
use crate::matching::{Passage, Points};

/// The points at a layer's upper boundary: in the sender, in the receiver. Where the handover to TCP or UDP is not
/// among the watched points, that to IP takes its place.
pub fn bounds(layer: Layer, points: Points) -> (Point, Point) {
    match layer {
        Layer::SystemCall => (Point::SendCall, Point::ReceiveCall),
        Layer::Transport => {
            let sends = [Point::SendTransport, Point::SendIp];
            let send = sends.into_iter().find(|&point| points.has(point));
            (send.unwrap_or(Point::SendIp), Point::ReceiveSocket)
        }
        Layer::Network => (Point::SendIp, Point::ReceiveLocal),
        Layer::Link => (Point::SendLink, Point::ReceiveIp),
    }
}

/// The next layer below.
pub fn below(layer: Layer) -> Option<Layer> {
    Layer::ALL.into_iter().find(|&other| other > layer)
}

/// A layer's displayed name.
pub const fn title(layer: Layer) -> &'static str {
    match layer {
        Layer::SystemCall => "system call",
        Layer::Transport => "UDP or TCP",
        Layer::Network => "IP",
        Layer::Link => "data link",
    }
}

/// What one layer lost and delayed, in both hosts together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerAccount {
    /// The layer.
    pub layer: Layer,
    /// Certainly lost between its own service access points, as a share of what passed the sender's. `None` if they were
    /// not both watched, or nothing passed.
    pub loss_between: Option<f64>,
    /// Lost by the layer itself: the above minus that of the layer below. Negative for TCP, which resends what lower
    /// layers lost.
    pub own_loss: Option<f64>,
    /// Not seen again between them, possibly because of a gap in the recorder, as such a share. Not in `loss_between`.
    pub unplaced: Option<f64>,
    /// From the sender's service access point to the receiver's.
    pub delay_between: Option<Delay>,
    /// Delayed by the layer itself: each packet's delay minus that of the layer below. The two hosts' clocks cancel
    /// out, except for the lowest layer.
    pub own_delay: Option<Delay>,
}

/// The accounts of all layers. `settled` are the passages whose outcome is known, and how much of each is certainly lost.
pub fn accounts(
    settled: &[(&Passage, u64)],
    points: Points,
    protocol: Protocol,
    error_ns: Option<u64>,
) -> Vec<LayerAccount> {
    let bounds = |layer| bounds(layer, points);
    let watched = |layer| points.has(bounds(layer).0) && points.has(bounds(layer).1);
    let losses = |layer| watched(layer).then(|| losses(settled, bounds(layer), protocol)).flatten();
    let loss = |layer| losses(layer).map(|losses| losses.certain);
    let delays = |of: fn(&Passage, Layer, Points) -> Option<i64>, layer| -> Vec<i64> {
        settled.iter().filter_map(|(passage, _)| of(passage, layer, points)).collect()
    };
    Layer::ALL
        .into_iter()
        .map(|layer| {
            let below = below(layer);
            let lower = below.map_or(Some(0.0), loss);
            LayerAccount {
                layer,
                loss_between: loss(layer),
                own_loss: loss(layer).zip(lower).map(|(upper, lower)| upper - lower),
                unplaced: losses(layer).map(|losses| losses.unplaced),
                delay_between: Delay::of(delays(between, layer), error_ns),
                own_delay: Delay::of(
                    delays(own_delay, layer),
                    if below.is_some() { Some(0) } else { error_ns },
                ),
            }
        })
        .collect()
}

/// What did not get from one point to another, as shares of what passed the first.
struct Losses {
    certain: f64,
    unplaced: f64,
}

fn losses(
    settled: &[(&Passage, u64)],
    (send, receive): (Point, Point),
    protocol: Protocol,
) -> Option<Losses> {
    let (mut sent, mut missing, mut certain) = (0, 0, 0);
    for (passage, lost) in settled.iter().filter(|(passage, _)| super::passed(passage, send)) {
        let weight = weight(passage, protocol);
        sent += weight;
        if !super::passed(passage, receive) {
            missing += weight;
            certain += lost;
        }
    }
    let share = |amount: u64| amount as f64 / sent as f64;
    (sent > 0).then(|| Losses { certain: share(certain), unplaced: share(missing - certain) })
}

/// One-way delay between a layer's service access points.
pub(super) fn between(passage: &Passage, layer: Layer, points: Points) -> Option<i64> {
    let (send, receive) = bounds(layer, points);
    Some(passage.at(receive)?.saturating_sub(passage.at(send)?))
}

/// The layer's own delay.
pub(super) fn own_delay(passage: &Passage, layer: Layer, points: Points) -> Option<i64> {
    let lower = match below(layer) {
        Some(below) => between(passage, below, points)?,
        None => 0,
    };
    Some(between(passage, layer, points)?.saturating_sub(lower))
}
