//! Typed tables in Parquet files: a row is a struct, a column is a field.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

/// Text that many rows share: cloning it copies a pointer.
pub type Text = Arc<str>;

/// Rows held in memory before they go to disk as one row group.
const ROWS_PER_GROUP: usize = 65_536;

/// Why a table could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file could not be opened, written or read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a Parquet file, or is cut short.
    #[error("{path}: {source}")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the Parquet reader or writer said.
        source: parquet::errors::ParquetError,
    },
    /// The file is Parquet, but its content is not what its footer says.
    #[error("{path}: damaged: its content is not what its footer says")]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The file is Parquet, but not this table.
    #[error("{path}: {problem}")]
    Schema {
        /// The file.
        path: PathBuf,
        /// Which column, and what is wrong with it.
        problem: String,
    },
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Integer,
    /// Real numbers.
    Real,
    /// True or false.
    Boolean,
    /// UTF-8 text, usually from a small set.
    Text,
}

/// One column of a table, as documented.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name; ends in its unit.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// True if a row may leave it empty: not measured, or not applicable.
    pub nullable: bool,
    /// What it means.
    pub doc: &'static str,
}

/// A struct that is one row of a table. Implemented by [`table!`](crate::table!).
pub trait Row: Sized {
    /// The table's name: the file is `NAME.parquet`.
    const TABLE: &'static str;
    /// What one row stands for.
    const DOC: &'static str;
    /// The columns, in order.
    const COLUMNS: &'static [Column];
    /// Appends this row to one buffer per column.
    fn append(self, columns: &mut [Buffer]);
    /// Takes row `index` from one buffer per column.
    fn at(columns: &[Buffer], index: usize) -> Self;
}

/// A Rust type that can be a column.
pub trait Field: Sized {
    /// What the column holds.
    const KIND: Kind;
    /// True for `Option`s.
    const NULLABLE: bool = false;
    /// Appends the value.
    fn append(self, buffer: &mut Buffer);
    /// Takes value `index`.
    fn at(buffer: &Buffer, index: usize) -> Self;
}

/// The values of one column for the rows in memory. Null rows hold a default and are not `present`.
#[derive(Debug)]
pub struct Buffer {
    values: Values,
    present: Vec<bool>,
}

#[derive(Debug)]
enum Values {
    Integer(Vec<i64>),
    Real(Vec<f64>),
    Boolean(Vec<bool>),
    Text(Vec<Text>),
}

impl Buffer {
    fn new(kind: Kind) -> Self {
        let values = match kind {
            Kind::Integer => Values::Integer(Vec::new()),
            Kind::Real => Values::Real(Vec::new()),
            Kind::Boolean => Values::Boolean(Vec::new()),
            Kind::Text => Values::Text(Vec::new()),
        };
        Self { values, present: Vec::new() }
    }

    fn append_null(&mut self) {
        match &mut self.values {
            Values::Integer(v) => v.push(0),
            Values::Real(v) => v.push(0.0),
            Values::Boolean(v) => v.push(false),
            Values::Text(v) => v.push(Text::default()),
        }
        self.present.push(false);
    }
}

macro_rules! field {
    ($type:ty, $kind:ident, $into:expr, $from:expr) => {
        impl Field for $type {
            const KIND: Kind = Kind::$kind;
            fn append(self, buffer: &mut Buffer) {
                let Values::$kind(values) = &mut buffer.values else {
                    unreachable!("a buffer is made for its field's kind")
                };
                values.push($into(self));
                buffer.present.push(true);
            }
            fn at(buffer: &Buffer, index: usize) -> Self {
                let Values::$kind(values) = &buffer.values else {
                    unreachable!("a buffer is made for its field's kind")
                };
                $from(&values[index])
            }
        }
    };
}
field!(i64, Integer, |v| v, |v: &i64| *v);
field!(f64, Real, |v| v, |v: &f64| *v);
field!(bool, Boolean, |v| v, |v: &bool| *v);
field!(Text, Text, |v| v, |v: &Text| v.clone());

impl<F: Field> Field for Option<F> {
    const KIND: Kind = F::KIND;
    const NULLABLE: bool = true;
    fn append(self, buffer: &mut Buffer) {
        match self {
            Some(value) => value.append(buffer),
            None => buffer.append_null(),
        }
    }
    fn at(buffer: &Buffer, index: usize) -> Self {
        buffer.present[index].then(|| F::at(buffer, index))
    }
}

/// Declares a table: the row struct, its columns and their documentation in one place.
#[macro_export]
macro_rules! table {
    ($(#[doc = $table_doc:literal])+ $row:ident = $table:literal {
        $($(#[doc = $doc:literal])+ $field:ident: $type:ty,)+
    }) => {
        $(#[doc = $table_doc])+
        #[derive(Debug, Clone, PartialEq)]
        pub struct $row {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }
        impl $crate::table::Row for $row {
            const TABLE: &'static str = $table;
            const DOC: &'static str = concat!($($table_doc, "\n"),+);
            const COLUMNS: &'static [$crate::table::Column] = &[$($crate::table::Column {
                name: stringify!($field),
                kind: <$type as $crate::table::Field>::KIND,
                nullable: <$type as $crate::table::Field>::NULLABLE,
                doc: concat!($($doc),+),
            }),+];
            fn append(self, columns: &mut [$crate::table::Buffer]) {
                let mut columns = columns.iter_mut();
                $($crate::table::Field::append(
                    self.$field,
                    columns.next().expect("one buffer per column"),
                );)+
            }
            fn at(columns: &[$crate::table::Buffer], index: usize) -> Self {
                let mut columns = columns.iter();
                Self {
                    $($field: $crate::table::Field::at(
                        columns.next().expect("one buffer per column"),
                        index,
                    ),)+
                }
            }
        }
    };
}

fn schema<R: Row>() -> Result<Arc<Type>, parquet::errors::ParquetError> {
    let fields = R::COLUMNS
        .iter()
        .map(|column| {
            let (physical, logical) = match column.kind {
                Kind::Integer => (PhysicalType::INT64, None),
                Kind::Real => (PhysicalType::DOUBLE, None),
                Kind::Boolean => (PhysicalType::BOOLEAN, None),
                Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            };
            let repetition =
                if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
            Type::primitive_type_builder(column.name, physical)
                .with_repetition(repetition)
                .with_logical_type(logical)
                .build()
                .map(Arc::new)
        })
        .collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder(R::TABLE).with_fields(fields).build().map(Arc::new)
}

/// Writes one table. Rows go to disk a group at a time; [`Writer::close`] makes the file whole.
pub struct Writer<R: Row> {
    path: PathBuf,
    file: SerializedFileWriter<File>,
    columns: Vec<Buffer>,
    rows: usize,
    row: std::marker::PhantomData<fn(R)>,
}

impl<R: Row> Writer<R> {
    /// Makes `DIR/TABLE.parquet`; replaces a file of that name.
    pub fn create(dir: &Path) -> Result<Self, RecordError> {
        Self::create_named(dir, R::TABLE)
    }

    /// Makes `DIR/NAME.parquet`, for a table of which a trial has several (one per process).
    pub fn create_named(dir: &Path, name: &str) -> Result<Self, RecordError> {
        let path = dir.join(format!("{name}.parquet"));
        let file =
            File::create(&path).map_err(|source| RecordError::Io { path: path.clone(), source })?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_created_by(format!("suiro {}", env!("CARGO_PKG_VERSION")))
            .build();
        let file = schema::<R>()
            .and_then(|schema| SerializedFileWriter::new(file, schema, Arc::new(properties)))
            .map_err(|source| RecordError::Parquet { path: path.clone(), source })?;
        Ok(Self { path, file, columns: buffers::<R>(), rows: 0, row: std::marker::PhantomData })
    }

    /// Appends a row.
    pub fn push(&mut self, row: R) -> Result<(), RecordError> {
        row.append(&mut self.columns);
        self.rows += 1;
        if self.rows == ROWS_PER_GROUP { self.flush() } else { Ok(()) }
    }

    /// Writes what is in memory and the footer. Without it the file cannot be read.
    pub fn close(mut self) -> Result<(), RecordError> {
        self.flush()?;
        let Self { path, file, .. } = self;
        file.close().map(drop).map_err(|source| RecordError::Parquet { path, source })
    }

    fn flush(&mut self) -> Result<(), RecordError> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let columns = std::mem::replace(&mut self.columns, buffers::<R>());
        write_group(&mut self.file, &columns)
            .map_err(|source| RecordError::Parquet { path: self.path.clone(), source })
    }
}

fn buffers<R: Row>() -> Vec<Buffer> {
    R::COLUMNS.iter().map(|column| Buffer::new(column.kind)).collect()
}

fn write_group(
    file: &mut SerializedFileWriter<File>,
    columns: &[Buffer],
) -> Result<(), parquet::errors::ParquetError> {
    let mut group = file.next_row_group()?;
    for buffer in columns {
        let mut column = group.next_column()?.expect("the schema has this column");
        let levels: Vec<i16> = buffer.present.iter().map(|&p| i16::from(p)).collect();
        let levels = Some(levels.as_slice());
        match &buffer.values {
            Values::Integer(v) => {
                column.typed::<Int64Type>().write_batch(&dense(v, buffer), levels, None)?;
            }
            Values::Real(v) => {
                column.typed::<DoubleType>().write_batch(&dense(v, buffer), levels, None)?;
            }
            Values::Boolean(v) => {
                column.typed::<BoolType>().write_batch(&dense(v, buffer), levels, None)?;
            }
            Values::Text(v) => {
                let texts = shared_bytes(dense(v, buffer));
                column.typed::<ByteArrayType>().write_batch(&texts, levels, None)?;
            }
        }
        column.close()?;
    }
    group.close().map(drop)
}

/// Texts that follow each other are mostly one: they share their bytes.
fn shared_bytes(texts: Vec<Text>) -> Vec<ByteArray> {
    let mut latest: Option<(Text, ByteArray)> = None;
    let share = |text: Text| match &latest {
        Some((known, bytes)) if Arc::ptr_eq(known, &text) => bytes.clone(),
        _ => {
            let bytes = ByteArray::from(text.as_bytes().to_vec());
            latest = Some((text, bytes.clone()));
            bytes
        }
    };
    texts.into_iter().map(share).collect()
}

/// The values of the rows that are not null, as Parquet stores them.
fn dense<T: Clone>(values: &[T], buffer: &Buffer) -> Vec<T> {
    values
        .iter()
        .zip(&buffer.present)
        .filter(|(_, present)| **present)
        .map(|(v, _)| v.clone())
        .collect()
}

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
        let io = |source| RecordError::Io { path: dir.to_owned(), source };
        let prefix = format!("{}.", R::TABLE);
        let mut files = Vec::new();
        for entry in std::fs::read_dir(dir).map_err(io)? {
            let path = entry.map_err(io)?.path();
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            if name.starts_with(&prefix) && name.ends_with(".parquet") {
                files.push(path);
            }
        }
        files.sort();
        let mut rows = Vec::new();
        for file in files {
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
        // The Parquet reader panics on some damaged pages ("decoder for dict should have been
        // set"); a file is input, and input is refused. Whoever takes rows is told that there is an
        // error, and has those before it.
        let read = std::panic::AssertUnwindSafe(|| Self::read_rows(path, take));
        std::panic::catch_unwind(read)
            .unwrap_or_else(|_| Err(RecordError::Damaged { path: path.into() }))
    }

    fn read_rows<R: Row>(path: &Path, mut take: impl FnMut(R)) -> Result<(), RecordError> {
        let file =
            File::open(path).map_err(|source| RecordError::Io { path: path.into(), source })?;
        let parquet = |source| RecordError::Parquet { path: path.into(), source };
        let reader = SerializedFileReader::new(file).map_err(parquet)?;
        check_schema::<R>(path, &reader)?;
        for index in 0..reader.num_row_groups() {
            let group = reader.get_row_group(index).map_err(parquet)?;
            let count = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            let mut columns = Vec::new();
            for (at, column) in R::COLUMNS.iter().enumerate() {
                let reader = group.get_column_reader(at).map_err(parquet)?;
                columns.push(read_column(reader, column, count).map_err(parquet)?);
            }
            if let Some(short) = columns.iter().position(|c| c.present.len() != count) {
                let name = R::COLUMNS[short].name;
                let problem = format!("column {name} has fewer rows than the table");
                return Err(RecordError::Schema { path: path.into(), problem });
            }
            (0..count).for_each(|row| take(R::at(&columns, row)));
        }
        Ok(())
    }
}

fn check_schema<R: Row>(
    path: &Path,
    reader: &SerializedFileReader<File>,
) -> Result<(), RecordError> {
    let found = reader.metadata().file_metadata().schema_descr();
    let mut problem = None;
    if found.num_columns() != R::COLUMNS.len() {
        problem = Some(format!("{} columns, expected {}", found.num_columns(), R::COLUMNS.len()));
    }
    for (column, want) in found.columns().iter().zip(R::COLUMNS) {
        let physical = match want.kind {
            Kind::Integer => PhysicalType::INT64,
            Kind::Real => PhysicalType::DOUBLE,
            Kind::Boolean => PhysicalType::BOOLEAN,
            Kind::Text => PhysicalType::BYTE_ARRAY,
        };
        let nullable = column.max_def_level() == 1;
        if column.name() != want.name
            || column.physical_type() != physical
            || column.max_rep_level() != 0
            || nullable != want.nullable
        {
            problem.get_or_insert(format!(
                "column {} ({}) where {} ({:?}) was expected",
                column.name(),
                column.physical_type(),
                want.name,
                want.kind
            ));
        }
    }
    match problem {
        None => Ok(()),
        Some(problem) => Err(RecordError::Schema {
            path: path.into(),
            problem: format!("not a table `{}` of this version: {problem}", R::TABLE),
        }),
    }
}

fn read_column(
    reader: ColumnReader,
    column: &Column,
    rows: usize,
) -> Result<Buffer, parquet::errors::ParquetError> {
    let mut levels: Vec<i16> = Vec::new();
    macro_rules! read {
        ($reader:expr, $kind:ident, $convert:expr) => {{
            let (mut reader, mut dense) = ($reader, Vec::new());
            let want = column.nullable.then_some(&mut levels);
            reader.read_records(rows, want, None, &mut dense)?;
            let mut dense = dense.into_iter().map($convert);
            if column.nullable {
                let values = levels.iter().map(|&level| {
                    if level == 1 { dense.next().unwrap_or_default() } else { Default::default() }
                });
                Values::$kind(values.collect())
            } else {
                Values::$kind(dense.collect())
            }
        }};
    }
    let values = match reader {
        ColumnReader::Int64ColumnReader(r) => read!(r, Integer, |v| v),
        ColumnReader::DoubleColumnReader(r) => read!(r, Real, |v| v),
        ColumnReader::BoolColumnReader(r) => read!(r, Boolean, |v| v),
        ColumnReader::ByteArrayColumnReader(r) => {
            let mut shared = Shared::default();
            read!(r, Text, |v: ByteArray| shared.text(&String::from_utf8_lossy(v.data())))
        }
        _ => unreachable!("the schema was checked"),
    };
    let length = match &values {
        Values::Integer(v) => v.len(),
        Values::Real(v) => v.len(),
        Values::Boolean(v) => v.len(),
        Values::Text(v) => v.len(),
    };
    let present =
        if column.nullable { levels.iter().map(|&l| l == 1).collect() } else { vec![true; length] };
    Ok(Buffer { values, present })
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
mod tests;
