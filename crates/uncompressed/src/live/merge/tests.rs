use super::*;
use crate::geometry::{Depth, Geometry, Sampling};
use crate::packet::{self, Format, HEADER_BYTES_MAX, PAYLOAD_TYPE, Stream};

const BUDGET: Duration = Duration::from_millis(5);
/// Longer than the skew of the slowest path in the tests that have one.
const WIDE: Duration = Duration::from_millis(40);

#[derive(Default)]
struct Told {
    frames: Vec<(u64, bool)>,
    /// Bytes of each one's image.
    pictures: Vec<usize>,
    events: Vec<What>,
}

impl Output for Told {
    fn frame(&mut self, frame: &Frame, picture: &[u8]) {
        self.frames.push((frame.number, frame.whole));
        self.pictures.push(picture.len());
    }

    fn event(&mut self, _: Time, what: What) {
        self.events.push(what);
    }
}

/// A lane of ten packets a frame, and its senders.
struct Bench {
    merge: Merge,
    layout: Layout,
    epoch: Epoch,
    first: u64,
    told: Told,
}

/// What of a frame arrives, and how.
#[derive(Clone, Copy)]
struct Arriving {
    ssrc: u32,
    slot: usize,
    delay: Duration,
    packets: (u32, u32),
}

impl Bench {
    fn new(budget: Duration) -> Self {
        let geometry =
            Geometry::new((64, 20), Sampling::YCbCr422, Depth::Ten, crate::FrameRate::P59_94);
        let layout = Layout::new(Format::Raster, &geometry.unwrap(), 384).unwrap();
        assert_eq!(layout.packets_per_frame(), 10);
        let epoch = Epoch::measured(Time::from_secs(1_780_000_037), Time::from_secs(500));
        let mut merge = Merge::new(layout, PAYLOAD_TYPE, epoch, budget);
        merge.want(Wanted { verify: true, pictures: false });
        let first = epoch.first_from(layout.geometry().rate(), Time::from_secs(501));
        assert_eq!((merge.join(first, None), merge.join(first, None)), (Some(0), Some(1)));
        Self { merge, layout, epoch, first, told: Told::default() }
    }

    fn start(&self, frame: u64) -> Time {
        self.epoch.start(self.layout.geometry().rate(), self.first + frame)
    }

    fn packet(&self, frame: u64, ssrc: u32, index: u32) -> Vec<u8> {
        let number = self.first + frame;
        let rate = self.layout.geometry().rate();
        let bytes = vec![frame as u8; self.layout.frame_bytes()];
        let common = packet::Frame {
            timestamp: rate.rtp_timestamp(number),
            sequence: (number as u32).wrapping_mul(10),
            number: frame as u32,
            checksum: crate::checksum::of_frame(&bytes),
        };
        let mut header = [0; HEADER_BYTES_MAX];
        let stream = Stream { payload_type: PAYLOAD_TYPE, ssrc };
        self.layout.write_header(stream, &common, index, &mut header);
        let mut packet = header[..self.layout.header_bytes()].to_vec();
        packet.extend_from_slice(&bytes[self.layout.piece(index).range()]);
        packet
    }

    /// All packets of frame `frame`, in the order in which they arrive, and the time until its end.
    fn frame(&mut self, frame: u64, arriving: &[Arriving]) {
        let period = self.layout.geometry().rate().period();
        let mut all: Vec<_> = arriving
            .iter()
            .flat_map(|one| (one.packets.0..one.packets.1).map(move |index| (*one, index)))
            .map(|(one, index)| {
                let sent = self.start(frame) + period * u64::from(index) / 10;
                (sent + one.delay, one, index)
            })
            .collect();
        all.sort_by_key(|(at, ..)| *at);
        for (at, one, index) in all {
            self.merge.tick(at, &mut self.told);
            let packet = self.packet(frame, one.ssrc, index);
            self.merge.datagram(at, one.slot, &packet, &mut self.told);
        }
        let end = self.start(frame + 1);
        self.merge.tick(end, &mut self.told);
    }

    /// Waits for the end of all frames before `frame`.
    fn finish(&mut self, frame: u64) {
        let end = self.merge.deadline(self.first + frame - 1);
        self.merge.tick(end, &mut self.told);
    }

    /// The frames that were handed on, from 0.
    fn frames(&self) -> Vec<(u64, bool)> {
        self.told.frames.iter().map(|(number, whole)| (number - self.first, *whole)).collect()
    }
}

const fn all(ssrc: u32, slot: usize) -> Arriving {
    Arriving { ssrc, slot, delay: Duration::from_millis(1), packets: (0, 10) }
}

fn whole(frames: std::ops::Range<u64>) -> Vec<(u64, bool)> {
    frames.map(|frame| (frame, true)).collect()
}

#[test]
fn either_of_two_paths_may_vanish() {
    let mut bench = Bench::new(BUDGET);
    for frame in 0..12 {
        let mut paths = vec![all(1, 0), all(1, 1)];
        match frame {
            // The first path ends amid a frame, and returns; then the other.
            3 => paths[0].packets = (0, 4),
            4 | 5 => drop(paths.remove(0)),
            8 => paths[1].packets = (7, 10),
            9 => drop(paths.remove(1)),
            _ => {}
        }
        bench.frame(frame, &paths);
    }
    bench.finish(12);
    assert_eq!(bench.frames(), whole(0..12));
    let counts = *bench.merge.counts();
    assert_eq!((counts.frames, counts.packets, counts.lost_packets), (12, 120, 0));
    assert_eq!((counts.seams, counts.corrupt, counts.repeated), (0, 0, 0));
    let (one, other) = (bench.merge.path(0), bench.merge.path(1));
    assert_eq!((one.lost, one.packets), (6 + 20, 94));
    assert_eq!((other.lost, other.packets), (7 + 10, 103));
    assert_eq!(one.duplicate + other.duplicate, 94 + 103 - 120);
}

#[test]
fn the_gaps_of_one_path_are_filled_by_the_other() {
    let mut bench = Bench::new(WIDE);
    for frame in 0..6 {
        let slow = Duration::from_millis(12);
        bench.frame(
            frame,
            &[
                Arriving { packets: (0, 6), ..all(1, 0) },
                Arriving { packets: (4, 10), delay: slow, ..all(1, 1) },
            ],
        );
    }
    bench.finish(6);
    assert_eq!(bench.frames(), whole(0..6));
    assert_eq!((bench.merge.path(0).lost, bench.merge.path(1).lost), (24, 24));
    assert_eq!(SkewClass::of(WIDE), Some(SkewClass::A));
}

#[test]
fn a_path_loses_what_the_lane_loses() {
    let mut bench = Bench::new(BUDGET);
    bench.frame(0, &[all(1, 0)]);
    (1..6).for_each(|frame| bench.frame(frame, &[Arriving { packets: (0, 6), ..all(1, 0) }]));
    // Nothing of frame 6.
    bench.frame(7, &[all(1, 0)]);
    bench.finish(8);
    assert_eq!((bench.merge.counts().incomplete, bench.merge.counts().lost), (5, 1));
    assert_eq!(bench.merge.counts().lost_packets, 5 * 4 + 10);
    assert_eq!(bench.merge.path(0).lost, 5 * 4 + 10);
    assert_eq!(bench.merge.path(1).lost, 8 * 10, "nothing came by the other path");
}

#[test]
fn a_frame_that_began_before_images_were_wanted_has_none() {
    let mut bench = Bench::new(BUDGET);
    for index in 0..10 {
        if index == 5 {
            bench.merge.want(Wanted { verify: true, pictures: true });
        }
        let packet = bench.packet(0, 1, index);
        bench.merge.datagram(bench.start(0), 0, &packet, &mut bench.told);
    }
    bench.frame(1, &[all(1, 0)]);
    bench.finish(2);
    assert_eq!(bench.frames(), whole(0..2));
    assert_eq!(bench.told.pictures, [0, bench.layout.frame_bytes()]);
}

#[test]
fn a_standby_takes_over_at_a_frame_boundary() {
    let mut bench = Bench::new(BUDGET);
    (0..4).for_each(|frame| bench.frame(frame, &[all(1, 0)]));
    (4..8).for_each(|frame| bench.frame(frame, &[all(2, 1)]));
    bench.finish(8);
    assert_eq!(bench.frames(), whole(0..8));
    let frame = bench.first + 4;
    let started = What::Started { frame: bench.first };
    assert_eq!(bench.told.events, [started, What::Seam { frame, ssrc: 2, before: 1 }]);
    assert_eq!(bench.merge.counts().seams, 1);
}

#[test]
fn of_two_senders_the_earlier_is_used_until_it_lacks_a_frame() {
    let mut bench = Bench::new(BUDGET);
    bench.frame(0, &[all(1, 0)]);
    for frame in 1..4 {
        bench.frame(frame, &[all(1, 0), Arriving { delay: Duration::ZERO, ..all(2, 1) }]);
    }
    assert_eq!(bench.merge.owner(), Some(1));
    bench.frame(4, &[Arriving { packets: (0, 3), ..all(1, 0) }, all(2, 1)]);
    bench.frame(5, &[all(2, 1)]);
    bench.finish(6);
    assert_eq!(bench.frames(), whole(0..6), "a sender that dies amid a frame costs none");
    assert_eq!(bench.merge.owner(), Some(2));
    let contested = bench.told.events.iter().filter(|what| matches!(what, What::Contested { .. }));
    assert_eq!(contested.count(), 1);
}

#[test]
fn silence_is_told_within_three_frame_times() {
    let mut bench = Bench::new(BUDGET);
    (0..3).for_each(|frame| bench.frame(frame, &[all(1, 0)]));
    let period = bench.layout.geometry().rate().period();
    let died = bench.start(3);
    let mut silent = None;
    for step in 0..400 {
        let now = died + period * step / 100;
        bench.merge.tick(now, &mut bench.told);
        let told = bench.told.events.iter().any(|what| matches!(what, What::Silent { .. }));
        silent = silent.or(told.then_some(now));
    }
    let took = silent.unwrap().saturating_since(died);
    assert!(took > period && took < period * 3, "{took}");
    assert_eq!(bench.merge.trouble(), Some(Trouble::Silent(bench.first + 2)));
    // What was missed counts when the stream goes on.
    bench.frame(6, &[all(1, 0)]);
    bench.finish(7);
    assert_eq!(bench.frames()[3..], [(3, false), (4, false), (5, false), (6, true)]);
    assert_eq!((bench.merge.counts().lost, bench.merge.counts().lost_packets), (3, 30));
    assert_eq!(bench.told.events.last(), Some(&What::Recovered { frame: bench.first + 6 }));
}

#[test]
fn a_budget_that_does_not_cover_a_path_is_told() {
    for (budget, covered) in [(15, true), (8, false)] {
        let mut bench = Bench::new(Duration::from_millis(budget));
        for frame in 0..5 {
            let delay = Duration::from_millis(12);
            bench.frame(frame, &[all(1, 0), Arriving { delay, ..all(1, 1) }]);
        }
        bench.finish(5);
        assert_eq!(bench.frames(), whole(0..5), "one path is enough");
        let told: Vec<_> = bench.told.events.iter().filter(|what| is_over_budget(what)).collect();
        assert_eq!(
            (bench.merge.path(1).late == 0, told.is_empty()),
            (covered, covered),
            "{told:?}"
        );
        assert_eq!(bench.merge.path(0).late, 0);
        let behind = bench.merge.path(1).behind_max;
        assert_eq!(behind, Duration::from_millis(11), "12 ms behind the sender, the other 1 ms");
    }
}

fn is_over_budget(what: &What) -> bool {
    matches!(what, What::OverBudget { path: 1, .. })
}

#[test]
fn another_clock_is_refused_and_told_once() {
    let mut bench = Bench::new(BUDGET);
    bench.frame(0, &[all(1, 0)]);
    // A sender that is two seconds ahead, and one that is 37 s behind: UTC in place of TAI.
    for (frame, ssrc) in [(120, 7), (121, 7)] {
        let packet = bench.packet(frame, ssrc, 0);
        bench.merge.datagram(bench.start(1), 0, &packet, &mut bench.told);
    }
    let late = bench.start(37 * 60);
    let packet = bench.packet(1, 8, 0);
    bench.merge.datagram(late, 0, &packet, &mut bench.told);
    let apart: Vec<_> = bench
        .told
        .events
        .iter()
        .filter_map(|what| match what {
            What::ClockApart { ssrc, ahead, .. } => Some((*ssrc, *ahead)),
            _ => None,
        })
        .collect();
    assert_eq!(apart, [(7, true), (8, false)]);
    assert_eq!(bench.merge.path(0).foreign, 3);
}

#[test]
fn a_repeated_frame_is_a_starving_sender() {
    let mut bench = Bench::new(BUDGET);
    (0..3).for_each(|frame| bench.frame(frame, &[all(1, 0)]));
    // Frame 3 carries frame 2's content.
    for index in 0..10 {
        let mut packet = bench.packet(3, 1, index);
        packet[16..20].copy_from_slice(&2_u32.to_be_bytes());
        bench.merge.datagram(bench.start(3), 0, &packet, &mut bench.told);
    }
    bench.frame(4, &[all(1, 0)]);
    assert_eq!(bench.merge.counts().repeated, 1);
    let (starved, recovered) = (bench.first + 3, bench.first + 4);
    let events = &bench.told.events[1..];
    assert_eq!(
        events,
        [What::Starved { frame: starved }, What::Recovered { frame: recovered }],
        "{events:?}"
    );
}

#[test]
fn a_path_may_have_another_payload_type() {
    let mut bench = Bench::new(BUDGET);
    // The first path's packets have the type that its description named, the others the lane's.
    bench.merge.remove(0);
    assert_eq!(bench.merge.join(bench.first, Some(PAYLOAD_TYPE + 1)), Some(0));
    for frame in 0..3 {
        for (slot, payload_type) in [(0, PAYLOAD_TYPE + 1), (1, PAYLOAD_TYPE + 1)] {
            for index in 0..10 {
                let mut packet = bench.packet(frame, 1, index);
                packet[1] = packet[1] & 0x80 | payload_type;
                let now = bench.start(frame) + Duration::from_millis(1);
                bench.merge.datagram(now, slot, &packet, &mut bench.told);
            }
        }
    }
    bench.finish(3);
    assert_eq!(bench.frames(), whole(0..3));
    assert_eq!((bench.merge.path(0).malformed, bench.merge.path(1).malformed), (0, 30));
}

#[test]
fn frames_outside_a_paths_time_are_not_taken() {
    let mut bench = Bench::new(BUDGET);
    // One group until frame 3, another one from it on; both senders go on longer.
    bench.merge.leave(0, bench.first + 3);
    bench.merge.leave(1, 0);
    bench.merge.remove(1);
    assert_eq!(bench.merge.join(bench.first + 3, None), Some(1));
    (0..6).for_each(|frame| bench.frame(frame, &[all(1, 0), all(2, 1)]));
    bench.finish(6);
    assert_eq!(bench.frames(), whole(0..6));
    assert_eq!((bench.merge.path(0).unwanted, bench.merge.path(1).unwanted), (30, 30));
    assert!(bench.merge.is_over(0, bench.start(4)) && !bench.merge.is_over(1, bench.start(9)));
    assert_eq!(bench.merge.counts().lost, 0);
}
