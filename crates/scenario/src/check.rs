//! What holds for endpoints of every kind, across sections, after each section could be read: names, ports,
//! references, media. What a kind checks itself is in its own module.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use suiro_media::MediaSpec;
use suiro_media::spec::Codec;
use suiro_record::words::Transport;
use suiro_strict::Bounds;
use suiro_units::Duration;

use crate::document::{self, Node, in_text};
use crate::endpoint::{Endpoint, Kind, Listens, Pause, Reference};
use crate::refusal::{Refusal, Span};
use crate::topology::no_host;

/// Longest name of a congestion control (`TCP_CA_NAME_MAX` of Linux, less the terminator).
const TCP_NAME_MAX: usize = 15;

/// How many endpoints a trial has.
const ENDPOINTS: Bounds<usize> = Bounds::new(1, 1000);

/// An endpoint, and the key below `[endpoints]` that it was written under.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub section: String,
    /// Which of that section's endpoints it is, from 0.
    pub number: usize,
    pub endpoint: Endpoint,
}

/// The endpoints of a cell, with what they refer to.
pub(crate) struct Cell<'c, 't> {
    pub body: &'c Node<'t>,
    /// `None` if it cannot be read.
    pub duration: Option<Duration>,
    /// The media; `None` where one cannot be read.
    pub media: &'c BTreeMap<String, Option<MediaSpec>>,
    pub endpoints: &'c [Placed],
    /// The hosts; `None` if the topology cannot be read.
    pub hosts: Option<&'c [String]>,
    /// Names of endpoints that cannot be read. That has been reported: to refer to them is no fault.
    pub unread: &'c [String],
}

/// One endpoint while it is checked: what else its cell has, and where to report what is wrong with it.
pub struct Check<'c> {
    cell: &'c Cell<'c, 'c>,
    placed: &'c Placed,
    refusals: &'c mut Vec<Refusal<Span>>,
}

impl<'c> Check<'c> {
    /// When the trial ends; `None` if that cannot be read.
    pub fn end(&self) -> Option<Duration> {
        self.cell.duration
    }

    /// The medium of that name; `None` if there is none, or it cannot be read.
    pub fn medium(&self, name: &str) -> Option<&'c MediaSpec> {
        self.cell.media.get(name)?.as_ref()
    }

    /// The endpoint of that name, if it is of the kind `K`.
    pub fn peer<K: Kind>(&self, name: &str) -> Option<&'c K> {
        let placed = self.cell.endpoints.iter().find(|placed| placed.endpoint.name == name)?;
        placed.endpoint.spec.downcast()
    }

    /// Other endpoints of the kind `K` whose names come before this one's. So a fault of two endpoints is reported
    /// once.
    pub fn before<K: Kind>(&self) -> impl Iterator<Item = &'c K> + use<'c, K> {
        let name = &self.placed.endpoint.name;
        let before = self.cell.endpoints.iter().filter(move |it| it.endpoint.name < *name);
        before.filter_map(|placed| placed.endpoint.spec.downcast())
    }

    /// Reports it if a key of the endpoint names no host.
    pub fn host(&mut self, key: &str, name: &str) {
        let Some(hosts) = self.cell.hosts else { return };
        if !hosts.iter().any(|host| host == name) {
            self.push(no_host(self.cell.place(self.placed, &[key]), name, hosts));
        }
    }

    /// A refusal with the value of one key of the endpoint.
    pub fn refusal(&self, key: &str, message: impl Into<String>) -> Refusal<Span> {
        self.refusal_at(&[key], message)
    }

    /// A refusal with the value at a path below the endpoint.
    pub fn refusal_at(&self, path: &[&str], message: impl Into<String>) -> Refusal<Span> {
        Refusal::new(self.cell.place(self.placed, path), message)
    }

    /// Reports a refusal.
    pub fn push(&mut self, refusal: Refusal<Span>) {
        self.refusals.push(refusal);
    }

    /// Reports what is wrong with a key of the endpoint.
    pub fn refuse(&mut self, refusal: Refusal) {
        let path = ["endpoints", &self.placed.section];
        self.push(in_text(self.cell.body, &path, refusal));
    }
}

impl<'c> Cell<'c, '_> {
    /// Reports what is wrong.
    pub fn check(&self, refusals: &mut Vec<Refusal<Span>>) {
        let count = self.endpoints.len() + self.unread.len();
        if !ENDPOINTS.contains(&count) {
            let place = document::place(self.body, &["endpoints"]);
            let found = format!("{count} endpoints");
            refusals.push(Refusal::new(place, found).expected(ENDPOINTS.to_string()));
        }
        self.names(refusals);
        self.ports(refusals);
        for placed in self.endpoints {
            self.start(placed, refusals);
            self.references(placed, refusals);
            self.media(placed, refusals);
            self.congestion(placed, refusals);
            self.pauses(placed, refusals);
            let kind = placed.endpoint.spec.kind();
            let mut check = Check { cell: self, placed, refusals };
            kind.out_of_bounds().into_iter().for_each(|refusal| check.refuse(refusal));
            kind.check(&mut check);
        }
    }

    /// Where the value at a path below an endpoint stands.
    fn place(&self, placed: &Placed, path: &[&str]) -> Option<Range<usize>> {
        let path: Vec<&str> =
            ["endpoints", &placed.section].into_iter().chain(path.iter().copied()).collect();
        document::place(self.body, &path)
    }

    /// A refusal with the value of one key of an endpoint.
    fn refusal(&self, placed: &Placed, key: &str, message: String) -> Refusal<Span> {
        Refusal::new(self.place(placed, &[key]), message)
    }

    fn names(&self, refusals: &mut Vec<Refusal<Span>>) {
        let mut seen = BTreeSet::new();
        for placed in self.endpoints {
            let name = &placed.endpoint.name;
            if !seen.insert(name) {
                let place = document::key_place(self.body, &["endpoints", &placed.section]);
                let refusal = Refusal::new(place, format!("two endpoints are named `{name}`"));
                let hint = "copies and host patterns number endpoints: choose another name";
                refusals.push(refusal.hint(hint));
            }
        }
    }

    fn ports(&self, refusals: &mut Vec<Refusal<Span>>) {
        let mut taken: BTreeMap<(&str, Transport, u16), &str> = BTreeMap::new();
        for placed in self.endpoints {
            let Endpoint { name, host, spec, .. } = &placed.endpoint;
            for Listens { transport, ports, key } in spec.kind().listens() {
                // Out of the bounds of every port, which its kind has refused.
                if *ports.start() == 0 {
                    continue;
                }
                let others = ports.filter_map(|port| {
                    let other = taken.insert((host, transport, port), name)?;
                    (other != name).then_some((port, other))
                });
                // All ports are taken before the first clash is reported.
                if let Some((port, other)) = others.collect::<Vec<_>>().first() {
                    let message =
                        format!("port {port} of host `{host}` is already used by `{other}`");
                    let refusal = self.refusal(placed, key, message);
                    refusals.push(refusal.hint("choose another port or host"));
                }
            }
        }
    }

    fn start(&self, placed: &Placed, refusals: &mut Vec<Refusal<Span>>) {
        let start = placed.endpoint.start;
        if let Some(end) = self.duration.filter(|end| start >= *end) {
            let refusal = self.refusal(placed, "start", format!("a start at {start}"));
            refusals.push(refusal.expected(format!("before the trial ends, at {end}")));
        }
        if let Some(end) = placed.endpoint.end.filter(|end| *end <= start) {
            let refusal = self.refusal(placed, "end", format!("an end at {end}"));
            refusals.push(refusal.expected(format!("after the start, at {start}")));
        }
    }

    fn references(&self, placed: &Placed, refusals: &mut Vec<Refusal<Span>>) {
        for Reference { key, name, kinds, .. } in placed.endpoint.spec.references() {
            let fits = |other: &&Placed| kinds.contains(&other.endpoint.spec.name());
            let known =
                self.endpoints.iter().filter(fits).map(|other| other.endpoint.name.as_str());
            let own = placed.endpoint.name.as_str();
            let known: Vec<&str> = known.filter(|other| *other != own).collect();
            if !known.contains(&name.as_str()) && !self.unread.contains(&name) {
                let message = match name == own {
                    true => format!("`{name}` is this endpoint itself"),
                    false => format!("no {} is named `{name}`", kinds.join(" or ")),
                };
                refusals.push(self.refusal(placed, key, message).instead(&name, known));
            }
        }
    }

    fn media(&self, placed: &Placed, refusals: &mut Vec<Refusal<Span>>) {
        let Some(needed) = placed.endpoint.spec.kind().medium() else { return };
        let (key, name) = (needed.key, needed.name);
        match self.media.get(name) {
            None => {
                let known = self.media.keys().map(String::as_str);
                let message = format!("no medium is named `{name}`");
                let refusal = self.refusal(placed, key, message).instead(name, known);
                refusals.push(refusal.or_hint(format!("add a section [media.{name}]")));
            }
            Some(Some(medium)) if medium.codec != needed.codec => {
                let [found, expected] = [medium.codec, needed.codec].map(codec);
                let message = format!("the medium `{name}` has the codec `{found}`");
                let refusal = self.refusal(placed, key, message);
                let refusal = refusal.expected(format!("a medium with codec = \"{expected}\""));
                refusals
                    .push(refusal.hint(format!("set codec = \"{expected}\" in [media.{name}]")));
            }
            Some(_) => {}
        }
    }

    /// The name of a congestion control, if one is asked for.
    fn congestion(&self, placed: &Placed, refusals: &mut Vec<Refusal<Span>>) {
        let Some(asked) = placed.endpoint.spec.kind().congestion() else { return };
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let name = asked.name;
        if name.is_empty() || name.len() > TCP_NAME_MAX || !name.chars().all(fits) {
            let message = format!("`{name}` is not a valid name of a congestion control");
            let refusal = self.refusal(placed, asked.key, message);
            refusals.push(refusal.expected("the kernel's name for it, such as `reno` or `cubic`"));
        }
    }

    /// Each pause ends after it has begun, and begins when the one before has ended.
    fn pauses(&self, placed: &Placed, refusals: &mut Vec<Refusal<Span>>) {
        let mut free = Duration::ZERO;
        for Pause { from, to } in placed.endpoint.spec.kind().pauses() {
            if *from < free || to <= from {
                let found = format!("a pause from {from} to {to}");
                let expected = format!("one that begins at {free} or later, and ends after that");
                refusals.push(self.refusal(placed, "pauses", found).expected(expected));
                return;
            }
            free = *to;
        }
    }
}

/// A codec's name in scenarios.
const fn codec(codec: Codec) -> &'static str {
    match codec {
        Codec::H264 => "h264",
        Codec::Mpeg2 => "mpeg2",
    }
}
