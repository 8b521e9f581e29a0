//! `suiro doctor --uncompressed`: what a host needs to send or receive several gigabits per second of
//! uncompressed video without a loss, as study S3 found it: checked, applied, undone.

mod apply;
mod clock;
mod cpu;
mod interface;
mod kernel;
mod machine;
mod still;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Check, State, table};
use machine::Machine;
use suiro_uncompressed::clock::tai_state;

/// Where changes are remembered until they are undone.
pub const STATE: &str = "/var/lib/suiro/tuning.json";

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Look.
    Check,
    /// Look, and change what can be.
    Apply,
    /// Take back what was applied.
    Undo,
}

/// What was asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// What is to be done.
    pub task: Task,
    /// The interfaces to look at; if empty, those that have a device and are up.
    pub interfaces: Vec<String>,
    /// The file that remembers changes.
    pub state: PathBuf,
    /// Print JSON.
    pub json: bool,
}

/// One check, and what would fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    check: Check,
    changes: Vec<Change>,
}

/// A setting that can be changed, and changed back.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Change {
    /// A file of /proc or /sys.
    File {
        /// Its path.
        path: PathBuf,
        /// What it says.
        was: String,
        /// What it shall say.
        value: String,
    },
    /// A run of ethtool.
    Ethtool {
        /// Its arguments.
        apply: Vec<String>,
        /// The arguments that change it back.
        undo: Vec<String>,
    },
}

impl Change {
    /// True if it is of an interface, and may cut off who works on this host through it.
    fn is_of_interface(&self) -> bool {
        match self {
            Self::File { path, .. } => path.starts_with("/sys/class/net"),
            Self::Ethtool { .. } => true,
        }
    }

    /// The command that a person would type.
    fn command(&self) -> String {
        match self {
            Self::File { path, value, .. } => command_of_file(path, value),
            Self::Ethtool { apply, .. } => format!("sudo ethtool {}", apply.join(" ")),
        }
    }
}

fn command_of_file(path: &Path, value: &str) -> String {
    let text = path.display().to_string();
    if let Some(name) = text.strip_prefix("/proc/sys/") {
        return format!("sudo sysctl -w {}={value}", name.replace('/', "."));
    }
    if let Some((interface, file)) =
        text.strip_prefix("/sys/class/net/").and_then(|rest| rest.split_once('/'))
    {
        let key = if file == "tx_queue_len" { "txqueuelen" } else { file };
        return format!("sudo ip link set {interface} {key} {value}");
    }
    format!("echo {value} | sudo tee {text}")
}

impl Finding {
    /// A check that came out well.
    fn ok(group: &'static str, name: &str, purpose: &'static str, found: &str) -> Self {
        Self { check: Check::ok(group, name, purpose, found), changes: Vec::new() }
    }

    /// The same check if it failed, with advice on how to fix it; an empty text means none.
    fn but(self, state: State, mend: &str) -> Self {
        Self { check: self.check.but(state, mend), ..self }
    }

    /// The same check if it failed, with the changes that fix it.
    fn mended_by(self, state: State, changes: Vec<Change>) -> Self {
        let commands: Vec<_> = changes.iter().map(Change::command).collect();
        Self { check: self.check.but(state, &commands.join("; ")), changes }
    }
}

fn findings(machine: &Machine, interfaces: &[String]) -> Vec<Finding> {
    let mut findings = kernel::findings(machine);
    findings.extend(cpu::findings(machine));
    let found;
    let interfaces = if interfaces.is_empty() {
        found = machine.interfaces();
        &found
    } else {
        interfaces
    };
    for interface in interfaces {
        findings.extend(interface::findings(machine, interface));
    }
    findings
}

/// Does what was asked for. True if nothing failed or is missing; prints what could be better.
pub fn run(request: &Request) -> Result<bool> {
    let machine = Machine::this();
    if request.task == Task::Undo {
        return told(&apply::undo(&machine, &request.state)?);
    }
    let found = findings(&machine, &request.interfaces);
    if request.task == Task::Apply {
        let kept = |change: &Change| !request.interfaces.is_empty() || !change.is_of_interface();
        let all = found.into_iter().flat_map(|finding| finding.changes);
        let (changes, left): (Vec<_>, Vec<_>) = all.partition(kept);
        let well = told(&apply::apply(&machine, changes, &request.state)?)?;
        if !left.is_empty() {
            say!("interfaces are not changed; name those that streams use with --interface NAME");
        }
        return Ok(well);
    }
    say!(
        "watching all CPUs at work for {}: streams that run here meanwhile are late",
        still::WATCH
    );
    let live = [clock::finding(tai_state()), still::finding(&machine.cpus(), still::WATCH)];
    let checks: Vec<_> = found.into_iter().chain(live).map(|finding| finding.check).collect();
    let well = checks.iter().all(|check| check.state != State::Missing);
    let text = if request.json {
        serde_json::to_string_pretty(&checks)? + "\n"
    } else {
        table::draw_checks(&checks, &table::Style::of_standard_output())
    };
    crate::say::results().write_all(text.as_bytes())?;
    Ok(well)
}

/// Prints what was done. True if nothing failed.
fn told(steps: &[apply::Step]) -> Result<bool> {
    let mut out = crate::say::results();
    if steps.is_empty() {
        writeln!(out, "nothing to change")?;
    }
    for step in steps {
        writeln!(out, "{step}")?;
    }
    Ok(steps.iter().all(apply::Step::is_well))
}

#[cfg(test)]
mod tests;
