//! Nodes, registries and controllers as endpoints of a trial. All of a trial's control stays in its own network
//! namespaces, so no token is required.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use suiro_endpoint::{Context, Failure, Stop, Summary};
use suiro_outside::{beside, file};
use suiro_scenario::{
    Job, NodeStorage, UncompressedController, UncompressedNode, UncompressedRegistry,
};
use suiro_uncompressed::node::Source;
use suiro_uncompressed::reader::Shape;
use suiro_uncompressed::{Geometry, job as streams};
use suiro_units::{Bytes, Duration, Time};

use crate::client::{Base, Manners};
use crate::controller;
use crate::desired::{BYTES_MAX, Desired, Twin};
use crate::discovery::Registries;
use crate::events::{Journal, Log};
use crate::net::{self, Exposure, NetError};
use crate::nmos::door::Door;
use crate::node::{self, Outlet, Place};
use crate::plan::Limits;
use crate::registry;

/// Memory of one ring at most: 600 frames of full HD have 3.1 GB.
const MEMORY: Bytes = Bytes::new(4_000_000_000);

async fn place(port: u16) -> Result<Place, NetError> {
    let address = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
    let listener = net::listen(address, Exposure::Insecure).await?;
    Ok(Place { listener, door: Door::open(), tls: None })
}

/// Where what happens goes. One that dies within the trial writes no tables: they would be cut off, and nobody could read
/// them.
fn log_of(job: &Job, dies: Option<Duration>, print: fn(&str)) -> Log {
    let epoch = Time::from_nanos(job.epoch_monotonic_ns);
    let folder = Some(job.dir.clone()).filter(|_| dies.is_none_or(|at| at > job.duration));
    Log { name: job.endpoint.name.clone(), folder, epoch, print }
}

/// Where a peer of the trial serves.
fn base(job: &Job, name: &str) -> Result<Base, Failure> {
    let peer = job.peers.get(name).ok_or("the job does not name its registry")?;
    let port = peer.port.ok_or("the registry has no port")?;
    Ok(Base { tls: false, host: peer.host.clone(), port })
}

/// Lets this process kill itself (SIGKILL) at a time of the trial. The process cannot prepare for it: records stay open, and
/// other endpoints find out by themselves.
fn die(job: &Job, at: Option<Duration>) {
    let Some(at) = at else { return };
    let at = until(job, at);
    tokio::spawn(async move {
        tokio::time::sleep(at.into()).await;
        let own = rustix::process::getpid();
        // It cannot fail for the own process.
        let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
    });
}

/// How long it is until a time of the trial.
fn until(job: &Job, at: Duration) -> Duration {
    (Time::from_nanos(job.epoch_monotonic_ns) + at).saturating_since(net::monotonic())
}

/// Runs an `uncompressed-node` until SIGTERM.
///
/// # Errors
/// If the job is not one, or the node ends by itself.
pub fn run_node(job: &Job, context: Context) -> Result<Summary, Failure> {
    let spec: &UncompressedNode =
        job.endpoint.spec.downcast().ok_or("it is not an uncompressed node's job")?;
    let log = log_of(job, spec.dies, context.log);
    let (pulse, ready, stop) = context.parts();
    let (format, full) = streams::what(spec.format);
    let geometry = streams::picture(spec.picture, full);
    let outlet = |stream: &u8| {
        let source = source(job, spec, &geometry, *stream)?;
        Ok(Outlet { stream: (*stream).into(), source, to: None })
    };
    let outlets = spec.streams.iter().map(outlet).collect::<Result<Vec<_>, Failure>>()?;
    let node = node::Spec {
        name: job.endpoint.name.clone(),
        address: suiro_endpoint::net::address_now(&job.endpoint.host)?,
        registries: Registries::only(base(job, &spec.registry)?),
        manners: Manners::default(),
        outlets: outlets.clone(),
        inlets: Vec::new(),
        capacity: spec.capacity,
        format,
        geometry,
        packet_bytes: u32::try_from(spec.packet.get()).expect("the scenario was checked"),
        frames: spec.frames,
        shape: spec.storage.map(|storage| shape(job, storage)),
        memory: MEMORY,
        burst: spec.burst,
        cpu: spec.cpu.and_then(suiro_endpoint::cpu::nth),
        troff: None,
    };
    let done = pulse.block_on::<_, Failure>(async {
        die(job, spec.dies);
        let done = node::run(&node, place(spec.port).await?, log, ready, stopped(stop)?).await?;
        Ok(Summary::of(&done))
    });
    for outlet in outlets {
        if let Source::Store(path) = outlet.source {
            let _ = std::fs::remove_file(path);
        }
    }
    done
}

/// The frames of a stream: of a storage, the file is written first.
fn source(
    job: &Job,
    spec: &UncompressedNode,
    geometry: &Geometry,
    stream: u8,
) -> Result<Source, Failure> {
    if spec.storage.is_none() {
        return Ok(Source::Synthetic { geometry: *geometry, frames: spec.frames });
    }
    let path = job.dir.join(format!("{}-{stream}.frames", job.endpoint.name));
    streams::store(&path, geometry, spec.frames, stream.into())?;
    Ok(Source::Store(path))
}

fn shape(job: &Job, storage: NodeStorage) -> Shape {
    let at = Time::from_nanos(job.epoch_monotonic_ns) + storage.slow_at;
    Shape { rate: storage.rate, latency: Duration::ZERO, later: Some((at, storage.slow_rate)) }
}

/// Runs an `uncompressed-registry` until SIGTERM.
///
/// # Errors
/// If the job is not one, or its port is taken.
pub fn run_registry(job: &Job, context: Context) -> Result<Summary, Failure> {
    let spec: &UncompressedRegistry =
        job.endpoint.spec.downcast().ok_or("it is not an uncompressed registry's job")?;
    let log = log_of(job, spec.dies, context.log);
    let (pulse, ready, stop) = context.parts();
    pulse.block_on(async {
        die(job, spec.dies);
        let nodes =
            registry::serve::run(place(spec.port).await?, None, log, ready, stopped(stop)?).await?;
        Ok(Summary::new(format!("{nodes} nodes at the end")))
    })
}

/// Runs an `uncompressed-controller` until SIGTERM, and does what its operator does.
///
/// # Errors
/// If the job is not one, or its desired state is none.
pub fn run_controller(job: &Job, context: Context) -> Result<Summary, Failure> {
    let spec: &UncompressedController =
        job.endpoint.spec.downcast().ok_or("it is not an uncompressed controller's job")?;
    let log = log_of(job, spec.dies, context.log);
    let (pulse, ready, stop) = context.parts();
    let file = job.dir.join(&spec.file);
    if !file.exists() {
        beside::write(&file, state(spec)?.as_bytes())?;
    }
    let limits =
        Limits { silence: spec.silence, frames: spec.faulty_frames.into(), ..Limits::default() };
    let controller = controller::Spec {
        name: job.endpoint.name.clone(),
        file: file.clone(),
        registries: Registries::only(base(job, &spec.registry)?),
        manners: Manners::default(),
        lead: spec.lead,
        lead_fault: spec.lead_fault,
        every: spec.ask_every.into(),
        limits,
        hook: None,
    };
    pulse.block_on(async {
        die(job, spec.dies);
        let operator = Log { name: format!("{}-operator", log.name), ..log.clone() };
        let acting = operate(job, spec, &file, operator);
        let running =
            controller::run(&controller, place(spec.port).await?, log, ready, stopped(stop)?);
        tokio::pin!(acting, running);
        let done = tokio::select! {
            done = &mut running => done?,
            // The operator has done all that there was to do.
            acted = &mut acting => {
                acted?;
                running.await?
            }
        };
        Ok(Summary::of(&done))
    })
}

/// The desired state at the start.
fn state(spec: &UncompressedController) -> Result<String, Failure> {
    if spec.twins.is_empty() {
        return Ok(spec.state.clone());
    }
    let mut desired = Desired::parse(&spec.state, "state")?;
    for (stream, node) in &spec.twins {
        let own = desired.streams.get_mut(stream);
        let own = own.ok_or_else(|| format!("twins: there is no stream {stream}"))?;
        own.twins.push(Twin { node: node.clone(), to: None });
    }
    Ok(desired.checked().map_err(|reason| format!("twins: {reason}"))?.text())
}

fn stopped(stop: Stop) -> io::Result<impl Future<Output = ()>> {
    stop.requested()
}

/// The operator: edits the file, as with an editor.
async fn operate(
    job: &Job,
    spec: &UncompressedController,
    place: &Path,
    log: Log,
) -> Result<(), Failure> {
    if spec.actions.is_empty() {
        return Ok(());
    }
    let mut journal = Journal::create(log)?;
    for action in &spec.actions {
        tokio::time::sleep(until(job, action.at).into()).await;
        let text = file::read_text(place, BYTES_MAX as u64)?;
        let mut desired = Desired::parse(&text, &place.display().to_string())?;
        for (stream, node) in &action.moves {
            let own = desired
                .streams
                .get_mut(stream)
                .ok_or_else(|| format!("there is no stream {stream}"))?;
            own.node.clone_from(node);
            journal.note("action", stream.parse().ok(), Some(node), "moved by the operator");
        }
        if let Some(running) = action.running {
            desired.running = running;
            journal.note("action", None, None, if running { "start" } else { "stop" });
        }
        beside::write(place, desired.text().as_bytes())?;
    }
    journal.close()?;
    Ok(())
}
