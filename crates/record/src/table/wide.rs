//! Tables whose columns are known only when they are written: a row per trial, and a column per metric.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::reader::{ChunkReader, FileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::record::Field;
use parquet::schema::types::Type;
use suiro_outside::Beside;

use super::RecordError;
use super::read::{reader, unless_it_panics};

/// Most values of such a table that are read: those of 100,000 trials with 1000 metrics. It bounds memory.
const VALUES_MAX: u64 = 100_000_000;

/// A column, which any row may leave empty.
pub(crate) struct Wide<'a> {
    pub name: String,
    pub values: Values<'a>,
}

type Column<'a, T> = Box<dyn Iterator<Item = Option<T>> + 'a>;

/// The values of a column, one per row.
pub(crate) enum Values<'a> {
    Text(Column<'a, Cow<'a, str>>),
    Count(Column<'a, u64>),
    Truth(Column<'a, bool>),
    Real(Column<'a, f64>),
}

impl Values<'_> {
    fn kind(&self) -> (PhysicalType, Option<LogicalType>) {
        match self {
            Self::Text(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Count(_) => {
                let unsigned = LogicalType::integer(64, false);
                (PhysicalType::INT64, Some(unsigned))
            }
            Self::Truth(_) => (PhysicalType::BOOLEAN, None),
            Self::Real(_) => (PhysicalType::DOUBLE, None),
        }
    }
}

/// Writes a table next to its place and renames it: one row group, a column at a time.
pub(crate) fn write(path: &Path, name: &str, columns: Vec<Wide<'_>>) -> Result<(), RecordError> {
    let io = |cause| RecordError::Io { path: path.into(), cause };
    let parquet = |cause| RecordError::Parquet { path: path.into(), cause };
    let fields = columns.iter().map(|column| {
        let (physical, logical) = column.values.kind();
        let field = Type::primitive_type_builder(&column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        field.build().map(Arc::new)
    });
    let fields = fields.collect::<Result<Vec<_>, _>>().map_err(parquet)?;
    let schema = Type::group_type_builder(name).with_fields(fields).build().map_err(parquet)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(format!("suiro {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut file = Beside::replace(path).map_err(io)?;
    let written = SerializedFileWriter::new(&mut file, Arc::new(schema), Arc::new(properties));
    written.and_then(|writer| write_group(writer, columns)).map_err(parquet)?;
    file.keep().map_err(io)
}

fn write_group(
    mut file: SerializedFileWriter<&mut Beside>,
    columns: Vec<Wide<'_>>,
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for column in columns {
        let mut to = group.next_column()?.expect("the schema has this column");
        write_column(&mut to, column.values)?;
        to.close()?;
    }
    group.close()?;
    file.close().map(drop)
}

fn write_column(
    to: &mut SerializedColumnWriter<'_>,
    values: Values<'_>,
) -> Result<(), ParquetError> {
    match values {
        Values::Text(values) => {
            // Most texts repeat, so they share their bytes.
            let mut known: BTreeMap<Cow<'_, str>, ByteArray> = BTreeMap::new();
            let mut share = |text: Cow<'_, str>| match known.get(&text) {
                Some(bytes) => bytes.clone(),
                None => {
                    let bytes = ByteArray::from(text.as_bytes().to_vec());
                    known.insert(text.into_owned().into(), bytes.clone());
                    bytes
                }
            };
            let (levels, dense) = parted(values.map(|text| text.map(&mut share)));
            to.typed::<ByteArrayType>().write_batch(&dense, Some(&levels), None)?;
        }
        Values::Count(values) => {
            let (levels, dense) = parted(values.map(|value| value.map(u64::cast_signed)));
            to.typed::<Int64Type>().write_batch(&dense, Some(&levels), None)?;
        }
        Values::Truth(values) => {
            let (levels, dense) = parted(values);
            to.typed::<BoolType>().write_batch(&dense, Some(&levels), None)?;
        }
        Values::Real(values) => {
            let (levels, dense) = parted(values);
            to.typed::<DoubleType>().write_batch(&dense, Some(&levels), None)?;
        }
    }
    Ok(())
}

/// What Parquet stores: which rows have a value, and the values.
fn parted<T>(values: impl Iterator<Item = Option<T>>) -> (Vec<i16>, Vec<T>) {
    let mut dense = Vec::new();
    let levels = values.map(|value| {
        let level = i16::from(value.is_some());
        dense.extend(value);
        level
    });
    let levels = levels.collect();
    (levels, dense)
}

/// Hands over the rows of a table: the names of its columns, and a value for each.
pub(crate) fn each(
    path: &Path,
    file: impl ChunkReader + 'static,
    mut take: impl FnMut(&[String], Vec<Field>) -> Result<(), String>,
) -> Result<(), RecordError> {
    let wrong = |problem: String| RecordError::Schema { path: path.into(), problem };
    unless_it_panics(path, || {
        let parquet = |cause| RecordError::Parquet { path: path.into(), cause };
        let reader = reader(file).map_err(parquet)?;
        let metadata = reader.metadata().file_metadata();
        let columns = metadata.schema_descr().columns().iter();
        let names: Vec<String> = columns.map(|column| column.name().to_owned()).collect();
        let rows = u64::try_from(metadata.num_rows()).unwrap_or(u64::MAX);
        let values = rows.saturating_mul(names.len().max(1) as u64);
        if values > VALUES_MAX {
            return Err(wrong(format!(
                "expected at most {VALUES_MAX} values, found {rows} rows of {} columns",
                names.len()
            )));
        }
        for row in reader.get_row_iter(None).map_err(parquet)? {
            let row = row.map_err(parquet)?;
            let fields = row.into_columns().into_iter().map(|(_, field)| field).collect();
            take(&names, fields).map_err(wrong)?;
        }
        Ok(())
    })
}
