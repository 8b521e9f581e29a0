use std::collections::BTreeMap;

use suiro_payload::FrameMark;
use suiro_rate::RateSpec;
use suiro_scenario::{FeedbackFormat, OnBreak, RoundTrip};
use suiro_units::{Bytes, Seed};
use suiro_viewer::{Buffer, Fate};

mod congestion;
mod transport_wide;
mod tshark;

use super::*;
use crate::sender::{self, ReportTimes, Sender, SourceFrame, Transmit};

const STEP: Duration = Duration::from_millis(40);
const DELAY: Duration = Duration::from_millis(20);

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// A sender and a receiver with a path of 20 ms in each direction between them, in virtual time.
struct World {
    sender: Sender,
    receiver: Receiver,
    /// What is on its way: when it arrives, and where.
    on_the_way: BTreeMap<(Time, u64), (bool, Transmit)>,
    sent: u64,
    codec: Codec,
    /// Which RTP packets of the sender, counted from 0, are lost.
    lost: fn(u64) -> bool,
    rtp: u64,
    frames: u64,
    seen: Vec<Seen>,
    /// Everything that arrived, and whether at the receiver.
    arrived: Vec<(Time, bool, Transmit)>,
    /// The most that the receiver's jitter was.
    jitter_max: f64,
}

impl World {
    fn new(change: fn(&mut Config), lost: fn(u64) -> bool) -> Self {
        Self::with(FeedbackFormat::Rfc8888, change, lost)
    }

    /// The same with feedback in another format.
    fn with(feedback: FeedbackFormat, change: fn(&mut Config), lost: fn(u64) -> bool) -> Self {
        let epoch_unix_ns = 1_800_000_000_000_000_000;
        let controller = RateSpec::fixed(BitRate::from_mbps(4)).build(Time::ZERO).unwrap();
        let mut config = Config {
            codec: Codec::H264,
            payload_type: 96,
            again_type: None,
            cname: "suiro@client".into(),
            answer: true,
            feedback: None,
            policy: Policy { wait: Duration::from_millis(200), ..Policy::default() },
            epoch_unix_ns,
        };
        change(&mut config);
        let sending = sender::Config {
            codec: config.codec,
            payload_type: config.payload_type,
            again_type: Some(97),
            packet_max: Bytes::new(1500),
            cname: "suiro@server".into(),
            reports: ReportTimes::Pictures(5),
            drain: None,
            rtt: RoundTrip::Path,
            feedback,
            times: (Duration::from_millis(33), Duration::from_secs(1)),
            on_break: OnBreak::Tell,
            pauses: Vec::new(),
            epoch_unix_ns,
        };
        let codec = config.codec;
        Self {
            sender: Sender::new(Time::ZERO, sending, controller, Seed(1).random()),
            receiver: Receiver::new(Time::ZERO, config, Seed(2).random()),
            on_the_way: BTreeMap::new(),
            sent: 0,
            codec,
            lost,
            rtp: 0,
            frames: 0,
            seen: Vec::new(),
            arrived: Vec::new(),
            jitter_max: 0.0,
        }
    }

    fn post(&mut self, now: Time, to_receiver: bool, transmit: Transmit) {
        self.sent += 1;
        if to_receiver && matches!(transmit, Transmit::Rtp(_)) {
            self.rtp += 1;
            if (self.lost)(self.rtp - 1) {
                return;
            }
        }
        self.on_the_way.insert((now + DELAY, self.sent), (to_receiver, transmit));
    }

    /// The next frame: a key frame first and every 25, of 4 kB, else 2 kB.
    fn capture(&mut self, now: Time) {
        let key = self.frames.is_multiple_of(25);
        let mut data = match self.codec {
            Codec::H264 => vec![0, 0, 1, if key { 0x65 } else { 0x41 }, 0x9a],
            // A picture header and its first slice.
            Codec::Mpeg2 => {
                let kind = if key { 0x0f } else { 0x17 };
                vec![0, 0, 1, 0, 0, kind, 0xff, 0xfb, 0x80, 0, 0, 1, 1, 0x12]
            }
        };
        data.resize(if key { 4000 } else { 2000 }, 7);
        let frame = SourceFrame {
            number: self.frames,
            captured: now,
            references: if key { None } else { self.frames.checked_sub(1) },
            data: &data,
            rate: BitRate::from_kbps(500),
            quantiser: None,
            begins_group: key,
            budget: None,
        };
        self.sender.on_frame(now, &frame).unwrap();
        self.frames += 1;
    }

    /// Runs until so many frames are captured and all has settled.
    fn run(&mut self, frames: u64) {
        let end = Time::ZERO + STEP * frames + Duration::from_secs(1);
        loop {
            let capture = (self.frames < frames).then(|| Time::ZERO + STEP * self.frames);
            let arrival = self.on_the_way.keys().next().map(|(at, _)| *at);
            let events = [capture, arrival, self.sender.next_event(), self.receiver.next_event()];
            let Some(now) = events.into_iter().flatten().min() else { break };
            let now = now.max(self.now());
            if now > end {
                break;
            }
            self.step(now, capture);
        }
        self.receiver.finish(end);
        self.seen.extend(std::iter::from_fn(|| self.receiver.take_seen()));
    }

    fn now(&self) -> Time {
        NOW.with(std::cell::Cell::get)
    }

    fn step(&mut self, now: Time, capture: Option<Time>) {
        NOW.with(|cell| cell.set(now));
        if capture.is_some_and(|at| at <= now) {
            self.capture(now);
        }
        while let Some(entry) = self.on_the_way.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to_receiver, transmit) = entry.remove();
            self.arrived.push((now, to_receiver, transmit.clone()));
            match (to_receiver, transmit) {
                (true, Transmit::Rtp(bytes)) => {
                    self.receiver.on_rtp(now, &bytes, 0);
                    let jitter = self.receiver.reception().map_or(0.0, Reception::jitter);
                    self.jitter_max = self.jitter_max.max(jitter);
                }
                (true, Transmit::Rtcp(bytes)) => self.receiver.on_rtcp(now, &bytes),
                (false, Transmit::Rtcp(bytes)) => self.sender.on_rtcp(now, &bytes),
                (false, Transmit::Rtp(_)) => panic!("a receiver sends no RTP"),
            }
        }
        while let Some(transmit) = self.sender.poll(now) {
            self.post(now, true, transmit);
        }
        while let Some(bytes) = self.receiver.poll(now) {
            self.post(now, false, Transmit::Rtcp(bytes));
        }
        self.seen.extend(std::iter::from_fn(|| self.receiver.take_seen()));
    }

    fn fates(&self) -> BTreeMap<Fate, usize> {
        let mut fates = BTreeMap::new();
        self.seen.iter().for_each(|seen| *fates.entry(seen.outcome.fate).or_default() += 1);
        fates
    }
}

thread_local! {
    static NOW: std::cell::Cell<Time> = const { std::cell::Cell::new(Time::ZERO) };
}

#[test]
fn every_frame_arrives_and_is_shown() {
    let mut world = World::new(|_| {}, |_| false);
    world.run(100);
    assert_eq!(world.fates(), BTreeMap::from([(Fate::Displayed, 100)]));
    let numbers: Vec<u64> = world.seen.iter().map(|seen| seen.outcome.frame).collect();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    let last = world.seen.last().unwrap();
    assert_eq!(last.rate, Some(BitRate::from_kbps(500)));
    assert_eq!(last.data.as_ref().unwrap().len(), 2001, "with a start code of four bytes");
    // Captured at 99 × 40 ms; NTP and 90 kHz round by some microseconds.
    let captured = last.captured_unix_ns.unwrap() - 1_800_000_000_000_000_000;
    assert!(captured.abs_diff(3_960_000_000) < 20_000, "{captured}");
    let counters = world.receiver.counters();
    assert_eq!((counters.missing, counters.foreign, counters.late), (0, 0, 0));
}

#[test]
fn each_report_is_answered_and_tells_the_round_trip() {
    let mut world = World::new(|_| {}, |_| false);
    world.run(100);
    // One at the start, and after every fifth frame.
    assert!((20..24).contains(&world.sender.counters().reports), "{:?}", world.sender.counters());
    assert!(world.sender.counters().disbelieved.is_empty(), "{:?}", world.sender.counters());
    let rtt = std::iter::from_fn(|| world.sender.take_period()).filter_map(|period| period.rtt);
    let rtt = rtt.last().unwrap().as_millis_f64();
    assert!((rtt - 40.0).abs() < 0.1, "{rtt}");
    // Frames leave as they are captured, but for what waits behind the one before.
    let waits =
        world.seen.iter().filter_map(|seen| seen.sent_unix_ns?.checked_sub(seen.captured_unix_ns?));
    let waits: Vec<u64> = waits.collect();
    assert!(waits.len() > 90 && waits.iter().all(|wait| *wait < 40_000_000), "{waits:?}");
}

#[test]
fn without_retransmission_a_lost_packet_costs_the_frames_to_the_next_key_frame() {
    // A key frame is three packets, others two: the 21st is of frame 9.
    let mut world = World::new(|_| {}, |packet| packet == 20);
    world.run(50);
    let fates = world.fates();
    assert_eq!(fates[&Fate::Undecodable], 25 - 9, "{fates:?}");
    assert_eq!(fates[&Fate::Displayed], 50 - 16);
    assert!(world.receiver.counters().picture_losses > 0);
    assert_eq!(world.sender.counters().picture_losses, world.receiver.counters().picture_losses);
}

#[test]
fn what_is_lost_is_sent_again_in_time() {
    let ask = |config: &mut Config| config.again_type = Some(97);
    let mut world = World::new(ask, |packet| packet > 5 && packet.is_multiple_of(20));
    world.run(100);
    // Some come after their successors are due, and are decoded for their sake.
    let fates = world.fates();
    assert_eq!(fates[&Fate::Displayed] + fates[&Fate::Skipped], 100, "{fates:?}");
    assert!(fates[&Fate::Displayed] > 90);
    let counters = world.receiver.counters();
    assert_eq!((counters.missing, counters.recovered), (10, 10), "{counters:?}");
    assert_eq!(counters.asked, counters.recovered);
}

#[test]
fn a_packet_that_was_overtaken_is_no_answer_to_the_request_for_it() {
    let ask = |config: &mut Config| config.again_type = Some(97);
    let mut receiver = World::new(ask, |_| false).receiver;
    let arrives = |receiver: &mut Receiver, at: u64, sequence| {
        let (ssrc, payload_type, timestamp, marker) = (7, 96, 0, false);
        let (mark, wide, payload) = (None, None, vec![0x41, 0x9a]);
        let packet =
            Packet { ssrc, payload_type, sequence, timestamp, marker, mark, wide, payload };
        receiver.on_rtp(ms(at), &packet.write(), 0);
    };
    arrives(&mut receiver, 0, 9);
    arrives(&mut receiver, 0, 10);
    arrives(&mut receiver, 0, 12);
    receiver.poll(ms(10));
    arrives(&mut receiver, 12, 11);
    arrives(&mut receiver, 100, 14);
    receiver.poll(ms(110));
    assert_eq!((receiver.counters().asked, receiver.counters().recovered), (2, 0));
    // As long as before any answer, not as if one had taken 2 ms.
    assert_eq!(receiver.nacks.next(), Some(ms(260)));
}

#[test]
fn without_retransmission_a_packet_that_was_overtaken_is_of_use_until_its_frame_is_due() {
    let hold = |config: &mut Config| {
        config.policy.buffer = Buffer::Fixed(Duration::from_millis(200));
        config.policy.wait = Duration::ZERO;
    };
    let mut receiver = World::new(hold, |_| false).receiver;
    // Six frames of two packets each, 40 ms apart; the last packet of frame 3 comes 30 ms after those of frame 4.
    let mut arrivals: Vec<(u64, u16)> = (0..12).map(|n| (20 + 40 * u64::from(n / 2), n)).collect();
    arrivals[7].0 = 210;
    arrivals.sort_unstable();
    for (at, sequence) in arrivals {
        receiver.poll(ms(at));
        let number = u32::from(sequence / 2);
        let mark = FrameMark { number, references: number.min(1) as u8, rate_bps: 9, waited: None };
        let begins = sequence.is_multiple_of(2);
        let packet = Packet {
            ssrc: 7,
            payload_type: 96,
            sequence,
            timestamp: 3600 * number,
            marker: !begins,
            mark: begins.then_some(mark),
            wide: None,
            payload: vec![if number == 0 { 0x65 } else { 0x41 }, if begins { 0x9a } else { 0x1a }],
        };
        receiver.on_rtp(ms(at), &packet.write(), 0);
    }
    receiver.finish(ms(1000));
    let seen: Vec<Seen> = std::iter::from_fn(|| receiver.take_seen()).collect();
    let is_shown = |it: &Seen| it.outcome.fate == Fate::Displayed && !it.outcome.damaged;
    assert!(seen.len() == 6 && seen.iter().all(is_shown), "{seen:?}");
    // 200 ms after it would have come.
    assert_eq!(seen[3].outcome.displayed(), Some(ms(340)));
    assert_eq!(receiver.counters().late, 0);
}

#[test]
fn loss_as_both_ends_count_it_agrees() {
    let mut world = World::new(|_| {}, |packet| packet % 10 == 5);
    world.run(200);
    let mut told = 0.0;
    let mut periods = 0.0;
    for period in std::iter::from_fn(|| world.sender.take_period()) {
        if let Some(loss) = period.loss {
            (told, periods) = (told + loss.get(), periods + 1.0);
        }
    }
    assert!((told / periods - 0.1).abs() < 0.02, "{told} in {periods}");
    let reception = world.receiver.reception().unwrap();
    assert_eq!(reception.expected() - reception.received(), world.receiver.counters().missing);
}

#[test]
fn congestion_feedback_comes_at_its_interval() {
    let every = |config: &mut Config| config.feedback = Some(Duration::from_millis(50));
    let mut world = World::new(every, |packet| packet == 30);
    world.run(100);
    // 4 s of 20 a second, each with a report block; next to them, the answers.
    let reports = world.sender.counters().reports;
    assert!((160..200).contains(&reports), "{reports}");
    assert!(world.sender.counters().disbelieved.is_empty(), "{:?}", world.sender.counters());
    let lossy = std::iter::from_fn(|| world.sender.take_period())
        .filter(|period| period.loss.is_some_and(|loss| loss.get() > 0.0));
    assert_eq!(lossy.count(), 1);
}

#[test]
fn other_streams_and_nonsense_are_counted_and_change_nothing() {
    let mut world = World::new(|_| {}, |_| false);
    world.run(10);
    let before = world.receiver.reception().unwrap().clone();
    let packet = |ssrc: u32, payload_type| {
        let (sequence, timestamp, marker, mark, wide) = (1, 2, true, None, None);
        let payload = vec![0x41, 0x9a];
        Packet { ssrc, payload_type, sequence, timestamp, marker, mark, wide, payload }.write()
    };
    let now = ms(5000);
    assert!(!world.receiver.on_rtp(now, &packet(before.ssrc() + 1, 96), 0));
    assert!(!world.receiver.on_rtp(now, &packet(before.ssrc(), 33), 0));
    assert!(
        !world.receiver.on_rtp(now, &packet(before.ssrc() + 5, 97), 0),
        "and none is asked for"
    );
    assert!(!world.receiver.on_rtp(now, &[0x80, 96, 0], 0));
    world.receiver.on_rtcp(now, &[9; 20]);
    let bye = Outgoing { ssrc: 77, bye: true, sent: None, ..Outgoing::default() };
    world.receiver.on_rtcp(now, &bye.write());
    assert!(!world.receiver.has_ended());
    let counters = world.receiver.counters();
    assert_eq!((counters.foreign, counters.malformed), (4, 2), "{counters:?}");
    let after = world.receiver.reception().unwrap();
    assert_eq!((after.highest(), after.received()), (before.highest(), before.received()));
}
