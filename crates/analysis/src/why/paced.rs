//! Falls of the rate at which TCP paces.

use suiro_record::tables::TcpRow;
use suiro_record::words::TcpState;

use super::sender::{Samples, Sender};
use super::since;
use super::wording::{rate, seconds};
use crate::held::Stretch;

/// A rate below so much of what was usual has fallen. While it looks for more, BBR paces at 1.25 and at 0.75 times what it measured
/// (draft-cardwell-iccrg-bbr-congestion-control-00 §4.3.4.1), which is no fall.
const FALLEN: f64 = 0.5;
/// How long before what pacing held back the rate may have fallen.
const BEFORE_NS: i64 = 1_000_000_000;
/// At most so much more than what arrives is usual: the end of BBR's start-up (§4.3.2) is no fall either.
const MORE: f64 = 1.25;

/// A time in which the pacing rate was low.
struct Slow {
    from_ns: i64,
    /// The rate before it.
    usual_bps: f64,
    /// The lowest rate.
    least_bps: f64,
    /// Whether TCP was repairing a loss when it began.
    repairs: bool,
    /// How long it lasted, of the time that is explained.
    lasted_ns: i64,
}

impl Sender<'_> {
    /// How its pacing rate had fallen before or during most of a stretch of time, as a clause; `None` if it had not, or
    /// is not known.
    pub(super) fn told_slower(&self, (from, to): (i64, i64)) -> Option<String> {
        let Samples::Tcp(socket) = &self.samples else { return None };
        let slow = slow(&socket.samples, (from, to)).into_iter().max_by_key(|it| it.lasted_ns);
        let slow = slow.filter(|it| it.lasted_ns > since(to, from) / 2)?;
        Some(format!(
            "; its rate had fallen from {} to {} at {}{}",
            rate(slow.usual_bps),
            rate(slow.least_bps),
            seconds(slow.from_ns),
            if slow.repairs { ", while TCP repaired a loss" } else { "" }
        ))
    }
}

/// The times in which the rate was low, in a stretch of time and shortly before it.
fn slow(samples: &[Stretch<&TcpRow>], (from, to): (i64, i64)) -> Vec<Slow> {
    let mut found: Vec<Slow> = Vec::new();
    let (mut usual_bps, mut is_low) = (0.0, false);
    let first = samples.partition_point(|it| it.to_ns <= from.saturating_sub(BEFORE_NS));
    for sample in samples[first..].iter().take_while(|it| it.from_ns < to) {
        let row = sample.value;
        let Some(bps) = row.pacing_rate_bps.map(|bps| bps as f64) else { continue };
        let low = bps < FALLEN * usual_bps;
        if low && !is_low {
            let repairs = matches!(row.state, TcpState::Recovery | TcpState::Loss);
            let (from_ns, least_bps) = (sample.from_ns, bps);
            found.push(Slow { from_ns, usual_bps, least_bps, repairs, lasted_ns: 0 });
        }
        match found.last_mut().filter(|_| low) {
            Some(slow) => {
                slow.least_bps = slow.least_bps.min(bps);
                slow.lasted_ns += since(sample.to_ns.min(to), sample.from_ns.max(from)).max(0);
            }
            None => {
                let arrives = row.delivery_rate_bps.map_or(bps, |arrives| arrives as f64 * MORE);
                usual_bps = bps.min(arrives).max(usual_bps);
            }
        }
        is_low = low;
    }
    found
}
