use suiro_record::words::Privilege;
use suiro_record::{Axis, Machine};
use suiro_units::Seed;

use super::*;

pub(super) fn manifest(text: &str) -> Manifest {
    Manifest {
        suiro: "0.1.0".into(),
        scenario: "quick".into(),
        title: String::new(),
        study: None,
        text: text.into(),
        command: Vec::new(),
        started: "2026-01-01T00:00:00Z".into(),
        seed: Seed(1),
        axes: vec![Axis { name: "tcp".into(), labels: vec!["reno".into()] }],
        plan: Vec::new(),
        plan_trials: None,
        machine: Machine {
            name: "a".into(),
            kernel: "6.18".into(),
            system: "Debian".into(),
            cpu: "any".into(),
            cores: 2,
            memory_bytes: 4 << 30,
            clock_source: "tsc".into(),
            privilege: Privilege::User,
            settings: BTreeMap::new(),
        },
        virtual_time: None,
        versions: BTreeMap::new(),
        self_checks: BTreeMap::new(),
    }
}

/// Three trials with these stalls, goodputs and shares of a cause.
fn run(path: &str, text: &str, seed: u64, of: [(f64, f64, f64); 3]) -> Run {
    let trial = |(place, (stall, goodput, rate)): (u32, (f64, f64, f64))| TrialSummary {
        cell: [("tcp".to_owned(), "reno".into())].into_iter().collect(),
        repetition: place + 1,
        seed: Seed(seed + u64::from(place)),
        valid: true,
        invalid_because: None,
        skipped: false,
        metrics: [
            ("player.stall_s", Some(stall)),
            ("player.startup_s", Some(0.4)),
            ("flow.goodput_mean_bps", Some(goodput)),
            ("why.link_rate_ratio", Some(rate)),
            ("why.stalled_loss_ratio", (stall > 0.0).then_some(1.0)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into(),
    };
    let trials = (0..).zip(of).map(trial).collect();
    let summary = Summary { scenario: "quick".into(), trials, ..Summary::default() };
    Run { path: path.into(), manifest: manifest(text), summary }
}

fn before() -> Run {
    run(
        "D/before",
        "abr = \"dynamic\"",
        1,
        [(0.0, 3.0e6, 0.1), (0.0, 3.1e6, 0.12), (0.0, 2.9e6, 0.11)],
    )
}

fn after() -> Run {
    run(
        "D/after",
        "abr = \"bola\"",
        1,
        [(2.1, 3.5e6, 0.4), (2.3, 3.59e6, 0.42), (2.2, 3.41e6, 0.4)],
    )
}

#[test]
fn what_became_worse_comes_first_and_causes_are_named() {
    let found = compare(&[before(), after()], MARGIN);
    insta::assert_snapshot!(diff_text(&found, false, false), @r#"
    A  D/before: quick, 3 trials, 3 valid, seed 1, run 2026-01-01T00:00:00Z, suiro 0.1.0
    B  D/after: quick, 3 trials, 3 valid, seed 1, run 2026-01-01T00:00:00Z, suiro 0.1.0

    A to B
      versions and machine are the same
      scenario: abr: "dynamic" → "bola"

      reno  3 pairs of the same seed
        worse   Time stalled  s          0 → 2.20  +2.20 (+1.95 to +2.45)
        better  Goodput       Mbit/s  3.00 → 3.50  +0.500 (+0.475 to +0.525)
        causes, A to B: stalled by: loss – → 100 %; limited by: link rate 11 % → 41 %
        metrics, with those of causes: 1 worse, 1 better, 1 higher, 1 same

      Differences: means, with 95 % intervals, by Student's t (pairs) or Welch's; worse and better: p adjusted for all metrics ≤ 0.05;
      same: identical, or within 2 %.
    "#);
}

#[test]
fn all_metrics_are_listed_if_wanted() {
    let found = compare(&[before(), after()], MARGIN);
    let text = diff_text(&found, true, false);
    for part in ["same       Start-up", "higher     Limited by: link rate", "only in B"] {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

#[test]
fn of_few_repetitions_the_numbers_are_shown_and_how_many_are_needed() {
    let few = |mut run: Run| {
        run.summary.trials.truncate(1);
        run
    };
    let text = diff_text(&compare(&[few(before()), few(after())], MARGIN), false, false);
    for part in
        ["1 pair of the same seed", "too noisy  Time stalled", "0 → 2.10  +2.10\n", "--repeat 3"]
    {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

#[test]
fn a_folder_with_itself_is_the_same() {
    let found = compare(&[before(), before()], MARGIN);
    let [one] = &found.comparisons[..] else { panic!("{found:?}") };
    assert_eq!(one.verdicts, BTreeMap::from([(DiffVerdict::Same, 4)]));
    assert!(one.settings.is_empty() && one.cells[0].causes.is_empty());
    assert!(
        diff_text(&found, false, false).contains("scenario, versions and machine are the same")
    );
}

#[test]
fn each_folder_is_compared_with_the_first() {
    let found = compare(&[before(), after(), before()], MARGIN);
    let letters: Vec<&str> = found.folders.iter().map(|it| &*it.letter).collect();
    assert_eq!(letters, ["A", "B", "C"]);
    assert_eq!(found.comparisons.iter().map(|it| it.folder).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(found.samples.len(), 9);
    assert_eq!(found.samples[3].values["player.stall_s"], 2.1);
}

#[test]
fn names_and_values_of_strangers_cannot_write_to_the_terminal() {
    let mut run = before();
    run.path = "D/\x1b[2J".into();
    let text = diff_text(&compare(&[run, after()], MARGIN), false, true);
    assert!(!text.contains("\x1b[2J") && text.contains("\x1b[1m"), "{text}");
}

#[test]
fn the_page_holds_the_comparison() {
    let dir = tempfile::tempdir().unwrap();
    let (file, found) = (dir.path().join("diff.html"), compare(&[before(), after()], MARGIN));
    diff_page(&file, &found).unwrap();
    let page = std::fs::read_to_string(file).unwrap();
    assert!(page.contains("<title>suiro diff D/before D/after</title>"));
    let data = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["comparisons"][0]["verdicts"]["worse"], 1);
}
