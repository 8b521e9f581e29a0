//! Rust text for C types.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::btf::{Struct, Type, Types};

/// What the types have in common.
const PRELUDE: &str = r#"/// A value as the programs have it in memory.
pub trait Plain: Copy {
    /// Its size.
    const BYTES: usize;
    /// From its bytes, of which there are [`Self::BYTES`] at least.
    fn read(bytes: &[u8]) -> Self;
    /// To its bytes, of which there are [`Self::BYTES`] at least.
    fn write(&self, bytes: &mut [u8]);
}

macro_rules! plain {
    ($($integer:ty)*) => {$(
        impl Plain for $integer {
            const BYTES: usize = size_of::<$integer>();
            #[inline]
            fn read(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(*bytes.first_chunk().expect("the record has this field"))
            }
            #[inline]
            fn write(&self, bytes: &mut [u8]) {
                bytes[..Self::BYTES].copy_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}
plain!(u8 i8 u16 i16 u32 i32 u64 i64);

impl<T: Plain, const N: usize> Plain for [T; N] {
    const BYTES: usize = N * T::BYTES;
    #[inline]
    fn read(bytes: &[u8]) -> Self {
        std::array::from_fn(|i| T::read(&bytes[i * T::BYTES..]))
    }
    #[inline]
    fn write(&self, bytes: &mut [u8]) {
        for (i, value) in self.iter().enumerate() {
            value.write(&mut bytes[i * T::BYTES..]);
        }
    }
}
"#;

/// The types `wanted`, and those within them.
pub fn types(types: &Types, wanted: &[&str]) -> Result<String, String> {
    let mut text = PRELUDE.to_owned();
    let mut done = BTreeSet::new();
    for name in wanted {
        match name.split_once(' ') {
            Some(("struct", name)) => structure(types, name, &mut done, &mut text)?,
            Some(("enum", name)) => enumeration(types, name, &mut text)?,
            _ => return Err(format!("expected `struct NAME` or `enum NAME`, found `{name}`")),
        }
    }
    Ok(text)
}

fn enumeration(types: &Types, name: &str, text: &mut String) -> Result<(), String> {
    for (constant, value) in types.enumeration(name)? {
        let _ = writeln!(text, "\n/// Of `enum {name}`.\npub const {constant}: u32 = {value};");
    }
    Ok(())
}

fn structure(
    types: &Types,
    name: &str,
    done: &mut BTreeSet<String>,
    text: &mut String,
) -> Result<(), String> {
    if !done.insert(name.to_owned()) {
        return Ok(());
    }
    let Struct { bytes, members } = types.structure(name)?;
    let (mut fields, mut reads, mut writes) = (String::new(), String::new(), String::new());
    let mut end = 0;
    for member in &members {
        let (field, at) = (&member.name, member.offset);
        // What C leaves empty has no value: the kernel refuses it on the stack, and Rust must not read it.
        if at != end {
            return Err(format!("struct {name}: {} bytes of padding before {field}", at - end));
        }
        let (kind, size) = rust(types, &member.kind)?;
        end = at + size;
        let _ = writeln!(fields, "    pub {field}: {kind},");
        let _ = writeln!(reads, "            {field}: Plain::read(&bytes[{at}..]),");
        let _ = writeln!(writes, "        self.{field}.write(&mut bytes[{at}..]);");
    }
    if end != bytes {
        return Err(format!("struct {name}: {} bytes of padding at its end", bytes - end));
    }
    let camel = camel(name);
    let _ = write!(
        text,
        "
/// `struct {name}` of the programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = \"the C source has them\")]
pub struct {camel} {{
{fields}}}

impl Plain for {camel} {{
    const BYTES: usize = {bytes};
    #[inline]
    fn read(bytes: &[u8]) -> Self {{
        Self {{
{reads}        }}
    }}
    #[inline]
    fn write(&self, bytes: &mut [u8]) {{
{writes}    }}
}}
"
    );
    for member in members {
        let mut kind = member.kind;
        while let Type::Array(of, _) = kind {
            kind = *of;
        }
        if let Type::Struct(inner) = kind {
            structure(types, &inner, done, text)?;
        }
    }
    Ok(())
}

/// A type in Rust, and its size.
fn rust(types: &Types, kind: &Type) -> Result<(String, usize), String> {
    Ok(match kind {
        Type::Int { signed, bytes } => {
            (format!("{}{}", if *signed { 'i' } else { 'u' }, 8 * bytes), *bytes)
        }
        Type::Enum(bytes) => (format!("u{}", 8 * bytes), *bytes),
        Type::Array(of, count) => {
            let (of, bytes) = rust(types, of)?;
            (format!("[{of}; {count}]"), bytes * count)
        }
        Type::Struct(name) => (camel(name), types.structure(name)?.bytes),
    })
}

/// `socket_event` as `SocketEvent`.
fn camel(name: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').filter(|word| !word.is_empty()).map(capital).collect()
}
