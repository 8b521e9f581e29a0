//! Published claims and tables compared with what was measured, for a terminal.

use suiro_record::words::FindingVerdict;
use suiro_record::{ComparedEntry, ComparedTable, Finding, Findings};

use super::{Ink, chars, left, right};
use crate::number::plain;

/// Columns that the words before a text take: `does not hold`, and two of space.
const LEAD: usize = 15;

/// Narrowest text; a terminal narrower than this wraps by itself.
const TEXT_MIN: usize = 24;

/// How findings are printed that could not be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unjudged {
    /// As the others, each with its reason.
    Whole,
    /// All of them on one line, by their names: after a run there may be many, such as those of cells that `--quick` leaves
    /// out.
    Named,
}

/// Every finding with its verdict, then the published tables next to the measured ones. Empty if there
/// are none. Lines are at most `width` characters where a word or a table's column allows.
pub fn findings_text(
    findings: &Findings,
    unjudged: Unjudged,
    width: usize,
    colour: bool,
) -> String {
    let ink = Ink { colour };
    if findings.findings.is_empty() && findings.tables.is_empty() {
        return String::new();
    }
    let study = format!("study {}", findings.study.as_deref().unwrap_or_default());
    let room = width.saturating_sub(chars(&study) + 2).max(TEXT_MIN);
    let indent = format!("\n{}", " ".repeat(chars(&study) + 2));
    let verdicts = wrapped(&verdicts(&findings.findings), room).join(&indent);
    let mut out = format!("{}  {verdicts}\n", ink.bold(&study));
    let named = |finding: &&Finding| unjudged == Unjudged::Named && finding.verdict.is_none();
    for finding in findings.findings.iter().filter(|finding| !named(finding)) {
        out.push_str(&one(finding, width, ink));
    }
    let names: Vec<&str> = findings.findings.iter().filter(named).map(|it| &*it.id).collect();
    if !names.is_empty() {
        let text = format!("not judged: {} (suiro findings DIR says why)", names.join(", "));
        let lines = wrapped(&text, width.saturating_sub(4).max(TEXT_MIN));
        out.push_str(&format!("\n  {}\n", ink.dim(&lines.join("\n    "))));
    }
    for table in &findings.tables {
        out.push_str(&compared(table, ink));
    }
    ink.safe(&out)
}

/// `5 of 7 findings hold, 1 does not, 1 cannot be judged`
fn verdicts(findings: &[Finding]) -> String {
    let count = |wanted| findings.iter().filter(|finding| finding.verdict == wanted).count();
    let [hold, fail, unsure] =
        [FindingVerdict::Holds, FindingVerdict::DoesNotHold, FindingVerdict::Inconclusive]
            .map(|verdict| count(Some(verdict)));
    let open = count(None);
    let mut text = format!("{hold} of {} findings hold", findings.len());
    if fail > 0 {
        text.push_str(&format!(", {fail} {}", if fail == 1 { "does not" } else { "do not" }));
    }
    if unsure > 0 {
        text.push_str(&format!(", {unsure} inconclusive"));
    }
    if open > 0 {
        text.push_str(&format!(", {open} cannot be judged"));
    }
    text
}

fn one(finding: &Finding, width: usize, ink: Ink) -> String {
    let verdict = match finding.verdict {
        Some(verdict) => {
            let text = left(verdict.name(), LEAD);
            match verdict {
                FindingVerdict::Holds => ink.good(&text),
                FindingVerdict::DoesNotHold => ink.bad(&text),
                FindingVerdict::Inconclusive => text,
            }
        }
        None => left("not judged", LEAD),
    };
    let indent = 4 + chars(&finding.id);
    let text = |text: &str| {
        let room = width.saturating_sub(indent + LEAD).max(TEXT_MIN);
        wrapped(text, room).join(&format!("\n{}", " ".repeat(indent + LEAD)))
    };
    let mut out = format!("\n  {}  {verdict}{}\n", ink.bold(&finding.id), text(&finding.claim));
    let parts = [
        ("published", finding.published.as_deref()),
        ("measured", finding.measured.as_deref()),
        ("because", Some(finding.because.as_str())),
    ];
    for (what, said) in parts {
        if let Some(said) = said {
            let what = ink.dim(&left(what, LEAD));
            out.push_str(&format!("{}{what}{}\n", " ".repeat(indent), text(said)));
        }
    }
    out
}

/// A text in lines of at most `width` characters, broken between words, but not between a number and its unit.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut words = text.split_whitespace().peekable();
    let mut lines = vec![String::new()];
    while let Some(word) = words.next() {
        let mut word = word.to_owned();
        while let Some(unit) = words.next_if(|next| word.ends_with(is_digit) && is_unit(next)) {
            word = format!("{word} {unit}");
        }
        let line = lines.last_mut().expect("there is one always");
        if line.is_empty() {
            line.push_str(&word);
        } else if chars(line) + 1 + chars(&word) <= width {
            line.push(' ');
            line.push_str(&word);
        } else {
            lines.push(word);
        }
    }
    lines
}

fn is_digit(last: char) -> bool {
    last.is_ascii_digit()
}

fn is_unit(word: &str) -> bool {
    let unit = word.trim_end_matches([',', ';', ':', '.', ')']);
    let units = ["%", "s", "ms", "µs", "B", "kB", "MB", "bit/s", "kbit/s", "Mbit/s", "Gbit/s"];
    units.contains(&unit)
}

/// A published table: in each place what was measured, what was printed, and their quotient.
fn compared(table: &ComparedTable, ink: Ink) -> String {
    let ComparedTable { id, title, tolerance, near, ordered, .. } = table;
    let units = table.rows.iter().flat_map(|row| row.entries.iter().map(|e| e.unit.as_str()));
    let mut units: Vec<&str> = units.collect();
    units.dedup();
    let unit = if let [unit] = units[..] { format!(", {unit}") } else { String::new() };
    let mut out = format!("\n  {}\n", ink.bold(&format!("table {id}  {title}{unit}")));
    let counts = format!(
        "measured / published; {} of {} within ×{tolerance}; {} of {} pairs in the published order",
        near.0, near.1, ordered.0, ordered.1
    );
    out.push_str(&format!("  {}\n\n", ink.dim(&counts)));
    let first = table.rows.iter().map(|row| chars(&row.title)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|column| {
            let entries = table.rows.iter().filter_map(|row| row.entries.get(column));
            let widest = entries.map(|entry| chars(&words(entry))).max().unwrap_or(0);
            widest.max(chars(&table.columns[column]))
        })
        .collect();
    let heads =
        table.columns.iter().zip(&widths).map(|(head, width)| ink.bold(&right(head, *width)));
    let mut line = |first: String, parts: Vec<String>| {
        out.push_str(format!("    {first}  {}", parts.join("  ")).trim_end());
        out.push('\n');
    };
    line(left("", first), heads.collect());
    for row in &table.rows {
        let parts = row.entries.iter().zip(&widths).map(|(entry, width)| {
            let text = right(&words(entry), *width);
            match entry.near {
                Some(true) => ink.good(&text),
                Some(false) => ink.bad(&text),
                None => ink.dim(&text),
            }
        });
        line(left(&row.title, first), parts.collect());
    }
    out
}

/// `342 / 369 ×0.93`; what is far bears a mark that needs no colour.
fn words(entry: &ComparedEntry) -> String {
    let published = entry.published;
    let Some(measured) = entry.measured else { return format!("– / {published}   ") };
    let ratio = entry.ratio.map(|ratio| format!(" ×{}", plain(ratio, 3))).unwrap_or_default();
    let mark = if entry.near == Some(false) { "!" } else { " " };
    format!("{} / {published}{ratio} {mark}", plain(measured, 3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use suiro_record::ComparedRow;

    #[test]
    fn a_number_stays_on_the_line_of_its_unit() {
        let text = "because the link fell from 8 Mbit/s to 300 kbit/s at 12.0 s; 7 packets";
        let lines = wrapped(text, 30);
        assert_eq!(
            lines,
            ["because the link fell from", "8 Mbit/s to 300 kbit/s at", "12.0 s; 7 packets"]
        );
        assert!(wrapped(text, 12).iter().any(|line| line == "300 kbit/s"));
    }

    fn finding(id: &str, verdict: Option<FindingVerdict>) -> Finding {
        Finding {
            id: id.into(),
            claim: "Vegas has the smallest mean window of the three in all four conditions.".into(),
            published: Some("Vegas 105 to 118 kbit".into()),
            measured: verdict.map(|_| "dash clear vegas 118 kbit < 342 kbit".into()),
            holds: verdict.and_then(FindingVerdict::truth),
            verdict,
            because: "held in 4 of 5 repetitions, not in 3".into(),
            formula: String::new(),
            note: None,
            judged_in: 5,
            held_in: 4,
        }
    }

    fn entry(published: f64, measured: Option<f64>) -> ComparedEntry {
        let ratio = measured.map(|measured| measured / published);
        ComparedEntry {
            metric: "tcp.cwnd_mean_bytes".into(),
            unit: "kbit".into(),
            published,
            measured,
            ratio,
            near: ratio.map(|ratio| (0.5..=2.0).contains(&ratio)),
            because: measured.is_none().then(|| "was not run".into()),
        }
    }

    fn all() -> Findings {
        let entries =
            vec![entry(369.0, Some(342.12)), entry(118.0, Some(512.0)), entry(342.0, None)];
        let table = ComparedTable {
            id: "4-1".into(),
            title: "Mean congestion window".into(),
            note: None,
            tolerance: 2.0,
            columns: ["Reno", "Vegas", "CUBIC"].map(Into::into).into(),
            rows: vec![ComparedRow { title: "DASH, clear".into(), entries }],
            near: (1, 2),
            ordered: (0, 1),
        };
        let verdicts = [
            ("S0.1", Some(FindingVerdict::Holds)),
            ("S0.2", Some(FindingVerdict::DoesNotHold)),
            ("S0.3", Some(FindingVerdict::Inconclusive)),
            ("S0.4", None),
        ];
        Findings {
            study: Some("S0".into()),
            findings: verdicts.map(|(id, verdict)| finding(id, verdict)).into(),
            tables: vec![table],
        }
    }

    #[test]
    fn verdicts_and_tables_read_well() {
        insta::assert_snapshot!(findings_text(&all(), Unjudged::Whole, 80, false));
    }

    #[test]
    fn after_a_run_those_not_judged_take_one_line() {
        let text = findings_text(&all(), Unjudged::Named, 80, false);
        let line = "  not judged: S0.4 (suiro findings DIR says why)";
        assert_eq!(text.lines().filter(|line| line.contains("S0.4")).collect::<Vec<_>>(), [line]);
        assert!(text.contains("\n  S0.3  inconclusive"), "{text}");
    }

    #[test]
    fn lines_keep_to_the_width_and_colour_changes_no_character() {
        let plain = findings_text(&all(), Unjudged::Whole, 64, false);
        let of_findings = plain.split("\n  table").next().unwrap();
        assert!(of_findings.lines().all(|line| chars(line) <= 64), "{plain}");
        let mut coloured = findings_text(&all(), Unjudged::Whole, 64, true);
        for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m"] {
            coloured = coloured.replace(code, "");
        }
        let trimmed: Vec<&str> = coloured.lines().map(str::trim_end).collect();
        assert_eq!(plain.lines().collect::<Vec<_>>(), trimmed);
        assert_eq!(findings_text(&Findings::default(), Unjudged::Whole, 80, true), "");
    }
}
