//! Compiles the BPF programs with clang. No skeleton is generated: the loaders name a few things of
//! the objects, which does not pay for `libbpf-cargo` and the thirty crates below it.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

const PROGRAMS: [&str; 2] = ["probe", "vegas"];

fn main() -> ExitCode {
    println!("cargo::rerun-if-env-changed=CLANG");
    for program in PROGRAMS {
        let source = format!("bpf/{program}.bpf.c");
        println!("cargo::rerun-if-changed={source}");
        if let Err(error) = compile(&source, &format!("{program}.bpf.o")) {
            println!("cargo::error=compiling {source}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn compile(source: &str, object: &str) -> Result<(), String> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?).join(object);
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    // -g: the types that CO-RE goes by.
    let status = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-c", source, "-o"])
        .arg(out)
        .status()
        .map_err(|error| format!("{clang}: {error}; hint: scripts/setup installs clang"))?;
    if status.success() { Ok(()) } else { Err(format!("{clang} failed: {status}")) }
}
