//! Writes MPDs (ISO/IEC 23009-1), profile `isoff-live`, with a `SegmentTimeline`: durations are
//! exact, also those of audio, whose segments are not all alike.

use std::fmt::Write;

use suiro_scenario::Protocol;
use suiro_units::Duration;

use super::catalogue::{Catalogue, Container, RungEntry, TrackEntry};
use super::timeline::{Loop, Schedule};
use super::{SUGGESTED_DELAY_SEGMENTS, TIME_PATH};
use crate::iso8601::{format_date_time, format_duration};
use crate::presentation::TrackKind;

/// The MPD at a moment of the wall clock; `None` if a track has no DASH form. `host` is what
/// clients call this origin, for the address of its clock.
pub(crate) fn write(catalogue: &Catalogue, unix_ns: u64, host: Option<&str>) -> Option<String> {
    let container = catalogue.container(Protocol::Dash)?;
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let infallible = "writing to a string does not fail";
    root(&mut out, catalogue, unix_ns).expect(infallible);
    out.push_str(" <Period id=\"0\" start=\"PT0S\">\n");
    for (index, track) in catalogue.tracks_in(Some(container)).enumerate() {
        adaptation_set(&mut out, index, track, &catalogue.schedule, unix_ns).expect(infallible);
    }
    out.push_str(" </Period>\n");
    if let (Schedule::Live { .. }, Some(host)) = (catalogue.schedule, host) {
        // §5.8.4.11: the clock of availability times.
        let scheme = "urn:mpeg:dash:utc:http-xsdate:2014";
        let value = escape(&format!("http://{host}{TIME_PATH}"));
        writeln!(out, " <UTCTiming schemeIdUri=\"{scheme}\" value=\"{value}\"/>")
            .expect(infallible);
    }
    out.push_str("</MPD>\n");
    Some(out)
}

fn root(out: &mut String, catalogue: &Catalogue, unix_ns: u64) -> std::fmt::Result {
    let longest = catalogue.longest_segment();
    out.push_str("<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\"");
    out.push_str(" profiles=\"urn:mpeg:dash:profile:isoff-live:2011\"");
    write!(out, " minBufferTime=\"{}\"", format_duration(longest))?;
    write!(out, " maxSegmentDuration=\"{}\"", format_duration(longest))?;
    match catalogue.schedule {
        Schedule::Vod { .. } => {
            let total = format_duration(total(catalogue, unix_ns));
            writeln!(out, " type=\"static\" mediaPresentationDuration=\"{total}\">")
        }
        Schedule::Live { zero_unix_ns, window } => {
            write!(out, "\n type=\"dynamic\"")?;
            write!(out, " availabilityStartTime=\"{}\"", format_date_time(zero_unix_ns))?;
            write!(out, " publishTime=\"{}\"", format_date_time(unix_ns))?;
            write!(out, "\n minimumUpdatePeriod=\"{}\"", format_duration(longest))?;
            write!(out, " timeShiftBufferDepth=\"{}\"", format_duration(window))?;
            let delay = longest * SUGGESTED_DELAY_SEGMENTS;
            writeln!(out, " suggestedPresentationDelay=\"{}\">", format_duration(delay))
        }
    }
}

/// How long an on-demand stream is: as long as its video.
fn total(catalogue: &Catalogue, unix_ns: u64) -> Duration {
    let mut tracks = catalogue.tracks_in(catalogue.container(Protocol::Dash));
    let rung = tracks.next().and_then(|track| track.rungs.first());
    let Some(RungEntry { timeline, .. }) = rung else { return Duration::ZERO };
    let end = catalogue.schedule.listed(timeline, unix_ns).end;
    timeline.time(timeline.place(end).start)
}

fn adaptation_set(
    out: &mut String,
    index: usize,
    track: &TrackEntry,
    schedule: &Schedule,
    unix_ns: u64,
) -> std::fmt::Result {
    let kind = track.kind.name();
    write!(out, "  <AdaptationSet id=\"{index}\" contentType=\"{kind}\" mimeType=\"{kind}/mp4\"")?;
    writeln!(out, " segmentAlignment=\"true\" startWithSAP=\"1\">")?;
    // Rungs of one frame rate are cut alike, and said to be so once.
    let alike = track.rungs.windows(2).all(|pair| pair[0].timeline == pair[1].timeline);
    if let Some(rung) = track.rungs.first().filter(|_| alike) {
        segments(out, &rung.timeline, schedule, unix_ns)?;
    }
    for rung in &track.rungs {
        representation(out, rung, track.kind)?;
        if alike {
            writeln!(out, "/>")?;
        } else {
            writeln!(out, ">")?;
            segments(out, &rung.timeline, schedule, unix_ns)?;
            writeln!(out, "   </Representation>")?;
        }
    }
    writeln!(out, "  </AdaptationSet>")
}

fn segments(
    out: &mut String,
    timeline: &Loop,
    schedule: &Schedule,
    unix_ns: u64,
) -> std::fmt::Result {
    let listed = schedule.listed(timeline, unix_ns);
    write!(out, "   <SegmentTemplate timescale=\"{}\"", timeline.timescale())?;
    // By time, not number: a number means something else in each window unless the client keeps
    // count from @startNumber, and ffmpeg's does not.
    write!(out, " media=\"$RepresentationID$/t$Time$.{}\"", Container::Fmp4.extension())?;
    writeln!(out, " initialization=\"$RepresentationID$/init.mp4\">\n    <SegmentTimeline>")?;
    rows(out, timeline, listed)?;
    writeln!(out, "    </SegmentTimeline>\n   </SegmentTemplate>")
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
    write!(out, " bandwidth=\"{}\" codecs=\"{}\"", rung.rate.as_bps(), escape(&rung.codecs))?;
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
