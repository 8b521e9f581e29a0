//! Writes MPDs (ISO/IEC 23009-1), profile `isoff-live`, with a `SegmentTimeline`: durations are
//! exact, also those of audio, whose segments are not all alike.
//!
//! A live stream in chunks follows DASH-IF's "Low-latency Modes for DASH" (2020) instead: segments are counted by
//! `@duration`, so that a player asks for the one in progress without another MPD.

use std::fmt::Write;

use suiro_scenario::Protocol;
use suiro_units::Duration;

use super::catalogue::{Catalogue, Container, RungEntry, TrackEntry};
use super::timeline::{Loop, Schedule};
use super::{SUGGESTED_DELAY_SEGMENTS, TIME_PATH};
use crate::iso8601::{decimal, format_date_time, format_duration};
use crate::presentation::TrackKind;

/// `PlaybackRate`: how much slower and faster a player may play to keep its latency: too little to be heard.
const PLAYBACK_RATE: (&str, &str) = ("0.95", "1.05");
/// Sets of a period: one for each kind of track. Identifiers of rungs count on from theirs.
const PERIOD_SETS_MAX: usize = 8;
/// How often players of a stream in chunks fetch the MPD again; nothing in it changes.
const UPDATE_IN_CHUNKS: Duration = Duration::from_secs(60);

/// The MPD at a moment of the wall clock; `None` if a track has no DASH form. `origin` is what
/// clients call this origin, scheme and host, for the address of its clock.
pub(crate) fn write(catalogue: &Catalogue, unix_ns: u64, origin: Option<&str>) -> Option<String> {
    let container = catalogue.container(Protocol::Dash)?;
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let infallible = "writing to a string does not fail";
    root(&mut out, catalogue, unix_ns).expect(infallible);
    service(&mut out, catalogue).expect(infallible);
    // §5.8.4.11: the clock of availability times.
    let live = matches!(catalogue.schedule, Schedule::Live { .. });
    let clock = origin.filter(|_| live).map(|origin| {
        let scheme = "urn:mpeg:dash:utc:http-xsdate:2014";
        let value = escape(&format!("{origin}{TIME_PATH}"));
        format!("<UTCTiming schemeIdUri=\"{scheme}\" value=\"{value}\"/>")
    });
    let writer = Writer { schedule: &catalogue.schedule, unix_ns, clock: clock.as_deref() };
    out.push_str(" <Period id=\"0\" start=\"PT0S\">\n");
    for (index, track) in catalogue.tracks_in(Some(container)).enumerate() {
        writer.adaptation_set(&mut out, index, track).expect(infallible);
    }
    out.push_str(" </Period>\n");
    if let Some(clock) = &clock {
        writeln!(out, " {clock}").expect(infallible);
    }
    out.push_str("</MPD>\n");
    Some(out)
}

fn root(out: &mut String, catalogue: &Catalogue, unix_ns: u64) -> std::fmt::Result {
    let longest = catalogue.longest_segment();
    out.push_str("<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\"");
    out.push_str(" profiles=\"urn:mpeg:dash:profile:isoff-live:2011");
    let advised = catalogue.advised_latency();
    if advised.is_some() {
        out.push_str(",http://www.dashif.org/guidelines/low-latency-live-v5");
    }
    write!(out, "\" minBufferTime=\"{}\"", format_duration(longest))?;
    write!(out, " maxSegmentDuration=\"{}\"", format_duration(longest))?;
    match catalogue.schedule {
        Schedule::Vod { .. } => {
            let total = format_duration(total(catalogue, unix_ns));
            writeln!(out, " type=\"static\" mediaPresentationDuration=\"{total}\">")
        }
        Schedule::Live { zero_unix_ns, window } => {
            write!(out, "\n type=\"dynamic\"")?;
            write!(out, " availabilityStartTime=\"{}\"", format_date_time(zero_unix_ns))?;
            let published = zero_unix_ns.saturating_add(changed(catalogue, unix_ns).as_nanos());
            write!(out, " publishTime=\"{}\"", format_date_time(published))?;
            let update = advised.map_or(longest, |_| UPDATE_IN_CHUNKS);
            write!(out, "\n minimumUpdatePeriod=\"{}\"", format_duration(update))?;
            write!(out, " timeShiftBufferDepth=\"{}\"", format_duration(window))?;
            let delay = advised.unwrap_or(longest * SUGGESTED_DELAY_SEGMENTS);
            writeln!(out, " suggestedPresentationDelay=\"{}\">", format_duration(delay))
        }
    }
}

/// §5.3.1.2: when the MPD of this moment came to be, counted from the stream's beginning. Until the next change it is the same
/// text, which caches and players need not fetch again.
fn changed(catalogue: &Catalogue, unix_ns: u64) -> Duration {
    let Schedule::Live { window, .. } = catalogue.schedule else { return Duration::ZERO };
    let tracks = catalogue.tracks_in(catalogue.container(Protocol::Dash));
    // In chunks, no segment is listed.
    let listing = tracks.flat_map(|track| &track.rungs).filter(|rung| rung.chunks.is_none());
    let changes = listing.flat_map(|RungEntry { timeline, .. }| {
        let listed = catalogue.schedule.listed(timeline, unix_ns);
        let began = |number: u64| timeline.time(timeline.place(number).start);
        // The last segment ended then; and the first left that is still listed began a window ago.
        let first = if listed.start > 0 { began(listed.start) + window } else { Duration::ZERO };
        [began(listed.end), first]
    });
    changes.max().unwrap_or_default()
}

/// How long an on-demand stream is: as long as its video.
fn total(catalogue: &Catalogue, unix_ns: u64) -> Duration {
    let mut tracks = catalogue.tracks_in(catalogue.container(Protocol::Dash));
    let rung = tracks.next().and_then(|track| track.rungs.first());
    let Some(RungEntry { timeline, .. }) = rung else { return Duration::ZERO };
    let end = catalogue.schedule.listed(timeline, unix_ns).end;
    timeline.time(timeline.place(end).start)
}

/// Annex K: the latency at which to play a stream in chunks.
fn service(out: &mut String, catalogue: &Catalogue) -> std::fmt::Result {
    let Some(latency) = catalogue.advised_latency() else { return Ok(()) };
    let (least, most) = PLAYBACK_RATE;
    writeln!(out, " <ServiceDescription id=\"0\">")?;
    let target_ms = latency.as_nanos() / 1_000_000;
    writeln!(out, "  <Latency referenceId=\"0\" target=\"{target_ms}\"/>")?;
    writeln!(out, "  <PlaybackRate min=\"{least}\" max=\"{most}\"/>")?;
    writeln!(out, " </ServiceDescription>")
}

/// Writes the adaptation sets of a period.
struct Writer<'a> {
    schedule: &'a Schedule,
    unix_ns: u64,
    /// The element that names the clock, if there is one to name.
    clock: Option<&'a str>,
}

impl Writer<'_> {
    fn adaptation_set(
        &self,
        out: &mut String,
        index: usize,
        track: &TrackEntry,
    ) -> std::fmt::Result {
        let kind = track.kind.name();
        write!(out, "  <AdaptationSet id=\"{index}\" contentType=\"{kind}\"")?;
        write!(out, " mimeType=\"{kind}/mp4\"")?;
        writeln!(out, " segmentAlignment=\"true\" startWithSAP=\"1\">")?;
        // Rungs of one frame rate are cut alike, and said to be so once.
        let alike = track
            .rungs
            .windows(2)
            .all(|pair| pair[0].timeline == pair[1].timeline && pair[0].chunks == pair[1].chunks);
        if let Some(rung) = track.rungs.first().filter(|_| alike) {
            self.reference(out, rung, index)?;
            self.segments(out, rung)?;
        }
        for (number, rung) in track.rungs.iter().enumerate() {
            representation(out, rung, track.kind)?;
            if alike {
                writeln!(out, "/>")?;
            } else {
                writeln!(out, ">")?;
                self.reference(out, rung, index + number * PERIOD_SETS_MAX)?;
                self.segments(out, rung)?;
                writeln!(out, "   </Representation>")?;
            }
        }
        writeln!(out, "  </AdaptationSet>")
    }

    /// §5.12: when media time zero was captured; §5.3.13: where in a segment there are chunks.
    fn reference(&self, out: &mut String, rung: &RungEntry, id: usize) -> std::fmt::Result {
        let (Some(chunks), Schedule::Live { zero_unix_ns, .. }) = (&rung.chunks, self.schedule)
        else {
            return Ok(());
        };
        let zero = format_date_time(*zero_unix_ns);
        write!(out, "   <ProducerReferenceTime id=\"{id}\" type=\"encoder\"")?;
        write!(out, " wallClockTime=\"{zero}\" presentationTime=\"0\">")?;
        // Without it, some players read the time as seconds since 1900.
        writeln!(out, "{}</ProducerReferenceTime>", self.clock.unwrap_or_default())?;
        let scale = u128::from(rung.timeline.timescale());
        let ticks = (u128::from(chunks.longest().as_nanos()) * scale).div_euclid(1_000_000_000);
        writeln!(out, "   <Resync type=\"0\" dT=\"{ticks}\"/>")
    }

    fn segments(&self, out: &mut String, rung: &RungEntry) -> std::fmt::Result {
        let (timeline, extension) = (&rung.timeline, Container::Fmp4.extension());
        write!(out, "   <SegmentTemplate timescale=\"{}\"", timeline.timescale())?;
        if let Some(chunks) = &rung.chunks {
            let nominal = rung.nominal_segment();
            write!(out, " duration=\"{nominal}\" startNumber=\"0\"")?;
            // A segment can be asked for as soon as its first chunk has been captured.
            let early = timeline.time(nominal).saturating_sub(chunks.longest());
            write!(out, " availabilityTimeOffset=\"{}\"", decimal(early.as_nanos()))?;
            write!(out, " availabilityTimeComplete=\"false\"")?;
            write!(out, " media=\"$RepresentationID$/$Number$.{extension}\"")?;
            return writeln!(out, " initialization=\"$RepresentationID$/init.mp4\"/>");
        }
        let listed = self.schedule.listed(timeline, self.unix_ns);
        // By time, not number: a number means something else in each window unless the client keeps
        // count from @startNumber, and ffmpeg's does not.
        write!(out, " media=\"$RepresentationID$/t$Time$.{extension}\"")?;
        writeln!(out, " initialization=\"$RepresentationID$/init.mp4\">\n    <SegmentTimeline>")?;
        rows(out, timeline, listed)?;
        writeln!(out, "    </SegmentTimeline>\n   </SegmentTemplate>")
    }
}

/// §5.3.9.6: a row for each change of duration.
fn rows(out: &mut String, timeline: &Loop, listed: std::ops::Range<u64>) -> std::fmt::Result {
    let mut number = listed.start;
    while number < listed.end {
        let first = timeline.place(number);
        let same = |n: &u64| timeline.place(*n).duration == first.duration;
        let repeat = (number + 1..listed.end).take_while(same).count() as u64;
        write!(out, "     <S")?;
        if number == listed.start {
            write!(out, " t=\"{}\"", first.start)?;
        }
        write!(out, " d=\"{}\"", first.duration)?;
        if repeat > 0 {
            write!(out, " r=\"{repeat}\"")?;
        }
        writeln!(out, "/>")?;
        number += repeat + 1;
    }
    Ok(())
}

fn representation(out: &mut String, rung: &RungEntry, kind: TrackKind) -> std::fmt::Result {
    write!(out, "   <Representation id=\"{}\"", escape(&rung.id))?;
    write!(out, " bandwidth=\"{}\" codecs=\"{}\"", rung.declared.as_bps(), escape(&rung.codecs))?;
    if let Some((width, height)) = rung.size {
        write!(out, " width=\"{width}\" height=\"{height}\"")?;
    }
    match rung.frame_rate {
        Some((frames, 1)) => write!(out, " frameRate=\"{frames}\"")?,
        Some((frames, seconds)) => write!(out, " frameRate=\"{frames}/{seconds}\"")?,
        None => {}
    }
    if kind == TrackKind::Video {
        write!(out, " sar=\"1:1\"")?;
    }
    Ok(())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}
