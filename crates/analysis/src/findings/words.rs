//! Findings in words.

use suiro_record::words::FindingVerdict;
use suiro_study::formula::Relation;
use suiro_study::unit::Unit;

use super::evaluate::{Apart, Compared, Figure, Judged};
use crate::stats::Spread;

/// Comparisons and reasons told; more are counted.
const TOLD: usize = 12;

/// What was measured: the figures of every comparison, those that fail marked. `None` if there are
/// none.
pub(super) fn measured<'a>(judged: impl Iterator<Item = &'a Judged>) -> Option<String> {
    let parts: Vec<String> =
        judged.flat_map(|judged| judged.compared.iter().map(sentence)).collect();
    (!parts.is_empty()).then(|| told(&parts, "; "))
}

/// Where the comparisons that do not hold do not; `None` if all do.
pub(super) fn failures(judged: &Judged) -> Option<String> {
    let parts: Vec<String> = judged
        .compared
        .iter()
        .filter(|compared| !compared.holds)
        .map(|compared| {
            let (place, wanted) = (subject(compared), wanted(compared));
            if place.is_empty() { wanted } else { format!("{place}: {wanted}") }
        })
        .collect();
    (!parts.is_empty()).then(|| format!("not met: {}", told(&parts, "; ")))
}

/// Where the margins of comparisons are less than the repetitions vary, or not known; `None` if nowhere.
pub(super) fn unsure(judged: &Judged) -> Option<String> {
    let unsure = |compared: &&Compared| compared.verdict == FindingVerdict::Inconclusive;
    let all: Vec<&Compared> = judged.compared.iter().filter(unsure).collect();
    let parts = |of: &dyn Fn(&Compared) -> Option<String>| -> Vec<String> {
        let placed = |compared: &&Compared| {
            let (text, place) = (of(compared)?, subject(compared));
            Some(if place.is_empty() { text } else { format!("{place}: {text}") })
        };
        all.iter().filter_map(placed).collect()
    };
    let within = parts(&|compared| {
        let Spread { mean, ci95, n, .. } = compared.margin.as_ref()?;
        let of = |value| number(&Figure { value, noun: None, ..compared.left.clone() });
        Some(format!("margin {} ± {} over {n} repetitions", of(*mean), of((*ci95)?)))
    });
    let apart = parts(&|compared| {
        let Apart { some, all } = compared.apart?;
        Some(match all {
            0 => format!("none of {some} repetitions has all values"),
            _ => format!("only {all} of {some} repetitions has all values"),
        })
    });
    let includes = || format!("the 95 % interval includes zero: {}", told(&within, "; "));
    let lacks = || format!("there is no 95 % interval: {}", told(&apart, "; "));
    let clauses = [(!within.is_empty()).then(includes), (!apart.is_empty()).then(lacks)];
    let clauses: Vec<String> = clauses.into_iter().flatten().collect();
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

/// Why figures lack.
pub(super) fn missing(reasons: &[String]) -> String {
    told(reasons, "; ")
}

fn told(parts: &[String], between: &str) -> String {
    let mut text = parts.iter().take(TOLD).cloned().collect::<Vec<_>>().join(between);
    if parts.len() > TOLD {
        text.push_str(&format!("{between}and {} more", parts.len() - TOLD));
    }
    text
}

/// `dash clear 118 kbit < 342 kbit`; of a bound only what was measured.
fn sentence(compared: &Compared) -> String {
    let Compared { left, right, relation, bound, .. } = compared;
    let left_text = number(left);
    let text = match relation {
        _ if *bound => left_text,
        Relation::Within(_) => format!("{left_text} compared with {}", number(right)),
        _ => format!("{left_text} {} {}", sign(left.value, right.value), number(right)),
    };
    match (subject(compared), &left.title) {
        (subject, _) if subject.is_empty() => text,
        (subject, Some(_)) => format!("{subject}: {text}"),
        (subject, None) => format!("{subject} {text}"),
    }
}

/// Of which cells and of what a comparison is.
fn subject(compared: &Compared) -> String {
    let parts = [Some(compared.place.as_str()), compared.left.title.as_deref()];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// What was to hold and did not.
fn wanted(compared: &Compared) -> String {
    let (left, right) = (number(&compared.left), number(&compared.right));
    let relation = match compared.relation {
        Relation::Less => "<".into(),
        Relation::AtMost => "≤".into(),
        Relation::Greater => ">".into(),
        Relation::AtLeast => "≥".into(),
        Relation::Equal => "=".into(),
        Relation::Unequal => "≠".into(),
        Relation::Within(share) => format!("within {} % of", digits(share * 100.0)),
    };
    format!("{left} is not {relation} {right}")
}

fn sign(left: f64, right: f64) -> &'static str {
    match left.partial_cmp(&right) {
        Some(std::cmp::Ordering::Less) => "<",
        Some(std::cmp::Ordering::Greater) => ">",
        _ => "=",
    }
}

fn number(figure: &Figure) -> String {
    let Unit { name, factor, .. } = figure.unit;
    let text = digits(figure.value / factor);
    match &figure.noun {
        Some(noun) => format!("{text} {noun}"),
        None if figure.quotient => format!("×{text}"),
        None if name.is_empty() => text,
        None => format!("{text} {name}"),
    }
}

/// Three significant digits in plain decimals; whole numbers in full.
fn digits(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e9 {
        return format!("{value:.0}");
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = usize::try_from((2 - magnitude).clamp(0, 6)).unwrap_or(0);
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::digits;

    #[test]
    fn three_digits_are_enough() {
        assert_eq!(digits(117.84), "118");
        assert_eq!(digits(1.1347), "1.13");
        assert_eq!(digits(1024.4), "1024");
        assert_eq!(digits(0.0), "0");
        assert_eq!(digits(0.01234), "0.0123");
        assert_eq!(digits(3.0), "3");
    }
}
