//! DASH manifests (ISO/IEC 23009-1) to a [`Presentation`].
//!
//! What is understood: one period; `SegmentTemplate` with `SegmentTimeline` or `@duration`, at any
//! level; `BaseURL`; live and on demand. What is refused with its name: several periods, other
//! addressing, encryption, `xlink`. Of low latency: `availabilityTimeOffset`, `availabilityTimeComplete`, and the `Latency`
//! and `PlaybackRate` of a `ServiceDescription`. Of live streams: the first `UTCTiming` whose scheme is known.

use roxmltree::{Document, Node, ParsingOptions};
use suiro_units::{BitRate, Duration};

use super::{
    ClockSource, FrameRate, LISTED_MAX, LiveStream, MANIFEST_BYTES_MAX, MEDIA_MAX, ManifestError,
    Names, Presentation, ROWS_MAX, Resource, Run, Rung, SEGMENT_MAX, Segments, Service, Source,
    Track, TrackKind, ladder,
};
use crate::iso8601;
use crate::url::Url;

/// The most XML nodes of a manifest.
const NODES_MAX: u32 = 500_000;

type Result<T> = std::result::Result<T, ManifestError>;

/// Maps an MPD that came from `url`.
///
/// # Errors
/// [`ManifestError`] names the line and what is wrong or not supported.
pub fn from_mpd(bytes: &[u8], url: &Url) -> Result<Presentation> {
    if bytes.len() > MANIFEST_BYTES_MAX {
        let problem = format!("more than {MANIFEST_BYTES_MAX} bytes");
        return Err(ManifestError::whole(problem));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|e| ManifestError::whole(format!("not UTF-8 at byte {}", e.valid_up_to())))?;
    let options = ParsingOptions { allow_dtd: false, nodes_limit: NODES_MAX, ..Default::default() };
    let document = Document::parse_with_options(text, options)
        .map_err(|e| ManifestError::at(e.pos().row, format!("not well-formed XML: {e}")))?;
    let root = document.root_element();
    if root.tag_name().name() != "MPD" {
        return Err(at(root, format!("<{}> where <MPD> was expected", root.tag_name().name())));
    }
    presentation(root, url)
}

fn at(node: Node, problem: impl Into<String>) -> ManifestError {
    let position = node.document().text_pos_at(node.range().start);
    ManifestError::at(position.row, problem)
}

fn children<'a>(node: Node<'a, 'a>, name: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    node.children().filter(move |c| c.is_element() && c.tag_name().name() == name)
}

fn child<'a>(node: Node<'a, 'a>, name: &'a str) -> Option<Node<'a, 'a>> {
    children(node, name).next()
}

/// An attribute that is a whole number.
fn number(node: Node, name: &str) -> Result<Option<u64>> {
    let Some(text) = node.attribute(name) else { return Ok(None) };
    let wrong = |_| at(node, format!("@{name}=\"{}\" is not a whole number", show(text)));
    text.trim().parse().map(Some).map_err(wrong)
}

/// An attribute that is a duration.
fn duration(node: Node, name: &str) -> Result<Option<Duration>> {
    let Some(text) = node.attribute(name) else { return Ok(None) };
    let parsed = iso8601::parse_duration(text);
    parsed
        .map(Some)
        .ok_or_else(|| at(node, format!("@{name}=\"{}\" is not a duration", show(text))))
}

fn show(text: &str) -> String {
    text.chars().take(60).collect()
}

/// What the `BaseURL`s down to an element say.
#[derive(Debug, Clone)]
struct Base {
    url: Url,
    /// Their offsets, added up.
    early: Duration,
    /// Whether segments are complete when they can be asked for: as the nearest of them has it.
    complete: bool,
}

impl Base {
    /// That below this element.
    fn below(&self, node: Node) -> Result<Self> {
        let Some(element) = child(node, "BaseURL") else { return Ok(self.clone()) };
        let text = element.text().unwrap_or_default();
        let url = self.url.join(text).map_err(|e| at(element, format!("<BaseURL>: {e}")))?;
        let early = offset(element, element.attribute("availabilityTimeOffset"))?;
        let complete = element.attribute("availabilityTimeComplete");
        Ok(Self {
            url,
            early: added(element, self.early, early)?,
            complete: complete.map_or(self.complete, is_true),
        })
    }
}

/// A Boolean of XML, whose default is true.
fn is_true(text: &str) -> bool {
    !matches!(text.trim(), "false" | "0")
}

/// §5.3.9.2.2: how long before its end a segment can be asked for. `INF`, always, is of use only to those who know what there
/// will be.
fn offset(node: Node, text: Option<&str>) -> Result<Duration> {
    let Some(text) = text.map(str::trim).filter(|text| *text != "INF") else {
        return Ok(Duration::ZERO);
    };
    let ns = iso8601::decimal_ns(text).filter(|ns| *ns <= SEGMENT_MAX.as_nanos());
    ns.map(Duration::from_nanos).ok_or_else(|| {
        let problem = format!("@availabilityTimeOffset=\"{}\": expected seconds", show(text));
        at(node, format!("{problem}, at most {SEGMENT_MAX}"))
    })
}

/// The sum of two offsets.
fn added(node: Node, one: Duration, other: Duration) -> Result<Duration> {
    let sum = Some(one + other).filter(|sum| *sum <= SEGMENT_MAX);
    sum.ok_or_else(|| at(node, format!("@availabilityTimeOffset: more than {SEGMENT_MAX} in all")))
}

fn presentation(mpd: Node, url: &Url) -> Result<Presentation> {
    let dynamic = match mpd.attribute("type") {
        None | Some("static") => false,
        Some("dynamic") => true,
        Some(other) => return Err(at(mpd, format!("@type=\"{}\" is not known", show(other)))),
    };
    let mut periods = children(mpd, "Period");
    let period = periods.next().ok_or_else(|| at(mpd, "no <Period>"))?;
    if let Some(second) = periods.next() {
        return Err(at(second, "a second <Period>: only one is supported"));
    }
    let start = duration(period, "start")?.unwrap_or_default();
    let total = match duration(mpd, "mediaPresentationDuration")? {
        Some(total) => Some(total.saturating_sub(start)),
        None => duration(period, "duration")?,
    };
    if total.is_some_and(|total| total > MEDIA_MAX) {
        return Err(at(mpd, "the presentation is longer than a year"));
    }
    let base = Base { url: url.clone(), early: Duration::ZERO, complete: true };
    let base = base.below(mpd)?.below(period)?;
    let tracks = tracks(period, &base, total)?;
    let location = child(mpd, "Location").and_then(|l| l.text());
    let location = location
        .map(|t| url.join(t).map_err(|e| at(mpd, format!("<Location>: {e}"))))
        .transpose()?;
    Ok(Presentation {
        tracks,
        live: if dynamic { Some(live(mpd, start, url)?) } else { None },
        duration: total,
        refresh: duration(mpd, "minimumUpdatePeriod")?,
        location,
    })
}

fn live(mpd: Node, period_start: Duration, url: &Url) -> Result<LiveStream> {
    let text = mpd
        .attribute("availabilityStartTime")
        .ok_or_else(|| at(mpd, "a dynamic MPD needs @availabilityStartTime (§5.3.1.2)"))?;
    let start = iso8601::parse_date_time(text).ok_or_else(|| {
        at(mpd, format!("@availabilityStartTime=\"{}\" is not a date and time", show(text)))
    })?;
    Ok(LiveStream {
        zero_unix_ns: Some(start.saturating_add(period_start.as_nanos())),
        is_mistimed: false,
        suggested_delay: duration(mpd, "suggestedPresentationDelay")?,
        service: service(mpd)?,
        clock: children(mpd, "UTCTiming").find_map(|timing| clock(timing, url)).map(Box::new),
    })
}

/// §5.8.4.11: the first in the document is the one that its author prefers. What is not understood is passed over.
fn clock(timing: Node, url: &Url) -> Option<ClockSource> {
    let scheme = timing.attribute("schemeIdUri")?.strip_prefix("urn:mpeg:dash:utc:")?;
    let value = timing.attribute("value")?.trim();
    match scheme.rsplit_once(':')? {
        ("direct", _) => iso8601::parse_date_time(value).map(ClockSource::Direct),
        // Several URLs may be given, and any of them may be asked.
        ("http-xsdate" | "http-iso", _) => {
            let first = value.split_whitespace().next()?;
            url.join(first).ok().map(ClockSource::Ask)
        }
        _ => None,
    }
}

/// Annex K: the first service description. A latency of more than a year, and speeds that are no numbers, say nothing.
fn service(mpd: Node) -> Result<Service> {
    let Some(description) = child(mpd, "ServiceDescription") else { return Ok(Service::default()) };
    let target_ms = child(description, "Latency").map(|latency| number(latency, "target"));
    let latency = target_ms.transpose()?.flatten().and_then(|ms| {
        Some(Duration::from_nanos(ms.checked_mul(1_000_000)?)).filter(|span| *span <= MEDIA_MAX)
    });
    let speed = |name: &str| -> Option<f64> {
        let text = child(description, "PlaybackRate")?.attribute(name)?;
        text.trim().parse().ok().filter(|speed: &f64| (0.5..=1.5).contains(speed))
    };
    // The playout changes its speed by as much in either direction.
    let most = [speed("min").map(|least| 1.0 - least), speed("max").map(|most| most - 1.0)];
    let speed_change = most.into_iter().flatten().map(|change| change.max(0.0)).reduce(f64::min);
    Ok(Service { latency, speed_change })
}

/// One track of each kind: the first adaptation set of it.
fn tracks(period: Node, base: &Base, total: Option<Duration>) -> Result<Vec<Track>> {
    let mut tracks: Vec<Track> = Vec::new();
    let mut rows = 0;
    for set in children(period, "AdaptationSet") {
        let Some(kind) = kind(set) else { continue };
        if tracks.iter().any(|track| track.kind == kind) {
            continue;
        }
        if set.attributes().any(|a| a.name() == "href") {
            return Err(at(set, "xlink:href is not supported"));
        }
        if let Some(protection) = child(set, "ContentProtection") {
            return Err(at(protection, "encrypted media is not supported"));
        }
        let set_base = base.below(set)?;
        let levels = [child(period, "SegmentTemplate"), child(set, "SegmentTemplate")];
        let mut rungs = Vec::new();
        for representation in children(set, "Representation") {
            let (mut rung, own_rows) = rung(representation, &set_base, levels, total)?;
            // §5.3.7.2: an attribute that all representations share stands on their set.
            let frame_rate =
                representation.attribute("frameRate").or_else(|| set.attribute("frameRate"));
            rung.frame_rate = frame_rate.and_then(FrameRate::from_fraction);
            rungs.push(rung);
            rows += own_rows;
            if rows > ROWS_MAX {
                let problem = format!("more than {ROWS_MAX} rows of <SegmentTimeline> in all");
                return Err(at(representation, problem));
            }
        }
        if rungs.is_empty() {
            return Err(at(set, "<AdaptationSet> without <Representation>"));
        }
        tracks.push(Track { kind, rungs: ladder(rungs)? });
    }
    if tracks.is_empty() {
        return Err(at(period, "no <AdaptationSet> of video or audio"));
    }
    tracks.sort_by_key(|track| track.kind);
    Ok(tracks)
}

fn kind(set: Node) -> Option<TrackKind> {
    let named = |node: Node| {
        let text = node.attribute("contentType").or_else(|| node.attribute("mimeType"))?;
        match text.split('/').next() {
            Some("video") => Some(TrackKind::Video),
            Some("audio") => Some(TrackKind::Audio),
            _ => None,
        }
    };
    named(set).or_else(|| child(set, "Representation").and_then(named))
}

/// A rung, and how many rows its timeline has.
fn rung(
    representation: Node,
    base: &Base,
    levels: [Option<Node>; 2],
    total: Option<Duration>,
) -> Result<(Rung, usize)> {
    let rate = number(representation, "bandwidth")?.filter(|rate| *rate > 0);
    let rate = rate.ok_or_else(|| at(representation, "<Representation> needs a @bandwidth"))?;
    let own = child(representation, "SegmentTemplate");
    let templates: Vec<Node> = [own, levels[1], levels[0]].into_iter().flatten().collect();
    let Some(&nearest) = templates.first() else {
        return Err(at(representation, "only SegmentTemplate is supported, and there is none"));
    };
    // §5.3.9.1: an attribute or element that is absent is inherited from the level above.
    let addressing = Addressing { representation, templates: &templates, rate, nearest };
    let base = base.below(representation)?;
    let segments = addressing.segments(base, total)?;
    let rows = segments.runs.len();
    Ok((
        Rung {
            rate: BitRate::from_bps(rate),
            frame_rate: None,
            source: Source::Segments(segments),
        },
        rows,
    ))
}

/// The `SegmentTemplate`s that hold for one representation, nearest first.
struct Addressing<'a> {
    representation: Node<'a, 'a>,
    templates: &'a [Node<'a, 'a>],
    rate: u64,
    nearest: Node<'a, 'a>,
}

impl Addressing<'_> {
    fn attribute(&self, name: &str) -> Option<&str> {
        self.templates.iter().find_map(|template| template.attribute(name))
    }

    /// The offset of the template adds to those of `BaseURL`s.
    fn early(&self, base: Duration) -> Result<Duration> {
        let own = offset(self.nearest, self.attribute("availabilityTimeOffset"))?;
        added(self.nearest, base, own)
    }

    fn number(&self, name: &str) -> Result<Option<u64>> {
        let holder = self.templates.iter().find(|t| t.has_attribute(name));
        holder.map_or(Ok(None), |t| number(*t, name))
    }

    fn template(&self, name: &str) -> Result<Option<Template>> {
        let Some(text) = self.templates.iter().find_map(|t| t.attribute(name)) else {
            return Ok(None);
        };
        let id = self.representation.attribute("id").unwrap_or_default();
        let parsed = Template::parse(text, id, self.rate);
        parsed.map(Some).map_err(|problem| at(self.nearest, format!("@{name}: {problem}")))
    }

    fn segments(&self, base: Base, total: Option<Duration>) -> Result<Segments> {
        let early = self.early(base.early)?;
        // §5.6: what a template does not say, the `BaseURL`s may.
        let complete = self.attribute("availabilityTimeComplete").map_or(base.complete, is_true);
        let base = base.url;
        let timescale = self.number("timescale")?.unwrap_or(1);
        if !(1..=1_000_000_000).contains(&timescale) {
            return Err(at(self.nearest, format!("@timescale={timescale} is not 1 to 10⁹")));
        }
        let first = self.number("startNumber")?.unwrap_or(1);
        let zero_ticks = self.number("presentationTimeOffset")?.unwrap_or(0);
        let timeline = self.templates.iter().find_map(|t| child(*t, "SegmentTimeline"));
        let total_ticks = total.map(|total| {
            let ticks = u128::from(total.as_nanos()) * u128::from(timescale);
            u64::try_from(ticks.div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
        });
        let runs = match timeline {
            Some(timeline) => {
                let end = total_ticks.map(|ticks| ticks.saturating_add(zero_ticks));
                Timeline { first, timescale, end }.runs(timeline)?
            }
            None => vec![self.uniform(first, timescale, zero_ticks, total_ticks)?],
        };
        let media = self
            .template("media")?
            .ok_or_else(|| at(self.nearest, "<SegmentTemplate> needs @media"))?;
        let init = match self.template("initialization")? {
            None => None,
            Some(template) => {
                let url = base.join(&template.expand(0, 0));
                let url = url.map_err(|e| at(self.nearest, format!("@initialization: {e}")))?;
                Some(Resource { url, range: None })
            }
        };
        base.join(&media.expand(first, 0)).map_err(|e| at(self.nearest, format!("@media: {e}")))?;
        let mut segments = Segments {
            runs,
            timescale,
            zero_ticks,
            zero_at: Duration::ZERO,
            names: Names::Template { media, init, base },
            listed: timeline.is_some(),
            early,
            in_chunks: !complete,
        };
        if self.number("startNumber")?.is_none() && timeline.is_some() {
            segments.renumber(likely_number(&segments.runs, zero_ticks));
        }
        Ok(segments)
    }

    /// §5.3.9.5.3: segments of one duration, as many as the presentation is long.
    fn uniform(
        &self,
        number: u64,
        timescale: u64,
        start: u64,
        total_ticks: Option<u64>,
    ) -> Result<Run> {
        let duration = self.number("duration")?.ok_or_else(|| {
            at(self.nearest, "<SegmentTemplate> needs @duration or <SegmentTimeline>")
        })?;
        check_duration(self.nearest, duration, timescale)?;
        let most = timescale.saturating_mul(MEDIA_MAX.as_nanos() / 1_000_000_000);
        let count = total_ticks.unwrap_or(most).div_ceil(duration).max(1);
        Ok(Run { number, start, duration, count })
    }
}

/// What number the first segment of a window would have, had the stream begun at media time zero
/// with number 0 and segments as long as those that are listed.
fn likely_number(runs: &[Run], zero_ticks: u64) -> u64 {
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return 0 };
    let count = runs.iter().fold(0u64, |sum, run| sum.saturating_add(run.count)).max(1);
    let mean = ((last.end() - first.start) / count).max(1);
    (first.start.saturating_sub(zero_ticks) + mean / 2) / mean
}

fn check_duration(node: Node, ticks: u64, timescale: u64) -> Result<()> {
    let longest = u128::from(SEGMENT_MAX.as_nanos()) * u128::from(timescale) / 1_000_000_000;
    if ticks == 0 || u128::from(ticks) > longest {
        let problem =
            format!("a segment of {ticks} ∕ {timescale} s: not above 0 and up to {SEGMENT_MAX}");
        return Err(at(node, problem));
    }
    Ok(())
}

/// §5.3.9.6: the rows of a `SegmentTimeline`.
struct Timeline {
    first: u64,
    timescale: u64,
    /// Where the presentation ends, in ticks.
    end: Option<u64>,
}

impl Timeline {
    fn runs(&self, timeline: Node) -> Result<Vec<Run>> {
        let rows: Vec<Node> = children(timeline, "S").take(LISTED_MAX + 1).collect();
        if rows.len() > LISTED_MAX {
            return Err(at(timeline, format!("more than {LISTED_MAX} rows")));
        }
        let mut runs: Vec<Run> = Vec::with_capacity(rows.len());
        let (mut number_next, mut start_next) = (self.first, 0u64);
        for (index, row) in rows.iter().enumerate() {
            let start = number(*row, "t")?.unwrap_or(start_next);
            if start < start_next && !runs.is_empty() {
                return Err(at(*row, format!("<S t=\"{start}\"> overlaps the row before it")));
            }
            let duration = number(*row, "d")?.ok_or_else(|| at(*row, "<S> needs @d"))?;
            check_duration(*row, duration, self.timescale)?;
            let next = rows.get(index + 1).map(|n| number(*n, "t")).transpose()?.flatten();
            let count = self.count(*row, start, duration, next)?;
            let run =
                Run { number: number(*row, "n")?.unwrap_or(number_next), start, duration, count };
            let last = run.number.checked_add(count).zip(duration.checked_mul(count));
            let (after, length) = last.ok_or_else(|| at(*row, "<S> counts too far"))?;
            start_next = start.checked_add(length).ok_or_else(|| at(*row, "<S> counts too far"))?;
            if run.number < number_next {
                return Err(at(*row, "<S n> falls"));
            }
            number_next = after;
            runs.push(run);
        }
        if runs.is_empty() { Err(at(timeline, "<SegmentTimeline> is empty")) } else { Ok(runs) }
    }

    /// `@r` more of the same; negative: until the next row, or the presentation's end.
    fn count(&self, row: Node, start: u64, duration: u64, next: Option<u64>) -> Result<u64> {
        let text = row.attribute("r").unwrap_or("0");
        let wrong = || at(row, format!("@r=\"{}\" is not a whole number", show(text)));
        let repeat: i64 = text.trim().parse().map_err(|_| wrong())?;
        let count = match u64::try_from(repeat) {
            Ok(repeat) => repeat.saturating_add(1),
            Err(_) => {
                let end = next.or(self.end);
                let end = end.ok_or_else(|| at(row, "@r=-1, and no end is given"))?;
                end.saturating_sub(start).div_ceil(duration).max(1)
            }
        };
        if count > 100 * LISTED_MAX as u64 {
            return Err(at(row, format!("{count} segments in one row are too many")));
        }
        Ok(count)
    }
}

/// A URL with `$…$` identifiers (§5.3.9.4.4), those of the representation already filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Number { width: usize },
    Time { width: usize },
}

impl Template {
    fn parse(text: &str, id: &str, rate: u64) -> std::result::Result<Self, String> {
        if text.len() > crate::url::BYTES_MAX {
            return Err("too long".into());
        }
        if text.split('$').count().is_multiple_of(2) {
            return Err("a `$` without its pair".into());
        }
        let mut parts = Vec::new();
        // Outside and inside of dollar signs take turns.
        for (index, piece) in text.split('$').enumerate() {
            if index % 2 == 0 {
                parts.push(Part::Text(piece.into()));
                continue;
            }
            let (name, width) = match piece.split_once('%') {
                None => (piece, 1),
                Some((name, format)) => (name, width(format)?),
            };
            parts.push(match name {
                "" => Part::Text("$".into()),
                "RepresentationID" => Part::Text(id.into()),
                "Bandwidth" => Part::Text(format!("{rate:0width$}")),
                "Number" => Part::Number { width },
                "Time" => Part::Time { width },
                other => return Err(format!("`${}$` is not known", show(other))),
            });
        }
        Ok(Self { parts })
    }

    /// True if a segment's number is part of its URL.
    pub(crate) fn has_number(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Number { .. }))
    }

    pub(crate) fn expand(&self, number: u64, time: u64) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Number { width } => out.push_str(&format!("{number:0width$}")),
                Part::Time { width } => out.push_str(&format!("{time:0width$}")),
            }
        }
        out
    }
}

/// The width of `%0WIDTHd`, at most 20.
fn width(format: &str) -> std::result::Result<usize, String> {
    let digits = format.strip_prefix('0').and_then(|f| f.strip_suffix('d'));
    digits
        .and_then(|d| d.parse().ok())
        .filter(|width| *width <= 20)
        .ok_or_else(|| format!("`%{}` is not a format such as `%05d`", show(format)))
}

#[cfg(test)]
mod tests;
