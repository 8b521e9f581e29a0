//! One track of a session: which segment comes next, of which rung, and what is needed first.

mod ahead;
mod gap;
mod low_latency;
mod tries;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use suiro_abr::{Controller, Playout};
use suiro_media::mp4;
use suiro_scenario::Download;
use suiro_units::{BitRate, Duration, Time};

use super::parts::{Inits, Received, Reloads};
use super::request::{AHEAD, Fetch, RELOADS, Underway, What};
use super::watch::{Abandoned, Watch};
use crate::presentation::{
    MediaPlaylist, Parts, Resource, Segment, Segments, Source, Track, TrackKind,
};
use crate::url::Url;
pub(crate) use ahead::Ahead;
use gap::is_beyond;
use tries::{Failed, Refused, Trouble};

/// What a track may look at when it decides.
pub(crate) struct Situation<'a> {
    pub now: Time,
    /// Live: the media time that is captured now.
    pub captured: Option<Duration>,
    pub live: bool,
    /// `None` while the session does not know what it plays.
    pub playout: Option<&'a Playout>,
    pub download: Download,
}

/// What a track does next.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing until something happens.
    Idle,
    /// Nothing until then.
    Wait(Time),
    /// The playhead stands before a hole that ends there.
    Skip(Duration),
    /// A request.
    Fetch(Box<(What, Resource)>),
}

#[derive(Debug)]
struct RungState {
    rate: BitRate,
    segments: Option<Segments>,
    /// The parts of a low-latency playlist.
    parts: Option<Parts>,
    playlist: Option<PlaylistState>,
}

/// The playlist of an HLS rung.
#[derive(Debug)]
struct PlaylistState {
    url: Url,
    /// When it may be fetched again (RFC 8216 §6.3.4).
    again: Time,
    /// When it was last asked for with success.
    fetched: Time,
    ended: bool,
    /// Whether it did not come when it was last asked for. Then a gap is no reason to ask for it.
    missing: bool,
}

#[derive(Debug)]
pub(crate) struct TrackState {
    pub index: usize,
    pub kind: TrackKind,
    rungs: Vec<RungState>,
    /// Chooses rungs; `None` for a track that keeps to its lowest.
    pub controller: Option<Controller>,
    /// The rung of the next segment, once chosen.
    pub choice: Option<usize>,
    /// The rung of the part or segment behind the one under way, once chosen.
    pub(crate) following: Option<usize>,
    /// The rung of the last one.
    current: usize,
    /// Media time at which the next segment begins.
    next: Duration,
    /// If `next` need not be where a segment begins: when playback was begun or moved there, at low latency.
    anywhere: Option<Time>,
    inits: Inits,
    /// What of the segment under way has come.
    received: Received,
    pub in_flight: Option<Underway>,
    /// Since when that is under way: what was asked for ahead had to wait for its turn.
    pub since: Time,
    /// What follows the part or segment under way, if that is asked for, too.
    ahead: Option<Ahead>,
    /// The request for the next version of the playlist, which the server holds.
    pub reload: Option<Underway>,
    reloads: Reloads,
    /// Requests of before a seek, and those whose part does not follow what has come, to be cancelled.
    passed: Vec<Abandoned>,
    /// Of a track that chooses rungs: what has been seen of the request under way.
    pub watch: Watch,
    not_before: Time,
    failed: Failed,
    /// Whether the part under way was hinted at, and not listed, when it was asked for.
    hinted: bool,
    /// The part that was hinted at and turned out not to be there, until another comes.
    refused: Option<Refused>,
    skipped: u32,
    /// Why no media comes, if it was asked for and did not come.
    trouble: Option<Trouble>,
    /// True if everything has been fetched.
    pub complete: bool,
    /// True if the manifest will list no more.
    ended: bool,
    pub generation: u64,
    /// Which rung begins where, for what is buffered.
    marks: VecDeque<(Duration, BitRate)>,
}

/// The number that the first segment of a new list has in the old one, or would have after it.
fn continued(old: Option<&Segments>, new: &Segments) -> Option<u64> {
    let (old, first) = (old?, new.first()?);
    match old.at(first.start + first.duration / 2) {
        Some(same) => Some(same.number),
        None => {
            let last = old.last()?;
            let missed = first.start.saturating_sub(last.end()) / first.duration;
            Some(last.number.saturating_add(1).saturating_add(missed.round() as u64))
        }
    }
}

/// What the list of a rung says about the next segment.
enum Next {
    /// The list has not been fetched.
    Unknown,
    Found(Segment),
    /// Not listed yet.
    Later,
    /// There will be none.
    End,
}

impl TrackState {
    /// With `kept`, an initialisation segment that was fetched is not fetched again.
    pub(crate) fn new(index: usize, track: Track, kept: bool) -> Self {
        let rungs = track.rungs.into_iter().map(|rung| match rung.source {
            Source::Segments(segments) => {
                RungState { rate: rung.rate, segments: Some(segments), parts: None, playlist: None }
            }
            Source::Playlist(url) => RungState {
                rate: rung.rate,
                segments: None,
                parts: None,
                playlist: Some(PlaylistState {
                    url,
                    again: Time::ZERO,
                    fetched: Time::ZERO,
                    ended: false,
                    missing: false,
                }),
            },
        });
        Self {
            index,
            kind: track.kind,
            rungs: rungs.collect(),
            controller: None,
            choice: None,
            following: None,
            current: 0,
            next: Duration::ZERO,
            anywhere: None,
            inits: Inits::new(kept),
            received: Received::default(),
            in_flight: None,
            since: Time::ZERO,
            ahead: None,
            reload: None,
            reloads: Reloads::default(),
            passed: Vec::new(),
            watch: Watch::default(),
            not_before: Time::ZERO,
            failed: Failed::default(),
            hinted: false,
            refused: None,
            skipped: 0,
            trouble: None,
            complete: false,
            ended: false,
            generation: 0,
            marks: VecDeque::new(),
        }
    }

    pub(crate) fn rates(&self) -> Vec<BitRate> {
        self.rungs.iter().map(|rung| rung.rate).collect()
    }

    pub(crate) fn lowest_segments(&self) -> Option<&Segments> {
        self.rungs.first()?.segments.as_ref()
    }

    /// Where the segment ends that a manifest would list next; `None` if it follows from a rule.
    pub(crate) fn next_listed(&self) -> Option<Duration> {
        let segments = self.lowest_segments().filter(|segments| segments.is_listed())?;
        segments.last().map(|last| last.end() + last.duration)
    }

    /// The bit rate of what is played at `position`; forgets what lies before.
    pub(crate) fn rate_at(&mut self, position: Duration) -> Option<BitRate> {
        while self.marks.get(1).is_some_and(|(start, _)| *start <= position) {
            self.marks.pop_front();
        }
        self.marks.front().map(|(_, rate)| *rate)
    }

    pub(crate) fn begin(&mut self, position: Duration) {
        self.next = position;
        self.anywhere = self.is_low_latency().then_some(Time::ZERO);
    }

    pub(crate) fn begin_request(&mut self, now: Time, fetch: &Fetch) {
        if (RELOADS..AHEAD).contains(&fetch.lane) {
            self.reloads.begin(now);
            self.reload = Some(Underway::new(fetch.clone()));
            return;
        }
        let (request, hinted) = (Underway::new(fetch.clone()), self.is_hint(&fetch.what));
        if self.in_flight.is_some() {
            self.ahead = Some(Ahead::new(request, hinted));
        } else {
            self.put_under_way(now, request, hinted);
        }
    }

    fn put_under_way(&mut self, now: Time, request: Underway, hinted: bool) {
        (self.received, self.following, self.hinted) = (Received::default(), None, hinted);
        if self.controller.is_some() && self.is_replaceable(&request.fetch.what) {
            self.watch.begin(now, &request.fetch.what);
        }
        (self.in_flight, self.since) = (Some(request), now);
    }

    pub(crate) fn end_request(&mut self) {
        self.in_flight = None;
        self.watch.end();
    }

    /// Notes which rung begins where: after what was `buffered` before, also of a segment that was given up.
    pub(crate) fn mark(&mut self, rate: BitRate, media: Range<Duration>, buffered: Duration) {
        let start = media.start.max(buffered);
        if start < media.end && self.marks.back().is_none_or(|(_, last)| *last != rate) {
            self.marks.push_back((start, rate));
        }
    }

    /// Gives up the request under way if it is too slow: then the same segment of a lower rung comes next.
    pub(crate) fn abandon(&mut self, now: Time, playout: &Playout) -> Option<Abandoned> {
        let seen = (playout.buffer_of(self.index), &self.received, self.is_low_latency());
        let (request, controller) = (self.in_flight.as_ref()?, self.controller.as_mut()?);
        let (rung, reason) = self.watch.look(now, request, controller, seen)?;
        self.choice = Some(rung);
        let request = self.in_flight.take()?;
        self.drop_ahead(ahead::NOT_COME);
        Some(Abandoned { request, reason })
    }

    pub(crate) fn seek(&mut self, position: Duration) {
        self.next = position;
        self.choice = None;
        // Another segment, but the same playlist of the same origin: it is no less dead.
        self.failed.next_segment();
        if self.failed.playlist == 0 {
            self.not_before = Time::ZERO;
        }
        self.complete = false;
        self.generation += 1;
        self.marks.clear();
        if let Some(controller) = &mut self.controller {
            controller.on_seek();
        }
    }

    pub(crate) fn on_init(&mut self, resource: &Resource, body: &[u8]) {
        self.failed.init = 0;
        // What cannot be read here is played as a whole: a player of ours does not decode.
        let parsed = mp4::init(body).ok().map(Arc::new).filter(|_| self.is_low_latency());
        self.inits.add(resource.clone(), parsed);
    }

    /// Where a segment ends that has come: by its chunks, else by the manifest.
    pub(crate) fn end_of(&self, segment: &Segment) -> Duration {
        self.received.end.unwrap_or(segment.end())
    }

    /// A segment has been appended; returns its rung.
    pub(crate) fn on_segment(&mut self, segment: &Segment) -> usize {
        let current = self.choice.take().unwrap_or(self.current);
        self.current = current;
        // A part that was hinted at has the length of its chunks; segments of DASH are counted by the manifest's.
        let in_parts = self.rungs[current].parts.is_some();
        self.next = if in_parts { self.end_of(segment) } else { segment.end() };
        self.choice = self.following.take();
        self.anywhere = None;
        self.failed = Failed::default();
        self.refused = None;
        self.skipped = 0;
        current
    }

    /// A fresh list of a live DASH stream.
    pub(crate) fn update(&mut self, track: &Track, ended: bool) -> Result<(), String> {
        let same = track.rungs.iter().map(|r| r.rate).eq(self.rungs.iter().map(|r| r.rate));
        if !same {
            return Err(format!("the rungs of the {} track changed", self.kind.name()));
        }
        for (rung, new) in self.rungs.iter_mut().zip(&track.rungs) {
            if let Source::Segments(segments) = &new.source {
                let mut segments = segments.clone();
                if let Some(number) = continued(rung.segments.as_ref(), &segments) {
                    segments.renumber(number);
                }
                rung.segments = Some(segments);
            }
        }
        self.ended = ended;
        Ok(())
    }

    /// A fresh playlist of an HLS rung. It is placed by its date; without dates, by the numbers of
    /// its segments.
    pub(crate) fn on_playlist(
        &mut self,
        rung: usize,
        playlist: &MediaPlaylist,
        zero_unix_ns: Option<u64>,
        requested: Time,
    ) {
        self.failed.playlist = 0;
        let start_ns = match (playlist.date_unix_ns, zero_unix_ns) {
            (Some(date), Some(zero)) => i64::try_from(i128::from(date) - i128::from(zero)).ok(),
            _ if playlist.ended && self.rungs.iter().all(|r| r.segments.is_none()) => Some(0),
            _ => self.place_by_number(rung, playlist),
        };
        let segments = playlist.segments_from(start_ns.unwrap_or(0));
        let parts = playlist.parts.as_ref().map(|parts| parts.placed_at(start_ns.unwrap_or(0)));
        let state = &mut self.rungs[rung];
        let before = state.parts.as_ref().and_then(Parts::edge);
        self.reloads.came(requested, before, parts.as_ref());
        let numbers = |s: &Segments| s.last().map(|last| last.number);
        let changed = state.segments.as_ref().is_none_or(|old| numbers(old) != numbers(&segments));
        let target = parts.as_ref().map_or(playlist.target, |parts| parts.target);
        (state.segments, state.parts) = (Some(segments), parts);
        if let Some(known) = &mut state.playlist {
            // §6.3.4: after a target duration, or half of it if nothing was new.
            let wait = if changed { target } else { target / 2 };
            // A version that the server held was asked for before others that have come.
            (known.again, known.fetched) = (requested + wait, known.fetched.max(requested));
            (known.ended, known.missing) = (playlist.ended, false);
        }
    }

    /// Media time of where a playlist begins, in nanoseconds, from a list of this track in which the number of its first
    /// segment occurs or that ends before it.
    fn place_by_number(&self, rung: usize, playlist: &MediaPlaylist) -> Option<i64> {
        let first = playlist.segments.first()?;
        let own = self.rungs[rung].segments.as_ref();
        let known = own.or_else(|| self.rungs.iter().find_map(|r| r.segments.as_ref()))?;
        let start = match known.by_number(first.number) {
            Some(same) => same.start,
            None => {
                let last = known.last()?;
                let between = first.number.saturating_sub(last.number + 1).min(1_000_000);
                last.end() + playlist.target * between
            }
        };
        // Gaps before it belong to the playlist, too.
        let ns = |time: Duration| i64::try_from(time.as_nanos()).ok();
        ns(start)?.checked_sub(ns(first.start)?)
    }

    pub(crate) fn step(&mut self, situation: &Situation) -> Step {
        if self.complete || self.in_flight.is_some() {
            return Step::Idle;
        }
        if self.not_before > situation.now {
            return Step::Wait(self.not_before);
        }
        // Twice at most: to choose a rung, and to look at that rung's list.
        for _ in 0..2 {
            let rung = self.choice.unwrap_or(self.current);
            self.settle(rung);
            if let Some(playout) = situation.playout.filter(|_| self.is_lost(rung)) {
                if let Some(wait) = self.decide(situation, playout) {
                    return wait;
                }
                continue;
            }
            let segment = match self.next_of(rung, situation) {
                Next::Unknown | Next::Later => return self.fetch_playlist(rung, situation.now),
                Next::End => {
                    self.complete = true;
                    return Step::Wait(situation.now);
                }
                Next::Found(segment) => segment,
            };
            let Some(playout) = situation.playout else { return Step::Idle };
            let (rung, segment) = match self.around_gap((rung, segment), situation, playout) {
                Ok(found) => found,
                Err(step) => return step,
            };
            if let Some(step) = self.obstacle(&segment, situation, playout) {
                return step;
            }
            if self.choice.is_none() && self.is_inside(rung, &segment) {
                // Only where decoding can begin may another rung follow.
                self.choice = Some(self.current);
            }
            if self.choice.is_none() {
                if let Some(wait) = self.decide(situation, playout) {
                    return wait;
                }
                continue;
            }
            self.choice = Some(rung);
            return self.fetch_segment(rung, segment);
        }
        let rung = self.choice.unwrap_or(self.current);
        match self.next_of(rung, situation) {
            Next::Found(segment) => self.fetch_segment(rung, segment),
            Next::Unknown | Next::Later => self.fetch_playlist(rung, situation.now),
            Next::End => Step::Idle,
        }
    }

    fn next_of(&self, rung: usize, situation: &Situation) -> Next {
        let state = &self.rungs[rung];
        let Some(segments) = &state.segments else { return Next::Unknown };
        if situation.playout.is_none() {
            // Its segments are known, and yet nothing could be prepared: it was empty.
            return Next::Later;
        }
        let more = match &state.playlist {
            Some(playlist) => !playlist.ended,
            None => situation.live && !self.ended,
        };
        let found = match (&state.parts, segments.following(self.next)) {
            (Some(parts), whole) => parts.next(self.next, whole),
            (None, whole) => whole,
        };
        match found {
            Some(segment) if more && self.is_refused(rung, &segment) => Next::Later,
            Some(segment) => Next::Found(segment),
            None if more => Next::Later,
            None => Next::End,
        }
    }

    /// What keeps a segment from being fetched now: it is not there yet, a hole lies before it, or there is no room.
    fn obstacle(
        &self,
        segment: &Segment,
        situation: &Situation,
        playout: &Playout,
    ) -> Option<Step> {
        let there = self.there(segment, situation);
        if there > situation.now {
            return Some(Step::Wait(there));
        }
        let end = playout.end_of(self.index);
        if is_beyond(segment, end) {
            let dry = playout.buffer_of(self.index).is_zero();
            return Some(if dry { Step::Skip(segment.start) } else { Step::Idle });
        }
        let needed = match situation.download {
            Download::Segment => segment.end(),
            Download::Stream => segment.start,
        };
        match playout.time_of_room(self.index, needed) {
            Some(at) if at <= situation.now => None,
            Some(at) => Some(Step::Wait(at)),
            None => Some(Step::Idle),
        }
    }

    /// When a segment can be asked for, where segments follow from a rule; now, where they are listed.
    fn there(&self, segment: &Segment, situation: &Situation) -> Time {
        let listed = self.lowest_segments().is_none_or(Segments::is_listed);
        let there = segment.end().saturating_sub(self.early());
        let captured = situation.captured.filter(|_| !listed);
        let wait = captured.map_or(Duration::ZERO, |captured| there.saturating_sub(captured));
        situation.now + wait
    }

    /// How long before its end a segment can be asked for.
    fn early(&self) -> Duration {
        self.lowest_segments().map_or(Duration::ZERO, Segments::early)
    }

    /// Chooses the rung of the next segment; says what to do instead if the algorithm pauses.
    fn decide(&mut self, situation: &Situation, playout: &Playout) -> Option<Step> {
        self.choice = self.choose(situation.now, playout);
        self.choice.is_none().then_some(Step::Wait(self.not_before))
    }

    /// The rung of the next segment; `None` if the algorithm pauses.
    fn choose(&mut self, now: Time, playout: &Playout) -> Option<usize> {
        let in_chunks = self.is_low_latency();
        let Some(controller) = &mut self.controller else { return Some(0) };
        if let Some(age) = playout.latency_ns().and_then(|ns| u64::try_from(ns).ok()) {
            controller.on_latency(Duration::from_nanos(age));
        }
        // At low latency sound may be what a stall comes from: it takes its turns behind the video.
        let buffer = match in_chunks {
            true => playout.buffer(),
            false => playout.buffer_of(self.index),
        };
        let choice = controller.choose(now, buffer);
        if choice.wait.is_zero() {
            return Some(choice.rung);
        }
        self.not_before = now + choice.wait;
        None
    }

    fn fetch_segment(&mut self, rung: usize, segment: Segment) -> Step {
        let rate = self.rungs[rung].rate;
        if let Some(init) = segment.init.clone().filter(|init| !self.inits.take(init)) {
            return Step::Fetch(Box::new((What::Init { kind: self.kind, rate }, init)));
        }
        let resource = segment.media.clone();
        let (kind, generation) = (self.kind, self.generation);
        let what = What::Segment { kind, rate, segment, generation };
        Step::Fetch(Box::new((what, resource)))
    }

    /// Fetches a list of segments (again). A DASH track has no playlist: the session fetches the
    /// manifest.
    fn fetch_playlist(&self, rung: usize, now: Time) -> Step {
        let Some(playlist) = &self.rungs[rung].playlist else { return Step::Idle };
        if !self.is_refuted(playlist) {
            if self.is_reloading(rung) {
                // The next version of it is on its way.
                return Step::Idle;
            }
            if playlist.again > now {
                return Step::Wait(playlist.again);
            }
        }
        let resource = Resource { url: playlist.url.clone(), range: None };
        Step::Fetch(Box::new((What::Playlist { rung }, resource)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presentation::from_mpd;

    /// The list of a live manifest whose only segment, of 2 s, begins at `start_s`.
    fn listed(number: u64, start_s: u64) -> Segments {
        let text = format!(
            "<MPD><Period><AdaptationSet contentType='video'><Representation bandwidth='1'>\
             <SegmentTemplate startNumber='{number}' media='$Time$'><SegmentTimeline>\
             <S t='{start_s}' d='2'/></SegmentTimeline></SegmentTemplate>\
             </Representation></AdaptationSet></Period></MPD>"
        );
        let url = Url::parse("http://origin/a.mpd").expect("a URL");
        let mut presentation = from_mpd(text.as_bytes(), &url).expect("an MPD");
        match presentation.tracks.remove(0).rungs.remove(0).source {
            Source::Segments(segments) => segments,
            Source::Playlist(_) => panic!("a DASH rung has no playlist"),
        }
    }

    #[test]
    fn numbers_go_on_in_a_fresh_list() {
        let old = listed(7, 100);
        let number = |start_s| continued(Some(&old), &listed(0, start_s));
        assert_eq!([number(100), number(102), number(108)], [Some(7), Some(8), Some(11)]);
        let largest = listed(u64::MAX - 1, 100);
        assert_eq!(continued(Some(&largest), &listed(0, 108)), Some(u64::MAX));
        assert_eq!(continued(None, &old), None);
    }
}
