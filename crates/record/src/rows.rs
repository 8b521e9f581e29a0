//! `summary.parquet`: the rows of the summary as a table, a row per trial and a column per metric.

use std::borrow::Cow;
use std::path::Path;

use bytes::Bytes;
use parquet::file::reader::ChunkReader;
use parquet::record::Field;
use serde_json::Value;
use suiro_units::Seed;

use crate::documents::{Axis, Cell, PlannedTrial, label_text};
use crate::summary::{Summary, TrialSummary};
use crate::table::RecordError;
use crate::table::wide::{self, Values, Wide};

/// What stands between the axes and the metrics, in this order.
const FIXED: [&str; 7] =
    ["repetition", "trial", "seed", "valid", "skipped", "invalid_because", "folder"];

/// Before the name of an axis that is called like another column.
pub(crate) const AXIS: &str = "axis.";

/// Writes the rows of these trials, which are those of the plan.
pub(crate) fn write(
    path: &Path,
    axes: &[Axis],
    plan: &[PlannedTrial],
    trials: &[TrialSummary],
) -> Result<(), RecordError> {
    let metrics = Summary::names(trials);
    let axis = |axis: &'_ Axis| {
        let name = axis.name.clone();
        let taken = FIXED.contains(&&*name) || metrics.contains(&name);
        let label = move |trial: &TrialSummary| {
            trial.cell.get(&name).map(|label| Cow::Owned(label_text(label)))
        };
        Wide {
            name: format!("{}{}", if taken { AXIS } else { "" }, axis.name),
            values: Values::Text(Box::new(trials.iter().map(label))),
        }
    };
    let mut columns: Vec<Wide<'_>> = axes.iter().map(axis).collect();
    let fixed = [
        Values::Count(Box::new(trials.iter().map(|it| Some(it.repetition.into())))),
        Values::Count(Box::new(plan.iter().map(|it| it.number.map(Into::into)))),
        Values::Count(Box::new(trials.iter().map(|it| Some(it.seed.0)))),
        Values::Truth(Box::new(trials.iter().map(|it| Some(it.valid)))),
        Values::Truth(Box::new(trials.iter().map(|it| Some(it.skipped)))),
        Values::Text(Box::new(
            trials.iter().map(|it| it.invalid_because.as_deref().map(Cow::from)),
        )),
        Values::Text(Box::new(plan.iter().map(|it| Some(Cow::from(&*it.folder))))),
    ];
    let fixed = FIXED.into_iter().zip(fixed);
    columns.extend(fixed.map(|(name, values)| Wide { name: name.to_owned(), values }));
    columns.extend(metrics.into_iter().map(|name| {
        let value = move |trial: &TrialSummary| trial.metrics.get(name).copied().flatten();
        let values = Values::Real(Box::new(trials.iter().map(value)));
        Wide { name: name.to_owned(), values }
    }));
    wide::write(path, "summary", columns)
}

impl Summary {
    /// The rows of such a table, whose file has this content; `path` is its name in errors.
    ///
    /// # Errors
    /// If it is damaged, or is another table.
    pub fn rows_of(path: &Path, content: Bytes) -> Result<Vec<TrialSummary>, RecordError> {
        read(path, content)
    }
}

/// Reads what [`write`] wrote. A metric that a trial does not have is null, as one that could not be measured.
pub(crate) fn read(
    path: &Path,
    file: impl ChunkReader + 'static,
) -> Result<Vec<TrialSummary>, RecordError> {
    let mut trials: Vec<TrialSummary> = Vec::new();
    wide::each(path, file, |names, values| {
        let first = names.iter().position(|name| name == FIXED[0]).unwrap_or(names.len());
        let found = names.iter().skip(first).take(FIXED.len());
        if !found.eq(FIXED) {
            return Err(format!("expected the columns {}", FIXED.join(", ")));
        }
        let mut trial = row(names, values, first)?;
        if let Some(before) = trials.last() {
            trial.metrics.share(&before.metrics);
        }
        trials.push(trial);
        Ok(())
    })?;
    Ok(trials)
}

/// A row whose first columns are its axes.
fn row(names: &[String], values: Vec<Field>, axes: usize) -> Result<TrialSummary, String> {
    let mut columns = names.iter().zip(values);
    let mut cell = Cell::new();
    for (name, value) in columns.by_ref().take(axes) {
        if let Some(label) = text(name, value)? {
            let name = name.strip_prefix(AXIS).unwrap_or(name);
            cell.insert(name.to_owned(), Value::String(label));
        }
    }
    let mut fixed = columns.by_ref().take(FIXED.len()).map(|(_, value)| value);
    let mut next = || fixed.next().unwrap_or(Field::Null);
    let repetition = u32::try_from(count(FIXED[0], &next())?.unwrap_or(0))
        .map_err(|_| "column repetition: expected a number below 2³²".to_owned())?;
    let _number = next();
    let seed = Seed(count(FIXED[2], &next())?.unwrap_or(0));
    let (valid, skipped) = (truth(FIXED[3], &next())?, truth(FIXED[4], &next())?);
    let invalid_because = text(FIXED[5], next())?;
    let _folder = next();
    let metrics = columns.map(|(name, value)| Ok((name.clone(), real(name, &value)?)));
    let metrics = metrics.collect::<Result<_, String>>()?;
    Ok(TrialSummary { cell, repetition, seed, valid, invalid_because, skipped, metrics })
}

fn text(name: &str, value: Field) -> Result<Option<String>, String> {
    match value {
        Field::Null => Ok(None),
        Field::Str(text) => Ok(Some(text)),
        _ => Err(format!("column {name}: expected text")),
    }
}

fn count(name: &str, value: &Field) -> Result<Option<u64>, String> {
    match value {
        Field::Null => Ok(None),
        Field::ULong(count) => Ok(Some(*count)),
        _ => Err(format!("column {name}: expected unsigned numbers of 64 bits")),
    }
}

fn truth(name: &str, value: &Field) -> Result<bool, String> {
    match value {
        Field::Bool(truth) => Ok(*truth),
        _ => Err(format!("column {name}: expected true or false in every row")),
    }
}

fn real(name: &str, value: &Field) -> Result<Option<f64>, String> {
    match value {
        Field::Null => Ok(None),
        Field::Double(number) => Ok(Some(*number)),
        _ => Err(format!("column {name}: expected real numbers")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Folder;

    /// So many trials; the axis `seed` has the name of a column.
    fn made(count: usize) -> (Vec<Axis>, Vec<PlannedTrial>, Summary) {
        let axis = |name: &str, labels: Vec<String>| Axis { name: name.into(), labels };
        let axes = vec![
            axis("rate", vec!["1 Mbit/s".into(), "2 Mbit/s".into()]),
            axis("seed", (0..count).map(|n| n.to_string()).collect()),
        ];
        let (mut plan, mut summary) = (Vec::new(), Summary::default());
        for number in 0..count {
            let rate = axes[0].labels[number % 2].clone();
            let cell: Cell =
                [("rate".to_owned(), rate.into()), ("seed".to_owned(), number.to_string().into())]
                    .into_iter()
                    .collect();
            let seed = Seed(u64::MAX - number as u64);
            let valid = number % 3 != 1;
            plan.push(PlannedTrial {
                cell: cell.clone(),
                repetition: 1,
                seed,
                folder: format!("trials/{number}/1"),
                number: u32::try_from(number + 1).ok(),
            });
            summary.trials.push(TrialSummary {
                cell,
                repetition: 1,
                seed,
                valid,
                invalid_because: (!valid).then(|| "it was late".into()),
                skipped: number % 3 == 2,
                metrics: [
                    ("flow.goodput_mean_bps".to_owned(), Some(number as f64 / 3.0)),
                    ("player.stall_s".to_owned(), None),
                ]
                .into(),
            });
        }
        (axes, plan, summary)
    }

    fn text(summary: &Summary) -> String {
        serde_json::to_string(&summary.trials).unwrap()
    }

    #[test]
    fn the_rows_of_very_many_trials_are_in_the_table_alone() {
        for count in [2, Summary::ROWS_MAX, Summary::ROWS_MAX + 1] {
            let dir = tempfile::tempdir().unwrap();
            let folder = Folder::new(dir.path());
            let (axes, plan, summary) = made(count);
            folder.write_summary(&summary, &axes, &plan).unwrap();
            let document = std::fs::read_to_string(dir.path().join("summary.json")).unwrap();
            let rows = document.matches("\"valid\"").count();
            assert_eq!(rows, if count > Summary::ROWS_MAX { 0 } else { count });
            assert_eq!(text(&folder.summary().unwrap()), text(&summary), "{count} trials");
            let table = std::fs::read(dir.path().join(Summary::TABLE)).unwrap();
            let read = Summary::rows_of(Path::new("t"), table.into()).unwrap();
            assert_eq!(text(&Summary { trials: read, ..Summary::default() }), text(&summary));
        }
    }

    #[test]
    fn a_table_that_is_missing_damaged_or_another_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path());
        let (axes, plan, summary) = made(Summary::ROWS_MAX + 1);
        folder.write_summary(&summary, &axes, &plan).unwrap();
        let path = dir.path().join(Summary::TABLE);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        assert!(folder.summary().unwrap_err().to_string().contains(Summary::TABLE));
        std::fs::remove_file(&path).unwrap();
        assert!(folder.summary().unwrap_err().to_string().contains(Summary::TABLE));
        let other = vec![Wide {
            name: "x".into(),
            values: Values::Real(Box::new([Some(1.0)].into_iter())),
        }];
        wide::write(&path, "other", other).unwrap();
        let error = folder.summary().unwrap_err().to_string();
        assert!(error.contains("expected the columns repetition, trial"), "{error}");
    }
}
