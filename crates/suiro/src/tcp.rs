//! `suiro tcp`: the congestion controls of this kernel, and Vegas where it has none.

use std::io::Write;

use anyhow::{Context, Result};
use serde::Serialize;
use suiro_scenario::Plan;
use suiro_tcp::{Controls, vegas};

use crate::Outcome;
use crate::args::{Loadable, TcpCommand};

/// What was typed after `suiro tcp`.
pub fn run(command: &TcpCommand) -> Result<Outcome> {
    match command {
        TcpCommand::List { json } => list(*json),
        TcpCommand::Load { name: Loadable::Vegas } => load(),
        TcpCommand::Unload { name: Loadable::Vegas } => unload(),
    }
}

/// One congestion control, as `list --json` prints it.
#[derive(Serialize)]
struct Row {
    name: String,
    /// Open to every user; the others need CAP_NET_ADMIN over the network namespace.
    allowed: bool,
    /// What a socket gets that does not ask.
    default: bool,
    /// Brought by `suiro tcp load`; null if only root may know.
    loaded_by_suiro: Option<bool>,
}

fn rows() -> Result<Vec<Row>> {
    let controls = Controls::read();
    let available = controls.available.context(
        "this namespace does not show its congestion controls\n\
         hint: run it outside of namespaces and containers",
    )?;
    let allowed = controls.allowed.unwrap_or_default();
    let row = |name: String| Row {
        allowed: allowed.contains(&name),
        default: controls.default.as_ref() == Some(&name),
        loaded_by_suiro: if name == vegas::NAME { vegas::is_loaded() } else { Some(false) },
        name,
    };
    Ok(available.into_iter().map(row).collect())
}

fn list(json: bool) -> Result<Outcome> {
    let rows = rows()?;
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, &rows)?;
        writeln!(out)?;
        return Ok(Outcome::Done);
    }
    for Row { name, allowed, default, loaded_by_suiro } in rows {
        let who = if allowed { "any user" } else { "CAP_NET_ADMIN" };
        let default = if default { ", default" } else { "" };
        let ours = if loaded_by_suiro == Some(true) { ", loaded by suiro" } else { "" };
        writeln!(out, "{name:12} {who}{default}{ours}")?;
    }
    Ok(Outcome::Done)
}

fn load() -> Result<Outcome> {
    let allowed = vegas::load()?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "loaded vegas, until `suiro tcp unload vegas` or a restart")?;
    writeln!(out, "net.ipv4.tcp_allowed_congestion_control = {allowed}")?;
    Ok(Outcome::Done)
}

fn unload() -> Result<Outcome> {
    vegas::unload()?;
    let allowed = Controls::read().allowed.unwrap_or_default().join(" ");
    let mut out = std::io::stdout().lock();
    writeln!(out, "unloaded vegas; connections that have it keep it")?;
    writeln!(out, "net.ipv4.tcp_allowed_congestion_control = {allowed}")?;
    Ok(Outcome::Done)
}

/// Loads Vegas for as long as the value lives, if a trial of `plan` asks for it, the kernel does not have it and
/// this is root. If loading fails, the reason is printed and the trials are skipped.
pub fn vegas_for(plan: &Plan) -> Option<vegas::Loaded> {
    let root = rustix::process::geteuid().is_root();
    if !wants_vegas(plan) || !root || Controls::read().lacking(vegas::NAME).is_none() {
        return None;
    }
    vegas::Loaded::new(vegas::NAME).inspect_err(|error| say!("{error}")).ok()
}

/// Whether any endpoint of the plan asks for Vegas, whatever its kind.
fn wants_vegas(plan: &Plan) -> bool {
    let mut endpoints = plan.trials.iter().flat_map(|trial| &trial.setup.endpoints);
    endpoints.any(|endpoint| {
        let asked = endpoint.spec.kind().congestion();
        asked.is_some_and(|congestion| congestion.name == vegas::NAME)
    })
}

#[cfg(test)]
mod tests {
    use suiro_scenario::{NoFiles, Overrides, parse};

    use super::*;

    fn wanted_by(endpoint: &str) -> bool {
        let text = format!(
            "name = \"x\"\ntitle = \"x\"\nduration = \"1 s\"\n[topology]\nshape = \"dumbbell\"\nlink = \"x\"\n\
             [links.x]\nrate = \"1 Mbit/s\"\n[endpoints.it]\nhost = \"server\"\n{endpoint}\n"
        );
        let plan = parse(&text, "x.toml").unwrap().plan_with(&Overrides::default(), &NoFiles);
        wants_vegas(&plan.unwrap_or_else(|error| panic!("{error}")))
    }

    #[test]
    fn every_kind_that_can_ask_for_vegas_gets_it() {
        assert!(wanted_by(
            "kind = \"origin\"\nmedia = \"film\"\nmode = \"vod\"\ntcp = \"vegas\"\n[media.film]\nsource = \"synthetic\""
        ));
        assert!(wanted_by("kind = \"web-server\"\ntcp = \"vegas\""));
        assert!(wanted_by(
            "kind = \"command\"\ncommand = [\"iperf3\", \"-c\", \"client\", \"-C\", \"vegas\"]"
        ));
        assert!(!wanted_by("kind = \"web-server\"\ntcp = \"reno\""));
        assert!(!wanted_by("kind = \"command\"\ncommand = [\"echo\", \"-C\", \"vegas\"]"));
    }
}
