//! How the segments of a rung are cut into chunks, and which chunks make a part; pure.
//!
//! A chunk (CMAF) is what DASH sends as it is captured; a part (`EXT-X-PART`) is one or more whole chunks that HLS names
//! by itself. Like segments, they repeat for ever.

use std::ops::Range;

use suiro_units::Duration;

use super::timeline::Loop;

/// Part targets are whole milliseconds, so that no part is longer by the rounding of its duration.
const TARGET_STEP_NS: u64 = 1_000_000;

/// A chunk of a segment, as the package has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// How long it lasts, in ticks of its track.
    pub duration: u64,
    /// True if decoding can begin with it.
    pub independent: bool,
}

/// The chunks of one rung.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunks {
    /// All chunks of the package, one after the other.
    timeline: Loop,
    /// For each segment of the package, which chunk is its first; and how many there are.
    firsts: Vec<u64>,
    independent: Vec<bool>,
    /// Chunks of a part; the last part of a segment may have fewer.
    per_part: u64,
}

impl Chunks {
    /// The chunks of the segments of a package, of which parts of at least one chunk and otherwise at most `part` are
    /// made. `None` if there is none, or a segment has none.
    pub fn new(timescale: u64, segments: &[Vec<Chunk>], part: Duration) -> Option<Self> {
        let mut firsts = vec![0];
        for segment in segments {
            firsts.push(firsts.last()? + segment.len() as u64);
        }
        let all = || segments.iter().flatten();
        let durations: Vec<u64> = all().map(|chunk| chunk.duration).collect();
        let timeline = Loop::new(timescale, &durations)?;
        if segments.iter().any(Vec::is_empty) {
            return None;
        }
        // Times are rounded up to a nanosecond: six chunks of 1∕12 s are half a second all the same.
        let per_part = ((part.as_nanos() + 1000) / timeline.longest().as_nanos().max(1)).max(1);
        let independent = all().map(|chunk| chunk.independent).collect();
        Some(Self { timeline, firsts, independent, per_part })
    }

    /// The numbers of the chunks of a segment in the endless stream of chunks.
    pub fn of(&self, segment: u64) -> Range<u64> {
        let segments = self.firsts.len() as u64 - 1;
        let index = usize::try_from(segment % segments).expect("an index of a vector");
        let before = (segment / segments).saturating_mul(self.independent.len() as u64);
        before.saturating_add(self.firsts[index])..before.saturating_add(self.firsts[index + 1])
    }

    /// Media time at which the last frame of a chunk has been captured.
    pub fn captured_at(&self, chunk: u64) -> Duration {
        let place = self.timeline.place(chunk);
        self.timeline.time(place.start + place.duration)
    }

    /// The longest chunk.
    pub fn longest(&self) -> Duration {
        self.timeline.longest()
    }

    /// How many parts a segment has.
    pub fn parts(&self, segment: u64) -> u64 {
        let chunks = self.of(segment);
        (chunks.end - chunks.start).div_ceil(self.per_part)
    }

    /// A part of a segment; `None` past its last.
    pub fn part(&self, segment: u64, part: u64) -> Option<Part> {
        let chunks = self.of(segment);
        let start = part.checked_mul(self.per_part)?.checked_add(chunks.start)?;
        if start >= chunks.end {
            return None;
        }
        let chunks = start..start.saturating_add(self.per_part).min(chunks.end);
        let begins = self.timeline.time(self.timeline.place(start).start);
        let duration = self.captured_at(chunks.end - 1).saturating_sub(begins);
        let (_, index) = self.timeline.source(start);
        Some(Part { segment, part, chunks, duration, independent: self.independent[index] })
    }

    /// The last part that has been captured at media time `captured`; `None` before the first.
    pub fn last_part(&self, segment_now: u64, captured: Duration) -> Option<Part> {
        let current = (0..self.parts(segment_now)).rev();
        let there = |part: &Part| self.captured_at(part.chunks.end - 1) <= captured;
        let last = current.filter_map(|part| self.part(segment_now, part)).find(there);
        last.or_else(|| {
            let before = segment_now.checked_sub(1)?;
            self.part(before, self.parts(before) - 1)
        })
    }

    /// The part after another.
    pub fn next_part(&self, part: &Part) -> Option<Part> {
        self.part(part.segment, part.part + 1).or_else(|| self.part(part.segment + 1, 0))
    }

    /// `PART-TARGET`: no part is longer.
    pub fn part_target(&self) -> Duration {
        let segments = self.firsts.len() as u64 - 1;
        let parts = (0..segments).flat_map(|segment| {
            (0..self.parts(segment)).filter_map(move |part| self.part(segment, part))
        });
        let longest = parts.map(|part| part.duration).max().unwrap_or_default();
        Duration::from_nanos(longest.as_nanos().next_multiple_of(TARGET_STEP_NS))
    }
}

/// A part of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The number of the segment.
    pub segment: u64,
    /// Which part of it, from 0.
    pub part: u64,
    /// The numbers of its chunks in the endless stream of chunks.
    pub chunks: Range<u64>,
    /// How long it lasts.
    pub duration: Duration,
    /// True if decoding can begin with it.
    pub independent: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two segments of 2 s at 24 frames per second in chunks of two frames and one of 500 ms each.
    fn chunks(part_ms: u64) -> Chunks {
        let segment = |length: u64| {
            let chunk = |index| Chunk { duration: length, independent: index == 0 };
            (0..48_000 / length).map(chunk).collect::<Vec<_>>()
        };
        Chunks::new(24_000, &[segment(2000), segment(2000)], Duration::from_millis(part_ms))
            .expect("chunks")
    }

    #[test]
    fn parts_are_whole_chunks() {
        let chunks = chunks(500);
        assert_eq!((chunks.of(0), chunks.of(3)), (0..24, 72..96));
        assert_eq!(chunks.longest(), Duration::from_nanos(83_333_334));
        assert_eq!((chunks.parts(7), chunks.part_target()), (4, Duration::from_millis(500)));
        let part = chunks.part(3, 3).expect("the last part");
        assert_eq!((part.chunks.clone(), part.independent), (90..96, false));
        assert_eq!(part.duration, Duration::from_millis(500));
        assert_eq!(chunks.part(3, 4), None);
        // Five chunks are 416.7 ms; what is left of a segment is a shorter part.
        let chunks = self::chunks(450);
        assert_eq!((chunks.parts(7), chunks.part_target()), (5, Duration::from_millis(417)));
        let part = chunks.part(3, 4).expect("the last part");
        assert_eq!((part.chunks.clone(), part.duration.as_nanos()), (92..96, 333_333_333));
        let next = chunks.next_part(&part).expect("there is always more");
        assert_eq!((next.segment, next.part, next.independent), (4, 0, true));
    }

    #[test]
    fn the_last_part_by_the_clock() {
        let chunks = chunks(1);
        let last = |ms: u64| {
            let captured = Duration::from_millis(ms);
            let now = captured.as_nanos() / 2_000_000_000;
            chunks.last_part(now, captured).map(|part| (part.segment, part.part))
        };
        assert_eq!(
            [last(83), last(84), last(2000), last(2084)],
            [None, Some((0, 0)), Some((0, 23)), Some((1, 0))]
        );
    }

    #[test]
    fn what_has_no_chunks_is_refused() {
        let part = Duration::from_millis(500);
        assert_eq!(Chunks::new(1000, &[], part), None);
        let chunk = Chunk { duration: 1, independent: true };
        assert_eq!(Chunks::new(1000, &[vec![chunk], vec![]], part), None);
    }
}
