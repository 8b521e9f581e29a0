//! The report for people: a line per check, with how to fix it below.

use std::io::IsTerminal;

use super::{Check, Need, Report, State};

/// How to draw.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Columns of the screen.
    pub width: usize,
    /// Whether to colour.
    pub colour: bool,
}

/// Narrowest screen that is drawn for; narrower ones wrap by themselves.
const WIDTH_MIN: usize = 60;
/// Widest: longer lines are hard to read.
const WIDTH_MAX: usize = 120;

impl Style {
    /// For standard output: its width, and colours if it is a terminal and NO_COLOR is not set.
    pub fn of_standard_output() -> Self {
        let output = std::io::stdout();
        let terminal = output.is_terminal();
        let width = rustix::termios::tcgetwinsize(&output).map_or(0, |size| size.ws_col.into());
        let width = if width == 0 { 100 } else { width };
        let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        Self { width: width.clamp(WIDTH_MIN, WIDTH_MAX), colour }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Draws the whole report.
pub fn draw(report: &Report, style: &Style) -> String {
    let mut text = draw_checks(&report.checks, style);
    text.push('\n');
    text.push_str(&verdict(report, *style));
    text
}

/// Draws checks, group by group.
pub fn draw_checks(checks: &[Check], style: &Style) -> String {
    let names = checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    let mut group = "";
    for check in checks {
        if check.group != group {
            group = check.group;
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&style.paint("1", group));
            text.push('\n');
        }
        draw_check(&mut text, check, names, *style);
    }
    text
}

fn draw_check(text: &mut String, check: &Check, names: usize, style: Style) {
    let (mark, code) = match (check.state, check.need) {
        (State::Ok, _) => ("ok     ", "32"),
        (State::Limited, _) => ("limited", "33"),
        (State::Missing, Need::Optional) => ("missing", "33"),
        (State::Missing, Need::Required) => ("MISSING", "1;31"),
    };
    let indent = 2 + mark.len() + 1 + names + 2;
    let width = style.width - indent.min(style.width - 20);
    let lines = wrap(&format!("{} — {}", check.found, check.purpose), width);
    let name = format!("{:<names$}", check.name);
    for (number, line) in lines.iter().enumerate() {
        if number == 0 {
            text.push_str(&format!("  {} {name}  {line}\n", style.paint(code, mark)));
        } else {
            text.push_str(&format!("{:indent$}{line}\n", ""));
        }
    }
    // A command stays on one line, so that it can be copied.
    if let Some(mend) = &check.mend {
        text.push_str(&format!("{:indent$}{}\n", "", style.paint("36", &format!("→ {mend}"))));
    }
}

fn verdict(report: &Report, style: Style) -> String {
    let lacking: Vec<&str> = report
        .checks
        .iter()
        .filter(|c| c.need == Need::Required && c.state == State::Missing)
        .map(|c| c.name.as_str())
        .collect();
    if lacking.is_empty() {
        style.paint("32", "`suiro run` can work here.") + "\n"
    } else {
        let text = format!("`suiro run` cannot work here; missing: {}.", lacking.join(", "));
        style.paint("1;31", &text) + "\n"
    }
}

/// Breaks text between words so that lines have at most `width` characters, if no word is longer.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(state: State) -> Report {
        let well = Check::ok("kernel", "version", "everything", "6.18");
        let long = Check::ok("media", "ffmpeg", "encoding", "not found in any of the usual places");
        let bad = long.required().but(state, "make setup");
        Report { suiro: "0", can_run: state != State::Missing, checks: vec![well, bad] }
    }

    #[test]
    fn a_plain_table() {
        let style = Style { width: 60, colour: false };
        let expected = "\
kernel
  ok      version  6.18 — everything

media
  MISSING ffmpeg   not found in any of the usual places —
                   encoding
                   → make setup

`suiro run` cannot work here; missing: ffmpeg.
";
        assert_eq!(draw(&report(State::Missing), &style), expected);
    }

    #[test]
    fn colours_only_where_asked_for() {
        let plain = draw(&report(State::Limited), &Style { width: 80, colour: false });
        assert!(!plain.contains('\x1b') && plain.contains("limited ffmpeg"), "{plain}");
        assert!(plain.ends_with("`suiro run` can work here.\n"));
        let coloured = draw(&report(State::Limited), &Style { width: 80, colour: true });
        assert!(coloured.contains("\x1b[33mlimited\x1b[0m ffmpeg"), "{coloured}");
    }
}
