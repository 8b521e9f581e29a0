//! What a player does next, pure. It is handed the time, how far requests have come ([`Session::on_progress`]) and what
//! has arrived. It says what to fetch ([`Session::poll`]), what to give up, where the playhead is, by which bodies may
//! be read, and when to be asked again ([`Session::deadline`]).
//!
//! Lane 0 fetches the manifest, and fetches it again as its author asks (DASH: ISO/IEC 23009-1
//! §5.4, `minimumUpdatePeriod`); the others belong to the tracks (`track`), as [`LANES`] has
//! them. A lane has one request at a time.

mod clock;
mod config;
mod low_latency;
mod prepare;
mod told;
mod tracks;

use suiro_abr::playout::Totals;
use suiro_abr::{Controller, Playout, Sample, State};
use suiro_endpoint::Absence;
use suiro_scenario::Protocol;
use suiro_units::{BitRate, Bytes, Duration, Time};

pub use config::Config;

use clock::AuthorsClock;

use super::frames::{Frame, Frames};
use super::live::{of_playlist, zero_ns};
pub use super::request::{Fetch, LANES, Progress, View, What};
pub(crate) use super::request::{Fetched, Head, Piece, Underway};
use super::request::{RELOADS, track_of};
use super::retry;
use super::track::TrackState;
use super::watch::Abandoned;
use crate::presentation::{
    self, LiveStream, MANIFEST_BYTES_MAX, Playlist, Presentation, Resource, Segment, TrackKind,
};
use crate::url::Url;

/// The shortest time between two fetches of a manifest, whatever it asks for.
const REFRESH_LEAST: Duration = Duration::from_millis(250);

/// The manifest's lane.
#[derive(Debug)]
struct ManifestLane {
    url: Url,
    in_flight: Option<Underway>,
    due: Option<Time>,
    /// When the last one that came was asked for.
    requested: Time,
    failed: u32,
    /// Why the last try failed.
    problem: Option<String>,
}

/// What is played, once the manifest is there.
#[derive(Debug)]
struct Stream {
    live: Option<LiveStream>,
    refresh: Option<Duration>,
    tracks: Vec<TrackState>,
    playout: Option<Playout>,
    /// What was shown of the video; the reason if it cannot be known.
    frames: Result<Frames, &'static str>,
    /// The most media that is held ahead of the playhead.
    capacity: Duration,
}

/// A player's decisions.
#[derive(Debug)]
pub struct Session {
    config: Config,
    now: Time,
    manifest: ManifestLane,
    clock: AuthorsClock,
    stream: Option<Stream>,
    failure: Option<String>,
    wake: Option<Time>,
    /// Requests so far.
    asked: u64,
    /// Stalls that were reported to the server.
    told_stalls: u64,
}

impl Session {
    /// A session that begins with fetching the manifest.
    pub fn new(config: Config) -> Self {
        let manifest = ManifestLane {
            url: config.url.clone(),
            in_flight: None,
            due: Some(Time::ZERO),
            requested: Time::ZERO,
            failed: 0,
            problem: None,
        };
        Self {
            config,
            now: Time::ZERO,
            manifest,
            clock: AuthorsClock::default(),
            stream: None,
            failure: None,
            wake: None,
            asked: 0,
            told_stalls: 0,
        }
    }

    /// Moves on to `now`: plays, stalls, jumps.
    pub fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        let Some(stream) = &mut self.stream else { return };
        let Some(playout) = &mut stream.playout else { return };
        let frames = &mut stream.frames;
        playout.follow(now, |motion| {
            if let Ok(frames) = frames {
                frames.on_motion(&motion);
            }
        });
        if stream.tracks.iter().all(|track| track.complete) {
            playout.complete(now);
        }
        if self.failure.is_none()
            && let Some(position) = playout.wants_seek()
        {
            playout.seek(now, position);
            if let Ok(frames) = &mut stream.frames {
                frames.on_seek(now, playout.position());
            }
            for track in &mut stream.tracks {
                match track.is_low_latency() {
                    true => track.seek_near(now, position),
                    false => track.seek(position),
                }
            }
            // A seek passes over what is not to be had, before it is tried often.
            self.failure = stream.tracks.iter().find_map(|track| track.is_hopeless(now));
        }
    }

    /// The player did not run for a while, so it did not change the frame. The playhead moves on: who is back shows
    /// what is due then. Said before the session advances to the end of that time.
    pub fn on_absence(&mut self, absence: Absence) {
        if let Some(Ok(frames)) = self.stream.as_mut().map(|stream| &mut stream.frames) {
            frames.on_absence(absence);
        }
    }

    /// How far a request under way has come. Said of one that is over or given up, it changes nothing.
    pub fn on_progress(&mut self, number: u64, progress: Progress) {
        if let Some(request) = self.underway(number) {
            request.progress = progress;
        }
    }

    fn underway(&mut self, number: u64) -> Option<&mut Underway> {
        let tracks = self.stream.iter_mut().flat_map(|s| &mut s.tracks);
        let requests = tracks.flat_map(|track| track.requests_mut());
        let clock = self.clock.in_flight_mut().into_iter();
        let mut requests = self.manifest.in_flight.iter_mut().chain(clock).chain(requests);
        requests.find(|request| request.fetch.number == number)
    }

    /// The playhead as it stands, by which the bodies of requests are read; `None` while nothing is played.
    pub(crate) fn head(&self) -> Option<Head> {
        let Stream { playout, capacity, .. } = self.stream.as_ref()?;
        let playout = playout.as_ref()?;
        let (position, speed) = (playout.position(), playout.speed());
        Some(Head { at: self.now, position, speed, capacity: *capacity })
    }

    /// The next request to make now; asked until there is none.
    pub fn poll(&mut self, now: Time) -> Option<Fetch> {
        self.advance(now);
        self.wake = None;
        if self.failure.is_some() {
            return None;
        }
        let fetch = self.poll_clock().or_else(|| self.poll_manifest());
        let fetch = fetch.or_else(|| self.poll_tracks())?;
        self.asked = fetch.number;
        Some(self.tell(fetch))
    }

    /// The next request to give up now; asked until there is none. Its lane is free then.
    pub(crate) fn abandon(&mut self, now: Time) -> Option<Abandoned> {
        self.advance(now);
        if let Some(late) = self.give_up_clock() {
            return Some(late);
        }
        let Stream { tracks, playout, .. } = self.stream.as_mut()?;
        if let Some(passed) = tracks.iter_mut().find_map(TrackState::take_passed) {
            return Some(passed);
        }
        let playout = playout.as_ref().filter(|_| self.config.abandon)?;
        tracks.iter_mut().find_map(|track| track.abandon(now, playout))
    }

    /// When to ask again, if nothing arrives before; `None`: when something arrives.
    pub fn deadline(&self) -> Option<Time> {
        let playout = self.stream.as_ref().and_then(|s| s.playout.as_ref());
        let tracks = self.stream.iter().flat_map(|s| &s.tracks);
        let looks = tracks.filter_map(|track| track.watch.due()).filter(|_| self.config.abandon);
        let rest = [self.wake, self.clock.due(), playout.and_then(Playout::next_event)];
        let rest = rest.into_iter().flatten();
        rest.chain(looks).min()
    }

    /// Why playback was given up.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Why there is no manifest yet; `None` if there is one.
    pub fn no_manifest(&self) -> Option<String> {
        let waiting = || "no answer yet".to_owned();
        self.stream.is_none().then(|| self.manifest.problem.clone().unwrap_or_else(waiting))
    }

    /// Why nothing has been played so far, by the media that was asked for; `None` if something was, or that is not known.
    pub fn no_media(&self) -> Option<String> {
        if self.totals().is_some_and(|totals| !totals.playing.is_zero()) {
            return None;
        }
        let mut tracks = self.stream.iter().flat_map(|stream| &stream.tracks);
        tracks.find_map(|track| track.trouble(self.now)).map(|(_, reason)| reason)
    }

    /// The requests that are under way.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &Underway> {
        let tracks = self.stream.iter().flat_map(|s| &s.tracks).flat_map(|t| t.requests());
        self.manifest.in_flight.iter().chain(self.clock.in_flight()).chain(tracks)
    }

    /// How long each state has lasted; `None` before playback was prepared.
    pub fn totals(&self) -> Option<Totals> {
        Some(self.stream.as_ref()?.playout.as_ref()?.totals())
    }

    /// What has become certain of the video's frames since this was last asked, in order.
    pub fn take_frames(&mut self) -> Vec<Frame> {
        self.stream
            .as_mut()
            .and_then(|s| s.frames.as_mut().ok())
            .map_or_else(Vec::new, Frames::take)
    }

    /// The frames that are still in the buffer when playback breaks off; the reason if nothing is
    /// known of any frame.
    ///
    /// # Errors
    /// What is missing in the manifest.
    pub fn rest_of_frames(&mut self) -> Result<Vec<Frame>, &'static str> {
        let stream = self.stream.as_mut().ok_or("there was no manifest")?;
        stream.frames.as_mut().map(|frames| frames.rest(self.now)).map_err(|why| *why)
    }

    /// What a viewer sees now.
    pub fn view(&mut self) -> View {
        let failed = self.failure.is_some();
        let Some((playout, tracks)) =
            self.stream.as_mut().and_then(|s| s.playout.as_ref().zip(Some(&mut s.tracks)))
        else {
            return View {
                state: State::Starting,
                failed,
                buffer: Duration::ZERO,
                position: Duration::ZERO,
                rung: None,
                latency_ns: None,
                target_latency: None,
                speed: 0.0,
                stalls: 0,
                estimate: None,
            };
        };
        let state = playout.state();
        let video = &mut tracks[0];
        let rung = video.rate_at(playout.position());
        View {
            state,
            failed: failed && state != State::Playing,
            buffer: playout.buffer(),
            position: playout.position(),
            rung: rung.filter(|_| !playout.totals().playing.is_zero() || state == State::Playing),
            latency_ns: playout.latency_ns(),
            target_latency: playout.target_latency(),
            speed: playout.speed(),
            stalls: playout.totals().stalls,
            estimate: video.controller.as_ref().and_then(Controller::estimate),
        }
    }

    /// A request has ended; returns what is to be saved.
    pub(crate) fn on_fetched(&mut self, now: Time, fetch: &Fetch, fetched: Fetched) -> Vec<Piece> {
        self.advance(now);
        if fetch.lane == 0 {
            match fetch.what {
                What::Clock => self.on_clock(fetch, &fetched),
                _ => self.on_manifest(&fetched),
            }
            return Vec::new();
        }
        let stream = self.stream.as_mut().expect("a track's request needs a stream");
        let Some(index) = track_of(fetch.lane) else {
            let index = fetch.lane - RELOADS;
            stream.tracks[index].reload = None;
            self.on_reload(index, fetch, &fetched);
            return Vec::new();
        };
        let track = &mut stream.tracks[index];
        let Some(fetched) = track.keep_fetched(fetch.number, fetched) else { return Vec::new() };
        track.end_request();
        let mut pieces = Vec::from_iter(self.on_track(index, fetch, fetched));
        pieces.extend(self.promote(index));
        pieces
    }

    /// A track's request has ended.
    fn on_track(&mut self, index: usize, fetch: &Fetch, fetched: Fetched) -> Option<Piece> {
        let track = &mut self.stream.as_mut()?.tracks[index];
        match fetched.body {
            Err(error) => {
                let said = (fetched.status, fetched.retry_after);
                let tried = track.on_failure(self.now, &fetch.what, &error, said);
                self.failure = self.failure.take().or(tried);
                None
            }
            Ok(ref body) => match &fetch.what {
                What::Playlist { rung } => {
                    self.on_playlist(index, *rung, body, &fetched);
                    None
                }
                What::Init { kind, .. } => {
                    track.on_init(&fetch.resource, body);
                    Some(Piece::Init(*kind, body.clone()))
                }
                What::Segment { kind, rate, segment, generation } => {
                    let piece = Piece::Segment(*kind, *rate, body.clone());
                    self.on_segment(index, *rate, segment, *generation, &fetched).then_some(piece)
                }
                What::Manifest | What::Clock => unreachable!("these have a lane of their own"),
            },
        }
    }

    fn wake_at(&mut self, at: Time) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }

    fn poll_manifest(&mut self) -> Option<Fetch> {
        let due = self.manifest.due?;
        if self.manifest.in_flight.is_some() || self.clock.in_flight().is_some() {
            return None;
        }
        if due > self.now {
            self.wake_at(due);
            return None;
        }
        let resource = Resource { url: self.manifest.url.clone(), range: None };
        let fetch = Fetch {
            number: self.asked + 1,
            lane: 0,
            what: What::Manifest,
            resource,
            attempt: self.manifest.failed + 1,
            bytes_max: MANIFEST_BYTES_MAX as u64,
            keep_body: true,
            room: None,
            chunks: None,
            told: None,
            priority: None,
        };
        self.manifest.due = None;
        self.manifest.in_flight = Some(Underway::new(fetch.clone()));
        Some(fetch)
    }

    fn on_manifest(&mut self, fetched: &Fetched) {
        self.manifest.in_flight = None;
        let parsed = match &fetched.body {
            Err(error) => Err(error.clone()),
            Ok(body) => parse_manifest(self.config.protocol, body, &fetched.url),
        };
        match parsed {
            Ok(presentation) => {
                self.manifest.failed = 0;
                self.accept(presentation, fetched);
            }
            Err(reason) => {
                self.manifest.failed += 1;
                self.manifest.problem = Some(reason.clone());
                if self.manifest.failed >= retry::MANIFEST_TRIES {
                    self.failure = Some(format!("the manifest: {reason}"));
                } else {
                    let wait = retry::delay(self.manifest.failed, fetched.retry_after);
                    self.manifest.due = Some(self.now + wait);
                }
            }
        }
    }

    fn accept(&mut self, presentation: Presentation, fetched: &Fetched) {
        if let Some(live) = presentation.live.as_ref().filter(|_| self.stream.is_none()) {
            self.begin_clock(live, fetched);
        }
        if let Some(location) = &presentation.location {
            self.manifest.url = location.clone();
        }
        match &mut self.stream {
            None => {
                let video = presentation.tracks.first().filter(|t| t.kind == TrackKind::Video);
                let frames = video.ok_or("there is no video").and_then(|t| Frames::new(&t.rungs));
                // What is saved must be in the order in which it is played.
                let kept = !self.config.keep_bodies;
                let tracks = presentation.tracks.into_iter().enumerate();
                let tracks = tracks.map(|(index, track)| TrackState::new(index, track, kept));
                self.stream = Some(Stream {
                    live: presentation.live,
                    refresh: presentation.refresh,
                    tracks: tracks.collect(),
                    playout: None,
                    frames,
                    capacity: Duration::ZERO,
                });
            }
            Some(stream) => {
                stream.refresh = presentation.refresh;
                // A live stream that has ended becomes static; its clock goes on counting.
                let ended = presentation.live.is_none();
                if let Err(reason) = stream.update(&presentation, ended) {
                    self.failure = Some(reason);
                    return;
                }
                if ended {
                    return;
                }
            }
        }
        self.prepare();
        self.manifest.requested = fetched.requested;
        self.manifest.due = self.next_refresh(fetched.requested);
    }

    /// When to fetch the manifest again: as soon as it can list a further segment, but not before
    /// half of its `minimumUpdatePeriod` has passed. Where segments follow from a rule, when the
    /// period has passed.
    fn next_refresh(&self, requested: Time) -> Option<Time> {
        let stream = self.stream.as_ref()?;
        let live = stream.live.as_ref()?;
        let period = stream.refresh?.max(REFRESH_LEAST);
        let zero_ns = zero_ns(live, self.config.epoch_unix_ns)?;
        let listed = stream.tracks.iter().filter_map(TrackState::next_listed).min();
        Some(match listed {
            None => requested + period,
            Some(end) => {
                let available = zero_ns.saturating_add_unsigned(end.as_nanos());
                let available = Time::from_nanos(u64::try_from(available).unwrap_or(0));
                available.max(requested + (period / 2).max(REFRESH_LEAST))
            }
        })
    }

    fn on_playlist(&mut self, index: usize, rung: usize, body: &[u8], fetched: &Fetched) {
        let parsed = match presentation::from_playlist(body, &fetched.url) {
            Ok(Playlist::Media(playlist)) => Ok(playlist),
            Ok(Playlist::Multivariant(_)) => {
                Err("a multivariant playlist where a media playlist was expected".to_owned())
            }
            Err(error) => Err(error.to_string()),
        };
        let stream = self.stream.as_mut().expect("a playlist's request needs a stream");
        match parsed {
            Err(reason) => {
                let what = What::Playlist { rung };
                let said = (None, None);
                let tried = stream.tracks[index].on_failure(self.now, &what, &reason, said);
                self.failure = self.failure.take().or(tried);
            }
            Ok(mut playlist) => {
                if playlist.is_update {
                    playlist.complete(stream.tracks[index].init_of(rung).as_ref());
                }
                if stream.playout.is_none() && !playlist.ended {
                    let unix_ns = self.config.epoch_unix_ns.saturating_add(self.now.as_nanos());
                    stream.live.get_or_insert_with(|| of_playlist(&playlist, unix_ns));
                }
                let zero = stream.live.as_ref().and_then(|live| live.zero_unix_ns);
                stream.tracks[index].on_playlist(rung, &playlist, zero, fetched.requested);
                self.prepare();
            }
        }
    }

    fn on_segment(
        &mut self,
        index: usize,
        rate: BitRate,
        segment: &Segment,
        generation: u64,
        fetched: &Fetched,
    ) -> bool {
        let stream = self.stream.as_mut().expect("a segment's request needs a stream");
        let track = &mut stream.tracks[index];
        track.on_media();
        // What was asked for ahead took a share of the link from its turn on; if it was there before, from when it was asked for.
        let turn = track.since.max(fetched.requested);
        let sample = Sample {
            bytes: Bytes::new(fetched.bytes),
            requested: if turn < fetched.finished { turn } else { fetched.requested },
            // Time in which it did not read says nothing about the network.
            done: fetched.finished - fetched.held,
        };
        let playout = stream.playout.as_mut().expect("segments are fetched to be played");
        let in_chunks = track.chunks().is_some();
        let wanted = track.generation == generation;
        let (end, buffered) = (track.end_of(segment), playout.end_of(index));
        if wanted && playout.extend(self.now, index, end).is_ok() {
            let rung = track.on_segment(segment);
            track.mark(rate, segment.start..end, buffered);
            let (buffer, chunks) = (playout.buffer_of(index), track.take_chunks());
            match &mut track.controller {
                Some(controller) if in_chunks => {
                    controller.on_segment_in_chunks(&sample, &chunks, rung, buffer);
                }
                Some(controller) => controller.on_segment(&sample, rung, buffer),
                None => {}
            }
            if let (0, Ok(frames)) = (index, &mut stream.frames) {
                frames.on_arrival(fetched.finished, rate, segment.start, end);
            }
            return true;
        }
        if let Some(controller) = track.controller.as_mut().filter(|_| !in_chunks) {
            controller.on_download(&sample);
        }
        track.choice = None;
        false
    }
}

impl Stream {
    fn update(&mut self, presentation: &Presentation, ended: bool) -> Result<(), String> {
        for track in &mut self.tracks {
            let kind = track.kind;
            let new = presentation.tracks.iter().find(|new| new.kind == kind);
            let new = new.ok_or_else(|| format!("the manifest lost its {} track", kind.name()))?;
            track.update(new, ended)?;
        }
        Ok(())
    }
}

fn parse_manifest(protocol: Protocol, body: &[u8], url: &Url) -> Result<Presentation, String> {
    match protocol {
        Protocol::Dash => presentation::from_mpd(body, url).map_err(|e| e.to_string()),
        Protocol::Hls => match presentation::from_playlist(body, url) {
            Ok(Playlist::Multivariant(presentation)) => Ok(presentation),
            Ok(Playlist::Media(_)) => {
                Err("a media playlist; the player needs the multivariant playlist".into())
            }
            Err(error) => Err(error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests;
