use suiro_units::BitRate;

use super::*;

/// Rungs 1, 2, 4 and 8 Mbit/s; segments of 2 s; a buffer of 30 s.
/// High is 28 s; large is 10 + 2·4 = 18 s, 28·10÷18 = 15.6, so low is 10 s.
/// Top utility is ln 8 = 2.0794; V = 18 ÷ 2.0794 = 8.6562 s; γ = 1 + 10 ÷ 8.6562 = 2.1552.
fn ladder() -> Ladder {
    Ladder::new([1, 2, 4, 8].map(BitRate::from_mbps).to_vec()).unwrap()
}

fn limits(buffer_s: u64) -> Limits {
    Limits { segment: Duration::from_secs(2), buffer: Duration::from_secs(buffer_s) }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.001
}

fn look(now_s: u64, buffer_ms: u64, estimate_mbps: u64) -> Look {
    Look {
        now: Time::from_secs(now_s),
        buffer: Duration::from_millis(buffer_ms),
        estimate: Some(BitRate::from_mbps(estimate_mbps)),
        in_chunks: false,
    }
}

#[test]
fn parameters_by_hand() {
    let scores = Scores::new(&ladder(), limits(30)).unwrap();
    assert!(close(scores.v_s, 8.6562), "{}", scores.v_s);
    assert!(close(scores.gamma, 2.1552), "{}", scores.gamma);
}

#[test]
fn thresholds_by_hand() {
    let scores = Scores::new(&ladder(), limits(30)).unwrap();
    // Rung 1 equals rung 0 at V·(γ + (2·0 − 1·ln 2) ÷ 1) = 8.6562·(2.1552 − 0.6931) = 12.656 s.
    // Rung 2 equals rung 1 at V·(γ + (4·ln 2 − 2·ln 4) ÷ 2) = V·γ = 18.656 s.
    // Rung 3 equals rung 2 at V·(γ + (8·ln 4 − 4·ln 8) ÷ 4) = V·(γ + ln 2) = 24.656 s.
    let least: Vec<f64> = (0..4).map(|rung| scores.least_level_s(rung)).collect();
    for (found, want) in least.iter().zip([0.0, 12.656, 18.656, 24.656]) {
        assert!(close(*found, want), "{least:?}");
    }
    for (level_s, want) in [(12.6, 0), (12.7, 1), (18.6, 1), (18.7, 2), (24.6, 2), (24.7, 3)] {
        assert_eq!(scores.best(level_s), want, "at {level_s} s");
    }
    // The top rung is worth fetching up to high + V.
    assert!(close(scores.pause_level_s(3), 36.656));
}

#[test]
fn a_small_buffer_uses_the_whole_ladder() {
    // High is 4 s, low 4·10÷18 = 2.222 s: V = 1.7778 ÷ 2.0794 = 0.85494 s, γ = 3.5993.
    let scores = Scores::new(&ladder(), limits(6)).unwrap();
    assert!(close(scores.v_s, 0.85494) && close(scores.gamma, 3.5993), "{scores:?}");
    assert_eq!((scores.best(2.0), scores.best(4.0)), (0, 3));
}

#[test]
fn starts_by_throughput_and_keeps_to_it() {
    let ladder = ladder();
    let mut bola = Bola::new(&ladder, limits(30));
    // 5 Mbit/s · 0.9 = 4.5: rung 2, whose least level is 18.656 s: all of it placeholder.
    assert_eq!(bola.choose(&ladder, &look(0, 0, 5)), Choice::at_once(2));
    assert!(close(bola.placeholder_s, 18.656), "{}", bola.placeholder_s);
    assert!(bola.starting, "nothing is buffered yet");
    bola.on_segment(2, Duration::from_secs(1), Duration::from_secs(2));
    // With one segment the same decision ends the start-up: 18.656 − 2.
    assert_eq!(bola.choose(&ladder, &look(2, 2000, 5)), Choice::at_once(2));
    assert!(close(bola.placeholder_s, 16.656), "{}", bola.placeholder_s);
    assert!(!bola.starting);
    // Level 16.656 + 4 = 20.656 s: still rung 2. In time: 5·0.7·(4÷2) = 7: rung 2.
    assert_eq!(bola.choose(&ladder, &look(2, 4000, 5)), Choice::at_once(2));
}

/// A player whose playback has not begun has exactly one segment at its second decision.
#[test]
fn start_up_with_exactly_one_segment_buffered() {
    let ladder = ladder();
    let mut bola = Bola::new(&ladder, limits(30));
    let nothing_known = Look { estimate: None, ..look(0, 0, 0) };
    assert_eq!(bola.choose(&ladder, &nothing_known), Choice::at_once(0));
    bola.on_download(Time::from_millis(10));
    bola.on_segment(0, Duration::from_millis(10), Duration::from_secs(2));
    // Rung 3 is best from 24.656 s on, of which 2 s are there.
    assert_eq!(bola.choose(&ladder, &look(0, 2000, 50)), Choice::at_once(3));
    assert!(close(bola.placeholder_s, 22.656), "{}", bola.placeholder_s);
}

#[test]
fn start_up_goes_on_while_nothing_is_known() {
    let ladder = ladder();
    let mut bola = Bola::new(&ladder, limits(30));
    // Two segments that are too small to estimate the throughput.
    let nothing_known = Look { estimate: None, ..look(0, 4000, 0) };
    assert_eq!(bola.choose(&ladder, &nothing_known), Choice::at_once(0));
    assert_eq!(bola.choose(&ladder, &look(0, 4000, 50)), Choice::at_once(3));
}

#[test]
fn a_segment_clamps_the_placeholder() {
    let ladder = ladder();
    let (two, ten) = (Duration::from_secs(2), Duration::from_secs(10));
    let after = |placeholder_s, rung, took, buffer| {
        let mut bola = Bola { placeholder_s, ..Bola::new(&ladder, limits(30)) };
        bola.on_segment(rung, took, buffer);
        bola.placeholder_s
    };
    // Rung 0 pauses above 18.656 s: 10 s of buffer and 2 s of download leave 6.656 s.
    assert!(close(after(20.0, 0, two, ten), 6.656));
    // Rung 2, perhaps another rule's choice, is BOLA's from 18.656 s on: no less than 6.656 s.
    assert!(close(after(1.0, 2, two, ten), 6.656));
    // Rung 1 from 12.656 to 24.656 s: 3 s are within.
    assert!(close(after(3.0, 1, two, ten), 3.0));
}

#[test]
fn an_insufficient_buffer_lowers_the_placeholder() {
    let ladder = ladder();
    let mut bola = Bola::new(&ladder, limits(30));
    bola.choose(&ladder, &look(0, 2000, 50));
    assert!(close(bola.placeholder_s, 22.656), "{}", bola.placeholder_s);
    // 4 Mbit/s · 0.7 · (2 ÷ 2) = 2.8: rung 1, BOLA's from 12.656 s on, of which 2 s are there.
    assert_eq!(bola.choose(&ladder, &look(0, 2000, 4)), Choice::at_once(1));
    assert!(close(bola.placeholder_s, 10.656), "{}", bola.placeholder_s);
}

/// Decision for decision what the authors' simulator does (`sabre.csv` says how it was run).
#[test]
fn decides_as_sabre_does() {
    let ladder = Ladder::new([300, 700, 1500, 3000].map(BitRate::from_kbps).to_vec()).unwrap();
    let mut bola = Bola::new(&ladder, limits(30));
    let ms = |text: &str| Duration::from_secs_f64(text.parse::<f64>().unwrap() / 1000.0);
    let mut decisions = 0;
    for row in include_str!("sabre.csv").lines().filter(|row| !row.starts_with('#')).skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let [what, now, buffer, third, rung, wait, placeholder] = fields[..] else {
            panic!("{row}");
        };
        let (now, buffer) = (Time::ZERO + ms(now), ms(buffer));
        let rung: usize = rung.parse().unwrap();
        if what == "choose" {
            let estimate = third.parse::<f64>().unwrap() * 1000.0;
            let estimate = Some(BitRate::from_bps(estimate.round() as u64));
            let choice = bola.choose(&ladder, &Look { now, buffer, estimate, in_chunks: false });
            assert_eq!(choice.rung, rung, "{row}");
            assert!((choice.wait.as_millis_f64() - ms(wait).as_millis_f64()).abs() < 0.01, "{row}");
            decisions += 1;
        } else {
            bola.on_download(now);
            bola.on_segment(rung, ms(third), buffer);
        }
        let difference = bola.placeholder_s - ms(placeholder).as_secs_f64();
        assert!(difference.abs() < 1e-5, "{row}: a placeholder of {} s", bola.placeholder_s);
    }
    assert_eq!(decisions, 89);
}

#[test]
fn a_segment_given_up_lowers_the_placeholder() {
    let ladder = ladder();
    let mut bola = Bola::new(&ladder, limits(30));
    bola.choose(&ladder, &look(0, 0, 5));
    assert!(close(bola.placeholder_s, 18.656), "{}", bola.placeholder_s);
    // Rung 1 is due from 12.656 s on, of which 2 s are there.
    bola.on_abandon(1, Duration::from_secs(2));
    assert!(close(bola.placeholder_s, 10.656), "{}", bola.placeholder_s);
    // For the lowest rung the level is taken to be 10 s.
    bola.on_abandon(0, Duration::from_secs(2));
    assert!(close(bola.placeholder_s, 8.0) && bola.last == 0, "{bola:?}");
}

#[test]
fn a_thin_buffer_forbids_a_rung_that_would_come_late() {
    let ladder = ladder();
    let mut bola = Bola::new(&ladder, limits(30));
    bola.choose(&ladder, &look(0, 0, 5));
    bola.choose(&ladder, &look(0, 2000, 5));
    // 1 s of buffer is half a segment: 5·0.7·0.5 = 1.75 Mbit/s: rung 0.
    assert_eq!(bola.choose(&ladder, &look(0, 1000, 5)).rung, 0);
}

#[test]
fn rises_no_higher_than_throughput_but_does_not_fall_for_it() {
    let ladder = ladder();
    let mut bola = Bola::new(&ladder, limits(30));
    bola.starting = false;
    bola.last = 1;
    // Level 26 s says rung 3; 5 Mbit/s says rung 2.
    assert_eq!(bola.choose(&ladder, &look(0, 26_000, 5)).rung, 2);
    // Then 2.5 Mbit/s says rung 1, but the buffer may be spent on rung 2.
    let mut look = look(0, 26_000, 5);
    look.estimate = Some(BitRate::from_kbps(2500));
    assert_eq!(bola.choose(&ladder, &look).rung, 2);
}

#[test]
fn idle_time_counts_as_buffer() {
    let ladder = ladder();
    let mut bola = Bola::new(&ladder, limits(30));
    bola.starting = false;
    bola.on_download(Time::from_secs(10));
    // 11 s of buffer is rung 0; with 2 s without anything to fetch, 13 s, it is rung 1.
    assert_eq!(bola.choose(&ladder, &look(12, 11_000, 9)).rung, 1);
}

/// Its rung was chosen before the one before it had come.
#[test]
fn a_download_that_was_asked_for_ahead_is_no_idle_time() {
    let ladder = ladder();
    let mut bola = Bola::new(&ladder, limits(30));
    bola.starting = false;
    bola.on_download(Time::from_secs(10));
    bola.on_request();
    assert_eq!(bola.choose(&ladder, &look(12, 11_000, 9)).rung, 0);
}

#[test]
fn a_download_that_fails_is_no_idle_time() {
    let ladder = ladder();
    let mut bola = Bola::new(&ladder, limits(30));
    bola.starting = false;
    bola.on_download(Time::from_secs(10));
    assert_eq!(bola.choose(&ladder, &look(10, 11_000, 9)).rung, 0);
    // Its request took 4 s and brought nothing: 12 s of buffer is rung 0, 16 s were rung 1.
    assert_eq!(bola.choose(&ladder, &look(14, 12_000, 9)).rung, 0);
}

#[test]
fn pauses_rather_than_fill_the_buffer_with_a_low_rung() {
    let ladder = ladder();
    let mut bola = Bola::new(&ladder, limits(30));
    bola.starting = false;
    // Rung 0 pauses above V·γ = 18.656 s: 1.344 s at 20 s. (1.5 Mbit/s says rung 0.)
    let mut look = look(0, 20_000, 1);
    look.estimate = Some(BitRate::from_kbps(1500));
    let choice = bola.choose(&ladder, &look);
    assert_eq!(choice.rung, 0);
    assert!(close(choice.wait.as_secs_f64(), 1.344), "{choice:?}");
    // The pause itself is not idle time.
    look.now += choice.wait;
    look.buffer = Duration::from_millis(18_656);
    assert!(bola.choose(&ladder, &look).wait < Duration::from_millis(1));
    assert!(bola.placeholder_s < 1e-9);
}

/// A target of 0.8 s with segments of 1 s that come in chunks: 0.6 s of it are in the buffer.
#[test]
fn a_buffer_of_less_than_a_segment_uses_the_whole_ladder() {
    let ladder = Ladder::new([300, 700, 1500, 3000].map(BitRate::from_kbps).to_vec()).unwrap();
    let limits = Limits { segment: Duration::from_secs(1), buffer: Duration::from_millis(800) };
    // High is half of 0.8 s, low 0.4·10÷18 = 0.222 s.
    let scores = Scores::new(&ladder, limits).unwrap();
    assert_eq!([0.2, 0.4].map(|level_s| scores.best(level_s)), [0, 3]);
    let mut bola = Bola::new(&ladder, limits);
    let look = |buffer_ms, kbps| Look {
        estimate: Some(BitRate::from_kbps(kbps)),
        in_chunks: true,
        ..look(0, buffer_ms, 0)
    };
    assert_eq!(bola.choose(&ladder, &look(390, 2000)).rung, 2);
    assert!(bola.starting);
    let mut segment = |buffer_ms, kbps| {
        let choice = bola.choose(&ladder, &look(buffer_ms, kbps));
        assert_eq!(choice.wait, Duration::ZERO);
        bola.on_segment(choice.rung, Duration::from_secs(1), Duration::from_millis(buffer_ms));
        assert!(!bola.starting, "half of 0.8 s is enough");
        choice.rung
    };
    let rungs = [(400, 2000), (600, 2000), (600, 2000), (600, 6000), (300, 6000), (200, 6000)];
    // The throughput bears rung 2, then more; a thin buffer does not.
    assert_eq!(rungs.map(|(buffer_ms, kbps)| segment(buffer_ms, kbps)), [2, 2, 2, 3, 1, 0]);
    // 0.7 · 2 Mbit/s · 1.6 s: a segment of rung 3 would come 0.7 s too late.
    assert_eq!(bola.arrives_in_time(&ladder, &self::look(0, 600, 2)), 1);
    assert_eq!(bola.arrives_in_time(&ladder, &look(600, 2000)), 2);
}

#[test]
fn one_bit_rate_leaves_nothing_to_decide() {
    let ladder = Ladder::new(vec![BitRate::from_mbps(1); 3]).unwrap();
    let mut bola = Bola::new(&ladder, limits(30));
    assert_eq!(bola.choose(&ladder, &look(0, 20_000, 9)), Choice::at_once(0));
}
