//! Compiles the BPF programs with clang into one object, and generates Rust types for what they
//! share with the recorder. No skeleton is generated, because the loader uses only a few names from
//! the object.

use std::path::Path;
use std::process::ExitCode;

const SOURCE: &str = "src/probe/probes.bpf.c";
const PARTS: [&str; 8] = [
    "kernel.h",
    "common.h",
    "packet/parse.bpf.c",
    "packet/event.bpf.c",
    "packet/trail.bpf.c",
    "packet/packet.bpf.c",
    "call/call.bpf.c",
    "schedule/schedule.bpf.c",
];
/// Types that Rust reads or writes.
const TYPES: [&str; 12] = [
    "struct event",
    "struct settings",
    "struct counters",
    "struct trail",
    "struct schedule",
    "struct served",
    "struct softirq",
    "enum point",
    "enum key_kind",
    "enum flag",
    "enum state",
    "enum places",
];

fn main() -> ExitCode {
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rerun-if-changed={SOURCE}");
    for part in PARTS {
        println!("cargo::rerun-if-changed=src/probe/{part}");
    }
    let source = Path::new(SOURCE);
    let built = suiro_bpf_build::compile(source, "probes.bpf.o")
        .and_then(|()| suiro_bpf_build::types(source, &TYPES, "probes.rs"));
    match built {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error=BPF programs: {error}");
            ExitCode::FAILURE
        }
    }
}
