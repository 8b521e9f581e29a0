//! Programs that suiro starts, and tools next to it.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use suiro_media::program::find;

use super::{Check, State};

const GROUP: &str = "programs";
/// A program that has not printed its version by then is stopped.
const PATIENCE: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };
/// Limit on the output that is read.
const TOLD_BYTES_MAX: u64 = 8 * 1024;

struct Program {
    name: &'static str,
    purpose: &'static str,
    /// The first of these that is installed.
    commands: &'static [&'static str],
    version: &'static str,
    required: bool,
    mend: &'static str,
}

const PROGRAMS: [Program; 7] = [
    Program {
        name: "ip",
        purpose: "makes interfaces, addresses and routes of hosts",
        commands: &["ip"],
        version: "-V",
        required: true,
        mend: "sudo apt install iproute2",
    },
    Program {
        name: "ping",
        purpose: "measures manually, and in tests of the link",
        commands: &["ping"],
        version: "-V",
        required: false,
        mend: "sudo apt install iputils-ping",
    },
    Program {
        name: "iperf3",
        purpose: "load manually, and in tests of the link",
        commands: &["iperf3"],
        version: "--version",
        required: false,
        mend: "sudo apt install iperf3",
    },
    Program {
        name: "tshark",
        purpose: "reads captures manually",
        commands: &["tshark"],
        version: "--version",
        required: false,
        mend: "sudo apt install tshark",
    },
    Program {
        name: "Node.js",
        purpose: "builds and tests the report page",
        commands: &["node"],
        version: "--version",
        required: false,
        mend: "sudo apt install nodejs npm",
    },
    Program {
        name: "npm",
        purpose: "fetches real footage and the page's tools",
        commands: &["npm"],
        version: "--version",
        required: false,
        mend: "sudo apt install npm",
    },
    Program {
        name: "Chromium",
        purpose: "players in a browser, and tests of the report page",
        commands: &["chromium", "chromium-browser", "google-chrome"],
        version: "--version",
        required: false,
        mend: "sudo apt install chromium",
    },
];

/// All checks of this module. The programs are asked for their versions in parallel.
pub fn checks() -> Vec<Check> {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            PROGRAMS.iter().map(|program| scope.spawn(|| program.check())).collect();
        threads.into_iter().map(|t| t.join().expect("a check does not panic")).collect()
    })
}

impl Program {
    fn check(&self) -> Check {
        let found = self.commands.iter().find_map(|command| find(command.as_ref()));
        let text = match &found {
            None => "not found".to_owned(),
            Some(path) => describe(path, self.version),
        };
        let mut check = Check::ok(GROUP, self.name, self.purpose, &text);
        if self.required {
            check = check.required();
        }
        if found.is_some() { check } else { check.but(State::Missing, self.mend) }
    }
}

/// The command that installs a program that scenarios may use; `None` if it is not known.
pub fn install(program: &str) -> Option<&'static str> {
    const OTHERS: [(&str, &str); 4] = [
        ("taskset", "sudo apt install util-linux"),
        ("chrt", "sudo apt install util-linux"),
        ("ffmpeg", "sudo apt install ffmpeg"),
        ("curl", "sudo apt install curl"),
    ];
    let known = PROGRAMS.iter().find(|known| known.commands.contains(&program));
    let other = || OTHERS.iter().find(|(name, _)| *name == program).map(|(_, install)| *install);
    known.map(|known| known.mend).or_else(other)
}

fn describe(path: &Path, version: &str) -> String {
    match first_line(path, &[version]) {
        Some(line) => format!("{} ({line})", path.display()),
        None => path.display().to_string(),
    }
}

/// The first line that a program prints; `None` if it prints none in time.
fn first_line(program: &Path, arguments: &[&str]) -> Option<String> {
    let told = output(program, arguments)?;
    let line = told.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.to_owned())
}

/// What a program prints before its patience ends.
fn output(program: &Path, arguments: &[&str]) -> Option<String> {
    let (mut reader, writer) = std::io::pipe().ok()?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut told = Vec::new();
    let mut buffer = [0; 4096];
    while (told.len() as u64) < TOLD_BYTES_MAX {
        let mut ready = [PollFd::new(&reader, PollFlags::IN)];
        match poll(&mut ready, Some(&PATIENCE)) {
            Ok(1..) => {}
            _ => break,
        }
        match reader.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(length) => told.extend_from_slice(&buffer[..length]),
        }
    }
    // It has printed its output, or its time is over: an error here means that it has ended.
    let _ = child.kill();
    let _ = child.wait();
    Some(String::from_utf8_lossy(&told).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_and_asked() {
        let sh = find("sh".as_ref()).unwrap();
        assert_eq!(first_line(&sh, &["-c", "echo; echo ' one '; echo two"]), Some("one".into()));
        assert_eq!(first_line(&sh, &["-c", "echo sorry >&2; exit 1"]), None);
        assert_eq!(find("no-such-program".as_ref()), None);
    }

    #[test]
    fn what_a_program_prints_has_a_bound() {
        let told = output(&find("sh".as_ref()).unwrap(), &["-c", "yes"]).unwrap();
        assert!(told.len() < 2 * TOLD_BYTES_MAX as usize);
    }
}
