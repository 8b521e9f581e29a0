//! How much this host carries over an emulated link, now: short loads in both directions, each faster than the one before,
//! until packets are lost or late.

use suiro_clock::Axis;
use suiro_hosts::{CableKind, CableSpec, Network, NetworkSpec};
use suiro_link::{LinkConfig, Schedule};
use suiro_units::{BitRate, Bytes, Duration, Seed};

use super::load::{Burst, Heard, Load, Sending};
use crate::{Carrier, CarrierSpec, Medium, WireError, lateness_bound};

/// Size of the IP packets.
const PACKET_BYTES: u32 = 1200;
/// How long each load lasts.
const LOAD: Duration = Duration::from_millis(200);
/// One-way delay of the link.
const DELAY: Duration = Duration::from_millis(5);
/// How long to wait for the last packets.
const PATIENCE: Duration = Duration::from_millis(100);
/// Packets a second of the loads, in each direction: up to 2.3 Gbit/s.
const STEPS: [u32; 9] = [5_000, 10_000, 20_000, 40_000, 60_000, 80_000, 110_000, 160_000, 240_000];
/// Times that a load is tried: another program may have had the CPU.
const TRIES: u32 = 2;
/// The senders kept up if they sent this share of the packets in time.
const KEPT_UP: f64 = 0.95;

/// What this host carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    /// Packets of 1200 bytes in a second, in each of both directions at the same time, that arrived on time; 0 if not even
    /// the slowest load did.
    pub packets_per_second: u32,
}

impl Capacity {
    /// The same as a bit rate of IP packets in each direction.
    pub fn rate(self) -> BitRate {
        Bytes::new((self.packets_per_second * PACKET_BYTES).into()) / Duration::from_secs(1)
    }
}

/// Measures what this host carries, which takes one to five seconds. Call it inside a [`suiro_hosts::Sandbox`] while nothing
/// else is measured.
///
/// # Errors
/// If hosts or a link cannot be made, or a load cannot be sent or heard.
pub fn capacity() -> Result<Capacity, WireError> {
    let network = Network::build(&NetworkSpec {
        hosts: vec!["server".into(), "client".into()],
        cables: vec![CableSpec { from: 0, to: 1, mtu: 1500, kind: CableKind::Emulated }],
        detours: vec![],
    })?;
    let mut carried = 0;
    'steps: for per_second in STEPS {
        for _ in 0..TRIES {
            if carries(&network, per_second)? {
                carried = per_second;
                continue 'steps;
            }
        }
        break;
    }
    Ok(Capacity { packets_per_second: carried })
}

/// Whether so many packets a second in each direction are sent, carried on time, and none is lost.
fn carries(network: &Network, per_second: u32) -> Result<bool, WireError> {
    let link = &network.links()[0];
    let mut config = LinkConfig::default();
    for path in [&mut config.down, &mut config.up] {
        path.propagation.delay = Schedule::constant(DELAY);
    }
    let bound_us = lateness_bound(&config.down).as_nanos() as f64 / 1e3;
    let clock = Axis::starting_now();
    let carrier = Carrier::start(&CarrierSpec {
        name: "capacity",
        medium: &Medium::Link { link, config },
        wire: network.wire(),
        seed: Seed(1),
        clock,
        records: None,
    })?;
    let burst = Burst {
        packet_bytes: PACKET_BYTES,
        interval: Duration::from_secs(1) / u64::from(per_second),
        count: (f64::from(per_second) * LOAD.as_secs_f64()) as u32,
    };
    let mut loads = [
        Load::open(clock, (&link.from, &link.to), Sending::Ordinary)?,
        Load::open(clock, (&link.to, &link.from), Sending::Ordinary)?,
    ];
    std::thread::scope(|scope| {
        let running = loads
            .each_mut()
            .map(|load| scope.spawn(|| load.run(&[burst], Duration::ZERO, PATIENCE)));
        let ended = running
            .map(|load| load.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ended.into_iter().collect::<Result<(), _>>()
    })?;
    let outcome = carrier.stop()?;
    let mut fine = true;
    for (load, totals) in loads.into_iter().zip(&outcome.totals) {
        let heard = load.finish(totals.delivered)?;
        let on_time = totals.lateness.p99_us.is_some_and(|p99_us| p99_us <= bound_us);
        fine &= on_time && totals.unaccounted == 0 && kept_up(&heard, burst);
    }
    Ok(fine)
}

/// Whether a load was sent as fast as it was asked to be.
fn kept_up(heard: &Heard, burst: Burst) -> bool {
    let [Some(first), Some(last)] = [heard.sent.first(), heard.sent.last()] else { return false };
    let asked = burst.interval * u64::from(burst.count.saturating_sub(1));
    asked.as_secs_f64() >= last.saturating_since(*first).as_secs_f64() * KEPT_UP
}
