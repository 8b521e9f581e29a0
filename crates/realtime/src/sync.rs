//! Lip sync: the sound waits for the video. Pure.
//!
//! Video takes longer than sound: a frame is encoded, sent in many packets and paced. Once a second, half of what the sound
//! was ahead on average is added to the time for which it is held, or taken from it, 80 ms at most; less than 30 ms changes
//! nothing. These are the numbers of WebRTC (`StreamSynchronization`), which also delays video where the sound is behind;
//! here it does not wait.

use suiro_units::{Duration, Time};

/// How often the sound is held longer or shorter.
const EVERY: Duration = Duration::from_secs(1);
const LEAST_NS: i64 = 30_000_000;
const STEP_NS: i64 = 80_000_000;
const MOST: Duration = Duration::from_secs(10);

/// How old frames were when they were shown or played.
#[derive(Debug, Clone, Copy, Default)]
struct Ages {
    sum_ns: i64,
    count: i64,
}

impl Ages {
    fn add(&mut self, age_ns: i64) {
        self.sum_ns = self.sum_ns.saturating_add(age_ns);
        self.count += 1;
    }

    fn mean(self) -> Option<i64> {
        (self.count > 0).then(|| self.sum_ns / self.count)
    }
}

/// For how much longer than it would be the sound is held.
#[derive(Debug, Clone, Default)]
pub struct LipSync {
    video: Ages,
    sound: Ages,
    since: Option<Time>,
    held_ns: i64,
}

impl LipSync {
    /// A frame of video was shown at this age, in nanoseconds, by the sender's clock.
    pub fn on_video(&mut self, age_ns: i64) {
        self.video.add(age_ns);
    }

    /// A frame of sound was played at this age, by the same clock.
    pub fn on_sound(&mut self, age_ns: i64) {
        self.sound.add(age_ns);
    }

    /// For how much longer the sound is to be held from now on; `None` if that does not change.
    pub fn look(&mut self, now: Time) -> Option<Duration> {
        let since = *self.since.get_or_insert(now);
        if now.saturating_since(since) < EVERY {
            return None;
        }
        let (video, sound) = (std::mem::take(&mut self.video), std::mem::take(&mut self.sound));
        self.since = Some(now);
        let ahead = video.mean()?.saturating_sub(sound.mean()?);
        if ahead.abs() < LEAST_NS {
            return None;
        }
        let held = self.held_ns + (ahead / 2).clamp(-STEP_NS, STEP_NS);
        let held = held.clamp(0, MOST.as_nanos_i64());
        let changes = held != self.held_ns;
        self.held_ns = held;
        changes.then(|| Duration::from_nanos(held as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// What the sound is held, in milliseconds, after so many seconds of video of that age and sound of 60 ms.
    fn held(video_ms: impl Fn(u64) -> i64, seconds: u64) -> i64 {
        let (mut sync, mut held) = (LipSync::default(), 0);
        for n in 0..seconds * 50 {
            sync.on_video(video_ms(n / 50) * MS);
            sync.on_sound((60 + held) * MS);
            if let Some(extra) = sync.look(Time::from_millis(20 * n)) {
                held = extra.as_nanos_i64() / MS;
            }
        }
        held
    }

    #[test]
    fn the_sound_waits_for_the_video_and_no_longer() {
        assert_eq!(held(|_| 80, 20), 0, "nobody notices");
        assert_eq!(held(|_| 20, 20), 0, "the video does not wait");
        let late = held(|_| 360, 20);
        assert!((270..=300).contains(&late), "{late}");
        assert_eq!(held(|_| 360, 3), 160, "80 ms a second");
        let back = held(|second| if second < 10 { 360 } else { 60 }, 30);
        assert!(back < 30, "{back}");
        assert_eq!(held(|_| 60_000, 200), 10_000);
    }

    #[test]
    fn without_video_nothing_changes() {
        let mut sync = LipSync::default();
        for second in 0..5 {
            sync.on_sound(60 * MS);
            assert_eq!(sync.look(Time::from_secs(second)), None);
        }
    }
}
