//! Trials in virtual time: each in a guest of its own, which runs the same process as a sandbox does on the machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::Sender;

use anyhow::{Context, Result};
use suiro_guest::{CACHE, Clock, Handover, Kernel, Launch, Mount, ROOM, Seat, Watch};
use suiro_record::words::Privilege;
use suiro_record::{Machine, VirtualTime};
use suiro_scenario::{Endpoint, Need, Order, Setup};
use suiro_units::{Bytes, Seed, Time};

use crate::machine;
use crate::process::{Event, Process};

/// The instructions for a guest, in the trial's folder while it runs.
const HANDOVER: &str = "guest.json";
/// The folder that a guest writes its results to.
pub const DIR: &str = "/run/suiro/trial";
/// Names of a guest's folders below [`ROOM`].
const TRIAL: &str = "trial";
const PROGRAM: &str = "program";
const WORKING: &str = "working";
const FFMPEG: &str = "ffmpeg";
/// Memory of a guest, which it takes of the machine as it needs it, and what each browser adds.
const MEMORY: Bytes = Bytes::new(2 << 30);
const MEMORY_OF_BROWSER: Bytes = Bytes::new(3 << 30);

/// What all guests of a run have in common.
#[derive(Debug, Clone)]
pub struct Guests {
    /// Their kernel.
    pub kernel: Kernel,
    /// Suiro's cache folder, with the prepared media.
    pub cache: PathBuf,
    /// The ffmpeg that made them, if its folder is known.
    pub ffmpeg: Option<PathBuf>,
    /// The date at which they start, in nanoseconds since 1970 UTC.
    pub date_ns: u64,
}

impl Guests {
    /// What records say about their time.
    pub fn virtual_time(&self) -> VirtualTime {
        let Kernel { version, sha256, .. } = &self.kernel;
        VirtualTime { kernel: version.clone(), kernel_sha256: sha256.clone() }
    }

    /// The machine that all trials run on, which is a guest wherever they run.
    pub fn machine(&self) -> Machine {
        Machine {
            name: "guest".to_owned(),
            kernel: self.kernel.version.clone(),
            system: machine::GUEST.to_owned(),
            cpu: "UML".to_owned(),
            cores: 1,
            memory_bytes: MEMORY.get(),
            clock_source: "time-travel-clock".to_owned(),
            privilege: Privilege::Root,
            settings: BTreeMap::new(),
        }
    }

    /// The order as the guest reads it: with the paths that folders have there, and nothing about this machine.
    pub fn order(&self, order: &Order) -> Order {
        let inside = |(name, path): (&String, &PathBuf)| {
            let below = path.strip_prefix(&self.cache).unwrap_or(path);
            (name.clone(), Path::new(ROOM).join(CACHE).join(below))
        };
        Order {
            dir: DIR.into(),
            packages: order.packages.iter().map(inside).collect(),
            machine: None,
            virtual_time: Some(self.virtual_time()),
            ..order.clone()
        }
    }

    /// Starts the guest of an order, whose `order.json` is in its folder. The lab's process ends it when `Watch` finds a
    /// reason; `limit` is the longest time that it may take, on its own clock.
    ///
    /// # Errors
    /// If the guest cannot be started.
    pub fn start(
        &self,
        order: &Order,
        number: usize,
        (log, limit): (&Path, Time),
        events: &Sender<Event>,
    ) -> Result<(Process, Watch)> {
        let trial = Task {
            arguments: vec!["trial".to_owned(), format!("{DIR}/order.json")],
            dir: &order.dir,
            writes_to_working: false,
            memory: memory(&order.setup),
            seed: order.trial.seed.derive("guest"),
            environment: environment(&order.setup),
        };
        let seat = Seat::take();
        let (command, clock) = self.command(trial, seat.as_ref())?;
        let process = Process::start(command, number, log, events)
            .with_context(|| format!("starting the guest {}", self.kernel.program.display()))?;
        let watch = Watch::new(clock, seat, process.pid(), Some(limit));
        Ok((process, watch))
    }

    /// Starts a guest for a command line of suiro, whose output and errors are copied to those of this process. The folder
    /// `dir` is [`DIR`] in the guest, and it may write there and to the working folder.
    ///
    /// # Errors
    /// If the guest cannot be started.
    pub fn start_attached(
        &self,
        arguments: Vec<String>,
        dir: &Path,
        seed: Seed,
        events: &Sender<Event>,
    ) -> Result<(Process, Watch)> {
        let task = Task {
            arguments,
            dir,
            writes_to_working: true,
            memory: MEMORY,
            seed: seed.derive("guest"),
            environment: environment_with(&[]),
        };
        let seat = Seat::take();
        let (command, clock) = self.command(task, seat.as_ref())?;
        let process = Process::start_relayed(command, 0, events)
            .with_context(|| format!("starting the guest {}", self.kernel.program.display()))?;
        let watch = Watch::new(clock, seat, process.pid(), None);
        Ok((process, watch))
    }

    fn command(&self, task: Task<'_>, seat: Option<&Seat>) -> Result<(Command, Clock)> {
        let program = std::env::current_exe().context("finding the program itself")?;
        let file = task.dir.join(HANDOVER);
        let launch = Launch {
            kernel: self.kernel.clone(),
            memory: task.memory,
            seed: task.seed,
            wall_clock_ns: self.date_ns,
            cpu: seat.map(Seat::cpu),
        };
        let handover = self.handover(&program, task)?;
        let text = serde_json::to_string_pretty(&handover).context("a handover is JSON")?;
        std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        Ok(launch.command(&program, &file)?)
    }

    fn handover(&self, program: &Path, task: Task<'_>) -> Result<Handover> {
        let name = program.file_name().context("the program has a name")?;
        let folder = program.parent().context("the program is in a folder")?;
        let mount = |host: &Path, name: &str, writable| Mount {
            host: host.to_owned(),
            name: name.to_owned(),
            writable,
        };
        let working = std::env::current_dir().context("finding the working folder")?;
        let room = Path::new(ROOM);
        let mut mounts = vec![
            mount(task.dir, TRIAL, true),
            mount(&self.cache, CACHE, false),
            mount(folder, PROGRAM, false),
            mount(&working, WORKING, task.writes_to_working),
        ];
        let mut environment = task.environment;
        if let Some(ffmpeg) = &self.ffmpeg
            && let Some((folder, name)) = ffmpeg.parent().zip(ffmpeg.file_name())
        {
            mounts.push(mount(folder, FFMPEG, false));
            let inside = room.join(FFMPEG).join(name).display().to_string();
            environment.insert("SUIRO_FFMPEG".to_owned(), inside);
        }
        Ok(Handover {
            mounts,
            program: room.join(PROGRAM).join(name),
            arguments: task.arguments,
            environment,
            working: room.join(WORKING),
        })
    }
}

/// A command line of suiro for a guest.
struct Task<'a> {
    arguments: Vec<String>,
    /// The folder that it has as [`DIR`].
    dir: &'a Path,
    writes_to_working: bool,
    memory: Bytes,
    seed: Seed,
    environment: BTreeMap<String, String>,
}

/// Removes what is in a trial's folder only while its guest runs.
pub fn tidy(dir: &Path) {
    // It may never have been written.
    let _ = std::fs::remove_file(dir.join(HANDOVER));
}

/// Where every system has its programs. A search that fails takes time, also in a guest, so it begins with these.
const STANDARD: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The environment of a guest's programs: the same for every user whose programs are in the standard folders.
fn environment(setup: &Setup) -> BTreeMap<String, String> {
    let needs = setup.endpoints.iter().flat_map(|endpoint| endpoint.spec.kind().needs());
    let commands = needs.filter_map(|need| match need {
        Need::Command(name) if !name.contains('/') => Some(name),
        _ => None,
    });
    environment_with(&commands.collect::<Vec<_>>())
}

/// The same for these programs.
fn environment_with(commands: &[&str]) -> BTreeMap<String, String> {
    let mut folders = STANDARD.map(PathBuf::from).to_vec();
    for command in commands {
        let has = |folder: &PathBuf| folder.join(command).exists();
        if folders.iter().any(has) {
            continue;
        }
        let own = std::env::var_os("PATH").unwrap_or_default();
        folders.extend(std::env::split_paths(&own).find(has));
    }
    let path = folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>();
    let fixed = [
        ("HOME", ROOM.to_owned()),
        ("XDG_CACHE_HOME", format!("{ROOM}/xdg")),
        ("LANG", "C.UTF-8".to_owned()),
        ("TZ", "UTC".to_owned()),
        // Cryptographic libraries (OpenSSL, BoringSSL, aws-lc) use the CPU's own random numbers, RDRAND and RDSEED, next to
        // the kernel's: these two bits hide them.
        ("OPENSSL_ia32cap", "~0x4000000000000000:~0x40000".to_owned()),
        ("PATH", path.join(":")),
    ];
    fixed.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The most memory that a guest of one of these trials takes.
pub fn memory_most<'a>(setups: impl Iterator<Item = &'a Setup>) -> Bytes {
    setups.map(memory).max().unwrap_or(MEMORY)
}

/// How many guests run at once of so many that are wanted, if `each` may take so much memory: no more than this machine has
/// memory available for, where that is known, and one in any case.
pub fn at_once(wanted: usize, each: Bytes, available: Option<Bytes>) -> usize {
    let room = available.map_or(u64::MAX, |available| available.get() / each.get().max(1));
    usize::try_from(room).unwrap_or(usize::MAX).min(wanted).max(1)
}

fn memory(setup: &Setup) -> Bytes {
    let browsers = setup.endpoints.iter().filter(|endpoint| {
        let browser = |need: &Need<'_>| matches!(need, Need::Chromium | Need::Player(_));
        endpoint.spec.kind().needs().iter().any(browser)
    });
    Bytes::new(MEMORY.get() + MEMORY_OF_BROWSER.get() * browsers.count() as u64)
}

/// Why a trial cannot run in virtual time: what it measures, or how, is not in a guest. `None` if it can.
pub fn unsuitable(setup: &Setup) -> Option<String> {
    let hint = "hint: leave out --virtual, or `time = \"virtual\"`";
    let machine = |name: &str| {
        format!(
            "endpoint {name}: uncompressed video measures this machine, which virtual time leaves out\n{hint}"
        )
    };
    if setup.record.layers {
        return Some(format!(
            "record.layers = true: the probes need BPF, and CPUs that take time; neither is in virtual time\n{hint}"
        ));
    }
    if setup.record.needs_probe() {
        return Some(format!(
            "record.tcp_trace = \"ack\": the probe needs BPF, which a guest has not\n{hint}"
        ));
    }
    let is_uncompressed = |endpoint: &&Endpoint| endpoint.spec.name().starts_with("uncompressed-");
    if let Some(endpoint) = setup.endpoints.iter().find(is_uncompressed) {
        return Some(machine(&endpoint.name));
    }
    let controls = suiro_guest::congestion_controls();
    setup.endpoints.iter().find_map(|endpoint| {
        let name = endpoint.spec.kind().congestion()?.name;
        let there = controls.iter().any(|control| control == name);
        let list = controls.join(", ");
        (!there).then(|| {
            format!(
                "endpoint {}: the guest's kernel has no congestion control `{name}`\nhint: it has {list}",
                endpoint.name
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use suiro_scenario::{Overrides, Scenario};

    use super::*;

    #[test]
    fn no_more_guests_run_at_once_than_there_is_memory_for() {
        let gib = |count: u64| Bytes::new(count << 30);
        assert_eq!(at_once(8, gib(2), Some(gib(17))), 8);
        assert_eq!(at_once(8, gib(2), Some(gib(7))), 3);
        // One of two browsers.
        assert_eq!(at_once(8, gib(8), Some(gib(7))), 1);
        assert_eq!(at_once(8, gib(2), None), 8);
        assert_eq!(at_once(0, gib(2), Some(gib(7))), 1);
        let plan = Scenario::load("ping").unwrap().plan(&Overrides::default()).unwrap();
        assert_eq!(memory_most(plan.trials.iter().map(|trial| &*trial.setup)), gib(2));
    }
}
