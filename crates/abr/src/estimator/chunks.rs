//! The rate of chunks, as published estimators measure it: all bytes of a chunk, over the time from the read in which it
//! began to the read in which it ended.

use suiro_units::{BitRate, Bytes, Duration, Time};

use super::Sample;

/// A chunk that came in no more than this has no rate of its own.
pub(super) const SHORT: Duration = Duration::from_millis(1);

/// How a chunk came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The bytes after its first read, over the time since that read; `None` if it came in too few reads, or a loss had kept
    /// it back.
    pub burst: Option<Sample>,
    /// All of its bytes, over the time from the read in which it began to that in which it ended.
    pub whole: Sample,
}

/// The mean rate of a segment's chunks without its last one; `None` if fewer than two are left. As in dash.js (`FetchLoader`), a
/// chunk that came too fast counts together with the next, and with the pause between them.
pub(super) fn mean_rate(chunks: &[Sample]) -> Option<BitRate> {
    let counted = &chunks[..chunks.len().saturating_sub(1)];
    if counted.len() < 2 {
        return None;
    }
    let (mut sum_bps, mut count) = (0.0, 0u32);
    // When the first of those that were too fast began, and their bytes.
    let mut short: Option<(Time, Bytes)> = None;
    for chunk in counted {
        let before = short.take().filter(|_| chunk.took() <= SHORT);
        let (since, bytes) = before.unwrap_or((chunk.requested, Bytes::ZERO));
        let (bytes, took) = (bytes + chunk.bytes, chunk.done.saturating_since(since));
        if took <= SHORT {
            short = Some((since, bytes));
            continue;
        }
        sum_bps += (bytes / took).as_bps() as f64;
        count += 1;
    }
    (count > 0).then(|| BitRate::from_bps((sum_bps / f64::from(count)).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(bytes: u64, from_us: u64, to_us: u64) -> Sample {
        let at = |us| Time::ZERO + Duration::from_micros(us);
        Sample { bytes: Bytes::new(bytes), requested: at(from_us), done: at(to_us) }
    }

    #[test]
    fn pauses_between_chunks_and_the_last_chunk_do_not_count() {
        let mut chunks: Vec<Sample> = (0..3)
            .map(|number| chunk(1250, 100_000 * number, 100_000 * number + 10_000)) // 1 Mbit/s
            .collect();
        chunks.push(chunk(12_500, 400_000, 405_000)); // 20 Mbit/s
        assert_eq!(mean_rate(&chunks), Some(BitRate::from_mbps(1)));
        assert_eq!(mean_rate(&chunks[..2]), None, "one before the last is too few");
        assert_eq!(mean_rate(&[]), None);
    }

    #[test]
    fn chunks_that_were_too_fast_count_together() {
        let last = chunk(1, 900_000, 900_000);
        // 1500 bytes in 1.5 ms.
        let together = [chunk(500, 0, 500), chunk(500, 500, 900), chunk(500, 900, 1500), last];
        assert_eq!(mean_rate(&together), Some(BitRate::from_mbps(8)));
        // 1000 bytes in 40 ms: with the pause.
        let apart = [chunk(500, 0, 500), chunk(500, 39_500, 40_000), last];
        assert_eq!(mean_rate(&apart), Some(BitRate::from_kbps(200)));
        // One with a rate of its own leaves out what was too fast before it.
        let slow = [chunk(500, 2000, 2500), chunk(5000, 3000, 7000), last];
        assert_eq!(mean_rate(&slow), Some(BitRate::from_mbps(10)));
        assert_eq!(mean_rate(&[last, last, last]), None);
    }
}
