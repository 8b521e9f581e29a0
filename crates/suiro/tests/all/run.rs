//! `suiro run` with programs of any origin: what becomes of a trial whose endpoint dies, never gets
//! ready or does not stop, and of a run that is cut short.

use std::os::unix::process::CommandExt;
use std::process::Stdio;

use crate::common::{self, Done, Lines, Room};
use rustix::process::{Signal, kill_process_group};
use suiro_media::Ffmpeg;
use suiro_record::{Summary, Trial};

/// Two hosts and a plain cable: no emulator, so that validity hangs on the endpoints alone.
const HOSTS: &str = r#"
[topology]
shape = "explicit"
hosts = ["server", "client"]
cables = [{ from = "server", to = "client" }]
[links]
[media]
"#;

/// A scenario of these endpoints; `head` has what stands above the sections.
fn scenario(head: &str, endpoints: &str) -> String {
    format!("name = 'tiny'\ntitle = 'a test'\n{head}\n{HOSTS}\n{endpoints}")
}

/// One endpoint, a line of shell.
fn shell(name: &str, script: &str, more: &str) -> String {
    format!(
        "[endpoints.{name}]\nkind = 'command'\nhost = 'client'\n\
         command = ['sh', '-c', '''{script}''']\n{more}\n"
    )
}

#[track_caller]
fn reason(trial: &Trial) -> &str {
    assert!(!trial.valid);
    trial.invalid_because.as_deref().unwrap()
}

#[test]
fn a_dying_endpoint_fails_its_trial_and_resume_repeats_only_that() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    let head = "duration = '500 ms'\nrepetitions = 2\nseed = 7\nmatrix.kind = ['good', 'bad']";
    let script = "echo begins; [ ${kind} = good ] || [ -e mended ] || { echo no luck >&2; exit 3; }
                  exec sleep 100";
    room.write("tiny.toml", &scenario(head, &shell("it", script, "")));
    let run = ["run", "tiny.toml", "--out", "out", "--jobs", "2"];
    let done = room.run(&run).exits(1);
    done.says(&["running 4 trials, 2 at a time", "INVALID: endpoint it: ended early"]);
    let out = room.results("out");

    let bad = out.trial("kind=bad/1");
    assert_eq!(reason(&bad), "endpoint it: ended early with exit code 3: no luck");
    assert_eq!((bad.endpoints[0].exit_code, bad.endpoints[0].signal), (Some(3), None));
    let good = out.trial("kind=good/1");
    assert_eq!(good.invalid_because, None);
    assert!(good.valid && good.duration_s == 0.5 && good.epoch_monotonic_ns > 0);
    assert_eq!((good.endpoints[0].exit_code, good.endpoints[0].signal), (None, Some(15)));
    assert!(out.has("trials/kind=good/1/logs/it.log"));

    check_documents(&room);
    check_export(&room);
    check_own_page(&room);
    // One trial goes missing, the cause of the bad ones is fixed.
    let (kept, lost) = (out.bytes("kind=good/1"), out.bytes("kind=good/2"));
    std::fs::remove_dir_all(out.root().join("trials/kind=good/2")).unwrap();
    std::fs::write(out.root().join("trials/kind=bad/2/trial.json"), "{").unwrap();
    room.write("mended", "");
    let resume = [&run[..], &["--resume"]].concat();
    room.run(&resume).exits(0).says(&["running 3 trials"]);
    assert_eq!(out.bytes("kind=good/1"), kept, "it was valid and must not be run again");
    assert_ne!(out.bytes("kind=good/2"), lost);
    assert!(out.summary().trials.iter().all(|trial| trial.valid));
    // With nothing left to do, nothing is done; with other settings, nothing is touched.
    let all = out.bytes("kind=bad/2");
    room.run(&resume).exits(0);
    room.run(&[&resume[..], &["--seed", "8"]].concat()).exits(2).says(&["other settings", "hint"]);
    room.run(&[&resume[..], &["--only", "kind=good"]].concat()).exits(0);
    assert_eq!(out.bytes("kind=bad/2"), all);
    assert_eq!(out.summary().trials.len(), 4, "what was measured stays in the summary");
    assert!(room.strays().is_empty(), "{:?}", room.strays());
}

/// A page of one trial, drawn on demand.
fn check_own_page(room: &Room) {
    let shown = room.run(&["report", "out", "--trial", "1"]).exits(0).stdout;
    let page = shown.trim().strip_prefix("report: out/trials/").expect("the page's name");
    assert!(page.ends_with("/1/report.html"), "{shown}");
    let page = room.path("work").join("out/trials").join(page);
    std::fs::remove_file(page).expect("it was drawn, and --resume compares folders");
    let unknown = room.run(&["report", "out", "--trial", "5"]).exits(2);
    unknown.says(&["has no trial of this number; it has some of 1 to 4"]);
}

/// The summary as CSV, and tables that are not there.
fn check_export(room: &Room) {
    let csv = room.run(&["export", "csv", "out", "--cell", "kind=bad"]).exits(0).stdout;
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("kind,repetition,seed,valid,invalid_because"), "{csv}");
    assert!(lines.len() == 3 && lines[1].starts_with("bad,1,"), "{csv}");
    assert!(
        lines[1].contains(",false,endpoint it: ended early with exit code 3: no luck"),
        "{csv}"
    );
    room.run(&["export", "csv", "out", "--out", "out.csv"]).exits(0);
    room.run(&["export", "csv", "out", "--out", "out.csv"]).exits(2).says(&["--replace"]);
    room.run(&["export", "csv", "out", "--table", "tpc"]).exits(2).says(&["`summary` or one of"]);
    room.run(&["export", "csv", "out", "--table", "webrtc"]).exits(2).says(&["no trial has rows"]);
    std::fs::remove_file(room.path("work").join("out.csv")).unwrap();
}

/// The documents of a results folder of two cells, `kind` good and bad, with two repetitions.
fn check_documents(room: &Room) {
    let out = room.results("out");
    let manifest = out.manifest();
    assert_eq!((manifest.scenario.as_str(), manifest.seed.0), ("tiny", 7));
    assert_eq!(manifest.command[1..3], ["run", "tiny.toml"]);
    assert!(manifest.machine.cores > 0 && !manifest.machine.kernel.is_empty());
    assert_eq!(manifest.axes[0].labels, ["good", "bad"]);
    room.write("again.toml", &manifest.text);
    room.run(&["check", "again.toml"]).exits(0);
    let folders: Vec<&str> = manifest.plan.iter().map(|trial| trial.folder.as_str()).collect();
    let expected = ["good/1", "bad/1", "good/2", "bad/2"].map(|x| format!("trials/kind={x}"));
    assert_eq!(folders, expected);
    assert_eq!(manifest.plan[0].seed, manifest.plan[1].seed, "cells are compared in pairs");
    assert_ne!(manifest.plan[0].seed, manifest.plan[2].seed);

    let summary = out.summary();
    for (planned, trial) in manifest.plan.iter().zip(&summary.trials) {
        assert_eq!((&planned.cell, planned.repetition), (&trial.cell, trial.repetition));
        assert_eq!(trial.valid, trial.cell["kind"] == "good");
        assert_eq!(trial.valid, trial.invalid_because.is_none());
    }
    assert_eq!(summary.trials.len(), 4);
    assert!(out.has("findings.json") && out.has("report.html"));
    // The report can be made anew, and says the same.
    let before = serde_json::to_value(&summary).unwrap();
    room.run(&["report", "out"]).exits(1);
    let after: Summary = out.summary();
    assert_eq!(serde_json::to_value(after).unwrap(), before);
    let findings = room.run(&["findings", "out", "--json"]).exits(0);
    assert_eq!(findings.json::<serde_json::Value>()["findings"], serde_json::json!([]));
}

/// The manifest of a results folder of a live run, as it is.
fn manifest(room: &Room, out: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(room.path("work").join(out).join("manifest.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn resume_keeps_where_results_come_from_and_refuses_other_programs() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    let endpoints = shell("it", "exec sleep 100", "");
    room.write("tiny.toml", &scenario("duration = '300 ms'\nrepetitions = 2", &endpoints));
    let run = ["run", "tiny.toml", "--out", "out"];
    let resume = ["run", "tiny.toml", "--out", "out", "--resume"];
    room.run(&run).exits(0);
    let changed = |key: &str, value: serde_json::Value| {
        let mut all = manifest(&room, "out");
        *all.pointer_mut(key).unwrap() = value;
        room.write("out/manifest.json", &all.to_string());
        all
    };
    // As of another machine, another day, and with a program that this run does not ask for.
    changed("/started", "2026-01-02T03:04:05Z".into());
    changed("/versions", serde_json::json!({ "tool": "1" }));
    let mut before = changed("/machine/cpu", "an abacus".into());
    room.run(&resume).exits(0);
    let mut after = manifest(&room, "out");
    for all in [&mut before, &mut after] {
        all.as_object_mut().unwrap().remove("command");
    }
    assert_eq!(after, before);

    // A trial that runs again has the machine of this run, and the folder that of before.
    std::fs::remove_dir_all(room.path("work").join("out/trials/all/2")).unwrap();
    room.run(&resume).exits(0).says(&["running 1 trial"]);
    assert_eq!(room.results("out").manifest().machine.cpu, "an abacus");
    assert_ne!(room.results("out").trial("all/2").machine.unwrap().cpu, "an abacus");

    // A program that has become another one meanwhile: the trial runs again, with the version of the others.
    let path = room.path("work").join("out/trials/all/1/trial.json");
    let mut trial: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    trial["versions"] = serde_json::json!({ "tool": "2" });
    std::fs::write(&path, trial.to_string()).unwrap();
    room.run(&resume).exits(0).says(&["running 1 trial"]);
    assert!(room.results("out").trial("all/1").versions.is_empty());

    let kept = room.results("out").bytes("all/1");
    let own = env!("CARGO_PKG_VERSION");
    changed("/suiro", "9.9.9".into());
    let this = format!("made by suiro 9.9.9, and this is suiro {own}");
    room.run(&resume).exits(2).says(&[&this, "hint: continue with suiro 9.9.9"]);
    changed("/suiro", own.into());
    changed("/virtual_time", serde_json::json!({ "kernel": "7.2", "kernel_sha256": "0" }));
    room.run(&resume).exits(2).says(&["its trials ran in virtual time", "hint: "]);
    assert_eq!(room.results("out").bytes("all/1"), kept);
}

#[test]
fn endpoints_that_do_not_behave() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    let idle = shell("idle", "exec sleep 100", "");
    let stubborn = "trap '' TERM; echo up; while :; do sleep 1; done";
    let (line, port) = ("ready = { line = 'up' }", "ready = { port = 5999 }");
    // What runs, and why its trial is not valid.
    let cases: &[(&str, String, Option<&str>)] = &[
        ("mute", shell("it", "exec sleep 100", line) + &idle, Some("endpoint it: not ready when")),
        ("deaf", shell("it", "echo up; sleep 100", port) + &idle, Some("endpoint it: not ready")),
        ("gone", shell("it", "exit 0", line), Some("endpoint it: ended before it was ready")),
        ("leaves", shell("it", "exit 0", "exit = 'fails'") + &idle, Some("endpoint it: ended")),
        ("ignored", shell("it", "exit 3", "exit = 'ignored'") + &idle, None),
        ("stubborn", shell("it", stubborn, &format!("grace = '200 ms'\n{line}")), None),
        ("loud", shell("it", "yes", ""), None),
    ];
    for (name, endpoints, why) in cases {
        let file = format!("{name}.toml");
        room.write(&file, &scenario("duration = '400 ms'", endpoints));
        let done = room.run(&["run", &file, "--out", name]);
        let trial = room.results(name).trial("all/1");
        assert_eq!(done.code, Some(i32::from(why.is_some())), "{name}: {}", done.stderr);
        match why {
            Some(why) => assert!(reason(&trial).starts_with(why), "{name}: {}", reason(&trial)),
            None => assert_eq!(trial.invalid_because, None, "{name}"),
        }
    }
    let never = room.results("mute").trial("all/1");
    let failure = never.endpoints[1].failure.as_deref();
    assert_eq!(failure, Some("never started: an earlier endpoint was not ready in time"));
    let killed = room.results("stubborn").trial("all/1");
    assert_eq!(killed.endpoints[0].signal, Some(9));
}

#[test]
fn a_program_that_is_not_there_is_named() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    let missing = "[endpoints.it]\nkind = 'command'\nhost = 'client'\ncommand = ['no-such-tool']";
    room.write("x.toml", &scenario("duration = '1 s'", missing));
    room.run(&["run", "x.toml", "--out", "out"]).exits(1);
    let trial = room.results("out").trial("all/1");
    assert!(reason(&trial).contains("no-such-tool"), "{}", reason(&trial));
}

#[test]
fn an_endpoint_may_end_the_trial() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    let other = shell("other", "exec sleep 1000", "");
    let ends = |script| other.clone() + &shell("it", script, "exit = 'ends-trial'");
    room.write("well.toml", &scenario("duration = '10 min'", &ends("exit 0")));
    room.run(&["run", "well.toml", "--out", "well"]).exits(0);
    let well = room.results("well").trial("all/1");
    assert!(well.valid && well.duration_s < 60.0, "{}", well.duration_s);

    room.write("ill.toml", &scenario("duration = '10 min'", &ends("exit 4")));
    room.run(&["run", "ill.toml", "--out", "ill"]).exits(1);
    assert!(reason(&room.results("ill").trial("all/1")).contains("exit code 4"));
}

#[test]
fn options_choose_cells_repetitions_and_seed() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    let head = "duration = '5 min'\nmatrix.word = ['a', 'b']\nparameters.more = 'x'";
    room.write("t.toml", &scenario(head, &shell("it", "echo ${word} ${more}; exec sleep 100", "")));
    let plan = |out: &str, seed: &str| {
        let options = ["--only", "word=b", "--repeat", "2", "--set", "more=y"];
        let run = ["run", "t.toml", "--duration", "100 ms", "--out", out, "--seed", seed];
        room.run(&[&run[..], &options].concat()).exits(0);
        room.results(out).manifest().plan
    };
    let (first, same, other) = (plan("1", "5"), plan("2", "5"), plan("3", "6"));
    assert_eq!(first, same);
    assert!(first.iter().zip(&other).all(|(a, b)| a.folder == b.folder && a.seed != b.seed));
    let folders: Vec<_> = first.iter().map(|trial| trial.folder.as_str()).collect();
    assert_eq!(folders, ["trials/word=b/1", "trials/word=b/2"]);
    let out = room.results("1");
    assert_eq!(out.trial("word=b/1").duration_s, 0.1);
    let log = out.root().join("trials/word=b/1/logs/it.out");
    assert_eq!(std::fs::read_to_string(log).unwrap(), "b y\n");
}

#[test]
fn an_interrupted_run_ends_cleanly_and_keeps_what_it_measured() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    let head = "duration = '10 min'\nrepetitions = 2";
    room.write("t.toml", &scenario(head, &shell("it", "exec sleep 1000", "")));
    let mut command = room.suiro(&["run", "t.toml", "--out", "out"]);
    // As from a terminal: Ctrl-C signals the whole process group.
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().unwrap();
    let lines = Lines::of(child.stderr.take().unwrap());
    lines.until("measuring for 600 s");
    // Whoever forgot that it runs does not write over it.
    let again = ["run", "t.toml", "--out", "out", "--resume"];
    room.run(&again).exits(2).says(&["another suiro run is writing", "hint: "]);
    kill_process_group(common::pid(&child), Signal::INT).unwrap();
    let done = Done::wait(child).exits(1);
    assert!(done.stdout.contains("report: "), "{}", done.stdout);
    let out = room.results("out");
    let trials = out.summary().trials;
    assert_eq!(trials[0].invalid_because.as_deref(), Some("it was interrupted"));
    assert_eq!(trials[1].invalid_because.as_deref(), Some("it was not run"));
    let cut = out.trial("all/1");
    assert!(cut.duration_s < 100.0 && cut.endpoints[0].signal == Some(15), "{}", cut.duration_s);
    for table in ["tcp.client.parquet", "tcp.server.parquet"] {
        let file = out.open(&format!("trials/all/1/{table}"));
        assert!(file.metadata().unwrap().len() > 0, "{table}");
    }
    assert!(out.has("report.html") && !out.has("trials/all/2"));
}

#[test]
fn an_emulated_link_is_checked_and_accounted_for() {
    if !common::can_run() || !common::has("ping") {
        return;
    }
    let room = Room::new();
    let text = "name = 'x'\ntitle = 'x'\nduration = '1 s'\n
        [topology]\nshape = 'dumbbell'\nlink = 'access'\n
        [links.access]\nrate = '2 Mbit/s'\ndelay = '10 ms'\nqueue.limit = '30 kB'\n
        [endpoints.ping]\nkind = 'command'\nhost = 'client'\nexit = 'ends-trial'
        command = ['ping', '-c', '3', '-i', '0.2', 'server']";
    room.write("x.toml", text);
    let done = room.run(&["run", "x.toml", "--out", "out"]);
    let out = room.results("out");
    let trial = out.trial("all/1");
    // A busy machine may be too late for this link; then it has to report it.
    assert_eq!(done.code, Some(i32::from(!trial.valid)), "{}", done.stderr);
    let directions: Vec<&str> = trial.self_checks.iter().map(|c| c.direction.name()).collect();
    assert_eq!(directions, ["down", "up"]);
    assert_eq!(out.manifest().self_checks["trials/all/1"].len(), 2);
    for link in &trial.links {
        let dropped: u64 = link.dropped.values().sum();
        assert_eq!(link.offered + link.duplicated, link.delivered + dropped + link.queued);
        assert_eq!((link.unaccounted, link.delivered), (0, 3), "{}", link.direction);
    }
    let summary = out.summary();
    let metrics = &summary.trials[0].metrics;
    assert_eq!(metrics["link.down.loss_ratio"], Some(0.0));
    assert!(out.has("trials/all/1/link.access.parquet"));
    let log = std::fs::read_to_string(out.root().join("trials/all/1/logs/ping.out")).unwrap();
    assert!(log.contains("3 received"), "{log}");
}

#[test]
fn a_cell_that_this_machine_lacks_something_for_is_skipped() {
    let ffmpeg = Ffmpeg::locate().inspect_err(suiro_units::skipped);
    let Some(ffmpeg) = ffmpeg.ok().filter(|_| common::can_run()) else { return };
    let room = Room::new();
    let run = |out, more: &[&str]| {
        let mut command = room.suiro(&["run", "x.toml", "--out", out]);
        Done::of(command.args(more).env("SUIRO_FFMPEG", ffmpeg.path()))
    };
    let origin = "[media.main]\nsource = 'synthetic'\nlength = '2 s'\nsegment = '1 s'\naudio = false\n\
                  preset = 'ultrafast'\nladder = [{ bitrate = '200 kbit/s', height = 180 }]\n\
                  [endpoints.origin]\nkind = 'origin'\nhost = 'server'\nmedia = 'main'\n\
                  mode = 'vod'\ntcp = '$tcp'\n";
    let matrix = "duration = '500 ms'\n[matrix]\ntcp = ['reno', 'no_such_tcp']";
    room.write("x.toml", &scenario(matrix, origin));
    run("out", &[]).exits(0);
    let trials = room.results("out").summary().trials;
    assert!(trials[0].valid && !trials[0].skipped, "{:?}", trials[0].invalid_because);
    assert!(!trials[1].valid && trials[1].skipped);
    let because = trials[1].invalid_because.as_deref().unwrap();
    assert!(
        because.starts_with("endpoint origin: this kernel has no congestion control `no_such_tcp`"),
        "{because}"
    );
    assert!(because.contains("\nhint: "), "{because}");
    // Where nothing can run, the run has failed.
    run("none", &["--only", "tcp=no_such_tcp"]).exits(1);
}
