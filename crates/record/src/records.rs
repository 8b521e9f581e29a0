//! The tables of a trial, all at once.

use crate::table::{Column, Row};

/// A table, as documentation shows it.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Its name: the file is `NAME.parquet`.
    pub name: &'static str,
    /// What one row stands for.
    pub doc: &'static str,
    /// Its columns, in order.
    pub columns: &'static [Column],
}

impl Table {
    /// The table of these rows.
    pub const fn of<R: Row>() -> Self {
        Self { name: R::TABLE, doc: R::DOC, columns: R::COLUMNS }
    }
}

/// Where the rows of a trial come from.
pub trait Source {
    /// All rows of one table; none if there is no such table.
    fn rows<R: Row>(&mut self) -> Vec<R>;
}

/// Declares the list of tables: those with a field are analysed, and so are part of `Records`; the others
/// are only written, for other tools.
macro_rules! tables {
    ($($row:ident $(: $field:ident $doc:literal)?;)+) => {
        /// Every table, in the order of their documentation.
        pub const TABLES: &[$crate::records::Table] = &[$($crate::records::Table::of::<$row>()),+];

        /// What is analysed of one trial: the rows of its tables, in any order, and what was made of its screens.
        #[derive(Debug, Clone, Default)]
        pub struct Records {
            $($(#[doc = $doc] pub $field: Vec<$row>,)?)+
            /// What was made of the viewers' screens afterwards.
            pub screens: Vec<$crate::documents::ScreenOutcome>,
        }

        impl Records {
            /// Takes the rows of every table from `source`; there are no screens among them.
            pub fn read(source: &mut impl $crate::records::Source) -> Self {
                Self {
                    $($($field: $crate::records::Source::rows::<$row>(source),)?)+
                    screens: Vec::new(),
                }
            }
        }
    };
}
pub(crate) use tables;
