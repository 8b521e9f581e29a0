use super::*;
use proptest::prelude::*;

fn url() -> Url {
    Url::parse("http://origin/live/list.m3u8").unwrap()
}

const MEDIA: &str = "#EXTM3U
#EXT-X-VERSION:7
#EXT-X-TARGETDURATION:2
#EXT-X-MEDIA-SEQUENCE:41
#EXT-X-MAP:URI=\"init.mp4\"

#EXTINF:2.002,
a/41.m4s
#EXT-X-PROGRAM-DATE-TIME:2026-11-21T01:57:02.002Z
#EXTINF:2.002,a title
42.m4s
#EXTINF:1,
#a comment
http://elsewhere/43.m4s?x=1
";

fn media(text: &str) -> MediaPlaylist {
    match from_playlist(text.as_bytes(), &url()).unwrap() {
        Playlist::Media(media) => *media,
        Playlist::Multivariant(_) => panic!("a media playlist"),
    }
}

#[test]
fn a_live_media_playlist() {
    let list = media(MEDIA);
    assert_eq!((list.target, list.ended), (Duration::from_secs(2), false));
    // The second segment is dated; the first began 2.002 s before it.
    assert_eq!(list.date_unix_ns, iso8601::parse_date_time("2026-11-21T01:57:00Z"));
    let first = list.segments.first().unwrap();
    assert_eq!((first.number, first.start), (41, Duration::ZERO));
    assert_eq!(first.media.url.target(), "/live/a/41.m4s");
    assert_eq!(first.init.unwrap().url.target(), "/live/init.mp4");
    let last = list.segments.last().unwrap();
    assert_eq!((last.number, last.start), (43, Duration::from_millis(4004)));
    assert_eq!(last.media.url.to_string(), "http://elsewhere/43.m4s?x=1");
    assert_eq!(list.duration(), Duration::from_millis(5004));
}

#[test]
fn segments_can_be_placed_in_time() {
    let list = media(MEDIA);
    let later = list.segments_from(10_000_000_000);
    assert_eq!(later.at(Duration::from_secs(11)).unwrap().number, 41);
    assert_eq!(later.by_number(42).unwrap().start, Duration::from_millis(12_002));
    // A playlist that begins a second before media time zero.
    let earlier = list.segments_from(-1_000_000_000);
    assert_eq!(earlier.at(Duration::ZERO).unwrap().number, 41);
    assert_eq!(earlier.by_number(42).unwrap().start, Duration::from_millis(1002));
}

#[test]
fn byte_ranges_follow_each_other() {
    let list = media(
        "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI=\"f\",BYTERANGE=\"100@0\"\n\
         #EXTINF:2,\n#EXT-X-BYTERANGE:50@100\nf\n#EXTINF:2,\n#EXT-X-BYTERANGE:60\nf\n#EXT-X-ENDLIST\n",
    );
    let range = |n| list.segments.by_number(n).unwrap().media.range;
    assert_eq!([range(0), range(1)], [Some((100, Some(149))), Some((150, Some(209)))]);
    assert_eq!(list.segments.first().unwrap().init.unwrap().range, Some((0, Some(99))));
    assert!(list.ended);
}

/// rfc8216bis §4.4.5.2: an update can leave out the segment before its first one, where the range of that begins.
#[test]
fn no_update_is_asked_for_where_ranges_follow_each_other() {
    let skip = |second: &str| {
        let list = media(&format!(
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=12\n\
             #EXT-X-PART-INF:PART-TARGET=0.5\n#EXTINF:2,\n#EXT-X-BYTERANGE:50@0\nf\n\
             #EXTINF:2,\n#EXT-X-BYTERANGE:{second}\nf\n"
        ));
        let range = list.segments.by_number(1).unwrap().media.range;
        assert_eq!(range, Some((50, Some(109))));
        list.parts.unwrap().can_skip
    };
    assert_eq!([skip("60@50"), skip("60")], [Some(Duration::from_secs(12)), None]);
}

/// Segments 7 and 9 are gaps; the parts of segment 11 are ranges of it.
const GAPS: &str = "#EXTM3U
#EXT-X-TARGETDURATION:2
#EXT-X-PART-INF:PART-TARGET=0.5
#EXT-X-MEDIA-SEQUENCE:7
#EXT-X-GAP
#EXTINF:2,
7.m4s
#EXTINF:2,
8.m4s
#EXT-X-PART:DURATION=0.5,URI=\"9.0.m4s\",GAP=YES
#EXT-X-GAP
#EXTINF:2,
9.m4s
#EXTINF:2,
10.m4s
#EXT-X-PART:DURATION=0.5,URI=\"11.m4s\",BYTERANGE=\"500@0\",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.5,URI=\"11.m4s\",BYTERANGE=\"700\"
#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"11.m4s\",BYTERANGE-START=1200
";

/// rfc8216bis §4.4.4.7 and §4.4.4.9.
#[test]
fn gaps_are_holes_in_the_list() {
    let list = media(GAPS);
    let seconds = Duration::from_secs;
    let first = list.segments.first().unwrap();
    assert_eq!((first.number, first.start, list.duration()), (8, seconds(2), seconds(8)));
    assert_eq!((list.segments.by_number(7), list.segments.by_number(9)), (None, None));
    let after = list.segments.following(first.end()).unwrap();
    assert_eq!((after.number, after.start), (10, seconds(6)));
    assert_eq!(after.media.url.target(), "/live/10.m4s");
    let parts = list.parts.unwrap().listed;
    let places = parts.iter().map(|part| (part.segment.number, part.part, part.segment.start));
    let half = Duration::from_millis(8500);
    assert_eq!(places.collect::<Vec<_>>(), [(11, 0, seconds(8)), (11, 1, half)]);
    let ended = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-GAP\n#EXTINF:2,\na\n#EXT-X-ENDLIST\n";
    let error = from_playlist(ended.as_bytes(), &url()).unwrap_err().to_string();
    assert_eq!(error, "a playlist that has ended, without a segment");
}

/// rfc8216bis §4.4.4.9 and §4.4.5.3.
#[test]
fn parts_and_hints_may_be_ranges_of_a_segment() {
    let parts = media(GAPS).parts.unwrap();
    let ranges: Vec<_> = parts.listed.iter().map(|part| part.segment.media.range).collect();
    assert_eq!(ranges, [Some((0, Some(499))), Some((500, Some(1199)))]);
    let hint = |attributes: &str| {
        let text = GAPS.replace(",BYTERANGE-START=1200", attributes);
        let hint = media(&text).parts.unwrap().hint.unwrap();
        assert_eq!((hint.part, hint.segment.start), (2, Duration::from_secs(9)));
        hint.segment.media.range
    };
    assert_eq!(hint(",BYTERANGE-START=1200"), Some((1200, None)));
    assert_eq!(hint(",BYTERANGE-START=1200,BYTERANGE-LENGTH=300"), Some((1200, Some(1499))));
    assert_eq!(hint(",BYTERANGE-LENGTH=300"), Some((0, Some(299))));
    assert_eq!((hint(""), hint(",BYTERANGE-START=0")), (None, None));
}

#[test]
fn broken_ranges_are_refused_with_what_to_write() {
    let not = "not a byte range; write LENGTH@START, such as 5000@100";
    let alone = "a byte range without a start, and before it none of the same resource; \
        write LENGTH@START, such as 5000@100";
    let hint = "EXT-X-PRELOAD-HINT";
    let cases = [
        ("\"500@0\"", "\"500@x\"", format!("line 16: EXT-X-PART: {not}: `500@x`")),
        ("\"700\"", "\"0\"", format!("line 17: EXT-X-PART: {not}: `0`")),
        ("\"500@0\"", "\"500\"", format!("line 16: {alone}")),
        (
            "START=1200",
            "START=-1",
            format!("line 18: {hint}: BYTERANGE-START must be a number of bytes, not `-1`"),
        ),
        (
            "START=1200",
            "LENGTH=0",
            format!("line 18: {hint}: BYTERANGE-LENGTH must be greater than 0"),
        ),
        ("#EXTINF:2,\n8", "#EXT-X-BYTERANGE:9\n#EXTINF:2,\n8", format!("line 8: {alone}")),
        (
            "#EXTINF:2,\n8",
            "#EXT-X-BYTERANGE:9@\n#EXTINF:2,\n8",
            format!("line 8: {not}: `#EXT-X-BYTERANGE:9@`"),
        ),
    ];
    for (from, to, want) in cases {
        assert!(GAPS.contains(from), "{from}");
        let error = from_playlist(GAPS.replacen(from, to, 1).as_bytes(), &url()).unwrap_err();
        assert_eq!(error.to_string(), want);
    }
}

const MULTIVARIANT: &str = "#EXTM3U
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"aud\",NAME=\"second, or not\",URI=\"b.m3u8\"
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"aud\",NAME=\"main\",DEFAULT=YES,URI=\"a.m3u8\"
#EXT-X-STREAM-INF:BANDWIDTH=3000000,CODECS=\"avc1.64001f,mp4a.40.2\",AUDIO=\"aud\"
hi.m3u8
#EXT-X-STREAM-INF:CODECS=\"avc1.64001f,mp4a.40.2\",BANDWIDTH=800000,AUDIO=\"aud\"
lo.m3u8
";

fn multivariant(text: &str) -> Presentation {
    match from_playlist(text.as_bytes(), &url()).unwrap() {
        Playlist::Multivariant(presentation) => presentation,
        Playlist::Media(_) => panic!("a multivariant playlist"),
    }
}

#[test]
fn a_multivariant_playlist() {
    let p = multivariant(MULTIVARIANT);
    let rungs: Vec<_> = p.tracks.iter().flat_map(|t| &t.rungs).collect();
    let playlist = |name: &str| Source::Playlist(url().join(name).unwrap());
    assert_eq!(rungs[0].rate, BitRate::from_kbps(800));
    assert_eq!(
        rungs.iter().map(|r| r.source.clone()).collect::<Vec<_>>(),
        [playlist("lo.m3u8"), playlist("hi.m3u8"), playlist("a.m3u8"),]
    );
}

#[test]
fn audio_in_the_segments_of_the_video_is_no_track() {
    let p = multivariant(&MULTIVARIANT.replace(",URI=\"a.m3u8\"", ""));
    assert_eq!(p.tracks.len(), 1);
}

#[test]
fn broken_playlists_are_refused_with_their_line() {
    let cases: &[(&str, &str, &str)] = &[
        ("#EXTM3U", "EXTM3U", "line 1: a playlist begins with #EXTM3U"),
        ("#EXTINF:2.002,\n", "", "line 7: a URI without EXTINF"),
        ("#EXTINF:1,", "#EXTINF:-1,", "line 12: not a duration: `#EXTINF:-1,`"),
        ("#EXTINF:1,", "#EXTINF:1e9,", "line 12: not a duration"),
        ("#EXTINF:1,", "#EXTINF:0,", "line 12: a segment is longer than 0"),
        ("#EXTINF:1,", "#EXTINF:99999,", "line 12: a segment is longer than 0 and up to 10 min"),
        ("#EXT-X-TARGETDURATION:2", "#EXT-X-TARGETDURATION:x", "line 3: not a duration"),
        ("#EXT-X-TARGETDURATION:2\n", "", "no EXT-X-TARGETDURATION"),
        ("SEQUENCE:41", "SEQUENCE:18446744073709551615", "line 4: not a sequence number"),
        ("2026-11-21T", "2026-11-99T", "line 9: not a date and time"),
        ("42.m4s", "file:///etc/passwd", "line 11: `file:///etc/passwd`: only http"),
        ("URI=\"init.mp4\"", "", "line 5: EXT-X-MAP needs a URI"),
        ("#EXT-X-VERSION:7", "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"", "line 2: encrypted"),
    ];
    for (from, to, want) in cases {
        assert!(MEDIA.contains(from), "{from}");
        let error = from_playlist(MEDIA.replacen(from, to, 1).as_bytes(), &url()).unwrap_err();
        assert!(error.to_string().contains(want), "{to}: {error}");
    }
    let cases: &[(&str, &str, &str)] = &[
        ("BANDWIDTH=3000000,", "", "line 4: EXT-X-STREAM-INF needs a BANDWIDTH"),
        ("BANDWIDTH=3000000", "BANDWIDTH=0", "line 4"),
        ("GROUP-ID=\"aud\"", "GROUP-ID=\"x\"", ""),
        ("\nlo.m3u8", "\nlo.m3u8\nlo.m3u8", "line 8: a URI without EXT-X-STREAM-INF"),
        ("hi.m3u8", "javascript:x", "line 5: `javascript:x`"),
    ];
    for (from, to, want) in cases {
        assert!(MULTIVARIANT.contains(from), "{from}");
        match from_playlist(MULTIVARIANT.replacen(from, to, 1).as_bytes(), &url()) {
            Err(error) => assert!(error.to_string().contains(want), "{to}: {error}"),
            Ok(_) => assert!(want.is_empty(), "{to} was accepted"),
        }
    }
    let none = MULTIVARIANT.replace("GROUP-ID=\"aud\"", "GROUP-ID=\"x\"");
    let error = from_playlist(none.as_bytes(), &url()).unwrap_err().to_string();
    assert_eq!(error, "no EXT-X-MEDIA of audio group `aud`");
}

proptest! {
    #[test]
    fn any_bytes_are_mapped_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = from_playlist(&bytes, &url());
        let _ = from_playlist(&[b"#EXTM3U\n", &bytes[..]].concat(), &url());
    }

    #[test]
    fn damaged_playlists_are_mapped_or_refused(
        cut in 0usize..MEDIA.len(), length in 0usize..30, insert in "[-0-9A-Z:,@=\"#\n.]{0,24}",
        start_ns in any::<i64>(),
    ) {
        for text in [MEDIA, GAPS, MULTIVARIANT] {
            let mut bytes = text.as_bytes().to_vec();
            let cut = cut.min(bytes.len());
            let end = (cut + length).min(bytes.len());
            bytes.splice(cut..end, insert.bytes());
            let Ok(Playlist::Media(list)) = from_playlist(&bytes, &url()) else { continue };
            let segments = list.segments_from(start_ns);
            for segment in [segments.first(), segments.last()].into_iter().flatten() {
                prop_assert!(!segment.duration.is_zero());
                segments.following(segment.end());
            }
        }
    }
}

#[test]
fn urls_that_repeat_a_long_base_are_bounded() {
    let base = Url::parse(&format!("http://origin/{}/v.m3u8", "x".repeat(4000))).unwrap();
    let text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:1\n{}", "#EXTINF:1,\na\n".repeat(20_000));
    let error = from_playlist(text.as_bytes(), &base).unwrap_err().to_string();
    assert!(error.ends_with("URLs of more than 67108864 bytes"), "{error}");
}
