//! What controllers cost: one report (and the packets it reports), and a minute of a flow over the
//! link core in virtual time.

#[allow(dead_code, reason = "the tests use the rest")]
mod common;

use common::flow::{Controlled, Reports};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use suiro_rate::{Arrived, Controller, Feedback, PacketReport, RateKind, RateSpec};
use suiro_units::{BitRate, Duration, Ratio, Time};

/// Reports of an iteration, one per 50 ms; each of 20 packets, of which the last is lost in every
/// tenth report.
const REPORTS: u64 = 1000;
const PACKETS: u64 = 20;
const EVERY: Duration = Duration::from_millis(50);

fn spec(kind: RateKind) -> RateSpec {
    if kind == RateKind::Fixed {
        RateSpec::fixed(BitRate::from_mbps(5))
    } else {
        RateSpec::new(kind)
    }
}

fn at(report: u64) -> Time {
    Time::ZERO + EVERY * (report + 1)
}

fn packet(report: u64, n: u64) -> PacketReport {
    let (sequence, sent) = (report * PACKETS + n, at(report) + EVERY * n / PACKETS);
    let lost = report.is_multiple_of(10) && n + 1 == PACKETS;
    PacketReport {
        sequence,
        size: common::SIZE,
        sent,
        arrived: if lost { Arrived::No } else { Arrived::At(sent) },
        ecn_ce: false,
    }
}

/// The same history as three kinds of reports.
fn reports(of: &str) -> Vec<Feedback> {
    let report = |n: u64| {
        let lost = u64::from(n.is_multiple_of(10));
        let mut report = Feedback::counts(PACKETS, PACKETS - lost).with_rtt(EVERY);
        match of {
            "counts" => {}
            "packets" => {
                report.packets = (0..PACKETS).map(|of| packet(n, of)).collect();
            }
            _ => {
                report.receive_rate = Some(BitRate::from_mbps(4));
                report.loss_event_rate = Ratio::new(0.005);
            }
        }
        report
    };
    (0..REPORTS).map(report).collect()
}

fn hear(mut controller: Box<dyn Controller>, reports: &[Feedback]) -> BitRate {
    for (n, report) in (0..).zip(reports) {
        controller.on_sent(at(n), common::SIZE);
        controller.on_feedback(at(n), report);
    }
    controller.target()
}

fn feedback(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("feedback");
    group.throughput(criterion::Throughput::Elements(REPORTS)).sample_size(20);
    for kind in RateKind::ALL {
        for of in ["counts", "tfrc", "packets"] {
            let (spec, reports) = (spec(kind), reports(of));
            group.bench_function(format!("{kind}/{of}"), |bencher| {
                let new = || spec.build(Time::ZERO).expect("defaults make sense");
                bencher.iter_batched(new, |new| hear(new, &reports), BatchSize::SmallInput);
            });
        }
    }
    group.finish();
}

/// To stay below 50 ms: 10 Mbit/s, which is some 50,000 packets. NADA, SCReAM and GCC have their maximum, 1.5 Mbit/s, there: 7,500 packets,
/// below 10 ms.
fn minute(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("minute");
    group.sample_size(20);
    let delay = Duration::from_millis(20);
    let every = Duration::from_millis(100);
    for (kind, reports) in
        RateKind::ALL.map(|kind| (kind, Reports::Counts(every))).into_iter().chain([
            (RateKind::Tfrc, Reports::Tfrc),
            (RateKind::Tfrc, Reports::Packets(every)),
            (RateKind::Nada, Reports::Packets(every)),
            (RateKind::Scream, Reports::Packets(Duration::from_millis(40))),
            (RateKind::Gcc, Reports::Packets(every)),
        ])
    {
        let spec = if kind == RateKind::Fixed {
            RateSpec::fixed(BitRate::from_mbps(10))
        } else {
            spec(kind)
        };
        group.bench_function(format!("{kind}/{reports:?}"), |bencher| {
            bencher.iter(|| {
                let mut link = common::link("rate = '10 Mbit/s'\ndelay = '20 ms'", 1);
                let mut flow = Controlled::new(&spec, reports, delay, Time::ZERO);
                common::run(&mut link, &mut [&mut flow], 60).sent[0]
            });
        });
    }
    group.finish();
}

criterion_group!(benches, feedback, minute);
criterion_main!(benches);
