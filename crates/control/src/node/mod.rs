//! A running node: lanes that obey, the APIs that command them, and its registration.

mod command;
mod handover;
mod lanes;
mod lead;
mod register;
mod status;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use rustls::ServerConfig;
use suiro_record::tables::UncompressedRingRow;
use suiro_record::{RecordError, Writer};
use suiro_uncompressed::live::{
    At, Event, Events, LaneConfig, Material, Order, Phase, Receiver, ReceiverConfig,
    ReceiverLaneConfig, Sender, SenderChange, SenderConfig, What,
};
use suiro_uncompressed::packet::{Format, Layout, PAYLOAD_TYPE, Stream as RtpStream};
use suiro_uncompressed::sdp::troff_us;
use suiro_uncompressed::{Geometry, node as streams, reader};
use suiro_units::{Bytes, Duration, Time};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

pub use status::{LaneStatus, ReceiverStatus, Status};

use self::handover::Handover;
use self::lanes::{Lane, Lanes};
use self::lead::Lead;
use self::register::Registering;
use crate::client::Manners;
use crate::desired::LEGS_MAX;
use crate::discovery::Registries;
use crate::events::{Journal, Log};
use crate::net;
use crate::nmos::Id;
use crate::nmos::connection::{Own, Side};
use crate::nmos::door::Door;
use crate::nmos::node::{Node, Streams};
use crate::nmos::resources::{About, Interface, Outgoing};
use crate::server::{Serving, Waiting};

/// How often a node looks at what its lanes did.
const TICK: StdDuration = StdDuration::from_millis(5);
/// Receive buffer of a stream that is stored: one frame of full HD and more.
const BUFFER_BYTES: u32 = 16 << 20;
/// How long after its time a frame may be complete: two paths may be so far apart.
const BUDGET: Duration = Duration::from_millis(50);

/// One stream that a node can send.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlet {
    /// Its number.
    pub stream: u32,
    /// Its frames.
    pub source: streams::Source,
    /// Where it goes if the Connection API says `auto`; `None`: to a group that its node chooses.
    pub to: Option<SocketAddrV4>,
}

/// One stream that a node can store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inlet {
    /// Its number.
    pub stream: u32,
    /// The folder of its stores: each recording is a file of its own.
    pub folder: PathBuf,
}

/// A node.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Its name, by which the desired state knows it.
    pub name: String,
    /// The address of the interface that its streams leave by, and at which its APIs are reached.
    pub address: Ipv4Addr,
    /// The registries where it may register.
    pub registries: Registries,
    /// How it approaches them.
    pub manners: Manners,
    /// The streams that it can send.
    pub outlets: Vec<Outlet>,
    /// The streams that it can store.
    pub inlets: Vec<Inlet>,
    /// How many streams it can send at a time.
    pub capacity: u32,
    /// How packets are formatted.
    pub format: Format,
    /// Its frames.
    pub geometry: Geometry,
    /// Largest IP packet in bytes.
    pub packet_bytes: u32,
    /// Frames in the ring of each stream.
    pub frames: u32,
    /// An emulated storage, if stores are not to be read as fast as they can be.
    pub shape: Option<reader::Shape>,
    /// Memory for each ring.
    pub memory: Bytes,
    /// Most packets of a burst.
    pub burst: u32,
    /// The CPU for its sending thread.
    pub cpu: Option<usize>,
    /// The offset that descriptions of its streams announce (TROFF); `None`: TRO_DEFAULT.
    pub troff: Option<Duration>,
}

/// Where a node is served, and who may command it.
pub struct Place {
    /// The socket.
    pub listener: TcpListener,
    /// Who may come in.
    pub door: Door,
    /// TLS, if it is served over it.
    pub tls: Option<Arc<ServerConfig>>,
}

/// Why a node ended.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Its streams cannot be sent.
    #[error(transparent)]
    Streams(#[from] streams::Error),
    /// A stream has no frames.
    #[error("cueing stream {stream}: {reason}")]
    Cue {
        /// The stream.
        stream: u32,
        /// Why.
        reason: String,
    },
    /// A thread that sends or receives ended.
    #[error("the thread that sends or receives ended: {0}")]
    Over(String),
    /// Records cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The system refused something.
    #[error("{doing}: {cause}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        cause: std::io::Error,
    },
}

/// What a node did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// For each stream: its number, frames sent, and frames repeated.
    pub streams: Vec<(u32, u64, u64)>,
}

/// Runs a node until `stop` is ready. Calls `ready` when it serves.
///
/// # Errors
/// [`NodeError`].
pub async fn run(
    spec: &Spec,
    place: Place,
    log: Log,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<Done, NodeError> {
    let failed = |doing| move |cause| NodeError::Io { doing, cause };
    let local = place.listener.local_addr().map_err(failed("reading the own address"))?;
    let mut running = Running::start(spec, local, &place, log)?;
    let mut serving = Serving::begin(place.listener, place.tls);
    // A registry that does not keep up hears of the latest state only.
    let (changes, changed) = watch::channel(BTreeMap::new());
    let (tell, mut told) = mpsc::channel(4);
    let registering = (!spec.registries.is_none()).then(|| {
        let (node, manners) = (&running.node, &spec.manners);
        let resources = node.resources();
        let own = Registering::begin(&spec.registries, manners, node.about(), resources, tell);
        tokio::spawn(own.run(changed))
    });
    ready();
    let mut stop = std::pin::pin!(stop);
    let mut tick = net::every(TICK);
    loop {
        let changed = tokio::select! {
            () = &mut stop => break,
            Some(waiting) = serving.next() => running.serve(waiting),
            Some(Ok(handover)) = running.handing.join_next() => running.handed_over(handover),
            Some((what, detail)) = told.recv() => {
                running.journal.note(what, None, None, &detail);
                Vec::new()
            }
            _ = tick.tick() => running.look()?,
        };
        for id in changed {
            if let Some(resource) = running.node.resource(&id) {
                changes.send_modify(|all| drop(all.insert(id, resource)));
            }
        }
    }
    drop(changes);
    serving.end().await;
    if let Some(registering) = registering {
        let farewell = tokio::time::timeout(StdDuration::from_secs(1), registering);
        drop(farewell.await);
    }
    running.close()
}

/// A node while it runs.
struct Running {
    node: Node,
    lanes: Lanes,
    /// What its lanes did: senders, receivers.
    events: Vec<(Side, Events)>,
    /// Which controller it obeys.
    lead: Lead,
    /// Commands that wait for other nodes to stop, and how those are approached.
    handing: JoinSet<Handover>,
    manners: Manners,
    journal: Journal,
    rings: Option<Writer<UncompressedRingRow>>,
    /// The first row that could not be written.
    failed: Option<RecordError>,
    recorded: Time,
    sent: Vec<u64>,
    frame_bytes: usize,
}

impl Running {
    fn start(spec: &Spec, local: SocketAddr, place: &Place, log: Log) -> Result<Self, NodeError> {
        let mut events = Vec::new();
        let sender = if spec.outlets.is_empty() {
            None
        } else {
            let (sender, told) = sender(spec)?;
            events.push((Side::Sender, told));
            Some(sender)
        };
        let receiver = if spec.inlets.is_empty() {
            None
        } else {
            let (receiver, told) = receiver(spec)?;
            events.push((Side::Receiver, told));
            Some(receiver)
        };
        let about = about(spec, local, place)?;
        let outgoing = |outlet: &Outlet| {
            let id = about.connection(Side::Sender, outlet.stream);
            let to = outlet.to.unwrap_or_else(|| lanes::default_group(&id));
            let own = Own { interfaces: vec![spec.address], destinations: vec![to] };
            (Outgoing { stream: outlet.stream, geometry: spec.geometry }, own)
        };
        let incoming = |inlet: &Inlet| {
            let own = Own { interfaces: vec![spec.address; LEGS_MAX], destinations: Vec::new() };
            (inlet.stream, own)
        };
        let streams = Streams {
            outgoing: spec.outlets.iter().map(outgoing).collect(),
            incoming: spec.inlets.iter().map(incoming).collect(),
        };
        let sending = spec.outlets.iter().map(|own| (Side::Sender, own.stream));
        let storing = spec.inlets.iter().map(|own| (Side::Receiver, own.stream));
        let lane = |(side, stream)| (about.connection(side, stream), Lane::new(side, stream));
        let lanes = Lanes {
            sender,
            receiver,
            what: (spec.format, spec.geometry, spec.packet_bytes),
            mac: Some(about.interfaces[0].mac).filter(|mac| *mac != [0; 6]),
            capacity: spec.capacity,
            troff_us: spec.troff.map(troff_us),
            folders: spec.inlets.iter().map(|own| (own.stream, own.folder.clone())).collect(),
            lanes: sending.chain(storing).map(lane).collect(),
        };
        let rings = log.dir().map(|dir| Writer::create_of(dir, log.endpoint())).transpose()?;
        Ok(Self {
            node: Node::new(about, place.door.clone(), &streams),
            lanes,
            events,
            lead: Lead::default(),
            handing: JoinSet::new(),
            manners: spec.manners.clone(),
            journal: Journal::create(log)?,
            rings,
            failed: None,
            recorded: net::monotonic(),
            sent: vec![0; spec.outlets.len()],
            frame_bytes: spec.geometry.frame_bytes(),
        })
    }

    fn serve(&mut self, waiting: Waiting) -> Vec<Id> {
        self.changed_by(|own| {
            let reply = own.answer(&waiting.ask);
            let hands_over =
                waiting.ask.after.is_some() && waiting.ask.claim.is_some() && reply.status == 202;
            if hands_over && own.handing.len() < handover::WAITING_MAX {
                own.hand_over(waiting, reply);
            } else {
                // Who asked may have gone.
                drop(waiting.reply.send(reply));
            }
        })
    }

    /// The senders and receivers whose state a step has changed.
    fn changed_by(&mut self, step: impl FnOnce(&mut Self)) -> Vec<Id> {
        let before: Vec<_> =
            self.node.connections().map(|(_, own)| (own.id().clone(), own.changed())).collect();
        step(self);
        let changed = before
            .into_iter()
            .filter(|(id, at)| self.node.connection(id).is_some_and(|own| own.changed() != *at));
        changed.map(|(id, _)| id).collect()
    }

    /// Completes activations and reads what the lanes did.
    fn look(&mut self) -> Result<Vec<Id>, NodeError> {
        let now = net::tai();
        let mut changed = self.node.advance(now);
        let mut happened = Vec::new();
        for (side, events) in &self.events {
            happened.extend(std::iter::from_fn(|| events.next()).map(|event| (*side, event)));
        }
        for (side, event) in happened {
            self.heard(side, &event, &mut changed)?;
        }
        if net::monotonic().saturating_since(self.recorded) >= Duration::from_secs(1) {
            self.record();
        }
        Ok(changed)
    }

    fn heard(&mut self, side: Side, event: &Event, changed: &mut Vec<Id>) -> Result<(), NodeError> {
        let stream = event.lane;
        let (what, detail) = match &event.what {
            What::Started { frame } => ("started", format!("frame {frame}")),
            What::Stopped { last } => ("stopped", format!("frame {last}")),
            What::Starved { frame } => ("starved", format!("frame {frame}")),
            What::Lagging { frame, late } => ("lagging", format!("frame {frame}, {late} late")),
            What::Late { ordered, frame } => {
                ("late", format!("frame {frame} instead of {ordered}"))
            }
            What::Recovered { frame } => ("recovered", format!("frame {frame}")),
            What::Stored { .. } => {
                self.note_stored(event);
                return Ok(());
            }
            What::Silent { since, .. } => ("silent", format!("nothing arrived for {since}")),
            What::Incomplete { frame, lost } => {
                ("incomplete", format!("frame {frame}, {lost} packets missing"))
            }
            What::Failed { because } => ("failed", because.clone()),
            What::Over { because } => {
                let because = because.clone().unwrap_or_else(|| "it was stopped".to_owned());
                return Err(NodeError::Over(because));
            }
            _ => return Ok(()),
        };
        self.journal.note(what, stream, None, &detail);
        if let (What::Failed { .. }, Some(id)) =
            (&event.what, stream.and_then(|own| self.lanes.id(side, own)).cloned())
        {
            self.lanes.ended(&id);
            if self.node.ended(&id, net::tai()) {
                changed.push(id);
            }
        }
        Ok(())
    }

    fn record(&mut self) {
        let now = net::monotonic();
        let span = now.saturating_since(self.recorded).as_secs_f64();
        self.recorded = now;
        let Some(rings) = &mut self.rings else { return };
        for (lane, before) in self.lanes.senders().iter().zip(&mut self.sent) {
            let sent = lane.counts.frames;
            let new = sent.saturating_sub(std::mem::replace(before, sent));
            let Some(ring) = lane.ring.filter(|_| lane.phase == Phase::Running) else { continue };
            let signed = u64::cast_signed;
            let written = rings.push(UncompressedRingRow {
                t_ns: self.journal.t_ns(now),
                endpoint: self.journal.endpoint(),
                stream: lane.number.into(),
                slots: signed(ring.slots),
                free: signed(ring.slots.saturating_sub(ring.waiting + ring.reading)),
                reading: signed(ring.reading),
                waiting: signed(ring.waiting),
                read_bps: None,
                send_bps: (span > 0.0).then(|| new as f64 * self.frame_bytes as f64 * 8.0 / span),
                repeats: 0,
                sent_frames: signed(sent),
                repeated_frames: signed(ring.repeats),
            });
            if let Err(error) = written {
                // The streams matter more than their records: it ends with this error, later.
                self.failed.get_or_insert(error);
            }
        }
    }

    /// Notes that a recording is closed, if that is what happened.
    fn note_stored(&mut self, event: &Event) {
        let What::Stored { path, frames, missing, slow } = &event.what else { return };
        let left_out = format!("{missing} missing, {slow} left out for a slow disk");
        let detail = format!("{frames} frames in {}, {left_out}", path.display());
        self.journal.note("stored", event.lane, None, &detail);
    }

    fn close(mut self) -> Result<Done, NodeError> {
        let senders = self.lanes.senders();
        if let Some(receiver) = self.lanes.receiver.take() {
            // It closes its recordings.
            receiver.stop();
        }
        for (_, events) in std::mem::take(&mut self.events) {
            for event in std::iter::from_fn(|| events.next()) {
                self.note_stored(&event);
            }
        }
        self.journal.close()?;
        self.rings.map(Writer::close).transpose()?;
        self.failed.map_or(Ok(()), Err)?;
        let of = |lane: &suiro_uncompressed::live::SenderLane| {
            (lane.number, lane.counts.frames, lane.ring.map_or(0, |ring| ring.repeats))
        };
        Ok(Done { streams: senders.iter().map(of).collect() })
    }
}

/// Starts the sender, with all streams cued.
fn sender(spec: &Spec) -> Result<(Sender, Events), NodeError> {
    let lane = |outlet: &Outlet| LaneConfig {
        number: outlet.stream,
        format: spec.format,
        geometry: spec.geometry,
        packet_bytes: spec.packet_bytes,
        // All nodes that can send a stream send it with the same source: receivers see one stream.
        stream: RtpStream { payload_type: PAYLOAD_TYPE, ssrc: outlet.stream + 1 },
    };
    let mut config = SenderConfig::new(spec.outlets.iter().map(lane).collect());
    config.ring = reader::Options {
        frames: spec.frames,
        memory: spec.memory,
        shape: spec.shape,
        ..config.ring
    };
    (config.burst, config.cpu) = (spec.burst, spec.cpu);
    let (sender, events) = Sender::start(config)?;
    for outlet in &spec.outlets {
        let material = Material { source: outlet.source.clone(), origin: 0, repeat: true };
        let order = Order::one(At::Next, outlet.stream, SenderChange::cue(material));
        sender.order(&order).map_err(|refusal| NodeError::Cue {
            stream: outlet.stream,
            reason: refusal.to_string(),
        })?;
    }
    Ok((sender, events))
}

/// Starts the receiver; it receives nothing yet.
fn receiver(spec: &Spec) -> Result<(Receiver, Events), NodeError> {
    let lane = |inlet: &Inlet| {
        let layout = Layout::new(spec.format, &spec.geometry, spec.packet_bytes);
        let layout =
            layout.map_err(|cause| streams::Error::Layout { stream: inlet.stream, cause })?;
        let (number, payload_type, budget) = (inlet.stream, PAYLOAD_TYPE, BUDGET);
        Ok(ReceiverLaneConfig { number, layout, payload_type, budget })
    };
    let lanes = spec.inlets.iter().map(lane).collect::<Result<_, streams::Error>>()?;
    let (buffer_bytes, verify, frames) = (BUFFER_BYTES, false, None);
    Ok(Receiver::start(ReceiverConfig { lanes, buffer_bytes, verify, cpu: None, frames })?)
}

fn about(spec: &Spec, local: SocketAddr, place: &Place) -> Result<About, NodeError> {
    let found =
        suiro_uncompressed::socket::Interface::with(spec.address).map_err(streams::Error::from)?;
    let interface = match found {
        Some(own) => Interface { name: own.name, mac: own.mac.unwrap_or_default() },
        // An address that no interface has yet: nothing can be sent from it, and sending reports
        // that.
        None => Interface { name: spec.address.to_string(), mac: [0; 6] },
    };
    Ok(About {
        name: spec.name.clone(),
        address: spec.address.into(),
        port: local.port(),
        tls: place.tls.is_some(),
        authorization: place.door.is_closed(),
        interfaces: vec![interface],
        tags: Vec::new(),
        since: net::tai(),
    })
}
