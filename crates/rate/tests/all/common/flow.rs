//! A flow with a controller.

use std::collections::VecDeque;
use std::ops::Range;

use suiro_link::Ecn;
use suiro_rate::equation::rfc5348;
use suiro_rate::{Arrived, Controller, Feedback, PacketReport, RateSpec, tfrc};
use suiro_units::{Bytes, Duration, Time};

use super::{Flow, SIZE};

/// How the receiver reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reports {
    /// As RFC 5348 wants it: loss event rate and receive rate, once per round-trip time.
    Tfrc,
    /// Expected and received packets at even distances, as RTCP.
    Counts(Duration),
    /// Each packet's arrival at even distances, as RFC 8888.
    Packets(Duration),
}

/// A camera whose frames are as large as the target allows. Their packets wait, and leave in bursts at the pace.
#[derive(Debug, Clone, Copy)]
pub struct Frames {
    /// From frame to frame.
    pub every: Duration,
    /// The time that the packets of a burst take at the pace.
    pub burst: Duration,
    waiting: f64,
    next: Time,
}

impl Frames {
    pub const fn new(every: Duration, burst: Duration) -> Self {
        Self { every, burst, waiting: 0.0, next: Time::ZERO }
    }
}

/// A sender that always has something to send, paced as its controller says.
pub struct Controlled {
    pub controller: Box<dyn Controller>,
    /// The target whenever it changed.
    pub targets: Vec<(Time, f64)>,
    /// The loss event rate that the sender knew, whenever a report had arrived.
    pub losses: Vec<(Time, f64)>,
    /// Reports that arrive within are lost.
    pub deaf: Range<Time>,
    /// Size of its packets; [`SIZE`] unless set.
    pub size: Bytes,
    /// Of what it may send, what it has to send: 1 unless set.
    pub share: f64,
    /// Whether packets follow one another at the target, as a source makes them, where the pace is faster; but while padding is
    /// wanted, at the pace.
    pub paced_by_target: bool,
    /// Makes frames instead of packets, if set.
    pub frames: Option<Frames>,
    /// Whether its packets say that they are of L4S.
    pub l4s: bool,
    /// How much faster the receiver's clock runs than the sender's, in millionths.
    pub drift_ppm: i64,
    reports: Reports,
    /// Of the way back.
    delay: Duration,
    next_send: Time,
    latest_send: Time,
    /// When each packet was sent.
    pub sent: Vec<Time>,
    receiver: tfrc::Receiver,
    next_report: Option<Time>,
    arrived: Vec<Option<Time>>,
    marked: Vec<bool>,
    expected: u64,
    received: u64,
    /// On the way back.
    under_way: VecDeque<(Time, Feedback)>,
}

impl Controlled {
    pub fn new(spec: &RateSpec, reports: Reports, delay: Duration, start: Time) -> Self {
        Self {
            controller: spec.build(start).unwrap_or_else(|error| panic!("{error}")),
            targets: Vec::new(),
            losses: Vec::new(),
            deaf: Time::ZERO..Time::ZERO,
            size: SIZE,
            share: 1.0,
            paced_by_target: false,
            frames: None,
            l4s: false,
            drift_ppm: 0,
            reports,
            delay,
            next_send: start,
            latest_send: start,
            sent: Vec::new(),
            receiver: tfrc::Receiver::new(SIZE),
            next_report: None,
            arrived: Vec::new(),
            marked: Vec::new(),
            expected: 0,
            received: 0,
            under_way: VecDeque::new(),
        }
    }

    /// The mean over time of what the equation gave for the loss event rate known, from the first
    /// loss on.
    pub fn equation_mean(&self, rtt: Duration) -> f64 {
        let (mut bits, mut seconds) = (0.0, 0.0);
        for known in self.losses.windows(2).filter(|known| known[0].1 > 0.0) {
            let span = (known[1].0 - known[0].0).as_secs_f64();
            bits += rfc5348(SIZE, rtt, known[0].1) * span;
            seconds += span;
        }
        bits / seconds
    }

    /// Median and 95th percentile of what packets sent in these seconds took beyond the quickest of all, in ms.
    pub fn queueing(&self, from: u64, to: u64) -> (f64, f64) {
        let took = |(sent, arrived): (&Time, &Option<Time>)| Some((*sent, (*arrived)? - *sent));
        let delays = || self.sent.iter().zip(&self.arrived).filter_map(took);
        let least = delays().map(|(_, delay)| delay).min().expect("packets arrived");
        let within = Time::from_secs(from)..Time::from_secs(to);
        let mut of: Vec<f64> = delays()
            .filter(|(sent, _)| within.contains(sent))
            .map(|(_, delay)| (delay - least).as_millis_f64())
            .collect();
        of.sort_by(f64::total_cmp);
        (of[of.len() / 2], of[of.len() * 95 / 100])
    }

    fn report(&mut self, now: Time) {
        let mut feedback = match self.reports {
            Reports::Tfrc => {
                let Some(report) = self.receiver.report(now) else { return };
                Feedback {
                    receive_rate: Some(report.receive_rate),
                    loss_event_rate: Some(report.loss_event_rate),
                    ..Feedback::default()
                }
            }
            Reports::Counts(every) | Reports::Packets(every) => {
                if self.next_report.is_none_or(|at| now < at) {
                    return;
                }
                self.next_report = Some(now + every);
                self.told()
            }
        };
        // The number of the highest packet comes with each, and how long ago it came.
        if let Some((highest, at)) = self.receiver.highest() {
            let held = now - at;
            let back = now + self.delay;
            feedback.rtt = Some(back - self.sent[highest as usize] - held);
            if !self.deaf.contains(&back) {
                self.under_way.push_back((back, feedback));
            }
        }
    }

    /// What arrived since the last report.
    fn told(&mut self) -> Feedback {
        let (highest, _) = self.receiver.highest().expect("reports begin with the first packet");
        let numbers = self.expected..highest + 1;
        let arrived = numbers.clone().filter(|&n| self.arrived[n as usize].is_some()).count();
        let mut feedback = Feedback::counts(numbers.end - numbers.start, arrived as u64);
        if matches!(self.reports, Reports::Packets(_)) {
            let on_clock = |at: Time| {
                let drift = at.as_nanos_i64() / 1_000_000 * self.drift_ppm;
                Arrived::At(Time::from_nanos(at.as_nanos().saturating_add_signed(drift)))
            };
            let packet = |sequence: u64| PacketReport {
                sequence,
                size: self.size,
                sent: self.sent[sequence as usize],
                arrived: self.arrived[sequence as usize].map_or(Arrived::No, on_clock),
                ecn_ce: self.marked[sequence as usize],
            };
            feedback.packets = numbers.clone().map(packet).collect();
        }
        self.expected = numbers.end;
        feedback
    }

    fn leave(&mut self, now: Time, send: &mut dyn FnMut(u64)) {
        send(self.sent.len() as u64);
        self.sent.push(now);
        self.arrived.push(None);
        self.marked.push(false);
        self.controller.on_sent(now, self.size);
    }

    fn act_by_frames(&mut self, now: Time, send: &mut dyn FnMut(u64)) {
        let Some(mut frames) = self.frames else { return };
        if frames.next <= now {
            // At most eight frames wait. A sender gives up older ones.
            let frame = self.controller.target().as_bps() as f64 / 8.0 * frames.every.as_secs_f64();
            frames.waiting = (frames.waiting + frame).min(8.0 * frame);
            frames.next += frames.every;
        }
        if self.next_send <= now {
            let pace = self.controller.pacing();
            let size = self.size.get() as f64;
            let most = pace.as_bps() as f64 / 8.0 * frames.burst.as_secs_f64() / size;
            let mut count = 0_u32;
            while frames.waiting > 0.0
                && f64::from(count) < most.max(1.0)
                && !self.controller.is_blocked()
            {
                self.leave(now, send);
                frames.waiting -= size;
                count += 1;
            }
            self.next_send = now + self.size / pace * count.into();
        }
        self.frames = Some(frames);
    }

    fn pace(&mut self, now: Time) {
        if self.frames.is_some() {
            return;
        }
        let pace = self.controller.pacing();
        let by_target = self.paced_by_target && !self.controller.wants_padding();
        let rate = if by_target { pace.min(self.controller.target()) } else { pace };
        self.next_send = self.latest_send + (self.size / rate).mul_f64(1.0 / self.share);
        let target = self.controller.target().as_bps() as f64;
        if self.targets.last().is_none_or(|&(_, last)| last != target) {
            self.targets.push((now, target));
        }
    }
}

impl Flow for Controlled {
    fn next(&self) -> Option<Time> {
        let report = match self.reports {
            Reports::Tfrc => self.receiver.next_report(),
            _ => self.next_report,
        };
        let heard = self.under_way.front().map(|(at, _)| *at);
        let something = self.frames.is_none_or(|frames| frames.waiting > 0.0);
        let send = (something && !self.controller.is_blocked()).then_some(self.next_send);
        let frame = self.frames.map(|frames| frames.next);
        [send, frame, self.controller.next_timer(), report, heard].into_iter().flatten().min()
    }

    fn act(&mut self, now: Time, send: &mut dyn FnMut(u64)) {
        while let Some((_, feedback)) = self.under_way.pop_front_if(|(at, _)| *at <= now) {
            self.controller.on_feedback(now, &feedback);
            let loss = self.controller.estimate().loss;
            self.losses.extend(loss.map(|loss| (now, loss.get())));
            self.pace(now);
        }
        if self.controller.next_timer().is_some_and(|at| at <= now) {
            self.controller.on_timer(now);
            self.pace(now);
        }
        self.report(now);
        if self.frames.is_some() {
            return self.act_by_frames(now, send);
        }
        if self.next_send <= now && !self.controller.is_blocked() {
            self.leave(now, send);
            self.latest_send = now;
            self.pace(now);
        }
    }

    fn size(&self) -> Bytes {
        self.size
    }

    fn ecn(&self) -> Ecn {
        if self.l4s { Ecn::Ect1 } else { Ecn::NotEct }
    }

    fn deliver(&mut self, now: Time, number: u64, marked: bool) {
        self.received += 1;
        self.arrived[number as usize] = Some(now);
        self.marked[number as usize] = marked;
        self.receiver.on_packet(now, number, self.size, self.controller.estimate().rtt);
        if let Reports::Counts(every) | Reports::Packets(every) = self.reports {
            self.next_report.get_or_insert(now + every);
        }
    }
}
