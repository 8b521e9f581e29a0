use proptest::prelude::*;
use suiro_units::{Duration, Time};

use super::*;

const M: f64 = 1e6;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6 * a.abs().max(b.abs()).max(1.0)
}

fn frame(bps: &[f64], throughput_bps: f64) -> Frame<'_> {
    let stall_weight = *bps.last().unwrap();
    Frame { bps, segment_s: 2.0, room_s: 28.0, throughput_bps, stall_weight }
}

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
    let ladder = [1.0 * M, 2.0 * M, 4.0 * M];
    let frame = frame(&ladder, 2.0 * M);
    let start = Start { first: 0, buffer_s: 3.0, sum: 0.0 };
    // 4 Mbit/s · 2 s ÷ 2 Mbit/s = 4 s, of which 1 s is a stall: 4 − |4 − 1| − 4·1 = −3.
    let next = frame.fetch(&start, Some(1.0 * M), 4.0 * M);
    assert!(close(next.sum, -3.0 * M) && close(next.buffer_s, 2.0), "{next:?}");
    // 2 Mbit/s · 2 s ÷ 2 Mbit/s = 2 s, 1 s is left: 2 − 1 = 1.
    let next = frame.fetch(&start, Some(1.0 * M), 2.0 * M);
    assert!(close(next.sum, 1.0 * M) && close(next.buffer_s, 3.0), "{next:?}");
    // A full buffer first waits for room: 28 − 2 + 2.
    let full = Start { first: 0, buffer_s: 30.0, sum: 0.0 };
    assert!(close(frame.fetch(&full, None, 2.0 * M).buffer_s, 28.0));
}

#[test]
fn plans_by_hand() {
    let ladder = [1.0 * M, 4.0 * M];
    let rungs = [0, 1];
    let plan = |last, buffer_s| frame(&ladder, 2.0 * M).plan(&rungs, Some(last), buffer_s);
    // At 2 Mbit/s a high segment takes 4 s and brings 2, a low one takes 1 and brings 2. With 12 s
    // the fifth high one finds the 4 s that it needs: 5·4 − 3 = 17.
    assert_eq!(plan(0, 12.0), (1, 17.0 * M));
    // With 10 s it finds 2: a stall of 2 s, −8. One low one first, and there is none: 1 + 4·4 − 3.
    assert_eq!(plan(0, 10.0), (0, 14.0 * M));
    // With 2 s, low to the end is worth 5; the 6 s after four low ones bear a high one, 4 + 4 − 3.
    assert_eq!(plan(0, 2.0), (0, 5.0 * M));
    // At the high rung with nothing buffered, even a low one stalls for 1 s: 1 − 3 − 4, and four
    // more. A high one would stall for 4 s.
    assert_eq!(plan(1, 0.0), (0, -2.0 * M));
}

fn look(buffer_ms: u64) -> Look {
    Look { now: Time::ZERO, buffer: Duration::from_millis(buffer_ms), estimate: None }
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
    // What was wrong by half once is trusted by half: 8 ÷ (1 + 1) … below 4 Mbit/s.
    let mut unsure = mpc([1000, 2000, 4000], &[8, 4]);
    assert_eq!(unsure.choose(&look(2000)), Choice::at_once(1));
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

/// The worth of the best plan, by trying them all.
fn try_all(frame: &Frame, start: &Start, last_bps: Option<f64>, left: usize) -> f64 {
    if left == 0 {
        return start.sum;
    }
    let next = |&bps: &f64| try_all(frame, &frame.fetch(start, last_bps, bps), Some(bps), left - 1);
    frame.bps.iter().map(next).fold(f64::NEG_INFINITY, f64::max)
}

/// A ladder of twelve, in steps of 100 kbit/s for the most part: no front is thinned.
#[test]
fn a_regular_ladder_of_twelve_is_planned_exactly() {
    let bps = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15].map(|n| f64::from(n) * 0.1 * M);
    let rungs: Vec<usize> = (0..bps.len()).collect();
    for (throughput, buffer_s, last) in
        [(0.3, 4.0, 8), (0.9, 1.0, 3), (0.9, 10.0, 3), (1.4, 1.0, 11), (2.0, 4.0, 0)]
    {
        let frame = frame(&bps, throughput * M);
        let (first, sum) = frame.plan(&rungs, Some(last), buffer_s);
        let best = try_all(&frame, &Start { first, buffer_s, sum: 0.0 }, Some(bps[last]), HORIZON);
        assert!(close(sum, best), "{throughput} {buffer_s} {last}: {sum} {best}");
    }
}

fn ladders(most: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(50_000u32..20_000_000, 1..=most).prop_map(|mut rungs| {
        rungs.sort_unstable();
        rungs.into_iter().map(f64::from).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Nothing is lost by leaving beginnings out, up to five rungs …
    #[test]
    fn the_plan_is_the_best_there_is(
        bps in ladders(5),
        throughput in 50_000f64..30e6,
        buffer_s in 0.0f64..28.0,
        last in prop::option::of(0usize..5),
    ) {
        let frame = frame(&bps, throughput);
        let last = last.map(|rung| rung.min(bps.len() - 1));
        let rungs: Vec<usize> = (0..bps.len()).collect();
        let (first, sum) = frame.plan(&rungs, last, buffer_s);
        let last_bps = last.map(|rung| bps[rung]);
        let nothing = Start { first, buffer_s, sum: 0.0 };
        let best = try_all(&frame, &nothing, last_bps, HORIZON);
        prop_assert!(close(sum, best), "{sum} {best}");
        // And the first rung that it names does begin such a plan.
        let begun = frame.fetch(&nothing, last_bps, bps[first]);
        prop_assert!(close(try_all(&frame, &begun, Some(bps[first]), HORIZON - 1), best));
    }

    /// … and with more hardly anything.
    #[test]
    fn a_plan_of_many_rungs_is_nearly_the_best(
        bps in ladders(7),
        throughput in 50_000f64..30e6,
        buffer_s in 0.0f64..28.0,
    ) {
        let frame = frame(&bps, throughput);
        let rungs: Vec<usize> = (0..bps.len()).collect();
        let (_, sum) = frame.plan(&rungs, Some(0), buffer_s);
        let nothing = Start { first: 0, buffer_s, sum: 0.0 };
        let best = try_all(&frame, &nothing, Some(bps[0]), HORIZON);
        // At most what a tenth of a second of stall costs.
        let little = 0.1 * frame.stall_weight;
        prop_assert!(sum <= best + 1.0 && best - sum <= little, "{sum} {best}");
    }
}
