//! The virtual receiver buffer of ST 2110-21: how many packets have come that are not yet read, if the first packet
//! of a frame is read at T_VD, and the others T_RS apart.

use std::collections::BTreeMap;

use serde::Serialize;

use super::frames::Frame;
use super::model::Format;
use super::packets::Packet;
use super::spread::{Gather, Levels, Spread};

/// Frames further apart than this, over two years, have damaged timestamps.
const FRAMES_MAX: i128 = 1 << 32;

/// Where T_VD of a frame lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datum {
    /// TRO_DEFAULT after the beginning of the frame. `None` for its share of T: the height is not known.
    Default,
    /// So many nanoseconds after the beginning of the frame.
    Offset(i128),
    /// When the first packet of the first frame came, and whole frame times after that.
    First,
}

/// VRX with one offset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reading {
    /// From the beginning of a frame, N · T_FRAME, to T_VD, in µs; of the first frame, where T_VD is its first packet.
    pub offset_us: f64,
    /// VRX at each packet.
    #[serde(flatten)]
    pub levels: Levels,
    /// How long before its reading the first packet of each frame came, in µs: T_VD − FPT. Negative if it was late.
    pub first_margin_us: Spread,
    /// How long before its reading each packet came, in µs: TPR_j − TPA_j.
    pub margin_us: Spread,
}

/// Exact arithmetic in parts of a nanosecond of which frame times, offsets and reading times are whole numbers.
#[derive(Debug, Clone, Copy)]
pub struct Clockwork {
    format: Format,
    /// Parts of a nanosecond.
    scale: i128,
    /// T in parts.
    period: i128,
    /// Added to a capture's times: what makes them TAI, in nanoseconds.
    to_tai_ns: i64,
}

impl Clockwork {
    /// For times that are TAI once `to_tai_ns` is added to them.
    pub fn new(format: Format, to_tai_ns: i64) -> Self {
        let parts = i128::from(format.offset().map_or(1, |(_, parts)| parts));
        let scale = i128::from(format.rate.frames()) * parts;
        let period = i128::from(format.rate.seconds()) * 1_000_000_000 * parts;
        Self { format, scale, period, to_tai_ns }
    }

    /// A captured time in parts.
    fn tai(&self, t_ns: i64) -> i128 {
        (i128::from(t_ns) + i128::from(self.to_tai_ns)) * self.scale
    }

    /// Parts as nanoseconds.
    fn ns(&self, parts: i128) -> f64 {
        parts as f64 / self.scale as f64
    }

    /// The number of the frame that is in progress when a packet comes: N. A first packet that comes up to a twentieth of a
    /// frame time early belongs to the frame that its RTP timestamp names, if that is known.
    pub fn number(&self, t_ns: i64, timestamp: Option<u32>) -> i128 {
        let tai = self.tai(t_ns);
        let number = tai.div_euclid(self.period);
        let next = (number + 1) * self.period;
        let is_next = |timestamp: u32| {
            let ticks = next * 90_000 / (self.scale * 1_000_000_000);
            (timestamp.wrapping_sub(ticks as u32).cast_signed()).abs() <= 1
        };
        let early = (next - tai) * 20 <= self.period && timestamp.is_some_and(is_next);
        if early { number + 1 } else { number }
    }

    /// FPT, from the beginning of frame `number` to a time, in nanoseconds.
    pub fn since(&self, number: i128, t_ns: i64) -> f64 {
        self.ns(self.tai(t_ns) - number * self.period)
    }

    /// The RTP timestamp of the beginning of frame `number`, rounded.
    pub fn timestamp(&self, number: i128) -> u32 {
        let per = self.scale * 1_000_000_000;
        ((number * self.period * 90_000 + per / 2).div_euclid(per)) as u32
    }

    /// How long after an RTP timestamp a time is, in nanoseconds; timestamps repeat after 13 hours.
    pub fn latency_ns(&self, timestamp: u32, t_ns: i64) -> f64 {
        let tai = i128::from(t_ns) + i128::from(self.to_tai_ns);
        let (ticks, rest) = ((tai * 9).div_euclid(100_000), (tai * 9).rem_euclid(100_000));
        let ahead = (ticks as u32).wrapping_sub(timestamp).cast_signed();
        f64::from(ahead) * 1e5 / 9.0 + rest as f64 / 9.0
    }

    /// T_VD of a frame, from its beginning, in parts.
    fn offset(&self, datum: Datum) -> Option<i128> {
        match datum {
            Datum::Default => {
                let (of, parts) = self.format.offset()?;
                Some(self.period * i128::from(of) / i128::from(parts))
            }
            Datum::Offset(ns) => Some(ns * self.scale),
            Datum::First => Some(0),
        }
    }

    /// The frame that follows the first by so many ticks.
    fn frames_since(&self, ticks: i64) -> i128 {
        let frames = (ticks as f64 / self.format.ticks()).round();
        (frames as i128).clamp(-FRAMES_MAX, FRAMES_MAX)
    }

    /// Packets that are read until `since` parts after T_VD: the first at T_VD. As in the EBU's LIST, reading is thought to go
    /// on before T_VD at the same rate, so that the packets of a frame that comes early count those that a
    /// receiver has still to read of the one before. (LIST cuts off parts of a packet, so there VRX is one less before
    /// T_VD.)
    fn read(&self, since: i128) -> i128 {
        let (of, parts) = self.format.active();
        let step = self.period * i128::from(of);
        (since * i128::from(parts) * i128::from(self.format.packets) + step).div_euclid(step)
    }

    /// How long before its reading packet `index` comes, in nanoseconds, if it comes `since` parts after T_VD.
    fn margin(&self, index: usize, since: i128) -> f64 {
        index as f64 * self.format.step_ns() - self.ns(since)
    }
}

/// VRX of these frames, whose numbers are known; `None` if the datum is not, or if there are no frames.
pub fn read(
    clockwork: &Clockwork,
    packets: &[Packet<'_>],
    frames: &[(Frame, i128)],
    datum: Datum,
) -> Option<Reading> {
    let offset = clockwork.offset(datum)?;
    let (first, number) = frames.first()?;
    let began = clockwork.tai(packets[first.first].t_ns);
    let at = |(frame, number): &(Frame, i128)| match datum {
        Datum::First => {
            let since = clockwork.frames_since(frame.media.saturating_sub(first.media));
            began + since * clockwork.period
        }
        _ => number * clockwork.period + offset,
    };
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    let (mut margins, mut firsts) = (Gather::default(), Gather::default());
    for frame in frames {
        let datum = at(frame);
        let of = &packets[frame.0.first..][..frame.0.packets];
        for (index, packet) in of.iter().enumerate() {
            let since = clockwork.tai(packet.t_ns) - datum;
            let level = index as i128 + 1 - clockwork.read(since);
            let level = i64::try_from(level).unwrap_or(i64::MAX * level.signum() as i64);
            *counts.entry(level).or_default() += 1;
            let margin = clockwork.margin(index, since) / 1e3;
            margins.add(margin);
            if index == 0 {
                firsts.add(margin);
            }
        }
    }
    let start = match datum {
        Datum::First => clockwork.since(*number, packets[first.first].t_ns),
        _ => clockwork.ns(offset),
    };
    Some(Reading {
        offset_us: start / 1e3,
        levels: Levels::of(&counts),
        first_margin_us: firsts.spread()?,
        margin_us: margins.spread()?,
    })
}

/// The least offset, in whole nanoseconds, with which no packet comes after its reading: VRX is never negative.
pub fn least(
    clockwork: &Clockwork,
    packets: &[Packet<'_>],
    frames: &[(Frame, i128)],
) -> Option<i128> {
    let (of, parts) = clockwork.format.active();
    let parts = i128::from(parts) * i128::from(clockwork.format.packets);
    let each = frames.iter().flat_map(|(frame, number)| {
        let begins = number * clockwork.period;
        let of_frame = packets[frame.first..][..frame.packets].iter().enumerate();
        of_frame.map(move |(index, packet)| {
            // Packet `index` is there at the latest when the next one is read.
            let since = clockwork.tai(packet.t_ns) - begins;
            let read = (index as i128 + 1) * clockwork.period * i128::from(of);
            // It must come before that time, not at it.
            (since * parts - read).div_euclid(parts * clockwork.scale) + 1
        })
    });
    each.max()
}
