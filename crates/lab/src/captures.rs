//! The capture points during a trial, and what they show about the links afterwards.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use suiro_capture::{Counts, End, Point, PointSpec, Prepared, Zero};
use suiro_hosts::Network;
use suiro_record::tables::HopRow;
use suiro_record::{Capture, Writer};
use suiro_scenario::{RecordOptions, Topology};
use suiro_units::Time;

use crate::clock::Epoch;

/// The folder of the files, below the trial's.
const FOLDER: &str = "pcapng";

/// One capture per point, opened before the trial's time zero and written from then on.
pub struct Captures<P> {
    points: Vec<Placed<P>>,
    dir: PathBuf,
}

/// A capture and where it is made.
struct Placed<P> {
    name: String,
    /// The link's name, and which of its ends: 0 for `from`, 1 for `to`.
    link: String,
    end: usize,
    interface: String,
    /// Below the trial's folder.
    file: String,
    capture: P,
}

impl Captures<Prepared> {
    /// Opens what `options` asks for. From now on, no packet is missed.
    pub fn prepare(
        network: &Network,
        topology: &Topology,
        options: &RecordOptions,
        dir: &Path,
    ) -> Result<Self> {
        let chosen = options.capture.points(topology);
        if !chosen.is_empty() {
            let folder = dir.join(FOLDER);
            std::fs::create_dir_all(&folder)
                .with_context(|| format!("creating {}", folder.display()))?;
        }
        let mut points = Vec::new();
        for point in chosen {
            let (name, link) = (point.name(topology), topology.links[point.link].name.clone());
            let (host, interface) = network.end(point.link, point.end)?;
            let file = format!("{FOLDER}/{}.pcapng", name.replace(':', "."));
            let spec = PointSpec {
                interface,
                description: &name,
                snap: u32::try_from(options.capture_length.get()).unwrap_or(u32::MAX),
                path: &dir.join(&file),
            };
            let opened = host.enter(|| Prepared::open(&spec))?;
            let capture = opened.with_context(|| format!("capturing at {name}"))?;
            let interface = interface.to_owned();
            points.push(Placed { name, link, end: point.end, interface, file, capture });
        }
        Ok(Self { points, dir: dir.to_owned() })
    }

    /// Starts to write them; times count from `epoch`.
    pub fn start(self, epoch: Epoch) -> Result<Captures<Point>> {
        let start = |placed: Placed<Prepared>| {
            let Placed { name, link, end, interface, file, capture } = placed;
            let capture =
                capture.start(zero(epoch)).with_context(|| format!("capturing at {name}"))?;
            Ok(Placed { name, link, end, interface, file, capture })
        };
        let points = self.points.into_iter().map(start).collect::<Result<_>>()?;
        Ok(Captures { points, dir: self.dir })
    }
}

impl Captures<Point> {
    /// Stops them, matches the packets of each link's ends (table `hops`), and returns what each saw, and what failed.
    /// Packets that were sent after `until` do not count: the links stopped then. Packets that a capture lost are not a
    /// failure: it counts them.
    pub fn stop(self, epoch: Epoch, until: Time) -> (Vec<Capture>, Vec<String>) {
        let (mut captures, mut ended, mut faults) = (Vec::new(), Vec::new(), Vec::new());
        for placed in self.points {
            let Placed { name, link, end, interface, file, capture } = placed;
            match capture.stop() {
                Ok(counts) => {
                    captures.push(outcome(&name, &interface, &file, counts));
                    let (path, complete) = (self.dir.join(file), counts.is_complete());
                    ended.push(Ended { name, link, end, path, complete });
                }
                Err(error) => faults.push(format!("capturing at {name}: {error}")),
            }
        }
        if let Err(error) = write(&self.dir, &ended, epoch, until) {
            faults.push(format!("matching the packets of captures: {error:#}"));
        }
        (captures, faults)
    }
}

/// A capture whose file is closed.
struct Ended {
    name: String,
    link: String,
    end: usize,
    path: PathBuf,
    complete: bool,
}

/// Writes the table `hops`, link by link.
fn write(dir: &Path, ended: &[Ended], epoch: Epoch, until: Time) -> Result<()> {
    if ended.is_empty() {
        return Ok(());
    }
    let mut links: Vec<&str> = ended.iter().map(|ended| ended.link.as_str()).collect();
    links.dedup();
    let mut writer = Writer::<HopRow>::create(dir)?;
    for link in links {
        let end = |end: usize| {
            let ended = ended.iter().find(|ended| ended.link == link && ended.end == end)?;
            Some(End { name: &ended.name, path: &ended.path, complete: ended.complete })
        };
        let ends = [end(0), end(1)];
        let ends = ends.each_ref().map(Option::as_ref);
        for row in &suiro_capture::rows(link, ends, zero(epoch), until.as_nanos())? {
            writer.push(row.clone())?;
        }
    }
    Ok(writer.close()?)
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
