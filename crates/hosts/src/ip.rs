//! The program `ip` (iproute2), run in batches.

use std::io::Write;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::io::{FdFlags, fcntl_setfd};

use crate::{Host, HostsError};

/// Which addresses lines are about that name none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// `ip` decides by each line.
    Any,
    V4,
    V6,
}

impl Host {
    /// Runs lines of `ip -batch` inside this host; each line is what follows `ip` on a command
    /// line.
    pub fn ip(&self, lines: &[String]) -> Result<(), HostsError> {
        batch(self, Family::Any, lines, &[])
    }
}

/// Runs `lines` inside `host`. The descriptors `inherited` stay open in `ip`, so that a line may
/// name a namespace as `/proc/self/fd/N`.
pub(crate) fn batch(
    host: &Host,
    family: Family,
    lines: &[String],
    inherited: &[&OwnedFd],
) -> Result<(), HostsError> {
    let failed = |line: &str, message: &str| HostsError::Ip {
        host: host.name().to_owned(),
        line: line.to_owned(),
        message: message.to_owned(),
    };
    let mut command = Command::new("ip");
    command.args(match family {
        Family::Any => &[][..],
        Family::V4 => &["-4"],
        Family::V6 => &["-6"],
    });
    command.args(["-batch", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let numbers: Vec<_> = inherited.iter().map(|fd| fd.as_raw_fd()).collect();
    let keep_open = move || {
        for number in &numbers {
            // SAFETY: the caller's borrow holds these descriptors open until `ip` has ended.
            let fd = unsafe { BorrowedFd::borrow_raw(*number) };
            fcntl_setfd(fd, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: system calls only, between fork and exec.
    unsafe { command.pre_exec(keep_open) };
    let mut child = host.command(&mut command).spawn().map_err(|cause| {
        if cause.kind() == std::io::ErrorKind::NotFound {
            HostsError::Spec(
                "the program `ip` is missing\nhint: run `sudo apt-get install iproute2`".into(),
            )
        } else {
            HostsError::os(format!("starting ip in {}", host.name()))(cause)
        }
    })?;
    let mut text = lines.join("\n");
    text.push('\n');
    // If it stops reading, the reason is read below.
    let _ = child.stdin.take().expect("standard input is piped").write_all(text.as_bytes());
    let output = child
        .wait_with_output()
        .map_err(HostsError::os(format!("waiting for ip in {}", host.name())))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let (line, message) = failing_line(lines, &said);
    Err(failed(&line, &message))
}

/// `ip` ends its error output with `Command failed -:N`.
fn failing_line(lines: &[String], said: &str) -> (String, String) {
    let number = said
        .lines()
        .find_map(|line| line.strip_prefix("Command failed -:"))
        .and_then(|number| number.trim().parse::<usize>().ok());
    let line = number.and_then(|n| lines.get(n.checked_sub(1)?)).cloned();
    let message = said
        .lines()
        .filter(|line| !line.starts_with("Command failed"))
        .collect::<Vec<_>>()
        .join("; ");
    (line.unwrap_or_else(|| lines.join("; ")), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failing_line_is_reported() {
        let lines = ["link set lo up".to_owned(), "link set nope up".to_owned()];
        let said = "Cannot find device \"nope\"\nCommand failed -:2\n";
        let (line, message) = failing_line(&lines, said);
        assert_eq!(
            (line.as_str(), message.as_str()),
            (lines[1].as_str(), "Cannot find device \"nope\"")
        );
        assert_eq!(failing_line(&lines, "broken").0, "link set lo up; link set nope up");
        assert_eq!(
            failing_line(&lines, "Command failed -:0").0,
            "link set lo up; link set nope up"
        );
    }
}
