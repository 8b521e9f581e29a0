//! The jitter buffer of sound, and when what is played.
//!
//! A loudspeaker takes 20 ms of sound every 20 ms, whether a frame is there or not. What is missing is *concealed*: the
//! decoder makes up something. A frame that is not there when it is due may be lost or late. If a later one is there, it
//! is given up. If none is, the buffer has run dry, and the frame is still played if it comes: from then on everything is
//! played later. How long frames should be held is what [`Delay`] says of their arrivals, as for video. Where it says more
//! than there is, the sound waits for 20 ms, and that is concealed; where it says less, by more than a frame, a frame is
//! left out. WebRTC's `NetEQ` does the same, but stretches and shortens sound by parts of a frame, which listeners notice
//! less.

use std::collections::{BTreeMap, VecDeque};

use suiro_units::{Duration, Time};

use crate::delay::Delay;
use crate::policy::Policy;

/// What a loudspeaker takes at a time, and what every frame has.
pub const PIECE: Duration = Duration::from_millis(20);
/// A frame may be due so long before its piece is played, at most; of more, one is left out. It begins with half of a piece.
const AHEAD_MAX: Duration = Duration::from_millis(30);
const AHEAD_FIRST: Duration = Duration::from_millis(10);
/// Frames that wait at most; of more, the oldest are left out: 20 s.
const WAITING_MAX: usize = 1000;
/// So long after its place was passed, a frame that has not come is lost, and no longer late.
const LATE_MAX: Duration = Duration::from_secs(2);
/// A number that is this far ahead is of another stream, or damaged.
const GAP_MAX: u64 = 3000;
/// Pieces for which the buffer is dry at most, 30 s; then the frames that they stand for are given up. Thus the numbers of a
/// sender that goes on after a long silence are not far from those that are played.
const DRY_MAX: u64 = GAP_MAX / 2;

/// What became of a frame of sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// It was played.
    Played,
    /// It never came.
    Lost,
    /// It came after its place was passed.
    Late,
    /// It was there and left out, because the buffer was too long.
    Skipped,
}

/// A frame, and what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sounded {
    /// Its number.
    pub number: u64,
    /// Its fate.
    pub heard: Heard,
    /// When it was captured, by its sender's clock: its first sample.
    pub captured: Time,
    /// When it came; `None` if it did not.
    pub received: Option<Time>,
    /// When its first sample was played, or its place passed.
    pub at: Time,
    /// Pieces that were concealed before it, and in its place.
    pub concealed: u64,
    /// For how long frames are held beyond what the fastest recent one took, as it is decided then.
    pub target: Duration,
}

/// What a loudspeaker plays next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// This frame.
    Frame(u64),
    /// What a decoder makes up.
    Concealment,
}

/// Why a frame is refused. It changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unheard {
    /// It has come before.
    #[error("frame {0} has come before")]
    Duplicate(u64),
    /// Its number is far from those that are played.
    #[error("frame {0} is far from those that are played")]
    Far(u64),
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    captured: Time,
    received: Time,
}

/// The jitter buffer and the loudspeaker of one stream. Call [`Self::play`] at [`Self::next_event`] until it returns `None`,
/// and fetch what became of frames with [`Self::take_sounded`].
#[derive(Debug)]
pub struct Hearing {
    delay: Delay,
    waiting: BTreeMap<u64, Frame>,
    /// What is to be played next, and when; `None` before the first frame.
    next: Option<(u64, Time)>,
    /// Number and capture time of one frame: those of all follow.
    base: (u64, Time),
    /// Pieces concealed since the last frame was played or given up.
    concealed: u64,
    /// Of these, pieces that stand for no frame yet: what was missing when the buffer was dry.
    owed: u64,
    /// How much longer frames are held than the arrivals ask for.
    extra: Duration,
    /// Whether the sender has ended: when nothing waits any more, nothing is missing.
    over: bool,
    sounded: VecDeque<Sounded>,
}

impl Hearing {
    /// Nothing has come yet. Of the policy, the buffer counts.
    pub fn new(policy: Policy) -> Self {
        Self {
            delay: Delay::new(policy),
            waiting: BTreeMap::new(),
            next: None,
            base: (0, Time::ZERO),
            concealed: 0,
            owed: 0,
            extra: Duration::ZERO,
            over: false,
            sounded: VecDeque::new(),
        }
    }

    /// A frame has come, captured at a time of its sender's clock. Numbers count pieces.
    ///
    /// # Errors
    /// [`Unheard`].
    pub fn on_frame(&mut self, now: Time, number: u64, captured: Time) -> Result<(), Unheard> {
        if let Some((next, _)) = self.next {
            if number.abs_diff(next) > GAP_MAX {
                return Err(Unheard::Far(number));
            }
            if number < next {
                return self.on_late(now, number, captured);
            }
        }
        if self.waiting.contains_key(&number) {
            return Err(Unheard::Duplicate(number));
        }
        let due = self.delay.on_frame(now, captured) + self.extra;
        self.waiting.insert(number, Frame { captured, received: now });
        if self.next.is_none() {
            self.base = (number, captured);
            self.next = Some((number, due.max(now) + AHEAD_FIRST));
            self.over = false;
        }
        if self.waiting.len() > WAITING_MAX {
            self.skip();
        }
        Ok(())
    }

    /// Its place has been passed.
    fn on_late(&mut self, now: Time, number: u64, captured: Time) -> Result<(), Unheard> {
        let mut missing = self.sounded.iter_mut();
        let missing = missing.find(|one| one.number == number && one.heard == Heard::Lost);
        let sounded = missing.ok_or(Unheard::Duplicate(number))?;
        (sounded.heard, sounded.received, sounded.captured) = (Heard::Late, Some(now), captured);
        self.delay.on_frame(now, captured);
        Ok(())
    }

    /// Holds frames so much longer than their arrivals ask for, from now on.
    pub fn hold(&mut self, extra: Duration) {
        self.extra = extra;
    }

    /// How much longer than their arrivals ask for frames are held.
    pub fn held(&self) -> Duration {
        self.extra
    }

    /// The sender has ended. What waits is played, and then the loudspeaker stops until another frame comes.
    pub fn end(&mut self) {
        self.over = true;
    }

    /// When the next piece is due; `None` before the first frame, and after [`Self::end`].
    pub fn next_event(&self) -> Option<Time> {
        self.next.map(|(_, at)| at)
    }

    /// What is played next, and when, if that is by `now`.
    pub fn play(&mut self, now: Time) -> Option<(Time, Piece)> {
        let (_, at) = self.next.filter(|(_, at)| *at <= now)?;
        if self.over && self.waiting.is_empty() {
            self.stop();
            return None;
        }
        let piece = self.decide(at);
        if let Some((_, next)) = &mut self.next {
            *next = at + PIECE;
        }
        Some((at, piece))
    }

    fn decide(&mut self, at: Time) -> Piece {
        while self.owed > 0 && self.is_missing() {
            self.give_up_owed(at);
        }
        if self.waiting.is_empty() {
            if self.owed == DRY_MAX {
                self.give_up_owed(at);
            }
            self.owed += 1;
            return self.conceal();
        }
        self.owed = 0;
        let due = self.due().unwrap_or(at);
        if due > at {
            return self.conceal();
        }
        if at.saturating_since(due) > AHEAD_MAX && self.waiting.len() > 1 {
            self.skip();
        }
        let Some((number, _)) = self.next else { return self.conceal() };
        let Some(frame) = self.waiting.remove(&number) else {
            let piece = self.conceal();
            self.give_up(at);
            return piece;
        };
        self.base = (number, frame.captured);
        self.sound(number, (Heard::Played, frame.captured, Some(frame.received)), at);
        Piece::Frame(number)
    }

    fn conceal(&mut self) -> Piece {
        self.concealed += 1;
        Piece::Concealment
    }

    /// When the next frame is due, whether it is there or not.
    fn due(&self) -> Option<Time> {
        let (number, _) = self.next?;
        Some(self.delay.due(self.captured(number))? + self.extra)
    }

    /// When a frame was captured, by when another one was.
    fn captured(&self, number: u64) -> Time {
        let (base, captured) = self.base;
        captured + PIECE * number.saturating_sub(base)
    }

    /// Whether the next frame is not there and a later one is.
    fn is_missing(&self) -> bool {
        let next = self.next.map(|(number, _)| number);
        self.waiting.first_key_value().is_some_and(|(first, _)| Some(*first) > next)
    }

    /// The next frame is not waited for any longer.
    fn give_up(&mut self, at: Time) {
        let Some((number, _)) = self.next else { return };
        self.sound(number, (Heard::Lost, self.captured(number), None), at);
    }

    /// Gives up the frame that the first of the owed pieces stood for; the next piece is played at `at`.
    fn give_up_owed(&mut self, at: Time) {
        let passed = at.saturating_sub(PIECE * self.owed);
        self.owed -= 1;
        // One piece each.
        let others = self.concealed.saturating_sub(1);
        self.concealed -= others;
        self.give_up(passed);
        self.concealed = others;
    }

    /// The loudspeaker stops. Frames whose places were passed so long ago that they count as lost are given up.
    fn stop(&mut self) {
        let Some((_, at)) = self.next else { return };
        while PIECE * self.owed >= LATE_MAX && (self.waiting.is_empty() || self.is_missing()) {
            self.give_up_owed(at);
        }
        (self.next, self.concealed, self.owed) = (None, 0, 0);
    }

    /// Leaves the next frame out, if it is there.
    fn skip(&mut self) {
        let Some((number, at)) = self.next else { return };
        match self.waiting.remove(&number) {
            Some(frame) => {
                self.sound(number, (Heard::Skipped, frame.captured, Some(frame.received)), at);
            }
            // One that is missing needs no place.
            None if self.is_missing() => self.give_up(at),
            None => {}
        }
    }

    /// That became of the next frame.
    fn sound(
        &mut self,
        number: u64,
        (heard, captured, received): (Heard, Time, Option<Time>),
        at: Time,
    ) {
        let concealed = std::mem::take(&mut self.concealed);
        let target = self.delay.buffer().unwrap_or(Duration::ZERO) + self.extra;
        self.sounded.push_back(Sounded {
            number,
            heard,
            captured,
            received,
            at,
            concealed,
            target,
        });
        if let Some((next, _)) = &mut self.next {
            *next = number + 1;
        }
    }

    /// What became of the next frame, in the order of frames. A missing one may still come for 2 s.
    pub fn take_sounded(&mut self, now: Time) -> Option<Sounded> {
        let settled = |one: &mut Sounded| one.heard != Heard::Lost || one.at + LATE_MAX <= now;
        self.sounded.pop_front_if(settled)
    }

    /// Ends it: what is missing is lost. What waits is neither played nor lost, and neither are frames that were missing
    /// for less than 2 s when the buffer was dry: they may be on their way.
    pub fn finish(&mut self) -> impl Iterator<Item = Sounded> {
        self.stop();
        self.waiting.clear();
        std::mem::take(&mut self.sounded).into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn hearing(policy: &str) -> Hearing {
        Hearing::new(toml::from_str(policy).unwrap())
    }

    /// Frames of 20 ms, each of which comes so many milliseconds after it was captured, or never; and what became of them.
    fn heard(hearing: &mut Hearing, transits: &[Option<u64>]) -> Vec<Sounded> {
        let mut arrivals: Vec<(u64, u64)> = (0..)
            .zip(transits)
            .filter_map(|(number, transit)| Some((number * 20 + (*transit)?, number)))
            .collect();
        arrivals.sort_unstable();
        let mut sounded = Vec::new();
        for (at, number) in arrivals {
            while hearing.play(ms(at)).is_some() {}
            hearing.on_frame(ms(at), number, ms(number * 20)).unwrap();
        }
        let end = ms(transits.len() as u64 * 20 + 500);
        while !hearing.waiting.is_empty() && hearing.play(end).is_some() {}
        while let Some(one) = hearing.take_sounded(end) {
            sounded.push(one);
        }
        sounded.extend(hearing.finish());
        sounded
    }

    fn counts(sounded: &[Sounded]) -> [u64; 5] {
        let of = |heard| sounded.iter().filter(|one| one.heard == heard).count() as u64;
        let concealed = sounded.iter().map(|one| one.concealed).sum();
        [of(Heard::Played), of(Heard::Lost), of(Heard::Late), of(Heard::Skipped), concealed]
    }

    #[test]
    fn without_jitter_every_frame_is_played_in_its_turn() {
        let sounded = heard(&mut hearing(""), &[Some(50); 100]);
        assert_eq!(counts(&sounded), [100, 0, 0, 0, 0]);
        // 10 ms after it came.
        assert!((0..).zip(&sounded).all(|(n, one)| one.at == ms(n * 20 + 60)));
    }

    #[test]
    fn what_is_lost_is_concealed_and_counted_as_often() {
        let mut transits = [Some(50); 200];
        for lost in [40, 41, 90, 91, 92, 150] {
            transits[lost] = None;
        }
        let sounded = heard(&mut hearing(""), &transits);
        assert_eq!(counts(&sounded), [194, 6, 0, 0, 6]);
        let lost = sounded.iter().filter(|one| one.heard == Heard::Lost);
        assert!(lost.clone().all(|one| one.concealed == 1), "{lost:?}");
        let last = sounded.last().unwrap();
        assert_eq!(
            (last.number, last.at),
            (199, ms(199 * 20 + 60)),
            "nothing is played later for it"
        );
    }

    #[test]
    fn a_buffer_that_runs_dry_plays_later_and_catches_up() {
        let mut transits = [Some(50); 400];
        // Five frames wait somewhere and come together, 100 ms late.
        for (n, late) in (100..105).zip([150, 130, 110, 90, 70]) {
            transits[n] = Some(late);
        }
        let sounded = heard(&mut hearing("percentile = 0.9"), &transits);
        let [played, lost, late, skipped, concealed] = counts(&sounded);
        assert_eq!((played + skipped, lost, late), (400, 0, 0));
        assert!(
            concealed >= 4 && skipped >= concealed - 1,
            "{concealed} concealed, {skipped} skipped"
        );
        let last = sounded.last().unwrap();
        assert!(
            last.at - last.captured <= Duration::from_millis(90),
            "{}",
            last.at - last.captured
        );
    }

    #[test]
    fn a_frame_whose_place_was_passed_is_late() {
        let mut transits = [Some(50); 100];
        transits[60] = Some(120);
        let sounded = heard(&mut hearing(""), &transits);
        let [played, lost, late, _, concealed] = counts(&sounded);
        assert_eq!((played, lost, late, concealed), (99, 0, 1, 1));
        assert_eq!(sounded[60].received, Some(ms(1320)));
    }

    /// Frames that all take 50 ms, from one number to before another, each played when it is due.
    fn play(hearing: &mut Hearing, numbers: std::ops::Range<u64>) {
        for number in numbers {
            let at = ms(number * 20 + 50);
            while hearing.play(at).is_some() {}
            hearing.on_frame(at, number, ms(number * 20)).unwrap();
        }
    }

    fn numbers(sounded: &[Sounded], heard: Heard) -> Vec<u64> {
        sounded.iter().filter(|one| one.heard == heard).map(|one| one.number).collect()
    }

    #[test]
    fn what_is_missing_when_the_buffer_is_dry_is_concealed_in_its_places() {
        let mut hearing = hearing("");
        play(&mut hearing, 0..100);
        play(&mut hearing, 350..400);
        while !hearing.waiting.is_empty() && hearing.play(ms(9000)).is_some() {}
        let sounded: Vec<Sounded> = hearing.finish().collect();
        assert_eq!(counts(&sounded), [150, 250, 0, 0, 250]);
        assert!((0..).zip(&sounded).all(|(n, one)| one.at == ms(n * 20 + 60)), "{sounded:?}");
        let lost = sounded.iter().filter(|one| one.heard == Heard::Lost);
        assert!(lost.clone().all(|one| one.concealed == 1));
    }

    #[test]
    fn what_is_missing_at_the_end_is_lost_unless_it_may_be_on_its_way() {
        let mut ended = hearing("");
        play(&mut ended, 0..100);
        // Of 300 pieces those of the last 2 s.
        let end = ms(99 * 20 + 60 + 300 * 20);
        while ended.play(end).is_some() {}
        let sounded: Vec<Sounded> = ended.finish().collect();
        assert_eq!(counts(&sounded), [100, 201, 0, 0, 201]);
        assert!((0..).zip(&sounded).all(|(n, one)| one.at == ms(n * 20 + 60)), "{sounded:?}");
    }

    #[test]
    fn nothing_is_missing_after_the_sender_has_ended() {
        let mut hearing = hearing("");
        play(&mut hearing, 0..100);
        hearing.end();
        while hearing.play(ms(60_000)).is_some() {}
        assert_eq!(hearing.next_event(), None);
        // Another one begins.
        play(&mut hearing, 7000..7010);
        while !hearing.waiting.is_empty() && hearing.play(ms(200_000)).is_some() {}
        let sounded: Vec<Sounded> = hearing.finish().collect();
        assert_eq!(counts(&sounded), [110, 0, 0, 0, 0]);
    }

    #[test]
    fn sound_goes_on_after_a_long_silence() {
        let mut hearing = hearing("");
        play(&mut hearing, 0..10);
        play(&mut hearing, 4000..4100);
        while !hearing.waiting.is_empty() && hearing.play(ms(90_000)).is_some() {}
        let sounded: Vec<Sounded> = hearing.finish().collect();
        assert_eq!(numbers(&sounded, Heard::Played), (0..10).chain(4000..4100).collect::<Vec<_>>());
        assert_eq!(numbers(&sounded, Heard::Lost), (10..4000).collect::<Vec<_>>());
    }

    #[test]
    fn the_buffer_follows_the_jitter() {
        // Up to 60 ms more than the fastest.
        let transits: Vec<_> = (0..500).map(|n| Some(50 + n * 37 % 60)).collect();
        let sounded = heard(&mut hearing(""), &transits);
        let [played, lost, ..] = counts(&sounded);
        assert!(lost == 0 && played > 480, "{:?}", counts(&sounded));
        let settled = &sounded[100..];
        let concealed: u64 = settled.iter().map(|one| one.concealed).sum();
        assert!(concealed <= 20, "{concealed} of 400");
        assert!(settled.iter().all(|one| one.target >= Duration::from_millis(40)));
    }

    #[test]
    fn a_fixed_buffer_holds_and_so_does_what_is_asked_for_in_addition() {
        let mut fixed = hearing("buffer = '100 ms'");
        let sounded = heard(&mut fixed, &[Some(50); 50]);
        assert!(sounded.iter().all(|one| one.at == one.captured + Duration::from_millis(160)));
        let mut held = hearing("");
        held.hold(Duration::from_millis(100));
        let sounded = heard(&mut held, &[Some(50); 50]);
        assert!(sounded.iter().all(|one| one.at == one.captured + Duration::from_millis(160)));
    }

    #[test]
    fn what_comes_twice_or_from_far_away_changes_nothing() {
        let mut hearing = hearing("");
        for number in 0..3 {
            hearing.on_frame(ms(50 + number * 20), number, ms(number * 20)).unwrap();
        }
        assert_eq!(hearing.on_frame(ms(91), 2, ms(40)), Err(Unheard::Duplicate(2)));
        assert_eq!(hearing.on_frame(ms(91), 1 << 40, ms(40)), Err(Unheard::Far(1 << 40)));
        while hearing.play(ms(100)).is_some() {}
        assert_eq!(hearing.on_frame(ms(100), 1, ms(20)), Err(Unheard::Duplicate(1)));
        let played: Vec<u64> = hearing.finish().map(|one| one.number).collect();
        assert_eq!(played, [0, 1, 2]);
    }

    proptest::proptest! {
        #[test]
        fn each_frame_has_one_fate_and_pieces_are_played_without_a_gap(
            transits in proptest::collection::vec(proptest::option::weighted(0.9, 0u64..400), 1..300),
        ) {
            let mut hearing = hearing("");
            let mut pieces = 0;
            let mut arrivals: Vec<(u64, u64)> = (0..).zip(&transits)
                .filter_map(|(number, transit)| Some((number * 20 + (*transit)?, number))).collect();
            arrivals.sort_unstable();
            let mut begun = None;
            for (at, number) in arrivals {
                while let Some((when, _)) = hearing.play(ms(at)) {
                    let first = *begun.get_or_insert(when);
                    proptest::prop_assert_eq!(when, first + PIECE * pieces);
                    pieces += 1;
                }
                hearing.on_frame(ms(at), number, ms(number * 20)).ok();
            }
            let sounded: Vec<Sounded> = hearing.finish().collect();
            for (one, next) in sounded.iter().zip(sounded.iter().skip(1)) {
                proptest::prop_assert_eq!(one.number + 1, next.number);
                proptest::prop_assert!(one.at <= next.at);
            }
            let played = sounded.iter().filter(|one| one.heard == Heard::Played).count() as u64;
            let concealed: u64 = sounded.iter().map(|one| one.concealed).sum();
            // Those that are concealed after the last frame belong to none yet.
            proptest::prop_assert!(played + concealed <= pieces);
        }
    }
}
