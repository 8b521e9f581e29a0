//! Traces: what is read, and what is refused, with its line.

use proptest::prelude::*;
use suiro_link::{MAX_TRACE_LINES, parse_csv, parse_mahimahi};
use suiro_units::{BitRate, Duration, Time};

#[test]
fn mahimahi() {
    let trace = parse_mahimahi("# a comment\n0\n1\r\n\n1\n12\n").unwrap();
    assert_eq!(trace.times_ms, [0, 1, 1, 12]);
    assert_eq!(trace.period(), Duration::from_millis(12));
    // 4 × 12000 bits in 12 ms.
    assert_eq!(trace.mean(), BitRate::from_mbps(4));
}

#[test]
fn csv() {
    let expected = parse_csv("time,rate\n0 s,8 Mbit/s\n1500 ms,250 kbit/s\n", false).unwrap();
    for text in [
        "time_s,rate_mbps\n0,8\n1.5,0.25\n",
        "time_ms , rate_kbps\n0, 8000\n1500, 250\n",
        "\u{feff}# from somewhere\n\ntime_s,rate_bps\r\n0,8000000\r\n1.5,250000",
    ] {
        assert_eq!(parse_csv(text, false).as_ref(), Ok(&expected), "{text}");
    }
    assert_eq!(expected.at(Time::from_millis(1499)), BitRate::from_mbps(8));
    assert_eq!(expected.at(Time::from_secs(99)), BitRate::from_kbps(250));

    let repeats = parse_csv("time_s,rate_mbps\n0,8\n1,2\n4,0\n", true).unwrap();
    assert_eq!(repeats.period, Some(Duration::from_secs(4)));
    assert_eq!(repeats.at(Time::from_millis(8_500)), BitRate::from_mbps(8));
    assert_eq!(repeats.mean(), BitRate::from_kbps(3_500));
}

#[test]
fn refusals_name_the_line() {
    let mahimahi = |text: &str| parse_mahimahi(text).unwrap_err().to_string();
    let csv = |text: &str| parse_csv(text, false).unwrap_err().to_string();
    let again = |text: &str| parse_csv(text, true).unwrap_err().to_string();
    let long = "1\n".repeat(MAX_TRACE_LINES + 1);
    let all = [
        mahimahi(""),
        mahimahi("0\n0\n"),
        mahimahi("1\n\n5\n4\n"),
        mahimahi("1\n-2\n"),
        mahimahi("1\n+2\n"),
        mahimahi("1\n2.5\n"),
        mahimahi("1\n99999999999999999999\n"),
        mahimahi("1\n86400001\n"),
        mahimahi("time,rate\n0 s,8 Mbit/s"),
        mahimahi(&long),
        csv(""),
        csv("time,rate"),
        csv("0,8"),
        csv("time,bandwidth\n0 s,8 Mbit/s"),
        csv("time,rate\n0 s\n"),
        csv("time,rate\n0,8\n"),
        csv("time_s,rate_mbps\n0 s,8\n"),
        csv("time_s,rate_mbps\n0,8 kbit/s\n"),
        csv("time_s,rate_mbps\n0,-8\n"),
        csv("time_s,rate_mbps\n1,8\n"),
        csv("time_s,rate_mbps\n0,8\n2,8\n1,8\n"),
        csv("time_s,rate_mbps\n0,8\n2,8\n2,9\n"),
        csv("time_s,rate_mbps\n0,8\n2,9,10\n"),
        csv("time_s,rate_mbps\n0,8\n200000,9\n"),
        csv("time_s,rate_mbps\n0,8000000\n"),
        csv("time_s,rate_mbps\n0,0\n1,0\n"),
        csv(&format!("time_s,rate_mbps\n0,{}\n", "8".repeat(1000))),
        again("time_s,rate_mbps\n0,8\n"),
        again("time_s,rate_mbps\n0,8\n0.0001,8\n"),
        again("time_s,rate_mbps\n0,0\n1,8\n"),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

proptest! {
    #[test]
    fn no_text_breaks_a_parser(text in "(time(_s|_ms)?,rate(_bps|_mbps)?\n)?[0-9a-z.,# \n+-]{0,200}") {
        let _ = parse_mahimahi(&text);
        let _ = parse_csv(&text, false);
        let _ = parse_csv(&text, true);
    }

    #[test]
    fn what_is_read_is_what_was_written(
        mut times in proptest::collection::vec(0u32..86_400_000, 1..100),
    ) {
        times.sort_unstable();
        prop_assume!(times.last() != Some(&0));
        let text: String = times.iter().map(|time| format!("{time}\n")).collect();
        prop_assert_eq!(parse_mahimahi(&text).unwrap().times_ms, times);
    }
}
