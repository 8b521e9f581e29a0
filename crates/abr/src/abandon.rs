//! Giving up a segment that is under way, for one of a lower rung.
//!
//! From dash.js's `AbandonRequestsRule`, as its documentation describes it: a download is judged after half a second
//! and six samples of its progress, by its own mean rate. It is given up only if what is left to come is more than all
//! of the lower rung's segment, and only once for each segment.
//!
//! From the abandon rules of hls.js's `AbrController`: it is given up if it would arrive after the
//! buffer is empty, and not if before. The lower rung is one that arrives in time, else the lowest.
//! In dash.js the whole must instead take more than 1.8 times its duration. That is too late for a
//! live player, whose buffer does not hold that much, and too early for one that holds more.
//!
//! A segment that is sent while it is captured takes as long as its capture, and its size is not known. It is given up if it
//! comes more slowly than it is played, so that the buffer would be empty before its end ([`judge_live`]); this rule is
//! ours. Its rest is taken to be like what came of it after its first chunk, which has the key frame.

use suiro_units::{BitRate, Bytes, Duration};

use crate::{Ladder, throughput};

/// How long a download runs before it is judged: dash.js's
/// `minSegmentDownloadTimeThresholdInMs`.
pub const GRACE: Duration = Duration::from_millis(500);
/// Samples of progress before it is judged: dash.js's `minThroughputSamplesThreshold`.
pub const SAMPLES: u32 = 6;

/// For how long afterwards no rung above the last is chosen: dash.js's `abandonLoadTimeout`. What
/// had come of the download is too little to bring the estimate down.
pub const HOLD: Duration = Duration::from_secs(10);

/// A download that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Download {
    /// Bit rate of its rung.
    pub rate: BitRate,
    /// Duration of the segment.
    pub segment: Duration,
    /// How long its body has been coming.
    pub running: Duration,
    /// How often there was more of it.
    pub samples: u32,
    /// What has come.
    pub came: Bytes,
    /// What is to come in all.
    pub whole: Bytes,
}

/// How much less media than time may have come of a segment in progress: a chunk or two are always on their way.
pub const BEHIND: Duration = Duration::from_millis(200);

/// A segment that is under way while it is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveDownload {
    /// Bit rate of its rung.
    pub rate: BitRate,
    /// Duration of the segment.
    pub segment: Duration,
    /// How long its body has been coming.
    pub running: Duration,
    /// How often there was more of it.
    pub samples: u32,
    /// What has come, in bytes.
    pub came: Bytes,
    /// What has come of it in whole chunks, as media.
    pub media: Duration,
    /// Size of these chunks.
    pub chunks: Bytes,
    /// Size and length of its first chunk, once that is whole.
    pub first: Option<(Bytes, Duration)>,
}

impl LiveDownload {
    /// How much of it is still to come, as far as can be told: no more than its rung's rate says.
    fn left(&self) -> Bytes {
        let rest = self.segment.saturating_sub(self.media);
        let nominal = self.rate * rest;
        let later = self.first.and_then(|(bytes, length)| {
            let media = self.media.saturating_sub(length);
            (!media.is_zero()).then(|| self.chunks.saturating_sub(bytes) / media)
        });
        match later {
            // Less the part of the current chunk that has come.
            Some(rate) => {
                nominal.min(rate * rest).saturating_sub(self.came.saturating_sub(self.chunks))
            }
            // The part of the first chunk that has come.
            None => nominal.min((self.rate * self.segment).saturating_sub(self.came)),
        }
    }
}

/// What to do instead of going on with a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The rung to fetch, lower than the download's.
    pub rung: usize,
    /// How long the rest would take at the rate at which the download has come so far.
    pub rest: Duration,
}

/// Whether to give up a download, with this much media ahead of the playhead.
pub fn judge(ladder: &Ladder, download: &Download, buffer: Duration) -> Option<Verdict> {
    let Download { segment, running, samples, came, whole, .. } = *download;
    if running < GRACE || samples < SAMPLES || came >= whole {
        return None;
    }
    let rate = came / running;
    if rate.is_zero() || segment.is_zero() {
        return None;
    }
    let left = whole - came;
    let rest = left / rate;
    if rest <= buffer {
        return None;
    }
    // What keeps up with playback, and arrives before the buffer is empty.
    let share = throughput::SAFETY * (buffer / segment).min(1.0);
    let rung = ladder.highest_within(rate.mul_f64(share));
    let instead = ladder.rungs()[rung];
    (instead < download.rate && instead * segment < left).then_some(Verdict { rung, rest })
}

/// Whether to give up a segment that comes while it is captured, with this much media ahead of the playhead.
pub fn judge_live(ladder: &Ladder, download: &LiveDownload, buffer: Duration) -> Option<Verdict> {
    let LiveDownload { segment, running, samples, came, media, .. } = *download;
    if running < GRACE || samples < SAMPLES || media + BEHIND >= running || media >= segment {
        return None;
    }
    let rate = came / running;
    if rate.is_zero() || download.rate.is_zero() {
        return None;
    }
    let left = download.left();
    let rest = left / rate;
    // As the rest comes, that much is played.
    if rest <= buffer + (segment - media) {
        return None;
    }
    let rung = ladder.highest_within(rate.mul_f64(throughput::SAFETY));
    let instead = ladder.rungs()[rung];
    // The other rung comes from the beginning of the segment. It is smaller by as much as its rate is lower.
    let smaller = instead.as_bps() as f64 / download.rate.as_bps() as f64;
    let (came, left) = (came.get() as f64, left.get() as f64);
    let worth = smaller < 1.0 && (came + left) * smaller < left;
    worth.then_some(Verdict { rung, rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 3 Mbit/s for 2 s are 750 kB. 100 kB in 0.8 s are 1 Mbit/s: 650 kB more take 5.2 s.
    const SLOW: Download = Download {
        rate: BitRate::from_mbps(3),
        segment: Duration::from_secs(2),
        running: Duration::from_millis(800),
        samples: 8,
        came: Bytes::new(100_000),
        whole: Bytes::new(750_000),
    };

    fn verdict(download: Download, buffer_ms: u64) -> Option<usize> {
        let ladder = Ladder::new([300, 700, 1500, 3000].map(BitRate::from_kbps).to_vec()).unwrap();
        let verdict = judge(&ladder, &download, Duration::from_millis(buffer_ms));
        if let Some(Verdict { rest, .. }) = verdict {
            assert_eq!(rest, (download.whole - download.came) / (download.came / download.running));
        }
        verdict.map(|verdict| verdict.rung)
    }

    #[test]
    fn gives_up_what_comes_too_late_by_hand() {
        // Not what is there before the buffer is empty.
        assert_eq!(verdict(SLOW, 5200), None);
        // 1 Mbit/s · 0.9 bears 700 kbit/s; with 1 s, half a segment, 450 kbit/s: 300 it is.
        assert_eq!(verdict(SLOW, 5199), Some(1));
        assert_eq!(verdict(SLOW, 1000), Some(0));
        assert_eq!(verdict(SLOW, 0), Some(0));
    }

    #[test]
    fn waits_for_a_sound_judgement() {
        assert_eq!(verdict(Download { running: Duration::from_millis(499), ..SLOW }, 0), None);
        assert_eq!(verdict(Download { samples: 5, ..SLOW }, 0), None);
        assert_eq!(verdict(Download { came: Bytes::ZERO, ..SLOW }, 0), None);
    }

    #[test]
    fn keeps_what_is_nearly_there_or_has_no_lower_rung() {
        // 75 kB are a segment of 300 kbit/s, and what is left.
        let nearly =
            Download { came: Bytes::new(675_000), running: Duration::from_secs(60), ..SLOW };
        assert_eq!(verdict(nearly, 0), None);
        assert_eq!(verdict(Download { came: Bytes::new(674_999), ..nearly }, 0), Some(0));
        assert_eq!(verdict(Download { rate: BitRate::from_kbps(300), ..SLOW }, 0), None);
        let whole = Download { came: SLOW.whole, ..SLOW };
        assert_eq!(verdict(whole, 0), None);
    }

    /// 1.5 Mbit/s for 2 s, of which 0.2 s came in 0.8 s: 0.375 Mbit/s.
    const IN_PROGRESS: LiveDownload = LiveDownload {
        rate: BitRate::from_kbps(1500),
        segment: Duration::from_secs(2),
        running: Duration::from_millis(800),
        samples: 8,
        came: Bytes::new(37_500),
        media: Duration::from_millis(200),
        chunks: Bytes::new(37_500),
        first: None,
    };

    fn live(download: LiveDownload, buffer_ms: u64) -> Option<(usize, u64)> {
        let ladder = Ladder::new([300, 700, 1500, 3000].map(BitRate::from_kbps).to_vec()).unwrap();
        let verdict = judge_live(&ladder, &download, Duration::from_millis(buffer_ms));
        verdict.map(|verdict| (verdict.rung, verdict.rest.as_nanos() / 1_000_000))
    }

    #[test]
    fn a_segment_in_progress_is_given_up_if_it_falls_behind_by_hand() {
        // 1.8 s of 1.5 Mbit/s take 7.2 s, in which 1.8 s are played from what comes.
        assert_eq!(live(IN_PROGRESS, 500), Some((0, 7200)));
        assert_eq!(live(IN_PROGRESS, 5399), Some((0, 7200)));
        assert_eq!(live(IN_PROGRESS, 5400), None);
    }

    #[test]
    fn the_rest_of_a_segment_in_progress_is_like_what_followed_its_key_frame() {
        // A key frame of 25 kB in 0.1 s, then 12.5 kB in 0.1 s: 1 Mbit/s, so 1.8 s are 1.8 Mbit. They take 4.8 s.
        let first = Some((Bytes::new(25_000), Duration::from_millis(100)));
        let download = LiveDownload { first, ..IN_PROGRESS };
        assert_eq!(live(download, 2999), Some((0, 4800)));
        assert_eq!(live(download, 3000), None);
        // With half of a third chunk, 6.25 kB: 218.75 kB are left, at 437.5 kbit/s.
        let download = LiveDownload { came: Bytes::new(43_750), ..download };
        assert_eq!((live(download, 2199), live(download, 2200)), (Some((0, 4000)), None));
        // After 20 kB in 1 s, 0.9 s are 18 kB, in 0.8 s. A segment of 300 kbit/s would have a fifth of 63 kB.
        let (came, media) = (Bytes::new(45_000), Duration::from_millis(1100));
        let small = LiveDownload {
            first,
            came,
            chunks: came,
            media,
            running: Duration::from_secs(6),
            ..IN_PROGRESS
        };
        assert_eq!(live(small, 1000), Some((0, 2400)));
        // 9 kB are left after 1.55 s: less than that.
        let (came, media) = (Bytes::new(54_000), Duration::from_millis(1550));
        assert_eq!(live(LiveDownload { came, chunks: came, media, ..small }, 0), None);
    }

    #[test]
    fn what_keeps_up_with_its_capture_goes_on() {
        // However small the frames are: chunks count.
        let media = Duration::from_millis(600);
        assert_eq!(live(LiveDownload { media, came: Bytes::new(5000), ..IN_PROGRESS }, 0), None);
        assert_eq!(live(LiveDownload { samples: 5, ..IN_PROGRESS }, 0), None);
        assert_eq!(
            live(LiveDownload { running: Duration::from_millis(499), ..IN_PROGRESS }, 0),
            None
        );
        assert_eq!(live(LiveDownload { rate: BitRate::from_kbps(300), ..IN_PROGRESS }, 0), None);
        assert_eq!(live(LiveDownload { came: Bytes::ZERO, ..IN_PROGRESS }, 0), None);
    }
}
