//! One trial, from empty namespaces to closed records. Runs as the init process of its own sandbox.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender};

use anyhow::{Context, Result};
use suiro_hosts::{CableKind, CableSpec, Confinement, Detour, Equipment, Network, NetworkSpec};
use suiro_link::Direction;
use suiro_record::{Cable, Check, LinkRate, Machine, SelfCheck, Trial};
use suiro_scenario::Topology;
use suiro_units::Duration;

use crate::clock::{self, Epoch, realtime_ns, rfc3339};
use crate::instruments::wires::Wires;
use crate::instruments::{self, Scene};
use crate::lateness;
use crate::machine;
use crate::process::Event;
use crate::runner::{INTERRUPTED, Order, Phase};
use crate::supervisor::{Ending, Supervised, Supervisor, Surroundings};

/// Runs the trial that `order` describes and writes its records and `trial.json` into its folder.
/// `tell` is called at each phase. [`Event::Interrupted`] on the channel ends the trial early.
///
/// # Errors
/// Only if hosts or links cannot be built, or records cannot be written. Any other problem makes
/// the trial invalid, with the reason in its outcome.
pub fn run(
    order: &Order,
    (sender, events): (&Sender<Event>, &Receiver<Event>),
    tell: &mut dyn FnMut(&Phase),
) -> Result<Trial> {
    let setup = &order.setup;
    tell(&Phase::Building);
    let network = build(&setup.topology)?;
    tell(&Phase::Checking);
    let self_checks = Wires::check(&network, &setup.topology, order.trial.seed)?;

    tell(&Phase::Starting);
    let scene = Scene { network: &network, setup, dir: &order.dir, seed: order.trial.seed };
    let prepared = instruments::prepare(scene)?;
    let (started, epoch) = begin(order);
    let running = instruments::start(prepared, scene, epoch)?;
    let supervisor = Supervisor::new(Surroundings {
        setup,
        network: &network,
        epoch,
        dir: &order.dir,
        confinement: confinement(order)?,
        packages: &order.packages,
        seed: order.trial.seed.derive("endpoints"),
        virtual_time: order.virtual_time.is_some(),
    });
    let duration_s = setup.duration.as_secs_f64();
    let mut supervised =
        supervisor.run((sender, events), &mut || tell(&Phase::Running { duration_s }))?;

    tell(&Phase::Finishing);
    let found = instruments::stop(running, scene, epoch)?;
    supervised.versions.extend(found.versions);
    let absences = lateness(order, &mut supervised)?;
    let faults = found.faults.into_iter().chain(out_of_memory(order)).collect();
    let reasons = reasons(&self_checks, &supervised, faults);
    let (because, only_late) = invalid(reasons, absences, found.links.faults);
    let trial = Trial {
        cell: order.trial.cell.clone(),
        repetition: order.trial.repetition,
        seed: order.trial.seed,
        valid: because.is_none(),
        only_late,
        invalid_because: because,
        attempts: Vec::new(),
        skipped: false,
        machine: machine_of(order),
        virtual_time: order.virtual_time.clone(),
        started,
        duration_s: supervised.ended.as_secs_f64(),
        warm_up_s: setup.warm_up.as_secs_f64(),
        epoch_monotonic_ns: epoch.monotonic_ns,
        self_checks,
        links: found.links.totals,
        standstills: found.standstills,
        link_rates: link_rates(&setup.topology, setup.duration),
        cables: cables(&network, &setup.topology)?,
        tcp: found.tcp,
        captures: found.captures,
        endpoints: supervised.outcomes,
        versions: supervised.versions,
    };
    suiro_record::folder::write_outcome(&order.dir, &trial)?;
    Ok(trial)
}

/// Time zero: as text, and on the clocks. In virtual time it is a whole second of the guest's clock.
fn begin(order: &Order) -> (String, Epoch) {
    if order.virtual_time.is_some() {
        clock::wait_for_whole_second();
    }
    (rfc3339(realtime_ns()), Epoch::now())
}

/// That the guest's kernel has killed processes because its memory was used up, if it has.
fn out_of_memory(order: &Order) -> Option<String> {
    order.virtual_time.as_ref()?;
    let counts = std::fs::read_to_string("/proc/vmstat").ok()?;
    let killed = counts.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
    (killed != "0").then(|| {
        format!("the guest's memory was used up: its kernel killed {killed} of its processes")
    })
}

/// The machine that the trial runs on: in virtual time the guest that this process sees.
fn machine_of(order: &Order) -> Option<Machine> {
    match order.virtual_time {
        Some(_) => Some(machine::describe_guest()),
        None => order.machine.as_ref().map(machine::within_trial),
    }
}

/// Why the trial is not valid, if it is not, and whether that is only because the machine was busy.
fn invalid(
    mut reasons: Vec<String>,
    absences: Vec<lateness::Fault>,
    late: Vec<suiro_wire::Fault>,
) -> (Option<String>, bool) {
    let busy = reasons.is_empty()
        && absences.iter().all(|absence| absence.waited)
        && late.iter().all(|fault| fault.late);
    reasons.extend(absences.into_iter().map(|absence| absence.because));
    reasons.extend(late.into_iter().map(|fault| fault.because));
    let because = (!reasons.is_empty()).then(|| reasons.join("; "));
    let only_late = busy && because.is_some();
    (because, only_late)
}

/// Completes the table `lateness` and the endpoints' outcomes with what it says; what makes the trial invalid.
fn lateness(order: &Order, supervised: &mut Supervised) -> Result<Vec<lateness::Fault>> {
    let scheduled = std::mem::take(&mut supervised.scheduled);
    lateness::write(&order.dir, scheduled.rows)?;
    // An endpoint that was killed may have left half a table.
    let rows = match lateness::read(&order.dir) {
        Ok(rows) => rows,
        Err(error) => {
            let because = format!("{error:#}");
            return Ok(vec![lateness::Fault { because, waited: false }]);
        }
    };
    for outcome in &mut supervised.outcomes {
        let left_out = scheduled.left_out.get(&outcome.name).copied().unwrap_or(0);
        outcome.lateness = lateness::summary(&rows, &outcome.name, left_out);
    }
    let because = |error| format!("reading the table frames: {error}");
    let (shown, mut faults) = match lateness::Shown::read(&order.dir, &rows) {
        Ok(shown) => (shown, Vec::new()),
        Err(error) => {
            let fault = lateness::Fault { because: because(error), waited: false };
            (lateness::Shown::default(), vec![fault])
        }
    };
    faults.extend(lateness::faults(&rows, &order.setup.endpoints, supervised.ended, &shown));
    Ok(faults)
}

/// The limits of the commands, if one has limits.
fn confinement(order: &Order) -> Result<Option<Confinement>> {
    let mut commands = order.setup.endpoints.iter().filter_map(|e| e.spec.command());
    if commands.all(|command| command.privileged) {
        return Ok(None);
    }
    let working = std::env::current_dir().context("finding the working folder")?;
    let confinement = Confinement::prepare(&order.dir, &[&order.dir, &working], &programs(order));
    let confinement = confinement.context("limiting the rights of commands")?;
    let is_own = |folder: &Path| {
        let own = rustix::process::geteuid().as_raw();
        std::fs::metadata(folder).is_ok_and(|found| found.uid() == own)
    };
    // Of an ordinary user's guest, whose commands may write to the trial's folder as they may on the machine.
    Ok(Some(match order.virtual_time {
        Some(_) if !is_own(&order.dir) => confinement.whoever_owns_files(),
        _ => confinement,
    }))
}

/// Where programs are that commands may start: those that the scenario names, those of the search path, with their
/// environments of Python, and what suiro keeps itself.
fn programs(order: &Order) -> Vec<PathBuf> {
    let commands = order.setup.endpoints.iter().filter_map(|e| e.spec.command());
    let named = commands.flat_map(|command| command.needs.iter().chain(command.command.first()));
    let named = named.filter_map(|name| Path::new(name).parent().map(Path::to_owned));
    let search = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = named.filter(|folder| folder.is_absolute()).collect();
    folders.push(suiro_media::cache::folder());
    for folder in std::env::split_paths(&search).filter(|folder| folder.is_absolute()) {
        let environment = folder.parent().filter(|parent| parent.join("pyvenv.cfg").is_file());
        folders.push(environment.map_or(folder.clone(), Path::to_owned));
    }
    folders
}

/// Builds the hosts and cables of a topology, and publishes the hosts' names.
pub fn build(topology: &Topology) -> Result<Network> {
    let position = |name: &str| {
        topology.hosts.iter().position(|host| host == name).context("the plan names its hosts")
    };
    let cable = |link: &suiro_scenario::Link| {
        Ok(CableSpec {
            from: position(&link.from)?,
            to: position(&link.to)?,
            mtu: u32::from(link.mtu),
            kind: match (&link.config, link.cards) {
                (Some(_), _) => CableKind::Emulated,
                (None, true) => CableKind::Card,
                (None, false) => CableKind::Plain,
            },
        })
    };
    let detour = |detour: &suiro_scenario::Detour| {
        let mut links = topology.links.iter();
        let cable = links.position(|link| link.name == detour.link);
        let cable = cable.context("the plan names its links")?;
        Ok(Detour { host: position(&detour.host)?, cable })
    };
    let spec = NetworkSpec {
        hosts: topology.hosts.clone(),
        cables: topology.links.iter().map(cable).collect::<Result<_>>()?,
        detours: topology.detours.iter().map(detour).collect::<Result<_>>()?,
    };
    let network =
        Network::equipped(&spec, &equipment(topology)?).context("making hosts and links")?;
    network.publish_names().context("publishing the hosts' names")?;
    Ok(network)
}

/// The switches, the capacities, and whether cables carry multicast.
fn equipment(topology: &Topology) -> Result<Equipment> {
    let position = |name: &String| {
        topology.hosts.iter().position(|host| host == name).context("the plan names its hosts")
    };
    let capacity = |(n, link): (usize, &suiro_scenario::Link)| Some((n, link.capacity?.as_bps()));
    let multicast = topology.multicast.as_ref();
    Ok(Equipment {
        multicast: multicast.is_some() || !topology.switches.is_empty(),
        igmp: multicast.map(|multicast| if multicast.igmp == 2 { "2" } else { "3" }),
        switches: topology.switches.iter().map(position).collect::<Result<_>>()?,
        hubs: topology.hubs.iter().map(position).collect::<Result<_>>()?,
        capacities: topology.links.iter().enumerate().filter_map(capacity).collect(),
    })
}

/// What the kernel reports about the ends of plain cables.
fn cables(network: &Network, topology: &Topology) -> Result<Vec<Cable>> {
    let plain = topology.links.iter().enumerate().filter(|(_, link)| link.config.is_none());
    plain
        .map(|(at, link)| {
            let [from, to] = network.offloads(at).context("reading the offloads of cables")?;
            Ok(Cable { link: link.name.clone(), from, to })
        })
        .collect()
}

/// Interval over which the configured rates of links are averaged.
const RATE_SPAN: Duration = Duration::from_millis(100);
/// Most intervals: ten minutes' worth; a longer trial has longer intervals.
const RATE_SPANS_MAX: u64 = 6_000;

fn link_rates(topology: &Topology, duration: Duration) -> Vec<LinkRate> {
    let shortest = Duration::from_nanos(duration.as_nanos().div_ceil(RATE_SPANS_MAX));
    let span = RATE_SPAN.max(shortest);
    let count = usize::try_from(duration.as_nanos().div_ceil(span.as_nanos())).unwrap_or(0);
    let mut rates = Vec::new();
    for link in &topology.links {
        let Some(config) = &link.config else { continue };
        let at_hub = topology.hubs.contains(&link.from);
        // A hub sends nothing itself.
        for direction in Direction::BOTH.into_iter().filter(|way| !at_hub || *way == Direction::Up)
        {
            let server = &config.direction(direction).server;
            let medium = config.ethernet.map(|ethernet| vec![ethernet.rate.bit_rate(); count]);
            if let Some(asked) = server.mean_rates(span, count).or(medium) {
                rates.push(LinkRate {
                    link: link.name.clone(),
                    direction,
                    span_s: span.as_secs_f64(),
                    rate_bps: asked.iter().map(|rate| rate.as_bps() as f64).collect(),
                });
            }
        }
    }
    rates
}

/// What failed in the self-checks, one sentence per direction.
pub fn failed_checks(checks: &[SelfCheck]) -> Vec<String> {
    let part = |part: &Check| {
        let measured = part.measured.map_or("nothing".to_owned(), |m| format!("{m:.4}"));
        let asked = part.asked.map_or("no limit".to_owned(), |a| format!("{a:.4}"));
        format!("{} {measured} {} (expected {asked})", part.what, part.unit)
    };
    let sentence = |check: &SelfCheck| {
        let failed = check.checks.iter().filter(|part| part.ok == Some(false)).map(part);
        let failed = failed.collect::<Vec<_>>().join("; ");
        format!("link {} {} failed its self-check: {failed}", check.link, check.direction)
    };
    checks.iter().filter(|check| !check.ok).map(sentence).collect()
}

/// Why the trial's figures must not be used, what its links say aside: every reason once.
fn reasons(checks: &[SelfCheck], supervised: &Supervised, faults: Vec<String>) -> Vec<String> {
    let mut reasons = failed_checks(checks);
    match &supervised.ending {
        None | Some(Ending::Over) => {}
        Some(Ending::Failed(because)) => reasons.push(because.clone()),
        Some(Ending::Interrupted) => reasons.push(INTERRUPTED.to_owned()),
    }
    reasons.extend(faults);
    for outcome in &supervised.outcomes {
        let Some(failure) = &outcome.failure else { continue };
        let reason = format!("endpoint {}: {failure}", outcome.name);
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use suiro_scenario::{Overrides, Scenario};

    use super::*;

    #[test]
    fn stations_of_a_hub_were_to_have_the_rate_of_its_medium() {
        let plan = Scenario::load("tfrcp").unwrap().plan(&Overrides::default()).unwrap();
        let rates = link_rates(&plan.trials[0].setup.topology, Duration::from_secs(1));
        let names: Vec<_> = rates.iter().map(|rate| (&*rate.link, rate.direction)).collect();
        let stations = ["server1", "server2", "router"].map(|host| format!("lan1-{host}"));
        let others = ["router", "client1", "client2"].map(|host| format!("lan2-{host}"));
        let links: Vec<_> =
            stations.iter().chain(&others).map(|link| (&**link, Direction::Up)).collect();
        assert_eq!(names, links);
        assert!(rates.iter().all(|rate| rate.rate_bps == vec![1e7; 10]));
    }
}
