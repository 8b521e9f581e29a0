//! The cost of sampling: 20 busy sockets, every 10 ms and every 1 ms, for some seconds each.
#![expect(clippy::disallowed_methods, reason = "the bench is the peer, and opens sockets")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration as StdDuration;

use suiro_bench::Figure;
use suiro_tcp::{Counts, Prepared, SamplerSpec};
use suiro_units::Duration;

const CONNECTIONS: usize = 10;
const SECONDS: u64 = 5;

fn pairs() -> Vec<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is up");
    let address = listener.local_addr().expect("it is bound");
    let pair = || {
        let client = TcpStream::connect(address).expect("it listens");
        (client, listener.accept().expect("it was connected").0)
    };
    (0..CONNECTIONS).map(|_| pair()).collect()
}

/// Every socket sends a little every 5 ms, so that every sample is a row.
fn chat(pairs: &mut [(TcpStream, TcpStream)], over: &AtomicBool) {
    let mut buffer = [0; 1000];
    while !over.load(Ordering::Relaxed) {
        for (a, b) in &mut *pairs {
            a.write_all(&buffer).expect("the peer reads");
            b.read_exact(&mut buffer).expect("the peer writes");
            b.write_all(&buffer).expect("the peer reads");
            a.read_exact(&mut buffer).expect("the peer writes");
        }
        std::thread::sleep(StdDuration::from_millis(5));
    }
}

fn measure(period: Duration) -> Counts {
    let dir = tempfile::tempdir().expect("there is a folder for temporary files");
    let (mut pairs, over) = (pairs(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| chat(&mut pairs, &over));
        let host = "bench".to_owned();
        let spec = SamplerSpec { host, period, each_ack: false, dir: dir.path().into() };
        let sampler =
            Prepared::new(&spec).expect("the kernel has sock_diag").start(0).expect("a thread");
        std::thread::sleep(StdDuration::from_secs(SECONDS));
        let counts = sampler.stop().expect("nothing ends it early");
        over.store(true, Ordering::Relaxed);
        counts
    })
}

fn main() {
    for period in [Duration::from_millis(10), Duration::from_millis(1)] {
        let counts = measure(period);
        let cpu_us = counts.cpu.as_nanos() as f64 / 1e3;
        let name = format!("TCP sampler, {} sockets every {period}", 2 * CONNECTIONS);
        let tell = |what: &str, value: f64, unit| {
            Figure::new(format!("{name}: {what}"), value, unit).tell();
        };
        tell("processor", cpu_us / 1e4 / SECONDS as f64, "% of a core");
        tell("CPU, each sample", cpu_us / counts.samples as f64, "µs");
        tell("late samples", counts.late as f64, "");
        tell("lost samples", counts.lost as f64, "");
    }
}
