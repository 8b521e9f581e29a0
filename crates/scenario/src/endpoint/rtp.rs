//! `rtp-sender` and `rtp-receiver`: real-time video over RTP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_media::live::FootageSpec;
use suiro_media::spec::Codec;
use suiro_rate::RateSpec;
use suiro_strict::{Bounded, Bounds, Refusal, bounds, bounds_of};
use suiro_units::{Bytes, Duration};
use suiro_viewer::{Loss, Policy};

use super::pause::{PAUSES, Pause};
use super::{Delivery, Flow, Kind, Listens, Medium, Reference, Viewer, shift};
use crate::check::Check;

/// RFC 3550 §11: RTP has an even port and RTCP the next.
const RTP_PORT: Bounds<u16> = Bounds::new(2, 65_534);

bounds! {
    RtpSender {
        port: RTP_PORT,
        // What every host takes (RFC 791 §3.1) to the topology's largest.
        packet: Bounds::new(Bytes::new(576), Bytes::new(9000)),
        report_pictures: Bounds::new(1, 1000),
        pauses: PAUSES;
        tables: camera, control
    }
}

bounds! {
    RtpReceiver {
        port: RTP_PORT,
        feedback: Bounds::new(Duration::from_millis(5), Duration::from_secs(5));
        tables: viewer
    }
}

/// Sends video over RTP to one receiver, as fast as a rate control allows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<RtpSender>)]
pub struct RtpSender {
    /// The endpoint that it sends to, an `rtp-receiver`.
    pub to: String,
    /// How the video is coded: `h264`, by an encoder in the loop whose bit rate follows the rate
    /// control, or `mpeg2`, prepared in several versions: for each group of pictures, the best one
    /// that the rate control allows is sent.
    pub codec: RtpCodec,
    /// `h264`: what the camera sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub camera: Option<FootageSpec>,
    /// `mpeg2`: the media it sends, a name below `[media]`, with the codec `mpeg2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<String>,
    /// `mpeg2`: which rate of a version must stay below the target for it to be chosen. Default:
    /// `group`.
    #[serde(default)]
    pub choose: VersionRate,
    /// How it finds its rate.
    pub control: RateSpec,
    /// How the packets of a frame follow one another. Default: `target`.
    #[serde(default)]
    pub pace: Pace,
    /// Between which moments the round-trip time is measured. Default: `path`.
    #[serde(default)]
    pub rtt: RoundTrip,
    /// In which format the receiver reports what became of each packet; its `feedback` says how often. Default: `rfc8888`.
    #[serde(default)]
    pub feedback: FeedbackFormat,
    /// UDP port that it sends from, even; RTCP has the next. Default: 5004.
    #[serde(default = "port")]
    pub port: u16,
    /// Largest IP packet; the path must carry it unfragmented. Default: 1500 B.
    #[serde(default = "packet")]
    pub packet: Bytes,
    /// What it does when the circuit breaker of RFC 8083 is triggered: by missing reports, by
    /// reports that no media arrives, or by sending ten times what a TCP would send. Default:
    /// `tell`.
    #[serde(default)]
    pub circuit_breaker: OnBreak,
    /// When it reports. Default: `study`.
    #[serde(default)]
    pub rtcp: RtcpTimes,
    /// `study`: frames from one sender report to the next. Default: 5.
    #[serde(default = "pictures")]
    pub report_pictures: u32,
    /// Times in which no video is sent, in order, as when a camera is muted; reports go on. Afterwards the first frame is a key
    /// frame. A pause is no freeze of its viewer. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<Pause>,
}

/// Receives video over RTP and plays it, without a screen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<RtpReceiver>)]
pub struct RtpReceiver {
    /// How the video is coded.
    pub codec: RtpCodec,
    /// UDP port that it receives on, even; RTCP has the next. Default: 5004.
    #[serde(default = "port")]
    pub port: u16,
    /// When it reports. Default: `study`.
    #[serde(default)]
    pub rtcp: RtcpTimes,
    /// How often it also reports what became of each packet, in the format of the sender's `feedback`; earlier when a report
    /// would be about 256 new packets. (libwebrtc sends transport-wide reports every 50 ms to 250 ms.) Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Duration>,
    /// Whether it requests retransmission of missing packets (RFC 4585, RFC 4588) while they can
    /// still arrive in time. Default: `false`, as in the study.
    #[serde(default)]
    pub retransmission: bool,
    /// How it plays.
    #[serde(default)]
    pub viewer: Policy,
    /// Whether the decodable video is saved as a file in the trial's folder. Default: `false`.
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

/// Which rate of a prepared version is compared with the target when a group of pictures begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VersionRate {
    /// The rate of the next group: no group exceeds the target.
    #[default]
    Group,
    /// The mean over all the footage, as in MPEG-TFRCP: rates vary with the footage, and complex
    /// groups exceed the target.
    Mean,
}

/// How the packets of a frame follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// At the rate that the rate control allows.
    #[default]
    Target,
    /// All at once when the frame is read: the sender of MPEG-TFRCP wrote each frame to its socket, and reports
    /// wait behind it.
    None,
}

/// Between which moments a round-trip time is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoundTrip {
    /// From a report to its answer, less the time for which the receiver had it (RFC 3550 §6.4.1).
    #[default]
    Path,
    /// From a report to its answer, the receiver's time included, as MPEG-TFRCP computes it from the time stamp that is
    /// sent back.
    Ends,
}

/// In which format a receiver reports what became of each packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FeedbackFormat {
    /// RFC 8888: arrival times to 1/1024 s and ECN, of the packets of the stream that were sent for the first time.
    #[default]
    Rfc8888,
    /// draft-holmer-rmcat-transport-wide-cc-extensions-01, as WebRTC has it: arrival times to 250 µs, of all packets,
    /// retransmissions included. They bear a number for it in a header extension. There is no ECN: `control` must not set `ecn`.
    TransportWide,
}

impl FeedbackFormat {
    /// Whether its reports say all that a rate control needs.
    ///
    /// # Errors
    /// Packets say that they understand ECN, and marks are not reported.
    pub fn check(self, control: &RateSpec) -> Result<(), Refusal> {
        if self == Self::Rfc8888 || control.ecn.is_none() {
            return Ok(());
        }
        let refusal = Refusal::key("feedback", "transport-wide reports have no ECN marks");
        Err(refusal.hint("write feedback = \"rfc8888\", or remove `ecn` from `control`"))
    }
}

/// What a sender does when its circuit breaker is triggered. Either way, it is recorded in the
/// trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnBreak {
    /// It continues, because an emulated link harms no other network.
    #[default]
    Tell,
    /// It stops sending and sends an RTCP BYE, as RFC 8083 §4.5 requires.
    Stop,
}

/// When RTCP reports are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtcpTimes {
    /// As in MPEG-TFRCP: the sender reports every few frames, and the receiver answers at once.
    #[default]
    Study,
    /// As in RFC 3550 §6.3, with the reduced minimum interval of §6.2, but no timer reconsideration (§6.3.6).
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

impl Kind for RtpSender {
    fn listens(&self) -> Vec<Listens> {
        vec![Listens::rtp(self.port, "port")]
    }

    fn renumber(&mut self, n: u16) -> Option<()> {
        shift(&mut self.port, n, 2)
    }

    fn references(&mut self) -> Vec<Reference<&mut String>> {
        let (key, kinds, media) = ("to", &[RtpReceiver::NAME], Flow::Goes);
        vec![Reference { key, name: &mut self.to, kinds, media }]
    }

    fn medium(&self) -> Option<Medium<'_>> {
        match (self.codec, &self.media) {
            (RtpCodec::Mpeg2, Some(name)) => {
                Some(Medium { key: "media", name, codec: Codec::Mpeg2, chunk: None })
            }
            (RtpCodec::H264, _) | (_, None) => None,
        }
    }

    fn camera(&self) -> Option<&FootageSpec> {
        self.camera.as_ref()
    }

    fn camera_mut(&mut self) -> Option<&mut FootageSpec> {
        self.camera.as_mut()
    }

    fn pauses(&self) -> &[Pause] {
        &self.pauses
    }

    fn check(&self, check: &mut Check<'_>) {
        if let Some(receiver) = check.peer::<RtpReceiver>(&self.to)
            && receiver.codec != self.codec
        {
            let (ours, theirs) = (self.codec.name(), receiver.codec.name());
            let message = format!("it sends `{ours}`, but `{}` takes `{theirs}`", self.to);
            check.push(check.refusal("codec", message).hint("give both the same codec"));
        }
        self.check_feedback(check);
        self.check_source(check);
        check_even(check, self.port);
        // What is out of its bounds has been refused before.
        if self.control.out_of_bounds().is_empty()
            && let Err(refusal) = self.control.check()
        {
            check.refuse(refusal.below("control"));
        }
    }
}

impl RtpSender {
    /// A rate control that computes delays needs a report of each packet, and one that uses ECN needs the marks.
    fn check_feedback(&self, check: &mut Check<'_>) {
        if let Err(refusal) = self.feedback.check(&self.control) {
            check.refuse(refusal);
        }
        let receiver = check.peer::<RtpReceiver>(&self.to);
        if receiver.is_none_or(|receiver| receiver.feedback.is_some()) {
            return;
        }
        let (kind, to) = (self.control.kind, &self.to);
        let (key, message) = if kind.needs_packets() {
            ("control", format!("`{kind}` needs reports of each packet, but `{to}` sends none"))
        } else if self.feedback == FeedbackFormat::TransportWide {
            ("feedback", format!("`{to}` sends no reports of each packet"))
        } else {
            return;
        };
        let hint = format!("add feedback = \"100 ms\" to [endpoints.{to}]");
        check.push(check.refusal(key, message).hint(hint));
    }

    /// A camera or media, as the codec needs.
    fn check_source(&self, check: &mut Check<'_>) {
        let camera = self.camera.as_ref().filter(|camera| camera.out_of_bounds().is_empty());
        if let Some(refusal) = camera.and_then(|camera| camera.validate().err()) {
            check.refuse(refusal.below("camera"));
        }
        let (key, message, hint) = match (self.codec, &self.camera, &self.media) {
            (RtpCodec::H264, None, _) => {
                ("codec", "no camera", "add camera = { source = \"bbb\" }")
            }
            (RtpCodec::H264, Some(_), Some(_)) => {
                ("media", "`h264` encodes a camera, not a medium", "remove media")
            }
            (RtpCodec::Mpeg2, Some(_), _) => {
                ("camera", "`mpeg2` is prepared", "remove camera, and name a medium")
            }
            (RtpCodec::Mpeg2, None, None) => {
                ("codec", "no media", "add media = \"NAME\" of a section [media.NAME]")
            }
            (RtpCodec::H264, Some(_), None) | (RtpCodec::Mpeg2, None, Some(_)) => return,
        };
        check.push(check.refusal(key, message).hint(hint));
    }
}

impl Kind for RtpReceiver {
    fn listens(&self) -> Vec<Listens> {
        vec![Listens::rtp(self.port, "port")]
    }

    fn renumber(&mut self, n: u16) -> Option<()> {
        shift(&mut self.port, n, 2)
    }

    fn viewer(&self) -> Option<Viewer> {
        let shows_damage = self.viewer.loss == Loss::Show;
        Some(Viewer { delivery: Delivery::Stream, shows_damage })
    }

    /// What a camera showed, and what a loss made of frames, is nowhere else to look at.
    fn keep_for_screen(&mut self) {
        self.save |= self.codec == RtpCodec::H264 || self.viewer.loss == Loss::Show;
    }

    fn check(&self, check: &mut Check<'_>) {
        check_even(check, self.port);
    }
}

fn check_even(check: &mut Check<'_>, port: u16) {
    if !port.is_multiple_of(2) {
        let refusal = check.refusal("port", format!("port {port} is odd"));
        check.push(refusal.expected("an even port: RTCP uses the next one"));
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
