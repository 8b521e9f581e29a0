//! `suiro uncompressed node`, `registry` and `control`: a stream server commanded by NMOS.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use suiro_control::client::{Base, Client, Manners};
use suiro_control::controller;
use suiro_control::discovery::{Registries, Search};
use suiro_control::events::Log;
use suiro_control::net::{self, Exposure};
use suiro_control::nmos::door::Door;
use suiro_control::nmos::{Ask, Reply};
use suiro_control::node::{self, Inlet, Outlet, Place};
use suiro_control::plan::Limits;
use suiro_control::registry;
use suiro_endpoint::{Pulse, Stop};
use suiro_http::Clock;
use suiro_uncompressed::node::Source;
use suiro_uncompressed::packet::{Format, STANDARD_PACKET_BYTES};
use suiro_uncompressed::store::Store;
use suiro_uncompressed::{Geometry, send, synth};
use suiro_units::{Bytes, Duration};

use super::describe::{TROFF, TROFF_HELP};
use crate::args::within;
use crate::{Outcome, Usage};

/// Who may command a server, and how it is served.
#[derive(Debug, Args)]
pub struct Serving {
    /// Where its API is served.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// The bearer token that is asked for, and that is shown to others: the file's only line, 22 characters or more.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Serve over TLS with this certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,
    /// The certificate's private key (PEM).
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// Trust certificates that this authority issued (PEM): of registry and nodes.
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
    /// Serve other hosts without a token: every program that reaches the port can command the streams.
    #[arg(long)]
    insecure: bool,
    /// Folder for the records; none are written otherwise.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Arguments of `node`.
#[derive(Debug, Args)]
pub struct NodeArgs {
    /// Its name in the desired state.
    #[arg(long, value_name = "NAME")]
    name: String,
    /// The address of the interface that its streams leave by.
    #[arg(long, value_name = "ADDRESS")]
    address: Ipv4Addr,
    #[command(flatten)]
    registries: Known,
    /// A stream that it can send: its number and its frame store, or `synthetic`.
    #[arg(long = "stream", required_unless_present = "stores", value_name = "N=FILE", value_parser = Offered::from_str)]
    streams: Vec<Offered>,
    /// A stream that it can store: its number and the folder of the stores; each recording is a new file there.
    #[arg(long = "store", value_name = "N=DIR", value_parser = Stored::from_str)]
    stores: Vec<Stored>,
    /// The frames of its streams [default: those of its frame stores, else 1920x1080 YCbCr-4:2:2 10 60000/1001].
    #[arg(long, value_name = "GEOMETRY")]
    geometry: Option<Geometry>,
    /// How many streams it may send at a time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    capacity: u32,
    /// Largest IP packet in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = STANDARD_PACKET_BYTES, value_parser = clap::value_parser!(u32).range(576..=9000))]
    packet: u32,
    /// Frames in the ring of each stream.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(3..=100_000))]
    ring: u32,
    /// The CPU to pin the sending thread to [default: any].
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    #[arg(long, value_name = "TIME", value_parser = within(TROFF), help = TROFF_HELP)]
    troff: Option<Duration>,
    #[command(flatten)]
    serving: Serving,
}

/// A stream that a node can send.
#[derive(Debug, Clone)]
struct Offered {
    number: u32,
    store: Option<PathBuf>,
}

impl FromStr for Offered {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str =
            "expected a number below 64 and a store, such as 3=node-4.frames, or 3=synthetic";
        let (number, store) = numbered(text).ok_or(EXPECTED)?;
        let store = (store != "synthetic").then(|| PathBuf::from(store));
        Ok(Self { number, store })
    }
}

/// A stream that a node can store.
#[derive(Debug, Clone)]
struct Stored {
    number: u32,
    folder: PathBuf,
}

impl FromStr for Stored {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected a number below 64 and a folder, such as 3=recordings";
        let (number, folder) = numbered(text).ok_or(EXPECTED)?;
        Ok(Self { number, folder: PathBuf::from(folder) })
    }
}

/// The number of a stream, and the path behind it.
fn numbered(text: &str) -> Option<(u32, &str)> {
    let (number, path) = text.split_once('=')?;
    Some((number.parse().ok().filter(|number| *number < 64)?, path))
}

/// The registries that a node or controller may use.
#[derive(Debug, Args)]
struct Known {
    /// A registry, such as http://192.0.2.9:8235; may be repeated: the next one is used if the first does not answer [default:
    /// none].
    #[arg(long = "registry", value_name = "URL", value_parser = Base::parse)]
    fixed: Vec<Base>,
    /// Look for registries by DNS-SD, the first ones by their priority: by multicast, in the search domains of this machine, or
    /// there first [default: only those of --registry].
    #[arg(long = "dns-sd", value_name = "WHERE", value_parser = Search::from_str)]
    search: Option<Search>,
}

impl Known {
    fn registries(&self) -> Registries {
        Registries { fixed: self.fixed.clone(), search: self.search }
    }
}

/// Arguments of `registry`.
#[derive(Debug, Args)]
pub struct RegistryArgs {
    /// Announce it by multicast DNS with this priority: registries with a smaller one are used first [default: it is not
    /// announced].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..100))]
    announce: Option<u8>,
    #[command(flatten)]
    serving: Serving,
}

/// The commands of `control`.
#[derive(Debug, Subcommand)]
pub enum ControlCommand {
    /// Run a controller: it keeps the streams where the desired state wants them.
    Serve(ControlArgs),
    /// Print where the streams are.
    Status(AskArgs),
    /// Put all streams on air, at the same frame.
    Start(AskArgs),
    /// Take all streams off air, at the same frame.
    Stop(AskArgs),
    /// Move a stream to another node while it plays.
    Move(MoveArgs),
    /// Begin to store the streams at the nodes in `stored_by`, all at the same frame.
    StartStoring(AskArgs),
    /// End all recordings, at the same frame.
    StopStoring(AskArgs),
}

/// Arguments of `control serve`.
#[derive(Debug, Args)]
pub struct ControlArgs {
    /// The desired state: a TOML file, which the controller follows and keeps.
    #[arg(value_name = "FILE")]
    state: PathBuf,
    /// Its name, which another controller with the same file shows.
    #[arg(long, value_name = "NAME", default_value = "controller")]
    name: String,
    #[command(flatten)]
    registries: Known,
    /// How long before a change takes effect the nodes receive it.
    #[arg(long, value_name = "TIME", default_value = "250 ms")]
    lead: Duration,
    /// How long a node may be silent before a standby replaces it.
    #[arg(long, value_name = "TIME", default_value = "50 ms")]
    silence: Duration,
    /// How many frames a node may repeat, or send late or not at all, within a second before a standby replaces it.
    #[arg(long, value_name = "N", default_value_t = 3)]
    faulty_frames: u64,
    /// A program that is started with the name of a node that is wanted and not there.
    #[arg(long, value_name = "PROGRAM")]
    hook: Option<PathBuf>,
    #[command(flatten)]
    serving: Serving,
}

/// Which controller is asked.
#[derive(Debug, Args)]
pub struct AskArgs {
    /// The controller.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8090", value_parser = Base::parse)]
    controller: Base,
    /// The file with its token.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Trust certificates that this authority issued (PEM).
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `control move`.
#[derive(Debug, Args)]
pub struct MoveArgs {
    /// The stream's number.
    #[arg(value_name = "STREAM")]
    stream: u32,
    /// The node that shall send it.
    #[arg(value_name = "NODE")]
    node: String,
    #[command(flatten)]
    ask: AskArgs,
}

impl Serving {
    fn manners(&self) -> Result<Manners> {
        manners(self.token_file.as_deref(), self.authority.as_deref())
    }

    async fn place(&self) -> Result<Place> {
        let (door, exposure) = match (&self.token_file, self.insecure) {
            (Some(file), _) => (Door::with(&net::token(file)?)?, Exposure::Token),
            (None, true) => (Door::open(), Exposure::Insecure),
            (None, false) => (Door::local(), Exposure::Loopback),
        };
        let files = self.certificate.as_deref().zip(self.key.as_deref());
        let tls = files.map(|(certificate, key)| net::server_tls(certificate, key)).transpose()?;
        Ok(Place { listener: net::listen(self.listen, exposure).await?, door, tls })
    }

    fn log(&self, name: &str) -> Result<Log> {
        if let Some(dir) = &self.out {
            std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
        }
        let print = |line: &str| say!("{line}");
        Ok(Log { name: name.to_owned(), folder: self.out.clone(), epoch: net::monotonic(), print })
    }

    /// What is said when a place serves: with the port that it got, if it asked for any.
    fn told(&self, what: &str, place: &Place) -> Result<String> {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        let at = place.listener.local_addr().context("reading the own address")?;
        Ok(format!("{what} {scheme}://{at}; press Ctrl-C to stop"))
    }
}

fn manners(token: Option<&Path>, authority: Option<&Path>) -> Result<Manners> {
    let token = token.map(net::token).transpose()?;
    let tls = authority.map(net::client_tls).transpose()?;
    Ok(Manners { token, tls })
}

/// `suiro uncompressed node`.
pub fn node(args: &NodeArgs) -> Result<Outcome> {
    let (outlets, geometry) = outlets(&args.streams, args.geometry, args.ring)?;
    let spec = node::Spec {
        name: args.name.clone(),
        address: args.address,
        registries: args.registries.registries(),
        manners: args.serving.manners()?,
        outlets,
        inlets: inlets(&args.stores)?,
        capacity: args.capacity,
        format: Format::St2110,
        geometry,
        packet_bytes: args.packet,
        frames: args.ring,
        shape: None,
        memory: Bytes::new(4_000_000_000),
        burst: send::BURST,
        cpu: args.cpu,
        troff: args.troff,
    };
    let log = args.serving.log(&args.name)?;
    Pulse::new(Clock::from_now()).block_on(async {
        let place = args.serving.place().await?;
        let told = args.serving.told("node at", &place)?;
        let ready = || say!("{told}");
        let done = node::run(&spec, place, log, ready, Stop::default().requested()?).await?;
        let mut out = crate::say::results();
        for (stream, frames, repeated) in done.streams.into_iter().filter(|own| own.1 > 0) {
            writeln!(out, "stream {stream}: {frames} frames sent, {repeated} repeated")?;
        }
        Ok(Outcome::Done)
    })
}

/// The streams of a node; their frames must be the same.
fn outlets(
    offered: &[Offered],
    mut geometry: Option<Geometry>,
    frames: u32,
) -> Result<(Vec<Outlet>, Geometry)> {
    let mut outlets: Vec<Outlet> = Vec::new();
    for Offered { number, store } in offered {
        if outlets.iter().any(|other| other.stream == *number) {
            bail!(Usage(format!("--stream {number}: it is given twice")));
        }
        let own = match store {
            Some(path) => Store::open(path)?.header().geometry,
            None => geometry.unwrap_or(Geometry::HD),
        };
        if let Some(other) = geometry.replace(own).filter(|other| *other != own) {
            bail!(Usage(format!(
                "--stream {number}: expected frames of {other}, as before, found {own}"
            )));
        }
        let source = match store {
            Some(path) => Source::Store(path.clone()),
            None => Source::Synthetic { geometry: own, frames },
        };
        outlets.push(Outlet { stream: *number, source, to: None });
    }
    let geometry = geometry.unwrap_or(Geometry::HD);
    if !synth::fits(&geometry) && offered.iter().any(|own| own.store.is_none()) {
        bail!(Usage(format!(
            "--geometry {geometry}: synthetic frames have no room for their stamp"
        )));
    }
    Ok((outlets, geometry))
}

/// The streams that a node can store. Their folders are made.
fn inlets(stores: &[Stored]) -> Result<Vec<Inlet>> {
    let mut inlets: Vec<Inlet> = Vec::new();
    for Stored { number, folder } in stores {
        if inlets.iter().any(|other| other.stream == *number) {
            bail!(Usage(format!("--store {number}: it is given twice")));
        }
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        inlets.push(Inlet { stream: *number, folder: folder.clone() });
    }
    Ok(inlets)
}

/// `suiro uncompressed registry`.
pub fn registry(args: &RegistryArgs) -> Result<Outcome> {
    let log = args.serving.log("registry")?;
    Pulse::new(Clock::from_now()).block_on(async {
        let place = args.serving.place().await?;
        let told = args.serving.told("registry at", &place)?;
        let ready = || say!("{told}");
        registry::serve::run(place, args.announce, log, ready, Stop::default().requested()?)
            .await?;
        Ok(Outcome::Done)
    })
}

/// `suiro uncompressed control`.
pub fn control(command: &ControlCommand) -> Result<Outcome> {
    let post = |what: &str, body: &Value| {
        Ask::json("POST", &format!("/x-suiro/control/v1.0/{what}"), body)
    };
    match command {
        ControlCommand::Serve(args) => serve(args),
        ControlCommand::Status(args) => {
            let reply = ask(args, &Ask::read("/x-suiro/control/v1.0/status"))?;
            status(&reply.value(), args.json)
        }
        ControlCommand::Start(args) => accepted(&ask(args, &post("start", &json!({})))?),
        ControlCommand::Stop(args) => accepted(&ask(args, &post("stop", &json!({})))?),
        ControlCommand::StartStoring(args) => {
            accepted(&ask(args, &post("start-storing", &json!({})))?)
        }
        ControlCommand::StopStoring(args) => {
            accepted(&ask(args, &post("stop-storing", &json!({})))?)
        }
        ControlCommand::Move(args) => {
            let body = json!({ "stream": args.stream, "node": args.node });
            accepted(&ask(&args.ask, &post("move", &body))?)
        }
    }
}

fn serve(args: &ControlArgs) -> Result<Outcome> {
    let spec = controller::Spec {
        name: args.name.clone(),
        file: args.state.clone(),
        registries: args.registries.registries(),
        manners: args.serving.manners()?,
        lead: args.lead,
        // With the wait for the next frame, and the commands before it, it is less than three frame times.
        lead_fault: Duration::from_millis(20),
        every: std::time::Duration::from_millis(20),
        limits: Limits { silence: args.silence, frames: args.faulty_frames, ..Limits::default() },
        hook: args.hook.clone(),
    };
    let log = args.serving.log(&args.name)?;
    Pulse::new(Clock::from_now()).block_on(async {
        let place = args.serving.place().await?;
        let told = args.serving.told("controller and its page at", &place)?;
        let ready = || say!("{told}");
        controller::run(&spec, place, log, ready, Stop::default().requested()?).await?;
        Ok(Outcome::Done)
    })
}

fn ask(args: &AskArgs, ask: &Ask) -> Result<Reply> {
    let manners = manners(args.token_file.as_deref(), args.authority.as_deref())?;
    let reply = Pulse::new(Clock::from_now()).block_on::<_, anyhow::Error>(async {
        let mut client = Client::new(args.controller.clone(), manners);
        Ok(client.ask(ask, std::time::Duration::from_secs(10)).await?)
    })?;
    if reply.status >= 300 {
        bail!("{}: {} (status {})", args.controller, reply.reason(), reply.status);
    }
    Ok(reply)
}

fn accepted(reply: &Reply) -> Result<Outcome> {
    let accepted = reply.value()["accepted"].as_str().unwrap_or_default().to_owned();
    writeln!(crate::say::results(), "accepted: {accepted}")?;
    Ok(Outcome::Done)
}

/// The status as a table: one line for each stream, then the standbys.
fn status(status: &Value, as_json: bool) -> Result<Outcome> {
    let mut out = crate::say::results();
    if as_json {
        writeln!(out, "{status:#}")?;
        return Ok(Outcome::Done);
    }
    let text =
        |value: &Value| suiro_outside::text::printable(value.as_str().unwrap_or("-")).into_owned();
    let on = if status["running"] == true { "on air" } else { "off air" };
    let storing = if status["storing"] == true { "; storing" } else { "" };
    writeln!(out, "{on}{storing}; leader: {}", text(&status["leader"]))?;
    let list = |key: &str| status[key].as_array().cloned().unwrap_or_default();
    for stream in list("streams") {
        let stuck = stream["stuck"].as_str().map(|_| format!("  {}", text(&stream["stuck"])));
        let (node, to) = (text(&stream["node"]), text(&stream["to"]));
        writeln!(
            out,
            "stream {:>2}  {node:<16} {to}{}",
            stream["stream"].to_string(),
            stuck.unwrap_or_default()
        )?;
        for twin in stream["twins"].as_array().into_iter().flatten() {
            writeln!(out, "  twin     {:<16} {}", text(&twin["node"]), text(&twin["to"]))?;
        }
    }
    let sends = |name: &str| {
        list("streams").iter().any(|stream| {
            let mut twins = stream["twins"].as_array().into_iter().flatten();
            stream["node"] == *name || twins.any(|twin| twin["node"] == *name)
        })
    };
    for node in
        list("nodes").iter().filter(|node| !sends(node["name"].as_str().unwrap_or_default()))
    {
        let state = match (&node["fault"], &node["status"]) {
            (Value::String(_), _) => text(&node["fault"]),
            (_, Value::Null) => "not there".to_owned(),
            _ => "standby".to_owned(),
        };
        writeln!(out, "{:<10} {:<16} {state}", text(&node["site"]), text(&node["name"]))?;
    }
    Ok(Outcome::Done)
}
