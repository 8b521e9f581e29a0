//! Compiles the BPF programs with clang, and generates Rust types for their records. No skeleton is generated: the
//! loaders use only a few names from the objects, which does not justify `libbpf-cargo` and its thirty dependencies.

use std::path::Path;
use std::process::ExitCode;

const PROGRAMS: [&str; 2] = ["probe", "vegas"];

fn main() -> ExitCode {
    println!("cargo::rerun-if-env-changed=CLANG");
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error=BPF programs: {error}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    for program in PROGRAMS {
        let source = format!("bpf/{program}.bpf.c");
        println!("cargo::rerun-if-changed={source}");
        suiro_bpf_build::compile(Path::new(&source), &format!("{program}.bpf.o"))?;
    }
    suiro_bpf_build::types(Path::new("bpf/probe.bpf.c"), &["struct event"], "probe.rs")
}
