//! What happened in a browser, from its WebRTC statistics.

use suiro_record::words::Cause;

use crate::model::{Effect, Evidence, Happened, Stream};
use crate::statistics::{Member, Object, Statistics};
use suiro_analysis::why::wording::{count, rate, span};

const SECOND_NS: i64 = 1_000_000_000;
/// Loss within this time before a freeze may be its cause: the time of some repairs.
const BEFORE_NS: i64 = 2 * SECOND_NS;
/// A frame rate below this share of the usual is reported.
const FEWER: f64 = 0.6;
/// A round trip above this multiple of the usual, and by this much, is a cause.
const LONGER: f64 = 2.0;
const LONGER_S: f64 = 0.1;
/// Loss of this share of the packets is a cause, if there were so many.
const LOSS_SHARE: f64 = 0.01;
const LOSS_MIN: f64 = 3.0;
/// So few of the usual packets are none.
const NOTHING: f64 = 0.2;

/// Streams and effects of a file of statistics.
pub(crate) fn told(statistics: &Statistics) -> (Vec<Stream>, Vec<Happened>) {
    let (mut streams, mut effects) = (Vec::new(), Vec::new());
    for object in &statistics.objects {
        let of = Of { statistics, object };
        match &*object.kind {
            "inbound-rtp" => {
                streams.extend(of.inbound());
                effects.extend(of.freezes());
                effects.extend(of.fewer_frames());
            }
            "outbound-rtp" => {
                streams.extend(of.outbound());
                effects.extend(of.smaller());
            }
            _ => {}
        }
    }
    effects.extend(failures(statistics));
    (streams, effects)
}

/// An object among the others.
struct Of<'s> {
    statistics: &'s Statistics,
    object: &'s Object,
}

impl Of<'_> {
    fn name(&self) -> String {
        let what = if self.object.is_video() { "video" } else { "audio" };
        let ssrc = self.object.ssrc().map_or_else(String::new, |ssrc| format!(" {ssrc:#010x}"));
        let way = if self.object.kind == "inbound-rtp" { "incoming" } else { "outgoing" };
        format!("{way} {what}{ssrc}")
    }

    fn last(&self, member: &str) -> Option<f64> {
        Some(self.object.numbers(member).last()?.1)
    }

    fn span(&self, member: &str) -> Option<(i64, i64)> {
        let numbers = self.object.numbers(member);
        Some((numbers.first()?.0, numbers.last()?.0))
    }

    fn stream(&self, parts: &[String]) -> Option<Stream> {
        let (name, source) = (self.name(), self.statistics.name.clone());
        (!parts.is_empty()).then(|| Stream { name, source, text: parts.join(", ") })
    }

    fn bit_rate(&self, member: &str) -> Option<String> {
        let (from, to) = self.span(member)?;
        let bytes = self.object.grew(member, from, to)?;
        (to > from).then(|| rate(bytes * 8e9 / (to - from) as f64))
    }

    fn inbound(&self) -> Option<Stream> {
        let mut parts: Vec<String> = self.bit_rate("bytesReceived").into_iter().collect();
        let received = self.last("packetsReceived").unwrap_or(0.0);
        if let Some(lost) = self.last("packetsLost") {
            parts.push(format!("{lost:.0} of {:.0} packets lost", received + lost));
        }
        if let (Some(decoded), true) = (self.last("framesDecoded"), self.object.is_video()) {
            parts.push(format!("{decoded:.0} frames decoded"));
        }
        if let Some(freezes) = self.last("freezeCount") {
            let length = self.last("totalFreezesDuration").unwrap_or(0.0);
            parts.push(format!(
                "{} of {length:.1} s in all",
                count(freezes.max(0.0) as usize, "freeze")
            ));
        }
        if let (Some(delay), Some(emitted)) =
            (self.last("jitterBufferDelay"), self.last("jitterBufferEmittedCount"))
            && emitted > 0.0
        {
            parts.push(format!("jitter buffer {:.0} ms", delay / emitted * 1e3));
        }
        if let (Some(concealed), Some(all), false) = (
            self.last("concealedSamples"),
            self.last("totalSamplesReceived"),
            self.object.is_video(),
        ) {
            parts.push(format!("{:.2} % concealed", concealed * 100.0 / all.max(1.0)));
        }
        self.stream(&parts)
    }

    fn outbound(&self) -> Option<Stream> {
        let mut parts: Vec<String> = self.bit_rate("bytesSent").into_iter().collect();
        if let (Some(encoded), true) = (self.last("framesEncoded"), self.object.is_video()) {
            parts.push(format!("{encoded:.0} frames encoded"));
        }
        if let Some(height) = self.last("frameHeight") {
            parts.push(format!("{height:.0}p at last"));
        }
        if let Some(again) = self.last("retransmittedPacketsSent") {
            parts.push(format!("{again:.0} packets sent again"));
        }
        self.stream(&parts)
    }

    fn happened(
        &self,
        effect: Effect,
        (from_ns, to_ns): (i64, i64),
        what: String,
        members: &str,
    ) -> Happened {
        Happened {
            subject: self.name(),
            effect,
            from_ns,
            to_ns,
            cause: Cause::Unknown,
            what,
            because: String::new(),
            evidence: vec![Evidence::new(
                &self.statistics.name,
                format!("{}: {members}", self.object.id),
            )],
            ssrc: self.object.ssrc(),
        }
    }

    /// Each rise of the number of freezes.
    fn freezes(&self) -> Vec<Happened> {
        let freezes = self.object.numbers("freezeCount");
        let risen = freezes.windows(2).filter(|pair| pair[1].1 > pair[0].1);
        let told = risen.map(|pair| {
            let (before, at) = (pair[0].0, pair[1].0);
            let frozen = self.object.grew("totalFreezesDuration", before, at).unwrap_or(0.0);
            let ns = (frozen.clamp(0.0, 1e6) * 1e9) as i64;
            // A freeze is counted when it ends.
            let from = (at - ns.max(at - before)).max(before - ns);
            let what = match pair[1].1 - pair[0].1 {
                1.0 => format!("the video froze for {}", span(ns)),
                times => format!("the video froze {times:.0} times, {} in all", span(ns)),
            };
            let members = "freezeCount, totalFreezesDuration";
            let mut freeze = self.happened(Effect::Freeze, (from, at), what, members);
            (freeze.cause, freeze.because) = self.cause((from, at));
            freeze
        });
        told.collect()
    }

    /// Seconds with far fewer decoded frames than usual, without a freeze.
    fn fewer_frames(&self) -> Vec<Happened> {
        let frames = self.object.numbers("framesDecoded");
        let rates: Vec<(i64, i64, f64)> = frames
            .windows(2)
            .filter(|pair| pair[1].0 > pair[0].0)
            .map(|pair| {
                (
                    pair[0].0,
                    pair[1].0,
                    (pair[1].1 - pair[0].1) * 1e9 / (pair[1].0 - pair[0].0) as f64,
                )
            })
            .collect();
        let mut sorted: Vec<f64> = rates.iter().map(|it| it.2).collect();
        sorted.sort_by(f64::total_cmp);
        let Some(usual) = sorted.get(sorted.len() / 2).copied().filter(|usual| *usual > 0.0) else {
            return Vec::new();
        };
        let mut stretches: Vec<(i64, i64)> = Vec::new();
        for (from, to, _) in rates.into_iter().filter(|it| it.2 < FEWER * usual) {
            match stretches.last_mut() {
                Some((_, last)) if *last == from => *last = to,
                _ => stretches.push((from, to)),
            }
        }
        let froze = |(from, to): &(i64, i64)| {
            self.object.grew("freezeCount", *from, *to).is_some_and(|n| n > 0.0)
        };
        let told = stretches.into_iter().filter(|it| !froze(it)).map(|(from, to)| {
            let frames = self.object.grew("framesDecoded", from, to).unwrap_or(0.0);
            let what = format!(
                "{:.0} frames per second for {}, where {usual:.0} are usual",
                frames * 1e9 / (to - from) as f64,
                span(to - from)
            );
            let mut fewer = self.happened(Effect::FrameRate, (from, to), what, "framesDecoded");
            (fewer.cause, fewer.because) = self.cause((from, to));
            fewer
        });
        told.collect()
    }

    /// Why an incoming stream did not go on, by its counters and those of its connection.
    fn cause(&self, (from, to): (i64, i64)) -> (Cause, String) {
        let since = from - BEFORE_NS;
        let grew = |member: &str| self.object.grew(member, since, to).unwrap_or(0.0);
        let (received, lost) = (grew("packetsReceived"), grew("packetsLost"));
        if lost >= LOSS_MIN && lost >= LOSS_SHARE * (received + lost) {
            let mut text = format!("{lost:.0} of {:.0} packets were lost", received + lost);
            // W3C, Identifiers for WebRTC's Statistics API: NACKs are counted, not the packets that they request.
            if let Some(nacks) = self.object.grew("nackCount", since, to) {
                let nacks = count(nacks.max(0.0) as usize, "NACK");
                text += &format!(", and requested again in {nacks}");
            }
            if let Some(repairs) = self.object.grew("retransmittedPacketsReceived", since, to) {
                text += &format!("; {repairs:.0} came again");
            }
            return (Cause::Loss, text);
        }
        if let Some(text) = self.nothing_came((from, to)) {
            return (Cause::Unknown, text);
        }
        let dropped = grew("framesDropped");
        let (decoded, spent) = (grew("framesDecoded"), grew("totalDecodeTime"));
        if dropped > 0.0 && decoded > 0.0 && spent / decoded > 1.0 / 30.0 {
            let text = format!(
                "the decoder took {:.0} ms per frame and {dropped:.0} frames were dropped",
                spent / decoded * 1e3
            );
            return (Cause::ClientProcessor, text);
        }
        let keys = grew("pliCount") + grew("firCount");
        if keys > 0.0 {
            let requested = count(keys as usize, "key frame");
            return (Cause::KeyFrame, format!("{requested} had to be requested"));
        }
        if let Some((usual, most)) = self.round_trip((from, to)) {
            let text =
                format!("the round trip rose from {:.0} to {:.0} ms", usual * 1e3, most * 1e3);
            return (Cause::Delay, text);
        }
        (Cause::Unknown, "no packet was lost, and neither round trip nor decoder shows it; a capture would show more".into())
    }

    /// If hardly a packet came; whether the sender had sent any, only the sender knows.
    fn nothing_came(&self, (from, to): (i64, i64)) -> Option<String> {
        let (first, last) = self.span("packetsReceived")?;
        let all = self.object.grew("packetsReceived", first, last)?;
        let usual = all * (to - from) as f64 / (last - first).max(1) as f64;
        let came = self.object.grew("packetsReceived", from, to)?;
        (came < NOTHING * usual).then(|| {
            format!(
                "{came:.0} packets came, where {usual:.0} are usual, and none was missed; a capture at the sender would show \
                 whether it or the path sent none"
            )
        })
    }

    /// Round trips of the pair of candidates that its connection used: the others carry checks only, over other paths.
    fn round_trips(&self) -> Vec<(i64, f64)> {
        let of = |kind: &'static str| {
            let objects = self.statistics.objects.iter();
            objects.filter(move |it| it.kind == kind && it.connection == self.object.connection)
        };
        let transport = self.object.text("transportId");
        let is_own = |it: &&Object| transport.as_ref().is_none_or(|id| *id == it.id);
        let selected: Vec<&(i64, Member)> = of("transport")
            .filter(is_own)
            .filter_map(|it| it.members.get("selectedCandidatePairId"))
            .flatten()
            .collect();
        let round_trips = |pair: &Object| pair.numbers("currentRoundTripTime");
        if !selected.is_empty() {
            let is_selected = |pair: &Object, t_ns: i64| {
                let last = selected.iter().rev().find(|it| it.0 <= t_ns).or(selected.first());
                last.is_some_and(|(_, id)| *id == Member::Text(pair.id.clone()))
            };
            let times = of("candidate-pair").flat_map(|pair| {
                round_trips(pair).into_iter().filter(move |it| is_selected(pair, it.0))
            });
            return times.collect();
        }
        // Without a transport, browsers mark the pair itself.
        let is_used = |it: &&Object| {
            ["nominated", "selected"]
                .iter()
                .any(|key| it.numbers(key).last().is_some_and(|it| it.1 > 0.0))
        };
        let used: Vec<&Object> = of("candidate-pair").filter(is_used).collect();
        let all: Vec<&Object> = of("candidate-pair").collect();
        match (&used[..], &all[..]) {
            ([one], _) | ([], [one]) => round_trips(one),
            _ => Vec::new(),
        }
    }

    /// The usual round trip of its connection and a much longer one, in seconds.
    fn round_trip(&self, (from, to): (i64, i64)) -> Option<(f64, f64)> {
        let times = self.round_trips();
        let mut all: Vec<f64> = times.iter().map(|it| it.1).collect();
        all.sort_by(f64::total_cmp);
        let usual = *all.get(all.len() / 2)?;
        let during = times.iter().filter(|it| (from..=to + SECOND_NS).contains(&it.0));
        let most = during.map(|it| it.1).max_by(f64::total_cmp)?;
        (most > LONGER * usual && most > usual + LONGER_S).then_some((usual, most))
    }

    /// Each fall of the size of what is sent.
    fn smaller(&self) -> Vec<Happened> {
        let heights = self.object.numbers("frameHeight");
        let fallen = heights.windows(2).filter(|pair| pair[1].1 < pair[0].1);
        let reasons = self.object.members.get("qualityLimitationReason");
        let told = fallen.map(|pair| {
            let (from, at) = (pair[0].0, pair[1].0);
            let back = heights.iter().find(|it| it.0 > at && it.1 > pair[1].1).map(|it| it.0);
            let to = back.unwrap_or_else(|| heights[heights.len() - 1].0);
            let what = format!("frames of {:.0}p instead of {:.0}p", pair[1].1, pair[0].1);
            let members = "frameHeight, qualityLimitationReason";
            let mut smaller = self.happened(Effect::Quality, (at, to), what, members);
            let reason =
                reasons.and_then(|it| it.iter().rev().find(|it| it.0 <= at)).map(|it| &it.1);
            let reason = match reason {
                Some(Member::Text(reason)) => reason.as_str(),
                _ => "",
            };
            (smaller.cause, smaller.because) = self.limited(reason, (from - BEFORE_NS, at));
            smaller
        });
        told.collect()
    }

    fn limited(&self, reason: &str, (from, to): (i64, i64)) -> (Cause, String) {
        match reason {
            "cpu" => (
                Cause::ServerProcessor,
                "the browser names the CPU: the encoder was too slow".into(),
            ),
            "bandwidth" => {
                let remote =
                    self.statistics.objects.iter().find(|it| {
                        it.kind == "remote-inbound-rtp" && it.ssrc() == self.object.ssrc()
                    });
                let lost = remote.and_then(|it| it.grew("packetsLost", from, to)).unwrap_or(0.0);
                let sent = self.object.grew("packetsSent", from, to).unwrap_or(0.0);
                if lost >= LOSS_MIN && lost >= LOSS_SHARE * sent {
                    let text = format!(
                        "the browser names the bandwidth: {lost:.0} of {sent:.0} packets were lost before"
                    );
                    return (Cause::Loss, text);
                }
                if let Some((usual, most)) = self.round_trip((from, to)) {
                    let text = format!(
                        "the browser names the bandwidth: the round trip rose from {:.0} to {:.0} ms",
                        usual * 1e3,
                        most * 1e3
                    );
                    return (Cause::Delay, text);
                }
                (
                    Cause::Unknown,
                    "the browser names the bandwidth, and neither loss nor round trip shows why"
                        .into(),
                )
            }
            _ => (Cause::Unknown, "the browser names no reason".into()),
        }
    }
}

/// Connections that failed, or never had a path.
fn failures(statistics: &Statistics) -> Vec<Happened> {
    let failed =
        statistics.changes.iter().filter(|it| matches!(&*it.state, "failed" | "disconnected"));
    let told = failed.map(|it| {
        let since = statistics.changes.iter().filter(|other| other.connection == it.connection);
        let was = since.clone().any(|other| {
            other.t_ns < it.t_ns && matches!(&*other.state, "connected" | "completed")
        });
        let what = match was {
            true => format!("connection {} became {}", it.connection, it.state),
            false => format!("connection {} did not come about ({})", it.connection, it.state),
        };
        Happened {
            subject: format!("connection {}", it.connection),
            effect: Effect::NoConnection,
            from_ns: it.t_ns,
            to_ns: it.t_ns,
            cause: Cause::Unknown,
            what,
            because: "a capture would show whether connectivity checks were answered".into(),
            evidence: vec![Evidence::new(&statistics.name, format!("updateLog: {}", it.what))],
            ssrc: None,
        }
    });
    told.collect()
}
