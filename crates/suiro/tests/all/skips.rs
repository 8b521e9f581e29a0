//! A test that cannot run here prints the reason past the harness, which keeps the output of a passing test to itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common;
use crate::sources::sources;

/// Set for the test that is skipped.
const SKIPPED: &str = "SUIRO_TEST_IS_SKIPPED";

/// Whether a text prints the reason for a skip with a macro, of which the harness takes the output.
fn is_kept_back(text: &str) -> bool {
    text.split("println!(").skip(1).any(|printed| {
        let printed =
            printed.trim_start_matches(|char: char| char.is_whitespace() || "\"(".contains(char));
        printed.starts_with("skipped")
    })
}

#[test]
fn the_reason_for_a_skip_passes_the_harness() {
    if std::env::var_os(SKIPPED).is_some() {
        return suiro_units::skipped("it is the test of this line");
    }
    let name = "skips::the_reason_for_a_skip_passes_the_harness";
    let mut again = Command::new(std::env::current_exe().unwrap());
    let output = common::output(again.args(["--quiet", "--exact", name]).env(SKIPPED, "1"));
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_eq!(printed, "skipped: it is the test of this line\n");
}

/// `hosts` has no harness around its tests.
#[test]
fn no_test_keeps_the_reason_for_a_skip() {
    let crates = Path::new("..");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path();
        for part in ["src", "tests", "benches"].map(|part| folder.join(part)) {
            if part.is_dir() && !folder.ends_with("hosts") {
                sources(&part, &mut files);
            }
        }
    }
    assert!(files.len() > 500, "{} files", files.len());
    let keeps = |file: &&PathBuf| is_kept_back(&std::fs::read_to_string(file).unwrap());
    let found: Vec<&PathBuf> = files.iter().filter(keeps).collect();
    assert!(found.is_empty(), "{found:?}\nhint: suiro_units::skipped(REASON)");
}

#[test]
fn reasons_that_are_kept_are_found() {
    // In two parts, or this file would be found.
    let of = |text: &str| is_kept_back(&["println!", text].concat());
    assert!(of("(\"skipped: {error}\");"));
    assert!(of("(\n        \"  skipped: {error}\",\n    );"));
    assert!(!of("(\"{error}\"); skipped(&error);"));
}
