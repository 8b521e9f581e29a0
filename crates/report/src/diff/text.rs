//! A comparison of results folders for a terminal.

use suiro_analysis::{DiffVerdict, MetricDiff};

use super::{CAUSES, ComparedCell, Comparison, DiffFolder, Difference, Setting, SettingKind};
use crate::number::{Scale, decimals, scale, shown, significant};
use crate::page::PageMetric;
use crate::terminal::{Ink, chars, left, plural, right};

/// Metrics of a cell that are listed unless all are wanted; more are counted.
const LISTED: usize = 16;
/// Causes of a cell that are listed.
const CAUSES_LISTED: usize = 4;
/// Settings that are listed.
const SETTINGS: usize = 20;
/// Characters of a setting's value.
const VALUE: usize = 60;

/// A comparison in words: what differs between the folders, then for each cell the metrics that became worse or better.
/// `all` lists every metric. `colour` adds ANSI colours: give it only to a terminal.
pub fn diff_text(difference: &Difference, all: bool, colour: bool) -> String {
    let ink = Ink { colour };
    let mut out = String::new();
    for folder in &difference.folders {
        out.push_str(&format!("{}  {}\n", ink.bold(&folder.letter), described(folder)));
    }
    for comparison in &difference.comparisons {
        out.push_str(&compared(difference, comparison, all, ink));
    }
    let margin = difference.margin * 100.0;
    out.push_str(&format!(
        "\n  Differences: means, with 95 % intervals, by Student's t (pairs) or Welch's; worse and better: p adjusted for all metrics \
         ≤ 0.05;\n  same: identical, or within {margin} %.\n"
    ));
    ink.safe(&out)
}

fn described(folder: &DiffFolder) -> String {
    let DiffFolder { path, scenario, suiro, started, seed, trials, valid, .. } = folder;
    let when = started.as_ref().map_or("in virtual time".to_owned(), |at| format!("run {at}"));
    let trials = plural(*trials as usize, "trial");
    format!("{path}: {scenario}, {trials}, {valid} valid, seed {seed}, {when}, suiro {suiro}")
}

fn compared(difference: &Difference, comparison: &Comparison, all: bool, ink: Ink) -> String {
    let letters = [0, comparison.folder as usize].map(|it| &*difference.folders[it].letter);
    let mut out = format!("\n{}\n", ink.bold(&format!("{} to {}", letters[0], letters[1])));
    out.push_str(&settings(&comparison.settings));
    for (whose, cells) in
        [(letters[0], &comparison.only_first), (letters[1], &comparison.only_second)]
    {
        if !cells.is_empty() {
            out.push_str(&format!("  only in {whose}: {}\n", cells.join(", ")));
        }
    }
    if comparison.cells.is_empty() {
        out.push_str("  no cell of one matches one of the other\n");
    }
    for cell in &comparison.cells {
        out.push_str(&of_cell(&difference.metrics, cell, letters, (all, ink)));
    }
    out
}

fn settings(found: &[Setting]) -> String {
    let kinds = [
        (SettingKind::Scenario, "scenario"),
        (SettingKind::Version, "versions"),
        (SettingKind::Machine, "machine"),
    ];
    let mut out = String::new();
    let same: Vec<&str> = kinds
        .iter()
        .filter(|(kind, _)| found.iter().all(|it| it.kind != *kind))
        .map(|(_, words)| *words)
        .collect();
    if let Some((last, rest)) = same.split_last() {
        let (list, verb) = match rest {
            [] => ((*last).to_owned(), if *last == "versions" { "are" } else { "is" }),
            rest => (format!("{} and {last}", rest.join(", ")), "are"),
        };
        out.push_str(&format!("  {list} {verb} the same\n"));
    }
    let side = |text: &Option<String>| text.as_deref().map_or("–".to_owned(), short);
    for (kind, words) in kinds {
        let all: Vec<&Setting> = found.iter().filter(|it| it.kind == kind).collect();
        for Setting { name, first, second, .. } in all.iter().take(SETTINGS) {
            out.push_str(&format!("  {words}: {name}: {} → {}\n", side(first), side(second)));
        }
        if all.len() > SETTINGS {
            out.push_str(&format!("  {words}: and {} more\n", all.len() - SETTINGS));
        }
    }
    out
}

fn short(text: &str) -> String {
    match text.char_indices().nth(VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn of_cell(
    metrics: &[PageMetric],
    cell: &ComparedCell,
    letters: [&str; 2],
    (all, ink): (bool, Ink),
) -> String {
    let [first, second] = letters;
    let trials = match cell.diff.pairs {
        Some(pairs) => format!("{} of the same seed", plural(pairs as usize, "pair")),
        None => {
            format!("{} and {} trials, not paired", cell.diff.first_valid, cell.diff.second_valid)
        }
    };
    let mut out = format!("\n  {}  {}\n", ink.bold(&cell.label), ink.dim(&trials));
    let found: Vec<(&PageMetric, &MetricDiff)> = metrics
        .iter()
        .filter_map(|metric| Some((metric, cell.diff.metrics.get(&metric.name)?)))
        .collect();
    let mut listed: Vec<_> = found.iter().filter(|it| all || is_told(it.0, it.1)).collect();
    // Main metrics first: of the others there are many, and each main one has some that follow it.
    listed.sort_by_key(|(metric, found)| (!metric.main, rank(found.verdict)));
    let most = if all { usize::MAX } else { LISTED };
    out.push_str(&rows(listed.iter().take(most).map(|it| (it.0, it.1)).collect(), letters, ink));
    if listed.len() > most {
        out.push_str(&format!("    and {} more: --all lists them\n", listed.len() - most));
    }
    let causes = cell.causes.iter().take(CAUSES_LISTED).filter_map(|name| {
        let (metric, found) = found.iter().find(|(metric, _)| metric.name == *name)?;
        Some(cause(metric, found))
    });
    let causes: Vec<String> = causes.collect();
    if !causes.is_empty() {
        out.push_str(&format!("    causes, {first} to {second}: {}\n", causes.join("; ")));
    }
    out.push_str(&format!("    {}\n", ink.dim(&totals(&found))));
    out
}

/// What is listed without `all`: whatever became better or worse, and main metrics that changed, or of which there are too few
/// repetitions to say.
fn is_told(metric: &PageMetric, found: &MetricDiff) -> bool {
    match found.verdict {
        Some(DiffVerdict::Worse | DiffVerdict::Better) => true,
        Some(DiffVerdict::Higher | DiffVerdict::Lower) => metric.main,
        Some(DiffVerdict::TooNoisy) => metric.main && found.q.is_none(),
        Some(DiffVerdict::Same) => false,
        // Measured on one side only.
        None => metric.main && found.first.is_some() != found.second.is_some(),
    }
}

/// Worse first; what has no verdict last.
fn rank(verdict: Option<DiffVerdict>) -> (bool, Option<DiffVerdict>) {
    (verdict.is_none(), verdict)
}

/// A line per metric: verdict, name, unit, both means, difference and interval.
fn rows(listed: Vec<(&PageMetric, &MetricDiff)>, letters: [&str; 2], ink: Ink) -> String {
    let lines: Vec<(Option<DiffVerdict>, [String; 6])> = listed
        .into_iter()
        .map(|(metric, found)| (found.verdict, row(metric, found, letters)))
        .collect();
    let widths: Vec<usize> = (0..6)
        .map(|column| lines.iter().map(|(_, texts)| chars(&texts[column])).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for (verdict, [verdict_text, label, unit, first, second, difference]) in &lines {
        let verdict_text = left(verdict_text, widths[0]);
        let verdict_text = match verdict {
            Some(DiffVerdict::Worse) => ink.bad(&verdict_text),
            Some(DiffVerdict::Better) => ink.good(&verdict_text),
            _ => verdict_text,
        };
        let parts = [
            verdict_text,
            left(label, widths[1]),
            ink.dim(&left(unit, widths[2])),
            format!("{} → {}", right(first, widths[3]), left(second, widths[4])),
            difference.clone(),
        ];
        out.push_str(&format!("    {}\n", parts.join("  ").trim_end()));
    }
    out
}

fn row(metric: &PageMetric, found: &MetricDiff, [first, second]: [&str; 2]) -> [String; 6] {
    let verdict = match (found.verdict, found.first, found.second) {
        (Some(verdict), ..) => verdict.words().to_owned(),
        (None, Some(_), None) => format!("only in {first}"),
        (None, None, Some(_)) => format!("only in {second}"),
        (None, ..) => "not measured".to_owned(),
    };
    let most = [found.first, found.second].into_iter().flatten().map(f64::abs).fold(0.0, f64::max);
    let scale = scale(&metric.unit, most);
    let side = |value: Option<f64>| {
        value.map_or("–".to_owned(), |value| shown(value, scale, metric.digits))
    };
    [
        verdict,
        metric.label.clone(),
        scale.unit.to_owned(),
        side(found.first),
        side(found.second),
        interval(found, scale, metric.digits),
    ]
}

/// `+1.20 (+0.90 to +1.50)`.
fn interval(found: &MetricDiff, scale: Scale<'_>, digits: u8) -> String {
    let Some(difference) = found.difference.map(|it| it / scale.factor) else {
        return String::new();
    };
    let places = match difference == 0.0 {
        true => 0,
        false => decimals(significant(difference, digits), digits),
    };
    let signed = |value: f64| format!("{:+.places$}", value / scale.factor);
    let text = match difference == 0.0 {
        true => "0".to_owned(),
        false => format!("{difference:+.places$}"),
    };
    match (found.low, found.high) {
        (Some(low), Some(high)) if low < high => {
            format!("{text} ({} to {})", signed(low), signed(high))
        }
        _ => text,
    }
}

/// `rate step 12 % → 30 %`.
fn cause(metric: &PageMetric, found: &MetricDiff) -> String {
    let side = |value: Option<f64>| {
        value.map_or("–".to_owned(), |value| format!("{} %", shown(value * 100.0, PLAIN, 2)))
    };
    format!("{} {} → {}", lower(&metric.label), side(found.first), side(found.second))
}

const PLAIN: Scale<'_> = Scale { unit: "", factor: 1.0, counts: false };

/// A label within a sentence.
fn lower(label: &str) -> String {
    let mut letters = label.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().collect::<String>() + letters.as_str()
    })
}

/// How many metrics got each verdict.
fn totals(found: &[(&PageMetric, &MetricDiff)]) -> String {
    use DiffVerdict::{Better, Higher, Lower, Same, TooNoisy, Worse};
    let count =
        |verdict| found.iter().filter(|(_, metric)| metric.verdict == Some(verdict)).count();
    let groups = [Worse, Better, Higher, Lower, TooNoisy, Same];
    let counts = groups.map(|verdict| (count(verdict), verdict.words()));
    let told = counts.iter().filter(|(n, _)| *n > 0).map(|(n, words)| format!("{n} {words}"));
    let told: Vec<String> = told.collect();
    let few = found.iter().any(|(_, it)| it.verdict == Some(TooNoisy) && it.q.is_none());
    let few = if few { " (a verdict needs three repetitions: --repeat 3)" } else { "" };
    let causes = found.iter().any(|(metric, _)| metric.name.starts_with(CAUSES));
    let what = if causes { "metrics, with those of causes" } else { "metrics" };
    match told.is_empty() {
        true => "no metric was measured on both sides".to_owned(),
        false => format!("{what}: {}{few}", told.join(", ")),
    }
}
