//! The trials of the benchmark: what happens to a stream when its sender is switched, killed, or started.

use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::{Context, Result, bail, ensure};
use suiro_hosts::Host;
use suiro_uncompressed::live::{
    At, Event, Events, Leg, Order, Receiver, ReceiverChange, ReceiverConfig, ReceiverLaneConfig,
    What,
};
use suiro_uncompressed::packet::{Format, Layout, PAYLOAD_TYPE, STUDY_PACKET_BYTES};
use suiro_uncompressed::{Geometry, clock};
use suiro_units::{Duration, Time};

use super::site::Site;

/// Frames from an order to its boundary.
const LEAD: u64 = 8;
/// Frames after a switch in which its loss would show.
const SETTLE: u64 = 5;
/// Paths to each lane.
const PATHS: u16 = 2;
/// The first port.
const PORT: u16 = 20_000;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the receiver's state is looked at while nothing else happens.
const LOOK: Duration = Duration::from_millis(4);

/// Where nodes and receiver are.
pub struct Place<'a> {
    /// The hosts of the two sites; none on loopback.
    pub sites: [Option<&'a Host>; 2],
    /// The receiver's address.
    pub receiver: Ipv4Addr,
    /// Frames of each lane.
    pub geometry: Geometry,
    /// Lanes of a node.
    pub lanes: u16,
    /// The receiver's delay budget.
    pub budget: Duration,
}

/// One switch.
#[derive(Debug, Clone, Copy, Default)]
pub struct Switch {
    /// Frames lost, incomplete or repeated, of all lanes.
    pub frames: u64,
    /// From the sender's death until it was noticed, in frame times.
    pub detected: f64,
    /// From then until the standby's first frame began, in frame times.
    pub on_air: f64,
}

/// The receiver and what it has reported.
pub struct Stage<'a> {
    place: &'a Place<'a>,
    receiver: Receiver,
    events: Events,
    ssrc: u32,
}

impl<'a> Stage<'a> {
    /// A receiver of all lanes on `paths` paths.
    pub fn new(place: &'a Place<'a>, paths: u16) -> Result<Self> {
        let layout = Layout::new(Format::Raster, &place.geometry, STUDY_PACKET_BYTES)?;
        let (payload_type, budget) = (PAYLOAD_TYPE, place.budget);
        let lane = |number| ReceiverLaneConfig { number, layout, payload_type, budget };
        let lanes = (0..u32::from(place.lanes)).map(lane).collect();
        let (verify, cpu, frames) = (true, None, None);
        let config = ReceiverConfig { lanes, buffer_bytes: 16 << 20, verify, cpu, frames };
        let (receiver, events) = Receiver::start(config)?;
        let mut stage = Self { place, receiver, events, ssrc: 1000 };
        stage.join(paths)?;
        Ok(stage)
    }

    fn join(&mut self, paths: u16) -> Result<()> {
        let leg = |lane: u16, path: u16| Leg {
            address: SocketAddrV4::new(self.place.receiver, port(lane, path)),
            interface: Ipv4Addr::UNSPECIFIED,
            source: None,
            payload_type: None,
        };
        let legs = |lane| (0..paths).map(|path| leg(lane, path)).collect();
        let changes = (0..self.place.lanes)
            .map(|lane| (u32::from(lane), ReceiverChange::join(legs(lane))))
            .collect();
        self.receiver.order(&Order { at: At::Next, issued: None, changes })?;
        let joined = |stage: &Self| {
            let state = stage.receiver.state();
            state.lanes.iter().all(|lane| lane.paths.len() == usize::from(paths))
        };
        self.wait_until(joined, "the receiver did not join")
    }

    /// A node at a site, a standby that sends to path `path`, with synchronisation sources of its own or given ones.
    fn node(&mut self, site: usize, path: u16, ssrc: Option<u32>) -> Result<Site> {
        self.ssrc += u32::from(self.place.lanes);
        let to: Vec<_> = (0..self.place.lanes)
            .map(|lane| SocketAddrV4::new(self.place.receiver, port(lane, path)))
            .collect();
        let host = self.place.sites[site];
        Site::start(host, &self.place.geometry, ssrc.unwrap_or(self.ssrc), &to)
    }

    /// The frame in progress.
    fn now(&self) -> u64 {
        self.receiver.epoch().frame_at(self.place.geometry.rate(), clock::monotonic())
    }

    fn tai(&self, frame: u64) -> Duration {
        self.place.geometry.rate().start_of(frame)
    }

    fn starts(&self, frame: u64) -> Time {
        self.receiver.epoch().start(self.place.geometry.rate(), frame)
    }

    /// Frames lost, incomplete or repeated so far, of all lanes.
    fn bad(&self) -> u64 {
        let counts = self.receiver.state().lanes.into_iter().map(|lane| lane.counts);
        counts.map(|own| own.lost + own.incomplete + own.repeated + own.corrupt).sum()
    }

    fn wait_until(&self, done: impl Fn(&Self) -> bool, otherwise: &str) -> Result<()> {
        let until = clock::monotonic() + PATIENCE;
        while !done(self) {
            ensure!(clock::monotonic() < until, "{otherwise} within {PATIENCE}");
            // Events that nobody waits for.
            let _ = self.events.wait(LOOK);
        }
        Ok(())
    }

    /// Waits until all lanes have decided frame `frame`.
    fn decided(&self, frame: u64) -> Result<()> {
        let done = |stage: &Self| {
            let state = stage.receiver.state();
            state.lanes.iter().all(|lane| lane.last.is_some_and(|last| last >= frame))
        };
        self.wait_until(done, "the stream did not go on")
    }

    fn event(&self, wanted: impl Fn(&What) -> bool, otherwise: &str) -> Result<Event> {
        let until = clock::monotonic() + PATIENCE;
        while clock::monotonic() < until {
            if let Some(event) = self.events.wait(LOOK)
                && wanted(&event.what)
            {
                return Ok(event);
            }
        }
        bail!("{otherwise} within {PATIENCE}")
    }

    fn drain(&self) {
        while self.events.next().is_some() {}
    }

    /// Starts a node's lanes and waits until they arrive.
    fn begin(&self, node: &mut Site) -> Result<()> {
        let first = self.now() + LEAD;
        node.order("start", Some(self.tai(first)))?;
        self.decided(first + SETTLE)
    }

    /// Moves all lanes from one node to the other and back, each time in one step at one frame.
    pub fn planned(&mut self, count: u32) -> Result<Vec<Switch>> {
        let (mut active, mut standby) = (self.node(0, 0, None)?, self.node(1, 0, None)?);
        self.begin(&mut active)?;
        let mut all = Vec::new();
        for _ in 0..count {
            self.drain();
            let (before, seam) = (self.bad(), self.now() + LEAD);
            standby.order("start", Some(self.tai(seam)))?;
            active.order("stop", Some(self.tai(seam)))?;
            self.decided(seam + SETTLE)?;
            let owners = self.receiver.state().lanes;
            let moved = owners
                .iter()
                .all(|lane| lane.ssrc.is_some_and(|own| own == standby.ssrc + lane.number));
            ensure!(moved, "the receiver did not take the standby's frames");
            all.push(Switch { frames: self.bad() - before, ..Switch::default() });
            std::mem::swap(&mut active, &mut standby);
        }
        Ok(all)
    }

    /// Kills a node of two that send the same over two paths, at ever different moments of a frame.
    pub fn twins(&mut self, count: u32) -> Result<Vec<Switch>> {
        let mut nodes = [self.node(0, 0, Some(1))?, self.node(1, 1, Some(1))?].map(Some);
        for node in nodes.iter_mut().flatten() {
            self.begin(node)?;
        }
        let mut all = Vec::new();
        for turn in 0..count {
            let at = (turn % 2) as usize;
            self.carried()?;
            let before = self.bad();
            self.moment(turn);
            nodes[at].take().context("a node that runs")?.kill()?;
            let died = self.now();
            self.decided(died + SETTLE)?;
            all.push(Switch { frames: self.bad() - before, ..Switch::default() });
            let mut again = self.node(at, at as u16, Some(1))?;
            again.order("start", None)?;
            nodes[at] = Some(again);
        }
        Ok(all)
    }

    /// Waits until all paths carry packets.
    fn carried(&self) -> Result<()> {
        let packets = |stage: &Self| {
            let lanes = stage.receiver.state().lanes;
            lanes
                .iter()
                .flat_map(|lane| lane.paths.clone())
                .map(|path| path.counts.packets)
                .collect()
        };
        let before: Vec<u64> = packets(self);
        let carried =
            |stage: &Self| packets(stage).iter().zip(&before).all(|(now, then)| now > then);
        self.wait_until(carried, "a path carried nothing")?;
        self.decided(self.now() + 2)
    }

    /// Waits for a moment within a frame that differs from turn to turn: the golden ratio's multiples.
    fn moment(&self, turn: u32) {
        let part = (f64::from(turn) * 0.618_034).fract();
        let period = self.place.geometry.rate().period();
        clock::wait_until(self.starts(self.now() + 2) + period.mul_f64(part));
    }

    /// Kills the only sender; as soon as the receiver reports it, a standby is started.
    pub fn failures(&mut self, count: u32) -> Result<Vec<Switch>> {
        let period = self.place.geometry.rate().period();
        let (mut active, mut site) = (self.node(0, 0, None)?, 0);
        self.begin(&mut active)?;
        let mut all = Vec::new();
        for turn in 0..count {
            let mut standby = self.node(1 - site, 0, None)?;
            self.decided(self.now() + 2)?;
            self.drain();
            let before = self.bad();
            self.moment(turn);
            let died = clock::monotonic();
            active.kill()?;
            self.event(|what| matches!(what, What::Silent { .. }), "silence was not reported")?;
            let noticed = clock::monotonic();
            standby.order("start", None)?;
            let mut first = 0;
            for _ in 0..self.place.lanes {
                let seam = self.event(|what| matches!(what, What::Seam { .. }), "no standby")?;
                if let What::Seam { frame, .. } = seam.what {
                    first = first.max(frame);
                }
            }
            self.decided(first + SETTLE)?;
            all.push(Switch {
                frames: self.bad() - before,
                detected: noticed.saturating_since(died) / period,
                on_air: self.starts(first).saturating_since(noticed) / period,
            });
            (active, site) = (standby, 1 - site);
        }
        Ok(all)
    }

    /// Starts as many nodes as there are lanes, each of one lane, at one time; how many frames lie between the first frames
    /// of the lanes.
    pub fn starts_together(&mut self, count: u32) -> Result<Vec<Switch>> {
        let mut nodes = Vec::new();
        for lane in 0..self.place.lanes {
            let to = SocketAddrV4::new(self.place.receiver, port(lane, 0));
            let host = self.place.sites[usize::from(lane % 2)];
            nodes.push(Site::start(host, &self.place.geometry, 1 + u32::from(lane), &[to])?);
        }
        let lanes = || 0..u32::from(self.place.lanes);
        let mut all = Vec::new();
        for _ in 0..count {
            let first = self.now() + LEAD;
            let (begin, end) = (self.tai(first), self.tai(first + SETTLE + LEAD));
            for node in &mut nodes {
                node.order("start", Some(begin))?;
            }
            self.decided(first + 2)?;
            let began = self.receiver.state().lanes.into_iter().map(|lane| lane.first);
            let frames = began.map(|own| own.map_or(u64::MAX, |own| own.abs_diff(first))).max();
            all.push(Switch { frames: frames.unwrap_or(u64::MAX), ..Switch::default() });
            let leave = Order::all(At::Tai(end), lanes(), &ReceiverChange::leave());
            self.receiver.order(&leave)?;
            for node in &mut nodes {
                node.order("stop", Some(end))?;
            }
            let left = |stage: &Self| {
                stage.receiver.state().lanes.iter().all(|lane| lane.paths.is_empty())
            };
            self.wait_until(left, "the receiver did not leave")?;
            self.join(1)?;
        }
        Ok(all)
    }
}

const fn port(lane: u16, path: u16) -> u16 {
    PORT + lane * PATHS + path
}
