//! What is set up before a session plays: where it begins, how near to the live edge, how much it holds.

use suiro_abr::{Controller, Ladder, Limits, Live, Playout, PlayoutConfig};
use suiro_units::{Duration, Ratio};

use super::super::live::{join_at, zero_ns};
use super::Session;

/// The most by which a live player changes its speed to keep its latency: too little to be heard.
const SPEED_CHANGE: f64 = 0.05;
/// How far the latency may be off before the speed changes.
const LATENCY_TOLERANCE: Duration = Duration::from_millis(100);
/// How far the latency may be off before the player jumps: dash.js's `maxDrift`.
pub(super) const LATENCY_DRIFT: Duration = Duration::from_secs(12);
/// The same at low latency: what a viewer of a live event should never be behind, and enough to be caught up by speed.
const LOW_LATENCY_DRIFT: Duration = Duration::from_secs(3);

impl Session {
    /// Sets up playout and controllers, once the segments of the first video rung are known.
    pub(super) fn prepare(&mut self) {
        if self.clock.is_awaited() {
            return;
        }
        let epoch = self.config.epoch_unix_ns;
        let Some(stream) = &mut self.stream else { return };
        if stream.playout.is_some() {
            return;
        }
        let Some(segments) = stream.tracks[0].lowest_segments() else { return };
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
            // An empty live playlist: it will be fetched again.
            return;
        };
        let segment = first.duration.max(last.duration);
        let capacity = self.config.buffer.max(segment * 2);
        let low_latency = stream.tracks[0].is_low_latency();
        let (hold_back, edge) = stream.tracks[0].hold_back_and_edge().unwrap_or_default();
        let listed = (first.start, edge.unwrap_or_default().max(last.end()));
        let listed = segments.is_listed().then_some(listed);
        let plan = stream.live.as_ref().map(|live| {
            let advised = live.service.latency.or(hold_back).or(live.suggested_delay);
            let target = self.config.target_latency.or(advised);
            let target = target.unwrap_or(segment * 3);
            (target, join_at(live, epoch, self.now, target, listed))
        });
        let position = plan.map_or(first.start, |(_, position)| position);
        let drift = if low_latency { LOW_LATENCY_DRIFT } else { LATENCY_DRIFT };
        let drift = self.config.max_drift.unwrap_or(drift);
        let speed_change = self.config.speed_change.map(Ratio::get);
        let live = plan.zip(stream.live.as_ref()).and_then(|((target, _), live)| {
            Some(Live {
                zero_ns: zero_ns(live, epoch)?,
                target,
                tolerance: match low_latency {
                    true => LATENCY_TOLERANCE.min(target / 10),
                    false => LATENCY_TOLERANCE,
                },
                speed_change: speed_change.or(live.service.speed_change).unwrap_or(SPEED_CHANGE),
                latest: target + drift,
                catch_up: self.config.catch_up,
                join_at_target: low_latency,
            })
        });
        if let Ok(frames) = &mut stream.frames {
            frames.zero_ns = live.map(|live| live.zero_ns);
        }
        // At low latency, a quarter of it: the buffer cannot hold more than all of it.
        let startup = match live.filter(|_| low_latency) {
            Some(live) => (segment / 2).min(live.target / 4),
            None => segment / 2,
        };
        let config = PlayoutConfig { startup, resume: startup, capacity, live };
        let buffer = plan.map_or(capacity, |(target, _)| capacity.min(target));
        stream.capacity = capacity;
        let tracks = stream.tracks.len();
        stream.playout = Some(Playout::new(config, tracks, position, self.now));
        for track in &mut stream.tracks {
            track.begin(position);
        }
        let rates = stream.tracks[0].rates();
        let ladder = Ladder::new(rates).expect("a manifest's ladder is not empty, rising, bounded");
        let limits = Limits { segment, buffer };
        let controller = Controller::new(self.config.algorithm, ladder, limits);
        stream.tracks[0].controller = Some(controller.with_estimator(self.config.chunks));
    }
}
