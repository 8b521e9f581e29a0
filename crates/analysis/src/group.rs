//! Rows of a table in groups.

use std::collections::BTreeMap;

/// Rows by what `key` says of them, each group sorted by time; of one time in the order of the table.
pub(crate) fn grouped<'a, R, K: Ord>(
    rows: impl IntoIterator<Item = &'a R>,
    key: impl Fn(&'a R) -> K,
    t_ns: fn(&R) -> i64,
) -> BTreeMap<K, Vec<&'a R>> {
    let mut groups: BTreeMap<K, Vec<&R>> = BTreeMap::new();
    for row in rows {
        groups.entry(key(row)).or_default().push(row);
    }
    for rows in groups.values_mut() {
        rows.sort_by_key(|row| t_ns(row));
    }
    groups
}
