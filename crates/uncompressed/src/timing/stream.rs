//! One stream: everything that is reported of it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::clock::Clock;
use super::detect::{self, Given, Unfit};
use super::frames::{Frame, frames, sizes};
use super::model::{Format, Scan, Schedule};
use super::network::Network;
use super::packets::{Packet, Stream};
use super::receiver::{self, Clockwork, Datum, Reading};
use super::spread::{Levels, Spread};
use super::verdict::{Basis, Check, Profile, Verdict, verdict};
use super::{Name, Options};
use crate::measure::Limits;
use crate::sdp::{Announced, SenderType};

/// JT-NM Tested: an RTP timestamp is not in the future and at most 1 ms in the past, in µs.
const LATENCY_US: f64 = 1000.0;
/// A tick of the RTP clock, in µs: timestamps are no more accurate.
const TICK_US: f64 = 1e6 / 9e4;

/// What a stream is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Found {
    /// Packets of a frame or field: N_PACKETS.
    pub packets_per_frame: u32,
    /// Frames per second, as a fraction; of interlaced video, half of its fields.
    pub frame_rate: String,
    /// Rows of a frame; null if they are not known.
    pub height: Option<u32>,
    /// Frames or fields.
    pub scan: Scan,
    /// When a receiver is thought to read.
    pub schedule: Schedule,
    /// The largest IP packet, in bytes.
    pub ip_bytes: u32,
    /// From frame to frame, or field to field, in µs: T_FRAME.
    pub t_frame_us: f64,
    /// From packet to packet of a receiver's reading, in µs: T_RS.
    pub t_rs_us: f64,
    /// From the beginning of a frame to the reading of its first packet, by default, in µs; null if the height is not known.
    pub tro_default_us: Option<f64>,
}

/// What sequence numbers show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sequence {
    /// Packets that are missing.
    pub lost: u64,
    /// Packets that came more than once.
    pub copies: u64,
    /// Packets that came after a later one.
    pub reordered: u64,
}

/// Frames or fields whose last packet is there, but has no marker; and packets with a marker that are not the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Markers {
    /// Without one.
    pub missing: u64,
    /// Too early.
    pub early: u64,
}

/// VRX with several offsets. Null if T_VD is not known: clocks cannot be compared, or the height is unknown, or nothing was
/// announced.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Vrx {
    /// With TRO_DEFAULT: LIST's "ideal".
    pub ideal: Option<Reading>,
    /// With the TROFF that was announced or given.
    pub announced: Option<Reading>,
    /// With the mean FPT: LIST's "adjusted".
    pub measured: Option<Reading>,
    /// From the first packet of the first frame on: LIST's "first packet first frame".
    pub first_packet: Option<Reading>,
    /// With the least offset that leaves no packet late.
    pub least: Option<Reading>,
}

/// Times from one packet to the next, in µs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spacing {
    /// Within frames.
    pub within: Option<Spread>,
    /// From the last packet of a frame to the first of the next.
    pub between: Option<Spread>,
}

/// What was measured of a stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What it is called.
    pub name: Name,
    /// Its packets.
    pub packets: usize,
    /// Its frames or fields, those at both ends included.
    pub frames: usize,
    /// From its first packet to its last.
    pub seconds: f64,
    /// What it is.
    pub format: Found,
    /// What was assumed about the capture's clock.
    pub clock: Clock,
    /// Loss and order.
    pub sequence: Sequence,
    /// Markers.
    pub markers: Markers,
    /// Frames between two whole ones that do not have N_PACKETS packets.
    pub other_sizes: u64,
    /// C_MAX and VRX_FULL.
    pub limits: Limits,
    /// C_INST at each packet, as a number of packets.
    pub c_inst: Levels,
    /// VRX.
    pub vrx: Vrx,
    /// From the beginning of the frame, N · T_FRAME, to its first packet, in µs: FPT. Null if clocks cannot be compared.
    pub fpt_us: Option<Spread>,
    /// From the RTP timestamp to the first packet of a frame, in µs. Null if clocks cannot be compared.
    pub latency_us: Option<Spread>,
    /// From the beginning of the frame to the RTP timestamp, in ticks of 90 kHz. Null if clocks cannot be compared.
    pub rtp_offset_ticks: Option<Spread>,
    /// From one RTP timestamp to the next, in ticks.
    pub rtp_step_ticks: Option<Spread>,
    /// Times between packets.
    pub spacing_us: Spacing,
    /// The result.
    pub verdict: Verdict,
    /// Other requirements.
    pub checks: Vec<Check>,
}

impl Report {
    /// Whether it complies with a sender type, and keeps the other requirements.
    pub fn is_well(&self) -> bool {
        self.verdict.profile != Profile::NotCompliant && self.checks.iter().all(|check| check.holds)
    }
}

/// Measures a stream.
///
/// # Errors
/// If it is no video, or it is unknown what it is.
pub fn report(
    name: Name,
    stream: &Stream<'_>,
    options: &Options,
    announced: Option<&Announced>,
) -> Result<Report, Unfit> {
    let given = options.given.or(announced.map_or_else(Given::default, Announced::given));
    let packets = &stream.packets;
    let frames = frames(packets);
    let format = detect::format(stream, &frames, &given)?;
    let whole = &frames[1..];
    let clock = Clock::of(options.tai_offset_s, packets, whole);
    let measured = Measured::of(format, clock, packets, whole);
    let vrx = measured.vrx(given.troff_us);
    let limits = format.limits();
    let c_inst = c_inst(&format, packets);
    let sequence = sequence(packets);
    let verdict = judged(&limits, &format, &c_inst, &vrx, sequence.lost);
    let seconds = match &packets[..] {
        [first, .., last] => (last.t_ns - first.t_ns) as f64 / 1e9,
        _ => 0.0,
    };
    let mut report = Report {
        name,
        packets: packets.len(),
        frames: frames.len(),
        seconds,
        format: found(&format),
        clock,
        sequence,
        markers: markers(packets, &frames),
        other_sizes: sizes(&frames).filter(|(size, _)| *size != i64::from(format.packets)).count()
            as u64,
        limits,
        c_inst,
        vrx,
        fpt_us: measured
            .of_known(|frame, number| measured.clockwork.since(number, measured.at(frame)) / 1e3),
        latency_us: measured.of_known(|frame, _| {
            measured.clockwork.latency_ns(frame.timestamp, measured.at(frame)) / 1e3
        }),
        rtp_offset_ticks: measured.of_known(|frame, number| {
            let begins = measured.clockwork.timestamp(number);
            f64::from(frame.timestamp.wrapping_sub(begins).cast_signed())
        }),
        rtp_step_ticks: Spread::of(
            frames.windows(2).map(|pair| (pair[1].media - pair[0].media) as f64),
        ),
        spacing_us: spacing(packets, &frames),
        verdict,
        checks: Vec::new(),
    };
    report.checks = checks(&report, &format, announced);
    Ok(report)
}

/// Frames with their numbers.
struct Measured<'a> {
    clockwork: Clockwork,
    clock: Clock,
    packets: &'a [Packet<'a>],
    frames: Vec<(Frame, i128)>,
}

impl<'a> Measured<'a> {
    fn of(format: Format, clock: Clock, packets: &'a [Packet<'a>], frames: &[Frame]) -> Self {
        let clockwork = Clockwork::new(format, clock.to_tai_ns());
        let number = |frame: &Frame| {
            let timestamp = Some(frame.timestamp).filter(|_| clock.is_known());
            clockwork.number(packets[frame.first].t_ns, timestamp)
        };
        let frames = frames.iter().map(|frame| (*frame, number(frame))).collect();
        Self { clockwork, clock, packets, frames }
    }

    /// When the first packet of a frame came.
    fn at(&self, frame: &Frame) -> i64 {
        self.packets[frame.first].t_ns
    }

    /// Of each frame, if clocks can be compared.
    fn of_known(&self, value: impl Fn(&Frame, i128) -> f64) -> Option<Spread> {
        let values = self.frames.iter().map(|(frame, number)| value(frame, *number));
        if self.clock.is_known() { Spread::of(values) } else { None }
    }

    fn vrx(&self, troff_us: Option<u32>) -> Vrx {
        let read = |datum| receiver::read(&self.clockwork, self.packets, &self.frames, datum);
        let known = |datum: Datum| self.clock.is_known().then(|| read(datum)).flatten();
        // Without a known clock, all frames are numbered consistently all the same.
        let first =
            self.frames.iter().map(|(frame, number)| self.clockwork.since(*number, self.at(frame)));
        let mean = Spread::of(first).map(|spread| Datum::Offset(spread.mean.floor() as i128));
        let announced = troff_us.map(|us| Datum::Offset(i128::from(us) * 1000));
        let least = receiver::least(&self.clockwork, self.packets, &self.frames);
        Vrx {
            ideal: known(Datum::Default),
            announced: announced.and_then(known),
            measured: mean.and_then(known),
            first_packet: read(Datum::First),
            least: least.and_then(|ns| read(Datum::Offset(ns))),
        }
    }
}

fn judged(limits: &Limits, format: &Format, c_inst: &Levels, vrx: &Vrx, lost: u64) -> Verdict {
    let basis = match (&vrx.announced, &vrx.ideal, &vrx.least) {
        (Some(reading), ..) => (Basis::Announced, reading),
        (None, Some(reading), _) => (Basis::Default, reading),
        (None, None, Some(reading)) => (Basis::Least, reading),
        (None, None, None) => unreachable!("a stream has frames, and so a least offset"),
    };
    verdict(limits, format.schedule, c_inst, basis, lost)
}

fn found(format: &Format) -> Found {
    let fields = if format.scan == Scan::Interlaced { 2 } else { 1 };
    let (frames, seconds) = (format.rate.frames(), format.rate.seconds());
    let frame_rate = match (frames % fields, seconds) {
        (0, 1) => (frames / fields).to_string(),
        (0, _) => format!("{}/{seconds}", frames / fields),
        _ => format!("{frames}/{}", seconds * fields),
    };
    Found {
        packets_per_frame: format.packets,
        frame_rate,
        height: format.height,
        scan: format.scan,
        schedule: format.schedule,
        ip_bytes: format.ip_bytes,
        t_frame_us: format.period_ns() / 1e3,
        t_rs_us: format.step_ns() / 1e3,
        tro_default_us: format.offset_ns().map(|ns| ns / 1e3),
    }
}

fn c_inst(format: &Format, packets: &[Packet<'_>]) -> Levels {
    let mut network = Network::new(format.packets, format.rate);
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    for packet in packets {
        *counts.entry(network.packet(packet.t_ns)).or_default() += 1;
    }
    Levels::of(&counts)
}

fn sequence(packets: &[Packet<'_>]) -> Sequence {
    let mut sorted: Vec<(i64, usize)> =
        packets.iter().enumerate().map(|(at, packet)| (packet.sequence, at)).collect();
    sorted.sort_unstable();
    let span = match (sorted.first(), sorted.last()) {
        (Some((first, _)), Some((last, _))) => (last - first).unsigned_abs() + 1,
        _ => 0,
    };
    let mut is_copy = vec![false; packets.len()];
    for pair in sorted.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        is_copy[pair[1].1] = true;
    }
    let (mut most, mut reordered) = (i64::MIN, 0);
    for (packet, is_copy) in packets.iter().zip(&is_copy) {
        reordered += u64::from(packet.sequence < most && !is_copy);
        most = most.max(packet.sequence);
    }
    let copies = is_copy.iter().filter(|is_copy| **is_copy).count() as u64;
    Sequence { lost: span - (packets.len() as u64 - copies), copies, reordered }
}

fn markers(packets: &[Packet<'_>], frames: &[Frame]) -> Markers {
    let mut markers = Markers { missing: 0, early: 0 };
    for pair in frames.windows(2) {
        let [frame, next] = pair else { continue };
        // The last packet of a frame is there if the next frame continues its sequence numbers.
        let is_there = packets[next.first].sequence == frame.last + 1;
        markers.missing += u64::from(frame.marker.is_none() && is_there);
        // A frame that goes on after its marker was divided there, and both parts have one timestamp.
        markers.early += u64::from(frame.timestamp == next.timestamp);
    }
    markers
}

fn spacing(packets: &[Packet<'_>], frames: &[Frame]) -> Spacing {
    let step = |at: usize| (packets[at].t_ns - packets[at - 1].t_ns) as f64 / 1e3;
    let within =
        frames.iter().flat_map(|frame| (frame.first + 1..frame.first + frame.packets).map(step));
    let between = frames.iter().skip(1).map(|frame| step(frame.first));
    Spacing { within: Spread::of(within), between: Spread::of(between) }
}

/// What other documents require.
fn checks(report: &Report, format: &Format, announced: Option<&Announced>) -> Vec<Check> {
    let mut checks = Vec::new();
    let within =
        |spread: &Spread, (least, most): (f64, f64)| spread.min >= least && spread.max <= most;
    let range =
        |spread: &Spread, unit: &str| format!("{:.1} to {:.1} {unit}", spread.min, spread.max);
    let mut check = |name, found: String, expected: String, holds| {
        checks.push(Check { name, found, expected, holds });
    };
    let Markers { missing, early } = report.markers;
    check(
        "markers",
        format!("{missing} frames without one, {early} too early"),
        "on the last packet of each frame or field (ST 2110-20)".to_owned(),
        missing == 0 && early == 0,
    );
    if let Some(spread) = &report.rtp_step_ticks {
        let ticks = format.ticks();
        let (least, most) = (ticks.floor(), ticks.ceil());
        let expected = format!("{least} to {most} ticks, by the frame rate (ST 2110-10)");
        check(
            "steps of RTP timestamps",
            range(spread, "ticks"),
            expected,
            within(spread, (least, most)),
        );
    }
    if let Some(spread) = &report.latency_us {
        let most = format.offset_ns().map_or(0.0, |ns| ns / 1e3).max(LATENCY_US);
        let expected = format!("0 to {most:.0} µs (JT-NM Tested, or TRO_DEFAULT if it is longer)");
        let limits = (-TICK_US, most + TICK_US);
        check("latency", range(spread, "µs"), expected, within(spread, limits));
    }
    if let Some((spread, offset_ns)) = report.rtp_offset_ticks.as_ref().zip(format.offset_ns()) {
        let most = (offset_ns * 9e-5).ceil() + 1.0;
        let expected = format!("−1 to {most} ticks, up to TRO_DEFAULT (EBU LIST)");
        check(
            "offset of RTP timestamps",
            range(spread, "ticks"),
            expected,
            within(spread, (-1.0, most)),
        );
    }
    if let Some(sender) = announced.and_then(|announced| announced.sender) {
        let least = match sender {
            SenderType::Narrow => Profile::Narrow,
            SenderType::NarrowLinear => Profile::NarrowLinear,
            SenderType::Wide => Profile::Wide,
        };
        let found = report.verdict.profile;
        check(
            "sender type",
            found.to_string(),
            format!("{least}, as announced (TP)"),
            found <= least,
        );
    }
    checks
}
