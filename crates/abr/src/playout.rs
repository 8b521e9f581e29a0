//! The playout buffer and clock: what a viewer would see.
//!
//! A state machine that is handed the time. The player reports what media has arrived
//! ([`Playout::extend`]); the playout plays as soon as enough is there, stalls at the very
//! nanosecond the buffer runs dry, and resumes when enough is there again. [`Playout::next_event`]
//! returns when something will change by itself.
//!
//! A live playout keeps to a target latency. It plays a little faster when it is too far behind and a little slower when
//! it is too near, as ISO/IEC 23009-1 annex K (`Latency`, `PlaybackRate`) provides for. It asks to be moved
//! ([`Playout::wants_seek`]) when it is hopelessly behind. By default three speeds with hysteresis are used, not a curve,
//! so that every change has a computable time. The rules of dash.js and of LoL+ are curves, looked at every [`LOOK`]
//! ([`catch_up`]).
//!
//! Media time is a [`Duration`] since the presentation's zero; a playout plays one or more tracks
//! together, and the track that has least decides.

use suiro_units::{Duration, Time};

use crate::catch_up::{self, Live};

/// How often the speed is chosen anew where it follows a curve.
pub const LOOK: Duration = Duration::from_millis(100);
/// The most changes of state and speed until the buffer is dry: an hour of looks.
const CHANGES_MAX: u32 = 36_000;
/// Parts per million: the unit of playback speed.
const NORMAL_PPM: u64 = 1_000_000;

/// How a playout behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlayoutConfig {
    /// Media that must be buffered before the first frame.
    pub startup: Duration,
    /// Media that must be buffered before playback goes on after a stall.
    pub resume: Duration,
    /// The most media that may be buffered ahead of the playhead, for each track.
    pub capacity: Duration,
    /// For a live stream; `None` plays on demand, at normal speed.
    pub live: Option<Live>,
}

/// What a viewer sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing yet.
    Starting,
    /// Moving frames.
    Playing,
    /// A still frame, because the media is not there.
    Stalled,
    /// The end: all media has been played.
    Ended,
}

/// How long each state has lasted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Time before the first frame.
    pub starting: Duration,
    /// Time with moving frames.
    pub playing: Duration,
    /// Time of stalls.
    pub stalled: Duration,
    /// Time after the end.
    pub ended: Duration,
    /// Number of stalls.
    pub stalls: u64,
    /// Media that was jumped over by seeks, and at the start to begin at the target.
    pub skipped: Duration,
}

/// A stretch of time in which frames moved at one speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Motion {
    /// When it began.
    pub from: Time,
    /// When it ended.
    pub to: Time,
    /// The playhead when it began.
    pub start: Duration,
    /// The playhead when it ended; what begins there is not shown yet.
    pub end: Duration,
}

impl Motion {
    /// When the playhead came to `position`; one that lies outside is moved to the nearer end.
    pub fn time_of(&self, position: Duration) -> Time {
        let way = u128::from((self.end - self.start).as_nanos()).max(1);
        let done = position.clamp(self.start, self.end) - self.start;
        let span = u128::from(self.to.saturating_since(self.from).as_nanos());
        let ns = (u128::from(done.as_nanos()) * span).div_ceil(way);
        self.from + Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX / 4))
    }
}

/// Media arrived that the buffer has no room for, or of a track that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom;

impl std::fmt::Display for NoRoom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the playout buffer has no room for this segment")
    }
}

impl std::error::Error for NoRoom {}

/// The playout of one player.
#[derive(Debug, Clone)]
pub struct Playout {
    config: PlayoutConfig,
    state: State,
    /// Time and playhead when speed or state last changed; the playhead moves linearly from there.
    since: Time,
    from: Duration,
    speed_ppm: u64,
    now: Time,
    /// Where the media of each track ends.
    ends: Vec<Duration>,
    complete: bool,
    totals: Totals,
    /// When the speed is chosen next, where it follows a curve.
    due: Time,
}

impl Playout {
    /// A playout of `tracks` tracks (at least one) that begins with an empty buffer at media time
    /// `position`.
    pub fn new(config: PlayoutConfig, tracks: usize, position: Duration, now: Time) -> Self {
        Self {
            config,
            state: State::Starting,
            since: now,
            from: position,
            speed_ppm: NORMAL_PPM,
            now,
            ends: vec![position; tracks.max(1)],
            complete: false,
            totals: Totals::default(),
            due: now,
        }
    }

    /// What a viewer sees.
    pub fn state(&self) -> State {
        self.state
    }

    /// The playhead.
    pub fn position(&self) -> Duration {
        self.position_at(self.now)
    }

    /// Media ahead of the playhead, of the track that has least.
    pub fn buffer(&self) -> Duration {
        self.end().saturating_sub(self.position())
    }

    /// Media ahead of the playhead of one track.
    pub fn buffer_of(&self, track: usize) -> Duration {
        self.end_of(track).saturating_sub(self.position())
    }

    /// Where the media of one track ends.
    pub fn end_of(&self, track: usize) -> Duration {
        self.ends.get(track).copied().unwrap_or_default()
    }

    /// Playback speed: 1 is normal, 0 is a stall.
    pub fn speed(&self) -> f64 {
        if self.state == State::Playing { self.speed_ppm as f64 / NORMAL_PPM as f64 } else { 0.0 }
    }

    /// How long each state has lasted so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Live only: the age of the frame under the playhead, in nanoseconds; negative if it would
    /// be shown before its capture.
    pub fn latency_ns(&self) -> Option<i64> {
        self.config.live.map(|live| latency_ns(&live, self.now, self.position()))
    }

    /// Live only: the latency that it aims at.
    pub fn target_latency(&self) -> Option<Duration> {
        self.config.live.map(|live| live.target)
    }

    /// True if media that ends at `until` fits in the buffer of `track` now.
    pub fn fits(&self, track: usize, until: Duration) -> bool {
        track < self.ends.len() && until.saturating_sub(self.position()) <= self.config.capacity
    }

    /// When media that ends at `until` will fit; `None` if not before something else happens.
    pub fn time_of_room(&self, track: usize, until: Duration) -> Option<Time> {
        if self.fits(track, until) {
            return Some(self.now);
        }
        (track < self.ends.len() && self.state == State::Playing)
            .then(|| self.time_at(until.saturating_sub(self.config.capacity)))
            .flatten()
    }

    /// Moves on to `now`, through every change on the way. A time in the past changes nothing.
    pub fn advance(&mut self, now: Time) {
        self.follow(now, |_| {});
    }

    /// [`Playout::advance`], and passes each motion of the playhead up to then to `tell`, in order.
    pub fn follow(&mut self, now: Time, mut tell: impl FnMut(Motion)) {
        // Each change either is the last or leads to a state with fewer, except looks at a curve.
        for _ in 0..CHANGES_MAX {
            match self.next_change() {
                Some(at) if at <= now => self.move_to(at, &mut tell),
                _ => break,
            }
        }
        self.move_to(now, &mut tell);
    }

    /// Moves on to `at`, before which nothing changes.
    fn move_to(&mut self, at: Time, tell: &mut impl FnMut(Motion)) {
        let (from, start) = (self.now, self.position());
        self.account(at);
        let motion = Motion { from, to: self.now, start, end: self.position() };
        if motion.end > start {
            tell(motion);
        }
        self.settle();
    }

    /// Media of `track` has arrived, without a gap up to `until`.
    pub fn extend(&mut self, now: Time, track: usize, until: Duration) -> Result<(), NoRoom> {
        self.advance(now);
        if !self.fits(track, until) {
            return Err(NoRoom);
        }
        let end = &mut self.ends[track];
        *end = (*end).max(until);
        self.settle();
        Ok(())
    }

    /// No more media will come: what is there is played to its end.
    pub fn complete(&mut self, now: Time) {
        self.advance(now);
        self.complete = true;
        self.settle();
    }

    /// Moves the playhead to `position`, not backwards, and empties the buffer. Playing, that is a
    /// stall.
    pub fn seek(&mut self, now: Time, position: Duration) {
        self.advance(now);
        let target = position.max(self.position());
        self.totals.skipped += target - self.position();
        self.mark(target);
        self.ends.fill(target);
        self.complete = false;
        if matches!(self.state, State::Playing | State::Ended) {
            self.stall();
        }
    }

    /// Jumps over a hole in the media up to `position`, keeping what is buffered beyond it.
    pub fn skip(&mut self, now: Time, position: Duration) {
        self.advance(now);
        let target = position.max(self.position());
        self.totals.skipped += target - self.position();
        self.mark(target);
        for end in &mut self.ends {
            *end = (*end).max(target);
        }
        self.settle();
    }

    /// Live only: where to [`Playout::seek`] if the playhead is further behind than `latest`.
    pub fn wants_seek(&self) -> Option<Duration> {
        let live = self.config.live?;
        if matches!(self.state, State::Ended) || self.complete {
            return None;
        }
        let latency = latency_ns(&live, self.now, self.position());
        if latency <= live.latest.as_nanos_i64() {
            return None;
        }
        let forward = latency - live.target.as_nanos_i64();
        u64::try_from(forward).ok().map(|ns| self.position() + Duration::from_nanos(ns))
    }

    /// When something will change by itself: the buffer runs dry, the speed returns to normal, the
    /// latency passes `latest`. `None` if nothing will.
    pub fn next_event(&self) -> Option<Time> {
        [self.next_change(), self.time_of_lateness()].into_iter().flatten().min()
    }

    fn end(&self) -> Duration {
        self.ends.iter().copied().min().unwrap_or_default()
    }

    fn position_at(&self, now: Time) -> Duration {
        if self.state != State::Playing {
            return self.from;
        }
        let elapsed = u128::from(now.saturating_since(self.since).as_nanos());
        let moved = elapsed * u128::from(self.speed_ppm) / u128::from(NORMAL_PPM);
        let moved = Duration::from_nanos(u64::try_from(moved).unwrap_or(u64::MAX / 4));
        (self.from + moved).min(self.end().max(self.from))
    }

    /// When the playhead, playing on at this speed, will be at `position`.
    fn time_at(&self, position: Duration) -> Option<Time> {
        let way = u128::from(position.saturating_sub(self.from).as_nanos());
        let ns = (way * u128::from(NORMAL_PPM)).div_ceil(u128::from(self.speed_ppm));
        u64::try_from(ns).ok().map(|ns| self.since + Duration::from_nanos(ns))
    }

    /// The next change while playing: dry, or back to normal speed.
    fn next_change(&self) -> Option<Time> {
        if self.state != State::Playing {
            return None;
        }
        let dry = self.time_at(self.end());
        let normal =
            if self.follows_curve() { Some(self.due) } else { self.time_of_normal_speed() };
        let at = [dry, normal].into_iter().flatten().min();
        at.map(|at| at.max(self.now))
    }

    fn follows_curve(&self) -> bool {
        self.config.live.is_some_and(|live| live.catch_up.curve().is_some())
    }

    /// While the speed is not normal: when the latency will be the target, or the buffer too thin
    /// to go on faster.
    fn time_of_normal_speed(&self) -> Option<Time> {
        let live = self.config.live?;
        let difference_ppm = self.speed_ppm.abs_diff(NORMAL_PPM);
        if difference_ppm == 0 {
            return None;
        }
        let off =
            latency_ns(&live, self.since, self.from).saturating_sub(live.target.as_nanos_i64());
        let way = off.unsigned_abs();
        let ns = (u128::from(way) * u128::from(NORMAL_PPM)).div_ceil(u128::from(difference_ppm));
        // What is centuries away does not come.
        let reached = i64::try_from(ns).ok().map(|ns| self.since + Duration::from_nanos(ns as u64));
        let thin = (self.speed_ppm > NORMAL_PPM)
            .then(|| self.time_at(self.end().saturating_sub(self.thin())))
            .flatten();
        [reached, thin].into_iter().flatten().min()
    }

    /// Up to this much buffer, playback in steps does not hurry: at low latency a part that is late would be a stall.
    fn thin(&self) -> Duration {
        let least = self.config.live.as_ref().map(catch_up::least_buffer).unwrap_or_default();
        least.max(self.config.resume / 2)
    }

    /// When the latency will pass `latest`; only while it grows.
    fn time_of_lateness(&self) -> Option<Time> {
        let live = self.config.live?;
        if self.complete || !matches!(self.state, State::Stalled | State::Starting) {
            return None;
        }
        let latency = latency_ns(&live, self.now, self.position());
        let left = live.latest.as_nanos_i64().saturating_sub(latency);
        u64::try_from(left).ok().map(|ns| self.now + Duration::from_nanos(ns + 1))
    }

    /// Adds the time from `self.now` to `now` to the state that lasted.
    fn account(&mut self, now: Time) {
        let span = now.saturating_since(self.now);
        match self.state {
            State::Starting => self.totals.starting += span,
            State::Playing => self.totals.playing += span,
            State::Stalled => self.totals.stalled += span,
            State::Ended => self.totals.ended += span,
        }
        self.now = self.now.max(now);
    }

    /// Makes here and now the point from which the playhead moves.
    fn mark(&mut self, position: Duration) {
        self.from = position;
        self.since = self.now;
    }

    fn stall(&mut self) {
        self.mark(self.position());
        self.state = State::Stalled;
        self.totals.stalls += 1;
    }

    /// Puts state and speed in accord with the buffer.
    fn settle(&mut self) {
        match self.state {
            State::Starting => self.begin_with(self.config.startup),
            State::Stalled => self.begin_with(self.config.resume),
            State::Playing if self.buffer().is_zero() && self.complete => {
                self.mark(self.position());
                self.state = State::Ended;
            }
            State::Playing if self.buffer().is_zero() => self.stall(),
            State::Playing => self.set_speed(),
            State::Ended => {}
        }
    }

    fn begin_with(&mut self, needed: Duration) {
        let buffer = self.buffer();
        if buffer.is_zero() && self.complete {
            self.state = State::Ended;
        } else if !buffer.is_zero() && (buffer >= needed || self.complete) {
            let position = self.join(needed);
            self.totals.skipped += position - self.from;
            self.mark(position);
            self.state = State::Playing;
            self.speed_ppm = NORMAL_PPM;
            self.due = self.now;
            self.set_speed();
        }
    }

    /// Where playback goes on, with `needed` media in the buffer at least.
    fn join(&self, needed: Duration) -> Duration {
        let live = self.config.live.filter(|live| live.join_at_target);
        let Some(live) = live.filter(|_| self.state == State::Starting) else { return self.from };
        let late =
            latency_ns(&live, self.now, self.from).saturating_sub(live.target.as_nanos_i64());
        let wanted = self.from + Duration::from_nanos(u64::try_from(late).unwrap_or(0));
        // What is shown first must be there.
        let kept = needed.max(Duration::from_nanos(1));
        wanted.min(self.end().saturating_sub(kept)).max(self.from)
    }

    /// Chooses the speed by how far the latency is from its target.
    fn set_speed(&mut self) {
        let Some(live) = self.config.live else { return };
        let latency_ns = latency_ns(&live, self.now, self.position());
        if let Some(curve) = live.catch_up.curve() {
            if self.now >= self.due {
                self.due = self.now + LOOK;
                let ppm = |of: f64| (of * NORMAL_PPM as f64) as u64;
                let speed_ppm = ppm(curve(&live, latency_ns, self.buffer()));
                let least_ppm = ppm(catch_up::least_change(&live));
                let is_same = speed_ppm.abs_diff(self.speed_ppm) < least_ppm;
                self.change_speed(if is_same && speed_ppm != NORMAL_PPM {
                    self.speed_ppm
                } else {
                    speed_ppm
                });
            }
            return;
        }
        let off = latency_ns.saturating_sub(live.target.as_nanos_i64());
        let tolerance = live.tolerance.as_nanos_i64();
        let change_ppm = (live.speed_change.clamp(0.0, 0.5) * NORMAL_PPM as f64) as u64;
        let (fast, slow) = (NORMAL_PPM + change_ppm, NORMAL_PPM - change_ppm);
        let thin = self.buffer() <= self.thin();
        let speed_ppm = if self.speed_ppm > NORMAL_PPM && off > 0 && !thin {
            fast
        } else if self.speed_ppm < NORMAL_PPM && off < 0 {
            slow
        } else if off > tolerance && self.buffer() >= self.config.resume && !thin {
            fast
        } else if off < -tolerance {
            slow
        } else {
            NORMAL_PPM
        };
        self.change_speed(speed_ppm);
    }

    fn change_speed(&mut self, speed_ppm: u64) {
        if speed_ppm != self.speed_ppm {
            self.mark(self.position());
            self.speed_ppm = speed_ppm;
        }
    }
}

/// The age at `now` of what was captured at media time `position`.
fn latency_ns(live: &Live, now: Time, position: Duration) -> i64 {
    now.as_nanos_i64().saturating_sub(live.zero_ns).saturating_sub(position.as_nanos_i64())
}
