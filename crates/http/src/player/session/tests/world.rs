//! What the session's tests run in: our own origin's manifests over a model of a link, in virtual time.

use suiro_abr::{Algorithm, CatchUp, ChunkEstimator};
use suiro_scenario::{Download, HlsRungs};
use suiro_units::{BitRate, Bytes, Duration, Time};

use super::super::*;
use crate::iso8601::format_date_time;
use crate::origin::catalogue::{Catalogue, Container, RungEntry, TrackEntry};
use crate::origin::timeline::{Availability, Loop, Schedule};
use crate::origin::{MPD_PATH, MULTIVARIANT_PATH, TIME_PATH, manifest};
use crate::presentation::TrackKind;

/// 2026-11-21T01:57:00Z.
pub(super) const EPOCH: u64 = 1_795_226_220_000_000_000;
pub(super) const SEGMENT: Duration = Duration::from_secs(2);

pub(super) fn rung(id: &str, kbps: u64, timeline: Loop) -> RungEntry {
    RungEntry {
        id: id.into(),
        rate: BitRate::from_kbps(kbps),
        declared: BitRate::from_kbps(kbps),
        mean_rate: BitRate::from_kbps(kbps),
        nominal: BitRate::from_kbps(kbps),
        codecs: "x".into(),
        size: None,
        frame_rate: Some((24, 1)),
        channels: None,
        timeline,
        chunks: None,
    }
}

/// The ladder of the quick scenario, and sound.
pub(super) fn catalogue(schedule: Schedule) -> Catalogue {
    let pictures = Loop::new(24, &[48; 15]).expect("a loop");
    let sound = Loop::new(48_000, &[96_256, 95_744]).expect("a loop");
    let rungs = [("v0", 300), ("v1", 700), ("v2", 1500), ("v3", 3000)];
    let video = rungs.map(|(id, kbps)| rung(id, kbps, pictures.clone())).to_vec();
    let audio = vec![rung("a", 96, sound)];
    let track = |kind, rungs| TrackEntry { kind, container: Container::Fmp4, rungs };
    let tracks = vec![track(TrackKind::Video, video), track(TrackKind::Audio, audio)];
    Catalogue { tracks, schedule, hls_rungs: HlsRungs::All, version: "x".into() }
}

pub(super) fn live() -> Schedule {
    let window = Duration::from_secs(30);
    Schedule::Live { zero_unix_ns: EPOCH - window.as_nanos(), window }
}

/// The clock that an MPD names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthorsTime {
    /// It names none.
    Unnamed,
    /// It shows the time of the wall clock and this many milliseconds.
    Ahead(i64),
    /// It does not answer.
    Silent,
}

/// A link that serves one response after the other, and an origin behind it.
pub(super) struct World {
    pub catalogue: Catalogue,
    /// Rate from a time on.
    pub rates: Vec<(Time, BitRate)>,
    pub rtt: Duration,
    pub free: Time,
    /// Segments of video that the origin has lost.
    pub lost: std::ops::Range<u64>,
    /// While the origin is down: transfers break off, and requests get no answer.
    pub dead: std::ops::Range<Time>,
    /// What it answers instead, to which target and when.
    pub instead: Option<fn(&str, Time) -> Option<&'static str>>,
    /// What it makes of its own manifests.
    pub lie: Option<fn(&str) -> String>,
    /// Whether and how the clock answers that the MPD names.
    pub clock: AuthorsTime,
    /// Requests whose target contains this get no answer; empty: all get one.
    pub silent: &'static str,
    /// How manifests are damaged, one after the other: how, and where.
    pub damage: Vec<(u8, u16)>,
    pub damaged: usize,
}

impl World {
    pub(super) fn rate(&self, at: Time) -> BitRate {
        self.rates.iter().rev().find(|(from, _)| *from <= at).expect("a rate from the start").1
    }

    /// When that many bytes have been carried, in steps of 10 ms.
    pub(super) fn carried(&self, from: Time, bytes: Bytes) -> Time {
        let step = Duration::from_millis(10);
        let (mut at, mut left) = (from, bytes);
        loop {
            let carries = self.rate(at) * step;
            if carries >= left {
                return at + left / self.rate(at);
            }
            left -= carries;
            at += step;
        }
    }

    /// What has been carried of `bytes` from `from` until `now`, in steps of 10 ms.
    pub(super) fn came(&self, from: Time, now: Time, bytes: Bytes) -> Bytes {
        let (step, mut at, mut came) = (Duration::from_millis(10), from, Bytes::ZERO);
        while at + step <= now {
            came += self.rate(at) * step;
            at += step;
        }
        came.min(bytes)
    }

    /// How far a request has come.
    pub(super) fn progress(&self, fetched: &Fetched, now: Time) -> Progress {
        let requested = Progress { requested: Some(fetched.requested), ..Progress::default() };
        let Some(first) = fetched.first_byte.filter(|first| *first <= now) else {
            return requested;
        };
        let bytes = self.came(first, now, Bytes::new(fetched.bytes)).get();
        let first_byte = Some(first).filter(|_| bytes > 0);
        Progress { length: Some(fetched.bytes), bytes, first_byte, ..requested }
    }

    /// The response under way is cancelled: what the queue holds of it still comes, here half a
    /// second's worth; then what waits behind it.
    pub(super) fn cancel(&mut self, now: Time, waiting: &mut [(Fetch, Fetched)]) {
        self.free = self.free.min(now + Duration::from_millis(500));
        for (_, fetched) in waiting {
            self.serve(fetched);
        }
    }

    pub(super) fn serve(&mut self, fetched: &mut Fetched) {
        let first = (fetched.requested + self.rtt).max(self.free);
        self.free = self.carried(first, Bytes::new(fetched.bytes));
        fetched.first_byte = Some(first);
        fetched.finished = self.free;
    }

    /// A manifest as it arrives. All of it is ASCII.
    pub(super) fn damage(&mut self, mut text: String) -> String {
        if self.damage.is_empty() {
            return text;
        }
        let (how, place) = self.damage[self.damaged % self.damage.len()];
        self.damaged += 1;
        let at = usize::from(place) % text.len();
        let end = (at + 1 + usize::from(how)).min(text.len());
        match how % 5 {
            0 => text.truncate(at),
            1 => text.replace_range(at..end, ""),
            2 => {
                let piece = text[at..end].to_owned();
                text.insert_str(at, &piece);
            }
            3 => text
                .replace_range(at..end, &text[at..end].replace(|c: char| c.is_ascii_digit(), "9")),
            _ => {}
        }
        text
    }

    /// What the origin answers: a body, or its length, or a status.
    pub(super) fn answer(&mut self, target: &str, now: Time) -> Result<(bytes::Bytes, u64), u16> {
        let unix_ns = EPOCH + now.as_nanos();
        if let Some(text) = self.instead.and_then(|instead| instead(target, now)) {
            return Ok((text.into(), text.len() as u64));
        }
        let origin = (self.clock != AuthorsTime::Unnamed).then_some("http://server");
        let text = match target {
            MPD_PATH => manifest::mpd(&self.catalogue, unix_ns, origin),
            TIME_PATH => match self.clock {
                AuthorsTime::Ahead(ms) => {
                    Some(format_date_time(unix_ns.saturating_add_signed(ms * 1_000_000)))
                }
                _ => None,
            },
            MULTIVARIANT_PATH => Some(manifest::multivariant(&self.catalogue)),
            _ => target.strip_suffix(".m3u8").and_then(|id| {
                manifest::media(&self.catalogue, id.trim_start_matches('/'), unix_ns)
            }),
        };
        if let Some(text) = text {
            let text = self.lie.map_or_else(|| text.clone(), |lie| lie(&text));
            let text = self.damage(text);
            let length = text.len() as u64;
            return Ok((text.into(), length));
        }
        let (id, file) = target[1..].split_once('/').ok_or(404u16)?;
        let (name, extension) = file.split_once('.').ok_or(404u16)?;
        let ts = extension == Container::MpegTs.extension();
        let container = if ts { Container::MpegTs } else { Container::Fmp4 };
        let (track, rung) = self.catalogue.find(id, container).ok_or(404u16)?;
        let rung = &self.catalogue.tracks[track].rungs[rung];
        let by_time = name.strip_prefix('t').and_then(|ticks| ticks.parse().ok());
        let number = match by_time {
            Some(ticks) => rung.timeline.number_at(ticks),
            None => name.parse().ok(),
        };
        let Some(number) = number else { return Ok((bytes::Bytes::new(), 700)) };
        let there = self.catalogue.schedule.availability(&rung.timeline, number, unix_ns);
        match there {
            Availability::There if track == 0 && self.lost.contains(&number) => Err(404),
            Availability::There => Ok((bytes::Bytes::new(), (rung.rate * SEGMENT).get())),
            Availability::NotYet => Err(404),
            Availability::Gone => Err(410),
        }
    }

    pub(super) fn fetch(&mut self, fetch: &Fetch, now: Time) -> Fetched {
        let answer = self.answer(fetch.resource.url.target(), now);
        let mut fetched = Fetched {
            requested: now,
            first_byte: None,
            handshake: Duration::ZERO,
            server: Default::default(),
            retry_after: None,
            finished: now,
            held: Duration::ZERO,
            early: None,
            status: Some(answer.as_ref().err().copied().unwrap_or(200)),
            bytes: answer.as_ref().map_or(100, |(_, bytes)| *bytes),
            url: fetch.resource.url.clone(),
            body: answer.map(|(body, _)| body).map_err(|status| format!("status {status}")),
        };
        if self.dead.contains(&now) {
            fetched.body = Err("connecting: connection refused".into());
            (fetched.status, fetched.bytes) = (None, 0);
            fetched.finished = now + self.rtt;
            return fetched;
        }
        let silent = fetch.what == What::Clock && self.clock == AuthorsTime::Silent;
        let target = fetch.resource.url.target();
        if silent || (!self.silent.is_empty() && target.contains(self.silent)) {
            fetched.body = Err("nothing came for 10 s".into());
            (fetched.status, fetched.finished) = (None, now + Duration::from_secs(10));
            return fetched;
        }
        self.serve(&mut fetched);
        if fetched.finished > self.dead.start && now < self.dead.start {
            fetched.body = Err("nothing came for 10 s".into());
            fetched.finished = self.dead.start;
            self.free = self.dead.start;
        }
        fetched
    }
}

/// What happened.
pub(super) struct Run {
    pub session: Session,
    pub views: Vec<(Time, View)>,
    /// Requests with when they were made and the status of their answer.
    pub fetches: Vec<(Time, Fetch, u16)>,
    pub abandoned: Vec<(Time, Abandoned)>,
    pub rounds: u64,
}

pub(super) fn run(world: &mut World, config: Config, until: Time) -> Run {
    let mut session = Session::new(config);
    let mut pending: Vec<(Fetch, Fetched)> = Vec::new();
    let (mut now, mut views, mut fetches, mut rounds) = (Time::ZERO, Vec::new(), Vec::new(), 0);
    let mut abandoned = Vec::new();
    while now < until {
        rounds += 1;
        while let Some(at) = pending.iter().position(|(_, fetched)| fetched.finished <= now) {
            let (fetch, fetched) = pending.remove(at);
            session.on_fetched(now, &fetch, fetched);
        }
        for (fetch, fetched) in &pending {
            session.on_progress(fetch.number, world.progress(fetched, now));
        }
        while let Some(gone) = session.abandon(now) {
            pending.retain(|(fetch, _)| fetch.lane != gone.request.fetch.lane);
            world.cancel(now, &mut pending);
            abandoned.push((now, gone));
        }
        while let Some(fetch) = session.poll(now) {
            assert!(pending.iter().all(|(other, _)| other.lane != fetch.lane), "a lane is busy");
            let fetched = world.fetch(&fetch, now);
            fetches.push((now, fetch.clone(), fetched.status.unwrap_or(0)));
            pending.push((fetch, fetched));
        }
        views.push((now, session.view()));
        let arrival = pending.iter().map(|(_, fetched)| fetched.finished).min();
        let due = session.deadline().map(|due| due.max(now + Duration::from_millis(1)));
        now = [arrival, due, Some(now + Duration::from_millis(100))]
            .into_iter()
            .flatten()
            .min()
            .expect("three");
    }
    Run { session, views, fetches, abandoned, rounds }
}

pub(super) fn config(protocol: Protocol, algorithm: Algorithm) -> Config {
    let path = match protocol {
        Protocol::Dash => MPD_PATH,
        Protocol::Hls => MULTIVARIANT_PATH,
    };
    Config {
        url: Url::parse(&format!("http://server{path}")).expect("a URL"),
        protocol,
        algorithm,
        chunks: ChunkEstimator::Bursts,
        buffer: Duration::from_secs(12),
        download: Download::Segment,
        target_latency: None,
        catch_up: CatchUp::Steps,
        speed_change: None,
        max_drift: None,
        epoch_unix_ns: EPOCH,
        abandon: true,
        cmcd: None,
        session: "session".into(),
        priorities: true,
        keep_bodies: false,
    }
}

pub(super) fn world(schedule: Schedule, rates: &[(u64, u64)]) -> World {
    let rates = rates.iter().map(|(s, kbps)| (Time::from_secs(*s), BitRate::from_kbps(*kbps)));
    World {
        catalogue: catalogue(schedule),
        rates: rates.collect(),
        rtt: Duration::from_millis(40),
        free: Time::ZERO,
        lost: 0..0,
        dead: Time::ZERO..Time::ZERO,
        instead: None,
        lie: None,
        clock: AuthorsTime::Unnamed,
        silent: "",
        damage: Vec::new(),
        damaged: 0,
    }
}

impl Run {
    /// Numbers and rungs of the video segments that arrived.
    pub(super) fn video(&self) -> Vec<(Time, u64, u64)> {
        let gone = |fetch: &Fetch| {
            let mut given_up = self.abandoned.iter().map(|(_, gone)| gone.request.fetch.number);
            given_up.any(|number| number == fetch.number)
        };
        let fetched =
            self.fetches.iter().filter(|(_, fetch, status)| *status == 200 && !gone(fetch));
        fetched
            .filter_map(|(at, fetch, _)| match &fetch.what {
                What::Segment { kind: TrackKind::Video, rate, segment, .. } => {
                    Some((*at, segment.number, rate.as_bps() / 1000))
                }
                _ => None,
            })
            .collect()
    }

    /// Mean bit rate asked for between two times, in kbit/s.
    pub(super) fn mean_kbps(&self, from_s: u64, to_s: u64) -> f64 {
        let span = Time::from_secs(from_s)..Time::from_secs(to_s);
        let rates: Vec<_> =
            self.video().into_iter().filter(|v| span.contains(&v.0)).map(|v| v.2).collect();
        rates.iter().sum::<u64>() as f64 / rates.len() as f64
    }

    pub(super) fn last(&self) -> View {
        self.views.last().expect("a run has views").1
    }
}
