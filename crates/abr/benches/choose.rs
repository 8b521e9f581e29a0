//! What a decision costs: MPC, whose plans are many, for ladders of several sizes.

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use suiro_abr::{Algorithm, Controller, Ladder, Limits, Sample};
use suiro_units::{BitRate, Bytes, Duration, Time};

/// A controller that has seen five downloads at half of the top rung's rate.
fn controller(kbps: Vec<u64>) -> Controller {
    let top = BitRate::from_kbps(*kbps.last().expect("a ladder has rungs"));
    let ladder = Ladder::new(kbps.into_iter().map(BitRate::from_kbps).collect());
    let limits = Limits { segment: Duration::from_secs(2), buffer: Duration::from_secs(30) };
    let mut controller = Controller::new(Algorithm::Mpc, ladder.expect("rates that rise"), limits);
    let bytes = Bytes::new(1_000_000);
    for n in 0..5 {
        let requested = Time::from_secs(100 * n);
        let done = requested + bytes / top.mul_f64(0.5);
        controller.on_download(&Sample { bytes, requested, done });
    }
    controller
}

fn choose(criterion: &mut Criterion) {
    let twelve = vec![100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1200, 1500];
    let growing = (0..16).map(|n| (100.0 * 1.37f64.powi(n)) as u64).collect();
    let ladders = [
        ("4 rungs", vec![300, 700, 1500, 3000]),
        ("12 rungs in even steps", twelve),
        ("16 rungs in growing steps", growing),
        ("256 rungs", (1..=256).map(|n| 37 * n + n * n).collect()),
    ];
    let mut group = criterion.benchmark_group("mpc");
    group.sample_size(20);
    for (name, kbps) in ladders {
        let controller = controller(kbps);
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            let decide = |mut c: Controller| c.choose(Time::ZERO, Duration::from_secs(10));
            bencher.iter_batched(|| controller.clone(), decide, BatchSize::SmallInput);
        });
    }
    group.finish();
}

criterion_group!(benches, choose);
criterion_main!(benches);
