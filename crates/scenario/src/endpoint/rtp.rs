//! `rtp-sender` and `rtp-receiver`: real-time video over RTP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_media::live::FootageSpec;
use suiro_rate::RateSpec;
use suiro_units::{Bytes, Duration};
use suiro_viewer::Policy;

/// Sends video over RTP to one receiver, as fast as a rate control allows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RtpSender {
    /// The endpoint that it sends to, an `rtp-receiver`.
    pub to: String,
    /// How the video is coded: `h264`, by an encoder in the loop whose bit rate follows the rate
    /// control, or `mpeg2`, prepared in several versions, of which each group of pictures takes the
    /// best that the rate control allows.
    pub codec: RtpCodec,
    /// `h264`: what the camera sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub camera: Option<FootageSpec>,
    /// `mpeg2`: the media it sends, a name below `[media]`, with the codec `mpeg2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<String>,
    /// `mpeg2`: what of a version must stay below the target for it to be taken. Default: `group`.
    #[serde(default)]
    pub choose: VersionRate,
    /// How it finds its rate.
    pub control: RateSpec,
    /// UDP port that it sends from, even, 2 to 65534; RTCP has the next. Default: 5004.
    #[serde(default = "port")]
    #[schemars(range(min = 2, max = 65534))]
    pub port: u16,
    /// Largest IP packet, 576 B to 9000 B; the path must carry it whole. Default: 1500 B.
    #[serde(default = "packet")]
    pub packet: Bytes,
    /// What it does when the circuit breaker of RFC 8083 is triggered: by reports that do not come, by
    /// reports of no media, or by ten times what a TCP would send. Default: `tell`.
    #[serde(default)]
    pub circuit_breaker: OnBreak,
    /// When it reports. Default: `study`.
    #[serde(default)]
    pub rtcp: RtcpTimes,
    /// `study`: pictures from one sender report to the next, 1 to 1000. Default: 5.
    #[serde(default = "pictures")]
    #[schemars(range(min = 1, max = 1000))]
    pub report_pictures: u32,
}

/// Receives video over RTP and plays it, without a screen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RtpReceiver {
    /// How the video is coded.
    pub codec: RtpCodec,
    /// UDP port that it receives at, even, 2 to 65534; RTCP has the next. Default: 5004.
    #[serde(default = "port")]
    #[schemars(range(min = 2, max = 65534))]
    pub port: u16,
    /// When it reports. Default: `study`.
    #[serde(default)]
    pub rtcp: RtcpTimes,
    /// How often it also sends congestion control feedback (RFC 8888), 5 ms to 5 s. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Duration>,
    /// Whether it asks for packets again that are missing (RFC 4585, RFC 4588), while they can still
    /// come in time. Default: `false`, as in the study.
    #[serde(default)]
    pub retransmission: bool,
    /// How it plays.
    #[serde(default)]
    pub viewer: Policy,
    /// Whether what it could decode is kept as a file in the trial's folder. Default: `false`.
    #[serde(default)]
    pub save: bool,
}

/// How video over RTP is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtpCodec {
    /// H.264 (RFC 6184).
    H264,
    /// MPEG-2 video (RFC 2250).
    Mpeg2,
}

/// Which rate of a prepared version is held against the target when a group of pictures begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VersionRate {
    /// That of the coming group: no group exceeds the target.
    #[default]
    Group,
    /// Its mean over all the footage, as MPEG-TFRCP does: rates vary as the footage does, and groups
    /// with much in them exceed the target.
    Mean,
}

/// What a sender does when its circuit breaker is triggered. Either way the trial tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnBreak {
    /// It goes on, as what is measured here harms nobody else's network.
    #[default]
    Tell,
    /// It stops sending and says good-bye, as RFC 8083 §4.5 wants.
    Stop,
}

/// When RTCP reports are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtcpTimes {
    /// As MPEG-TFRCP does: the sender after every few pictures, the receiver at once in answer.
    #[default]
    Study,
    /// As RFC 3550 §6.3 says, with the reduced least interval of §6.2.
    Standard,
}

impl RtpCodec {
    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::H264 => "h264",
            Self::Mpeg2 => "mpeg2",
        }
    }
}

const fn port() -> u16 {
    5004
}

const fn packet() -> Bytes {
    Bytes::new(1500)
}

const fn pictures() -> u32 {
    5
}
