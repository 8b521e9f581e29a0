use proptest::prelude::*;
use suiro_units::{Duration, Time};

use super::*;

const M: f64 = 1e6;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6 * a.abs().max(b.abs()).max(1.0)
}

/// Segments of 2 s, a buffer of 30 s.
const LIMITS: Limits = Limits { segment: Duration::from_secs(2), buffer: Duration::from_secs(30) };

fn frame(bps: &[u64], throughput_bps: f64) -> Frame {
    Frame::new(bps, LIMITS, throughput_bps)
}

/// So many Mbit/s, for a second.
fn worth(mbps: i128) -> i128 {
    mbps * 1_000_000 * PER_BPS
}

const S: i64 = 1_000_000_000;

fn rate(mbps: u64) -> BitRate {
    BitRate::from_mbps(mbps)
}

#[test]
fn predicts_by_hand() {
    let mut predictor = Predictor::default();
    assert_eq!(predictor.robust_bps(), None);
    predictor.add(rate(4));
    // One download, no prediction yet that could have been wrong.
    assert_eq!(predictor.robust_bps(), Some(4.0 * M));
    predictor.add(rate(2));
    // Predicted 4, came 2: error 1. Harmonic mean 2 ÷ (¼ + ½) = 2⅔; robust 1⅓.
    assert!(close(predictor.mean_bps().unwrap(), 8.0 / 3.0 * M));
    assert!(close(predictor.robust_bps().unwrap(), 4.0 / 3.0 * M));
    for _ in 0..5 {
        predictor.add(rate(2));
    }
    assert_eq!(predictor.rates_bps.len(), PAST);
    // The error of 1 is the sixth last and forgotten. The next, a third (predicted 2⅔, came 2), is
    // the largest now: 2 ÷ 1⅓.
    assert!(close(predictor.robust_bps().unwrap(), 1.5 * M), "{predictor:?}");
}

#[test]
fn a_step_by_hand() {
    let frame = frame(&[1_000_000, 2_000_000, 4_000_000], 2.0 * M);
    let start = Start { first: 0, buffer_ns: 3 * S, sum: 0 };
    // 4 Mbit/s · 2 s ÷ 2 Mbit/s = 4 s, of which 1 s is a stall: 4 − |4 − 1| − 4·1 = −3.
    let next = frame.fetch(&start, Some(0), 2);
    assert_eq!((next.sum, next.buffer_ns), (worth(-3), 2 * S));
    // 2 Mbit/s · 2 s ÷ 2 Mbit/s = 2 s, 1 s is left: 2 − 1 = 1.
    let next = frame.fetch(&start, Some(0), 1);
    assert_eq!((next.sum, next.buffer_ns), (worth(1), 3 * S));
    // A full buffer first waits for room: 28 − 2 + 2.
    let full = Start { first: 0, buffer_ns: 30 * S, sum: 0 };
    assert_eq!(frame.fetch(&full, None, 1).buffer_ns, 28 * S);
}

#[test]
fn plans_by_hand() {
    let frame = frame(&[1_000_000, 4_000_000], 2.0 * M);
    let plan = |last, buffer_s| frame.plan(&[0, 1], Some(last), Duration::from_secs(buffer_s));
    // At 2 Mbit/s a high segment takes 4 s and brings 2, a low one takes 1 and brings 2. With 12 s
    // the fifth high one finds the 4 s that it needs: 5·4 − 3 = 17.
    assert_eq!(plan(0, 12), (1, worth(17)));
    // With 10 s it finds 2: a stall of 2 s, −8. One low one first, and there is none: 1 + 4·4 − 3.
    assert_eq!(plan(0, 10), (0, worth(14)));
    // With 2 s, low to the end is worth 5; the 6 s after four low ones bear a high one, 4 + 4 − 3.
    assert_eq!(plan(0, 2), (0, worth(5)));
    // At the high rung with nothing buffered, even a low one stalls for 1 s: 1 − 3 − 4, and four
    // more. A high one would stall for 4 s.
    assert_eq!(plan(1, 0), (0, worth(-2)));
}

fn look(buffer_ms: u64) -> Look {
    let buffer = Duration::from_millis(buffer_ms);
    Look { now: Time::ZERO, buffer, estimate: None, in_chunks: false }
}

fn mpc(rungs: impl IntoIterator<Item = u64>, downloads_mbps: &[u64]) -> Mpc {
    let ladder = Ladder::new(rungs.into_iter().map(BitRate::from_kbps).collect()).unwrap();
    let limits = Limits { segment: Duration::from_secs(2), buffer: Duration::from_secs(30) };
    let mut mpc = Mpc::new(&ladder, limits);
    downloads_mbps.iter().for_each(|mbps| mpc.on_rate(rate(*mbps)));
    mpc
}

#[test]
fn starts_at_the_lowest_and_rises_to_what_the_network_carries() {
    assert_eq!(mpc([1000, 2000, 4000], &[]).choose(&look(0)), Choice::at_once(0));
    assert_eq!(mpc([1000, 2000, 4000], &[9]).choose(&look(2000)), Choice::at_once(2));
    // What was wrong by half once is trusted by half: 5⅓ ÷ (1 + 1) Mbit/s. A segment of rung 1
    // arrives in 1.5 s, before the 2 s of buffer are gone, and one of rung 2 a second after.
    let unsure = mpc([1000, 2000, 4000], &[8, 4]);
    assert_eq!(unsure.clone().choose(&look(3000)), Choice::at_once(1));
    // With 2 s rung 0 first, and rung 2 later, is worth as much: the lower of equals.
    assert_eq!(unsure.clone().choose(&look(2000)), Choice::at_once(0));
}

#[test]
fn a_step_in_chunks_by_hand() {
    let frame = frame(&[1_000_000, 2_000_000, 4_000_000], 2.0 * M).in_chunks();
    let start = Start { first: 0, buffer_ns: S / 2, sum: 0 };
    // As long as it lasts: nothing is drained, and nothing is added.
    let next = frame.fetch(&start, Some(0), 1);
    assert_eq!((next.sum, next.buffer_ns), (worth(1), S / 2));
    // 4 s for 2 s: 1.5 s of stall at 4 Mbit/s, twice, as 2 s are half of the paper's 4 s: 4 − 3 − 12.
    let next = frame.fetch(&start, Some(0), 2);
    assert_eq!((next.sum, next.buffer_ns), (worth(-11), 0));
}

/// A target of 0.8 s with segments of 1 s: there is never room for a whole one.
#[test]
fn a_buffer_of_less_than_a_segment_does_not_keep_to_the_lowest_rung() {
    let rungs = [300, 700, 1500, 3000].map(BitRate::from_kbps).to_vec();
    let limits = Limits { segment: Duration::from_secs(1), buffer: Duration::from_millis(800) };
    let chosen = |kbps: u64, buffer_ms: u64| {
        let mut mpc = Mpc::new(&Ladder::new(rungs.clone()).unwrap(), limits);
        mpc.on_rate(BitRate::from_kbps(kbps));
        let look = Look { in_chunks: true, ..look(buffer_ms) };
        [(); 8].map(|()| mpc.choose(&look).rung)
    };
    assert_eq!(chosen(2000, 600), [2; 8]);
    assert_eq!(chosen(2000, 0), [2; 8]);
    // 3 Mbit/s would stall for a sixth of the time.
    assert_eq!(chosen(2500, 600), [2; 8]);
    assert_eq!(chosen(3000, 600), [3; 8]);
    assert_eq!(chosen(800, 600), [1; 8]);
    assert_eq!(chosen(100, 600), [0; 8]);
}

#[test]
fn a_ladder_of_256_rungs_is_looked_at_in_17() {
    let mut mpc = mpc((1..=256).map(|n| n * 10), &[100]);
    mpc.chosen(100);
    let rungs = mpc.rungs();
    assert_eq!((rungs.len(), rungs[0], rungs[16]), (17, 0, 255));
    assert!(rungs.contains(&100) && rungs.is_sorted());
    assert_eq!(mpc.choose(&look(20_000)), Choice::at_once(255));
}

/// The first rung of the best plan, the lowest of equals, and its worth, by trying them all.
fn try_all(frame: &Frame, last: Option<usize>, buffer: Duration) -> (usize, i128) {
    fn best(frame: &Frame, start: &Start, last: usize, left: usize) -> i128 {
        if left == 0 {
            return start.sum;
        }
        let next = |rung| best(frame, &frame.fetch(start, Some(last), rung), rung, left - 1);
        (0..frame.bps.len()).map(next).max().expect("a ladder has rungs")
    }
    let begun = |first| {
        let nothing = Start { first, buffer_ns: ns(buffer), sum: 0 };
        let start = frame.fetch(&nothing, last, first);
        (first, best(frame, &start, first, HORIZON - 1))
    };
    let better = |a: (usize, i128), b: (usize, i128)| if b.1 > a.1 { b } else { a };
    (0..frame.bps.len()).map(begun).reduce(better).expect("a ladder has rungs")
}

/// Where the plan is not the best of all plans, among so many states: buffers and throughputs on a
/// grid on which ties are frequent.
fn differences(bps: &[u64], states: u64) -> Vec<String> {
    let rungs: Vec<usize> = (0..bps.len()).collect();
    let mut random = suiro_units::Seed(15).random();
    let mut different = Vec::new();
    for _ in 0..states {
        let throughput = 100_000.0 * (1 + random.below(40)) as f64;
        let buffer = Duration::from_millis(500 * random.below(57));
        let last = Some(random.below(bps.len() as u64 + 1) as usize).filter(|&r| r < bps.len());
        let frame = frame(bps, throughput);
        let (planned, tried) = (frame.plan(&rungs, last, buffer), try_all(&frame, last, buffer));
        if planned != tried {
            let state = format!("{throughput} bit/s, {buffer}, after {last:?}");
            different.push(format!("{state}: {planned:?}, not {tried:?}"));
        }
    }
    different
}

/// Both the worth and, among plans of equal worth, the lowest first rung.
#[test]
fn of_equal_plans_the_one_that_begins_lowest_is_taken() {
    const NONE: [String; 0] = [];
    assert_eq!(differences(&[300_000, 700_000, 1_500_000, 3_000_000], 4000), NONE);
    assert_eq!(differences(&[500_000, 1_000_000, 1_500_000, 2_000_000, 2_500_000], 500), NONE);
}

/// A ladder of twelve, in steps of 100 kbit/s for the most part: no front is thinned.
#[test]
fn a_regular_ladder_of_twelve_is_planned_exactly() {
    let bps = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15].map(|n| n * 100_000);
    let rungs: Vec<usize> = (0..bps.len()).collect();
    for (throughput, buffer_s, last) in
        [(0.3, 4, 8), (0.9, 1, 3), (0.9, 10, 3), (1.4, 1, 11), (2.0, 4, 0)]
    {
        let (frame, buffer) = (frame(&bps, throughput * M), Duration::from_secs(buffer_s));
        let planned = frame.plan(&rungs, Some(last), buffer);
        assert_eq!(planned, try_all(&frame, Some(last), buffer), "{throughput} {buffer_s} {last}");
    }
}

fn ladders(most: usize) -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(50_000u64..20_000_000, 1..=most).prop_map(|mut rungs| {
        rungs.sort_unstable();
        rungs
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Nothing is lost by leaving beginnings out, up to five rungs …
    #[test]
    fn the_plan_is_the_best_there_is(
        bps in ladders(5),
        throughput in 50_000f64..30e6,
        buffer_ms in 0u64..28_000,
        last in prop::option::of(0usize..5),
    ) {
        let (frame, buffer) = (frame(&bps, throughput), Duration::from_millis(buffer_ms));
        let last = last.map(|rung| rung.min(bps.len() - 1));
        let rungs: Vec<usize> = (0..bps.len()).collect();
        prop_assert_eq!(frame.plan(&rungs, last, buffer), try_all(&frame, last, buffer));
    }

    /// … and with more hardly anything.
    #[test]
    fn a_plan_of_many_rungs_is_nearly_the_best(
        bps in ladders(7),
        throughput in 50_000f64..30e6,
        buffer_ms in 0u64..28_000,
    ) {
        let (frame, buffer) = (frame(&bps, throughput), Duration::from_millis(buffer_ms));
        let rungs: Vec<usize> = (0..bps.len()).collect();
        let (_, sum) = frame.plan(&rungs, Some(0), buffer);
        let (_, best) = try_all(&frame, Some(0), buffer);
        // At most what a tenth of a second of stall costs.
        let little = frame.stall_weight * PER_BPS / 10;
        prop_assert!(sum <= best && best - sum <= little, "{} {}", sum, best);
    }
}
