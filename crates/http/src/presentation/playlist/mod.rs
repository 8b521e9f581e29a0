//! HLS playlists (RFC 8216) to a [`Presentation`] or a [`MediaPlaylist`].
//!
//! Unknown tags are ignored, as §6.3.1 asks. Encryption is refused. Of low latency (draft-pantos-hls-rfc8216bis): parts,
//! preload hints, server control and delta updates; rendition reports are ignored.

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
    /// `CAN-SKIP-UNTIL`: the server can leave out segments that are further than this from the end.
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
    /// Of the segment whose URI is still to come.
    duration_ns: Option<u64>,
    range: Option<(u64, Option<u64>)>,
    range_end: u64,
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
            duration_ns: None,
            range: None,
            range_end: 0,
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
            self.range = Some(byte_range(value).ok_or_else(|| wrong("not a byte range"))?);
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
            self.parts.can_block = attribute(list, "CAN-BLOCK-RELOAD") == Some("YES");
            let hold_back = attribute(list, "PART-HOLD-BACK").and_then(iso8601::decimal_ns);
            let hold_back = hold_back.filter(|ns| *ns <= MEDIA_MAX.as_nanos());
            self.parts.hold_back = hold_back.map(Duration::from_nanos);
            let can_skip = attribute(list, "CAN-SKIP-UNTIL").and_then(iso8601::decimal_ns);
            let can_skip = can_skip.filter(|ns| *ns <= MEDIA_MAX.as_nanos());
            self.parts.can_skip = can_skip.map(Duration::from_nanos);
        } else if let Some(list) = tag(text, "-X-PRELOAD-HINT") {
            self.hint(line, list)?;
        } else if let Some(list) = tag(text, "-X-SKIP") {
            if !self.url.target().contains(SKIP_DIRECTIVE) {
                return Err(wrong("an update without old segments, which was not asked for"));
            }
            let skipped = attribute(list, "SKIPPED-SEGMENTS").and_then(|n| n.parse().ok());
            let skipped = skipped.filter(|n| *n < u64::MAX / 4 && self.names.is_empty());
            self.skipped = Some(skipped.ok_or_else(|| wrong("no SKIPPED-SEGMENTS at the start"))?);
        } else if text == "#EXT-X-ENDLIST" {
            self.ended = true;
        }
        Ok(())
    }

    fn map(&self, line: u32, list: &str) -> Result<Resource> {
        let uri = attribute(list, "URI")
            .ok_or_else(|| ManifestError::at(line, "EXT-X-MAP needs a URI (§4.3.2.5)"))?;
        let range = match attribute(list, "BYTERANGE") {
            None => None,
            Some(text) => {
                let (length, start) = byte_range(text)
                    .ok_or_else(|| ManifestError::at(line, "EXT-X-MAP: not a byte range"))?;
                let start = start.unwrap_or(0);
                Some((start, start + length - 1))
            }
        };
        Ok(Resource { url: join(self.url, uri, line)?, range })
    }

    fn segment(&mut self, line: u32, uri: &str) -> Result<()> {
        let duration = self
            .duration_ns
            .take()
            .ok_or_else(|| ManifestError::at(line, "a URI without EXTINF before it (§4.3.2.1)"))?;
        if self.names.len() >= LISTED_MAX {
            return Err(ManifestError::at(line, format!("more than {LISTED_MAX} segments")));
        }
        let range = self.range.take().map(|(length, start)| {
            let start = start.unwrap_or(self.range_end);
            self.range_end = start + length;
            (start, start + length - 1)
        });
        let number = self.names.len() as u64;
        self.part = (0, 0);
        match self.runs.last_mut() {
            Some(run) if run.duration == duration => run.count += 1,
            _ => self.runs.push(Run { number, start: self.at_ns, duration, count: 1 }),
        }
        self.at_ns += duration;
        if self.at_ns > MEDIA_MAX.as_nanos() {
            return Err(ManifestError::at(line, "the playlist is longer than a year"));
        }
        let media = Resource { url: join(self.url, uri, line)?, range };
        self.count_urls(line, &media)?;
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
        if attribute(list, "BYTERANGE").is_some() {
            return Err(wrong("a BYTERANGE is not supported"));
        }
        if self.parts.listed.len() >= LISTED_MAX {
            return Err(wrong(&format!("more than {LISTED_MAX} parts")));
        }
        let independent = attribute(list, "INDEPENDENT") == Some("YES");
        let gap = attribute(list, "GAP") == Some("YES");
        let part = self.part_of(line, uri, duration, independent)?;
        self.part = (self.part.0 + 1, self.part.1 + duration.as_nanos());
        if !gap {
            self.parts.listed.push(part);
        }
        Ok(())
    }

    /// rfc8216bis §4.4.5.3. Hints at other things than a whole part are ignored.
    fn hint(&mut self, line: u32, list: &str) -> Result<()> {
        let ranged = attribute(list, "BYTERANGE-START").is_some();
        if attribute(list, "TYPE") == Some("PART") && !ranged && !self.parts.target.is_zero() {
            let uri = attribute(list, "URI")
                .ok_or_else(|| ManifestError::at(line, "EXT-X-PRELOAD-HINT needs a URI"))?;
            let independent = self.part.0 == 0;
            self.parts.hint = Some(self.part_of(line, uri, self.parts.target, independent)?);
        }
        Ok(())
    }

    /// The part after those of the segment whose URI is still to come.
    fn part_of(
        &mut self,
        line: u32,
        uri: &str,
        duration: Duration,
        independent: bool,
    ) -> Result<ListedPart> {
        let media = Resource { url: join(self.url, uri, line)?, range: None };
        self.count_urls(line, &media)?;
        let start_ns = self.at_ns + self.part.1;
        if start_ns > MEDIA_MAX.as_nanos() {
            return Err(ManifestError::at(line, "the playlist is longer than a year"));
        }
        let (number, init) = (self.names.len() as u64, self.init.clone());
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
fn byte_range(text: &str) -> Option<(u64, Option<u64>)> {
    let small = |t: &str| t.trim().parse::<u64>().ok().filter(|n| *n <= 1 << 40);
    let (length, start) = match text.split_once('@') {
        Some((length, start)) => (length, Some(small(start)?)),
        None => (text, None),
    };
    small(length).filter(|length| *length > 0).map(|length| (length, start))
}

fn show(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests;
