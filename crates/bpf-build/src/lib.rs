//! For build scripts: compiles BPF programs with clang, and makes Rust types of the C types that the programs share with
//! what reads and writes them. So a record has one definition, the C one: Rust follows when a field moves, and does not
//! compile when one is renamed, goes away or becomes another type.
//!
//! The layout is not guessed: it is what clang writes into the object (BTF, Documentation/bpf/btf.rst of the kernel).
//! No privilege and no running kernel is needed.

use std::path::{Path, PathBuf};
use std::process::Command;

mod btf;
mod rust;

/// Compiles `source` to `object` in cargo's `OUT_DIR`.
///
/// # Errors
/// No clang, or a program that it refuses.
pub fn compile(source: &Path, object: &str) -> Result<(), String> {
    clang(source, &out_dir()?.join(object))
}

/// Writes Rust types for the C types `wanted` of `source`, and for those within them, to `module` in cargo's `OUT_DIR`.
/// A type is named as C names it: `struct event`, `enum point`.
///
/// # Errors
/// A type that `source` does not have, or that has no counterpart in Rust: pointers, unions, bit fields, padding.
pub fn types(source: &Path, wanted: &[&str], module: &str) -> Result<(), String> {
    let out = out_dir()?;
    // An object has only the types that a function, map or variable leads to.
    let path = source.canonicalize().map_err(|error| format!("{}: {error}", source.display()))?;
    let mut text = format!("#include \"{}\"\n", path.display());
    for (number, name) in wanted.iter().enumerate() {
        text += &format!("{name} *suiro_type_{number};\n");
    }
    let (of_types, object) = (out.join(format!("{module}.c")), out.join(format!("{module}.o")));
    std::fs::write(&of_types, text).map_err(|error| format!("{}: {error}", of_types.display()))?;
    clang(&of_types, &object)?;
    let object =
        std::fs::read(&object).map_err(|error| format!("{}: {error}", object.display()))?;
    let text = rust::types(&btf::Types::of_object(&object)?, wanted)?;
    let module = out.join(module);
    std::fs::write(&module, text).map_err(|error| format!("{}: {error}", module.display()))
}

fn out_dir() -> Result<PathBuf, String> {
    std::env::var_os("OUT_DIR").map(PathBuf::from).ok_or_else(|| "no OUT_DIR: cargo sets it".into())
}

fn clang(source: &Path, object: &Path) -> Result<(), String> {
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    // -g: the types that CO-RE goes by, and the layout of records.
    let status = Command::new(&clang)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-c"])
        .arg(source)
        .arg("-o")
        .arg(object)
        .status()
        .map_err(|error| format!("{clang}: {error}\nhint: scripts/setup installs clang"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{clang}: compiling {}: {status}", source.display()))
    }
}

#[cfg(test)]
mod tests;
