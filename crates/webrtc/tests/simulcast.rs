//! A publisher with three encodings and viewers behind links of different rates, in virtual time: each viewer is sent what its own
//! link carries, and can decode all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

use suiro_realtime::{Frame, Seen};
use suiro_record::words::Signalling;
use suiro_scenario::WebrtcQuality;
use suiro_units::{BitRate, Bytes, Duration, Seed, Time};
use suiro_webrtc::peer::{Certificate, Happened, Peer, Setup, Transmit, Way};
use suiro_webrtc::receiving::Receiving;
use suiro_webrtc::sending::Sending;
use suiro_webrtc::sessions::Sessions;

const FPS: u64 = 30;
const DELAY: Duration = Duration::from_millis(20);
const FOLLOW_EVERY: Duration = Duration::from_millis(50);
const START: Time = Time::from_secs(1);

fn kbps(kbps: u64) -> BitRate {
    BitRate::from_kbps(kbps)
}

fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host as u8 + 1], 5000))
}

fn setup(host: usize, way: Way) -> Setup {
    Setup {
        way,
        local: vec![address(host)],
        certificate: Certificate::generate().unwrap(),
        rates: (kbps(300), kbps(2500)),
        answers: way == Way::Sends,
        sound: false,
        plain: false,
    }
}

/// A viewer, and the link to it.
struct Viewer {
    peer: Peer,
    receiving: Receiving,
    /// Until when the link is busy with packets before the next.
    rate: BitRate,
    busy_until: Time,
    /// Numbers of packets, numbers of frames by their marks, and bytes by the second.
    sequences: BTreeSet<u64>,
    marks: Vec<(u32, u32)>,
    bytes: BTreeMap<u64, u64>,
    seen: Vec<Seen>,
    /// The encodings that it was sent, one after the other.
    sent: Vec<usize>,
}

/// An encoder that hits its rate: key frames are four times as large as others.
#[derive(Default)]
struct Encoder {
    before: Option<u64>,
}

struct World {
    now: Time,
    sessions: Sessions,
    sending: Sending,
    encoders: Vec<Encoder>,
    viewers: Vec<Viewer>,
    flying: BTreeMap<(Time, u64), (usize, Transmit)>,
    packets: u64,
    frame: u64,
    followed: Time,
}

#[expect(
    clippy::disallowed_methods,
    reason = "str0m counts from an instant; which one does not matter"
)]
fn zero() -> Instant {
    Instant::now()
}

impl World {
    /// Viewers behind links of these rates, who ask for these qualities.
    fn new(most: &[u64], viewers: &[(u64, WebrtcQuality)]) -> Self {
        let zero = zero();
        let most: Vec<BitRate> = most.iter().copied().map(kbps).collect();
        let name = "camera".to_owned();
        let mut sessions = Sessions::new(name, Signalling::Whep, zero, setup(0, Way::Sends));
        let random = (Seed(1).random(), 7_000_000_000);
        let pictures = ((1280, 720), FPS as u32);
        let sending = Sending::new(pictures, (kbps(300), &most), None, random);
        let viewers = viewers.iter().enumerate().map(|(index, (rate, quality))| {
            let mut peer = Peer::new(START, zero, setup(index + 1, Way::Receives)).unwrap();
            let offered = peer.offer(START).unwrap();
            let (number, answer) = sessions.answer(START, &offered.description).unwrap();
            sessions.get(number).unwrap().quality = *quality;
            peer.on_answer(START, offered, &answer).unwrap();
            Viewer {
                peer,
                receiving: Receiving::new(Default::default()),
                rate: kbps(*rate),
                busy_until: START,
                sequences: BTreeSet::new(),
                marks: Vec::new(),
                bytes: BTreeMap::new(),
                seen: Vec::new(),
                sent: Vec::new(),
            }
        });
        let viewers = viewers.collect();
        let encoders = most.iter().map(|_| Encoder::default()).collect();
        Self {
            now: START,
            sessions,
            sending,
            encoders,
            viewers,
            flying: BTreeMap::new(),
            packets: 0,
            frame: 0,
            followed: START,
        }
    }

    fn run_until(&mut self, end: Time) {
        loop {
            self.deal();
            self.collect();
            let next = self.next();
            if next >= end {
                self.now = end;
                return;
            }
            self.now = next;
            self.arrive();
            self.sessions.on_time(next);
            for viewer in &mut self.viewers {
                if viewer.peer.next_event().is_some_and(|at| at <= next) {
                    viewer.peer.on_time(next).unwrap();
                }
            }
            if next >= self.captured() {
                self.encode();
            }
            if next >= self.followed + FOLLOW_EVERY {
                self.followed = next;
                self.sending.follow(next, &mut self.sessions);
            }
        }
    }

    fn captured(&self) -> Time {
        START + Duration::from_secs(self.frame) / FPS
    }

    fn next(&self) -> Time {
        let viewers = self.viewers.iter();
        let timers =
            viewers.flat_map(|viewer| [viewer.peer.next_event(), viewer.receiving.next_event()]);
        let flying = self.flying.keys().next().map(|(at, _)| *at);
        let timers = timers.flatten().chain(flying).chain(self.sessions.next_event());
        let regular = self.captured().min(self.followed + FOLLOW_EVERY);
        timers.fold(regular, Time::min).max(self.now)
    }

    /// Packets that arrive now.
    fn arrive(&mut self) {
        while let Some(entry) = self.flying.first_entry()
            && entry.key().0 <= self.now
        {
            let (host, packet) = entry.remove();
            let route = (packet.from, packet.to);
            match host.checked_sub(1) {
                None => assert!(self.sessions.on_packet(self.now, route, &packet.bytes)),
                Some(index) => {
                    let viewer = &mut self.viewers[index];
                    let second = self.now.as_nanos() / 1_000_000_000;
                    *viewer.bytes.entry(second).or_default() += packet.bytes.len() as u64 + 28;
                    viewer.peer.on_packet(self.now, route, &packet.bytes).unwrap();
                }
            }
        }
    }

    /// Each encoder that somebody wants makes a frame.
    fn encode(&mut self) {
        let (number, captured) = (self.frame, self.captured());
        for encoding in 0..self.encoders.len() {
            let asked = self.sending.take_key_frame_request(encoding);
            let encoder = &mut self.encoders[encoding];
            if !self.sending.is_wanted(encoding) {
                encoder.before = None;
                continue;
            }
            let key = asked || encoder.before.is_none();
            let target = self.sending.target(encoding);
            let bytes = target.rate.as_bps() / 8 / FPS * if key { 4 } else { 1 };
            let mut data = vec![0, 0, 0, 1, if key { 0x65 } else { 0x41 }, 0x88];
            data.resize((bytes as usize).max(data.len()), 0xaa);
            let references = encoder.before.replace(number).filter(|_| !key);
            let (rate, size) = (target.rate, target.rung.size);
            let frame = Frame { number, captured, references, key, data, rate, size };
            let sessions = &mut self.sessions;
            self.sending.on_frame(self.now, (encoding, &frame), sessions).unwrap();
        }
        self.frame += 1;
    }

    /// What happened at both ends.
    fn deal(&mut self) {
        let now = self.now;
        while let Some((number, happened)) = self.sessions.take_happened(now) {
            match happened {
                Happened::Connected => {
                    let session = self.sessions.get(number).unwrap();
                    let (quality, estimate) = (session.quality, session.peer.estimate());
                    self.sending.on_connected(now, number, quality, estimate);
                }
                Happened::KeyFrame => self.sending.on_key_frame_request(now, number),
                _ => {}
            }
        }
        for (index, viewer) in self.viewers.iter_mut().enumerate() {
            while let Some(happened) = viewer.peer.take_happened() {
                let Happened::Packet(video) = happened else { continue };
                assert!(viewer.sequences.insert(video.sequence), "{} twice", video.sequence);
                if let Some(mark) = video.piece.mark {
                    viewer.marks.push((mark.number, video.piece.timestamp));
                }
                viewer.receiving.on_video(now, *video);
            }
            viewer.receiving.advance(now);
            if viewer.receiving.take_key_frame_request(now) {
                viewer.peer.request_key_frame(now).unwrap();
            }
            viewer.seen.extend(std::iter::from_fn(|| viewer.receiving.take_seen()));
            let sent = self.sending.sent_to(index as u64 + 1).map(|(encoding, _)| encoding);
            if let Some(sent) = sent
                && viewer.sent.last() != Some(&sent)
            {
                viewer.sent.push(sent);
            }
        }
    }

    /// Takes the packets that leave to the links.
    fn collect(&mut self) {
        while let Some(transmit) = self.sessions.take_transmit() {
            let host = (0..=self.viewers.len()).find(|host| address(*host) == transmit.to).unwrap();
            let viewer = &mut self.viewers[host - 1];
            let size = Bytes::new(transmit.bytes.len() as u64 + 28);
            viewer.busy_until = viewer.busy_until.max(self.now) + size / viewer.rate;
            let at = viewer.busy_until + DELAY;
            self.packets += 1;
            self.flying.insert((at, self.packets), (host, transmit));
        }
        for viewer in &mut self.viewers {
            while let Some(transmit) = viewer.peer.take_transmit() {
                self.packets += 1;
                self.flying.insert((self.now + DELAY, self.packets), (0, transmit));
            }
        }
    }
}

impl Viewer {
    /// The mean rate over the seconds from `from` until `to`, and its longest interval between two displayed frames.
    fn rate(&self, from: u64, to: u64) -> BitRate {
        let bytes: u64 = self.bytes.range(from..to).map(|(_, bytes)| bytes).sum();
        BitRate::from_bps(bytes * 8 / (to - from))
    }

    fn longest_gap(&self) -> Duration {
        let shown: Vec<Time> =
            self.seen.iter().filter_map(|seen| seen.outcome.displayed()).collect();
        let gaps = shown.windows(2).map(|pair| pair[1].saturating_since(pair[0]));
        gaps.max().unwrap_or_default()
    }

    /// What holds of each viewer: no number of a packet is missing, timestamps and frames go on across changes of the encoding,
    /// and each frame that came could be decoded.
    fn check(&self) {
        let numbers = self.sequences.last().unwrap() - self.sequences.first().unwrap() + 1;
        assert_eq!(numbers, self.sequences.len() as u64, "numbers of packets have no gap");
        for pair in self.marks.windows(2) {
            assert!(pair[0].0 < pair[1].0, "frame {} before {}", pair[0].0, pair[1].0);
            let frames = u64::from(pair[1].0 - pair[0].0);
            let ticks = u64::from(pair[1].1.wrapping_sub(pair[0].1));
            assert!(ticks.abs_diff(frames * 3000) <= 1, "{pair:?}");
        }
        let came = self.seen.iter().filter(|seen| seen.outcome.received.is_some());
        assert!(came.clone().all(|seen| seen.outcome.decodable()), "a frame was not decodable");
        assert!(came.count() > 100);
    }
}

/// What three viewers were sent: on 300 kbit/s, 1 Mbit/s and 2 Mbit/s.
fn watched(most: &[u64]) -> World {
    let auto = WebrtcQuality::Auto;
    let mut world = World::new(most, &[(300, auto), (1000, auto), (2000, auto)]);
    world.run_until(Time::from_secs(31));
    for viewer in &world.viewers {
        viewer.check();
    }
    world
}

#[test]
fn each_viewer_is_sent_what_its_own_link_carries() {
    let (one, three) = (watched(&[2500]), watched(&[2500, 900, 300]));
    let rates = |world: &World| -> Vec<u64> {
        world.viewers.iter().map(|viewer| viewer.rate(15, 30).as_bps() / 1000).collect()
    };
    let (alone, simulcast) = (rates(&one), rates(&three));
    eprintln!("kbit/s with one encoding {alone:?}, with three {simulcast:?}");
    for (world, name) in [(&one, "one"), (&three, "three")] {
        for viewer in &world.viewers {
            eprintln!("{name}: encodings {:?}, gap {}", viewer.sent, viewer.longest_gap());
        }
    }
    assert!(alone.iter().all(|rate| *rate < 350), "the slowest degrades all");
    assert!(simulcast[0] > 150 && simulcast[0] <= 310, "{simulcast:?}");
    assert!(simulcast[1] > 600, "{simulcast:?}");
    assert!(simulcast[2] > 1300, "{simulcast:?}");
    let last: Vec<_> = three.viewers.iter().map(|viewer| viewer.sent.last().copied()).collect();
    assert_eq!((last[0], last[2]), (Some(2), Some(0)));
}

#[test]
fn a_viewer_is_sent_the_quality_that_it_asks_for() {
    let qualities = [WebrtcQuality::Low, WebrtcQuality::Middle, WebrtcQuality::High];
    let mut world = World::new(&[2500, 800, 300], &qualities.map(|quality| (5000, quality)));
    world.run_until(Time::from_secs(16));
    let sent: Vec<_> = world.viewers.iter().map(|viewer| viewer.sent.clone()).collect();
    assert_eq!(sent, [[2], [1], [0]]);
    for viewer in &world.viewers {
        viewer.check();
    }
    let rates = world.viewers.iter().map(|viewer| viewer.rate(10, 15).as_bps() / 1000);
    let rates: Vec<u64> = rates.collect();
    eprintln!("kbit/s {rates:?}");
    assert!(rates[1] > 600 && rates[2] > 1500, "{rates:?}");
}
