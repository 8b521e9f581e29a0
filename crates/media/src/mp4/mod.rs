//! Fragmented MP4 (ISO/IEC 14496-12): read strictly, written exactly, moved in time.
//!
//! Only what segments of one track need: an initialisation segment, and fragments whose data
//! follows them. Anything else is refused, with the place.

mod boxes;
mod fragment;
mod init;
mod restamp;
mod stream;
mod write;

pub use fragment::{Fragment, Sample, fragments};
pub use init::{Entry, Init, init};
pub use restamp::restamp;
pub(crate) use stream::Stream;
pub(crate) use write::{Frame, segment};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::init::Defaults;
    use super::*;
    use crate::AudioConfig;

    fn track() -> Init {
        let config = AudioConfig::read(&[0x11, 0x90]).unwrap();
        let defaults = Defaults { track: 1, duration: 0, size: 0, flags: 0 };
        Init { timescale: 48_000, entry: Entry::Audio(config), defaults }
    }

    /// A group of pictures with reordering: shown 0, 3, 1, 2 of each four.
    fn frames(first: u64, count: u64) -> Vec<Frame> {
        let frame = |index: u64| {
            let shown = first + index / 4 * 4 + [0, 3, 1, 2][(index % 4) as usize];
            let data = vec![index as u8; 3 + index as usize];
            let decode = (first + index) * 1000;
            Frame { data, decode, shown: shown * 1000, duration: 1000, sync: index == 0 }
        };
        (0..count).map(frame).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let (one, two) = (frames(8, 8), frames(16, 4));
        let bytes = segment(&[&one, &two], 7);
        let read = fragments(&bytes, &track()).unwrap();
        assert_eq!(read.iter().map(|f| f.sequence).collect::<Vec<_>>(), [7, 8]);
        assert_eq!(read.iter().map(|f| f.decode_time).collect::<Vec<_>>(), [8000, 16_000]);
        assert_eq!(read[0].duration(), 8000);
        for (written, read) in [(one, &read[0]), (two, &read[1])] {
            for (frame, sample) in written.iter().zip(&read.samples) {
                assert_eq!(&bytes[sample.data.clone()], frame.data);
                assert_eq!(sample.composition, frame.shown as i64 - frame.decode as i64);
                assert_eq!((sample.duration, sample.sync), (frame.duration, frame.sync));
            }
            assert_eq!(written.len(), read.samples.len());
        }
    }

    #[test]
    fn durations_that_differ_are_kept() {
        let mut frames = frames(0, 3);
        frames.iter_mut().for_each(|frame| frame.sync = true);
        frames[2].duration = 1234;
        let bytes = segment(&[&frames], 1);
        let read = fragments(&bytes, &track()).unwrap();
        let durations: Vec<u32> = read[0].samples.iter().map(|s| s.duration).collect();
        assert_eq!(durations, [1000, 1000, 1234]);
        assert!(read[0].samples.iter().all(|sample| sample.sync));
    }

    #[test]
    fn restamping_moves_times_and_numbers_alone() {
        let (one, two) = (frames(0, 4), frames(4, 4));
        let before = segment(&[&one, &two], 1);
        let mut after = before.clone();
        let offset = 1 << 40;
        restamp(&mut after, offset, 100).unwrap();
        let (before, after) =
            (fragments(&before, &track()).unwrap(), fragments(&after, &track()).unwrap());
        for (index, (before, after)) in before.iter().zip(&after).enumerate() {
            assert_eq!(after.decode_time, before.decode_time + offset);
            assert_eq!(after.sequence, 100 + index as u32);
            assert_eq!(after.samples, before.samples);
        }
    }

    #[test]
    fn a_time_that_does_not_fit_is_refused() {
        let mut bytes = segment(&[&frames(4, 4)], 1);
        let error = restamp(&mut bytes, u64::MAX, 1).unwrap_err();
        assert!(error.to_string().ends_with("the time does not fit"), "{error}");
    }

    #[test]
    fn a_cut_segment_is_refused_wherever_it_is_cut() {
        let whole = segment(&[&frames(0, 4)], 1);
        let styp = 24;
        for length in (1..styp).chain(styp + 1..whole.len()) {
            let mut cut = whole[..length].to_vec();
            // Cut between moof and mdat, boxes are whole; their samples are not.
            let read = fragments(&cut, &track());
            assert!(read.is_err(), "{length}: {read:?}");
            let _ = restamp(&mut cut, 1, 1);
        }
        let error = restamp(&mut whole[..styp].to_vec(), 1, 1).unwrap_err();
        assert_eq!(error.to_string(), "byte 0: no fragment (`moof`)");
    }

    #[test]
    fn an_endless_run_of_empty_samples_is_refused() {
        let mut bytes = segment(&[&frames(0, 4)], 1);
        let trun = bytes.windows(4).position(|kind| kind == b"trun").unwrap();
        // No fields for each sample; as many samples as can be said.
        bytes[trun + 4..trun + 12].copy_from_slice(&[1, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]);
        let error = fragments(&bytes, &track()).unwrap_err();
        assert!(error.to_string().contains("more than 65536 samples"), "{error}");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = init(&bytes);
            let _ = fragments(&bytes, &track());
            let _ = restamp(&mut bytes.clone(), 1 << 63, u32::MAX);
        }

        #[test]
        fn no_damage_panics(
            at in 0usize..400,
            with in any::<[u8; 4]>(),
            cut in 0usize..400,
        ) {
            let mut bytes = segment(&[&frames(0, 4), &frames(4, 4)], 1);
            for (byte, with) in bytes.iter_mut().skip(at).zip(with) {
                *byte = with;
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            let _ = fragments(&bytes, &track());
            let _ = restamp(&mut bytes, 1 << 63, u32::MAX);
        }
    }
}
