//! Whatever is reported, whenever: the target stays within its bounds, and nothing panics.

use proptest::prelude::*;
use suiro_rate::tfrc::Receiver;
use suiro_rate::{Arrived, Feedback, PacketReport, RateSpec};
use suiro_units::{BitRate, Bytes, Duration, Ratio, Time};

const MIN: BitRate = BitRate::from_kbps(100);
const MAX: BitRate = BitRate::from_mbps(50);

#[derive(Debug, Clone)]
enum Step {
    Sent(u64),
    Report(Box<Feedback>),
    Timer,
}

/// Small, ordinary and absurd numbers.
fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..4, 0u64..2000, 0u64..1_000_000_000, any::<u64>(), Just(u64::MAX)]
}

fn any_packet() -> impl Strategy<Value = PacketReport> {
    let arrived = prop_oneof![
        Just(Arrived::No),
        Just(Arrived::Untimed),
        any_number().prop_map(|at| Arrived::At(Time::from_nanos(at))),
    ];
    (any_number(), any_number(), any_number(), arrived, any::<bool>()).prop_map(
        |(sequence, size, sent, arrived, ecn_ce)| PacketReport {
            sequence,
            size: Bytes::new(size),
            sent: Time::from_nanos(sent),
            arrived,
            ecn_ce,
        },
    )
}

fn any_report() -> impl Strategy<Value = Feedback> {
    let rate = proptest::option::of(any_number());
    let loss = proptest::option::of(0.0..=1.0);
    let packets = proptest::collection::vec(any_packet(), 0..20);
    (any_number(), any_number(), proptest::option::of(any_number()), rate, loss, packets).prop_map(
        |(expected, received, rtt, rate, loss, packets)| Feedback {
            expected,
            received,
            rtt: rtt.map(Duration::from_nanos),
            receive_rate: rate.map(BitRate::from_bps),
            loss_event_rate: loss.and_then(Ratio::new),
            packets,
        },
    )
}

fn any_steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        any_number().prop_map(Step::Sent),
        any_report().prop_map(|report| Step::Report(Box::new(report))),
        Just(Step::Timer),
    ];
    // Up to twenty minutes between steps.
    let wait = prop_oneof![Just(0), 0u64..10_000_000, 0u64..1_200_000_000_000];
    proptest::collection::vec((wait, step), 1..60)
}

fn any_spec() -> impl Strategy<Value = RateSpec> {
    let rules = ["double", "additive"].into_iter().flat_map(|increase| {
        ["equation", "halve"].map(|decrease| {
            format!(
                "kind = 'tfrcp'\nincrease = '{increase}'\ndecrease = '{decrease}'\ngop = '100 ms'"
            )
        })
    });
    let specs: Vec<String> = rules
        .chain(["tfrc", "nada", "scream", "gcc"].map(|kind| format!("kind = '{kind}'")))
        .collect();
    proptest::sample::select(specs).prop_map(|toml| {
        let mut spec: RateSpec = toml::from_str(&toml).expect("well written");
        (spec.min, spec.max) = (Some(MIN), Some(MAX));
        spec
    })
}

proptest! {
    #[test]
    fn the_target_stays_within_its_bounds(spec in any_spec(), steps in any_steps()) {
        let mut controller = spec.build(Time::ZERO).expect("it makes sense");
        let mut now = Time::ZERO;
        for (wait, step) in steps {
            now += Duration::from_nanos(wait);
            match step {
                Step::Sent(size) => controller.on_sent(now, Bytes::new(size)),
                Step::Report(report) => controller.on_feedback(now, &report),
                Step::Timer => {
                    let early = controller.next_timer().is_some_and(|at| now < at);
                    let before = controller.target();
                    controller.on_timer(now);
                    prop_assert!(!early || controller.target() == before);
                }
            }
            let target = controller.target();
            prop_assert!(MIN <= target && target <= MAX, "{target}");
            // SCReAM's pace is up to six times its target.
            let pace = controller.pacing();
            prop_assert!(MIN <= pace && pace <= MAX.mul_f64(6.0), "{pace}");
            let estimate = controller.estimate();
            prop_assert!(estimate.rtt.is_none_or(|rtt| !rtt.is_zero()));
            prop_assert!(controller.next_timer().is_some());
        }
    }

    /// Time that passes without a report never raises the target.
    #[test]
    fn silence_never_inflates(spec in any_spec(), steps in any_steps()) {
        let mut controller = spec.build(Time::ZERO).expect("it makes sense");
        let mut now = Time::ZERO;
        for (wait, step) in steps {
            now += Duration::from_nanos(wait);
            if let Step::Report(report) = step {
                controller.on_feedback(now, &report);
            }
        }
        // What was reported before may still take effect, once.
        let timer = controller.next_timer().expect("it waits");
        now = now.max(timer);
        controller.on_timer(now);
        let before = controller.target();
        for _ in 0..100 {
            controller.on_sent(now, Bytes::new(1500));
            now = now.max(controller.next_timer().expect("it waits"));
            controller.on_timer(now);
            prop_assert!(controller.target() <= before);
        }
        prop_assert_eq!(controller.target(), MIN);
    }

    #[test]
    fn a_receiver_takes_any_packet(packets in proptest::collection::vec(
        (any_number(), any_number(), any_number(), proptest::option::of(any_number())), 1..100,
    )) {
        let mut receiver = Receiver::new(Bytes::new(1500));
        for (at, sequence, size, rtt) in packets {
            // Twice the times that a trial can have; beyond, sums of times overflow.
            let now = Time::from_nanos(at / 4);
            receiver.on_packet(now, sequence, Bytes::new(size), rtt.map(Duration::from_nanos));
            let report = receiver.current(now);
            prop_assert!((0.0..=1.0).contains(&report.loss_event_rate.get()));
        }
    }
}
