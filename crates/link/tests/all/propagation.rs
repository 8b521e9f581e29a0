//! Jitter, reordering, duplicates, corruption.

use crate::common::{delivered, evenly, link, mean_ms, run};
use suiro_link::{Corruption, Direction, Event, Verdict};
use suiro_units::Duration;

const COUNT: u64 = 100_000;

/// Delays of packets sent a millisecond apart.
fn delays(toml: &str) -> Vec<Duration> {
    let events = run(&mut link(toml, 21), &evenly(COUNT, 200, Duration::from_millis(1)));
    events.iter().map(|event| event.at - event.arrived).collect()
}

fn moments(delays: &[Duration]) -> (f64, f64) {
    let mean = mean_ms(delays.iter().copied());
    let variance = delays.iter().map(|d| (d.as_millis_f64() - mean).powi(2)).sum::<f64>();
    (mean, (variance / delays.len() as f64).sqrt())
}

#[test]
fn every_distribution_has_its_mean_and_its_deviation() {
    // Tolerances: the pareto's fourth moment is infinite, its sample deviation converges slowly.
    for (name, mean, tolerance) in [
        ("uniform", 50.0, 0.02),
        ("normal", 50.0, 0.02),
        ("exponential", 54.0, 0.02),
        ("pareto", 50.0 + 4.0 / 3.0_f64.sqrt(), 0.15),
    ] {
        let toml = format!(
            "delay = '50 ms'\njitter = {{ distribution = '{name}', sd = '4 ms', order = 'free' }}"
        );
        let delays = delays(&toml);
        let (measured, sd) = moments(&delays);
        assert!((measured - mean).abs() < 0.1, "{name}: mean {measured} ms, of {mean} ms");
        assert!((sd / 4.0 - 1.0).abs() < tolerance, "{name}: deviation {sd} ms, of 4 ms");
        let one_sided = matches!(name, "exponential" | "pareto");
        let shortest = delays.iter().min().copied().unwrap_or_default();
        assert_eq!(shortest >= Duration::from_millis(50), one_sided, "{name}: {shortest}");
    }
}

/// Where order is kept, too, and at every packet rate: mean and deviation in shares of the deviation
/// asked for. Delays of neighbours resemble one another, so that a run is worth few of them.
#[test]
fn kept_order_keeps_the_distribution_at_every_packet_rate() {
    for (name, mean_ms, of_deviation) in [
        ("uniform", 40.0, 0.1),
        ("normal", 40.0, 0.1),
        ("exponential", 45.0, 0.2),
        ("pareto", 40.0 + 5.0 / 3.0_f64.sqrt(), 0.35),
    ] {
        let toml = format!("delay = '40 ms'\njitter = {{ distribution = '{name}', sd = '5 ms' }}");
        for (per_second, count) in [
            (10, 20_000),
            (30, 20_000),
            (100, 20_000),
            (500, 60_000),
            (2000, 240_000),
            (10_000, 500_000),
        ] {
            let every = Duration::from_secs(1) / per_second;
            let events = run(&mut link(&toml, 5), &evenly(count, 200, every));
            let in_order = events.windows(2).all(|pair| pair[0].number < pair[1].number);
            assert!(in_order, "{name}, {per_second}/s: a packet overtook");
            let delays: Vec<Duration> = events.iter().map(|e| e.at - e.arrived).collect();
            let (mean, sd) = moments(&delays);
            let told = format!("{name}, {per_second}/s: {mean:.2} ± {sd:.2} ms");
            assert!((mean - mean_ms).abs() < 0.1 * 5.0, "{told}");
            assert!((sd / 5.0 - 1.0).abs() < of_deviation, "{told}");
        }
    }
}

#[test]
fn a_uniform_is_bounded_and_a_pareto_is_not() {
    let most = |name: &str| {
        let toml = format!(
            "delay = '9 ms'\njitter = {{ distribution = '{name}', sd = '2 ms', order = 'free' }}"
        );
        let delays = delays(&toml);
        delays.iter().max().copied().unwrap_or_default().as_millis_f64() - 9.0
    };
    assert!(most("uniform") <= 2.0 * 3.0_f64.sqrt() + 1e-6);
    assert!(most("pareto") > 10.0 * 2.0 && most("pareto") <= 20.0 * 2.0);
}

#[test]
fn free_order_overtakes_and_kept_order_does_not() {
    for name in ["normal", "truncated-gaussian"] {
        let swaps = |order: &str| {
            let toml = format!(
                "delay = '20 ms'\n\
                 jitter = {{ distribution = '{name}', sd = '3 ms', order = '{order}' }}"
            );
            let events = run(&mut link(&toml, 4), &evenly(10_000, 200, Duration::from_millis(1)));
            assert_eq!(events.len(), 10_000);
            events.windows(2).filter(|pair| pair[0].number > pair[1].number).count()
        };
        assert!(swaps("free") > 1_000, "{name}");
        assert_eq!(swaps("kept"), 0, "{name}");
    }
}

/// The jitter of RFC 8868 §4.5.3, |N(0, σ²)| and at most 3 σ. With φ and Q, the density and the tail of N(0, 1), the mean is
/// (2 φ(0) − 2 φ(3) + 6 Q(3)) σ = 0.79712 σ. That of the square is (1 − 2 Q(3) − 6 φ(3) + 18 Q(3)) σ² = 0.99501 σ².
///
/// Where packets at intervals τ keep their order (§4.5.2), a delay is the largest of x(n − k) − kτ over k ≥ 0. So it is at
/// most x with the probability Π F(x + kτ), whose moments were integrated numerically.
#[test]
fn a_truncated_gaussian_has_its_mean_and_its_deviation() {
    for (order, every_ms, mean, deviation) in [
        ("free", 1, 3.986, 2.998),
        ("kept", 20, 3.986, 2.998),
        ("kept", 5, 4.264, 2.947),
        ("kept", 1, 6.407, 2.664),
    ] {
        let toml = format!(
            "delay = '20 ms'\n\
             jitter = {{ distribution = 'truncated-gaussian', sd = '5 ms', order = '{order}' }}"
        );
        let every = Duration::from_millis(every_ms);
        let events = run(&mut link(&toml, 21), &evenly(COUNT, 200, every));
        let delays: Vec<Duration> = events.iter().map(|e| e.at - e.arrived).collect();
        let (found, sd) = moments(&delays);
        let told = format!("{order}, every {every_ms} ms: {found:.3} ± {sd:.3} ms");
        assert!((found - 20.0 - mean).abs() < 0.1, "{told}, of {mean}");
        assert!((sd - deviation).abs() < 0.06, "{told}, of {deviation}");
        // Both bounds are reached: 1 draw in 370 is cut off.
        let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
        assert!(*least >= Duration::from_millis(20), "{told}: {least}");
        assert_eq!(*most, Duration::from_millis(35), "{told}");
    }
}

/// RFC 8868 §4.5.2: a packet that waits comes a serialisation time after the one before it. So the delay of a link that is
/// always busy never falls, and is the largest possible from the first packet on that was delayed most.
#[test]
fn packets_that_wait_for_others_keep_to_the_rate() {
    // 1500 bytes take 1 ms, and come as fast.
    let toml = "rate = '12 Mbit/s'\ndelay = '20 ms'\n\
                jitter = { distribution = 'truncated-gaussian', sd = '5 ms' }";
    let every = Duration::from_millis(1);
    let events = run(&mut link(toml, 3), &evenly(10_000, 1500, every));
    assert!(events.windows(2).all(|pair| pair[1].at - pair[0].at >= every));
    let last = events.last().unwrap();
    assert_eq!(last.at - last.arrived, Duration::from_millis(1 + 20 + 15));
}

#[test]
fn packets_held_back_are_overtaken() {
    let toml = "delay = '10 ms'\nreorder = { chance = '5 %', by = '2500 us' }";
    let mut link = link(toml, 8);
    let events = run(&mut link, &evenly(COUNT, 200, Duration::from_millis(1)));
    let late: Vec<&Event> =
        events.iter().filter(|e| e.at - e.arrived == Duration::from_micros(12_500)).collect();
    let others = events.iter().filter(|e| e.at - e.arrived == Duration::from_millis(10)).count();
    assert_eq!(late.len() + others, COUNT as usize);
    assert_eq!(link.counts(Direction::Down).held_back, late.len() as u64);
    assert!((late.len() as f64 / COUNT as f64 - 0.05).abs() < 0.003, "{}", late.len());
}

#[test]
fn duplicates_are_copies_with_their_originals_number() {
    let mut link = link("duplicate = '3 %'\ndelay = '1 ms'", 8);
    let events = run(&mut link, &evenly(COUNT, 200, Duration::from_millis(1)));
    let is_copy =
        |event: &&Event| matches!(event.verdict, Verdict::Delivered { duplicate: true, .. });
    let copies: Vec<&Event> = events.iter().filter(is_copy).collect();
    assert!((copies.len() as f64 / COUNT as f64 - 0.03).abs() < 0.003, "{}", copies.len());
    assert_eq!(link.counts(Direction::Down).duplicated, copies.len() as u64);
    for pair in events.windows(2).filter(|pair| is_copy(&&pair[1])) {
        assert_eq!((pair[0].number, pair[0].packet), (pair[1].number, pair[1].packet));
        assert_eq!((pair[0].last, pair[1].last), (false, true));
    }
}

#[test]
fn corruption_hits_every_bit_alike() {
    let events = run(&mut link("corrupt = '50 %'", 8), &evenly(COUNT, 4, Duration::from_millis(1)));
    let mut hits = [0u32; 32];
    for event in events.iter().filter(|event| delivered(event)) {
        if let Verdict::Delivered { corruption: Some(Corruption { byte, bit }), .. } = event.verdict
        {
            hits[byte as usize * 8 + bit as usize] += 1;
        }
    }
    let total: u32 = hits.iter().sum();
    assert!((f64::from(total) / COUNT as f64 - 0.5).abs() < 0.01);
    let even = f64::from(total) / 32.0;
    assert!(hits.iter().all(|&hits| (f64::from(hits) / even - 1.0).abs() < 0.12), "{hits:?}");
}
