//! One player's choice of rungs, whichever algorithm makes it.

use suiro_units::{BitRate, Duration, Time};

use crate::bola::Bola;
use crate::choice::{Choice, Limits, Look};
use crate::dynamic::Dynamic;
use crate::l2a::L2a;
use crate::lolp::Lolp;
use crate::mpc::Mpc;
use crate::{Algorithm, Arrival, ChunkEstimator, Estimator, Ladder, Sample, abandon, throughput};

/// Chooses the rung of each segment of one track.
///
/// ```
/// use suiro_abr::{Algorithm, Controller, Ladder, Limits, Sample};
/// use suiro_units::{BitRate, Bytes, Duration, Time};
///
/// let ladder = Ladder::new([1, 2, 4].map(BitRate::from_mbps).to_vec()).unwrap();
/// let limits = Limits { segment: Duration::from_secs(2), buffer: Duration::from_secs(30) };
/// let mut controller = Controller::new(Algorithm::Throughput, ladder, limits);
/// assert_eq!(controller.choose(Time::ZERO, Duration::ZERO).rung, 0);
/// let sample = Sample {
///     bytes: Bytes::new(250_000),
///     requested: Time::ZERO,
///     done: Time::from_millis(500), // 4 Mbit/s, of which a tenth is kept in hand
/// };
/// controller.on_segment(&sample, 0, Duration::from_secs(2));
/// assert_eq!(controller.choose(Time::from_millis(500), Duration::from_secs(2)).rung, 1);
/// ```
#[derive(Debug, Clone)]
pub struct Controller {
    ladder: Ladder,
    estimator: Estimator,
    rule: Rule,
    /// Until then, after a download was given up, no rung above the last.
    hold: Option<(Time, usize)>,
    /// Live: how old the frame under the playhead is.
    latency: Duration,
    /// The most media that the player will hold.
    capacity: Duration,
}

/// An algorithm's memory.
#[derive(Debug, Clone)]
enum Rule {
    Throughput,
    Bola(Bola),
    Dynamic(Dynamic),
    Mpc(Mpc),
    L2a(L2a),
    Lolp(Lolp),
}

impl Controller {
    /// A controller that has seen nothing yet.
    pub fn new(algorithm: Algorithm, ladder: Ladder, limits: Limits) -> Self {
        let rule = match algorithm {
            Algorithm::Throughput => Rule::Throughput,
            Algorithm::Bola => Rule::Bola(Bola::new(&ladder, limits)),
            Algorithm::Dynamic => Rule::Dynamic(Dynamic::new(&ladder, limits)),
            Algorithm::Mpc => Rule::Mpc(Mpc::new(&ladder, limits)),
            Algorithm::L2a => Rule::L2a(L2a::new(limits)),
            Algorithm::Lolp => Rule::Lolp(Lolp::new(&ladder, limits)),
        };
        let (latency, capacity) = (limits.buffer, limits.buffer);
        Self { ladder, estimator: Estimator::default(), rule, hold: None, latency, capacity }
    }

    /// The same, with another estimator for chunks. To be called before anything has come.
    #[must_use]
    pub fn with_estimator(self, chunks: ChunkEstimator) -> Self {
        Self { estimator: Estimator::new(chunks), ..self }
    }

    /// The rungs it chooses from.
    pub fn ladder(&self) -> &Ladder {
        &self.ladder
    }

    /// Throughput as estimated so far; `None` before the first download.
    pub fn estimate(&self) -> Option<BitRate> {
        self.estimator.estimate()
    }

    /// Something has been downloaded whole that does not extend the buffer, such as a segment from
    /// before a seek: says what the network carries.
    pub fn on_download(&mut self, sample: &Sample) {
        self.measure(sample);
        if let Some(bola) = self.bola() {
            bola.on_download(sample.done);
        }
    }

    /// A segment of `rung` has been downloaded whole and appended; `buffer` is the media ahead of
    /// the playhead, the segment included.
    pub fn on_segment(&mut self, sample: &Sample, rung: usize, buffer: Duration) {
        self.on_download(sample);
        if let Some(bola) = self.bola() {
            bola.on_segment(rung, sample.took(), buffer);
        }
    }

    /// A piece of a segment has come while the rest was still being captured: says what the network carries.
    pub fn on_chunk(&mut self, chunk: &Arrival) {
        let rate = self.estimator.add_chunk(chunk);
        self.measured(rate);
    }

    /// A segment of `rung` has been downloaded in such pieces, `chunks` ([`Arrival::whole`]), and appended. The time that it took
    /// was that of its capture, and says nothing about the network, unless there were too few of them.
    pub fn on_segment_in_chunks(
        &mut self,
        sample: &Sample,
        chunks: &[Sample],
        rung: usize,
        buffer: Duration,
    ) {
        let rate = self.estimator.add_segment(sample, chunks);
        self.measured(rate);
        if let Some(bola) = self.bola() {
            bola.on_download(sample.done);
            bola.on_segment(rung, sample.took(), buffer);
        }
    }

    /// A download was given up ([`crate::abandon`]) for one of `rung`, with this much buffered;
    /// `sample` is what had come of it.
    pub fn on_abandon(&mut self, sample: &Sample, rung: usize, buffer: Duration) {
        let rate = match self.estimator.is_of_chunks() {
            // What falls behind its capture keeps the network busy.
            true => self.estimator.add_abandoned(sample),
            false => self.estimator.add(sample),
        };
        self.measured(rate);
        self.hold = Some((sample.done + abandon::HOLD, rung));
        match &mut self.rule {
            Rule::Throughput => {}
            Rule::Mpc(mpc) => mpc.chosen(rung),
            Rule::Bola(bola) => bola.on_abandon(rung, buffer),
            Rule::Dynamic(dynamic) => dynamic.bola().on_abandon(rung, buffer),
            Rule::L2a(l2a) => l2a.held(rung),
            Rule::Lolp(lolp) => lolp.held(rung),
        }
    }

    /// Live: how old the frame under the playhead is. To be called before [`Controller::choose`]; until the first call,
    /// the frame counts as old as the buffer is long.
    pub fn on_latency(&mut self, latency: Duration) {
        self.latency = latency;
    }

    /// The playhead has jumped and the buffer is empty.
    pub fn on_seek(&mut self) {
        match &mut self.rule {
            Rule::Throughput | Rule::Mpc(_) => {}
            Rule::Bola(bola) => bola.on_seek(),
            Rule::Dynamic(dynamic) => dynamic.on_seek(),
            Rule::L2a(l2a) => l2a.on_seek(),
            Rule::Lolp(lolp) => lolp.on_seek(),
        }
    }

    /// A download is under way whose rung was chosen before the last one had ended: there is no idle time between them.
    pub fn on_request(&mut self) {
        if let Some(bola) = self.bola() {
            bola.on_request();
        }
    }

    /// The rung of the next segment, asked when there is one to fetch and room for it. `buffer` is
    /// the media ahead of the playhead.
    pub fn choose(&mut self, now: Time, buffer: Duration) -> Choice {
        let in_chunks = self.estimator.is_of_chunks();
        let look = Look { now, buffer, estimate: self.estimate(), in_chunks };
        let share = self.share(buffer);
        let choice = match &mut self.rule {
            Rule::Throughput => {
                let spare = look.estimate.map(|estimate| estimate.mul_f64(share));
                Choice::at_once(throughput::rung(&self.ladder, spare))
            }
            Rule::Bola(bola) => bola.choose(&self.ladder, &look),
            Rule::Dynamic(dynamic) => dynamic.choose(&self.ladder, &look),
            Rule::Mpc(mpc) => mpc.choose(&look),
            Rule::L2a(l2a) => l2a.choose(&self.ladder, &look),
            Rule::Lolp(lolp) => lolp.choose(&self.ladder, &look, self.latency),
        };
        self.held(now, choice)
    }

    /// The share of the estimate that the throughput rule plans with. At low latency, a buffer of less than half of what it
    /// should hold is filled before anything else: an estimate falls more slowly than a link, and there is no more than a
    /// second or two until a stall. This is the idea of dash.js's `InsufficientBufferRule`, which compares the buffer with a
    /// segment; at low latency a full one may be shorter than that.
    fn share(&self, buffer: Duration) -> f64 {
        let enough = self.capacity / 2;
        if !self.estimator.is_of_chunks() || enough.is_zero() {
            return 1.0;
        }
        (buffer / enough).min(1.0)
    }

    /// The choice, as far as a download that was given up allows it.
    fn held(&mut self, now: Time, choice: Choice) -> Choice {
        let Some((_, last)) = self.hold.filter(|(until, _)| now < *until) else {
            self.hold = None;
            return choice;
        };
        let rung = choice.rung.min(last);
        self.hold = self.hold.map(|(until, _)| (until, rung));
        match &mut self.rule {
            Rule::Throughput => {}
            Rule::Mpc(mpc) => mpc.chosen(rung),
            Rule::Bola(bola) => bola.held(rung),
            Rule::Dynamic(dynamic) => dynamic.bola().held(rung),
            Rule::L2a(l2a) => l2a.held(rung),
            Rule::Lolp(lolp) => lolp.held(rung),
        }
        Choice { rung, ..choice }
    }

    fn measure(&mut self, sample: &Sample) {
        let rate = self.estimator.add(sample);
        self.measured(rate);
    }

    fn measured(&mut self, rate: Option<BitRate>) {
        if let (Some(rate), Rule::Mpc(mpc)) = (rate, &mut self.rule) {
            mpc.on_rate(rate);
        }
    }

    fn bola(&mut self) -> Option<&mut Bola> {
        match &mut self.rule {
            Rule::Throughput | Rule::Mpc(_) | Rule::L2a(_) | Rule::Lolp(_) => None,
            Rule::Bola(bola) => Some(bola),
            Rule::Dynamic(dynamic) => Some(dynamic.bola()),
        }
    }
}

#[cfg(test)]
mod tests {
    use suiro_units::Bytes;

    use super::*;

    /// 4 Mbit/s, of which a tenth is kept in hand, for a ladder of 1, 2 and 3 Mbit/s and a buffer of 2 s.
    fn rungs(in_bursts: bool) -> [usize; 4] {
        let ladder = Ladder::new([1, 2, 3].map(BitRate::from_mbps).to_vec()).expect("a ladder");
        let limits = Limits { segment: Duration::from_secs(1), buffer: Duration::from_secs(2) };
        let mut controller = Controller::new(Algorithm::Throughput, ladder, limits);
        let done = Time::from_millis(100);
        let sample = Sample { bytes: Bytes::new(50_000), requested: Time::ZERO, done };
        match in_bursts {
            true => controller.on_chunk(&Arrival { burst: Some(sample), whole: sample }),
            false => controller.on_download(&sample),
        }
        let mut rung = |ms| controller.choose(done, Duration::from_millis(ms)).rung;
        [rung(2000), rung(1000), rung(700), rung(300)]
    }

    #[test]
    fn a_buffer_that_is_less_than_half_full_is_filled_first_at_low_latency() {
        // 3.6, 3.6, 2.5 and 1.1 Mbit/s.
        assert_eq!(rungs(true), [2, 2, 1, 0]);
        assert_eq!(rungs(false), [2, 2, 2, 2]);
    }
}
