//! `suiro doctor`: what this host can and cannot do, what each thing is for, and the command that
//! fixes it. Where a facility can be tried it is tried, not guessed from a version.

mod bpf;
mod btf;
mod capacity;
pub mod inside;
mod kernel;
mod machine;
mod media;
mod players;
pub mod programs;
mod scenarios;
mod table;
pub mod tuning;

use std::io::Write;

use serde::Serialize;

use crate::args::DoctorArgs;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// All of it works.
    Ok,
    /// It works in part, or its use is at a cost.
    Limited,
    /// It is not there.
    Missing,
}

/// What `suiro run` needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Need {
    /// Without it `suiro run` cannot work.
    Required,
    /// Some scenarios, commands or tests use it.
    Optional,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What it belongs to.
    pub group: &'static str,
    /// Its name; does not change between versions.
    pub name: String,
    /// What it is for.
    pub purpose: &'static str,
    /// Whether `suiro run` can do without.
    pub need: Need,
    /// How it came out.
    pub state: State,
    /// What was found.
    pub found: String,
    /// The command that fixes it; null if nothing needs fixing or nothing can be fixed.
    pub mend: Option<String>,
}

impl Check {
    /// A check that came out well.
    fn ok(group: &'static str, name: &str, purpose: &'static str, found: &str) -> Self {
        let (name, found) = (name.to_owned(), found.to_owned());
        let (need, state) = (Need::Optional, State::Ok);
        Self { group, name, purpose, need, state, found, mend: None }
    }

    /// The same check if it failed, with how to fix it; an empty text means nothing can.
    fn but(mut self, state: State, mend: &str) -> Self {
        self.state = state;
        self.mend = (!mend.is_empty()).then(|| mend.to_owned());
        self
    }

    /// The same check of something that `suiro run` needs.
    fn required(mut self) -> Self {
        self.need = Need::Required;
        self
    }
}

/// All checks of this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The version that looked.
    pub suiro: &'static str,
    /// True if nothing that `suiro run` needs is missing.
    pub can_run: bool,
    /// The checks, group by group.
    pub checks: Vec<Check>,
}

impl Report {
    /// Examines this host; takes a few seconds.
    pub fn collect() -> Self {
        let mut checks = kernel::checks();
        checks.extend(inside::checks());
        checks.extend(bpf::checks());
        checks.extend(media::checks());
        checks.extend(programs::checks());
        checks.extend(players::checks());
        checks.extend(machine::checks());
        checks.extend(scenarios::checks());
        let lacks = |c: &Check| c.need == Need::Required && c.state == State::Missing;
        let can_run = !checks.iter().any(lacks);
        Self { suiro: env!("CARGO_PKG_VERSION"), can_run, checks }
    }
}

/// What was typed after `suiro doctor`. True if all is well.
pub fn run(args: &DoctorArgs) -> anyhow::Result<bool> {
    if args.capacity {
        return capacity::run(&args.scenario, args.json);
    }
    if !args.uncompressed {
        return examine(args.json);
    }
    let task = match (args.apply, args.undo) {
        (true, _) => tuning::Task::Apply,
        (_, true) => tuning::Task::Undo,
        _ => tuning::Task::Check,
    };
    tuning::run(&tuning::Request {
        task,
        interfaces: args.interface.clone(),
        state: args.state.clone(),
        json: args.json,
    })
}

/// Examines this host and prints the report on standard output. True if `suiro run` can work here.
fn examine(json: bool) -> anyhow::Result<bool> {
    if inside::is_asked_for() {
        inside::answer()?;
        return Ok(true);
    }
    let report = Report::collect();
    let text = if json {
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        table::draw(&report, &table::Style::of_standard_output())
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(report.can_run)
}
