//! Limits that were judged: in words, as Markdown, as JUnit XML and as JSON, in the results folder.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use suiro_analysis::{JudgedCell, JudgedLimit, LimitOutcome};
use suiro_outside::beside;

use crate::ReportError;
use crate::cell::label;
use crate::number::{decimals, scale, shown, significant, with_unit};
use crate::terminal::Ink;

/// The limits of a run and what became of them: `limits.json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Limits {
    /// The scenario's name.
    pub scenario: String,
    /// The baseline's folder, as typed; null without one.
    pub baseline: Option<String>,
    /// True if no limit is broken and each was judged or skipped.
    pub kept: bool,
    /// The limits.
    pub limits: Vec<JudgedLimit>,
}

/// The files that [`Limits::write`] makes.
#[derive(Debug, Clone)]
pub struct LimitFiles {
    /// All of it, for programs.
    pub json: PathBuf,
    /// A test case for each limit and cell, for CI systems.
    pub junit: PathBuf,
    /// A table, for a pull request.
    pub markdown: PathBuf,
}

/// The names of these files.
const FILES: [&str; 3] = ["limits.json", "limits.xml", "limits.md"];

impl Limits {
    /// From limits that were judged.
    pub fn new(scenario: &str, baseline: Option<&Path>, limits: Vec<JudgedLimit>) -> Self {
        let mut found = Self {
            scenario: scenario.to_owned(),
            baseline: baseline.map(|path| path.display().to_string()),
            kept: true,
            limits,
        };
        let bad = [LimitOutcome::Broken, LimitOutcome::NotJudged];
        found.kept = bad.iter().all(|outcome| found.count(*outcome) == 0);
        found
    }

    /// Pairs of limit and cell with this outcome.
    pub fn count(&self, outcome: LimitOutcome) -> usize {
        self.checks().filter(|(_, cell)| cell.outcome == outcome).count()
    }

    fn checks(&self) -> impl Iterator<Item = (&JudgedLimit, &JudgedCell)> {
        self.limits.iter().flat_map(|limit| limit.cells.iter().map(move |cell| (limit, cell)))
    }

    /// Writes `limits.json`, `limits.xml` and `limits.md` into a folder.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<LimitFiles, ReportError> {
        let json = serde_json::to_string_pretty(self).map_err(ReportError::Json)? + "\n";
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            match beside::write(&path, text.as_bytes()) {
                Ok(()) => Ok(path),
                Err(cause) => Err(ReportError::Io { path, cause }),
            }
        };
        let [json_name, junit_name, markdown_name] = FILES;
        Ok(LimitFiles {
            json: write(json_name, &json)?,
            junit: write(junit_name, &self.junit())?,
            markdown: write(markdown_name, &self.markdown())?,
        })
    }

    /// Removes these files from a folder, if it has them.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn remove(folder: &Path) -> Result<(), ReportError> {
        for path in FILES.map(|name| folder.join(name)) {
            match std::fs::remove_file(&path) {
                Err(cause) if cause.kind() != ErrorKind::NotFound => {
                    return Err(ReportError::Io { path, cause });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A line per limit and cell, those that were not kept first, for a terminal. `colour` adds ANSI colours.
    pub fn text(&self, colour: bool) -> String {
        let ink = Ink { colour };
        let mut out = format!("limits: {}\n", self.totals());
        let mut checks: Vec<_> = self.checks().collect();
        checks.sort_by_key(|(_, cell)| rank(cell.outcome));
        for (limit, cell) in checks {
            let words = words(cell.outcome);
            let words = match cell.outcome {
                LimitOutcome::Broken | LimitOutcome::NotJudged => ink.bad(words),
                LimitOutcome::Kept => ink.good(words),
                LimitOutcome::Skipped => ink.dim(words),
            };
            let name = named(limit);
            out.push_str(&format!(
                "  {words}  {name} in {}: {}\n",
                label(&cell.cell),
                found(limit, cell)
            ));
        }
        ink.safe(&out)
    }

    /// The first limit and cell that was not kept, or the first of all, with what was found; `None` if there is none.
    pub fn worst(&self) -> Option<String> {
        let (limit, cell) = self.checks().min_by_key(|(_, cell)| rank(cell.outcome))?;
        Some(format!("{} in {}: {}", limit.label, label(&cell.cell), found(limit, cell)))
    }

    fn totals(&self) -> String {
        let all = [
            LimitOutcome::Broken,
            LimitOutcome::NotJudged,
            LimitOutcome::Kept,
            LimitOutcome::Skipped,
        ];
        let counts = all.map(|outcome| (self.count(outcome), words(outcome)));
        let told = counts.iter().filter(|(n, _)| *n > 0).map(|(n, words)| format!("{n} {words}"));
        let told: Vec<String> = told.collect();
        if told.is_empty() {
            "no cell that they are for was run".to_owned()
        } else {
            told.join(", ")
        }
    }

    /// A table in GitHub's Markdown.
    pub fn markdown(&self) -> String {
        let cell =
            |text: &str| text.replace('\\', "\\\\").replace('|', "\\|").replace(['\n', '\r'], " ");
        let code = |text: &str| format!("`{}`", cell(text).replace('`', "'"));
        let mut out = format!(
            "### suiro: limits of {}: {}\n\n| | limit | cell | found |\n|---|---|---|---|\n",
            code(&self.scenario),
            self.totals()
        );
        let mut checks: Vec<_> = self.checks().collect();
        checks.sort_by_key(|(_, cell)| rank(cell.outcome));
        for (limit, one) in checks {
            let mark = match one.outcome {
                LimitOutcome::Kept => "✅ kept",
                LimitOutcome::Broken => "❌ **broken**",
                LimitOutcome::NotJudged => "❓ **not judged**",
                LimitOutcome::Skipped => "skipped",
            };
            let (name, place) = (code(&limit.limit), code(&label(&one.cell)));
            out.push_str(&format!(
                "| {mark} | {name} | {place} | {} |\n",
                cell(&found(limit, one))
            ));
        }
        if let Some(baseline) = &self.baseline {
            out.push_str(&format!("\nBaseline: {}\n", code(baseline)));
        }
        out
    }

    /// JUnit XML, in the form that Jenkins and GitLab read: a suite, and a test case for each limit and cell.
    pub fn junit(&self) -> String {
        let (broken, errors, skipped) = (
            self.count(LimitOutcome::Broken),
            self.count(LimitOutcome::NotJudged),
            self.count(LimitOutcome::Skipped),
        );
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"suiro {}\" tests=\"{}\" \
             failures=\"{broken}\" errors=\"{errors}\" skipped=\"{skipped}\">\n",
            xml(&self.scenario),
            self.checks().count()
        );
        for (limit, cell) in self.checks() {
            let (name, class) =
                (xml(&limit.limit), xml(&format!("{}.{}", self.scenario, label(&cell.cell))));
            let found = xml(&found(limit, cell));
            let content = match cell.outcome {
                LimitOutcome::Kept => format!("<system-out>{found}</system-out>"),
                LimitOutcome::Broken => format!("<failure message=\"{found}\"/>"),
                LimitOutcome::NotJudged => format!("<error message=\"{found}\"/>"),
                LimitOutcome::Skipped => format!("<skipped message=\"{found}\"/>"),
            };
            out.push_str(&format!(
                "    <testcase classname=\"{class}\" name=\"{name}\">{content}</testcase>\n"
            ));
        }
        out + "  </testsuite>\n</testsuites>\n"
    }
}

const fn rank(outcome: LimitOutcome) -> u8 {
    match outcome {
        LimitOutcome::Broken => 0,
        LimitOutcome::NotJudged => 1,
        LimitOutcome::Kept => 2,
        LimitOutcome::Skipped => 3,
    }
}

const fn words(outcome: LimitOutcome) -> &'static str {
    match outcome {
        LimitOutcome::Kept => "kept",
        LimitOutcome::Broken => "broken",
        LimitOutcome::NotJudged => "not judged",
        LimitOutcome::Skipped => "skipped",
    }
}

/// The limit, with its name if it has one.
fn named(limit: &JudgedLimit) -> String {
    match limit.name == limit.limit {
        true => limit.limit.clone(),
        false => format!("{} ({})", limit.limit, limit.name),
    }
}

/// `312 ms, over 250 ms (baseline 238 ms); kept in 1 of 3 repetitions`.
fn found(limit: &JudgedLimit, cell: &JudgedCell) -> String {
    let Some(value) = cell.value else {
        return cell.because.clone().unwrap_or_else(|| "not measured".to_owned());
    };
    let most = [cell.bound, cell.baseline].into_iter().flatten().fold(value.abs(), f64::max);
    let scale = scale(&limit.unit, most);
    // Different values that would look alike get the digits that distinguish them.
    let digits = (limit.digits..=12)
        .find(|digits| cell.bound.is_none_or(|bound| apart(value, bound, *digits)))
        .unwrap_or(12);
    let text = |value: f64| {
        let scaled = value / scale.factor;
        let text = match digits > limit.digits && value != 0.0 {
            true => format!("{scaled:.*}", decimals(significant(scaled, digits), digits)),
            false => shown(value, scale, digits),
        };
        with_unit(&text, scale.unit)
    };
    let mut out = text(value);
    if let Some(bound) = cell.bound {
        out.push_str(&format!(", limit {} {}", limit.relation, text(bound)));
    }
    if let Some(baseline) = cell.baseline {
        out.push_str(&format!(" (baseline {})", text(baseline)));
    }
    if cell.n > 1 && cell.bound.is_some() {
        out.push_str(&format!("; kept in {} of {} repetitions", cell.kept_in, cell.n));
    }
    if let Some(because) = &cell.because {
        out.push_str(&format!("; {because}"));
    }
    out
}

fn apart(one: f64, other: f64, digits: u8) -> bool {
    one == other || significant(one, digits) != significant(other, digits)
}

/// A text for an attribute or an element: XML 1.0 has no other control characters than these.
fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(tcp: &str, outcome: LimitOutcome, value: Option<f64>) -> JudgedCell {
        JudgedCell {
            cell: [("tcp".to_owned(), tcp.into())].into_iter().collect(),
            outcome,
            value,
            bound: Some(250.0),
            baseline: Some(238.0),
            n: 3,
            kept_in: 1,
            because: value.is_none().then(|| "no trial is valid".to_owned()),
        }
    }

    fn limits() -> Limits {
        let limit = JudgedLimit {
            name: "latency".into(),
            limit: "media.latency_p95_ms < baseline + 5 %".into(),
            metric: "media.latency_p95_ms".into(),
            label: "Latency".into(),
            unit: "ms".into(),
            digits: 3,
            relation: "<".into(),
            cells: vec![
                cell("reno", LimitOutcome::Kept, Some(249.96)),
                cell("a|b <&\"", LimitOutcome::Broken, Some(312.4)),
                cell("vegas", LimitOutcome::NotJudged, None),
            ],
        };
        Limits::new("quick", Some(Path::new("results/before")), vec![limit])
    }

    #[test]
    fn in_a_terminal_what_is_broken_comes_first() {
        insta::assert_snapshot!(limits().text(false), @r#"
        limits: 1 broken, 1 not judged, 1 kept
          broken  media.latency_p95_ms < baseline + 5 % (latency) in a|b <&": 312 ms, limit < 250 ms (baseline 238 ms); kept in 1 of 3 repetitions
          not judged  media.latency_p95_ms < baseline + 5 % (latency) in vegas: no trial is valid
          kept  media.latency_p95_ms < baseline + 5 % (latency) in reno: 249.96 ms, limit < 250.00 ms (baseline 238.00 ms); kept in 1 of 3 repetitions
        "#);
        assert!(!limits().kept);
    }

    #[test]
    fn nothing_is_zero_whatever_it_is_compared_with() {
        let of = |value: f64, bound: f64| {
            let mut limits = limits();
            let cell = &mut limits.limits[0].cells[0];
            (cell.value, cell.bound, cell.baseline) = (Some(value), Some(bound), Some(bound));
            found(&limits.limits[0], &limits.limits[0].cells[0])
        };
        let kept = "; kept in 1 of 3 repetitions";
        assert_eq!(of(0.0, 0.0), format!("0 ms, limit < 0 ms (baseline 0 ms){kept}"));
        assert_eq!(of(2.5, 0.0), format!("2.50 ms, limit < 0 ms (baseline 0 ms){kept}"));
        assert_eq!(of(0.0, 2.5), format!("0 ms, limit < 2.50 ms (baseline 2.50 ms){kept}"));
        assert_eq!(of(1.0, 1.0), format!("1.00 ms, limit < 1.00 ms (baseline 1.00 ms){kept}"));
    }

    #[test]
    fn markdown_is_a_table() {
        insta::assert_snapshot!(limits().markdown(), @r#"
        ### suiro: limits of `quick`: 1 broken, 1 not judged, 1 kept

        | | limit | cell | found |
        |---|---|---|---|
        | ❌ **broken** | `media.latency_p95_ms < baseline + 5 %` | `a\|b <&"` | 312 ms, limit < 250 ms (baseline 238 ms); kept in 1 of 3 repetitions |
        | ❓ **not judged** | `media.latency_p95_ms < baseline + 5 %` | `vegas` | no trial is valid |
        | ✅ kept | `media.latency_p95_ms < baseline + 5 %` | `reno` | 249.96 ms, limit < 250.00 ms (baseline 238.00 ms); kept in 1 of 3 repetitions |

        Baseline: `results/before`
        "#);
    }

    #[test]
    fn junit_is_xml_whatever_the_labels_are() {
        insta::assert_snapshot!(limits().junit(), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites>
          <testsuite name="suiro quick" tests="3" failures="1" errors="1" skipped="0">
            <testcase classname="quick.reno" name="media.latency_p95_ms &lt; baseline + 5 %"><system-out>249.96 ms, limit &lt; 250.00 ms (baseline 238.00 ms); kept in 1 of 3 repetitions</system-out></testcase>
            <testcase classname="quick.a|b &lt;&amp;&quot;" name="media.latency_p95_ms &lt; baseline + 5 %"><failure message="312 ms, limit &lt; 250 ms (baseline 238 ms); kept in 1 of 3 repetitions"/></testcase>
            <testcase classname="quick.vegas" name="media.latency_p95_ms &lt; baseline + 5 %"><error message="no trial is valid"/></testcase>
          </testsuite>
        </testsuites>
        "#);
        assert_eq!(xml("a\u{1}b\n"), "a\u{fffd}b ");
    }
}
