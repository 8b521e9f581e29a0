//! A running link on its own threads.

use std::path::Path;

use suiro_hosts::{EmulatedLink, Host, LinkEnd};
use suiro_link::{Direction, LinkConfig};
use suiro_record::LinkTotals;
use suiro_units::{Duration, Seed};

use crate::WireError;
use crate::bound::lateness_bound;
use crate::clock::Clock;
use crate::engine::Engine;
use crate::hands::{Ended, Hands};
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
    /// Down, then up.
    pub totals: [LinkTotals; 2],
    /// Why measurements over the link must not be used; empty if they may be used.
    pub faults: Vec<Fault>,
    /// The best priority that its threads were allowed.
    pub priority: Priority,
    /// The link's end, in nanoseconds of CLOCK_REALTIME, with which captures stamp packets: it took every packet that it
    /// was offered until then, and none after.
    pub until_realtime_ns: u64,
}

/// A running link. Dropping it ends it without recording the packets that are in it; see
/// [`stop`](Self::stop).
#[derive(Debug)]
pub struct Carrier {
    name: String,
    link: EmulatedLink,
    wire: Host,
    before: Drops,
    /// By direction: how late one packet in a hundred may be.
    bounds: [Duration; 2],
    hands: Hands,
}

impl Carrier {
    /// Starts to carry packets between the two ends of a link. Call it inside a
    /// [`suiro_hosts::Sandbox`].
    pub fn start(spec: &CarrierSpec<'_>) -> Result<Self, WireError> {
        let sockets = open_sockets(spec.wire, spec.link)?;
        let recorder = spec.records.map(|dir| Recorder::create(dir, spec.name)).transpose()?;
        let before = Drops::read(spec.wire, spec.link)?;
        let engine = Engine::new(spec.clock, sockets, (spec.config, spec.seed), recorder);
        let bounds =
            Direction::BOTH.map(|direction| lateness_bound(spec.config.direction(direction)));
        let hands = Hands::start(spec.name, spec.clock, engine, bounds[0].min(bounds[1]))
            .map_err(WireError::os("starting the threads of a link"))?;
        Ok(Self {
            name: spec.name.to_owned(),
            link: spec.link.clone(),
            wire: spec.wire.clone(),
            before,
            bounds,
            hands,
        })
    }

    /// Stops carrying packets: those still in the link are recorded as `queued`, the records are
    /// closed, and the outcome is returned.
    pub fn stop(self) -> Result<Outcome, WireError> {
        let ended = self.hands.stop();
        let Ended { carried, priority, cpu_cores, real_time, takeovers } =
            ended.map_err(WireError::os(format!("carrying link {}", self.name)))?;
        let lost = self.before.until(&Drops::read(&self.wire, &self.link)?);
        let until_realtime_ns = carried.until_ns;
        let totals = |direction: Direction| {
            let [own, opposite] = [direction, direction.opposite()]
                .map(|direction| &carried.sides[direction as usize]);
            let ring = own.socket.drops();
            let losses = KernelLosses {
                ring: ring.map_err(WireError::os("reading the drops of a packet socket"))?,
                before: lost.hosts[direction as usize],
                // What the interface refused was sent again.
                after: lost.wires[direction as usize].saturating_sub(opposite.socket.refused),
            };
            let mut totals = own.counts.totals(&self.name, direction, losses);
            (totals.cpu_cores, totals.real_time) = (Some(cpu_cores), Some(real_time));
            totals.takeovers = takeovers;
            totals.lateness_bound_us =
                Some(self.bounds[direction as usize].as_nanos() as f64 / 1e3);
            Ok::<_, WireError>(totals)
        };
        let totals = [totals(Direction::Down)?, totals(Direction::Up)?];
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

    /// Asks the link to stop, without waiting for it: of several links, none carries packets while another one's records
    /// are closed. [`stop`](Self::stop) does it too.
    pub fn ask_to_stop(&mut self) {
        self.hands.ask_to_stop();
    }
}

fn open_sockets(wire: &Host, link: &EmulatedLink) -> Result<[PacketSocket; 2], WireError> {
    let open = |end: &LinkEnd| {
        let interface = &end.wire_interface;
        PacketSocket::open(interface)
            .map_err(WireError::os(format!("opening a packet socket on {interface}")))
    };
    wire.enter(|| Ok([open(&link.from)?, open(&link.to)?]))?
}

/// Packets that interfaces lost, by direction: the sending hosts' interfaces, and ours towards the
/// receiving hosts.
#[derive(Debug, Clone, Copy)]
struct Drops {
    hosts: [u64; 2],
    wires: [u64; 2],
}

impl Drops {
    fn read(wire: &Host, link: &EmulatedLink) -> Result<Self, WireError> {
        let host = |end: &LinkEnd| end.host.interface_counts(&end.host_interface);
        let ours = |end: &LinkEnd| wire.interface_counts(&end.wire_interface);
        Ok(Self {
            hosts: [host(&link.from)?.send_drops, host(&link.to)?.send_drops],
            wires: [ours(&link.to)?.send_drops, ours(&link.from)?.send_drops],
        })
    }

    fn until(&self, later: &Self) -> Self {
        let less =
            |a: [u64; 2], b: [u64; 2]| [a[0].saturating_sub(b[0]), a[1].saturating_sub(b[1])];
        Self { hosts: less(later.hosts, self.hosts), wires: less(later.wires, self.wires) }
    }
}
