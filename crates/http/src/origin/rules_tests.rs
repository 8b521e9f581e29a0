//! Rules of DASH-IF and of Apple about live manifests at low latency, each checked on what an origin really answers:
//! requests go through the service, so statuses and headers are checked too.
//!
//! LL is DASH-IF's "Low-latency Modes for DASH" (2020), whose clauses are 9.X.4.1 to 9.X.4.5. AS is Apple's "HLS Authoring
//! Specification for Apple Devices" (the numbers are those of 2025). BIS is draft-pantos-hls-rfc8216bis. Rules about what our
//! streams do not have are left out: subtitles, I-frame playlists, encryption, advertisements.
//!
//! Known not to be kept: AS 14.2c and 8.12, lengths are the scenario's; LL 9.X.4.5, rungs can be changed at segments only, also
//! where these are longer than the target latency. AS 1.10 advises `avc1`, of which parameter sets are in the initialisation
//! segment alone; fragmented MP4 here is `avc3`, which has them in key frames as well.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{Request, Response, StatusCode};
use roxmltree::{Document, Node};

use super::parts_tests::{Unreadable, ZERO, catalogue};
use super::serve::Service;
use crate::Clock;
use crate::coding::gunzip;
use crate::iso8601::{decimal_ns, parse_date_time, parse_duration};

/// When the manifests are asked for: 41.1 s after the stream began.
const NOW: u64 = ZERO + 41_100_000_000;
const SECOND: u64 = 1_000_000_000;

/// What the origin answers, with time that does not pass.
async fn ask(path: &str) -> Response<Bytes> {
    ask_for(path, "identity").await
}

/// The same, to a client that takes these content codings.
async fn ask_for(path: &str, codings: &str) -> Response<Bytes> {
    let reading = Clock::new(0, 0).now().as_nanos();
    let clock = Clock::new(reading, NOW);
    let service = Service::new(catalogue(500), Arc::new(Unreadable), clock, 0, None, None);
    let request = Request::get(path).header("host", "origin").header("accept-encoding", codings);
    let request = request.body(Ok(Bytes::new())).expect("a request");
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let (head, body) = Arc::new(service).respond(peer, request).await.into_parts();
    let body = body.collect().await.expect("a whole body");
    Response::from_parts(head, body.to_bytes())
}

async fn text(path: &str) -> String {
    let response = ask(path).await;
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    String::from_utf8(response.into_body().to_vec()).expect("text")
}

fn all<'a>(node: Node<'a, 'a>, name: &'a str) -> Vec<Node<'a, 'a>> {
    node.descendants().filter(|node| node.tag_name().name() == name).collect()
}

fn number(node: &Node<'_, '_>, name: &str) -> u64 {
    let value = node.attribute(name).unwrap_or_else(|| panic!("{node:?} has no {name}"));
    value.parse().unwrap_or_else(|_| panic!("{name}={value}"))
}

/// The lines of a tag, without it.
fn tags<'a>(playlist: &'a str, name: &str) -> Vec<&'a str> {
    let begin = format!("#{name}:");
    playlist.lines().filter_map(|line| line.strip_prefix(begin.as_str())).collect()
}

/// The value of an attribute of a tag's list.
fn value<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    let begin = format!("{name}=");
    let mut quoted = false;
    let split = |c: char| {
        quoted ^= c == '"';
        c == ',' && !quoted
    };
    let found = list.split(split).find_map(|pair| pair.strip_prefix(begin.as_str()))?;
    Some(found.trim_matches('"'))
}

fn ns(list: &str, name: &str) -> u64 {
    let text = value(list, name).unwrap_or_else(|| panic!("no {name} in {list}"));
    decimal_ns(text).unwrap_or_else(|| panic!("{name}={text}"))
}

const PLAYLISTS: [&str; 3] = ["/v0.m3u8", "/v1.m3u8", "/a.m3u8"];

/// AS 10.1: playlists come in gzip; here MPDs too. RFC 9110 §8.8.3.3, §12.5.5: caches can tell the codings apart.
#[tokio::test(start_paused = true)]
async fn playlists_come_in_gzip_to_those_who_take_it() {
    for path in ["/master.m3u8", "/v0.m3u8", "/v0.m3u8?_HLS_skip=YES", "/a.m3u8", "/manifest.mpd"] {
        let [plain, coded] =
            ["identity", "gzip, deflate, br"].map(|codings| ask_for(path, codings));
        let (plain, coded) = (plain.await, coded.await);
        assert_eq!(coded.headers()["content-encoding"], "gzip", "{path}");
        assert!(!plain.headers().contains_key("content-encoding"), "{path}");
        assert_ne!(coded.headers()["etag"], plain.headers()["etag"], "{path}");
        for response in [&plain, &coded] {
            assert_eq!(response.headers()["vary"], "accept-encoding", "{path}");
        }
        let content = gunzip(coded.body(), 1 << 20).expect("gzip");
        assert_eq!(content, plain.body(), "{path}");
        assert!(coded.body().len() * 3 < content.len() * 2, "{path}");
    }
    for path in ["/v0/init.mp4", "/time"] {
        let response = ask_for(path, "gzip").await;
        assert!(!response.headers().contains_key("content-encoding"), "{path}");
        assert!(!response.headers().contains_key("vary"), "{path}");
    }
}

/// LL 9.X.4.1, and ISO/IEC 23009-1 §5.3.1.2 about what a dynamic MPD has.
#[tokio::test(start_paused = true)]
async fn the_mpd_is_one_of_a_low_latency_service() {
    let text = text("/manifest.mpd").await;
    let document = Document::parse(&text).expect("XML");
    let mpd = document.root_element();
    let profiles: Vec<_> = mpd.attribute("profiles").expect("profiles").split(',').collect();
    assert!(profiles.contains(&"http://www.dashif.org/guidelines/low-latency-live-v5"));
    assert_eq!(mpd.attribute("type"), Some("dynamic"));
    let published = parse_date_time(mpd.attribute("publishTime").expect("a time")).expect("one");
    let began = parse_date_time(mpd.attribute("availabilityStartTime").expect("a time"));
    assert!(published <= NOW && began.expect("one") <= published);
    for name in ["minimumUpdatePeriod", "minBufferTime", "maxSegmentDuration"] {
        assert!(mpd.attribute(name).and_then(parse_duration).is_some(), "{name}");
    }
}

/// LL 9.X.4.2: a latency to aim at, speeds, and a clock.
#[tokio::test(start_paused = true)]
async fn the_mpd_has_a_target_latency_and_a_clock_that_answers() {
    let text = text("/manifest.mpd").await;
    let document = Document::parse(&text).expect("XML");
    let mpd = document.root_element();
    let services = all(mpd, "ServiceDescription");
    let latency = services.iter().flat_map(|service| all(*service, "Latency")).next();
    assert!(number(&latency.expect("a latency"), "target") > 0);
    let speeds = all(mpd, "PlaybackRate");
    let speed = |name: &str| speeds[0].attribute(name).and_then(|t| t.parse::<f64>().ok());
    assert!(speed("min").expect("one") < 1.0 && speed("max").expect("one") > 1.0);
    let clocks: Vec<_> =
        mpd.children().filter(|node| node.tag_name().name() == "UTCTiming").collect();
    let schemes =
        ["http-xsdate", "http-iso", "http-ntp"].map(|s| format!("urn:mpeg:dash:utc:{s}:2014"));
    let known = |node: &&Node<'_, '_>| {
        schemes.iter().any(|scheme| node.attribute("schemeIdUri") == Some(scheme))
    };
    let clock = clocks.iter().find(known).expect("a clock");
    let path = clock.attribute("value").and_then(|url| url.strip_prefix("http://origin"));
    let shown = parse_date_time(&self::text(path.expect("on this origin")).await);
    assert!(NOW - shown.expect("a time") < 1_000_000, "{shown:?}");
}

/// LL 9.X.4.3: each adaptation set says when it was captured, by the clock of the MPD.
#[tokio::test(start_paused = true)]
async fn each_adaptation_set_has_a_producers_time() {
    let text = text("/manifest.mpd").await;
    let document = Document::parse(&text).expect("XML");
    let mpd = document.root_element();
    let began = parse_date_time(mpd.attribute("availabilityStartTime").expect("one")).expect("one");
    let clock = |node: Node<'_, '_>| {
        let clock = node.children().find(|child| child.tag_name().name() == "UTCTiming");
        let clock = clock.expect("a clock");
        ["schemeIdUri", "value"].map(|name| clock.attribute(name).map(str::to_owned))
    };
    let mut ids = BTreeSet::new();
    for set in all(mpd, "AdaptationSet") {
        let times = all(set, "ProducerReferenceTime");
        assert!(!times.is_empty(), "{set:?}");
        for time in times {
            assert!(ids.insert(number(&time, "id")), "the id is another's");
            assert!(["encoder", "captured"].contains(&time.attribute("type").expect("a type")));
            assert_eq!(clock(time), clock(mpd));
            let shown = parse_date_time(time.attribute("wallClockTime").expect("one"));
            let scale = number(&all(set, "SegmentTemplate")[0], "timescale");
            let since = shown.expect("a time") - began;
            let ticks = u128::from(since) * u128::from(scale) / u128::from(SECOND);
            assert_eq!(ticks, u128::from(number(&time, "presentationTime")));
        }
    }
}

/// LL 9.X.4.5 (and ISO/IEC 23009-1 §5.3.9.2.2): segments in chunks can be asked for as soon as their first chunk is there, and
/// begin within half a duration of where they are counted.
#[tokio::test(start_paused = true)]
async fn chunked_segments_are_announced_as_such() {
    let catalogue = catalogue(500);
    let text = text("/manifest.mpd").await;
    let document = Document::parse(&text).expect("XML");
    let templates = all(document.root_element(), "SegmentTemplate");
    assert_eq!(templates.len(), 2);
    for (template, track) in templates.iter().zip(&catalogue.tracks) {
        assert_eq!(template.attribute("availabilityTimeComplete"), Some("false"));
        let early = decimal_ns(template.attribute("availabilityTimeOffset").expect("one"));
        let (ticks, scale) = (number(template, "duration"), number(template, "timescale"));
        let length = ticks * SECOND / scale;
        let chunks = track.rungs[0].chunks.as_ref().expect("chunks");
        assert_eq!(length - early.expect("seconds"), chunks.longest().as_nanos());
        let first = number(template, "startNumber");
        for n in first..first + 200 {
            let begins = track.rungs[0].timeline.place(n).start;
            assert!(begins.abs_diff((n - first) * ticks) * 2 <= ticks, "segment {n}");
        }
    }
}

/// AS 9.1, 9.2, 9.5, 9.9, 9.11, 9.13, 9.14, 9.15, 8.9 and 8.10, and BIS §4.4.6.1.
#[tokio::test(start_paused = true)]
async fn the_multivariant_playlist_describes_its_variants() {
    let catalogue = catalogue(500);
    let playlist = text("/master.m3u8").await;
    let variants = tags(&playlist, "EXT-X-STREAM-INF");
    assert!(variants.len() > 1, "9.9: several bit rates");
    assert!(playlist.contains("#EXT-X-INDEPENDENT-SEGMENTS"), "9.11");
    let sound = catalogue.tracks[1].rungs[0].rate.as_bps();
    for (variant, rung) in variants.iter().zip(&catalogue.tracks[0].rungs) {
        let codecs = value(variant, "CODECS").expect("9.1: codecs");
        assert_eq!(codecs.split(',').count(), 2, "of video and of sound");
        assert!(value(variant, "RESOLUTION").is_some_and(|size| size.contains('x')), "9.2");
        let peak = rung.rate.as_bps() + sound;
        assert_eq!(value(variant, "BANDWIDTH"), Some(peak.to_string().as_str()), "9.13");
        let mean = value(variant, "AVERAGE-BANDWIDTH").and_then(|bps| bps.parse::<u64>().ok());
        assert!(mean.is_some_and(|mean| mean > 0 && mean <= peak), "9.14");
        assert!(value(variant, "FRAME-RATE").is_some(), "9.15");
    }
    let renditions = tags(&playlist, "EXT-X-MEDIA");
    assert_eq!(renditions.len(), 1, "8.9, 9.5: sound is declared, and apart");
    assert!(renditions.iter().all(|list| value(list, "LANGUAGE").is_some()), "8.10");
    assert!(renditions.iter().all(|list| value(list, "CHANNELS") == Some("2")), "BIS §4.4.6.1");
}

/// AS 8.1 to 8.5, 8.11 and 8.20: what media playlists say about time.
#[tokio::test(start_paused = true)]
async fn media_playlists_tell_the_time_of_their_segments() {
    let catalogue = catalogue(500);
    let (mut targets, mut lengths) = (BTreeSet::new(), Vec::new());
    for (path, track) in PLAYLISTS.into_iter().zip([0, 0, 1]) {
        let timeline = &catalogue.tracks[track].rungs[0].timeline;
        let playlist = text(path).await;
        targets.insert(tags(&playlist, "EXT-X-TARGETDURATION").concat());
        assert_eq!(tags(&playlist, "EXT-X-MAP").len(), 1, "8.20");
        let first: u64 = tags(&playlist, "EXT-X-MEDIA-SEQUENCE")[0].parse().expect("a number");
        let listed = tags(&playlist, "EXTINF");
        let listed: Vec<u64> =
            listed.iter().filter_map(|t| decimal_ns(t.trim_end_matches(','))).collect();
        assert!(listed.len() >= 6, "8.11: {}", listed.len());
        let dates: Vec<u64> = tags(&playlist, "EXT-X-PROGRAM-DATE-TIME")
            .into_iter()
            .map(|date| parse_date_time(date).expect("a date"))
            .collect();
        assert!(dates.len() >= listed.len(), "8.4");
        let begins = |n: u64| timeline.time(timeline.place(n).start).as_nanos();
        let mut sum = 0;
        for ((n, length), date) in (first..).zip(&listed).zip(&dates) {
            assert!((ZERO + begins(n)).abs_diff(*date) < 1_000_000, "8.5: segment {n}");
            sum += length;
            let off = sum.abs_diff(begins(n + 1) - begins(first));
            assert!(off < SECOND / 24, "8.1: {off} ns at segment {n}");
        }
        lengths.push(sum);
    }
    assert_eq!(targets.len(), 1, "8.2: {targets:?}");
    let (least, most) = (lengths.iter().min(), lengths.iter().max());
    assert!(most.zip(least).is_some_and(|(most, least)| most - least < 2 * SECOND), "8.3");
}

/// AS 14.1 with appendix B of BIS, 14.3 and 14.4: what a server at low latency offers.
#[tokio::test(start_paused = true)]
async fn media_playlists_offer_low_latency() {
    for path in PLAYLISTS {
        let playlist = text(path).await;
        let control = tags(&playlist, "EXT-X-SERVER-CONTROL")[0];
        assert_eq!(value(control, "CAN-BLOCK-RELOAD"), Some("YES"), "14.1");
        let target = ns(tags(&playlist, "EXT-X-PART-INF")[0], "PART-TARGET");
        assert!(ns(control, "PART-HOLD-BACK") >= 3 * target, "14.3");
        assert!(ns(control, "CAN-SKIP-UNTIL") > 0, "14.4");
        assert_eq!(tags(&playlist, "EXT-X-PRELOAD-HINT").len(), 1, "14.1");
        let others: BTreeSet<_> = tags(&playlist, "EXT-X-RENDITION-REPORT")
            .into_iter()
            .filter_map(|report| value(report, "URI").map(|uri| format!("/{uri}")))
            .collect();
        let expected = PLAYLISTS.into_iter().filter(|other| *other != path).map(str::to_owned);
        assert_eq!(others, expected.collect(), "14.1: a report of each other rung");
        assert!(!tags(&playlist, "EXT-X-PART").is_empty(), "14.1");
    }
}

/// AS 10.4: media types; and BIS §6.2.5.2: bad requests are refused at once, with a reason.
#[tokio::test(start_paused = true)]
async fn answers_have_their_type_or_a_reason() {
    for (path, kind) in [
        ("/master.m3u8", "application/vnd.apple.mpegurl"),
        ("/v0.m3u8", "application/vnd.apple.mpegurl"),
        ("/manifest.mpd", "application/dash+xml"),
    ] {
        assert_eq!(ask(path).await.headers()["content-type"], kind, "{path}");
    }
    for (query, reason) in [
        ("_HLS_part=1", "_HLS_part without _HLS_msn"),
        ("_HLS_msn=99", "_HLS_msn is too far ahead"),
        ("_HLS_msn=20&_HLS_part=99", "_HLS_part is too far ahead"),
        ("_HLS_msn=x", "_HLS_msn: expected a sequence number"),
    ] {
        let response = ask(&format!("/v0.m3u8?{query}")).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(response.body(), &format!("{reason}\n"), "{query}");
    }
}
