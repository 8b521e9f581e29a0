//! Rows of tables, as evidence.

use std::fmt;

/// Rows of one table, counted from 0 over all files of the table in the order of their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// The table.
    pub table: &'static str,
    /// The first row.
    pub first: usize,
    /// The last row.
    pub last: usize,
}

impl Evidence {
    /// A row, or those from one to another, of the records of `table`. `None` if they are not among them.
    pub(super) fn of<R>(table: &'static str, rows: &[R], first: &R, last: &R) -> Option<Self> {
        let (first, last) = (place(rows, first)?, place(rows, last)?);
        Some(Self { table, first: first.min(last), last: last.max(first) })
    }

    /// One row.
    pub(super) fn row<R>(table: &'static str, rows: &[R], row: &R) -> Option<Self> {
        Self::of(table, rows, row, row)
    }
}

/// Where a row lies among those that it was taken from.
fn place<R>(rows: &[R], row: &R) -> Option<usize> {
    let offset = (&raw const *row).addr().checked_sub(rows.as_ptr().addr())?;
    let index = offset / size_of::<R>().max(1);
    (index < rows.len()).then_some(index)
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}[{}]", self.table, self.first),
            false => write!(f, "{}[{}..{}]", self.table, self.first, self.last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_named_by_where_they_lie() {
        let rows = [3u64, 1, 2];
        let found = Evidence::of("tcp", &rows, &rows[2], &rows[1]).map(|it| it.to_string());
        assert_eq!(found.as_deref(), Some("tcp[1..2]"));
        let one = Evidence::row("link", &rows, &rows[0]).map(|it| it.to_string());
        assert_eq!(one.as_deref(), Some("link[0]"));
        assert_eq!(Evidence::row("link", &rows[..2], &rows[2]), None);
    }
}
