//! The rows of many trials in few files: what `suiro export parquet` writes.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::reader::FileReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::TypePtr;

use super::read::{Group, open_table, read_group, unless_it_panics};
use super::write::{Leaf, properties, schema, write_group};
use super::{Buffer, Column, Field, Kind, RecordError, Text};
use crate::records::Table;
use crate::rows::AXIS;

/// The columns of every file between the axes and the table's own: which trial a row is of.
const PLACE: [Leaf<'static>; 4] = [
    ("trial", Kind::Integer, true),
    ("repetition", Kind::Integer, false),
    ("valid", Kind::Boolean, false),
    ("file", Kind::Text, true),
];

/// The most that one file gets. The row group with which a bound is reached still goes into it.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Rows of a row group, all of which are in memory. At most one row group of a trial's file is added to them.
    pub group_rows: usize,
    /// Rows of a file.
    pub rows: u64,
    /// Bytes of a file.
    pub bytes: u64,
}

impl Default for Bounds {
    /// Row groups as DuckDB likes them, and files that are worth opening.
    fn default() -> Self {
        Self { group_rows: 1 << 17, rows: 1 << 26, bytes: 256 << 20 }
    }
}

/// Which trial the rows of a file are of.
#[derive(Debug, Clone)]
pub struct Place {
    /// The values of the axes that are columns; null for an axis that its cell does not have.
    pub axes: Vec<Option<Text>>,
    /// Its number in the plan; null in folders from before trials had numbers.
    pub trial: Option<u32>,
    /// Its repetition, from 1.
    pub repetition: u32,
    /// Whether it is valid.
    pub valid: bool,
    /// `NAME` of the file `TABLE.NAME.parquet`: the endpoint, host or link whose rows they are. Null for `TABLE.parquet`.
    pub file: Option<Text>,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Files.
    pub files: u64,
    /// Rows in them.
    pub rows: u64,
}

/// Why the rows of a file could not be added.
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    /// The file could not be read. None of its rows were added, and others can be.
    #[error(transparent)]
    Read(RecordError),
    /// The rows could not be written.
    #[error(transparent)]
    Write(RecordError),
}

/// Writes the rows of many files of one table into `part-0.parquet`, `part-1.parquet` and so on.
///
/// In front of the table's own columns are the axes, then `trial`, `repetition`, `valid` and `file` ([`Place`]). A file's
/// metadata has the table's name (`suiro.table`) and the units of its columns as JSON (`suiro.units`).
pub struct Compact {
    folder: PathBuf,
    table: Table,
    kinds: Vec<Kind>,
    bounds: Bounds,
    schema: TypePtr,
    properties: WriterPropertiesPtr,
    columns: Vec<Buffer>,
    rows: usize,
    part: Option<Part>,
    written: Written,
}

struct Part {
    path: PathBuf,
    file: SerializedFileWriter<File>,
    rows: u64,
}

impl Compact {
    /// Begins the files of a table in `folder`, which is made with the first. `axes` are the names of further columns.
    ///
    /// # Errors
    /// [`RecordError::Parquet`] if there cannot be such columns.
    pub fn new(
        folder: &Path,
        table: Table,
        axes: &[String],
        bounds: Bounds,
    ) -> Result<Self, RecordError> {
        let parquet = |cause| RecordError::Parquet { path: folder.into(), cause };
        let axes = axes.iter().map(|name| (name.as_str(), Kind::Text, true));
        let own = table.columns.iter().map(Column::leaf);
        let leaves: Vec<Leaf<'_>> = axes.chain(PLACE).chain(own).collect();
        let kinds: Vec<Kind> = leaves.iter().map(|(_, kind, _)| *kind).collect();
        let schema = schema(table.name, leaves.into_iter()).map_err(parquet)?;
        let units = table.columns.iter().filter_map(|column| Some((column.name, column.unit()?)));
        let units: BTreeMap<&str, &str> = units.collect();
        let units = serde_json::to_string(&units).expect("texts are JSON");
        let known = vec![
            KeyValue::new("suiro.table".to_owned(), table.name.to_owned()),
            KeyValue::new("suiro.units".to_owned(), units),
        ];
        let properties = Arc::new(properties().set_key_value_metadata(Some(known)).build());
        let columns = kinds.iter().map(|kind| Buffer::new(*kind)).collect();
        Ok(Self {
            folder: folder.to_owned(),
            table,
            kinds,
            bounds,
            schema,
            properties,
            columns,
            rows: 0,
            part: None,
            written: Written::default(),
        })
    }

    /// What the column or folder of an axis is called: as the axis, or `axis.NAME` where the table has a column of that name.
    /// Upper and lower case are one, as in SQL.
    pub fn axis(table: &Table, name: &str) -> String {
        let own = table.columns.iter().map(|column| column.name);
        let mut taken = PLACE.iter().map(|(name, ..)| *name).chain(own);
        let prefix = if taken.any(|it| it.eq_ignore_ascii_case(name)) { AXIS } else { "" };
        format!("{prefix}{name}")
    }

    /// Adds the rows of a file of the table; errors call it `path`. Gives their number.
    ///
    /// # Errors
    /// [`CompactError::Read`] if it is not such a file, or is damaged anywhere.
    pub fn append(&mut self, path: &Path, file: File, place: &Place) -> Result<u64, CompactError> {
        let (table, mut added) = (self.table, 0);
        let reader = unless_it_panics(path, || open_table(path, file, &table));
        let reader = reader.map_err(CompactError::Read)?;
        let read =
            |index| unless_it_panics(path, || read_group(path, &reader, table.columns, index));
        let groups = reader.num_row_groups();
        let mut first = None;
        // All of it is read before the first row is written, which cannot be taken back. Few files have more than one.
        for index in (0..groups).rev() {
            first = Some(read(index).map_err(CompactError::Read)?);
        }
        for index in 0..groups {
            let group = first.take().map_or_else(|| read(index), Ok);
            // It could be read a moment ago.
            let group = group.map_err(CompactError::Write)?;
            added += group.rows as u64;
            self.take(group, place).map_err(CompactError::Write)?;
        }
        Ok(added)
    }

    fn take(&mut self, group: Group, place: &Place) -> Result<(), RecordError> {
        let front = place.axes.len() + PLACE.len();
        assert_eq!(front + group.columns.len(), self.columns.len(), "a value for each axis");
        for _ in 0..group.rows {
            place.append(&mut self.columns);
        }
        for (column, more) in self.columns[front..].iter_mut().zip(group.columns) {
            column.extend(more);
        }
        self.rows += group.rows;
        if self.rows >= self.bounds.group_rows { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), RecordError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut part = match self.part.take() {
            Some(part) => part,
            None => self.begin()?,
        };
        let empty = self.kinds.iter().map(|kind| Buffer::new(*kind)).collect();
        let columns = std::mem::replace(&mut self.columns, empty);
        let parquet = |cause| RecordError::Parquet { path: part.path.clone(), cause };
        write_group(&mut part.file, self.kinds.iter().copied(), &columns).map_err(parquet)?;
        part.rows += std::mem::take(&mut self.rows) as u64;
        if part.rows >= self.bounds.rows || part.file.bytes_written() as u64 >= self.bounds.bytes {
            self.end(part)
        } else {
            self.part = Some(part);
            Ok(())
        }
    }

    fn begin(&self) -> Result<Part, RecordError> {
        let path = self.folder.join(format!("part-{}.parquet", self.written.files));
        let io = |cause| RecordError::Io { path: path.clone(), cause };
        std::fs::create_dir_all(&self.folder).map_err(io)?;
        let file = File::create_new(&path).map_err(io)?;
        let file = SerializedFileWriter::new(file, self.schema.clone(), self.properties.clone());
        let file = file.map_err(|cause| RecordError::Parquet { path: path.clone(), cause })?;
        Ok(Part { path, file, rows: 0 })
    }

    fn end(&mut self, part: Part) -> Result<(), RecordError> {
        let Part { path, file, rows } = part;
        file.close().map_err(|cause| RecordError::Parquet { path, cause })?;
        self.written.files += 1;
        self.written.rows += rows;
        Ok(())
    }

    /// Completes the last file.
    ///
    /// # Errors
    /// What the system says.
    pub fn close(mut self) -> Result<Written, RecordError> {
        self.flush()?;
        if let Some(part) = self.part.take() {
            self.end(part)?;
        }
        Ok(self.written)
    }
}

impl Place {
    /// Appends a row to the columns in front.
    fn append(&self, columns: &mut [Buffer]) {
        let (axes, rest) = columns.split_at_mut(self.axes.len());
        for (value, column) in self.axes.iter().zip(axes) {
            value.clone().append(column);
        }
        self.trial.map(i64::from).append(&mut rest[0]);
        i64::from(self.repetition).append(&mut rest[1]);
        self.valid.append(&mut rest[2]);
        self.file.clone().append(&mut rest[3]);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::table::{Reader, Row, Writer};

    crate::table! {
        /// A table of a trial.
        Sample = "sample" {
            /// When.
            t_ns: i64,
            /// What; null if unknown.
            name: Option<Text>,
        }
    }

    crate::table! {
        /// The same before its last column was added.
        Earlier = "sample" {
            /// When.
            t_ns: i64,
        }
    }

    crate::table! {
        /// The same of many trials.
        Many = "sample" {
            /// An axis.
            queue: Option<Text>,
            /// Of the trial.
            trial: Option<i64>,
            /// Of the trial.
            repetition: i64,
            /// Of the trial.
            valid: bool,
            /// Of the file.
            file: Option<Text>,
            /// When.
            t_ns: i64,
            /// What; null if unknown.
            name: Option<Text>,
        }
    }

    fn sample(i: i64) -> Sample {
        Sample { t_ns: i, name: (i % 3 != 0).then(|| format!("flow {}", i % 4).into()) }
    }

    /// The rows of a trial in a file of their own, in groups of 65,536.
    fn written(dir: &Path, name: &str, rows: Range<i64>) -> PathBuf {
        let mut writer = Writer::create_of(dir, name).unwrap();
        rows.map(sample).for_each(|row| writer.push(row).unwrap());
        writer.close().unwrap();
        dir.join(format!("sample.{name}.parquet"))
    }

    fn place(trial: u32, file: Option<&str>) -> Place {
        Place {
            axes: vec![trial.is_multiple_of(2).then(|| "10 kB".into())],
            trial: Some(trial),
            repetition: 1,
            valid: trial != 3,
            file: file.map(Text::from),
        }
    }

    fn many(trial: u32, file: Option<&str>, sample: Sample) -> Many {
        let Place { mut axes, trial, repetition, valid, file } = place(trial, file);
        let (trial, repetition) = (trial.map(i64::from), repetition.into());
        let Sample { t_ns, name } = sample;
        Many { queue: axes.remove(0), trial, repetition, valid, file, t_ns, name }
    }

    fn begun(folder: &Path, bounds: Bounds) -> Compact {
        Compact::new(folder, Table::of::<Sample>(), &["queue".to_owned()], bounds).unwrap()
    }

    fn read(folder: &Path, files: u64) -> Vec<Many> {
        let part = |number| folder.join(format!("part-{number}.parquet"));
        assert!(!part(files).exists());
        (0..files).flat_map(|number| Reader::read_file(&part(number)).unwrap()).collect()
    }

    #[test]
    fn rows_of_many_files_are_in_few_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let sizes: [i64; 4] = [70_000, 0, 5, 140_000];
        let small = Bounds { group_rows: 1000, rows: 100_000, bytes: u64::MAX };
        let by_bytes = Bounds { group_rows: 1000, rows: u64::MAX, bytes: 1000 };
        for (bounds, files) in [(Bounds::default(), 1), (small, 2), (by_bytes, 5)] {
            let folder = dir.path().join(files.to_string());
            let mut compact = begun(&folder, bounds);
            let mut expected = Vec::new();
            for (trial, size) in (1..).zip(sizes) {
                let path = written(dir.path(), "viewer", 0..size);
                let file = File::open(&path).unwrap();
                let added = compact.append(&path, file, &place(trial, Some("viewer"))).unwrap();
                assert_eq!(added, size as u64);
                expected.extend((0..size).map(|i| many(trial, Some("viewer"), sample(i))));
            }
            let done = compact.close().unwrap();
            assert_eq!(done, Written { files, rows: expected.len() as u64 });
            assert!(read(&folder, files) == expected, "{files} files");
        }
    }

    #[test]
    fn nothing_of_a_damaged_file_is_added() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("out");
        let mut compact = begun(&folder, Bounds { group_rows: 1, ..Bounds::default() });
        // The second of its row groups is damaged.
        let path = written(dir.path(), "bad", 0..70_000);
        let whole = std::fs::read(&path).unwrap();
        let reader = parquet::file::reader::SerializedFileReader::new(File::open(&path).unwrap());
        let metadata = reader.unwrap().metadata().clone();
        let (at, _) = metadata.row_group(1).column(0).byte_range();
        let mut wrong = whole.clone();
        wrong[at as usize..at as usize + 40].fill(0xff);
        std::fs::write(&path, wrong).unwrap();
        let mut append =
            |trial| compact.append(&path, File::open(&path).unwrap(), &place(trial, None));
        let error = append(1).unwrap_err();
        assert!(matches!(error, CompactError::Read(_)) && error.to_string().contains("sample.bad"));
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        assert!(matches!(append(1).unwrap_err(), CompactError::Read(_)));
        std::fs::write(&path, whole).unwrap();
        assert_eq!(append(2).unwrap(), 70_000);
        let done = compact.close().unwrap();
        assert_eq!(done, Written { files: 1, rows: 70_000 });
        assert!(read(&folder, 1).iter().all(|row| row.trial == Some(2)));
    }

    #[test]
    fn without_rows_there_is_no_file_and_old_files_have_nulls() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("out");
        assert_eq!(begun(&folder, Bounds::default()).close().unwrap(), Written::default());
        assert!(!folder.exists());
        let mut compact = begun(&folder, Bounds::default());
        let mut writer = Writer::create(dir.path()).unwrap();
        writer.push(Earlier { t_ns: 7 }).unwrap();
        writer.close().unwrap();
        let path = dir.path().join("sample.parquet");
        compact.append(&path, File::open(&path).unwrap(), &place(1, None)).unwrap();
        assert_eq!(compact.close().unwrap(), Written { files: 1, rows: 1 });
        assert_eq!(read(&folder, 1), [many(1, None, Sample { t_ns: 7, name: None })]);
    }

    #[test]
    fn units_are_in_the_files_and_columns_keep_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let mut compact = begun(dir.path(), Bounds::default());
        let path = written(dir.path(), "x", 0..1);
        compact.append(&path, File::open(&path).unwrap(), &place(1, None)).unwrap();
        compact.close().unwrap();
        let file = File::open(dir.path().join("part-0.parquet")).unwrap();
        let reader = parquet::file::reader::SerializedFileReader::new(file).unwrap();
        let known = reader.metadata().file_metadata().key_value_metadata().unwrap().clone();
        let value = |key: &str| known.iter().find(|it| it.key == key).unwrap().value.clone();
        assert_eq!(value("suiro.table").unwrap(), "sample");
        assert_eq!(value("suiro.units").unwrap(), r#"{"t_ns":"ns"}"#);
        let table = Table::of::<Sample>();
        let named = ["rate", "name", "Trial", "T_NS", "file"].map(|it| Compact::axis(&table, it));
        assert_eq!(named, ["rate", "axis.name", "axis.Trial", "axis.T_NS", "axis.file"]);
        assert_eq!(Sample::COLUMNS[1].unit(), None);
    }
}
