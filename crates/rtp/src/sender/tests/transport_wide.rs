//! Transport-wide reports at a sender: what they mean, compared with RFC 8888, and what is not believed.

use suiro_rate::RateKind;

use super::*;
use crate::rtcp::congestion::Arrivals;
use crate::rtcp::{TransportWide, transport_wide};

const FIRST: u64 = 65_530;
const SIZE: Bytes = Bytes::new(1000);

/// A hundred packets, one each 10 ms.
fn departures() -> Departures {
    let mut departures = Departures::new(FIRST);
    (0..100).for_each(|n| departures.push(ms(10 * n), SIZE, ()));
    departures
}

/// A report from a number on: packets by their place, with the times in 250 µs since the one before, or the reference time.
fn told(first: u64, reference: u32, arrived: &[(u16, i16)]) -> TransportWide {
    let packets = arrived.last().map_or(0, |(place, _)| place + 1);
    let (first, arrived) = (first as u16, arrived.to_vec());
    TransportWide { media: 9, first, packets, arrived, reference, count: 0 }
}

fn reports() -> Reports {
    Reports::new(ms(0), RoundTrip::Path, 9, FIRST)
}

#[test]
fn a_report_is_about_each_packet() {
    let (mut reports, departures) = (reports(), departures());
    let first = told(FIRST, 100, &[(0, 10), (2, 80)]);
    let feedback = reports.on_transport_wide(ms(100), &first, &departures).unwrap();
    assert_eq!((feedback.expected, feedback.received), (3, 2));
    // The last was sent at 20 ms; how long it lay there is not known.
    assert_eq!(feedback.rtt, Some(Duration::from_millis(80)));
    assert_eq!(feedback.receive_rate, Some(BitRate::from_kbps(160)));
    let came: Vec<bool> =
        feedback.packets.iter().map(|packet| !packet.arrived.is_missing()).collect();
    assert_eq!(came, [true, false, true]);
    let apart =
        feedback.packets[2].arrived.time().unwrap() - feedback.packets[0].arrived.time().unwrap();
    assert_eq!(apart, Duration::from_millis(20));
    assert!(feedback.packets.iter().all(|packet| packet.size == SIZE && !packet.ecn_ce));
}

#[test]
fn numbers_and_times_wrap() {
    let (mut reports, departures) = (reports(), departures());
    let mut arrived = |at, told: &TransportWide| {
        let feedback = reports.on_transport_wide(ms(at), told, &departures).unwrap();
        let last = *feedback.packets.last().unwrap();
        (last.sequence, last.arrived.time().unwrap(), feedback.expected)
    };
    let (_, before, _) = arrived(100, &told(FIRST, 0xff_ffff, &[(0, 0)]));
    let (_, after, _) = arrived(200, &told(FIRST + 1, 0, &[(0, 40)]));
    assert_eq!(after - before, Duration::from_millis(64 + 10));
    let last = arrived(300, &told(FIRST + 4, 1, &[(0, 0), (1, 0), (2, 0), (3, 4)]));
    assert_eq!((last.0, last.2), (65_537, 4), "none of two, whose report was lost");
    assert_eq!(last.1 - before, Duration::from_millis(2 * 64 + 1));
}

#[test]
fn a_late_packet_is_heard_of_and_a_repeated_or_late_report_is_not() {
    let (mut reports, departures) = (reports(), departures());
    let mut take = |at, told: &TransportWide| {
        let taken = reports.on_transport_wide(ms(at), told, &departures);
        taken.map(|it| (it.expected, it.received, it.packets.len()))
    };
    let first = told(FIRST, 100, &[(0, 0), (2, 80)]);
    assert_eq!(take(100, &first), Ok((3, 2, 3)));
    assert_eq!(take(101, &first), Err(Disbelieved::Old));
    assert_eq!(take(110, &told(FIRST + 1, 100, &[(0, 120)])), Ok((0, 0, 1)), "a late packet");
    assert_eq!(take(120, &told(FIRST + 5, 101, &[(0, 0), (1, 1)])), Ok((2, 2, 2)));
    let overtaken = told(FIRST + 3, 100, &[(0, 130), (1, 1)]);
    assert_eq!(take(130, &overtaken), Err(Disbelieved::Old));
}

#[test]
fn what_cannot_be_changes_nothing() {
    let (mut reports, departures) = (reports(), departures());
    let first = told(FIRST, 100, &[(0, 0), (1, 0)]);
    reports.on_transport_wide(ms(300), &first, &departures).unwrap();
    let mut refuse = |told: &TransportWide| {
        let before = format!("{reports:?}");
        let why = reports.on_transport_wide(ms(400), told, &departures).unwrap_err();
        assert_eq!(format!("{reports:?}"), before, "{why}");
        why
    };
    let other = TransportWide { media: 8, ..told(FIRST + 2, 101, &[(0, 0)]) };
    assert_eq!(refuse(&other), Disbelieved::Stream);
    let beyond = told(FIRST + 99, 101, &[(0, 0), (1, 0)]);
    assert_eq!(refuse(&beyond), Disbelieved::NotSent);
    let many = TransportWide { packets: 8192, ..told(FIRST + 2, 101, &[(0, 0)]) };
    assert_eq!(refuse(&many), Disbelieved::NotSent);
    let below = told(FIRST - 1, 101, &[(0, 0), (3, 0)]);
    assert_eq!(refuse(&below), Disbelieved::NotSent, "below the first");
    assert_eq!(refuse(&told(FIRST + 2, 101, &[])), Disbelieved::Old, "of no packet");
    assert_eq!(refuse(&told(FIRST + 1, 100, &[(0, 0)])), Disbelieved::Old);
    let early = told(FIRST + 30, 101, &[(0, 0), (1, 800)]);
    assert_eq!(refuse(&early), Disbelieved::Echo, "sent at 300 ms, there at 200 ms");
    // 2.5 s in 0.4 s, and almost half a turn of that clock.
    for ahead in [40, 0x7f_fff0] {
        let ahead = told(FIRST + 2, 100 + ahead, &[(0, 0), (1, 0)]);
        assert_eq!(refuse(&ahead), Disbelieved::Clock);
    }
    let good = told(FIRST + 2, 101, &[(0, 0), (1, 4)]);
    assert!(reports.on_transport_wide(ms(400), &good, &departures).is_ok());
}

/// The same packets, reported in both formats.
struct Both {
    history: History,
    departures: Departures,
    arrivals: (Arrivals, Arrivals),
    count: u8,
    reports: (Reports, Reports),
}

impl Both {
    fn new() -> Self {
        Self {
            history: History::new(FIRST),
            departures: Departures::new(FIRST),
            arrivals: (Arrivals::default(), Arrivals::default()),
            count: 0,
            reports: (reports(), reports()),
        }
    }

    fn send(&mut self, now: Time) {
        let packet = Packet {
            ssrc: 9,
            payload_type: 96,
            sequence: self.history.next() as u16,
            timestamp: 0,
            marker: false,
            mark: None,
            wide: Some(self.departures.next() as u16),
            payload: Vec::new(),
        };
        self.history.push(now, SIZE, packet);
        self.departures.push(now, SIZE, ());
    }

    /// The packet of that place arrives.
    fn arrive(&mut self, now: Time, place: u64) {
        self.arrivals.0.on_packet(now, FIRST + place, 0);
        self.arrivals.1.on_packet(now, FIRST + place, 0);
    }

    /// What a sender hears after `back` in reports that leave now: by RFC 8888, and transport-wide.
    fn report(&mut self, now: Time, back: Duration) -> (Feedback, Feedback) {
        let told = self.arrivals.0.report(now, now.as_nanos(), 9).unwrap();
        let rfc8888 = self.reports.0.on_congestion(now + back, &told, &self.history).unwrap();
        let (first, came) = self.arrivals.1.take().unwrap();
        let told = transport_wide::reports(9, first, &came, &mut self.count);
        assert_eq!(told.len(), 1);
        let wide = self.reports.1.on_transport_wide(now + back, &told[0], &self.departures);
        (rfc8888, wide.unwrap())
    }
}

#[test]
fn both_formats_report_the_same_packets() {
    let (mut both, mut random) = (Both::new(), Seed(5).random());
    // One each 5 ms, of which a tenth is lost, and which overtake one another.
    let mut on_the_way: Vec<(Time, u64)> = (0..1000)
        .filter(|place| place % 10 != 7)
        .map(|place| (ms(5 * place + 20) + Duration::from_micros(random.below(40_000)), place))
        .collect();
    on_the_way.sort_unstable();
    let mut on_the_way = on_the_way.into_iter().peekable();
    let mut base: Option<(Time, Time)> = None;
    for step in 1..100_u64 {
        let now = ms(50 * step);
        (10 * (step - 1)..10 * step).for_each(|place| both.send(ms(5 * place)));
        while let Some((at, place)) = on_the_way.next_if(|(at, _)| *at <= now) {
            both.arrive(at, place);
        }
        if both.arrivals.0.is_empty() {
            continue;
        }
        let (one, other) = both.report(now, Duration::ZERO);
        assert_eq!((one.expected, one.received), (other.expected, other.received), "{now:?}");
        assert_eq!(one.packets.len(), other.packets.len());
        let waited = other.rtt.unwrap().as_millis_f64() - one.rtt.unwrap().as_millis_f64();
        assert!((-0.3..51.0).contains(&waited), "{waited}");
        for (one, other) in one.packets.iter().zip(&other.packets) {
            let facts = |it: &suiro_rate::PacketReport| (it.sequence, it.size, it.sent, it.ecn_ce);
            assert_eq!(facts(one), facts(other));
            assert_eq!(one.arrived.time().is_some(), other.arrived.time().is_some());
            let Some(times) = one.arrived.time().zip(other.arrived.time()) else { continue };
            let (from, to) = *base.get_or_insert(times);
            let since = |at: Time, base: Time| at.as_nanos_i64() - base.as_nanos_i64();
            let differ = since(times.0, from) - since(times.1, to);
            assert!(differ.abs() < 300_000, "{differ} ns");
        }
    }
    assert!(base.is_some());
}

/// Half the time from one packet to the next in the test below, at 640 kbit/s.
const UNIT: Duration = Duration::from_micros(6250);

/// On a path of 25 ms a queue grows and is drained; later each fifth packet is lost. Reports leave when their last packet
/// arrives, so that both formats have the same round-trip time.
#[test]
fn gcc_decides_the_same_in_both_formats() {
    let back = Duration::from_millis(20);
    let kbps = BitRate::from_kbps;
    let spec =
        RateSpec { min: Some(kbps(100)), max: Some(kbps(5000)), ..RateSpec::new(RateKind::Gcc) };
    let mut controls = [(); 2].map(|()| spec.build(Time::ZERO).unwrap());
    let mut both = Both::new();
    let mut on_the_way: VecDeque<(Time, u64)> = VecDeque::new();
    let mut arrival = Time::ZERO + UNIT * 2;
    let (mut arrived, mut targets) = (0, Vec::new());
    for place in 0..900_u64 {
        let now = Time::ZERO + UNIT * (2 * place);
        while let Some((at, place)) = on_the_way.pop_front_if(|(at, _)| *at + back <= now) {
            if (500..700).contains(&place) && place % 5 == 0 {
                continue;
            }
            both.arrive(at, place);
            arrived += 1;
            if arrived % 8 == 0 {
                let (one, other) = both.report(at, back);
                for (control, told) in controls.iter_mut().zip([&one, &other]) {
                    control.on_timer(at + back);
                    control.on_feedback(at + back, told);
                }
                targets.push([0, 1].map(|n| controls[n].target().as_bps() as f64 / 1e3));
            }
        }
        both.send(now);
        controls.iter_mut().for_each(|control| control.on_sent(now, SIZE));
        arrival += match place {
            200..260 => UNIT * 3,
            260..320 => UNIT,
            _ => UNIT * 2,
        };
        on_the_way.push_back((arrival, place));
    }
    assert!(targets.len() > 90, "{}", targets.len());
    for (n, [one, other]) in targets.iter().enumerate() {
        assert!((one - other).abs() <= 0.02 * one, "report {n}: {one} and {other} of {targets:?}");
    }
    let most = targets.iter().fold(0.0, |most: f64, [one, _]| most.max(*one));
    let least = targets.iter().fold(f64::MAX, |least, [one, _]| least.min(*one));
    assert!(most > 1.2 * least, "it decides nothing: {targets:?}");
}

fn sender_in(feedback: FeedbackFormat) -> Sender {
    let controller = RateSpec::new(RateKind::Gcc).build(Time::ZERO).unwrap();
    let config = Config { feedback, ..config() };
    Sender::new(Time::ZERO, config, controller, Seed(1).random())
}

#[test]
fn media_and_padding_are_numbered_together_and_fit() {
    let mut sender = sender_in(FeedbackFormat::TransportWide);
    sender.on_frame(ms(0), &frame(0, &picture(3000))).unwrap();
    let packets = rtp(&run(&mut sender, ms(200)));
    assert!(packets.iter().any(|(_, packet)| packet.payload.is_empty()), "a probe is filled up");
    let begin = packets[0].1.sequence;
    for (n, (_, packet)) in (0..).zip(&packets) {
        assert_eq!(packet.wide, Some(begin.wrapping_add(n)), "from the stream's first number on");
    }
    let largest = packets.iter().map(|(_, packet)| size(packet).get()).max();
    assert!((1490..=1500).contains(&largest.unwrap()), "{largest:?}");
}

#[test]
fn a_report_may_name_the_stream_of_what_is_sent_again() {
    let mut sender = sender_in(FeedbackFormat::TransportWide);
    sender.on_frame(ms(0), &frame(0, &picture(3000))).unwrap();
    let first = u64::from(rtp(&run(&mut sender, ms(200)))[0].1.sequence);
    for (place, media) in (0..).zip([sender.ssrc, sender.again_ssrc, !sender.ssrc]) {
        let wide = TransportWide { media, ..told(first + place, 100, &[(0, 40)]) };
        let told = Outgoing { transport_wide: vec![wide], ..Outgoing::default() };
        sender.on_rtcp(ms(210), &told.write());
    }
    let counters = sender.counters();
    assert_eq!((counters.reports, counters.malformed), (2, 0));
    assert_eq!(counters.disbelieved, [("about another stream".to_owned(), 1)].into());
}

#[test]
fn only_reports_in_its_format_are_believed() {
    for format in [FeedbackFormat::Rfc8888, FeedbackFormat::TransportWide] {
        let mut sender = sender_in(format);
        sender.on_frame(ms(0), &frame(0, &picture(3000))).unwrap();
        let packets = rtp(&run(&mut sender, ms(50)));
        let (media, first) = (packets[0].1.ssrc, packets[0].1.sequence);
        let arrivals = vec![Some(Arrival { ecn: 0, ago: Some(Duration::ZERO) })];
        let congestion = Some(Congestion { media, first, arrivals, at: 5 << 16 });
        let wide = TransportWide { media, ..told(first.into(), 100, &[(0, 0)]) };
        let transport_wide = vec![wide.clone()];
        let told = Outgoing { ssrc: 7, media, congestion, transport_wide, ..Outgoing::default() };
        sender.on_rtcp(ms(60), &told.write());
        let why = "in a format that was not asked for".to_owned();
        assert_eq!(sender.counters().disbelieved, [(why, 1)].into());
        assert_eq!(sender.counters().reports, 1);
        // One that says more than it has bytes for.
        let mut bytes = Outgoing { transport_wide: vec![wide], ..Outgoing::default() }.write();
        let count = bytes.len() - 12 + 3;
        bytes[count] = 200;
        sender.on_rtcp(ms(70), &bytes);
        assert_eq!((sender.counters().reports, sender.counters().malformed), (1, 0), "left out");
    }
}
