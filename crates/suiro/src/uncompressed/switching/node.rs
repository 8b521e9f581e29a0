//! A sending node of the benchmark: a process of its own, so that it can be killed. It reads orders from its standard
//! input, a line each, and answers on its standard output.

use std::io::{BufRead, Write};
use std::net::SocketAddrV4;

use anyhow::{Context, Result, bail};
use clap::Args;
use suiro_uncompressed::live::{
    At, LaneConfig, Load, Material, Order, Sender, SenderChange, SenderConfig, What,
};
use suiro_uncompressed::node::Source;
use suiro_uncompressed::packet::{Format, PAYLOAD_TYPE, STUDY_PACKET_BYTES, Stream};
use suiro_uncompressed::socket::Route;
use suiro_uncompressed::{Geometry, reader};
use suiro_units::Duration;

use crate::Outcome;

/// Frames of the material.
pub const CYCLE: u32 = 10;
/// How long its rings may take to be filled.
const FILL: Duration = Duration::from_secs(20);

/// The lanes of the node.
#[derive(Debug, Args)]
pub struct NodeArgs {
    /// Where each lane is sent.
    #[arg(long = "to", required = true)]
    to: Vec<SocketAddrV4>,
    /// Their frames.
    #[arg(long)]
    geometry: Geometry,
    /// Synchronisation source of the first lane; those of the others follow.
    #[arg(long)]
    ssrc: u32,
}

/// Runs until its standard input ends.
pub fn run(args: &NodeArgs) -> Result<Outcome> {
    let lane = |number: u32| LaneConfig {
        number,
        format: Format::Raster,
        geometry: args.geometry,
        packet_bytes: STUDY_PACKET_BYTES,
        stream: Stream { payload_type: PAYLOAD_TYPE, ssrc: args.ssrc + number },
    };
    let numbers = 0..u32::try_from(args.to.len())?;
    let config = SenderConfig::new(numbers.clone().map(lane).collect());
    let ring = reader::Options { frames: CYCLE, ..config.ring };
    let (node, events) = Sender::start(SenderConfig { ring, ..config })?;
    let source = Source::Synthetic { geometry: args.geometry, frames: CYCLE };
    let cue = |to: &SocketAddrV4| SenderChange {
        on: None,
        routes: Some(vec![Route { destination: *to, source: None, ttl: 16 }]),
        load: Some(Load::Cue(Material { source: source.clone(), origin: 0, repeat: true })),
    };
    let changes = numbers.clone().zip(args.to.iter().map(cue)).collect();
    node.order(&Order { at: At::Next, issued: None, changes })?;
    let mut filled = 0;
    while filled < args.to.len() {
        let Some(event) = events.wait(FILL) else { bail!("the rings were not filled in {FILL}") };
        match event.what {
            What::Filled => filled += 1,
            What::Failed { because } => bail!("lane {:?}: {because}", event.lane),
            _ => {}
        }
    }
    answer("ready")?;
    for line in std::io::stdin().lock().lines() {
        let order = parse(&line.context("reading an order")?, numbers.clone())?;
        match node.order(&order) {
            Ok(_) => answer("ok")?,
            Err(refusal) => answer(&refusal.to_string().replace('\n', "; "))?,
        }
    }
    Ok(Outcome::Done)
}

fn answer(line: &str) -> Result<()> {
    let mut out = crate::say::results();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// `start` or `stop`, and the time in nanoseconds of TAI, or `next`.
fn parse(line: &str, lanes: impl Iterator<Item = u32>) -> Result<Order<SenderChange>> {
    let (what, at) = line.split_once(' ').context("an order has a time")?;
    let at = match at {
        "next" => At::Next,
        tai => At::Tai(Duration::from_nanos(tai.parse().context("the order's time")?)),
    };
    let change = match what {
        "start" => SenderChange::start(),
        "stop" => SenderChange::stop(),
        _ => bail!("unknown order {what}"),
    };
    Ok(Order::all(at, lanes, &change))
}
