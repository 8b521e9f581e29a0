//! Counts of switching: how many frames a stream loses when its sender is moved, killed or started, in processes of
//! their own, over real sockets.

pub mod node;
mod site;
mod trials;

use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;
use suiro_hosts::{CableKind, CableSpec, Network, NetworkSpec, Privilege, Sandbox, ipv4, sandbox};
use suiro_uncompressed::Geometry;
use suiro_uncompressed::packet::{Format, Layout, STUDY_PACKET_BYTES};
use suiro_units::Duration;

use self::trials::{Place, Stage, Switch};
use crate::Outcome;

/// Frame times until a dead sender is noticed, and from then until its standby is on air.
const FRAMES_MAX: f64 = 3.0;

/// What is counted.
#[derive(Debug, Args)]
pub struct SwitchingArgs {
    /// How often each is done.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    times: u32,
    /// Frames of each lane: they determine its rate.
    #[arg(long, value_name = "GEOMETRY", default_value = "640x360 4:2:2 10 60000/1001")]
    geometry: Geometry,
    /// Lanes that each node sends, all of which are switched in one step.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=16))]
    lanes: u16,
    /// The receiver's delay budget, at most 16 frame times.
    #[arg(long, value_name = "TIME", default_value = "20 ms")]
    budget: Duration,
    /// Send over loopback, not between network namespaces.
    #[arg(long)]
    loopback: bool,
    /// Print JSON, a line for each count.
    #[arg(long)]
    json: bool,
    /// The inner half, in a sandbox.
    #[arg(long, hide = true)]
    inside: bool,
}

/// Counts, in a network of its own if the system allows that.
pub fn run(args: &SwitchingArgs) -> Result<Outcome> {
    let rate = args.geometry.rate();
    if args.budget > rate.start_of(16) {
        bail!(crate::Usage(format!("--budget {}: at most {}", args.budget, rate.start_of(16))));
    }
    if args.inside {
        return inside(args);
    }
    if !args.loopback {
        match sandbox::probe(Privilege::of_this_process()) {
            Ok(()) => return outside(),
            Err(error) => say!("note: over loopback: no network namespaces here: {error}"),
        }
    }
    let place = place(args, [None, None], Ipv4Addr::LOCALHOST);
    count(args, &place, "loopback")
}

/// Runs the same command line in a sandbox.
fn outside() -> Result<Outcome> {
    let own = std::env::args_os().skip(1).chain(["--inside".into()]);
    let mut worker = Sandbox::new(own).spawn()?;
    let status = worker.wait().context("waiting for the benchmark")?;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(Outcome::Done),
        (Some(1), _) => Ok(Outcome::Failed),
        (code, signal) => bail!("the benchmark ended early: exit code {code:?}, signal {signal:?}"),
    }
}

/// Two sites and the receiver, each with a network of its own.
fn inside(args: &SwitchingArgs) -> Result<Outcome> {
    let hosts = ["receiver", "site-1", "site-2"].map(str::to_owned).to_vec();
    let cable = |from| CableSpec { from, to: 0, mtu: 9000, kind: CableKind::Card };
    let spec = NetworkSpec { hosts, cables: vec![cable(1), cable(2)], detours: Vec::new() };
    let network = Network::build(&spec)?;
    let [receiver, one, other] = network.hosts() else { bail!("the network has three hosts") };
    let place = place(args, [Some(one), Some(other)], ipv4(0));
    receiver.enter(|| count(args, &place, "network namespaces, a packet at a time over veth"))?
}

const fn place<'a>(
    args: &SwitchingArgs,
    sites: [Option<&'a suiro_hosts::Host>; 2],
    receiver: Ipv4Addr,
) -> Place<'a> {
    let (geometry, lanes, budget) = (args.geometry, args.lanes, args.budget);
    Place { sites, receiver, geometry, lanes, budget }
}

/// One kind of switch, and what became of it.
struct Count {
    name: &'static str,
    what: &'static str,
    switches: Vec<Switch>,
    /// True if a frame may be lost: nobody sends it.
    may_lose: bool,
}

impl Count {
    /// Switches that went as they should.
    fn well(&self) -> usize {
        let well = |switch: &&Switch| {
            let in_time = switch.detected <= FRAMES_MAX && switch.on_air <= FRAMES_MAX;
            in_time && (self.may_lose || switch.frames == 0)
        };
        self.switches.iter().filter(well).count()
    }

    fn most(&self, of: impl Fn(&Switch) -> f64) -> f64 {
        self.switches.iter().map(of).fold(0.0, f64::max)
    }
}

fn count(args: &SwitchingArgs, place: &Place<'_>, over: &str) -> Result<Outcome> {
    let layout = Layout::new(Format::Raster, &args.geometry, STUDY_PACKET_BYTES)?;
    let gbps = layout.ip_bits_per_second() / 1e9;
    let lanes = args.lanes;
    say!(
        "{lanes} lanes of {} at {gbps:.3} Gbit/s each, {:.2} Gbit/s from each node; over {over}",
        args.geometry,
        gbps * f64::from(lanes)
    );
    let counts = [
        ("planned", "switched as planned, all lanes at one frame", 1, false),
        ("twins", "node killed, its twin on another path (ST 2022-7)", 2, false),
        ("failure", "node killed, a standby started when it is noticed", 1, true),
        ("start", "nodes started at one time: all lanes have that first frame", 1, false),
    ];
    let mut well = true;
    for (name, what, paths, may_lose) in counts {
        let mut stage = Stage::new(place, paths)?;
        let switches = match name {
            "planned" => stage.planned(args.times),
            "twins" => stage.twins(args.times),
            "failure" => stage.failures(args.times),
            _ => stage.starts_together(args.times),
        };
        let switches = switches.with_context(|| format!("counting `{name}`"))?;
        let count = Count { name, what, switches, may_lose };
        tell(&count, gbps, args)?;
        well &= count.well() == count.switches.len();
    }
    Ok(if well { Outcome::Done } else { Outcome::Failed })
}

fn tell(count: &Count, gbps: f64, args: &SwitchingArgs) -> Result<()> {
    let (all, well) = (count.switches.len(), count.well());
    let frames: u64 = count.switches.iter().map(|switch| switch.frames).sum();
    let most = count.switches.iter().map(|switch| switch.frames).max().unwrap_or_default();
    let (detected, on_air) = (count.most(|own| own.detected), count.most(|own| own.on_air));
    let mut out = crate::say::results();
    if args.json {
        let timed = count.may_lose;
        let row = json!({
            "count": count.name, "times": all, "well": well, "frames": frames, "frames_max": most,
            "detected_max_frames": timed.then_some(detected),
            "on_air_max_frames": timed.then_some(on_air),
            "lanes": args.lanes, "lane_gbps": gbps,
        });
        writeln!(out, "{row}")?;
        return Ok(());
    }
    let what = count.what;
    if count.may_lose {
        let mean = count.switches.iter().map(|own| own.detected).sum::<f64>() / all.max(1) as f64;
        writeln!(
            out,
            "{what}: {well} of {all} in time; noticed after {mean:.2} frame times, {detected:.2} at most, on air \
             {on_air:.2} later at most; {most} frames of {} lanes lost at most",
            args.lanes
        )?;
    } else if count.name == "start" {
        writeln!(out, "{what}: {well} of {all}, {most} frames apart at most")?;
    } else {
        writeln!(
            out,
            "{what}: {well} of {all} without a lost or repeated frame, {frames} frames in all"
        )?;
    }
    Ok(())
}
