//! The clock of a live stream's author (`UTCTiming`), asked once, before anything is played. The player's own clock is
//! corrected by it where the two differ by more than is known.

use suiro_units::{Duration, Time};

use super::super::request::{Fetch, Fetched, Underway, What};
use super::super::track::TrackState;
use super::super::watch::Abandoned;
use super::Session;
use super::prepare::LATENCY_DRIFT;
use crate::iso8601;
use crate::presentation::{ClockSource, LiveStream, Resource, Segments};
use crate::url::Url;

/// How long playback waits for the clock. It begins with the player's own clock then.
const PATIENCE: Duration = Duration::from_secs(2);
/// The largest answer of a clock, in bytes.
const BYTES_MAX: u64 = 256;
/// The unit in which most clocks answer.
const RESOLUTION: Duration = Duration::from_millis(1);

/// What is known of the author's clock.
#[derive(Debug, Default)]
pub(super) struct AuthorsClock {
    /// Where to ask, if it is still to be asked.
    url: Option<Url>,
    in_flight: Option<Underway>,
    /// When playback begins without an answer.
    until: Option<Time>,
}

impl AuthorsClock {
    /// True if playback waits for it.
    pub fn is_awaited(&self) -> bool {
        self.until.is_some()
    }

    /// When playback no longer waits for it.
    pub fn due(&self) -> Option<Time> {
        self.until
    }

    pub fn in_flight(&self) -> Option<&Underway> {
        self.in_flight.as_ref()
    }

    pub fn in_flight_mut(&mut self) -> Option<&mut Underway> {
        self.in_flight.as_mut()
    }
}

/// By how many nanoseconds to set forward the wall clock whose epoch was at `epoch_unix_ns`. The author's clock showed
/// `author_ns` at some time between `requested` and `finished`. The result is 0 if the two agree as far as that can be
/// known.
fn offset(author_ns: u64, epoch_unix_ns: u64, requested: Time, finished: Time) -> i64 {
    let half = finished.saturating_since(requested) / 2;
    let own_ns = epoch_unix_ns.saturating_add((requested + half).as_nanos());
    let known = half + RESOLUTION;
    let offset = i128::from(author_ns) - i128::from(own_ns);
    let offset = i64::try_from(offset).unwrap_or(0);
    if offset.unsigned_abs() > known.as_nanos() { offset } else { 0 }
}

impl Session {
    /// By how many nanoseconds the player's clock is set forward for this answer: 0 if it is right as it is, `None` if this is
    /// not the answer of a clock, or not a believable one.
    pub(crate) fn clock_offset(&self, fetch: &Fetch, fetched: &Fetched) -> Option<i64> {
        let body = fetched.body.as_ref().ok().filter(|_| fetch.what == What::Clock)?;
        let author_ns = iso8601::parse_date_time(std::str::from_utf8(body).ok()?.trim())?;
        // A clock of before the stream began is wrong.
        let began = self.stream.as_ref().and_then(|s| s.live.as_ref()?.zero_unix_ns);
        if began.is_some_and(|began| author_ns < began || !self.is_near_the_edge(author_ns - began))
        {
            return None;
        }
        let sent = fetched.requested + fetched.handshake;
        Some(offset(author_ns, self.config.epoch_unix_ns, sent, fetched.finished))
    }

    /// Whether the segments that are listed end about where a clock says that the stream has come to. By a clock that lies, the
    /// player would wait for what is never listed.
    fn is_near_the_edge(&self, captured_ns: u64) -> bool {
        let tracks = self.stream.as_ref().and_then(|stream| stream.tracks.first());
        let listed = tracks.and_then(TrackState::lowest_segments).filter(|list| list.is_listed());
        let Some(last) = listed.and_then(Segments::last) else { return true };
        let most = LATENCY_DRIFT.max(last.duration * 3);
        last.end().as_nanos().abs_diff(captured_ns) <= most.as_nanos()
    }

    /// The first manifest of a live stream names a clock.
    pub(super) fn begin_clock(&mut self, live: &LiveStream, fetched: &Fetched) {
        match live.clock.as_deref() {
            Some(ClockSource::Ask(url)) => {
                self.clock.url = Some(url.clone());
                self.clock.until = Some(self.now + PATIENCE);
            }
            Some(ClockSource::Direct(author_ns)) => {
                let sent = fetched.requested + fetched.handshake;
                let epoch = self.config.epoch_unix_ns;
                self.set_clock(offset(*author_ns, epoch, sent, fetched.finished));
            }
            None => {}
        }
    }

    fn set_clock(&mut self, offset_ns: i64) {
        let epoch = &mut self.config.epoch_unix_ns;
        *epoch = epoch.saturating_add_signed(offset_ns);
    }

    /// The request for the author's clock, if it is still to be made.
    pub(super) fn poll_clock(&mut self) -> Option<Fetch> {
        if self.manifest.in_flight.is_some() || self.clock.in_flight.is_some() {
            return None;
        }
        let resource = Resource { url: self.clock.url.take()?, range: None };
        let fetch = Fetch {
            number: self.asked + 1,
            lane: 0,
            what: What::Clock,
            resource,
            attempt: 1,
            bytes_max: BYTES_MAX,
            keep_body: true,
            room: None,
            chunks: None,
            told: None,
            priority: None,
        };
        self.clock.in_flight = Some(Underway::new(fetch.clone()));
        Some(fetch)
    }

    /// The request for the author's clock that has taken too long.
    pub(super) fn give_up_clock(&mut self) -> Option<Abandoned> {
        if self.clock.until.is_none_or(|until| until > self.now) {
            return None;
        }
        let request = self.clock.in_flight.take();
        self.go_on_without_clock();
        let reason = format!("the clock did not answer within {PATIENCE}");
        Some(Abandoned { request: request?, reason })
    }

    fn go_on_without_clock(&mut self) {
        (self.clock.until, self.clock.url) = (None, None);
        self.prepare();
    }

    /// The author's clock has answered, or it has not.
    pub(super) fn on_clock(&mut self, fetch: &Fetch, fetched: &Fetched) {
        self.clock.in_flight = None;
        if let Some(offset_ns) = self.clock_offset(fetch, fetched) {
            self.set_clock(offset_ns);
        }
        self.go_on_without_clock();
        if self.manifest.due.is_some() {
            self.manifest.due = self.next_refresh(self.manifest.requested);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_agrees_as_far_as_is_known_is_kept() {
        let (epoch, ms) = (1_795_226_220_000_000_000, 1_000_000);
        let (requested, finished) = (Time::from_millis(1000), Time::from_millis(1040));
        let offset = |author_ms: i64| {
            let author_ns = epoch + u64::try_from(author_ms * ms).expect("after the epoch");
            offset(author_ns, epoch, requested, finished)
        };
        // Read at 1.020 s, give or take 20 ms and a unit.
        assert_eq!([offset(1020), offset(999), offset(1041)], [0, 0, 0]);
        assert_eq!([offset(1042), offset(998), offset(20)], [22 * ms, -22 * ms, -1000 * ms]);
    }
}
