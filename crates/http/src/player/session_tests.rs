//! A session against our own origin's manifests, over a model of a link, in virtual time.

use proptest::prelude::*;
use suiro_abr::Algorithm;
use suiro_scenario::HlsRungs;
use suiro_units::{BitRate, Bytes, Duration, Time};

use super::*;
use crate::origin::catalogue::{Catalogue, Container, RungEntry, TrackEntry};
use crate::origin::timeline::{Availability, Loop, Schedule};
use crate::origin::{MPD_PATH, MULTIVARIANT_PATH, manifest};
use crate::player::fetch::FetchError;
use crate::presentation::TrackKind;

/// 2026-11-21T01:57:00Z.
const EPOCH: u64 = 1_795_226_220_000_000_000;
const SEGMENT: Duration = Duration::from_secs(2);

fn rung(id: &str, kbps: u64, timeline: Loop) -> RungEntry {
    RungEntry {
        id: id.into(),
        rate: BitRate::from_kbps(kbps),
        mean_rate: BitRate::from_kbps(kbps),
        codecs: "x".into(),
        size: None,
        frame_rate: None,
        timeline,
    }
}

/// The ladder of the quick scenario, and sound.
fn catalogue(schedule: Schedule) -> Catalogue {
    let pictures = Loop::new(24, &[48; 15]).expect("a loop");
    let sound = Loop::new(48_000, &[96_256, 95_744]).expect("a loop");
    let rungs = [("v0", 300), ("v1", 700), ("v2", 1500), ("v3", 3000)];
    let video = rungs.map(|(id, kbps)| rung(id, kbps, pictures.clone())).to_vec();
    let audio = vec![rung("a", 96, sound)];
    let track = |kind, rungs| TrackEntry { kind, container: Container::Fmp4, rungs };
    let tracks = vec![track(TrackKind::Video, video), track(TrackKind::Audio, audio)];
    Catalogue { tracks, schedule, hls_rungs: HlsRungs::All, version: "x".into() }
}

fn live() -> Schedule {
    let window = Duration::from_secs(30);
    Schedule::Live { zero_unix_ns: EPOCH - window.as_nanos(), window }
}

/// A link that serves one response after the other, and an origin behind it.
struct World {
    catalogue: Catalogue,
    /// Rate from a time on.
    rates: Vec<(Time, BitRate)>,
    rtt: Duration,
    free: Time,
    /// Segments of video that the origin has lost.
    lost: std::ops::Range<u64>,
    /// While the origin is dead: what it was sending breaks off, and nobody answers.
    dead: std::ops::Range<Time>,
    /// What it answers instead, to which target and when.
    instead: Option<fn(&str, Time) -> Option<&'static str>>,
    /// How manifests are damaged, one after the other: how, and where.
    damage: Vec<(u8, u16)>,
    damaged: usize,
}

impl World {
    fn rate(&self, at: Time) -> BitRate {
        self.rates.iter().rev().find(|(from, _)| *from <= at).expect("a rate from the start").1
    }

    /// When that many bytes have been carried, in steps of 10 ms.
    fn carried(&self, from: Time, bytes: Bytes) -> Time {
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
    fn came(&self, from: Time, now: Time, bytes: Bytes) -> Bytes {
        let (step, mut at, mut came) = (Duration::from_millis(10), from, Bytes::ZERO);
        while at + step <= now {
            came += self.rate(at) * step;
            at += step;
        }
        came.min(bytes)
    }

    /// Tells the player how far a request has come.
    fn tell(&self, fetch: &Fetch, fetched: &Fetched, now: Time) {
        let Some(first) = fetched.first_byte.filter(|first| *first <= now) else { return };
        fetch.progress.expect(Some(fetched.bytes));
        let came = self.came(first, now, Bytes::new(fetched.bytes));
        fetch.progress.come(came.get(), || first);
    }

    /// The response under way is cancelled: what the queue holds of it still comes, here half a
    /// second's worth; then what waits behind it.
    fn cancel(&mut self, now: Time, waiting: &mut [(Fetch, Fetched)]) {
        self.free = self.free.min(now + Duration::from_millis(500));
        for (_, fetched) in waiting {
            self.serve(fetched);
        }
    }

    fn serve(&mut self, fetched: &mut Fetched) {
        let first = (fetched.requested + self.rtt).max(self.free);
        self.free = self.carried(first, Bytes::new(fetched.bytes));
        fetched.first_byte = Some(first);
        fetched.finished = self.free;
    }

    /// A manifest as it arrives. All of it is ASCII.
    fn damage(&mut self, mut text: String) -> String {
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
    fn answer(&mut self, target: &str, now: Time) -> Result<(bytes::Bytes, u64), u16> {
        let unix_ns = EPOCH + now.as_nanos();
        if let Some(text) = self.instead.and_then(|instead| instead(target, now)) {
            return Ok((text.into(), text.len() as u64));
        }
        let text = match target {
            MPD_PATH => manifest::mpd(&self.catalogue, unix_ns),
            MULTIVARIANT_PATH => Some(manifest::multivariant(&self.catalogue)),
            _ => target.strip_suffix(".m3u8").and_then(|id| {
                manifest::media(&self.catalogue, id.trim_start_matches('/'), unix_ns)
            }),
        };
        if let Some(text) = text {
            let text = self.damage(text);
            let length = text.len() as u64;
            return Ok((text.into(), length));
        }
        let (id, file) = target[1..].split_once('/').ok_or(404u16)?;
        let (track, rung) = self.catalogue.find(id, Container::Fmp4).ok_or(404u16)?;
        let rung = &self.catalogue.tracks[track].rungs[rung];
        let name = file.trim_end_matches(".m4s");
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

    fn fetch(&mut self, fetch: &Fetch, now: Time) -> Fetched {
        let answer = self.answer(fetch.resource.url.target(), now);
        let mut fetched = Fetched {
            requested: now,
            first_byte: None,
            finished: now,
            held: Duration::ZERO,
            status: Some(answer.as_ref().err().copied().unwrap_or(200)),
            bytes: answer.as_ref().map_or(100, |(_, bytes)| *bytes),
            url: fetch.resource.url.clone(),
            body: answer.map(|(body, _)| body).map_err(FetchError::Status),
        };
        if self.dead.contains(&now) {
            fetched.body = Err(FetchError::Connect(std::io::ErrorKind::ConnectionRefused.into()));
            (fetched.status, fetched.bytes) = (None, 0);
            fetched.finished = now + self.rtt;
            return fetched;
        }
        self.serve(&mut fetched);
        if fetched.finished > self.dead.start && now < self.dead.start {
            fetched.body = Err(FetchError::ProgressTimeout);
            fetched.finished = self.dead.start;
            self.free = self.dead.start;
        }
        fetched
    }
}

/// What happened.
struct Run {
    session: Session,
    views: Vec<(Time, View)>,
    /// Requests with when they were made and the status of their answer.
    fetches: Vec<(Time, Fetch, u16)>,
    abandoned: Vec<(Time, Abandoned)>,
    rounds: u64,
}

fn run(world: &mut World, config: Config, until: Time) -> Run {
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
        pending.iter().for_each(|(fetch, fetched)| world.tell(fetch, fetched, now));
        while let Some(gone) = session.abandon(now) {
            pending.retain(|(fetch, _)| fetch.lane != gone.fetch.lane);
            world.cancel(now, &mut pending);
            abandoned.push((now, gone));
        }
        while let Some(fetch) = session.poll(now) {
            assert!(pending.iter().all(|(other, _)| other.lane != fetch.lane), "a lane is busy");
            fetch.progress.begin(now);
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

fn config(protocol: Protocol, algorithm: Algorithm) -> Config {
    let path = match protocol {
        Protocol::Dash => MPD_PATH,
        Protocol::Hls => MULTIVARIANT_PATH,
    };
    Config {
        url: Url::parse(&format!("http://server{path}")).expect("a URL"),
        protocol,
        algorithm,
        buffer: Duration::from_secs(12),
        download: Download::Segment,
        target_latency: None,
        epoch_unix_ns: EPOCH,
        abandon: true,
        keep_bodies: false,
    }
}

fn world(schedule: Schedule, rates: &[(u64, u64)]) -> World {
    let rates = rates.iter().map(|(s, kbps)| (Time::from_secs(*s), BitRate::from_kbps(*kbps)));
    World {
        catalogue: catalogue(schedule),
        rates: rates.collect(),
        rtt: Duration::from_millis(40),
        free: Time::ZERO,
        lost: 0..0,
        dead: Time::ZERO..Time::ZERO,
        instead: None,
        damage: Vec::new(),
        damaged: 0,
    }
}

impl Run {
    /// Numbers and rungs of the video segments that arrived.
    fn video(&self) -> Vec<(Time, u64, u64)> {
        let gone = |fetch: &Fetch| {
            let progress = self.abandoned.iter().map(|(_, gone)| &gone.fetch.progress);
            progress.into_iter().any(|progress| Arc::ptr_eq(progress, &fetch.progress))
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
    fn mean_kbps(&self, from_s: u64, to_s: u64) -> f64 {
        let span = Time::from_secs(from_s)..Time::from_secs(to_s);
        let rates: Vec<_> =
            self.video().into_iter().filter(|v| span.contains(&v.0)).map(|v| v.2).collect();
        rates.iter().sum::<u64>() as f64 / rates.len() as f64
    }

    fn last(&self) -> View {
        self.views.last().expect("a run has views").1
    }
}

/// The demo's link: 8 Mbit/s, 1.5 from 13 s on, 4 from 27 s on.
const STEPS: &[(u64, u64)] = &[(0, 8000), (13, 1500), (27, 4000)];

#[test]
fn follows_a_link_that_falls_and_rises() {
    for protocol in [Protocol::Dash, Protocol::Hls] {
        for algorithm in Algorithm::ALL {
            let what = format!("{protocol:?} {algorithm}");
            let mut world = world(live(), STEPS);
            let run = run(&mut world, config(protocol, algorithm), Time::from_secs(40));
            assert_eq!(run.session.failure(), None, "{what}");
            let means = [run.mean_kbps(4, 13), run.mean_kbps(17, 27), run.mean_kbps(31, 40)];
            assert!(means[0] > 2000.0, "{what}: {means:?}");
            assert!(means[1] < 1200.0, "{what}: {means:?}");
            assert!(means[2] > means[1], "{what}: {means:?}");
            let totals = run.session.totals().expect("it plays");
            assert!(totals.stalled < Duration::from_secs(3), "{what}: {totals:?}");
            assert!(run.fetches.iter().all(|(_, _, status)| *status == 200), "{what}");
            let numbers: Vec<_> = run.video().iter().map(|v| v.1).collect();
            assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{what}: {numbers:?}");
            // Three segments behind, give or take the tolerance.
            let latency_s = run.last().latency_ns.expect("live") as f64 / 1e9;
            assert!((5.9..7.2).contains(&latency_s), "{what}: {latency_s} s");
        }
    }
}

#[test]
fn giving_up_segments_saves_the_stall_when_the_link_falls() {
    let mut stalled = [Duration::ZERO; 2];
    for protocol in [Protocol::Dash, Protocol::Hls] {
        for algorithm in Algorithm::ALL {
            for abandon in [false, true] {
                let mut world = world(live(), STEPS);
                let config = Config { abandon, ..config(protocol, algorithm) };
                let run = run(&mut world, config, Time::from_secs(40));
                stalled[usize::from(abandon)] += run.session.totals().expect("it plays").stalled;
                assert_eq!(run.abandoned.is_empty(), !abandon, "{protocol:?} {algorithm}");
                // The same segment of a lower rung comes next.
                let videos = run.video();
                for (at, gone) in &run.abandoned {
                    let What::Segment { rate, segment, .. } = &gone.fetch.what else {
                        panic!("only segments are given up: {:?}", gone.fetch.what)
                    };
                    let next = videos.iter().find(|(then, ..)| then >= at).expect("more comes");
                    assert!(next.1 == segment.number && next.2 < rate.as_bps() / 1000, "{next:?}");
                }
            }
        }
    }
    // 7.3 s without, none with it.
    assert!(stalled[0] > Duration::from_secs(5), "{stalled:?}");
    assert!(stalled[1] < stalled[0] / 10, "{stalled:?}");
}

#[test]
fn fills_its_buffer_and_no_more() {
    for protocol in [Protocol::Dash, Protocol::Hls] {
        let schedule = Schedule::Vod { length: Duration::from_secs(60) };
        let mut world = world(schedule, &[(0, 8000)]);
        let run = run(&mut world, config(protocol, Algorithm::Dynamic), Time::from_secs(70));
        let fullest = run.views.iter().map(|(_, v)| v.buffer).max().expect("views");
        assert!(
            fullest <= Duration::from_secs(12) && fullest > Duration::from_secs(11),
            "{fullest}"
        );
        assert_eq!((run.last().state, run.last().stalls), (State::Ended, 0));
        let totals = run.session.totals().expect("it played");
        assert_eq!(totals.playing, Duration::from_secs(60));
        // One manifest (HLS: and one playlist per rung), inits, 30 segments of each track.
        assert!(run.fetches.len() <= 60 + 5 + 6, "{} requests", run.fetches.len());
    }
}

#[test]
fn a_link_too_narrow_for_the_lowest_rung_stalls_and_catches_up_by_jumps() {
    let mut world = world(live(), &[(0, 200)]);
    let config = config(Protocol::Dash, Algorithm::Dynamic);
    let run = run(&mut world, config, Time::from_secs(120));
    let totals = run.session.totals().expect("it plays");
    assert!(totals.stalls > 5 && totals.skipped > Duration::from_secs(10), "{totals:?}");
    let latest = run.views.iter().filter_map(|(_, v)| v.latency_ns).max().expect("live");
    // The target of 6 s, 12 s of drift, and what a row's interval adds.
    assert!(latest <= 18_200_000_000, "{latest}");
    assert!(run.video().iter().skip(3).all(|v| v.2 == 300));
}

#[test]
fn lost_segments_are_skipped_within_bounds() {
    let schedule = Schedule::Vod { length: Duration::from_secs(60) };
    let mut world = world(schedule, &[(0, 8000)]);
    world.lost = 5..7;
    let run1 = run(&mut world, config(Protocol::Dash, Algorithm::Throughput), Time::from_secs(90));
    let totals = run1.session.totals().expect("it played");
    assert_eq!((run1.session.failure(), run1.last().state), (None, State::Ended));
    assert_eq!(totals.skipped, Duration::from_secs(4));
    let lost = run1.fetches.iter().filter(|(_, _, status)| *status == 404);
    let tries: Vec<_> = lost.map(|(at, fetch, _)| (*at, fetch.attempt)).collect();
    assert_eq!(tries.iter().map(|t| t.1).collect::<Vec<_>>(), [1, 2, 3, 4, 1, 2, 3, 4]);
    // After a second, two, four, and the answer's own time.
    let waits: Vec<_> =
        tries[..4].windows(2).map(|pair| (pair[1].0 - pair[0].0).as_secs_f64()).collect();
    for (wait, want) in waits.iter().zip([1.0, 2.0, 4.0]) {
        assert!((want..want + 0.2).contains(wait), "{waits:?}");
    }
    // More than that in a row, and it gives up, having played what it had.
    world.lost = 5..1000;
    world.free = Time::ZERO;
    let run2 = run(&mut world, config(Protocol::Dash, Algorithm::Throughput), Time::from_secs(120));
    assert_eq!(run2.session.failure(), Some("5 video segments in a row: status 404"));
    assert!(run2.last().failed);
    assert_eq!(run2.session.totals().expect("it played").playing, Duration::from_secs(10));
}

#[test]
fn an_origin_that_dies_and_comes_back_is_found_again() {
    for protocol in [Protocol::Dash, Protocol::Hls] {
        let mut world = world(live(), &[(0, 8000)]);
        // In the middle of a segment of 3 Mbit/s, for longer than the buffer lasts.
        world.dead = Time::from_millis(10_300)..Time::from_secs(20);
        let run = run(&mut world, config(protocol, Algorithm::Dynamic), Time::from_secs(45));
        assert_eq!(run.session.failure(), None, "{protocol:?}");
        let dead = |at: &Time| world.dead.contains(at);
        let refused = run.fetches.iter().filter(|(at, ..)| dead(at)).count();
        // The manifest after 1, 2, 4 s; each track so too, and then again with the next segment.
        assert!((4..=18).contains(&refused), "{protocol:?}: {refused} requests");
        let totals = run.session.totals().expect("it plays");
        assert!(totals.stalls >= 1 && totals.stalled < Duration::from_secs(18), "{totals:?}");
        assert_eq!(run.last().state, State::Playing, "{protocol:?}");
        assert!(run.mean_kbps(38, 45) > 2000.0, "{protocol:?}");
    }
}

#[test]
fn an_origin_that_stays_dead_is_given_up() {
    for (protocol, schedule) in [
        (Protocol::Dash, live()),
        (Protocol::Hls, live()),
        (Protocol::Dash, Schedule::Vod { length: Duration::from_secs(90) }),
    ] {
        let mut world = world(schedule, &[(0, 8000)]);
        world.dead = Time::from_millis(10_300)..Time::from_secs(1000);
        let run = run(&mut world, config(protocol, Algorithm::Mpc), Time::from_secs(120));
        assert!(run.session.failure().is_some() && run.last().failed, "{protocol:?}");
        let after = run.fetches.iter().filter(|(at, ..)| *at >= world.dead.start).count();
        assert!(after <= 50, "{protocol:?}: {after} requests");
        let (last, ..) = run.fetches.last().expect("there were requests");
        assert!(*last < Time::from_secs(90), "{protocol:?}: {last}");
    }
}

#[test]
fn a_manifest_cut_short_for_a_while_is_fetched_again() {
    let mut world = world(live(), &[(0, 8000)]);
    let broken = |at: Time| (Time::from_secs(8)..Time::from_secs(10)).contains(&at);
    world.instead = Some(|target, at| {
        let broken = (Time::from_secs(8)..Time::from_secs(10)).contains(&at);
        (target == MPD_PATH && broken).then_some("<MPD type=\"dynamic\"><Period><Adap")
    });
    let run = run(&mut world, config(Protocol::Dash, Algorithm::Dynamic), Time::from_secs(30));
    let manifests =
        run.fetches.iter().filter(|(at, fetch, _)| fetch.what == What::Manifest && broken(*at));
    // One when it was due, then after a second.
    assert!((1..=2).contains(&manifests.count()));
    assert_eq!((run.session.failure(), run.last().state), (None, State::Playing));
    // That is less than what is buffered.
    assert_eq!(run.last().stalls, 0);
}

#[test]
fn a_playlist_that_refers_to_itself_is_given_up() {
    const SELF: &str = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\nmaster.m3u8\n";
    let mut world = world(live(), &[(0, 8000)]);
    world.instead = Some(|_, _| Some(SELF));
    let run = run(&mut world, config(Protocol::Hls, Algorithm::Dynamic), Time::from_secs(60));
    let reason = "a video playlist: a multivariant playlist where a media playlist was expected";
    assert_eq!(run.session.failure(), Some(reason));
    // The multivariant playlist, and six tries at what it names.
    assert_eq!(run.fetches.len(), 7);
}

#[test]
fn a_live_manifest_that_stands_still_is_asked_for_at_its_pace() {
    // Its author wants it fetched all the time: four times a second it is.
    const STILL: &str = "<MPD type='dynamic' availabilityStartTime='2026-11-21T01:56:50Z'
        minimumUpdatePeriod='PT0S'><Location>http://server/manifest.mpd</Location><Period>
        <AdaptationSet contentType='video'><SegmentTemplate media='$Time$'><SegmentTimeline>
        <S t='0' d='2' r='3'/></SegmentTimeline></SegmentTemplate>
        <Representation id='v' bandwidth='1000'/></AdaptationSet></Period></MPD>";
    let mut world = world(live(), &[(0, 8000)]);
    world.instead = Some(|target, _| Some(if target == MPD_PATH { STILL } else { "segment" }));
    let run = run(&mut world, config(Protocol::Dash, Algorithm::Dynamic), Time::from_secs(20));
    let manifests = run.fetches.iter().filter(|(_, fetch, _)| fetch.what == What::Manifest);
    assert!((40..=80).contains(&manifests.count()), "{}", run.fetches.len());
    assert!(run.rounds < 20 * 40, "{} rounds", run.rounds);
    assert_eq!(run.last().state, State::Stalled);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever has become of its manifests on the way.
    #[test]
    fn keeps_within_bounds_on_any_manifest(
        damage in prop::collection::vec(any::<(u8, u16)>(), 1..12),
        hls in any::<bool>(),
        vod in any::<bool>(),
    ) {
        let protocol = if hls { Protocol::Hls } else { Protocol::Dash };
        let schedule = if vod { Schedule::Vod { length: Duration::from_secs(40) } } else { live() };
        let mut world = world(schedule, &[(0, 8000)]);
        world.damage = damage;
        let run = run(&mut world, config(protocol, Algorithm::Dynamic), Time::from_secs(60));
        prop_assert!(run.rounds < 60 * 60, "{} rounds in a minute", run.rounds);
        prop_assert!(run.fetches.len() < 600, "{} requests in a minute", run.fetches.len());
    }

    /// Whatever the link does: no spinning, no request before its time, no buffer beyond its bound.
    #[test]
    fn keeps_within_bounds_on_any_link(
        kbps in prop::collection::vec(20u64..20_000, 1..8),
        rtt_ms in 0u64..800,
        hls in any::<bool>(),
        algorithm in prop::sample::select(&Algorithm::ALL[..]),
        vod in any::<bool>(),
    ) {
        let protocol = if hls { Protocol::Hls } else { Protocol::Dash };
        let schedule = if vod { Schedule::Vod { length: Duration::from_secs(40) } } else { live() };
        let rates: Vec<_> = (0..).map(|n| n * 8).zip(kbps).collect();
        let mut world = world(schedule, &rates);
        world.rtt = Duration::from_millis(rtt_ms);
        let run = run(&mut world, config(protocol, algorithm), Time::from_secs(60));
        prop_assert!(run.rounds < 60 * 40, "{} rounds in a minute", run.rounds);
        prop_assert!(run.fetches.len() < 400, "{} requests in a minute", run.fetches.len());
        let mut given_up: Vec<_> = run.abandoned.iter().map(|(_, gone)| &gone.fetch.what).collect();
        given_up.dedup_by_key(|what| match what {
            What::Segment { segment, .. } => Some(segment.start),
            _ => None,
        });
        prop_assert_eq!(given_up.len(), run.abandoned.len(), "a segment was given up twice");
        for (_, view) in &run.views {
            prop_assert!(view.buffer <= Duration::from_secs(12));
        }
        for (at, fetch, status) in &run.fetches {
            prop_assert!(*status != 404, "{:?} asked for at {at}", fetch.what);
        }
        prop_assert_eq!(run.session.failure(), None);
    }
}
