//! The score of Twitch's challenge for low latency: Bentaleb, "QoE evaluation for CMAF-based low-latency streaming" (2020,
//! `NQoE.pdf` of the ACM MMSys 2020 grand challenge), equation (1) with the factors of table 1.

use suiro_record::tables::PlayerRow;
use suiro_record::words::PlayerState;

use crate::held::Stretch;

/// Chunks in a second of media: one for each frame at 30 frames per second; α is the length of one.
const CHUNKS_PER_S: f64 = 30.0;
/// β, per second of waiting: the highest bit rate of the challenge, in kbit/s.
const WAITING: f64 = 1000.0;
/// γ, per chunk and second of latency: up to [`NEAR_S`], and beyond.
const LATENCY: (f64, f64) = (0.005, 0.01);
const NEAR_S: f64 = 1.1;
/// σ, per chunk: the lowest bit rate of the challenge, in kbit/s.
const SPEED: f64 = 200.0;
/// µ, in seconds: per kbit/s of a change of the rung.
const SWITCH: f64 = 0.02;

/// The score of a live player, from its states in order; `None` if it showed no rung with a latency.
pub(crate) fn score(states: &[Stretch<&PlayerRow>]) -> Option<f64> {
    let (mut sum, mut before) = (None, None);
    for Stretch { value: row, .. } in states {
        let Some(rate_kbps) = row.rung_bps.map(|bps| bps as f64 / 1e3) else { continue };
        let change = before.map_or(0.0, |before: f64| (rate_kbps - before).abs());
        before = Some(rate_kbps);
        sum = sum.or(Some(0.0)).map(|sum| sum - SWITCH * change);
    }
    let mut sum = sum?;
    let mut shown = false;
    for stretch in states {
        let (row, seconds) = (stretch.value, stretch.length_ns() / 1e9);
        match row.state {
            PlayerState::Stalled => sum -= WAITING * seconds,
            PlayerState::Playing => {
                let (Some(rung_bps), Some(latency_ms)) = (row.rung_bps, row.latency_ms) else {
                    continue;
                };
                shown = true;
                let latency_s = latency_ms / 1e3;
                let factor = if latency_s <= NEAR_S { LATENCY.0 } else { LATENCY.1 };
                let each = factor * latency_s + SPEED * (1.0 - row.speed).abs();
                // Each chunk that is shown counts once: a faster playhead shows more of them.
                sum += seconds * row.speed * (rung_bps as f64 / 1e3 - CHUNKS_PER_S * each);
            }
            _ => {}
        }
    }
    shown.then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(state: PlayerState, rung_bps: i64, latency_ms: f64, speed: f64) -> PlayerRow {
        PlayerRow {
            state,
            rung_bps: Some(rung_bps),
            latency_ms: Some(latency_ms),
            target_latency_ms: None,
            speed,
            t_ns: 0,
            endpoint: "viewer".into(),
            buffer_ms: None,
            position_ms: None,
            stalls: 0,
            estimate_bps: None,
            dropped_pictures: None,
        }
    }

    #[test]
    fn by_hand() {
        let rows = [
            row(PlayerState::Playing, 1_000_000, 1000.0, 1.0),
            row(PlayerState::Stalled, 1_000_000, 2000.0, 0.0),
            row(PlayerState::Playing, 200_000, 2000.0, 1.1),
        ];
        let ends_ms = [0, 2000, 2500, 3500];
        let stretch = |(between, value): (&[i64], _)| {
            let (from_ns, to_ns) = (between[0] * 1_000_000, between[1] * 1_000_000);
            Stretch { from_ns, to_ns, value }
        };
        let states: Vec<_> = ends_ms.windows(2).zip(&rows).map(stretch).collect();
        // 2 s: 2000 kbit, less 60 chunks of 0.005. Half a second of waiting: 500. A change of 800 kbit/s: 16.
        // 1 s, in which 1.1 s are shown: 220 kbit, less 33 chunks of 0.02 and of 20 for the speed.
        let expected = (2000.0 - 0.3) - 500.0 - 16.0 + (220.0 - 33.0 * 20.02);
        let found = score(&states).unwrap();
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        assert_eq!(score(&states[1..2]), None, "nothing was shown");
    }
}
