//! Two connections in virtual time, whose packets take 10 ms in each direction.

use std::net::SocketAddr;

use super::setup::{AGAIN_TYPE, H264_TYPE};
use super::*;

const DELAY: Duration = Duration::from_millis(10);

/// Two ends and the packets between them.
struct World {
    now: Time,
    peers: [Peer; 2],
    flying: VecDeque<(Time, usize, Transmit)>,
    happened: [Vec<(Time, Happened)>; 2],
    /// From then on nothing arrives.
    cut: Option<Time>,
    /// Of the packets that one sends, each so many-th is lost.
    loses: Option<usize>,
    sent: usize,
}

#[expect(
    clippy::disallowed_methods,
    reason = "str0m counts from an instant; which one does not matter"
)]
fn zero() -> Instant {
    Instant::now()
}

fn address(index: usize) -> SocketAddr {
    format!("10.0.0.{}:5000", index + 1).parse().unwrap()
}

fn peer(index: usize, way: Way, zero: Instant) -> Peer {
    Peer::new(Time::from_secs(1), zero, setup(index, way)).unwrap()
}

fn peer_with_sound(index: usize, way: Way, zero: Instant) -> Peer {
    let setup = Setup { sound: true, ..setup(index, way) };
    Peer::new(Time::from_secs(1), zero, setup).unwrap()
}

fn setup(index: usize, way: Way) -> Setup {
    let v6 = format!("[fd00::{}]:5000", index + 1).parse().unwrap();
    Setup {
        way,
        local: vec![address(index), v6],
        certificate: Certificate::generate().unwrap(),
        rates: (BitRate::from_kbps(300), BitRate::from_kbps(2500)),
        answers: false,
        sound: false,
        plain: false,
    }
}

impl World {
    /// The second sends to the first, which makes the offer.
    fn new() -> Self {
        let zero = zero();
        Self::of(peer(0, Way::Receives, zero), peer(1, Way::Sends, zero))
    }

    fn with_sound() -> Self {
        let zero = zero();
        let viewer = peer_with_sound(0, Way::Receives, zero);
        Self::of(viewer, peer_with_sound(1, Way::Sends, zero))
    }

    fn of(mut viewer: Peer, mut publisher: Peer) -> Self {
        let now = Time::from_secs(1);
        let offered = viewer.offer(now).unwrap();
        let answer = publisher.answer(now, &offered.description).unwrap();
        viewer.on_answer(now, offered, &answer).unwrap();
        Self {
            now,
            peers: [viewer, publisher],
            flying: VecDeque::new(),
            happened: [vec![], vec![]],
            cut: None,
            loses: None,
            sent: 0,
        }
    }

    fn run_until(&mut self, end: Time) {
        loop {
            self.collect();
            let next = self.flying.front().map(|(at, ..)| *at);
            let timers = self.peers.iter().filter_map(Peer::next_event);
            let next = timers.chain(next).min().unwrap_or(end).max(self.now);
            if next >= end {
                self.now = end;
                return;
            }
            self.now = next;
            if self.flying.front().is_some_and(|(at, ..)| *at <= next) {
                let (_, to, packet) = self.flying.pop_front().unwrap();
                let route = (packet.from, packet.to);
                assert!(self.peers[to].accepts(next, route, &packet.bytes));
                self.peers[to].on_packet(next, route, &packet.bytes).unwrap();
            } else {
                for peer in &mut self.peers {
                    if peer.next_event().is_some_and(|at| at <= next) {
                        peer.on_time(next).unwrap();
                    }
                }
            }
        }
    }

    fn collect(&mut self) {
        for index in 0..2 {
            while let Some(transmit) = self.peers[index].take_transmit() {
                self.sent += index;
                let lost =
                    self.loses.is_some_and(|nth| index == 1 && self.sent.is_multiple_of(nth));
                if !lost && self.cut.is_none_or(|cut| self.now < cut) {
                    self.flying.push_back((self.now + DELAY, 1 - index, transmit));
                }
            }
            while let Some(happened) = self.peers[index].take_happened() {
                self.happened[index].push((self.now, happened));
            }
        }
    }

    /// Sends a frame of that many packets, captured now.
    fn send_frame(&mut self, number: u64, first: u64, packets: u64) {
        for n in 0..packets {
            let rate = BitRate::from_kbps(300);
            let piece = Piece {
                timestamp: number as u32 * 3000,
                marker: n + 1 == packets,
                mark: (n == 0).then(|| mark(number, number.checked_sub(1), rate)),
                payload: vec![0x41; 500],
            };
            let (captured, captured_unix_ns) = (self.now, 7_000_000_000 + self.now.as_nanos());
            let outgoing = Outgoing { piece, captured, captured_unix_ns };
            self.peers[1].send(self.now, first + n, outgoing).unwrap();
        }
    }

    fn when(&self, index: usize, is: fn(&Happened) -> bool) -> Option<Time> {
        self.happened[index].iter().find(|(_, happened)| is(happened)).map(|(at, _)| *at)
    }

    fn packets(&self) -> Vec<&Video> {
        let all = self.happened[0].iter();
        all.filter_map(|(_, happened)| match happened {
            Happened::Packet(video) => Some(&**video),
            _ => None,
        })
        .collect()
    }
}

#[test]
fn two_ends_connect_within_300_ms_and_agree() {
    let mut world = World::new();
    world.run_until(Time::from_secs(3));
    for index in 0..2 {
        let at = world.when(index, |h| matches!(h, Happened::Connected)).expect("connected");
        assert!(at - Time::from_secs(1) < Duration::from_millis(300), "{at}");
        let agreed = world.peers[index].agreed().unwrap();
        assert_eq!(agreed.types, (H264_TYPE, Some(AGAIN_TYPE)));
        assert!(agreed.codec.contains("packetization-mode=1"), "{}", agreed.codec);
        assert_eq!(agreed.feedback, "transport-cc nack pli fir");
        assert!(agreed.extensions.contains("frame-mark"), "{}", agreed.extensions);
    }
}

#[test]
fn packets_come_with_marks_and_the_senders_clock() {
    let mut world = World::new();
    world.run_until(Time::from_secs(2));
    world.send_frame(5, 100, 3);
    world.run_until(Time::from_secs(3));
    let packets = world.packets();
    let numbers: Vec<u64> = packets.iter().map(|video| video.sequence).collect();
    assert_eq!(numbers, [100, 101, 102]);
    let mark = packets[0].piece.mark.unwrap();
    assert_eq!((mark.number, mark.references, mark.rate_bps), (5, 1, 300_000));
    assert!(mark.waited().unwrap() < Duration::from_millis(50), "{:?}", mark.waited());
    assert_eq!((packets[1].piece.mark, packets[2].piece.marker), (None, true));
    let (timestamp, unix_ns) = packets[0].clock.unwrap();
    assert_eq!(timestamp, 15_000);
    assert!(unix_ns.abs_diff(9_000_000_000) < 1000, "{unix_ns}");
}

#[test]
fn what_is_lost_is_sent_again_and_counted() {
    let mut world = World::new();
    world.run_until(Time::from_secs(2));
    world.loses = Some(10);
    for number in 0..60 {
        world.send_frame(number, 100 + 3 * number, 3);
        world.run_until(Time::from_millis(2000 + 33 * (number + 1)));
    }
    world.run_until(Time::from_secs(6));
    let packets: std::collections::BTreeSet<u64> =
        world.packets().iter().map(|video| video.sequence).collect();
    assert_eq!(packets.len(), 180, "every packet came in the end");
    let total = |index: usize, of: fn(&Counts) -> u64| -> u64 {
        let counts = world.happened[index].iter().filter_map(|(_, happened)| match happened {
            Happened::Statistics(statistics) => Some(of(&statistics.counts)),
            _ => None,
        });
        counts.sum()
    };
    assert!(total(1, |counts| counts.retransmissions) >= 10);
    assert!(total(1, |counts| counts.nacks) >= 10 && total(0, |counts| counts.nacks) >= 10);
    assert!(total(1, |counts| counts.sent_bytes) > 180 * 528);
}

#[test]
fn the_mark_of_a_packet_that_is_sent_again_says_when_it_left_first() {
    let mut world = World::new();
    world.run_until(Time::from_secs(2));
    world.send_frame(4, 100, 1);
    world.run_until(Time::from_millis(2300));
    world.cut = Some(world.now);
    world.send_frame(5, 101, 1);
    world.run_until(Time::from_millis(2600));
    world.cut = None;
    world.send_frame(6, 102, 1);
    world.run_until(Time::from_secs(4));
    let came = world.packets().into_iter().find(|video| video.sequence == 101);
    let waited = came.expect("it was sent again").piece.mark.unwrap().waited();
    assert!(waited < Some(Duration::from_millis(50)) && waited.is_some(), "{waited:?}");
}

#[test]
fn a_key_frame_is_asked_for() {
    let mut world = World::new();
    world.run_until(Time::from_secs(2));
    world.send_frame(0, 100, 1);
    world.run_until(Time::from_millis(2100));
    let now = world.now;
    world.peers[0].request_key_frame(now).unwrap();
    world.run_until(Time::from_secs(3));
    assert!(world.when(1, |h| matches!(h, Happened::KeyFrame)).is_some());
}

#[test]
fn what_changes_a_session_is_never_left_out() {
    let mut peer = peer(0, Way::Receives, zero());
    let sound = || Sound { timestamp: 0, clock: None, payload: vec![] };
    for _ in 0..EVENTS_MAX + 10 {
        peer.happen(Happened::Sound(Box::new(sound())));
    }
    for _ in 0..2 {
        peer.happen(Happened::KeyFrame);
        peer.end(Why::Closed);
    }
    let happened: Vec<Happened> = std::iter::from_fn(|| peer.take_happened()).collect();
    assert_eq!(happened.len(), EVENTS_MAX + 2);
    let last = &happened[EVENTS_MAX..];
    assert!(matches!(last, [Happened::KeyFrame, Happened::Gone(Why::Closed)]), "{last:?}");
    assert_eq!(peer.counter.take().left_out, 11);
}

/// RFC 7675 §5.1: consent expires after 30 s.
#[test]
fn an_end_that_vanished_is_noticed_within_30_s() {
    let mut world = World::new();
    world.run_until(Time::from_secs(5));
    world.cut = Some(Time::from_secs(5));
    world.run_until(Time::from_secs(36));
    let gone = world.when(1, |h| matches!(h, Happened::Gone(Why::NoConsent))).expect("noticed");
    assert!(gone <= Time::from_secs(35), "{gone}");
}

#[test]
fn an_end_that_says_good_bye_is_gone_at_once() {
    let mut world = World::new();
    world.run_until(Time::from_secs(3));
    world.peers[0].close(Time::from_secs(3));
    world.run_until(Time::from_secs(4));
    let gone = world.when(1, |h| matches!(h, Happened::Gone(Why::Closed))).expect("noticed");
    assert!(gone < Time::from_millis(3100), "{gone}");
}

#[test]
fn what_str0m_left_after_a_panic_is_not_used() {
    let mut world = World::new();
    world.run_until(Time::from_secs(3));
    world.peers[0].lost = true;
    world.peers[0].close(Time::from_secs(3));
    assert_eq!(world.peers[0].take_transmit(), None);
}

#[test]
fn what_is_no_offer_of_video_is_refused_with_a_reason() {
    let refuse = |text: &str| {
        let error = peer(1, Way::Sends, zero()).answer(Time::from_secs(1), text).unwrap_err();
        error.to_string()
    };
    assert!(refuse("nonsense").starts_with("the session description: "));
    // Nobody can receive what the other end only sends.
    let mut other = peer(0, Way::Sends, zero());
    let offer = other.offer(Time::from_secs(1)).unwrap();
    let error = refuse(&offer.description);
    assert!(error.contains("expected video in H.264 that is received"), "{error}");
    let mut viewer = peer(0, Way::Receives, zero());
    let vp8 = viewer.offer(Time::from_secs(1)).unwrap().description.replace("H264", "VP8");
    assert!(refuse(&vp8).contains("no H.264"), "{}", refuse(&vp8));
}

#[test]
fn candidates_are_checked_and_bounded() {
    let mut world = World::new();
    let peer = &mut world.peers[1];
    let mut take =
        |text: &str| peer.on_candidate(Time::from_secs(1), text).map_err(|e| e.to_string());
    assert!(
        take("candidate:nonsense").unwrap_err().starts_with("candidate `candidate:nonsense`: ")
    );
    for malformed in [
        "candidate:1 1 tcp 1518280447 10.0.0.9 9",
        "candidate:1 one udp 1518280447 a.local 9 typ host",
        "nonsense:1 1 udp 1518280447 a.local 9 typ host",
    ] {
        assert!(take(malformed).is_err(), "{malformed}");
    }
    // These do not count towards the bound.
    for unused in [
        "candidate:1 1 tcp 1518280447 10.0.0.9 9 typ host tcptype active",
        "candidate:1 1 sctp 1518280447 10.0.0.9 9 typ host",
        "candidate:1 1 udp 2113937151 4f2a9d5e-0b1c.local 9000 typ host generation 0",
    ] {
        assert!(!take(unused).unwrap(), "{unused}");
    }
    for nowhere in ["10.0.0.9 0", "0.0.0.0 9", ":: 9", "224.0.0.1 9", "ff02::1 9"] {
        let text = format!("candidate:1 1 udp 2113937151 {nowhere} typ host");
        assert!(take(&text).unwrap_err().contains("no receiver at"), "{nowhere}");
    }
    for n in 0..CANDIDATES_MAX {
        let taken = take(&format!("candidate:1 1 UDP 2113937151 10.0.1.{n} 9000 typ host"));
        assert!(taken.unwrap());
    }
    let more = take("candidate:1 1 udp 2113937151 10.0.2.1 9000 typ host").unwrap_err();
    assert!(more.ends_with("more than 32 candidates"), "{more}");
}

#[test]
fn a_viewer_that_is_offered_video_takes_other_profiles() {
    let now = Time::from_secs(1);
    let offered = peer(1, Way::Sends, zero()).offer(now).unwrap().description;
    let baseline = offered.replace("profile-level-id=42e01f", "profile-level-id=420014");
    assert_ne!(baseline, offered);
    assert!(peer(0, Way::Receives, zero()).answer(now, &baseline).is_err());
    let mut viewer = Peer::new(now, zero(), Setup { answers: true, ..setup(0, Way::Receives) });
    let answer = viewer.as_mut().unwrap().answer(now, &baseline).unwrap();
    assert!(answer.contains("a=recvonly") && answer.contains("a=rtpmap:102 H264"), "{answer}");
}

#[test]
fn a_viewers_offer_is_short() {
    let offered = peer(0, Way::Receives, zero()).offer(Time::from_secs(1)).unwrap();
    let description = offered.description;
    assert!(description.len() < 1400 && description.ends_with("\r\n"), "{description}");
    assert!(!description.contains("ssrc") && description.contains("a=recvonly"), "{description}");
}

/// Sends 3 s of video, 30 frames of 5 packets in a second, and of sound if there is any: the packets of both that came, and
/// how long the sound took at most.
fn send_both(world: &mut World) -> (usize, usize, Duration) {
    world.run_until(Time::from_secs(2));
    let (begun, mut sequence) = (world.now, 100);
    for ms in 0..3000 {
        world.run_until(begun + Duration::from_millis(ms));
        if ms % 33 == 0 {
            world.send_frame(ms / 33, 1000 + 5 * (ms / 33), 5);
        }
        if ms % 20 == 0 {
            let number = ms / 20;
            let sound = SoundOut {
                timestamp: number as u32 * 960,
                begins: number == 0,
                captured: world.now,
                captured_unix_ns: Some(7_000_000_000 + world.now.as_nanos()),
                payload: vec![number as u8; 80],
            };
            let now = world.now;
            world.peers[1].send_sound(now, sequence, sound).unwrap();
            sequence += 1;
        }
    }
    world.run_until(begun + Duration::from_secs(4));
    let mut longest = Duration::ZERO;
    let mut sounds = 0;
    for (at, happened) in &world.happened[0] {
        let Happened::Sound(sound) = happened else { continue };
        let number = u64::from(sound.timestamp / 960);
        assert_eq!(sound.payload, vec![number as u8; 80]);
        let sent = begun + Duration::from_millis(20 * number);
        let (timestamp, unix_ns) = sound.clock.unwrap();
        assert_eq!(timestamp, sound.timestamp);
        assert!(unix_ns.abs_diff(7_000_000_000 + sent.as_nanos()) < 1000, "{unix_ns}");
        longest = longest.max(*at - sent);
        sounds += 1;
    }
    (world.packets().len(), sounds, longest)
}

#[test]
fn sound_comes_at_once_next_to_video_that_waits_for_the_pacer() {
    let mut silent = World::new();
    let (alone, none, _) = send_both(&mut silent);
    let mut world = World::with_sound();
    let (video, sounds, longest) = send_both(&mut world);
    assert_eq!((none, sounds), (0, 150));
    assert!(longest <= DELAY + Duration::from_millis(5), "{longest}");
    assert!(video as f64 > 0.9 * alone as f64, "{video} packets of video, {alone} without sound");
    let agreed = world.peers[1].agreed().unwrap();
    let (codec, kind) = agreed.sound.unwrap();
    assert!(codec.starts_with("opus/48000/2 ") && kind == 111, "{codec}");
    assert_eq!(agreed.types, (H264_TYPE, Some(AGAIN_TYPE)));
}

#[test]
fn an_end_without_sound_gets_none() {
    let zero = zero();
    for (asks, sends) in [(true, false), (false, true)] {
        let of = |index, way, sound| match sound {
            true => peer_with_sound(index, way, zero),
            false => peer(index, way, zero),
        };
        let mut world = World::of(of(0, Way::Receives, asks), of(1, Way::Sends, sends));
        let (video, sounds, _) = send_both(&mut world);
        assert!(video > 0 && sounds == 0, "{video} {sounds}");
        assert!(!world.peers[0].has_sound() && !world.peers[1].has_sound());
    }
}
