use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use suiro_payload::Codec;
use suiro_rate::{Estimate, RateSpec};
use suiro_scenario::RoundTrip;
use suiro_units::{Ratio, Seed};

use super::*;
use crate::rtcp::{Arrival, Block, Congestion};

mod transport_wide;

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn config() -> Config {
    Config {
        codec: Codec::H264,
        payload_type: 96,
        again_type: Some(97),
        drain: None,
        rtt: RoundTrip::Path,
        feedback: FeedbackFormat::Rfc8888,
        times: (Duration::from_millis(33), Duration::from_secs(1)),
        on_break: OnBreak::Tell,
        pauses: Vec::new(),
        packet_max: Bytes::new(1500),
        cname: "suiro@server".into(),
        reports: ReportTimes::Pictures(5),
        epoch_unix_ns: 1_800_000_000_000_000_000,
    }
}

fn sender(rate: BitRate) -> Sender {
    let controller = RateSpec::fixed(rate).build(Time::ZERO).unwrap();
    Sender::new(Time::ZERO, config(), controller, Seed(1).random())
}

/// A slice of so many bytes.
fn picture(size: usize) -> Vec<u8> {
    let mut data = vec![0, 0, 1, 0x41, 0x9a];
    data.extend((0..size).map(|n| (n % 250 + 1) as u8));
    data
}

fn frame(number: u64, data: &[u8]) -> SourceFrame<'_> {
    SourceFrame {
        number,
        captured: ms(number * 33),
        references: number.checked_sub(1),
        data,
        rate: BitRate::from_mbps(2),
        quantiser: None,
        begins_group: false,
        budget: None,
    }
}

/// Everything that leaves until `end`, and when.
fn run(sender: &mut Sender, end: Time) -> Vec<(Time, Transmit)> {
    run_from(Time::ZERO, sender, end)
}

/// Everything that leaves from now on.
fn run_from(mut now: Time, sender: &mut Sender, end: Time) -> Vec<(Time, Transmit)> {
    let mut out = Vec::new();
    while let Some(at) = sender.next_event().filter(|at| *at <= end) {
        now = now.max(at);
        while let Some(transmit) = sender.poll(now) {
            out.push((now, transmit));
        }
    }
    out
}

fn rtp(out: &[(Time, Transmit)]) -> Vec<(Time, Packet)> {
    let of = |(at, transmit): &(Time, Transmit)| match transmit {
        Transmit::Rtp(bytes) => Some((*at, Packet::parse(bytes).unwrap())),
        Transmit::Rtcp(_) => None,
    };
    out.iter().filter_map(of).collect()
}

fn sent(out: &[(Time, Transmit)]) -> Vec<(Time, Sent)> {
    let of = |(at, transmit): &(Time, Transmit)| match transmit {
        Transmit::Rtcp(bytes) => match rtcp::parse(bytes).unwrap()[0] {
            Message::Sent(sent) => Some((*at, sent)),
            _ => None,
        },
        Transmit::Rtp(_) => None,
    };
    out.iter().filter_map(of).collect()
}

#[test]
fn packets_bear_what_the_frame_is() {
    let mut sender = sender(BitRate::from_mbps(2));
    sender.on_frame(ms(0), &frame(0, &picture(3000))).unwrap();
    sender.on_frame(ms(33), &frame(7, &picture(10))).unwrap();
    let packets: Vec<Packet> =
        rtp(&run(&mut sender, ms(500))).into_iter().map(|(_, packet)| packet).collect();
    assert_eq!(packets.iter().map(|p| p.marker).collect::<Vec<_>>(), [false, false, true, true]);
    let (first, last) = (&packets[0], &packets[3]);
    let mark =
        |number, references| FrameMark { number, references, rate_bps: 2_000_000, waited: None };
    let told = |packet: &Packet| packet.mark.map(|mark| FrameMark { waited: None, ..mark });
    assert_eq!(told(first), Some(mark(0, 0)));
    assert_eq!(told(last), Some(mark(7, 1)));
    assert_eq!(packets[1].mark, None);
    // 231 ms at 90 kHz.
    assert_eq!(last.timestamp.wrapping_sub(first.timestamp), 20_790);
    assert_eq!(last.sequence, first.sequence.wrapping_add(3));
    let largest = packets.iter().map(|packet| size(packet).get()).max();
    assert!((1498..=1500).contains(&largest.unwrap()), "{largest:?}");
}

#[test]
fn a_report_follows_every_fifth_picture() {
    let mut sender = sender(BitRate::from_mbps(2));
    for number in 0..11 {
        sender.on_frame(ms(0), &frame(number, &picture(100))).unwrap();
    }
    let out = run(&mut sender, ms(400));
    let reports: Vec<Sent> = sent(&out).into_iter().map(|(_, sent)| sent).collect();
    let packets: Vec<u32> = reports.iter().map(|sent| sent.packets).collect();
    assert_eq!(packets, [0, 5, 10], "one at the start, so that times are known");
    assert_eq!(reports[2].octets, 10 * 102);
}

#[test]
fn without_pictures_reports_go_on() {
    let count = |reports| {
        let controller = RateSpec::fixed(BitRate::from_mbps(2)).build(Time::ZERO).unwrap();
        let config = Config { reports, ..config() };
        let mut sender = Sender::new(Time::ZERO, config, controller, Seed(1).random());
        sent(&run(&mut sender, Time::from_secs(100))).len()
    };
    // RFC 3550: about one in 5 s; with the reduced least interval 360/2000 s, or 180 ms; both over
    // 1.21828, for want of anybody who reconsiders.
    assert!((20..30).contains(&count(ReportTimes::Pictures(5))));
    assert!((620..740).contains(&count(ReportTimes::Standard)));
}

#[test]
fn what_leaves_keeps_to_the_rate() {
    let mut sender = sender(BitRate::from_mbps(1));
    for number in 0..10 {
        sender.on_frame(ms(0), &frame(number, &picture(10_000))).unwrap();
    }
    let packets = rtp(&run(&mut sender, ms(2000)));
    let bytes: u64 = packets.iter().map(|(_, packet)| size(packet).get()).sum();
    let took = packets.last().unwrap().0.as_secs_f64();
    let rate = bytes as f64 * 8.0 / took;
    assert!((0.99e6..1.03e6).contains(&rate), "{rate}");
}

#[test]
fn too_much_is_left_out_and_a_key_frame_asked_for() {
    let mut sender = sender(BitRate::from_kbps(100));
    for number in 0..10 {
        sender.on_frame(ms(0), &frame(number, &picture(5000))).unwrap();
    }
    // 12.5 kB wait a second: the fourth frame was the first too many.
    assert_eq!(sender.counters().frames_left_out, 7);
    assert!(sender.take_key_frame_request() && !sender.take_key_frame_request());
}

#[test]
fn a_budget_cuts_a_frame_off() {
    let mut sender = sender(BitRate::from_mbps(2));
    let data = picture(5000);
    let budget = Some(Bytes::new(3100));
    sender.on_frame(ms(0), &SourceFrame { budget, ..frame(0, &data) }).unwrap();
    sender.on_frame(ms(0), &SourceFrame { budget: Some(Bytes::ZERO), ..frame(1, &data) }).unwrap();
    sender.on_frame(ms(0), &frame(2, &picture(10))).unwrap();
    let packets = rtp(&run(&mut sender, ms(500)));
    assert_eq!(packets.len(), 3);
    let numbers: Vec<u16> = packets.iter().map(|(_, packet)| packet.sequence).collect();
    assert_eq!(numbers[2], numbers[0].wrapping_add(2), "what was never sent is no loss");
    assert_eq!(sender.counters().packets_held_back, 6);
}

#[test]
fn reports_reach_the_rate_control_and_the_records() {
    let mut sender = sender(BitRate::from_mbps(2));
    sender.on_frame(ms(0), &frame(0, &picture(20_000))).unwrap();
    let out = run(&mut sender, ms(100));
    let (packets, reports) = (rtp(&out), sent(&out));
    while sender.take_period().is_some() {}
    let block = Block {
        from: 7,
        media: packets[0].1.ssrc,
        fraction_lost: 0,
        cumulative_lost: 2,
        highest: packets[9].1.sequence.into(),
        jitter: 180,
        last_report: rtcp::middle(reports[0].1.ntp),
        since_report: rtcp::short(Duration::from_millis(60)),
    };
    let report = |block| Outgoing { ssrc: 7, received: Some(block), ..Outgoing::default() }.write();
    sender.on_rtcp(ms(100), &report(block));
    let period = sender.take_period().unwrap();
    assert_eq!(period.loss, Ratio::new(0.2));
    assert!((period.rtt.unwrap().as_millis_f64() - 40.0).abs() < 0.1, "{:?}", period.rtt);
    assert_eq!(period.target, BitRate::from_mbps(2));
    assert_eq!(period.jitter, Some(Duration::from_millis(2)));
    // Again, and about another stream: neither changes anything.
    sender.on_rtcp(ms(200), &report(block));
    sender.on_rtcp(ms(200), &report(Block { media: 5, ..block }));
    sender.on_rtcp(ms(200), &[1, 2, 3]);
    assert_eq!(sender.take_period(), None);
    let counters = sender.counters();
    assert_eq!((counters.reports, counters.malformed), (1, 1));
    assert_eq!(counters.reports_repeated, 1);
    assert_eq!(counters.disbelieved, [("about another stream".to_owned(), 1)].into());
}

/// A rate control that sums up how many packets it hears of.
#[derive(Debug)]
struct Summing(Arc<AtomicU64>);

impl Controller for Summing {
    fn on_sent(&mut self, _: Time, _: Bytes) {}

    fn on_feedback(&mut self, _: Time, feedback: &Feedback) {
        self.0.fetch_add(feedback.expected, Ordering::Relaxed);
    }

    fn next_timer(&self) -> Option<Time> {
        None
    }

    fn on_timer(&mut self, _: Time) {}

    fn target(&self) -> BitRate {
        BitRate::from_mbps(2)
    }

    fn estimate(&self) -> Estimate {
        Estimate::default()
    }
}

#[test]
fn packets_that_a_first_report_names_twice_count_once() {
    let sum = Arc::new(AtomicU64::new(0));
    let controller = Box::new(Summing(Arc::clone(&sum)));
    let mut sender = Sender::new(Time::ZERO, config(), controller, Seed(1).random());
    sender.on_frame(ms(0), &frame(0, &picture(20_000))).unwrap();
    let packets = rtp(&run(&mut sender, ms(100)));
    let (first, last) = (&packets[0].1, &packets[9].1);
    let block = Block {
        from: 7,
        media: first.ssrc,
        fraction_lost: 0,
        cumulative_lost: 2,
        highest: last.sequence.into(),
        jitter: 180,
        last_report: 0,
        since_report: 0,
    };
    let arrivals =
        (0..10).map(|n| (n < 8).then_some(Arrival { ecn: 0, ago: Some(Duration::ZERO) }));
    let (media, first) = (first.ssrc, first.sequence);
    let congestion = Congestion { media, first, arrivals: arrivals.collect(), at: 5 << 16 };
    let (received, congestion) = (Some(block), Some(congestion));
    let told = Outgoing { ssrc: 7, media, received, congestion, ..Outgoing::default() };
    sender.on_rtcp(ms(100), &told.write());
    assert_eq!((sender.counters().reports, sum.load(Ordering::Relaxed)), (2, 10));
}

#[test]
fn what_is_missing_is_sent_again_once_in_a_round_trip() {
    let mut sender = sender(BitRate::from_mbps(2));
    sender.on_frame(ms(0), &frame(0, &picture(20_000))).unwrap();
    let packets = rtp(&run(&mut sender, ms(200)));
    let (_, lost) = &packets[3];
    let nack = Outgoing { media: lost.ssrc, missing: vec![lost.sequence], ..Outgoing::default() };
    sender.on_rtcp(ms(200), &nack.write());
    sender.on_rtcp(ms(210), &nack.write());
    let again = rtp(&run(&mut sender, ms(300)));
    assert_eq!(again.len(), 1);
    let (_, again) = &again[0];
    assert_ne!(again.ssrc, lost.ssrc);
    assert_eq!((again.payload_type, again.timestamp), (97, lost.timestamp));
    assert_eq!(again.payload[..2], lost.sequence.to_be_bytes());
    assert_eq!(again.payload[2..], lost.payload);
    assert_eq!(sender.counters().not_sent_again, 1);
}

#[test]
fn what_one_request_names_is_sent_again_in_its_order() {
    let mut sender = sender(BitRate::from_mbps(2));
    sender.on_frame(ms(0), &frame(0, &picture(20_000))).unwrap();
    let packets = rtp(&run(&mut sender, ms(200)));
    let missing: Vec<u16> = packets[3..6].iter().map(|(_, packet)| packet.sequence).collect();
    let nack =
        Outgoing { media: packets[0].1.ssrc, missing: missing.clone(), ..Outgoing::default() };
    sender.on_rtcp(ms(200), &nack.write());
    let again = rtp(&run(&mut sender, ms(300)));
    let originals = again.iter().map(|(_, it)| u16::from_be_bytes([it.payload[0], it.payload[1]]));
    assert_eq!(originals.collect::<Vec<_>>(), missing);
    let first = again[0].1.sequence;
    let numbers = again.iter().map(|(_, packet)| packet.sequence.wrapping_sub(first));
    assert_eq!(numbers.collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn retransmissions_cannot_take_more_than_their_share() {
    let mut sender = sender(BitRate::from_mbps(2));
    sender.on_frame(ms(0), &frame(0, &picture(100_000))).unwrap();
    let packets = rtp(&run(&mut sender, ms(500)));
    let missing: Vec<u16> = packets.iter().map(|(_, packet)| packet.sequence).collect();
    let nack = Outgoing { media: packets[0].1.ssrc, missing, ..Outgoing::default() };
    sender.on_rtcp(ms(500), &nack.write());
    let again = rtp(&run(&mut sender, ms(1000)));
    assert!(again.len() * 4 <= packets.len() && again.len() * 5 >= packets.len());
}

#[test]
fn the_last_report_says_good_bye() {
    let mut sender = sender(BitRate::from_mbps(2));
    sender.on_frame(ms(0), &frame(0, &picture(20_000))).unwrap();
    sender.finish(ms(5));
    let Some(Transmit::Rtcp(bytes)) = sender.poll(ms(5)) else { panic!("a report") };
    assert!(matches!(rtcp::parse(&bytes).unwrap()[..], [Message::Sent(_), Message::Bye { .. }]));
    assert_eq!(sender.poll(ms(5)), None);
}

/// A sender whose receiver is gone, and what leaves in half a minute: how many packets of media before
/// and after 15.1 s, the periods in which the circuit breaker was triggered, and the good-byes.
fn unheard(on_break: OnBreak) -> (usize, usize, Vec<String>, usize) {
    let controller = RateSpec::fixed(BitRate::from_mbps(2)).build(Time::ZERO).unwrap();
    let config = Config { on_break, ..config() };
    let mut sender = Sender::new(Time::ZERO, config, controller, Seed(1).random());
    let data = picture(5000);
    let (mut out, mut broken) = (Vec::new(), Vec::new());
    for number in 0..900 {
        sender.on_frame(ms(number * 33), &frame(number, &data)).unwrap();
        for now in (number * 33..(number + 1) * 33).map(ms) {
            out.extend(std::iter::from_fn(|| sender.poll(now)).map(|sent| (now, sent)));
        }
        broken.extend(std::iter::from_fn(|| sender.take_period()).filter_map(|p| p.broken));
    }
    let media = |late: bool| {
        let is = |(at, sent): &&(Time, Transmit)| {
            matches!(sent, Transmit::Rtp(_)) && (*at > ms(15_100)) == late
        };
        out.iter().filter(is).count()
    };
    let byes = out.iter().filter(|(_, sent)| match sent {
        Transmit::Rtcp(bytes) => {
            let messages = rtcp::parse(bytes).unwrap();
            messages.iter().any(|message| matches!(message, Message::Bye { .. }))
        }
        Transmit::Rtp(_) => false,
    });
    let told = broken.iter().map(ToString::to_string).collect();
    (media(false), media(true), told, byes.count())
}

#[test]
fn the_circuit_breaker_tells_or_stops() {
    let told = "RTCP timeout: no report for 15.0 s";
    let (before, after, causes, byes) = unheard(OnBreak::Tell);
    assert!(before > 1000 && after > 1000, "{before}, {after}");
    assert_eq!((causes, byes), (vec![told.to_owned()], 0));
    let (before, after, causes, byes) = unheard(OnBreak::Stop);
    assert!(before > 1000, "{before}");
    assert_eq!((after, causes, byes), (0, vec![told.to_owned()], 1));
}

#[test]
fn in_a_pause_nothing_is_sent_and_afterwards_a_key_frame_is_first() {
    let controller = RateSpec::fixed(BitRate::from_mbps(2)).build(Time::ZERO).unwrap();
    let config = Config { pauses: vec![(ms(400), ms(600))], ..config() };
    let mut sender = Sender::new(Time::ZERO, config, controller, Seed(1).random());
    let data = picture(500);
    let mut sent = Vec::new();
    for number in 0..30 {
        let now = ms(number * 33);
        let key = number == 20;
        let frame = SourceFrame { begins_group: key, ..frame(number, &data) };
        sender.on_frame(now, &frame).unwrap();
        let rtp =
            run(&mut sender, now).into_iter().filter(|(_, out)| matches!(out, Transmit::Rtp(_)));
        if rtp.count() > 0 {
            sent.push(number);
        }
        // It is asked for when the pause has ended, at 627 ms.
        assert_eq!(sender.take_key_frame_request(), number == 19, "at frame {number}");
    }
    // 13 · 33 ms are 429 ms.
    let expected: Vec<u64> = (0..13).chain(20..30).collect();
    assert_eq!(sent, expected);
    assert_eq!(sender.counters().frames_paused, 7);
}

/// A sender under a rate control whose first target is 1 Mbit/s.
fn controlled(kind: suiro_rate::RateKind) -> Sender {
    let spec = RateSpec { initial: Some(BitRate::from_mbps(1)), ..RateSpec::new(kind) };
    Sender::new(Time::ZERO, config(), spec.build(Time::ZERO).unwrap(), Seed(1).random())
}

#[test]
fn packets_of_a_frame_follow_one_another_at_the_pace_but_gcc_sends_bursts() {
    use suiro_rate::RateKind::{Gcc, Nada, Scream, Tfrc};
    let leave = |kind| {
        let mut sender = controlled(kind);
        sender.on_frame(ms(100), &frame(0, &picture(4000))).unwrap();
        rtp(&run_from(ms(100), &mut sender, ms(200)))
    };
    // SCReAM's pace is 1.5 times its target.
    for (kind, kbps) in [(Tfrc, 1000), (Nada, 1000), (Scream, 1500)] {
        let packets = leave(kind);
        let gap = size(&packets[0].1) / BitRate::from_kbps(kbps);
        assert_eq!((packets[0].0, packets[1].0), (ms(100), ms(100) + gap), "{kind:?}");
    }
    // 2.5 times the target are 1562 bytes in 5 ms, a packet and a little.
    let left: Vec<Time> = leave(Gcc).iter().map(|(at, _)| *at).collect();
    assert!(left[1] == ms(100) && left[2] > ms(100), "{left:?}");
}

#[test]
fn packets_that_a_window_held_back_follow_one_another_at_the_pace() {
    let mut sender = controlled(suiro_rate::RateKind::Scream);
    sender.on_frame(ms(0), &frame(0, &picture(20_000))).unwrap();
    let packets = rtp(&run(&mut sender, ms(1400)));
    // 9000 bytes may be in flight. After a second without a report they are forgotten, and the target is half.
    let next = packets.iter().position(|(at, _)| *at > ms(500)).unwrap();
    let gap = size(&packets[next].1) / BitRate::from_kbps(750);
    assert!((6..=7).contains(&next), "{next}");
    assert_eq!((packets[next].0, packets[next + 1].0), (ms(1000), ms(1000) + gap));
}

/// GCC's first probe: 900 kbit/s for at least 15 ms and five packets, of which a small frame is only one.
#[test]
fn a_probe_is_filled_up_with_padding() {
    let controller = RateSpec::new(suiro_rate::RateKind::Gcc).build(Time::ZERO).unwrap();
    let mut sender = Sender::new(Time::ZERO, config(), controller, Seed(1).random());
    sender.on_frame(ms(0), &frame(0, &picture(500))).unwrap();
    let packets = rtp(&run(&mut sender, ms(60)));
    let padding: Vec<_> = packets.iter().filter(|(_, packet)| packet.payload.is_empty()).collect();
    assert_eq!((packets.len() - padding.len(), padding.len()), (1, 6), "{packets:?}");
    assert!(packets.windows(2).all(|two| two[1].1.sequence == two[0].1.sequence.wrapping_add(1)));
    let took = packets[6].0 - packets[1].0;
    assert!((10.0..30.0).contains(&took.as_millis_f64()), "{took}");
    assert_eq!((sender.counters().packets, sender.counters().padding), (7, 6));
    // They are reported as other packets are, and not sent again.
    sender.finish(ms(60));
    assert!(rtp(&run(&mut sender, ms(90))).is_empty(), "none after the end");
}
