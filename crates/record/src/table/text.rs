//! Parquet files to text: every column of any table, for programs that read no Parquet.

use std::path::Path;

use parquet::file::reader::FileReader;
use parquet::record::Field;

use super::RecordError;
use super::read::{files, open, reader, unless_it_panics};

/// The columns and rows of a table as text, whatever its rows are.
#[derive(Debug)]
pub struct TextTable;

impl TextTable {
    /// Hands over the rows of every `DIR/TABLE.parquet` and `DIR/TABLE.*.parquet`, file by file in the order of their
    /// names: the names of the columns, and a value for each. A number is in the unit of its column's name, with as many
    /// digits as it takes to read the same number again; a value that is not there is empty.
    ///
    /// # Errors
    /// If a file cannot be read, or what `take` returns.
    pub fn each<E: From<RecordError>>(
        dir: &Path,
        table: &str,
        mut take: impl FnMut(&[String], &[String]) -> Result<(), E>,
    ) -> Result<(), E> {
        for path in files(dir, table)? {
            let mut taken = Ok(());
            unless_it_panics(&path, || read(&path, &mut taken, &mut take))?;
            taken?;
        }
        Ok(())
    }
}

/// Reads one file until `take` fails, which `taken` then holds.
fn read<E>(
    path: &Path,
    taken: &mut Result<(), E>,
    take: &mut impl FnMut(&[String], &[String]) -> Result<(), E>,
) -> Result<(), RecordError> {
    let file = open(path).map_err(|cause| RecordError::Io { path: path.into(), cause })?;
    let parquet = |cause| RecordError::Parquet { path: path.into(), cause };
    let reader = reader(file).map_err(parquet)?;
    let columns = reader.metadata().file_metadata().schema_descr().columns().iter();
    let names: Vec<String> = columns.map(|column| column.name().to_owned()).collect();
    for row in reader.get_row_iter(None).map_err(parquet)? {
        let row = row.map_err(parquet)?;
        let values: Vec<String> = row.get_column_iter().map(|(_, field)| text(field)).collect();
        *taken = take(&names, &values);
        if taken.is_err() {
            break;
        }
    }
    Ok(())
}

fn text(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Double(number) => number.to_string(),
        other => other.to_string(),
    }
}
