//! A running link on its own thread.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use suiro_hosts::{EmulatedLink, Host, LinkEnd};
use suiro_link::{Direction, LinkConfig};
use suiro_record::LinkTotals;
use suiro_units::Seed;

use crate::WireError;
use crate::clock::Clock;
use crate::engine::{Carried, Engine};
use crate::priority::{self, Priority};
use crate::recorder::Recorder;
use crate::socket::PacketSocket;
use crate::totals::{KernelLosses, invalid_because};

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
    /// Why measurements over the link must not be used, one sentence each; empty if they may be
    /// used.
    pub faults: Vec<String>,
    /// How its thread was scheduled.
    pub priority: Priority,
}

/// A running link. Dropping it ends it without recording the packets that are in it; see
/// [`stop`](Self::stop).
#[derive(Debug)]
pub struct Carrier {
    name: String,
    link: EmulatedLink,
    wire: Host,
    before: Drops,
    stopped: Arc<AtomicBool>,
    wake: Option<PipeWriter>,
    thread: Option<JoinHandle<io::Result<Ended>>>,
}

/// What the carrier's thread returns.
struct Ended {
    carried: Carried,
    priority: Priority,
    cpu_cores: Option<f64>,
}

impl Carrier {
    /// Starts to carry packets between the two ends of a link. Call it inside a
    /// [`suiro_hosts::Sandbox`].
    pub fn start(spec: &CarrierSpec<'_>) -> Result<Self, WireError> {
        let sockets = open_sockets(spec.wire, spec.link)?;
        let recorder = spec.records.map(|dir| Recorder::create(dir, spec.name)).transpose()?;
        let before = Drops::read(spec.wire, spec.link)?;
        let engine = Engine::new(spec.clock, sockets, (spec.config, spec.seed), recorder);
        let (reader, wake) = io::pipe().map_err(WireError::os("making a pipe"))?;
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        let clock = spec.clock;
        let thread = std::thread::Builder::new()
            .name(format!("link-{}", spec.name))
            .spawn(move || carry(clock, engine, &stop, &reader))
            .map_err(WireError::os("starting a thread"))?;
        Ok(Self {
            name: spec.name.to_owned(),
            link: spec.link.clone(),
            wire: spec.wire.clone(),
            before,
            stopped,
            wake: Some(wake),
            thread: Some(thread),
        })
    }

    /// Stops carrying packets: those still in the link are recorded as `queued`, the records are
    /// closed, and the outcome is returned.
    pub fn stop(mut self) -> Result<Outcome, WireError> {
        self.ask_to_stop();
        let thread = self.thread.take().expect("the thread runs until it is stopped");
        let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let Ended { carried, priority, cpu_cores } =
            ended.map_err(WireError::os(format!("carrying link {}", self.name)))?;
        let lost = self.before.until(&Drops::read(&self.wire, &self.link)?);
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
            Ok::<_, WireError>(own.counts.totals(&self.name, direction, losses, cpu_cores))
        };
        let totals = [totals(Direction::Down)?, totals(Direction::Up)?];
        let mut faults: Vec<_> = totals.iter().filter_map(invalid_because).collect();
        let lost_rows = carried.recorder.map_or(Ok(0), Recorder::finish)?;
        if lost_rows > 0 {
            faults.push(format!(
                "link {}: {lost_rows} packet records were lost because the disk was too slow",
                self.name
            ));
        }
        Ok(Outcome { totals, faults, priority })
    }

    /// Asks the link to stop, without waiting for it: of several links, none carries packets while another one's records
    /// are closed. [`stop`](Self::stop) does it too.
    pub fn ask_to_stop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.wake = None;
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.ask_to_stop();
        if let Some(thread) = self.thread.take() {
            // The result cannot be returned from here.
            let _ = thread.join();
        }
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

fn carry(
    clock: Clock,
    mut engine: Engine,
    stopped: &AtomicBool,
    wake: &PipeReader,
) -> io::Result<Ended> {
    let priority = priority::raise();
    let (began, cpu_before) = (clock.now(), cpu_seconds());
    engine.run(stopped, wake.as_fd())?;
    let span = clock.now().saturating_since(began).as_secs_f64();
    let cpu_cores = cpu_before.zip(cpu_seconds()).map(|(before, after)| (after - before) / span);
    Ok(Ended { carried: engine.finish(), priority, cpu_cores })
}

/// Processor time of the calling thread.
fn cpu_seconds() -> Option<f64> {
    // SAFETY: plain numbers; the call fills them in.
    let mut usage = unsafe { std::mem::zeroed::<libc::rusage>() };
    // SAFETY: `usage` is alive.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    (result == 0).then(|| seconds(usage.ru_utime) + seconds(usage.ru_stime))
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
