//! `suiro layers keys`: credentials for agents and watchers.

use std::io::Write;
use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::Result;
use clap::Args;
use suiro_layers::agent::keys;

use crate::Outcome;

pub(super) const EXAMPLES: &str = "Examples:
  suiro layers keys trust studio.example 192.0.2.7 laptop
  scp -r trust/studio.example studio.example:        what that host needs, and nobody else";

/// Arguments of `layers keys`.
#[derive(Debug, Args)]
pub struct KeysArgs {
    /// The folder of all credentials. Its authority.key makes more of them: keep it.
    folder: PathBuf,
    /// Hosts, by the name or address that watchers will call, and watchers. One that has a
    /// certificate gets a new one.
    #[arg(required = true)]
    name: Vec<String>,
    /// How long the certificates are valid: 1 to 3652 days.
    #[arg(long, value_name = "N", default_value_t = 365)]
    days: u32,
}

#[expect(clippy::disallowed_methods, reason = "a certificate is valid from now on")]
pub(super) fn run(args: &KeysArgs) -> Result<Outcome> {
    let made = keys::make(&args.folder, &args.name, args.days, SystemTime::now())?;
    let mut out = std::io::stdout().lock();
    for folder in made {
        writeln!(out, "{}", folder.display())?;
    }
    Ok(Outcome::Done)
}
