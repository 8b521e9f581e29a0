//! Multicast routers: FRR's `zebra` and `pimd` in the hosts that route multicast, configured from the scenario, and what
//! their kernels forward (tables `multicast` and `multicast_links`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use suiro_hosts::{Host, Network, private_files};
use suiro_scenario::{Link, Multicast, Setup, Topology};
use suiro_units::{Duration, Time};

use super::forwarding::Forwarding;
use super::{Found, Instrument, Prepared, Running, Scene};
use crate::clock::Epoch;
use crate::process::{Event, Process, describe};

/// Where distributions install FRR's daemons.
const FOLDERS: [&str; 3] = ["/usr/lib/frr", "/usr/libexec/frr", "/usr/sbin"];
/// Longest time until the routers know each other.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// How often they are asked.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// How long a daemon may take to stop.
const GRACE: Duration = Duration::from_secs(3);
/// What is bound over /etc/group for the daemons: `private_files`.
const GROUPS: &str = "root:x:0:\nfrr:x:0:root\nfrrvty:x:0:root\n";

/// The hosts that route multicast.
pub struct MulticastRouters;

/// The routers of a trial while it runs.
struct Routers {
    daemons: Vec<Daemon>,
    events: Receiver<Event>,
    folders: Vec<PathBuf>,
    version: Option<String>,
    forwarding: Option<Forwarding>,
}

struct Daemon {
    /// `zebra of core`.
    name: String,
    process: Process,
}

/// Where the daemon `name` of FRR is installed.
fn installed(name: &str) -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}

impl Instrument for MulticastRouters {
    fn lacking(&self, setup: &Setup) -> Option<String> {
        setup.topology.multicast.as_ref()?;
        let missing = ["zebra", "pimd"].into_iter().find(|it| installed(it).is_none())?;
        Some(format!("[multicast]: FRR's `{missing}` is missing\nhint: {REMEDY}"))
    }

    fn prepare(&self, scene: Scene<'_>) -> Result<Option<Box<dyn Prepared>>> {
        let Scene { network, setup: Setup { topology, .. }, dir, .. } = scene;
        let Some(multicast) = &topology.multicast else { return Ok(None) };
        Ok(Some(Box::new(Routers::start(network, (topology, multicast), dir)?)))
    }
}

impl Prepared for Routers {
    /// Starts to record what the routers forward.
    fn start(mut self: Box<Self>, scene: Scene<'_>, epoch: Epoch) -> Result<Box<dyn Running>> {
        let Scene { network, setup: Setup { topology, .. }, dir, .. } = scene;
        let router = |name: &String| {
            let host = network.host(name).context("the plan names its hosts")?.clone();
            let links = interfaces(name, topology).into_iter();
            Ok((host, links.map(|(interface, link)| (interface, link.name.clone())).collect()))
        };
        let routers = topology.multicast.iter().flat_map(|multicast| &multicast.routers);
        let routers = routers.map(router).collect::<Result<Vec<_>>>()?;
        self.forwarding = Some(Forwarding::start(routers, dir, epoch)?);
        Ok(self)
    }
}

impl Running for Routers {
    fn stop(mut self: Box<Self>, _: Scene<'_>, _: Epoch, found: &mut Found) -> Result<()> {
        found.versions.extend(self.version.take().map(|version| ("frr".to_owned(), version)));
        found.faults.extend(self.end());
        Ok(())
    }
}

impl Routers {
    /// Starts the routers that the topology asks for, and waits until neighbours know each other.
    fn start(
        network: &Network,
        (topology, multicast): (&Topology, &Multicast),
        dir: &Path,
    ) -> Result<Self> {
        let (sender, events) = channel();
        let mut routers = Self {
            daemons: Vec::new(),
            events,
            folders: Vec::new(),
            version: version(),
            forwarding: None,
        };
        let group = dir.join("routers").join("group");
        std::fs::create_dir_all(dir.join("routers")).context("making a folder for routers")?;
        std::fs::write(&group, GROUPS).with_context(|| format!("writing {}", group.display()))?;
        for name in &multicast.routers {
            let host = network.host(name).context("the plan names its hosts")?;
            let place = Place { host, topology, multicast, dir, group: &group };
            routers
                .begin(&place, &sender)
                .with_context(|| format!("starting the router {name}"))?;
        }
        routers.meet(topology, multicast, dir)?;
        Ok(routers)
    }

    fn begin(&mut self, place: &Place<'_>, sender: &Sender<Event>) -> Result<()> {
        let folder = place.folder();
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        self.folders.push(folder.clone());
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
        };
        // Without that, zebra stops the forwarding of IPv6.
        let forwarding = "ip forwarding\nipv6 forwarding\n";
        write("zebra.conf", format!("hostname {}\n{forwarding}", place.host.name()))?;
        write("pimd.conf", place.configuration()?)?;
        for daemon in ["zebra", "pimd"] {
            let command = place.command(daemon)?;
            let log = place.dir.join("logs").join(format!("{}.{daemon}.log", place.host.name()));
            let process = Process::start(command, self.daemons.len(), &log, sender)
                .with_context(|| format!("starting {daemon}"))?;
            let name = format!("{daemon} of {}", place.host.name());
            self.daemons.push(Daemon { name, process });
            self.appears(&folder.join(format!("{daemon}.vty")))?;
        }
        Ok(())
    }

    /// Waits until a daemon has opened its socket.
    fn appears(&self, socket: &Path) -> Result<()> {
        let began = Epoch::now();
        while !socket.exists() {
            self.watch(began)?;
        }
        Ok(())
    }

    /// Waits a little; an error if a daemon has ended, or the time is up.
    fn watch(&self, began: Epoch) -> Result<()> {
        match self.events.recv_timeout(ASK_EVERY.into()) {
            Ok(Event::Exited { process, status }) => bail!("{}", self.ended(process, status)),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => bail!("all daemons have ended"),
        }
        if began.elapsed() > Time::ZERO + READY_WITHIN {
            bail!("not ready within {READY_WITHIN}");
        }
        Ok(())
    }

    /// Waits until each router knows the others next to it. Those beyond an emulated link meet when it carries packets, in
    /// the trial's first second.
    fn meet(&self, topology: &Topology, multicast: &Multicast, dir: &Path) -> Result<()> {
        let began = Epoch::now();
        for (name, others) in neighbours(topology, multicast) {
            while !others.is_subset(&known(&dir.join("routers").join(&name))?) {
                self.watch(began)
                    .with_context(|| format!("waiting until the router {name} knows {others:?}"))?;
            }
        }
        Ok(())
    }

    fn ended(&self, process: usize, status: std::process::ExitStatus) -> String {
        let daemon = &self.daemons[process];
        let words = daemon.process.last_words().map(|words| format!(": {words}"));
        format!("{} ended with {}{}", daemon.name, describe(status), words.unwrap_or_default())
    }

    /// Stops the routers and their records; returns what failed, and which of them had ended before.
    fn end(&mut self) -> Vec<String> {
        let mut running: BTreeSet<usize> = (0..self.daemons.len()).collect();
        let mut faults = self.forwarding.take().map(Forwarding::stop).unwrap_or_default();
        while let Ok(event) = self.events.try_recv() {
            if let Event::Exited { process, status } = event {
                running.remove(&process);
                faults.push(format!("router: {}", self.ended(process, status)));
            }
        }
        for signal in [Signal::TERM, Signal::KILL] {
            running.iter().for_each(|number| self.daemons[*number].process.signal(signal));
            let end = Epoch::now();
            while !running.is_empty() {
                let left = (Time::ZERO + GRACE).saturating_since(end.elapsed());
                match self.events.recv_timeout(left.into()) {
                    Ok(Event::Exited { process, .. }) => drop(running.remove(&process)),
                    Ok(_) => {}
                    Err(_) => break,
                }
            }
        }
        // What the daemons leave of their sockets; their configuration and logs stay.
        for folder in &self.folders {
            for name in ["zserv", "zebra.vty", "pimd.vty", "zebra.pid", "pimd.pid"] {
                let _ = std::fs::remove_file(folder.join(name));
            }
        }
        faults
    }
}

/// A router, and where it is.
struct Place<'a> {
    host: &'a Host,
    topology: &'a Topology,
    multicast: &'a Multicast,
    dir: &'a Path,
    group: &'a Path,
}

impl Place<'_> {
    fn folder(&self) -> PathBuf {
        self.dir.join("routers").join(self.host.name())
    }

    /// A daemon's command. Its files have relative names, because a socket's path has 107 bytes at most.
    fn command(&self, daemon: &str) -> Result<Command> {
        let program = installed(daemon).with_context(|| missing(daemon))?;
        let mut command = Command::new(program);
        command.current_dir(self.folder());
        command.args(["-u", "root", "-g", "root", "-P", "0", "--log", "stdout"]);
        command.args(["-f", &format!("{daemon}.conf"), "-i", &format!("{daemon}.pid")]);
        command.args(["-z", "zserv", "--vty_socket", "."]);
        private_files(self.host.command(&mut command), self.group)?;
        Ok(command)
    }

    /// What `pimd` reads.
    fn configuration(&self) -> Result<String> {
        let rendezvous = self.topology.hosts.iter().position(|it| *it == self.multicast.rendezvous);
        let rendezvous = suiro_hosts::ipv4(rendezvous.context("the plan names its hosts")?);
        let mut text = format!(
            "hostname {}\nip pim rp {rendezvous} 224.0.0.0/4\n\
             ip pim spt-switchover infinity-and-beyond\n",
            self.host.name()
        );
        for (interface, link) in interfaces(self.host.name(), self.topology) {
            // The neighbours' state must not expire where the machine is too busy to send a hello in time.
            text.push_str(&format!("interface {interface}\n ip pim\n ip pim hello 1 60\n"));
            if self.has_members(link) {
                let version = self.multicast.igmp;
                text.push_str(&format!(" ip igmp\n ip igmp version {version}\n"));
                text.push_str(" ip igmp last-member-query-count 1\n");
                text.push_str(" ip igmp last-member-query-interval 1\n");
            }
            text.push_str("exit\n");
        }
        Ok(text)
    }

    /// Whether a host that is no router is at the other end of a link, or behind a switch there.
    fn has_members(&self, link: &Link) -> bool {
        let is_router = |host: &str| self.multicast.routers.iter().any(|router| router == host);
        beside(self.host.name(), link, self.topology).iter().any(|host| !is_router(host))
    }
}

fn missing(daemon: &str) -> String {
    format!("FRR's `{daemon}` is not in {}\nhint: {REMEDY}", FOLDERS.join(", "))
}

/// How to get FRR.
const REMEDY: &str = "run `make players`, or `sudo apt-get install frr`";

/// Interfaces of a host by the order of its cables, as `suiro_hosts` names them, with their links.
fn interfaces<'t>(host: &str, topology: &'t Topology) -> Vec<(String, &'t Link)> {
    let links = topology.links.iter().filter(|link| link.from == host || link.to == host);
    links.enumerate().map(|(n, link)| (format!("eth{n}"), link)).collect()
}

/// The hosts that `host` reaches by `link` without a router between: those beyond switches too.
fn beside<'t>(host: &'t str, link: &'t Link, topology: &'t Topology) -> BTreeSet<&'t str> {
    let mut found = BTreeSet::new();
    let mut passed = BTreeSet::from([link.name.as_str()]);
    let mut open = vec![other(link, host)];
    while let Some(next) = open.pop() {
        if !topology.switches.iter().any(|switch| switch == next) {
            found.insert(next);
            continue;
        }
        let cables = topology.links.iter().filter(|link| link.from == next || link.to == next);
        for cable in cables {
            if passed.insert(&cable.name) {
                open.push(other(cable, next));
            }
        }
    }
    found.remove(host);
    found
}

fn other<'t>(link: &'t Link, host: &str) -> &'t str {
    if link.from == host { &link.to } else { &link.from }
}

/// Each router, with the addresses of the routers next to it.
fn neighbours(topology: &Topology, multicast: &Multicast) -> Vec<(String, BTreeSet<String>)> {
    let address = |host: &str| {
        let at = topology.hosts.iter().position(|it| it == host).unwrap_or_default();
        suiro_hosts::ipv4(at).to_string()
    };
    let of = |router: &String| {
        let links = topology.links.iter();
        let own = links.filter(|link| link.config.is_none());
        let own = own.filter(|link| link.from == *router || link.to == *router);
        let hosts = own.flat_map(|link| beside(router, link, topology));
        let routers = hosts.filter(|host| multicast.routers.iter().any(|it| it == host));
        (router.clone(), routers.map(address).collect())
    };
    multicast.routers.iter().map(of).collect()
}

/// The addresses of the neighbours that the router in `folder` knows.
fn known(folder: &Path) -> Result<BTreeSet<String>> {
    let mut command = Command::new("vtysh");
    command.current_dir(folder);
    command.args(["--vty_socket", ".", "-c", "show ip pim neighbor json"]);
    let output =
        command.output().context("asking a router: starting vtysh, which is part of FRR")?;
    Ok(addresses(&output.stdout))
}

/// From `{"eth0": {"10.0.0.3": {…}}}`: the addresses of all interfaces. What is anything else has none.
fn addresses(json: &[u8]) -> BTreeSet<String> {
    let all = serde_json::from_slice::<serde_json::Value>(json).unwrap_or_default();
    let interfaces = all.as_object().into_iter().flat_map(|all| all.values());
    let addresses = interfaces.filter_map(|of| of.as_object()).flat_map(|of| of.keys().cloned());
    addresses.filter(|key| key.parse::<std::net::Ipv4Addr>().is_ok()).collect()
}

/// `8.4.4`, from `zebra version 8.4.4`.
fn version() -> Option<String> {
    let output = Command::new(installed("zebra")?).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text.lines().next()?.rsplit(' ').next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use suiro_scenario::{NoFiles, Overrides, parse};

    use super::*;

    fn topology() -> Topology {
        let text = r#"
            name = "x"
            title = "x"
            duration = "1 s"
            [topology]
            shape = "explicit"
            hosts = ["a", "b", "lan", "core", "edge", "viewer"]
            switches = ["lan"]
            cables = [{ from = "a", to = "lan" }, { from = "b", to = "lan" },
                { from = "lan", to = "core" }, { from = "core", to = "edge" },
                { from = "edge", to = "viewer" }]
            [multicast]
            routers = ["core", "edge"]
            rendezvous = "core"
            igmp = 2
            [endpoints.source]
            kind = "multicast-sender"
            host = "a"
            group = "239.1.1.1"
        "#;
        let scenario = parse(text, "x.toml").unwrap();
        let plan = scenario.plan_with(&Overrides::default(), &NoFiles).unwrap();
        plan.trials[0].setup.topology.clone()
    }

    #[test]
    fn routers_beside_each_other_are_neighbours() {
        let topology = topology();
        let multicast = topology.multicast.as_ref().unwrap();
        let all = neighbours(&topology, multicast);
        let one = |address: &str| BTreeSet::from([address.to_owned()]);
        let expected = [("core".to_owned(), one("10.0.0.5")), ("edge".to_owned(), one("10.0.0.4"))];
        assert_eq!(all, expected);
        let link = &topology.links[2];
        assert_eq!(beside("core", link, &topology), BTreeSet::from(["a", "b"]));
        assert_eq!(beside("a", &topology.links[0], &topology), BTreeSet::from(["b", "core"]));
    }

    #[test]
    fn the_answer_of_a_router_is_read_or_empty() {
        let answer = br#"{"eth0":{"10.0.0.3":{"interface":"eth0","neighbor":"10.0.0.3"}},
            "eth1":{"10.0.0.5":{}}, "total": 2}"#;
        let expected = ["10.0.0.3", "10.0.0.5"].map(str::to_owned);
        assert_eq!(addresses(answer), BTreeSet::from(expected));
        for odd in ["", "{}", "[]", "failed to connect", "{\"eth0\": 3}", "{\"a\":{\"b\":{}}}"] {
            assert_eq!(addresses(odd.as_bytes()), BTreeSet::new(), "{odd}");
        }
    }
}
