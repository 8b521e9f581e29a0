//! The `origin`: an HTTP server of media.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_media::spec::{Codec, Format};
use suiro_rate::QuicCongestion;
use suiro_strict::{Bounds, bounds, bounds_of};
use suiro_units::{BitRate, Duration};

use super::{HttpVersion, Kind, Listens, Medium, PORT, shift};
use crate::check::Check;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Bounds of a chunk: from one frame, which is what anything shorter means, to half a second.
pub const CHUNK: Bounds<Duration> =
    Bounds::new(Duration::from_millis(1), Duration::from_millis(500));
/// Bounds of a part of HLS.
pub const PART: Bounds<Duration> = Bounds::new(Duration::from_millis(10), Duration::from_secs(5));

bounds! {
    Origin {
        port: PORT,
        window: Bounds::above(Duration::ZERO, DAY),
        length: Bounds::new(Duration::from_secs(1), DAY),
        chunk: CHUNK,
        part: PART,
    }
}

/// Serves one media package over HTTP, as DASH and as HLS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<Origin>)]
pub struct Origin {
    /// The media it serves: a name below `[media]`.
    pub media: String,
    /// Whether segments appear as time passes, or are all available from the start.
    pub mode: Mode,
    /// TCP congestion control of its connections, as the kernel names it (`reno`, `cubic`, `bbr`,
    /// …); nothing with `http = "3"`. Default: the kernel's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<String>,
    /// The version of HTTP that it serves and its players use. With `2` and `3` it makes a certificate for the trial. Over `2` a
    /// lost packet delays all responses of the connection that come behind it. Default: `1.1`, without TLS.
    #[serde(default, skip_serializing_if = "HttpVersion::is_default")]
    pub http: HttpVersion,
    /// Congestion control of its connections with `http = "3"`. Default: `cubic`.
    #[serde(default, skip_serializing_if = "is_cubic")]
    pub quic: QuicCongestion,
    /// Port that it listens on: of UDP with `http = "3"`, of TCP otherwise. Default: 80.
    #[serde(default = "http")]
    pub port: u16,
    /// Live: how much of the past can still be fetched (`timeShiftBufferDepth`, the playlist's
    /// length). The stream behaves as if it had started this long before the trial. Default: 30 s.
    #[serde(default = "window")]
    pub window: Duration,
    /// On demand: how much media there is, with the footage repeated. Default: the
    /// duration of the trial. A player with a long buffer needs more, because otherwise it has
    /// downloaded everything before the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<Duration>,
    /// Which rungs of the ladder the HLS multivariant playlist lists; DASH always offers all of
    /// them. Default: `all`.
    #[serde(default)]
    pub hls_rungs: HlsRungs,
    /// Which bit rate of a rung the manifests give. Default: `peak`.
    #[serde(default, skip_serializing_if = "Declares::is_default")]
    pub declares: Declares,
    /// Rungs of video whose bit rate in the manifests is above this are not offered, except the lowest. Default: all are
    /// offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<BitRate>,
    /// Live only: low latency. Segments are sent while they are captured, in chunks of at most this length and at least one
    /// frame, and HLS lists parts. The package must be fragmented MP4 without B-frames. Default: each segment is sent whole
    /// when its last frame has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Duration>,
    /// With `chunk`: the longest part of HLS (`EXT-X-PART`), rounded down to whole chunks. A player requests each part by
    /// itself, so shorter parts mean more requests. Default: 500 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Duration>,
    /// Whether its responses have headers with what it knows of the connection and of the media (Common Media Server Data,
    /// CTA-5006): throughput (`etp`, not over HTTP/3), round-trip time, how long the body was waited for, bit rate, duration.
    /// A cache adds what it knows of its own connections. Players of suiro record the first three, of the nearest server, in
    /// the table `requests`. Default: `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cmsd: bool,
}

pub(super) fn is_cubic(congestion: &QuicCongestion) -> bool {
    *congestion == QuicCongestion::default()
}

/// Which bit rate of a rung manifests give: players choose by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Declares {
    /// That of its largest segment, as RFC 8216 §4.3.4.2 and ISO/IEC 23009-1 §5.3.5.2 want it.
    #[default]
    Peak,
    /// The `bitrate` of the ladder, which encoders that write manifests give. Short segments can have twice as much.
    Nominal,
}

impl Declares {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Which rungs HLS offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HlsRungs {
    /// All of them, for players that adapt.
    #[default]
    All,
    /// Only the one with the highest bit rate: a stream that no player can adapt.
    Top,
}

/// How a stream's segments become available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Each segment becomes available when its last frame has passed, by the wall clock.
    Live,
    /// All are available from the start (video on demand), repeated as often as the trial's
    /// duration requires.
    Vod,
}

impl Kind for Origin {
    fn listens(&self) -> Vec<Listens> {
        listens(self.http, self.port)
    }

    fn renumber(&mut self, n: u16) -> Option<()> {
        shift(&mut self.port, n, 1)
    }

    fn congestion(&self) -> Option<super::Congestion<'_>> {
        congestion(self.http, self.tcp.as_deref())
    }

    fn http(&self) -> Option<HttpVersion> {
        Some(self.http)
    }

    fn medium(&self) -> Option<Medium<'_>> {
        let (name, chunk) = (&*self.media, self.chunk);
        Some(Medium { key: "media", name, codec: Codec::H264, chunk })
    }

    fn check(&self, check: &mut Check<'_>) {
        if self.length.is_some() && self.mode == Mode::Live {
            let refusal = check.refusal("length", "a live stream has no length");
            check.push(refusal.hint("remove `length`, or set mode = \"vod\""));
        }
        self.check_chunks(check);
    }
}

impl Origin {
    fn check_chunks(&self, check: &mut Check<'_>) {
        let Some(chunk) = self.chunk else {
            if self.part.is_some() {
                let refusal = check.refusal("part", "parts are made of chunks, and there are none");
                check.push(refusal.hint("add chunk = \"100 ms\", or remove `part`"));
            }
            return;
        };
        if self.mode == Mode::Vod {
            let refusal = check.refusal("chunk", "the origin is not live: nothing is captured");
            check.push(refusal.hint("remove `chunk`, or set mode = \"live\""));
        }
        let Some(medium) = check.medium(&self.media) else { return };
        if medium.format == Format::Ts {
            let message = format!("the medium `{}` is packaged only as `ts`", self.media);
            let hint = "give the medium format = \"fmp4\" or \"both\"";
            check.push(check.refusal("chunk", message).hint(hint));
        }
        if medium.b_frames > 0 {
            let message = format!("the medium `{}` has B-frames", self.media);
            let hint = "remove b_frames: a frame must be sent before the next is captured";
            check.push(check.refusal("chunk", message).hint(hint));
        }
        let longest = self.part.unwrap_or(chunk);
        if longest < chunk || longest > medium.segment {
            let refusal = check.refusal("part", format!("a part of {longest}"));
            let segment = medium.segment;
            let expected = format!("from one chunk, {chunk}, to one segment, {segment}");
            check.push(refusal.expected(expected));
        }
    }
}

/// Where a server of that version of HTTP listens, whose key `port` has the port.
pub(super) fn listens(http: HttpVersion, port: u16) -> Vec<Listens> {
    vec![match http {
        HttpVersion::Http1 | HttpVersion::Http2 => Listens::tcp(port, "port"),
        HttpVersion::Http3 => Listens::udp(port, "port"),
    }]
}

/// TCP's congestion control of a server of that version of HTTP, by its key `tcp`: HTTP/3 has none.
pub(super) fn congestion(http: HttpVersion, tcp: Option<&str>) -> Option<super::Congestion<'_>> {
    let name = tcp.filter(|_| http != HttpVersion::Http3)?;
    Some(super::Congestion { key: "tcp", name })
}

pub(super) const fn http() -> u16 {
    80
}

const fn window() -> Duration {
    Duration::from_secs(30)
}
