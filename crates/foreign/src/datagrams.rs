//! Datagrams other than RTP: connections that did not come about, and flows between two captures.

use std::collections::BTreeSet;

use suiro_record::words::Cause;

use crate::model::{Effect, Evidence, Happened, Stream};
use crate::numbers::{bit_rate, quantile};
use crate::packets::{Capture, Content, Packet, Stun, Way};
use crate::pair::Crossing;
use suiro_analysis::why::wording::{count, rate, span};

/// ICE, DTLS and QUIC connections of a capture without any answer.
pub(crate) fn unanswered(capture: &Capture) -> Vec<Happened> {
    let mut found: Vec<Happened> = checks(capture).into_iter().collect();
    let hello = |packet: &Packet| matches!(packet.content, Content::Dtls(Some(1)));
    // RFC 6347 §4.2: HelloVerifyRequest, ServerHello.
    let answers = |packet: &Packet| matches!(packet.content, Content::Dtls(Some(2 | 3)));
    found.extend(alone(capture, "DTLS ClientHello", hello, answers));
    let long = |packet: &Packet| packet.content == Content::QuicLong;
    found.extend(alone(capture, "first packet of QUIC", long, |_| true));
    found
}

/// Of many candidate pairs of ICE most are never answered: it failed if none was with success. Servers of STUN and TURN, which are
/// asked for candidates, do not count.
fn checks(capture: &Capture) -> Option<Happened> {
    let stun = |packet: &Packet| match packet.content {
        Content::Stun(message) => Some(message),
        _ => None,
    };
    let (mut checks, mut transactions) = (Vec::<&Packet>::new(), BTreeSet::new());
    for packet in &capture.packets {
        if let Some(Stun::Check(transaction)) = stun(packet) {
            checks.push(packet);
            transactions.insert(transaction);
        }
    }
    let is_answer =
        |message: Stun| matches!(message, Stun::Success(of) if transactions.contains(&of));
    if capture.packets.iter().filter_map(stun).any(is_answer) {
        return None;
    }
    let (first, last) = (*checks.first()?, *checks.last()?);
    let mut ways: Vec<Way> = checks.iter().map(|packet| capture.way(packet)).collect();
    ways.sort_unstable();
    ways.dedup();
    let is_refusal =
        |message: &Stun| matches!(message, Stun::Error(of) if transactions.contains(of));
    let answers = match capture.packets.iter().filter_map(stun).filter(is_refusal).count() {
        0 => "none answered; a capture at the other host would show whether they came".to_owned(),
        n => format!("none with success: the other host answered with {}", count(n, "error")),
    };
    let because = format!(
        "{} over {} in {}, {answers}",
        count(checks.len(), "connectivity check"),
        count(ways.len(), "candidate pair"),
        span(last.t_ns - first.t_ns)
    );
    Some(no_connection(capture, (first, last), "ICE found no path", because))
}

/// The flows with a `hello` that the opposite direction never answered.
fn alone(
    capture: &Capture,
    what: &str,
    hello: impl Fn(&Packet) -> bool,
    answers: impl Fn(&Packet) -> bool,
) -> Vec<Happened> {
    let mut flows: Vec<(u32, &Packet, &Packet, usize)> = Vec::new();
    let mut answered = BTreeSet::new();
    for packet in &capture.packets {
        if answers(packet) {
            answered.insert(capture.way(packet).back());
        }
        if hello(packet) {
            match flows.iter_mut().find(|it| it.0 == packet.flow) {
                Some((_, _, last, tries)) => (*last, *tries) = (packet, *tries + 1),
                None => flows.push((packet.flow, packet, packet, 1)),
            }
        }
    }
    let silent = flows.into_iter().filter(|it| !answered.contains(&capture.flows[it.0 as usize]));
    let told = silent.map(|(_, first, last, tries)| {
        let because = format!(
            "{} in {} without an answer; a capture at the other host would show whether they came",
            count(tries, what),
            span(last.t_ns - first.t_ns)
        );
        no_connection(capture, (first, last), "the connection did not come about", because)
    });
    told.collect()
}

fn no_connection(
    capture: &Capture,
    (first, last): (&Packet, &Packet),
    what: &str,
    because: String,
) -> Happened {
    Happened {
        subject: capture.way(first).to_string(),
        effect: Effect::NoConnection,
        from_ns: first.t_ns,
        to_ns: last.t_ns,
        cause: Cause::Unknown,
        what: what.to_owned(),
        because,
        evidence: vec![Evidence::packets(&capture.name, first.number, last.number)],
        ssrc: None,
    }
}

/// A flow between two captures in one line.
pub(crate) fn stream(crossing: &Crossing<'_>) -> Stream {
    let sent = crossing.passages.len();
    let lost = crossing.passages.iter().filter(|it| it.received.is_none()).count();
    let bytes = crossing.passages.iter().map(|it| u64::from(it.sent.bytes)).sum();
    let length = match &crossing.passages[..] {
        [first, .., last] => last.sent.t_ns - first.sent.t_ns,
        _ => 0,
    };
    let mut delays: Vec<i64> = crossing.passages.iter().filter_map(|it| it.delay_ns()).collect();
    let mut at = |share| quantile(&mut delays, share).map_or_else(|| "-".to_owned(), span);
    let text = format!(
        "from {} to {}: {}, {sent} sent, {lost} lost ({:.1} %), one-way delay {} (median), {} (95th percentile)",
        crossing.near.name,
        crossing.far.name,
        rate(bit_rate(bytes, length)),
        lost as f64 * 100.0 / sent.max(1) as f64,
        at(0.5),
        at(0.95)
    );
    Stream { name: crossing.way.to_string(), source: crossing.near.name.clone(), text }
}
