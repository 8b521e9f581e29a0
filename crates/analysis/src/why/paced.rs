//! Falls of the rate at which a sender paces.

use suiro_record::words::TcpState;

use super::falls::{Fall, falls};
use super::sender::{Samples, Sender};
use super::wording::{rate, seconds};

/// A rate below so much of what it was has fallen. While it looks for more, BBR paces at 1.25 and at 0.75 times what it measured
/// (draft-cardwell-iccrg-bbr-congestion-control-00 §4.3.4.1), which is no fall.
const FALLEN: f64 = 0.5;
/// How long before what pacing held back its rate may have fallen.
const BEFORE_NS: i64 = 1_000_000_000;

/// What a sample says of pacing.
struct Pace {
    at_ns: i64,
    bps: f64,
    repairs: bool,
}

impl Sender<'_> {
    /// The deepest fall of its pacing rate in a stretch of time or shortly before it, as a clause; `None` if it did not fall.
    pub(super) fn told_slower(&self, (from, to): (i64, i64)) -> Option<String> {
        let span = from.saturating_sub(BEFORE_NS)..to;
        let paces: Vec<Pace> =
            self.paces().into_iter().filter(|pace| span.contains(&pace.at_ns)).collect();
        let rates: Vec<(i64, f64)> = paces.iter().map(|pace| (pace.at_ns, pace.bps)).collect();
        let depth = |fall: &Fall| fall.before_bps / fall.after_bps.max(1.0);
        let all = falls(&rates, to, FALLEN).into_iter();
        let fall = all.max_by(|a, b| depth(a).total_cmp(&depth(b)))?;
        let repairs = paces.iter().any(|pace| pace.at_ns == fall.from_ns && pace.repairs);
        Some(format!(
            "; its rate had fallen from {} to {} at {}{}",
            rate(fall.before_bps),
            rate(fall.after_bps),
            seconds(fall.from_ns),
            if repairs { ", while TCP repaired a loss" } else { "" }
        ))
    }

    fn paces(&self) -> Vec<Pace> {
        match &self.samples {
            Samples::Tcp(socket) => {
                let paces = socket.samples.iter().filter_map(|sample| {
                    let row = sample.value;
                    Some(Pace {
                        at_ns: sample.from_ns,
                        bps: row.pacing_rate_bps? as f64,
                        repairs: matches!(row.state, TcpState::Recovery | TcpState::Loss),
                    })
                });
                paces.collect()
            }
            Samples::Quic(samples) => {
                let paces = samples.iter().filter_map(|sample| {
                    let bps = sample.value.pacing_bps?.as_bps() as f64;
                    Some(Pace { at_ns: sample.from_ns, bps, repairs: false })
                });
                paces.collect()
            }
        }
    }
}
