//! What happened to a stream of RTP packets: when nothing came, when packets came late, which were lost.

use suiro_record::words::Cause;

use crate::hole::{self, Hole};
use crate::media::{ANEW, Media, Unit};
use crate::model::{Effect, Evidence, Happened};
use crate::numbers::{bit_rate, quantile};
use crate::packets::Packet;
use crate::path::{self, Direction};
use crate::tcp::Pause;
use suiro_analysis::why::wording::{count, rate, span};

/// The shortest gap that is reported, and the least delay above the usual: a viewer notices a freeze of this length
/// (ITU-T P.1203.1 counts stalls from about this length on).
const GAP_NS: i64 = 200_000_000;
/// A gap has so many usual intervals between frames.
const INTERVALS: i64 = 3;
/// A stream that has gaps for this share of its time is not steady.
const SILENT: f64 = 0.3;
/// A gap of a stream that may send nothing is reported if at least this many packets were sent in it.
const SENT_MIN: usize = 10;
/// Late stretches that are closer are one.
const JOINED_NS: i64 = 1_000_000_000;
/// The usual delay is the least within this time around, because clocks drift.
const AROUND: i64 = 6;
const BUCKET_NS: i64 = 10_000_000_000;
/// Loss is reported for seconds that lost at least this share, and this number, of packets.
const LOSS_SHARE: f64 = 0.02;
const LOSS_MIN: usize = 3;

impl<'c> Media<'c> {
    /// What happened to it.
    pub fn effects(
        &self,
        directions: &[Direction<'c>],
        pauses: &[(&str, &[Pause])],
    ) -> Vec<Happened> {
        let direction = Direction::find(directions, self);
        let gaps = self.gaps();
        let may_be_silent = self.may_be_silent(&gaps);
        let (delays, lost) = (self.delays(), self.lost());
        let told = |gap: &(Unit, Unit)| match self.way.is_tcp {
            true => self.tcp_gap(*gap, (direction?, directions), pauses, &lost),
            false => self.gap(*gap, direction, may_be_silent),
        };
        let mut effects: Vec<Happened> = gaps.iter().filter_map(told).collect();
        let gaps: Vec<(i64, i64)> = effects.iter().map(|gap| (gap.from_ns, gap.to_ns)).collect();
        effects.extend(self.late(&gaps, direction, (&delays, &lost)));
        effects.extend(self.losses(&gaps, direction, (&delays, &lost)));
        effects
    }

    /// Whether it may send nothing for a while: speech in silence, repairs, other programs.
    fn may_be_silent(&self, gaps: &[(Unit, Unit)]) -> bool {
        let silent: i64 = gaps.iter().map(|(a, b)| b.t_ns - a.t_ns).sum();
        let all = self.units[self.units.len() - 1].t_ns - self.units[0].t_ns;
        self.is_audio() || self.ssrc.is_none() || silent as f64 > SILENT * all as f64
    }

    fn happened(&self, effect: Effect, (from, to): (&Unit, &Unit), what: String) -> Happened {
        Happened {
            subject: self.name(),
            effect,
            from_ns: from.t_ns,
            to_ns: to.t_ns,
            cause: Cause::Unknown,
            what,
            because: String::new(),
            evidence: vec![Evidence::packets(&self.capture.name, from.number, to.number)],
            ssrc: self.ssrc,
        }
    }

    /// Neighbours with more time between them than frames usually have.
    fn gaps(&self) -> Vec<(Unit, Unit)> {
        let pairs = || self.units.windows(2).map(|pair| (pair[0], pair[1]));
        let mut between: Vec<i64> = pairs()
            .filter(|(a, b)| a.media_ns != b.media_ns)
            .map(|(a, b)| b.t_ns - a.t_ns)
            .collect();
        let usual = quantile(&mut between, 0.5).unwrap_or(0);
        let least = GAP_NS.max(INTERVALS * usual);
        pairs().filter(|(a, b)| b.t_ns - a.t_ns > least).collect()
    }

    fn gap(
        &self,
        (a, b): (Unit, Unit),
        direction: Option<&Direction<'c>>,
        may_be_silent: bool,
    ) -> Option<Happened> {
        let what = format!("no packet for {}", span(b.t_ns - a.t_ns));
        let mut gap = self.happened(Effect::Gap, (&a, &b), what);
        if let (Some(direction), Some(_)) = (direction, self.crossing) {
            let found = direction.gap(self, (&a, &b));
            gap.evidence.extend(found.evidence);
            if may_be_silent && (found.cause == Cause::Application || found.sent < SENT_MIN) {
                return None;
            }
            (gap.cause, gap.because) = (found.cause, found.because);
        } else {
            // In a stream that is not steady, one capture cannot distinguish silence from loss.
            (gap.cause, gap.because) = self.alone((a, b));
            return (!may_be_silent).then_some(gap);
        }
        Some(gap)
    }

    /// Of a connection: what the path did to segments, what the sender's capture says, or what became of acknowledgements.
    fn tcp_gap(
        &self,
        (a, b): (Unit, Unit),
        (direction, directions): (&Direction<'c>, &[Direction<'c>]),
        pauses: &[(&str, &[Pause])],
        lost: &[Hole],
    ) -> Option<Happened> {
        let crossing = self.crossing?;
        let mut gap = self.happened(
            Effect::Gap,
            (&a, &b),
            format!("no packet for {}", span(b.t_ns - a.t_ns)),
        );
        let found = direction.gap(self, (&a, &b));
        gap.evidence.extend(found.evidence);
        (gap.cause, gap.because) = (found.cause, found.because);
        if found.cause != Cause::Application {
            return Some(gap);
        }
        // Silence of the sender: why, its own capture says.
        let (before, after) = (crossing.of(a.number)?.sent.t_ns, crossing.of(b.number)?.sent.t_ns);
        let of_near = pauses.iter().filter(|(name, _)| *name == crossing.near.name);
        let mut of_near = of_near.flat_map(|(_, pauses)| pauses.iter());
        let pause = of_near.find(|it| it.is_of(crossing.way, before, after))?;
        (gap.cause, gap.because) = (pause.cause, pause.because.clone());
        if gap.cause == Cause::Unknown {
            let back = directions.iter().find(|it| it.is_back_of(direction));
            let acknowledgements =
                back.and_then(|it| it.hampered(crossing.way.back(), (a.t_ns, b.t_ns)));
            (gap.cause, gap.because) = match acknowledgements {
                Some(text) => (Cause::AckPath, text),
                None => {
                    self.lost_before((a, b), direction, lost).unwrap_or((gap.cause, gap.because))
                }
            };
        }
        Some(gap)
    }

    /// If a gap is the wait for segments that the path had lost shortly before it, or in it.
    fn lost_before(
        &self,
        (a, b): (Unit, Unit),
        direction: &Direction<'c>,
        lost: &[Hole],
    ) -> Option<(Cause, String)> {
        let near = |hole: &&Hole| (a.t_ns - JOINED_NS..=b.t_ns).contains(&hole.t_ns);
        let lost: Vec<&Hole> = lost.iter().filter(near).collect();
        let (cause, because) = (!lost.is_empty()).then(|| direction.loss(self, &lost))?;
        Some((cause, format!("{} lost {because}", count(lost.len(), "packet"))))
    }

    /// What one capture says about a gap.
    fn alone(&self, (a, b): (Unit, Unit)) -> (Cause, String) {
        let length = b.t_ns - a.t_ns;
        let between = |unit: &&Unit| a.sequence < unit.sequence && unit.sequence < b.sequence;
        let overtaken = self.units.iter().filter(between).count() as i64;
        let missing = (b.sequence - a.sequence - 1 - overtaken).max(0);
        let media = b.media_ns - a.media_ns;
        if missing >= ANEW as i64 {
            let text = format!("sequence numbers jumped by {missing}: the sender began anew");
            return (Cause::Unknown, text);
        }
        if missing > 0 {
            let others = self.others_between(a.t_ns, b.t_ns);
            let lost = count(missing as usize, "packet");
            return match others {
                0 if missing > 3 => (
                    Cause::Outage,
                    format!(
                        "{lost} are missing before this capture, and no other packet came from there"
                    ),
                ),
                _ => (Cause::Loss, format!("{lost} are missing before this capture")),
            };
        }
        if self.clock.is_none() {
            return (
                Cause::Unknown,
                "no packet is missing; a capture at the sender would show whether it sent any"
                    .into(),
            );
        }
        if media >= length - length / 4 {
            let text = format!(
                "the sender's frames before and after it are {} apart, and none is missing",
                span(media)
            );
            return (Cause::Application, text);
        }
        let text = format!(
            "no packet is missing, and frames were made in this time: {} came late; a capture at the sender would show \
             whether it or the path held them",
            if self.others_between(a.t_ns, b.t_ns) == 0 {
                "all packets from there"
            } else {
                "this stream's packets"
            }
        );
        (Cause::Unknown, text)
    }

    /// Packets of other flows between the same two addresses, in this capture.
    fn others_between(&self, from_ns: i64, to_ns: i64) -> usize {
        let packets = &self.capture.packets;
        let first = packets.partition_point(|packet| packet.t_ns <= from_ns);
        let during = packets[first..].iter().take_while(|packet| packet.t_ns < to_ns);
        let same = |packet: &&Packet| {
            let way = self.capture.way(packet);
            (way.from.ip(), way.to.ip()) == (self.way.from.ip(), self.way.to.ip())
        };
        during.filter(same).count()
    }

    /// Delay above the usual, packet by packet: from one capture to the other, or from the timestamp to this capture.
    fn delays(&self) -> Vec<(Unit, i64)> {
        let mut delays: Vec<(Unit, i64)> = match self.crossing {
            Some(crossing) => {
                let delay = |unit: &Unit| Some((*unit, crossing.of(unit.number)?.delay_ns()?));
                self.units.iter().filter_map(delay).collect()
            }
            None if self.clock.is_none() => Vec::new(),
            None => self.units.iter().map(|unit| (*unit, unit.t_ns - unit.media_ns)).collect(),
        };
        path::above_usual(&mut delays, BUCKET_NS, AROUND);
        delays
    }

    fn late(
        &self,
        gaps: &[(i64, i64)],
        direction: Option<&Direction<'c>>,
        (delays, lost): (&[(Unit, i64)], &[Hole]),
    ) -> Vec<Happened> {
        let mut stretches: Vec<(usize, usize)> = Vec::new();
        for at in (0..delays.len()).filter(|at| delays[*at].1 > GAP_NS) {
            match stretches.last_mut() {
                Some((_, last)) if delays[at].0.t_ns - delays[*last].0.t_ns < JOINED_NS => {
                    *last = at;
                }
                _ => stretches.push((at, at)),
            }
        }
        let told = |(first, last): (usize, usize)| {
            let (a, b) = (delays[first].0, delays[last].0);
            // What a gap held comes late, at its end: that is the gap again.
            let of_gap = gaps
                .iter()
                .any(|gap| (a.t_ns - gap.1).abs() < GAP_NS && b.t_ns - a.t_ns < gap.1 - gap.0);
            if of_gap || b.t_ns - a.t_ns < GAP_NS {
                return None;
            }
            let most = delays[first..=last].iter().map(|(_, delay)| *delay).max()?;
            let what = format!(
                "packets up to {} later than usual for {}",
                span(most),
                span(b.t_ns - a.t_ns)
            );
            let mut late = self.happened(Effect::Late, (&a, &b), what);
            (late.cause, late.because) = match (direction, self.crossing) {
                (Some(direction), Some(_)) => direction.late(self, (first, last), delays),
                _ => late_alone(&delays[first..=last], lost),
            };
            Some(late)
        };
        stretches.into_iter().filter_map(told).collect()
    }

    /// What did not come: with two captures between them, with one before it.
    fn lost(&self) -> Vec<Hole> {
        match self.crossing {
            Some(crossing) => path::lost(self, crossing),
            None => self.holes(),
        }
    }

    fn losses(
        &self,
        gaps: &[(i64, i64)],
        direction: Option<&Direction<'c>>,
        (delays, lost): (&[(Unit, i64)], &[Hole]),
    ) -> Vec<Happened> {
        let in_gap = |t_ns: i64| gaps.iter().any(|gap| gap.0 - GAP_NS < t_ns && t_ns <= gap.1);
        let lost: Vec<Hole> = lost.iter().filter(|hole| !in_gap(hole.t_ns)).copied().collect();
        let came: Vec<i64> = self.units.iter().map(|unit| unit.t_ns).collect();
        let mut told = Vec::new();
        for (from, to) in hole::seconds_with(&lost, &came, (LOSS_SHARE, LOSS_MIN)) {
            let inside: Vec<&Hole> =
                lost.iter().filter(|hole| (from..to).contains(&hole.t_ns)).collect();
            let missing: usize = inside.iter().map(|hole| hole.missing).sum();
            let arrived = came.partition_point(|t| *t < to) - came.partition_point(|t| *t < from);
            let what = format!(
                "{} of {} lost in {}",
                missing,
                count(missing + arrived, "packet"),
                span(to - from)
            );
            let (Some(first), Some(last)) = (inside.first(), inside.last()) else { continue };
            let at = |hole: &Hole| Unit {
                t_ns: hole.t_ns,
                number: hole.number,
                sequence: 0,
                media_ns: 0,
                bytes: 0,
            };
            let mut loss = self.happened(Effect::Loss, (&at(first), &at(last)), what);
            (loss.from_ns, loss.to_ns) = (from, to);
            (loss.cause, loss.because) = match (direction, self.crossing) {
                (Some(direction), Some(_)) => direction.loss(self, &inside),
                _ => path::loss_alone(&inside, delays),
            };
            told.push(loss);
        }
        told
    }
}

/// What one capture says about packets that came late.
fn late_alone(late: &[(Unit, i64)], lost: &[Hole]) -> (Cause, String) {
    let (Some((a, _)), Some((b, _))) = (late.first(), late.last()) else {
        return (Cause::Unknown, String::new());
    };
    let during = lost.iter().filter(|hole| (a.t_ns..=b.t_ns).contains(&hole.t_ns));
    let missing: usize = during.map(|hole| hole.missing).sum();
    let bytes = late.iter().map(|(unit, _)| u64::from(unit.bytes)).sum();
    let came = rate(bit_rate(bytes, b.t_ns - a.t_ns));
    match missing {
        0 => (
            Cause::Unknown,
            format!(
                "they came at {came}; a capture at the sender would show whether a queue or the sender held them"
            ),
        ),
        missing => (
            Cause::LinkRate,
            format!(
                "they came at {came}, and {} were lost while the delay was high: a queue was full",
                count(missing, "packet")
            ),
        ),
    }
}
