//! Endpoints: the processes that a trial runs in its hosts.
//!
//! A kind of endpoint is a module here with a struct that implements [`Kind`], and a line in the list of kinds below.
//! What runs it is a function `run_job` in its own crate, and a line in `RUNNERS` of `suiro endpoint`.

mod command;
mod conference;
mod control;
mod edge;
mod http;
mod kind;
mod moq;
mod multicast;
mod origin;
mod pause;
mod player;
mod program;
mod rtp;
mod spray;
mod uncompressed;
mod web;
mod webrtc;
mod wrapper;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use suiro_strict::{Bounds, bounds, bounds_of};
use suiro_units::Duration;

pub use command::{Exit, Ready, StopSignal};
pub use control::{NodeStorage, OperatorAction};
pub use edge::EdgeFault;
pub use http::HttpVersion;
pub use kind::{Congestion, Delivery, Flow, Kind, Listens, Medium, Need, Reference, Viewer};
pub use moq::{BrowserCongestion, MoqAdaptation, MoqData, MoqProgram, MoqStreams};
pub use origin::{CHUNK, Declares, HlsRungs, Mode, PART};
pub use pause::Pause;
pub use player::{Cmcd, DashEstimate, DashRules, Download, Estimate, Protocol};
pub use program::Program;
pub use rtp::{FeedbackFormat, OnBreak, Pace, RoundTrip, RtcpTimes, RtpCodec, VersionRate};
pub use uncompressed::{UncompressedFormat, UncompressedPicture, UncompressedSource};
pub use web::ObjectSizes;
pub use webrtc::{PION, WEBRTC_RATES, WebrtcCodec, WebrtcProgram, WebrtcQuality};

use crate::document::{self, Node};
use crate::refusal::{Refusal, Span};

/// One process of a trial: who it is, where it runs, and what it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Its name: the key below `[endpoints]`; where that means several, the key and a number.
    pub name: String,
    /// The host that it runs in.
    pub host: String,
    /// When it is started, counted from the trial's epoch.
    pub start: Duration,
    /// When it is asked to stop, counted from the trial's epoch; `None`: when the trial ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Duration>,
    /// What it means that it does not run for a while.
    #[serde(default)]
    pub absence: Absence,
    /// What it is.
    #[serde(flatten)]
    pub spec: EndpointSpec,
}

/// What it means if an endpoint does not run for a while, because it was stopped or waited for a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Absence {
    /// More than 150 ms make the trial invalid: its results would be those of the machine, not of the network.
    #[default]
    Fails,
    /// It is recorded only: the scenario itself keeps the CPU busy.
    Ignored,
}

/// Makes everything that needs all kinds from one list of them.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:literal => $module:ident::$kind:ident,)+) => {
        $(pub use $module::$kind;)+

        /// What an endpoint is and does.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        pub enum EndpointSpec {
            $($(#[$doc])* #[serde(rename = $name)] $kind($kind),)+
        }

        impl EndpointSpec {
            /// Its kind, as written in a scenario and in records.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $name,)+
                }
            }

            /// What it says about itself.
            pub const fn kind(&self) -> &dyn Kind {
                match self {
                    $(Self::$kind(kind) => kind,)+
                }
            }

            pub(crate) const fn kind_mut(&mut self) -> &mut dyn Kind {
                match self {
                    $(Self::$kind(kind) => kind,)+
                }
            }
        }

        $(impl $kind {
            /// The `kind` of such an endpoint in a scenario.
            pub const NAME: &'static str = $name;
        })+

        /// Every kind, in the order of the documentation.
        pub(crate) const KINDS: &[Entry] = &[$(Entry {
            name: $name,
            read: |node, what| document::read(node, what, &ALSO).map(EndpointSpec::$kind),
            schema: <$kind as JsonSchema>::json_schema,
        }),+];
    };
}

// The list of kinds.
kinds! {
    /// Serves media over HTTP as DASH and HLS.
    "origin" => origin::Origin,
    /// Keeps what an origin serves, and passes it on.
    "cache" => edge::Edge,
    /// Plays media from an origin, without a screen.
    "player" => player::Player,
    /// Sends video over RTP.
    "rtp-sender" => rtp::RtpSender,
    /// Receives video over RTP, without a screen.
    "rtp-receiver" => rtp::RtpReceiver,
    /// Publishes video over WebRTC.
    "webrtc-publisher" => webrtc::WebrtcPublisher,
    /// Receives video over WebRTC, without a screen.
    "webrtc-viewer" => webrtc::WebrtcViewer,
    /// Publishes video by Media over QUIC.
    "moq-publisher" => moq::MoqPublisher,
    /// Passes broadcasts on by Media over QUIC.
    "moq-relay" => moq::MoqRelay,
    /// Receives video by Media over QUIC, without a screen.
    "moq-viewer" => moq::MoqViewer,
    /// Sends a stream of uncompressed video.
    "uncompressed-sender" => uncompressed::UncompressedSender,
    /// Receives streams of uncompressed video.
    "uncompressed-receiver" => uncompressed::UncompressedReceiver,
    /// Sends packets to a multicast group at a constant rate.
    "multicast-sender" => multicast::MulticastSender,
    /// Joins and leaves a multicast group.
    "multicast-receiver" => multicast::MulticastReceiver,
    /// Sends the streams of uncompressed video that are activated over NMOS.
    "uncompressed-node" => control::UncompressedNode,
    /// Knows the nodes that live.
    "uncompressed-registry" => control::UncompressedRegistry,
    /// Commands nodes: which stream is sent by which.
    "uncompressed-controller" => control::UncompressedController,
    /// Serves objects of any size over HTTP.
    "web-server" => web::WebServer,
    /// Loads pages from a web server, as people do.
    "web-clients" => web::WebClients,
    /// One end of a video call.
    "conference" => conference::Conference,
    /// Keeps the CPU of a host busy with small packets.
    "spray" => spray::Spray,
    /// Any program.
    "command" => command::Command,
}

/// One kind in the list.
pub(crate) struct Entry {
    /// The value of the key `kind`.
    pub name: &'static str,
    /// Reads the keys of this kind. The text names the section in messages.
    pub read: fn(Node<'_>, &str) -> Result<EndpointSpec, Refusal<Span>>,
    /// The JSON Schema of these keys.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

/// The names of all kinds, as scenarios write them.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name)
}

/// A TCP or UDP port.
pub const PORT: Bounds<u16> = Bounds::new(1, u16::MAX);

bounds! { Common { count: Bounds::new(0, 100) } }

/// Keys that an endpoint of any kind has.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<Common>)]
pub(crate) struct Common {
    /// Host that it runs in. A trailing `*` stands for every host whose name begins this way:
    /// `client*` is `client1`, `client2`, ….
    pub host: String,
    /// How many copies run in each of its hosts; 0 leaves it out. Default: 1. If there
    /// are several in all, they are named after it and numbered from 1: `viewer1`, `viewer2`, ….
    /// Copies in one host get consecutive ports from `port` on (for RTP, consecutive even ones). An
    /// endpoint that refers to `viewer` refers to the copy with its own number, so both must have
    /// the same count. Each copy has its own random seed.
    #[serde(default = "one")]
    pub count: u16,
    /// Whether it takes part at all; if not, it is left out, as with a `count` of 0. Use it where an axis chooses among endpoints
    /// and `count` is already taken, for example by another axis.
    #[serde(default = "yes")]
    pub when: bool,
    /// When it is started, counted from the trial's start. Endpoints that start at the same time
    /// start in the order of the file, each when the one before is ready.
    #[serde(default)]
    pub start: Duration,
    /// When it is asked to stop, counted from the trial's start: later than `start`. It must stop without a fault, as at the end
    /// of the trial; what it means that a program exits by itself does not apply then. Default: when the trial ends, which a later
    /// time means as well.
    #[serde(default)]
    pub end: Option<Duration>,
    /// The consequence if it does not run for more than 150 ms, because it was stopped or waited for a CPU.
    #[serde(default)]
    pub absence: Absence,
}

impl Common {
    /// Its keys.
    pub const KEYS: [&str; 6] = ["host", "count", "when", "start", "end", "absence"];
}

/// Keys that every endpoint may have in addition to those of its kind, for suggestions.
const ALSO: [&str; 7] = ["kind", "host", "count", "when", "start", "end", "absence"];

const fn one() -> u16 {
    1
}

const fn yes() -> bool {
    true
}

impl EndpointSpec {
    /// Reads the keys of the kind `name`, one of [`KINDS`]. `what` names the section in messages.
    pub(crate) fn read(name: &str, node: Node<'_>, what: &str) -> Result<Self, Refusal<Span>> {
        let kind = KINDS.iter().find(|kind| kind.name == name);
        let kind = kind.expect("the caller took the name from the list");
        (kind.read)(node, what)
    }

    /// The endpoint as one kind; `None` if it is of another.
    pub fn downcast<K: Kind>(&self) -> Option<&K> {
        let any: &dyn std::any::Any = self.kind();
        any.downcast_ref()
    }

    /// The port that other endpoints reach it at; `None` if it opens none.
    pub fn port(&self) -> Option<u16> {
        self.kind().listens().first().map(|listens| *listens.ports.start())
    }

    /// The program that it starts; `None` for kinds that run as `suiro endpoint`.
    pub fn command(&self) -> Option<&Command> {
        self.kind().command()
    }

    /// The endpoints that it refers to.
    pub fn references(&self) -> Vec<Reference> {
        let mut copy = self.clone();
        let references = copy.kind_mut().references().into_iter();
        let own = |Reference { key, name, kinds, media }: Reference<&mut String>| Reference {
            key,
            name: name.clone(),
            kinds,
            media,
        };
        references.map(own).collect()
    }

    /// Copy number `n` of one host, counted from 0, with ports of its own; `None` if no port is left.
    pub(crate) fn copy(&self, n: u16) -> Option<Self> {
        let mut copy = self.clone();
        copy.kind_mut().renumber(n)?;
        Some(copy)
    }
}

/// What kinds with a TCP port, field `port`, say of it.
macro_rules! listens_tcp {
    () => {
        fn listens(&self) -> Vec<super::Listens> {
            vec![super::Listens::tcp(self.port, "port")]
        }

        fn renumber(&mut self, n: u16) -> Option<()> {
            super::shift(&mut self.port, n, 1)
        }
    };
}
use listens_tcp;

/// What kinds with a TCP port and a congestion control, fields `port` and `tcp`, say of them.
macro_rules! serves_tcp {
    () => {
        super::listens_tcp!();

        fn congestion(&self) -> Option<super::Congestion<'_>> {
            Some(super::Congestion { key: "tcp", name: self.tcp.as_deref()? })
        }
    };
}
use serves_tcp;

/// The port of copy number `n` of an endpoint that takes `step` ports.
fn shift(port: &mut u16, n: u16, step: u16) -> Option<()> {
    *port = port.checked_add(n.checked_mul(step)?)?;
    Some(())
}
