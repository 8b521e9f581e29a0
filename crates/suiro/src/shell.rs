//! What `make install` puts next to the program: man pages and shell completions, generated from the definitions in
//! [`crate::cli`] at installation, so that they cannot differ from the program.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::Outcome;
use crate::args::CompletionsFor;
use crate::cli::Cli;

/// `suiro completions SHELL`: prints the script.
pub fn completions(shell: CompletionsFor) -> Result<Outcome> {
    let shell = match shell {
        CompletionsFor::Bash => Shell::Bash,
        CompletionsFor::Zsh => Shell::Zsh,
        CompletionsFor::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown(), "suiro", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(Outcome::Done)
}

/// `suiro man DIR`: writes `suiro.1`, and a page for every command.
pub fn man(folder: &Path) -> Result<Outcome> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    clap_mangen::generate_to(shown(), folder)
        .with_context(|| format!("writing man pages into {}", folder.display()))?;
    Ok(Outcome::Done)
}

/// The command line without the commands that only suiro itself starts: clap_complete offers hidden ones, too.
fn shown() -> Command {
    let whole = Cli::command();
    let below: Vec<Command> =
        whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    let about = whole.get_about().cloned().unwrap_or_default();
    Command::new("suiro")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .about(about)
        .after_help(whole.get_after_help().cloned().unwrap_or_default())
        .subcommand_required(true)
        .subcommands(below)
}
