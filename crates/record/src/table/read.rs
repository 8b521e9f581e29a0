//! Parquet files to rows.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use suiro_outside::beneath;
use suiro_units::UnknownWord;

use super::field::Values;
use super::{Buffer, Column, Kind, RecordError, Row, Text};
use crate::records::Table;

/// Reads a whole table.
pub struct Reader;

impl Reader {
    /// All rows of `DIR/TABLE.parquet`; a file that is not there is an empty table, because a trial
    /// holds only the tables that something wrote.
    pub fn read<R: Row>(dir: &Path) -> Result<Vec<R>, RecordError> {
        let path = dir.join(format!("{}.parquet", R::TABLE));
        if path.exists() { Self::read_file(&path) } else { Ok(Vec::new()) }
    }

    /// All rows of every `DIR/TABLE.parquet` and `DIR/TABLE.*.parquet`, file by file in the order
    /// of their names.
    pub fn read_all<R: Row>(dir: &Path) -> Result<Vec<R>, RecordError> {
        let mut rows = Vec::new();
        for file in files(dir, R::TABLE)? {
            rows.extend(Self::read_file::<R>(&file)?);
        }
        Ok(rows)
    }

    /// All rows of one file.
    pub fn read_file<R: Row>(path: &Path) -> Result<Vec<R>, RecordError> {
        let mut rows = Vec::new();
        Self::each(path, |row| rows.push(row))?;
        Ok(rows)
    }

    /// Hands over the rows of one file in their order, without holding more than a row group of them.
    pub fn each<R: Row>(path: &Path, take: impl FnMut(R)) -> Result<(), RecordError> {
        let file = open(path).map_err(|cause| RecordError::Io { path: path.into(), cause })?;
        unless_it_panics(path, || Self::read_rows(path, file, take))
    }

    /// As [`Reader::each`], of a file in memory; errors call it `path`.
    pub fn each_of<R: Row>(
        path: &Path,
        file: Bytes,
        take: impl FnMut(R),
    ) -> Result<(), RecordError> {
        unless_it_panics(path, || Self::read_rows(path, file, take))
    }

    fn read_rows<R: Row>(
        path: &Path,
        file: impl ChunkReader + 'static,
        mut take: impl FnMut(R),
    ) -> Result<(), RecordError> {
        let reader = open_table(path, file, &Table::of::<R>())?;
        for index in 0..reader.num_row_groups() {
            let Group { columns, rows } = read_group(path, &reader, R::COLUMNS, index)?;
            (0..rows).for_each(|row| take(R::at(&columns, row)));
        }
        Ok(())
    }
}

/// A row group in memory: a buffer per column of the table.
pub(super) struct Group {
    pub columns: Vec<Buffer>,
    pub rows: usize,
}

/// A file, or what is read of it, whose end is an error. The Parquet reader does not notice where it skips: it would skip a list
/// of 2^31 numbers that are not there one by one, for minutes.
pub(crate) struct Whole<T>(T);

impl<F: ChunkReader> Length for Whole<F> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<F: ChunkReader> ChunkReader for Whole<F> {
    type T = Whole<F::T>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        self.0.get_read(start).map(Whole)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.0.get_bytes(start, length)
    }
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 if !buffer.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            read => Ok(read),
        }
    }
}

/// Reads the footer of a file. The chunks of its columns must be apart, as every writer has them: where they overlap, the same
/// bytes are pages of many columns, and a file of some kB takes hours to read.
pub(crate) fn reader<F: ChunkReader + 'static>(
    file: F,
) -> Result<SerializedFileReader<Whole<F>>, ParquetError> {
    let reader = SerializedFileReader::new(Whole(file))?;
    let columns = reader.metadata().row_groups().iter().flat_map(RowGroupMetaData::columns);
    let chunks = columns.map(|chunk| {
        let first = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
        (first, chunk.compressed_size())
    });
    match are_apart(chunks.collect()) {
        true => Ok(reader),
        false => Err(ParquetError::General("its columns overlap".to_owned())),
    }
}

/// Whether stretches of a file, of which each has its first byte and its length, have no byte in common.
fn are_apart(mut chunks: Vec<(i64, i64)>) -> bool {
    chunks.sort_unstable();
    let mut free = 0;
    chunks.into_iter().all(|(first, bytes)| {
        let fits = first >= free && bytes >= 0;
        free = first.saturating_add(bytes);
        fits
    })
}

/// Reads the footer of a file, which must be one of this table.
pub(super) fn open_table<F: ChunkReader + 'static>(
    path: &Path,
    file: F,
    table: &Table,
) -> Result<SerializedFileReader<Whole<F>>, RecordError> {
    let parquet = |cause| RecordError::Parquet { path: path.into(), cause };
    let reader = reader(file).map_err(parquet)?;
    check_schema(path, &reader, table)?;
    Ok(reader)
}

/// Reads a row group of a table with these columns. Those that are absent at the end are null.
pub(super) fn read_group(
    path: &Path,
    reader: &SerializedFileReader<impl ChunkReader + 'static>,
    table: &[Column],
    index: usize,
) -> Result<Group, RecordError> {
    let parquet = |cause| RecordError::Parquet { path: path.into(), cause };
    let there = reader.metadata().file_metadata().schema_descr().num_columns();
    let group = reader.get_row_group(index).map_err(parquet)?;
    let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
    let mut columns = Vec::new();
    for (at, column) in table.iter().enumerate().take(there) {
        let reading = group.get_column_reader(at).map_err(parquet)?;
        columns.push(read_column(reading, column, rows).map_err(|error| match error {
            ColumnError::Parquet(source) => parquet(source),
            ColumnError::Value { row, problem } => RecordError::Value {
                path: path.into(),
                column: column.name,
                row: rows_before(reader, index) + row + 1,
                problem,
            },
        })?);
    }
    if let Some(short) = columns.iter().position(|c| c.present.len() != rows) {
        let name = table[short].name;
        let problem = format!("column {name} has fewer rows than the table");
        return Err(RecordError::Schema { path: path.into(), problem });
    }
    let absent = table.iter().skip(there);
    columns.extend(absent.map(|column| Buffer::null(column.kind, rows)));
    Ok(Group { columns, rows })
}

/// The rows in the row groups before this one.
fn rows_before(reader: &SerializedFileReader<impl ChunkReader + 'static>, index: usize) -> usize {
    let groups = reader.metadata().row_groups().iter().take(index);
    groups.map(|group| usize::try_from(group.num_rows()).unwrap_or(0)).sum()
}

/// Reads a file. The Parquet reader panics on some damaged pages ("decoder for dict should have been set"); a file is
/// input, and input is refused. The caller gets the rows before the error, then the error.
pub(super) fn unless_it_panics<T>(
    path: &Path,
    read: impl FnOnce() -> Result<T, RecordError>,
) -> Result<T, RecordError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(RecordError::Damaged { path: path.into() }))
}

/// Every `DIR/TABLE.parquet` and `DIR/TABLE.*.parquet`, in the order of their names.
pub(super) fn files(dir: &Path, table: &str) -> Result<Vec<PathBuf>, RecordError> {
    let io = |cause| RecordError::Io { path: dir.to_owned(), cause };
    let prefix = format!("{table}.");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if name.starts_with(&prefix) && name.ends_with(".parquet") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Opens a table, which may be a stranger's: no link, no device.
pub(super) fn open(path: &Path) -> std::io::Result<File> {
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    beneath::open(folder.unwrap_or(Path::new(".")), Path::new(name))
}

/// Refuses another table. Columns that may be null can be absent at the end: the table is of before they were added; or
/// have a value in every row by definition: it is of before they could be null.
fn check_schema(
    path: &Path,
    reader: &SerializedFileReader<impl ChunkReader + 'static>,
    table: &Table,
) -> Result<(), RecordError> {
    let found = reader.metadata().file_metadata().schema_descr();
    let mut problem = None;
    let absent = table.columns.get(found.num_columns()..);
    if absent.is_none_or(|absent| absent.iter().any(|column| !column.nullable)) {
        problem =
            Some(format!("{} columns, expected {}", found.num_columns(), table.columns.len()));
    }
    for (column, want) in found.columns().iter().zip(table.columns) {
        let physical = want.kind.physical();
        let nullable = column.max_def_level() == 1;
        if column.name() != want.name
            || column.physical_type() != physical
            || column.max_rep_level() != 0
            || nullable && !want.nullable
        {
            problem.get_or_insert(format!(
                "column {} ({}) where {} ({:?}) was expected",
                column.name(),
                column.physical_type(),
                want.name,
                physical
            ));
        }
    }
    match problem {
        None => Ok(()),
        Some(problem) => Err(RecordError::Schema {
            path: path.into(),
            problem: format!("not a table `{}` of this version: {problem}", table.name),
        }),
    }
}

/// Why a column could not be read.
enum ColumnError {
    Parquet(parquet::errors::ParquetError),
    /// A value that its kind does not have, in this row of the row group.
    Value {
        row: usize,
        problem: String,
    },
}

impl From<parquet::errors::ParquetError> for ColumnError {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::Parquet(error)
    }
}

fn read_column(reader: ColumnReader, column: &Column, rows: usize) -> Result<Buffer, ColumnError> {
    let mut levels: Vec<i16> = Vec::new();
    // The values that are there; `None` for one that its kind does not have.
    macro_rules! read {
        ($reader:expr, $kind:ident, $convert:expr) => {{
            let (mut reader, mut dense) = ($reader, Vec::new());
            let want = column.nullable.then_some(&mut levels);
            reader.read_records(rows, want, None, &mut dense)?;
            if column.nullable && levels.is_empty() {
                levels.resize(dense.len(), 1);
            }
            let mut place = 0;
            let mut convert = |value| {
                place += 1;
                let problem = |problem| Refused { place: place - 1, problem };
                $convert(&value).map_err(problem)
            };
            let values: Result<Vec<_>, Refused> = match column.nullable {
                true => {
                    let mut dense = dense.into_iter();
                    let value = |&level: &i16| match (level == 1).then(|| dense.next()).flatten() {
                        Some(value) => convert(value),
                        None => Ok(Default::default()),
                    };
                    levels.iter().map(value).collect()
                }
                false => dense.into_iter().map(convert).collect(),
            };
            Values::$kind(values.map_err(|refused| refused.located(column, &levels))?)
        }};
    }
    let values = match (reader, column.kind) {
        (ColumnReader::Int64ColumnReader(r), Kind::Natural) => {
            read!(r, Integer, |v: &i64| match *v {
                0.. => Ok(*v),
                _ => Err(format!("expected a number that is not negative, found {v}")),
            })
        }
        (ColumnReader::Int64ColumnReader(r), _) => read!(r, Integer, |v: &i64| Ok(*v)),
        (ColumnReader::DoubleColumnReader(r), _) => read!(r, Real, |v: &f64| Ok(*v)),
        (ColumnReader::BoolColumnReader(r), _) => read!(r, Boolean, |v: &bool| Ok(*v)),
        (ColumnReader::ByteArrayColumnReader(r), Kind::Word(words)) => {
            read!(r, Word, |v: &ByteArray| place_of(v.data(), words))
        }
        (ColumnReader::ByteArrayColumnReader(r), _) => {
            let mut shared = Shared::default();
            let mut text = |v: &ByteArray| Ok(shared.text(&String::from_utf8_lossy(v.data())));
            read!(r, Text, text)
        }
        _ => unreachable!("the schema was checked"),
    };
    let length = values.len();
    let present =
        if column.nullable { levels.iter().map(|&l| l == 1).collect() } else { vec![true; length] };
    Ok(Buffer { values, present })
}

/// A value that its kind does not have, by its place among those that are not null.
struct Refused {
    place: usize,
    problem: String,
}

impl Refused {
    /// With its row in the row group.
    fn located(self, column: &Column, levels: &[i16]) -> ColumnError {
        let mut present = levels.iter().enumerate().filter(|(_, level)| **level == 1);
        let row = match column.nullable {
            true => present.nth(self.place).map_or(self.place, |(row, _)| row),
            false => self.place,
        };
        ColumnError::Value { row, problem: self.problem }
    }
}

/// The place of a word in its list. A word of a later version is refused, as a column of a later version
/// is: counted as something else, or as nothing, it would make wrong figures.
fn place_of(found: &[u8], words: &'static [(&'static str, &'static str)]) -> Result<u8, String> {
    let place = words.iter().position(|(word, _)| word.as_bytes() == found);
    place.map(|place| place as u8).ok_or_else(|| {
        UnknownWord { found: String::from_utf8_lossy(found).into_owned(), expected: words }
            .to_string()
    })
}

/// Gives equal texts of a column one allocation, as long as there are few.
#[derive(Default)]
struct Shared(BTreeSet<Text>);

impl Shared {
    /// Most texts that are remembered: a column with more, such as URLs, shares little anyway.
    const MOST: usize = 256;

    fn text(&mut self, text: &str) -> Text {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new = Text::from(text);
        if self.0.len() < Self::MOST {
            self.0.insert(new.clone());
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_file_is_an_error_where_bytes_are_skipped() {
        let skip = |bytes: u64| {
            let mut read = Whole(Bytes::from_static(b"four")).get_read(0).unwrap().take(bytes);
            io::copy(&mut read, &mut io::sink()).map_err(|error| error.kind())
        };
        assert_eq!(skip(4), Ok(4));
        assert_eq!(skip(5), Err(io::ErrorKind::UnexpectedEof));
    }

    #[test]
    fn chunks_of_columns_are_apart() {
        assert!(are_apart(vec![(10, 5), (4, 6), (15, 0), (15, 3)]));
        assert!(!are_apart(vec![(4, 6), (9, 5)]));
        assert!(!are_apart(vec![(4, 6), (4, 6)]));
        assert!(!are_apart(vec![(-1, 6)]) && !are_apart(vec![(4, -1)]));
        assert!(!are_apart(vec![(4, i64::MAX), (i64::MAX - 1, 1)]));
    }
}
