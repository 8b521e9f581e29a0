//! The accounts of one direction, second by second.

use serde::Serialize;

use super::layer::{Layer, between, bounds, own_delay};
use super::{passed, weight};
use crate::event::{Point, Protocol};
use crate::matching::{POINTS, Passage, Points, way};

/// Most seconds with an account of their own; later ones have none.
pub const SECONDS: usize = 100_000;

/// One second, counted from the beginning of the first recording.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Second {
    /// Bytes of payload that passed each point in this second, by [`Point`]; without duplicates.
    pub bytes: [u64; POINTS],
    /// Sent in this second: packets for UDP, bytes for TCP. Sending is the first point that saw it.
    pub sent: u64,
    /// Of these, certainly lost after each point, by [`Point`]. If the recorder missed some, the others are spread evenly
    /// over those that were not seen again.
    pub lost_after: [u64; POINTS],
    /// Of these, certainly lost between the service access points of each layer, by [`Layer`].
    pub lost_between: [u64; 4],
    /// Mean delay between each layer's service access points, for what was sent in this second.
    pub delay_between_ns: [Option<f64>; 4],
    /// How many delays these are the means of: of packets for UDP, of ranges for TCP.
    pub delays: [u64; 4],
    /// Mean delay of each layer itself, for what was sent in this second.
    pub own_delay_ns: [Option<f64>; 4],
    /// Mean difference between a packet's delay in each layer itself and that of the packet before it.
    pub own_jitter_ns: [Option<f64>; 4],
}

#[derive(Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, value: Option<i64>) {
        if let Some(value) = value {
            self.sum += value as f64;
            self.count += 1;
        }
    }
    fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

#[derive(Clone, Copy, Default)]
struct Means {
    between: [Mean; 4],
    own: [Mean; 4],
    jitter: [Mean; 4],
}

/// All seconds from `start_ns` to the last in which something passed. `settled` is as for the layers' accounts.
pub fn seconds(
    settled: &[(&Passage, u64)],
    points: Points,
    protocol: Protocol,
    start_ns: i64,
) -> Vec<Second> {
    let mut seconds: Vec<Second> = Vec::new();
    let mut means: Vec<Means> = Vec::new();
    let mut before = [None; 4];
    for &(passage, lost) in settled {
        for point in way() {
            let Some(second) = passage.at(point).and_then(|t_ns| number(t_ns, start_ns)) else {
                continue;
            };
            at(&mut seconds, second).bytes[point as usize] += u64::from(passage.bytes);
        }
        let sent = passage.first().and_then(|point| passage.at(point));
        let Some(second) = sent.and_then(|t_ns| number(t_ns, start_ns)) else { continue };
        let entry = at(&mut seconds, second);
        entry.sent += weight(passage, protocol);
        count_lost(entry, passage, points, lost);
        let means = at(&mut means, second);
        for layer in Layer::ALL {
            means.between[layer as usize].add(between(passage, layer, points));
            let own = own_delay(passage, layer, points);
            means.own[layer as usize].add(own);
            let Some(own) = own else { continue };
            let change = before[layer as usize]
                .replace(own)
                .map(|before: i64| own.saturating_sub(before).saturating_abs());
            means.jitter[layer as usize].add(change);
        }
    }
    for (second, means) in seconds.iter_mut().zip(means) {
        second.delay_between_ns = means.between.map(Mean::value);
        second.delays = means.between.map(|mean| mean.count);
        second.own_delay_ns = means.own.map(Mean::value);
        second.own_jitter_ns = means.jitter.map(Mean::value);
    }
    seconds
}

fn count_lost(second: &mut Second, passage: &Passage, points: Points, lost: u64) {
    let Some(last) = passage.last() else { return };
    second.lost_after[last as usize] += lost;
    for layer in Layer::ALL {
        let (send, receive): (Point, Point) = bounds(layer, points);
        if passed(passage, send) && !passed(passage, receive) {
            second.lost_between[layer as usize] += lost;
        }
    }
}

fn number(t_ns: i64, start_ns: i64) -> Option<usize> {
    let elapsed = t_ns.checked_sub(start_ns)?;
    let second = usize::try_from(elapsed.div_euclid(1_000_000_000)).ok()?;
    (second < SECONDS).then_some(second)
}

fn at<T: Clone + Default>(all: &mut Vec<T>, index: usize) -> &mut T {
    if all.len() <= index {
        all.resize(index + 1, T::default());
    }
    &mut all[index]
}
