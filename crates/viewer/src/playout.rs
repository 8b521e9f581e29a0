//! The viewer: holds frames until their time, and says what became of each.

use std::collections::{BTreeMap, VecDeque};

use suiro_units::{Duration, Time};

use crate::delay::Delay;
use crate::frame::{Fate, Frame, GAP_MAX, Outcome, Parts, Refused};
use crate::policy::{BUFFER, Late, Loss, Policy};

/// Most frames held. Of more, the first is decided before its time.
pub const HELD_MAX: usize = 4096;

/// How many decoded frames others may refer to: twice what H.264 allows (ITU-T H.264 §A.3.1).
const REFERENCES_MAX: usize = 32;

/// A viewer's playout of real-time video.
///
/// A frame's display time is fixed when it is received ([`crate::Delay`]). Then, if it can be
/// decoded, it is shown; what comes before it and was not shown is given up. A frame that does not have its
/// reference is waited for, for as long as the policy says or until a later one can be shown. Then,
/// after [`Loss::Show`], it is decoded without; after [`Loss::Freeze`] it is given up.
///
/// Times never decrease: an arrival before something that was already done counts as then. What
/// happens depends on arrivals alone, not on when or how often the playout is polled. At equal times
/// its own doings come before an arrival.
///
/// A caller that lets frames arrive without polling lets outcomes pile up: poll after each.
#[derive(Debug, Clone)]
pub struct Playout {
    policy: Policy,
    delay: Delay,
    /// What has arrived and is not decided.
    held: BTreeMap<u64, Held>,
    /// All before it are decided; `None` while nothing is.
    next: Option<u64>,
    /// The last frames that were decoded.
    decoded: VecDeque<Decoded>,
    displayed: Option<Time>,
    broken_since: Option<Time>,
    now: Time,
    /// What the caller has not yet fetched.
    outcomes: VecDeque<Outcome>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    captured: Time,
    received: Time,
    due: Time,
    references: Option<u64>,
    parts: Parts,
}

#[derive(Debug, Clone, Copy)]
struct Decoded {
    number: u64,
    damaged: bool,
}

/// A held frame that can be decoded now, with what is held.
#[derive(Debug, Clone, Copy)]
struct Ready {
    number: u64,
    /// When the last part came that it needs.
    ready: Time,
    due: Time,
    /// Until when parts of it, or of what it refers to, are waited for.
    waits: Time,
    damaged: bool,
}

impl Ready {
    fn shown_from(&self) -> Time {
        self.due.max(self.waits)
    }
}

/// What the playout does next.
#[derive(Debug, Clone, Copy)]
enum Step {
    Show(u64),
    /// Decode this one, without showing it.
    Skip(u64),
    /// Give up the first one held.
    GiveUp(u64),
}

impl Playout {
    /// A viewer that has seen nothing. The policy must be valid ([`Policy::validate`]).
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            delay: Delay::new(policy),
            held: BTreeMap::new(),
            next: None,
            decoded: VecDeque::new(),
            displayed: None,
            broken_since: None,
            now: Time::ZERO,
            outcomes: VecDeque::new(),
        }
    }

    /// A frame arrives, whole or with parts that will not come any more.
    ///
    /// # Errors
    /// [`Refused`]: it changes nothing.
    pub fn on_frame(&mut self, now: Time, frame: Frame) -> Result<(), Refused> {
        self.advance(now);
        self.check(&frame)?;
        self.now = self.now.max(now);
        if self.held.len() == HELD_MAX {
            self.make_room();
        }
        let Frame { number, captured, references, parts } = frame;
        let received = self.now;
        let due = if parts == Parts::All {
            self.delay.on_frame(received, captured)
        } else {
            self.due(received, captured).unwrap_or(received)
        };
        self.held.insert(number, Held { captured, received, due, references, parts });
        Ok(())
    }

    /// When a frame is due that was captured then and comes from now on; `None` before the first whole one.
    pub fn due(&self, now: Time, captured: Time) -> Option<Time> {
        // Whatever its capture time, it is not held for longer than a whole one may be.
        Some(self.delay.due(captured)?.min(now + *BUFFER.most()))
    }

    /// When to poll next; `None`: nothing happens without another arrival.
    pub fn next_event(&self) -> Option<Time> {
        match self.outcomes.front() {
            Some(outcome) => Some(outcome.at),
            None => self.step().map(|(at, _)| at),
        }
    }

    /// The next outcome up to `now`, in order of frames and of time; call until `None`.
    pub fn poll(&mut self, now: Time) -> Option<Outcome> {
        if self.outcomes.is_empty() {
            self.advance(now);
        }
        self.outcomes.pop_front_if(|outcome| outcome.at <= now)
    }

    /// Ends the viewing at `now`: what is due by then comes first, then an outcome for everything
    /// still held. Fetch it all with [`Self::poll`].
    pub fn finish(&mut self, now: Time) {
        self.advance(now);
        self.now = self.now.max(now);
        if let Some(&last) = self.held.keys().next_back() {
            self.decide(last, None);
        }
    }

    /// Since when frames could not be decoded, or not without damage, because one that others need was
    /// given up; `None` while all is well. The endpoint may ask its sender for a key frame (RFC 4585 §6.3.1).
    pub fn broken_since(&self) -> Option<Time> {
        self.broken_since
    }

    /// The buffer now: how much longer frames take to the screen than the fastest recent frame took
    /// to the viewer; `None` before the first.
    pub fn buffer(&self) -> Option<Duration> {
        self.delay.buffer()
    }

    fn check(&self, frame: &Frame) -> Result<(), Refused> {
        let number = frame.number;
        if let Some(references) = frame.references.filter(|&other| other >= number) {
            return Err(Refused::Reference { number, references });
        }
        if self.held.contains_key(&number) {
            return Err(Refused::Duplicate(number));
        }
        match self.first() {
            Some(_) if self.next.is_some_and(|next| number < next) => Err(Refused::TooLate(number)),
            Some(expected) if number.abs_diff(expected) > GAP_MAX => {
                Err(Refused::FarAway { number, expected })
            }
            _ => Ok(()),
        }
    }

    /// The first number that is not decided; before any is, the first that is held.
    fn first(&self) -> Option<u64> {
        self.next.or_else(|| self.held.keys().next().copied())
    }

    /// Does everything that is due by `now`, in order of time.
    fn advance(&mut self, now: Time) {
        while let Some((at, step)) = self.step().filter(|&(at, _)| at <= now) {
            self.now = at;
            match step {
                Step::Show(number) => self.decide(number, Some(number)),
                Step::Skip(number) | Step::GiveUp(number) => self.decide(number, None),
            }
        }
    }

    /// What to do next, and when.
    fn step(&self) -> Option<(Time, Step)> {
        let ready = self.ready();
        let show = self.show(&ready);
        let give_up = self.give_up(&ready);
        let earliest = match (show, give_up) {
            (Some(show), Some(give_up)) if give_up.0 < show.0 => Some(give_up),
            (show, give_up) => show.or(give_up),
        };
        earliest.map(|(at, step)| (at.max(self.now), step))
    }

    /// What is held and can be decoded, in order.
    fn ready(&self) -> Vec<Ready> {
        let mut found: Vec<Ready> = Vec::with_capacity(self.held.len());
        for (&number, held) in &self.held {
            let conceals = self.policy.loss == Loss::Show;
            let usable = held.parts == Parts::All || held.parts == Parts::Some && conceals;
            let Some(base) = self.base(held, &found).filter(|_| usable) else { continue };
            found.push(Ready {
                number,
                ready: base.ready.max(held.received),
                due: held.due,
                waits: base.waits,
                damaged: base.damaged || held.parts != Parts::All,
            });
        }
        found
    }

    /// What a held frame is decoded from, as far as it concerns that frame; `found` can be decoded
    /// before it. `None`: there is nothing to decode it from.
    fn base(&self, held: &Held, found: &[Ready]) -> Option<Ready> {
        let zero = Time::ZERO;
        let sound = Ready { number: 0, ready: zero, due: zero, waits: zero, damaged: false };
        let Some(other) = held.references else { return Some(sound) };
        if let Some(decoded) = self.decoded.iter().find(|decoded| decoded.number == other) {
            return Some(Ready { damaged: decoded.damaged, ..sound });
        }
        if let Ok(place) = found.binary_search_by_key(&other, |ready| ready.number) {
            return Some(found[place]);
        }
        // A decoder that has a frame takes that in place of the one that is missing.
        let nothing = self.decoded.is_empty() && found.is_empty();
        if self.policy.loss == Loss::Freeze || nothing {
            return None;
        }
        let hopeless = self.next.is_some_and(|next| other < next);
        let wait = if hopeless { Duration::ZERO } else { self.policy.wait };
        let waits = held.due.max(held.received) + wait;
        Some(Ready { waits, damaged: true, ..sound })
    }

    /// The next frame to be shown or skipped: the newest, when any may be shown.
    fn show(&self, ready: &[Ready]) -> Option<(Time, Step)> {
        let first = ready.iter().map(Ready::shown_from).min()?;
        let spacing = Duration::from_secs(1) / u64::from(self.policy.screen.max(1));
        let at = self.displayed.map_or(first, |last| first.max(last + spacing)).max(self.now);
        let mut candidates = ready.iter().rev().filter(|frame| frame.shown_from() <= at);
        let newest = *candidates.clone().next()?;
        let shown = match self.policy.late {
            Late::Show => Some(newest),
            Late::Skip => candidates.find(|frame| frame.ready <= frame.due).copied(),
        };
        Some((at, shown.map_or(Step::Skip(newest.number), |frame| Step::Show(frame.number))))
    }

    /// When the first one held is given up, if it cannot be decoded.
    fn give_up(&self, ready: &[Ready]) -> Option<(Time, Step)> {
        let (&number, held) = self.held.first_key_value()?;
        if ready.first().is_some_and(|ready| ready.number == number) {
            return None;
        }
        let decided = |other| self.next.is_some_and(|next| other < next);
        let hopeless = held.parts != Parts::All || held.references.is_some_and(decided);
        let at = if hopeless && self.first() == Some(number) {
            held.received
        } else if hopeless {
            held.due.max(held.received)
        } else {
            held.due.max(held.received) + self.policy.wait
        };
        Some((at, Step::GiveUp(number)))
    }

    /// There is no room for more: the first one held is decided now.
    fn make_room(&mut self) {
        if let Some((&first, _)) = self.held.first_key_value() {
            self.decide(first, None);
        }
    }

    /// Decides everything up to and with `last`; of these, one may be shown.
    fn decide(&mut self, last: u64, shown: Option<u64>) {
        let Some(first) = self.first() else { return };
        let ready = self.ready();
        for number in first..=last {
            let held = self.held.remove(&number);
            let decodable = ready.binary_search_by_key(&number, |ready| ready.number).ok();
            let damaged = decodable.is_some_and(|place| ready[place].damaged);
            let fate = match held {
                None => Fate::Missing,
                Some(_) if shown == Some(number) => Fate::Displayed,
                Some(_) if decodable.is_some() => Fate::Skipped,
                Some(_) => Fate::Undecodable,
            };
            self.remember(Decoded { number, damaged }, fate);
            self.outcomes.push_back(Outcome {
                frame: number,
                captured: held.map(|held| held.captured),
                received: held.map(|held| held.received),
                fate,
                at: self.now,
                damaged,
            });
        }
        self.next = last.checked_add(1).or(self.next);
    }

    fn remember(&mut self, decoded: Decoded, fate: Fate) {
        match fate {
            Fate::Displayed | Fate::Skipped => {
                let broken = decoded.damaged.then(|| self.broken_since.unwrap_or(self.now));
                self.broken_since = broken;
                self.decoded.push_back(decoded);
                if self.decoded.len() > REFERENCES_MAX {
                    self.decoded.pop_front();
                }
            }
            Fate::Undecodable => self.broken_since = self.broken_since.or(Some(self.now)),
            Fate::Missing => {}
        }
        if fate == Fate::Displayed {
            self.displayed = Some(self.now);
        }
    }
}
