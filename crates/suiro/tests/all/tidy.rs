//! The house stays tidy: files of at most 600 lines, modules where their names say, subjects of commits that fit a line.
//! Functions of at most 70 lines are clippy's.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sources::sources;

const LINES_MAX: usize = 600;
const SUBJECT_MAX: usize = 72;

/// Larger files; the list only gets shorter.
const LARGER: &[&str] = &["webrtc/src/peer/mod.rs"];

/// What is untidy about a file of `src`, whose name is from the folder of crates.
fn faults(name: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let lines = text.lines().count();
    let is_large = lines > LINES_MAX;
    if is_large && !LARGER.contains(&name) {
        faults.push(format!(
            "{name} has {lines} lines, and may have {LINES_MAX}: split it by its ideas"
        ));
    }
    if !is_large && LARGER.contains(&name) {
        faults.push(format!("{name} is small enough: take it from the list"));
    }
    if text.lines().any(|line| line.trim_start().starts_with("#[path")) {
        faults.push(format!("{name} has #[path]: put the module where its name says"));
    }
    faults
}

/// The folder of each crate, and the files of its `src`.
fn crates() -> Vec<(PathBuf, Vec<PathBuf>)> {
    let crates = Path::new("..");
    let folders = std::fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path());
    let found = folders.filter(|folder| folder.join("src").is_dir()).map(|folder| {
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        (folder, files)
    });
    found.collect()
}

#[test]
fn files_are_small_and_modules_are_where_their_names_say() {
    let found: Vec<PathBuf> = crates().into_iter().flat_map(|(_, files)| files).collect();
    assert!(found.len() > 500, "{} files", found.len());
    let crates = Path::new("..");
    let faults: Vec<String> = found
        .iter()
        .flat_map(|file| {
            let name = file.strip_prefix(crates).unwrap().to_str().unwrap();
            faults(name, &std::fs::read_to_string(file).unwrap())
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What follows three backquotes in documentation.
fn fence(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("/// ```").or_else(|| line.strip_prefix("//! ```"))
}

/// Whether documentation has a block that rustdoc compiles. Every other fence ends one.
fn has_example(text: &str) -> bool {
    text.lines().filter_map(fence).step_by(2).any(|language| language != "text")
}

/// Rustdoc takes a second or two for each crate, and a library without examples has nothing for it. One that has gets its turn.
#[test]
fn examples_in_documentation_are_tested_where_there_are_some() {
    let mut faults = Vec::new();
    let libraries = crates().into_iter().filter(|(folder, _)| folder.join("src/lib.rs").exists());
    for (folder, files) in libraries {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let has = files.iter().any(|file| has_example(&std::fs::read_to_string(file).unwrap()));
        let tested = !manifest.contains("\ndoctest = false\n");
        if has != tested {
            faults.push(format!("{}: has examples: {has}, tests them: {tested}", folder.display()));
        }
    }
    assert!(faults.is_empty(), "`doctest = false` of [lib] is wrong:\n{}", faults.join("\n"));
}

#[test]
fn blocks_of_text_are_no_examples() {
    let text = "//! ```text\n//! a -> b\n//! ```\n";
    assert!(!has_example(text));
    assert!(has_example(&format!(
        "{text}fn f() {{}}\n    /// ```no_run\n    /// f();\n    /// ```\n"
    )));
    assert!(has_example("/// ```\n/// f();\n/// ```\n"));
}

/// A library without tests of its own needs no program for them. One that gets some needs it.
#[test]
fn no_test_of_a_library_is_left_out() {
    let fuzz = PathBuf::from("../../fuzz");
    let mut of_fuzz = Vec::new();
    sources(&fuzz.join("src"), &mut of_fuzz);
    let mut left_out = 0;
    for (folder, files) in crates().into_iter().chain([(fuzz, of_fuzz)]) {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let library = manifest.split("\n[").find(|section| section.starts_with("lib]\n"));
        if library.is_some_and(|section| section.lines().any(|line| line == "test = false")) {
            left_out += 1;
            let has =
                |file: &&PathBuf| std::fs::read_to_string(file).unwrap().contains("cfg(test)");
            assert_eq!(files.iter().find(has), None, "`test = false` of [lib] is wrong");
        }
    }
    assert!(left_out > 0, "no library is without tests: does this test still read them?");
}

#[test]
fn untidy_files_are_found() {
    let long = "\n".repeat(LINES_MAX + 1);
    assert!(faults("link/src/lib.rs", &long)[0].contains("has 601 lines"));
    assert_eq!(faults(LARGER[0], &long), [""; 0]);
    assert!(faults(LARGER[0], "")[0].contains("take it from the list"));
    assert!(faults("x.rs", "mod a;\n#[path = \"b.rs\"]\nmod c;\n")[0].contains("#[path]"));
}

/// A program that cargo compiled in one clone is run in another one: its tests find the project's files from the folder that
/// cargo runs them in, which is the crate's.
#[test]
fn no_program_knows_the_folder_that_it_was_compiled_in() {
    let named = ["env!(\"CARGO", "_MANIFEST_DIR\")"].concat();
    let mut files = Vec::new();
    for (folder, of_src) in crates().into_iter().chain([(PathBuf::from("../../fuzz"), vec![])]) {
        files.extend(of_src);
        for part in ["tests", "benches"].map(|part| folder.join(part)) {
            if part.is_dir() {
                sources(&part, &mut files);
            }
        }
    }
    assert!(files.len() > 500, "{} files", files.len());
    files.retain(|file| std::fs::read_to_string(file).unwrap().contains(&named));
    assert_eq!(
        files,
        [""; 0].map(PathBuf::from),
        "use a path from the crate's folder, as \"../../docs\""
    );
}

/// The latest commit. Where there is no history, as in an archive of the sources, there is nothing to look at.
#[test]
fn the_subject_of_the_commit_fits_a_line() {
    let log = Command::new("git").args(["log", "-1", "--format=%s"]).output();
    let Some(log) = log.ok().filter(|log| log.status.success()) else {
        suiro_units::skipped("there is no git, or no history");
        return;
    };
    let subjects = String::from_utf8(log.stdout).unwrap();
    let long: Vec<&str> =
        subjects.lines().filter(|line| line.chars().count() > SUBJECT_MAX).collect();
    assert!(long.is_empty(), "longer than {SUBJECT_MAX} characters:\n{}", long.join("\n"));
}
