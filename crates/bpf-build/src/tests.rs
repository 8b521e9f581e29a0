use crate::{btf, clang, rust};

const SOURCE: &str = "
typedef unsigned long long u64;
typedef unsigned int u32;
enum colour { RED, GREEN = 4 };
struct inner { u32 a; short b[2]; };
struct record { u64 time_ns; struct inner inners[2]; char name[8]; };
";

/// The Rust text for types of this C source.
fn of(source: &str, wanted: &[&str]) -> Result<String, String> {
    let dir = tempfile::tempdir().unwrap();
    let (file, object) = (dir.path().join("types.c"), dir.path().join("types.o"));
    let variables: String =
        wanted.iter().enumerate().map(|(i, name)| format!("{name} *t{i};\n")).collect();
    std::fs::write(&file, format!("{source}{variables}")).unwrap();
    clang(&file, &object)?;
    rust::types(&btf::Types::of_object(&std::fs::read(&object).unwrap())?, wanted)
}

#[test]
fn records_become_rust() {
    let text = of(SOURCE, &["struct record", "enum colour"]).unwrap();
    for line in [
        "pub struct Record {",
        "    pub time_ns: u64,",
        "    pub inners: [Inner; 2],",
        "    pub name: [u8; 8],",
        "            name: Plain::read(&bytes[24..]),",
        "        self.inners.write(&mut bytes[8..]);",
        "    const BYTES: usize = 32;",
        "pub struct Inner {",
        "    pub b: [i16; 2],",
        "pub const RED: u32 = 0;",
        "pub const GREEN: u32 = 4;",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

#[test]
fn a_field_that_moves_is_followed() {
    let moved = SOURCE.replace("{ u64 time_ns;", "{ u64 first; u64 time_ns;");
    let text = of(&moved, &["struct record"]).unwrap();
    assert!(text.contains("            time_ns: Plain::read(&bytes[8..]),"), "{text}");
    assert!(text.contains("            name: Plain::read(&bytes[32..]),"), "{text}");
    assert!(text.contains("const BYTES: usize = 40;"), "{text}");
}

#[test]
fn what_rust_cannot_share_is_refused() {
    for (source, name, error) in [
        ("struct s { char a; int b; };", "struct s", "struct s: 3 bytes of padding before b"),
        ("struct s { int b; char a; };", "struct s", "struct s: 3 bytes of padding at its end"),
        ("struct s { void *p; };", "struct s", "struct s: p: a pointer"),
        ("struct s { int b : 3; };", "struct s", "struct s: b: a bit field"),
        ("union u { int a; }; struct s { union u u; };", "struct s", "struct s: u: a union"),
    ] {
        assert_eq!(of(source, &[name]).unwrap_err(), error, "{source}");
    }
    assert_eq!(of("struct s;", &["struct s"]).unwrap_err(), "no `struct s`");
    let error = of("typedef int t;", &["t"]).unwrap_err();
    assert_eq!(error, "expected `struct NAME` or `enum NAME`, found `t`");
}

#[test]
fn an_object_without_types_is_refused() {
    let error = btf::Types::of_object(&[0; 64]).err();
    assert_eq!(error.as_deref(), Some("the object has no section .BTF"));
    assert!(btf::Types::of_object(b"\x7fELF").is_err());
}
