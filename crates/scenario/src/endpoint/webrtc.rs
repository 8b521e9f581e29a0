//! `webrtc-publisher` and `webrtc-viewer`: real-time video between two peers, as browsers have it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_media::live::FootageSpec;
use suiro_media::sound::{self, Audio};
use suiro_strict::{Bounded, Bounds, bounds, bounds_of};
use suiro_units::{BitRate, Duration, words};
use suiro_viewer::{Loss, Policy};

use super::pause::{PAUSES, Pause};
use super::{Delivery, Flow, Kind, Listens, Need, PORT, Reference, Viewer, shift};
use crate::check::Check;

/// Bit rates that a publisher can be given.
pub const WEBRTC_RATES: Bounds<BitRate> =
    Bounds::new(BitRate::from_kbps(30), BitRate::from_mbps(50));
const KEY_EVERY: Bounds<Duration> =
    Bounds::new(Duration::from_millis(100), Duration::from_secs(60));
/// RFC 6750 §2.1: characters of a bearer token.
const TOKEN: &[u8] = b"-._~+/=";
const TOKEN_MAX: usize = 256;
/// Characters of field trials.
const TRIALS_MAX: usize = 1000;

bounds! {
    WebrtcPublisher {
        port: PORT,
        start_rate: WEBRTC_RATES,
        max_rate: WEBRTC_RATES,
        qualities: Bounds::new(0, 3),
        key_every: KEY_EVERY,
        audio: sound::RATES,
        pauses: PAUSES;
        tables: camera;
        each: qualities: WEBRTC_RATES
    }
}

bounds! {
    WebrtcViewer {
        port: PORT;
        tables: viewer
    }
}

/// The program of [`WebrtcProgram::Pion`], as `make peers` names it.
pub const PION: &str = "pion-publisher";

/// A program that is an end of a WebRTC connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WebrtcProgram {
    /// suiro itself: str0m, whose congestion control is a GCC of its own.
    #[default]
    Suiro,
    /// A page in Chromium without a window: libwebrtc, with its congestion control, encoder and jitter buffer.
    Chromium,
    /// pion, the WebRTC of Go, with its GCC and pacer, and suiro's encoder: only a publisher. `make peers` builds it.
    Pion,
}

impl WebrtcProgram {
    fn needs(self, field_trials: Option<&str>) -> Vec<Need<'_>> {
        match self {
            Self::Suiro => Vec::new(),
            Self::Chromium => {
                // Names and values alternate, each followed by a slash.
                let names = field_trials.unwrap_or_default().split('/').step_by(2);
                let trials = names.filter(|name| !name.is_empty()).map(Need::FieldTrial);
                std::iter::once(Need::Chromium).chain(trials).collect()
            }
            Self::Pion => vec![Need::Peer(PION)],
        }
    }
}

words! {
    /// The video codec of Chromium's ends.
    pub enum WebrtcCodec {
        /// H.264, the only codec of suiro's own end.
        H264 = "h264",
        /// VP8.
        Vp8 = "vp8",
        /// VP9, profile 0.
        Vp9 = "vp9",
        /// AV1, main profile.
        Av1 = "av1",
    }
}

words! {
    /// Which of a publisher's qualities a viewer is sent.
    pub enum WebrtcQuality {
        /// The one that the publisher's estimate for this viewer carries.
        Auto = "auto",
        /// The highest.
        High = "high",
        /// The one in the middle; of two, the lower.
        Middle = "middle",
        /// The lowest.
        Low = "low",
    }
}

/// Publishes a camera over WebRTC: H.264 from an encoder that follows the estimate of congestion control, first with
/// its bit rate, then its frame rate, then the size of its frames. It serves WHEP at `http://HOST:PORT/whep` to any
/// number of viewers, each a peer connection of its own; or, with `to`, offers its video to a viewer over WHIP. One
/// encoder serves all viewers: it follows the least estimate of them. With `qualities` there are several, and each viewer is
/// sent what its own estimate carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<WebrtcPublisher>)]
pub struct WebrtcPublisher {
    /// What the camera sees.
    pub camera: FootageSpec,
    /// The program that publishes: `suiro`, `chromium` or `pion`. Default: `suiro`.
    #[serde(default, rename = "endpoint")]
    pub program: WebrtcProgram,
    /// A `webrtc-viewer` without `from`, to which it makes an offer over WHIP. Not with `endpoint = "pion"`.
    /// Default: none, it serves WHEP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// TCP port at which it serves WHEP. Default: 8889.
    #[serde(default = "port")]
    pub port: u16,
    /// The bearer token that a viewer must have, of letters, digits and `-._~+/=`. Default: none is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The estimate that congestion control begins with; Chromium's is always 300 kbit/s. Default: 300 kbit/s, as
    /// libwebrtc.
    #[serde(default = "start_rate")]
    pub start_rate: BitRate,
    /// The most that it sends. Default: 2.5 Mbit/s, as libwebrtc has it for 1080 lines.
    #[serde(default = "max_rate")]
    pub max_rate: BitRate,
    /// Simulcast: the most that is sent of each lower quality, each below the one before and below `max_rate`. Each has an
    /// encoder, which runs while a viewer is sent it. A viewer is sent the best quality of which the next lower one is less than
    /// its estimate, and an encoder follows the least estimate of its viewers, but not below the next lower quality if there are
    /// several. Only with `endpoint = "suiro"`, without `to`. Default: none, one encoder serves all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub qualities: Vec<BitRate>,
    /// From one key frame to the next at most. Default: only the first frame is one, and those that viewers ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_every: Option<Duration>,
    /// Its sound: `none`, or the bit rate of Opus, such as `"32 kbit/s"`, in frames of 20 ms. It is sent before the video, and
    /// counts in the estimate and in `max_rate`. Only with `endpoint = "suiro"` at both ends. Default: `none`.
    #[serde(default)]
    pub audio: Audio,
    /// Times in which no video is sent, in order, as when a camera is muted; the connection and the sound go on. Afterwards the
    /// first frame is a key frame. A pause is no freeze of its viewers. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<Pause>,
    /// The codec of the video: `h264`, `vp8`, `vp9` or `av1`. What is not H.264 needs `endpoint = "chromium"` and the same
    /// codec at both ends. Default: `h264`.
    #[serde(default = "codec")]
    pub codec: WebrtcCodec,
    /// Field trials of libwebrtc that Chromium is started with, such as
    /// `"WebRTC-RFC8888CongestionControlFeedback/Enabled,offer:true/"`: names and values, each followed by a slash. Only with
    /// `endpoint = "chromium"`. Chromium ignores those that it does not know, so a cell is not run if its executable does not
    /// contain the name of each; and the endpoint fails if the one in this example had no effect. Default: none, as an empty
    /// text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_trials: Option<String>,
}

/// Receives video over WebRTC and plays it, without a screen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<WebrtcViewer>)]
pub struct WebrtcViewer {
    /// The program that views: `suiro` or `chromium`; `pion` only publishes. Default: `suiro`.
    #[serde(default, rename = "endpoint")]
    pub program: WebrtcProgram,
    /// The `webrtc-publisher` to which it makes an offer over WHEP. Default: none, it serves WHIP at
    /// `http://HOST:PORT/whip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// TCP port at which it serves WHIP. Default: 8889.
    #[serde(default = "port")]
    pub port: u16,
    /// The bearer token: without `from`, the one that a publisher must have. Default: none is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The quality that it asks its publisher for, of those in `qualities`: `auto`, `high`, `middle` or `low`; with `auto` the
    /// publisher decides by its estimate. Only with `from`. Default: `auto`.
    #[serde(default = "quality")]
    pub quality: WebrtcQuality,
    /// How suiro's viewer plays; Chromium has a jitter buffer of its own.
    #[serde(default)]
    pub viewer: Policy,
    /// Whether suiro's viewer holds the sound until the video of its capture time is displayed, 80 ms more in a second at most;
    /// `false`: each is played as soon as its own jitter buffer lets it. Default: `true`.
    #[serde(default = "super::yes")]
    pub lip_sync: bool,
    /// Whether the decodable video is saved as a file in the trial's folder. Default: `false`.
    #[serde(default)]
    pub save: bool,
    /// The codec of the video: `h264`, `vp8`, `vp9` or `av1`. What is not H.264 needs `endpoint = "chromium"` and the same
    /// codec at both ends. Default: `h264`.
    #[serde(default = "codec")]
    pub codec: WebrtcCodec,
    /// Field trials of libwebrtc that Chromium is started with, such as
    /// `"WebRTC-RFC8888CongestionControlFeedback/Enabled,offer:true/"`: names and values, each followed by a slash. Only with
    /// `endpoint = "chromium"`. Chromium ignores those that it does not know, so a cell is not run if its executable does not
    /// contain the name of each; and the endpoint fails if the one in this example had no effect. Default: none, as an empty
    /// text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_trials: Option<String>,
}

impl Kind for WebrtcPublisher {
    fn listens(&self) -> Vec<Listens> {
        if self.to.is_some() { vec![] } else { vec![Listens::tcp(self.port, "port")] }
    }

    fn renumber(&mut self, n: u16) -> Option<()> {
        shift(&mut self.port, n, 1)
    }

    fn references(&mut self) -> Vec<Reference<&mut String>> {
        let (key, kinds, media) = ("to", &[WebrtcViewer::NAME], Flow::Goes);
        let to = self.to.as_mut();
        to.map(|name| Reference { key, name, kinds, media }).into_iter().collect()
    }

    fn needs(&self) -> Vec<Need<'_>> {
        self.program.needs(self.field_trials.as_deref())
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
        if self.start_rate > self.max_rate {
            let refusal = check.refusal("start_rate", self.start_rate.to_string());
            check.push(refusal.expected("no more than `max_rate`"));
        }
        if self.program == WebrtcProgram::Chromium && self.start_rate != start_rate() {
            let message = "Chromium begins with an estimate of its own";
            check.push(check.refusal("start_rate", message).hint("remove start_rate"));
        }
        let silent = match self.program {
            WebrtcProgram::Suiro => None,
            WebrtcProgram::Chromium => Some("the page in Chromium sends no sound"),
            WebrtcProgram::Pion => Some("pion's program sends no sound"),
        };
        if let Some(message) = silent.filter(|_| self.audio != Audio::None) {
            check.push(check.refusal("audio", message).hint("remove audio"));
        }
        if self.program == WebrtcProgram::Pion && self.to.is_some() {
            let message = "pion's program makes no offers: it serves WHEP";
            let hint = "remove `to`, and set the viewer's `from`";
            check.push(check.refusal("to", message).hint(hint));
        }
        self.check_qualities(check);
        check_token(check, self.token.as_deref());
        check_codec(check, (self.program, self.codec));
        check_trials(check, self.program, self.field_trials.as_deref());
        if let Some(to) = &self.to
            && let Some(viewer) = check.peer::<WebrtcViewer>(to)
        {
            let message = format!("`{to}` makes an offer itself, to `{}`", or_none(&viewer.from));
            let refusal = check.refusal("to", message).hint("remove `to`, or the viewer's `from`");
            if viewer.from.is_some() {
                check.push(refusal);
            } else {
                check_same_token(check, &self.token, &viewer.token, to);
                check_same_codec(check, (self.codec, viewer.codec), to);
            }
        }
    }
}

impl WebrtcPublisher {
    /// Simulcast is of several viewers, of an encoder of ours.
    fn check_qualities(&self, check: &mut Check<'_>) {
        if self.qualities.is_empty() {
            return;
        }
        let rates = [self.max_rate].into_iter().chain(self.qualities.iter().copied());
        let rates: Vec<BitRate> = rates.collect();
        if !rates.is_sorted_by(|higher, lower| higher > lower) {
            let found = rates.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let refusal = check.refusal("qualities", format!("max_rate and qualities are {found}"));
            check.push(refusal.expected("each below the one before"));
        }
        let refused = match (self.program, &self.to) {
            (WebrtcProgram::Chromium, _) => "the page in Chromium sends one quality",
            (WebrtcProgram::Pion, _) => "pion's program sends one quality",
            (WebrtcProgram::Suiro, Some(_)) => "a publisher with `to` has one viewer",
            (WebrtcProgram::Suiro, None) => return,
        };
        check.push(check.refusal("qualities", refused).hint("remove qualities"));
    }
}

impl Kind for WebrtcViewer {
    fn listens(&self) -> Vec<Listens> {
        if self.from.is_some() { vec![] } else { vec![Listens::tcp(self.port, "port")] }
    }

    fn renumber(&mut self, n: u16) -> Option<()> {
        shift(&mut self.port, n, 1)
    }

    fn references(&mut self) -> Vec<Reference<&mut String>> {
        let (key, kinds, media) = ("from", &[WebrtcPublisher::NAME], Flow::Comes);
        let from = self.from.as_mut();
        from.map(|name| Reference { key, name, kinds, media }).into_iter().collect()
    }

    fn needs(&self) -> Vec<Need<'_>> {
        self.program.needs(self.field_trials.as_deref())
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
        if self.program == WebrtcProgram::Pion {
            let message = "pion only publishes: it has neither a decoder nor a jitter buffer";
            let hint = "remove endpoint, or set \"suiro\" or \"chromium\"";
            check.push(check.refusal("endpoint", message).hint(hint));
        }
        if self.program == WebrtcProgram::Chromium && self.viewer != Policy::default() {
            let message = "Chromium has a jitter buffer of its own";
            check.push(check.refusal("viewer", message).hint("remove viewer"));
        }
        if self.quality != WebrtcQuality::Auto && self.from.is_none() {
            let message = "a viewer without `from` is offered one quality";
            check.push(check.refusal("quality", message).hint("remove quality"));
        }
        if self.save && self.codec != WebrtcCodec::H264 {
            let message = format!("video in {} is not saved", self.codec);
            let hint = "remove save, and `quality` of [record]";
            check.push(check.refusal("codec", message).hint(hint));
        }
        check_token(check, self.token.as_deref());
        check_codec(check, (self.program, self.codec));
        check_trials(check, self.program, self.field_trials.as_deref());
        if let Some(from) = &self.from
            && let Some(publisher) = check.peer::<WebrtcPublisher>(from)
        {
            let message =
                format!("`{from}` makes an offer itself, to `{}`", or_none(&publisher.to));
            let refusal =
                check.refusal("from", message).hint("remove `from`, or the publisher's `to`");
            if publisher.to.is_some() {
                check.push(refusal);
            } else {
                check_same_token(check, &self.token, &publisher.token, from);
                check_same_codec(check, (self.codec, publisher.codec), from);
                if self.quality != WebrtcQuality::Auto && publisher.qualities.is_empty() {
                    let message = format!("`{from}` has one quality");
                    let hint = "remove quality, or give the publisher `qualities`";
                    check.push(check.refusal("quality", message).hint(hint));
                }
            }
        }
    }
}

fn or_none(name: &Option<String>) -> &str {
    name.as_deref().unwrap_or("no endpoint")
}

pub(super) fn check_token(check: &mut Check<'_>, token: Option<&str>) {
    let Some(token) = token else { return };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || TOKEN.contains(&byte);
    let fits = !token.is_empty() && token.len() <= TOKEN_MAX && token.bytes().all(allowed);
    let found = format!("a token of {} bytes", token.len());
    if !fits {
        let refusal = check.refusal("token", found);
        check.push(refusal.expected("1 to 256 of A-Z a-z 0-9 - . _ ~ + / ="));
    }
}

/// Our own end has one codec, and pion's frames come from its encoder.
fn check_codec(check: &mut Check<'_>, (program, codec): (WebrtcProgram, WebrtcCodec)) {
    if program != WebrtcProgram::Chromium && codec != WebrtcCodec::H264 {
        let message = format!("suiro's own encoder has H.264 alone, found `{codec}`");
        let hint = "remove codec, or set endpoint = \"chromium\" at both ends";
        check.push(check.refusal("codec", message).hint(hint));
    }
}

fn check_same_codec(
    check: &mut Check<'_>,
    (ours, theirs): (WebrtcCodec, WebrtcCodec),
    other: &str,
) {
    if ours != theirs {
        let message = format!("`{ours}`, but `{other}` has `{theirs}`");
        let hint = "give both ends the same codec; suiro's own end has H.264 alone";
        check.push(check.refusal("codec", message).hint(hint));
    }
}

/// Chromium ends at once if they are not pairs of a name and a value, each followed by a slash.
fn check_trials(check: &mut Check<'_>, program: WebrtcProgram, trials: Option<&str>) {
    let Some(trials) = trials.filter(|trials| !trials.is_empty()) else { return };
    if program != WebrtcProgram::Chromium {
        let message = "only Chromium has field trials";
        check.push(check.refusal("field_trials", message).hint("remove field_trials"));
        return;
    }
    let parts: Vec<&str> = trials.strip_suffix('/').unwrap_or_default().split('/').collect();
    let is_word =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic());
    let fits =
        trials.len() <= TRIALS_MAX && parts.len().is_multiple_of(2) && parts.iter().all(is_word);
    if !fits {
        let refusal = check.refusal("field_trials", format!("`{trials}`"));
        check.push(refusal.expected("names and values, each followed by a slash: \"A/Enabled/\""));
    }
}

fn check_same_token(
    check: &mut Check<'_>,
    ours: &Option<String>,
    theirs: &Option<String>,
    other: &str,
) {
    if ours != theirs {
        let message = format!("`{other}` requires another token");
        check.push(check.refusal("token", message).hint("give both the same token, or neither"));
    }
}

const fn codec() -> WebrtcCodec {
    WebrtcCodec::H264
}

const fn quality() -> WebrtcQuality {
    WebrtcQuality::Auto
}

const fn port() -> u16 {
    8889
}

const fn start_rate() -> BitRate {
    BitRate::from_kbps(300)
}

const fn max_rate() -> BitRate {
    BitRate::from_kbps(2500)
}
