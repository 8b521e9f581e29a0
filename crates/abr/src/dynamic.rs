//! DYNAMIC: the throughput rule while the buffer is low, BOLA while it is high.
//!
//! Spiteri, Sitaraman and Sparacio, "From theory to practice: improving bitrate adaptation in the
//! DASH reference player" (MMSys 2018). Throughput decides at the start; BOLA once the buffer has
//! reached 10 s and BOLA's rung is not below throughput's; throughput again once the buffer is low
//! and BOLA's rung is lower.
//!
//! **Low** is below half of those 10 s, which is dash.js's hysteresis (`switchOffThreshold` in its
//! `AbrController`). The authors' simulator Sabre (`Dynamic` in `sabre.py`) uses 10 s for both.
//!
//! Differences from both: Sabre has basic BOLA, while the BOLA inside is BOLA-E ([`crate::bola`]),
//! as in dash.js; and dash.js switches by the buffer alone. For live streams, a buffer that holds
//! less than 20 s switches at half of what it holds.

use suiro_units::Duration;

use crate::bola::Bola;
use crate::choice::{Choice, Limits, Look};
use crate::{Ladder, throughput};

/// The level at which a large buffer hands over to BOLA.
const SWITCH_ON: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub(crate) struct Dynamic {
    bola: Bola,
    by_bola: bool,
    switch_on: Duration,
}

impl Dynamic {
    pub(crate) fn new(ladder: &Ladder, limits: Limits) -> Self {
        Self {
            bola: Bola::new(ladder, limits),
            by_bola: false,
            switch_on: SWITCH_ON.min(limits.buffer / 2),
        }
    }

    /// BOLA receives every event, also while it does not decide: its placeholder must be right when
    /// it takes over.
    pub(crate) fn bola(&mut self) -> &mut Bola {
        &mut self.bola
    }

    pub(crate) fn on_seek(&mut self) {
        self.bola.on_seek();
        self.by_bola = false;
    }

    pub(crate) fn choose(&mut self, ladder: &Ladder, look: &Look) -> Choice {
        let by_throughput = throughput::rung(ladder, look.estimate);
        let bola = self.bola.choose(ladder, look);
        if self.by_bola {
            self.by_bola = look.buffer >= self.switch_on / 2 || bola.rung >= by_throughput;
        } else {
            self.by_bola = look.buffer >= self.switch_on && bola.rung >= by_throughput;
        }
        if self.by_bola {
            return bola;
        }
        self.bola.chosen(by_throughput);
        Choice::at_once(by_throughput)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use suiro_units::{BitRate, Time};

    fn look(buffer_s: u64, estimate_mbps: u64) -> Look {
        Look {
            now: Time::ZERO,
            buffer: Duration::from_secs(buffer_s),
            estimate: Some(BitRate::from_mbps(estimate_mbps)),
            in_chunks: false,
        }
    }

    /// The ladder of [`crate::bola`]'s tests: rung 1 from 12.656 s on, rung 2 from 18.656 s on.
    fn set_up(buffer_s: u64) -> (Ladder, Dynamic) {
        let ladder = Ladder::new([1, 2, 4, 8].map(BitRate::from_mbps).to_vec()).unwrap();
        let limits =
            Limits { segment: Duration::from_secs(2), buffer: Duration::from_secs(buffer_s) };
        let dynamic = Dynamic::new(&ladder, limits);
        (ladder, dynamic)
    }

    #[test]
    fn hands_over_and_back_by_hand() {
        let (ladder, mut dynamic) = set_up(30);
        // 3 Mbit/s · 0.9 = 2.7: throughput says rung 1.
        assert_eq!(dynamic.choose(&ladder, &look(0, 3)).rung, 1);
        // Above 10 s, but BOLA (a download given up at 9 s left 1 s of placeholder) says rung 0: not
        // yet.
        dynamic.choose(&ladder, &look(2, 3));
        dynamic.bola().on_abandon(0, Duration::from_secs(9));
        assert_eq!(dynamic.choose(&ladder, &look(11, 3)).rung, 1);
        assert!(!dynamic.by_bola);
        // At 13 s BOLA says rung 1 too: it takes over.
        dynamic.choose(&ladder, &look(13, 3));
        assert!(dynamic.by_bola);
        // At 6 s BOLA says rung 0, and is heard: still above 5 s.
        assert_eq!(dynamic.choose(&ladder, &look(6, 3)).rung, 0);
        // At 4 s it is not.
        assert_eq!(dynamic.choose(&ladder, &look(4, 3)).rung, 1);
        assert!(!dynamic.by_bola);
    }

    #[test]
    fn a_small_buffer_hands_over_at_its_half() {
        let (_, dynamic) = set_up(6);
        assert_eq!(dynamic.switch_on, Duration::from_secs(3));
    }

    #[test]
    fn a_seek_starts_anew() {
        let (ladder, mut dynamic) = set_up(30);
        dynamic.choose(&ladder, &look(0, 3));
        dynamic.choose(&ladder, &look(20, 3));
        assert!(dynamic.by_bola);
        dynamic.on_seek();
        assert_eq!(dynamic.choose(&ladder, &look(0, 9)).rung, 3);
        assert!(!dynamic.by_bola);
    }
}
