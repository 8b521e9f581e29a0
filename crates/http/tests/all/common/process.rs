//! Servers in processes of their own, for benchmarks.

#![allow(dead_code, reason = "each benchmark uses a part")]

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use tokio::runtime::{Builder, Runtime};

/// Clock ticks per second of /proc/PID/stat: USER_HZ, 100 on every architecture that Linux has today.
const TICKS: f64 = 100.0;

/// A server in a process of its own, until it is dropped.
pub struct Process {
    child: Child,
    pub port: u16,
}

impl Process {
    /// This program again, with these arguments; it calls [`told`] when it serves.
    pub fn start(arguments: [&OsStr; 2]) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program is a file"));
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().expect("it starts");
        let out = child.stdout.take().expect("it is piped");
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).expect("it prints its port");
        Self { child, port: line.trim().parse().expect("a port") }
    }

    /// Another program that serves at this port.
    pub fn of(command: &mut Command, port: u16) -> Self {
        Self { child: command.spawn().expect("it starts"), port }
    }

    /// CPU time so far, in seconds.
    pub fn cpu_s(&self) -> f64 {
        cpu_s(&self.child.id().to_string())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reports to the process that started this one where it serves.
#[expect(clippy::print_stdout, reason = "the parent waits for it")]
pub fn told(address: SocketAddr) {
    println!("{}", address.port());
}

/// CPU time so far of a process, by its number or `self`, in seconds.
pub fn cpu_s(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    // After the name, which may have spaces: the 14th and 15th field are user and system time.
    let fields = stat.rsplit_once(')').expect("a name").1.split_whitespace();
    let ticks: f64 = fields.skip(11).take(2).map(|field| field.parse().unwrap_or(0.0)).sum();
    ticks / TICKS
}

pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}
