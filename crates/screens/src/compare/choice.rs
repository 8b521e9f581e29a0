//! Which trials are meant: `reno`, `tcp=reno+abr=bola`, `cubic#2`.

use anyhow::{Result, bail};
use suiro_record::{PlannedTrial, label_text};

use crate::Unsuitable;

/// Most trials that fit on one frame.
pub const TRIALS_MAX: usize = 9;

/// The trials that were asked for, in that order; where nothing was asked, the first repetition of
/// every cell.
///
/// # Errors
/// [`Unsuitable`]: a word that fits no cell, or several; more than fit on a frame.
pub fn choose<'p>(plan: &'p [PlannedTrial], asked: &[String]) -> Result<Vec<&'p PlannedTrial>> {
    let chosen = match asked {
        [] => plan.iter().filter(|planned| planned.repetition == 1).collect(),
        asked => asked.iter().map(|word| one(plan, word)).collect::<Result<Vec<_>>>()?,
    };
    if chosen.len() > TRIALS_MAX {
        let (count, hint) = (chosen.len(), names(plan).join(", "));
        bail!(Unsuitable(format!(
            "{count} trials are too many: {TRIALS_MAX} fit on a frame\nhint: choose with --cells among {hint}"
        )));
    }
    Ok(chosen)
}

/// Every trial of which all values of `asked` are, joined with `+`; only one repetition with `#N`.
///
/// # Errors
/// [`Unsuitable`]: there is none.
pub fn fitting<'p>(plan: &'p [PlannedTrial], asked: &str) -> Result<Vec<&'p PlannedTrial>> {
    let (cell, repetition) = asked.rsplit_once('#').unwrap_or((asked, ""));
    let number: Option<u32> = repetition.parse().ok();
    let words: Vec<&str> = cell.split('+').map(str::trim).collect();
    let fits = |planned: &&PlannedTrial| {
        words.iter().all(|word| has(planned, word))
            && (repetition.is_empty() || number == Some(planned.repetition))
    };
    let found: Vec<&PlannedTrial> = plan.iter().filter(fits).collect();
    // With nothing found, the message is that of a single one.
    if found.is_empty() { one(plan, asked).map(|trial| vec![trial]) } else { Ok(found) }
}

/// The one trial that is meant.
///
/// # Errors
/// [`Unsuitable`]: it fits no cell, or several.
pub fn one<'p>(plan: &'p [PlannedTrial], asked: &str) -> Result<&'p PlannedTrial> {
    let (cell, repetition) = match asked.rsplit_once('#') {
        Some((cell, number)) => (cell, number.parse().ok()),
        None => (asked, Some(1)),
    };
    let words: Vec<&str> = cell.split('+').map(str::trim).collect();
    let fits = |planned: &&PlannedTrial| words.iter().all(|word| has(planned, word));
    let cells: Vec<&PlannedTrial> =
        plan.iter().filter(|planned| planned.repetition == 1).filter(fits).collect();
    let [cell] = cells[..] else {
        let all = names(plan);
        let problem = if cells.is_empty() { "no cell" } else { "more than one cell" };
        let hint = match nearest(cell, &all) {
            Some(near) if cells.is_empty() => format!("did you mean `{near}`?"),
            _ => format!("name one of {}", all.join(", ")),
        };
        bail!(Unsuitable(format!("`{asked}` is {problem} of this run\nhint: {hint}")));
    };
    let found = plan
        .iter()
        .find(|planned| planned.cell == cell.cell && Some(planned.repetition) == repetition);
    match found {
        Some(found) => Ok(found),
        None => bail!(Unsuitable(format!(
            "`{asked}`: there is no such repetition\nhint: write CELL#NUMBER, from 1"
        ))),
    }
}

/// True if `word` is a value of the cell, or `axis=value`.
fn has(planned: &PlannedTrial, word: &str) -> bool {
    planned.cell.iter().any(|(axis, value)| {
        let value = label_text(value);
        word == value || word.split_once('=') == Some((axis, &value))
    }) || (planned.cell.is_empty() && word == "all")
}

/// What a cell can be called; `all` where there is no matrix.
pub fn name(planned: &PlannedTrial) -> String {
    let words: Vec<String> =
        planned.cell.iter().map(|(axis, value)| format!("{axis}={}", label_text(value))).collect();
    if words.is_empty() { "all".to_owned() } else { words.join("+") }
}

fn names(plan: &[PlannedTrial]) -> Vec<String> {
    plan.iter().filter(|planned| planned.repetition == 1).map(name).collect()
}

/// The name, or the value of one, that is most like `asked`, if it is alike at all.
fn nearest<'n>(asked: &str, names: &'n [String]) -> Option<&'n str> {
    let likeness = |name: &str| {
        let value = name.split_once('=').map_or(name, |(_, value)| value);
        strsim::jaro_winkler(asked, name).max(strsim::jaro_winkler(asked, value))
    };
    let best = names.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > 0.75).then_some(best.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use suiro_units::Seed;

    fn plan() -> Vec<PlannedTrial> {
        let trial = |tcp: &str, loss: &str, repetition| {
            let cell = [("tcp", tcp), ("loss", loss)];
            PlannedTrial {
                cell: cell
                    .map(|(axis, value)| (axis.to_owned(), value.into()))
                    .into_iter()
                    .collect(),
                repetition,
                seed: Seed(1),
                folder: format!("trials/tcp={tcp},loss={loss}/{repetition}"),
                number: None,
            }
        };
        vec![
            trial("reno", "0", 1),
            trial("reno", "1 %", 1),
            trial("cubic", "0", 1),
            trial("cubic", "0", 2),
        ]
    }

    fn chosen(asked: &[&str]) -> std::result::Result<Vec<String>, String> {
        let asked: Vec<String> = asked.iter().map(|word| (*word).to_owned()).collect();
        let plan = plan();
        match choose(&plan, &asked) {
            Ok(found) => Ok(found.iter().map(|planned| planned.folder.clone()).collect()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn cells_are_named_by_their_values() {
        let found = chosen(&["cubic#2", "tcp=reno+loss=1 %"]).expect("both are there");
        assert_eq!(found, ["trials/tcp=cubic,loss=0/2", "trials/tcp=reno,loss=1 %/1"]);
        assert_eq!(chosen(&[]).expect("all").len(), 3);
    }

    #[test]
    fn what_is_wrong_is_told_with_a_remedy() {
        let error = |asked| chosen(&[asked]).expect_err(asked);
        assert_eq!(
            error("cubik"),
            "`cubik` is no cell of this run\nhint: did you mean `tcp=cubic+loss=0`?"
                .replace("\\\n", "\n")
        );
        assert!(
            error("reno").contains("more than one cell of this run\nhint: name one of tcp=reno")
        );
        assert!(error("zzz").contains("name one of"));
        assert!(error("cubic#3").contains("no such repetition"));
        assert!(error("cubic#x").contains("no such repetition"));
    }
}
