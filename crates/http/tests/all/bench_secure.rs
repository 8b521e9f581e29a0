//! The origin's HTTP/2 and HTTP/3 next to Caddy's (`scripts/setup bench`): segments of 2 MB over loopback, one connection, the same
//! client for both servers, by turns. Without Caddy it reports that, and measures the origin alone.
//!
//! Each server is a process of its own. Caddy may use every CPU; the origin uses one, and so does the client.

mod common;
#[path = "common/process.rs"]
mod process;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use common::{catalogue, vod};
use hyper::Request;
use process::{Process, cpu_s, runtime, told};
use rustls::pki_types::ServerName;
use suiro_bench::{Figure, Target};
use suiro_endpoint::net::free_port;
use suiro_http::http3::client::Sender;
use suiro_http::origin::catalogue::Container;
use suiro_http::origin::{self, Secure};
use suiro_http::{Clock, http3};
use suiro_scenario::{HttpVersion, QuicCongestion};
use tokio_rustls::TlsConnector;

const SEGMENT_BYTES: usize = 2_000_000;
/// Turns of each server; the medians of their rates are compared.
const TURNS: usize = 15;
/// Segments of one turn.
const SEGMENTS: u32 = 50;
/// What is asked of the origin.
const TARGET: f64 = 0.8;
/// The client's windows of HTTP/2, of a stream and of the connection: never what limits.
const WINDOW_BYTES: u32 = 16 << 20;

fn localhost(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// The origin, until it is killed.
fn serve(http: HttpVersion, folder: &Path) {
    let secure = Secure {
        http,
        names: vec!["localhost".into()],
        certificate: folder.join("origin.der"),
        congestion: QuicCongestion::default(),
    };
    // Rung `v1` of the pattern at 32 Mbit/s and half a second.
    let (catalogue, media) = catalogue(vod(600), Container::Fmp4, [400_000, 32_000_000]);
    let at = (localhost(0), &secure);
    let (media, clock, never) = (Arc::new(media), Clock::from_now(), std::future::pending());
    let serving = origin::serve_secure(at, catalogue, media, clock, told, never);
    runtime().block_on(serving).expect("it serves");
}

/// A server in a process of its own, until it is dropped.
struct Server {
    name: &'static str,
    process: Process,
    certificate: PathBuf,
}

impl Server {
    fn origin(http: HttpVersion, folder: &Path) -> Self {
        let process = Process::start([http.name().as_ref(), folder.as_os_str()]);
        Self { name: "origin", process, certificate: folder.join("origin.der") }
    }

    fn caddy(program: &Path, folder: &Path) -> Self {
        let certificate = folder.join("caddy.der");
        let names = vec!["localhost".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        std::fs::write(&certificate, made.cert.der()).expect("a file");
        std::fs::write(folder.join("cert.pem"), made.cert.pem()).expect("a file");
        std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).expect("a file");
        std::fs::create_dir_all(folder.join("v1")).expect("a folder");
        std::fs::write(folder.join("v1/7.m4s"), vec![b'.'; SEGMENT_BYTES]).expect("a segment");
        let (port, shown) = (free_port(), folder.display());
        let text = format!(
            "{{\n admin off\n persist_config off\n auto_https off\n skip_install_trust\n}}\n\
             https://localhost:{port} {{\n bind 127.0.0.1\n tls {shown}/cert.pem {shown}/key.pem\n\
             root * {shown}\n file_server\n}}\n"
        );
        let config = folder.join("Caddyfile");
        std::fs::write(&config, text).expect("a configuration");
        let mut command = Command::new(program);
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&config);
        let command = command.env("HOME", folder).env("XDG_DATA_HOME", folder);
        let log = std::fs::File::create(folder.join("caddy.log")).expect("a file");
        let process = Process::of(command.stdout(Stdio::null()).stderr(log), port);
        Self { name: "caddy", process, certificate }
    }

    /// Connects; to a server that is only starting, a little later.
    async fn connect(&self, http: HttpVersion) -> Client {
        for _ in 0..100 {
            let connecting = Client::connect(http, self.process.port, &self.certificate);
            match tokio::time::timeout(Duration::from_millis(500), connecting).await {
                Ok(Some(client)) => return client,
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        panic!("{}: no server at port {} within 50 s", self.name, self.process.port)
    }
}

/// One connection.
enum Client {
    Http2(h2::client::SendRequest<Bytes>),
    Http3(Sender),
}

impl Client {
    /// `None`: nothing serves there yet.
    async fn connect(http: HttpVersion, port: u16, certificate: &Path) -> Option<Self> {
        let protocol = if http == HttpVersion::Http3 { http3::ALPN } else { &b"h2"[..] };
        let tls = suiro_quic::tls::client(certificate, vec![protocol.to_vec()]).expect("TLS");
        if http == HttpVersion::Http3 {
            let (to, behaviour) = (localhost(port), http3::behaviour());
            return Some(Self::Http3(
                Sender::connect(to, "localhost", tls, &behaviour, || {}).await.ok()?,
            ));
        }
        let stream = suiro_http::net::connect("127.0.0.1", port, None).await.ok()?;
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await.ok()?;
        let mut windows = h2::client::Builder::new();
        windows.initial_window_size(WINDOW_BYTES).initial_connection_window_size(WINDOW_BYTES);
        let (sender, connection) = windows.handshake(stream).await.ok()?;
        tokio::spawn(connection);
        Some(Self::Http2(sender))
    }

    /// One request and all of its response.
    async fn get(&mut self) {
        let request = Request::get("https://localhost/v1/7.m4s").body(()).expect("a request");
        let bytes = match self {
            Self::Http2(sender) => over_http2(sender, request).await,
            Self::Http3(sender) => over_http3(sender, request).await,
        };
        assert_eq!(bytes, SEGMENT_BYTES);
    }
}

/// Bytes of the response.
async fn over_http2(sender: &mut h2::client::SendRequest<Bytes>, request: Request<()>) -> usize {
    let (response, _) = sender.send_request(request, true).expect("a request");
    let response = response.await.expect("it answers");
    assert_eq!(response.status(), 200, "the segment is there");
    let (mut body, mut bytes) = (response.into_body(), 0);
    while let Some(data) = body.data().await {
        let data = data.expect("all of it");
        body.flow_control().release_capacity(data.len()).expect("it was taken");
        bytes += data.len();
    }
    bytes
}

/// Bytes of the response.
async fn over_http3(sender: &mut Sender, request: Request<()>) -> usize {
    let response = sender.send(request).await.expect("it answers");
    assert_eq!(response.status(), 200, "the segment is there");
    let (mut body, mut bytes) = (response.into_body(), 0);
    while let Some(data) = body.data().await.expect("all of it") {
        bytes += data.len();
    }
    bytes
}

fn program() -> Option<PathBuf> {
    let own = suiro_media::cache::folder().join("peers");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(own).chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join("caddy")).find(|file| file.is_file())
}

/// The rate of one turn, in bytes per second; and the CPU time per byte of the server and of the client, in seconds.
async fn turn(clock: Clock, server: &Server, client: &mut Client) -> [f64; 3] {
    let (begun, before) = (clock.now(), [server.process.cpu_s(), cpu_s("self")]);
    for _ in 0..SEGMENTS {
        client.get().await;
    }
    let bytes = f64::from(SEGMENTS) * SEGMENT_BYTES as f64;
    let took = (clock.now() - begun).as_secs_f64();
    [
        bytes / took,
        (server.process.cpu_s() - before[0]) / bytes,
        (cpu_s("self") - before[1]) / bytes,
    ]
}

fn median(turns: &[[f64; 3]], which: usize) -> f64 {
    let mut values: Vec<f64> = turns.iter().map(|turn| turn[which]).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One server, or two, with that version of HTTP.
fn measure(http: HttpVersion, caddy: Option<&Path>) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut servers = vec![Server::origin(http, folder.path())];
    servers.extend(caddy.map(|program| Server::caddy(program, folder.path())));
    let clock = Clock::from_now();
    let mut turns: Vec<Vec<[f64; 3]>> = vec![Vec::new(); servers.len()];
    runtime().block_on(async {
        let mut clients = Vec::new();
        for server in &servers {
            clients.push(server.connect(http).await);
        }
        for round in 0..=TURNS {
            for ((server, client), turns) in servers.iter().zip(&mut clients).zip(&mut turns) {
                let turn = turn(clock, server, client).await;
                // The first warms up.
                if round > 0 {
                    turns.push(turn);
                }
            }
        }
    });
    let figure = |what: &str, which: usize, scale: f64, unit: &str| {
        let version = http.name();
        let name = format!("origin over HTTP/{version}, segments of 2 MB over loopback: {what}");
        let figure = Figure::new(name, median(&turns[0], which) * scale, unit);
        match turns.get(1) {
            Some(peer) => figure.beside("caddy", median(peer, which) * scale),
            None => figure,
        }
    };
    figure("rate", 0, 1e-9, "GB/s").target(Target::OfPeer(TARGET)).tell();
    figure("CPU time of the server for each GB", 1, 1e9, "s").tell();
    figure("CPU time of the client for each GB", 2, 1e9, "s").tell();
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let versions = [HttpVersion::Http2, HttpVersion::Http3];
    if let [_, version, folder] = &arguments[..]
        && let Some(http) = versions.into_iter().find(|http| http.name() == version)
    {
        return serve(http, Path::new(folder));
    }
    let caddy = program();
    if caddy.is_none() {
        suiro_units::skipped("caddy is not installed\nhint: scripts/setup bench");
    }
    for http in versions {
        measure(http, caddy.as_deref());
    }
}
