//! Trials that the machine spoils: packets that leave an emulated link late, and records that cannot be written.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{self, Done, Room};
use rustix::process::{Pid, Signal, kill_process};

/// A hundred packets a second in each direction.
const LATE: &str = r#"
name = "late"
title = "the emulator stalls for a while"
duration = "3 s"
[topology]
shape = "dumbbell"
link = "access"
[links.access]
rate = "2 Mbit/s"
delay = "10 ms"
queue.limit = "30 kB"
[endpoints.ping]
kind = "command"
host = "client"
command = ["ping", "-q", "-i", "0.01", "server"]
"#;

/// The processes of the trial, without those of its endpoints.
fn processes(order: &Path) -> Vec<Pid> {
    let order = order.as_os_str().as_encoded_bytes();
    let is_it = |pid: &i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = command.split(|byte| *byte == 0).skip(1);
        words.next() == Some(b"trial") && words.next() == Some(order)
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(is_it).filter_map(Pid::from_raw).collect()
}

/// Stops the emulator for a third of a second; its packets wait, those who send them do not.
fn hold_up(order: &Path) {
    let found = processes(order);
    assert!(!found.is_empty(), "the trial's process was not found");
    for pid in &found {
        kill_process(*pid, Signal::STOP).unwrap();
    }
    let waited = Command::new("sleep").arg("0.3").status();
    for pid in &found {
        kill_process(*pid, Signal::CONT).unwrap();
    }
    assert!(waited.unwrap().success());
}

#[test]
fn a_trial_that_was_only_late_is_run_again_and_every_attempt_is_recorded() {
    if !common::can_run() || !common::has("ping") {
        return;
    }
    let room = Room::new();
    room.write("late.toml", LATE);
    let mut command = room.suiro(&["run", "late.toml", "--out", "out"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let order = room.path("work").canonicalize().unwrap().join("out/trials/all/1/order.json");
    let (mut told, mut attempts) = (String::new(), 0);
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok) {
        attempts += u32::from(line.contains("measuring for"));
        if line.contains("measuring for") && attempts <= 2 {
            hold_up(&order);
        }
        told += &(line + "\n");
    }
    let done = Done { stderr: told, ..Done::wait(child) };

    let trial = room.results("out").trial("all/1");
    assert_eq!(trial.attempts.len(), 2, "{}", done.stderr);
    for (n, attempt) in (2..).zip(&trial.attempts) {
        assert!(attempt.invalid_because.contains("one packet in a hundred left at least"));
        assert!(attempt.duration_s >= 3.0 && attempt.links.len() == 2);
        let worst_us = attempt.links.iter().filter_map(|link| link.lateness.max_us);
        assert!(worst_us.fold(0.0, f64::max) > 200_000.0, "{:?}", attempt.links);
        assert!(done.stderr.contains(&format!("runs again (attempt {n})")), "{}", done.stderr);
    }
    // Nobody stopped the third attempt. A busy machine may be late without help; then the trial
    // reports it.
    assert!(trial.valid || trial.only_late, "{:?}", trial.invalid_because);
    assert_eq!(done.code, Some(i32::from(!trial.valid)), "{}", done.stderr);
    let report = std::fs::read_to_string(room.results("out").root().join("report.html")).unwrap();
    assert!(report.contains("attempt 2 was not valid"));
}

#[test]
fn other_reasons_are_not_tried_again() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    let failing = LATE.replace(r#"["ping", "-q", "-i", "0.01", "server"]"#, r#"["false"]"#);
    room.write("late.toml", &failing.replace("3 s", "500 ms"));
    let done = room.run(&["run", "late.toml", "--out", "out"]).exits(1);
    assert!(!done.stderr.contains("runs again"), "{}", done.stderr);
    assert!(!room.results("out").trial("all/1").only_late);
}

/// The endpoint of one trial puts a folder where the record is to be.
#[test]
fn a_record_that_cannot_be_written_fails_its_trial_only() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    let text = r#"
name = "x"
title = "x"
duration = "300 ms"
matrix.kind = ["bad", "good"]
[topology]
shape = "explicit"
hosts = ["a", "b"]
cables = [{ from = "a", to = "b" }]
[links]
[endpoints.it]
kind = "command"
host = "a"
command = ["sh", "-c", '''
if [ ${kind} = bad ]; then mkdir -p "$0"; fi
exec sleep 100
''', "FOLDER"]
"#;
    let folder = room.path("work").join("out/trials/kind=bad/1/trial.json/in-the-way");
    room.write("x.toml", &text.replace("FOLDER", folder.to_str().unwrap()));
    let done = room.run(&["run", "x.toml", "--out", "out"]).exits(1);
    done.says(&["[1/2] kind=bad #1: INVALID", "trial.json", "[2/2] kind=good #1: done"]);
    let out = room.results("out");
    assert!(out.trial("kind=good/1").valid);
    let of = |kind: &str| {
        let summary = out.summary();
        summary.trials.into_iter().find(|trial| trial.cell["kind"] == kind).unwrap()
    };
    assert!(of("good").valid && !of("bad").valid);
    assert!(out.has("report.html"));
}
