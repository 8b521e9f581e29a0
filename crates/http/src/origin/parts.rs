//! Media playlists of low-latency HLS, and the requests that wait for their next version; pure.
//!
//! From draft-pantos-hls-rfc8216bis: partial segments (§4.4.4.9), preload hints (§4.4.5.3), rendition reports (§4.4.5.4),
//! server control (§4.4.3.8), delivery directives (§6.2.5).

use std::fmt::Write;

use suiro_scenario::Protocol;
use suiro_units::Duration;

use super::catalogue::{Catalogue, Container, PART_HOLD_BACK, RungEntry};
use super::chunks::{Chunks, Part};
use super::timeline::Schedule;
use crate::iso8601::{decimal, format_date_time};
use crate::presentation::TrackKind;

const INFALLIBLE: &str = "writing to a string does not fail";
/// `CAN-SKIP-UNTIL` in target durations; §4.4.3.8 requires six.
const SKIP_UNTIL: u64 = 6;
/// Parts are listed of segments that are this near to the live edge, in target durations (§6.2.2).
const PARTS_LISTED: u64 = 3;
/// How long a request may be held, in target durations (§6.2.5.2).
const HELD: u64 = 3;
/// How far beyond the last segment a request may ask (§6.2.5.2).
const AHEAD: u64 = 2;
/// The longest query that is looked at, in bytes.
const QUERY_MAX: usize = 4096;

/// The delivery directives of a request (§6.2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Directives {
    /// `_HLS_msn`: hold the answer until this segment is listed, or its part.
    pub segment: Option<u64>,
    /// `_HLS_part`: the part of that segment, from 0.
    pub part: Option<u64>,
    /// `_HLS_skip`: leave out what the client has.
    pub skip: bool,
}

impl Directives {
    /// Reads the query of a request.
    ///
    /// # Errors
    /// Which directive is wrong.
    pub fn parse(query: Option<&str>) -> Result<Self, &'static str> {
        let mut directives = Self::default();
        let query = query.unwrap_or_default();
        if query.len() > QUERY_MAX {
            return Err("the query is too long");
        }
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "_HLS_msn" => {
                    let number = number(value).ok_or("_HLS_msn: expected a sequence number")?;
                    directives.segment = Some(number);
                }
                "_HLS_part" => {
                    let number = number(value).ok_or("_HLS_part: expected a part's index")?;
                    directives.part = Some(number);
                }
                "_HLS_skip" => match value {
                    "YES" | "v2" => directives.skip = true,
                    _ => return Err("_HLS_skip: expected YES or v2"),
                },
                _ => {}
            }
        }
        match directives {
            Self { segment: None, part: Some(_), .. } => Err("_HLS_part without _HLS_msn"),
            _ => Ok(directives),
        }
    }
}

fn number(text: &str) -> Option<u64> {
    let digits = text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// A live rung in chunks at a moment of the wall clock.
#[derive(Clone, Copy)]
pub(super) struct LiveRung<'a> {
    pub catalogue: &'a Catalogue,
    pub rung: &'a RungEntry,
    pub chunks: &'a Chunks,
    pub zero_unix_ns: u64,
    pub unix_ns: u64,
}

/// When a playlist may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// At this time of the wall clock, or now if that has passed.
    Until(u64),
    /// At this time with the status 503: what was asked for has not come.
    InVain(u64),
}

impl<'a> LiveRung<'a> {
    /// `None` if the stream is not live in chunks.
    pub fn new(catalogue: &'a Catalogue, rung: &'a RungEntry, unix_ns: u64) -> Option<Self> {
        let Schedule::Live { zero_unix_ns, .. } = catalogue.schedule else { return None };
        Some(Self { catalogue, rung, chunks: rung.chunks.as_ref()?, zero_unix_ns, unix_ns })
    }

    fn captured(&self) -> Duration {
        Duration::from_nanos(self.unix_ns.saturating_sub(self.zero_unix_ns))
    }

    /// The last part that is there.
    fn last_part(&self) -> Option<Part> {
        let captured = self.captured();
        self.chunks.last_part(self.rung.timeline.ended_by(captured), captured)
    }

    /// §4.4.3.1: no segment, rounded to whole seconds, is longer; and Apple's authoring rule 8.2: the same for all rungs.
    pub fn target_s(&self) -> u64 {
        ((self.catalogue.longest_segment().as_nanos() + 500_000_000) / 1_000_000_000).max(1)
    }

    /// When a media time is captured, by the wall clock. Numbers of segments come from anybody: what is centuries away is
    /// never.
    pub fn unix_ns_at(&self, time: Duration) -> u64 {
        self.zero_unix_ns.saturating_add(time.as_nanos())
    }

    /// When the last chunk of a part has been captured, by the wall clock.
    pub fn unix_ns_of(&self, part: &Part) -> u64 {
        self.unix_ns_at(self.chunks.captured_at(part.chunks.end - 1))
    }

    /// True if a segment, or its part, has begun to be captured, or will within a segment's length: it can be waited for.
    pub fn is_soon(&self, number: u64, part: Option<&Part>) -> bool {
        let timeline = &self.rung.timeline;
        let begins = match part {
            Some(part) => self.unix_ns_of(part).saturating_sub(part.duration.as_nanos()),
            None => self.unix_ns_at(timeline.time(timeline.place(number).start)),
        };
        begins <= self.unix_ns.saturating_add(timeline.longest().as_nanos())
    }

    /// When the playlist that a request asks for is there (§6.2.5.2).
    ///
    /// # Errors
    /// Why the request is a bad one: what it asks for is too far ahead.
    pub fn held(&self, directives: &Directives) -> Result<Held, &'static str> {
        let Some(segment) = directives.segment else { return Ok(Held::Until(self.unix_ns)) };
        let captured = self.captured();
        // As many segments are listed; the last has the number before.
        let listed = self.rung.timeline.ended_by(captured);
        if segment >= listed + AHEAD {
            return Err("_HLS_msn is too far ahead");
        }
        let last_of = |segment: u64| self.chunks.part(segment, self.chunks.parts(segment) - 1);
        let wanted = match directives.part {
            None => last_of(segment),
            Some(part) => {
                self.check_part(segment, part)?;
                // §6.2.5.2: a part beyond the last is the first of the next segment.
                self.chunks.part(segment, part).or_else(|| self.chunks.part(segment + 1, 0))
            }
        };
        let wanted = wanted.ok_or("_HLS_msn is too far ahead")?;
        let there = self.unix_ns_of(&wanted);
        let patience = self.unix_ns + self.target_s() * HELD * 1_000_000_000;
        Ok(if there <= patience { Held::Until(there) } else { Held::InVain(patience) })
    }

    /// The advance part limit: three by the part target, or three parts if it is a second or more.
    fn check_part(&self, segment: u64, part: u64) -> Result<(), &'static str> {
        let target_ns = self.chunks.part_target().as_nanos().max(1);
        let limit = if target_ns < 1_000_000_000 { 3_000_000_000 / target_ns } else { 3 };
        let Some(last) = self.last_part() else { return Ok(()) };
        // All parts of an earlier segment are there.
        if segment < last.segment {
            return Ok(());
        }
        // Counted from the first part of the segment that the last part belongs to.
        let asked: u64 = (last.segment..segment).map(|n| self.chunks.parts(n)).sum::<u64>() + part;
        if asked > last.part + limit { Err("_HLS_part is too far ahead") } else { Ok(()) }
    }

    /// The media playlist, or what is new of it.
    pub fn playlist(&self, skip: bool) -> String {
        let mut out = String::from("#EXTM3U\n#EXT-X-VERSION:9\n");
        self.write(&mut out, skip).expect(INFALLIBLE);
        out
    }

    fn write(&self, out: &mut String, skip: bool) -> std::fmt::Result {
        let timeline = &self.rung.timeline;
        let listed = self.catalogue.schedule.listed(timeline, self.unix_ns);
        let target_s = self.target_s();
        let part_target = self.chunks.part_target();
        writeln!(out, "#EXT-X-TARGETDURATION:{target_s}")?;
        write!(out, "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES")?;
        write!(out, ",CAN-SKIP-UNTIL={}", target_s * SKIP_UNTIL)?;
        let hold_back = part_target * PART_HOLD_BACK;
        writeln!(out, ",PART-HOLD-BACK={}", decimal(hold_back.as_nanos()))?;
        writeln!(out, "#EXT-X-PART-INF:PART-TARGET={}", decimal(part_target.as_nanos()))?;
        writeln!(out, "#EXT-X-MEDIA-SEQUENCE:{}", listed.start)?;
        let edge = self.captured();
        let before =
            |seconds: u64| timeline.ended_by(edge.saturating_sub(Duration::from_secs(seconds)));
        // §4.4.5.2: segments further from the edge than the skip boundary; with them, the tag that was before them.
        let kept = before(target_s * SKIP_UNTIL).clamp(listed.start, listed.end);
        let first = if skip { kept } else { listed.start };
        match first - listed.start {
            0 => writeln!(out, "#EXT-X-MAP:URI=\"{}/init.mp4\"", self.rung.id)?,
            skipped => writeln!(out, "#EXT-X-SKIP:SKIPPED-SEGMENTS={skipped}")?,
        }
        let in_parts = before(target_s * PARTS_LISTED);
        for number in first..listed.end {
            self.date(out, number)?;
            if number >= in_parts {
                self.parts(out, number)?;
            }
            let place = timeline.place(number);
            let end = timeline.time(place.start + place.duration);
            let length = end.saturating_sub(timeline.time(place.start));
            writeln!(out, "#EXTINF:{},", decimal(length.as_nanos()))?;
            writeln!(out, "{}/{number}.{}", self.rung.id, Container::Fmp4.extension())?;
        }
        self.date(out, listed.end)?;
        self.parts(out, listed.end)?;
        let last = self.last_part();
        if let Some(next) = last.as_ref().and_then(|last| self.chunks.next_part(last)) {
            writeln!(out, "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"{}\"", self.name(&next))?;
        }
        self.reports(out)
    }

    /// The date of a segment of which something is listed.
    fn date(&self, out: &mut String, number: u64) -> std::fmt::Result {
        if self.last_part().is_none_or(|last| last.segment < number) {
            return Ok(());
        }
        let timeline = &self.rung.timeline;
        let start = timeline.time(timeline.place(number).start);
        let date = format_date_time(self.zero_unix_ns + start.as_nanos());
        writeln!(out, "#EXT-X-PROGRAM-DATE-TIME:{date}")
    }

    /// The parts of a segment that are there.
    fn parts(&self, out: &mut String, number: u64) -> std::fmt::Result {
        let there = (0..self.chunks.parts(number))
            .filter_map(|part| self.chunks.part(number, part))
            .take_while(|part| self.unix_ns_of(part) <= self.unix_ns);
        for part in there {
            write!(out, "#EXT-X-PART:DURATION={}", decimal(part.duration.as_nanos()))?;
            write!(out, ",URI=\"{}\"", self.name(&part))?;
            writeln!(out, "{}", if part.independent { ",INDEPENDENT=YES" } else { "" })?;
        }
        Ok(())
    }

    fn name(&self, part: &Part) -> String {
        let Part { segment, part, .. } = part;
        format!("{}/{segment}.{part}.{}", self.rung.id, Container::Fmp4.extension())
    }

    /// How far the playlists of the other rungs are.
    fn reports(&self, out: &mut String) -> std::fmt::Result {
        let catalogue = self.catalogue;
        for track in catalogue.tracks_in(catalogue.container(Protocol::Hls)) {
            let first = match track.kind {
                TrackKind::Video => catalogue.first_in_hls(track),
                TrackKind::Audio => 0,
            };
            for rung in track.rungs.iter().skip(first).filter(|rung| rung.id != self.rung.id) {
                let Some(other) = Self::new(catalogue, rung, self.unix_ns) else { continue };
                let Some(last) = other.last_part() else { continue };
                write!(out, "#EXT-X-RENDITION-REPORT:URI=\"{}.m3u8\"", rung.id)?;
                writeln!(out, ",LAST-MSN={},LAST-PART={}", last.segment, last.part)?;
            }
        }
        Ok(())
    }
}
