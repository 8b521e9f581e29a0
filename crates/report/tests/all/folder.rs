//! Whole results folders, sound and unsound, to their reports.

use std::path::{Path, PathBuf};

use crate::synthetic::{folder, folder::Shape, model};
use serde_json::Value;
use suiro_record::tables::LinkRow;
use suiro_record::{Attempt, Folder, Reader, ScreenOutcome, Screens, Trial, Writer};
use suiro_report::{Run, build, build_of, causes, causes_text};

fn shape() -> Shape {
    Shape {
        tcp: vec!["reno", "cubic"],
        abr: vec![("throughput", 0.85)],
        queue: vec![("deep", 100_000, model::falls_and_rises)],
        names: ["tcp", "abr", "queue"],
        study: None,
        repetitions: 2,
        seconds: 6.0,
        flawed: false,
    }
}

fn made(shape: &Shape) -> (tempfile::TempDir, Folder) {
    let dir = tempfile::tempdir().unwrap();
    folder::write(dir.path(), shape).unwrap();
    let folder = Folder::new(dir.path());
    (dir, folder)
}

fn trial(dir: &Path, tcp: &str, repetition: u32) -> PathBuf {
    dir.join(format!("trials/{tcp}-throughput-deep/{repetition}"))
}

/// The data that the page bears.
fn data(folder: &Folder) -> Value {
    let html = std::fs::read_to_string(folder.report()).unwrap();
    let (_, rest) = html.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_sound_folder() {
    let (_dir, folder) = made(&shape());
    let built = build(&folder).unwrap();
    assert_eq!(built.summary.trials.len(), 4);
    for trial in &built.summary.trials {
        assert!(trial.valid, "{:?}", trial.invalid_because);
        for name in [
            "flow.goodput_mean_bps",
            "tcp.cwnd_mean_bytes",
            "tcp.srtt_mean_ms",
            "player.stall_s",
            "video.bitrate_mean_bps",
            "link.down.loss_ratio",
        ] {
            assert!(trial.metrics[name].is_some(), "{name}");
        }
    }
    let read = folder.summary().unwrap();
    for (name, value) in built.summary.trials[3].metrics.iter() {
        let (got, want) = (read.trials[3].metrics[name.as_str()], *value);
        assert_eq!(got.is_some(), want.is_some(), "{name}");
        let (got, want) = (got.unwrap_or(0.0), want.unwrap_or(0.0));
        assert!((got - want).abs() <= 1e-12 * want.abs(), "{name}: {got}, {want}");
        assert!(want != 0.0 || want.is_sign_positive(), "{name} is −0");
    }
    assert_eq!(folder.findings().unwrap().findings.len(), 0);
    assert_eq!(built.report_bytes, std::fs::metadata(&built.report).unwrap().len());
    let page = data(&folder);
    assert_eq!(page["cells"].as_array().unwrap().len(), 2);
    assert_eq!(page["trials"][0]["state"], "complete");
    let series = page["series"].as_array().unwrap();
    let panels: Vec<&Value> =
        page["panels"].as_array().unwrap().iter().map(|panel| &panel["id"]).collect();
    let mut used: Vec<&Value> = series.iter().map(|one| &one["panel"]).collect();
    used.dedup();
    assert_eq!(panels, used, "panels are those of the series, in their order");
    let drops = series.iter().find(|one| one["name"] == "link.up.drops").unwrap();
    assert_eq!(
        (&drops["label"], &drops["instance"], &drops["direction"]),
        (&Value::from("drops"), &Value::Null, &Value::from("up"))
    );
    let rate = series.iter().position(|s| s["name"] == "link.down.rate_bps").unwrap();
    let seen: Vec<f64> = page["trials"][0]["series"][rate]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_f64)
        .collect();
    // The toy's link: 8, then 1.5, then 4 Mbit/s.
    for want in [8e6, 1.5e6, 4e6] {
        assert!(seen.iter().any(|rate| (rate / want - 1.0).abs() < 0.01), "{want}: {seen:?}");
    }
}

#[test]
fn screens_and_what_is_wrong_with_them_reach_the_page() {
    let (dir, folder) = made(&shape());
    let screen = ScreenOutcome {
        endpoint: "player".into(),
        problem: Some("quality: null because the disk is full".into()),
        ..ScreenOutcome::default()
    };
    let screens = Screens { screens: vec![screen] };
    suiro_record::folder::write_screens(&trial(dir.path(), "reno", 1), &screens).unwrap();
    std::fs::write(trial(dir.path(), "reno", 2).join("screens.json"), "{\"screens\": 7}").unwrap();
    let built = build(&folder).unwrap();
    let page = data(&folder);
    let problem = |index: usize| &page["trials"][index]["screens"][0]["problem"];
    assert_eq!(problem(0), "quality: null because the disk is full");
    assert!(built.summary.trials[0].valid, "the trial itself is sound");
    assert!(problem(1).is_null() && page["trials"][2]["screens"] == serde_json::json!([]));
    let told = page["trials"][1]["invalid_because"].as_str().unwrap();
    assert!(told.contains("screens.json"), "{told}");
}

#[test]
fn earlier_attempts_are_told() {
    let (dir, folder) = made(&shape());
    let planned = folder.manifest().unwrap().plan[0].clone();
    let outcome = folder.outcome(&planned).unwrap().unwrap();
    let attempt = Attempt {
        started: outcome.started.clone(),
        duration_s: 7.0,
        invalid_because: "link access down: one packet in a hundred left late".to_owned(),
        links: outcome.links.clone(),
    };
    let again = Trial { attempts: vec![attempt], ..outcome };
    suiro_record::folder::write_outcome(&folder.trial(&planned), &again).unwrap();
    build(&folder).unwrap();
    let told = data(&folder)["trials"][0]["warnings"][0].to_string();
    assert!(told.contains("attempt 1 was not valid") && told.contains("left late"), "{told}");
    drop(dir);
}

#[test]
fn a_self_check_that_measured_nothing_is_a_warning() {
    let (_dir, folder) = made(&shape());
    let planned = folder.manifest().unwrap().plan[0].clone();
    let mut outcome = folder.outcome(&planned).unwrap().unwrap();
    for check in &mut outcome.self_checks[0].checks {
        (check.ok, check.measured) = (None, None);
        check.note = Some("the self-check itself missed 3 packets".to_owned());
    }
    suiro_record::folder::write_outcome(&folder.trial(&planned), &outcome).unwrap();
    build(&folder).unwrap();
    let told = data(&folder)["trials"][0]["warnings"][0].to_string();
    assert!(told.contains("measured nothing") && told.contains("missed 3 packets"), "{told}");
}

#[test]
fn the_same_folder_gives_the_same_report() {
    let (_dir, folder) = made(&shape());
    build(&folder).unwrap();
    let first = std::fs::read(folder.report()).unwrap();
    build(&folder).unwrap();
    assert!(std::fs::read(folder.report()).unwrap() == first);
}

#[test]
fn unsound_trials_are_told_and_the_others_shown() {
    let (dir, folder) = made(&shape());
    let damage = |path: PathBuf, text: &str| std::fs::write(path, text).unwrap();
    std::fs::remove_file(trial(dir.path(), "reno", 1).join("trial.json")).unwrap();
    std::fs::remove_dir_all(trial(dir.path(), "reno", 2)).unwrap();
    damage(trial(dir.path(), "cubic", 1).join("trial.json"), "{\"cell\": {");
    let table = trial(dir.path(), "cubic", 2).join("tcp.parquet");
    let half = std::fs::read(&table).unwrap();
    std::fs::write(&table, &half[..half.len() / 2]).unwrap();
    let built = build(&folder).unwrap();
    let reason = |index: usize| built.summary.trials[index].invalid_because.clone().unwrap();
    assert_eq!(reason(0), "it was interrupted: trial.json is missing");
    assert_eq!(reason(1), "it was not run");
    assert!(reason(2).contains("trial.json: the file is cut off"), "{}", reason(2));
    assert!(reason(3).contains("tcp.parquet"), "{}", reason(3));
    assert!(built.summary.trials.iter().all(|trial| !trial.valid));
    assert!(built.summary.trials[3].metrics["flow.goodput_mean_bps"].is_some());
    assert!(!built.summary.trials[3].metrics.contains_key("tcp.cwnd_mean_bytes"));
    let states: Vec<Value> = data(&folder)["trials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trial| trial["state"].clone())
        .collect();
    assert_eq!(states, ["missing", "missing", "damaged", "damaged"]);
}

/// Rows of another measurement in the table: the trial is valid by its `trial.json`, and every table can be read.
#[test]
fn a_trial_whose_table_is_not_that_of_its_accounts_is_not_valid() {
    let (dir, folder) = made(&shape());
    let place = trial(dir.path(), "cubic", 2);
    let mut rows = Reader::read::<LinkRow>(&place).unwrap();
    rows.extend_from_within(..5);
    let mut writer = Writer::<LinkRow>::create(&place).unwrap();
    rows.into_iter().for_each(|row| writer.push(row).unwrap());
    writer.close().unwrap();
    let built = build(&folder).unwrap();
    let found: Vec<_> = built.summary.trials.iter().map(|trial| trial.valid).collect();
    assert_eq!(found, [true, true, true, false]);
    let why = built.summary.trials[3].invalid_because.as_deref().unwrap();
    assert!(why.contains("packets, but its table has"), "{why}");
    let planned = &folder.manifest().unwrap().plan[3];
    let outcome = folder.outcome(planned).unwrap().unwrap();
    assert!(outcome.valid);
    let known = suiro_report::damage(&folder, planned, &outcome);
    assert_eq!(known.as_deref(), Some(why), "what was kept says the same");
    std::fs::remove_file(place.join("analysis.json")).unwrap();
    assert_eq!(suiro_report::damage(&folder, planned, &outcome).as_deref(), Some(why));
}

#[test]
fn a_trial_that_lab_found_invalid_keeps_its_reason() {
    let (_dir, folder) = made(&Shape { flawed: true, ..shape() });
    let built = build(&folder).unwrap();
    let reasons: Vec<_> = built.summary.trials.iter().map(|t| t.invalid_because.clone()).collect();
    assert_eq!(reasons[..2], [None, None]);
    assert!(reasons[2].as_ref().unwrap().contains("the link was late"));
    assert_eq!(reasons[3].as_deref(), Some("it was not run"));
    let told = causes_text(&causes(&folder, |_| true).unwrap(), None);
    assert_eq!(told.matches("not valid: the link was late").count(), 1, "{told}");
}

#[test]
fn what_a_scenario_says_cannot_break_the_page() {
    let (_dir, folder) = made(&shape());
    let mut manifest = folder.manifest().unwrap();
    manifest.title = "</title></script><script>alert(1)</script><!-- \u{2028} & \"x\"".into();
    folder.write_manifest(&manifest).unwrap();
    build(&folder).unwrap();
    assert_eq!(data(&folder)["title"], *manifest.title);
    let html = std::fs::read_to_string(folder.report()).unwrap();
    assert!(!html.contains("<script>alert"));
}

#[test]
fn a_folder_without_a_manifest_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let error = build(&Folder::new(dir.path())).unwrap_err().to_string();
    assert!(error.contains("manifest.json"), "{error}");
}

#[test]
fn a_plan_without_trials_is_a_report_that_says_so() {
    let (_dir, folder) = made(&Shape { repetitions: 0, ..shape() });
    let built = build(&folder).unwrap();
    assert!(built.summary.trials.is_empty());
    assert_eq!(data(&folder)["trials"], serde_json::json!([]));
}

#[test]
fn a_run_that_is_under_way_has_lost_nothing() {
    let (dir, folder) = made(&shape());
    std::fs::remove_file(trial(dir.path(), "reno", 1).join("trial.json")).unwrap();
    std::fs::remove_dir_all(trial(dir.path(), "reno", 2)).unwrap();
    let told = |run| {
        let trials = build_of(&folder, run).unwrap().summary.trials;
        trials.into_iter().filter_map(|trial| trial.invalid_because).collect::<Vec<_>>()
    };
    assert_eq!(told(Run::UnderWay), ["it is running", "it has not begun: the run is under way"]);
    assert_eq!(told(Run::Over), ["it was interrupted: trial.json is missing", "it was not run"]);
}

#[test]
fn nothing_outside_of_a_hostile_folder_is_read_or_written() {
    use std::os::unix::fs::symlink;
    let secret = tempfile::tempdir().unwrap();
    let outside = |name: &str| secret.path().join(name);
    let keep = ["summary", "findings", "report", "part"];
    keep.iter().for_each(|name| std::fs::write(outside(name), "years of work").unwrap());
    // A sound trial elsewhere, whose figures must not come into the page.
    let (other, _) = made(&shape());
    let (dir, folder) = made(&shape());
    for (name, to) in [
        ("summary.json", "summary"),
        ("findings.json", "findings"),
        ("report.html", "report"),
        ("summary.json.part", "part"),
        ("findings.json.part", "part"),
        ("report.html.part", "part"),
        ("compare.mp4", "part"),
    ] {
        let place = dir.path().join(name);
        // Some of them are not there.
        let _ = std::fs::remove_file(&place);
        symlink(outside(to), place).unwrap();
    }
    // A trial's folder and a table that lie elsewhere.
    let (lost, linked) = (trial(dir.path(), "reno", 1), trial(dir.path(), "reno", 2));
    std::fs::remove_dir_all(&lost).unwrap();
    symlink(trial(other.path(), "reno", 1), &lost).unwrap();
    let table = linked.join("link.parquet");
    std::fs::remove_file(&table).unwrap();
    symlink(trial(other.path(), "reno", 2).join("link.parquet"), table).unwrap();
    let built = build(&folder).unwrap();
    let reasons: Vec<_> =
        built.summary.trials.iter().filter_map(|trial| trial.invalid_because.as_deref()).collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons.iter().all(|why| why.contains("neither is followed here")), "{reasons:?}");
    assert!(data(&folder)["comparison"].is_null());
    for name in keep {
        assert_eq!(std::fs::read_to_string(outside(name)).unwrap(), "years of work", "{name}");
    }
    assert_eq!(std::fs::read_dir(secret.path()).unwrap().count(), keep.len());

    // Paths in the plan.
    let manifest = dir.path().join("manifest.json");
    let sound = std::fs::read_to_string(&manifest).unwrap();
    let own = "trials/reno-throughput-deep/1";
    for path in [trial(other.path(), "reno", 1).to_str().unwrap(), "../../etc", "trials/../../x"] {
        std::fs::write(&manifest, sound.replacen(own, path, 1)).unwrap();
        let error = build(&folder).unwrap_err().to_string();
        assert!(error.contains("expected the folder of a trial below"), "{error}");
    }
}
