//! How evenly packets arrive: burst and buffer measures in the style of ST 2110-21, from the times at which the kernel
//! received the packets. That standard measures on the wire, with hardware. Kernel times are later by the kernel's own
//! work, and packets that it coalesced share one time.

use serde::Serialize;
use suiro_units::{Duration, Time};

use crate::geometry::FrameRate;
use crate::pace::Bucket;

/// What ST 2110-21 allows a stream: packets in the network's leaky bucket, and in a receiver's buffer. MAXIP is the
/// largest IP packet in bytes; fractions are truncated. The minimum buffer sizes are those that the EBU's LIST
/// computes, with its MAXIP fixed to 1500.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// C_MAX of narrow senders: max(4, N / (43200 · R · T)).
    #[serde(rename = "c_max_narrow")]
    pub burst_narrow: u32,
    /// C_MAX of wide senders: max(16, N / (21600 · T)).
    #[serde(rename = "c_max_wide")]
    pub burst_wide: u32,
    /// VRX_FULL of narrow receivers: max(1500 · 8 / MAXIP, N / (27000 · T)).
    #[serde(rename = "vrx_full_narrow")]
    pub buffer_narrow: u32,
    /// VRX_FULL of wide receivers: max(1500 · 720 / MAXIP, N / (300 · T)).
    #[serde(rename = "vrx_full_wide")]
    pub buffer_wide: u32,
}

/// Share of the frame time in which an image with 1080 of 1125 lines is active: R.
const ACTIVE: (u32, u32) = (1080, 1125);

impl Limits {
    /// For frames of `packets` (N), the largest of which has `ip_bytes` (MAXIP, at least 1), in `period` (T).
    pub fn of(packets: u32, ip_bytes: u32, period: Duration) -> Self {
        Self::with(packets, ip_bytes, (1_000_000_000, period.as_nanos()), ACTIVE)
    }

    /// The same for a frame rate: of its period, no part of a nanosecond is lost. `active` is R as a fraction.
    pub fn exact(packets: u32, ip_bytes: u32, rate: FrameRate, active: (u32, u32)) -> Self {
        Self::with(packets, ip_bytes, (rate.frames().into(), rate.seconds().into()), active)
    }

    /// With frames per so many seconds, or nanoseconds.
    fn with(packets: u32, ip_bytes: u32, rate: (u64, u64), active: (u32, u32)) -> Self {
        let limit = |least: u32, per: u32, (of, parts): (u32, u32)| {
            let packets = u128::from(packets) * u128::from(rate.0) * u128::from(parts);
            let per = u128::from(per) * u128::from(of.max(1)) * u128::from(rate.1.max(1));
            least.max(u32::try_from(packets / per).unwrap_or(u32::MAX))
        };
        let ip_bytes = ip_bytes.max(1);
        Self {
            burst_narrow: limit(4, 43_200, active),
            burst_wide: limit(16, 21_600, (1, 1)),
            buffer_narrow: limit(1500 * 8 / ip_bytes, 27_000, (1, 1)),
            buffer_wide: limit(1500 * 720 / ip_bytes, 300, (1, 1)),
        }
    }
}

/// A bucket that drains packet by packet is as full as one that drains evenly, rounded up; what drains in one
/// nanosecond, the resolution of times, is ignored.
fn whole(level: f64) -> f64 {
    const RESOLUTION: f64 = 1e-3;
    (level - RESOLUTION).ceil()
}

/// Measures the evenness of one stream.
#[derive(Debug, Clone)]
pub struct Evenness {
    limits: Limits,
    bucket: Bucket,
    packets: u32,
    period: Duration,
    /// The frame in progress: when it began, and what has arrived of it.
    frame: Option<(Time, u32)>,
    ahead: Span,
    seen: Seen,
}

/// How far the packets of a frame were ahead of linear reading: minimum and maximum.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    least: f64,
    most: f64,
}

/// What was measured since the last [`Evenness::take`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Seen {
    /// Most packets in the leaky bucket, as a whole number: C_INST.
    pub burst_max: f64,
    /// Packets that took it above the wide limit.
    pub above_wide: u64,
    /// Packets that took it above the narrow limit.
    pub above_narrow: u64,
    /// Buffer in packets that linear reading of a frame with the best constant delay would have needed; the maximum
    /// over all frames. VRX counts this, without the offset that a receiver is set to.
    pub buffer_max: f64,
    /// Frames that needed more than the wide buffer.
    pub above_buffer: u64,
}

impl Seen {
    /// Combines the two, as far as they were measured.
    pub fn both(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(one.and(&other)),
            (one, other) => one.or(other),
        }
    }

    /// Combines the two.
    pub fn and(&self, other: &Self) -> Self {
        Self {
            burst_max: self.burst_max.max(other.burst_max),
            above_wide: self.above_wide + other.above_wide,
            above_narrow: self.above_narrow + other.above_narrow,
            buffer_max: self.buffer_max.max(other.buffer_max),
            above_buffer: self.above_buffer + other.above_buffer,
        }
    }
}

impl Evenness {
    /// For frames of `packets`, the largest of which has `ip_bytes`, in `period`.
    pub fn new(packets: u32, ip_bytes: u32, period: Duration) -> Self {
        Self {
            limits: Limits::of(packets, ip_bytes, period),
            bucket: Bucket::new(packets, period),
            packets,
            period,
            frame: None,
            ahead: Span::default(),
            seen: Seen::default(),
        }
    }

    /// The limits.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// `packets` came at `now`; `first` if they are of another frame than those before.
    pub fn packets(&mut self, now: Time, packets: u32, first: bool) {
        let level = whole(self.bucket.add(now, packets));
        self.seen.burst_max = self.seen.burst_max.max(level);
        // Each packet found the bucket one packet fuller than the one before it.
        let above = |limit: u32| (level - f64::from(limit)).clamp(0.0, f64::from(packets)) as u64;
        self.seen.above_wide += above(self.limits.burst_wide);
        self.seen.above_narrow += above(self.limits.burst_narrow);
        if first {
            self.end_frame();
            self.frame = Some((now, 0));
        }
        let Some((start, before)) = &mut self.frame else { return };
        let reading = now.saturating_since(*start) / self.period * f64::from(self.packets);
        *before += packets;
        let came = f64::from(*before);
        self.ahead.most = self.ahead.most.max(came - reading);
        self.ahead.least = self.ahead.least.min(came - f64::from(packets) - reading);
    }

    /// What was measured since the last call; the frame in progress counts as finished.
    pub fn take(&mut self) -> Seen {
        self.end_frame();
        std::mem::take(&mut self.seen)
    }

    fn end_frame(&mut self) {
        self.frame = None;
        let Span { least, most } = std::mem::take(&mut self.ahead);
        let buffer = most - least;
        self.seen.buffer_max = self.seen.buffer_max.max(buffer);
        self.seen.above_buffer += u64::from(buffer > f64::from(self.limits.buffer_wide));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_nanos(16_683_333);

    fn at(share: f64) -> Time {
        Time::from_secs(5) + PERIOD.mul_f64(share)
    }

    #[test]
    fn limits_are_those_of_the_standard() {
        // 1080p59.94 with 10 bits in packets of 1200 bytes, and the study's streams.
        let standard = Limits::of(4320, 1262, PERIOD);
        assert_eq!((standard.burst_narrow, standard.burst_wide), (6, 16));
        assert_eq!((standard.buffer_narrow, standard.buffer_wide), (9, 863));
        let study = Limits::of(709, 8800, PERIOD);
        assert_eq!((study.burst_narrow, study.burst_wide), (4, 16));
        assert_eq!((study.buffer_narrow, study.buffer_wide), (1, 141));
    }

    #[test]
    fn packets_one_by_one_need_no_buffer() {
        let mut even = Evenness::new(1000, 1500, PERIOD);
        for frame in 0..3u32 {
            for packet in 0..1000u32 {
                even.packets(at(f64::from(frame) + f64::from(packet) / 1000.0), 1, packet == 0);
            }
        }
        let seen = even.take();
        assert_eq!((seen.above_narrow, seen.above_buffer), (0, 0));
        assert!(seen.burst_max <= 1.0 && seen.buffer_max < 1.01, "{seen:?}");
    }

    #[test]
    fn only_the_packets_beyond_the_limit_are_counted() {
        let mut even = Evenness::new(1000, 1500, PERIOD);
        even.packets(at(0.0), 20, true);
        let seen = even.take();
        assert_eq!((seen.burst_max, seen.above_wide, seen.above_narrow), (20.0, 4, 16));
        // By now 10.45 of them have drained: the remaining 16.55 count as 17, and the last one took the bucket above
        // the limit.
        even.packets(at(0.0095), 7, false);
        let seen = even.take();
        assert_eq!((seen.burst_max, seen.above_wide), (17.0, 1));
    }

    #[test]
    fn a_whole_frame_at_once_needs_a_whole_frame_of_buffer() {
        let mut even = Evenness::new(1000, 1500, PERIOD);
        even.packets(at(0.0), 1000, true);
        even.packets(at(1.0), 1000, true);
        let seen = even.take();
        assert_eq!((seen.buffer_max, seen.above_buffer), (1000.0, 2));
    }

    #[test]
    fn a_gap_in_the_middle_needs_a_buffer_for_the_packets_it_delayed() {
        let mut even = Evenness::new(1000, 1500, PERIOD);
        for packet in 0..1000u32 {
            let delay = if packet < 500 { 0.0 } else { 0.1 };
            even.packets(at(f64::from(packet) / 1000.0 + delay), 1, packet == 0);
        }
        even.packets(at(2.0), 1, true);
        let seen = even.take();
        assert!((seen.buffer_max - 101.0).abs() < 0.1, "{seen:?}");
    }
}
