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
    /// Lost between its own service access points, as a share of what passed the sender's. `None` if they were not both
    /// watched, or nothing passed.
    pub loss_between: Option<f64>,
    /// Lost by the layer itself: the above minus that of the layer below. Negative for TCP, which resends what lower
    /// layers lost.
    pub own_loss: Option<f64>,
    /// From the sender's service access point to the receiver's.
    pub delay_between: Option<Delay>,
    /// Delayed by the layer itself: each packet's delay minus that of the layer below. The two hosts' clocks cancel
    /// out, except for the lowest layer.
    pub own_delay: Option<Delay>,
}

/// The accounts of all layers. `settled` are the passages whose outcome is known.
pub fn accounts(
    settled: &[&Passage],
    points: Points,
    protocol: Protocol,
    error_ns: Option<u64>,
) -> Vec<LayerAccount> {
    let bounds = |layer| bounds(layer, points);
    let watched = |layer| points.has(bounds(layer).0) && points.has(bounds(layer).1);
    let loss =
        |layer| watched(layer).then(|| loss_between(settled, bounds(layer), protocol)).flatten();
    Layer::ALL
        .into_iter()
        .map(|layer| {
            let below = below(layer);
            let lower = below.map_or(Some(0.0), loss);
            let own: Vec<i64> =
                settled.iter().filter_map(|passage| own_delay(passage, layer, points)).collect();
            let between: Vec<i64> =
                settled.iter().filter_map(|passage| between(passage, layer, points)).collect();
            LayerAccount {
                layer,
                loss_between: loss(layer),
                own_loss: loss(layer).zip(lower).map(|(upper, lower)| upper - lower),
                delay_between: Delay::of(between, error_ns),
                own_delay: Delay::of(own, if below.is_some() { Some(0) } else { error_ns }),
            }
        })
        .collect()
}

fn loss_between(
    settled: &[&Passage],
    (send, receive): (Point, Point),
    protocol: Protocol,
) -> Option<f64> {
    let (mut sent, mut received) = (0, 0);
    for passage in settled.iter().filter(|passage| super::passed(passage, send)) {
        sent += weight(passage, protocol);
        if super::passed(passage, receive) {
            received += weight(passage, protocol);
        }
    }
    (sent > 0).then(|| 1.0 - received as f64 / sent as f64)
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
