//! Video that is prepared in several versions, of which each group of pictures takes the best that the
//! rate control allows. Pure.
//!
//! As MPEG-TFRCP does: the versions differ in their quantiser scale. At the beginning of a group the sender takes the
//! best one that stays below the target. If even the lowest is above it, only what the target allows in the time of a
//! group is sent, and the rest of the group is not. The rate that must stay below is a version's mean rate, as there,
//! or the coming group's ([`VersionRate`]).

use suiro_scenario::VersionRate;
use suiro_units::{BitRate, Bytes, Duration, Time};

use crate::packet::{HEADER_BYTES, IP_UDP_BYTES};

/// Where a frame lies in its version's elementary stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picture {
    /// First byte: of the headers that precede it.
    pub offset: u64,
    /// Bytes with those headers.
    pub size: u64,
}

/// One version: all frames of the footage, in the order of coding, which is that of display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The quantiser scale.
    pub quantiser: i64,
    /// Mean bit rate of the elementary stream.
    pub rate: BitRate,
    /// Its frames.
    pub pictures: Vec<Picture>,
}

/// Why versions cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionsError {
    /// There is nothing to send.
    #[error("no version has a frame")]
    Empty,
    /// A version has not as many frames as the others.
    #[error("version {quantiser} has {found} frames, others {wanted}")]
    Lengths {
        /// Its quantiser scale.
        quantiser: i64,
        /// Its frames.
        found: usize,
        /// Those of the first.
        wanted: usize,
    },
    /// The footage is not whole groups.
    #[error("{pictures} frames are not a whole number of groups of {group}")]
    Groups {
        /// Frames of each version.
        pictures: usize,
        /// Frames of a group.
        group: usize,
    },
    /// A frame rate of nothing.
    #[error("{0} frames in {1} s")]
    FrameRate(u32, u32),
}

/// The versions, and where in them the sender is. The footage repeats.
#[derive(Debug, Clone)]
pub struct Versions {
    /// By rate, the lowest first.
    versions: Vec<Version>,
    /// Frames of a group.
    group: usize,
    /// Frames per second, as numerator and denominator.
    fps: (u32, u32),
    start: Time,
    /// Number of the next frame; looped footage counts on.
    next: u64,
    /// What the group at hand takes.
    choice: Choice,
    packet: Bytes,
    /// What is held against the target.
    by: VersionRate,
}

#[derive(Debug, Clone, Copy)]
struct Choice {
    version: usize,
    /// What is left of what the group may send; `None`: all may be sent.
    budget: Option<Bytes>,
}

/// The next frame to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Number of the source frame.
    pub number: u64,
    /// When it is shown, in the sender's time.
    pub at: Time,
    /// Its version's place among [`Versions::versions`].
    pub version: usize,
    /// Where it lies in that version's stream.
    pub picture: Picture,
    /// Whether a group begins with it: it can be decoded on its own.
    pub begins_group: bool,
    /// What may be sent of it, in bytes of IP packets; `None`: all.
    pub budget: Option<Bytes>,
}

impl Versions {
    /// Versions of footage in groups of so many frames, whose first is sent at `start`; sent in IP
    /// packets of up to that size. Of each, the rate of the coming group is held against the target.
    ///
    /// # Errors
    /// [`VersionsError`].
    pub fn new(
        mut versions: Vec<Version>,
        group: usize,
        fps: (u32, u32),
        start: Time,
        packet: Bytes,
    ) -> Result<Self, VersionsError> {
        let wanted = versions.first().map_or(0, |version| version.pictures.len());
        if let Some(other) = versions.iter().find(|version| version.pictures.len() != wanted) {
            let (quantiser, found) = (other.quantiser, other.pictures.len());
            return Err(VersionsError::Lengths { quantiser, found, wanted });
        }
        if wanted == 0 {
            return Err(VersionsError::Empty);
        }
        if group == 0 || !wanted.is_multiple_of(group) {
            return Err(VersionsError::Groups { pictures: wanted, group });
        }
        if fps.0 == 0 || fps.1 == 0 {
            return Err(VersionsError::FrameRate(fps.0, fps.1));
        }
        versions.sort_by_key(|version| version.rate);
        let choice = Choice { version: 0, budget: None };
        let by = VersionRate::Group;
        Ok(Self { versions, group, fps, start, next: 0, choice, packet, by })
    }

    /// The same with another rate that is held against the target.
    #[must_use]
    pub fn by(mut self, by: VersionRate) -> Self {
        self.by = by;
        self
    }

    /// The versions, by rate.
    pub fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// The time of a group of pictures.
    pub fn group_time(&self) -> Duration {
        self.time_of(self.group as u64)
    }

    fn time_of(&self, frames: u64) -> Duration {
        let (frames_per, seconds) = (u128::from(self.fps.0), u128::from(self.fps.1));
        let nanos = u128::from(frames) * seconds * 1_000_000_000 / frames_per;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// When the next frame is due.
    pub fn next(&self) -> Time {
        self.start + self.time_of(self.next)
    }

    /// The next frame if it is due, under a target that bounds the rate of IP packets.
    pub fn poll(&mut self, now: Time, target: BitRate) -> Option<Due> {
        let at = self.next();
        if at > now {
            return None;
        }
        let pictures = self.versions[0].pictures.len() as u64;
        let place = (self.next % pictures) as usize;
        let begins_group = place.is_multiple_of(self.group);
        if begins_group {
            self.choice = self.choose(place, target);
        }
        let Choice { version, budget } = self.choice;
        let picture = self.versions[version].pictures[place];
        let taken = self.on_the_wire(picture);
        self.choice.budget = budget.map(|left| left.saturating_sub(taken));
        let number = self.next;
        self.next += 1;
        Some(Due { number, at, version, picture, begins_group, budget })
    }

    /// The best version for the group that begins at `place` that stays below the target.
    fn choose(&self, place: usize, target: BitRate) -> Choice {
        let time = self.group_time();
        let fits = |version: &Version| {
            let pictures = match self.by {
                VersionRate::Group => &version.pictures[place..place + self.group],
                VersionRate::Mean => &version.pictures,
            };
            let bytes: Bytes = pictures.iter().map(|picture| self.on_the_wire(*picture)).sum();
            bytes / self.time_of(pictures.len() as u64) <= target
        };
        match self.versions.iter().rposition(fits) {
            Some(version) => Choice { version, budget: None },
            None => Choice { version: 0, budget: Some(target * time) },
        }
    }

    /// Bytes of the IP packets that a frame takes, about.
    fn on_the_wire(&self, picture: Picture) -> Bytes {
        // RTP's and the payload format's own.
        let headers = IP_UDP_BYTES + HEADER_BYTES as u64 + 4;
        let room = self.packet.get().saturating_sub(headers).max(1);
        Bytes::new(picture.size + picture.size.div_ceil(room) * headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three versions of two groups of 3 frames at 3 per second; of the second group all are twice
    /// as large.
    fn versions() -> Versions {
        let version = |quantiser: i64, size: u64| {
            let sizes = [4, 1, 1, 8, 2, 2].map(|share| share * size);
            let mut offset = 0;
            let pictures = sizes.map(|size| {
                offset += size;
                Picture { offset: offset - size, size }
            });
            let rate = Bytes::new(offset) / Duration::from_secs(2);
            Version { quantiser, rate, pictures: pictures.to_vec() }
        };
        let all = vec![version(2, 4000), version(31, 1000), version(8, 2000)];
        Versions::new(all, 3, (3, 1), Time::from_secs(10), Bytes::new(1500)).unwrap()
    }

    fn group(versions: &mut Versions, target: BitRate) -> Vec<Due> {
        (0..3).map(|_| versions.poll(Time::from_secs(1000), target).unwrap()).collect()
    }

    #[test]
    fn pictures_are_due_at_their_time_and_repeat() {
        let mut versions = versions();
        let target = BitRate::from_mbps(1);
        assert_eq!(versions.poll(Time::from_millis(9_999), target), None);
        assert_eq!(versions.poll(Time::from_secs(10), target).unwrap().number, 0);
        assert_eq!(versions.next(), Time::from_nanos(10_333_333_333));
        assert_eq!(versions.group_time(), Duration::from_secs(1));
        for _ in 0..4 {
            versions.poll(Time::from_secs(100), target).unwrap();
        }
        let due = versions.poll(Time::from_secs(100), target).unwrap();
        assert_eq!((due.number, due.begins_group), (5, false));
        let again = versions.poll(Time::from_secs(100), target).unwrap();
        assert_eq!((again.number, again.picture.offset, again.begins_group), (6, 0, true));
    }

    #[test]
    fn each_group_takes_the_best_that_stays_below_the_target() {
        let mut versions = versions();
        // The first group has 48, 96 and 192 kbit on its own, the second twice that.
        let target = BitRate::from_kbps(130);
        let chosen: Vec<i64> = [0, 1]
            .map(|_| group(&mut versions, target)[0].version)
            .map(|version| versions.versions()[version].quantiser)
            .to_vec();
        assert_eq!(chosen, [8, 31]);
        let best = group(&mut versions, BitRate::from_mbps(9));
        assert!(best.iter().all(|due| due.version == 2 && due.budget.is_none()));
    }

    #[test]
    fn by_the_mean_a_group_may_exceed_the_target() {
        let mut versions = versions().by(VersionRate::Mean);
        // The means are 72, 144 and 288 kbit/s and headers; the second group has 96, 192 and 384.
        let target = BitRate::from_kbps(160);
        let chosen = [0, 1].map(|_| group(&mut versions, target)[2]);
        assert!(chosen.iter().all(|due| due.version == 1 && due.budget.is_none()), "{chosen:?}");
        let below = group(&mut versions, BitRate::from_kbps(72));
        assert!(below.iter().all(|due| due.version == 0 && due.budget.is_some()), "headers count");
    }

    #[test]
    fn what_changes_within_a_group_waits_for_the_next() {
        let mut versions = versions();
        let now = Time::from_secs(100);
        assert_eq!(versions.poll(now, BitRate::from_mbps(9)).unwrap().version, 2);
        assert_eq!(versions.poll(now, BitRate::from_kbps(1)).unwrap().version, 2);
    }

    #[test]
    fn below_the_lowest_only_what_the_target_allows_is_sent() {
        let mut versions = versions();
        // 40 kbit/s for a second are 5000 bytes, of the first group's 6000 and headers.
        let dues = group(&mut versions, BitRate::from_kbps(40));
        let budgets: Vec<u64> = dues.iter().map(|due| due.budget.unwrap().get()).collect();
        // 4000 bytes are three packets, of 44 bytes of headers each.
        assert_eq!(budgets, [5000, 5000 - 4132, 0]);
        assert!(dues.iter().all(|due| due.version == 0));
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let whole = versions();
        let make = |versions: Vec<Version>, group, fps| {
            Versions::new(versions, group, fps, Time::ZERO, Bytes::new(1500)).unwrap_err()
        };
        assert_eq!(make(Vec::new(), 3, (3, 1)), VersionsError::Empty);
        assert_eq!(
            make(whole.versions.clone(), 4, (3, 1)).to_string(),
            "6 frames are not a whole number of groups of 4"
        );
        assert_eq!(make(whole.versions.clone(), 3, (0, 1)), VersionsError::FrameRate(0, 1));
        let mut short = whole.versions.clone();
        short[1].pictures.pop();
        let error = make(short, 3, (3, 1));
        assert_eq!(error.to_string(), "version 8 has 5 frames, others 6");
    }
}
