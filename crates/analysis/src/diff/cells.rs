//! Which cells of two runs are compared with each other.

use std::collections::{BTreeMap, BTreeSet};

use suiro_record::{Cell, TrialSummary};

/// The cells of a run, each with its trials, in the order in which they first appear.
pub(super) fn cells(trials: &[TrialSummary]) -> Vec<(&Cell, Vec<&TrialSummary>)> {
    let mut found: Vec<(&Cell, Vec<&TrialSummary>)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for trial in trials {
        let key = serde_json::to_string(&trial.cell).expect("a cell is JSON");
        let place = *places.entry(key).or_insert(found.len());
        if place == found.len() {
            found.push((&trial.cell, Vec::new()));
        }
        found[place].1.push(trial);
    }
    found
}

/// Pairs of cells, as indices into `a` and `b`, in the order of `a`.
///
/// Cells match if they have the same label on each axis that distinguishes cells in both runs. An axis that only one of them has
/// does not count, nor one that has a single label in each: what differs there is the question. So one cell can be compared
/// with several; but not several with several.
pub(super) fn matched(a: &[&Cell], b: &[&Cell]) -> Vec<(usize, usize)> {
    let axes = axes(a, b);
    let key = |cell: &Cell| -> Vec<String> {
        axes.iter()
            .map(|axis| cell.get(*axis).map(ToString::to_string).unwrap_or_default())
            .collect()
    };
    let mut groups: BTreeMap<Vec<String>, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    for (index, cell) in a.iter().enumerate() {
        groups.entry(key(cell)).or_default().0.push(index);
    }
    for (index, cell) in b.iter().enumerate() {
        groups.entry(key(cell)).or_default().1.push(index);
    }
    let mut pairs = Vec::new();
    for (of_a, of_b) in groups.into_values() {
        if of_a.len() == 1 || of_b.len() == 1 {
            pairs.extend(of_a.iter().flat_map(|one| of_b.iter().map(|other| (*one, *other))));
        }
    }
    pairs.sort_unstable();
    pairs
}

/// The axes whose labels must be the same.
fn axes<'c>(a: &[&'c Cell], b: &[&'c Cell]) -> Vec<&'c str> {
    let [of_a, of_b] = [a, b].map(|cells| labels(cells.iter().copied()));
    let distinguishes = |(axis, labels): &(&&'c str, &BTreeSet<String>)| {
        of_b.get(**axis).is_some_and(|others| labels.len() > 1 || others.len() > 1)
    };
    of_a.iter().filter(distinguishes).map(|(axis, _)| *axis).collect()
}

/// The axes of cells, each with its labels.
pub(super) fn labels<'c>(
    cells: impl Iterator<Item = &'c Cell>,
) -> BTreeMap<&'c str, BTreeSet<String>> {
    let mut labels: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (axis, label) in cells.flat_map(|cell| cell.iter()) {
        labels.entry(axis).or_default().insert(label.to_string());
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(a: &[&[(&str, &str)]], b: &[&[(&str, &str)]]) -> Vec<(usize, usize)> {
        let cell = |of: &&[(&str, &str)]| -> Cell {
            of.iter().map(|(axis, label)| ((*axis).to_owned(), (*label).into())).collect()
        };
        let [a, b]: [Vec<Cell>; 2] = [a, b].map(|cells| cells.iter().map(cell).collect());
        matched(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>())
    }

    #[test]
    fn cells_of_the_same_labels_match_in_any_order() {
        let a: &[&[(&str, &str)]] = &[&[("tcp", "reno")], &[("tcp", "cubic")]];
        let b: &[&[(&str, &str)]] = &[&[("tcp", "cubic")], &[("tcp", "bbr")], &[("tcp", "reno")]];
        assert_eq!(pairs(a, b), [(0, 2), (1, 0)]);
    }

    #[test]
    fn one_label_each_is_what_differs() {
        assert_eq!(pairs(&[&[("tcp", "reno")]], &[&[("tcp", "cubic")]]), [(0, 0)]);
        let a: &[&[(&str, &str)]] =
            &[&[("tcp", "reno"), ("abr", "x")], &[("tcp", "reno"), ("abr", "y")]];
        let b: &[&[(&str, &str)]] =
            &[&[("tcp", "bbr"), ("abr", "y")], &[("tcp", "bbr"), ("abr", "x")]];
        assert_eq!(pairs(a, b), [(0, 1), (1, 0)]);
        assert_eq!(pairs(&[&[("tcp", "reno")]], a), [(0, 0), (0, 1)], "one with each");
    }

    #[test]
    fn an_axis_of_one_run_alone_does_not_count() {
        let both: &[&[(&str, &str)]] =
            &[&[("tcp", "reno"), ("abr", "x")], &[("tcp", "cubic"), ("abr", "x")]];
        assert_eq!(pairs(&[&[("tcp", "cubic")], &[("tcp", "reno")]], both), [(0, 1), (1, 0)]);
        assert_eq!(pairs(&[&[]], both), [(0, 0), (0, 1)]);
        // Two cells and two others without a common axis: it is unknown which of them correspond.
        let one: &[&[(&str, &str)]] = &[&[("x", "1")], &[("x", "2")]];
        let other: &[&[(&str, &str)]] = &[&[("y", "1")], &[("y", "2")]];
        assert_eq!(pairs(one, other), []);
    }
}
