//! Programs of others, which `make peers` installs.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use suiro_moq::tls;

/// A program of another; `None` if it is not installed, which is printed.
pub fn installed(name: &str) -> Option<PathBuf> {
    let path = suiro_media::cache::folder().join("peers").join(name);
    if path.exists() {
        return Some(path);
    }
    suiro_units::skipped(&format!("{name} is not installed\nhint: make peers"));
    None
}

/// A program that ends when it is dropped.
pub struct Running(pub Child);

impl Running {
    pub fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// moq-relay at a port that it chooses, and that port. Its certificate is where that of our relay would be.
pub fn moq_relay(program: &Path, dir: &Path) -> (Running, u16) {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    std::fs::write(tls::file(dir, "relay"), certificate.der()).unwrap();
    std::fs::write(dir.join("relay.pem"), certificate.pem()).unwrap();
    std::fs::write(dir.join("relay.key"), key.serialize_pem()).unwrap();
    let mut command = Command::new(program);
    command.args(["--listen", "127.0.0.1:0", "--auth-public", "**", "--log-level", "info"]);
    command.arg("--listen-tls-cert").arg(dir.join("relay.pem"));
    command.arg("--listen-tls-key").arg(dir.join("relay.key"));
    let mut relay = Running::start(command.stderr(Stdio::piped()));
    let mut said = BufReader::new(relay.0.stderr.take().unwrap()).lines();
    let listens = said.by_ref().map(Result::unwrap).find(|line| line.contains("listening"));
    let line = listens.expect("moq-relay listens");
    let port = line.split("127.0.0.1:").nth(1).unwrap();
    let port = port.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap();
    // Nobody reads what it says later, so nothing may wait for that.
    std::thread::spawn(move || said.for_each(drop));
    (relay, port)
}
