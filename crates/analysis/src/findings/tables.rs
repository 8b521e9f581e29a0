//! Published tables next to what was measured.

use suiro_record::{ComparedEntry, ComparedRow, ComparedTable, TrialSummary};
use suiro_study::{Entry, Study, Table};

use super::cells::{Cells, Which};

/// One table.
pub(super) fn compare(study: &Study, table: &Table, trials: &[TrialSummary]) -> ComparedTable {
    let cells = Cells::new(study, trials, Which::Means);
    let row = |row: &suiro_study::Row| ComparedRow {
        title: row.title.clone(),
        entries: row.entries.iter().map(|e| entry(&cells, e, table.tolerance)).collect(),
    };
    let rows: Vec<ComparedRow> = table.rows.iter().map(row).collect();
    let entries: Vec<&ComparedEntry> = rows.iter().flat_map(|row| &row.entries).collect();
    let (near, ordered) = (near(&entries), ordered(&entries));
    ComparedTable {
        id: table.id.clone(),
        title: table.title.clone(),
        note: table.note.clone(),
        tolerance: table.tolerance,
        columns: table.columns.clone(),
        rows,
        near,
        ordered,
    }
}

fn entry(cells: &Cells<'_>, entry: &Entry, tolerance: f64) -> ComparedEntry {
    let metric = &cells.study.metrics[entry.metric];
    let figure = cells.figure(metric, &entry.cell);
    let published = entry.published;
    let (measured, because) = match figure {
        Ok(mean) => (Some(metric.printed(mean.value)), None),
        Err(why) => (None, Some(why)),
    };
    let ratio = measured.map(|measured| measured / published).filter(|r| r.is_finite() && *r > 0.0);
    // Zero is near to zero only.
    let near = measured.map(|measured| match ratio {
        Some(ratio) => ratio.max(1.0 / ratio) <= tolerance,
        None => measured == published,
    });
    ComparedEntry {
        metric: metric.metric.clone(),
        unit: metric.unit.name.to_owned(),
        published,
        measured,
        ratio,
        near,
        because,
    }
}

fn near(entries: &[&ComparedEntry]) -> (u32, u32) {
    let judged = entries.iter().filter_map(|entry| entry.near);
    judged.fold((0, 0), |(near, all), is_near| (near + u32::from(is_near), all + 1))
}

/// Pairs in the published order: Kendall's concordant pairs, published ties left out.
fn ordered(entries: &[&ComparedEntry]) -> (u32, u32) {
    let (mut concordant, mut pairs) = (0, 0);
    for (index, one) in entries.iter().enumerate() {
        for other in &entries[index + 1..] {
            let (Some(a), Some(b)) = (one.measured, other.measured) else { continue };
            if one.published == other.published || one.unit != other.unit {
                continue;
            }
            pairs += 1;
            let published_less = one.published < other.published;
            concordant += u32::from(if published_less { a < b } else { a > b });
        }
    }
    (concordant, pairs)
}
