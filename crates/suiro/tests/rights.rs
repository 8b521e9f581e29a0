//! `suiro layers record` as an ordinary user: what it says when it may not, and that the command it names fixes it.
//! Needs root to become such a user, and to type that command.
#![expect(clippy::disallowed_methods, reason = "the test is the application that is watched")]

use std::fs::{Permissions, copy, set_permissions};
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use suiro_hosts::{Host, Privilege, Suite, Test};
use suiro_layers::{Point, Recording};
use tempfile::TempDir;

/// As it is on every system: the user who has no rights.
const NOBODY: u32 = 65_534;
const PACKETS: u64 = 100;

fn main() -> ExitCode {
    Suite { privilege: Privilege::Root, fixture: Fixture::build, tests: TESTS }.main()
}

const TESTS: &[Test<Fixture>] = &[
    ("it says what is missing, and what fixes it", Fixture::the_command_mends_it),
    ("another namespace is refused", Fixture::another_namespace_is_refused),
];

/// A copy of the program, for rights belong to a file.
struct Fixture {
    suiro: PathBuf,
    dir: TempDir,
}

impl Fixture {
    fn build() -> Result<Self, String> {
        if Command::new("setcap").arg("-h").output().is_err() {
            return Err("no setcap".into());
        }
        Host::current("here").unwrap().ip(&["link set lo up".into()]).unwrap();
        let dir = tempfile::tempdir().unwrap();
        set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        let suiro = dir.path().join("suiro");
        copy(env!("CARGO_BIN_EXE_suiro"), &suiro).unwrap();
        Ok(Self { suiro, dir })
    }

    fn as_nobody(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.suiro);
        command.args(["layers", "record"]).args(arguments).current_dir(self.dir.path());
        command.uid(NOBODY).gid(NOBODY).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What it says when it is refused.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.as_nobody(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{said}");
        said
    }

    fn the_command_mends_it(&self) {
        let to = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = to.local_addr().unwrap();
        let flow = format!("udp:*-{address}");
        let kept = self.dir.path().join("kept");
        std::fs::create_dir(&kept).unwrap();
        set_permissions(&kept, Permissions::from_mode(0o777)).unwrap();
        for out in ["kept", "kept/never/at/all", "never"] {
            let said = self.refused(&["--flow", &flow, "--out", out]);
            assert!(said.contains("permission denied: CAP_BPF is missing\nhint: "), "{said}");
        }
        assert!(
            std::fs::read_dir(&kept).unwrap().next().is_none(),
            "only what it made is taken away"
        );
        assert!(!self.dir.path().join("never").exists());
        let said = self.refused(&["--flow", &flow, "--out", "never"]);

        let command = said.split("sudo ").nth(1).unwrap_or_else(|| panic!("no command: {said}"));
        let mut words = command.split_whitespace();
        let mended = Command::new(words.next().unwrap()).args(words).status().unwrap();
        assert!(mended.success(), "{command}");

        let arguments = ["--flow", &flow, "--out", "done", "--duration", "1 s"];
        let mut recorder = self.as_nobody(&arguments).spawn().unwrap();
        let mut said = BufReader::new(recorder.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert!(line.starts_with("recording for 1 s"), "{line}");
        for _ in 0..PACKETS {
            to.send_to(&[7; 100], address).unwrap();
            assert_eq!(to.recv(&mut [0; 200]).unwrap(), 100);
        }
        said.read_to_string(&mut line).unwrap();
        assert!(recorder.wait().unwrap().success(), "{line}");
        let recording = Recording::read(&self.dir.path().join("done")).unwrap();
        let cost = recording.cost.unwrap();
        // On the loopback each is sent and received here.
        assert_eq!((cost.packets, cost.kernel), (2 * PACKETS, None));
        assert!(cost.recorder_ns > 0 && cost.kernel_missing.unwrap().contains("CAP_SYS_ADMIN"));
        for status in recording.points {
            let expected = if status.point == Point::Dropped { 0 } else { PACKETS };
            assert_eq!((status.events, status.missing, status.lost), (expected, None, 0));
        }
    }

    fn another_namespace_is_refused(&self) {
        let other = Host::new("other").unwrap();
        let path = self.dir.path().join("other");
        std::fs::write(&path, "").unwrap();
        let mut command = Command::new("mount");
        let mounted = other.command(command.args(["--bind", "/proc/self/ns/net"]).arg(&path));
        assert!(mounted.status().unwrap().success());
        let path = path.to_str().unwrap();
        let said = self.refused(&["--flow", "udp:*-*:9", "--netns", path, "--out", "never"]);
        assert!(said.contains("hint: entering another network namespace needs root"), "{said}");
        assert!(!self.dir.path().join("never").exists(), "its folder is taken away");
        Command::new("umount").arg(path).status().unwrap();
    }
}
