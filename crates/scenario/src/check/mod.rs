//! What a scenario's endpoints refer to, and what cannot be: across sections, after each section
//! could be read.

use std::collections::{BTreeMap, BTreeSet};

use suiro_media::MediaSpec;
use suiro_media::spec::{Codec, Format};
use suiro_units::Duration;

use crate::document::{self, Node};
use crate::endpoint::{
    Command, Endpoint, EndpointSpec, Mode, Origin, Player, Program, Protocol, Ready,
};
use crate::error::Issue;

mod rtp;
mod uncompressed;
mod web;

/// Sizes of a socket buffer that make sense, in bytes.
const RECEIVE_BUFFER: std::ops::RangeInclusive<u64> = 4_000..=64_000_000;

/// How much media an origin may have on demand.
const LENGTH: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(24 * 3600);

/// Longest name of a congestion control (`TCP_CA_NAME_MAX` of Linux, less the terminator).
const TCP_NAME_MAX: usize = 15;

/// Longest time that a command may take to stop.
const GRACE_MAX: Duration = Duration::from_secs(60);

/// Most endpoints of a trial.
const ENDPOINTS_MAX: usize = 1000;

/// An endpoint, and the key below `[endpoints]` that it was written under.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub section: String,
    /// Which of that section's endpoints it is, from 0.
    pub number: usize,
    pub endpoint: Endpoint,
}

/// The endpoints of a cell, with what they refer to.
pub(crate) struct Check<'c, 't> {
    pub body: &'c Node<'t>,
    /// `None` if it cannot be read.
    pub duration: Option<Duration>,
    /// The media; `None` where one cannot be read.
    pub media: &'c BTreeMap<String, Option<MediaSpec>>,
    pub endpoints: &'c [Placed],
    /// Names of endpoints that cannot be read. That has been told: to refer to them is no fault.
    pub unread: &'c [String],
}

impl Check<'_, '_> {
    /// Tells what is wrong.
    pub fn run(&self, issues: &mut Vec<Issue>) {
        let count = self.endpoints.len() + self.unread.len();
        if !(1..=ENDPOINTS_MAX).contains(&count) {
            let place = document::place(self.body, &["endpoints"]);
            let message = format!("{count} endpoints");
            issues.push(Issue::new(place, message).expected(format!("1 to {ENDPOINTS_MAX}")));
        }
        self.names(issues);
        self.ports(issues);
        for placed in self.endpoints {
            let start = placed.endpoint.start;
            if let Some(end) = self.duration.filter(|end| start >= *end) {
                let issue = self.issue(placed, "start", format!("a start at {start}"));
                issues.push(issue.expected(format!("before the trial ends, at {end}")));
            }
            match &placed.endpoint.spec {
                EndpointSpec::Origin(origin) => self.origin(placed, origin, issues),
                EndpointSpec::Player(player) => self.player(placed, player, issues),
                EndpointSpec::RtpSender(sender) => self.rtp_sender(placed, sender, issues),
                EndpointSpec::RtpReceiver(receiver) => self.rtp_receiver(placed, receiver, issues),
                EndpointSpec::UncompressedSender(sender) => {
                    self.uncompressed_sender(placed, sender, issues);
                }
                EndpointSpec::UncompressedReceiver(receiver) => {
                    self.uncompressed_receiver(placed, receiver, issues);
                }
                EndpointSpec::WebServer(server) => {
                    self.congestion(placed, server.tcp.as_deref(), issues);
                }
                EndpointSpec::WebClients(clients) => self.web_clients(placed, clients, issues),
                EndpointSpec::Command(command) => self.command(placed, command, issues),
            }
        }
    }

    /// An issue with the value of one key of an endpoint.
    fn issue(&self, placed: &Placed, key: &str, message: String) -> Issue {
        Issue::new(document::place(self.body, &["endpoints", &placed.section, key]), message)
    }

    fn names(&self, issues: &mut Vec<Issue>) {
        let mut seen = BTreeSet::new();
        for placed in self.endpoints {
            let name = &placed.endpoint.name;
            if !seen.insert(name) {
                let place = document::key_place(self.body, &["endpoints", &placed.section]);
                let issue = Issue::new(place, format!("two endpoints are named `{name}`"));
                let hint = "copies and host patterns number endpoints: choose another name";
                issues.push(issue.hint(hint));
            }
        }
    }

    fn ports(&self, issues: &mut Vec<Issue>) {
        let mut taken: BTreeMap<(&str, u16), &str> = BTreeMap::new();
        for placed in self.endpoints {
            let Endpoint { name, host, spec, .. } = &placed.endpoint;
            let Some(port) = spec.port() else { continue };
            let key = if matches!(spec, EndpointSpec::Command(_)) { "ready" } else { "port" };
            if port == 0 {
                issues.push(self.issue(placed, key, "port 0".into()).expected("1 to 65535"));
            } else if let Some(other) = taken.insert((host, port), name) {
                let message = format!("port {port} of host `{host}` is `{other}`'s already");
                issues.push(self.issue(placed, key, message).hint("choose another port or host"));
            }
        }
    }

    fn origin(&self, placed: &Placed, origin: &Origin, issues: &mut Vec<Issue>) {
        if !self.media.contains_key(&origin.media) {
            let message = format!("no medium is named `{}`", origin.media);
            let known = self.media.keys().map(String::as_str);
            let mut issue = self.issue(placed, "media", message).instead(&origin.media, known);
            let add = || format!("add a section [media.{}]", origin.media);
            issue.hint = issue.hint.or_else(|| Some(add()));
            issues.push(issue);
        }
        if let Some(Some(MediaSpec { codec: Codec::Mpeg2, .. })) = self.media.get(&origin.media) {
            let message = format!("`{}` is no ladder to be served by HTTP", origin.media);
            let hint = "send codec = \"mpeg2\" by an rtp-sender, or take codec = \"h264\"";
            issues.push(self.issue(placed, "media", message).hint(hint));
        }
        self.congestion(placed, origin.tcp.as_deref(), issues);
        if let Some(length) = origin.length {
            if origin.mode == Mode::Live {
                let issue = self.issue(placed, "length", "a live stream has no length".into());
                issues.push(issue.hint("remove `length`, or set mode = \"vod\""));
            } else if !LENGTH.contains(&length) {
                let issue = self.issue(placed, "length", "out of range".into());
                issues.push(issue.expected("1 s to 24 h"));
            }
        }
        if origin.mode == Mode::Live && origin.window.is_zero() {
            let issue = self.issue(placed, "window", "a live window of no time".into());
            issues.push(issue.expected("as much as players may fall behind, such as \"30 s\""));
        }
    }

    /// The name of a congestion control, if one is asked for.
    fn congestion(&self, placed: &Placed, tcp: Option<&str>, issues: &mut Vec<Issue>) {
        let Some(tcp) = tcp else { return };
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if tcp.is_empty() || tcp.len() > TCP_NAME_MAX || !tcp.chars().all(fits) {
            let message = format!("`{tcp}` cannot be a congestion control's name");
            let issue = self.issue(placed, "tcp", message);
            issues.push(issue.expected("a name of the kernel's, such as `reno` or `cubic`"));
        }
    }

    fn player(&self, placed: &Placed, player: &Player, issues: &mut Vec<Issue>) {
        let origins = || {
            self.endpoints.iter().filter_map(|other| match &other.endpoint.spec {
                EndpointSpec::Origin(origin) => Some((other.endpoint.name.as_str(), origin)),
                _ => None,
            })
        };
        if self.unread.contains(&player.origin) {
            return;
        }
        let Some((_, origin)) = origins().find(|(name, _)| *name == player.origin) else {
            let message = format!("no origin is named `{}`", player.origin);
            let issue = self.issue(placed, "origin", message);
            let known: Vec<&str> = origins().map(|(name, _)| name).collect();
            issues.push(issue.instead(&player.origin, known));
            return;
        };
        self.program(placed, player, issues);
        if let Some(latency) = player.target_latency {
            self.latency(placed, latency, origin, issues);
        }
        let Some(medium) = self.media.get(&origin.media).and_then(Option::as_ref) else { return };
        if player.buffer < medium.segment {
            let message = format!("a buffer of {} holds no segment", player.buffer);
            let issue = self.issue(placed, "buffer", message);
            let expected = format!("at least one segment, {}; better three", medium.segment);
            issues.push(issue.expected(expected));
        }
        if player.receive_buffer.is_some_and(|size| !RECEIVE_BUFFER.contains(&size.get())) {
            let issue = self.issue(placed, "receive_buffer", "out of range".into());
            issues.push(issue.expected("4 kB to 64 MB"));
        }
        if player.protocol() == Protocol::Dash && medium.format == Format::Ts {
            let message = format!("the medium `{}` is packaged as `ts` only", origin.media);
            let issue = self.issue(placed, "protocol", message);
            issues.push(issue.hint("give the medium format = \"fmp4\" or \"both\""));
        }
    }

    fn program(&self, placed: &Placed, player: &Player, issues: &mut Vec<Issue>) {
        let (program, protocol) = (player.program, player.protocol());
        if !program.plays(protocol) {
            let (plays, not) = match protocol {
                Protocol::Dash => ("hls", "dash"),
                Protocol::Hls => ("dash", "hls"),
            };
            let message = format!("the player `{}` does not play `{not}`", program.name());
            let issue = self.issue(placed, "protocol", message);
            issues.push(issue.hint(format!("remove protocol, or say protocol = \"{plays}\"")));
        }
        if player.save && program != Program::Suiro {
            let message = format!("the player `{}` saves nothing", program.name());
            let issue = self.issue(placed, "save", message);
            issues.push(issue.hint("remove save; only suiro's own player has it"));
        }
    }

    fn latency(
        &self,
        placed: &Placed,
        latency: Duration,
        origin: &Origin,
        issues: &mut Vec<Issue>,
    ) {
        if origin.mode == Mode::Vod {
            let message = "the origin is not live: it has no live edge".into();
            let issue = self.issue(placed, "target_latency", message);
            issues.push(issue.hint("remove target_latency, or give the origin mode = \"live\""));
            return;
        }
        // A segment can be fetched when its last frame has passed: its first is one segment old.
        let medium = self.media.get(&origin.media).and_then(Option::as_ref);
        let least = medium.map_or(Duration::ZERO, |medium| medium.segment);
        if !(least..=origin.window).contains(&latency) {
            let message = format!("a target latency of {latency}");
            let issue = self.issue(placed, "target_latency", message);
            let window = origin.window;
            issues.push(issue.expected(format!("one segment, {least}, to the window, {window}")));
        }
    }

    fn command(&self, placed: &Placed, command: &Command, issues: &mut Vec<Issue>) {
        if command.command.first().is_none_or(|program| program.trim().is_empty()) {
            let issue = self.issue(placed, "command", "no program".into());
            issues.push(issue.expected("[\"PROGRAM\", \"ARGUMENT\", …]"));
        }
        if let Some(n) = command.command.iter().position(|argument| argument.contains('\0')) {
            let message = format!("argument {n} holds a null character");
            issues.push(self.issue(placed, "command", message).hint("no program can be given one"));
        }
        if command.ready == Ready::Line(String::new()) {
            let issue = self.issue(placed, "ready", "every line contains nothing".into());
            issues.push(issue.expected("a part of the line that tells it is ready"));
        }
        if command.grace > GRACE_MAX {
            let message = format!("a grace of {}", command.grace);
            issues.push(
                self.issue(placed, "grace", message).expected(format!("at most {GRACE_MAX}")),
            );
        }
    }
}
