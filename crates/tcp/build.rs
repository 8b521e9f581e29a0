//! Compiles the BPF programs with clang. No skeleton is generated: the loader names two things of
//! the object, which does not pay for `libbpf-cargo` and the thirty crates below it.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

const PROGRAM: &str = "bpf/vegas.bpf.c";

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed={PROGRAM}");
    println!("cargo::rerun-if-env-changed=CLANG");
    match compile() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error=compiling {PROGRAM}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compile() -> Result<(), String> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?).join("vegas.bpf.o");
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    // -g: the types that CO-RE goes by.
    let status = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-c", PROGRAM, "-o"])
        .arg(out)
        .status()
        .map_err(|error| format!("{clang}: {error}; hint: scripts/setup installs clang"))?;
    if status.success() { Ok(()) } else { Err(format!("{clang} failed: {status}")) }
}
