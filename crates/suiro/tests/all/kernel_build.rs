//! `kernel/build` keeps the kernels that made results, and says at once where Linux cannot be built. Its tools are fakes here,
//! so that a build takes a moment.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, Done, Room};

/// Builds what stands for a kernel: a script that names the compiler.
const MAKE: &str = r#"cd "$2"
for target; do :; done
case "$target" in
kernelversion) echo 7.2.1 ;;
allnoconfig) grep '^CONFIG_' "$KCONFIG_ALLCONFIG" | grep -v '=n$' >.config ;;
*)
	printf '#!/bin/sh\n# %s\n' "$(cc --version)" >linux
	chmod +x linux
	;;
esac"#;

/// Files without which a folder is no source of Linux.
const SOURCE: [&str; 4] = [
    "arch/um/Makefile",
    "COPYING",
    "LICENSES/preferred/GPL-2.0",
    "LICENSES/exceptions/Linux-syscall-note",
];

/// A room with tools and a source.
fn room() -> Room {
    let room = Room::new();
    for name in ["flex", "bison", "bc", "patch", "xz"] {
        common::script(&room.path("tools"), name, "exit 0");
    }
    common::script(&room.path("tools"), "make", MAKE);
    common::script(&room.path("tools"), "strip", r#"cp "$3" "$2""#);
    for name in SOURCE {
        let path = room.path("source").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    }
    room
}

/// `kernel/build` with this compiler and cache.
fn build(room: &Room, compiler: &str, cache: &Path) -> Done {
    common::script(&room.path("tools"), "cc", &format!("echo {compiler}"));
    let script = Path::new("../../kernel/build");
    let mut command = Command::new(script.canonicalize().unwrap());
    room.furnish(&mut command);
    command.env("PATH", format!("{}:/usr/bin:/bin", room.path("tools").display()));
    command.env("XDG_CACHE_HOME", cache).env("KERNEL_SOURCE", room.path("source"));
    Done::of(&mut command)
}

/// The folders of builds.
fn kept(kernels: &Path) -> Vec<PathBuf> {
    let mut found = common::entries(kernels);
    found.retain(|path| path.is_dir() && !path.is_symlink());
    found.sort();
    found
}

#[test]
fn builds_of_other_compilers_stay_until_there_are_many() {
    if !cfg!(target_arch = "x86_64") {
        return suiro_units::skipped("virtual time needs an x86-64 CPU");
    }
    let room = room();
    let cache = room.path("home");
    let kernels = cache.join("suiro/kernel");
    let made = |compiler: &str| {
        let printed = build(&room, compiler, &cache).exits(0).stdout;
        let folder = PathBuf::from(printed.trim());
        let program = std::fs::read_to_string(folder.join("linux")).unwrap();
        assert_eq!(program, format!("#!/bin/sh\n# {compiler}\n"));
        folder
    };
    let first = made("cc-0");
    // As a checkout with other patches leaves it.
    std::os::unix::fs::symlink(first.file_name().unwrap(), kernels.join("0123456789abcdef"))
        .unwrap();
    let mut all = vec![first];
    all.extend((1..=9).map(|n| made(&format!("cc-{n}"))));
    let mut expected = [&all[..1], &all[2..]].concat();
    expected.sort();
    assert_eq!(kept(&kernels), expected, "the linked one, and the eight newest");
    // One that is there is not built again, and is the newest now.
    assert_eq!(made("cc-2"), all[2]);
    assert_eq!(made("cc-10").parent(), Some(&*kernels));
    assert!(all[2].exists() && !all[3].exists());
}

#[test]
fn a_path_that_linux_cannot_be_built_in_is_refused_at_once() {
    if !cfg!(target_arch = "x86_64") {
        return suiro_units::skipped("virtual time needs an x86-64 CPU");
    }
    let room = room();
    common::script(&room.path("tools"), "make", "touch \"$TMPDIR/called\"; exit 1");
    for name in ["a b", "a:b"] {
        let done = build(&room, "cc-1", &room.path("home").join(name)).exits(3);
        done.says(&["a space or a colon", "hint: set XDG_CACHE_HOME"]);
        assert_eq!(kept(&room.path("home").join(name).join("suiro/kernel")), Vec::<PathBuf>::new());
    }
}
