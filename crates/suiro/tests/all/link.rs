//! `suiro link`: any command behind an emulated link.

use std::io::Write;
use std::process::Stdio;

use crate::common::{self, Done, Lines, Room, Trials};
use rustix::process::Signal;
use serde_json::Value;

/// The program's `link` with these options, on a link that is not checked first, which takes time.
fn link<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["link", "--no-check"], options].concat()
}

#[test]
fn the_commands_exit_code_is_passed_on() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    let sh = |script| room.run(&link(&["--delay", "1 ms", "--", "sh", "-c", script]));
    assert_eq!(
        sh("echo out; echo err >&2").exits(0).says(&["err", "suiro link down:"]).stdout,
        "out\n"
    );
    sh("exit 7").exits(7);
    sh("kill -9 $$").exits(128 + 9);
    room.run(&link(&["--", "no-such-tool", "x"])).exits(127).says(&["no-such-tool"]);
    room.write("plain.txt", "not a program");
    room.run(&link(&["--", "./plain.txt"])).exits(126).says(&["./plain.txt"]);
    assert!(room.strays().is_empty());
}

#[test]
fn standard_input_is_the_commands() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    let mut command = room.suiro(&link(&["--", "cat"]));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hi\nthere\n").unwrap();
    assert_eq!(Done::wait(child).exits(0).stdout, "hi\nthere\n");
}

#[test]
fn options_that_are_wrong_are_named() {
    let room = Room::new();
    room.write("trace", "1\n0\n");
    room.write("link.toml", "rate = '2 Mbit/s'\ndelya = '1 ms'\n");
    let wrong: &[(&[&str], &str)] = &[
        (&["--down", "fast"], "--down: "),
        (&["--up", "2 MB"], "--up: "),
        (&["--down", "1 Mbit/s", "--up", "1"], "--up: "),
        (&["--delay", "20"], "--delay: "),
        (&["--loss", "2"], "--loss: "),
        (&["--queue", "64q"], "--queue: "),
        (&["--aqm", "red"], "--aqm: unknown value `red` in the link\nexpected: `droptail`, "),
        (&["--aqm", "fq_codel"], "hint: did you mean `fq-codel`?"),
        (&["--preset", "moon"], "--preset: unknown value `moon` in the link\nexpected: `nepal`, "),
        (&["--mtu", "100"], "--mtu"),
        (&["--trace-down", "trace"], "trace"),
        (&["--trace-down", "nowhere"], "--trace-down: nowhere: No such file"),
        (&["--trace-down", "trace", "--down", "1 Mbit/s"], "--down"),
        (&["--scenario-link", "link.toml"], "did you mean `delay`?"),
        (&["--scenario-link", "nowhere.toml"], "nowhere.toml"),
        (&["--scenario-link", "link.toml", "--delay", "1 ms"], "--delay"),
    ];
    for (options, text) in wrong {
        let done = room.run(&[&["link"], *options, &["--", "true"]].concat()).exits(2);
        assert!(done.stdout.is_empty());
        done.says(&[text]);
    }
    room.run(&["link", "--delay", "1 ms"]).exits(2).says(&["COMMAND"]);
    room.run(&["link", "ping", "server"]).exits(2).says(&["ping"]);
}

/// Replies of ping in the order they came: their round trips in milliseconds.
fn round_trips(ping: &str) -> Vec<f64> {
    let times = ping.split("time=").skip(1);
    times.map(|text| text.split_whitespace().next().unwrap().parse().unwrap()).collect()
}

#[test]
fn ping_shows_the_delay() {
    let Some(trials) = Trials::find().filter(|_| common::has("ping")) else { return };
    let room = Room::new();
    let virtually: &[&str] = if trials.are_virtual() { &["--virtual"] } else { &[] };
    let ping = ["--delay", "25 ms", "--", "ping", "-c", "5", "-i", "0.05", "server"];
    let mut command = room.suiro(&link(&[virtually, &ping].concat()));
    trials.equip(&mut command);
    let done = Done::of(&mut command);
    let least = round_trips(&done.stdout).into_iter().fold(f64::MAX, f64::min);
    // Never early. Live, late by what a busy machine adds, even to the best of five.
    assert!((50.0..60.0).contains(&least), "{}", done.stdout);
}

#[test]
fn json_is_all_of_standard_output() {
    if !common::can_run() || !common::has("ping") {
        return;
    }
    let room = Room::new();
    let options =
        ["link", "--down", "3 Mbit/s", "--delay", "5 ms", "--json", "--record", "packets"];
    let ping = ["--", "ping", "-c", "2", "-i", "0.1", "server"];
    let done = room.run(&[&options[..], &ping].concat()).says(&["2 received"]);
    let summary: Value = done.json();
    assert_eq!(summary["exit_code"], 0);
    assert_eq!(summary["valid"], summary["invalid_because"].is_null());
    assert_eq!(done.code, Some(i32::from(summary["valid"] == false)), "{summary}");
    assert!(summary["duration_s"].as_f64().unwrap() > 0.1);
    for (number, direction) in ["down", "up"].into_iter().enumerate() {
        let (totals, check) = (&summary["links"][number], &summary["self_checks"][number]);
        assert_eq!(
            (&totals["direction"], &check["direction"]),
            (&direction.into(), &direction.into())
        );
        assert_eq!((&totals["delivered"], &totals["unaccounted"]), (&2.into(), &0.into()));
        // --down alone holds for both directions.
        let checks = check["checks"].as_array().unwrap();
        let rate = checks.iter().find(|part| part["what"] == "rate").unwrap();
        assert_eq!(rate["asked"], 3e6, "{direction}");
    }
    let record = room.path("work").join("packets/link.link.parquet");
    assert!(std::fs::metadata(record).unwrap().len() > 0);
}

#[test]
fn a_long_trace_is_carried() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    // Ten minutes of 12 Mbit/s, a packet each millisecond: megabytes as text.
    let trace: String = (1..=600_000).map(|ms| format!("{ms}\n")).collect();
    room.write("trace", &trace);
    room.run(&link(&["--trace-down", "trace", "--up", "1 Mbit/s", "--", "true"])).exits(0);
}

#[test]
fn the_server_is_waited_for_and_stopped() {
    if !common::can_run() || !common::has("iperf3") {
        return;
    }
    let room = Room::new();
    let options = ["--down", "4 Mbit/s", "--json", "--server", "iperf3 -s"];
    let iperf3 = ["--", "iperf3", "-c", "server", "-t", "1"];
    let done = room.run(&link(&[&options[..], &iperf3].concat()));
    let summary: Value = done.json();
    assert_eq!(summary["exit_code"], 0, "{}", done.stderr);
    let up = summary["links"][1]["delivered"].as_u64().unwrap();
    // 4 Mbit/s for a second are some 333 full packets; iperf3 sends towards the server.
    assert!(up > 100, "{summary}");
    let gone = room.run(&link(&["--server", "exit 5", "--", "true"])).exits(1);
    gone.says(&["server's command ended", "exit code 5"]);
}

#[test]
fn a_server_that_never_listens_is_reported_on_the_terminal() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    let options = ["--server", "echo mute >&2; exec sleep 100"];
    let mut command =
        room.suiro(&link(&[&options[..], &["--", "sh", "-c", "echo mine >&2"]].concat()));
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = Lines::of(child.stderr.take().unwrap());
    // Its own words come first, then ours, then those of the client, which starts all the same.
    lines.until("mute");
    lines.until("nothing listens on host server after 5 s");
    lines.until("hint: ");
    lines.until("mine");
    Done::wait(child).exits(0);
}

#[test]
fn an_interrupt_reaches_the_command_and_the_summary_is_told() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    let script = "trap 'echo told >&2; exit 0' INT; echo up >&2; while :; do sleep 0.1; done";
    let mut command = room.suiro(&link(&["--", "sh", "-c", script]));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = Lines::of(child.stderr.take().unwrap());
    lines.until("up");
    common::signal(&child, Signal::INT);
    lines.until("told");
    lines.until("suiro link down:");
    Done::wait(child).exits(1);
}
