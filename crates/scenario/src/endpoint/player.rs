//! The `player`: a client of an origin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_abr::{Algorithm, CatchUp, ChunkEstimator};
use suiro_media::spec::Format;
use suiro_strict::{Bounds, bounds, bounds_of};
use suiro_units::{Bytes, Duration, Ratio};

use super::{Delivery, Edge, Exit, Flow, Kind, Mode, Need, Origin, Program, Reference, Viewer};
use crate::check::Check;

bounds! {
    Player {
        receive_buffer: Bounds::new(Bytes::new(4_000), Bytes::new(64_000_000)),
        speed_change: Bounds::new(Ratio::ZERO, Ratio::constant(0.5)),
        max_drift: Bounds::above(Duration::ZERO, Duration::from_secs(3600)),
    }
}

/// Plays the stream of one origin until the trial ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<Player>)]
pub struct Player {
    /// The endpoint that it plays from: an `origin`, or a `cache` of one.
    pub origin: String,
    /// The protocol that it plays. Default: `hls` for the players `hlsjs` and `gstreamer`
    /// (GStreamer 1.22 misses the live edge of DASH), `dash` for the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// The program that plays. Default: `suiro`.
    #[serde(default, rename = "player")]
    pub program: Program,
    /// How suiro's player chooses rungs of the ladder. Other players use their own algorithms; for dash.js see `rules`.
    pub abr: Algorithm,
    /// dash.js only: which of its rules choose the rung. `l2a` and `lolp` run alone, the others next to its rules for a low
    /// buffer, for many switches and for requests that take too long. Default: `dynamic`, which is its own.
    #[serde(default, skip_serializing_if = "DashRules::is_default")]
    pub rules: DashRules,
    /// suiro's player and dash.js: how they estimate the throughput of a response that comes in chunks. Default: `own`.
    #[serde(default, skip_serializing_if = "Estimate::is_own")]
    pub estimate: Estimate,
    /// Limit on the media that it buffers ahead of the playhead; `vlc` and `gstreamer` decide that
    /// themselves. Default: 12 s.
    #[serde(default = "buffer")]
    pub buffer: Duration,
    /// How suiro's player downloads what it has requested. Default: `segment`.
    #[serde(default)]
    pub download: Download,
    /// suiro's player only: the kernel's receive buffer of each connection (`SO_RCVBUF`), which
    /// limits TCP's window. Default: the kernel's autotuning, which grows it with
    /// the rate of reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<Bytes>,
    /// Live only: how far behind the live edge it plays; `vlc` and `gstreamer` decide that
    /// themselves. Default: three segments, as RFC 8216 §6.3.3 advises; if the origin sends chunks, three parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_latency: Option<Duration>,
    /// Live only: how suiro's player chooses the speed that keeps it there. `lolp` is also for dash.js, which has its `sigmoid`
    /// otherwise. Default: `steps`.
    #[serde(default)]
    pub catch_up: CatchUp,
    /// Live only, suiro's player and those in a browser: by how much they may change their speed for it, at most 50 %; hls.js
    /// only plays faster. Default: suiro's player and dash.js take it from the MPD, suiro's 5 % without; hls.js does not change
    /// its speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_change: Option<Ratio>,
    /// Live only, suiro's player, dash.js and hls.js, the last two next to `target_latency`: how far they may fall behind it
    /// before they seek. Default: suiro's player and dash.js 12 s, suiro's 3 s if the origin sends chunks; hls.js its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_drift: Option<Duration>,
    /// Whether suiro's player abandons a segment that would arrive after the buffer is empty and
    /// requests it from a lower rung instead. Default: `true`.
    #[serde(default = "yes")]
    pub abandon: bool,
    /// Whether and how suiro's player, dash.js or hls.js reports its playback to the origin with each request (Common Media
    /// Client Data, CTA-5004); the origin's table `access` has it. These players send no events. An origin takes those of others, by
    /// POST to `/cmcd` (the event mode of version 2), into its table `cmcd_events`. Default: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cmcd: Option<Cmcd>,
    /// Whether suiro's player sends requests with the first packets of a connection (0-RTT) to a server of HTTP/3 that it had
    /// a connection with before. Default: `false`.
    #[serde(default)]
    pub early_data: bool,
    /// Whether the played media is written to a file in the trial's folder; suiro's player only.
    #[serde(default)]
    pub save: bool,
}

/// How a player reports its playback to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cmcd {
    /// Version 1, in the query of the URL.
    Query,
    /// Version 1, in headers of the request.
    Headers,
    /// Version 2 (CTA-5004-A), in the query of the URL.
    QueryV2,
    /// Version 2, in headers of the request.
    HeadersV2,
}

impl Cmcd {
    /// Whether it is version 2.
    pub const fn is_version_2(self) -> bool {
        matches!(self, Self::QueryV2 | Self::HeadersV2)
    }

    /// Whether it is in headers.
    pub const fn is_in_headers(self) -> bool {
        matches!(self, Self::Headers | Self::HeadersV2)
    }
}

/// A streaming protocol over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// MPEG-DASH: ISO/IEC 23009-1.
    Dash,
    /// HTTP Live Streaming: RFC 8216.
    Hls,
}

/// How a player downloads what it has requested: the traffic patterns that Rao, Lim, Barakat,
/// Legout, Towsley and Dabbous found in "Network characteristics of video streaming traffic",
/// CoNEXT 2011.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Download {
    /// Requests a segment when its buffer has room for all of it, and reads it as fast as it
    /// arrives: bursts with pauses between them. Most players do this.
    #[default]
    Segment,
    /// Requests segments one after the other and reads each only as far as its buffer has room, in
    /// blocks of up to 32 KiB. With a full buffer, TCP's receive window holds the sender back, and
    /// data flows steadily at the rate at which it is played. VLC 2 played DASH like this.
    Stream,
}

/// Rules of dash.js for the rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DashRules {
    /// Throughput while the buffer is low, BOLA while it is high.
    #[default]
    Dynamic,
    /// The highest rung below a share of the measured throughput.
    Throughput,
    /// The buffer level alone.
    Bola,
    /// L2A-LL: learns by online convex optimisation.
    L2a,
    /// LoL+: weighs throughput, latency, stalls and switches by a self-organising map.
    Lolp,
}

/// How a player estimates the throughput of a response that comes in chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Estimate {
    /// As the player does by itself. suiro's counts the bytes that came after the first read of each chunk, and makes averages by
    /// the clock; dash.js has `moof`.
    #[default]
    Own,
    /// suiro's player and dash.js: the times at which the boxes `moof` and `mdat` of each chunk came, and the mean over a segment.
    Moof,
    /// suiro's player: as `moof`, but of the last segment alone, as L2A does.
    LastSegment,
    /// suiro's player: as ACTE, a prediction by recursive least squares from a sliding window of chunks.
    Acte,
    /// dash.js: by the pieces that came, without the pauses between them.
    Data,
    /// dash.js: by the time from which the MPD says that each chunk is available.
    Aast,
}

/// How dash.js measures the throughput of a response that comes in chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DashEstimate {
    /// By the times at which the boxes `moof` and `mdat` of each chunk came.
    #[default]
    Moof,
    /// By the pieces that came, without the pauses between them.
    Data,
    /// By the time from which the MPD says that each chunk is available.
    Aast,
}

impl DashRules {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Estimate {
    fn is_own(&self) -> bool {
        *self == Self::Own
    }

    /// That of suiro's player; `None` if it does not have it.
    pub const fn of_suiro(self) -> Option<ChunkEstimator> {
        match self {
            Self::Own => Some(ChunkEstimator::Bursts),
            Self::Moof => Some(ChunkEstimator::Moof),
            Self::LastSegment => Some(ChunkEstimator::LastSegment),
            Self::Acte => Some(ChunkEstimator::Acte),
            Self::Data | Self::Aast => None,
        }
    }

    /// That of dash.js; `None` if it does not have it.
    pub const fn of_dashjs(self) -> Option<DashEstimate> {
        match self {
            Self::Own | Self::Moof => Some(DashEstimate::Moof),
            Self::Data => Some(DashEstimate::Data),
            Self::Aast => Some(DashEstimate::Aast),
            Self::LastSegment | Self::Acte => None,
        }
    }
}

impl Player {
    /// How it asks for the stream.
    pub fn protocol(&self) -> Protocol {
        self.protocol.unwrap_or(match self.program {
            // GStreamer 1.22 takes the start of a live SegmentTimeline twice: of a stream that has
            // run for a while, it waits for segments that are as much in the future.
            Program::Hlsjs | Program::Hlsjs10 | Program::Gstreamer => Protocol::Hls,
            Program::Suiro
            | Program::Vlc
            | Program::Dashjs
            | Program::Dashjs45
            | Program::Shaka => Protocol::Dash,
        })
    }
}

impl Program {
    /// Whether it can report its playback in that form.
    pub const fn sends(self, cmcd: Cmcd) -> bool {
        match self {
            Self::Suiro | Self::Dashjs | Self::Hlsjs | Self::Shaka => true,
            Self::Dashjs45 => !cmcd.is_version_2(),
            Self::Vlc | Self::Gstreamer | Self::Hlsjs10 => false,
        }
    }

    /// Whether it can play streams of that protocol.
    pub const fn plays(self, protocol: Protocol) -> bool {
        match self {
            Self::Suiro | Self::Vlc | Self::Gstreamer | Self::Shaka => true,
            Self::Dashjs | Self::Dashjs45 => matches!(protocol, Protocol::Dash),
            Self::Hlsjs | Self::Hlsjs10 => matches!(protocol, Protocol::Hls),
        }
    }
}

impl Kind for Player {
    fn references(&mut self) -> Vec<Reference<&mut String>> {
        let (key, kinds, media) = ("origin", &[Origin::NAME, Edge::NAME], Flow::Comes);
        vec![Reference { key, name: &mut self.origin, kinds, media }]
    }

    fn needs(&self) -> Vec<Need<'_>> {
        match self.program {
            Program::Suiro => Vec::new(),
            program => vec![Need::Player(program)],
        }
    }

    fn viewer(&self) -> Option<Viewer> {
        Some(Viewer { delivery: Delivery::Segments, shows_damage: false })
    }

    /// A player may have played all there is.
    fn exit(&self) -> Exit {
        Exit::Allowed
    }

    fn check(&self, check: &mut Check<'_>) {
        self.check_program(check);
        let edge = check.peer::<Edge>(&self.origin);
        let name = edge.map_or(&self.origin, |edge| &edge.origin);
        let Some(origin) = check.peer::<Origin>(name) else { return };
        if let Some(latency) = self.target_latency {
            check_latency(check, latency, origin);
        }
        let (http, server) =
            edge.map_or((origin.http, Origin::NAME), |edge| (edge.http, Edge::NAME));
        let knows = self.program == Program::Suiro || self.program.is_in_browser();
        if http.is_secure() && !knows {
            let (name, version) = (self.program.name(), http.name());
            let message =
                format!("the player `{name}` does not trust the certificate of HTTP/{version}");
            let hint = format!("remove player, or give the {server} http = \"1.1\"");
            check.push(check.refusal("player", message).hint(hint));
        }
        let Some(medium) = check.medium(&origin.media) else { return };
        if self.buffer < medium.segment {
            let message = format!("a buffer of {} is shorter than a segment", self.buffer);
            let expected = format!("at least one segment, {}; three are better", medium.segment);
            check.push(check.refusal("buffer", message).expected(expected));
        }
        if self.protocol() == Protocol::Dash && medium.format == Format::Ts {
            let message = format!("the medium `{}` is packaged only as `ts`", origin.media);
            let hint = "give the medium format = \"fmp4\" or \"both\"";
            check.push(check.refusal("protocol", message).hint(hint));
        }
    }
}

impl Player {
    fn check_program(&self, check: &mut Check<'_>) {
        let (program, protocol) = (self.program, self.protocol());
        if !program.plays(protocol) {
            let (plays, not) = match protocol {
                Protocol::Dash => ("hls", "dash"),
                Protocol::Hls => ("dash", "hls"),
            };
            let message = format!("the player `{}` does not play `{not}`", program.name());
            let hint = format!("remove protocol, or write protocol = \"{plays}\"");
            check.push(check.refusal("protocol", message).hint(hint));
        }
        if let Some(cmcd) = self.cmcd.filter(|cmcd| !program.sends(*cmcd)) {
            let version = if cmcd.is_version_2() { 2 } else { 1 };
            let message =
                format!("the player `{}` cannot send version {version} of CMCD", program.name());
            let hint = match program {
                Program::Dashjs45 => "write cmcd = \"query\" or \"headers\"",
                _ => "remove cmcd; `suiro`, `dashjs`, `hlsjs` and `shaka` support it",
            };
            check.push(check.refusal("cmcd", message).hint(hint));
        }
        self.check_settings(check);
        if self.early_data && program != Program::Suiro {
            let message = format!("the player `{}` has no early data", program.name());
            let hint = "remove early_data; only suiro's own player supports it";
            check.push(check.refusal("early_data", message).hint(hint));
        }
        if self.save && program != Program::Suiro {
            let message = format!("the player `{}` cannot save", program.name());
            let hint = "remove save; only suiro's own player supports it";
            check.push(check.refusal("save", message).hint(hint));
        }
    }
}

impl Player {
    /// What not all players know.
    fn check_settings(&self, check: &mut Check<'_>) {
        let (program, in_browser) = (self.program, self.program.is_in_browser());
        if !self.rules.is_default() && !program.is_dashjs() {
            let message = format!("the player `{}` has no such choice", program.name());
            check.push(check.refusal("rules", message).hint("remove rules; only dash.js has it"));
        }
        let (estimates, hint) = match program {
            Program::Suiro => (
                self.estimate.of_suiro().is_some(),
                r#"write estimate = "own", "moof", "last-segment" or "acte""#,
            ),
            _ if program.is_dashjs() => (
                self.estimate.of_dashjs().is_some(),
                r#"write estimate = "own", "moof", "data" or "aast""#,
            ),
            _ => {
                (self.estimate.is_own(), "remove estimate; only `suiro` and dash.js have a choice")
            }
        };
        if !estimates {
            let message = format!("the player `{}` has no such estimate", program.name());
            check.push(check.refusal("estimate", message).hint(hint));
        }
        let is_own = program == Program::Suiro;
        let keeps = is_own || in_browser;
        let seeks = keeps && program != Program::Shaka;
        let of_some = [
            (
                "speed_change",
                self.speed_change.is_some() && !keeps,
                "`suiro` and players in a browser",
            ),
            ("max_drift", self.max_drift.is_some() && !seeks, "`suiro`, dash.js and hls.js"),
        ];
        for (key, _, who) in of_some.into_iter().filter(|(_, wrong, _)| *wrong) {
            let message = format!("the player `{}` has no such setting", program.name());
            let hint = format!("remove {key}; it is for {who}");
            check.push(check.refusal(key, message).hint(hint));
        }
        if in_browser && seeks && self.max_drift.is_some() && self.target_latency.is_none() {
            let message = "the drift is from a target latency, and there is none";
            check.push(check.refusal("max_drift", message).hint("add target_latency"));
        }
    }
}

fn check_latency(check: &mut Check<'_>, latency: Duration, origin: &Origin) {
    if origin.mode == Mode::Vod {
        let refusal =
            check.refusal("target_latency", "the origin is not live: it has no live edge");
        check.push(refusal.hint("remove target_latency, or give the origin mode = \"live\""));
        return;
    }
    // A segment, or a chunk, can be fetched when its last frame has passed: its first is then as old.
    let segment = check.medium(&origin.media).map_or(Duration::ZERO, |medium| medium.segment);
    let (least, unit) = match origin.chunk {
        Some(chunk) => (chunk, "chunk"),
        None => (segment, "segment"),
    };
    if !(least..=origin.window).contains(&latency) {
        let refusal = check.refusal("target_latency", format!("a target latency of {latency}"));
        let window = origin.window;
        let expected = format!("from one {unit}, {least}, to the window, {window}");
        check.push(refusal.expected(expected));
    }
}

const fn yes() -> bool {
    true
}

const fn buffer() -> Duration {
    Duration::from_secs(12)
}
