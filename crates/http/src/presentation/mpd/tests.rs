use super::*;
use crate::presentation::Segment;
use proptest::prelude::*;

fn url() -> Url {
    Url::parse("http://origin/live/manifest.mpd").unwrap()
}

/// A manifest in the style of DASH-IF's guidelines, live, with a timeline.
const LIVE: &str = r#"<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic" minimumUpdatePeriod="PT2S"
     availabilityStartTime="2026-11-21T01:57:00Z" timeShiftBufferDepth="PT30S"
     suggestedPresentationDelay="PT6S" profiles="urn:mpeg:dash:profile:isoff-live:2011">
 <BaseURL>media/</BaseURL>
 <Period id="1" start="PT1S">
  <AdaptationSet contentType="audio" mimeType="audio/mp4">
   <SegmentTemplate timescale="48000" media="a-$Time$.m4s" initialization="a.mp4">
    <SegmentTimeline><S t="0" d="96256" r="1"/><S d="95232"/></SegmentTimeline>
   </SegmentTemplate>
   <Representation id="a0" bandwidth="128000"/>
  </AdaptationSet>
  <AdaptationSet mimeType="video/mp4">
   <SegmentTemplate timescale="90000" startNumber="7" presentationTimeOffset="180000"
     media="$RepresentationID$/$Number%05d$.m4s" initialization="$RepresentationID$/init.mp4">
    <SegmentTimeline><S t="180000" d="180000" r="2"/><S t="900000" d="90000"/></SegmentTimeline>
   </SegmentTemplate>
   <Representation id="hi" bandwidth="2000000"><BaseURL>far/</BaseURL></Representation>
   <Representation id="lo" bandwidth="500000"/>
  </AdaptationSet>
  <AdaptationSet contentType="text" mimeType="text/vtt"><Representation id="t" bandwidth="1"/></AdaptationSet>
 </Period>
</MPD>"#;

fn segments(presentation: &Presentation, track: usize, rung: usize) -> &Segments {
    match &presentation.tracks[track].rungs[rung].source {
        Source::Segments(segments) => segments,
        Source::Playlist(_) => panic!("a DASH rung has no playlist"),
    }
}

fn brief(segment: Option<Segment>) -> Option<(u64, f64, f64, String)> {
    let s = segment?;
    Some((s.number, s.start.as_secs_f64(), s.duration.as_secs_f64(), s.media.url.to_string()))
}

#[test]
fn a_live_manifest() {
    let p = from_mpd(LIVE.as_bytes(), &url()).unwrap();
    let live = p.live.as_ref().unwrap();
    // Media time zero is the period's start: a second after the availability start.
    assert_eq!(live.zero_unix_ns, iso8601::parse_date_time("2026-11-21T01:57:01Z"));
    assert_eq!(live.suggested_delay, Some(Duration::from_secs(6)));
    assert_eq!(p.refresh, Some(Duration::from_secs(2)));
    let kinds: Vec<_> = p.tracks.iter().map(|t| (t.kind, t.rungs.len())).collect();
    assert_eq!(kinds, [(TrackKind::Video, 2), (TrackKind::Audio, 1)]);
    assert_eq!(p.tracks[0].rungs[0].rate, BitRate::from_kbps(500));
    let low = segments(&p, 0, 0);
    let url = |name: &str| format!("http://origin/live/media/{name}");
    assert_eq!(brief(low.first()), Some((7, 0.0, 2.0, url("lo/00007.m4s"))));
    assert_eq!(low.first().unwrap().init.unwrap().url.to_string(), url("lo/init.mp4"));
    assert_eq!(brief(low.last()), Some((10, 8.0, 1.0, url("lo/00010.m4s"))));
    assert_eq!(brief(segments(&p, 0, 1).first()).unwrap().3, url("far/hi/00007.m4s"));
}

#[test]
fn segments_by_time() {
    let p = from_mpd(LIVE.as_bytes(), &url()).unwrap();
    let low = segments(&p, 0, 0);
    let at = |ms| low.at(Duration::from_millis(ms)).map(|s| s.number);
    assert_eq!([at(0), at(1999), at(2000), at(5999)], [Some(7), Some(7), Some(8), Some(9)]);
    // There is a hole from 6 to 8 s, and nothing after 9 s.
    assert_eq!([at(6000), at(8999), at(9000)], [Some(10), Some(10), None]);
    // A rung that is cut a little differently is met at the nearest boundary.
    let after = |ms| low.following(Duration::from_millis(ms)).map(|s| s.number);
    assert_eq!(
        [after(1990), after(2000), after(2010), after(9000)],
        [Some(8), Some(8), Some(8), None]
    );
    assert_eq!(low.by_number(9).map(|s| s.start), Some(Duration::from_secs(4)));
    assert_eq!((low.by_number(6), low.by_number(11)), (None, None));
}

#[test]
fn times_do_not_drift() {
    let p = from_mpd(LIVE.as_bytes(), &url()).unwrap();
    let audio = segments(&p, 1, 0);
    // (2·96256 + 95232) ÷ 48000 s, to the nanosecond.
    assert_eq!(audio.last().unwrap().end(), Duration::from_nanos(5_994_666_666));
    assert_eq!(audio.last().unwrap().media.url.target(), "/live/media/a-192512.m4s");
    // URLs by time, and no @startNumber: numbers count from media time zero.
    assert_eq!(audio.first().unwrap().number, 0);
    let later = LIVE.replace("<S t=\"0\" d=\"96256\"", "<S t=\"9600000\" d=\"96256\"");
    let later = from_mpd(later.as_bytes(), &url()).unwrap();
    // 200 s of segments of 1.9982 s.
    assert_eq!(segments(&later, 1, 0).first().unwrap().number, 100);
}

const ON_DEMAND: &str = r#"<MPD type="static" mediaPresentationDuration="PT5S"><Period>
 <SegmentTemplate media="v-$Number$.m4s" duration="2"/>
 <AdaptationSet contentType="video"><Representation bandwidth="9"/></AdaptationSet></Period></MPD>"#;

#[test]
fn a_rule_instead_of_a_list() {
    let p = from_mpd(ON_DEMAND.as_bytes(), &url()).unwrap();
    let video = segments(&p, 0, 0);
    assert!(!video.is_listed() && p.live.is_none());
    assert_eq!(p.duration, Some(Duration::from_secs(5)));
    let numbers = (video.first().unwrap().number, video.last().unwrap().number);
    assert_eq!(numbers, (1, 3));
    assert_eq!(video.first().unwrap().init, None);
}

#[test]
fn negative_repeats_last_until_the_end() {
    let text = ON_DEMAND.replace(r#"duration="2"/>"#,
        r#"><SegmentTimeline><S t="0" d="1" r="-1"/><S t="3" d="2" r="-1"/></SegmentTimeline></SegmentTemplate>"#);
    let p = from_mpd(text.as_bytes(), &url()).unwrap();
    let video = segments(&p, 0, 0);
    assert_eq!(video.last().map(|s| (s.number, s.start)), Some((4, Duration::from_secs(3))));
}

/// Each is the valid manifest with one thing broken, and what the error must say.
#[test]
fn broken_manifests_are_refused_with_their_line() {
    let cases: &[(&str, &str, &str)] = &[
        ("</MPD>", "", "not well-formed XML"),
        ("<MPD ", "<!DOCTYPE x [<!ENTITY a \"b\">]><MPD ", "XML"),
        ("\"dynamic\"", "\"sometimes\"", "line 2: @type=\"sometimes\" is not known"),
        ("2026-11-21T01:57:00Z", "yesterday", "line 2: @availabilityStartTime"),
        ("minimumUpdatePeriod=\"PT2S\"", "minimumUpdatePeriod=\"2\"", "@minimumUpdatePeriod"),
        ("timescale=\"90000\"", "timescale=\"0\"", "@timescale=0"),
        ("timescale=\"90000\"", "timescale=\"99999999999\"", "@timescale=99999999999"),
        ("t=\"180000\" d=\"180000\"", "t=\"180000\" d=\"0\"", "line 16: a segment of 0"),
        ("t=\"180000\" d=\"180000\"", "t=\"180000\" d=\"-5\"", "line 16: @d=\"-5\""),
        ("t=\"180000\" d=\"180000\"", "t=\"180000\" d=\"99999999999999\"", "line 16: a segment of"),
        ("r=\"2\"", "r=\"9999999999\"", "line 16: 10000000000 segments"),
        ("r=\"2\"", "r=\"many\"", "line 16: @r=\"many\""),
        ("t=\"900000\"", "t=\"200000\"", "overlaps"),
        ("t=\"900000\" d=\"90000\"", "t=\"900000\" d=\"90000\" r=\"-1\"", "no end is given"),
        ("bandwidth=\"500000\"", "", "line 19: <Representation> needs a @bandwidth"),
        ("bandwidth=\"500000\"", "bandwidth=\"0\"", "needs a @bandwidth"),
        ("$Number%05d$", "$Number%99d$", "not a format"),
        ("$Number%05d$", "$Numbr$", "`$Numbr$` is not known"),
        ("$Number%05d$", "$Number", "without its pair"),
        (
            "$RepresentationID$/init.mp4",
            "file:///etc/passwd",
            "@initialization: `file:///etc/passwd`",
        ),
        ("$RepresentationID$/$N", "https://x/$N", "@media: `https://x/"),
        ("<BaseURL>media/", "<BaseURL>ftp://x/", "line 5: <BaseURL>"),
        ("</MPD>", "<Period/></MPD>", "a second <Period>"),
        ("<MPD ", "<SMIL/><MPD ", "XML"),
    ];
    for (from, to, want) in cases {
        assert!(LIVE.contains(from), "{from}");
        let error =
            from_mpd(LIVE.replacen(from, to, 1).as_bytes(), &url()).unwrap_err().to_string();
        assert!(error.contains(want), "{to}: {error}");
    }
    let other = from_mpd(b"<html/>", &url()).unwrap_err().to_string();
    assert_eq!(other, "line 1: <html> where <MPD> was expected");
    assert!(from_mpd(&[0xff], &url()).is_err());
    assert!(from_mpd(&vec![b' '; MANIFEST_BYTES_MAX + 1], &url()).is_err());
}

/// Uses everything that a player would of what was accepted.
fn use_it(presentation: &Presentation) {
    for rung in presentation.tracks.iter().flat_map(|t| &t.rungs) {
        let Source::Segments(segments) = &rung.source else { continue };
        for segment in [segments.first(), segments.last()].into_iter().flatten() {
            assert!(!segment.duration.is_zero());
            segments.following(segment.end());
            segments.at(segment.start);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_mapped_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = from_mpd(&bytes, &url());
    }

    /// A valid manifest with a piece cut out and another put in.
    #[test]
    fn damaged_manifests_are_mapped_or_refused(
        cut in 0usize..LIVE.len(), length in 0usize..40, insert in "[-0-9a-z<>/\"$%= .]{0,12}",
    ) {
        let mut bytes = LIVE.as_bytes().to_vec();
        bytes.splice(cut..(cut + length).min(LIVE.len()), insert.bytes());
        if let Ok(presentation) = from_mpd(&bytes, &url()) {
            use_it(&presentation);
        }
    }

    #[test]
    fn absurd_numbers_are_mapped_or_refused(
        t in any::<u64>(), d in any::<u64>(), r in any::<i64>(), scale in any::<u64>(),
        number in any::<u64>(), offset in any::<u64>(),
    ) {
        let text = LIVE
            .replace("t=\"180000\" d=\"180000\" r=\"2\"", &format!("t=\"{t}\" d=\"{d}\" r=\"{r}\""))
            .replace("<S t=\"900000\" d=\"90000\"/>", "")
            .replace("timescale=\"90000\"", &format!("timescale=\"{scale}\""))
            .replace("startNumber=\"7\"", &format!("startNumber=\"{number}\""))
            .replace("presentationTimeOffset=\"180000\"", &format!("presentationTimeOffset=\"{offset}\""));
        if let Ok(presentation) = from_mpd(text.as_bytes(), &url()) {
            use_it(&presentation);
        }
    }
}

#[test]
fn offsets_of_base_urls_and_of_the_template_add_up() {
    let early = |of_mpd: &str, of_rung: &str, of_template: &str| {
        let offset = |text: &str| match text {
            "" => String::new(),
            text => format!(" availabilityTimeOffset=\"{text}\""),
        };
        let text = LIVE
            .replace("<BaseURL>media/", &format!("<BaseURL{}>media/", offset(of_mpd)))
            .replace("<BaseURL>far/", &format!("<BaseURL{}>far/", offset(of_rung)))
            .replace("startNumber=\"7\"", &format!("startNumber=\"7\"{}", offset(of_template)));
        let found = from_mpd(text.as_bytes(), &url()).map_err(|error| error.to_string())?;
        let ms = |rung| segments(&found, 0, rung).early().as_nanos() / 1_000_000;
        // The rung that has a base URL of its own is the better one.
        Ok::<_, String>((ms(0), ms(1)))
    };
    assert_eq!(early("", "", ""), Ok((0, 0)));
    assert_eq!(early("1.5", "", ""), Ok((1500, 1500)));
    assert_eq!(early("1.5", "0.25", "0.1"), Ok((1600, 1850)));
    assert_eq!(early("", "INF", "0.1"), Ok((100, 100)));
    assert_eq!(early("1.5", "", " INF "), Ok((1500, 1500)));
    assert!(early("-1", "", "").unwrap_err().contains("line 5: @availabilityTimeOffset=\"-1\""));
    let most = (SEGMENT_MAX.as_nanos() / 1_000_000_000).to_string();
    assert!(early(&most, "", "1").unwrap_err().contains("in all"));
}

#[test]
fn segments_come_in_chunks_if_the_template_or_else_the_nearest_base_url_has_it() {
    let in_chunks = |of_mpd: &str, of_rung: &str, of_template: &str| {
        let complete = |text: &str| match text {
            "" => String::new(),
            text => format!(" availabilityTimeComplete=\"{text}\""),
        };
        let text = LIVE
            .replace("<BaseURL>media/", &format!("<BaseURL{}>media/", complete(of_mpd)))
            .replace("<BaseURL>far/", &format!("<BaseURL{}>far/", complete(of_rung)))
            .replace("startNumber=\"7\"", &format!("startNumber=\"7\"{}", complete(of_template)));
        let found = from_mpd(text.as_bytes(), &url()).expect("an MPD");
        // The rung that has a base URL of its own is the better one.
        (segments(&found, 0, 0).in_chunks(), segments(&found, 0, 1).in_chunks())
    };
    assert_eq!(in_chunks("", "", ""), (false, false));
    assert_eq!(in_chunks("", "", "false"), (true, true));
    assert_eq!(in_chunks("false", "", ""), (true, true));
    assert_eq!(in_chunks("", "false", ""), (false, true));
    assert_eq!(in_chunks("0", "1", ""), (true, false));
    assert_eq!(in_chunks("false", "", "true"), (false, false));
}

#[test]
fn rows_that_many_rungs_inherit_are_counted_for_each() {
    // 100,000 rows in 1 MB, for 11 rungs.
    let rows = "<S d='1'/>".repeat(LISTED_MAX);
    let rungs = "<Representation bandwidth='1'/>\n".repeat(11);
    let text = format!(
        "<MPD><Period><AdaptationSet contentType='video'><SegmentTemplate media='$Number$'>\
         <SegmentTimeline>{rows}</SegmentTimeline></SegmentTemplate>\n{rungs}</AdaptationSet>\
         </Period></MPD>"
    );
    let error = from_mpd(text.as_bytes(), &url()).unwrap_err().to_string();
    assert_eq!(error, "line 12: more than 1000000 rows of <SegmentTimeline> in all");
}

#[test]
fn elements_within_elements_without_end_are_refused() {
    for (open, close) in [("<a>", "</a>"), ("<Period>", "</Period>"), ("<a>", "")] {
        let depth = 240_000;
        let text = format!("<MPD>{}{}</MPD>", open.repeat(depth), close.repeat(depth));
        let url = Url::parse("http://origin/a.mpd").unwrap();
        assert!(from_mpd(text.as_bytes(), &url).is_err());
    }
}
