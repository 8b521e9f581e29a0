//! Our side of the talk with `p1203-standalone`: a small shell program stands in its place, checks what
//! it is given and answers what the test says. Nothing here tests the model.

use std::io::Write;
use std::process::Stdio;

use super::*;

const ANSWER_TEXT: &str = r#"{"x.json": {"O23": 4.5, "O34": [4.0, 4.1], "O35": 4.05, "O46": 3.25,
    "mode": 0, "streamId": 1, "date": "2026-01-01T00:00:00"}}"#;

/// A program of shell commands in a folder of its own; a hang is one after a second.
fn program(folder: &Path, commands: &str) -> Program {
    let path = folder.join("p1203");
    // A process of its own writes it: what another test starts meanwhile would inherit our open file, and
    // Linux runs no file that is open for writing.
    let mut install = std::process::Command::new("install");
    install.args(["-m755", "/dev/stdin"]).arg(&path).stdin(Stdio::piped());
    let mut install = install.spawn().unwrap();
    let text = format!("#!/bin/sh\n{commands}\n");
    install.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(install.wait().unwrap().success());
    Program { path, limits: Limits { seconds: 1, bytes: 4096 } }
}

fn ask(commands: &str) -> Result<P1203, String> {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("p1203.player.json");
    std::fs::write(&input, r#"{"I13": {}}"#).unwrap();
    program(folder.path(), commands)
        .ask(&input, 60.0, &|| false)
        .map_err(|error| format!("{error:#}"))
}

#[test]
fn our_side_gives_one_file_and_takes_the_scores() {
    let commands = format!(
        "[ $# = 3 ] && [ \"$1 $2\" = '--cpu-count 1' ] && grep -q I13 \"$3\" || exit 9\n\
         read line && exit 8 # there is no input\n\
         echo a warning >&2\ncat <<'END'\n{ANSWER_TEXT}\nEND"
    );
    let want = P1203 { o46: 3.25, o35: Some(4.05), o23: Some(4.5), mode: 0, media_s: 60.0 };
    assert_eq!(ask(&commands), Ok(want));
}

#[test]
fn hostile_answers_are_told_and_bounded() {
    for (commands, why) in [
        ("", "not that of p1203-standalone"),
        ("echo '{}'", "0 inputs"),
        ("echo '[]'", "not that of"),
        (r#"echo '{"a": {"O46": NaN, "mode": 0}}'"#, "not that of"),
        (r#"echo '{"a": {"O46": 1e999, "mode": 0}}'"#, "not that of"),
        (r#"echo '{"a": {"O46": "3", "mode": 0}}'"#, "not that of"),
        (r#"echo '{"a": {"O35": 3, "mode": 0}}'"#, "O46"),
        (r#"echo '{"a": {"O46": 5.01, "mode": 0}}'"#, "O46 is 5.01"),
        (r#"echo '{"a": {"O46": 3, "O23": 0.9, "mode": 0}}'"#, "O23 is 0.9"),
        (r#"echo '{"a": {"O46": 3, "mode": 1}}'"#, "mode 1"),
        (r#"echo '{"a": {"O46": 3, "mode": 0}, "b": {"O46": 3, "mode": 0}}'"#, "2 inputs"),
        ("printf '\\377'", "no text"),
        ("echo sorry >&2; exit 1", "exit status: 1): sorry"),
        ("kill -9 $$", "signal: 9"),
        ("yes", "more than 4096 bytes"),
        ("yes >&2", "more than 4096 bytes"),
        ("echo \"Enter 'accept' to accept:\"; exit 1", "consent to its licence"),
        ("sleep 600", "within 1 s"),
        ("exec >&- 2>&-; sleep 600", "within 1 s"),
        ("sleep 600 & echo left", "within 1 s"),
    ] {
        let told = ask(commands).expect_err(commands);
        assert!(told.contains(why), "{commands}: {told}");
    }
    let missing = Program::at("/nonexistent/p1203".into());
    assert!(missing.version(&|| false).unwrap_err().to_string().contains("/nonexistent/p1203"));
}

#[test]
fn the_version_is_the_first_line_that_it_tells() {
    let folder = tempfile::tempdir().unwrap();
    let told = program(folder.path(), "[ \"$*\" = --version ] && echo && echo 1.9.6");
    assert_eq!(told.version(&|| false).unwrap(), "1.9.6");
}
