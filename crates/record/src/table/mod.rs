//! Typed tables in Parquet files: a row is a struct, a column is a field.

mod compact;
mod field;
mod read;
mod text;
pub(crate) mod wide;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use parquet::basic::Type as PhysicalType;

pub use compact::{Bounds, Compact, CompactError, Place, Written};
pub use field::{Buffer, Field};
pub use read::Reader;
pub(crate) use read::reader;
pub use text::TextTable;
pub use write::Writer;

/// Text that many rows share: cloning it copies a pointer.
pub type Text = Arc<str>;

/// Why a table could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file could not be opened, written or read.
    #[error("{path}: {cause}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file is not a Parquet file, or is cut short.
    #[error("{path}: {cause}")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the Parquet reader or writer said.
        cause: parquet::errors::ParquetError,
    },
    /// The file is Parquet, but its content does not match its footer.
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
    /// The file is this table, but one of its values cannot be in its column.
    #[error(
        "{path}: column {column}, row {row}: {problem}\n\
         hint: manifest.json names the version of suiro that recorded it; read it with that one"
    )]
    Value {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// The row, from 1.
        row: usize,
        /// What was expected and what was found.
        problem: String,
    },
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Integer,
    /// Whole numbers that are not negative, such as times, counts and rates.
    Natural,
    /// Real numbers.
    Real,
    /// True or false.
    Boolean,
    /// UTF-8 text.
    Text,
    /// One word of a closed list: each as it is written, and what it means.
    Word(&'static [(&'static str, &'static str)]),
}

impl Kind {
    /// How Parquet stores it.
    const fn physical(self) -> PhysicalType {
        match self {
            Self::Integer | Self::Natural => PhysicalType::INT64,
            Self::Real => PhysicalType::DOUBLE,
            Self::Boolean => PhysicalType::BOOLEAN,
            Self::Text | Self::Word(_) => PhysicalType::BYTE_ARRAY,
        }
    }
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

impl Column {
    /// Its unit, which is the last word of its name; `None` if it has none.
    pub fn unit(&self) -> Option<&'static str> {
        let (_, last) = self.name.rsplit_once('_')?;
        let units = [
            ("ns", "ns"),
            ("us", "µs"),
            ("ms", "ms"),
            ("s", "s"),
            ("bytes", "B"),
            ("bps", "bit/s"),
            ("packets", "packets"),
            ("frames", "frames"),
            ("db", "dB"),
        ];
        units.into_iter().find(|(word, _)| *word == last).map(|(_, unit)| unit)
    }
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

#[cfg(test)]
mod tests;
