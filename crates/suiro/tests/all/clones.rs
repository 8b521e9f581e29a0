//! `scripts/cargo` compiles what differs from its last build, in whichever clone that was, and nothing else. Cargo is real
//! here, and the project is one small program.

use std::path::Path;
use std::process::Command;

use crate::common::{Done, Room};

const FILES: [(&str, &str); 4] = [
    ("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"crates/said\"]\n"),
    ("Cargo.lock", "version = 4\n\n[[package]]\nname = \"said\"\nversion = \"0.1.0\"\n"),
    (
        "crates/said/Cargo.toml",
        "[package]\nname = \"said\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
    ),
    ("crates/said/src/main.rs", "fn main() { print!(\"{}\", include_str!(\"a word\")); }\n"),
];

/// A clone of the project, in which the program prints `word`.
fn make(room: &Room, clone: &str, word: &str) {
    let scripts = ["cargo", "environment"].map(|name| {
        (
            format!("scripts/{name}"),
            std::fs::read_to_string(Path::new("../../scripts").join(name)).unwrap(),
        )
    });
    let files = FILES.map(|(name, text)| (name.to_owned(), text.to_owned()));
    for (name, text) in files.into_iter().chain(scripts) {
        write(room, clone, &name, &text);
    }
    write(room, clone, "crates/said/src/a word", word);
}

fn write(room: &Room, clone: &str, name: &str, text: &str) {
    let path = room.path("work").join(clone).join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Builds it, by `scripts/cargo` or by cargo itself, and runs it: what it prints, and whether anything was compiled.
fn build(room: &Room, clone: &str, by: &[&str]) -> (String, bool) {
    let clone = room.path("work").join(clone);
    let mut command = Command::new(by[0]);
    room.furnish(&mut command);
    command.args(&by[1..]).args(["run", "--offline", "--locked"]).current_dir(clone);
    command.env("CARGO_TARGET_DIR", room.path("home/target"));
    // Where Rust is.
    command.env("HOME", std::env::var_os("HOME").unwrap());
    let done = Done::of(&mut command).exits(0);
    (done.stdout, done.stderr.contains("Compiling said"))
}

#[test]
fn a_fresh_clone_compiles_what_differs_from_the_last_build() {
    let room = Room::new();
    let script = |clone: &str| build(&room, clone, &["bash", "scripts/cargo"]);
    make(&room, "first", "one");
    assert_eq!(script("first"), ("one".into(), true));
    make(&room, "same", "one");
    assert_eq!(script("same"), ("one".into(), false), "the same files, newer");
    let times = || std::fs::read_to_string(room.path("home/target/files")).unwrap();
    let before = times();
    assert_eq!(script("same"), ("one".into(), false));
    assert_eq!(times(), before, "times that grow reach those of the builds");
    make(&room, "other", "two");
    assert_eq!(script("other"), ("two".into(), true));
    assert_eq!(
        script("first"),
        ("one".into(), true),
        "an older file, of which the last build was not made"
    );
    assert_eq!(script("same"), ("one".into(), false));
    // A build by cargo alone is not written down.
    make(&room, "alone", "three");
    assert_eq!(build(&room, "alone", &[env!("CARGO")]), ("three".into(), true));
    assert_eq!(script("same"), ("one".into(), true), "its files are older than that build");
}
