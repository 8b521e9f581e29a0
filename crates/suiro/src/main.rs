//! The command line: what was typed is in [`cli`], what it means in a module for each command.
#![warn(clippy::print_stderr)]

#[macro_use]
mod say;

mod args;
mod capacity;
mod cli;
mod compare;
mod diff;
#[cfg(test)]
mod docs;
mod doctor;
mod endpoint;
mod export;
mod folders;
mod interrupt;
mod layers;
mod limits;
mod link;
mod list;
mod media;
mod merge;
mod missing;
mod outputs;
mod progress;
mod prove;
mod report;
mod resume;
mod run;
mod scenarios;
mod shell;
mod sweep;
mod tcp;
mod uncompressed;
mod verify;
mod webrtc;
mod what_if;
mod why;
mod work;

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use cli::{Cli, Command};

/// How a command that did not fail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All is well: exit 0.
    Done,
    /// A trial failed or is not valid, a check did not hold: exit 1.
    Failed,
    /// All trials are valid, and a limit on a metric was not kept: exit 3.
    LimitBroken,
    /// The exit code of a program that ran in our place.
    Code(u8),
}

/// What was typed, or the scenario, is wrong: exit 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

impl Usage {
    /// What is wrong with a file that was named.
    pub fn file(path: &Path, problem: impl Display) -> Self {
        Self(format!("{}: {problem}", path.display()))
    }
}

fn main() -> ExitCode {
    match dispatch(Cli::from_command_line().command) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Failed) => ExitCode::FAILURE,
        Ok(Outcome::LimitBroken) => ExitCode::from(3),
        Ok(Outcome::Code(code)) => ExitCode::from(code),
        // Whoever read the output has seen enough, as in `suiro schema | head`, and needs no message.
        Err(error) if is_broken_pipe(&error) => ExitCode::FAILURE,
        Err(error) => {
            say!("error: {error:#}");
            let usage = error.is::<Usage>()
                || error.is::<suiro_scenario::ScenarioError>()
                || error.is::<suiro_screens::Unsuitable>();
            ExitCode::from(if usage { 2 } else { 1 })
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| {
        let json = cause.downcast_ref().and_then(serde_json::Error::io_error_kind);
        json.or_else(|| cause.downcast_ref().map(std::io::Error::kind))
    };
    error.chain().find_map(kind) == Some(std::io::ErrorKind::BrokenPipe)
}

fn dispatch(command: Command) -> Result<Outcome> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Report(args) => report::report(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Sweep(args) => sweep::run(&args),
        Command::Findings(args) => report::findings(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Export { command } => export::run(&command),
        Command::Why(args) => why::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::WhatIf(args) => what_if::run(&args),
        Command::List(args) => list::list(&args),
        Command::Show(args) => scenarios::show(&args),
        Command::Check(args) => scenarios::check(&args),
        Command::Schema => scenarios::schema(),
        Command::Doctor(args) => {
            doctor::run(&args).map(|well| if well { Outcome::Done } else { Outcome::Failed })
        }
        Command::Link(args) => link::run(&args),
        Command::LinkInside { order } => link::inside(&order),
        Command::Serve(args) => endpoint::serve(&args),
        Command::Play(args) => endpoint::play(&args),
        Command::Publish(args) => webrtc::publish(&args),
        Command::Tcp(args) => tcp::run(&args.command),
        Command::Uncompressed { command } => uncompressed::run(&command),
        Command::Layers(args) => layers::run(args.command),
        Command::Completions { shell } => shell::completions(shell),
        Command::Man { dir } => shell::man(&dir),
        Command::Endpoint { job } => endpoint::run_job(&job),
        Command::Trial { order } => run::trial(&order),
        Command::Guest { handover } => match suiro_guest::inside::init(&handover) {
            Err(error) => Err(anyhow::Error::new(error)),
        },
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    #[test]
    fn every_cause_is_told_once() {
        let file = suiro_record::FolderError::Io {
            path: "D/manifest.json".into(),
            cause: std::io::Error::from_raw_os_error(libc::EACCES),
        };
        let error = Err::<(), _>(file).context("reporting on D").unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "reporting on D: D/manifest.json: Permission denied (os error 13)"
        );
    }
}
