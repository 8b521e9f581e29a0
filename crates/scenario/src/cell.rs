//! The body of a scenario in one cell: read, checked, resolved.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use suiro_link::{LinkConfig, LinkSpec};
use suiro_media::MediaSpec;
use suiro_media::spec::Source;
use suiro_strict::{Bounded, Bounds, Keys};
use suiro_units::Duration;

use crate::check::{Cell, Placed};
use crate::copies;
use crate::document::{self, Node, entries, entry, in_text};
use crate::endpoint::{self, Common, EndpointSpec};
use crate::files::Files;
use crate::header::{check_name, table};
use crate::known::Known;
use crate::multicast;
use crate::network::{Link, Multicast, Topology};
use crate::refusal::{Refusal, Span};
use crate::segment::{self, Segment};
use crate::setup::{RecordOptions, Setup};
use crate::topology::{Shape, Wiring};

/// How long a trial is.
pub(crate) const DURATION: Bounds<Duration> =
    Bounds::above(Duration::ZERO, Duration::from_secs(24 * 3600));

/// Reads the body of one cell, references replaced. `known` has the endpoints of earlier cells, and then those of this one.
/// What is wrong goes to `refusals`; the result is `None` if anything is.
pub(crate) fn read<'t>(
    body: &Node<'t>,
    files: &dyn Files,
    known: &mut Known<'t>,
    refusals: &mut Vec<Refusal<Span>>,
) -> Option<Setup> {
    let before = refusals.len();
    let mut reader = Reader { body, files, known, refusals };
    let duration = reader.duration();
    let warm_up = reader.warm_up(duration);
    let specs = reader.links();
    let segments = reader.segments();
    let wiring = reader.wiring(&segments);
    let record = reader.record();
    let quality = record.as_ref().is_some_and(|record| record.quality);
    let media = reader.media(quality);
    let (mut endpoints, unread) = reader.endpoints(wiring.as_ref());
    if quality {
        endpoints.iter_mut().for_each(|placed| placed.endpoint.spec.kind_mut().keep_for_screen());
    }
    let links = wiring.as_ref().map(|wiring| reader.join(wiring, &specs, &segments));
    let multicast = reader.multicast(wiring.as_ref());
    multicast::check_endpoints(
        body,
        wiring.as_ref(),
        multicast.as_ref(),
        &endpoints,
        reader.refusals,
    );
    let hosts = wiring.as_ref().map(|wiring| &wiring.hosts[..]);
    Cell { body, duration, media: &media, endpoints: &endpoints, hosts, unread: &unread }
        .check(refusals);
    if refusals.len() > before {
        return None;
    }
    let Wiring { hosts, detours, switches, hubs, cells, .. } = wiring?;
    let topology = Topology { hosts, links: links?, detours, switches, hubs, cells, multicast };
    let record = record?;
    let refused = record.capture.check(&topology).into_iter();
    refusals.extend(refused.map(|refusal| in_text(body, &["record"], refusal)));
    if refusals.len() > before {
        return None;
    }
    // What nothing serves need not be encoded.
    let served = |name: &str| {
        let mut media = endpoints.iter().filter_map(|placed| placed.endpoint.spec.kind().medium());
        media.any(|medium| medium.name == name)
    };
    let media = media.into_iter().filter(|(name, _)| served(name));
    let media = media.filter_map(|(name, spec)| Some((name, spec?))).collect();
    let endpoints = endpoints.into_iter().map(|placed| placed.endpoint).collect();
    Some(Setup { duration: duration?, warm_up: warm_up?, topology, media, endpoints, record })
}

struct Reader<'r, 't> {
    body: &'r Node<'t>,
    files: &'r dyn Files,
    known: &'r mut Known<'t>,
    refusals: &'r mut Vec<Refusal<Span>>,
}

impl Reader<'_, '_> {
    /// Keeps a refusal, or gives the value.
    fn keep<T>(&mut self, result: Result<T, Refusal<Span>>) -> Option<T> {
        result.map_err(|refusal| self.refusals.push(refusal)).ok()
    }

    /// Reports that a key of the root is missing.
    fn missing(&mut self, key: &str, expected: &str) {
        let message = format!("the key `{key}` is missing in the scenario");
        self.refusals.push(Refusal::new(None, message).expected(expected));
    }

    fn duration(&mut self) -> Option<Duration> {
        let Some(node) = entry(self.body, "duration") else {
            self.missing("duration", "duration = \"40 s\"");
            return None;
        };
        let duration = document::read::<Duration>(node.clone(), "`duration`", &[]);
        let duration = self.keep(duration)?;
        self.keep(
            DURATION
                .check(Keys::of("duration"), duration)
                .map_err(|refusal| in_text(self.body, &[], refusal)),
        )
    }

    /// Zero if it is absent.
    fn warm_up(&mut self, duration: Option<Duration>) -> Option<Duration> {
        let Some(node) = entry(self.body, "warm_up") else { return Some(Duration::ZERO) };
        let read = document::read::<Duration>(node.clone(), "`warm_up`", &[]);
        let warm_up = self.keep(read)?;
        if let Some(end) = duration.filter(|end| warm_up >= *end) {
            let place = document::place(self.body, &["warm_up"]);
            let refusal = Refusal::new(place, format!("warm_up: {warm_up} leaves no time"));
            let refusal = refusal.expected(format!("less than `duration`, which is {end}"));
            self.refusals.push(refusal);
            return None;
        }
        Some(warm_up)
    }

    /// `[links]`: every link that can be read, or `None` where it cannot.
    fn links(&mut self) -> BTreeMap<String, Option<LinkConfig>> {
        let section = table(self.body, "links", self.refusals);
        let mut links = BTreeMap::new();
        for (name, span, node) in entries(&section) {
            check_name(name, span, "a link", self.refusals);
            let config = self.link(name, node);
            links.insert(name.to_owned(), config);
        }
        links
    }

    fn link(&mut self, name: &str, node: &Node<'_>) -> Option<LinkConfig> {
        let what = format!("[links.{name}]");
        let spec = self.keep(document::read::<LinkSpec>(node.clone(), &what, &[]))?;
        let files = self.files;
        let mut read = |path: &Path| {
            let reason = |error| format!("cannot read `{}`: {error}", path.display());
            files.read(path).map_err(reason)
        };
        let out_of_bounds = spec.out_of_bounds();
        if !out_of_bounds.is_empty() {
            self.refuse(&["links", name], out_of_bounds);
            return None;
        }
        let config = spec.resolve(&mut read);
        self.keep(config.map_err(|refusal| in_text(self.body, &["links", name], refusal)))
    }

    /// `[segments]`: every segment that can be read.
    fn segments(&mut self) -> Vec<Segment> {
        let section = table(self.body, "segments", self.refusals);
        segment::read(self.body, &section, self.refusals)
    }

    fn wiring(&mut self, segments: &[Segment]) -> Option<Wiring> {
        let Some(node) = entry(self.body, "topology") else {
            self.missing("topology", "[topology] with a `shape`");
            return None;
        };
        let shape = self.keep(Shape::read(node.clone()))?;
        let mut wiring = shape.wiring(node, self.refusals);
        if shape.takes_segments() {
            segment::join(self.body, segments, &mut wiring, self.refusals);
        } else if !segments.is_empty() {
            let place = document::place(self.body, &["segments"]);
            let refusal = Refusal::new(place, "[segments] with a shape that has none".to_owned());
            self.refusals.push(refusal.expected("shape = \"explicit\" below [topology]"));
        }
        wiring.check_reach(node, self.refusals);
        Some(wiring)
    }

    /// `[multicast]`, if cables carry it.
    fn multicast(&mut self, wiring: Option<&Wiring>) -> Option<Multicast> {
        let node = entry(self.body, "multicast")?;
        let read = document::read::<Multicast>(node.clone(), "[multicast]", &[]);
        let multicast = self.keep(read)?;
        self.refuse(&["multicast"], multicast.out_of_bounds());
        if let Some(wiring) = wiring {
            multicast.check(node, wiring, self.refusals);
        }
        Some(multicast)
    }

    /// The links of the topology, each with what its cable does to packets.
    fn join(
        &mut self,
        wiring: &Wiring,
        configs: &BTreeMap<String, Option<LinkConfig>>,
        segments: &[Segment],
    ) -> Vec<Link> {
        let mut used = BTreeSet::new();
        let mut links = Vec::new();
        let of_station = |name: &str| segments.iter().find_map(|segment| segment.links.get(name));
        for wire in &wiring.wires {
            let cable = &wire.cable;
            let path = ["topology"].into_iter().chain(wire.path.iter().map(String::as_str));
            let place = document::place(self.body, &path.collect::<Vec<_>>());
            let plain = || format!("{}-{}", cable.from, cable.to);
            let config = cable.link.as_ref().and_then(|name| {
                let found = of_station(name).or_else(|| configs.get(name));
                if found.is_none() {
                    let refusal = Refusal::new(place.clone(), format!("no link is named `{name}`"));
                    let mut refusal = refusal.instead(name, configs.keys().map(String::as_str));
                    refusal.hint =
                        refusal.hint.or_else(|| Some(format!("add a section [links.{name}]")));
                    self.refusals.push(refusal);
                }
                found.cloned().flatten()
            });
            let name = cable.link.clone().unwrap_or_else(plain);
            if !used.insert(name.clone()) {
                let refusal = Refusal::new(place, format!("the link `{name}` is used twice"));
                self.refusals.push(refusal.hint("give each cable its own section below [links]"));
            }
            let (from, to) = (cable.from.clone(), cable.to.clone());
            let (cards, capacity, mtu) = (cable.cards, cable.capacity, wiring.mtu);
            links.push(Link { name, from, to, config, cards, capacity, mtu });
        }
        links
    }

    /// The media, all of it stamped if the scenario's records ask for that.
    fn media(&mut self, stamped: bool) -> BTreeMap<String, Option<MediaSpec>> {
        let section = table(self.body, "media", self.refusals);
        let mut media = BTreeMap::new();
        for (name, span, node) in entries(&section) {
            check_name(name, span, "a medium", self.refusals);
            let what = format!("[media.{name}]");
            let spec = self.keep(document::read::<MediaSpec>(node.clone(), &what, &[]));
            let stamp = |spec: MediaSpec| MediaSpec { stamp: spec.stamp || stamped, ..spec };
            let spec = spec.and_then(|spec| self.medium(name, stamp(spec)));
            media.insert(name.to_owned(), spec);
        }
        media
    }

    /// One medium: bounds checked, its file found.
    fn medium(&mut self, name: &str, mut spec: MediaSpec) -> Option<MediaSpec> {
        let refused = spec.refusals();
        if !refused.is_empty() {
            self.refuse(&["media", name], refused);
            return None;
        }
        spec.source = self.source(&["media", name, "source"], spec.source.clone())?;
        Some(spec)
    }

    /// Reports what is wrong with the table at `path`.
    fn refuse(&mut self, path: &[&str], refused: Vec<Refusal>) {
        let refused = refused.into_iter().map(|refusal| in_text(self.body, path, refusal));
        self.refusals.extend(refused);
    }

    /// Every endpoint that can be read, with its copies, in the order of their start; and
    /// the names of those that cannot.
    fn endpoints(&mut self, wiring: Option<&Wiring>) -> (Vec<Placed>, Vec<String>) {
        let section = table(self.body, "endpoints", self.refusals);
        let (mut endpoints, mut unread) = (Vec::new(), Vec::new());
        for (key, span, node) in entries(&section) {
            check_name(key, span, "an endpoint", self.refusals);
            let read = self.known.find(key, node).or_else(|| {
                let read = read_endpoint(key, node.clone(), self.refusals)?;
                self.known.keep(key, node, &read);
                Some(read)
            });
            let read = read.and_then(|(common, spec)| Some((common, self.camera(key, spec)?)));
            let copies = read.and_then(|(common, spec)| {
                let hosts = self.keep(copies::hosts(key, &common.host, wiring, self.body))?;
                self.keep(copies::of(key, &common, &spec, &hosts, self.body))
            });
            match copies {
                Some(copies) => endpoints.extend(copies),
                None => unread.push(key.to_owned()),
            }
        }
        copies::refer(&mut endpoints, &mut unread, self.body, self.refusals);
        // Stable: at the same time, the order of the file.
        endpoints.sort_by_key(|placed: &Placed| placed.endpoint.start);
        (endpoints, unread)
    }

    /// The file of a camera found, if it shows one.
    fn camera(&mut self, name: &str, mut spec: EndpointSpec) -> Option<EndpointSpec> {
        if let Some(camera) = spec.kind_mut().camera_mut() {
            let path = ["endpoints", name, "camera", "source"];
            camera.source = self.source(&path, camera.source.clone())?;
        }
        Some(spec)
    }

    /// A source, its file found if it is one.
    fn source(&mut self, at: &[&str], source: Source) -> Option<Source> {
        let Source::File(path) = source else { return Some(source) };
        let error = match self.files.locate(&path) {
            Ok(found) => return Some(Source::File(found)),
            Err(error) => error,
        };
        let message = format!("no video at `{}`: {error}", path.display());
        let hint = "write \"bbb\", \"synthetic\" or a path relative to the scenario's folder";
        self.refusals.push(Refusal::new(document::place(self.body, at), message).hint(hint));
        None
    }

    fn record(&mut self) -> Option<RecordOptions> {
        let Some(node) = entry(self.body, "record") else { return Some(RecordOptions::default()) };
        let options = document::read::<RecordOptions>(node.clone(), "[record]", &[]);
        let options = self.keep(options)?;
        self.refuse(&["record"], options.out_of_bounds());
        Some(options)
    }
}

/// Reads one endpoint: what all have, and what its kind has.
fn read_endpoint(
    name: &str,
    mut node: Node<'_>,
    refusals: &mut Vec<Refusal<Span>>,
) -> Option<(Common, EndpointSpec)> {
    let what = format!("[endpoints.{name}]");
    let kinds: Vec<&'static str> = endpoint::kinds().collect();
    let kind = document::kind(&mut node, "kind", &what, &kinds);
    let kind = kind.map_err(|refusal| refusals.push(refusal)).ok()?;
    let (common, own) = document::split(node, &Common::KEYS);
    let common = document::read::<Common>(common, &what, &[]);
    let spec = EndpointSpec::read(kind, own, &what);
    // Both are reported: a mistyped key and the key that is missing for it.
    match (common, spec) {
        (Ok(common), Ok(spec)) => Some((common, spec)),
        (common, spec) => {
            refusals.extend(spec.err());
            refusals.extend(common.err());
            None
        }
    }
}
