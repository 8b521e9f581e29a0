//! The origin next to nginx: segments of 2 MB over loopback, one connection, the same client for both, by turns.
//! Without nginx it reports that and measures nothing.
//!
//! nginx has one worker and sends a file from the page cache by `sendfile`; the origin sends from its
//! memory, on one thread. The client takes a core of its own where there are two.

mod common;
#[path = "common/process.rs"]
mod process;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use process::{Process, runtime};
use suiro_bench::{Figure, Target};
use suiro_endpoint::net::free_port;
use suiro_http::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SEGMENT_BYTES: usize = 2_000_000;
/// Turns of each server; the medians of their rates are compared.
const TURNS: usize = 21;
/// Segments of one turn.
const SEGMENTS: u32 = 100;
/// What is asked of the origin.
const TARGET: f64 = 0.8;

/// nginx, until it is dropped. Its one worker ends with it: `master_process off`.
struct Nginx {
    process: Process,
    _folder: tempfile::TempDir,
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join("nginx")).find(|file| file.is_file())
}

fn start_nginx(program: &Path) -> Nginx {
    let folder = tempfile::tempdir().expect("a folder");
    let (at, port) = (folder.path(), free_port());
    std::fs::create_dir_all(at.join("v1")).expect("a folder");
    std::fs::write(at.join("v1/7.m4s"), vec![b'.'; SEGMENT_BYTES]).expect("a segment");
    let shown = at.display();
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {shown}/{kind};"))
        .concat();
    let text = format!(
        "daemon off; master_process off; pid {shown}/pid; error_log {shown}/error.log;\n\
         events {{ worker_connections 64; }}\n\
         http {{ {paths} access_log off; sendfile on; tcp_nopush on; tcp_nodelay on;\n\
         keepalive_requests 1000000; server {{ listen 127.0.0.1:{port}; root {shown}; }} }}\n"
    );
    let file = at.join("nginx.conf");
    std::fs::write(&file, text).expect("a configuration");
    let mut command = Command::new(program);
    command.arg("-p").arg(at).arg("-c").arg(&file).stderr(Stdio::null());
    Nginx { process: Process::of(&mut command, port), _folder: folder }
}

/// Connects; to a server that is only starting, a little later.
async fn connect(port: u16) -> TcpStream {
    for _ in 0..500 {
        if let Ok(stream) = suiro_http::net::connect("127.0.0.1", port, None).await {
            return stream;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no server at port {port} within 5 s")
}

/// One request and all of its response.
async fn get(stream: &mut TcpStream, buffer: &mut [u8]) {
    stream.write_all(b"GET /v1/7.m4s HTTP/1.1\r\nhost: a\r\n\r\n").await.expect("it reads");
    let (mut read, mut head) = (0, None);
    while head.is_none_or(|head| read < head + SEGMENT_BYTES) {
        let count = stream.read(buffer).await.expect("it answers");
        assert!(count > 0, "the server closed the connection");
        if head.is_none() {
            // The head comes in one piece, with the first of the body or alone.
            let end = buffer[..count].windows(4).position(|four| four == b"\r\n\r\n");
            head = end.map(|end| read + end + 4);
            assert!(buffer.starts_with(b"HTTP/1.1 200 "), "the segment is there");
        }
        read += count;
    }
    assert_eq!(head.map(|head| read - head), Some(SEGMENT_BYTES), "nothing more comes");
}

/// The rate of one turn, in bytes per second.
async fn turn(clock: Clock, stream: &mut TcpStream, buffer: &mut [u8]) -> f64 {
    let begun = clock.now();
    for _ in 0..SEGMENTS {
        get(stream, buffer).await;
    }
    f64::from(SEGMENTS) * SEGMENT_BYTES as f64 / (clock.now() - begun).as_secs_f64()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn main() {
    let Some(program) = program() else {
        suiro_units::skipped("nginx is not installed\nhint: scripts/setup bench");
        return;
    };
    let nginx = start_nginx(&program);
    let ports = [common::start_apart().port(), nginx.process.port];
    let (clock, mut rates) = (Clock::from_now(), [Vec::new(), Vec::new()]);
    runtime().block_on(async {
        let mut buffer = vec![0; 512 << 10];
        let mut streams = [connect(ports[0]).await, connect(ports[1]).await];
        for round in 0..=TURNS {
            for (stream, rates) in streams.iter_mut().zip(&mut rates) {
                let rate = turn(clock, stream, &mut buffer).await;
                // The first warms up.
                if round > 0 {
                    rates.push(rate);
                }
            }
        }
    });
    let [origin, nginx] = rates.map(|rates| median(rates) / 1e9);
    let figure = Figure::new("origin, segments of 2 MB over loopback", origin, "GB/s");
    figure.target(Target::OfPeer(TARGET)).beside("nginx", nginx).tell();
}
