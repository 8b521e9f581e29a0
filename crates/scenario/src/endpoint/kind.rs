//! What a kind of endpoint says about itself. Everything that treats endpoints alike (the checks, the copies, the
//! lab, the screens) asks here, so that a new kind needs no change there.

use std::any::Any;
use std::fmt::Debug;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use suiro_media::live::FootageSpec;
use suiro_media::spec::Codec;
use suiro_record::words::Transport;
use suiro_strict::Bounded;
use suiro_units::Duration;

use super::{Command, Exit, HttpVersion, Pause, Program};
use crate::check::Check;

/// A kind of endpoint, as the keys of one endpoint describe it.
///
/// Every method has a default that fits an endpoint that opens no port, refers to no other endpoint, needs nothing of the host
/// and must run until the trial ends.
///
/// Its [`Bounded`] says which values its keys may have: `bounds! { MyKind {} }` if they may have any.
pub trait Kind: Any + Debug + Bounded {
    /// The ports that it opens in its host. The first port of the first is the one that its peers receive.
    fn listens(&self) -> Vec<Listens> {
        Vec::new()
    }

    /// Gives the copy number `n` of one host, counted from 0, ports of its own. `None` if no port is left.
    fn renumber(&mut self, n: u16) -> Option<()> {
        let _ = n;
        Some(())
    }

    /// The congestion control that it asks the kernel for, and the key that sets it.
    fn congestion(&self) -> Option<Congestion<'_>> {
        None
    }

    /// The version of HTTP that its clients use; `None` if it serves no media over HTTP.
    fn http(&self) -> Option<HttpVersion> {
        None
    }

    /// The endpoints that it refers to. The names can be changed: a reference to a section with several copies
    /// becomes one to the copy with the same number.
    fn references(&mut self) -> Vec<Reference<&mut String>> {
        Vec::new()
    }

    /// The multicast groups that it sends to or joins, each with the key that names it.
    fn groups(&self) -> Vec<(&'static str, Ipv4Addr)> {
        Vec::new()
    }

    /// The prepared media that it needs.
    fn medium(&self) -> Option<Medium<'_>> {
        None
    }

    /// What its camera shows, if it has one.
    fn camera(&self) -> Option<&FootageSpec> {
        None
    }

    /// The same, so that the path of its video can be resolved.
    fn camera_mut(&mut self) -> Option<&mut FootageSpec> {
        None
    }

    /// When it sends no video although it could, in order.
    fn pauses(&self) -> &[Pause] {
        &[]
    }

    /// Whether it sends sound, which those who ask for its video ask for as well.
    fn has_sound(&self) -> bool {
        false
    }

    /// The programs that must be installed for it to run.
    fn needs(&self) -> Vec<Need<'_>> {
        Vec::new()
    }

    /// How it shows video, if it has a viewer.
    fn viewer(&self) -> Option<Viewer> {
        None
    }

    /// Makes it keep what its viewer's screen is made of, because `[record] quality` asks for the screen.
    fn keep_for_screen(&mut self) {}

    /// What it means that it exits before the trial ends.
    fn exit(&self) -> Exit {
        Exit::Fails
    }

    /// The program that it starts; `None` for kinds that run as `suiro endpoint`.
    fn command(&self) -> Option<&Command> {
        None
    }

    /// Its own checks: what does not go together. Bounds, ports, references, media and the name of the
    /// congestion control are checked for every kind from what the other methods say.
    fn check(&self, check: &mut Check<'_>) {
        let _ = check;
    }
}

/// Ports that an endpoint opens in its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listens {
    /// The protocol. A TCP and a UDP port of the same number do not clash.
    pub transport: Transport,
    /// The ports, all of them.
    pub ports: RangeInclusive<u16>,
    /// The key that sets it.
    pub key: &'static str,
}

impl Listens {
    /// One TCP port.
    pub const fn tcp(port: u16, key: &'static str) -> Self {
        Self { transport: Transport::Tcp, ports: port..=port, key }
    }

    /// One UDP port.
    pub const fn udp(port: u16, key: &'static str) -> Self {
        Self { transport: Transport::Udp, ports: port..=port, key }
    }

    /// A UDP port for RTP and the next one for RTCP (RFC 3550 §11).
    pub const fn rtp(port: u16, key: &'static str) -> Self {
        Self { transport: Transport::Udp, ports: port..=port.saturating_add(1), key }
    }
}

/// A congestion control that an endpoint asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Congestion<'a> {
    /// The key that asks for it.
    pub key: &'static str,
    /// Its name, as the kernel writes it.
    pub name: &'a str,
}

/// One endpoint that another refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference<N = String> {
    /// The key that refers.
    pub key: &'static str,
    /// The name of the other endpoint.
    pub name: N,
    /// The kinds that the other may be of.
    pub kinds: &'static [&'static str],
    /// Which way media flows between the two.
    pub media: Flow,
}

/// Which way media flows between an endpoint and one that it refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// From the other to this one.
    Comes,
    /// From this one to the other.
    Goes,
    /// No media flows.
    None,
}

/// Prepared media that an endpoint needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Medium<'a> {
    /// The key that names it.
    pub key: &'static str,
    /// Its name below `[media]`.
    pub name: &'a str,
    /// The codec that it must have.
    pub codec: Codec,
    /// The longest chunk in which segments are sent; `None`: they are sent whole.
    pub chunk: Option<Duration>,
}

/// A program that must be installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need<'a> {
    /// A program of this name in PATH, or at this path if it holds a `/`.
    Command(&'a str),
    /// A media player, with the library that it loads.
    Player(Program),
    /// The browser Chromium.
    Chromium,
    /// A field trial of libwebrtc that Chromium has, by its name.
    FieldTrial(&'a str),
    /// A program that `make peers` builds, by its name.
    Peer(&'static str),
}

/// How an endpoint shows video.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Viewer {
    /// How the video comes.
    pub delivery: Delivery,
    /// Whether frames with a loss are shown, as the decoder made them, instead of being left out.
    pub shows_damage: bool,
}

/// How a viewer's video comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// In segments that it fetches.
    Segments,
    /// As a stream, frame by frame.
    Stream,
}
