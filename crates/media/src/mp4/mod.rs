//! Fragmented MP4 (ISO/IEC 14496-12): read strictly, written exactly, moved in time.
//!
//! Only what segments of one track need: an initialisation segment, and fragments whose data
//! follows them. Anything else is refused, with the place.

mod boxes;
mod chunk;
mod fragment;
mod init;
mod restamp;
mod stream;
mod write;

pub use chunk::{Chunk, Chunked, ChunkedRates, chunked, ends, first_end};
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

    #[test]
    fn a_segment_in_chunks_has_the_same_frames() {
        let (one, two) = (frames(0, 7), frames(7, 4));
        let whole = segment(&[&one, &two], 1);
        let Chunked { bytes, chunks } = chunked(&whole, &track(), 3500, 40).unwrap();
        // Three frames each, and what is left of a group.
        let durations: Vec<u64> = chunks.iter().map(|chunk| chunk.duration).collect();
        assert_eq!(durations, [3000, 3000, 1000, 3000, 1000]);
        let independent: Vec<bool> = chunks.iter().map(|chunk| chunk.independent).collect();
        assert_eq!(independent, [true, false, false, true, false]);
        assert_eq!(chunks.last().unwrap().end, bytes.len());
        let read = fragments(&bytes, &track()).unwrap();
        assert_eq!(read.iter().map(|f| f.sequence).collect::<Vec<_>>(), [40, 41, 42, 43, 44]);
        let times: Vec<u64> = read.iter().map(|f| f.decode_time).collect();
        assert_eq!(times, [0, 3000, 6000, 7000, 10_000]);
        let samples = |bytes: &[u8], found: &[Fragment]| -> Vec<(Vec<u8>, i64, bool)> {
            let all = found.iter().flat_map(|fragment| &fragment.samples);
            all.map(|s| (bytes[s.data.clone()].to_vec(), s.composition, s.sync)).collect()
        };
        let before = fragments(&whole, &track()).unwrap();
        assert_eq!(samples(&bytes, &read), samples(&whole, &before));
        // A chunk is never empty.
        let least = chunked(&whole, &track(), 0, 1).unwrap();
        assert_eq!(least.chunks.len(), 11);
    }

    #[test]
    fn a_chunk_ends_as_soon_as_its_last_byte_is_there() {
        let whole = segment(&[&frames(0, 2), &frames(2, 2)], 1);
        let all = ends(&whole).unwrap();
        assert_eq!((all.len(), all[1]), (2, whole.len()));
        for length in 0..all[0] {
            assert_eq!(first_end(&whole[..length], 4096).unwrap(), None, "{length}");
        }
        for length in all[0]..=whole.len() {
            assert_eq!(first_end(&whole[..length], 4096).unwrap(), Some(all[0]), "{length}");
        }
        let error = first_end(&whole, 30).unwrap_err();
        assert!(error.to_string().contains("beyond 30 bytes"), "{error}");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = init(&bytes);
            let _ = fragments(&bytes, &track());
            let _ = first_end(&bytes, 1 << 20);
            let _ = chunked(&bytes, &track(), 1000, 1);
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
