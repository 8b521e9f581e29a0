//! Findings over results made by hand.

use suiro_record::words::FindingVerdict;
use suiro_record::{Cell, TrialSummary};
use suiro_study::Study;
use suiro_units::Seed;

use super::{judge, unknown_names};

fn cell(labels: [&str; 3]) -> Cell {
    let axes = ["protocol", "scene", "tcp"];
    axes.into_iter().zip(labels).map(|(axis, label)| (axis.to_owned(), label.into())).collect()
}

/// The only repetition of a cell, which is valid.
pub(super) fn measured(cell: Cell, metrics: &[(&str, f64)]) -> TrialSummary {
    TrialSummary {
        cell,
        repetition: 1,
        seed: Seed(1),
        valid: true,
        skipped: false,
        invalid_because: None,
        metrics: metrics.iter().map(|(name, value)| ((*name).to_owned(), Some(*value))).collect(),
    }
}

fn trial(labels: [&str; 3], repetition: u32) -> TrialSummary {
    TrialSummary { repetition, ..measured(cell(labels), &[]) }
}

fn s0() -> Study {
    suiro_study::find("S0").unwrap()
}

/// A run that measured exactly what the tables of S0 printed, and throughput and stalls as its text
/// says.
fn as_published(repetitions: u32) -> Vec<TrialSummary> {
    let study = s0();
    let mut trials = Vec::new();
    for repetition in 1..=repetitions {
        for protocol in ["dash", "hls"] {
            for scene in ["clear", "obstacle"] {
                for tcp in ["reno", "vegas", "cubic"] {
                    let mut trial = trial([protocol, scene, tcp], repetition);
                    let bad = protocol == "hls" && scene == "obstacle";
                    let mut put =
                        |name: &str, value| trial.metrics.insert(name.into(), Some(value));
                    put("player.stalls", f64::from(u8::from(bad)));
                    let goodput = if tcp == "vegas" { 1.4e6 } else { 1.5e6 };
                    put("flow.goodput_mean_bps", if bad { 1e6 } else { goodput });
                    put("video.bitrate_mean_bps", 1.4e6);
                    trials.push(trial);
                }
            }
        }
    }
    for table in &study.tables {
        for entry in table.rows.iter().flat_map(|row| &row.entries) {
            let labels: Vec<&str> = study
                .axes
                .iter()
                .zip(&entry.cell)
                .map(|(axis, label)| axis.labels[*label].as_str())
                .collect();
            let cell = cell(labels.try_into().unwrap());
            let metric = &study.metrics[entry.metric];
            let value = entry.published * metric.unit.factor / metric.measured_in.factor;
            for trial in trials.iter_mut().filter(|trial| trial.cell == cell) {
                trial.metrics.insert(metric.metric.clone(), Some(value));
            }
        }
    }
    trials
}

fn the<'a>(trials: &'a mut [TrialSummary], labels: [&str; 3], n: u32) -> &'a mut TrialSummary {
    let cell = cell(labels);
    trials.iter_mut().find(|trial| trial.cell == cell && trial.repetition == n).unwrap()
}

#[test]
fn studies_name_metrics_that_there_are() {
    for id in suiro_study::ids() {
        assert_eq!(unknown_names(&suiro_study::find(id).unwrap()), Vec::<&str>::new(), "{id}");
    }
}

#[test]
fn what_s0_published_satisfies_its_findings() {
    let found = judge(&s0(), &as_published(1));
    assert_eq!(found.findings.len(), 14);
    for finding in &found.findings {
        assert_eq!(finding.holds, Some(true), "{finding:?}");
    }
    for table in &found.tables {
        assert_eq!((table.near, table.ordered.0), ((12, 12), table.ordered.1));
    }
    insta::assert_debug_snapshot!(
        found.findings.iter().map(|f| f.measured.as_deref().unwrap()).collect::<Vec<_>>()
    );
}

#[test]
fn a_verdict_is_that_of_the_means_and_repetitions_are_counted() {
    let mut trials = as_published(3);
    // Once Vegas's window is larger than CUBIC's, but not on average.
    the(&mut trials, ["dash", "clear", "vegas"], 2)
        .metrics
        .insert("tcp.cwnd_mean_bytes".into(), Some(50_000.0));
    let finding = judge(&s0(), &trials).findings.remove(0);
    assert_eq!((finding.holds, finding.judged_in, finding.held_in), (None, 3, 2));
    assert_eq!(finding.verdict, Some(FindingVerdict::Inconclusive));
    let expected = "the 95 % interval includes zero: dash clear vegas: margin 130 kbit ± 404 kbit over 3 \
                    repetitions; held in 2 of 3 repetitions, not in 2";
    assert_eq!(finding.because, expected);
}

#[test]
fn a_finding_is_shown_where_its_margin_is_beyond_what_repetitions_vary() {
    // Vegas's window stays the least by far, and varies.
    let mut trials = as_published(3);
    for (n, bytes) in [(1, 14_000.0), (2, 14_800.0), (3, 15_100.0)] {
        let metrics = &mut the(&mut trials, ["dash", "clear", "vegas"], n).metrics;
        metrics.insert("tcp.cwnd_mean_bytes".into(), Some(bytes));
    }
    let finding = judge(&s0(), &trials).findings.remove(0);
    assert_eq!(finding.verdict, Some(FindingVerdict::Holds), "{finding:?}");
    assert_eq!(finding.because, "held in 3 of 3 repetitions");
}

#[test]
fn cells_without_a_common_repetition_show_nothing() {
    // Each finding's values are means of two repetitions, but no repetition has values of both cells.
    let mut trials = as_published(4);
    for trial in &mut trials {
        let clear = trial.cell["scene"] == "clear";
        trial.valid = clear == (trial.repetition <= 2);
    }
    let found = judge(&s0(), &trials).findings;
    let second = &found[1];
    assert_eq!((second.verdict, second.holds), (Some(FindingVerdict::Inconclusive), None));
    assert_eq!((second.judged_in, second.held_in), (0, 0));
    let expected = "there is no 95 % interval: dash reno: none of 4 repetitions has all values; dash vegas: none of \
                    4 repetitions has all values";
    assert!(second.because.starts_with(expected), "{}", second.because);
    assert!(second.because.ends_with("no repetition can be judged by itself"), "{second:?}");
    // One whose cells are all of one scene is judged as before.
    assert_eq!(found[0].verdict, Some(FindingVerdict::Holds), "{:?}", found[0]);
    // With one repetition in all, the values decide alone.
    trials.retain(|trial| trial.repetition == 1);
    trials.iter_mut().for_each(|trial| trial.valid = true);
    assert_eq!(judge(&s0(), &trials).findings[1].verdict, Some(FindingVerdict::Holds));
}

/// The first finding of S0 on the condition that DASH raises Reno's RTT.
fn on_condition(trials: &[TrialSummary]) -> suiro_record::Finding {
    let text = include_str!("../../../../studies/s0.toml");
    let condition = "given = \"rtt[dash, obstacle, reno] > rtt[dash, clear, reno]\"\nholds = ";
    let study =
        suiro_study::parse(&text.replacen("\nholds = ", &format!("\n{condition}"), 1), "s0");
    judge(&study.unwrap(), trials).findings.remove(0)
}

#[test]
fn a_finding_whose_condition_is_not_shown_is_not_judged() {
    let mut trials = as_published(3);
    let finding = on_condition(&trials);
    assert_eq!(finding.verdict, Some(FindingVerdict::Holds), "{finding:?}");
    for trial in trials.iter_mut().filter(|trial| trial.cell == cell(["dash", "obstacle", "reno"]))
    {
        trial.metrics.insert("tcp.srtt_mean_ms".into(), Some(40.0));
    }
    let finding = on_condition(&trials);
    assert_eq!((finding.verdict, finding.holds), (Some(FindingVerdict::Inconclusive), None));
    let expected = "not judged: its condition is inconclusive; not met: dash obstacle reno: 40 ms is not > 48 ms";
    assert_eq!(finding.because, expected);
    // A condition that cannot be evaluated is inconclusive as well.
    trials.retain(|trial| trial.cell != cell(["dash", "obstacle", "reno"]));
    assert_eq!(on_condition(&trials).verdict, None, "the finding's own figures are missing");
}

#[test]
fn what_does_not_hold_says_where() {
    let mut trials = as_published(1);
    the(&mut trials, ["dash", "obstacle", "reno"], 1)
        .metrics
        .insert("tcp.srtt_mean_ms".into(), Some(60.0));
    let finding = judge(&s0(), &trials).findings.remove(1);
    assert_eq!(finding.holds, Some(false));
    assert_eq!(finding.because, "not met: dash reno: ×1.25 is not ≤ 1.15; one repetition");
}

#[test]
fn what_lacks_is_told() {
    let mut trials = as_published(2);
    for repetition in [1, 2] {
        let trial = the(&mut trials, ["hls", "clear", "vegas"], repetition);
        (trial.valid, trial.skipped) = (false, true);
        trial.invalid_because = Some("this kernel has no congestion control `vegas`".into());
    }
    the(&mut trials, ["dash", "clear", "reno"], 1).valid = false;
    let found = judge(&s0(), &trials);
    let first = &found.findings[0];
    assert_eq!((first.holds, first.judged_in), (None, 0));
    assert_eq!(
        first.because,
        "hls · clear · vegas: was skipped: this kernel has no congestion control `vegas`"
    );
    // One repetition of two is not valid: of a comparison with the other cell, one repetition is left.
    let second = &found.findings[1];
    assert_eq!((second.holds, second.judged_in, second.held_in), (None, 1, 1));
    assert_eq!(
        second.because,
        "there is no 95 % interval: dash reno: only 1 of 2 repetitions has all values; held in 1 of 1 \
         repetitions; 1 more cannot be judged"
    );
    let entry = &found.tables[0].rows[2].entries[1];
    assert_eq!((entry.measured, entry.near), (None, None));
    assert!(entry.because.as_deref().unwrap().contains("was skipped"), "{entry:?}");
    assert_eq!(found.tables[0].near, (11, 11));
}

#[test]
fn a_run_of_other_axes_is_told() {
    let mut trials = as_published(1);
    let twice: Vec<TrialSummary> = trials.clone();
    for (trials, abr) in [(&mut trials, "bola"), (&mut twice.clone(), "mpc")] {
        trials.iter_mut().for_each(|trial| drop(trial.cell.insert("abr".into(), abr.into())));
    }
    // One value of the axis that the study has not is no doubt; two are.
    assert_eq!(judge(&s0(), &trials).findings[0].holds, Some(true));
    let mut more = twice;
    more.iter_mut().for_each(|trial| drop(trial.cell.insert("abr".into(), "mpc".into())));
    trials.extend(more);
    let finding = judge(&s0(), &trials).findings.remove(0);
    assert_eq!(finding.holds, None);
    assert!(finding.because.contains("several values of the axis `abr`"), "{}", finding.because);
    let nothing = judge(&s0(), &[]).findings.remove(1);
    assert_eq!(nothing.holds, None);
    assert!(
        nothing.because.starts_with("dash · obstacle · reno: was not run"),
        "{}",
        nothing.because
    );
}

#[test]
fn a_division_by_zero_is_no_verdict() {
    let mut trials = as_published(1);
    the(&mut trials, ["dash", "clear", "reno"], 1)
        .metrics
        .insert("tcp.srtt_mean_ms".into(), Some(0.0));
    let finding = judge(&s0(), &trials).findings.remove(1);
    assert_eq!(
        (finding.holds, finding.because.as_str()),
        (None, "dash reno: not a number: division by zero")
    );
}

/// What becomes of a formula over `streams` of Reno and Vegas, by repetition.
fn verdict_of(formula: &str, values: &[[f64; 2]]) -> Option<FindingVerdict> {
    let study = format!(
        "id = \"T\"\ntitle = \"A test\"\nsource = \"nobody\"\n[axes]\ntcp = [\"reno\", \"vegas\"]\n\
         [metrics]\nstreams = {{ metric = \"stream.streams\" }}\n\
         [[finding]]\nid = \"T.1\"\nclaim = \"It is so.\"\nholds = \"{formula}\"\n"
    );
    let mut trials = Vec::new();
    for (repetition, values) in (1..).zip(values) {
        for (tcp, value) in ["reno", "vegas"].into_iter().zip(values) {
            let cell: Cell = [("tcp".to_owned(), tcp.into())].into_iter().collect();
            let trial = measured(cell, &[("stream.streams", *value)]);
            trials.push(TrialSummary { repetition, ..trial });
        }
    }
    judge(&suiro_study::parse(&study, "t").unwrap(), &trials).findings.remove(0).verdict
}

#[test]
fn the_mean_of_equal_values_is_their_value() {
    for n in 1..=20 {
        let holds = |formula: &str, value: f64| {
            let verdict = verdict_of(formula, &vec![[value, value]; n]);
            assert_eq!(verdict, Some(FindingVerdict::Holds), "{n}: {formula}");
        };
        holds("streams[reno] = 8", 8.0);
        for relation in [">=", "<=", "="] {
            holds(&format!("streams[reno] {relation} 0.9"), 0.9);
            holds(&format!("mean(streams[reno], streams[vegas], 0.9) {relation} 0.9"), 0.9);
            // Values that differ from their bound by rounding alone equal it.
            holds(&format!("streams[reno] {relation} 0.3"), 0.1 + 0.2);
        }
    }
}

#[test]
fn equal_values_decide_against_a_number_alone() {
    let of = |formula: &str| verdict_of(formula, &[[0.0, 0.0]; 3]).unwrap();
    let measured = "streams[reno] < streams[vegas]";
    assert_eq!(of(measured), FindingVerdict::Inconclusive);
    assert_eq!(of(&format!("not ({measured})")), FindingVerdict::Inconclusive);
    for relation in ["<=", ">", ">="] {
        let formula = format!("streams[reno] {relation} streams[vegas]");
        assert_eq!(of(&formula), FindingVerdict::Inconclusive, "{formula}");
    }
    for formula in ["0 <= streams[reno]", "streams[reno] <= 0", "not (0 < streams[reno])"] {
        assert_eq!(of(formula), FindingVerdict::Holds, "{formula}");
    }
    for formula in ["0 < streams[reno]", "streams[reno] < 0", "not (0 >= streams[reno])"] {
        assert_eq!(of(formula), FindingVerdict::DoesNotHold, "{formula}");
    }
    // Of one repetition, the values decide alone.
    assert_eq!(verdict_of(measured, &[[0.0, 0.0]]), Some(FindingVerdict::DoesNotHold));
}
