//! Causes and effects in words.

use suiro_record::words::{Cause, Effect};

/// A time of a trial.
pub fn seconds(ns: i64) -> String {
    format!("{:.1} s", ns as f64 / 1e9)
}

/// A length of time.
pub fn span(ns: i64) -> String {
    match ns {
        1_000_000_000.. => format!("{:.1} s", ns as f64 / 1e9),
        _ => format!("{:.0} ms", ns as f64 / 1e6),
    }
}

/// A bit rate.
pub fn rate(bps: f64) -> String {
    let (value, unit) = match bps {
        1e9.. => (bps / 1e9, "Gbit/s"),
        1e6.. => (bps / 1e6, "Mbit/s"),
        1e3.. => (bps / 1e3, "kbit/s"),
        _ => (bps, "bit/s"),
    };
    let digits = if value < 9.95 && value.fract() != 0.0 { 1 } else { 0 };
    let text = format!("{value:.digits$}");
    let text = if digits == 1 { text.trim_end_matches(".0") } else { &text };
    format!("{text} {unit}")
}

/// A number of bytes.
pub fn size(bytes: i64) -> String {
    match bytes {
        1_000_000.. => format!("{:.1} MB", bytes as f64 / 1e6),
        10_000.. => format!("{:.0} kB", bytes as f64 / 1e3),
        1000.. => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{bytes} B"),
    }
}

/// A length of time that is compared with others.
pub fn milliseconds(ns: i64) -> String {
    format!("{:.0} ms", ns as f64 / 1e6)
}

/// So many of something.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// An effect as the beginning of a sentence, without its time.
pub const fn verb(effect: Effect) -> &'static str {
    match effect {
        Effect::Stall => "stalled",
        Effect::Freeze => "froze",
        Effect::Late => "frames were late during",
        Effect::Missing => "frames were missing during",
        Effect::Quality => "quality lower for",
        Effect::Startup => "waited to begin for",
        Effect::FrameRate => "frame rate lower for",
        Effect::Limit => "limited for",
        Effect::Trial => "in",
    }
}

/// What a cause is called in a legend.
pub const fn label(cause: Cause) -> &'static str {
    match cause {
        Cause::NoRequest => "no request",
        Cause::Application => "nothing to send",
        Cause::RoundTrip => "round trip",
        Cause::Handshake => "opening a connection",
        Cause::Manifest => "waiting for a manifest",
        Cause::SendBuffer => "send buffer",
        Cause::CongestionWindow => "congestion window",
        Cause::ReceiveWindow => "receive window",
        Cause::SlowReader => "slow reader",
        Cause::Pacing => "pacing",
        Cause::LinkRate => "link rate",
        Cause::RateStep => "link rate after a fall",
        Cause::Competing => "other flows",
        Cause::Bufferbloat => "queue of others (bufferbloat)",
        Cause::Outage => "outage",
        Cause::Policer => "policer",
        Cause::Loss => "loss and its repair",
        Cause::HeadOfLine => "behind a loss of another response",
        Cause::Corruption => "corruption",
        Cause::Reordering => "reordering",
        Cause::Delay => "delay of the link",
        Cause::Jitter => "jitter of the link",
        Cause::AckPath => "acknowledgements",
        Cause::Timeout => "retransmission timeout",
        Cause::OversizedRung => "rung too high",
        Cause::NoCatchUp => "no catch-up",
        Cause::Underestimate => "estimate too low",
        Cause::QualityChange => "change of quality",
        Cause::Encoder => "encoder overshoot",
        Cause::EncoderChoice => "encoder's choice",
        Cause::JitterBuffer => "jitter buffer",
        Cause::KeyFrame => "late key frame",
        Cause::Cache => "fault of a cache",
        Cause::ServerProcessor => "server's CPU",
        Cause::ClientProcessor => "client's CPU",
        Cause::Emulator => "the emulator itself",
        Cause::Unknown => "not known",
    }
}

/// What a cause says about a flow, as a clause.
pub const fn clause(cause: Cause) -> &'static str {
    match cause {
        Cause::NoRequest => "the player requested nothing",
        Cause::Application => "the sender had nothing to send",
        Cause::RoundTrip => "requests and last bytes were in transit",
        Cause::Handshake => "the player opened a connection",
        Cause::Manifest => "the player waited for a manifest before it could request media",
        Cause::SendBuffer => "the sender's socket buffer held it back",
        Cause::CongestionWindow => "the congestion window held the sender back",
        Cause::ReceiveWindow => {
            "the receiver's buffer is small, and its window held the sender back"
        }
        Cause::SlowReader => "the receiver read too slowly, and its window closed",
        Cause::Pacing => "the sender's pacing held it back",
        Cause::LinkRate => "the link carried no more",
        Cause::RateStep => "the link's rate had fallen",
        Cause::Competing => "other flows had a share of the link",
        Cause::Bufferbloat => "other flows had filled the queue before the link",
        Cause::Outage => "the link carried nothing",
        Cause::Policer => "the link dropped packets above its rate, without a queue",
        Cause::Loss => "the link lost packets",
        Cause::HeadOfLine => {
            "what had arrived waited for the repair of a packet of another response"
        }
        Cause::Corruption => "the link corrupted packets",
        Cause::Reordering => "packets overtook one another on the link",
        Cause::Delay => "the delay of the link had risen",
        Cause::Jitter => "the delay of the link changed from packet to packet",
        Cause::AckPath => "acknowledgements and requests were lost or delayed on the path back",
        Cause::Timeout => "the sender waited for a retransmission timeout",
        Cause::OversizedRung => "the rung was above what the link carried",
        Cause::NoCatchUp => "the player held enough media to catch up, and played at normal speed",
        Cause::Underestimate => "the player took the network for slower than it is",
        Cause::QualityChange => "the viewer changed to another quality and left out frames",
        Cause::Encoder => "the encoder exceeded its bit rate",
        Cause::EncoderChoice => "the encoder left out frames, or made smaller ones",
        Cause::JitterBuffer => "the jitter buffer held frames that had arrived",
        Cause::KeyFrame => "nothing could be decoded until a key frame came",
        Cause::Cache => "a cache failed, or was slow",
        Cause::ServerProcessor => "the sending endpoint did not run",
        Cause::ClientProcessor => "the receiving endpoint did not run",
        Cause::Emulator => "the emulator delivered packets late",
        Cause::Unknown => "not known",
    }
}

/// Beginning of a sentence: the effect, how long and when.
pub fn opening(effect: Effect, from_ns: i64, to_ns: i64) -> String {
    format!("{} {} at {}", verb(effect), span(to_ns.saturating_sub(from_ns)), seconds(from_ns))
}

/// What the shares of an effect's causes are parts of.
pub const fn whole(effect: Effect) -> &'static str {
    match effect {
        Effect::Late => "delay",
        Effect::Freeze | Effect::Missing | Effect::FrameRate => "frames",
        _ => "time",
    }
}

/// The second cause, if it explains a fifth or more of the `whole`.
pub fn also(shares: &[(Cause, f64)], whole: &str) -> Option<String> {
    let (cause, share) = shares.get(1).filter(|(_, share)| *share >= 0.2)?;
    Some(format!("{} ({:.0} % of the {whole})", clause(*cause), share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_well() {
        assert_eq!(
            [rate(1.5e6), rate(8e6), rate(299_600.0), rate(12.3e6)],
            ["1.5 Mbit/s", "8 Mbit/s", "300 kbit/s", "12 Mbit/s"]
        );
        assert_eq!(
            [size(512), size(7_520), size(741_000), size(1_250_000)],
            ["512 B", "7.5 kB", "741 kB", "1.2 MB"]
        );
        assert_eq!(
            opening(Effect::Stall, 14_000_000_000, 15_200_000_000),
            "stalled 1.2 s at 14.0 s"
        );
        let shares = [(Cause::Loss, 0.7), (Cause::Outage, 0.3)];
        for (effect, text) in [
            (Effect::Late, "the link carried nothing (30 % of the delay)"),
            (Effect::Freeze, "the link carried nothing (30 % of the frames)"),
            (Effect::Stall, "the link carried nothing (30 % of the time)"),
        ] {
            assert_eq!(also(&shares, whole(effect)).as_deref(), Some(text));
        }
        assert_eq!(span(250_000_000), "250 ms");
        assert_eq!(milliseconds(59_600_000), "60 ms");
    }
}
