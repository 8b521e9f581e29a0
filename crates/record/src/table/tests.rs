use std::path::Path;

use suiro_units::{BitRate, Direction, Duration, Time};

use super::write::ROWS_PER_GROUP;
use super::*;
use crate::words::Verdict;

table! {
    /// A table for this test.
    Sample = "sample" {
        /// When.
        t_ns: i64,
        /// Perhaps how much.
        share: Option<f64>,
        /// Whether.
        marked: bool,
        /// What.
        name: Option<Text>,
    }
}

fn sample(i: i64) -> Sample {
    Sample {
        t_ns: i * 10,
        share: (i % 3 != 0).then_some(i as f64 / 7.0),
        marked: i % 2 == 0,
        name: (i % 5 != 0).then(|| format!("flow {}", i % 4).into()),
    }
}

#[test]
fn rows_round_trip_across_groups() {
    let dir = tempfile::tempdir().unwrap();
    let rows: Vec<_> = (0..ROWS_PER_GROUP as i64 + 17).map(sample).collect();
    let mut writer = Writer::create(dir.path()).unwrap();
    for row in &rows {
        writer.push(row.clone()).unwrap();
    }
    writer.close().unwrap();
    let read = Reader::read::<Sample>(dir.path()).unwrap();
    assert!(read == rows);
    let name = |i: usize| read[i].name.as_ref().unwrap();
    assert!(Text::ptr_eq(name(1), name(9)), "equal texts share one allocation");
}

#[test]
fn several_files_of_one_table_are_one_table() {
    let dir = tempfile::tempdir().unwrap();
    for (name, i) in [("b", 2), ("a", 1)] {
        let mut writer = Writer::create_of(dir.path(), name).unwrap();
        writer.push(sample(i)).unwrap();
        writer.close().unwrap();
    }
    // The table `samples` is another one.
    std::fs::copy(dir.path().join("sample.a.parquet"), dir.path().join("samples.parquet")).unwrap();
    assert_eq!(Reader::read_all::<Sample>(dir.path()).unwrap(), [sample(1), sample(2)]);
}

#[test]
fn any_table_can_be_read_as_text() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(dir.path()).unwrap();
    [sample(0), sample(1)].into_iter().for_each(|row| writer.push(row).unwrap());
    writer.close().unwrap();
    let mut lines = Vec::new();
    let take = |names: &[String], values: &[String]| {
        assert_eq!(names, ["t_ns", "share", "marked", "name"]);
        lines.push(values.join("|"));
        Ok::<(), RecordError>(())
    };
    TextTable::each(dir.path(), Sample::TABLE, take).unwrap();
    assert_eq!(lines, ["0||true|", "10|0.14285714285714285|false|flow 1"]);
    std::fs::write(dir.path().join("sample.x.parquet"), b"PAR1 not really PAR1").unwrap();
    let error = TextTable::each(dir.path(), Sample::TABLE, |_, _| Ok::<(), RecordError>(()));
    assert!(error.unwrap_err().to_string().contains("sample.x.parquet"));
}

#[test]
fn a_missing_file_is_empty_and_a_bad_one_is_told() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(Reader::read::<Sample>(dir.path()).unwrap(), []);
    let path = dir.path().join("sample.parquet");
    std::fs::write(&path, b"PAR1 not really PAR1").unwrap();
    let error = Reader::read::<Sample>(dir.path()).unwrap_err().to_string();
    assert!(error.contains("sample.parquet"), "{error}");
}

table! {
    /// Another table of the same name.
    Other = "sample" {
        /// When.
        t_ms: i64,
    }
}

#[test]
fn a_table_of_another_schema_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(dir.path()).unwrap();
    writer.push(Other { t_ms: 1 }).unwrap();
    writer.close().unwrap();
    let error = Reader::read::<Sample>(dir.path()).unwrap_err().to_string();
    assert!(error.contains("1 columns, expected 4"), "{error}");
}

table! {
    /// [`Sample`], before its last column was added.
    Earlier = "sample" {
        /// When.
        t_ns: i64,
        /// Perhaps how much.
        share: Option<f64>,
        /// Whether.
        marked: bool,
    }
}

table! {
    /// [`Sample`], without its last two columns.
    Shorter = "sample" {
        /// When.
        t_ns: i64,
        /// Perhaps how much.
        share: Option<f64>,
    }
}

#[test]
fn a_column_that_was_added_later_is_null_in_an_older_table_if_it_may_be() {
    let dir = tempfile::tempdir().unwrap();
    let earlier = |i| {
        let Sample { t_ns, share, marked, .. } = sample(i);
        Earlier { t_ns, share, marked }
    };
    let count = ROWS_PER_GROUP as i64 + 17;
    write_all(dir.path(), (0..count).map(earlier));
    let expected = (0..count).map(|i| Sample { name: None, ..sample(i) });
    assert!(Reader::read::<Sample>(dir.path()).unwrap().into_iter().eq(expected));
    // The third column may not be null.
    write_all(dir.path(), std::iter::once(Shorter { t_ns: 1, share: None }));
    let error = Reader::read::<Sample>(dir.path()).unwrap_err().to_string();
    assert!(error.contains("2 columns, expected 4"), "{error}");
}

/// A small table's file.
fn sample_file(dir: &Path) -> (PathBuf, Vec<u8>) {
    let mut writer = Writer::create(dir).unwrap();
    for row in (0..40).map(sample) {
        writer.push(row).unwrap();
    }
    writer.close().unwrap();
    let path = dir.join("sample.parquet");
    let whole = std::fs::read(&path).unwrap();
    (path, whole)
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (path, whole) = sample_file(dir.path());
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).unwrap();
        let read = Reader::read::<Sample>(dir.path());
        assert!(read.is_err(), "{length} of {} bytes", whole.len());
    }
}

#[test]
fn a_file_that_lost_its_middle_never_panics() {
    let dir = tempfile::tempdir().unwrap();
    let (path, whole) = sample_file(dir.path());
    for hole in (1..whole.len()).step_by(37) {
        for at in (0..whole.len() - hole).step_by(11) {
            let left = [&whole[..at], &whole[at + hole..]].concat();
            std::fs::write(&path, left).unwrap();
            drop(Reader::read::<Sample>(dir.path()));
        }
    }
}

#[test]
fn a_file_with_a_wrong_byte_never_panics() {
    let dir = tempfile::tempdir().unwrap();
    let (path, whole) = sample_file(dir.path());
    for at in 0..whole.len() {
        for flip in [0x01, 0xff] {
            let mut wrong = whole.clone();
            wrong[at] ^= flip;
            std::fs::write(&path, wrong).unwrap();
            drop(Reader::read::<Sample>(dir.path()));
        }
    }
}

table! {
    /// A table of quantities and words.
    Typed = "typed" {
        /// When.
        t_ns: Time,
        /// How long; null if unknown.
        span_ns: Option<Duration>,
        /// How fast.
        rate_bps: BitRate,
        /// How many.
        count: u64,
        /// Which way.
        direction: Direction,
        /// What became of it; null if unknown.
        verdict: Option<Verdict>,
    }
}

table! {
    /// The same as older and other programs write it.
    Plain = "typed" {
        /// When.
        t_ns: i64,
        /// How long.
        span_ns: Option<i64>,
        /// How fast.
        rate_bps: i64,
        /// How many.
        count: i64,
        /// Which way.
        direction: Text,
        /// What became of it.
        verdict: Option<Text>,
    }
}

fn typed(i: u64) -> Typed {
    Typed {
        t_ns: Time::from_nanos(i),
        span_ns: (!i.is_multiple_of(3)).then(|| Duration::from_nanos(i + 1)),
        rate_bps: BitRate::from_bps(i + 2),
        count: i + 3,
        direction: Direction::BOTH[i as usize % 2],
        verdict: (!i.is_multiple_of(5)).then(|| Verdict::ALL[i as usize % 3]),
    }
}

fn plain(i: u64) -> Plain {
    let typed = typed(i);
    Plain {
        t_ns: i as i64,
        span_ns: typed.span_ns.map(|_| i as i64 + 1),
        rate_bps: i as i64 + 2,
        count: i as i64 + 3,
        direction: typed.direction.name().into(),
        verdict: typed.verdict.map(|verdict| verdict.name().into()),
    }
}

fn write_all<R: Row>(dir: &Path, rows: impl Iterator<Item = R>) {
    let mut writer = Writer::create(dir).unwrap();
    rows.for_each(|row| writer.push(row).unwrap());
    writer.close().unwrap();
}

#[test]
fn quantities_and_words_are_numbers_and_text_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let count = ROWS_PER_GROUP as u64 + 17;
    write_all(dir.path(), (0..count).map(typed));
    let file = std::fs::read(dir.path().join("typed.parquet")).unwrap();
    assert!(Reader::read::<Typed>(dir.path()).unwrap().into_iter().eq((0..count).map(typed)));
    assert!(Reader::read::<Plain>(dir.path()).unwrap().into_iter().eq((0..count).map(plain)));
    write_all(dir.path(), (0..count).map(plain));
    assert!(file == std::fs::read(dir.path().join("typed.parquet")).unwrap(), "the same bytes");
    assert!(Reader::read::<Typed>(dir.path()).unwrap().into_iter().eq((0..count).map(typed)));
}

#[test]
fn what_does_not_fit_is_the_largest() {
    let dir = tempfile::tempdir().unwrap();
    let row = Typed { t_ns: Time::from_nanos(u64::MAX), count: u64::MAX, ..typed(1) };
    write_all(dir.path(), std::iter::once(row));
    let read = Reader::read::<Plain>(dir.path()).unwrap();
    assert_eq!((read[0].t_ns, read[0].count), (i64::MAX, i64::MAX));
}

#[test]
fn a_value_that_its_column_cannot_hold_is_refused_with_column_and_row() {
    let refused = |wrong: Plain, at: u64| {
        let dir = tempfile::tempdir().unwrap();
        let before = (0..at).map(plain);
        write_all(dir.path(), before.chain([wrong]).chain([plain(at)]));
        let error = Reader::read::<Typed>(dir.path()).unwrap_err().to_string();
        error.split_once(": ").unwrap().1.lines().next().unwrap().to_owned()
    };
    assert_eq!(
        refused(Plain { direction: "left".into(), ..plain(0) }, 0),
        "column direction, row 1: expected `down` or `up`, found `left`"
    );
    assert_eq!(
        refused(Plain { verdict: Some("eaten".into()), ..plain(1) }, 7),
        "column verdict, row 8: expected `delivered`, `dropped` or `queued`, found `eaten`"
    );
    let negative = "expected a number that is not negative, found";
    let late = ROWS_PER_GROUP as u64 + 4;
    assert_eq!(
        refused(Plain { t_ns: -1, ..plain(1) }, late),
        format!("column t_ns, row {}: {negative} -1", late + 1)
    );
    assert_eq!(
        refused(Plain { span_ns: Some(-7), ..plain(1) }, 4),
        format!("column span_ns, row 5: {negative} -7")
    );
}
