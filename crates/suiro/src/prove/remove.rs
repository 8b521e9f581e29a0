//! The smallest change of a trial that removes a cause.

use std::collections::BTreeSet;
use std::ops::Range;

use suiro_analysis::why::{Crossed, Explained};
use suiro_link::{
    EthernetRate, LimitConfig, LossConfig, PathConfig, RateCurve, Schedule, ServerConfig,
};
use suiro_record::words::{Cause, Direction, Effect};
use suiro_scenario::{
    Command, Download, Endpoint, EndpointSpec, Link, QuicCongestion, Ready, Setup,
};
use suiro_units::{BitRate, Bytes, Duration, Ratio, Time};
use suiro_viewer::Buffer;

use super::curve;

/// What a cause did so long before an effect began can still be in it: the longest buffer of a player, about.
const BEFORE: Duration = Duration::from_secs(10);
/// So many times its rate is a link that limits nothing.
const WIDER: u64 = 10;
/// A delay that is this much above the shortest has risen; as `why` has it.
const RISEN: Duration = Duration::from_millis(50);
/// The delay of a path that is short: a rack of the next street.
const SHORT: Duration = Duration::from_millis(1);
/// The delay of a path whose own is too long: a continent.
const USUAL: Duration = Duration::from_millis(20);
/// A queue that is short, as a time at the rate in force.
const SHORT_QUEUE: Duration = Duration::from_millis(50);
/// The least that it holds: a TCP flow needs that many packets (RFC 6928's initial window).
const SHORT_QUEUE_LEAST: Bytes = Bytes::new(15_000);
/// A queue instead of a policer, as a time at the rate in force.
const QUEUE: Duration = Duration::from_millis(200);
/// A key frame that comes this often is never late.
const KEY_EVERY: Duration = Duration::from_millis(500);

/// A trial without a cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Removal {
    /// The change, such as `without the fall of link access at 12.0 s`.
    pub change: String,
    /// What it runs.
    pub setup: Setup,
}

/// An effect of a trial, and a cause that it is said to have.
pub struct Blamed<'a> {
    /// What the trial ran.
    pub setup: &'a Setup,
    /// The effect.
    pub effect: &'a Explained,
    /// The cause.
    pub cause: Cause,
    /// The links on the way of its media; none if they are not known.
    pub crossed: Option<&'a Crossed>,
}

/// When a cause acted.
struct When {
    /// It can have acted in this time, and still does at its end.
    during: Range<Duration>,
    /// What it did in this time is what is explained.
    explained: Range<Duration>,
    /// The end of the trial.
    until: Duration,
}

/// How an edit went: the change in words, or why it could not be made.
type Edit<T = String> = Result<T, &'static str>;

impl Blamed<'_> {
    /// The trial without the cause.
    ///
    /// # Errors
    /// Why that cannot be had.
    pub fn removal(&self) -> Edit<Removal> {
        let mut setup = self.setup.clone();
        let change = match self.cause {
            Cause::ServerProcessor | Cause::ClientProcessor => self.without_pause(&mut setup)?,
            Cause::Competing => self.without_others(&mut setup)?,
            Cause::CongestionWindow => other_congestion(&mut setup)?,
            Cause::OversizedRung => self.without_rungs(&mut setup)?,
            Cause::KeyFrame => more_key_frames(&mut setup)?,
            Cause::ReceiveWindow | Cause::SlowReader => self.reads_faster(&mut setup)?,
            Cause::JitterBuffer => self.without_buffer(&mut setup)?,
            Cause::AckPath => self.clean_back(&mut setup)?,
            Cause::LinkRate => self.wider_links(&mut setup)?,
            Cause::Cache => self.without_fault(&mut setup)?,
            _ => self.on_links(&mut setup)?,
        };
        Ok(Removal { change, setup })
    }

    /// When the cause can have acted.
    fn when(&self) -> When {
        let at = |ns: i64| Duration::from_nanos(u64::try_from(ns).unwrap_or(0));
        let (from, to) = (at(self.effect.from_ns), at(self.effect.to_ns));
        let before = from.saturating_sub(BEFORE);
        // A lower quality was requested because of what came before, and may last long.
        let explained = if self.effect.effect == Effect::Quality { from } else { to };
        When { during: before..to, explained: before..explained, until: self.setup.duration }
    }

    /// Changes each link on the way of the media.
    fn on_links(&self, setup: &mut Setup) -> Edit {
        let when = self.when();
        let edit: fn(&mut PathConfig, &When) -> Option<String> = match self.cause {
            Cause::RateStep => without_fall,
            Cause::Outage => without_outage,
            Cause::Policer => with_queue,
            Cause::Bufferbloat => shorter_queue,
            Cause::Loss | Cause::HeadOfLine => without_loss,
            Cause::Corruption => without_corruption,
            Cause::Reordering => without_reordering,
            Cause::Delay => without_delay,
            Cause::Jitter => without_jitter,
            Cause::RoundTrip | Cause::Handshake => short,
            _ => return Err("no change of a scenario removes it"),
        };
        let crossed = self.crossed.ok_or("the links on its path are not known")?;
        each(setup, &crossed.data, |path| edit(path, &when))
            .ok_or("no link on its path has a part that can be left out")
    }

    /// Nothing delays or loses what goes back.
    fn clean_back(&self, setup: &mut Setup) -> Edit {
        let when = self.when();
        let crossed = self.crossed.ok_or("the links on its path are not known")?;
        let clean = |path: &mut PathConfig| {
            let edits = [without_outage, without_fall, without_loss, without_delay, without_jitter];
            let done: Vec<String> = edits.iter().filter_map(|edit| edit(path, &when)).collect();
            (!done.is_empty()).then(|| done.join(" and "))
        };
        let change = each(setup, &crossed.back, clean);
        change.ok_or("no link on the path back has a part that can be left out")
    }

    /// The endpoints that the media of the viewer comes through, the viewer among them.
    fn own(&self) -> BTreeSet<String> {
        let (mut own, mut open) = (BTreeSet::new(), vec![self.effect.subject.clone()]);
        while let Some(name) = open.pop() {
            let endpoint = self.setup.endpoints.iter().find(|it| it.name == name);
            if let (Some(endpoint), true) = (endpoint, own.insert(name)) {
                open.extend(self.setup.upstream(endpoint));
                open.extend(endpoint.spec.references().into_iter().map(|it| it.name));
            }
        }
        own
    }

    /// All that is neither on the way of the media nor without traffic is left out.
    fn without_others(&self, setup: &mut Setup) -> Edit {
        let (own, hosts) = (self.own(), &self.setup.topology.hosts);
        let other = |it: &Endpoint| !own.contains(&it.name) && sends(it, hosts);
        leave_out(setup, other).ok_or("no other endpoint of the scenario sends")
    }

    /// Commands that send nothing and ran at that time, on the host that did not run: what else stops an endpoint, where
    /// computation takes no time?
    fn without_pause(&self, setup: &mut Setup) -> Edit {
        let (own, during, all) = (self.own(), self.when().during, &self.setup.topology.hosts);
        let viewer = |it: &Endpoint| it.name == self.effect.subject;
        let at_viewer = self.cause == Cause::ClientProcessor;
        let stopped = setup.endpoints.iter().filter(|it| own.contains(&it.name));
        let hosts: BTreeSet<String> =
            stopped.filter(|it| viewer(it) == at_viewer).map(|it| it.host.clone()).collect();
        let stops = |it: &Endpoint| {
            let then = it.start < during.end;
            it.spec.command().is_some() && !sends(it, all) && then && hosts.contains(&it.host)
        };
        leave_out(setup, stops).ok_or("no command of the scenario on its host can have stopped it")
    }

    /// The lowest rate of the links on the way, when the effect began.
    fn least_rate(&self, setup: &mut Setup) -> Option<BitRate> {
        let at = Time::from_nanos(u64::try_from(self.effect.from_ns).unwrap_or(0));
        let mut rates = Vec::new();
        each(setup, &self.crossed?.data, |path| {
            rates.extend(path.server.rate_at(at));
            None
        });
        rates.into_iter().min()
    }

    /// The slowest links are wider.
    fn wider_links(&self, setup: &mut Setup) -> Edit {
        let crossed = self.crossed.ok_or("the links on its path are not known")?;
        if let Some(change) = wider_medium(setup, crossed) {
            return Ok(change);
        }
        let at = Time::from_nanos(u64::try_from(self.effect.from_ns).unwrap_or(0));
        let least = self.least_rate(setup).ok_or("its links have no rate")?;
        let wider = |path: &mut PathConfig| {
            let is_slowest = path.server.rate_at(at) == Some(least);
            is_slowest.then(|| wider(path)).flatten()
        };
        each(setup, &crossed.data, wider).ok_or("its rate is that of a recorded trace")
    }

    /// The rungs are left out that the link did not carry.
    fn without_rungs(&self, setup: &mut Setup) -> Edit {
        let least = self.least_rate(setup).ok_or("its links have no rate")?;
        let own = self.own();
        let origins = setup.endpoints.iter_mut().filter(|it| own.contains(&it.name));
        let mut found = false;
        for origin in origins {
            if let EndpointSpec::Origin(origin) = &mut origin.spec {
                (origin.top, found) = (Some(least), true);
            }
        }
        let change = format!("without the rungs above {least}");
        found.then_some(change).ok_or("no origin offers rungs")
    }

    /// The caches on the way of the media do nothing wrong.
    fn without_fault(&self, setup: &mut Setup) -> Edit {
        let own = self.own();
        let mut names = Vec::new();
        for endpoint in setup.endpoints.iter_mut().filter(|it| own.contains(&it.name)) {
            if let EndpointSpec::Edge(edge) = &mut endpoint.spec
                && edge.fault.take().is_some()
            {
                names.push(endpoint.name.clone());
            }
        }
        let change = || format!("without the fault of cache {}", names.join(" and "));
        (!names.is_empty()).then(change).ok_or("no cache on its path has a fault")
    }

    fn without_buffer(&self, setup: &mut Setup) -> Edit {
        let viewer = setup.endpoints.iter_mut().find(|it| it.name == self.effect.subject);
        let policy = match viewer.map(|it| &mut it.spec) {
            Some(EndpointSpec::WebrtcViewer(viewer)) => &mut viewer.viewer,
            Some(EndpointSpec::MoqViewer(viewer)) => &mut viewer.viewer,
            Some(EndpointSpec::RtpReceiver(viewer)) => &mut viewer.viewer,
            _ => return Err("its viewer's buffer is not a key of a scenario"),
        };
        policy.buffer = Buffer::Fixed(Duration::ZERO);
        Ok(format!("without the jitter buffer of {}", self.effect.subject))
    }

    fn reads_faster(&self, setup: &mut Setup) -> Edit {
        let viewer = setup.endpoints.iter_mut().find(|it| it.name == self.effect.subject);
        let player = match viewer.map(|it| &mut it.spec) {
            Some(EndpointSpec::Player(player)) => player,
            _ => return Err("its viewer has no receive buffer to change"),
        };
        let limited = player.receive_buffer.take().is_some();
        let slow = std::mem::take(&mut player.download) != Download::default();
        match (limited, slow) {
            (true, _) => Ok("with the kernel's own receive buffer".into()),
            (false, true) => Ok("with a player that reads whole segments".into()),
            (false, false) => Err("its viewer's receive buffer is the kernel's"),
        }
    }
}

/// Changes directions of links, and says what was done to which.
fn each(
    setup: &mut Setup,
    ways: &[(String, Direction)],
    mut edit: impl FnMut(&mut PathConfig) -> Option<String>,
) -> Option<String> {
    let mut done: Vec<String> = Vec::new();
    for link in &mut setup.topology.links {
        let Some(config) = &mut link.config else { continue };
        for (direction, path) in
            [(Direction::Down, &mut config.down), (Direction::Up, &mut config.up)]
        {
            let is_on = ways.iter().any(|(name, way)| *name == link.name && *way == direction);
            let Some(change) = is_on.then(|| edit(path)).flatten() else { continue };
            let change = change.replace("LINK", &link.name);
            if !done.contains(&change) {
                done.push(change);
            }
        }
    }
    (!done.is_empty()).then(|| done.join(" and "))
}

/// Leaves out the endpoints that this holds for, and names them.
fn leave_out(setup: &mut Setup, holds: impl Fn(&Endpoint) -> bool) -> Option<String> {
    let out = setup.endpoints.iter().filter(|it| holds(it));
    let names: Vec<String> = out.map(|it| it.name.clone()).collect();
    setup.endpoints.retain(|it| !holds(it));
    (!names.is_empty()).then(|| format!("without {}", names.join(", ")))
}

/// Whether an endpoint is there for its traffic. Of a command that is so if the scenario says what it carries or where it
/// listens, if its words name another host or an address, or if it is iperf3.
fn sends(endpoint: &Endpoint, hosts: &[String]) -> bool {
    let Some(Command { command, carries, ready, .. }) = endpoint.spec.command() else {
        return true;
    };
    let program = |word: &String| word.rsplit('/').next() == Some("iperf3");
    let address = |word: &String| word.contains("10.0.0.") || word.contains("fd00::");
    let host = |word: &String| hosts.contains(word) && *word != endpoint.host;
    let says = command.iter().any(|word| program(word) || address(word) || host(word));
    says || carries.is_some() || matches!(ready, Ready::Port(_))
}

fn other_congestion(setup: &mut Setup) -> Edit {
    let mut names: BTreeSet<String> = BTreeSet::new();
    let quic = |congestion: &mut QuicCongestion| {
        *congestion = match congestion {
            QuicCongestion::Bbr => QuicCongestion::Cubic,
            _ => QuicCongestion::Bbr,
        };
        congestion.name().to_owned()
    };
    let tcp = |congestion: &mut Option<String>| {
        let other = if congestion.as_deref() == Some("bbr") { "cubic" } else { "bbr" };
        *congestion = Some(other.to_owned());
        other.to_owned()
    };
    for endpoint in &mut setup.endpoints {
        names.extend(match &mut endpoint.spec {
            EndpointSpec::Origin(origin) => Some(tcp(&mut origin.tcp)),
            EndpointSpec::Edge(edge) => Some(tcp(&mut edge.tcp)),
            EndpointSpec::MoqPublisher(publisher) => Some(quic(&mut publisher.congestion)),
            EndpointSpec::MoqRelay(relay) => Some(quic(&mut relay.congestion)),
            _ => None,
        });
    }
    let names: Vec<String> = names.into_iter().collect();
    let change = || format!("with another congestion control, {}", names.join(" and "));
    (!names.is_empty()).then(change).ok_or("no endpoint's congestion control can be changed")
}

fn more_key_frames(setup: &mut Setup) -> Edit {
    let mut found = false;
    for endpoint in &mut setup.endpoints {
        if let EndpointSpec::MoqPublisher(publisher) = &mut endpoint.spec
            && publisher.key_every > KEY_EVERY
        {
            (publisher.key_every, found) = (KEY_EVERY, true);
        }
    }
    let change = format!("with a key frame every {KEY_EVERY}");
    found.then_some(change).ok_or("its key frames come when they are asked for")
}

fn curve_of(server: &mut ServerConfig) -> Option<&mut RateCurve> {
    match server {
        ServerConfig::Steady(rate)
        | ServerConfig::Bucket { rate, .. }
        | ServerConfig::Poisson(rate) => Some(rate),
        ServerConfig::Unlimited
        | ServerConfig::Trace(_)
        | ServerConfig::Wifi
        | ServerConfig::Ethernet
        | ServerConfig::Cellular => None,
    }
}

fn seconds(at: Duration) -> String {
    format!("{:.1} s", at.as_secs_f64())
}

fn without_fall(path: &mut PathConfig, when: &When) -> Option<String> {
    let rate = curve_of(&mut path.server)?;
    let fall = curve::last_fall(rate, &when.explained, when.until)?;
    *rate = curve::without_fall(rate, &fall, when.until);
    // A limit in time fell with the rate.
    if let LimitConfig::Bytes(limit) = &mut path.queue.limit {
        let before = fall.span.start.saturating_sub(Duration::from_nanos(1));
        let before = *limit.at(Time::ZERO + before);
        curve::replace(limit, &fall.span, |bytes| (*bytes < before).then_some(before));
    }
    Some(format!("without the fall of link LINK at {}", seconds(fall.span.start)))
}

fn wider(path: &mut PathConfig) -> Option<String> {
    let rate = curve_of(&mut path.server)?;
    *rate = curve::raised(rate, WIDER);
    Some(format!("with {WIDER} times the rate of link LINK"))
}

/// Every hub on the way is one of 100 Mbit/s.
fn wider_medium(setup: &mut Setup, crossed: &Crossed) -> Option<String> {
    let on_way = |link: &&mut Link| crossed.data.iter().any(|(name, _)| *name == link.name);
    let hubs: BTreeSet<String> =
        setup.topology.links.iter_mut().filter(on_way).map(|link| link.from.clone()).collect();
    let mut found = false;
    for link in setup.topology.links.iter_mut().filter(|link| hubs.contains(&link.from)) {
        let ethernet = link.config.as_mut().and_then(|config| config.ethernet.as_mut());
        if let Some(ethernet) = ethernet.filter(|it| it.rate == EthernetRate::Ten) {
            (ethernet.rate, found) = (EthernetRate::Hundred, true);
            ethernet.delay = Duration::from_nanos(ethernet.delay.as_nanos() / WIDER);
        }
    }
    found.then(|| "with hubs of 100 Mbit/s".into())
}

fn without_outage(path: &mut PathConfig, when: &When) -> Option<String> {
    let rate = curve_of(&mut path.server)?;
    *rate = curve::without_outages(rate, &when.during, when.until)?;
    Some("without the outage of link LINK".into())
}

/// What a queue holds that needs a time to drain at the highest rate of a link.
fn bytes_of(path: &mut PathConfig, time: Duration) -> Option<Bytes> {
    let steps = curve_of(&mut path.server)?.steps.iter();
    let rate = steps.map(|step| step.rate).max()?;
    Some(Bytes::new((rate.as_bps() as f64 / 8.0 * time.as_secs_f64()) as u64))
}

fn with_queue(path: &mut PathConfig, _: &When) -> Option<String> {
    let bytes = bytes_of(path, QUEUE)?;
    path.queue.limit = LimitConfig::Bytes(Schedule::constant(bytes));
    Some(format!("with a queue of {QUEUE} before link LINK"))
}

fn shorter_queue(path: &mut PathConfig, _: &When) -> Option<String> {
    let bytes = bytes_of(path, SHORT_QUEUE)?.max(SHORT_QUEUE_LEAST);
    path.queue.limit = LimitConfig::Bytes(Schedule::constant(bytes));
    Some(format!("with a queue of {bytes} before link LINK"))
}

fn without_loss(path: &mut PathConfig, when: &When) -> Option<String> {
    let lossless = |loss: &LossConfig| (*loss != LossConfig::None).then_some(LossConfig::None);
    let found = curve::replace(&mut path.loss, &when.during, lossless);
    found.then(|| "without the loss of link LINK".into())
}

fn without_corruption(path: &mut PathConfig, _: &When) -> Option<String> {
    let found = std::mem::replace(&mut path.propagation.corrupt, Ratio::ZERO) != Ratio::ZERO;
    found.then(|| "without the corruption of link LINK".into())
}

fn without_reordering(path: &mut PathConfig, _: &When) -> Option<String> {
    path.propagation.reorder.take().map(|_| "without the reordering of link LINK".into())
}

/// Where the delay had risen, it stays as it was; where it is long throughout, it is shorter.
fn without_delay(path: &mut PathConfig, when: &When) -> Option<String> {
    let delay = &mut path.propagation.delay;
    let least = delay.steps().map(|(_, delay)| *delay).min()?;
    let rise = |delay: &Duration| (*delay > least + RISEN).then_some(least);
    if curve::replace(delay, &when.during, rise) {
        return Some("without the rise of link LINK's delay".into());
    }
    let long = |delay: &Duration| (*delay > USUAL + RISEN).then_some(USUAL);
    curve::replace(delay, &when.during, long)
        .then(|| format!("with a delay of {USUAL} on link LINK"))
}

fn without_jitter(path: &mut PathConfig, _: &When) -> Option<String> {
    path.propagation.jitter.take().map(|_| "without the jitter of link LINK".into())
}

fn short(path: &mut PathConfig, when: &When) -> Option<String> {
    let delay = &mut path.propagation.delay;
    let found = curve::replace(delay, &when.during, |delay| (*delay > SHORT).then_some(SHORT));
    found.then(|| format!("with a delay of {SHORT} on link LINK"))
}
