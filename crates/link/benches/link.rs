//! The core in virtual time: packets per second and core, both directions of a link at once.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use suiro_link::{Direction, Ecn, Link, LinkSpec, Packet};
use suiro_units::{Bytes, Duration, Seed, Time};

/// Packets of an iteration; 1200 bytes each.
const PACKETS: u64 = 20_000;

const LINKS: &[(&str, &str)] = &[
    ("delay", "delay = '20 ms'"),
    ("droptail", "rate = '1 Gbit/s'\ndelay = '20 ms'"),
    (
        "jitter",
        "rate = '1 Gbit/s'\ndelay = '20 ms'\nloss = '1 %'\n\
      jitter = { distribution = 'normal', sd = '2 ms', order = 'free' }",
    ),
    ("codel", "rate = '1 Gbit/s'\ndelay = '20 ms'\nqueue.discipline = 'codel'"),
    ("pie", "rate = '1 Gbit/s'\ndelay = '20 ms'\nqueue.discipline = 'pie'"),
    ("fq-codel", "rate = '1 Gbit/s'\ndelay = '20 ms'\nqueue.discipline = 'fq-codel'"),
    ("dualpi2", "rate = '1 Gbit/s'\ndelay = '20 ms'\nqueue.discipline = 'dualpi2'"),
    ("poisson", "rate = '1 Gbit/s'\nservice = 'poisson'\ndelay = '20 ms'"),
];

/// Packets 10 % faster than the link is, punctually polled; the count of what came out, so that
/// nothing is optimised away.
fn carry(link: &mut Link) -> u64 {
    let every = Duration::from_nanos(8_700);
    let mut events = 0;
    for id in 0..PACKETS {
        let now = Time::ZERO + every * (id / 2);
        while link.next_event().is_some_and(|at| at <= now) && link.poll(now).is_some() {
            events += 1;
        }
        let direction = Direction::BOTH[(id % 2) as usize];
        let packet = Packet { id, size: Bytes::new(1200), flow: id % 16, ecn: Ecn::Ect0 };
        link.arrive(now, direction, packet);
    }
    while link.poll(Time::from_secs(10)).is_some() {
        events += 1;
    }
    assert_eq!(events, PACKETS);
    events
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("link");
    group.throughput(Throughput::Elements(PACKETS)).sample_size(20);
    for (name, toml) in LINKS {
        let spec: LinkSpec = toml::from_str(toml).expect("the bench's link is well written");
        let config = spec.resolve(&mut |_| Err("no files".into())).expect("it makes sense");
        group.bench_function(*name, |bencher| {
            let new = || Link::new(&config, Seed(1));
            bencher.iter_batched_ref(new, carry, BatchSize::LargeInput);
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
