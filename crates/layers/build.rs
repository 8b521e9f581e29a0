//! Compiles the BPF programs with clang, all of them as one object. No skeleton is generated: the
//! loader names a few things of it.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

const SOURCE: &str = "src/probe/probes.bpf.c";
const PARTS: [&str; 7] = [
    "kernel.h",
    "common.h",
    "packet/parse.bpf.c",
    "packet/trail.bpf.c",
    "packet/packet.bpf.c",
    "call/call.bpf.c",
    "schedule/schedule.bpf.c",
];

fn main() -> ExitCode {
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rerun-if-changed={SOURCE}");
    for part in PARTS {
        println!("cargo::rerun-if-changed=src/probe/{part}");
    }
    match compile() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error=compiling {SOURCE}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compile() -> Result<(), String> {
    let out = std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?;
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    // -g: the types that CO-RE goes by.
    let status = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-c", SOURCE, "-o"])
        .arg(PathBuf::from(out).join("probes.bpf.o"))
        .status()
        .map_err(|error| format!("{clang}: {error}; hint: scripts/setup installs clang"))?;
    if status.success() { Ok(()) } else { Err(format!("{clang} failed: {status}")) }
}
