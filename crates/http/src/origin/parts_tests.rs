//! Manifests of a live stream in chunks, by the rules of DASH-IF's low-latency modes and of rfc8216bis.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use suiro_scenario::HlsRungs;
use suiro_units::{BitRate, Duration};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

use super::catalogue::{Catalogue, Container, RungEntry, TrackEntry};
use super::chunks::{Chunk, Chunks};
use super::parts::{Directives, Held, LiveRung};
use super::timeline::{Loop, Schedule};
use super::{Media, mpd, serve};
use crate::Clock;
use crate::iso8601::decimal_ns;
use crate::presentation::{self, Playlist, Source, TrackKind};
use crate::url::Url;

pub(super) const ZERO: u64 = 1_795_226_220_000_000_000;
const WINDOW: Duration = Duration::from_secs(30);

/// A rung whose segments have frames of `frame` ticks, `each` in a chunk.
fn rung(
    id: &str,
    timescale: u64,
    segments: &[u64],
    frame: u64,
    each: u64,
    part_ms: u64,
) -> RungEntry {
    let cut = |ticks: u64| {
        let chunk = |n: u64| Chunk {
            duration: (ticks - n * frame * each).min(frame * each),
            independent: n == 0 || id == "a",
        };
        (0..ticks.div_ceil(frame * each)).map(chunk).collect::<Vec<_>>()
    };
    let chunks: Vec<_> = segments.iter().map(|ticks| cut(*ticks)).collect();
    RungEntry {
        id: id.into(),
        rate: BitRate::from_kbps(500),
        declared: BitRate::from_kbps(500),
        mean_rate: BitRate::from_kbps(450),
        nominal: BitRate::from_kbps(400),
        codecs: if id == "a" { "mp4a.40.2" } else { "avc3.64001f" }.into(),
        size: (id != "a").then_some((1280, 720)),
        frame_rate: (id != "a").then_some((24, 1)),
        channels: (id == "a").then_some(2),
        timeline: Loop::new(timescale, segments).unwrap(),
        chunks: Chunks::new(timescale, &chunks, Duration::from_millis(part_ms)),
    }
}

/// Segments of 2 s: two frames in a chunk of video, four in one of sound.
pub(super) fn catalogue(part_ms: u64) -> Catalogue {
    let video = |id| rung(id, 24_000, &[48_000; 3], 1000, 2, part_ms);
    let sound = rung("a", 48_000, &[96_256, 96_256, 95_488], 1024, 4, part_ms);
    let container = Container::Fmp4;
    let rungs = vec![video("v0"), video("v1")];
    let video = TrackEntry { kind: TrackKind::Video, container, rungs };
    let audio = TrackEntry { kind: TrackKind::Audio, container, rungs: vec![sound] };
    let schedule = Schedule::Live { zero_unix_ns: ZERO, window: WINDOW };
    let (tracks, version) = (vec![video, audio], "x".into());
    Catalogue { tracks, schedule, hls_rungs: HlsRungs::All, version }
}

fn live(catalogue: &Catalogue, track: usize, at_ms: u64) -> LiveRung<'_> {
    let rung = &catalogue.tracks[track].rungs[0];
    LiveRung::new(catalogue, rung, ZERO + at_ms * 1_000_000).expect("it is live in chunks")
}

#[test]
fn an_mpd_in_chunks() {
    let text = mpd::write(&catalogue(500), ZERO + 21_000_000_000, Some("http://origin")).unwrap();
    assert_eq!(
        text,
        r#"<?xml version="1.0" encoding="UTF-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-live:2011,http://www.dashif.org/guidelines/low-latency-live-v5" minBufferTime="PT2.005333334S" maxSegmentDuration="PT2.005333334S"
 type="dynamic" availabilityStartTime="2026-11-21T01:57:00.000Z" publishTime="2026-11-21T01:57:00.000Z"
 minimumUpdatePeriod="PT60S" timeShiftBufferDepth="PT30S" suggestedPresentationDelay="PT1.5S">
 <ServiceDescription id="0">
  <Latency referenceId="0" target="1500"/>
  <PlaybackRate min="0.95" max="1.05"/>
 </ServiceDescription>
 <Period id="0" start="PT0S">
  <AdaptationSet id="0" contentType="video" mimeType="video/mp4" segmentAlignment="true" startWithSAP="1">
   <ProducerReferenceTime id="0" type="encoder" wallClockTime="2026-11-21T01:57:00.000Z" presentationTime="0"><UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-xsdate:2014" value="http://origin/time"/></ProducerReferenceTime>
   <Resync type="0" dT="2000"/>
   <SegmentTemplate timescale="24000" duration="48000" startNumber="0" availabilityTimeOffset="1.916666666" availabilityTimeComplete="false" media="$RepresentationID$/$Number$.m4s" initialization="$RepresentationID$/init.mp4"/>
   <Representation id="v0" bandwidth="500000" codecs="avc3.64001f" width="1280" height="720" frameRate="24" sar="1:1"/>
   <Representation id="v1" bandwidth="500000" codecs="avc3.64001f" width="1280" height="720" frameRate="24" sar="1:1"/>
  </AdaptationSet>
  <AdaptationSet id="1" contentType="audio" mimeType="audio/mp4" segmentAlignment="true" startWithSAP="1">
   <ProducerReferenceTime id="1" type="encoder" wallClockTime="2026-11-21T01:57:00.000Z" presentationTime="0"><UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-xsdate:2014" value="http://origin/time"/></ProducerReferenceTime>
   <Resync type="0" dT="4096"/>
   <SegmentTemplate timescale="48000" duration="96000" startNumber="0" availabilityTimeOffset="1.914666666" availabilityTimeComplete="false" media="$RepresentationID$/$Number$.m4s" initialization="$RepresentationID$/init.mp4"/>
   <Representation id="a" bandwidth="500000" codecs="mp4a.40.2"/>
  </AdaptationSet>
 </Period>
 <UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-xsdate:2014" value="http://origin/time"/>
</MPD>
"#
    );
}

#[test]
fn a_playlist_with_parts() {
    let mut catalogue = catalogue(1000);
    let window = Duration::from_secs(8);
    catalogue.schedule = Schedule::Live { zero_unix_ns: ZERO, window };
    // The first part of segment 5 lasts until 11 s.
    let text = live(&catalogue, 0, 11_100).playlist(false);
    assert_eq!(
        text,
        r#"#EXTM3U
#EXT-X-VERSION:9
#EXT-X-TARGETDURATION:2
#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=12,PART-HOLD-BACK=3
#EXT-X-PART-INF:PART-TARGET=1
#EXT-X-MEDIA-SEQUENCE:1
#EXT-X-MAP:URI="v0/init.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-11-21T01:57:02.000Z
#EXTINF:2,
v0/1.m4s
#EXT-X-PROGRAM-DATE-TIME:2026-11-21T01:57:04.000Z
#EXT-X-PART:DURATION=1,URI="v0/2.0.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=1,URI="v0/2.1.m4s"
#EXTINF:2,
v0/2.m4s
#EXT-X-PROGRAM-DATE-TIME:2026-11-21T01:57:06.000Z
#EXT-X-PART:DURATION=1,URI="v0/3.0.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=1,URI="v0/3.1.m4s"
#EXTINF:2,
v0/3.m4s
#EXT-X-PROGRAM-DATE-TIME:2026-11-21T01:57:08.000Z
#EXT-X-PART:DURATION=1,URI="v0/4.0.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=1,URI="v0/4.1.m4s"
#EXTINF:2,
v0/4.m4s
#EXT-X-PROGRAM-DATE-TIME:2026-11-21T01:57:10.000Z
#EXT-X-PART:DURATION=1,URI="v0/5.0.m4s",INDEPENDENT=YES
#EXT-X-PRELOAD-HINT:TYPE=PART,URI="v0/5.1.m4s"
#EXT-X-RENDITION-REPORT:URI="v1.m3u8",LAST-MSN=5,LAST-PART=0
#EXT-X-RENDITION-REPORT:URI="a.m3u8",LAST-MSN=5,LAST-PART=0
"#
    );
}

/// The value of an attribute, of the first tag that has it.
fn value<'a>(text: &'a str, attribute: &str) -> &'a str {
    let (_, after) = text.split_once(&format!("{attribute}=")).expect(attribute);
    after.split([',', '\n']).next().unwrap_or_default()
}

fn ns(text: &str) -> u64 {
    decimal_ns(text).expect("a decimal number")
}

/// Parts of a playlist in order: their segment as counted by `EXTINF` from `first`, duration, whether they are independent.
fn parts(first: u64, text: &str) -> Vec<(u64, u64, bool)> {
    let mut segment = first;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("#EXT-X-PART:") {
            found.push((segment, ns(value(line, "DURATION")), line.contains("INDEPENDENT=YES")));
        }
        segment += u64::from(line.starts_with("#EXTINF:"));
    }
    found
}

proptest! {
    /// rfc8216bis §4.4.3.8, §4.4.4.9, §6.2.2 and Apple's authoring rules on parts, at any time.
    #[test]
    fn playlists_keep_the_rules_of_parts(at_ms in 14_000u64..200_000, part_ms in 84u64..1500, track in 0usize..2) {
        let catalogue = catalogue(part_ms);
        let live = live(&catalogue, track, at_ms);
        let text = live.playlist(false);
        let first: u64 = text.split_once("MEDIA-SEQUENCE:").and_then(|(_, rest)| rest.lines().next())
            .and_then(|number| number.parse().ok()).expect("a sequence number");
        let (target, part_target) = (2_000_000_000, ns(value(&text, "PART-TARGET")));
        prop_assert!(ns(value(&text, "PART-HOLD-BACK")) >= 2 * part_target);
        prop_assert!(ns(value(&text, "CAN-SKIP-UNTIL")) >= 6 * target);
        let parts = parts(first, &text);
        let edge_ns = at_ms * 1_000_000;
        let timeline = &catalogue.tracks[track].rungs[0].timeline;
        for (index, (segment, duration, independent)) in parts.iter().enumerate() {
            prop_assert!(*duration <= part_target, "{duration} ∕ {part_target}");
            let next = parts.get(index + 1);
            let last = next.is_none_or(|next| next.0 != *segment);
            prop_assert!(last || *independent || duration * 100 >= part_target * 85, "{text}");
            prop_assert!(*segment >= first);
        }
        // Parts of a segment that is listed add up to it.
        let whole: Vec<u64> = text.lines().filter_map(|line| line.strip_prefix("#EXTINF:"))
            .map(|length| ns(length.trim_end_matches(','))).collect();
        for (segment, length) in (first..).zip(&whole) {
            let own: Vec<u64> = parts.iter().filter(|part| part.0 == segment).map(|part| part.1).collect();
            let place = timeline.place(segment);
            let end_ns = timeline.time(place.start + place.duration).as_nanos();
            // §6.2.2: at least of the last three target durations.
            prop_assert!(!own.is_empty() || edge_ns - end_ns >= 3 * target, "{segment} of {text}");
            prop_assert!(own.is_empty() || own.iter().sum::<u64>().abs_diff(*length) <= own.len() as u64);
        }
        // What is listed has been captured, and what is hinted at follows.
        let listed_ns: u64 = timeline.time(timeline.place(first).start).as_nanos() + whole.iter().sum::<u64>()
            + parts.iter().filter(|part| part.0 >= first + whole.len() as u64).map(|part| part.1).sum::<u64>();
        prop_assert!(listed_ns <= edge_ns + 1000, "{listed_ns} {edge_ns}");
        prop_assert!(listed_ns + part_target + 1000 > edge_ns, "{listed_ns} {edge_ns}");
        prop_assert_eq!(text.matches("#EXT-X-PRELOAD-HINT:TYPE=PART").count(), 1);
        prop_assert_eq!(text.matches("#EXT-X-RENDITION-REPORT:").count(), 2);
        prop_assert_eq!(text.matches("#EXT-X-PROGRAM-DATE-TIME").count(), whole.len() + usize::from(parts.last().is_some_and(|part| part.0 >= first + whole.len() as u64)));
        // Players that know no parts read it too.
        let url = Url::parse("http://origin/v0.m3u8").unwrap();
        let Ok(Playlist::Media(read)) = presentation::from_playlist(text.as_bytes(), &url) else { panic!("{text}") };
        prop_assert_eq!(read.segments.last().map(|last| last.number + 1), Some(first + whole.len() as u64));
    }

    /// §4.4.5.2: an update has what the whole playlist has, without what is beyond the skip boundary.
    #[test]
    fn an_update_leaves_out_old_segments(at_ms in 14_000u64..200_000) {
        let catalogue = catalogue(500);
        let live = live(&catalogue, 0, at_ms);
        let (whole, update) = (live.playlist(false), live.playlist(true));
        let segments = |text: &str| text.matches("#EXTINF:").count();
        let skipped: usize = update.split_once("SKIPPED-SEGMENTS=").map_or(0, |(_, rest)| {
            rest.lines().next().and_then(|number| number.parse().ok()).expect("a number")
        });
        prop_assert_eq!(segments(&whole), segments(&update) + skipped);
        // Six target durations are kept, and never more than a segment beyond.
        let kept_s = 2 * segments(&update) as u64;
        prop_assert!(skipped == 0 || (12..=14).contains(&kept_s), "{kept_s}");
        prop_assert!(at_ms < 32_000 || skipped > 0);
        let tail = |text: &str| text.lines().rev().take(20).map(str::to_owned).collect::<Vec<_>>();
        prop_assert_eq!(tail(&whole), tail(&update));
    }

    /// Numbers come from anybody.
    #[test]
    fn any_segment_and_part_is_near_or_is_not(number in any::<u64>(), part in any::<u64>(), shift in 0u32..64, track in 0usize..2) {
        let catalogue = catalogue(500);
        let live = live(&catalogue, track, 21_100);
        // Small numbers as well.
        let (number, part) = (number >> shift, part >> shift);
        // Segments 10 and 11 begin by 23.1 s.
        prop_assert_eq!(live.is_soon(number, None), number <= 11);
        for part in [part, part % 8].into_iter().filter_map(|part| live.chunks.part(number, part)) {
            prop_assert_eq!(part.segment, number);
            let soon = live.is_soon(number, Some(&part));
            prop_assert!(if number <= 10 { soon } else { number == 11 || !soon }, "{part:?}");
        }
    }

    #[test]
    fn any_query_is_read_or_refused(query in "(_HLS_(msn|part|skip)=?[-0-9YES]{0,20}&?){0,5}", other in "\\PC{0,40}") {
        for text in [&query, &other] {
            if let Ok(directives) = Directives::parse(Some(text)) {
                prop_assert!(directives.part.is_none() || directives.segment.is_some());
                let catalogue = catalogue(500);
                let _ = live(&catalogue, 0, 60_000).held(&directives);
            }
        }
    }
}

/// Of segments of 6 s in parts of 500 ms, at 24.6 s: segments up to 3, and one part of segment 4.
#[test]
fn parts_of_an_earlier_segment_are_not_too_far_ahead() {
    let rungs = vec![rung("v0", 24_000, &[144_000; 3], 1000, 2, 500)];
    let container = Container::Fmp4;
    let tracks = vec![TrackEntry { kind: TrackKind::Video, container, rungs }];
    let schedule = Schedule::Live { zero_unix_ns: ZERO, window: WINDOW };
    let catalogue = Catalogue { tracks, schedule, hls_rungs: HlsRungs::All, version: "x".into() };
    let live = live(&catalogue, 0, 24_600);
    let held = |query| live.held(&Directives::parse(Some(query))?);
    let until = |ms: u64| Ok(Held::Until(ZERO + ms * 1_000_000));
    assert_eq!(held("_HLS_msn=3&_HLS_part=10"), until(23_500));
    // Beyond its last.
    assert_eq!(held("_HLS_msn=3&_HLS_part=99"), until(24_500));
    assert_eq!(held("_HLS_msn=4&_HLS_part=6"), until(27_500));
    assert_eq!(held("_HLS_msn=4&_HLS_part=7"), Err("_HLS_part is too far ahead"));
}

/// §6.2.5.2, at 21.1 s: segments up to 9 and two parts of segment 10 are there.
#[test]
fn requests_are_held_until_their_part_is_there() {
    let catalogue = catalogue(500);
    let live = live(&catalogue, 0, 21_100);
    let held = |query: &str| {
        let directives = Directives::parse(Some(query))?;
        let held = live.held(&directives)?;
        let (Held::Until(at) | Held::InVain(at)) = held;
        Ok::<_, &str>((matches!(held, Held::Until(_)), (at - ZERO) / 1_000_000))
    };
    // There already.
    assert_eq!(held("_HLS_msn=10&_HLS_part=1"), Ok((true, 21_000)));
    assert_eq!(held("_HLS_msn=9"), Ok((true, 20_000)));
    assert_eq!(held(""), Ok((true, 21_100)));
    assert_eq!(held("_HLS_msn=10&_HLS_part=2"), Ok((true, 21_500)));
    assert_eq!(held("_HLS_msn=10"), Ok((true, 22_000)));
    // A part beyond the last is the first of the next segment.
    assert_eq!(held("_HLS_msn=10&_HLS_part=4"), Ok((true, 22_500)));
    assert_eq!(held("_HLS_msn=11&_HLS_part=0"), Ok((true, 22_500)));
    assert_eq!(held("_HLS_msn=11"), Ok((true, 24_000)));
    // Segment 9 is the last that is listed: 11 may be asked for, 12 not. Six parts of 500 ms are 3 s.
    assert_eq!(held("_HLS_msn=12"), Err("_HLS_msn is too far ahead"));
    assert_eq!(held("_HLS_msn=11&_HLS_part=3"), Ok((true, 24_000)));
    assert_eq!(held("_HLS_msn=10&_HLS_part=8"), Err("_HLS_part is too far ahead"));
    assert_eq!(held("_HLS_part=1"), Err("_HLS_part without _HLS_msn"));
    assert_eq!(held("_HLS_msn=-1"), Err("_HLS_msn: expected a sequence number"));
    assert_eq!(held("_HLS_msn=10&_HLS_part="), Err("_HLS_part: expected a part's index"));
    assert_eq!(held("_HLS_skip=MAYBE"), Err("_HLS_skip: expected YES or v2"));
    assert_eq!(held("other=1&_HLS_msn=10"), Ok((true, 22_000)));
}

#[test]
fn our_parsers_read_what_was_written() {
    let catalogue = catalogue(500);
    let url = Url::parse("http://origin/manifest.mpd").unwrap();
    let text = mpd::write(&catalogue, ZERO + 21_100_000_000, Some("http://origin")).unwrap();
    let read = presentation::from_mpd(text.as_bytes(), &url).unwrap();
    let live = read.live.unwrap();
    assert_eq!(live.service.latency, Some(Duration::from_millis(1500)));
    assert!((live.service.speed_change.unwrap() - 0.05).abs() < 1e-9);
    let Source::Segments(segments) = &read.tracks[0].rungs[0].source else { panic!("a rule") };
    assert!(segments.in_chunks() && !segments.is_listed());
    assert_eq!(segments.early(), Duration::from_nanos(1_916_666_666));
    let now = segments.at(Duration::from_millis(21_100)).unwrap();
    assert_eq!((now.number, now.start), (10, Duration::from_secs(20)));
    assert_eq!(now.media.url.target(), "/v0/10.m4s");
    assert_eq!(segments.time_of(24_000 * 20 + 2000, 24_000).unwrap().as_nanos(), 20_083_333_333);

    let url = Url::parse("http://origin/v0.m3u8?token=1").unwrap();
    let text = live_text(&catalogue);
    let Ok(Playlist::Media(read)) = presentation::from_playlist(text.as_bytes(), &url) else {
        panic!("{text}")
    };
    let parts = read.parts.unwrap();
    assert_eq!((parts.target, parts.can_block), (Duration::from_millis(500), true));
    assert_eq!(parts.hold_back, Some(Duration::from_millis(1500)));
    let (last, hint) = (parts.listed.last().unwrap(), parts.hint.as_ref().unwrap());
    assert_eq!((last.segment.number, last.part, last.independent), (10, 1, false));
    assert_eq!((hint.segment.number, hint.part), (10, 2));
    assert_eq!(
        (last.segment.end(), hint.segment.media.url.target()),
        (hint.segment.start, "/v0/10.2.m4s")
    );
    // Ten segments are listed, from 0 on: 21 s of media lie before the hint.
    let placed = parts.placed_at(1_000_000_000);
    assert_eq!(placed.hint.unwrap().segment.start, Duration::from_secs(22));
    let again = parts.reload(&url, false).unwrap();
    assert_eq!(again.url.target(), "/v0.m3u8?token=1&_HLS_msn=10&_HLS_part=2");
    // The skip boundary is 12 s: a list of 6 s ago will do, for whoever plays within 6 s of the end at 21 s.
    let s = Duration::from_secs;
    assert!(parts.can_skip(s(6), s(15)) && !parts.can_skip(s(7), s(15)));
    assert!(!parts.can_skip(s(1), s(14)));
    // Decoding begins with a segment.
    assert_eq!(
        parts.independent_before(Duration::from_millis(20_900)),
        Some(Duration::from_secs(20))
    );
    assert_eq!(parts.at(Duration::from_millis(20_501)).map(|part| part.part), Some(1));
    assert_eq!(parts.at(Duration::from_secs(30)), None);
    // After the first part of a segment that is listed, its second comes, and not all of it again.
    let next = |ms: u64| {
        let at = Duration::from_millis(ms);
        let found = parts.next(at, read.segments.following(at));
        found.map(|segment| segment.media.url.target().to_owned())
    };
    let expected = ["/v0/9.m4s", "/v0/9.1.m4s", "/v0/9.3.m4s", "/v0/10.0.m4s", "/v0/10.2.m4s"];
    assert_eq!(
        [18_000, 18_499, 19_500, 20_000, 21_000].map(next),
        expected.map(|at| Some(at.into()))
    );
    // Of segment 4 no parts are listed any more.
    assert_eq!([8_500, 21_800].map(next), [Some("/v0/4.m4s".to_owned()), None]);
}

#[test]
fn a_delta_update_goes_on_where_the_list_was() {
    let catalogue = catalogue(500);
    let url = Url::parse("http://origin/v0.m3u8").unwrap();
    let live = live(&catalogue, 0, 41_100);
    let read = |text: &str, url: &Url| match presentation::from_playlist(text.as_bytes(), url) {
        Ok(Playlist::Media(read)) => Ok(read),
        other => Err(other.map(|_| "a multivariant playlist".to_owned())),
    };
    let whole = read(&live.playlist(false), &url).unwrap();
    let parts = whole.parts.as_ref().unwrap();
    let asked = parts.reload(&url, true).unwrap().url;
    assert_eq!(asked.target(), "/v0.m3u8?_HLS_msn=20&_HLS_part=2&_HLS_skip=YES");
    let mut update = read(&live.playlist(true), &asked).unwrap();
    assert!(update.is_update && !whole.is_update);
    let last = whole.segments.last().unwrap();
    assert_eq!(update.segments.last().map(|last| last.init), Some(None));
    update.complete(last.init.as_ref());
    // Placed by their dates, both say the same of what both list.
    let place = |date: Option<u64>| i64::try_from(date.unwrap() - ZERO).unwrap();
    let (old, new) = (place(whole.date_unix_ns), place(update.date_unix_ns));
    let (old, new) = (whole.segments_from(old), update.segments_from(new));
    assert_eq!((old.first().unwrap().number, new.first().unwrap().number), (5, 14));
    assert_eq!((old.by_number(14), old.last()), (new.first(), new.last()));
    let hint = |list: &presentation::MediaPlaylist| list.parts.clone().unwrap().hint.unwrap();
    assert_eq!(hint(&whole).segment.number, hint(&update).segment.number);
    assert_eq!(hint(&whole).segment.init, hint(&update).segment.init);
}

/// A package that cannot be read: all else is answered without it.
pub(super) struct Unreadable;

impl Media for Unreadable {
    fn init(&self, _: usize, _: usize) -> io::Result<Bytes> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn segment(&self, _: usize, _: usize, _: u64) -> io::Result<Bytes> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// All on one connection, which does not end.
#[tokio::test]
async fn what_is_centuries_away_is_not_there_yet() {
    let listener = crate::net::listen((Ipv4Addr::LOCALHOST, 0).into(), None).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async { drop(stopped.await) };
    let media = Arc::new(Unreadable);
    let serving = tokio::spawn(serve(listener, catalogue(500), media, Clock::from_now(), stopped));
    let mut stream = crate::net::connect("127.0.0.1", port, None).await.unwrap();
    for name in [
        "8500000000",
        "17000000000",
        "9999999999999999999",
        "8500000000.0",
        "9999999999999999999.9999999999999999999",
        "t9999999999999999999",
        "t408000000000000",
    ] {
        let request = format!("GET /v0/{name}.m4s HTTP/1.1\r\nhost: origin\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // Its only line that ends without a carriage return is the last.
        while !answer.ends_with(b"\n") || answer.ends_with(b"\r\n") {
            assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "{name}: it hung up");
        }
        assert!(answer.starts_with(b"HTTP/1.1 404 "), "{name}: {}", answer.escape_ascii());
    }
    drop((stream, stop));
    assert_eq!(serving.await.unwrap().refused, 7);
}

fn live_text(catalogue: &Catalogue) -> String {
    live(catalogue, 0, 21_100).playlist(false)
}

#[test]
fn broken_parts_are_refused_with_their_line() {
    let catalogue = catalogue(500);
    let url = Url::parse("http://origin/v0.m3u8").unwrap();
    let whole = live_text(&catalogue);
    for (what, with, why) in [
        ("PART:DURATION=0.5,", "PART:", "EXT-X-PART: no DURATION"),
        ("PART:DURATION=0.5,", "PART:DURATION=0,", "EXT-X-PART: no DURATION"),
        ("PART:DURATION=0.5,", "PART:DURATION=0.5,BYTERANGE=\"1@\",", "not a byte range"),
        ("PART-TARGET=0.5", "PART-TARGET=none", "no PART-TARGET"),
        ("#EXT-X-MAP:", "#EXT-X-SKIP:SKIPPED-SEGMENTS=3\n#EXT-X-MAP:", "not asked for"),
    ] {
        assert!(whole.contains(what), "{what} in {whole}");
        let text = whole.replacen(what, with, 1);
        let error = presentation::from_playlist(text.as_bytes(), &url).unwrap_err();
        assert!(error.to_string().contains(why) && error.line.is_some(), "{error}");
    }
}
