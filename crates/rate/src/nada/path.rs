//! What the receiver's reports say of the path (RFC 8698 §4.2, §5.1), as a sender computes it (§6.4).

use std::collections::VecDeque;

use suiro_units::{BitRate, Bytes, Duration, Time};

use crate::PacketReport;
use crate::base::BaseDelay;
use crate::tfrc::LossHistory;

/// The span over which packets are counted (Table 2: LOGWIN).
pub const LOGWIN: Duration = Duration::from_millis(500);
/// Queueing delays below this are no queue (Table 2: QEPS).
const QEPS: Duration = Duration::from_millis(10);
/// Queueing delays from this on are scaled down where packets are lost (Table 2: QTH), in seconds.
const QTH: f64 = 0.050;
/// How fast they are (Table 2: LAMBDA).
const LAMBDA: f64 = 0.5;
/// How many mean loss intervals the latest loss counts for (Table 2: MULTILOSS).
const MULTILOSS: f64 = 7.0;
/// What losses and marks add to the signal, in seconds, at the ratios that follow (Table 2: DLOSS, DMARK).
const DLOSS: f64 = 0.010;
const DMARK: f64 = 0.002;
/// The reference ratios (Table 2: PLRREF, PMRREF).
const PLRREF: f64 = 0.01;
const PMRREF: f64 = 0.01;
/// The weight of the latest ratio (Table 2: ALPHA).
const ALPHA: f64 = 0.1;
/// Samples of which the least is the queueing delay (§5.1.1).
const TAPS: usize = 15;
/// The largest signal, in seconds: that of the authors' implementation (§7, NS3-RMCAT). With 3.28 s, all that §5.3 can
/// express, the rate swings between its bounds after a fall of the capacity, because a signal that falls by TAU doubles it.
const SIGNAL_MAX: f64 = 0.5;
/// The receiving rate is measured over this much time at least, so that the first packets are not a rate of their own.
const SPAN_MIN: Duration = Duration::from_millis(100);
/// Packets that are counted at most: 500 ms at 98 Mbit/s.
const PACKETS_MAX: usize = 4096;
/// Arrivals that are further apart are not of one stretch of the stream.
const PAUSE: Duration = Duration::from_secs(8);
/// Times and sizes beyond count as this, so that no sum overflows.
const TIME_MAX: Time = Time::from_nanos(u64::MAX / 4);
const SIZE_MAX: Bytes = Bytes::new(65_575);

/// A packet of the last [`LOGWIN`].
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// When it arrived; if it did not, or that is not known, the latest arrival before it.
    at: Time,
    /// Its queueing delay, if it is known when it arrived.
    queueing: Option<Duration>,
    lost: bool,
    size: Bytes,
    ecn_ce: bool,
}

/// The state of the path.
#[derive(Debug, Clone, Default)]
pub struct Path {
    log: VecDeque<Seen>,
    base: BaseDelay,
    /// The first packet that no report was about. Each packet is judged once: one that arrives late counts as lost
    /// (§5.1.2).
    next: u64,
    /// When the first packet of this stretch of the stream arrived, and the latest.
    first: Option<Time>,
    latest: Time,
    losses: LossHistory,
    /// Packets that reports were about. The loss intervals count these, because of what a lost report was about nothing
    /// is known.
    reported: u64,
    loss: f64,
    marking: f64,
}

impl Path {
    /// Takes what a report says of packets. True if it was news.
    pub fn on_report(&mut self, packets: &[PacketReport], rtt: Duration) -> bool {
        let before = self.reported;
        for packet in packets {
            if packet.sequence >= self.next {
                self.on_packet(packet, rtt);
                self.next = packet.sequence.saturating_add(1);
            }
        }
        self.reported > before
    }

    fn on_packet(&mut self, packet: &PacketReport, rtt: Duration) {
        self.reported += 1;
        let size = packet.size.min(SIZE_MAX);
        let time = packet.arrived.time().map(|at| at.min(TIME_MAX));
        if let Some(at) = time {
            self.arrive(at);
        }
        let lost = packet.arrived.is_missing();
        if !lost {
            let first = self.losses.open().is_none();
            let at = time.unwrap_or(self.latest);
            if self.losses.on_packet(at, self.reported, rtt) && first {
                self.losses.set_first_interval(self.reported as f64);
            }
        }
        let queueing = time.map(|at| self.base.queueing(at, packet.sent.min(TIME_MAX)));
        self.log.push_back(Seen { at: self.latest, queueing, lost, size, ecn_ce: packet.ecn_ce });
        let old = |seen: &Seen| self.latest.saturating_since(seen.at) > LOGWIN;
        while self.log.len() > PACKETS_MAX || self.log.front().is_some_and(old) {
            self.log.pop_front();
        }
    }

    fn arrive(&mut self, at: Time) {
        let apart = at.saturating_since(self.latest).max(self.latest.saturating_since(at));
        if self.first.is_none() || apart > PAUSE {
            self.log.clear();
            (self.first, self.latest) = (Some(at), at);
        }
        self.latest = self.latest.max(at);
    }

    /// Smooths the ratios of lost and of marked packets (§5.1.2 equation 10). To be called once per control interval.
    pub fn smooth(&mut self) {
        let total = self.log.len();
        if total == 0 {
            return;
        }
        let share = |count: usize| count as f64 / total as f64;
        let lost = share(self.log.iter().filter(|seen| seen.lost).count());
        let marked = share(self.log.iter().filter(|seen| seen.ecn_ce).count());
        self.loss += ALPHA * (lost - self.loss);
        self.marking += ALPHA * (marked - self.marking);
    }

    /// The smoothed ratio of lost packets, p_loss.
    pub const fn loss(&self) -> f64 {
        self.loss
    }

    /// The aggregate congestion signal x_curr in seconds (§4.2 equation 2).
    pub fn signal(&self) -> f64 {
        let penalty = |weight: f64, ratio: f64| weight * ratio * ratio;
        let signal = self.equivalent_delay()
            + penalty(DMARK, self.marking / PMRREF)
            + penalty(DLOSS, self.loss / PLRREF);
        signal.min(SIGNAL_MAX)
    }

    /// The queueing delay in seconds: the least of the last 15 samples (§5.1.1) of the window.
    fn queueing(&self) -> f64 {
        let samples = self.log.iter().rev().filter_map(|seen| seen.queueing).take(TAPS);
        samples.min().map_or(0.0, Duration::as_secs_f64)
    }

    /// The queueing delay after the warping of equation 1, d_tilde. During the mean loss interval after the latest loss
    /// has expired, it returns to the unwarped one (§4.2).
    fn equivalent_delay(&self) -> f64 {
        let queueing = self.queueing();
        let Some((open, mean)) = self.losses.open().zip(self.losses.mean_closed()) else {
            return queueing;
        };
        let expired = ((open - MULTILOSS * mean) / mean).clamp(0.0, 1.0);
        let warped =
            if queueing < QTH { queueing } else { QTH * (-LAMBDA * (queueing - QTH) / QTH).exp() };
        expired * queueing + (1.0 - expired) * warped
    }

    /// Whether the path seems to be underused: nothing lost, no queue in the whole window (§4.2), of which something is known.
    pub fn is_underused(&self) -> bool {
        let longest = self.log.iter().filter_map(|seen| seen.queueing).max();
        longest.is_some_and(|queueing| queueing < QEPS) && !self.log.iter().any(|seen| seen.lost)
    }

    /// What arrives: the bytes of the window over its span (§5.1.3).
    pub fn receiving_rate(&self) -> BitRate {
        let since = self.first.map_or(Duration::ZERO, |first| self.latest.saturating_since(first));
        let span = since.clamp(SPAN_MIN, LOGWIN);
        // A packet that arrives as the span begins was sent before it.
        let within = |seen: &&Seen| self.latest.saturating_since(seen.at) < span;
        let arrived = self.log.iter().filter(within).filter(|seen| !seen.lost);
        Bytes::new(arrived.map(|seen| seen.size.get()).sum()) / span
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arrived;

    const RTT: Duration = Duration::from_millis(100);

    /// A packet of 1250 bytes each 10 ms: 1 Mbit/s; what each took.
    fn packets(first: u64, delays: &[Option<u64>]) -> Vec<PacketReport> {
        let packet = |(sequence, delay): (u64, &Option<u64>)| PacketReport {
            sequence,
            size: Bytes::new(1250),
            sent: Time::from_millis(10 * sequence),
            arrived: delay.map_or(Arrived::No, |delay| {
                Arrived::At(Time::from_millis(5000 + 10 * sequence + delay))
            }),
            ecn_ce: false,
        };
        (first..).zip(delays).map(packet).collect()
    }

    fn path(delays: &[Option<u64>]) -> Path {
        let mut path = Path::default();
        path.on_report(&packets(0, delays), RTT);
        path
    }

    #[test]
    fn the_delay_is_the_least_of_fifteen() {
        let mut delays = vec![Some(50); 20];
        delays.extend([Some(90); 14]);
        assert_eq!(path(&delays).signal(), 0.0, "one of the fifteen took 50 ms");
        delays.push(Some(90));
        assert!((path(&delays).signal() - 0.040).abs() < 1e-9);
        assert_eq!(path(&delays).receiving_rate().as_bps() / 1000, 894, "34 in 380 ms");
        delays.extend([Some(90); 60]);
        assert_eq!(path(&delays).receiving_rate(), BitRate::from_mbps(1), "50 in 500 ms");
    }

    #[test]
    fn an_empty_queue_and_no_loss_is_an_underused_path() {
        assert!(!path(&[]).is_underused(), "nothing is known");
        assert!(path(&[Some(50), Some(59), Some(50)]).is_underused());
        assert!(!path(&[Some(50), Some(60), Some(50)]).is_underused());
        assert!(!path(&[Some(50), None, Some(50)]).is_underused());
        let mut delays = vec![Some(50), None];
        delays.extend([Some(50); 52]);
        assert!(path(&delays).is_underused(), "the loss was more than 500 ms ago");
    }

    #[test]
    fn losses_and_marks_add_to_the_signal() {
        // One of 50 is lost, as the window sees it ten times: p = 0.02 (1 - 0.9^10) = 0.013.
        let mut delays = vec![Some(50); 50];
        delays[25] = None;
        let mut path = path(&delays);
        (0..10).for_each(|_| path.smooth());
        let loss = 0.02 * (1.0 - 0.9_f64.powi(10));
        assert!((path.loss() - loss).abs() < 1e-12);
        assert!((path.signal() - 0.010 * (loss / 0.01).powi(2)).abs() < 1e-12);
        let mut marked = packets(0, &[Some(50); 50]);
        marked[..10].iter_mut().for_each(|packet| packet.ecn_ce = true);
        let mut path = Path::default();
        path.on_report(&marked, RTT);
        path.smooth();
        // p = 0.1 · 0.2: twice the reference, four times 2 ms.
        assert!((path.signal() - 0.008).abs() < 1e-12);
    }

    #[test]
    fn what_came_at_an_unknown_time_is_received_and_no_queue() {
        let mut told = packets(0, &[Some(50); 60]);
        told[20..].iter_mut().step_by(2).for_each(|packet| packet.arrived = Arrived::Untimed);
        told[40].ecn_ce = true;
        let mut path = Path::default();
        path.on_report(&told, RTT);
        path.smooth();
        assert!(path.is_underused() && path.losses.open().is_none() && path.loss() == 0.0);
        // Of the 51 of the last 500 ms, those that came after its beginning.
        assert_eq!(path.receiving_rate(), BitRate::from_mbps(1));
        // p = 0.1 / 51, of one that is marked.
        let marked = 0.1 / 51.0 / 0.01;
        assert!((path.signal() - 0.002 * marked * marked).abs() < 1e-12, "{}", path.signal());
        told.iter_mut().for_each(|packet| packet.arrived = Arrived::Untimed);
        let mut path = Path::default();
        assert!(path.on_report(&told, RTT) && !path.is_underused(), "no delay is known");
    }

    #[test]
    fn a_long_queue_is_scaled_down_where_packets_are_lost() {
        let mut delays = vec![Some(50); 99];
        delays.extend([Some(150); 40]);
        assert!((path(&delays).signal() - 0.100).abs() < 1e-9, "nothing was lost");
        // The hundredth packet is lost: the interval before is of 100 packets, about.
        delays[99] = None;
        let after = |more: usize| {
            let mut delays = delays.clone();
            delays.extend(vec![Some(150); more]);
            path(&delays).signal()
        };
        // 50 ms · exp(-0.5 · (100 - 50) / 50).
        let warped = 0.050 * (-0.5_f64).exp();
        assert!((after(0) - warped).abs() < 1e-9);
        assert!((after(600) - warped).abs() < 1e-9, "it counts for seven intervals");
        let (between, gone) = (after(720), after(900));
        assert!(warped < between && between < 0.100, "{between}");
        assert!((gone - 0.100).abs() < 1e-9, "{gone}");
    }

    #[test]
    fn what_is_told_again_or_not_at_all_changes_nothing() {
        let mut path = path(&[Some(50); 10]);
        assert!(!path.on_report(&packets(0, &[None; 10]), RTT), "old");
        assert!(path.is_underused());
        // The report about 10 to 19 was lost.
        assert!(path.on_report(&packets(20, &[Some(50); 10]), RTT));
        assert!(path.is_underused() && path.losses.open().is_none(), "nothing is known of them");
        // After ten seconds the window is that of the new stretch.
        path.on_report(&packets(1030, &[Some(50); 2]), RTT);
        assert_eq!(path.log.len(), 2);
    }
}
