//! What real chronyd and ptp4l daemons report about a clock. They run in a user namespace, where
//! the kernel does not allow changes to the machine's clock, with their own /run.

mod common;

use std::fs::{DirBuilder, write};
use std::io::{BufRead, BufReader};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::process::{Child, Command, ExitCode, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use suiro_hosts::{CableKind, CableSpec, Host, Network, NetworkSpec, Privilege, Suite, Test};
use suiro_layers::ClockStatus;
use suiro_layers::clock::discipline::status;

use common::two_hosts::interface;

fn main() -> ExitCode {
    Suite { privilege: Privilege::User, fixture: Fixture::build, tests: TESTS }.main()
}

const TESTS: &[Test<Fixture>] = &[
    ("no daemon", |_| assert_eq!(status(), None)),
    ("chronyd that follows no other clock", Fixture::chronyd_follows_nobody),
    ("chronyd reports offset and error", Fixture::chronyd_tells_offset_and_error),
    ("ptp4l reports offset and error", Fixture::ptp4l_tells_offset_and_error),
];

/// The server is in `b`, the daemon under test in `a`.
struct Fixture {
    a: Host,
    b: Host,
}

/// A daemon, which ends with this value, after 30 s at the latest.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let id = rustix::process::Pid::from_child(&self.0);
        // It may have ended by itself.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

impl Fixture {
    fn build() -> Result<Self, String> {
        let mut command = Command::new("mount");
        let mounted = command.args(["-t", "tmpfs", "none", "/run"]).status();
        assert!(mounted.is_ok_and(|status| status.success()), "a /run of our own");
        // chronyd requires that it is not readable by others.
        for folder in ["/run/chrony", "/run/server"] {
            DirBuilder::new().mode(0o750).create(folder).unwrap();
        }
        let cable = CableSpec { from: 0, to: 1, mtu: 1500, kind: CableKind::Plain };
        let spec = NetworkSpec {
            hosts: vec!["a".into(), "b".into()],
            cables: vec![cable],
            detours: vec![],
        };
        let network = Network::build(&spec).unwrap();
        let [a, b] = [0, 1].map(|host| network.hosts()[host].clone());
        Ok(Self { a, b })
    }

    /// Starts one; `None` after printing that it is not installed. Waits until it prints `ready`.
    fn daemon(host: &Host, program: &str, arguments: &[&str], ready: &str) -> Option<Daemon> {
        if !installed(program) {
            return None;
        }
        let mut command = Command::new("timeout");
        command.args(["30", program]).args(arguments).stdin(Stdio::null());
        let child = host.command(&mut command).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let (output, errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let mut said: Box<dyn BufRead + Send> = match program {
            "chronyd" => Box::new(BufReader::new(errors)),
            _ => Box::new(BufReader::new(output)),
        };
        let mut line = String::new();
        while !line.contains(ready) {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "{program} never says: {ready}");
        }
        // It must not block because its output is not read.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Some(Daemon(child))
    }

    /// It prints nothing when it can be queried, but its socket appears.
    fn chronyd(host: &Host, folder: &str, settings: &str) -> Option<Daemon> {
        let path = format!("{folder}/conf");
        let of_folder =
            format!("bindcmdaddress {folder}/chronyd.sock\npidfile {folder}/pid\ncmdport 0\n");
        write(&path, of_folder + settings).unwrap();
        let seen = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&seen, folder, inotify::WatchFlags::CREATE).unwrap();
        // -x: it does not change the clock.
        let arguments = ["-x", "-d", "-u", "root", "-f", &path];
        let daemon = Self::daemon(host, "chronyd", &arguments, "Disabled control of system clock");
        if daemon.is_some() {
            appears(&seen, "chronyd.sock");
        }
        daemon
    }

    fn chronyd_follows_nobody(&self) {
        for (settings, reference) in [("", "00000000 ()"), ("local stratum 8\n", "7F7F0101 ()")] {
            let settings = format!("{settings}port 0\n");
            let Some(_daemon) = Self::chronyd(&self.a, "/run/chrony", &settings) else { return };
            let told = chronyc(&["tracking"]);
            assert!(told.contains(reference), "{told}");
            assert_eq!(status(), None);
        }
    }

    /// Both read one clock; the client is configured to expect an offset of 50 ms.
    fn chronyd_tells_offset_and_error(&self) {
        let server = "local stratum 8\nallow all\n";
        let Some(_server) = Self::chronyd(&self.b, "/run/server", server) else { return };
        let client = "server 10.0.0.2 iburst minpoll -6 maxpoll -6 offset 0.05\nport 0\n";
        let _client = Self::chronyd(&self.a, "/run/chrony", client).unwrap();
        wait_for_chronyd();
        let told = chronyc(&["tracking"]);
        assert!(told.contains("slow of NTP time"), "{told}");
        is_within(&status().expect("it follows"), "chrony", -50_000_000);
    }

    fn ptp4l_tells_offset_and_error(&self) {
        let interval = "logSyncInterval -4\nlogMinDelayReqInterval -4\nlogAnnounceInterval -2\n";
        // These gains let the servo settle within a second instead of 16.
        let slave = "slaveOnly 1\npi_proportional_const 0.7\npi_integral_const 0.3\n";
        let master = "free_running 1\nuds_address /run/server/ptp4l\n";
        for (path, settings) in [("/run/slave", slave), ("/run/master", master)] {
            write(path, format!("[global]\n{interval}{settings}")).unwrap();
        }
        let start = |host: &Host, path, ready| {
            let interface = host.enter(interface).unwrap();
            Self::daemon(host, "ptp4l", &["-S", "-m", "-i", &interface, "-f", path], ready)
        };
        let Some(_master) = start(&self.b, "/run/master", "assuming the grand master role") else {
            return;
        };
        let _slave = start(&self.a, "/run/slave", "UNCALIBRATED to SLAVE").unwrap();
        is_within(&status().expect("it follows"), "ptp4l", 0);
    }
}

#[expect(clippy::print_stdout, reason = "a test program prints its results")]
fn is_within(status: &ClockStatus, source: &str, truth_ns: i64) {
    println!("  {status:?}");
    assert_eq!(status.source, source);
    assert!(truth_ns.abs_diff(status.offset_ns) <= status.error_ns, "{status:?}");
    // On one machine: much less than a millisecond, or no status at all.
    assert!(status.error_ns < 1_000_000, "{status:?}");
}

fn installed(program: &str) -> bool {
    let found =
        Command::new(program).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        suiro_units::skipped(&format!("{program} is not installed"));
    }
    found.is_ok()
}

fn appears(seen: &OwnedFd, name: &str) {
    let mut buffer = [MaybeUninit::uninit(); 1024];
    let mut reader = inotify::Reader::new(seen, &mut buffer);
    let longest = Timespec { tv_sec: 10, tv_nsec: 0 };
    loop {
        let ready = poll(&mut [PollFd::new(seen, PollFlags::IN)], Some(&longest)).unwrap();
        assert!(ready == 1, "no {name} within 10 s");
        while let Some(file) = reader.next().unwrap().file_name().map(|file| file.to_owned()) {
            if file.to_bytes() == name.as_bytes() {
                return;
            }
            if reader.is_buffer_empty() {
                break;
            }
        }
    }
}

fn chronyc(arguments: &[&str]) -> String {
    let mut command = Command::new("chronyc");
    let output = command.args(["-h", "/run/chrony/chronyd.sock"]).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

/// Waits until it follows its server and knows the frequency to 100 ppm; 100 attempts of 0.1 s
/// each.
fn wait_for_chronyd() {
    let told = chronyc(&["waitsync", "100", "0", "100", "0.1"]);
    assert!(told.lines().last().is_some_and(|line| line.contains("refid: 0A000002")), "{told}");
}
