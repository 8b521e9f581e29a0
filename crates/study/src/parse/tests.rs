//! The language of findings: what it means, and what it refuses.

use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::unit::{named, of_metric};

fn axes() -> Vec<Axis> {
    let axis = |name: &str, labels: &[&str]| Axis {
        name: name.into(),
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
    };
    vec![
        axis("protocol", &["dash", "hls"]),
        axis("tcp", &["reno", "vegas"]),
        axis("limit", &["2 Mbit/s", "none"]),
        axis("aqm", &["none", "codel"]),
    ]
}

fn metrics() -> Vec<Metric> {
    let metric = |name: &str, metric: &str, unit: &str| Metric {
        name: name.into(),
        metric: metric.into(),
        title: None,
        measured_in: of_metric(metric),
        unit: named(unit).unwrap_or(PLAIN),
    };
    vec![
        metric("cwnd", "tcp.cwnd_mean_bytes", "kbit"),
        metric("rtt", "tcp.srtt_mean_ms", "ms"),
        metric("stalls", "player.stalls", ""),
    ]
}

fn read(text: &str) -> Result<Truth, Refusal<Span>> {
    parse(text, &axes(), &metrics())
}

/// The axes that a test does not speak of vary.
fn all(text: &str) -> Result<Truth, Refusal<Span>> {
    read(&format!("every limit, aqm: {text}"))
}

fn body(truth: Truth) -> Truth {
    match truth {
        Truth::Each { body, .. } => *body,
        other => panic!("{other:?}"),
    }
}

/// A truth as a text with all its brackets.
fn told(truth: &Truth) -> String {
    let join = |parts: &[Truth], by: &str| {
        format!("({})", parts.iter().map(told).collect::<Vec<_>>().join(by))
    };
    match truth {
        Truth::Each { any, over, body } => {
            let names: Vec<&str> =
                over.iter().map(|b| ["protocol", "tcp", "limit", "aqm"][b.axis]).collect();
            format!("{} {}: {}", if *any { "any" } else { "every" }, names.join(","), told(body))
        }
        Truth::And(parts) => join(parts, " and "),
        Truth::Or(parts) => join(parts, " or "),
        Truth::Not(of) => format!("not {}", told(of)),
        Truth::Compare(c) => format!("({} {:?} {})", value(&c.left), c.relation, value(&c.right)),
    }
}

fn value(number: &Number) -> String {
    match &number.value {
        Value::Constant(value) => value.to_string(),
        Value::Metric(r) => ["cwnd", "rtt", "stalls"][r.metric].to_owned(),
        Value::Negative(of) => format!("-{}", value(of)),
        Value::Join(join, left, right) => format!("({} {join:?} {})", value(left), value(right)),
        Value::Fold(fold, of) => format!("{fold:?}{:?}", of.iter().map(value).collect::<Vec<_>>()),
        Value::FoldOver(fold, _, of) => format!("{fold:?} over {}", value(of)),
    }
}

#[test]
fn precedence_is_that_of_arithmetic() {
    let told =
        |text: &str| told(&body(body(all(&format!("every protocol, tcp: {text}")).unwrap())));
    assert_eq!(
        told("stalls + 2 * 3 - 1 < 4 or not stalls = 1 and stalls > -1 / 2"),
        "((((stalls Add (2 Multiply 3)) Subtract 1) Less 4) or \
         (not (stalls Equal 1) and (stalls Greater (-1 Divide 2))))"
    );
    assert_eq!(
        told("(stalls < 1 or stalls > 2) and stalls != 5"),
        "(((stalls Less 1) or (stalls Greater 2)) and (stalls Unequal 5))"
    );
    assert_eq!(
        told("rtt within 10 % of max(rtt, 20 ms)"),
        "(rtt Within(0.1) Max[\"rtt\", \"0.02\"])"
    );
}

#[test]
fn a_quantifier_reaches_as_far_as_it_can() {
    let truth = all("every tcp: every protocol: stalls < 1 and rtt < 1 s").unwrap();
    assert_eq!(
        told(&truth),
        "every limit,aqm: every tcp: every protocol: ((stalls Less 1) and (rtt Less 1))"
    );
}

#[test]
fn labels_choose_cells() {
    let truth = read("cwnd[dash, vegas, '2 Mbit/s', aqm=none] > 10 kB").unwrap();
    let Truth::Compare(Comparison { left, right, .. }) = truth else { panic!("{truth:?}") };
    let Value::Metric(reference) = &left.value else { panic!("{left:?}") };
    assert_eq!(reference.at, [Some(0), Some(1), Some(0), Some(0)]);
    assert_eq!((right.value, left.unit.name), (Value::Constant(10_000.0), "kbit"));
    let over = all("cwnd[dash, reno] = max(tcp in [vegas], protocol: cwnd)").unwrap();
    let Truth::Compare(Comparison { right, .. }) = body(over) else { panic!() };
    let Value::FoldOver(Fold::Max, over, _) = right.value else { panic!("{right:?}") };
    assert_eq!(
        over,
        [Binding { axis: 1, labels: vec![1] }, Binding { axis: 0, labels: vec![0, 1] }]
    );
}

#[test]
fn refusals_name_the_place_and_the_remedy() {
    let mut found = String::new();
    for text in [
        "",
        "cwnd[dash, reno]",
        "cwn < 1 kB",
        "cwnd[dsh, reno] < 1 kB",
        "cwnd[dash, hls, reno] < 1 kB",
        "cwnd[dash] < 1 kB",
        "cwnd[dash, reno, none] < 1 kB",
        "cwnd[dash, tcp=hls] < 1 kB",
        "cwnd[dash, tpc=reno] < 1 kB",
        "every tpc: stalls = 0",
        "every tcp: stalls[reno, dash] = 0",
        "every tcp in [reno, reno]: stalls[dash] = 0",
        "every tcp: every tcp: stalls[dash] = 0",
        "every tcp, protocol: rtt < 100",
        "every tcp, protocol: rtt < cwnd",
        "every tcp, protocol: rtt * rtt < 1 s",
        "every tcp, protocol: 1 < stalls < 3",
        "every tcp, protocol: stalls < 3 4",
        "every tcp, protocol: stalls and stalls < 3",
        "every tcp, protocol: stalls within rtt of 3",
        "every tcp, protocol: (stalls < 3",
        "every tcp, protocol: min() < 3",
        "every tcp, protocol stalls < 3",
        "every tcp, protocol: stalls < 1.2.3",
        "every tcp, protocol: stalls < and",
        "every 3",
        "stalls['dash",
        "stalls # 3",
    ] {
        let whole = text.is_empty() || text.contains("none");
        let text = if whole { text.to_owned() } else { format!("every limit, aqm: {text}") };
        let refusal = read(&text).expect_err(&text);
        let span = refusal.place.bytes.clone().unwrap();
        let mark = " ".repeat(span.start) + &"^".repeat(span.len().max(1));
        let Refusal { found: fault, expected, hint, .. } = refusal;
        writeln!(found, "{text}\n{mark}\n{fault}").unwrap();
        expected.iter().for_each(|expected| writeln!(found, "expected: {expected}").unwrap());
        hint.iter().for_each(|hint| writeln!(found, "hint: {hint}").unwrap());
        found.push('\n');
    }
    insta::assert_snapshot!(found);
}

#[test]
fn what_is_too_deep_or_too_long_is_refused() {
    let deep = format!("{}stalls < 1{}", "(".repeat(60), ")".repeat(60));
    assert_eq!(all(&deep).unwrap_err().found, "nested too deeply");
    let long = format!("stalls < {}", "1".repeat(FORMULA_MAX));
    assert!(all(&long).unwrap_err().found.contains("bytes"));
}

proptest! {
    #[test]
    fn any_text_returns_and_an_error_lies_within_it(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "every", "any", "tcp", "in", "[", "]", "(", ")", ":", ",", "cwnd", "rtt", "dash", "reno",
                "none", "aqm", "=", "<", "within", "of", "10 %", "3", "2 kB", "-", "*", "and", "or", "not",
                "min", "limit", "protocol", "'2 Mbit/s'", "é", "'",
            ]),
            0..30,
        ),
    ) {
        let text = words.join(" ");
        if let Err(refusal) = read(&text) {
            let span = refusal.place.bytes.unwrap();
            prop_assert!(span.start <= span.end && span.end <= text.len());
            prop_assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end));
        }
    }
}
