//! ITU-T P.1203 by the program of its authors, `p1203-standalone` of the package `itu-p1203`, where the
//! user has installed it: its licence forbids that we ship it, or accept its terms for anyone.

mod bounded;
mod input;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use suiro_analysis::{Records, viewing};
use suiro_media::{Package, program};
use suiro_record::{P1203, Trial};
use suiro_units::Duration;

use crate::Stop;
use bounded::{Ended, Limits};

/// Names the program where it is not in PATH.
pub const VARIABLE: &str = "SUIRO_P1203";
const COMMAND: &str = "p1203-standalone";

/// Python may be slow to start, and the model goes through each frame; more is a hang.
const ANSWER: Limits = Limits { seconds: 120, bytes: 16 << 20 };
/// Of the program's version.
const VERSION: Limits = Limits { seconds: 30, bytes: 4 << 10 };
/// Most of what it complains that is repeated.
const COMPLAINT_CHARS_MAX: usize = 200;

/// The program.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    limits: Limits,
}

/// What one viewer had.
#[derive(Clone, Copy)]
pub struct Viewer<'a> {
    /// The endpoint's name.
    pub name: &'a str,
    /// What its origin serves.
    pub package: &'a Package,
    /// The longest chunk in which it sends segments; `None`: it sends them whole.
    pub chunk: Option<Duration>,
    /// Its trial.
    pub trial: &'a Trial,
    /// At least the tables `frames` and `player`.
    pub records: &'a Records,
}

impl Program {
    /// The program of this machine; `None` if it is not installed; it is optional.
    ///
    /// # Errors
    /// If `SUIRO_P1203` names what is no program.
    pub fn locate() -> Result<Option<Self>> {
        let Some(named) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) else {
            return Ok(program::find(COMMAND.as_ref()).map(Self::at));
        };
        let path = program::find(&named).with_context(|| {
            format!("{VARIABLE}={} is not a program; unset or correct it", named.display())
        })?;
        Ok(Some(Self::at(std::path::absolute(path)?)))
    }

    fn at(path: PathBuf) -> Self {
        Self { path, limits: ANSWER }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says of its version.
    ///
    /// # Errors
    /// If it does not run, says nothing, or is stopped.
    pub fn version(&self, stop: Stop) -> Result<String> {
        let ended = bounded::run(&self.path, &["--version".as_ref()], VERSION, stop)?;
        let text = self.answer(&ended)?;
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        Ok(line.context("it does not print its version")?.chars().take(40).collect())
    }

    /// Scores one viewing. The input stays in `dir` as `p1203.NAME.json`, to repeat the scoring.
    ///
    /// # Errors
    /// If the viewing is nothing for P.1203, or the program fails or answers nonsense.
    pub fn score(&self, dir: &Path, viewer: &Viewer, stop: Stop) -> Result<P1203> {
        let Viewer { name, package, chunk, trial, records } = viewer;
        let own = records.player.iter().filter(|row| &*row.endpoint == *name);
        let begun = own.map(|row| row.t_ns).min();
        let begun = begun.context("table `player` does not have the start of the player")?;
        let seen = viewing(trial, records, name);
        let rung = |rate| crate::rung(package, *chunk, Some(rate));
        let input = input::input(package, &seen, begun, rung)?;
        let file = std::path::absolute(dir.join(format!("p1203.{name}.json")))?;
        std::fs::write(&file, serde_json::to_vec_pretty(&input)?)
            .with_context(|| format!("writing {}", file.display()))?;
        self.ask(&file, input::media_s(&input), stop)
    }

    fn ask(&self, file: &Path, media_s: f64, stop: Stop) -> Result<P1203> {
        // With one process it starts no others, which might outlive it.
        let arguments = ["--cpu-count".as_ref(), "1".as_ref(), file.as_os_str()];
        let ended = bounded::run(&self.path, &arguments, self.limits, stop)?;
        if String::from_utf8_lossy(&ended.output).contains("'accept'") {
            let path = self.path.display();
            bail!("it requires consent to its licence: run `{path}` once yourself as this user");
        }
        parse(self.answer(&ended)?, media_s)
    }

    fn answer<'e>(&self, ended: &'e Ended) -> Result<&'e str> {
        if !ended.status.success() {
            let said = String::from_utf8_lossy(&ended.errors);
            let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let last: String = last.trim().chars().take(COMPLAINT_CHARS_MAX).collect();
            bail!("{} failed ({}): {last}", self.path.display(), ended.status);
        }
        std::str::from_utf8(&ended.output).context("its answer is no text")
    }
}

/// What the program answers for one input; the rest of its answer is ignored.
#[derive(Deserialize)]
struct Scores {
    #[serde(rename = "O46")]
    o46: f64,
    #[serde(rename = "O35")]
    o35: Option<f64>,
    #[serde(rename = "O23")]
    o23: Option<f64>,
    mode: u8,
}

/// The answer to one input: an object of one entry, which bears the name of the input's file.
fn parse(text: &str, media_s: f64) -> Result<P1203> {
    let answers: BTreeMap<String, Scores> =
        serde_json::from_str(text).context("its output is not that of p1203-standalone")?;
    let count = answers.len();
    ensure!(count == 1, "it answers for {count} inputs; there was one");
    let Scores { o46, o35, o23, mode } =
        answers.into_values().next().context("it answers nothing")?;
    ensure!(mode == 0, "it answers in mode {mode}; the input is of mode 0");
    for (name, score) in [("O46", Some(o46)), ("O35", o35), ("O23", o23)] {
        let fits = score.is_none_or(|score| (1.0..=5.0).contains(&score));
        ensure!(fits, "{name} is {}, not from 1 to 5", score.unwrap_or_default());
    }
    Ok(P1203 { o46, o35, o23, mode, media_s })
}

#[cfg(test)]
mod tests;
