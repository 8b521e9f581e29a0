use super::*;

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
    for (name, i) in [("sample.b", 2), ("sample.a", 1), ("samples", 3)] {
        let mut writer = Writer::create_named(dir.path(), name).unwrap();
        writer.push(sample(i)).unwrap();
        writer.close().unwrap();
    }
    assert_eq!(Reader::read_all::<Sample>(dir.path()).unwrap(), [sample(1), sample(2)]);
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
