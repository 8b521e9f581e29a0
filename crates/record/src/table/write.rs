//! Rows to Parquet files.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::field::Values;
use super::read::open;
use super::{Buffer, Column, Kind, RecordError, Row, Text};

/// Rows held in memory before they go to disk as one row group.
pub(super) const ROWS_PER_GROUP: usize = 65_536;

/// A column of a file: its name, what it holds, and whether it may be null.
pub(super) type Leaf<'a> = (&'a str, Kind, bool);

impl Column {
    /// As it is in a file.
    pub(super) const fn leaf(&self) -> Leaf<'_> {
        (self.name, self.kind, self.nullable)
    }
}

/// The schema of a file with these columns.
pub(super) fn schema<'a>(
    table: &str,
    columns: impl Iterator<Item = Leaf<'a>>,
) -> Result<Arc<Type>, ParquetError> {
    let fields = columns
        .map(|(name, kind, nullable)| {
            let text = matches!(kind, Kind::Text | Kind::Word(_));
            let logical = text.then_some(LogicalType::String);
            let repetition = if nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
            Type::primitive_type_builder(name, kind.physical())
                .with_repetition(repetition)
                .with_logical_type(logical)
                .build()
                .map(Arc::new)
        })
        .collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder(table).with_fields(fields).build().map(Arc::new)
}

/// How every table is written.
pub(super) fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(format!("suiro {}", env!("CARGO_PKG_VERSION")))
}

/// Writes one table. Rows go to disk a group at a time; [`Writer::close`] completes the file.
pub struct Writer<R: Row> {
    path: PathBuf,
    file: SerializedFileWriter<File>,
    columns: Vec<Buffer>,
    rows: usize,
    row: std::marker::PhantomData<fn(R)>,
}

impl<R: Row> Writer<R> {
    /// Makes `DIR/TABLE.parquet`; replaces a table of that name, and nothing else.
    pub fn create(dir: &Path) -> Result<Self, RecordError> {
        Self::create_at(dir.join(format!("{}.parquet", R::TABLE)))
    }

    /// Makes `DIR/TABLE.NAME.parquet`, for a table of which a trial has several: `name` is the endpoint, host or link
    /// whose rows these are.
    pub fn create_of(dir: &Path, name: &str) -> Result<Self, RecordError> {
        Self::create_at(dir.join(format!("{}.{name}.parquet", R::TABLE)))
    }

    fn create_at(path: PathBuf) -> Result<Self, RecordError> {
        let file = create(&path).map_err(|cause| RecordError::Io { path: path.clone(), cause })?;
        let file = schema(R::TABLE, R::COLUMNS.iter().map(Column::leaf))
            .and_then(|schema| SerializedFileWriter::new(file, schema, properties().build().into()))
            .map_err(|cause| RecordError::Parquet { path: path.clone(), cause })?;
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
        file.close().map(drop).map_err(|cause| RecordError::Parquet { path, cause })
    }

    fn flush(&mut self) -> Result<(), RecordError> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let columns = std::mem::replace(&mut self.columns, buffers::<R>());
        write_group(&mut self.file, R::COLUMNS.iter().map(|column| column.kind), &columns)
            .map_err(|cause| RecordError::Parquet { path: self.path.clone(), cause })
    }
}

fn buffers<R: Row>() -> Vec<Buffer> {
    R::COLUMNS.iter().map(|column| Buffer::new(column.kind)).collect()
}

/// Writes a row group: a buffer per column, each of its kind.
pub(super) fn write_group(
    file: &mut SerializedFileWriter<File>,
    kinds: impl Iterator<Item = Kind>,
    buffers: &[Buffer],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for (kind, buffer) in kinds.zip(buffers) {
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
            Values::Word(v) => {
                let texts = word_bytes(kind, &dense(v, buffer));
                column.typed::<ByteArrayType>().write_batch(&texts, levels, None)?;
            }
        }
        column.close()?;
    }
    group.close().map(drop)
}

/// Consecutive texts are mostly equal: they share their bytes.
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

/// Words as they are written.
fn word_bytes(kind: Kind, places: &[u8]) -> Vec<ByteArray> {
    let Kind::Word(words) = kind else { unreachable!("a buffer is made for its field's kind") };
    let bytes: Vec<ByteArray> = words.iter().map(|(word, _)| ByteArray::from(*word)).collect();
    places.iter().map(|place| bytes[usize::from(*place)].clone()).collect()
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

/// Makes a table's file. One that is there is written over if suiro made it.
fn create(path: &Path) -> std::io::Result<File> {
    match File::create_new(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && is_ours(path) => {
            std::fs::remove_file(path)?;
            File::create_new(path)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let problem = "there already, and no table of suiro's\nhint: choose another folder";
            Err(std::io::Error::new(ErrorKind::AlreadyExists, problem))
        }
        created => created,
    }
}

/// Whether a file begins as a table does: those that were cut off have no footer.
fn is_ours(path: &Path) -> bool {
    let mut magic = Vec::new();
    let read = open(path).and_then(|file| file.take(4).read_to_end(&mut magic));
    // One that was cut before its first byte is no loss.
    read.is_ok() && (magic == b"PAR1" || magic.is_empty())
}
