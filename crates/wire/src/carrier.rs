//! A running link, hub or Wi-Fi cell on its own threads.

use std::path::Path;

use suiro_clock::Axis;
use suiro_hosts::Host;
use suiro_record::LinkTotals;
use suiro_units::Seed;

use crate::WireError;
use crate::engine::{Engine, Side};
use crate::hands::{Ended, Hands};
use crate::medium::{Medium, Way};
use crate::priority::Priority;
use crate::recorder::Recorder;
use crate::socket::PacketSocket;
use crate::totals::{Fault, KernelLosses, fault};

/// What a carrier carries.
#[derive(Debug, Clone, Copy)]
pub struct CarrierSpec<'a> {
    /// The medium's name in the scenario, which the file of the records bears.
    pub name: &'a str,
    /// What packets go over.
    pub medium: &'a Medium<'a>,
    /// The namespace of its interfaces: [`suiro_hosts::Network::wire`].
    pub wire: &'a Host,
    /// The seed of its randomness.
    pub seed: Seed,
    /// The trial's clock. Its epoch, from which schedules count, must not be in the future.
    pub clock: Axis,
    /// The folder for `link.NAME.parquet`; `None` to keep no record of packets.
    pub records: Option<&'a Path>,
}

/// What a link did.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Of a link: down, then up. Of a hub: what each station sent, in their order. Of a cell: down, then up, of each
    /// station.
    pub totals: Vec<LinkTotals>,
    /// Why measurements over the link must not be used; empty if they may be used.
    pub faults: Vec<Fault>,
    /// The best priority that its threads were allowed.
    pub priority: Priority,
    /// The link's end, in nanoseconds of CLOCK_MONOTONIC: it took every packet that it was offered until then, and none
    /// after.
    pub until_monotonic_ns: u64,
}

/// A running link, hub or cell. Dropping it ends it without recording the packets that are in it; see
/// [`stop`](Self::stop).
#[derive(Debug)]
pub struct Carrier {
    name: String,
    wire: Host,
    ways: Vec<Way>,
    before: Vec<Drops>,
    hands: Hands,
}

impl Carrier {
    /// Starts to carry packets between the hosts of a medium. Call it inside a [`suiro_hosts::Sandbox`].
    pub fn start(spec: &CarrierSpec<'_>) -> Result<Self, WireError> {
        let CarrierSpec { name, medium, wire, seed, clock, records } = *spec;
        let ways = medium.ways(name);
        let open = |way: &Way| {
            let interface = &way.end.wire_interface;
            let socket = PacketSocket::open(interface)
                .map_err(WireError::os(format!("opening a packet socket on {interface}")))?;
            Ok::<_, WireError>(Side::new(socket, medium.is_shared()))
        };
        let sides = wire.enter(|| ways.iter().map(open).collect::<Result<Vec<_>, _>>())??;
        let links: Vec<&str> = ways.iter().map(|way| &*way.link).collect();
        let recorder = records.map(|dir| Recorder::create(dir, name, &links)).transpose()?;
        let before = Drops::read(wire, &ways)?;
        let core = (medium.core(seed), medium.least_delay());
        let engine = Engine::new(clock, sides, core, recorder);
        let bound = ways.iter().map(|way| way.bound).min().unwrap_or_default();
        let hands = Hands::start(name, clock, engine, bound)
            .map_err(WireError::os("starting the threads of a link"))?;
        Ok(Self { name: name.to_owned(), wire: wire.clone(), ways, before, hands })
    }

    /// Stops carrying packets: those still in the link are recorded as `queued`, the records are
    /// closed, and the outcome is returned.
    pub fn stop(self) -> Result<Outcome, WireError> {
        let ended = self.hands.stop();
        let Ended { carried, priority, cpu_cores, real_time, takeovers } =
            ended.map_err(WireError::os(format!("carrying link {}", self.name)))?;
        let later = Drops::read(&self.wire, &self.ways)?;
        let lost: Vec<_> =
            later.iter().zip(&self.before).map(|(late, before)| late.since(before)).collect();
        let until_monotonic_ns = carried.until_monotonic_ns;
        let totals = |(index, way): (usize, &Way)| {
            let (own, loses) = (&carried.sides[index], way.loses);
            let ring = own.socket.drops();
            let losses = KernelLosses {
                ring: ring.map_err(WireError::os("reading the drops of a packet socket"))?,
                before: lost[index].host,
                // What the interface refused was sent again.
                after: lost[loses].wire.saturating_sub(carried.sides[loses].socket.refused),
            };
            let mut totals = own.counts.totals(&way.link, way.direction, losses);
            (totals.cpu_cores, totals.real_time) = (Some(cpu_cores), Some(real_time));
            totals.takeovers = takeovers;
            // Only a carrier of several links has a name that is none of theirs.
            totals.segment = (way.link != self.name).then(|| self.name.clone());
            totals.lateness_bound_us = Some(way.bound.as_nanos() as f64 / 1e3);
            Ok::<_, WireError>(totals)
        };
        let totals = self.ways.iter().enumerate().map(totals).collect::<Result<Vec<_>, _>>()?;
        let mut faults: Vec<_> = totals.iter().filter_map(fault).collect();
        let lost_rows = carried.recorder.map_or(Ok(0), Recorder::finish)?;
        if lost_rows > 0 {
            let because = format!(
                "link {}: {lost_rows} packet records were lost because the disk was too slow",
                self.name
            );
            faults.push(Fault { because, late: false });
        }
        Ok(Outcome { totals, faults, priority, until_monotonic_ns })
    }

    /// The name of the link, hub or cell.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks the link to stop, without waiting for it: of several links, none carries packets while another one's records
    /// are closed. [`stop`](Self::stop) does it too.
    pub fn ask_to_stop(&mut self) {
        self.hands.ask_to_stop();
    }
}

/// Packets that the interfaces of a side lost.
#[derive(Debug, Clone, Copy)]
struct Drops {
    /// The host's, on the way to us.
    host: u64,
    /// Ours, on the way to the host.
    wire: u64,
}

impl Drops {
    /// By side.
    fn read(wire: &Host, ways: &[Way]) -> Result<Vec<Self>, WireError> {
        let of = |Way { end, .. }: &Way| {
            let host = end.host.interface_counts(&end.host_interface)?.send_drops;
            let wire = wire.interface_counts(&end.wire_interface)?.send_drops;
            Ok(Self { host, wire })
        };
        ways.iter().map(of).collect()
    }

    fn since(&self, before: &Self) -> Self {
        let less = u64::saturating_sub;
        Self { host: less(self.host, before.host), wire: less(self.wire, before.wire) }
    }
}
