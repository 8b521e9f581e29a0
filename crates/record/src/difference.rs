//! Where two files of results differ first: the row and column of a table, the key of a document, else the line.

use std::io::{self, ErrorKind};
use std::panic::AssertUnwindSafe;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Row;
use serde_json::Value;
use suiro_outside::file;

use crate::table::reader;

/// Largest file that is compared.
const BYTES_MAX: u64 = 4 << 30;
/// Longest part of a value that is shown.
const SHOWN_MAX: usize = 60;

/// Where `one` and `other` differ first, in words such as `row 7, column t_ns: 12 / 13`; `None` if they are the same byte
/// for byte.
///
/// # Errors
/// If one of them cannot be read.
pub fn difference(one: &Path, other: &Path) -> io::Result<Option<String>> {
    let bytes = |path| file::read(path, BYTES_MAX);
    let (a, b) = (bytes(one)?, bytes(other)?);
    if a == b {
        return Ok(None);
    }
    let kind = one.extension().and_then(|extension| extension.to_str());
    let place = match kind {
        Some("parquet") => of_tables(one, other),
        Some("json") => of_documents(&a, &b),
        _ => None,
    };
    Ok(Some(place.unwrap_or_else(|| of_bytes(&a, &b))))
}

/// Of two tables, if both can be read.
fn of_tables(one: &Path, other: &Path) -> Option<String> {
    // The library panics on some damaged pages.
    let compare = AssertUnwindSafe(|| compare_tables(one, other).unwrap_or(None));
    std::panic::catch_unwind(compare).unwrap_or(None)
}

fn compare_tables(one: &Path, other: &Path) -> io::Result<Option<String>> {
    let damaged = |error| io::Error::new(ErrorKind::InvalidData, error);
    let open = |path| reader(file::open(path)?).map_err(damaged);
    let (one, other) = (open(one)?, open(other)?);
    let rows = |reader: &SerializedFileReader<_>| reader.metadata().file_metadata().num_rows();
    let counts = (rows(&one), rows(&other));
    let [one, other] = [&one, &other].map(|table| table.get_row_iter(None).map_err(damaged));
    let pairs = one?.zip(other?);
    for (number, pair) in pairs.enumerate() {
        let (Ok(a), Ok(b)) = pair else { return Ok(None) };
        if let Some(place) = of_rows(&a, &b) {
            return Ok(Some(format!("row {}, {place}", number + 1)));
        }
    }
    let (a, b) = counts;
    Ok((a != b).then(|| format!("{a} / {b} rows, the same as far as both go")))
}

fn of_rows(a: &Row, b: &Row) -> Option<String> {
    let mut columns = a.get_column_iter().zip(b.get_column_iter());
    columns.find_map(|((name, a), (other, b))| {
        let differ = name != other || a != b;
        let values = (a.to_string(), b.to_string());
        differ.then(|| format!("column {name}: {} / {}", shown(&values.0), shown(&values.1)))
    })
}

fn of_documents(a: &[u8], b: &[u8]) -> Option<String> {
    let (a, b) = (serde_json::from_slice(a).ok()?, serde_json::from_slice(b).ok()?);
    of_values("", &a, &b)
}

fn of_values(place: &str, a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().find_map(|(key, value)| of_values(&format!("{place}.{key}"), value, &b[key]))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let mut pairs = a.iter().zip(b).enumerate();
            pairs.find_map(|(n, (a, b))| of_values(&format!("{place}[{n}]"), a, b))
        }
        _ if a == b => None,
        _ => {
            let (a, b) = (a.to_string(), b.to_string());
            Some(format!("{}: {} / {}", place.trim_start_matches('.'), shown(&a), shown(&b)))
        }
    }
}

/// The first line that differs, or the byte if they are no texts.
fn of_bytes(a: &[u8], b: &[u8]) -> String {
    let at = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (Ok(one), Ok(other)) = (std::str::from_utf8(a), std::str::from_utf8(b)) else {
        return format!("byte {at} of {} / {}", a.len(), b.len());
    };
    let number = a[..at].iter().filter(|byte| **byte == b'\n').count();
    let line = |text: &str| shown(text.lines().nth(number).unwrap_or("")).to_owned();
    format!("line {}: {} / {}", number + 1, line(one), line(other))
}

fn shown(text: &str) -> &str {
    let end = text.char_indices().nth(SHOWN_MAX).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Writer;
    use crate::tables::StandstillRow;
    use suiro_units::{Duration, Time};

    fn write(dir: &Path, lengths: &[u64]) {
        let mut table = Writer::create_of(dir, "x").unwrap();
        for (n, length) in (0..).zip(lengths) {
            let length_ns = Duration::from_nanos(*length);
            let t_ns = Time::from_nanos(n);
            let row = StandstillRow { t_ns, length_ns, processor: 0, queued_ns: Duration::ZERO };
            table.push(row).unwrap();
        }
        table.close().unwrap();
    }

    #[test]
    fn tables_differ_in_a_row_and_a_column() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let compare = |one: &[u64], other: &[u64]| {
            write(a.path(), one);
            write(b.path(), other);
            let name = "standstills.x.parquet";
            difference(&a.path().join(name), &b.path().join(name)).unwrap()
        };
        assert_eq!(compare(&[1, 2], &[1, 2]), None);
        assert_eq!(compare(&[1, 2], &[1, 3]).unwrap(), "row 2, column length_ns: 2 / 3");
        assert_eq!(compare(&[1, 2], &[1]).unwrap(), "2 / 1 rows, the same as far as both go");
    }

    #[test]
    fn documents_differ_in_a_key_and_texts_in_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let compare = |name: &str, one: &str, other: &str| {
            let (a, b) =
                (dir.path().join(format!("a.{name}")), dir.path().join(format!("b.{name}")));
            std::fs::write(&a, one).unwrap();
            std::fs::write(&b, other).unwrap();
            difference(&a, &b).unwrap().unwrap()
        };
        let (one, other) = (r#"{"a": 1, "b": [{"c": 2}]}"#, r#"{"a": 1, "b": [{"c": "x"}]}"#);
        assert_eq!(compare("json", one, other), "b[0].c: 2 / \"x\"");
        assert_eq!(compare("json", "{", "[1]"), "line 1: { / [1]", "not a document");
        assert_eq!(compare("log", "a\nb\n", "a\nc\n"), "line 2: b / c");
        assert_eq!(compare("parquet", "PAR1", "PAR2"), "line 1: PAR1 / PAR2", "not a table");
    }
}
