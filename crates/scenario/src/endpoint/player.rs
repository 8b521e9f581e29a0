//! The `player`: a client of an origin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_abr::{Algorithm, CatchUp};
use suiro_media::spec::Format;
use suiro_strict::{Bounds, bounds, bounds_of};
use suiro_units::{Bytes, Duration};

use super::{Delivery, Edge, Exit, Flow, Kind, Mode, Need, Origin, Reference, Viewer};
use crate::check::Check;

bounds! {
    Player { receive_buffer: Bounds::new(Bytes::new(4_000), Bytes::new(64_000_000)) }
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
    /// How suiro's player chooses rungs of the ladder. Other players use their own algorithms.
    pub abr: Algorithm,
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
    /// Live only: how suiro's player chooses the speed that keeps it there. Default: `steps`.
    #[serde(default)]
    pub catch_up: CatchUp,
    /// Whether suiro's player abandons a segment that would arrive after the buffer is empty and
    /// requests it from a lower rung instead. Default: `true`.
    #[serde(default = "yes")]
    pub abandon: bool,
    /// Whether and how suiro's player reports its playback to the origin with each request (Common Media Client Data,
    /// CTA-5004); the origin's table `access` has it. Default: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cmcd: Option<Cmcd>,
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

/// A program that plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// suiro's own headless player.
    #[default]
    Suiro,
    /// VLC 3.
    Vlc,
    /// GStreamer's `playbin3`.
    Gstreamer,
    /// dash.js in Chromium: DASH only.
    Dashjs,
    /// hls.js in Chromium: HLS only.
    Hlsjs,
}

impl Player {
    /// How it asks for the stream.
    pub fn protocol(&self) -> Protocol {
        self.protocol.unwrap_or(match self.program {
            // GStreamer 1.22 takes the start of a live SegmentTimeline twice: of a stream that has
            // run for a while, it waits for segments that are as much in the future.
            Program::Hlsjs | Program::Gstreamer => Protocol::Hls,
            Program::Suiro | Program::Vlc | Program::Dashjs => Protocol::Dash,
        })
    }
}

impl Program {
    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Suiro => "suiro",
            Self::Vlc => "vlc",
            Self::Gstreamer => "gstreamer",
            Self::Dashjs => "dashjs",
            Self::Hlsjs => "hlsjs",
        }
    }

    /// Whether it can play streams of that protocol.
    pub const fn plays(self, protocol: Protocol) -> bool {
        match self {
            Self::Suiro | Self::Vlc | Self::Gstreamer => true,
            Self::Dashjs => matches!(protocol, Protocol::Dash),
            Self::Hlsjs => matches!(protocol, Protocol::Hls),
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
        if http.is_secure() && self.program != Program::Suiro {
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
        if self.cmcd.is_some() && program != Program::Suiro {
            let message = format!("the player `{}` cannot send CMCD", program.name());
            let hint = "remove cmcd; only suiro's own player supports it";
            check.push(check.refusal("cmcd", message).hint(hint));
        }
        if self.save && program != Program::Suiro {
            let message = format!("the player `{}` cannot save", program.name());
            let hint = "remove save; only suiro's own player supports it";
            check.push(check.refusal("save", message).hint(hint));
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
