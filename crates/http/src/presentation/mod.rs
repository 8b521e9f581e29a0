//! What a manifest says, in one form for DASH and HLS, exact and bounded.
//!
//! Both parsers take bytes from outside: they refuse what they do not understand where it matters,
//! name the line, and never panic. Numbers are integers all the way: media times are counted in
//! the manifest's own ticks and converted once.

mod frame_rate;
mod mpd;
mod playlist;

pub use frame_rate::FrameRate;
pub use mpd::from_mpd;
pub(crate) use playlist::SKIP_DIRECTIVE;
pub use playlist::{ListedPart, MediaPlaylist, Parts, Playlist, from_playlist};

use suiro_units::{BitRate, Duration};

use crate::url::Url;

/// The largest manifest that is looked at.
pub const MANIFEST_BYTES_MAX: usize = 4 << 20;
/// The most rungs of one track.
pub const RUNGS_MAX: usize = 256;
/// The most segments that a manifest may list for one rung.
pub const LISTED_MAX: usize = 100_000;
/// The most rows of segment timelines that a manifest may mean, all rungs together: one that is
/// written once counts for each rung that inherits it. 32 MB.
pub const ROWS_MAX: usize = 1_000_000;
/// The most bytes of all URLs that a playlist means: each may repeat a long base.
pub const URL_BYTES_MAX: usize = 64 << 20;
/// The longest segment.
pub const SEGMENT_MAX: Duration = Duration::from_secs(600);
/// The longest media time: a year.
pub const MEDIA_MAX: Duration = Duration::from_secs(366 * 86_400);

/// Why a manifest cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct ManifestError {
    /// Line of the manifest, from 1; `None` if it is about the whole.
    pub line: Option<u32>,
    /// What is wrong.
    pub problem: String,
}

impl ManifestError {
    fn whole(problem: impl Into<String>) -> Self {
        Self { line: None, problem: problem.into() }
    }

    fn at(line: u32, problem: impl Into<String>) -> Self {
        Self { line: Some(line), problem: problem.into() }
    }
}

/// A stream to play: tracks, each in several rungs.
#[derive(Debug, Clone, PartialEq)]
pub struct Presentation {
    /// The tracks to play together, video first.
    pub tracks: Vec<Track>,
    /// For a live stream.
    pub live: Option<LiveStream>,
    /// The whole duration; `None` while it is unknown.
    pub duration: Option<Duration>,
    /// After how long the manifest should be fetched again; `None`: never.
    pub refresh: Option<Duration>,
    /// Where to fetch it from then, if not from where it came.
    pub location: Option<Url>,
}

/// What only a live stream has.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LiveStream {
    /// When media time zero was captured, in nanoseconds since 1970 by the wall clock.
    pub zero_unix_ns: Option<u64>,
    /// True if it cannot have been captured then: its times only place segments next to one another.
    pub is_mistimed: bool,
    /// Latency at which its author wants it played.
    pub suggested_delay: Option<Duration>,
    /// How its author wants it played near the live edge.
    pub service: Service,
    /// The clock by which its times are meant; `None`: no clock that is understood.
    pub clock: Option<Box<ClockSource>>,
}

/// A clock by which the times of a manifest are meant (ISO/IEC 23009-1 §5.8.4.11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClockSource {
    /// It showed this when the manifest was sent, in nanoseconds since 1970.
    Direct(u64),
    /// A server that answers with its date and time.
    Ask(Url),
}

/// The service description of a low-latency stream (ISO/IEC 23009-1 annex K).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Service {
    /// Target latency.
    pub latency: Option<Duration>,
    /// The most by which the playback speed may differ from 1, from 0 to 0.5.
    pub speed_change: Option<f64>,
}

/// One kind of media, in rungs of rising bit rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Track {
    /// What it carries.
    pub kind: TrackKind,
    /// Its rungs, lowest bit rate first; at least one.
    pub rungs: Vec<Rung>,
}

/// What a track carries; of video, perhaps sound in the same segments.
pub use suiro_record::words::Track as TrackKind;

/// One encoding of a track.
#[derive(Debug, Clone, PartialEq)]
pub struct Rung {
    /// Nominal bit rate; never zero.
    pub rate: BitRate,
    /// Frames per second; `None` if the manifest does not have it, or for sound.
    pub frame_rate: Option<FrameRate>,
    /// Where its segments are.
    pub source: Source,
}

/// Where a rung's segments are listed.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// Here.
    Segments(Segments),
    /// In a media playlist of its own.
    Playlist(Url),
}

/// Something to fetch: a URL, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Where.
    pub url: Url,
    /// First and last byte; `None` for all. Without a last one it goes on to the end of the resource.
    pub range: Option<(u64, Option<u64>)>,
}

/// A segment of a rung.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Its number in the manifest.
    pub number: u64,
    /// Media time at which it begins.
    pub start: Duration,
    /// How long it lasts; not zero.
    pub duration: Duration,
    /// Its bytes.
    pub media: Resource,
    /// What a decoder needs before it; `None` if it stands alone (MPEG-TS).
    pub init: Option<Resource>,
}

impl Segment {
    /// Media time at which it ends.
    pub fn end(&self) -> Duration {
        self.start + self.duration
    }
}

/// A row of segments of equal duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Number of the first.
    pub number: u64,
    /// Start of the first, in ticks.
    pub start: u64,
    /// Duration of each, in ticks; not zero.
    pub duration: u64,
    /// How many; not zero.
    pub count: u64,
}

impl Run {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.duration.saturating_mul(self.count))
    }
}

/// The segments of one rung, in rising order of start, kept as runs: a day of live media is a few
/// numbers, not forty thousand URLs.
#[derive(Debug, Clone, PartialEq)]
pub struct Segments {
    pub(crate) runs: Vec<Run>,
    /// Ticks per second.
    pub(crate) timescale: u64,
    /// Ticks at media time `zero_at`.
    pub(crate) zero_ticks: u64,
    /// Media time at which the period begins.
    pub(crate) zero_at: Duration,
    pub(crate) names: Names,
    /// True if the manifest lists segments as they become available; false if they follow from a
    /// rule, and the clock says which of them are there.
    pub(crate) listed: bool,
    /// How long before its end a segment can be asked for.
    pub(crate) early: Duration,
    /// True if a segment that is asked for before its end comes as it is captured.
    pub(crate) in_chunks: bool,
}

/// How a segment's number leads to its URL.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Names {
    /// By a template.
    Template { media: mpd::Template, init: Option<Resource>, base: Url },
    /// One by one; the first belongs to the first run's number.
    Listed(Vec<(Resource, Option<Resource>)>),
}

impl Segments {
    /// The first segment.
    pub fn first(&self) -> Option<Segment> {
        self.segment(self.runs.first()?, 0)
    }

    /// The last segment that is listed.
    pub fn last(&self) -> Option<Segment> {
        let run = self.runs.last()?;
        self.segment(run, run.count - 1)
    }

    /// True if the manifest lists segments as they become available; false if the clock says.
    pub fn is_listed(&self) -> bool {
        self.listed
    }

    /// How long before its end a segment can be asked for: zero unless it comes in chunks.
    pub fn early(&self) -> Duration {
        self.early
    }

    /// True if a segment that is asked for before its end comes as it is captured.
    pub fn in_chunks(&self) -> bool {
        self.in_chunks
    }

    /// Media time of a decode time in ticks of the media, of which there are `timescale` in a second.
    pub fn time_of(&self, decode_time: u64, timescale: u32) -> Option<Duration> {
        let ns = |ticks: u64, scale: u64| {
            Some(u128::from(ticks) * 1_000_000_000 / u128::from(Some(scale).filter(|s| *s > 0)?))
        };
        let zero = ns(self.zero_ticks, self.timescale)?;
        let since = ns(decode_time, timescale.into())?.checked_sub(zero)?;
        let time =
            Duration::from_nanos(u64::try_from(since).ok()?.min(u64::MAX / 4)) + self.zero_at;
        (time <= MEDIA_MAX).then_some(time)
    }

    /// Gives the first segment another number, and the others those after it; only where URLs
    /// contain times, so that we choose the numbers.
    pub(crate) fn renumber(&mut self, first: u64) {
        let by_time = matches!(&self.names, Names::Template { media, .. } if !media.has_number());
        let Some(now) = self.runs.first().map(|run| run.number).filter(|_| by_time) else { return };
        for run in &mut self.runs {
            run.number = (run.number - now).saturating_add(first);
        }
    }

    /// The segment of that number.
    pub fn by_number(&self, number: u64) -> Option<Segment> {
        let run = self.runs.iter().rev().find(|run| run.number <= number)?;
        let index = number - run.number;
        if index < run.count { self.segment(run, index) } else { None }
    }

    /// The segment that holds media time `time`; where there is a hole, the one after it. `None`
    /// past the last.
    pub fn at(&self, time: Duration) -> Option<Segment> {
        let ticks = self.ticks_at(time);
        let run = self.runs.get(self.runs.partition_point(|run| run.end() <= ticks))?;
        let index = ticks.saturating_sub(run.start) / run.duration;
        self.segment(run, index.min(run.count - 1))
    }

    /// The segment to fetch after one that ends at `end`: [`Segments::at`], forgiving rounding and
    /// rungs whose segments do not quite agree.
    pub fn following(&self, end: Duration) -> Option<Segment> {
        let found = self.at(end)?;
        // Half of it already played: what is wanted begins where it ends.
        let late = end.saturating_sub(found.start) > found.duration / 2;
        if late { self.at(found.end() + self.tick()) } else { Some(found) }
    }

    fn tick(&self) -> Duration {
        Duration::from_nanos(1_000_000_000u64.div_ceil(self.timescale))
    }

    fn ticks_at(&self, time: Duration) -> u64 {
        let ns = u128::from(time.saturating_sub(self.zero_at).as_nanos());
        let ticks = ns * u128::from(self.timescale) / 1_000_000_000;
        u64::try_from(ticks).unwrap_or(u64::MAX).saturating_add(self.zero_ticks)
    }

    /// `None` for what lies beyond the longest media time.
    fn segment(&self, run: &Run, index: u64) -> Option<Segment> {
        let start_ticks = run.start.checked_add(run.duration.checked_mul(index)?)?;
        let number = run.number.checked_add(index)?;
        let start = self.media_time(start_ticks)?;
        let end = self.media_time(start_ticks.checked_add(run.duration)?)?;
        let (media, init) = match &self.names {
            Names::Template { media, init, base } => {
                let name = media.expand(number, start_ticks);
                let url = base.join(&name).ok()?;
                (Resource { url, range: None }, init.clone())
            }
            Names::Listed(all) => {
                let at = number.checked_sub(self.runs.first()?.number)?;
                all.get(usize::try_from(at).ok()?)?.clone()
            }
        };
        let duration = end.saturating_sub(start).max(Duration::from_nanos(1));
        Some(Segment { number, start, duration, media, init })
    }

    /// Rounded down to a nanosecond; ticks before the period's zero are cut off.
    fn media_time(&self, ticks: u64) -> Option<Duration> {
        let ticks = u128::from(ticks.saturating_sub(self.zero_ticks));
        let ns = ticks * 1_000_000_000 / u128::from(self.timescale);
        let time = self.zero_at + Duration::from_nanos(u64::try_from(ns).ok()?.min(u64::MAX / 4));
        (time <= MEDIA_MAX).then_some(time)
    }
}

/// Orders rungs by bit rate, and checks their number.
fn ladder(mut rungs: Vec<Rung>) -> Result<Vec<Rung>, ManifestError> {
    if rungs.len() > RUNGS_MAX {
        return Err(ManifestError::whole(format!("more than {RUNGS_MAX} rungs of one track")));
    }
    rungs.sort_by_key(|rung| rung.rate);
    Ok(rungs)
}
