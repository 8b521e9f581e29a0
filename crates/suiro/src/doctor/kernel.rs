//! The kernel: its version, who we are, namespaces, congestion controls.

use suiro_guest::Kernel;
use suiro_hosts::sandbox::{self, Privilege, SandboxError};
use suiro_media::cache;
use suiro_tcp::Controls;

use super::{Check, State};

const GROUP: &str = "kernel";
/// clone3 with CLONE_PIDFD, `openat2`, pidfd_send_signal; older kernels were not tried.
const OLDEST: (u32, u32) = (5, 10);

/// All checks of this module.
pub fn checks() -> Vec<Check> {
    vec![version(), privilege(), namespaces(), user_namespaces(), congestion(), guests()]
}

fn version() -> Check {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let check = Check::ok(GROUP, "version", "namespaces, packet sockets, BPF", &release).required();
    match parse_version(&release) {
        Some(found) if found < OLDEST => {
            check.but(State::Missing, "upgrade to Debian 12, Ubuntu 22.04 or later")
        }
        Some(_) => check,
        None => check.but(State::Limited, ""),
    }
}

/// `(6, 18)` of `6.18.44-something`.
fn parse_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn privilege() -> Check {
    let purpose = "BPF probes and TCP algorithms need root; the rest does not";
    let effective = rustix::thread::capabilities(None).map(|sets| sets.effective);
    let count = effective.map_or(0, |set| set.bits().count_ones());
    let uid = rustix::process::geteuid();
    let found = format!("uid {}, {count} capabilities", uid.as_raw());
    let check = Check::ok(GROUP, "privilege", purpose, &found);
    let full = Privilege::of_this_process() == Privilege::Root;
    if full {
        check
    } else {
        check.but(State::Limited, "sudo suiro …, only for commands that need it")
    }
}

/// The sandbox that `suiro run` would make.
fn namespaces() -> Check {
    let privilege = Privilege::of_this_process();
    let purpose = "a trial's hosts, which vanish with it";
    sandbox_check("namespaces", purpose, privilege).required()
}

fn user_namespaces() -> Check {
    sandbox_check("user namespaces", "runs without root", Privilege::User)
}

fn sandbox_check(name: &str, purpose: &'static str, privilege: Privilege) -> Check {
    let well = match privilege {
        Privilege::Root => "made: mount, PID, network and IPC, as root",
        Privilege::User => "made: user, mount, PID, network and IPC, as an ordinary user",
    };
    let failed =
        |found: &str, mend: &str| Check::ok(GROUP, name, purpose, found).but(State::Missing, mend);
    match sandbox::probe(privilege) {
        Ok(()) => Check::ok(GROUP, name, purpose, well),
        Err(SandboxError::Forbidden { reason, hint, .. }) => failed(&reason, &hint),
        Err(other) => failed(&other.to_string(), ""),
    }
}

/// The kernel in whose time `suiro run --virtual` runs trials.
fn guests() -> Check {
    let purpose = "suiro run --virtual: exact, repeatable trials";
    let check = |found: &str| Check::ok(GROUP, "virtual time", purpose, found);
    match Kernel::find(&cache::folder()) {
        Ok(kernel) => {
            check(&format!("a kernel {} for guests, {}", kernel.version, kernel.program.display()))
        }
        Err(error) => {
            let text = error.to_string();
            let (found, hint) = text.split_once("\nhint: ").unwrap_or((&text, ""));
            check(found).but(State::Missing, hint)
        }
    }
}

fn congestion() -> Check {
    let controls = Controls::read();
    let list = |names: &Option<Vec<String>>| names.as_ref().map_or("?".into(), |n| n.join(" "));
    let found = format!(
        "available: {}; for everybody: {}",
        list(&controls.available),
        list(&controls.allowed)
    );
    let check = Check::ok(GROUP, "congestion control", "the axis of TCP scenarios", &found);
    let available = controls.available.unwrap_or_default();
    let absent: Vec<_> = ["reno", "cubic", "bbr", "vegas"]
        .into_iter()
        .filter(|n| !available.iter().any(|a| a == n))
        .collect();
    match absent.first() {
        None => check,
        Some(first) => check.but(State::Limited, &suiro_tcp::congestion::remedy(first)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(parse_version("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(parse_version("5.4-rc1"), Some((5, 4)));
        assert_eq!(parse_version("unknown"), None);
    }
}
