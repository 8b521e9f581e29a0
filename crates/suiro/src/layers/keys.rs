//! `suiro layers keys`: credentials for agents and watchers.

use std::io::Write;
use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::Result;
use clap::Args;
use suiro_layers::agent::keys::{self, KeysError, Role};

use crate::{Outcome, Usage};

pub(super) const EXAMPLES: &str = "Examples:
  suiro layers keys trust studio.example 192.0.2.7 --watcher laptop
  scp -r trust/studio.example studio.example:        the files that only that host needs";

/// Arguments of `layers keys`.
#[derive(Debug, Args)]
pub struct KeysArgs {
    /// The folder of all credentials. Its authority.key makes more of them: keep it.
    folder: PathBuf,
    /// Hosts with an agent, by the name or address that watchers will call. One that has a
    /// certificate gets a new one.
    #[arg(required_unless_present = "watcher")]
    name: Vec<String>,
    /// A watcher; may be repeated. No host's certificate is good for watching.
    #[arg(long, value_name = "NAME")]
    watcher: Vec<String>,
    /// How long the certificates are valid: 1 to 3652 days.
    #[arg(long, value_name = "N", default_value_t = 365)]
    days: u32,
}

#[expect(clippy::disallowed_methods, reason = "a certificate is valid from now on")]
pub(super) fn run(args: &KeysArgs) -> Result<Outcome> {
    let hosts = args.name.iter().map(|name| (name.clone(), Role::Host));
    let watchers = args.watcher.iter().map(|name| (name.clone(), Role::Watcher));
    let names: Vec<_> = hosts.chain(watchers).collect();
    let made = keys::make(&args.folder, &names, args.days, SystemTime::now());
    let made = made.map_err(|error| match error {
        KeysError::Name { .. } | KeysError::Taken { .. } | KeysError::Days(_) => {
            anyhow::Error::new(Usage(error.to_string()))
        }
        other => other.into(),
    })?;
    let mut out = std::io::stdout().lock();
    for folder in made {
        writeln!(out, "{}", folder.display())?;
    }
    Ok(Outcome::Done)
}
