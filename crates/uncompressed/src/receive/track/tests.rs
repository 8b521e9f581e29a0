use super::*;
use crate::geometry::{Depth, FrameRate, Geometry, Sampling};
use crate::packet::{self, Format, HEADER_BYTES_MAX, Stream};

const TYPE: u8 = 96;
/// Frame 1000 begins here.
const FIRST: u64 = 1000;

fn layout() -> Layout {
    let geometry = Geometry::new((64, 40), Sampling::YCbCr422, Depth::Ten, FrameRate::P59_94);
    Layout::new(Format::Raster, &geometry.unwrap(), 400).unwrap()
}

fn epoch() -> Epoch {
    Epoch::measured(Time::ZERO, Time::ZERO)
}

/// The packets of one frame.
fn packets(number: u64, ssrc: u32) -> Vec<Vec<u8>> {
    let layout = layout();
    let bytes: Vec<u8> = (0..layout.frame_bytes()).map(|at| (at as u64 * number) as u8).collect();
    let frame = packet::Frame {
        timestamp: FrameRate::P59_94.rtp_timestamp(number),
        sequence: (number as u32).wrapping_mul(layout.packets_per_frame()),
        number: number as u32,
        checksum: checksum::of_frame(&bytes),
    };
    let datagram = |index| {
        let mut header = [0; HEADER_BYTES_MAX];
        layout.write_header(Stream { payload_type: TYPE, ssrc }, &frame, index, &mut header);
        [&header[..layout.header_bytes()], &bytes[layout.piece(index).range()]].concat()
    };
    (0..layout.packets_per_frame()).map(datagram).collect()
}

struct Case {
    track: Track,
    frames: Vec<Frame>,
    now: Time,
}

impl Case {
    fn new() -> Self {
        let wanted = Wanted { verify: true, pictures: true };
        Self {
            track: Track::new(layout(), TYPE, epoch(), wanted),
            frames: Vec::new(),
            now: Time::ZERO,
        }
    }

    fn at(&mut self, now: Time, datagram: &[u8]) {
        let frames = &mut self.frames;
        self.now = now;
        self.track.datagram(now, datagram, &mut |frame, _| frames.push(*frame));
    }

    /// A frame's packets, spread evenly over its time.
    fn frame(&mut self, number: u64, packets: &[Vec<u8>]) {
        let start = epoch().start(FrameRate::P59_94, number);
        let step = FrameRate::P59_94.period() / packets.len() as u64;
        for (at, packet) in packets.iter().enumerate() {
            self.at(start + step * at as u64, packet);
        }
    }

    /// Receiving ends, long after the last packet.
    fn finish(self) -> (Counts, Vec<Frame>) {
        let later = self.now + Duration::from_secs(1);
        self.finish_at(later)
    }

    fn finish_at(mut self, now: Time) -> (Counts, Vec<Frame>) {
        let frames = &mut self.frames;
        self.track.finish(now, &mut |frame, _| frames.push(*frame));
        (*self.track.counts(), self.frames)
    }
}

#[test]
fn whole_frames_are_whole_sound_and_in_time() {
    let mut case = Case::new();
    for number in FIRST..FIRST + 3 {
        case.frame(number, &packets(number, 1));
    }
    let (counts, frames) = case.finish();
    let count = u64::from(layout().packets_per_frame());
    assert_eq!(
        counts,
        Counts {
            packets: 3 * count,
            frames: 3,
            timed: 3,
            bytes: counts.bytes,
            ..Counts::default()
        }
    );
    for (frame, number) in frames.iter().zip(FIRST..) {
        assert_eq!((frame.number, frame.content), (number, Some(number as u32)));
        assert_eq!((frame.whole, frame.sound, frame.late), (true, Some(true), Some(false)));
        let due = epoch().start(FrameRate::P59_94, number);
        assert_eq!((frame.first, frame.due), (due, Some(due)));
    }
}

#[test]
fn every_kind_of_fault_has_its_own_count() {
    let mut case = Case::new();
    let mut one = packets(FIRST, 1);
    let lost = one.remove(3);
    one.swap(5, 6);
    one.insert(9, one[8].clone());
    one.push(b"not a packet".to_vec());
    one.push(packets(FIRST, 2).remove(0));
    case.frame(FIRST, &one);
    let mut two = packets(FIRST + 1, 1);
    let last = two[2].len() - 1;
    two[2][last] ^= 1;
    case.frame(FIRST + 1, &two);
    // A packet that seemed lost arrives while its frame is still open.
    case.at(epoch().start(FrameRate::P59_94, FIRST + 2), &lost);
    let (counts, frames) = case.finish();
    assert_eq!((counts.lost, counts.reordered, counts.duplicate), (0, 2, 1));
    assert_eq!((counts.malformed, counts.foreign, counts.corrupt), (1, 1, 1));
    assert_eq!((counts.frames, counts.incomplete), (2, 0));
    assert_eq!(
        frames.iter().map(|frame| frame.sound).collect::<Vec<_>>(),
        [Some(false), Some(true)]
    );
}

#[test]
fn a_frame_without_one_packet_is_incomplete() {
    let mut case = Case::new();
    let mut one = packets(FIRST, 1);
    one.remove(4);
    case.frame(FIRST, &one);
    case.frame(FIRST + 1, &packets(FIRST + 1, 1));
    let (counts, frames) = case.finish();
    assert_eq!((counts.lost, counts.frames, counts.incomplete), (1, 1, 1));
    assert_eq!(frames.iter().filter(|frame| frame.sound.is_none()).count(), 1);
}

#[test]
fn a_frame_that_ends_a_frame_time_late_is_late() {
    let (mut case, rate) = (Case::new(), FrameRate::P59_94);
    for (number, delay) in [(FIRST, 1.9), (FIRST + 1, 2.1)] {
        let arrival = epoch().start(rate, number) + rate.period().mul_f64(delay);
        for packet in packets(number, 1) {
            case.at(arrival, &packet);
        }
    }
    let (counts, frames) = case.finish();
    assert_eq!((counts.late, frames[0].late, frames[1].late), (1, Some(false), Some(true)));
}

#[test]
fn a_replay_is_refused_and_a_successor_taken_after_silence() {
    let (mut case, rate) = (Case::new(), FrameRate::P59_94);
    let far = FIRST + 5000;
    case.frame(far, &packets(far, 1));
    case.frame(far + 1, &packets(FIRST, 1)[..1]);
    assert_eq!(case.track.counts().replayed, 1);
    case.at(epoch().start(rate, far + 2), &packets(far + 2, 2)[0]);
    assert_eq!(case.track.counts().foreign, 1);
    for packet in packets(far + 20, 2) {
        case.at(epoch().start(rate, far + 20), &packet);
    }
    let (counts, frames) = case.finish();
    assert_eq!((counts.foreign, counts.restarts, counts.lost), (1, 1, 0));
    assert_eq!((frames.len(), counts.frames), (2 + 19, 2));
    assert_eq!((counts.incomplete, counts.late), (19, 19), "nothing of them was taken");
}

/// The same packets, with other sequence numbers.
fn renumbered(mut packets: Vec<Vec<u8>>, by: u32) -> Vec<Vec<u8>> {
    for packet in &mut packets {
        let own = layout().parse(packet, TYPE).unwrap().sequence;
        let sequence = own.wrapping_add(by).to_be_bytes();
        packet[2..4].copy_from_slice(&sequence[2..]);
        packet[12..14].copy_from_slice(&sequence[..2]);
    }
    packets
}

#[test]
fn an_outage_counts_in_full_if_another_sequence_ends_it() {
    let mut case = Case::new();
    case.frame(FIRST, &packets(FIRST, 1));
    // Two in a row are a new sequence: the first of them is not taken.
    let mut resumed = vec![packets(FIRST + 799, 1).pop().unwrap()];
    resumed.extend(packets(FIRST + 800, 1));
    case.frame(FIRST + 800, &renumbered(resumed, 1 << 20));
    let (counts, frames) = case.finish();
    assert_eq!((counts.restarts, counts.replayed, counts.frames), (1, 1, 2));
    assert_eq!((counts.incomplete, counts.timed, counts.late), (799, 801, 799));
    assert_eq!(frames.len(), 2 + 599, "rows are bounded");
    let packets = layout().packets_per_frame();
    assert!(frames[1..600].iter().all(|frame| frame.lost == packets && frame.last.is_none()));
}

#[test]
fn an_outage_counts_in_full_if_another_sender_ends_it() {
    let mut case = Case::new();
    case.frame(FIRST, &packets(FIRST, 1));
    // The sender dies amid a frame.
    case.frame(FIRST + 1, &packets(FIRST + 1, 1)[..3]);
    case.frame(FIRST + 20, &packets(FIRST + 20, 2));
    let (counts, frames) = case.finish();
    assert_eq!((counts.restarts, counts.foreign, counts.frames), (1, 0, 2));
    assert_eq!((counts.incomplete, counts.timed, counts.late), (19, 21, 18));
    let told: Vec<_> = frames.iter().map(|frame| frame.number).collect();
    assert_eq!(told, (FIRST..=FIRST + 20).collect::<Vec<_>>(), "in order");
}

#[test]
fn a_long_outage_of_the_same_sequence_counts_in_full() {
    let mut case = Case::new();
    case.frame(FIRST, &packets(FIRST, 1));
    case.frame(FIRST + 700, &packets(FIRST + 700, 1));
    let (counts, frames) = case.finish();
    assert_eq!((counts.restarts, counts.incomplete, counts.late), (0, 699, 699));
    assert_eq!(frames.len(), 2 + 599);
}

/// The same address and SSRC, as after a crash: the sequence is new, and timestamps went back.
#[test]
fn a_restarted_sender_is_accepted_although_its_timestamps_went_back() {
    let mut case = Case::new();
    let far = FIRST + 5000;
    case.frame(far, &packets(far, 1)[..3]);
    let start = epoch().start(FrameRate::P59_94, far + 1);
    for number in FIRST..FIRST + 3 {
        for packet in packets(number, 1) {
            case.at(start, &packet);
        }
    }
    let (counts, frames) = case.finish();
    // One packet is not enough to decide, and is dropped: its frame is incomplete, like the one
    // before.
    assert_eq!((counts.restarts, counts.replayed, counts.lost), (1, 1, 0));
    assert_eq!((counts.frames, counts.incomplete), (2, 2));
    let told: Vec<_> = frames.iter().map(|frame| (frame.number, frame.whole)).collect();
    let expected = [(far, false), (FIRST + 1, true), (FIRST + 2, true), (FIRST, false)];
    assert_eq!(told, expected);
}

#[test]
fn a_sender_whose_clock_is_set_back_is_accepted_although_its_sequence_goes_on() {
    let mut case = Case::new();
    case.frame(FIRST + 1, &packets(FIRST + 1, 1));
    let per_frame = layout().packets_per_frame();
    for (at, mut packet) in packets(FIRST - 9, 1).into_iter().enumerate() {
        let sequence = (FIRST as u32 + 2) * per_frame + at as u32;
        packet[2..4].copy_from_slice(&(sequence as u16).to_be_bytes());
        packet[12..14].copy_from_slice(&((sequence >> 16) as u16).to_be_bytes());
        case.at(epoch().start(FrameRate::P59_94, FIRST + 2), &packet);
    }
    let (counts, frames) = case.finish();
    assert_eq!((counts.restarts, counts.frames, counts.incomplete), (1, 2, 0));
    assert_eq!(frames.last().map(|frame| frame.number), Some(FIRST - 9));
}

#[test]
fn frames_of_which_nothing_arrived_are_reported() {
    let mut case = Case::new();
    case.frame(FIRST, &packets(FIRST, 1));
    case.frame(FIRST + 3, &packets(FIRST + 3, 1));
    let (counts, frames) = case.finish();
    let packets = layout().packets_per_frame();
    let told: Vec<_> =
        frames.iter().map(|f| (f.number - FIRST, f.lost, f.last.is_some())).collect();
    assert_eq!(told, [(0, 0, true), (1, packets, false), (2, packets, false), (3, 0, true)]);
    assert_eq!((counts.incomplete, counts.lost), (2, i64::from(2 * packets)));
}

/// A group is joined and left in the middle of frames: what is sent before and after was never lost.
#[test]
fn what_was_sent_before_joining_and_after_leaving_is_not_lost() {
    let mut case = Case::new();
    let mut joined = packets(FIRST, 1).split_off(5);
    joined.remove(2);
    case.frame(FIRST, &joined);
    case.frame(FIRST + 1, &packets(FIRST + 1, 1));
    let mut left = packets(FIRST + 2, 1);
    left.truncate(7);
    left.remove(3);
    case.frame(FIRST + 2, &left);
    let now = case.now;
    let (counts, mut frames) = case.finish_at(now);
    frames.sort_by_key(|frame| frame.number);
    let told: Vec<_> = frames.iter().map(|frame| (frame.whole, frame.lost)).collect();
    assert_eq!(told, [(false, 1), (true, 0), (false, 1)]);
    assert_eq!((counts.lost, counts.incomplete), (2, 2));
}

/// A standby takes over with the packets that its predecessor would have sent; while both send, each packet counts once.
#[test]
fn a_stream_that_moves_to_another_node_is_the_same_stream() {
    let mut case = Case::new();
    case.frame(FIRST, &packets(FIRST, 1));
    let of_both: Vec<_> =
        packets(FIRST + 1, 1).into_iter().flat_map(|own| [own.clone(), own]).collect();
    case.frame(FIRST + 1, &of_both);
    case.frame(FIRST + 5, &packets(FIRST + 5, 1));
    let (counts, frames) = case.finish();
    let whole: Vec<_> = frames.iter().map(|frame| (frame.number - FIRST, frame.whole)).collect();
    let expected = [(0, true), (1, true), (2, false), (3, false), (4, false), (5, true)];
    assert_eq!(whole, expected, "packets that were not sent count as missing");
    assert_eq!((counts.restarts, counts.foreign), (0, 0));
    assert_eq!(counts.duplicate, u64::from(layout().packets_per_frame()));
}

/// Other implementations split frames differently from our layout.
#[test]
fn how_a_sender_splits_frames_is_learnt_from_its_first_complete_one() {
    let mut case = Case::new();
    let assumed = Layout::new(Format::Raster, layout().geometry(), 1500).unwrap();
    let wanted = Wanted { verify: true, pictures: false };
    case.track = Track::new(assumed, TYPE, epoch(), wanted);
    assert_ne!(assumed.packets_per_frame(), layout().packets_per_frame());
    for number in FIRST..FIRST + 4 {
        let mut packets = packets(number, 1);
        packets.truncate(if number == FIRST + 2 { 7 } else { packets.len() });
        case.frame(number, &packets);
    }
    let (_, frames) = case.finish();
    let lost: Vec<_> = frames.iter().map(|frame| frame.lost).collect();
    assert_eq!(lost, [0, 0, 0, layout().packets_per_frame() - 7]);
    assert_eq!(frames[0].seen, None, "the number of packets is not known yet");
    let seen = frames[1].seen.expect("it is known by now");
    assert!(seen.burst_max <= 1.0 && seen.buffer_max < 1.01, "packets arrive evenly: {seen:?}");
}

/// Timestamps with another epoch than ours: without leap seconds, or from the sender's own start.
#[test]
fn without_a_common_clock_nothing_is_late() {
    for behind in [37.0, -37.0, 7200.0] {
        let mut case = Case::new();
        let (rate, first) = (FrameRate::P59_94, FIRST + 1_000_000);
        let start = |number| {
            let due = epoch().start(rate, number).as_nanos() as f64;
            Time::from_nanos((due + behind * 1e9) as u64)
        };
        for number in [first, first + 1, first + 3] {
            for packet in packets(number, 1) {
                case.at(start(number), &packet);
            }
        }
        let (counts, frames) = case.finish();
        assert_eq!((counts.frames, counts.incomplete), (3, 1));
        assert_eq!((counts.timed, counts.late_if_known()), (0, None));
        assert!(frames.iter().all(|frame| frame.due.is_none() && frame.late.is_none()));
        let missing = frames.iter().find(|frame| frame.last.is_none()).unwrap();
        let apart = start(first + 2).saturating_since(missing.first);
        assert!(apart < Duration::from_micros(1), "it is recorded at its due time");
    }
}
