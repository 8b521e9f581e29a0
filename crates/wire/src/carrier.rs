//! A running link or hub on its own threads.

use std::path::Path;

use suiro_hosts::{EmulatedLink, EmulatedSegment, Host, LinkEnd, Station};
use suiro_link::{CellConfig, Direction, HubConfig, LinkConfig, PathConfig};
use suiro_record::LinkTotals;
use suiro_units::{Duration, Seed};

use crate::WireError;
use crate::bound::lateness_bound;
use crate::clock::Clock;
use crate::engine::{Engine, Side};
use crate::hands::{Ended, Hands};
use crate::link_core::{self, Core};
use crate::priority::Priority;
use crate::recorder::Recorder;
use crate::socket::PacketSocket;
use crate::totals::{Fault, KernelLosses, fault};

/// What a carrier carries.
#[derive(Debug, Clone, Copy)]
pub struct CarrierSpec<'a> {
    /// The link's name in the scenario; the records carry it.
    pub name: &'a str,
    /// The link's interfaces.
    pub link: &'a EmulatedLink,
    /// The namespace of its interfaces: [`suiro_hosts::Network::wire`].
    pub wire: &'a Host,
    /// What it does to packets.
    pub config: &'a LinkConfig,
    /// The seed of its randomness.
    pub seed: Seed,
    /// The trial's clock. Its epoch, from which schedules count, must not be in the future.
    pub clock: Clock,
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
    /// The link's end, in nanoseconds of CLOCK_REALTIME, with which captures stamp packets: it took every packet that it
    /// was offered until then, and none after.
    pub until_realtime_ns: u64,
}

/// What a carrier of a hub carries.
#[derive(Debug, Clone, Copy)]
pub struct HubSpec<'a> {
    /// The hub's name in the scenario, which the file of the records bears.
    pub name: &'a str,
    /// The names of its stations' links, in the order of [`EmulatedSegment::stations`]; the records carry them.
    pub links: &'a [&'a str],
    /// Its stations' interfaces.
    pub segment: &'a EmulatedSegment,
    /// The namespace of those interfaces: [`suiro_hosts::Network::wire`].
    pub wire: &'a Host,
    /// What it does to packets; as many stations as [`links`](Self::links).
    pub config: &'a HubConfig,
    /// The seed of its randomness.
    pub seed: Seed,
    /// The trial's clock, as in [`CarrierSpec`].
    pub clock: Clock,
    /// The folder for `link.NAME.parquet`; `None` to keep no record of packets.
    pub records: Option<&'a Path>,
}

/// What a carrier of a Wi-Fi cell carries.
#[derive(Debug, Clone, Copy)]
pub struct CellSpec<'a> {
    /// The cell's name in the scenario, which the file of the records bears.
    pub name: &'a str,
    /// The names of its stations' links, in their order; the records carry them.
    pub links: &'a [&'a str],
    /// The interfaces of those links, each from the access point to its station.
    pub ends: &'a [&'a EmulatedLink],
    /// The namespace of those interfaces: [`suiro_hosts::Network::wire`].
    pub wire: &'a Host,
    /// What it does to packets; as many stations as [`links`](Self::links).
    pub config: &'a CellConfig,
    /// The seed of its randomness.
    pub seed: Seed,
    /// The trial's clock, as in [`CarrierSpec`].
    pub clock: Clock,
    /// The folder for `link.NAME.parquet`; `None` to keep no record of packets.
    pub records: Option<&'a Path>,
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

/// What one side sends.
#[derive(Debug)]
struct Way {
    /// The link's name in the records.
    link: String,
    direction: Direction,
    end: LinkEnd,
    /// The side whose interface loses what this one has sent: of a hub, where that depends on the packet, its own.
    loses: usize,
    /// How late one packet in a hundred may be.
    bound: Duration,
}

impl Carrier {
    /// Starts to carry packets between the two ends of a link. Call it inside a
    /// [`suiro_hosts::Sandbox`].
    pub fn start(spec: &CarrierSpec<'_>) -> Result<Self, WireError> {
        let CarrierSpec { name, link, wire, config, seed, clock, records } = *spec;
        let way = |direction: Direction| Way {
            link: name.to_owned(),
            direction,
            end: [&link.from, &link.to][direction as usize].clone(),
            loses: direction.opposite() as usize,
            bound: lateness_bound(config.direction(direction)),
        };
        let ways = Direction::BOTH.map(way).into();
        let shared = config.wifi.is_some() || config.ethernet.is_some();
        let core = (Core::link(config, seed), link_core::least_of_link(config));
        Self::carry((name, wire), ways, shared, core, (clock, records))
    }

    /// Starts to carry packets between the stations of a hub. A frame goes to the station that it is addressed to. Call it
    /// inside a [`suiro_hosts::Sandbox`].
    pub fn start_hub(spec: &HubSpec<'_>) -> Result<Self, WireError> {
        let HubSpec { name, links, segment, wire, config, seed, clock, records } = *spec;
        let stations = segment.stations.iter().zip(links).zip(&config.stations).enumerate();
        let way =
            |(index, ((station, link), path)): (usize, ((&Station, &&str), &PathConfig))| Way {
                link: (*link).to_owned(),
                direction: Direction::Up,
                end: station.end.clone(),
                loses: index,
                bound: lateness_bound(path),
            };
        let ways = stations.map(way).collect();
        let macs = segment.stations.iter().map(|station| station.mac).collect();
        let core = (Core::hub(config, macs, seed), link_core::least_of_hub(config));
        Self::carry((name, wire), ways, true, core, (clock, records))
    }

    /// Starts to carry packets between an access point and its stations. Call it inside a [`suiro_hosts::Sandbox`].
    pub fn start_cell(spec: &CellSpec<'_>) -> Result<Self, WireError> {
        let CellSpec { name, links, ends, wire, config, seed, clock, records } = *spec;
        let mut ways = Vec::new();
        for ((name, link), station) in links.iter().zip(ends).zip(&config.stations) {
            for direction in Direction::BOTH {
                ways.push(Way {
                    link: (*name).to_owned(),
                    direction,
                    end: [&link.from, &link.to][direction as usize].clone(),
                    loses: ways.len() ^ 1,
                    bound: lateness_bound(station.direction(direction)),
                });
            }
        }
        let core = (Core::cell(config, seed), link_core::least_of_cell(config));
        Self::carry((name, wire), ways, true, core, (clock, records))
    }

    fn carry(
        (name, wire): (&str, &Host),
        ways: Vec<Way>,
        shared: bool,
        core: (Core, Duration),
        (clock, records): (Clock, Option<&Path>),
    ) -> Result<Self, WireError> {
        let open = |way: &Way| {
            let interface = &way.end.wire_interface;
            let socket = PacketSocket::open(interface)
                .map_err(WireError::os(format!("opening a packet socket on {interface}")))?;
            Ok::<_, WireError>(Side::new(socket, shared))
        };
        let sides = wire.enter(|| ways.iter().map(open).collect::<Result<Vec<_>, _>>())??;
        let links: Vec<&str> = ways.iter().map(|way| &*way.link).collect();
        let recorder = records.map(|dir| Recorder::create(dir, name, &links)).transpose()?;
        let before = Drops::read(wire, &ways)?;
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
        let until_realtime_ns = carried.until_ns;
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
        Ok(Outcome { totals, faults, priority, until_realtime_ns })
    }

    /// The name of the link or hub.
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
