//! What a stream is: its frame rate, packets of a frame, rows, scan and schedule, as far as packets show them.

use std::collections::BTreeMap;

use super::frames::{Frame, sizes};
use super::model::{Format, PACKETS_MAX, Scan, Schedule};
use super::packets::{Packet, Stream};
use super::spread::Spread;
use crate::geometry::FrameRate;

/// Frame and field rates in use (ST 2110-20: exactframerate), as fractions.
const RATES: [(u32, u32); 14] = [
    (24_000, 1001),
    (24, 1),
    (25, 1),
    (30_000, 1001),
    (30, 1),
    (48_000, 1001),
    (48, 1),
    (50, 1),
    (60_000, 1001),
    (60, 1),
    (96, 1),
    (100, 1),
    (120_000, 1001),
    (120, 1),
];
/// Fewer packets of a frame, on average, are no video: compressed video has at least 20 (the EBU's LIST).
const FRAME_MIN: usize = 10;
/// The largest IP packet of usual networks.
const JUMBO_IP_BYTES: u32 = 9216;
/// Fewer rows are not an image: another payload format.
const ROWS_MIN: u16 = 100;
/// Share of packets whose row may be above that of the packet before: those that came late, in the next frame.
const DISORDER: f64 = 0.05;

/// What is known of a stream before it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Given {
    /// Packets of a frame or field.
    pub packets: Option<u32>,
    /// Frames per second, also of interlaced video.
    pub rate: Option<FrameRate>,
    /// Rows of a frame.
    pub height: Option<u32>,
    /// Frames or fields.
    pub scan: Option<Scan>,
    /// When packets are read.
    pub schedule: Option<Schedule>,
    /// TROFF in microseconds: when the first packet is read, after the beginning of a frame.
    pub troff_us: Option<u32>,
    /// The largest IP packet that was announced.
    pub ip_bytes: Option<u32>,
}

impl Given {
    /// This, and what `other` knows where this does not.
    pub fn or(self, other: Self) -> Self {
        Self {
            packets: self.packets.or(other.packets),
            rate: self.rate.or(other.rate),
            height: self.height.or(other.height),
            scan: self.scan.or(other.scan),
            schedule: self.schedule.or(other.schedule),
            troff_us: self.troff_us.or(other.troff_us),
            ip_bytes: self.ip_bytes.or(other.ip_bytes),
        }
    }
}

/// Why a stream cannot be analysed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Few packets have one timestamp.
    #[error(
        "not video: fewer than {FRAME_MIN} packets have one timestamp, as in audio and ancillary data"
    )]
    NotVideo,
    /// Packets that no Ethernet carries.
    #[error(
        "IP packets of {0} bytes are larger than any on Ethernet: they were captured before the sender's kernel divided them, \
         or after the receiver's put them together\n\
         hint: capture where they are on the wire, or: ethtool -K INTERFACE tx-udp-segmentation off gro off"
    )]
    Gathered(u32),
    /// There are not enough frames.
    #[error(
        "{0} frames, one or both of them incomplete: expected at least 3\nhint: capture 0.2 s or more"
    )]
    Short(usize),
    /// No packets per frame.
    #[error(
        "the packets of a frame cannot be counted: no two frames that follow each other are whole\nhint: --packets N"
    )]
    Packets,
    /// Too many packets in a frame.
    #[error("{0} packets in a frame: expected at most {PACKETS_MAX}")]
    Large(i64),
    /// The ticks from frame to frame are those of no frame rate.
    #[error(
        "the frame rate is unknown: {0} ticks of 90 kHz from one timestamp to the next belong to no frame rate in use\n\
         hint: --rate 60000/1001, or --sdp FILE"
    )]
    Rate(i64),
    /// The rate of the fields of a rate that was given is impossible.
    #[error("fields of {0} frames per second: expected at most 500 frames")]
    Fields(FrameRate),
}

/// Finds out what is not given.
///
/// # Errors
/// If the stream is not video, or does not show what it is.
pub fn format(stream: &Stream<'_>, frames: &[Frame], given: &Given) -> Result<Format, Unfit> {
    let packets = &stream.packets;
    if frames.len() * FRAME_MIN > packets.len() {
        return Err(Unfit::NotVideo);
    }
    let ip_bytes = packets.iter().map(|packet| packet.ip_bytes).max().unwrap_or(0);
    if ip_bytes > JUMBO_IP_BYTES {
        return Err(Unfit::Gathered(ip_bytes));
    }
    if frames.len() < 3 {
        return Err(Unfit::Short(frames.len()));
    }
    let rows = rows(packets, frames);
    let scan = given.scan.unwrap_or(match rows {
        Some((_, true)) => Scan::Interlaced,
        _ => Scan::Progressive,
    });
    let rate = match given.rate {
        Some(rate) if scan == Scan::Interlaced => {
            let fields = rate.frames().checked_mul(2);
            let fields = fields.and_then(|fields| FrameRate::new(fields, rate.seconds()).ok());
            fields.ok_or(Unfit::Fields(rate))?
        }
        Some(rate) => rate,
        None => rate(frames)?,
    };
    let fields = if scan == Scan::Interlaced { 2 } else { 1 };
    let size = match given.packets {
        Some(packets) => packets,
        None => size(frames)?,
    };
    let mut format = Format {
        packets: size,
        rate,
        height: given.height.or(rows.map(|(rows, _)| u32::from(rows) * fields)),
        scan,
        schedule: Schedule::Gapped,
        ip_bytes: given.ip_bytes.unwrap_or(0).max(ip_bytes),
    };
    format.schedule = given.schedule.unwrap_or_else(|| schedule(packets, frames, &format));
    Ok(format)
}

/// The packets that most frames have.
fn size(frames: &[Frame]) -> Result<u32, Unfit> {
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    for (packets, _) in sizes(frames) {
        *counts.entry(packets).or_default() += 1;
    }
    // Lost markers make frames appear longer or shorter, so of equally frequent ones the middle one would do as well.
    let most = counts.into_iter().filter(|(packets, _)| *packets > 0).max_by_key(|it| it.1);
    let (packets, _) = most.ok_or(Unfit::Packets)?;
    let fits = u32::try_from(packets).ok().filter(|packets| *packets <= PACKETS_MAX);
    fits.ok_or(Unfit::Large(packets))
}

/// The rate in use that is nearest to what the timestamps have: the mean of the steps that are usual.
fn rate(frames: &[Frame]) -> Result<FrameRate, Unfit> {
    let steps = frames.windows(2).map(|pair| pair[1].media - pair[0].media);
    let mut steps: Vec<i64> = steps.filter(|step| *step > 0).collect();
    steps.sort_unstable();
    let usual = *steps.get(steps.len() / 2).ok_or(Unfit::Rate(0))?;
    let near = steps.iter().filter(|step| (**step - usual).abs() <= 1);
    let mean = Spread::of(near.map(|step| *step as f64)).map_or(0.0, |spread| spread.mean);
    let ticks = |(frames, seconds): (u32, u32)| 9e4 * f64::from(seconds) / f64::from(frames);
    let nearest = RATES.into_iter().min_by(|a, b| {
        let apart = |rate| (ticks(rate) - mean).abs();
        apart(*a).total_cmp(&apart(*b))
    });
    let found = nearest.filter(|rate| (ticks(*rate) - mean).abs() <= 1.0);
    found
        .and_then(|(frames, seconds)| FrameRate::new(frames, seconds).ok())
        .ok_or(Unfit::Rate(usual))
}

/// The rows of a frame or field, and whether there are fields; `None` if the packets have no sample row data.
fn rows(packets: &[Packet<'_>], frames: &[Frame]) -> Option<(u16, bool)> {
    let (mut most, mut second, mut disorder, mut all) = (0, false, 0u64, 0u64);
    for frame in frames {
        let mut last = 0;
        let mut of: Vec<&Packet<'_>> = packets[frame.first..][..frame.packets].iter().collect();
        of.sort_by_key(|packet| packet.sequence);
        for packet in of {
            let row = packet.row?;
            all += 1;
            disorder += u64::from(row.number < last);
            last = row.number;
            most = most.max(row.number);
            second |= row.second;
        }
    }
    let in_order = disorder as f64 <= all as f64 * DISORDER;
    let rows = most.checked_add(1).filter(|rows| *rows >= ROWS_MIN && in_order)?;
    Some((rows, second))
}

/// Gapped if between the last packet of most frames and the first of the next there is more than half of the pause that a
/// gapped schedule has, in addition to the usual time from packet to packet.
fn schedule(packets: &[Packet<'_>], frames: &[Frame], format: &Format) -> Schedule {
    let (of, parts) = format.active();
    let pause = format.period_ns() * f64::from(parts - of) / f64::from(parts);
    let step = format.step_ns();
    let mut gaps: Vec<i64> = frames[1..]
        .iter()
        .map(|frame| packets[frame.first].t_ns - packets[frame.first - 1].t_ns)
        .collect();
    gaps.sort_unstable();
    let usual = gaps.get(gaps.len() / 2).map_or(0.0, |gap| *gap as f64);
    if usual > pause / 2.0 + step { Schedule::Gapped } else { Schedule::Linear }
}
