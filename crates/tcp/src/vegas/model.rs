//! Vegas again, written independently of the BPF program: L. Brakmo and L. Peterson, "TCP Vegas: End to End Congestion
//! Avoidance on a Global Internet", IEEE JSAC 13(8), 1995. Given the ACKs of a recorded connection, it must compute the
//! same windows as the kernel.
//!
//! Pure, and only for connections without loss: what follows a loss is Reno's behaviour.

/// Fewest packets kept in the queue.
pub const ALPHA: f64 = 2.0;
/// Most packets kept in the queue.
pub const BETA: f64 = 4.0;
/// Packets in the queue at which slow start ends.
pub const GAMMA: f64 = 1.0;
/// A round with fewer RTT samples is handled as Reno would.
pub const SAMPLES_MIN: u32 = 3;
/// Smallest window, in segments.
pub const WINDOW_MIN: u32 = 2;

/// An ACK, and the sender's state when it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The sequence number up to which it acknowledges.
    pub ack: u32,
    /// The sender's next sequence number.
    pub snd_nxt: u32,
    /// Segments that it newly acknowledges.
    pub acked: u32,
    /// The RTT sample that it gives, in µs; `None` if it acknowledges a retransmission.
    pub rtt_us: Option<u32>,
    /// Most segments in flight at once in the last round that filled the window.
    pub max_packets_out: u32,
}

/// The state of a Vegas sender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// The window in segments.
    pub window: u32,
    /// The slow-start threshold in segments.
    pub ssthresh: u32,
    /// Minimum RTT of the connection, in µs.
    pub base_rtt_us: Option<u32>,
    round: Round,
    /// Whether this round doubles the window: slow start does so only every other round.
    doubling: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Round {
    /// The round is over when this sequence number is acknowledged.
    end: u32,
    rtt_us: Option<u32>,
    samples: u32,
}

impl Model {
    /// A sender at the start of a round that ends when `snd_nxt` is acknowledged.
    pub fn new(window: u32, ssthresh: u32, base_rtt_us: Option<u32>, snd_nxt: u32) -> Self {
        let round = Round { end: snd_nxt, rtt_us: None, samples: 0 };
        Self { window, ssthresh, base_rtt_us, round, doubling: true }
    }

    /// The sender begins to send after a time with nothing in flight.
    pub fn restart(&mut self, snd_nxt: u32) {
        self.round = Round { end: snd_nxt, rtt_us: None, samples: 0 };
        self.doubling = true;
    }

    /// Processes an ACK that acknowledges something new. Returns false where Vegas does not define what follows: at the
    /// end of a round with too few samples.
    pub fn arrive(&mut self, arrival: &Arrival) -> bool {
        if let Some(rtt_us) = arrival.rtt_us {
            let least = |known: Option<u32>| Some(known.map_or(rtt_us, |known| known.min(rtt_us)));
            self.base_rtt_us = least(self.base_rtt_us);
            self.round.rtt_us = least(self.round.rtt_us);
            self.round.samples += 1;
        }
        // Sequence numbers wrap around (RFC 9293 §3.4).
        let over = arrival.ack.wrapping_sub(self.round.end).cast_signed() >= 0;
        if !over {
            if self.window < self.ssthresh && self.doubling && self.is_filled(arrival) {
                self.window = (self.window + arrival.acked).min(self.ssthresh);
            }
            return true;
        }
        let judged = self.judge(arrival);
        self.round = Round { end: arrival.snd_nxt, rtt_us: None, samples: 0 };
        judged
    }

    /// Linux does not grow a window that the application leaves half empty.
    fn is_filled(&self, arrival: &Arrival) -> bool {
        self.window < 2 * arrival.max_packets_out
    }

    fn judge(&mut self, arrival: &Arrival) -> bool {
        let (Some(base_us), Some(rtt_us), SAMPLES_MIN..) =
            (self.base_rtt_us, self.round.rtt_us, self.round.samples)
        else {
            return false;
        };
        let window = f64::from(self.window);
        let (expected, actual) = (window / f64::from(base_us), window / f64::from(rtt_us));
        // In whole packets: the kernel does not count fractions.
        let diff = ((expected - actual) * f64::from(base_us) + ROUNDING).floor();
        if self.window < self.ssthresh {
            self.doubling = !self.doubling;
            if diff > GAMMA {
                self.window = (actual * f64::from(base_us) - ROUNDING).ceil() as u32 + 1;
                self.ssthresh = self.window.max(WINDOW_MIN);
            }
        } else if diff > BETA {
            self.window -= 1;
            self.ssthresh = self.ssthresh.min(self.window.max(WINDOW_MIN));
        } else if diff < ALPHA && self.is_filled(arrival) {
            self.window += 1;
        }
        self.window = self.window.max(WINDOW_MIN);
        true
    }
}

/// Far more than the rounding error of fractions of a packet.
const ROUNDING: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    const BASE_US: u32 = 40_000;

    /// A path of constant rate that holds `path` packets, plus a queue: the RTT of a round is that of its whole window
    /// (a fluid model). Returns the windows of 200 rounds.
    fn windows(path: u32, start: u32, ssthresh: u32) -> Vec<u32> {
        let mut model = Model::new(start, ssthresh, Some(BASE_US), 0);
        let round = |_| {
            let rtt_us = (BASE_US * model.window / path).max(BASE_US);
            let (ack, window) = (model.round.end, model.window);
            for arrived in (0..window).rev() {
                let ack = ack.wrapping_sub(arrived);
                let snd_nxt = ack.wrapping_add(window);
                let rtt_us = Some(rtt_us);
                assert!(model.arrive(&Arrival {
                    ack,
                    snd_nxt,
                    acked: 1,
                    rtt_us,
                    max_packets_out: model.window
                }));
            }
            model.window
        };
        (0..200).map(round).collect()
    }

    #[test]
    fn two_to_four_packets_stay_queued() {
        for (start, ssthresh) in [(10, u32::MAX), (10, 10), (300, 10)] {
            let windows = windows(100, start, ssthresh);
            let held = windows[199];
            assert!((102..=105).contains(&held), "{start} {ssthresh}: {windows:?}");
            assert!(windows[195..].iter().all(|&window| window == held), "{windows:?}");
        }
    }

    #[test]
    fn slow_start_doubles_every_other_round_and_ends_early() {
        let windows = windows(100, 10, u32::MAX);
        // The last ACK of a round ends the round instead of growing the window, so a doubling round falls just short of
        // twice the window.
        let grown: Vec<_> = windows.iter().take(8).collect();
        assert!(windows.iter().all(|&window| window <= 200), "{grown:?}");
        assert_eq!(windows[1], windows[0], "{grown:?}");
        assert_eq!(windows[3], windows[2], "{grown:?}");
        assert!(windows[2] > windows[1] * 9 / 5, "{grown:?}");
    }

    #[test]
    fn too_few_samples_are_not_judged() {
        let mut model = Model::new(10, 5, None, 100);
        let arrival = Arrival { ack: 99, snd_nxt: 110, acked: 1, rtt_us: None, max_packets_out: 9 };
        assert!(model.arrive(&arrival));
        assert!(!model.arrive(&Arrival { ack: 100, ..arrival }));
        assert_eq!((model.window, model.round.end), (10, 110));
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        for (max_packets_out, grown) in [(5, 10), (6, 11)] {
            let mut model = Model::new(10, 5, Some(BASE_US), 3);
            for ack in 1..=3 {
                let rtt_us = Some(BASE_US);
                model.arrive(&Arrival { ack, snd_nxt: 13, acked: 1, rtt_us, max_packets_out });
            }
            assert_eq!(model.window, grown);
        }
    }
}
