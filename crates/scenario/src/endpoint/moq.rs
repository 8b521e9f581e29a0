//! `moq-publisher`, `moq-relay` and `moq-viewer`: real-time video by Media over QUIC Transport, through a relay.

mod words;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_media::live::FootageSpec;
use suiro_media::sound::{self, Audio};
use suiro_rate::QuicCongestion;
use suiro_record::words::Transport;
use suiro_strict::{Bounded, Bounds, bounds, bounds_of};
use suiro_units::{BitRate, Bytes, Duration};
use suiro_viewer::{Loss, Policy};

use super::pause::{PAUSES, Pause};
use super::webrtc::check_token;
use super::{Delivery, Flow, Kind, Listens, Need, PORT, Reference, Viewer, shift};
use crate::check::Check;

pub use words::{BrowserCongestion, MoqAdaptation, MoqData, MoqStreams};

/// What the encoder may be set to.
const RATES: Bounds<BitRate> = Bounds::new(BitRate::from_kbps(30), BitRate::from_mbps(50));
/// The drafts of moq-transport that are spoken.
const DRAFT: Bounds<u8> = Bounds::new(14, 22);
const KEY_EVERY: Bounds<Duration> =
    Bounds::new(Duration::from_millis(100), Duration::from_secs(60));
const DEADLINE: Bounds<Duration> =
    Bounds::new(Duration::from_millis(20), Duration::from_secs(3600));
const CACHE: Bounds<Bytes> = Bounds::new(Bytes::new(100_000), Bytes::new(4_000_000_000));
const SESSIONS: Bounds<u32> = Bounds::new(1, 20_000);
const DELTA: Bounds<f64> = Bounds::new(0.01, 2.0);
const STREAMS: Bounds<u32> = Bounds::new(1, 100_000);
/// From one object of a data track to the next.
const DATA_EVERY: Bounds<Duration> =
    Bounds::new(Duration::from_millis(10), Duration::from_secs(60));
/// The least holds a number and a time as JSON.
const DATA_SIZE: Bounds<Bytes> = Bounds::new(Bytes::new(64), Bytes::new(10_000));
/// Default bit rates of the lower qualities, as shares of the highest.
const LOWER: [f64; 2] = [0.6, 0.35];
/// Longest name of a broadcast, in bytes.
const BROADCAST_MAX: usize = 200;

bounds! {
    MoqPublisher {
        draft: DRAFT,
        rate: RATES,
        key_every: KEY_EVERY,
        deadline: DEADLINE,
        delta: DELTA,
        qualities: Bounds::new(1, 4),
        data_every: DATA_EVERY,
        data_size: DATA_SIZE,
        audio: sound::RATES,
        pauses: PAUSES;
        tables: camera;
        each: qualities: RATES
    }
}

bounds! {
    MoqRelay {
        port: PORT,
        deadline: DEADLINE,
        cache: CACHE,
        sessions: SESSIONS,
        streams: STREAMS,
        delta: DELTA
    }
}

bounds! {
    MoqViewer {
        draft: DRAFT,
        delta: DELTA;
        tables: viewer
    }
}

/// A program that publishes or views by Media over QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MoqProgram {
    /// suiro itself, over raw QUIC, with a congestion control of its own.
    #[default]
    Suiro,
    /// A page in Chromium without a window: WebTransport with its congestion control, WebCodecs.
    Chromium,
}

impl MoqProgram {
    fn needs<'a>(self) -> Vec<Need<'a>> {
        match self {
            Self::Suiro => Vec::new(),
            Self::Chromium => vec![Need::Chromium],
        }
    }
}

/// Keys that are suiro's own or Chromium's.
struct Asked {
    draft: u8,
    congestion: QuicCongestion,
    browser_congestion: BrowserCongestion,
    ecn: bool,
    qlog: bool,
}

impl Asked {
    fn check(&self, program: MoqProgram, check: &mut Check<'_>) {
        let mut refuse = |refused: bool, key: &'static str, message: &str| {
            if refused {
                check.push(check.refusal(key, message).hint(format!("remove {key}")));
            }
        };
        if program == MoqProgram::Suiro {
            let other = self.browser_congestion != BrowserCongestion::default();
            let own = "suiro's own end has the key congestion instead";
            return refuse(other, "browser_congestion", own);
        }
        refuse(self.draft != draft(), "draft", "the page in Chromium speaks draft 18");
        let own = "Chromium has a congestion control of its own, which browser_congestion chooses";
        refuse(self.congestion != QuicCongestion::default(), "congestion", own);
        refuse(!self.ecn, "ecn", "Chromium decides for itself whether it uses ECN");
        refuse(self.qlog, "qlog", "Chromium keeps no qlog");
    }
}

/// Publishes a camera over Media over QUIC Transport (MoQT): H.264 from an encoder, sent to a relay over raw QUIC.
/// Its broadcast has the tracks `catalog.json`, as the `hang` format describes them, `video`, and `data`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<MoqPublisher>)]
pub struct MoqPublisher {
    /// The program that publishes: `suiro` or `chromium`. Default: `suiro`.
    #[serde(default, rename = "endpoint")]
    pub program: MoqProgram,
    /// The `moq-relay` that it publishes to.
    pub to: String,
    /// What the camera sees.
    pub camera: FootageSpec,
    /// The broadcast's name. Default: `camera`.
    #[serde(default = "broadcast")]
    pub broadcast: String,
    /// The bearer token that it shows to the relay, of letters, digits and `-._~+/=`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The draft of moq-transport that it offers. Default: 18.
    #[serde(default = "draft")]
    pub draft: u8,
    /// How objects are sent: every `frame` on a QUIC stream of its own, every group of pictures on one (`gop`), or frames by
    /// `datagram` where they fit. Default: `frame`.
    #[serde(default)]
    pub streams: MoqStreams,
    /// The bit rate that the encoder is set to; with adaptation, the most that it is. A scene that needs less gets less.
    /// Default: 1.5 Mbit/s.
    #[serde(default = "rate")]
    pub rate: BitRate,
    /// From one key frame to the next: a viewer that joins waits for one. Default: 2 s.
    #[serde(default = "key_every")]
    pub key_every: Duration,
    /// The part that adapts to the link; a viewer that is to change between qualities has the same key. Default:
    /// `none`.
    #[serde(default)]
    pub adaptation: MoqAdaptation,
    /// Bit rates of the lower qualities, each below the one before: with adaptation `qualities` or `both` each is a
    /// track of its own next to that of `rate`, and is encoded while a viewer receives it. Default: 60 % and 35 % of
    /// `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qualities: Option<Vec<BitRate>>,
    /// A track of small objects next to the video, such as the state of a game: `json`, `binary` or `none`. Each has
    /// its number and the time when it was published. Default: `none`.
    #[serde(default)]
    pub data: MoqData,
    /// From one object of the data track to the next. Default: 100 ms.
    #[serde(default = "data_every")]
    pub data_every: Duration,
    /// Size of an object of the data track. Default: 200 B.
    #[serde(default = "data_size")]
    pub data_size: Bytes,
    /// Priority of the data track, 0 to 255: publisher and relay send first what has the higher one. That of the video is 127,
    /// and one more for each lower quality. Default: 200.
    #[serde(default = "data_priority")]
    pub data_priority: u8,
    /// Its sound: `none`, or the bit rate of Opus, such as `"32 kbit/s"`, in frames of 20 ms. It is a track of its own, which
    /// publisher and relay send before the video. Default: `none`.
    #[serde(default)]
    pub audio: Audio,
    /// Times in which no video is sent, in order, as when a camera is muted; sound and data go on. Afterwards the first frame is a
    /// key frame. A pause is no freeze of its viewers. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<Pause>,
    /// A frame, or with `streams = "gop"` a group of pictures, is given up if not all of it has been delivered this long after
    /// the next one began: its QUIC stream is reset. The same holds for sound. The data track has no deadline, so that its
    /// priority must not be that of the video or the sound (220). Default: everything is sent, however late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Duration>,
    /// What Chromium's congestion control is asked to optimise for. Default: `default`.
    #[serde(default)]
    pub browser_congestion: BrowserCongestion,
    /// Its congestion control; Chromium has one of its own. Default: `cubic`.
    #[serde(default)]
    pub congestion: QuicCongestion,
    /// δ of `copa`, ignored by the others: it keeps about 1/δ packets in the queue. Default: 0.5, as in its paper; Meta's
    /// `moxygen` has 0.05.
    #[serde(default = "delta")]
    pub delta: f64,
    /// Whether its packets say that their transport understands ECN: ECT(0), which a connection keeps if the path and the peer do
    /// not contradict (RFC 9000, section 13.4.2). A queue that marks can then mark them instead of dropping them. Chromium decides
    /// for itself. Default: `true`.
    #[serde(default = "super::yes")]
    pub ecn: bool,
    /// Whether a qlog of its connection is kept in the trial's folder. Default: `false`.
    #[serde(default)]
    pub qlog: bool,
}

/// A relay of Media over QUIC Transport: it passes each broadcast on to all its subscribers, and keeps the newest
/// objects for those that join later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<MoqRelay>)]
pub struct MoqRelay {
    /// UDP port that it listens at. Default: 4443.
    #[serde(default = "port")]
    pub port: u16,
    /// The bearer token that it requires, of letters, digits and `-._~+/=`. Default: none is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// A group is given up if not all of it has been delivered this long after the relay began to pass on the next one of its
    /// track: its QUIC stream is reset. Default: everything is passed on, however late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Duration>,
    /// Memory for groups that some subscriber has not been sent yet; beyond it the oldest are dropped. Default: 64 MB.
    #[serde(default = "cache")]
    pub cache: Bytes,
    /// Sessions at the same time; further ones are refused. Default: 2000.
    #[serde(default = "sessions")]
    pub sessions: u32,
    /// Streams that each peer may have open at the same time. Default: 4096.
    #[serde(default = "streams")]
    pub streams: u32,
    /// Its congestion control. Default: `cubic`.
    #[serde(default)]
    pub congestion: QuicCongestion,
    /// δ of `copa`, ignored by the others: it keeps about 1/δ packets in the queue. Default: 0.5, as in its paper; Meta's
    /// `moxygen` has 0.05.
    #[serde(default = "delta")]
    pub delta: f64,
    /// Whether its packets say that their transport understands ECN, as with `moq-publisher`. Default: `true`.
    #[serde(default = "super::yes")]
    pub ecn: bool,
    /// Whether qlogs of its connections are kept in the trial's folder. Default: `false`.
    #[serde(default)]
    pub qlog: bool,
}

/// Receives a broadcast over Media over QUIC Transport and plays its video, without a screen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<MoqViewer>)]
pub struct MoqViewer {
    /// The program that views: `suiro` or `chromium`. Default: `suiro`.
    #[serde(default, rename = "endpoint")]
    pub program: MoqProgram,
    /// The `moq-relay` that it subscribes at.
    pub from: String,
    /// The broadcast's name. Default: `camera`.
    #[serde(default = "broadcast")]
    pub broadcast: String,
    /// The bearer token that it shows to the relay. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The draft of moq-transport that it offers. Default: 18.
    #[serde(default = "draft")]
    pub draft: u8,
    /// `none`, `encoder`: it plays the highest quality. `qualities`, `both`: it changes between the publisher's qualities.
    /// Default: `none`.
    #[serde(default)]
    pub adaptation: MoqAdaptation,
    /// How suiro's viewer plays; Chromium shows each frame as soon as it is decoded.
    #[serde(default)]
    pub viewer: Policy,
    /// Whether suiro's viewer holds the sound until the video of its capture time is displayed, 80 ms more in a second at most;
    /// `false`: each is played as soon as its own jitter buffer lets it. Default: `true`.
    #[serde(default = "super::yes")]
    pub lip_sync: bool,
    /// What Chromium's congestion control is asked to optimise for. Default: `default`.
    #[serde(default)]
    pub browser_congestion: BrowserCongestion,
    /// Its congestion control, for the few packets that it sends. Default: `cubic`.
    #[serde(default)]
    pub congestion: QuicCongestion,
    /// δ of `copa`, ignored by the others: it keeps about 1/δ packets in the queue. Default: 0.5, as in its paper; Meta's
    /// `moxygen` has 0.05.
    #[serde(default = "delta")]
    pub delta: f64,
    /// Whether its packets say that their transport understands ECN, as with
    /// `moq-publisher`. Chromium decides for itself. Default: `true`.
    #[serde(default = "super::yes")]
    pub ecn: bool,
    /// Whether the decodable video is saved as a file in the trial's folder. Default: `false`.
    #[serde(default)]
    pub save: bool,
    /// Whether a qlog of its connection is kept in the trial's folder. Default: `false`.
    #[serde(default)]
    pub qlog: bool,
}

impl MoqPublisher {
    /// The publisher's priority of the video; each lower quality has one more.
    pub const VIDEO_PRIORITY: u8 = 127;
    /// That of the sound: before all video, and before a data track that says nothing else.
    pub const SOUND_PRIORITY: u8 = 220;

    /// The bit rates of its qualities, from the highest to the lowest.
    pub fn rates(&self) -> Vec<BitRate> {
        let mut rates = vec![self.rate];
        if self.adaptation.has_qualities() {
            let lower = |share| self.rate.mul_f64(share).max(*RATES.least());
            rates.extend(self.qualities.clone().unwrap_or_else(|| LOWER.map(lower).to_vec()));
        }
        rates
    }
}

impl Kind for MoqPublisher {
    fn references(&mut self) -> Vec<Reference<&mut String>> {
        let (name, kinds) = (&mut self.to, &[MoqRelay::NAME]);
        vec![Reference { key: "to", name, kinds, media: Flow::Goes }]
    }

    fn needs(&self) -> Vec<Need<'_>> {
        self.program.needs()
    }

    fn camera(&self) -> Option<&FootageSpec> {
        Some(&self.camera)
    }

    fn camera_mut(&mut self) -> Option<&mut FootageSpec> {
        Some(&mut self.camera)
    }

    fn pauses(&self) -> &[Pause] {
        &self.pauses
    }

    fn has_sound(&self) -> bool {
        self.audio != Audio::None
    }

    fn check(&self, check: &mut Check<'_>) {
        if self.camera.out_of_bounds().is_empty()
            && let Err(refusal) = self.camera.validate()
        {
            check.refuse(refusal.below("camera"));
        }
        let Self { draft, congestion, browser_congestion, ecn, qlog, .. } = *self;
        Asked { draft, congestion, browser_congestion, ecn, qlog }.check(self.program, check);
        if self.program == MoqProgram::Chromium {
            self.check_chromium(check);
        }
        let rates = self.rates();
        if self.qualities.is_some() && !rates.is_sorted_by(|higher, lower| higher > lower) {
            let found = rates.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let refusal = check.refusal("qualities", format!("rate and qualities are {found}"));
            check.push(refusal.expected("each below the one before"));
        }
        self.check_priority(check);
        check_token(check, self.token.as_deref());
        check_broadcast(check, &self.broadcast);
        check_relay_token(check, &self.to, &self.token);
    }
}

impl MoqPublisher {
    /// Refuses a data track that would have the deadline of another: on streams, tracks are distinguished by their priorities.
    fn check_priority(&self, check: &mut Check<'_>) {
        // Nothing is given up whose deadline is after the end of the trial.
        let is_reached = |deadline: Duration| check.end().is_none_or(|end| deadline < end);
        if self.data == MoqData::None || !self.deadline.is_some_and(is_reached) {
            return;
        }
        let mut videos = (Self::VIDEO_PRIORITY..=u8::MAX).take(self.rates().len());
        let whose = if videos.any(|priority| priority == self.data_priority) {
            "the video"
        } else if self.has_sound() && self.data_priority == Self::SOUND_PRIORITY {
            "the sound"
        } else {
            return;
        };
        let message =
            format!("{} is the priority of {whose}, which has a deadline", self.data_priority);
        let refusal = check.refusal("data_priority", message);
        check.push(refusal.expected("another priority: the data track has no deadline"));
    }

    /// Refuses what the page in Chromium cannot do.
    fn check_chromium(&self, check: &mut Check<'_>) {
        let mut refuse = |refused: bool, key: &'static str, message: &str| {
            if refused {
                check.push(check.refusal(key, message).hint(format!("remove {key}")));
            }
        };
        let constant = "the encoder of the page in Chromium has a constant bit rate";
        refuse(self.adaptation != MoqAdaptation::None, "adaptation", constant);
        let late = "the page in Chromium sends everything, however late";
        refuse(self.deadline.is_some(), "deadline", late);
        let streams = "the page in Chromium sends no datagrams";
        refuse(self.streams == MoqStreams::Datagram, "streams", streams);
        refuse(self.data != MoqData::None, "data", "the page in Chromium has no data track");
        refuse(self.audio != Audio::None, "audio", "the page in Chromium sends no sound");
    }
}

impl Kind for MoqRelay {
    fn listens(&self) -> Vec<Listens> {
        let ports = self.port..=self.port;
        vec![Listens { transport: Transport::Udp, ports, key: "port" }]
    }

    fn renumber(&mut self, n: u16) -> Option<()> {
        shift(&mut self.port, n, 1)
    }

    fn check(&self, check: &mut Check<'_>) {
        check_token(check, self.token.as_deref());
    }
}

impl Kind for MoqViewer {
    fn references(&mut self) -> Vec<Reference<&mut String>> {
        let (name, kinds) = (&mut self.from, &[MoqRelay::NAME]);
        vec![Reference { key: "from", name, kinds, media: Flow::Comes }]
    }

    fn needs(&self) -> Vec<Need<'_>> {
        self.program.needs()
    }

    fn viewer(&self) -> Option<Viewer> {
        let shows_damage = self.viewer.loss == Loss::Show;
        Some(Viewer { delivery: Delivery::Stream, shows_damage })
    }

    /// What a camera showed is nowhere else to look at.
    fn keep_for_screen(&mut self) {
        self.save = true;
    }

    fn check(&self, check: &mut Check<'_>) {
        let Self { draft, congestion, browser_congestion, ecn, qlog, .. } = *self;
        Asked { draft, congestion, browser_congestion, ecn, qlog }.check(self.program, check);
        if self.program == MoqProgram::Chromium {
            if self.viewer != Policy::default() {
                let message = "Chromium shows each frame as soon as it is decoded";
                check.push(check.refusal("viewer", message).hint("remove viewer"));
            }
            if self.adaptation != MoqAdaptation::None {
                let message = "the page in Chromium plays the highest quality";
                check.push(check.refusal("adaptation", message).hint("remove adaptation"));
            }
        }
        check_token(check, self.token.as_deref());
        check_broadcast(check, &self.broadcast);
        check_relay_token(check, &self.from, &self.token);
    }
}

/// A path of letters, digits and a few signs, with `/` between its parts.
fn check_broadcast(check: &mut Check<'_>, name: &str) {
    let sound = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let part = |part: &str| !part.is_empty() && part.chars().all(sound);
    if name.len() > BROADCAST_MAX || !name.split('/').all(part) {
        let refusal = check.refusal("broadcast", format!("`{name}`"));
        check.push(refusal.expected(
            "1 to 200 of A-Z a-z 0-9 - . _, in parts that are separated by single slashes",
        ));
    }
}

fn check_relay_token(check: &mut Check<'_>, relay: &str, token: &Option<String>) {
    if let Some(other) = check.peer::<MoqRelay>(relay)
        && other.token.is_some()
        && other.token != *token
    {
        let message = format!("`{relay}` requires another token");
        check.push(check.refusal("token", message).hint("give both the same token"));
    }
}

fn broadcast() -> String {
    "camera".to_owned()
}

const fn draft() -> u8 {
    18
}

const fn rate() -> BitRate {
    BitRate::from_kbps(1500)
}

const fn key_every() -> Duration {
    Duration::from_secs(2)
}

const fn data_every() -> Duration {
    Duration::from_millis(100)
}

const fn data_size() -> Bytes {
    Bytes::new(200)
}

const fn data_priority() -> u8 {
    200
}

const fn port() -> u16 {
    4443
}

const fn cache() -> Bytes {
    Bytes::new(64_000_000)
}

const fn sessions() -> u32 {
    2000
}

const fn delta() -> f64 {
    0.5
}

const fn streams() -> u32 {
    4096
}
