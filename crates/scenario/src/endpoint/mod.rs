//! Endpoints: the processes that a trial runs in its hosts.
//!
//! A kind of endpoint is one module with one struct here, one variant of [`EndpointSpec`] and one
//! line in [`EndpointSpec::read`]; what it refers to is checked in `check.rs`.

mod command;
mod origin;
mod player;
mod rtp;
mod uncompressed;
mod web;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_media::live::FootageSpec;
use suiro_units::Duration;

pub use command::{Command, Exit, Ready, StopSignal};
pub use origin::{HlsRungs, Mode, Origin};
pub use player::{Download, Player, Program, Protocol};
pub use rtp::{OnBreak, RtcpTimes, RtpCodec, RtpReceiver, RtpSender, VersionRate};
pub use uncompressed::{
    UncompressedFormat, UncompressedReceiver, UncompressedSender, UncompressedSource,
};
pub use web::{WebClients, WebServer};

use crate::document::{self, Node};
use crate::error::Issue;

/// One process of a trial: who it is, where it runs, and what it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Its name: the key below `[endpoints]`; where that means several, the key and a number.
    pub name: String,
    /// The host that it runs in.
    pub host: String,
    /// When it is started, counted from the trial's epoch.
    pub start: Duration,
    /// What it is.
    #[serde(flatten)]
    pub spec: EndpointSpec,
}

/// What an endpoint is and does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EndpointSpec {
    /// Serves media over HTTP as DASH and HLS.
    Origin(Origin),
    /// Plays media from an origin, without a screen.
    Player(Player),
    /// Sends video over RTP.
    RtpSender(RtpSender),
    /// Receives video over RTP, without a screen.
    RtpReceiver(RtpReceiver),
    /// Sends a stream of uncompressed video.
    UncompressedSender(UncompressedSender),
    /// Receives streams of uncompressed video.
    UncompressedReceiver(UncompressedReceiver),
    /// Serves objects of any size over HTTP.
    WebServer(WebServer),
    /// Loads pages from a web server, as people do.
    WebClients(WebClients),
    /// Any program.
    Command(Command),
}

/// Keys that an endpoint of any kind has.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Common {
    /// Host that it runs in. A trailing `*` means each host whose name begins so: `client*` is
    /// `client1`, `client2`, ….
    pub host: String,
    /// How many of it run in its host, in each of its hosts, 0 to 100; 0 leaves it out. Default: 1.
    /// Where it comes to several, over all hosts, they are named after it and numbered from 1:
    /// `viewer1`, `viewer2`, ….
    /// Those of one host have ports of their own, counted up from `port`: each the next, of RTP the
    /// next even one. One that refers to `viewer` refers to the one with its own number, so there must
    /// be as many of both. Each has a chance of its own.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 100))]
    pub count: u16,
    /// When it is started, counted from the trial's start. Endpoints that start at the same time
    /// start in the order of the file, each when the one before is ready.
    #[serde(default)]
    pub start: Duration,
}

impl Common {
    /// Its keys.
    pub const KEYS: [&str; 3] = ["host", "count", "start"];
}

const fn one() -> u16 {
    1
}

impl EndpointSpec {
    /// The values of `kind`.
    pub(crate) const KINDS: [&str; 9] = [
        "origin",
        "player",
        "rtp-sender",
        "rtp-receiver",
        "uncompressed-sender",
        "uncompressed-receiver",
        "web-server",
        "web-clients",
        "command",
    ];

    /// Reads the keys of one kind, one of [`Self::KINDS`]. `what` names the section in messages.
    pub(crate) fn read(kind: &str, node: Node<'_>, what: &str) -> Result<Self, Issue> {
        let also = &["kind", "host", "count", "start"];
        match kind {
            "origin" => document::read(node, what, also).map(Self::Origin),
            "player" => document::read(node, what, also).map(Self::Player),
            "rtp-sender" => document::read(node, what, also).map(Self::RtpSender),
            "rtp-receiver" => document::read(node, what, also).map(Self::RtpReceiver),
            "uncompressed-sender" => document::read(node, what, also).map(Self::UncompressedSender),
            "uncompressed-receiver" => {
                document::read(node, what, also).map(Self::UncompressedReceiver)
            }
            "web-server" => document::read(node, what, also).map(Self::WebServer),
            "web-clients" => document::read(node, what, also).map(Self::WebClients),
            _ => document::read(node, what, also).map(Self::Command),
        }
    }

    /// Its kind, as written in a scenario and in records.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Origin(_) => "origin",
            Self::Player(_) => "player",
            Self::RtpSender(_) => "rtp-sender",
            Self::RtpReceiver(_) => "rtp-receiver",
            Self::UncompressedSender(_) => "uncompressed-sender",
            Self::UncompressedReceiver(_) => "uncompressed-receiver",
            Self::WebServer(_) => "web-server",
            Self::WebClients(_) => "web-clients",
            Self::Command(_) => "command",
        }
    }

    /// The program that it is; `None` of our own kinds, which run as `suiro endpoint`.
    pub const fn command(&self) -> Option<&Command> {
        match self {
            Self::Command(command) => Some(command),
            Self::Origin(_)
            | Self::Player(_)
            | Self::RtpSender(_)
            | Self::RtpReceiver(_)
            | Self::UncompressedSender(_)
            | Self::UncompressedReceiver(_)
            | Self::WebServer(_)
            | Self::WebClients(_) => None,
        }
    }

    /// What it means that it exits before the trial ends. A player may have played all there is.
    pub const fn exit(&self) -> Exit {
        match self {
            Self::Origin(_)
            | Self::RtpSender(_)
            | Self::RtpReceiver(_)
            | Self::UncompressedSender(_)
            | Self::UncompressedReceiver(_)
            | Self::WebServer(_)
            | Self::WebClients(_) => Exit::Fails,
            Self::Player(_) => Exit::Allowed,
            Self::Command(command) => command.exit,
        }
    }

    /// The TCP or UDP port that others reach it at; `None` if it serves nothing.
    pub const fn port(&self) -> Option<u16> {
        match self {
            Self::Origin(origin) => Some(origin.port),
            Self::RtpSender(sender) => Some(sender.port),
            Self::RtpReceiver(receiver) => Some(receiver.port),
            Self::WebServer(server) => Some(server.port),
            Self::Player(_)
            | Self::UncompressedSender(_)
            | Self::UncompressedReceiver(_)
            | Self::WebClients(_) => None,
            Self::Command(command) => match command.ready {
                Ready::Port(port) => Some(port),
                Ready::AtOnce | Ready::Line(_) => None,
            },
        }
    }

    /// The same as the copy `n` of one host, from 0, with a port of its own; `None` if there are not so
    /// many ports.
    pub(crate) fn copy(&self, n: u16) -> Option<Self> {
        let mut copy = self.clone();
        let (port, step) = match &mut copy {
            Self::Origin(origin) => (&mut origin.port, 1),
            Self::WebServer(server) => (&mut server.port, 1),
            Self::RtpSender(sender) => (&mut sender.port, 2),
            Self::RtpReceiver(receiver) => (&mut receiver.port, 2),
            Self::Player(_)
            | Self::UncompressedSender(_)
            | Self::UncompressedReceiver(_)
            | Self::WebClients(_)
            | Self::Command(_) => return Some(copy),
        };
        *port = port.checked_add(n.checked_mul(step)?)?;
        Some(copy)
    }

    /// The endpoint that it refers to, and the key that says so.
    pub(crate) fn refers_to(&mut self) -> Option<(&'static str, &mut String)> {
        match self {
            Self::Player(player) => Some(("origin", &mut player.origin)),
            Self::RtpSender(sender) => Some(("to", &mut sender.to)),
            Self::UncompressedSender(sender) => Some(("to", &mut sender.to)),
            Self::WebClients(clients) => Some(("server", &mut clients.server)),
            Self::Origin(_)
            | Self::RtpReceiver(_)
            | Self::UncompressedReceiver(_)
            | Self::WebServer(_)
            | Self::Command(_) => None,
        }
    }

    /// What its camera sees, if it has one.
    pub const fn camera(&self) -> Option<&FootageSpec> {
        match self {
            Self::RtpSender(sender) => sender.camera.as_ref(),
            _ => None,
        }
    }

    /// The name of the media that it needs a package of.
    pub fn media(&self) -> Option<&str> {
        match self {
            Self::Origin(origin) => Some(&origin.media),
            Self::RtpSender(sender) => sender.media.as_deref(),
            _ => None,
        }
    }
}
