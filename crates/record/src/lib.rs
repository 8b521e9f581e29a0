//! The schema of everything measured, and the results folder.
//!
//! A *record* is a typed table on disk ([`table`], [`tables`]): one struct per row, one Parquet file
//! per table and trial. A *results folder* ([`folder`], [`documents`]) holds the manifest, the summary and a
//! folder per trial. Programs outside suiro read both; see `docs/records.md`, which is generated
//! from the types here.

mod difference;
pub mod documents;
pub mod flows;
pub mod folder;
mod metrics;
pub mod records;
mod rows;
pub mod summary;
pub mod table;
pub mod tables;
pub mod words;

pub use difference::difference;
pub use documents::*;
pub use folder::{Folder, FolderError};
pub use metrics::Metrics;
pub use records::{Source, Table};
pub use summary::*;
pub use table::{Compact, CompactError, Reader, RecordError, Row, Text, TextTable, Writer};
pub use tables::Records;
