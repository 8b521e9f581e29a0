//! Limits on metrics: what a run must keep to.
//!
//! | limit | it is kept if, in each cell, the mean over the valid repetitions is |
//! |---|---|
//! | `media.latency_p95_ms < 250` | below 250 in the metric's own unit |
//! | `flow.goodput_mean_bps >= 2 Mbit/s` | at least that |
//! | `player.stall_s <= baseline` | at most what the same cell of a stored run has |
//! | `flow.goodput_mean_bps >= baseline - 5 %` | not more than 5 % below it |
//! | `media.latency_p95_ms <= baseline + 10 ms` | at most 10 ms above it |
//! | `tcp=reno, abr=bola: player.stall_s < 1` | below 1, in the cells with these labels |

use std::ops::Range;

use suiro_strict::{Refusal, Span};

use crate::formula::Relation;
use crate::lex::{Token, tokens};
use crate::unit::{self, Dimension, Unit};

/// Longest limit, in bytes.
pub const LIMIT_MAX: usize = 300;

/// A limit on a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// As it was written.
    pub text: String,
    /// The labels of the cells that it is for, by axis; empty for all cells.
    pub only: Vec<(String, String)>,
    /// The metric of the summary.
    pub metric: String,
    /// How its value must stand to the bound: `<`, `<=`, `>` or `>=`.
    pub relation: Relation,
    /// The bound.
    pub bound: Bound,
}

/// What a metric is compared with, in the metric's own unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// A number.
    Value(f64),
    /// What the same cell of the baseline has, and a `share` of its size, and `more`.
    Baseline {
        /// A share of the size, whatever the sign; 0.05 of `baseline + 5 %`.
        share: f64,
        /// A number that is added.
        more: f64,
    },
}

impl Limit {
    /// Whether a run with these axes, each with its labels, has cells that it is for.
    ///
    /// # Errors
    /// There is no such axis or label, or it names an axis twice: no cell has two labels of one axis.
    pub fn check_labels(&self, axes: &[(&str, Vec<&str>)]) -> Result<(), Refusal<()>> {
        for (place, (name, label)) in self.only.iter().enumerate() {
            let Some((_, labels)) = axes.iter().find(|(axis, _)| axis == name) else {
                let refusal = Refusal::new((), format!("there is no axis `{name}`"));
                return Err(refusal.instead(name, axes.iter().map(|(axis, _)| *axis)));
            };
            if !labels.contains(&&**label) {
                let refusal = Refusal::new((), format!("the axis `{name}` has no value `{label}`"));
                return Err(refusal.instead(label, labels.iter().copied()));
            }
            if self.only[..place].iter().any(|(axis, _)| axis == name) {
                let refusal = Refusal::new((), format!("it names the axis `{name}` twice"));
                return Err(refusal.hint("write a limit for each value"));
            }
        }
        Ok(())
    }
}

impl Bound {
    /// The bound, given the baseline's value; `None` if it needs one that there is not.
    pub fn value(self, baseline: Option<f64>) -> Option<f64> {
        match self {
            Self::Value(value) => Some(value),
            Self::Baseline { share, more } => {
                baseline.map(|value| value + share * value.abs() + more)
            }
        }
    }

    /// Whether it needs a baseline.
    pub const fn needs_baseline(self) -> bool {
        matches!(self, Self::Baseline { .. })
    }
}

/// The relation of a limit, as it is written.
pub const fn sign(relation: Relation) -> &'static str {
    match relation {
        Relation::Less => "<",
        Relation::AtMost => "<=",
        Relation::Greater => ">",
        Relation::AtLeast => ">=",
        Relation::Equal | Relation::Unequal | Relation::Within(_) => "=",
    }
}

/// The relations of limits; longer ones first.
const RELATIONS: [(&str, Relation); 4] = [
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("<", Relation::Less),
    (">", Relation::Greater),
];

/// Reads a limit. Whether there is such a metric is not checked: the catalogue is another crate's.
///
/// # Errors
/// What is wrong with it, and which bytes.
pub fn parse(text: &str) -> Result<Limit, Refusal<Span>> {
    if text.len() > LIMIT_MAX {
        let message = format!("a limit of {} bytes", text.len());
        return Err(Refusal::new(0..text.len(), message).expected(format!("at most {LIMIT_MAX}")));
    }
    let (only, start) = match text.split_once(':') {
        Some((labels, _)) => (selected(labels)?, labels.len() + 1),
        None => (Vec::new(), 0),
    };
    let rest = &text[start..];
    let found = rest.find(['<', '>', '=', '!']).map(|at| (at, &rest[at..]));
    let relation = found.and_then(|(at, from)| {
        let (sign, relation) = RELATIONS.iter().find(|(sign, _)| from.starts_with(sign))?;
        Some((at, sign.len(), *relation))
    });
    let Some((at, length, relation)) = relation else {
        let place = found.map_or(0..text.len(), |(at, _)| start + at..start + at + 1);
        let refusal = Refusal::new(place, "a limit needs one of `<`, `<=`, `>` and `>=`");
        return Err(refusal.hint("such as \"media.latency_p95_ms < 250 ms\""));
    };
    let metric = rest[..at].trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if metric.is_empty() || !metric.chars().all(is_name) {
        let message = format!("`{}` is not the name of a metric", metric.escape_debug());
        let refusal = Refusal::new(start..start + at, message);
        return Err(refusal.hint("the names are in docs/metrics.md, such as media.latency_p95_ms"));
    }
    let from = start + at + length;
    let bound = bound(&text[from..], unit::of_metric(metric), metric)
        .map_err(|refusal| refusal.at(|span: Span| moved(span, from)))?;
    Ok(Limit { text: text.trim().to_owned(), only, metric: metric.to_owned(), relation, bound })
}

fn moved(span: Span, by: usize) -> Span {
    let bytes = span.bytes.map(|bytes| bytes.start + by..bytes.end + by);
    Span { bytes, ..span }
}

/// `tcp=reno, abr=bola`.
fn selected(text: &str) -> Result<Vec<(String, String)>, Refusal<Span>> {
    let one = |part: &str| {
        let (axis, label) = part.split_once('=').ok_or_else(|| {
            let message = format!("`{}` names no cells", part.trim().escape_debug());
            Refusal::new(0..text.len(), message).expected("AXIS=LABEL before the colon")
        })?;
        Ok((axis.trim().to_owned(), label.trim().to_owned()))
    };
    text.split(',').map(one).collect()
}

/// What stands after the relation.
fn bound(text: &str, own: Unit, metric: &str) -> Result<Bound, Refusal<Span>> {
    let pieces = tokens(text)?;
    let number = |value: f64, unit: Unit, place: &Range<usize>| {
        of_unit(value, unit, own, metric).map_err(|refusal| refusal.at(|()| place.clone().into()))
    };
    match &pieces[..] {
        [(Token::Number(value, unit), at), (Token::End, _)] => {
            Ok(Bound::Value(number(*value, *unit, at)?))
        }
        [(Token::Sign("-"), _), (Token::Number(value, unit), at), (Token::End, _)] => {
            Ok(Bound::Value(-number(*value, *unit, at)?))
        }
        [(Token::Word("baseline"), _), (Token::End, _)] => {
            Ok(Bound::Baseline { share: 0.0, more: 0.0 })
        }
        [
            (Token::Word("baseline"), _),
            (Token::Sign(sign @ ("+" | "-")), _),
            (Token::Number(value, unit), at),
            (Token::End, _),
        ] => {
            let direction = if *sign == "+" { 1.0 } else { -1.0 };
            match unit.name {
                "%" => Ok(Bound::Baseline { share: direction * value, more: 0.0 }),
                _ => {
                    let more = direction * number(*value, *unit, at)?;
                    Ok(Bound::Baseline { share: 0.0, more })
                }
            }
        }
        all => {
            let (_, place) = &all[misfit(all)];
            let found = &text[place.clone()];
            let message = match found {
                "" => "the limit ends here".to_owned(),
                found => format!("`{found}` does not belong here"),
            };
            let refusal = Refusal::new(place.clone(), message);
            Err(refusal.expected(
                "a number with its unit, or `baseline`, `baseline + 5 %`, `baseline - 2 ms`",
            ))
        }
    }
}

/// The first piece that does not fit; the last piece is the end.
fn misfit(pieces: &[(Token<'_>, Range<usize>)]) -> usize {
    let is = |place: usize, fits: fn(&Token<'_>) -> bool| fits(&pieces[place].0);
    let number = |token: &Token<'_>| matches!(token, Token::Number(..));
    match pieces[0].0 {
        Token::Number(..) => 1,
        Token::Sign("-") => 1 + usize::from(is(1, number)),
        Token::Word("baseline") if is(1, |it| matches!(it, Token::Sign("+" | "-"))) => {
            2 + usize::from(is(2, number))
        }
        Token::Word("baseline") => 1,
        _ => 0,
    }
}

/// A number in the unit `own` of the metric; one without a unit is in it already.
fn of_unit(base: f64, unit: Unit, own: Unit, metric: &str) -> Result<f64, Refusal<()>> {
    if unit.name.is_empty() {
        return Ok(base);
    }
    if unit.dimension != own.dimension {
        let found = format!("`{}` is {}", unit.name, unit.dimension.name());
        let expected = match own.dimension {
            Dimension::Plain => format!("a number without unit, or in %: {metric} has none"),
            _ => format!("{}, as {metric} is in {}", own.dimension.name(), own.name),
        };
        return Err(Refusal::new((), found).expected(expected));
    }
    Ok(base / own.factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound_of(text: &str) -> Bound {
        parse(text).unwrap_or_else(|refusal| panic!("{text}: {refusal:?}")).bound
    }

    #[test]
    fn numbers_are_in_the_unit_of_the_metric() {
        assert_eq!(bound_of("media.latency_p95_ms < 250"), Bound::Value(250.0));
        assert_eq!(bound_of("media.latency_p95_ms < 0.25 s"), Bound::Value(250.0));
        assert_eq!(bound_of("flow.goodput_mean_bps >= 2 Mbit/s"), Bound::Value(2e6));
        assert_eq!(bound_of("link.down.loss_ratio <= 5 %"), Bound::Value(0.05));
        assert_eq!(bound_of("player.stalls <= 2"), Bound::Value(2.0));
        assert_eq!(bound_of("x.level_db > -30"), Bound::Value(-30.0));
    }

    #[test]
    fn baselines_have_room() {
        let at = |text, baseline| bound_of(text).value(Some(baseline)).unwrap();
        assert_eq!(at("player.stall_s <= baseline", 3.0), 3.0);
        assert!((at("player.stall_s <= baseline + 5 %", 2.0) - 2.1).abs() < 1e-12);
        assert!((at("flow.goodput_mean_bps >= baseline - 5 %", 2e6) - 1.9e6).abs() < 1e-3);
        assert_eq!(at("media.latency_p95_ms <= baseline + 0.01 s", 100.0), 110.0);
        // Of a value below zero, too, more is above it and less below it.
        assert_eq!(at("x.level_db <= baseline + 5 %", -20.0), -19.0);
        assert_eq!(at("x.level_db >= baseline - 5 %", -20.0), -21.0);
        assert_eq!(bound_of("player.stall_s <= baseline").value(None), None);
        assert!(bound_of("player.stall_s <= baseline").needs_baseline());
    }

    #[test]
    fn cells_and_parts_are_kept() {
        let limit = parse(" tcp=reno, loss=1 %: link.access.down.loss_ratio > 0.5 % ").unwrap();
        let only = [("tcp", "reno"), ("loss", "1 %")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(limit.only, only);
        assert_eq!(limit.metric, "link.access.down.loss_ratio");
        assert_eq!((limit.relation, sign(limit.relation)), (Relation::Greater, ">"));
        assert_eq!(limit.text, "tcp=reno, loss=1 %: link.access.down.loss_ratio > 0.5 %");
    }

    #[test]
    fn labels_are_those_of_the_axes() {
        let axes = [("tcp", vec!["reno", "cubic"]), ("loss", vec!["0 %", "1 %"])];
        let check = |text: &str| parse(text).unwrap().check_labels(&axes);
        assert_eq!(check("player.stall_s < 1"), Ok(()));
        assert_eq!(check("tcp=reno, loss=1 %: player.stall_s < 1"), Ok(()));
        for (text, found, hint) in [
            ("tpc=reno", "there is no axis `tpc`", "did you mean `tcp`?"),
            ("tcp=renno", "the axis `tcp` has no value `renno`", "did you mean `reno`?"),
            (
                "tcp=reno, tcp=cubic",
                "it names the axis `tcp` twice",
                "write a limit for each value",
            ),
        ] {
            let refusal = check(&format!("{text}: player.stall_s < 1")).unwrap_err();
            assert_eq!((&*refusal.found, refusal.hint.as_deref()), (found, Some(hint)));
        }
    }

    #[test]
    fn what_is_wrong_is_marked() {
        for (text, marked, found) in [
            ("", "", "needs one of"),
            ("media.latency_p95_ms", "media.latency_p95_ms", "needs one of"),
            ("media.latency_p95_ms = 250", "=", "needs one of"),
            ("< 250", "", "not the name of a metric"),
            ("media latency < 250", "media latency ", "not the name of a metric"),
            ("media.latency_p95_ms <", "", "the limit ends here"),
            ("media.latency_p95_ms < 250 kB", "250 kB", "`kB` is a size"),
            ("player.stalls < 2 s", "2 s", "`s` is a time"),
            ("player.stall_s < base", "base", "`base` does not belong"),
            ("player.stall_s < baseline * 2", "*", "`*` does not belong"),
            ("player.stall_s < 1 + 2", "+", "`+` does not belong"),
            ("player.stall_s < baseline +", "", "the limit ends here"),
            ("reno: player.stall_s < 1", "reno", "names no cells"),
        ] {
            let refusal = parse(text).unwrap_err();
            assert!(refusal.found.contains(found), "{text}: {refusal:?}");
            let place = refusal.place.bytes.clone().unwrap();
            assert_eq!(&text[place], marked, "{text}: {refusal:?}");
        }
    }

    #[test]
    fn no_text_makes_it_panic() {
        let odd = ["µ<µ", "a:µ=1:<", "a<\u{0}", "a<1e999", "a < .", "a<'", "é < 1", "a=b:é<1 %%"];
        for text in odd {
            let _ = parse(text);
        }
        assert!(parse(&"x".repeat(301)).is_err());
    }
}
