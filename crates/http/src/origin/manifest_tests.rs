//! Manifests as they are written, and as our own parsers read them.

use suiro_record::Reader;
use suiro_record::tables::RungRow;
use suiro_scenario::HlsRungs;
use suiro_units::{BitRate, Duration};

use super::catalogue::{Catalogue, Container, RungEntry, TrackEntry};
use super::timeline::{Loop, Schedule};
use super::{hls, mpd};
use crate::iso8601::parse_date_time;
use crate::presentation::{self, Playlist, Source, TrackKind};
use crate::url::Url;

fn rung(id: &str, kbps: u64, timeline: Loop) -> RungEntry {
    let video = id.starts_with('v');
    RungEntry {
        id: id.into(),
        rate: BitRate::from_kbps(kbps),
        declared: BitRate::from_kbps(kbps),
        mean_rate: BitRate::from_kbps(kbps * 9 / 10),
        nominal: BitRate::from_kbps(kbps * 8 / 10),
        codecs: if video { "avc3.64001f" } else { "mp4a.40.2" }.into(),
        size: video.then_some((1280, 720)),
        frame_rate: video.then_some((24, 1)),
        channels: (!video).then_some(2),
        timeline,
        chunks: None,
    }
}

fn catalogue(schedule: Schedule, container: Container) -> Catalogue {
    let pictures = Loop::new(12_288, &[24_576; 3]).unwrap();
    let sound = Loop::new(48_000, &[96_256, 96_256, 95_488]).unwrap();
    let rungs = vec![rung("v0", 500, pictures.clone()), rung("v1", 1500, pictures)];
    let mut tracks = vec![TrackEntry { kind: TrackKind::Video, container, rungs }];
    if container == Container::Fmp4 {
        let rungs = vec![rung("a", 100, sound)];
        tracks.push(TrackEntry { kind: TrackKind::Audio, container, rungs });
    }
    Catalogue { tracks, schedule, hls_rungs: HlsRungs::All, version: "x".into() }
}

/// A stream that began at 2026-11-21T01:57:00Z, seen 21 s later.
const ZERO: u64 = 1_795_226_220_000_000_000;
const NOW: u64 = ZERO + 21_000_000_000;
const LIVE: Schedule = Schedule::Live { zero_unix_ns: ZERO, window: Duration::from_secs(8) };

#[test]
fn a_live_mpd() {
    let text = mpd::write(&catalogue(LIVE, Container::Fmp4), NOW, Some("http://origin")).unwrap();
    assert_eq!(
        text,
        r#"<?xml version="1.0" encoding="UTF-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-live:2011" minBufferTime="PT2.005333334S" maxSegmentDuration="PT2.005333334S"
 type="dynamic" availabilityStartTime="2026-11-21T01:57:00.000Z" publishTime="2026-11-21T01:57:20.005Z"
 minimumUpdatePeriod="PT2.005333334S" timeShiftBufferDepth="PT8S" suggestedPresentationDelay="PT6.016000002S">
 <Period id="0" start="PT0S">
  <AdaptationSet id="0" contentType="video" mimeType="video/mp4" segmentAlignment="true" startWithSAP="1">
   <SegmentTemplate timescale="12288" media="$RepresentationID$/t$Time$.m4s" initialization="$RepresentationID$/init.mp4">
    <SegmentTimeline>
     <S t="147456" d="24576" r="3"/>
    </SegmentTimeline>
   </SegmentTemplate>
   <Representation id="v0" bandwidth="500000" codecs="avc3.64001f" width="1280" height="720" frameRate="24" sar="1:1"/>
   <Representation id="v1" bandwidth="1500000" codecs="avc3.64001f" width="1280" height="720" frameRate="24" sar="1:1"/>
  </AdaptationSet>
  <AdaptationSet id="1" contentType="audio" mimeType="audio/mp4" segmentAlignment="true" startWithSAP="1">
   <SegmentTemplate timescale="48000" media="$RepresentationID$/t$Time$.m4s" initialization="$RepresentationID$/init.mp4">
    <SegmentTimeline>
     <S t="576000" d="96256" r="1"/>
     <S d="95488"/>
     <S d="96256"/>
    </SegmentTimeline>
   </SegmentTemplate>
   <Representation id="a" bandwidth="100000" codecs="mp4a.40.2"/>
  </AdaptationSet>
 </Period>
 <UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-xsdate:2014" value="http://origin/time"/>
</MPD>
"#
    );
}

#[test]
fn rungs_that_are_not_cut_alike_say_so_each() {
    let mut catalogue = catalogue(LIVE, Container::Fmp4);
    catalogue.tracks[0].rungs[1].timeline = Loop::new(25, &[50; 3]).unwrap();
    let text = mpd::write(&catalogue, NOW, None).unwrap();
    assert_eq!(text.matches("<SegmentTemplate").count(), 3);
    let url = Url::parse("http://origin/manifest.mpd").unwrap();
    let read = presentation::from_mpd(text.as_bytes(), &url).unwrap();
    for rung in &read.tracks[0].rungs {
        let Source::Segments(segments) = &rung.source else { panic!("DASH has no playlists") };
        assert_eq!(segments.first().unwrap().start, Duration::from_secs(12));
    }
}

/// An MPD stays valid until a segment comes or leaves.
#[test]
fn an_mpd_is_published_anew_only_when_it_changes() {
    let catalogue = catalogue(LIVE, Container::Fmp4);
    let at = |ms: u64| mpd::write(&catalogue, ZERO + ms * 1_000_000, None).unwrap();
    let published_ms = |text: &str| {
        let (_, rest) = text.split_once("publishTime=\"").unwrap();
        let time = parse_date_time(rest.split('"').next().unwrap()).unwrap();
        (time - ZERO) / 1_000_000
    };
    for ms in (0..30_000).step_by(100) {
        let (before, after) = (at(ms), at(ms + 100));
        let changed_ms = published_ms(&after);
        assert!(changed_ms <= ms + 100, "{ms}");
        assert_eq!(before != after, changed_ms > ms, "{ms}");
    }
}

/// Every listed segment has the same number, start and URL in what a player reads.
#[test]
fn our_parser_reads_what_was_written() {
    let schedules = [LIVE, Schedule::Vod { length: Duration::from_secs(60) }];
    for schedule in schedules {
        let catalogue = catalogue(schedule, Container::Fmp4);
        let url = Url::parse("http://origin/manifest.mpd").unwrap();
        let text = mpd::write(&catalogue, NOW, Some("http://origin")).unwrap();
        let read = presentation::from_mpd(text.as_bytes(), &url).unwrap();
        assert_eq!(read.live.is_some(), matches!(schedule, Schedule::Live { .. }));
        for (track, entry) in read.tracks.iter().zip(&catalogue.tracks) {
            let timeline = &entry.rungs[0].timeline;
            let Source::Segments(segments) = &track.rungs[0].source else { panic!("a list") };
            let listed = schedule.listed(timeline, NOW);
            assert_eq!(segments.first().unwrap().number, listed.start);
            assert_eq!(segments.last().unwrap().number, listed.end - 1);
            for number in listed {
                let segment = segments.by_number(number).unwrap();
                let place = timeline.place(number);
                // We round down to nanoseconds, the timeline up.
                assert!(timeline.time(place.start).as_nanos() - segment.start.as_nanos() <= 1);
                let name = format!("/{}/t{}.m4s", entry.rungs[0].id, place.start);
                assert_eq!(segment.media.url.target(), name);
            }
        }
    }
}

#[test]
fn a_multivariant_playlist() {
    assert_eq!(
        hls::multivariant(&catalogue(LIVE, Container::Fmp4)),
        r#"#EXTM3U
#EXT-X-VERSION:7
#EXT-X-INDEPENDENT-SEGMENTS
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="audio",NAME="audio",LANGUAGE="und",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",URI="a.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=600000,AVERAGE-BANDWIDTH=540000,CODECS="avc3.64001f,mp4a.40.2",RESOLUTION=1280x720,FRAME-RATE=24.000,AUDIO="audio"
v0.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=1600000,AVERAGE-BANDWIDTH=1440000,CODECS="avc3.64001f,mp4a.40.2",RESOLUTION=1280x720,FRAME-RATE=24.000,AUDIO="audio"
v1.m3u8
"#
    );
}

#[test]
fn hls_may_offer_the_top_rung_alone() {
    let mut catalogue = catalogue(LIVE, Container::MpegTs);
    catalogue.hls_rungs = HlsRungs::Top;
    let text = hls::multivariant(&catalogue);
    assert!(!text.contains("v0") && text.ends_with("\nv1.m3u8\n"), "{text}");
    // DASH has them all.
    catalogue.tracks[0].container = Container::Fmp4;
    let text = mpd::write(&catalogue, NOW, None).unwrap();
    assert_eq!(text.matches("<Representation ").count(), 2);
}

#[test]
fn rungs_above_the_top_are_not_offered() {
    let offered = |kbps: u64| {
        let mut catalogue = catalogue(LIVE, Container::Fmp4);
        catalogue.leave_out_above(BitRate::from_kbps(kbps));
        let text = mpd::write(&catalogue, NOW, None).unwrap();
        (text.contains("id=\"v0\""), text.contains("id=\"v1\""), text.contains("id=\"a\""))
    };
    assert_eq!(offered(1500), (true, true, true));
    assert_eq!(offered(1499), (true, false, true));
    assert_eq!(offered(10), (true, false, true), "the lowest stays, and so does the sound");
}

#[test]
fn a_live_media_playlist() {
    let catalogue = catalogue(LIVE, Container::MpegTs);
    let rung = &catalogue.tracks[0].rungs[0];
    let text = hls::media(Container::MpegTs, rung, &LIVE, NOW);
    assert_eq!(
        text,
        "#EXTM3U
#EXT-X-VERSION:7
#EXT-X-TARGETDURATION:2
#EXT-X-MEDIA-SEQUENCE:6
#EXT-X-PROGRAM-DATE-TIME:2026-11-21T01:57:12.000Z
#EXTINF:2,
v0/6.ts
#EXT-X-PROGRAM-DATE-TIME:2026-11-21T01:57:14.000Z
#EXTINF:2,
v0/7.ts
#EXT-X-PROGRAM-DATE-TIME:2026-11-21T01:57:16.000Z
#EXTINF:2,
v0/8.ts
#EXT-X-PROGRAM-DATE-TIME:2026-11-21T01:57:18.000Z
#EXTINF:2,
v0/9.ts
"
    );
    let url = Url::parse("http://origin/v0.m3u8").unwrap();
    let Ok(Playlist::Media(read)) = presentation::from_playlist(text.as_bytes(), &url) else {
        panic!("it is a media playlist")
    };
    assert_eq!(read.date_unix_ns, Some(ZERO + 12_000_000_000));
    assert_eq!((read.segments.last().unwrap().number, read.ended), (9, false));
}

#[test]
fn a_media_playlist_on_demand() {
    let schedule = Schedule::Vod { length: Duration::from_secs(5) };
    let catalogue = catalogue(schedule, Container::Fmp4);
    let rung = &catalogue.tracks[1].rungs[0];
    assert_eq!(
        hls::media(Container::Fmp4, rung, &schedule, NOW),
        "#EXTM3U
#EXT-X-VERSION:7
#EXT-X-TARGETDURATION:2
#EXT-X-MEDIA-SEQUENCE:0
#EXT-X-PLAYLIST-TYPE:VOD
#EXT-X-MAP:URI=\"a/init.mp4\"
#EXTINF:2.005333334,
a/0.m4s
#EXTINF:2.005333333,
a/1.m4s
#EXTINF:1.989333333,
a/2.m4s
#EXT-X-ENDLIST
"
    );
}

#[test]
fn the_record_of_rungs_has_nominal_average_and_peak_and_what_manifests_say() {
    let dir = tempfile::tempdir().unwrap();
    super::rungs::write(&catalogue(LIVE, Container::Fmp4), dir.path(), "origin").unwrap();
    let rows: Vec<RungRow> = Reader::read_all(dir.path()).unwrap();
    let kbps = |rate: BitRate| rate.as_bps() / 1000;
    let facts: Vec<_> = rows
        .iter()
        .map(|row| {
            let said = (row.dash_bps.map(kbps), row.hls_bps.map(kbps));
            (&*row.rung, kbps(row.nominal_bps), kbps(row.average_bps), kbps(row.peak_bps), said)
        })
        .collect();
    // HLS counts the sound with the frame, and does not list it by itself.
    assert_eq!(
        facts,
        [
            ("v0", 400, 450, 500, (Some(500), Some(600))),
            ("v1", 1200, 1350, 1500, (Some(1500), Some(1600))),
            ("a", 80, 90, 100, (Some(100), None)),
        ]
    );
}
