//! A stream of RTP packets in a capture: its packets, its clock, the numbers that are missing.

use std::collections::BTreeMap;

use crate::hole::Hole;
use crate::model::Stream;
use crate::numbers::bit_rate;
use crate::packets::{Capture, Content, Packet, Way};
use crate::pair::{Crossing, Passage};
use suiro_analysis::why::wording::{count, rate, span};

/// Fewer packets are no stream: other datagrams may look like RTP.
const PACKETS_MIN: usize = 10;
/// So many sequence numbers that are missing are no loss: the sender began anew.
pub(crate) const ANEW: usize = 1000;
/// Three years: a timestamp further away is damaged.
const MEDIA_NS_MAX: i128 = 100_000_000_000_000_000;
/// Clock rates of RTP payload formats in use (RFC 3551 §6, RFC 7587).
const CLOCKS: [u32; 6] = [8000, 16_000, 32_000, 44_100, 48_000, 90_000];

/// A packet of the stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    pub t_ns: i64,
    pub number: u32,
    /// Its sequence number, counted on beyond 65,535.
    pub sequence: i64,
    /// Its timestamp since the first, in nanoseconds; 0 if the clock rate is not known.
    pub media_ns: i64,
    pub bytes: u32,
}

/// A stream at the capture nearest to its receiver.
#[derive(Debug)]
pub(crate) struct Media<'c> {
    pub capture: &'c Capture,
    pub way: Way,
    /// Its synchronisation source; none of a flow of other datagrams, which only two captures explain.
    pub ssrc: Option<u32>,
    pub units: Vec<Unit>,
    /// The clock rate of its timestamps, if it is known.
    pub clock: Option<u32>,
    /// The same flow between two captures.
    pub crossing: Option<&'c Crossing<'c>>,
}

/// The RTP streams of a capture, apart from flows that `nearer` has: their receiver's capture is another.
pub(crate) fn streams<'c>(capture: &'c Capture, crossings: &'c [Crossing<'c>]) -> Vec<Media<'c>> {
    let is_near =
        |way: Way| crossings.iter().any(|it| std::ptr::eq(it.near, capture) && it.way == way);
    let mut found: Vec<((u32, u32), Vec<&Packet>)> = Vec::new();
    let mut places = BTreeMap::new();
    for packet in &capture.packets {
        let Content::Rtp(rtp) = packet.content else { continue };
        let key = (packet.flow, rtp.ssrc);
        let at = *places.entry(key).or_insert_with(|| {
            found.push((key, Vec::new()));
            found.len() - 1
        });
        found[at].1.push(packet);
    }
    let mut streams = Vec::new();
    for ((flow, ssrc), packets) in found {
        let way = capture.flows[flow as usize];
        if packets.len() < PACKETS_MIN || is_near(way) {
            continue;
        }
        let Some((units, clock)) = units(&packets) else { continue };
        let is_far = |it: &&Crossing<'_>| {
            let same = |packet: &Packet| capture.way(packet) == way;
            std::ptr::eq(it.far, capture)
                && it
                    .passages
                    .iter()
                    .find_map(|passage| passage.received)
                    .is_some_and(|(_, got)| same(got))
        };
        let crossing = crossings.iter().find(is_far);
        streams.push(Media { capture, way, ssrc: Some(ssrc), units, clock, crossing });
    }
    streams.extend(others(capture, crossings));
    streams
}

/// Flows of other datagrams between two captures, at their receiver's.
fn others<'c>(
    capture: &'c Capture,
    crossings: &'c [Crossing<'c>],
) -> impl Iterator<Item = Media<'c>> {
    let ours = crossings.iter().filter(move |it| std::ptr::eq(it.far, capture));
    ours.filter_map(move |crossing| {
        let passages = crossing.passages.iter().enumerate();
        let passages = passages.filter(|(_, it)| !matches!(it.sent.content, Content::Rtp(_)));
        let unit = |(at, it): (usize, &Passage<'_>)| {
            let (_, got) = it.received?;
            let (t_ns, number, bytes) = (got.t_ns, got.number, got.bytes);
            Some(Unit { t_ns, number, sequence: at as i64, media_ns: it.sent.t_ns, bytes })
        };
        let mut units: Vec<Unit> = passages.filter_map(unit).collect();
        units.sort_by_key(|unit| unit.t_ns);
        let way = crossing.way;
        // Of a connection, what a viewer notices is in the direction that carries data; acknowledgements are a cause.
        let bytes = |way: Way| {
            let of = crossings.iter().find(|it| {
                it.way == way
                    && std::ptr::eq(
                        it.near,
                        if way == crossing.way { crossing.near } else { crossing.far },
                    )
            });
            of.map_or(0, |it| it.passages.iter().map(|it| u64::from(it.sent.bytes)).sum::<u64>())
        };
        let carries = !way.is_tcp || bytes(way) >= bytes(way.back());
        let is_flow = units.len() >= PACKETS_MIN && carries;
        is_flow.then_some(Media {
            capture,
            way,
            ssrc: None,
            units,
            clock: None,
            crossing: Some(crossing),
        })
    })
}

/// The packets with whole sequence numbers and times; none if they are not in sequence, and so no RTP.
fn units(packets: &[&Packet]) -> Option<(Vec<Unit>, Option<u32>)> {
    let mut units: Vec<Unit> = Vec::with_capacity(packets.len());
    let (mut sequence, mut ticks, mut first) = (0i64, 0i64, None);
    let mut jumps = 0;
    for packet in packets {
        let Content::Rtp(rtp) = packet.content else { continue };
        let (last_sequence, last_ticks) = *first.get_or_insert((rtp.sequence, rtp.timestamp));
        let step = i64::from(rtp.sequence.wrapping_sub(last_sequence).cast_signed());
        sequence += step;
        ticks += i64::from(rtp.timestamp.wrapping_sub(last_ticks).cast_signed());
        first = Some((rtp.sequence, rtp.timestamp));
        jumps += usize::from(step.abs() > 1000);
        units.push(Unit {
            t_ns: packet.t_ns,
            number: packet.number,
            sequence,
            media_ns: ticks,
            bytes: packet.bytes,
        });
    }
    if jumps * 20 > units.len() {
        return None;
    }
    let clock = clock(&units);
    let scale = |ticks: i64| {
        let ns = clock.map_or(0, |clock| i128::from(ticks) * 1_000_000_000 / i128::from(clock));
        ns.clamp(-MEDIA_NS_MAX, MEDIA_NS_MAX) as i64
    };
    units.iter_mut().for_each(|unit| unit.media_ns = scale(unit.media_ns));
    Some((units, clock))
}

/// The clock rate, from timestamps against time; none if it is none in use.
fn clock(units: &[Unit]) -> Option<u32> {
    let (first, last) = (units.first()?, units.last()?);
    let seconds = (last.t_ns - first.t_ns) as f64 / 1e9;
    let found = (last.media_ns - first.media_ns) as f64 / seconds;
    let near = |clock: &&u32| (found / f64::from(**clock) - 1.0).abs() < 0.15;
    // 44.1 and 48 kHz are both near 46.
    let apart = |clock: &&u32| ((found / f64::from(**clock) - 1.0).abs() * 1e6) as i64;
    CLOCKS.iter().filter(near).min_by_key(apart).copied().filter(|_| seconds > 1.0)
}

impl Media<'_> {
    pub fn name(&self) -> String {
        match self.ssrc {
            Some(ssrc) => format!("rtp {ssrc:#010x} {}>{}", self.way.from, self.way.to),
            None => self.way.to_string(),
        }
    }

    pub fn is_audio(&self) -> bool {
        self.clock.is_some_and(|clock| clock < 90_000)
    }

    /// What was measured of it; none of a flow that is reported as one between two captures.
    pub fn stream(&self) -> Option<Stream> {
        self.ssrc?;
        let (first, last) = (self.units[0], self.units[self.units.len() - 1]);
        let bytes = self.units.iter().map(|unit| u64::from(unit.bytes)).sum();
        let length = last.t_ns - first.t_ns;
        let lost: usize = self.holes().iter().map(|hole| hole.missing).sum();
        let all = self.units.len() + lost;
        let clock = self.clock.map_or("of unknown clock rate".into(), |clock| {
            format!(
                "{} ({} kHz)",
                if self.is_audio() { "audio" } else { "video" },
                f64::from(clock) / 1e3
            )
        });
        let mut text = format!(
            "{clock}: {} in {}, {}, {} missing ({:.1} %)",
            rate(bit_rate(bytes, length)),
            span(length),
            count(self.units.len(), "packet"),
            lost,
            lost as f64 * 100.0 / all as f64,
        );
        if let Some(crossing) = self.crossing {
            let sent = crossing.passages.iter().filter(|it| self.has(it.sent));
            let (mut sent_count, mut lost) = (0, 0);
            for passage in sent {
                sent_count += 1;
                lost += usize::from(passage.received.is_none());
            }
            text += &format!("; of {sent_count} in {}, {lost} did not come", crossing.near.name);
        }
        Some(Stream { name: self.name(), source: self.capture.name.clone(), text })
    }

    pub fn has(&self, packet: &Packet) -> bool {
        match (packet.content, self.ssrc) {
            (Content::Rtp(rtp), Some(ssrc)) => rtp.ssrc == ssrc,
            (Content::Rtp(_), None) | (_, Some(_)) => false,
            (_, None) => true,
        }
    }

    /// Sequence numbers that never came, by where they should have.
    pub fn holes(&self) -> Vec<Hole> {
        let mut sorted: Vec<&Unit> = self.units.iter().collect();
        sorted.sort_by_key(|unit| unit.sequence);
        let pairs = sorted.windows(2).map(|pair| (pair[0], pair[1]));
        let hole = |(a, b): (&Unit, &Unit)| {
            let missing = usize::try_from(b.sequence - a.sequence - 1).ok().filter(|n| *n > 0)?;
            (missing < ANEW).then_some(Hole { t_ns: b.t_ns, number: b.number, sent_ns: 0, missing })
        };
        pairs.filter_map(hole).collect()
    }
}
