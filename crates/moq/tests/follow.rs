//! An encoder that follows its connection, over a link core in virtual time, with each congestion control of QUIC but BBR:
//! noq's takes no seed, so it would be another test in each run. Trials of `moq-adapt` have it.

#[path = "common/path.rs"]
mod path;

use moq_noq_proto::{MtuDiscoveryConfig, TransportConfig, VarInt};
use path::{Path, Sender, Source};
use suiro_moq::control::Factory;
use suiro_moq::follow::{Follow, Sample};
use suiro_scenario::QuicCongestion;
use suiro_units::{BitRate, Bytes, Duration, Time};

const ALL: [QuicCongestion; 3] =
    [QuicCongestion::NewReno, QuicCongestion::Cubic, QuicCongestion::Copa];

/// Those that keep their rate when others cause the delay. Copa lowers its window for ten seconds after the round trip
/// has become longer, and while it competes with a sender that fills the queue: no encoder can send more than the
/// window allows.
const KEEPING: [QuicCongestion; 2] = [QuicCongestion::NewReno, QuicCongestion::Cubic];

/// Frames from one key frame to the next, and how many others a key frame is as large as.
const PERIOD: u64 = 60;
const KEY: u64 = 4;

/// As that of our endpoints.
fn transport(congestion: QuicCongestion) -> TransportConfig {
    let mut config = TransportConfig::default();
    config
        .congestion_controller_factory(Factory::new(congestion, suiro_rate::copa::DELTA))
        .max_concurrent_uni_streams(VarInt::from_u32(4096))
        .send_window(64_000_000)
        .send_fairness(false)
        .enable_segmentation_offload(false)
        .mtu_discovery_config(Some(MtuDiscoveryConfig::default()));
    config
}

/// An encoder of 30 frames in a second that makes exactly what it is set to.
struct Encoder {
    follow: Follow,
    rate: BitRate,
    frame: Time,
    sample: Time,
    number: u64,
    /// What it was set to, and why.
    set: Vec<(Time, BitRate, Sample)>,
}

impl Encoder {
    fn new(start: u64, most: u64) -> Self {
        let (rate, most) = (BitRate::from_kbps(start), BitRate::from_kbps(most));
        let follow = Follow::new(rate, most);
        let (frame, sample) = (Time::ZERO, Time::ZERO);
        Self { follow, rate, frame, sample, number: 0, set: Vec::new() }
    }

    /// The round-trip time that so many of a hundred samples of that time exceed.
    fn rtt(&self, from: Time, to: Time, exceed: usize) -> Duration {
        let within = self.set.iter().filter(|(at, ..)| (from..to).contains(at));
        let mut rtts: Vec<Duration> = within.map(|(.., sample)| sample.rtt).collect();
        rtts.sort_unstable();
        rtts[rtts.len() * (100 - exceed) / 100]
    }
}

impl Source for Encoder {
    fn next(&self) -> Time {
        self.frame.min(self.sample)
    }

    fn act(&mut self, now: Time, sender: &mut Sender<'_>) {
        if self.frame <= now {
            let period = self.rate.as_bps() / 8 * PERIOD / 30;
            let part = period / (PERIOD - 1 + KEY);
            let is_key = self.number.is_multiple_of(PERIOD);
            sender.send(if is_key { part * KEY } else { part } as usize);
            self.number += 1;
            self.frame = now + Duration::from_secs(1) / 30;
        }
        if self.sample <= now {
            self.sample = now + Duration::from_millis(50);
            let (Some(look), Some(rtt)) = (sender.look(), sender.rtt()) else { return };
            let sample = Sample {
                sent: look.sent,
                acked: look.acked,
                waiting: Bytes::new(look.waiting),
                rtt,
                newest: look.rtt.map(Into::into),
            };
            self.rate = self.follow.on_sample(now, sample);
            self.set.push((now, self.rate, sample));
        }
    }
}

/// Always something to send.
struct Bulk(Time);

impl Source for Bulk {
    fn next(&self) -> Time {
        self.0
    }

    fn act(&mut self, now: Time, sender: &mut Sender<'_>) {
        self.0 = now + Duration::from_millis(10);
        if sender.look().is_none_or(|look| look.waiting < 100_000) {
            sender.send(100_000);
        }
    }
}

fn s(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

/// Runs an encoder alone; the share of `capacity` that it sends between each two of these times, in seconds.
fn alone(
    congestion: QuicCongestion,
    link: &str,
    (encoder, capacity): (&mut Encoder, f64),
    times: &[(u64, u64)],
) -> Vec<f64> {
    let mut path = Path::new(link);
    path.connect(Time::ZERO, transport(congestion), encoder);
    path.run(s(times.iter().map(|(_, to)| *to).max().unwrap_or(0)));
    times.iter().map(|(from, to)| path.rate(0, s(*from), s(*to)) / 1000.0 / capacity).collect()
}

/// A round trip of 20 ms becomes one of 150 ms, and one of 20 ms again. No queue is full at any time.
#[test]
fn a_longer_route_costs_five_seconds() {
    let link = "rate = '5 Mbit/s'\ndelay = '10 ms'\nqueue = { limit = '500 ms' }\n\
        changes = [{ at = '20 s', delay = '75 ms' }, { at = '50 s', delay = '10 ms' }]";
    for congestion in KEEPING {
        let mut encoder = Encoder::new(1000, 1500);
        let times = [(10, 20), (25, 27), (30, 50), (55, 57), (60, 80)];
        let shares = alone(congestion, link, (&mut encoder, 1500.0), &times);
        let name = congestion.name();
        assert!(shares[0] > 0.95, "{name}: {shares:.2?}");
        for share in &shares[1..] {
            assert!(*share > 0.8 * shares[0], "{name}: {shares:.2?}");
        }
        // In five seconds from the change on and always else, an empty path is used.
        let settled = |at: Time| at > s(5) && !(s(20)..s(25)).contains(&at);
        let least = encoder.set.iter().filter(|(at, ..)| settled(*at)).map(|(_, rate, _)| *rate);
        let least = least.min().expect("there are samples");
        assert!(least > BitRate::from_kbps(300), "{name}: {least}");
    }
}

#[test]
fn a_round_trip_of_600_ms_is_used() {
    let link = "rate = '2 Mbit/s'\ndelay = '300 ms'\nqueue = { limit = '500 ms' }";
    for congestion in ALL {
        let mut encoder = Encoder::new(450, 3000);
        let shares = alone(congestion, link, (&mut encoder, 2000.0), &[(10, 30), (30, 80)]);
        let (name, late) = (congestion.name(), encoder.rtt(s(10), s(80), 5));
        assert!(shares.iter().all(|share| *share > 0.4), "{name}: {shares:.2?}");
        assert!(late < Duration::from_millis(1000), "{name}: {late}");
    }
}

/// The other begins at several times, because nothing else is left to randomness.
#[test]
fn one_cubic_leaves_a_quarter() {
    for (delay, queue) in [(20, 100), (20, 250)] {
        let link = format!("rate = '2 Mbit/s'\ndelay = '{delay} ms'\nqueue.limit = '{queue} ms'");
        for congestion in KEEPING {
            let rate = |offset| {
                let (mut encoder, mut bulk) = (Encoder::new(1000, 3000), Bulk(Time::ZERO));
                let mut path = Path::new(&link);
                path.connect(Time::ZERO, transport(congestion), &mut encoder);
                let start = s(10) + Duration::from_millis(370) * offset;
                path.connect(start, transport(QuicCongestion::Cubic), &mut bulk);
                path.run(s(80));
                path.rate(0, s(20), s(80)) / 1000.0
            };
            let rates: Vec<f64> = (0..3).map(rate).collect();
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            let name = congestion.name();
            assert!(mean > 500.0, "{name}, queue of {queue} ms: {rates:.0?}");
        }
    }
}

/// The least round-trip time is that of the last seconds, and yet it does not grow with a queue of one's own.
#[test]
fn alone_the_queue_stays_short() {
    for congestion in ALL {
        for rate in [300, 1000, 2000] {
            let link = format!(
                "rate = '{rate} kbit/s'\ndelay = '20 ms'\nqueue.limit = '1 s'\n\
                changes = [{{ at = '60 s', rate = '{} kbit/s' }}, {{ at = '90 s', rate = '{rate} kbit/s' }}]",
                rate / 3
            );
            let mut encoder = Encoder::new(450, 3000);
            let times = [(10, 60), (100, 300)];
            let shares = alone(congestion, &link, (&mut encoder, f64::from(rate)), &times);
            let late = [(10, 60), (65, 90), (100, 200), (200, 300)]
                .map(|(from, to)| encoder.rtt(s(from), s(to), 5));
            let name = congestion.name();
            assert!(shares.iter().all(|share| *share > 0.75), "{name}, {rate}: {shares:.2?}");
            assert!(
                late.iter().all(|rtt| *rtt < Duration::from_millis(400)),
                "{name}, {rate}: {late:?}"
            );
        }
    }
}

#[test]
fn an_outage_leaves_no_trace() {
    let link = "rate = '1 Mbit/s'\ndelay = '20 ms'\nqueue.limit = '500 ms'\n\
        changes = [{ at = '20 s', rate = '0 bit/s' }, { at = '26 s', rate = '1 Mbit/s' }]";
    for congestion in ALL {
        let mut encoder = Encoder::new(450, 3000);
        let shares = alone(congestion, link, (&mut encoder, 1000.0), &[(10, 20), (36, 60)]);
        let name = congestion.name();
        assert!(shares.iter().all(|share| *share > 0.75), "{name}: {shares:.2?}");
    }
}

/// The certificates' signatures have one size, and every random number has a seed.
#[test]
fn a_run_is_repeatable() {
    let link = "rate = '1 Mbit/s'\ndelay = '20 ms'\nqueue.limit = '100 ms'";
    let run = || {
        let (mut encoder, mut bulk) = (Encoder::new(450, 3000), Bulk(Time::ZERO));
        let mut path = Path::new(link);
        path.connect(Time::ZERO, transport(QuicCongestion::NewReno), &mut encoder);
        path.connect(s(5), transport(QuicCongestion::Cubic), &mut bulk);
        path.run(s(20));
        encoder.set
    };
    assert_eq!(run(), run());
}
