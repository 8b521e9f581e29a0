//! What the manifest says, so that a URL which a player fetched leads to its rung and media time.

use std::time::Duration as StdDuration;

use bytes::Bytes;
use suiro_http::player::single::{self, Asked};
use suiro_http::presentation::{
    self, MANIFEST_BYTES_MAX, Parts, Playlist, Presentation, Segments, Source, TrackKind,
};
use suiro_http::{Clock, Url};
use suiro_scenario::Protocol;
use suiro_units::BitRate;

use crate::{PlayError, Served};

/// How long one manifest may take to come.
const FETCH_WITHIN: StdDuration = StdDuration::from_secs(10);

/// The rungs of a stream, and how their segments are named.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Ladder {
    rungs: Vec<Rung>,
    /// Live: the wall clock at media time zero, in nanoseconds since 1970.
    pub zero_unix_ns: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
struct Rung {
    kind: TrackKind,
    rate: BitRate,
    init: Option<String>,
    names: Option<Names>,
    /// Of low-latency HLS.
    parts: Option<PartNames>,
}

/// A playlist of a rung.
struct Listed {
    url: Url,
    segments: Segments,
    parts: Option<Parts>,
    /// The wall clock at media time zero.
    zero_unix_ns: Option<u64>,
}

/// URLs of the parts of segments: the segment's number, and behind it that of the part.
#[derive(Debug, Clone, PartialEq)]
struct PartNames {
    prefix: String,
    between: String,
    suffix: String,
    /// Duration of a part; the last one of a segment may be shorter.
    seconds: f64,
}

/// URLs that differ in one number, which media time follows.
#[derive(Debug, Clone, PartialEq)]
struct Names {
    prefix: String,
    suffix: String,
    /// The number in the URL of the first segment that was listed, its start and its number.
    first: (u64, f64, u64),
    /// Media seconds for each one of the number.
    seconds_each: f64,
    /// Mean duration of a segment.
    seconds: f64,
}

/// What a URL is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    pub kind: TrackKind,
    pub rate: BitRate,
    /// `None` for an initialisation segment.
    pub segment: Option<PlacedSegment>,
}

/// A segment in media time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PlacedSegment {
    pub number: u64,
    pub start_s: f64,
    pub duration_s: f64,
}

impl PlacedSegment {
    pub fn end_s(&self) -> f64 {
        self.start_s + self.duration_s
    }
}

impl Ladder {
    /// Fetches the manifest, and of HLS the playlists of all rungs.
    pub async fn fetch(
        (url, served): (&Url, &Served),
        protocol: Protocol,
        clock: Clock,
    ) -> Result<Self, PlayError> {
        let reader = Reader { home: url, served, clock };
        let body = reader.get(url).await?;
        let failed = |error: &dyn std::fmt::Display| PlayError::Manifest {
            url: url.to_string(),
            reason: error.to_string(),
        };
        let (presentation, media) = match protocol {
            Protocol::Dash => {
                (presentation::from_mpd(&body, url).map_err(|e| failed(&e))?, Vec::new())
            }
            Protocol::Hls => {
                match presentation::from_playlist(&body, url).map_err(|e| failed(&e))? {
                    Playlist::Media(_) => {
                        return Err(failed(&"a media playlist, not a multivariant one"));
                    }
                    Playlist::Multivariant(presentation) => {
                        let media = reader.playlists(&presentation).await?;
                        (presentation, media)
                    }
                }
            }
        };
        Ok(Self::new(&presentation, &media))
    }

    /// The ladder of a presentation; `media` are the playlists of its rungs, where it has such.
    fn new(presentation: &Presentation, media: &[Listed]) -> Self {
        let mut zero_unix_ns = presentation.live.as_ref().and_then(|live| live.zero_unix_ns);
        let mut rungs = Vec::new();
        for track in &presentation.tracks {
            for rung in &track.rungs {
                let listed = match &rung.source {
                    Source::Segments(_) => None,
                    Source::Playlist(url) => media.iter().find(|listed| listed.url == *url),
                };
                zero_unix_ns = zero_unix_ns.or(listed.and_then(|listed| listed.zero_unix_ns));
                let segments = match &rung.source {
                    Source::Segments(segments) => Some(segments),
                    Source::Playlist(_) => listed.map(|listed| &listed.segments),
                };
                let names = segments.and_then(Names::learn);
                let parts = listed.and_then(|listed| listed.parts.as_ref());
                let parts = names.as_ref().zip(parts);
                rungs.push(Rung {
                    kind: track.kind,
                    rate: rung.rate,
                    init: segments
                        .and_then(|s| s.first()?.init)
                        .map(|init| init.url.target().to_owned()),
                    parts: parts.and_then(|(names, parts)| PartNames::learn(names, parts)),
                    names,
                });
            }
        }
        Self { rungs, zero_unix_ns }
    }

    /// What the path and query of a URL names; `None` for a manifest, and what is not known.
    pub fn place(&self, target: &str) -> Option<Place> {
        self.rungs.iter().find_map(|rung| {
            let (kind, rate) = (rung.kind, rung.rate);
            if rung.init.as_deref() == Some(target) {
                return Some(Place { kind, rate, segment: None });
            }
            let names = rung.names.as_ref()?;
            let part = || rung.parts.as_ref()?.place(names, target);
            let segment = names.place(target).or_else(part)?;
            Some(Place { kind, rate, segment: Some(segment) })
        })
    }
}

/// Reads manifests of the server that the user named.
struct Reader<'a> {
    home: &'a Url,
    served: &'a Served,
    clock: Clock,
}

impl Reader<'_> {
    /// The playlists that the one at `home` names.
    async fn playlists(&self, presentation: &Presentation) -> Result<Vec<Listed>, PlayError> {
        let rungs = presentation.tracks.iter().flat_map(|track| &track.rungs);
        let mut found = Vec::new();
        // Media time zero: where the first segment of the first playlist begins.
        let mut zero = None;
        for rung in rungs {
            let Source::Playlist(url) = &rung.source else { continue };
            let body = self.get(url).await?;
            let Ok(Playlist::Media(media)) = presentation::from_playlist(&body, url) else {
                continue;
            };
            zero = zero.or(media.date_unix_ns);
            let shift = media.date_unix_ns.zip(zero).map_or(0, |(date, zero)| {
                i64::try_from(date).unwrap_or(0) - i64::try_from(zero).unwrap_or(0)
            });
            let segments = media.segments_from(shift);
            let (url, parts) = (url.clone(), media.parts);
            found.push(Listed { url, segments, parts, zero_unix_ns: zero });
        }
        Ok(found)
    }

    /// One GET, the body in memory.
    async fn get(&self, url: &Url) -> Result<Bytes, PlayError> {
        let Served { http, certificate } = self.served;
        let asked = Asked { home: self.home, url, http: *http, certificate };
        let body = single::get(asked, self.clock, MANIFEST_BYTES_MAX, FETCH_WITHIN).await;
        body.map_err(|reason| PlayError::Manifest { url: url.to_string(), reason })
    }
}

impl Names {
    /// From the first and the last segment that are listed; `None` where two are not enough.
    fn learn(segments: &Segments) -> Option<Self> {
        let (first, last) = (segments.first()?, segments.last()?);
        let (a, b) = (first.media.url.target(), last.media.url.target());
        let same = |x: &str, y: &str| x.bytes().zip(y.bytes()).take_while(|(x, y)| x == y).count();
        let prefix = a.get(..same(a, b))?.trim_end_matches(|c: char| c.is_ascii_digit());
        let rest = (a.get(prefix.len()..)?, b.get(prefix.len()..)?);
        let ((x, suffix), (y, other)) = (number(rest.0)?, number(rest.1)?);
        let steps = last.number.checked_sub(first.number).filter(|steps| *steps > 0)?;
        if suffix != other || y <= x {
            return None;
        }
        let start_s = first.start.as_secs_f64();
        let span_s = last.start.as_secs_f64() - start_s;
        Some(Self {
            prefix: prefix.to_owned(),
            suffix: suffix.to_owned(),
            first: (x, start_s, first.number),
            seconds_each: span_s / (y - x) as f64,
            seconds: span_s / steps as f64,
        })
    }

    fn place(&self, target: &str) -> Option<PlacedSegment> {
        let name = target.strip_prefix(&self.prefix)?.strip_suffix(&self.suffix)?;
        self.numbered(name.parse().ok()?)
    }

    /// The segment with this number in its URL.
    fn numbered(&self, name: u64) -> Option<PlacedSegment> {
        let (x, start_s, number) = self.first;
        let ahead_s = (name as f64 - x as f64) * self.seconds_each;
        let number = number as f64 + (ahead_s / self.seconds).round();
        Some(PlacedSegment {
            // Casts saturate; a number below zero is none of this stream.
            number: (number >= 0.0).then_some(number as u64)?,
            start_s: start_s + ahead_s,
            duration_s: self.seconds,
        })
    }
}

/// Digits at the start of a text as a number, and what follows them.
fn number(text: &str) -> Option<(u64, &str)> {
    let (digits, rest) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    Some((digits.parse().ok()?, rest))
}

impl PartNames {
    /// From the last part that is listed; `None` if its URL does not have the numbers of its segment and its own.
    fn learn(names: &Names, parts: &Parts) -> Option<Self> {
        let last = parts.listed.last()?;
        // The target is rounded up, by which the tenth part of a segment would begin milliseconds too late.
        let longest = parts.listed.iter().map(|part| part.segment.duration).max()?;
        let behind = last.segment.media.url.target().strip_prefix(&names.prefix)?;
        let (name, rest) = number(behind)?;
        let between = rest.split(|c: char| c.is_ascii_digit()).next()?;
        let (part, suffix) = number(rest.strip_prefix(between)?)?;
        let is_named = names.numbered(name)?.number == last.segment.number && part == last.part;
        is_named.then(|| Self {
            prefix: names.prefix.clone(),
            between: between.to_owned(),
            suffix: suffix.to_owned(),
            seconds: longest.as_secs_f64(),
        })
    }

    fn place(&self, names: &Names, target: &str) -> Option<PlacedSegment> {
        let (name, rest) = number(target.strip_prefix(&self.prefix)?)?;
        let (part, rest) = number(rest.strip_prefix(&self.between)?)?;
        let segment = names.numbered(name).filter(|_| rest == self.suffix)?;
        let ahead_s = part as f64 * self.seconds;
        let left_s = segment.duration_s - ahead_s;
        let duration_s = if left_s > 0.0 { self.seconds.min(left_s) } else { self.seconds };
        Some(PlacedSegment { start_s: segment.start_s + ahead_s, duration_s, ..segment })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    const MPD: &str = r#"<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-live:2011"
 type="dynamic" availabilityStartTime="2026-11-21T05:30:57.874Z" minimumUpdatePeriod="PT2S" minBufferTime="PT2S">
 <Period id="0" start="PT0S">
  <AdaptationSet contentType="video" mimeType="video/mp4">
   <SegmentTemplate timescale="24000" media="$RepresentationID$/t$Time$.m4s" initialization="$RepresentationID$/init.mp4">
    <SegmentTimeline><S t="480000" d="48000" r="14"/></SegmentTimeline>
   </SegmentTemplate>
   <Representation id="v0" bandwidth="348824" codecs="avc3.64000d"/>
   <Representation id="v1" bandwidth="816128" codecs="avc3.64001e"/>
  </AdaptationSet>
 </Period>
</MPD>"#;

    #[tokio::test]
    async fn a_playlist_of_a_stranger_does_not_lead_to_this_machine() {
        // Of the addresses that RFC 5737 reserves for documentation.
        let home = Url::parse("http://192.0.2.1/main.m3u8").unwrap();
        let near = Url::parse("http://127.0.0.1:9/rung.m3u8").unwrap();
        let (served, clock) = (Served::default(), Clock::from_now());
        let from = |home| Reader { home, served: &served, clock };
        let error = from(&home).get(&near).await.unwrap_err().to_string();
        assert!(error.contains("must not refer to a local address"), "{error}");
        let error = from(&near).get(&near).await.unwrap_err().to_string();
        assert!(!error.contains("must not refer"), "the user may: {error}");
    }

    /// Two rungs, `v0` and `v1`, of segments of two seconds.
    pub fn ladder() -> Ladder {
        let url = Url::parse("http://server/manifest.mpd").unwrap();
        Ladder::new(&presentation::from_mpd(MPD.as_bytes(), &url).unwrap(), &[])
    }

    proptest! {
        /// A player reports what it likes: no path makes the ladder panic, and none leads before the stream's first segment.
        #[test]
        fn no_reported_path_is_misread(text in ".*", digits in "[0-9]{0,40}") {
            let ladder = ladder();
            prop_assert_eq!(ladder.place(&text), None);
            if let Some(place) = ladder.place(&format!("/v1/t{digits}.m4s")) {
                let segment = place.segment.expect("it has a time");
                let ticks: f64 = digits.parse().unwrap();
                prop_assert!((segment.start_s - ticks / 24_000.0).abs() <= 1e-9 * (1.0 + ticks));
                prop_assert!((segment.duration_s - 2.0).abs() < 1e-9);
            }
        }

        /// Segments that are listed lead back to themselves, however they are numbered.
        #[test]
        fn listed_segments_lead_to_themselves(first in 0u64..1 << 40, step in 1u64..100_000, count in 2u64..50) {
            let list = (0..count).map(|n| format!("#EXTINF:2,\nseg-{}.m4s\n", first + n * step));
            let text = format!(
                "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:7\n{}#EXT-X-ENDLIST\n",
                list.collect::<String>()
            );
            let url = Url::parse("http://server/v0/rung.m3u8").unwrap();
            let Ok(Playlist::Media(media)) = presentation::from_playlist(text.as_bytes(), &url) else {
                return Err(TestCaseError::fail("it is a media playlist"));
            };
            let names = Names::learn(&media.segments_from(0)).expect("two are enough");
            for n in 0..count {
                let placed = names.place(&format!("/v0/seg-{}.m4s", first + n * step)).unwrap();
                prop_assert_eq!(placed.number, 7 + n);
                prop_assert!((placed.start_s - 2.0 * n as f64).abs() < 1e-3, "{:?}", placed);
            }
        }
    }

    #[test]
    fn parts_of_low_latency_hls_lead_to_their_segment() {
        let text = "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:2\n#EXT-X-PART-INF:PART-TARGET=0.5\n\
                    #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5\n#EXT-X-MEDIA-SEQUENCE:7\n\
                    #EXTINF:2,\n7.m4s\n#EXTINF:2,\n8.m4s\n#EXT-X-PART:DURATION=0.5,URI=\"9.0.m4s\"\n\
                    #EXT-X-PART:DURATION=0.5,URI=\"9.1.m4s\"\n";
        let url = Url::parse("http://server/v0/rung.m3u8").unwrap();
        let Ok(Playlist::Media(media)) = presentation::from_playlist(text.as_bytes(), &url) else {
            panic!("it is a media playlist");
        };
        let names = Names::learn(&media.segments_from(0)).unwrap();
        let parts = PartNames::learn(&names, media.parts.as_ref().unwrap()).unwrap();
        let placed = parts.place(&names, "/v0/20.3.m4s").unwrap();
        assert_eq!((placed.number, placed.duration_s), (20, 0.5));
        assert!((placed.start_s - 27.5).abs() < 1e-9, "{placed:?}");
        for other in ["/v0/20.m4s", "/v0/20.3.mp4", "/v0/20.3.4.m4s", "/v1/20.3.m4s", "/v0/.3.m4s"]
        {
            assert_eq!(parts.place(&names, other), None, "{other}");
        }
    }

    #[test]
    fn parts_are_as_long_as_they_are_listed_and_the_last_of_a_segment_is_its_rest() {
        let text = "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:2\n#EXT-X-PART-INF:PART-TARGET=0.42\n\
                    #EXT-X-MEDIA-SEQUENCE:7\n#EXTINF:2,\n7.m4s\n#EXTINF:2,\n8.m4s\n\
                    #EXT-X-PART:DURATION=0.416666667,URI=\"9.0.m4s\"\n\
                    #EXT-X-PART:DURATION=0.416666667,URI=\"9.1.m4s\"\n";
        let url = Url::parse("http://server/v0/rung.m3u8").unwrap();
        let Ok(Playlist::Media(media)) = presentation::from_playlist(text.as_bytes(), &url) else {
            panic!("it is a media playlist");
        };
        let names = Names::learn(&media.segments_from(0)).unwrap();
        let parts = PartNames::learn(&names, media.parts.as_ref().unwrap()).unwrap();
        let place = |target| {
            let placed = parts.place(&names, target).unwrap();
            [placed.start_s, placed.duration_s].map(|seconds| (seconds * 1e3).round())
        };
        assert_eq!(place("/v0/9.1.m4s"), [4417.0, 417.0]);
        assert_eq!(place("/v0/9.4.m4s"), [5667.0, 333.0]);
    }

    #[test]
    fn urls_lead_to_rungs_and_media_time_beyond_what_was_listed() {
        let ladder = ladder();
        assert_eq!(ladder.zero_unix_ns, Some(1_795_239_057_874_000_000));
        let place = ladder.place("/v1/t4800000.m4s").unwrap();
        assert_eq!(place.rate, BitRate::from_bps(816_128));
        let segment = place.segment.unwrap();
        assert!((segment.start_s - 200.0).abs() < 1e-6 && (segment.end_s() - 202.0).abs() < 1e-6);
        let first = ladder.place("/v1/t480000.m4s").unwrap().segment.unwrap();
        assert_eq!(segment.number - first.number, 90);
        assert_eq!(ladder.place("/v0/init.mp4").unwrap().segment, None);
        for unknown in ["/manifest.mpd", "/v2/t480000.m4s", "/v0/t.m4s", "/v0/t-1.m4s", ""] {
            assert_eq!(ladder.place(unknown), None, "{unknown}");
        }
    }
}
