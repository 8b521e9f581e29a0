//! Changes, applied and taken back. What is changed is written down first, so that it can be taken back
//! whatever happens.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use suiro_outside::unfinished::gone;

use super::Change;
use super::machine::Machine;

/// Largest file of remembered changes that is read: a change takes some hundred bytes.
const STATE_BYTES_MAX: u64 = 1 << 20;

/// What is remembered.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    /// The start of the system that the changes belong to: another one has undone them.
    boot: Option<String>,
    /// In the order in which they were applied.
    changes: Vec<Change>,
}

/// One change, and how it went.
#[derive(Debug)]
pub struct Step {
    what: String,
    outcome: Result<(), String>,
}

impl Step {
    /// True if it did not fail.
    pub const fn is_well(&self) -> bool {
        self.outcome.is_ok()
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Ok(()) => write!(f, "{}", self.what),
            Err(because) => write!(f, "failed: {}: {because}", self.what),
        }
    }
}

impl Memory {
    fn read(machine: &Machine, path: &Path) -> Result<Self> {
        let boot = machine.read("/proc/sys/kernel/random/boot_id");
        let text = match suiro_outside::file::read_text(path, STATE_BYTES_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self { boot, changes: Vec::new() });
            }
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        let memory: Self = serde_json::from_str(&text).with_context(|| {
            format!("reading {}\nhint: remove it to forget the applied changes", path.display())
        })?;
        let same = memory.boot == boot;
        Ok(if same { memory } else { Self { boot, changes: Vec::new() } })
    }

    fn write(&self, path: &Path) -> Result<()> {
        let doing =
            || format!("writing {}\nhint: changes need root; see also --state", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(doing)?;
        }
        let beside = path.with_extension("new");
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(&beside, text).with_context(doing)?;
        fs::rename(&beside, path).with_context(doing)
    }

    /// Remembers a change. Of a file that was changed before, what it said at first.
    fn add(&mut self, mut change: Change) {
        if let Change::File { path, was, .. } = &mut change {
            let before = self.changes.iter().position(
                |known| matches!(known, Change::File { path: known, .. } if known == path),
            );
            if let Some(Change::File { was: first, .. }) = before.map(|at| self.changes.remove(at))
            {
                *was = first;
            }
        }
        self.changes.push(change);
    }
}

/// Applies changes, and remembers them in `state`.
pub fn apply(machine: &Machine, changes: Vec<Change>, state: &Path) -> Result<Vec<Step>> {
    let mut memory = Memory::read(machine, state)?;
    let mut steps = Vec::new();
    for change in changes {
        memory.add(change.clone());
        memory.write(state)?;
        let outcome = match &change {
            Change::File { path, value, .. } => set(machine, path, value),
            Change::Ethtool { apply, .. } => ethtool(machine, apply),
        };
        steps.push(Step { what: change.command(), outcome });
    }
    Ok(steps)
}

/// Takes back what `state` remembers, the last change first, and forgets what could be taken back.
pub fn undo(machine: &Machine, state: &Path) -> Result<Vec<Step>> {
    let mut memory = Memory::read(machine, state)?;
    let mut steps = Vec::new();
    let mut left = Vec::new();
    for change in memory.changes.drain(..).rev() {
        let step = undo_one(machine, &change);
        if !step.is_well() {
            left.insert(0, change);
        }
        steps.push(step);
    }
    memory.changes = left;
    match memory.changes[..] {
        [] => {
            let removed = gone(fs::remove_file(state));
            removed.with_context(|| format!("removing {}", state.display()))?;
        }
        _ => memory.write(state)?,
    }
    Ok(steps)
}

fn undo_one(machine: &Machine, change: &Change) -> Step {
    match change {
        Change::Ethtool { undo, .. } => {
            let what = format!("sudo ethtool {}", undo.join(" "));
            Step { what, outcome: ethtool(machine, undo) }
        }
        Change::File { path, was, value } => match machine.read(path) {
            // Gone with its device, or set by somebody else since: neither is ours any more.
            None => Step { what: format!("{} is gone", path.display()), outcome: Ok(()) },
            Some(now) if now == *was => {
                Step { what: format!("{} is {was} already", path.display()), outcome: Ok(()) }
            }
            Some(now) if now != *value => {
                let what = format!("{} is left at {now}, which is not ours", path.display());
                Step { what, outcome: Ok(()) }
            }
            Some(_) => {
                let what = super::command_of_file(path, was);
                Step { what, outcome: set(machine, path, was) }
            }
        },
    }
}

/// Sets a file, and reads it again.
fn set(machine: &Machine, path: &Path, value: &str) -> Result<(), String> {
    machine.write(path, value).map_err(|error| error.to_string())?;
    match machine.read(path) {
        Some(now) if now == value => Ok(()),
        now => Err(format!("it is {} afterwards", now.unwrap_or_default())),
    }
}

fn ethtool(machine: &Machine, arguments: &[String]) -> Result<(), String> {
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    machine.ethtool(&arguments).map(drop)
}
