//! `make install` puts the program, a man page for each command and completions that work where they belong, and
//! `make uninstall` removes all of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, Done, Room};

/// `scripts/install`, into the room's `work/prefix`.
fn command(room: &Room) -> Command {
    let script = Path::new("../../scripts/install");
    let mut command = Command::new(script.canonicalize().unwrap());
    room.furnish(&mut command);
    // A folder without a leading slash belongs to the caller's working folder.
    command.env("PREFIX", "prefix").env_remove("DESTDIR").env_remove("SUDO_USER");
    command
}

/// The same with that argument.
fn install(room: &Room, argument: &str) -> Done {
    Done::of(command(room).arg(argument))
}

/// The commands that `docs/commands.md` documents, as the names of their man pages.
fn documented() -> BTreeSet<String> {
    let path = Path::new("../../docs/commands.md");
    let text = std::fs::read_to_string(path).unwrap();
    let headings = text.lines().filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`'));
    headings.map(|command| format!("{}.1", command.replace(' ', "-"))).collect()
}

fn names(folder: &Path) -> BTreeSet<String> {
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    common::entries(folder).into_iter().map(name).collect()
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    common::entries(folder).into_iter().flat_map(below).collect()
}

/// What bash offers for these words, of which the last is being typed.
fn offers(script: &Path, words: &[&str]) -> Vec<String> {
    let last = words.len() - 1;
    let before = if last > 0 { words[last - 1] } else { "" };
    let typed = format!(
        "source {}; COMP_WORDS=({}); COMP_CWORD={last}; _suiro suiro '{}' '{before}'; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        words.join(" "),
        words[last],
    );
    let done = Done::of(Command::new("bash").args(["--norc", "-c", &typed])).exits(0);
    done.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn what_is_installed_works_and_can_be_removed() {
    let room = Room::new();
    let done = install(&room, env!("CARGO_BIN_EXE_suiro")).exits(0);
    done.says(&[
        "not on your PATH",
        "kernel of virtual time was not installed",
        "hint: make kernel",
    ]);
    let prefix = room.path("work").join("prefix");

    let version = Done::of(Command::new(prefix.join("bin/suiro")).arg("--version")).exits(0);
    assert_eq!(version.stdout, concat!("suiro ", env!("CARGO_PKG_VERSION"), "\n"));

    // Its Python package is found, and refuses what it is asked for.
    let mut sweep = Command::new(prefix.join("bin/suiro"));
    room.furnish(&mut sweep);
    sweep.args(["sweep", "no-such-scenario", "--out", "swept"]).env_remove("SUIRO_PYTHON");
    Done::of(&mut sweep).exits(2).says(&["no built-in scenario has this name"]);

    let man = prefix.join("share/man/man1");
    assert_eq!(names(&man), documented());
    let page = std::fs::read_to_string(man.join("suiro-run.1")).unwrap();
    for part in [".TH", "Run a scenario and write a report", "\\-\\-repeat"] {
        assert!(page.contains(part), "no `{part}` in:\n{page}");
    }

    let bash = prefix.join("share/bash-completion/completions/suiro");
    assert_eq!(offers(&bash, &["suiro", "re"]), ["report"]);
    assert_eq!(offers(&bash, &["suiro", "run", "--rep"]), ["--repeat"]);
    // What only suiro itself starts is not offered.
    assert!(offers(&bash, &["suiro", "link"]).iter().all(|offer| offer == "link"));
    assert_eq!(offers(&bash, &["suiro", "endp"]), [""; 1]);

    for (shell, script) in
        [("zsh", "zsh/site-functions/_suiro"), ("fish", "fish/vendor_completions.d/suiro.fish")]
    {
        let script = prefix.join("share").join(script);
        assert!(std::fs::read_to_string(&script).unwrap().contains("uncompressed"), "{shell}");
        if common::has(shell) {
            Done::of(Command::new(shell).arg("-n").arg(&script)).exits(0);
        }
    }

    install(&room, "--undo").exits(0);
    assert_eq!(files(&prefix), Vec::<PathBuf>::new());
    assert!(room.strays().is_empty(), "{:?}", room.strays());
}

#[test]
fn a_folder_that_cannot_be_written_is_named_with_a_remedy() {
    let room = Room::new();
    room.write("prefix", "a file, no folder");
    install(&room, env!("CARGO_BIN_EXE_suiro")).exits(1).says(&["hint: ", "PREFIX=DIR"]);
}

/// Under sudo, root's cache has neither the program nor the kernel, and root must not write to the user's.
#[test]
fn under_sudo_the_user_builds() {
    let room = Room::new();
    let tools = room.path("tools");
    common::script(&tools, "id", "echo 0");
    common::script(&tools, "stat", "echo me");
    common::script(&tools, "cargo", "echo 'cargo of root' >>\"$LOG\"; exit 1");
    let sudo = r#"echo "$*" >>"$LOG"; case "$*" in *--build) echo "$PROGRAM" ;; *) exit 3 ;; esac"#;
    common::script(&tools, "sudo", sudo);
    let mut command = command(&room);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", tools.display())).env("SUDO_USER", "me");
    command.env("LOG", room.path("log"));
    let done = Done::of(command.env("PROGRAM", env!("CARGO_BIN_EXE_suiro"))).exits(0);
    done.says(&["kernel of virtual time was not installed"]);
    assert!(room.path("work").join("prefix/bin/suiro").exists());
    let log = std::fs::read_to_string(room.path("log")).unwrap();
    let as_me = "--user me --set-home --";
    assert_eq!(log, format!("{as_me} scripts/install --build\n{as_me} kernel/build --built\n"));
}

#[test]
fn a_tilde_that_the_shell_left_is_refused() {
    let room = Room::new();
    let mut command = command(&room);
    command.arg(env!("CARGO_BIN_EXE_suiro")).env("PREFIX", "~/suiro");
    Done::of(&mut command).exits(1).says(&["PREFIX=~/suiro: ", "hint: write $HOME in its place"]);
    assert_eq!(common::entries(&room.path("work")), Vec::<PathBuf>::new());
}
