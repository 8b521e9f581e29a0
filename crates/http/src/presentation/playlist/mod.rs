//! HLS playlists (RFC 8216) to a [`Presentation`] or a [`MediaPlaylist`].
//!
//! Unknown tags are ignored, as §6.3.1 asks. Encryption is refused. Of low latency (draft-pantos-hls-rfc8216bis): parts,
//! preload hints, server control and delta updates; rendition reports are ignored. Gaps (`EXT-X-GAP`, rfc8216bis §4.4.4.7) are
//! holes in the list.

use suiro_units::{BitRate, Duration};

use super::{
    FrameRate, LISTED_MAX, MANIFEST_BYTES_MAX, MEDIA_MAX, ManifestError, Names, Presentation,
    Resource, Run, Rung, SEGMENT_MAX, Segment, Segments, Source, Track, TrackKind, URL_BYTES_MAX,
    ladder,
};
use crate::iso8601;
use crate::url::Url;

/// Media times of playlists are counted in nanoseconds.
const TIMESCALE: u64 = 1_000_000_000;

/// The directive of a request for a delta update (rfc8216bis §6.2.5.1).
pub(crate) const SKIP_DIRECTIVE: &str = "_HLS_skip=YES";

type Result<T> = std::result::Result<T, ManifestError>;

/// `LENGTH[@START]`.
type ByteRange = (u64, Option<u64>);

/// What is said of another text in its place.
const NO_RANGE: &str = "not a byte range; write LENGTH@START, such as 5000@100";

/// What a playlist is.
#[derive(Debug, Clone, PartialEq)]
pub enum Playlist {
    /// It names the playlists of rungs.
    Multivariant(Presentation),
    /// It lists the segments of one rung.
    Media(Box<MediaPlaylist>),
}

/// A media playlist.
#[derive(Debug, Clone, PartialEq)]
pub struct MediaPlaylist {
    /// Its segments; media time zero is where the first begins.
    pub segments: Segments,
    /// Upper bound of a segment's duration (`EXT-X-TARGETDURATION`).
    pub target: Duration,
    /// When the first segment was captured (`EXT-X-PROGRAM-DATE-TIME`), in nanoseconds since 1970.
    pub date_unix_ns: Option<u64>,
    /// True if nothing will be added (`EXT-X-ENDLIST`).
    pub ended: bool,
    /// Its parts, if it has any.
    pub parts: Option<Parts>,
    /// True if it is a delta update: older segments, and what a decoder needs before it, are as they were.
    pub is_update: bool,
}

/// The parts of a low-latency playlist.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts {
    /// `PART-TARGET`: no part is longer.
    pub target: Duration,
    /// `PART-HOLD-BACK`: how far behind the live edge to play.
    pub hold_back: Option<Duration>,
    /// `CAN-BLOCK-RELOAD`: the server holds a request for the next version.
    pub can_block: bool,
    /// `CAN-SKIP-UNTIL`: the server can leave out segments that are further than this from the end. `None` also if byte ranges of
    /// segments follow each other.
    pub can_skip: Option<Duration>,
    /// Parts in rising order.
    pub listed: Vec<ListedPart>,
    /// The part that comes next (`EXT-X-PRELOAD-HINT`), as long as the target.
    pub hint: Option<ListedPart>,
}

/// A part of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedPart {
    /// Number of the segment, start, duration and bytes.
    pub segment: Segment,
    /// Which part of that segment, from 0.
    pub part: u64,
    /// True if decoding can begin with it.
    pub independent: bool,
}

impl Parts {
    /// The same parts, if the playlist's first segment begins `start_ns` after media time zero.
    pub fn placed_at(&self, start_ns: i64) -> Self {
        let placed = |part: &ListedPart| {
            let start = i64::try_from(part.segment.start.as_nanos()).unwrap_or(i64::MAX);
            let start = u64::try_from(start.saturating_add(start_ns)).unwrap_or(0);
            let start = Duration::from_nanos(start.min(MEDIA_MAX.as_nanos()));
            let segment = Segment { start, ..part.segment.clone() };
            ListedPart { segment, ..part.clone() }
        };
        let listed = self.listed.iter().map(placed).collect();
        Self { listed, hint: self.hint.as_ref().map(placed), ..*self }
    }
}

impl MediaPlaylist {
    /// Completes a delta update: what its segments need that have no `EXT-X-MAP` is what the last one before needed
    /// (rfc8216bis §4.4.5.2: tags of skipped segments are skipped, too).
    pub fn complete(&mut self, init: Option<&Resource>) {
        let missing = |init_of: &mut Option<Resource>| {
            if init_of.is_none() {
                *init_of = init.cloned();
            }
        };
        if let Names::Listed(names) = &mut self.segments.names {
            names.iter_mut().for_each(|(_, init)| missing(init));
        }
        let parts = self.parts.iter_mut();
        let parts = parts.flat_map(|parts| parts.listed.iter_mut().chain(&mut parts.hint));
        parts.for_each(|part| missing(&mut part.segment.init));
    }

    /// How long its segments are together.
    pub fn duration(&self) -> Duration {
        self.segments.last().map(|last| last.end()).unwrap_or_default()
    }

    /// The same segments, with the first of them beginning `start_ns` after media time zero;
    /// what lies before zero is cut off.
    pub fn segments_from(&self, start_ns: i64) -> Segments {
        let zero_at = Duration::from_nanos(u64::try_from(start_ns).unwrap_or(0));
        let zero_ticks = if start_ns < 0 { start_ns.unsigned_abs() } else { 0 };
        Segments { zero_at, zero_ticks, ..self.segments.clone() }
    }
}

/// Maps a playlist that came from `url`.
///
/// # Errors
/// [`ManifestError`] names the line and what is wrong or not supported.
pub fn from_playlist(bytes: &[u8], url: &Url) -> Result<Playlist> {
    if bytes.len() > MANIFEST_BYTES_MAX {
        let problem = format!("more than {MANIFEST_BYTES_MAX} bytes");
        return Err(ManifestError::whole(problem));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|e| ManifestError::whole(format!("not UTF-8 at byte {}", e.valid_up_to())))?;
    let mut lines = (1u32..).zip(text.lines().map(str::trim_end)).filter(|(_, l)| !l.is_empty());
    match lines.next() {
        Some((_, "#EXTM3U")) => {}
        _ => return Err(ManifestError::at(1, "a playlist begins with #EXTM3U (§4.3.1.1)")),
    }
    let variants = lines.clone().any(|(_, line)| line.starts_with("#EXT-X-STREAM-INF:"));
    if variants {
        multivariant(lines, url).map(Playlist::Multivariant)
    } else {
        Media::new(url).read(lines).map(|playlist| Playlist::Media(Box::new(playlist)))
    }
}

/// The value of tag `name` on this line.
fn tag<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.strip_prefix("#EXT")?.strip_prefix(name)?.strip_prefix(':')
}

/// The value of one attribute of an attribute list (§4.2), without its quotes.
fn attribute<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = list;
    loop {
        let (key, after) = rest.split_once('=')?;
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => {
                let (value, next) = quoted.split_once('"')?;
                (value, next.strip_prefix(',').unwrap_or(next))
            }
            None => after.split_once(',').unwrap_or((after, "")),
        };
        if key.trim() == name {
            return Some(value.trim());
        }
        rest = next;
    }
}

fn join(url: &Url, reference: &str, line: u32) -> Result<Url> {
    url.join(reference).map_err(|e| ManifestError::at(line, e.to_string()))
}

fn multivariant<'a>(
    lines: impl Iterator<Item = (u32, &'a str)>,
    url: &Url,
) -> Result<Presentation> {
    let mut rungs = Vec::new();
    let mut renditions: Vec<(u32, &str)> = Vec::new();
    let mut audio_group: Option<&str> = None;
    let mut pending: Option<(BitRate, Option<FrameRate>)> = None;
    for (line, text) in lines {
        if let Some(list) = tag(text, "-X-STREAM-INF") {
            let rate = attribute(list, "BANDWIDTH").and_then(|r| r.parse().ok());
            let rate: u64 = rate.filter(|r| *r > 0).ok_or_else(|| {
                ManifestError::at(line, "EXT-X-STREAM-INF needs a BANDWIDTH (§4.3.4.2)")
            })?;
            let frame_rate = attribute(list, "FRAME-RATE").and_then(FrameRate::from_decimal);
            pending = Some((BitRate::from_bps(rate), frame_rate));
            audio_group = audio_group.or_else(|| attribute(list, "AUDIO"));
        } else if let Some(list) = tag(text, "-X-MEDIA") {
            renditions.push((line, list));
        } else if !text.starts_with('#') {
            let (rate, frame_rate) = pending
                .take()
                .ok_or_else(|| ManifestError::at(line, "a URI without EXT-X-STREAM-INF"))?;
            let source = Source::Playlist(join(url, text, line)?);
            rungs.push(Rung { rate, frame_rate, source });
        }
    }
    if rungs.is_empty() {
        return Err(ManifestError::whole("EXT-X-STREAM-INF without a URI after it"));
    }
    let mut tracks = vec![Track { kind: TrackKind::Video, rungs: ladder(rungs)? }];
    if let Some(group) = audio_group {
        tracks.extend(audio(&renditions, group, url)?);
    }
    Ok(Presentation { tracks, live: None, duration: None, refresh: None, location: None })
}

/// The rendition of an audio group to play: the default one, else the first. `None` if its sound
/// is in the video's segments (§4.3.4.1: no URI).
fn audio(renditions: &[(u32, &str)], group: &str, url: &Url) -> Result<Option<Track>> {
    let of_group: Vec<_> = renditions
        .iter()
        .filter(|(_, list)| {
            attribute(list, "TYPE") == Some("AUDIO") && attribute(list, "GROUP-ID") == Some(group)
        })
        .collect();
    let default = of_group.iter().find(|(_, list)| attribute(list, "DEFAULT") == Some("YES"));
    let Some(&&(line, list)) = default.or(of_group.first()) else {
        return Err(ManifestError::whole(format!("no EXT-X-MEDIA of audio group `{group}`")));
    };
    let Some(uri) = attribute(list, "URI") else { return Ok(None) };
    // A rendition has no bit rate of its own; its variants' BANDWIDTH includes it.
    let source = Source::Playlist(join(url, uri, line)?);
    let rung = Rung { rate: AUDIO_RATE, frame_rate: None, source };
    Ok(Some(Track { kind: TrackKind::Audio, rungs: vec![rung] }))
}

/// Recorded as the bit rate of an audio rendition, which HLS does not give.
const AUDIO_RATE: BitRate = BitRate::from_kbps(128);

/// A media playlist while it is read.
struct Media<'a> {
    url: &'a Url,
    runs: Vec<Run>,
    names: Vec<(Resource, Option<Resource>)>,
    url_bytes: usize,
    sequence: u64,
    target: Option<Duration>,
    date: Option<u64>,
    ended: bool,
    init: Option<Resource>,
    /// Segments so far, gaps included.
    count: u64,
    /// Of the segment whose URI is still to come.
    duration_ns: Option<u64>,
    /// The same, with its line.
    range: Option<(u32, ByteRange)>,
    /// The same: true if there is nothing to fetch.
    gap: bool,
    /// Whether a segment's byte range begins where that of the segment before it ends.
    follows: bool,
    /// The last segment and the last part, after which the byte range of the next may begin.
    last: (Option<Resource>, Option<Resource>),
    at_ns: u64,
    parts: Parts,
    /// Of the segment whose URI is still to come: parts so far, and where the next begins.
    part: (u64, u64),
    /// How many segments a delta update leaves out.
    skipped: Option<u64>,
}

impl<'a> Media<'a> {
    fn new(url: &'a Url) -> Self {
        Self {
            url,
            runs: Vec::new(),
            names: Vec::new(),
            url_bytes: 0,
            sequence: 0,
            target: None,
            date: None,
            ended: false,
            init: None,
            count: 0,
            duration_ns: None,
            range: None,
            gap: false,
            follows: false,
            last: (None, None),
            at_ns: 0,
            parts: Parts {
                target: Duration::ZERO,
                hold_back: None,
                can_block: false,
                can_skip: None,
                listed: Vec::new(),
                hint: None,
            },
            part: (0, 0),
            skipped: None,
        }
    }

    fn read<'b>(mut self, lines: impl Iterator<Item = (u32, &'b str)>) -> Result<MediaPlaylist> {
        for (line, text) in lines {
            if text.starts_with('#') {
                self.tag(line, text)?;
            } else {
                self.segment(line, text)?;
            }
        }
        let target = self
            .target
            .ok_or_else(|| ManifestError::whole("no EXT-X-TARGETDURATION (§4.3.3.1)"))?;
        if self.names.is_empty() && self.ended {
            return Err(ManifestError::whole("a playlist that has ended, without a segment"));
        }
        // The sequence number may come after segments only in a broken playlist: numbers are set
        // here, so that they are consistent all the same.
        let first = self.sequence + self.skipped.unwrap_or(0);
        for run in &mut self.runs {
            run.number += first;
        }
        for part in self.parts.listed.iter_mut().chain(&mut self.parts.hint) {
            part.segment.number += first;
        }
        if self.follows {
            // In an update, the first range could follow one that was left out.
            self.parts.can_skip = None;
        }
        let parts = Some(self.parts).filter(|parts| !parts.target.is_zero());
        let segments = Segments {
            runs: self.runs,
            timescale: TIMESCALE,
            zero_ticks: 0,
            zero_at: Duration::ZERO,
            names: Names::Listed(self.names),
            listed: true,
            early: Duration::ZERO,
            in_chunks: false,
        };
        let (date_unix_ns, ended, is_update) = (self.date, self.ended, self.skipped.is_some());
        Ok(MediaPlaylist { segments, target, date_unix_ns, ended, parts, is_update })
    }

    fn tag(&mut self, line: u32, text: &str) -> Result<()> {
        let wrong = |what: &str| ManifestError::at(line, format!("{what}: `{}`", show(text)));
        if let Some(value) = tag(text, "INF") {
            let seconds = value.split(',').next().unwrap_or_default().trim();
            let ns = iso8601::decimal_ns(seconds).ok_or_else(|| wrong("not a duration"))?;
            if ns == 0 || ns > SEGMENT_MAX.as_nanos() {
                return Err(wrong(&format!("a segment is longer than 0 and up to {SEGMENT_MAX}")));
            }
            self.duration_ns = Some(ns);
        } else if let Some(value) = tag(text, "-X-TARGETDURATION") {
            let ns = iso8601::decimal_ns(value.trim());
            let ns = ns.filter(|ns| (1..=SEGMENT_MAX.as_nanos()).contains(ns));
            self.target = Some(Duration::from_nanos(ns.ok_or_else(|| wrong("not a duration"))?));
        } else if let Some(value) = tag(text, "-X-MEDIA-SEQUENCE") {
            let number = value.trim().parse().ok().filter(|n| *n < u64::MAX / 2);
            self.sequence = number.ok_or_else(|| wrong("not a sequence number"))?;
        } else if let Some(value) = tag(text, "-X-PROGRAM-DATE-TIME") {
            let date =
                iso8601::parse_date_time(value).ok_or_else(|| wrong("not a date and time"))?;
            // §4.3.2.6: it dates the next segment; what is before it is dated by extrapolation.
            self.date = self.date.or(Some(date.saturating_sub(self.at_ns)));
        } else if let Some(list) = tag(text, "-X-MAP") {
            self.init = Some(self.map(line, list)?);
        } else if let Some(value) = tag(text, "-X-BYTERANGE") {
            let range = byte_range(value).ok_or_else(|| wrong(NO_RANGE))?;
            self.follows |= range.1.is_none();
            self.range = Some((line, range));
        } else if text == "#EXT-X-GAP" {
            self.gap = true;
        } else if let Some(list) = tag(text, "-X-KEY") {
            if attribute(list, "METHOD") != Some("NONE") {
                return Err(ManifestError::at(line, "encrypted media is not supported"));
            }
        } else if let Some(list) = tag(text, "-X-PART") {
            self.listed_part(line, list)?;
        } else if let Some(list) = tag(text, "-X-PART-INF") {
            let ns = attribute(list, "PART-TARGET").and_then(iso8601::decimal_ns);
            let ns = ns.filter(|ns| (1..=SEGMENT_MAX.as_nanos()).contains(ns));
            self.parts.target = Duration::from_nanos(ns.ok_or_else(|| wrong("no PART-TARGET"))?);
        } else if let Some(list) = tag(text, "-X-SERVER-CONTROL") {
            self.server_control(list);
        } else if let Some(list) = tag(text, "-X-PRELOAD-HINT") {
            self.hint(line, list)?;
        } else if let Some(list) = tag(text, "-X-SKIP") {
            if !self.url.target().contains(SKIP_DIRECTIVE) {
                return Err(wrong("an update without old segments, which was not asked for"));
            }
            let skipped = attribute(list, "SKIPPED-SEGMENTS").and_then(|n| n.parse().ok());
            let skipped = skipped.filter(|n| *n < u64::MAX / 4 && self.count == 0);
            self.skipped = Some(skipped.ok_or_else(|| wrong("no SKIPPED-SEGMENTS at the start"))?);
        } else if text == "#EXT-X-ENDLIST" {
            self.ended = true;
        }
        Ok(())
    }

    /// rfc8216bis §4.4.3.8.
    fn server_control(&mut self, list: &str) {
        self.parts.can_block = attribute(list, "CAN-BLOCK-RELOAD") == Some("YES");
        let span = |name: &str| {
            let ns = attribute(list, name).and_then(iso8601::decimal_ns);
            ns.filter(|ns| *ns <= MEDIA_MAX.as_nanos()).map(Duration::from_nanos)
        };
        self.parts.hold_back = span("PART-HOLD-BACK");
        self.parts.can_skip = span("CAN-SKIP-UNTIL");
    }

    fn map(&self, line: u32, list: &str) -> Result<Resource> {
        let uri = attribute(list, "URI")
            .ok_or_else(|| ManifestError::at(line, "EXT-X-MAP needs a URI (§4.3.2.5)"))?;
        let range = range_of(line, "EXT-X-MAP", list)?;
        let range = range.map(|(length, start)| bytes(start.unwrap_or(0), length));
        Ok(Resource { url: join(self.url, uri, line)?, range })
    }

    fn segment(&mut self, line: u32, uri: &str) -> Result<()> {
        let duration = self
            .duration_ns
            .take()
            .ok_or_else(|| ManifestError::at(line, "a URI without EXTINF before it (§4.3.2.1)"))?;
        if self.count >= LISTED_MAX as u64 {
            return Err(ManifestError::at(line, format!("more than {LISTED_MAX} segments")));
        }
        let url = join(self.url, uri, line)?;
        let media = placed(self.range.take(), url, self.last.0.as_ref())?;
        self.last.0 = Some(media.clone());
        self.count_urls(line, &media)?;
        let (number, start) = (self.count, self.at_ns);
        self.count += 1;
        self.part = (0, 0);
        self.at_ns += duration;
        if self.at_ns > MEDIA_MAX.as_nanos() {
            return Err(ManifestError::at(line, "the playlist is longer than a year"));
        }
        if std::mem::take(&mut self.gap) {
            // A hole in the runs. Its name keeps the places of those after it; the first name is that of the first run.
            if !self.runs.is_empty() {
                self.names.push((media, None));
            }
            return Ok(());
        }
        match self.runs.last_mut() {
            Some(run) if run.duration == duration && run.number + run.count == number => {
                run.count += 1;
            }
            _ => self.runs.push(Run { number, start, duration, count: 1 }),
        }
        self.names.push((media, self.init.clone()));
        Ok(())
    }

    /// rfc8216bis §4.4.4.9.
    fn listed_part(&mut self, line: u32, list: &str) -> Result<()> {
        let wrong = |what: &str| ManifestError::at(line, format!("EXT-X-PART: {what}"));
        let ns = attribute(list, "DURATION").and_then(iso8601::decimal_ns);
        let ns = ns.filter(|ns| (1..=SEGMENT_MAX.as_nanos()).contains(ns));
        let duration = Duration::from_nanos(ns.ok_or_else(|| wrong("no DURATION"))?);
        let uri = attribute(list, "URI").ok_or_else(|| wrong("no URI"))?;
        let range = range_of(line, "EXT-X-PART", list)?.map(|range| (line, range));
        let media = placed(range, join(self.url, uri, line)?, self.last.1.as_ref())?;
        self.last.1 = Some(media.clone());
        if self.parts.listed.len() >= LISTED_MAX {
            return Err(wrong(&format!("more than {LISTED_MAX} parts")));
        }
        let independent = attribute(list, "INDEPENDENT") == Some("YES");
        let gap = attribute(list, "GAP") == Some("YES");
        let part = self.part_of(line, media, duration, independent)?;
        self.part = (self.part.0 + 1, self.part.1 + duration.as_nanos());
        if !gap {
            self.parts.listed.push(part);
        }
        Ok(())
    }

    /// rfc8216bis §4.4.5.3. Hints at other things than a part are ignored.
    fn hint(&mut self, line: u32, list: &str) -> Result<()> {
        if attribute(list, "TYPE") != Some("PART") || self.parts.target.is_zero() {
            return Ok(());
        }
        let wrong = |what: &str| ManifestError::at(line, format!("EXT-X-PRELOAD-HINT: {what}"));
        let uri = attribute(list, "URI").ok_or_else(|| wrong("no URI"))?;
        let number = |name: &str| match attribute(list, name) {
            None => Ok(None),
            Some(text) => {
                let wanted = format!("{name} must be a number of bytes, not `{}`", show(text));
                count(text).map(Some).ok_or_else(|| wrong(&wanted))
            }
        };
        let start = number("BYTERANGE-START")?.unwrap_or(0);
        let length = number("BYTERANGE-LENGTH")?;
        if length == Some(0) {
            return Err(wrong("BYTERANGE-LENGTH must be greater than 0"));
        }
        let range = match length {
            Some(length) => Some(bytes(start, length)),
            // To the end of the resource.
            None => (start > 0).then_some((start, None)),
        };
        let media = Resource { url: join(self.url, uri, line)?, range };
        let independent = self.part.0 == 0;
        self.parts.hint = Some(self.part_of(line, media, self.parts.target, independent)?);
        Ok(())
    }

    /// The part after those of the segment whose URI is still to come.
    fn part_of(
        &mut self,
        line: u32,
        media: Resource,
        duration: Duration,
        independent: bool,
    ) -> Result<ListedPart> {
        self.count_urls(line, &media)?;
        let start_ns = self.at_ns + self.part.1;
        if start_ns > MEDIA_MAX.as_nanos() {
            return Err(ManifestError::at(line, "the playlist is longer than a year"));
        }
        let (number, init) = (self.count, self.init.clone());
        let start = Duration::from_nanos(start_ns);
        let segment = Segment { number, start, duration, media, init };
        Ok(ListedPart { segment, part: self.part.0, independent })
    }

    fn count_urls(&mut self, line: u32, media: &Resource) -> Result<()> {
        let urls = [Some(media), self.init.as_ref()].into_iter().flatten();
        self.url_bytes += urls.map(|resource| resource.url.target().len()).sum::<usize>();
        if self.url_bytes > URL_BYTES_MAX {
            return Err(ManifestError::at(
                line,
                format!("URLs of more than {URL_BYTES_MAX} bytes"),
            ));
        }
        Ok(())
    }
}

/// `LENGTH[@START]`, each at most 2⁴⁰.
fn byte_range(text: &str) -> Option<ByteRange> {
    let (length, start) = match text.split_once('@') {
        Some((length, start)) => (length, Some(count(start)?)),
        None => (text, None),
    };
    count(length).filter(|length| *length > 0).map(|length| (length, start))
}

/// A number of bytes, at most 2⁴⁰.
fn count(text: &str) -> Option<u64> {
    text.trim().parse::<u64>().ok().filter(|n| *n <= 1 << 40)
}

/// The attribute `BYTERANGE` of that tag.
fn range_of(line: u32, tag: &str, list: &str) -> Result<Option<ByteRange>> {
    let Some(text) = attribute(list, "BYTERANGE") else { return Ok(None) };
    let wrong = || ManifestError::at(line, format!("{tag}: {NO_RANGE}: `{}`", show(text)));
    byte_range(text).map(Some).ok_or_else(wrong)
}

/// The first and the last of so many bytes.
fn bytes(start: u64, length: u64) -> (u64, Option<u64>) {
    (start, Some(start + length - 1))
}

/// A resource, or a range of it. A range without a start begins where that of `last` ends, which must be of the same resource
/// (§4.3.2.2).
fn placed(range: Option<(u32, ByteRange)>, url: Url, last: Option<&Resource>) -> Result<Resource> {
    let Some((line, (length, start))) = range else { return Ok(Resource { url, range: None }) };
    let follows = || last.filter(|last| last.url == url)?.range?.1?.checked_add(1);
    let start = start.or_else(follows).ok_or_else(|| {
        let problem = "a byte range without a start, and before it none of the same resource; \
            write LENGTH@START, such as 5000@100";
        ManifestError::at(line, problem)
    })?;
    Ok(Resource { url, range: Some(bytes(start, length)) })
}

fn show(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests;
