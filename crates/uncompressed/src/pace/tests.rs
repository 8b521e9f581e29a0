use proptest::prelude::*;

use super::*;

const PERIOD: Duration = Duration::from_nanos(16_683_333);
const PACKETS: u32 = 709;
const START: Time = Time::from_secs(100);

fn pace(burst: u32) -> Pace {
    let mut pace = Pace::new(PACKETS, burst, PACKETS, PERIOD);
    pace.begin(START, START + PERIOD);
    pace
}

/// Sends a frame in virtual time, never before `from`; returns what left, and when.
fn send(pace: &mut Pace, from: Time) -> Vec<(Time, Burst)> {
    let mut now = from;
    let mut sent = Vec::new();
    while let Some(burst) = pace.next() {
        now = now.max(burst.at);
        pace.sent(now, &burst);
        sent.push((now, burst));
    }
    sent
}

fn fullest(sent: &[(Time, Burst)]) -> f64 {
    let mut bucket = Bucket::new(PACKETS, PERIOD);
    sent.iter().map(|(at, burst)| bucket.add(*at, burst.packets)).fold(0.0, f64::max)
}

#[test]
fn a_frame_leaves_evenly_from_its_start() {
    let sent = send(&mut pace(7), Time::ZERO);
    assert_eq!(sent.len(), 102);
    assert_eq!(sent[0].0, START);
    assert!(sent.iter().all(|(at, burst)| *at == burst.due));
    let gaps: Vec<_> = sent.windows(2).map(|two| two[1].0.saturating_since(two[0].0)).collect();
    assert!(gaps.iter().all(|gap| (gap.as_nanos().abs_diff(164_715)) <= 1), "{gaps:?}");
    assert_eq!(sent[101].1.packets, 2, "the remainder of 709 packets");
}

#[test]
fn a_delayed_sender_catches_up_below_the_wide_limit() {
    let late = START + Duration::from_millis(3);
    let mut pace = pace(7);
    let mut sent = send(&mut pace, late);
    let behind = |sent: &[(Time, Burst)]| {
        let (at, burst) = sent.last().unwrap();
        at.saturating_since(burst.due)
    };
    assert_eq!(sent[0].0, late);
    let after_one = behind(&sent);
    assert!(after_one < Duration::from_millis(2), "{after_one}");
    for frame in 1..4 {
        let start = START + PERIOD.mul_f64(f64::from(frame));
        pace.begin(start, start + PERIOD);
        sent.extend(send(&mut pace, Time::ZERO));
    }
    assert_eq!(behind(&sent), Duration::ZERO);
    assert!(fullest(&sent) <= CATCH_UP_BURST + 0.01, "{}", fullest(&sent));
}

#[test]
fn a_sender_half_a_frame_late_sends_as_fast_as_it_can() {
    let sent = send(&mut pace(7), START + Duration::from_millis(12));
    let latest = sent.iter().map(|(at, burst)| at.saturating_since(burst.due)).max().unwrap();
    assert_eq!(latest, Duration::from_millis(12));
    assert!(sent.last().unwrap().0 <= START + PERIOD + PERIOD / 2);
    assert!(fullest(&sent) > WIDE_BURST);
}

#[test]
fn bursts_larger_than_the_limit_are_sent_on_time() {
    let sent = send(&mut pace(32), Time::ZERO);
    let late = sent.iter().filter(|(at, burst)| at > &burst.due).count();
    assert_eq!(late, 0, "a burst size chosen by the user is not limited");
    assert!(fullest(&sent) >= 32.0);
}

#[test]
fn a_bucket_drains_at_eleven_tenths_of_the_mean_rate() {
    let mut bucket = Bucket::new(1000, Duration::from_millis(10));
    assert_eq!(bucket.add(Time::from_millis(1), 11), 11.0);
    assert!((bucket.level_at(Time::from_nanos(1_050_000)) - 5.5).abs() < 1e-9);
    assert_eq!(bucket.fits_at(16, 16.0), Time::from_nanos(1_100_000));
    assert_eq!(bucket.level_at(Time::from_millis(2)), 0.0);
    assert_eq!(bucket.level_at(Time::ZERO), 11.0, "time does not go back");
}

proptest! {
    #[test]
    fn every_packet_leaves_once_and_in_order(
        packets in 1u32..3000, burst in 1u32..64, run in 1u32..3000, late_us in 0u64..40_000,
    ) {
        let mut pace = Pace::new(packets, burst, run, PERIOD);
        pace.begin(START, START + PERIOD);
        let mut next = 0;
        for (at, sent) in send(&mut pace, START + Duration::from_micros(late_us)) {
            prop_assert_eq!(sent.first, next);
            prop_assert!(sent.packets >= 1 && sent.packets <= burst);
            prop_assert_eq!(sent.first / run, (sent.first + sent.packets - 1) / run);
            prop_assert!(at >= sent.due);
            next += sent.packets;
        }
        prop_assert_eq!(next, packets);
    }
}
