//! Rows of tables, as evidence.

use std::fmt;

use suiro_record::tables::LinkRow;

use crate::Records;

/// Rows of one table, counted from 0 over all files of the table in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The table.
    pub table: &'static str,
    /// The first row.
    pub first: usize,
    /// The last row.
    pub last: usize,
    /// Which of them: conditions on columns, joined with commas, such as `endpoint=viewer`; all if empty.
    pub filter: String,
}

impl Evidence {
    /// A row, or those from one to another, of the records of `table`. `None` if they are not among them.
    pub(super) fn of<R>(table: &'static str, rows: &[R], first: &R, last: &R) -> Option<Self> {
        let (first, last) = (place(rows, first)?, place(rows, last)?);
        Some(Self { table, first: first.min(last), last: last.max(first), filter: String::new() })
    }

    /// One row.
    pub(super) fn row<R>(table: &'static str, rows: &[R], row: &R) -> Option<Self> {
        Self::of(table, rows, row, row)
    }

    /// Only those rows that fulfil this as well.
    pub(super) fn only(self, filter: String) -> Self {
        if self.first == self.last { self } else { Self { filter, ..self } }
    }
}

/// A step of a chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What happened.
    pub what: String,
    /// Where that is recorded.
    pub evidence: Evidence,
}

/// Packets that were chosen within a stretch of time.
pub(super) struct Rows<'v> {
    pub rows: Vec<&'v LinkRow>,
    pub from: i64,
    pub to: i64,
}

impl<'v> Rows<'v> {
    /// A step for each flow in each direction of each link, whose filter selects exactly the rows of this flow that were
    /// chosen. `what` describes these rows; `filter` is what they were chosen by, other than time.
    pub fn steps(
        &self,
        records: &Records,
        what: impl Fn(&[&'v LinkRow]) -> String,
        filter: &str,
    ) -> Vec<Step> {
        let mut flows: Vec<Vec<&'v LinkRow>> = Vec::new();
        let same = |a: &LinkRow, b: &LinkRow| {
            (&a.link, a.direction, &a.flow) == (&b.link, b.direction, &b.flow)
        };
        for row in &self.rows {
            match flows.iter_mut().find(|rows| rows.first().is_some_and(|it| same(it, row))) {
                Some(rows) => rows.push(row),
                None => flows.push(vec![row]),
            }
        }
        let step = |rows: &Vec<&'v LinkRow>| {
            let row = rows.first()?;
            let places = || rows.iter().filter_map(|row| place(&records.link, *row));
            let (first, last) = places().min().zip(places().max())?;
            let mut conditions =
                format!("link={},direction={},flow={}", row.link, row.direction, row.flow);
            // Others of the flow may end earlier than the time.
            let to = rows.iter().map(|row| row.t_ns.saturating_add(1)).max().unwrap_or(self.to);
            conditions.push_str(&format!(",t_ns={}..{}", self.from, to.min(self.to)));
            if !filter.is_empty() {
                conditions.push_str(&format!(",{filter}"));
            }
            let evidence = Evidence { table: "link", first, last, filter: String::new() };
            Some(Step { what: what(rows), evidence: evidence.only(conditions) })
        };
        flows.iter().filter_map(step).collect()
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
            true => write!(f, "{}[{}]", self.table, self.first)?,
            false => write!(f, "{}[{}..{}]", self.table, self.first, self.last)?,
        }
        if self.filter.is_empty() { Ok(()) } else { write!(f, "{{{}}}", self.filter) }
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
        let some = Evidence::of("frames", &rows, &rows[0], &rows[2]);
        let some = some.map(|it| it.only("endpoint=viewer".into()).to_string());
        assert_eq!(some.as_deref(), Some("frames[0..2]{endpoint=viewer}"));
    }
}
