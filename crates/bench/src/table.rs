//! The table: one line per figure.

use std::fmt::Write;

use crate::{Figure, Target};

/// All figures in columns: name, value, target, peer, ratio, verdict.
pub fn table(figures: &[Figure]) -> String {
    let head = ["figure", "measured", "target", "peer", "ratio", ""].map(str::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(figures.iter().map(cells)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..6).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = format!("{:<1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(line, "  {cell:>width$}");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// One figure as a sentence.
pub fn line(figure: &Figure) -> String {
    let [name, value, target, peer, ratio, verdict] = cells(figure);
    let mut line = format!("{name}: {value}");
    if figure.target.is_some() {
        let _ = write!(
            line,
            " (target {target}{}{verdict})",
            if verdict.is_empty() { "" } else { ": " }
        );
    }
    if figure.peer.is_some() {
        let _ = write!(line, "; {peer}, ratio {ratio}");
    }
    line
}

fn cells(figure: &Figure) -> [String; 6] {
    let with_unit = |value: f64| format!("{} {}", short(value), figure.unit).trim_end().to_owned();
    let target = figure.target.map(|target| match target {
        Target::AtMost(value) => format!("≤ {}", with_unit(value)),
        Target::AtLeast(value) => format!("≥ {}", with_unit(value)),
        Target::OfPeer(share) => format!("≥ {} of the peer", short(share)),
    });
    let peer = figure.peer.as_ref().map(|peer| format!("{} {}", peer.name, with_unit(peer.value)));
    let verdict = figure.reached().map(|reached| if reached { "reached" } else { "missed" });
    [
        figure.name.clone(),
        with_unit(figure.value),
        target.unwrap_or_default(),
        peer.unwrap_or_default(),
        figure.ratio().map(short).unwrap_or_default(),
        verdict.unwrap_or_default().to_owned(),
    ]
}

/// Three significant digits; whole numbers whole.
fn short(value: f64) -> String {
    let digits = 2 - value.abs().max(1e-9).log10().floor() as i32;
    if value == value.trunc() || digits <= 0 {
        return format!("{value:.0}");
    }
    format!("{value:.*}", usize::try_from(digits).unwrap_or(0).min(9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let figures = [
            Figure::new("origin, segments of 2 MB", 2.5, "GB/s")
                .target(Target::OfPeer(0.8))
                .beside("nginx", 2.0),
            Figure::new("report, 100 trials", 6.25, "s").target(Target::AtMost(5.0)),
            Figure::new("link", 123.4, "ns each"),
        ];
        let expected = "\
figure                         measured             target        peer  ratio
origin, segments of 2 MB      2.50 GB/s  ≥ 0.800 of the peer  nginx 2 GB/s   1.25  reached
report, 100 trials               6.25 s              ≤ 5 s               1.25   missed
link                        123 ns each
";
        assert_eq!(squeezed(&table(&figures)), squeezed(expected));
        let widths: Vec<_> = table(&figures).lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths[1], widths[2], "the last column is aligned");
    }

    fn squeezed(text: &str) -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn a_figure_is_a_sentence() {
        let figure = Figure::new("report", 4.0, "s").target(Target::AtMost(5.0));
        assert_eq!(line(&figure), "report: 4 s (target ≤ 5 s: reached)");
        let figure = Figure::new("origin", 1.0, "GB/s").beside("nginx", 2.0);
        assert_eq!(line(&figure), "origin: 1 GB/s; nginx 2 GB/s, ratio 0.500");
    }

    #[test]
    fn numbers_have_three_digits() {
        for (value, text) in
            [(0.0, "0"), (0.01234, "0.0123"), (12.34, "12.3"), (12345.6, "12346"), (68.0, "68")]
        {
            assert_eq!(short(value), text);
        }
    }
}
