//! `suiro layers agent`: a recorder that watchers ask.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use anyhow::{Context, Result};
use clap::Args;
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};
use suiro_layers::agent::{Agent, Identity, Limits, PORT, listen};
use suiro_layers::{FlowFilter, LiveTap, Moment};

use crate::{Outcome, interrupt};

pub(super) const EXAMPLES: &str = "Examples:
  suiro layers agent --identity studio.example --flow udp:*:5004-*
  suiro layers agent --identity 192.0.2.7 --listen 192.0.2.7:7470 --flow 'tcp:*:443-*'

It loads its probes, gives up all privileges, and then listens. A watcher cannot choose other flows.";

/// User and group of nobody, on every Linux.
const NOBODY: u32 = 65_534;

/// Whether a signal has asked it to end.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Arguments of `layers agent`.
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// The folder that `suiro layers keys` made for this host.
    #[arg(long, value_name = "DIR")]
    identity: PathBuf,
    /// The flows that may be watched, as for `suiro layers record`. Up to 8.
    #[arg(long, value_name = "FLOW", required = true)]
    flow: Vec<FlowFilter>,
    /// Where to listen.
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = everywhere())]
    listen: SocketAddr,
    /// The host's name in the records [default: the host's].
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Do not trace system calls: when sending calls began is then not known.
    #[arg(long)]
    no_syscalls: bool,
}

fn everywhere() -> SocketAddr {
    (Ipv6Addr::UNSPECIFIED, PORT).into()
}

pub(super) fn run(args: AgentArgs) -> Result<Outcome> {
    // All that needs a right, in this order; then there are none.
    let config = Identity::read(&args.identity)?.server()?;
    let listener = listen(args.listen)?;
    let host = args.host.unwrap_or_else(super::own_name);
    let tap = LiveTap::attach(host, args.flow, !args.no_syscalls)?;
    drop_privileges().context("giving up privileges")?;

    let (events, interrupted) = channel();
    interrupt::forward_to(events)?;
    std::thread::spawn(move || {
        // It hears a signal, or nothing any more.
        let _ = interrupted.recv();
        STOPPED.store(true, Ordering::Relaxed);
    });
    say!("listening on {} until Ctrl-C", listener.local_addr()?);
    let agent = Agent::new(config, Limits::default(), Moment::now);
    agent.run(&listener, tap, &STOPPED, &|problem| say!("{problem}"))?;
    Ok(Outcome::Done)
}

/// From here on this process can do what anybody can, and none that it starts can do more.
fn drop_privileges() -> Result<()> {
    set_no_new_privs(true)?;
    if geteuid().is_root() {
        // SAFETY: plain system calls, which the C library makes for all threads.
        let failed = unsafe {
            libc::setgroups(0, std::ptr::null()) != 0
                || libc::setresgid(NOBODY, NOBODY, NOBODY) != 0
                || libc::setresuid(NOBODY, NOBODY, NOBODY) != 0
        };
        if failed {
            return Err(std::io::Error::last_os_error().into());
        }
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}
