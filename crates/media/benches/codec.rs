//! How many frames per second the real-time codec encodes and decodes, each in one thread: what
//! 720p and 1080p at 30 leave of a core. The footage is the synthetic one, which is hard to encode:
//! fine detail that moves, and noise.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use suiro_media::Ffmpeg;
use suiro_media::live::{
    Decoder, Effort, Encoded, Encoder, EncoderConfig, Footage, FootageSpec, Picture,
};
use suiro_media::spec::Source;
use suiro_units::{BitRate, Duration};

const FRAMES: u64 = 30;

fn pictures(cache: &std::path::Path, width: u32, height: u32) -> Vec<Picture> {
    let length = Duration::from_secs(1);
    let spec = FootageSpec { width, height, length, ..FootageSpec::new(Source::Synthetic) };
    let ffmpeg = Ffmpeg::locate().expect("an ffmpeg");
    let footage = Footage::prepare(&ffmpeg, &spec, cache, &mut |_, _| {}).expect("footage");
    let read = |number| {
        let mut picture = Picture::new(width, height).expect("a good size");
        footage.read(number, &mut picture).expect("footage is read");
        picture
    };
    (0..FRAMES).map(read).collect()
}

fn encode(pictures: &[Picture], config: EncoderConfig) -> Vec<Encoded> {
    let mut encoder = Encoder::new(config).expect("an encoder");
    let frames = (0..).zip(pictures);
    let encoded = frames.map(|(n, picture)| {
        let captured = Duration::from_nanos(n * 1_000_000_000 / 30);
        encoder.encode(picture, captured).expect("it encodes").expect("none may be skipped")
    });
    encoded.collect()
}

fn decode(encoded: &[Encoded], shown: &mut Picture) {
    let mut decoder = Decoder::new().expect("a decoder");
    for frame in encoded {
        assert!(decoder.decode(&frame.bytes, shown).expect("it decodes"));
    }
}

fn codec(criterion: &mut Criterion) {
    let cache = tempfile::tempdir().expect("a folder");
    let mut group = criterion.benchmark_group("codec");
    group.sample_size(10);
    group.throughput(Throughput::Elements(FRAMES));
    for (width, height, kbps) in [(1280, 720, 1500), (1920, 1080, 4000)] {
        let pictures = pictures(cache.path(), width, height);
        let bitrate = BitRate::from_kbps(kbps);
        let config =
            |effort| EncoderConfig { width, height, fps: 30, bitrate, effort, may_skip: false };
        for (name, effort) in [("low", Effort::Low), ("medium", Effort::Medium)] {
            let id = BenchmarkId::new(format!("encode, effort {name}"), height);
            group.bench_function(id, |bencher| {
                bencher.iter(|| encode(&pictures, config(effort)));
            });
        }
        let encoded = encode(&pictures, config(Effort::Medium));
        let mut shown = Picture::new(width, height).expect("a good size");
        group.bench_function(BenchmarkId::new("decode", height), |bencher| {
            bencher.iter(|| decode(&encoded, &mut shown));
        });
    }
    group.finish();
}

criterion_group!(benches, codec);
criterion_main!(benches);
