//! A cell in words, and an index in JSON.

use suiro_record::{Cell, label_text};

/// A cell in words: its values, joined.
pub(crate) fn label(cell: &Cell) -> String {
    let values: Vec<String> = cell.values().map(label_text).collect();
    if values.is_empty() { "all".into() } else { values.join(" · ") }
}

/// An index for JSON.
pub(crate) fn short(index: usize) -> u32 {
    u32::try_from(index).expect("fewer trials than 2³²: each has a folder")
}
