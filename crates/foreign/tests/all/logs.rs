//! Logs of QUIC connections and of ffmpeg.

use suiro_foreign::{Account, Effect, Source, explain};
use suiro_record::words::Cause;

/// A connection whose packets are lost for a second.
pub const QLOG: &str = r#"{"qlog_version":"0.3","qlog_format":"NDJSON","trace":{"vantage_point":{"type":"server"},"common_fields":{"time_format":"relative","reference_time":1795651200000}}}
{"time":0,"name":"recovery:metrics_updated","data":{"min_rtt":20,"smoothed_rtt":20,"congestion_window":12000,"bytes_in_flight":2400}}
{"time":1,"name":"transport:packet_sent","data":{"header":{"packet_number":1}}}
{"time":21,"name":"transport:packet_received","data":{"header":{"packet_number":1}}}
{"time":30,"name":"transport:packet_sent","data":{"header":{"packet_number":2}}}
{"time":60,"name":"transport:packet_sent","data":{"header":{"packet_number":3}}}
{"time":70,"name":"transport:packet_sent","data":{"header":{"packet_number":4}}}
{"time":80,"name":"transport:packet_sent","data":{"header":{"packet_number":5}}}
{"time":90,"name":"transport:packet_sent","data":{"header":{"packet_number":6}}}
{"time":200,"name":"transport:packet_sent","data":{"header":{"packet_number":7}}}
{"time":1100,"name":"transport:packet_received","data":{"header":{"packet_number":2}}}
{"time":1101,"name":"recovery:packet_lost","data":{"header":{"packet_number":2},"trigger":"time_threshold"}}
{"time":1101,"name":"recovery:packet_lost","data":{"header":{"packet_number":3},"trigger":"time_threshold"}}
{"time":1101,"name":"recovery:packet_lost","data":{"header":{"packet_number":4},"trigger":"time_threshold"}}
{"time":1101,"name":"recovery:packet_lost","data":{"header":{"packet_number":5},"trigger":"time_threshold"}}
{"time":1101,"name":"recovery:packet_lost","data":{"header":{"packet_number":6},"trigger":"time_threshold"}}
"#;

/// Times that fit into 64 bits, and whose differences do not.
pub const FAR_QLOG: &str = r#"{"qlog_version":"0.3","trace":{"common_fields":{"time_format":"delta"}}}
{"time":3.9e12,"name":"transport:packet_sent","data":{"header":{"packet_number":1}}}
{"time":-3.9e12,"name":"recovery:packet_lost","data":{"header":{"packet_number":2}}}
{"time":-3.9e12,"name":"recovery:packet_lost","data":{"header":{"packet_number":3}}}
{"time":-3.9e12,"name":"recovery:packet_lost","data":{"header":{"packet_number":4}}}
{"time":1,"name":"recovery:metrics_updated","data":{"congestion_window":12000,"bytes_in_flight":12000}}
{"time":3.9e12,"name":"recovery:metrics_updated","data":{"bytes_in_flight":12000}}
{"time":3.9e12,"name":"recovery:metrics_updated","data":{"bytes_in_flight":12000}}
{"time":-3.9e12,"name":"recovery:metrics_updated","data":{"bytes_in_flight":12000}}
{"time":-3.9e12,"name":"recovery:metrics_updated","data":{"bytes_in_flight":12000}}
{"time":3.9e12,"name":"recovery:metrics_updated","data":{"bytes_in_flight":12000}}
{"time":3.9e12,"name":"recovery:metrics_updated","data":{"bytes_in_flight":12000}}
"#;

pub const FFMPEG: &str = "ffmpeg version 7.1 Copyright (c) 2000-2024 the FFmpeg developers
[sdp @ 0x55] RTP: missed 12 packets
[sdp @ 0x55] RTP: missed 3 packets
frame=  100 fps= 25 q=28.0 size=     512kB time=00:00:04.00 bitrate=1048.6kbits/s speed=   1x
[tcp @ 0x55] Connection to tcp://10.0.0.9:80 failed: Connection refused
frame=  150 fps= 25 q=28.0 size=     768kB time=00:00:06.00 bitrate=1048.6kbits/s drop=4 speed=   1x
";

fn account(text: &str) -> Account {
    explain(&[Source { name: "x", content: text.as_bytes() }]).unwrap()
}

#[test]
fn packets_that_were_lost_while_nothing_came_are_an_outage() {
    let account = account(QLOG);
    assert_eq!(account.effects.len(), 1, "{account:#?}");
    let gap = &account.effects[0];
    assert_eq!((gap.effect, gap.cause), (Effect::Gap, Cause::Outage));
    assert_eq!((gap.from_ns, gap.to_ns), (21_000_000, 1_100_000_000));
    assert_eq!(
        gap.because,
        "of 6 packets sent in this time, 5 were lost: the path carried nothing"
    );
    let text = &account.streams[0].text;
    assert_eq!(text, "7 packets sent, 2 received, 5 lost, round trip from 20 ms to 20 ms");
}

#[test]
fn a_few_lost_packets_are_no_outage() {
    let numbers = ["4", "5", "6"].map(|number| format!("\"packet_number\":{number}}}"));
    let few = |line: &&str| !numbers.iter().any(|number| line.contains(number));
    let account = account(&QLOG.lines().filter(few).collect::<Vec<_>>().join("\n"));
    let gap = &account.effects[0];
    assert_eq!((gap.effect, gap.cause), (Effect::Gap, Cause::Unknown));
    assert!(gap.because.contains("3 packets sent, of which 2 lost"), "{}", gap.because);
}

/// A log with these events.
fn log(lines: impl Iterator<Item = String>) -> String {
    QLOG.lines().take(1).map(str::to_owned).chain(lines).map(|line| line + "\n").collect()
}

fn line(time: u32, name: &str, number: u32) -> String {
    format!(
        "{{\"time\":{time},\"name\":\"{name}\",\"data\":{{\"header\":{{\"packet_number\":{number}}}}}}}"
    )
}

#[test]
fn times_since_1970_count_from_the_first() {
    let absolute = QLOG.replace("\"relative\",\"reference_time\":1795651200000", "\"absolute\"");
    // The default of the newer format.
    let default = absolute.replace("\"time_format\":\"absolute\"", "");
    for log in [absolute, default] {
        let since_1970 = |line: &str| match line.strip_prefix("{\"time\":") {
            Some(rest) => {
                let (ms, rest) = rest.split_once(',').unwrap();
                let ms = 1_795_651_200_000 + ms.parse::<u64>().unwrap();
                format!("{{\"time\":{ms},{rest}\n")
            }
            None => line.to_owned() + "\n",
        };
        let account = account(&log.lines().map(since_1970).collect::<String>());
        assert_eq!(account.began_s, Some(1_795_651_200.0));
        let gap = &account.effects[0];
        // Numbers of this size have steps of 256 ns.
        assert!((gap.from_ns - 21_000_000).abs() < 1000, "{gap:?}");
        assert!((gap.to_ns - 1_100_000_000).abs() < 1000, "{gap:?}");
    }
}

#[test]
fn a_client_that_asks_for_nothing_is_idle() {
    let frames = |time: u32, number: u32, kind: &str| {
        let frames = format!("\"data\":{{\"frames\":[{{\"frame_type\":\"{kind}\"}}],");
        line(time, "transport:packet_sent", number).replace("\"data\":{", &frames)
    };
    let received = |time, number| line(time, "transport:packet_received", number);
    // It acknowledges, thinks for 3 s, and asks; the answer takes one round trip, or a second.
    let asks = |answer| {
        log([
            frames(0, 1, "stream"),
            received(21, 1),
            frames(31, 2, "ack"),
            frames(3031, 3, "stream"),
            received(answer, 2),
        ]
        .into_iter())
    };
    assert_eq!(account(&asks(3051)).effects.len(), 0);
    let account = account(&asks(4031));
    let gap = &account.effects[0];
    assert_eq!((gap.from_ns, gap.to_ns), (3_031_000_000, 4_031_000_000));
}

#[test]
fn the_share_that_was_lost_is_of_what_was_sent() {
    // 3 of 149 are more than 2 %, 3 of 152 are less.
    let sent = (0..149).map(|n| line(n * 6, "transport:packet_sent", n));
    let lost = (1..4).map(|n| line(700, "recovery:packet_lost", n * 10));
    let account = account(&log(sent.chain(lost)));
    assert_eq!(account.effects[0].what, "3 of 149 packets lost in 1.0 s");
}

#[test]
fn packets_of_which_none_came_are_lost() {
    let sent = (0..10).map(|n| line(n * 6, "transport:packet_sent", n));
    let lost = (0..10).map(|n| line(700, "recovery:packet_lost", n));
    let account = account(&log(sent.chain(lost)));
    assert_eq!(account.effects[0].what, "10 of 10 packets lost in 1.0 s");
}

#[test]
fn losses_without_round_trips_have_no_cause() {
    let sent = (0..100).map(|n| line(n * 10, "transport:packet_sent", n));
    let lost = (0..10).map(|n| line(n * 100 + 50, "recovery:packet_lost", n * 10));
    let came = (0..10).map(|n| line(n * 100, "transport:packet_received", n));
    let account = account(&log(sent.chain(lost).chain(came)));
    let loss = account.effects.iter().find(|it| it.effect == Effect::Loss).unwrap();
    assert_eq!(loss.cause, Cause::Unknown, "{loss:?}");
}

#[test]
fn packets_that_were_not_lost_leave_it_open() {
    let kept: String = QLOG
        .lines()
        .filter(|it| !it.contains("packet_lost"))
        .map(|it| format!("\u{1e}{it}\n"))
        .collect();
    let account = account(&kept);
    assert_eq!(
        (account.effects[0].effect, account.effects[0].cause),
        (Effect::Gap, Cause::Unknown)
    );
}

#[test]
fn messages_of_ffmpeg_are_told_with_their_lines() {
    let account = account(FFMPEG);
    let told: Vec<_> = account
        .effects
        .iter()
        .map(|it| (it.effect, it.cause, it.from_ns / 1_000_000_000))
        .collect();
    assert_eq!(
        told,
        [(Effect::Loss, Cause::Loss, 0), (Effect::NoConnection, Cause::Application, 4)]
    );
    assert_eq!(account.effects[0].evidence[0].place, "line 2");
    assert_eq!(account.streams[0].text, "6.0 s of media, 1.00 × real time, 4 frames dropped");
}

#[test]
fn dates_of_ffmpeg_count_from_the_first() {
    let log = "2026-11-26 09:02:03.456 ffmpeg version 7.1 Copyright (c) 2000-2024 the FFmpeg developers
2026-11-26 09:02:05.956 [tcp @ 0x55d0c8a3f2c0] Connection to tcp://10.0.0.9:80 failed: Connection refused
";
    let of_log = account(log);
    assert_eq!((of_log.began_s, of_log.effects[0].from_ns), (None, 2_500_000_000));
    // They have no zone: another clock does not move them.
    let sources = [
        Source { name: "qlog", content: QLOG.as_bytes() },
        Source { name: "log", content: log.as_bytes() },
    ];
    let both = explain(&sources).unwrap();
    let refused = both.effects.iter().find(|it| it.effect == Effect::NoConnection).unwrap();
    assert_eq!((both.began_s, refused.from_ns), (Some(1_795_651_200.0), 2_500_000_000));
}

#[test]
fn ffmpeg_below_real_time_is_slow() {
    let lines: String = (1..10)
        .map(|n| {
            format!("frame={n} fps=25 size=1kB time=00:00:0{n}.00 bitrate=1kbits/s speed=0.7x\r")
        })
        .collect();
    let account = account(&lines);
    assert_eq!(
        (account.effects[0].effect, account.effects[0].cause),
        (Effect::Slow, Cause::Unknown)
    );
}
