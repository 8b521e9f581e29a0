//! Giving up a segment that is under way, for one of a lower rung.
//!
//! From dash.js's `AbandonRequestsRule`, as its documentation describes it: a download is judged
//! after half a second and six samples of its progress, by its own mean rate; it is given up only if
//! what is left to come is more than all of the lower rung's segment; and once for each segment.
//!
//! From the abandon rules of hls.js's `AbrController`: it is given up if it would arrive after the
//! buffer is empty, and not if before, and the lower rung is one that arrives in time, else the
//! lowest. dash.js asks instead that the whole take more than 1.8 times its duration: too late for
//! a live player, whose buffer does not hold that much, and too early for one that holds more.

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
}
