//! One trial of a plan by its number, and folders of such trials merged into one.

use std::path::Path;

use crate::common::{self, Room};
use serde_json::Value;

/// Two cells, two repetitions, two hosts and a plain cable.
const SCENARIO: &str = r#"
name = 'tiny'
title = 'a test'
duration = '300 ms'
repetitions = 2
seed = 7
matrix.kind = ['good', 'bad']
[topology]
shape = "explicit"
hosts = ["server", "client"]
cables = [{ from = "server", to = "client" }]
[links]
[media]
[endpoints.it]
kind = 'command'
host = 'client'
command = ['sh', '-c', 'echo begins; [ ${kind} = good ] || { echo no luck >&2; exit 3; }; exec sleep 100']
"#;

/// The four trials, each alone; the folder `parts/N`.
fn parts(room: &Room) {
    room.write("tiny.toml", SCENARIO);
    for (number, code) in [("1", 0), ("2", 1), ("3", 0), ("4", 1)] {
        let out = format!("parts/{number}");
        room.run(&["run", "tiny.toml", "--trial", number, "--out", &out]).exits(code);
    }
}

/// What may differ between two runs of one plan is left out.
fn structure(value: &Value) -> Value {
    match value {
        Value::Object(entries) => entries
            .iter()
            .filter(|(key, _)| {
                !["started", "epoch_monotonic_ns", "started_ns"].contains(&key.as_str())
            })
            .map(|(key, value)| (key.clone(), structure(value)))
            .collect(),
        Value::Array(entries) => entries.iter().map(structure).collect(),
        Value::Number(number) if number.is_f64() => Value::String("a measurement".into()),
        other => other.clone(),
    }
}

fn document(room: &Room, path: &str) -> Value {
    serde_json::from_slice(&std::fs::read(room.path("work").join(path)).unwrap()).unwrap()
}

#[test]
fn trials_run_one_by_one_and_merged_are_a_run() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    parts(&room);
    room.run(&["run", "tiny.toml", "--out", "whole"]).exits(1);
    let merge = ["merge", "parts/3", "parts/1", "parts/4", "parts/2", "--out", "merged"];
    let done = room.run(&merge).exits(1).says(&["merged 4 trials; it holds 4 of 4"]);
    assert!(done.stdout.contains("kind=bad") || done.stdout.contains("bad"), "{}", done.stdout);

    for name in ["summary.json", "findings.json"] {
        let (whole, merged) = (format!("whole/{name}"), format!("merged/{name}"));
        assert_eq!(
            structure(&document(&room, &merged)),
            structure(&document(&room, &whole)),
            "{name}"
        );
    }
    let (whole, merged) = (room.results("whole").manifest(), room.results("merged").manifest());
    assert_eq!(merged.plan, whole.plan);
    assert_eq!(merged.plan.iter().map(|it| it.number.unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!((merged.text, merged.axes, merged.plan_trials), (whole.text, whole.axes, Some(4)));
    assert_eq!(
        merged.self_checks.keys().collect::<Vec<_>>(),
        whole.self_checks.keys().collect::<Vec<_>>()
    );
    assert_eq!(merged.command[1..], ["run", "tiny.toml", "--out", "merged"]);
    let trial = room.results("merged").trial("kind=bad/2");
    let (mut machine, mut common) = (trial.machine.unwrap(), merged.machine);
    // Programs on this machine load congestion controls, and unload them.
    for settings in [&mut machine.settings, &mut common.settings] {
        settings.remove("net.ipv4.tcp_available_congestion_control");
    }
    // Next to the machine's own settings it has the priority of the trial's processes.
    assert!(machine.settings.remove("nice").is_some(), "{machine:?}");
    assert!(!machine.kernel.is_empty() && machine == common, "each trial has its machine");
    assert_eq!(
        room.results("merged").bytes("kind=bad/2"),
        room.results("parts/4").bytes("kind=bad/2")
    );
    assert!(room.results("merged").has("trials/kind=bad/2/logs/it.log"));

    // The same again adds nothing; what is missing can be run into it, or be merged later.
    room.run(&merge).exits(1).says(&["merged 0 trials; it holds 4 of 4"]);
    room.run(&["merge", "parts/1", "--out", "some"])
        .exits(0)
        .says(&["1 of 4", "--trial N runs the others: 2,3,4"]);
    room.run(&["merge", "parts/2", "--out", "some"]).exits(1).says(&["holds 2 of 4"]);
    room.run(&["run", "tiny.toml", "--out", "some", "--resume", "--only", "kind=good"]).exits(1);
    assert_eq!(room.results("some").manifest().plan.len(), 3);
}

/// A trial that is valid by its `trial.json`, but of which a table cannot be read.
#[test]
fn a_damaged_trial_is_replaced_and_run_again() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    room.write("tiny.toml", SCENARIO);
    for out in ["first", "second"] {
        room.run(&["run", "tiny.toml", "--trial", "1", "--out", out]).exits(0);
    }
    room.run(&["merge", "first", "--out", "whole"]).exits(0);
    room.run(&["merge", "second", "--out", "whole"]).exits(2).says(&["from another measurement"]);
    let damage = || room.write("whole/trials/kind=good/1/link.parquet", "no table");
    damage();
    room.run(&["merge", "second", "--out", "whole"]).exits(0).says(&["trial 1: replaced"]);
    let whole = room.results("whole");
    assert_eq!(whole.bytes("kind=good/1"), room.results("second").bytes("kind=good/1"));
    // By the part that it is a copy of, too; a copy that is whole stays.
    damage();
    room.run(&["merge", "second", "--out", "whole"]).exits(0).says(&["as it was damaged"]);
    assert!(!whole.has("trials/kind=good/1/link.parquet"));
    room.run(&["merge", "second", "--out", "whole"]).exits(0).says(&["merged 0 trials"]);
    damage();
    room.run(&["report", "whole"]).exits(1);
    let resume = ["run", "tiny.toml", "--out", "whole", "--resume", "--trial", "1"];
    room.run(&resume).exits(0).says(&["running 1 trial"]);
    assert!(!whole.has("trials/kind=good/1/link.parquet"));
    assert!(whole.summary().trials[0].valid);
}

#[test]
fn numbers_name_trials_whatever_else_is_left_out() {
    let room = Room::new();
    room.write("tiny.toml", SCENARIO);
    let check = |more: &[&str]| {
        let plan: Value =
            room.run(&[&["check", "tiny.toml", "--json"], more].concat()).exits(0).json();
        let trials = plan["trials"].as_array().unwrap();
        let one = |it: &Value| {
            (it["number"].as_u64().unwrap(), it["folder"].as_str().unwrap().to_owned())
        };
        (plan["plan_trials"].as_u64().unwrap(), trials.iter().map(one).collect::<Vec<_>>())
    };
    let (total, all) = check(&[]);
    assert_eq!((total, all[3].clone()), (4, (4, "trials/kind=bad/2".into())));
    let (total, bad) = check(&["--only", "kind=bad"]);
    assert_eq!((total, bad), (4, vec![all[1].clone(), all[3].clone()]));
    room.run(&["run", "tiny.toml", "--trial", "5"])
        .exits(2)
        .says(&["--trial 5: expected a number from 1 to 4", "hint"]);
    room.run(&["run", "tiny.toml", "--trial", "1", "--only", "kind=bad"])
        .exits(2)
        .says(&["that --only leaves out"]);
}

/// Changes one key of a manifest.
fn change(room: &Room, part: &str, key: &str, value: Value) {
    let path = room.path("work").join(part).join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let place = manifest.pointer_mut(key).unwrap();
    *place = value;
    std::fs::write(&path, manifest.to_string()).unwrap();
}

fn copy(room: &Room, from: &str, to: &str) {
    let work = room.path("work");
    common::output(
        std::process::Command::new("cp").arg("-a").args([work.join(from), work.join(to)]),
    );
}

#[test]
fn what_does_not_belong_together_is_refused_and_nothing_is_lost() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    parts(&room);
    for within in ["parts/1", "parts/1/deeper", "parts/2/../1/trials/x"] {
        let done = room.run(&["merge", "parts/2", "parts/1", "--out", within]).exits(2);
        done.says(&["it is in the part parts/1", "hint: "]);
    }
    std::fs::create_dir(room.path("work").join("bad")).unwrap();
    let cases: &[(&str, &str, Value, &[&str], i32)] = &[
        ("version", "/suiro", "9.9.9".into(), &["bad/version: made by suiro 9.9.9", "hint"], 2),
        (
            "seed",
            "/seed",
            8.into(),
            &["bad/seed: holds trials of another plan than parts/1", "hint"],
            2,
        ),
        ("text", "/text", "x = 1".into(), &["another plan", "hint"], 2),
        ("out", "/plan/0/folder", "trials/../x".into(), &["found `trials/../x`"], 1),
        (
            "up",
            "/plan/0/folder",
            "logs".into(),
            &["expected a trial's folder `trials/CELL/REP`, found `logs`"],
            1,
        ),
        ("old", "/plan/0/number", Value::Null, &["its trials have no numbers", "hint"], 1),
        ("other", "/plan/0/repetition", 2.into(), &["trial.json is of another trial", "hint"], 1),
    ];
    for (name, key, value, says, code) in cases {
        let part = format!("bad/{name}");
        copy(&room, "parts/2", &part);
        change(&room, &part, key, value.clone());
        room.run(&["merge", "parts/1", &part, "--out", "refused"]).exits(*code).says(says);
        assert!(!room.results("refused").has("trials"), "{name}");
    }
    for (part, version) in [("parts/1", "1"), ("bad/tool", "2")] {
        if part != "parts/1" {
            copy(&room, "parts/2", part);
        }
        change(&room, part, "/versions", serde_json::json!({ "tool": version }));
    }
    room.run(&["merge", "parts/1", "bad/tool", "--out", "refused"]).exits(2).says(&[
        "bad/tool: made with tool 2, but parts/1 with tool 1",
        "hint: install the same version",
    ]);

    // Measured twice: neither is taken. In OUT, a trial that is not valid makes room, as with --resume.
    room.run(&["run", "tiny.toml", "--trial", "2", "--out", "bad/again"]).exits(1);
    room.run(&["merge", "parts/2", "bad/again", "--out", "refused"])
        .exits(2)
        .says(&["bad/again: holds trial 2 (trials/kind=bad/1), which parts/2 holds too", "hint"]);
    room.run(&["merge", "parts/2", "parts/3", "--out", "merged"]).exits(1);
    room.run(&["merge", "bad/again", "--out", "merged"]).exits(1).says(&["trial 2: replaced"]);
    assert_eq!(
        room.results("merged").bytes("kind=bad/1"),
        room.results("bad/again").bytes("kind=bad/1")
    );
    room.run(&["run", "tiny.toml", "--trial", "3", "--out", "bad/third"]).exits(0);
    let before = room.results("merged").bytes("kind=good/2");
    room.run(&["merge", "bad/third", "--out", "merged"]).exits(2).says(&["which merged holds too"]);
    assert_eq!(room.results("merged").bytes("kind=good/2"), before);
}

#[test]
fn hostile_parts_write_nothing_elsewhere() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    parts(&room);
    let work = room.path("work");
    let link = |at: &str| {
        let at = work.join(at);
        let _ = std::fs::remove_file(&at);
        std::os::unix::fs::symlink("/etc/passwd", &at).unwrap();
    };
    link("parts/1/trials/kind=good/1/logs/more");
    room.run(&["merge", "parts/1", "--out", "merged"])
        .exits(1)
        .says(&["merging parts/1/trials/kind=good/1", "logs/more: a link"]);
    assert!(!room.results("merged").has("trials/kind=good/1"), "half a trial is no trial");
    let left = common::entries(&work.join("merged/trials/kind=good"));
    assert!(left.is_empty(), "{left:?}");
    link("parts/2/manifest.json");
    room.run(&["merge", "parts/2", "--out", "other"]).exits(1).says(&["neither is followed"]);
    // Whatever else is in a folder, merging does not add to it.
    room.write("notes.txt", "mine");
    room.run(&["merge", "parts/3", "--out", "."])
        .exits(2)
        .says(&["not empty and is not a results folder"]);
    assert!(!Path::new(&work.join("manifest.json")).exists());
}
