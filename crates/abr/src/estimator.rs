//! What the network carries, estimated from finished downloads.
//!
//! Two exponentially weighted moving averages, a fast and a slow one, weighted by how long each download took; the
//! estimate is the smaller of the two, so that it falls quickly and rises slowly. This is the estimator of Shaka Player
//! (`EwmaBandwidthEstimator`) and hls.js (`EwmaBandWidthEstimator`). The half-lives are Shaka's, 2 and 5 s. With
//! hls.js's 3 and 9 s a live player with 6 s of buffer that meets a fall from 8 to 1.5 Mbit/s asks for one more segment
//! that it cannot get in time.
//!
//! A download counts from its request, not from its first byte: the wait of one round trip is paid
//! for every segment, so a rung that fits only without it does not fit. (dash.js calls this
//! `useDeadTimeLatency` and does so by default.)
//!
//! **At low latency** a player knows the network by bursts: a chunk takes a few milliseconds of a fast link, and then there is
//! nothing to send until the next. Weighted by the time of downloading, the averages would remember a slow link for much
//! longer than it lasted: if a burst takes a tenth of the time between two, a half-life of 5 s becomes 50 s. So a burst is
//! weighted by the time since the one before, and the half-lives are those of the clock.
//!
//! Crate `http` measures the bursts (`player/chunked.rs`), after the idea of the `moof` boxes in dash.js; the averages are those
//! above. Published estimators for chunks can take their place ([`ChunkEstimator`]):
//!
//! | estimator | measures | from several, it makes |
//! |---|---|---|
//! | `bursts`, suiro's own | bytes after the first read of a burst, over the time since that read | the smaller of two averages by the clock; nothing is predicted |
//! | `moof`: the boxes in dash.js (Lim et al., "When they go high, we go low", MMSys 2020; `FetchLoader`) | all bytes of a chunk, over the time from the read in which it began to the read in which it ended | the mean over a segment, without its last chunk; then the averages over downloads |
//! | `last-segment`: L2A (Karagkioules et al., MMSys 2020; `L2ARule` of dash.js) | the same | the mean over the last segment alone |
//! | `acte` (Bentaleb, Timmerer, Begen and Zimmermann, "Bandwidth prediction in low-latency chunked streaming", NOSSDAV 2019) | the same | the mean over a sliding window of chunks; recursive least squares predict the next one from those before |
//!
//! How the last three differ from their sources:
//!
//! - In dash.js, a chunk begins with the read that completes its `moof`, and only if the chunk before it had ended with an earlier
//!   read. Back to back, that is one read later than here. Chunks that end with the same read are one there. The averages of
//!   dash.js have half-lives of 3 and 8 s.
//! - A request with fewer than three chunks, such as one for a part of HLS, has no mean over a segment. There, dash.js counts the
//!   time from the request on, and so do `moof` and `last-segment` here.
//! - `L2ARule` begins with an average; here the last segment counts from the first one on. If a segment was requested while the
//!   one before it was coming, the last segment is the one before both.
//! - What came of a segment that was given up counts with `moof` and `last-segment`; dash.js leaves it out.
//! - A read is what the body's reader is given. Over TLS and HTTP/2 that is a whole record or frame, as in a browser, and what a
//!   loss had kept back comes at once. `bursts` has the times at which the socket was read.
//!
//! [`crate::mpc`] makes its own prediction, from the rates of downloads, segments or chunks that are added here.

mod acte;
mod chunks;

use suiro_units::{BitRate, Bytes, Duration, Time};

use acte::Acte;
pub use chunks::Arrival;

/// Half-life of the fast average, in seconds of downloading.
pub const FAST_HALF_LIFE: Duration = Duration::from_secs(2);
/// Half-life of the slow average, in seconds of downloading.
pub const SLOW_HALF_LIFE: Duration = Duration::from_secs(5);
/// Less than this measures the round trip, not the rate (Shaka Player's `minBytes`): smaller downloads
/// count together, once they are as much. Left out altogether, as there, a ladder whose lowest rung
/// has such segments would never be climbed.
pub const LEAST_BYTES: Bytes = Bytes::new(16_000);

/// Less than this measures when the packets happened to be read: shorter bursts count together, too. After a loss, all that
/// waited for one packet comes at once.
pub const LEAST_BURST: Duration = Duration::from_millis(10);
/// The most that a burst weighs, if it took less: after a pause, the network may be another.
const WEIGHT_MAX: Duration = Duration::from_secs(1);

/// One finished download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Size of the response's body.
    pub bytes: Bytes,
    /// When the request was sent.
    pub requested: Time,
    /// When the last byte of the body came.
    pub done: Time,
}

impl Sample {
    /// From request to last byte; at least one nanosecond, so that a rate can be had.
    pub fn took(&self) -> Duration {
        self.done.saturating_since(self.requested).max(Duration::from_nanos(1))
    }
}

/// An average in which a sample loses half its weight per half-life of later samples.
#[derive(Debug, Clone, Copy)]
struct Average {
    half_life: Duration,
    value_bps: f64,
    weight_s: f64,
}

impl Average {
    const fn new(half_life: Duration) -> Self {
        Self { half_life, value_bps: 0.0, weight_s: 0.0 }
    }

    /// The share that is left of what was known after samples of that weight.
    fn left(&self, weight_s: f64) -> f64 {
        0.5f64.powf(weight_s / self.half_life.as_secs_f64())
    }

    fn add(&mut self, rate_bps: f64, weight_s: f64) {
        let left = self.left(weight_s);
        self.value_bps = rate_bps * (1.0 - left) + self.value_bps * left;
        self.weight_s += weight_s;
    }

    /// The mean, without the pull of the zero it began with.
    fn mean_bps(&self) -> f64 {
        self.value_bps / (1.0 - self.left(self.weight_s))
    }
}

/// What makes the estimate of chunks: see the table above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChunkEstimator {
    /// Bursts, by the clock.
    #[default]
    Bursts,
    /// The mean of a segment's chunks counts as one download.
    Moof,
    /// The mean of the last segment's chunks.
    LastSegment,
    /// A prediction from the last chunks.
    Acte,
}

impl ChunkEstimator {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Bursts, Self::Moof, Self::LastSegment, Self::Acte];
}

/// What is known of chunks.
#[derive(Debug, Clone)]
enum Chunks {
    Bursts,
    Moof,
    LastSegment(Option<BitRate>),
    Acte(Acte),
}

impl Chunks {
    fn new(estimator: ChunkEstimator) -> Self {
        match estimator {
            ChunkEstimator::Bursts => Self::Bursts,
            ChunkEstimator::Moof => Self::Moof,
            ChunkEstimator::LastSegment => Self::LastSegment(None),
            ChunkEstimator::Acte => Self::Acte(Acte::new()),
        }
    }
}

/// The estimate of throughput. Starts without any.
#[derive(Debug, Clone)]
pub struct Estimator {
    fast: Average,
    slow: Average,
    /// Downloads that are too small to count yet: their bytes, and how long they took together.
    small: (Bytes, Duration),
    chunks: Chunks,
    /// When the last burst ended that counted; `None` without any.
    burst_ended: Option<Time>,
    /// A chunk has counted.
    is_of_chunks: bool,
}

impl Default for Estimator {
    fn default() -> Self {
        Self::new(ChunkEstimator::default())
    }
}

impl Estimator {
    /// One that estimates from chunks in this way.
    pub fn new(chunks: ChunkEstimator) -> Self {
        Self {
            fast: Average::new(FAST_HALF_LIFE),
            slow: Average::new(SLOW_HALF_LIFE),
            small: (Bytes::ZERO, Duration::ZERO),
            chunks: Chunks::new(chunks),
            burst_ended: None,
            is_of_chunks: false,
        }
    }

    /// Takes a download into account and returns its rate; one that is too small for an estimate is
    /// counted with the next.
    pub fn add(&mut self, sample: &Sample) -> Option<BitRate> {
        self.add_download(sample.bytes, sample.took())
    }

    fn add_download(&mut self, bytes: Bytes, took: Duration) -> Option<BitRate> {
        let (rate, took) = self.enough(bytes, took, Duration::ZERO)?;
        self.count(rate, took);
        Some(rate)
    }

    /// Takes a chunk into account, also of a segment under way; returns the rate that it adds, if it adds one by itself.
    pub fn add_chunk(&mut self, chunk: &Arrival) -> Option<BitRate> {
        let rate = match &mut self.chunks {
            Chunks::Bursts => self.add_burst(chunk.burst.as_ref()?),
            // They are added with their segment.
            Chunks::Moof | Chunks::LastSegment(_) => None,
            Chunks::Acte(acte) => acte.add(&chunk.whole),
        };
        self.is_of_chunks |= rate.is_some();
        rate
    }

    /// A segment has come as a whole, in these chunks ([`Arrival::whole`]), all of which were passed to
    /// [`Estimator::add_chunk`]. Returns the rate that it adds.
    pub fn add_segment(&mut self, whole: &Sample, chunks: &[Sample]) -> Option<BitRate> {
        if matches!(self.chunks, Chunks::Bursts | Chunks::Acte(_)) {
            return None;
        }
        let rate = chunks::mean_rate(chunks).unwrap_or(whole.bytes / whole.took());
        if let Chunks::LastSegment(last) = &mut self.chunks {
            *last = Some(rate);
        }
        self.is_of_chunks = true;
        let took = if rate.is_zero() { whole.took() } else { whole.bytes / rate };
        self.add_download(whole.bytes, took.max(Duration::from_nanos(1)))
    }

    /// A segment in chunks was given up; this had come of it, in time in which the network was busy. Returns the rate that it
    /// adds.
    pub fn add_abandoned(&mut self, came: &Sample) -> Option<BitRate> {
        match self.chunks {
            Chunks::Bursts => self.add_burst(came),
            Chunks::Moof | Chunks::LastSegment(_) => self.add_segment(came, &[]),
            // Its chunks have counted.
            Chunks::Acte(_) => None,
        }
    }

    /// Takes a burst into account, in which the network was busy from the beginning to the end; returns its rate as
    /// [`Estimator::add`] does.
    fn add_burst(&mut self, burst: &Sample) -> Option<BitRate> {
        let (rate, took) = self.enough(burst.bytes, burst.took(), LEAST_BURST)?;
        let since = self.burst_ended.map_or(took, |ended| burst.done.saturating_since(ended));
        self.burst_ended = Some(burst.done);
        self.count(rate, since.min(WEIGHT_MAX).max(took));
        Some(rate)
    }

    /// True if the estimate is of chunks.
    pub fn is_of_chunks(&self) -> bool {
        self.is_of_chunks
    }

    /// The rate and the time of a download or burst and of those before it that were too small; `None` if it still is.
    fn enough(
        &mut self,
        bytes: Bytes,
        took: Duration,
        least: Duration,
    ) -> Option<(BitRate, Duration)> {
        let (bytes, took) = (self.small.0 + bytes, self.small.1 + took);
        if bytes < LEAST_BYTES || took < least {
            self.small = (bytes, took);
            return None;
        }
        self.small = (Bytes::ZERO, Duration::ZERO);
        Some((bytes / took, took))
    }

    fn count(&mut self, rate: BitRate, weight: Duration) {
        let (bps, weight_s) = (rate.as_bps() as f64, weight.as_secs_f64());
        self.fast.add(bps, weight_s);
        self.slow.add(bps, weight_s);
    }

    /// Bits per second of body; `None` before the first download that counts.
    pub fn estimate(&self) -> Option<BitRate> {
        let of_chunks = match &self.chunks {
            Chunks::LastSegment(last) => *last,
            Chunks::Acte(acte) => acte.estimate(),
            Chunks::Bursts | Chunks::Moof => None,
        };
        of_chunks.or_else(|| self.average())
    }

    fn average(&self) -> Option<BitRate> {
        let bps = self.fast.mean_bps().min(self.slow.mean_bps());
        (self.fast.weight_s > 0.0).then(|| BitRate::from_bps(bps.round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(bytes: u64, took_ms: u64) -> Sample {
        Sample {
            bytes: Bytes::new(bytes),
            requested: Time::from_secs(1),
            done: Time::from_secs(1) + Duration::from_millis(took_ms),
        }
    }

    #[test]
    fn the_first_sample_is_the_estimate() {
        let mut estimator = Estimator::default();
        assert_eq!(estimator.estimate(), None);
        estimator.add(&sample(250_000, 1000));
        assert_eq!(estimator.estimate(), Some(BitRate::from_mbps(2)));
    }

    #[test]
    fn small_downloads_count_together() {
        let mut estimator = Estimator::default();
        estimator.add(&sample(10_000, 100));
        assert_eq!(estimator.estimate(), None);
        // 20 kB in 200 ms; what was joined does not count twice.
        estimator.add(&sample(10_000, 100));
        assert_eq!(estimator.estimate(), Some(BitRate::from_kbps(800)));
        estimator.add(&sample(15_999, 1));
        assert_eq!(estimator.estimate(), Some(BitRate::from_kbps(800)));
    }

    #[test]
    fn falls_by_the_fast_average() {
        let mut estimator = Estimator::default();
        estimator.add(&sample(2_000_000, 2000)); // 8 Mbit/s for one fast half-life
        estimator.add(&sample(250_000, 2000)); // 1 Mbit/s for another
        // Fast: weights 1/4 and 1/2 of 3/4: (8·¼ + 1·½) ÷ ¾ = 3⅓ Mbit/s; slow lies higher.
        assert_eq!(estimator.estimate(), Some(BitRate::from_bps(3_333_333)));
    }

    #[test]
    fn rises_by_the_slow_average() {
        let mut estimator = Estimator::default();
        estimator.add(&sample(625_000, 5000)); // 1 Mbit/s for one slow half-life
        estimator.add(&sample(5_000_000, 5000)); // 8 Mbit/s for another
        // Slow: (1·¼ + 8·½) ÷ ¾ = 5⅔ Mbit/s; fast lies higher.
        assert_eq!(estimator.estimate(), Some(BitRate::from_bps(5_666_667)));
    }

    fn burst(sample: Sample) -> Arrival {
        Arrival { burst: Some(sample), whole: sample }
    }

    /// Bursts of `ms` milliseconds at that rate, one each 100 ms, from one second to another.
    fn bursts(estimator: &mut Estimator, (from_s, to_s): (u64, u64), kbps: u64, ms: u64) {
        for tenth in from_s * 10..to_s * 10 {
            let requested = Time::from_millis(100 * tenth);
            let done = requested + Duration::from_millis(ms);
            let bytes = BitRate::from_kbps(kbps) * Duration::from_millis(ms);
            estimator.add_chunk(&burst(Sample { bytes, requested, done }));
        }
    }

    fn mbps(estimator: &Estimator) -> f64 {
        estimator.estimate().expect("an estimate").as_bps() as f64 / 1e6
    }

    #[test]
    fn bursts_are_forgotten_by_the_clock() {
        let mut estimator = Estimator::default();
        bursts(&mut estimator, (0, 60), 2000, 80);
        assert_eq!(estimator.estimate(), Some(BitRate::from_mbps(2)));
        // A slow half-life of a link that is busy for a quarter of the time: half of 2 and half of 6 Mbit/s. By the time of
        // downloading, of which that was 1.25 s, it would be 2.6.
        bursts(&mut estimator, (60, 65), 6000, 25);
        assert!((mbps(&estimator) - 4.0).abs() < 0.05, "{}", mbps(&estimator));
    }

    #[test]
    fn a_fall_shows_within_a_second_in_bursts() {
        let mut estimator = Estimator::default();
        bursts(&mut estimator, (0, 20), 4000, 40);
        // Half a fast half-life: 0.71 · 4 + 0.29 · 1.5 Mbit/s.
        bursts(&mut estimator, (20, 21), 1500, 100);
        assert!((mbps(&estimator) - 3.27).abs() < 0.1, "{}", mbps(&estimator));
    }

    #[test]
    fn what_came_at_once_counts_with_the_next() {
        let mut estimator = Estimator::default();
        bursts(&mut estimator, (0, 20), 4000, 40);
        let now = Time::from_millis(20_040);
        estimator.add_chunk(&burst(Sample {
            bytes: Bytes::new(20_000),
            requested: now,
            done: now,
        }));
        assert_eq!(estimator.estimate(), Some(BitRate::from_mbps(4)));
        // 40 kB in 40 ms are 8 Mbit/s, for a tenth of a second.
        bursts(&mut estimator, (21, 22), 4000, 40);
        assert!((4.0..4.5).contains(&mbps(&estimator)), "{}", mbps(&estimator));
    }

    #[test]
    fn small_bursts_are_an_estimate_once_they_are_enough() {
        let mut estimator = Estimator::default();
        estimator.add_chunk(&burst(sample(10_000, 100)));
        assert_eq!((estimator.estimate(), estimator.is_of_chunks()), (None, false));
        estimator.add_chunk(&burst(sample(10_000, 100)));
        assert_eq!(estimator.estimate(), Some(BitRate::from_kbps(800)));
        assert!(estimator.is_of_chunks());
    }

    /// Segments of four chunks of 20 kB, each `ms` long, but the last 2 ms, in too few reads for a burst. Of the others, the
    /// first tenth came in the first read.
    fn segments(estimator: &mut Estimator, count: u64, ms: u64) -> Option<BitRate> {
        let mut added = None;
        for second in 0..count {
            let chunk = |chunk: u64| {
                let requested = Time::from_millis(1000 * second + 250 * chunk);
                let done = requested + Duration::from_millis(if chunk == 3 { 2 } else { ms });
                Sample { bytes: Bytes::new(20_000), requested, done }
            };
            let chunks: Vec<Sample> = (0..4).map(chunk).collect();
            for whole in &chunks {
                let burst = Sample { bytes: Bytes::new(18_000), ..*whole };
                let burst = (whole.took() > Duration::from_millis(2)).then_some(burst);
                estimator.add_chunk(&Arrival { burst, whole: *whole });
            }
            let (requested, done) = (chunks[0].requested, chunks[3].done);
            let whole = Sample { bytes: Bytes::new(80_000), requested, done };
            added = estimator.add_segment(&whole, &chunks);
        }
        added
    }

    #[test]
    fn each_estimator_takes_chunks_its_own_way() {
        use ChunkEstimator::{Acte, Bursts, LastSegment, Moof};
        let came = sample(20_000, 100);
        for (chunks, kbps) in [(Bursts, 1440), (Moof, 1600), (LastSegment, 1600)] {
            let mut estimator = Estimator::new(chunks);
            let added = segments(&mut estimator, 8, 100);
            assert_eq!(estimator.estimate(), Some(BitRate::from_kbps(kbps)), "{chunks:?}");
            assert!(estimator.is_of_chunks());
            let of_segments = [Moof, LastSegment].contains(&chunks);
            assert_eq!(added, of_segments.then_some(BitRate::from_kbps(1600)), "{chunks:?}");
        }
        // Three times as fast: the last segment shows it at once, the averages not yet.
        let mut last = Estimator::new(LastSegment);
        let mut mean = Estimator::new(Moof);
        for estimator in [&mut last, &mut mean] {
            segments(estimator, 8, 100);
            segments(estimator, 1, 33);
        }
        assert!(mbps(&last) > 4.8 && mbps(&mean) < 2.0, "{} {}", mbps(&last), mbps(&mean));
        let mut acte = Estimator::new(Acte);
        for chunk in 0..50 {
            let requested = Time::from_millis(250 * chunk);
            let whole = Sample { requested, done: requested + Duration::from_millis(100), ..came };
            let rate = acte.add_chunk(&Arrival { burst: None, whole });
            assert_eq!(rate, Some(BitRate::from_kbps(1600)));
        }
        assert!((mbps(&acte) / 1.6 - 1.0).abs() < 0.01, "{}", mbps(&acte));
        assert_eq!((acte.add_segment(&came, &[came; 4]), acte.is_of_chunks()), (None, true));
    }

    #[test]
    fn a_request_of_a_few_chunks_counts_from_the_request() {
        let mut estimator = Estimator::new(ChunkEstimator::Moof);
        estimator.add_chunk(&burst(sample(20_000, 10)));
        assert_eq!(estimator.estimate(), None);
        let chunks = [sample(20_000, 10)];
        let added = estimator.add_segment(&sample(20_000, 100), &chunks);
        assert_eq!(added, Some(BitRate::from_kbps(1600)));
        assert_eq!(estimator.estimate(), Some(BitRate::from_kbps(1600)));
    }

    #[test]
    fn what_came_of_a_segment_that_was_given_up_counts_once() {
        let came = sample(20_000, 100);
        for chunks in ChunkEstimator::ALL {
            let mut estimator = Estimator::new(chunks);
            let before = estimator.add_chunk(&burst(came));
            let after = estimator.add_abandoned(&came);
            let rate = Some(BitRate::from_kbps(1600));
            assert_eq!(estimator.estimate(), rate, "{chunks:?}");
            let twice = chunks == ChunkEstimator::Bursts;
            assert_eq!((before.is_some(), after.is_some()) == (true, true), twice, "{chunks:?}");
        }
    }

    #[test]
    fn a_download_without_duration_has_a_rate() {
        let mut estimator = Estimator::default();
        estimator.add(&sample(1_000_000, 0));
        assert!(estimator.estimate().is_some());
    }
}
