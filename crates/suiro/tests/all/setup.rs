//! `scripts/setup`: what it installs by itself, and what it leaves alone. Every program that it may start is a fake here, or a
//! tool that changes nothing elsewhere.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, Done, Room};

/// Tools of the system that it uses.
const TOOLS: &str = "bash cat chmod cp cut dirname echo env find flock grep head id ln mkdir mktemp printf rm sed sh \
                     sha256sum sort tail tee touch tr true xargs";
/// Programs that it only looks for.
const THERE: [&str; 8] = ["c++", "clang", "nasm", "ip", "ping", "iperf3", "npm", "apt-cache"];

/// Makes an environment whose Python installs an ffmpeg that prints nothing and is content.
const PYTHON: &str = r#"case "$*" in
"-m venv "*)
	echo "venv" >>"$LOG"
	mkdir -p "$3/bin"
	cat >"$3/bin/python" <<-'END'
		#!/bin/sh
		folder="${0%/bin/python}/lib/python3.11/site-packages/imageio_ffmpeg/binaries"
		mkdir -p "$folder"
		printf '#!/bin/sh\nexit 0\n' >"$folder/ffmpeg-linux-x86_64-v9"
		chmod +x "$folder/ffmpeg-linux-x86_64-v9"
	END
	chmod +x "$3/bin/python"
	;;
esac"#;

/// Links an archive only if `broken` is not next to it.
const CC: &str = r#"case "$1" in
-print-multiarch) echo "../..$ARCHIVES" ;;
*)
	echo link >>"$LOG"
	[ ! -e "$ARCHIVES/broken" ]
	;;
esac"#;

/// A system on which apt installs nothing, with this Rust.
fn room(rust: &str) -> Room {
    let room = Room::new();
    let tools = room.path("tools");
    std::fs::create_dir_all(room.path("archives")).unwrap();
    std::fs::create_dir_all(&tools).unwrap();
    for name in TOOLS.split(' ') {
        let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name));
        let tool = found.into_iter().find(|path| path.exists());
        std::os::unix::fs::symlink(tool.expect(name), tools.join(name)).unwrap();
    }
    for name in THERE {
        common::script(&tools, name, "exit 0");
    }
    common::script(&tools, "pkg-config", r#"case "$2" in libelf | zlib) ;; *) exit 1 ;; esac"#);
    common::script(&tools, "cc", CC);
    common::script(&tools, "python3", PYTHON);
    common::script(&tools, "apt-get", r#"echo "apt-get $*" >>"$LOG"; exit 100"#);
    common::script(&tools, "sudo", r#"[ "$1" != -n ] || shift; exec "$@""#);
    common::script(&tools, "rustc", &format!("echo 'rustc {rust} (of the system)'"));
    common::script(&tools, "cargo", "exit 1");
    room
}

/// A Rust that is new enough.
fn wanted() -> String {
    let manifest = Path::new("../../Cargo.toml");
    let text = std::fs::read_to_string(manifest).unwrap();
    let version = text.lines().find_map(|line| line.strip_prefix("rust-version = "));
    format!("{}.0", version.unwrap().trim_matches('"'))
}

fn setup(room: &Room, purpose: &str) -> Done {
    let script = Path::new("../../scripts/setup");
    let mut command = Command::new(room.path("tools/bash"));
    room.furnish(&mut command);
    command.arg(script.canonicalize().unwrap()).arg(purpose);
    command.env("PATH", room.path("tools")).env_remove("SUIRO_FFMPEG").env_remove("CI");
    command.env("LOG", room.path("log")).env("ARCHIVES", room.path("archives"));
    Done::of(&mut command)
}

/// The lines of the log that begin so.
fn logged(room: &Room, start: &str) -> Vec<String> {
    let text = std::fs::read_to_string(room.path("log")).unwrap_or_default();
    text.lines().filter(|line| line.starts_with(start)).map(str::to_owned).collect()
}

#[test]
fn apt_removes_nothing_and_what_it_did_not_install_has_a_hint() {
    let room = room("1.60.0");
    std::fs::remove_file(room.path("tools/clang")).unwrap();
    let done = setup(&room, "build").exits(1);
    done.says(&["apt did not install clang", "missing, and needed:", "hint: "]);
    common::script(&room.path("tools"), "clang", "exit 0");
    // rustup conflicts with the system's rustc.
    let done = setup(&room, "build").exits(1);
    done.says(&["apt did not install rustup\nhint: sudo apt-get install rustup", "found: 1.60.0"]);
    let installs: Vec<String> =
        logged(&room, "apt-get").into_iter().filter(|it| it.contains(" install ")).collect();
    assert_eq!(installs.len(), 2, "{installs:?}");
    assert!(installs.iter().all(|line| line.contains(" --no-remove ")), "{installs:?}");
}

#[test]
fn only_tests_need_clippy_and_rustfmt() {
    let room = room(&wanted());
    setup(&room, "build").exits(0);
    setup(&room, "demo").exits(0);
    assert_eq!(logged(&room, "apt-get"), [""; 0]);
    setup(&room, "test").exits(1).says(&["missing, and needed: clippy and rustfmt", "hint: "]);
    assert!(logged(&room, "apt-get").iter().any(|line| line.ends_with(" rustup")));
}

#[test]
fn an_ffmpeg_that_is_not_whole_is_installed_again_and_one_that_runs_is_kept() {
    let room = room(&wanted());
    let venv = room.path("home/suiro/ffmpeg-venv");
    let complete = venv.join("complete");
    let installed = || logged(&room, "venv").len();
    setup(&room, "demo").exits(0);
    assert!(complete.exists() && installed() == 1);
    setup(&room, "demo").exits(0);
    // As of before it was written down.
    std::fs::remove_file(&complete).unwrap();
    setup(&room, "demo").exits(0);
    assert!(complete.exists() && installed() == 1);
    std::fs::remove_file(&complete).unwrap();
    std::fs::write(venv.join("half"), "").unwrap();
    let binaries = venv.join("lib/python3.11/site-packages/imageio_ffmpeg/binaries");
    common::script(&binaries, "ffmpeg-linux-x86_64-v9", "exit 1");
    setup(&room, "demo").exits(0);
    assert!(complete.exists() && installed() == 2 && !venv.join("half").exists());
}

#[test]
fn archives_are_tried_again_when_they_are_others() {
    let room = room(&wanted());
    let (own, cached) = (room.path("archives"), room.path("home/suiro/archives/libelf.a"));
    let tried = || logged(&room, "link").len();
    let write = |name: &str, text: &str| std::fs::write(own.join(name), text).unwrap();
    setup(&room, "build").exits(0);
    assert!(!cached.is_symlink() && tried() == 0, "there are none");
    write("libelf.a", "one");
    write("libz.a", "one");
    setup(&room, "build").exits(0);
    setup(&room, "build").exits(0);
    assert!(cached.exists() && tried() == 1);
    // An upgrade, whose archive cannot be linked: its date is older.
    write("libelf.a", "two");
    write("broken", "");
    setup(&room, "build").exits(0);
    setup(&room, "build").exits(0);
    assert!(!cached.is_symlink() && tried() == 2);
    write("libelf.a", "three");
    std::fs::remove_file(own.join("broken")).unwrap();
    setup(&room, "build").exits(0);
    assert!(cached.exists() && tried() == 3);
    let left: Vec<PathBuf> = common::entries(&room.path("tmp"));
    assert!(left.is_empty(), "{left:?}");
}
