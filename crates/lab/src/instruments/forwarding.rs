//! What multicast routers forward, read from their kernels while a trial runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use suiro_hosts::Host;
use suiro_hosts::groups::Groups;
use suiro_record::Writer;
use suiro_record::table::Text;
use suiro_record::tables::{MulticastLinkRow, MulticastRow};
use suiro_units::Duration;

use crate::clock::Epoch;

/// How often they are read.
const PERIOD: Duration = Duration::from_millis(50);
/// Most rows of a router: an hour of 50 sources. What is beyond is counted.
const ROWS_MAX: u64 = 3_600_000;
/// The interface of FRR through which sources are registered, and its name in the records.
const REGISTER: (&str, &str) = ("pimreg", "register");

/// A router's host, and the link of each of its interfaces.
type Router = (Host, BTreeMap<String, String>);

/// The threads that read, one for each router.
pub struct Forwarding {
    stop: Vec<Sender<()>>,
    threads: Vec<JoinHandle<Result<u64>>>,
}

impl Forwarding {
    /// Starts to read; times count from `epoch`.
    pub fn start(routers: Vec<Router>, dir: &Path, epoch: Epoch) -> Result<Self> {
        let (mut stop, mut threads) = (Vec::new(), Vec::new());
        for (host, links) in routers {
            let name: Text = Arc::from(host.name());
            let log = Log {
                groups: Writer::create_of(dir, &name)?,
                links: Writer::create_of(dir, &name)?,
                names: Names { router: name, links },
                rows: 0,
                unwritten: 0,
            };
            let (sender, receiver) = channel();
            let thread = std::thread::Builder::new().name("forwarding".to_owned());
            let thread = thread.spawn(move || follow(&host, log, epoch, &receiver));
            threads.push(thread.context("starting a thread that reads a router's counters")?);
            stop.push(sender);
        }
        Ok(Self { stop, threads })
    }

    /// Reads once more and closes the tables; returns what failed.
    pub fn stop(self) -> Vec<String> {
        drop(self.stop);
        let fault = |thread: JoinHandle<Result<u64>>| {
            let ended = thread.join().unwrap_or_else(|_| Err(anyhow!("the thread panicked")));
            match ended {
                Ok(0) => None,
                Ok(rows) => Some(format!("{rows} rows of a router's counters were over the limit")),
                Err(error) => Some(format!("reading a router's counters: {error:#}")),
            }
        };
        self.threads.into_iter().filter_map(fault).collect()
    }
}

/// Reads every [`PERIOD`], and a last time when it is to stop; returns how many rows were left out.
fn follow(host: &Host, mut log: Log, epoch: Epoch, stop: &Receiver<()>) -> Result<u64> {
    host.enter_thread()?;
    loop {
        let waited = stop.recv_timeout(PERIOD.into());
        let groups = Groups::read()?;
        log.write(&groups, epoch.elapsed().as_nanos().cast_signed())?;
        if !matches!(waited, Err(RecvTimeoutError::Timeout)) {
            return log.close();
        }
    }
}

/// The two tables of a router.
struct Log {
    groups: Writer<MulticastRow>,
    links: Writer<MulticastLinkRow>,
    names: Names,
    rows: u64,
    unwritten: u64,
}

/// What its rows are called.
struct Names {
    router: Text,
    links: BTreeMap<String, String>,
}

impl Names {
    /// The link of an interface: FRR's own has a name of its own.
    fn link(&self, interface: &str) -> Text {
        let (of_frr, ours) = REGISTER;
        let link = self.links.get(interface).map(String::as_str);
        Arc::from(link.unwrap_or(if interface == of_frr { ours } else { interface }))
    }
}

impl Log {
    fn write(&mut self, read: &Groups, t_ns: i64) -> Result<()> {
        self.unwritten += read.unread as u64;
        let rows = (read.routes.len() + read.interfaces.len()) as u64;
        if self.rows + rows > ROWS_MAX {
            self.unwritten += rows;
            return Ok(());
        }
        self.rows += rows;
        let interface = |number: &u16| read.interfaces.iter().find(|it| it.number == *number);
        let link = |number: &u16| interface(number).map(|it| self.names.link(&it.name));
        for route in &read.routes {
            let outputs: Vec<Text> = route.outputs.iter().filter_map(link).collect();
            self.groups.push(MulticastRow {
                t_ns,
                router: self.names.router.clone(),
                group: Arc::from(route.group.to_string()),
                source: Arc::from(route.source.to_string()),
                input: route.input.as_ref().and_then(link),
                outputs: Arc::from(outputs.join(" ")),
                packets: signed(route.packets),
                bytes: signed(route.bytes),
                wrong_packets: signed(route.wrong),
            })?;
        }
        for own in &read.interfaces {
            self.links.push(MulticastLinkRow {
                t_ns,
                router: self.names.router.clone(),
                link: self.names.link(&own.name),
                packets_in: signed(own.packets_in),
                bytes_in: signed(own.bytes_in),
                packets_out: signed(own.packets_out),
                bytes_out: signed(own.bytes_out),
            })?;
        }
        Ok(())
    }

    fn close(self) -> Result<u64> {
        self.groups.close()?;
        self.links.close()?;
        Ok(self.unwritten)
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
