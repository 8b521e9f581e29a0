//! `suiro doctor` as a user and as a program meets it.

use std::collections::BTreeSet;
use std::process::{Command, Output};
use std::sync::LazyLock;

use serde_json::Value;

fn doctor(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_suiro"));
    command.arg("doctor").args(arguments).envs(environment.iter().copied());
    command.output().unwrap()
}

/// Without ffmpeg and a program for P.1203. Its checks take seconds, so several tests read one report.
const LOST: [(&str, &str); 2] =
    [("SUIRO_FFMPEG", "/nonexistent/ffmpeg"), ("SUIRO_P1203", "/nonexistent/p1203")];
static REPORT: LazyLock<Output> = LazyLock::new(|| doctor(&["--json"], &LOST));

fn checks(output: &Output) -> Vec<Value> {
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["can_run"], output.status.success(), "{report}");
    report["checks"].as_array().unwrap().clone()
}

#[test]
fn json_tells_each_check_once_with_what_a_program_needs() {
    let checks = checks(&REPORT);
    let mut names = BTreeSet::new();
    for check in &checks {
        assert!(names.insert(check["name"].as_str().unwrap()), "twice: {check}");
        assert!(["ok", "limited", "missing"].contains(&check["state"].as_str().unwrap()));
        assert!(["required", "optional"].contains(&check["need"].as_str().unwrap()));
        for text in ["group", "purpose", "found"] {
            assert!(!check[text].as_str().unwrap().is_empty(), "{text}: {check}");
        }
        assert!(check["state"] != "ok" || check["mend"].is_null(), "{check}");
    }
    for name in [
        "namespaces",
        "packet sockets",
        "link capacity",
        "tp_btf",
        "ffmpeg",
        "p1203-standalone",
        "clock source",
    ] {
        assert!(names.contains(name), "{name} is not among {names:?}");
    }
}

#[test]
fn without_ffmpeg_nothing_can_run_and_the_remedy_is_told() {
    assert_eq!(REPORT.status.code(), Some(1));
    let checks = checks(&REPORT);
    let ffmpeg = checks.iter().find(|check| check["name"] == "ffmpeg").unwrap();
    assert_eq!((&ffmpeg["state"], &ffmpeg["need"]), (&"missing".into(), &"required".into()));
    assert!(ffmpeg["mend"].as_str().unwrap().contains("make setup"), "{ffmpeg}");

    let output = doctor(&[], &LOST);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("MISSING ffmpeg"), "{text}");
    assert!(text.contains("`suiro run` cannot work here; missing: "), "{text}");
    assert!(!text.contains('\x1b'), "no colours in a pipe: {text}");
}

#[test]
fn a_program_for_p1203_that_is_named_and_not_there_is_told_and_nothing_more() {
    let checks = checks(&REPORT);
    let found = checks.iter().find(|check| check["name"] == "p1203-standalone").unwrap();
    assert_eq!((&found["state"], &found["need"]), (&"missing".into(), &"optional".into()));
    assert!(found["found"].as_str().unwrap().contains("/nonexistent/p1203"), "{found}");
    assert!(found["purpose"].as_str().unwrap().contains("nothing else"), "{found}");
}

#[test]
fn what_uncompressed_video_needs_is_told_for_programs_too() {
    let output = doctor(&["--uncompressed", "--interface", "lo", "--json"], &[]);
    assert_eq!(output.status.code(), Some(0));
    let checks: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let names: BTreeSet<_> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), checks.len(), "a name twice: {names:?}");
    for name in ["receive buffers", "huge pages", "NUMA", "governor", "steal", "lo MTU"] {
        assert!(names.contains(name), "{name} is not among {names:?}");
    }
    assert!(checks.iter().all(|check| check["state"] != "ok" || check["mend"].is_null()));

    let output = doctor(&["--uncompressed", "--interface", "nowhere0"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("missing nowhere0"), "{text}");
    assert!(text.contains("→ ip -brief link"), "{text}");
}

#[test]
fn without_anything_applied_there_is_nothing_to_undo() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("tuning.json");
    let output = doctor(&["--uncompressed", "--undo", "--state", state.to_str().unwrap()], &[]);
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "nothing to change\n");
    assert_eq!(doctor(&["--undo"], &[]).status.code(), Some(2), "of what?");
}
