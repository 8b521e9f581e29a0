//! How fast the origin sends segments of 2 MB: one client, one connection, over loopback. Origin and
//! client each have a thread; with both on two cores the client's copying is part of the figure.

mod common;
#[path = "common/process.rs"]
mod process;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use process::runtime;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// As [`common::start_apart`] has them.
const SEGMENT_BYTES: usize = 2_000_000;

/// One request and all of its response; returns the bytes read.
async fn get(stream: &mut TcpStream, buffer: &mut [u8], number: u64) -> usize {
    let request = format!("GET /v1/{number}.m4s HTTP/1.1\r\nhost: origin\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("the origin reads");
    let mut read = 0;
    // The head of the response is some hundred bytes more.
    while read < SEGMENT_BYTES {
        read += stream.read(buffer).await.expect("the origin answers");
    }
    // What is left of the response is in the socket, or has been read already.
    while stream.try_read(buffer).is_ok_and(|more| more > 0) {}
    read
}

fn segments(criterion: &mut Criterion) {
    let address = common::start_apart();
    let runtime = runtime();
    let connecting = suiro_http::net::connect("127.0.0.1", address.port(), None);
    let mut stream = runtime.block_on(connecting).expect("the origin listens");
    let mut buffer = vec![0; 512 << 10];
    let mut group = criterion.benchmark_group("origin");
    group.throughput(Throughput::Bytes(SEGMENT_BYTES as u64));
    group.sample_size(20);
    group.bench_function("2 MB segments from memory", |bencher| {
        bencher.iter(|| runtime.block_on(get(&mut stream, &mut buffer, 7)));
    });
    let mut number = 0;
    group.bench_function("2 MB segments, each made anew", |bencher| {
        bencher.iter(|| {
            number = (number + 1) % 1000;
            runtime.block_on(get(&mut stream, &mut buffer, number))
        });
    });
    group.finish();
}

criterion_group!(benches, segments);
criterion_main!(benches);
