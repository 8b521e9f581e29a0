//! From the camera to the screen, in virtual time: a real-time source over an emulated link to a
//! viewer that decodes what it shows. Where there is no ffmpeg, this reports that and passes.

use std::collections::BTreeMap;

use suiro_link::{Direction, Ecn, Link, LinkSpec, Packet, Verdict};
use suiro_media::live::{
    Captured, Decoder, Effort, EncoderConfig, Footage, FootageSpec, LiveSource, Picture,
};
use suiro_media::spec::Source;
use suiro_units::{BitRate, Bytes, Duration, Seed, Time};
use suiro_viewer::{Fate, Frame, Outcome, Parts, Playout, Policy};

use crate::common::ffmpeg;

/// Payload of a packet.
const PAYLOAD: usize = 1160;

/// A sender, the link and a viewer.
struct Call {
    source: LiveSource,
    link: Link,
    playout: Playout,
    /// Every frame that was sent, and how many of its packets have not come.
    sent: BTreeMap<u64, (Captured, usize)>,
    /// The frame of each packet.
    packets: Vec<u64>,
    outcomes: Vec<Outcome>,
    /// What the viewer said last: a key frame is asked for once.
    broken: Option<Time>,
}

impl Call {
    fn new(footage: Footage, link: &str, policy: &str) -> Self {
        let (width, height) = footage.size();
        let bitrate = BitRate::from_kbps(500);
        let (fps, effort, may_skip) = (footage.fps(), Effort::Low, false);
        let config = EncoderConfig { width, height, fps, bitrate, effort, may_skip };
        let spec: LinkSpec = toml::from_str(link).unwrap();
        let link = spec.resolve(&mut |_| Err("no files here".into())).unwrap();
        Self {
            source: LiveSource::new(footage, config, Time::ZERO, 0).unwrap(),
            link: Link::new(&link, Seed(1)),
            playout: Playout::new(toml::from_str::<Policy>(policy).unwrap()),
            sent: BTreeMap::new(),
            packets: Vec::new(),
            outcomes: Vec::new(),
            broken: None,
        }
    }

    /// Sends a frame at its time, and asks for a key frame if the viewer needs one.
    fn send(&mut self) {
        let now = self.source.next();
        self.deliver(now);
        let broken = self.playout.broken_since();
        if broken.is_some() && broken != self.broken {
            self.source.request_key_frame();
        }
        self.broken = broken;
        let frame = self.source.capture(now).unwrap().expect("it is due");
        let bytes = frame.encoded.as_ref().expect("none may be skipped").bytes.len();
        let count = bytes.div_ceil(PAYLOAD);
        for _ in 0..count {
            let id = self.packets.len() as u64;
            let packet = Packet { id, size: Bytes::new(1200), flow: 0, ecn: Ecn::NotEct };
            self.packets.push(frame.number);
            self.link.arrive(now, Direction::Down, packet);
        }
        self.sent.insert(frame.number, (frame, count));
    }

    fn deliver(&mut self, until: Time) {
        while let Some(event) = self.link.poll(until) {
            if matches!(event.verdict, Verdict::Delivered { .. }) {
                self.on_packet(event.at, self.packets[event.packet.id as usize]);
            }
        }
        self.outcomes.extend(std::iter::from_fn(|| self.playout.poll(until)));
    }

    fn on_packet(&mut self, at: Time, number: u64) {
        let (frame, missing) = self.sent.get_mut(&number).expect("it was sent");
        *missing -= 1;
        if *missing == 0 {
            let (captured, references) = (frame.captured, frame.references);
            let frame = Frame { number, captured, references, parts: Parts::All };
            self.playout.on_frame(at, frame).unwrap();
        }
    }
}

#[test]
fn the_picture_shown_is_the_one_the_transport_says_and_as_old() {
    let Some(ffmpeg) = ffmpeg() else { return };
    let cache = tempfile::tempdir().unwrap();
    let length = Duration::from_secs(1);
    let spec =
        FootageSpec { width: 640, height: 360, length, ..FootageSpec::new(Source::Synthetic) };
    let footage = Footage::prepare(&ffmpeg, &spec, cache.path(), &mut |_, _| {}).unwrap();
    // A half-second outage loses 15 frames; the viewer needs a key frame after it.
    let link = "rate = '4 Mbit/s'\nqueue.limit = '100p'\ndelay = '30 ms'\n\
                changes = [{ at = '1 s', loss = 1 }, { at = '1.5 s', loss = 0 }]";
    let mut call = Call::new(footage, link, "buffer = '100 ms'\nwait = '0 s'");
    (0..90).for_each(|_| call.send());
    call.deliver(Time::from_secs(9));
    let fates = |fate| call.outcomes.iter().filter(|outcome| outcome.fate == fate).count();
    assert_eq!(fates(Fate::Missing), 15);
    assert!((1..10).contains(&fates(Fate::Undecodable)), "{}", fates(Fate::Undecodable));
    assert_eq!(call.outcomes.len(), 90);
    // What was decodable by the viewer's model is decoded, and says itself which frame it is.
    let mut decoder = Decoder::new().unwrap();
    let mut picture = Picture::new(640, 360).unwrap();
    for outcome in call.outcomes.iter().filter(|outcome| outcome.decodable()) {
        let encoded = call.sent[&outcome.frame].0.encoded.as_ref().unwrap();
        assert!(decoder.decode(&encoded.bytes, &mut picture).unwrap(), "frame {}", outcome.frame);
        let stamp = picture.read_stamp().expect("every frame bears a stamp");
        assert_eq!(u64::from(stamp.frame), outcome.frame);
        if let Some(displayed) = outcome.displayed() {
            let by_transport = displayed - outcome.captured.unwrap();
            let by_stamp = displayed - Time::from_millis(stamp.captured_ms);
            assert!(by_stamp - by_transport < Duration::from_millis(1));
        }
    }
}
