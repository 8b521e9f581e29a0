//! One live stream in chunks to 1,000 viewers over HTTP/1.1, from the origin and through the cache: how long after its release
//! the last byte of a chunk has reached them, and what that costs. Origin and cache are processes of their own, each with one
//! thread as in a trial; the viewers are this process, with another.

#[path = "common/process.rs"]
mod process;

use std::cell::RefCell;
use std::io;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use bytes::Bytes;
use process::{Process, cpu_s, runtime, told};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use suiro_bench::{Figure, Target};
use suiro_http::edge::{self, EdgeJob};
use suiro_http::origin::catalogue::{Catalogue, Container, RungEntry, TrackEntry};
use suiro_http::origin::chunks::{Chunk, Chunks};
use suiro_http::origin::timeline::{Loop, Schedule};
use suiro_http::origin::{self, Media, PART};
use suiro_http::presentation::TrackKind;
use suiro_http::{Clock, Url};
use suiro_scenario::{HlsRungs, HttpVersion};
use suiro_units::{BitRate, Duration, Seed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const VIEWERS: usize = 1000;
/// Chunks of 100 ms at 2 Mbit/s, of which twenty are a segment.
const CHUNK_BYTES: usize = 25_000;
const CHUNK_MS: u64 = 100;
const CHUNKS: u64 = 20;
const SEGMENT_MS: u64 = CHUNK_MS * CHUNKS;
/// Segments that each viewer plays; the first, in which they connect, does not count.
const SEGMENTS: u64 = 6;
/// The next chunk is released after this time: whoever has waited for longer falls behind.
const LATE_MS: f64 = CHUNK_MS as f64;

/// A stream whose chunks have the boxes of CMAF around bytes that nobody decodes.
struct Boxes;

impl Media for Boxes {
    fn init(&self, _: usize, _: usize) -> io::Result<Bytes> {
        Ok("init".into())
    }

    fn segment(&self, _: usize, _: usize, _: u64) -> io::Result<Bytes> {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        for (kind, size) in [(b"moof", 100), (b"mdat", CHUNK_BYTES - 100)] {
            chunk.extend_from_slice(&u32::try_from(size).expect("a small box").to_be_bytes());
            chunk.extend_from_slice(kind);
            chunk.resize(chunk.len() + size - 8, b'.');
        }
        Ok(chunk.repeat(CHUNKS as usize).into())
    }
}

fn catalogue(zero_unix_ns: u64) -> Catalogue {
    let chunk = |n| Chunk { duration: CHUNK_MS, independent: n == 0 };
    let rate = BitRate::from_bps(CHUNK_BYTES as u64 * 8 * 1000 / CHUNK_MS);
    let chunks = [(0..CHUNKS).map(chunk).collect::<Vec<_>>()];
    let rung = RungEntry {
        id: "v0".into(),
        rate,
        declared: rate,
        mean_rate: rate,
        nominal: rate,
        codecs: "avc1.64001f".into(),
        size: Some((1280, 720)),
        frame_rate: Some((30, 1)),
        channels: None,
        timeline: Loop::new(1000, &[SEGMENT_MS]).expect("a loop"),
        chunks: Chunks::new(1000, &chunks, PART),
    };
    let (kind, container) = (TrackKind::Video, Container::Fmp4);
    let schedule = Schedule::Live { zero_unix_ns, window: Duration::from_secs(30) };
    let tracks = vec![TrackEntry { kind, container, rungs: vec![rung] }];
    Catalogue { tracks, schedule, hls_rungs: HlsRungs::All, version: "bench".into() }
}

/// Each viewer is a descriptor here, and one or two at a server.
fn more_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let current = Some(maximum.map_or(65_536, |most| most.min(65_536)));
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).expect("up to the hard limit");
}

/// The origin, until it is killed.
fn serve_origin(zero_unix_ns: u64) {
    runtime().block_on(async {
        let listener = suiro_http::net::listen((Ipv4Addr::LOCALHOST, 0).into(), None);
        let listener = listener.expect("a free port");
        told(listener.local_addr().expect("it is bound"));
        let (catalogue, never) = (catalogue(zero_unix_ns), std::future::pending());
        origin::serve(listener, catalogue, Arc::new(Boxes), Clock::from_now(), never).await;
    });
}

/// A cache of it, until it is killed.
fn serve_edge(origin: u16) {
    let job = EdgeJob {
        name: "edge".into(),
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        congestion: None,
        secure: None,
        origin: Url::parse(&format!("http://127.0.0.1:{origin}/")).expect("a URL"),
        origin_http: HttpVersion::Http1,
        certificate: "none".into(),
        server: None,
        store: suiro_units::Bytes::new(64_000_000),
        in_flight: 64,
        fault: None,
        seed: Seed(1),
        records: None,
    };
    let served = edge::run(&job, Clock::from_now(), told, std::future::pending());
    runtime().block_on(served).expect("it serves");
}

/// Takes the frame of HTTP/1.1's chunks off a body (RFC 9112 §7.1), of which more and more comes.
#[derive(Default)]
struct Dechunk {
    /// Bytes of the chunk that are still to come, with the line break after it.
    left: usize,
    line: Vec<u8>,
}

impl Dechunk {
    /// How many bytes of the body there are in these; and whether its end is.
    fn count(&mut self, mut bytes: &[u8]) -> (usize, bool) {
        let mut body = 0;
        while !bytes.is_empty() {
            if self.left > 0 {
                let taken = self.left.min(bytes.len());
                body += taken.min(self.left.saturating_sub(2));
                self.left -= taken;
                bytes = &bytes[taken..];
                continue;
            }
            self.line.push(bytes[0]);
            bytes = &bytes[1..];
            if let Some(size) = self.line.strip_suffix(b"\r\n") {
                let size = std::str::from_utf8(size).expect("digits");
                self.left = usize::from_str_radix(size, 16).expect("a size") + 2;
                self.line.clear();
                if self.left == 2 {
                    return (body, true);
                }
            }
        }
        (body, false)
    }
}

/// What all viewers have seen.
struct Seen {
    clock: Clock,
    zero_unix_ns: u64,
    delays_ms: RefCell<Vec<f64>>,
}

impl Seen {
    /// Another chunk of a segment is there.
    fn chunk(&self, segment: u64, chunk: u64) {
        let released_ns = self.zero_unix_ns + (segment * CHUNKS + chunk + 1) * CHUNK_MS * 1_000_000;
        let now_ns = self.clock.unix_ns(self.clock.now());
        let delay_ms = (i128::from(now_ns) - i128::from(released_ns)) as f64 / 1e6;
        self.delays_ms.borrow_mut().push(delay_ms);
    }
}

/// Plays segments one after the other; says of each chunk of all but the first when it was there.
async fn view(seen: Rc<Seen>, port: u16, first: u64) -> io::Result<()> {
    let connecting = suiro_http::net::connect("127.0.0.1", port, None).await;
    let mut stream: TcpStream = connecting.map_err(io::Error::other)?;
    let mut buffer = vec![0; 64 << 10];
    for segment in first..first + SEGMENTS {
        let request = format!("GET /v0/{segment}.m4s HTTP/1.1\r\nhost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let (mut dechunk, mut head, mut body) = (Dechunk::default(), Vec::new(), 0);
        loop {
            let count = stream.read(&mut buffer).await?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut bytes = &buffer[..count];
            if !head.ends_with(b"\r\n\r\n") {
                while let [byte, rest @ ..] = bytes
                    && !head.ends_with(b"\r\n\r\n")
                {
                    head.push(*byte);
                    bytes = rest;
                }
                assert!(head.starts_with(b"HTTP/1.1 200 "), "{}", head.escape_ascii());
            }
            let before = body / CHUNK_BYTES;
            let (more, ended) = dechunk.count(bytes);
            body += more;
            for chunk in before..body / CHUNK_BYTES {
                if segment > first {
                    seen.chunk(segment, chunk as u64);
                }
            }
            if ended {
                break;
            }
        }
        assert_eq!(body, CHUNK_BYTES * CHUNKS as usize, "all of a segment");
    }
    Ok(())
}

/// All viewers at once; returns the delays of chunks in order, and how long it took.
fn watch(port: u16, zero_unix_ns: u64) -> (Vec<f64>, f64) {
    let clock = Clock::from_now();
    let seen = Rc::new(Seen { clock, zero_unix_ns, delays_ms: RefCell::default() });
    let begun = clock.now();
    let first = (clock.unix_ns(begun) - zero_unix_ns) / (SEGMENT_MS * 1_000_000) + 1;
    let viewers = tokio::task::LocalSet::new();
    let viewing = async {
        let tasks: Vec<_> = (0..VIEWERS)
            .map(|_| tokio::task::spawn_local(view(seen.clone(), port, first)))
            .collect();
        for task in tasks {
            task.await.expect("a viewer does not panic").expect("it is served");
        }
    };
    let bound = StdDuration::from_millis(SEGMENT_MS * (SEGMENTS + 4));
    let watching = async { tokio::time::timeout(bound, viewing).await };
    let all = runtime().block_on(viewers.run_until(watching));
    all.expect("the stream goes on at its own pace");
    let took = (clock.now() - begun).as_secs_f64();
    let mut delays = seen.delays_ms.take();
    delays.sort_by(f64::total_cmp);
    (delays, took)
}

fn measure(name: &str, port: u16, zero_unix_ns: u64, servers: &[&Process]) {
    let used = || -> f64 { servers.iter().map(|server| server.cpu_s()).sum() };
    let (before, own) = (used(), cpu_s("self"));
    let (delays, took) = watch(port, zero_unix_ns);
    let cpus = [(used() - before) / took, (cpu_s("self") - own) / took];
    let expected = VIEWERS * ((SEGMENTS - 1) * CHUNKS) as usize;
    let at = |share: f64| delays[((delays.len() - 1) as f64 * share) as usize];
    let late = expected - delays.iter().filter(|delay| **delay <= LATE_MS).count();
    let figure = |what: &str, value: f64, unit: &str| {
        Figure::new(format!("{name}, {VIEWERS} viewers of chunks of 100 ms: {what}"), value, unit)
    };
    let missed = figure("chunks that came after the next was released", late as f64, "");
    missed.target(Target::AtMost(0.0)).tell();
    figure("from its release to its last byte, 50 %", at(0.5), "ms").tell();
    figure("the same, 99 %", at(0.99), "ms").target(Target::AtMost(LATE_MS)).tell();
    figure("CPUs in use by servers", cpus[0], "").tell();
    figure("CPUs in use by viewers", cpus[1], "").tell();
}

fn main() {
    more_files();
    let arguments: Vec<String> = std::env::args().collect();
    match &arguments[..] {
        [_, role, argument] if role == "origin" => {
            return serve_origin(argument.parse().expect("a time"));
        }
        [_, role, argument] if role == "edge" => {
            return serve_edge(argument.parse().expect("a port"));
        }
        _ => {}
    }
    let clock = Clock::from_now();
    let zero_unix_ns = clock.unix_ns(clock.now()) - 60_000_000_000;
    let start =
        |role: &str, argument: u64| Process::start([role.as_ref(), argument.to_string().as_ref()]);
    let origin = start("origin", zero_unix_ns);
    measure("origin", origin.port, zero_unix_ns, &[&origin]);
    let edge = start("edge", u64::from(origin.port));
    measure("cache", edge.port, zero_unix_ns, &[&origin, &edge]);
}
