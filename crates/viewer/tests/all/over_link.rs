//! A viewer at the end of an emulated link, in virtual time.

use suiro_link::{Direction, Ecn, Link, LinkSpec, Packet, Verdict};
use suiro_units::{Bytes, Duration, Seed, Time};
use suiro_viewer::{Fate, Frame, Freeze, Freezes, Outcome, Parts, Playout, Policy};

/// Packets of a frame: 10 of 1200 bytes at 30 frames a second are 2.88 Mbit/s.
const PACKETS: u64 = 10;
const FPS: u64 = 30;

struct Viewing {
    outcomes: Vec<Outcome>,
    freezes: Vec<Freeze>,
}

impl Viewing {
    fn latencies(&self) -> impl Iterator<Item = Duration> {
        let displayed = self.outcomes.iter().filter(|outcome| outcome.displayed().is_some());
        displayed.map(|outcome| outcome.at - outcome.captured.expect("it was received"))
    }

    fn count(&self, fate: Fate) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.fate == fate).count()
    }
}

fn captured(frame: u64) -> Time {
    Time::from_nanos(frame * 1_000_000_000 / FPS)
}

/// Plays `frames` frames over a link, with a key frame every second. Every packet of a frame is sent
/// when it was captured; what is lost is not sent again.
fn view(link: &str, policy: &str, frames: u64) -> Viewing {
    let spec: LinkSpec = toml::from_str(link).unwrap();
    let config = spec.resolve(&mut |_| Err("no files here".into())).unwrap();
    let mut link = Link::new(&config, Seed(1));
    let mut playout = Playout::new(toml::from_str::<Policy>(policy).unwrap());
    let mut missing: Vec<u64> = vec![PACKETS; usize::try_from(frames).unwrap()];
    for number in 0..frames {
        deliver(&mut link, captured(number), &mut missing, &mut playout);
        for packet in 0..PACKETS {
            let id = number * PACKETS + packet;
            let packet = Packet { id, size: Bytes::new(1200), flow: 0, ecn: Ecn::NotEct };
            link.arrive(captured(number), Direction::Down, packet);
        }
    }
    let end = captured(frames) + Duration::from_secs(10);
    deliver(&mut link, end, &mut missing, &mut playout);
    playout.finish(end);
    let outcomes: Vec<Outcome> = std::iter::from_fn(|| playout.poll(end)).collect();
    let mut freezes = Freezes::default();
    let displayed = outcomes.iter().filter_map(Outcome::displayed);
    let freezes = displayed.filter_map(|at| freezes.on_displayed(at)).collect();
    Viewing { outcomes, freezes }
}

/// Hands on what the link delivers by `until`: a frame when its last packet has come.
fn deliver(link: &mut Link, until: Time, missing: &mut [u64], playout: &mut Playout) {
    while let Some(event) = link.poll(until) {
        if !matches!(event.verdict, Verdict::Delivered { .. }) {
            continue;
        }
        let number = event.packet.id / PACKETS;
        let left = &mut missing[usize::try_from(number).unwrap()];
        *left -= 1;
        if *left == 0 {
            let references = (!number.is_multiple_of(FPS)).then(|| number - 1);
            let frame = Frame { number, captured: captured(number), references, parts: Parts::All };
            playout.on_frame(event.at, frame).unwrap();
        }
    }
}

#[test]
fn constant_delay_gives_constant_latency() {
    for (policy, buffer) in [("", 0), ("buffer = '100 ms'", 100)] {
        let viewing = view("rate = '12 Mbit/s'\ndelay = '40 ms'", policy, 300);
        // 10 packets of 1200 bytes take 8 ms at 12 Mbit/s.
        let expected = Duration::from_millis(40 + 8 + buffer);
        assert!(viewing.latencies().all(|latency| latency == expected));
        assert_eq!((viewing.count(Fate::Displayed), viewing.freezes.len()), (300, 0));
    }
}

/// One freeze, from the outage's begin to its end, to within a frame.
fn one_freeze_of_2_s(viewing: &Viewing) {
    let [freeze] = viewing.freezes[..] else { panic!("{:?}", viewing.freezes) };
    let off = freeze.duration().as_secs_f64() - 2.0;
    assert!((0.0..=1.5 / FPS as f64).contains(&off), "{off} s longer than 2 s");
}

#[test]
fn an_outage_of_2_s_is_a_freeze_of_2_s() {
    let link = "rate = '12 Mbit/s'\ndelay = '40 ms'\n\
                changes = [{ at = '5 s', loss = 1 }, { at = '7 s', loss = 0 }]";
    for policy in ["", "buffer = '100 ms'", "late = 'skip'\nwait = '0 s'"] {
        let viewing = view(link, policy, 300);
        one_freeze_of_2_s(&viewing);
        // Frames 150 to 209; the next one is a key frame.
        assert_eq!(viewing.count(Fate::Missing), 60);
        assert_eq!(viewing.count(Fate::Displayed), 240);
    }
}

#[test]
fn an_outage_that_loses_nothing_is_a_freeze_too_and_leaves_no_latency() {
    // The queue holds all, and 10 times the rate empties it at once.
    let link = "rate = '30 Mbit/s'\ndelay = '40 ms'\nqueue.limit = '10 MB'\n\
                changes = [{ at = '5 s', rate = '0 bit/s' }, { at = '7 s', rate = '30 Mbit/s' }]";
    let viewing = view(link, "", 900);
    one_freeze_of_2_s(&viewing);
    assert_eq!(viewing.count(Fate::Missing) + viewing.count(Fate::Undecodable), 0);
    let transit = Duration::from_micros(40_000 + 3_200);
    assert_eq!(viewing.latencies().last(), Some(transit), "the delay was released");
}

#[test]
fn a_frame_lost_freezes_the_picture_until_the_key_frame() {
    // Packet 1655 is of frame 165; key frames are 150 and 180.
    let link = "rate = '12 Mbit/s'\ndelay = '40 ms'\n\
                loss = { model = 'list', packets = [1655] }";
    let viewing = view(link, "wait = '0 s'", 300);
    assert_eq!((viewing.count(Fate::Missing), viewing.count(Fate::Undecodable)), (1, 14));
    let [freeze] = viewing.freezes[..] else { panic!("{:?}", viewing.freezes) };
    let expected = captured(180) - captured(164);
    assert_eq!(freeze.duration(), expected);
}

#[test]
fn an_adaptive_buffer_covers_jitter_to_its_percentile() {
    let link = "delay = '40 ms'\njitter = { distribution = 'normal', sd = '10 ms' }";
    let viewing = view(link, "percentile = '99 %'", 3000);
    let late = viewing.outcomes.iter().filter(|outcome| outcome.received == outcome.displayed());
    let share = late.count() as f64 / 3000.0;
    assert!(share < 0.02, "{share} of frames were late");
    assert!(viewing.freezes.is_empty());
    let longest = viewing.latencies().max().unwrap();
    assert!(longest < Duration::from_millis(120), "{longest}");
}
