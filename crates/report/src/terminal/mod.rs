//! The table of cells and main metrics for a terminal.

mod findings;

use std::collections::BTreeSet;

use suiro_analysis::{Better, CellSummary, Spread, VERDICT_LEAST, compare_some, standing_still};
use suiro_outside::printable;
use suiro_record::Summary;

use crate::Built;
use crate::assemble::metrics;
use crate::cell::label;
use crate::number::{margin, scale, shown};
use crate::page::PageMetric;
use crate::read::NO_REASON;

/// Up to this many cells stand side by side, if they fit; more stand below each other.
const CELLS_ABREAST: usize = 6;

/// Cells that stand below each other; more are in the page.
const CELLS_MAX: usize = 200;

/// Reasons of invalid trials that are printed; more are counted.
const REASONS: usize = 10;

/// Cells whose sentence is printed; those of more are on the page.
const BRIEFS: usize = 6;

/// What happened in each cell, in one sentence; the main metrics of every cell, with ± half the 95 % confidence interval
/// where trials were repeated; then the trials that are not valid, each with its reason; then where the page is.
///
/// Lines are at most `width` characters where a column's content allows. `colour` adds ANSI colours:
/// give it only to a terminal.
pub fn terminal_table(built: &Built, width: usize, colour: bool) -> String {
    let Built { summary, briefs, report, .. } = built;
    let ink = Ink { colour };
    let mut shown: Vec<PageMetric> = metrics(summary);
    shown.retain(|metric| metric.main);
    let main: Vec<&str> = shown.iter().map(|metric| metric.name.as_str()).collect();
    let cells = compare_some(&summary.trials, &main);
    shown.retain(|m| cells.iter().any(|c| c.metrics.get(&m.name).is_some_and(Option::is_some)));
    let mut out = format!(
        "{}\n{}",
        headline(summary, &cells, ink),
        sentences(briefs, cells.len() > 1, width, ink)
    );
    let more = cells.len().saturating_sub(CELLS_MAX);
    let mut columns: Vec<Column> =
        shown.iter().map(|metric| Column::of(metric, &cells, built.comparable)).collect();
    columns.iter_mut().for_each(|column| column.values.truncate(CELLS_MAX));
    let named = cells.iter().take(CELLS_MAX);
    let names: Vec<String> = named.map(|cell| name(cell, summary)).collect();
    if !columns.is_empty() {
        out.push('\n');
        for line in lines(&columns, &names, width, ink) {
            out.push_str(line.text.trim_end());
            out.push('\n');
        }
        if more > 0 {
            out.push_str(&format!("and {more} more cells: see the report\n"));
        }
        out.push_str(&notes(&cells));
    }
    out.push_str(&reasons(summary, ink));
    if let Some(line) = standing_still(&summary.trials) {
        out.push_str(&format!("\n{line}\n"));
    }
    out.push_str(&format!("\nreport: {}\n", report.display()));
    ink.safe(&out)
}

pub use findings::{Unjudged, findings_text};

/// The colours that are used here, as ECMA-48 SGR parameters: all that a text may do to a terminal.
const CODES: [&str; 5] = ["0", "1", "2", "31", "32"];

/// Adds colour, or not.
#[derive(Clone, Copy)]
pub(crate) struct Ink {
    pub colour: bool,
}

impl Ink {
    fn with(self, code: &str, text: &str) -> String {
        if self.colour && !text.trim().is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
    /// The whole text without the escapes of others: names, titles and reasons come from files.
    pub fn safe(self, text: &str) -> String {
        let mut safe = printable(text).into_owned();
        for code in CODES.iter().filter(|_| self.colour) {
            safe = safe.replace(&format!("\\x1b[{code}m"), &format!("\x1b[{code}m"));
        }
        safe
    }
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }
    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }
    pub fn good(self, text: &str) -> String {
        self.with("32", text)
    }
    pub fn bad(self, text: &str) -> String {
        self.with("31", text)
    }
}

pub(crate) fn plural(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// What "±" means, if it is printed.
fn notes(cells: &[CellSummary]) -> String {
    let repeated = || {
        let spreads = cells.iter().flat_map(|cell| cell.metrics.values().flatten());
        spreads.filter(|spread| spread.ci95.is_some()).map(|spread| spread.n)
    };
    let Some((least, most)) = repeated().min().zip(repeated().max()) else { return String::new() };
    let n = if least == most { most.to_string() } else { format!("{least} to {most}") };
    format!(
        "\n  ±: half the 95 % confidence interval of the mean (Student's t, {n} valid repetitions)\n"
    )
}

fn headline(summary: &Summary, cells: &[CellSummary], ink: Ink) -> String {
    let all = summary.trials.len();
    let skipped = summary.trials.iter().filter(|trial| trial.skipped).count();
    let run = all - skipped;
    let validity = match summary.trials.iter().filter(|trial| trial.valid).count() {
        _ if run == 0 => "nothing was run".into(),
        1 if run == 1 => "valid".into(),
        valid if valid == run => "all valid".into(),
        valid => ink.bad(&format!("{} of {run} not valid", run - valid)),
    };
    let (cells, trials) = (plural(cells.len(), "cell"), plural(all, "trial"));
    let skipped = if skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
    format!("{}  {cells}, {trials}, {validity}{skipped}", ink.bold(&summary.scenario))
}

/// A sentence for each cell, within the width; with the cell's name, unless it is the only one of the plan.
fn sentences(briefs: &[(String, String)], named: bool, width: usize, ink: Ink) -> String {
    let mut out = String::new();
    for (label, brief) in briefs.iter().take(BRIEFS) {
        let text = if named { format!("{label}: {brief}") } else { brief.clone() };
        let lines = findings::wrapped(&text, width.saturating_sub(4)).join("\n    ");
        let bold = format!("{}:", ink.bold(label));
        let lines = match named {
            true => lines.replacen(&format!("{label}:"), &bold, 1),
            false => lines,
        };
        out.push_str(&format!("\n  {lines}"));
    }
    if briefs.len() > BRIEFS {
        out.push_str(&format!("\n  and {} more: see the report", briefs.len() - BRIEFS));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// A cell's label, and how many of its trials count if not all do.
fn name(cell: &CellSummary, summary: &Summary) -> String {
    let all = cell.trials.len();
    let valid = cell.trials.iter().filter(|index| summary.trials[**index].valid).count();
    let label = label(&cell.cell);
    if valid == all { label } else { format!("{label} ({valid}/{all})") }
}

/// One metric of every cell.
struct Column {
    label: String,
    unit: String,
    /// Text, and whether it is the best; empty where nothing was measured.
    values: Vec<(String, bool)>,
}

impl Column {
    /// If the cells are not comparable, none is the best.
    fn of(metric: &PageMetric, cells: &[CellSummary], comparable: bool) -> Self {
        let spreads: Vec<_> =
            cells.iter().map(|c| c.metrics.get(&metric.name).copied().flatten()).collect();
        let means = spreads.iter().flatten().map(|spread| spread.mean.abs());
        let scale = scale(&metric.unit, means.fold(0.0, f64::max));
        let text = |spread: &Spread| shown(spread.mean, scale, metric.digits);
        let best = if comparable { best(metric, &spreads, text) } else { BTreeSet::new() };
        let values = spreads.iter().enumerate().map(|(index, spread)| {
            let Some(spread) = spread else { return ("–".into(), false) };
            let mut text = text(spread);
            if let Some(half) = spread.ci95 {
                let margin = margin(half, spread.mean, scale, metric.digits);
                text.push_str(&format!(" ± {margin}"));
            }
            (text, best.contains(&index))
        });
        let values = values.collect();
        Self { label: metric.label.clone(), unit: scale.unit.to_owned(), values }
    }
}

/// Which values are the best: the best mean, and those whose 95 % intervals overlap with its own or that look the same. None
/// if that is so of all, if one has fewer repetitions than a verdict needs, or if it does not matter. `rank.ts` has the same rule.
fn best(
    metric: &PageMetric,
    spreads: &[Option<Spread>],
    text: impl Fn(&Spread) -> String,
) -> BTreeSet<usize> {
    let better = |a: &Spread, b: &Spread| match metric.better {
        Better::Higher => b.mean.total_cmp(&a.mean),
        Better::Lower | Better::Neither => a.mean.total_cmp(&b.mean),
    };
    let measured = || spreads.iter().flatten();
    let first = measured().min_by(|a, b| better(a, b));
    let enough = measured().all(|spread| spread.n >= VERDICT_LEAST);
    let Some(first) = first.filter(|_| enough && metric.better != Better::Neither) else {
        return BTreeSet::new();
    };
    let half = |spread: &Spread| spread.ci95.unwrap_or(f64::INFINITY);
    let alike = |spread: &Spread| {
        let apart = (spread.mean - first.mean).abs() > half(spread) + half(first);
        !apart || text(spread) == text(first)
    };
    let places = spreads.iter().enumerate();
    let best: BTreeSet<_> =
        places.filter(|(_, s)| s.as_ref().is_some_and(alike)).map(|(index, _)| index).collect();
    if best.len() == measured().count() { BTreeSet::new() } else { best }
}

/// A line and how many characters it shows, colour apart.
struct Line {
    text: String,
    width: usize,
}

pub(crate) fn chars(text: &str) -> usize {
    text.chars().count()
}

pub(crate) fn left(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(chars(text))))
}

pub(crate) fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(chars(text))))
}

fn line(width: usize, parts: &[String]) -> Line {
    Line { text: format!("  {}", parts.join("  ")), width }
}

/// The table, cells side by side if they are few and fit.
fn lines(columns: &[Column], names: &[String], width: usize, ink: Ink) -> Vec<Line> {
    if names.len() <= CELLS_ABREAST {
        let abreast = abreast(columns, names, ink);
        if abreast.iter().all(|line| line.width <= width) {
            return abreast;
        }
    }
    stacked(columns, names, width, ink)
}

/// Cells side by side, a line per metric.
fn abreast(columns: &[Column], names: &[String], ink: Ink) -> Vec<Line> {
    let labels = columns.iter().map(|c| chars(&c.label)).max().unwrap_or(0);
    let units = columns.iter().map(|c| chars(&c.unit)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..names.len())
        .map(|cell| {
            let values = columns.iter().map(|column| chars(&column.values[cell].0));
            values.max().unwrap_or(0).max(chars(&names[cell]))
        })
        .collect();
    let width = 2 + labels + 2 + units + widths.iter().map(|w| w + 2).sum::<usize>();
    let mut head = vec![left("", labels), left("", units)];
    head.extend(names.iter().zip(&widths).map(|(name, width)| ink.bold(&right(name, *width))));
    let mut lines = vec![line(width, &head)];
    for column in columns {
        let mut parts = vec![left(&column.label, labels), ink.dim(&left(&column.unit, units))];
        parts.extend(
            column.values.iter().zip(&widths).map(|(value, width)| padded(value, *width, ink)),
        );
        lines.push(line(width, &parts));
    }
    lines
}

fn padded((text, best): &(String, bool), width: usize, ink: Ink) -> String {
    let text = right(text, width);
    if *best { ink.good(&text) } else { text }
}

/// A line per cell, metrics side by side, in as many blocks as the width needs.
fn stacked(columns: &[Column], names: &[String], width: usize, ink: Ink) -> Vec<Line> {
    let first = names.iter().map(|name| chars(name)).max().unwrap_or(0);
    let of = |column: &Column| {
        let values = column.values.iter().map(|(text, _)| chars(text)).max().unwrap_or(0);
        values.max(chars(&column.label)).max(chars(&column.unit))
    };
    let mut lines = Vec::new();
    let mut rest = columns;
    while !rest.is_empty() {
        let (mut taken, mut used) = (0, 2 + first);
        while taken < rest.len() && (taken == 0 || used + 2 + of(&rest[taken]) <= width) {
            used += 2 + of(&rest[taken]);
            taken += 1;
        }
        let (block, after) = rest.split_at(taken);
        let block: Vec<(&Column, usize)> =
            block.iter().map(|column| (column, of(column))).collect();
        if !lines.is_empty() {
            lines.push(line(0, &[]));
        }
        let row = |start: String, part: &dyn Fn(&Column, usize) -> String| {
            let parts = block.iter().map(|(column, width)| part(column, *width));
            let parts: Vec<String> = std::iter::once(start).chain(parts).collect();
            line(used, &parts)
        };
        lines.push(row(left("", first), &|c, wide| ink.bold(&right(&c.label, wide))));
        lines.push(row(left("", first), &|c, wide| ink.dim(&right(&c.unit, wide))));
        for (cell, name) in names.iter().enumerate() {
            lines.push(row(left(name, first), &|c, wide| padded(&c.values[cell], wide, ink)));
        }
        rest = after;
    }
    lines
}

fn reasons(summary: &Summary, ink: Ink) -> String {
    let invalid: Vec<_> = summary.trials.iter().filter(|trial| !trial.valid).collect();
    let mut out = String::new();
    for trial in invalid.iter().take(REASONS) {
        let why = trial.invalid_because.as_deref().unwrap_or(NO_REASON);
        let which = format!("{} #{}", label(&trial.cell), trial.repetition);
        let verdict = if trial.skipped { ink.dim("skipped") } else { ink.bad("not valid") };
        // A remedy stands on a line of its own.
        let why = why.replace('\n', "\n    ");
        out.push_str(&format!("\n  {verdict} {which}: {why}"));
    }
    if invalid.len() > REASONS {
        out.push_str(&format!("\n  and {} more that are not valid", invalid.len() - REASONS));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use suiro_record::{Findings, TrialSummary};
    use suiro_units::Seed;

    fn trial(tcp: &str, repetition: u32, goodput: f64, invalid: Option<&str>) -> TrialSummary {
        TrialSummary {
            cell: [("tcp".to_owned(), tcp.into())].into_iter().collect(),
            repetition,
            seed: Seed(1),
            valid: invalid.is_none(),
            invalid_because: invalid.map(Into::into),
            skipped: false,
            metrics: [
                ("flow.goodput_mean_bps".to_owned(), Some(goodput)),
                ("player.stalls".to_owned(), Some(f64::from(repetition))),
                ("player.stall_s".to_owned(), None),
                ("link.down.loss_ratio".to_owned(), Some(0.0123)),
                ("tcp.cwnd_mean_bytes".to_owned(), Some(goodput / 90.0)),
            ]
            .into(),
        }
    }

    fn built(summary: Summary, report: &str) -> Built {
        Built {
            summary,
            findings: Findings::default(),
            briefs: Vec::new(),
            comparable: true,
            longest: Vec::new(),
            report: report.into(),
            report_bytes: 0,
        }
    }

    fn two_cells() -> Summary {
        let trials = vec![
            trial("reno", 1, 3.8e6, None),
            trial("reno", 2, 4.0e6, None),
            trial("cubic", 1, 4.2e6, None),
            trial("cubic", 2, 4.3e6, Some("the link was late: p99 900 µs, at most 500 µs")),
        ];
        Summary { scenario: "quick".into(), trials, ..Summary::default() }
    }

    #[test]
    fn few_cells_stand_side_by_side() {
        insta::assert_snapshot!(terminal_table(&built(two_cells(), "D/report.html"), 80, false), @r"
        quick  2 cells, 4 trials, 1 of 4 not valid

                                            reno  cubic (1/2)
          Goodput            Mbit/s  3.90 ± 1.27         4.20
          Stalls             times   1.50 ± 6.35            1
          Congestion window  kB      43.3 ± 14.1         46.7
          Loss, down         %       1.23 ± 0.00         1.23

          ±: half the 95 % confidence interval of the mean (Student's t, 2 valid repetitions)

          not valid cubic #2: the link was late: p99 900 µs, at most 500 µs

        report: D/report.html
        ");
    }

    #[test]
    fn intervals_are_of_as_many_repetitions_as_cells_have() {
        let table = |counts: [u32; 2]| {
            let cells = ["reno", "cubic"].into_iter().zip(counts);
            let trials = cells.flat_map(|(tcp, n)| {
                (1..=n).map(move |at| trial(tcp, at, 4e6 + f64::from(at), None))
            });
            let summary = Summary { trials: trials.collect(), ..two_cells() };
            terminal_table(&built(summary, "r"), 80, false)
        };
        assert!(table([3, 3]).contains("(Student's t, 3 valid repetitions)"));
        assert!(table([2, 4]).contains("(Student's t, 2 to 4 valid repetitions)"));
        // One repetition has no interval.
        assert!(table([1, 4]).contains("(Student's t, 4 valid repetitions)"));
    }

    #[test]
    fn a_sentence_names_its_cell_unless_the_plan_has_one() {
        let sentence = |summary| {
            let briefs = vec![("reno".to_owned(), "no stall".to_owned())];
            let built = Built { briefs, ..built(summary, "r") };
            terminal_table(&built, 80, false).lines().nth(2).map(str::to_owned)
        };
        assert_eq!(sentence(two_cells()).as_deref(), Some("  reno: no stall"));
        let one = Summary { trials: vec![trial("reno", 1, 4e6, None)], ..two_cells() };
        assert_eq!(sentence(one).as_deref(), Some("  no stall"));
    }

    #[test]
    fn many_cells_stand_below_each_other_within_the_width() {
        let names = ["reno", "cubic", "vegas", "bbr", "illinois", "westwood", "a-long-name"];
        let trials =
            names.iter().zip(1u8..).map(|(tcp, n)| trial(tcp, 1, 1e5 * f64::from(n), None));
        let summary =
            Summary { scenario: "quick".into(), trials: trials.collect(), ..Summary::default() };
        let table = terminal_table(&built(summary, "D/report.html"), 60, false);
        assert!(table.lines().all(|line| chars(line) <= 60), "{table}");
        insta::assert_snapshot!(table, @r"
        quick  7 cells, 7 trials, all valid

                       Goodput  Stalls  Congestion window
                        kbit/s   times                 kB
          reno             100       1               1.11
          cubic            200       1               2.22
          vegas            300       1               3.33
          bbr              400       1               4.44
          illinois         500       1               5.56
          westwood         600       1               6.67
          a-long-name      700       1               7.78

                       Loss, down
                                %
          reno               1.23
          cubic              1.23
          vegas              1.23
          bbr                1.23
          illinois           1.23
          westwood           1.23
          a-long-name        1.23

        report: D/report.html
        ");
    }

    #[test]
    fn colour_changes_no_character() {
        let plain = terminal_table(&built(two_cells(), "r"), 80, false);
        let mut coloured = terminal_table(&built(two_cells(), "r"), 80, true);
        assert_ne!(plain, coloured);
        for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m"] {
            coloured = coloured.replace(code, "");
        }
        let trimmed: Vec<&str> = coloured.lines().map(str::trim_end).collect();
        assert_eq!(plain.lines().collect::<Vec<_>>(), trimmed);
    }

    #[test]
    fn nothing_is_the_best_of_single_values_or_of_other_links() {
        let green = |summary: Summary, comparable: bool| {
            let built = Built { comparable, ..built(summary, "r") };
            terminal_table(&built, 80, true).contains("\x1b[32m")
        };
        let of = |cubic: [f64; 3]| {
            let trials = |tcp, values: [f64; 3]| {
                (1..).zip(values).map(move |(n, value)| trial(tcp, n, value, None))
            };
            let trials = trials("reno", [3.8e6, 3.9e6, 4.0e6]).chain(trials("cubic", cubic));
            Summary { scenario: "quick".into(), trials: trials.collect(), ..Summary::default() }
        };
        let apart = of([5.0e6, 5.1e6, 5.2e6]);
        assert!(green(apart.clone(), true));
        assert!(!green(apart, false), "the cells' links differ");
        assert!(!green(of([3.0e6, 4.1e6, 5.2e6]), true), "the intervals overlap");
        assert!(!green(two_cells(), true), "one cell has a single valid trial");
    }

    #[test]
    fn escapes_of_a_strangers_folder_are_written_out() {
        let mut summary = two_cells();
        summary.scenario = "\x1b]0;owned\x07quick".into();
        summary.trials[0].cell["tcp"] = "\x1b[2Jreno".into();
        summary.trials[3].invalid_because = Some("\x1b[8mhidden".into());
        for colour in [false, true] {
            let mut table = terminal_table(&built(summary.clone(), "r"), 80, colour);
            for text in [r"\x1b]0;owned\x07quick", r"\x1b[2Jreno", r"\x1b[8mhidden"] {
                assert!(table.contains(text), "{text} in {table}");
            }
            CODES.iter().for_each(|code| table = table.replace(&format!("\x1b[{code}m"), ""));
            assert!(!table.contains('\x1b'), "{table:?}");
        }
    }

    #[test]
    fn what_was_skipped_is_no_failure() {
        let lacks =
            "this kernel has no congestion control `vegas`\nhint: sudo suiro tcp load vegas";
        let skipped = TrialSummary {
            skipped: true,
            metrics: Default::default(),
            ..trial("vegas", 1, 0.0, Some(lacks))
        };
        let trials = vec![trial("reno", 1, 3.8e6, None), skipped];
        let summary = Summary { scenario: "quick".into(), trials, ..Summary::default() };
        insta::assert_snapshot!(terminal_table(&built(summary, "r"), 80, false), @r"
        quick  2 cells, 2 trials, valid, 1 skipped

                                     reno  vegas (0/1)
          Goodput            Mbit/s  3.80            –
          Stalls             times      1            –
          Congestion window  kB      42.2            –
          Loss, down         %       1.23            –

          skipped vegas #1: this kernel has no congestion control `vegas`
            hint: sudo suiro tcp load vegas

        report: r
        ");
    }

    #[test]
    fn nothing_run_is_told() {
        let table = terminal_table(&built(Summary::default(), "r"), 80, false);
        assert!(table.contains("nothing was run"), "{table}");
    }
}
