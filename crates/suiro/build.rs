//! How the program is linked. For users, the linker keeps one of several functions with the same code, if it can: the program
//! is 7 % smaller. For tests, the program has fixed addresses.

use std::env;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Identical code folding, which LLD, mold and gold know and GNU ld does not.
const FOLD: &str = "link-arg=-Wl,--icf=all";

/// Without optimisation the program has 390,000 addresses in 4.5 MB, which each start would relocate. In a guest, each of these
/// 1,100 pages is a page fault, and tests start several processes in each guest.
const FIXED: &str = "-no-pie";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if !is_release {
        println!("cargo:rustc-link-arg-bins={FIXED}");
    } else if links_with_folding() == Some(true) {
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
