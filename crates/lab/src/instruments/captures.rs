//! The capture points during a trial, and what they show about the links afterwards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use suiro_capture::{Addresses, Counts, End, Point, PointSpec, Prepared, Zero};
use suiro_record::tables::HopRow;
use suiro_record::{Capture, Writer};
use suiro_scenario::{Setup, Topology};

use super::{Found, Instrument, Running, Scene};
use crate::clock::Epoch;

/// The packets at interfaces of hosts.
pub struct Interfaces;

/// The folder of the files, below the trial's.
const FOLDER: &str = "pcapng";

/// One capture per point, opened before the trial's time zero and written from then on.
struct Captures<P>(Vec<Placed<P>>);

/// A capture and where it is made.
struct Placed<P> {
    name: String,
    host: String,
    /// The link's name, and which of its ends: 0 for `from`, 1 for `to`.
    link: String,
    end: usize,
    interface: String,
    /// Below the trial's folder.
    file: String,
    capture: P,
}

impl Instrument for Interfaces {
    /// From now on, no packet is missed.
    fn prepare(&self, scene: Scene<'_>) -> Result<Option<Box<dyn super::Prepared>>> {
        let Scene { network, setup: Setup { record: options, topology, .. }, dir, .. } = scene;
        let chosen = options.capture.points(topology);
        if chosen.is_empty() {
            return Ok(None);
        }
        let folder = dir.join(FOLDER);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("creating {}", folder.display()))?;
        let mut points = Vec::new();
        for point in chosen {
            let place = point.name(topology);
            let name = options.capture.label(point, topology);
            let link = topology.links[point.link].name.clone();
            let (host, interface) = network.end(point.link, point.end)?;
            let file = format!("{FOLDER}/{}.pcapng", place.replace(':', "."));
            let spec = PointSpec {
                interface,
                description: &name,
                snap: u32::try_from(options.capture_length.get()).unwrap_or(u32::MAX),
                path: &dir.join(&file),
            };
            let opened = host.enter(|| Prepared::open(&spec))?;
            let capture = opened.with_context(|| format!("capturing at {name}"))?;
            let (host, interface) = (host.name().to_owned(), interface.to_owned());
            points.push(Placed { name, host, link, end: point.end, interface, file, capture });
        }
        Ok(Some(Box::new(Captures(points))))
    }
}

impl super::Prepared for Captures<Prepared> {
    fn start(self: Box<Self>, _: Scene<'_>, epoch: Epoch) -> Result<Box<dyn Running>> {
        let start = |placed: Placed<Prepared>| {
            let Placed { name, host, link, end, interface, file, capture } = placed;
            let capture =
                capture.start(zero(epoch)).with_context(|| format!("capturing at {name}"))?;
            Ok(Placed { name, host, link, end, interface, file, capture })
        };
        let points = self.0.into_iter().map(start).collect::<Result<_>>()?;
        Ok(Box::new(Captures::<Point>(points)))
    }
}

impl Running for Captures<Point> {
    /// Matches the packets of each link's ends (table `hops`). Packets that were sent after the end of their link do
    /// not count; links have reported that time in CLOCK_MONOTONIC. On a path and on a plain cable, the end of the first
    /// link counts. Packets that a capture lost are not a failure: it counts them.
    fn stop(self: Box<Self>, scene: Scene<'_>, epoch: Epoch, found: &mut Found) -> Result<()> {
        let Found { links, captures, faults, .. } = found;
        let mut ended = Vec::new();
        for placed in self.0 {
            let Placed { name, host, link, end, interface, file, capture } = placed;
            match capture.stop() {
                Ok(counts) => {
                    captures.push(outcome(&name, &interface, &file, counts));
                    let (path, complete) = (scene.dir.join(file), counts.is_complete());
                    ended.push(Ended { name, host, link, end, path, complete });
                }
                Err(error) => faults.push(format!("capturing at {name}: {error}")),
            }
        }
        let until_ns = &links.until_monotonic_ns;
        if let Err(error) = write(scene.dir, &scene.setup.topology, &ended, (epoch, until_ns)) {
            faults.push(format!("matching the packets of captures: {error:#}"));
        }
        Ok(())
    }
}

/// A capture whose file is closed.
struct Ended {
    name: String,
    host: String,
    link: String,
    end: usize,
    path: PathBuf,
    complete: bool,
}

impl Ended {
    fn end(&self) -> End<'_> {
        End { name: &self.name, path: &self.path, complete: self.complete }
    }
}

/// Writes the table `hops`, link by link and path by path.
fn write(
    dir: &Path,
    topology: &Topology,
    ended: &[Ended],
    (epoch, until_ns): (Epoch, &BTreeMap<String, u64>),
) -> Result<()> {
    let mut links: Vec<&str> = ended.iter().map(|ended| ended.link.as_str()).collect();
    links.dedup();
    let first_ns = until_ns.values().min().copied().unwrap_or(u64::MAX);
    let mut writer = Writer::<HopRow>::create(dir)?;
    for link in links {
        let end = |end: usize| {
            let ended = ended.iter().find(|ended| ended.link == link && ended.end == end)?;
            Some(ended.end())
        };
        let ends = [end(0), end(1)];
        let ends = ends.each_ref().map(Option::as_ref);
        let until_ns = until_ns.get(link).copied().unwrap_or(first_ns);
        for row in &suiro_capture::rows(link, ends, zero(epoch), until_ns)? {
            writer.push(row.clone())?;
        }
    }
    for [one, other] in paths(topology, ended) {
        let name = format!("{}-{}", one.host, other.host);
        let hosts = [addresses(topology, &one.host), addresses(topology, &other.host)];
        let ends = [&one.end(), &other.end()];
        for row in &suiro_capture::path_rows(&name, (ends, &hosts), zero(epoch), first_ns)? {
            writer.push(row.clone())?;
        }
    }
    Ok(writer.close()?)
}

/// Each two hosts that are captured at their only interface and are not neighbours.
fn paths<'a>(topology: &Topology, ended: &'a [Ended]) -> Vec<[&'a Ended; 2]> {
    let cables = |host: &str| {
        let links = topology.links.iter();
        links.filter(|link| link.from == host || link.to == host).count()
    };
    let place = |host: &str| topology.hosts.iter().position(|name| name == host);
    let mut alone: Vec<&Ended> = ended.iter().filter(|ended| cables(&ended.host) == 1).collect();
    alone.sort_by_key(|ended| place(&ended.host));
    let pairs = alone
        .iter()
        .enumerate()
        .flat_map(|(n, one)| alone[n + 1..].iter().map(move |other| [*one, *other]));
    pairs.filter(|[one, other]| one.link != other.link).take(PATHS_MAX).collect()
}

/// How many paths are compared: the captures of both ends are read again for each.
const PATHS_MAX: usize = 16;

fn addresses(topology: &Topology, host: &str) -> Addresses {
    let place = topology.hosts.iter().position(|name| name == host).unwrap_or_default();
    [suiro_hosts::ipv4(place).into(), suiro_hosts::ipv6(place).into()]
}

fn zero(epoch: Epoch) -> Zero {
    Zero { monotonic_ns: epoch.monotonic_ns, realtime_ns: epoch.realtime_ns }
}

fn outcome(point: &str, interface: &str, file: &str, counts: Counts) -> Capture {
    Capture {
        point: point.to_owned(),
        interface: interface.to_owned(),
        file: file.to_owned(),
        packets: counts.written,
        dropped: counts.dropped,
        beyond_limit: counts.beyond,
        cpu_s: counts.cpu_ns as f64 / 1e9,
    }
}
