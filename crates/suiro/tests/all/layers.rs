//! Dependencies point to lower layers only; those of tests also to the same one. The table of layers is the one in ARCHITECTURE.md, so that
//! the map and the rule cannot disagree.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

const REMEDY: &str = "hint: move the code, or move the crate in the table of ARCHITECTURE.md";

/// Layer by the crate's short name, from lines such as ``| 1 | `link` | what it is |``.
fn layers(map: &str) -> BTreeMap<&str, u32> {
    map.lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
            let layer = cells.next()?.parse().ok()?;
            let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
            Some((name, layer))
        })
        .collect()
}

/// The short name: `link` of `suiro-link`, `suiro` of the binary; `None` for others' crates.
fn short(package: &str) -> Option<&str> {
    package.strip_prefix("suiro-").or((package == "suiro").then_some(package))
}

/// A workspace crate, another that it depends on, and whether only its tests do.
type Dependency<'a> = (&'a str, Option<&'a str>, bool);

fn dependencies(metadata: &serde_json::Value) -> Vec<Dependency<'_>> {
    let packages = metadata["packages"].as_array().expect("cargo lists packages");
    let mut pairs = Vec::new();
    for package in packages {
        let name = package["name"].as_str().and_then(short).expect("our packages are suiro-*");
        pairs.push((name, None, false));
        for dependency in package["dependencies"].as_array().expect("cargo lists dependencies") {
            if let Some(other) = dependency["name"].as_str().and_then(short) {
                pairs.push((name, Some(other), dependency["kind"] == "dev"));
            }
        }
    }
    pairs
}

fn violations(layers: &BTreeMap<&str, u32>, pairs: &[Dependency]) -> Vec<String> {
    let mut found = Vec::new();
    for &(name, dependency, for_tests) in pairs {
        let Some(&layer) = layers.get(name) else {
            found.push(format!("crate `{name}` has no layer in ARCHITECTURE.md"));
            continue;
        };
        let Some(dependency) = dependency else { continue };
        match layers.get(dependency) {
            Some(&lower) if lower < layer => {}
            Some(&same) if same == layer && for_tests => {}
            Some(other) => found.push(format!(
                "`{name}` (layer {layer}) depends on `{dependency}` (layer {other})"
            )),
            None => found.push(format!("`{name}` depends on `{dependency}`, which has no layer")),
        }
    }
    found.dedup();
    found
}

#[test]
fn dependencies_point_to_lower_layers() {
    let root = PathBuf::from("../..");
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(&root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata = serde_json::from_slice(&output.stdout).unwrap();
    let (layers, pairs) = (layers(&map), dependencies(&metadata));
    assert!(pairs.len() > layers.len(), "cargo metadata shows no dependencies: {pairs:?}");
    let found = violations(&layers, &pairs);
    assert!(found.is_empty(), "{}\n{REMEDY}", found.join("\n"));
    for name in layers.keys() {
        assert!(
            pairs.contains(&(name, None, false)),
            "`{name}` is in ARCHITECTURE.md but is no crate"
        );
    }
}

#[test]
fn the_rule_finds_what_it_should() {
    let layers = layers(
        "| layer | crate |\n|---|---|\n| 0 | `units` | x |\n| 1 | `link` | y |\n| 1 | `abr` | z |\n",
    );
    assert_eq!(layers, BTreeMap::from([("abr", 1), ("link", 1), ("units", 0)]));
    let fine = [
        ("link", None, false),
        ("link", Some("units"), false),
        ("link", Some("units"), true),
        ("link", Some("abr"), true),
    ];
    assert!(violations(&layers, &fine).is_empty());
    for (pair, text) in [
        (("link", Some("abr"), false), "`link` (layer 1) depends on `abr` (layer 1)"),
        (("units", Some("link"), false), "`units` (layer 0) depends on `link` (layer 1)"),
        (("units", Some("link"), true), "`units` (layer 0) depends on `link` (layer 1)"),
        (("wire", None, false), "crate `wire` has no layer in ARCHITECTURE.md"),
        (("abr", Some("wire"), false), "`abr` depends on `wire`, which has no layer"),
    ] {
        assert_eq!(violations(&layers, &[pair]), [text]);
    }
}

/// The entries of a clippy.toml, each on a line of its own.
fn refused(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| line.starts_with("  { path"))
}

/// Clippy reads one file a crate: that of the pure ones must have all that the workspace's has.
#[test]
fn pure_crates_are_those_of_the_map_and_are_refused_more() {
    let root = PathBuf::from("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let (map, everywhere, pure) =
        (read("ARCHITECTURE.md"), read("clippy.toml"), read("clippy-pure.toml"));
    let refused_here: Vec<_> = refused(&pure).collect();
    for entry in refused(&everywhere) {
        assert!(
            refused_here.contains(&entry),
            "clippy-pure.toml does not have what clippy.toml has: {entry}"
        );
    }
    assert!(refused_here.len() > refused(&everywhere).count());
    for name in layers(&map).into_keys() {
        let row = format!("| `{name}` |");
        let is_pure = map.lines().any(|line| line.contains(&row) && line.ends_with(" Pure. |"));
        let file = std::fs::read_to_string(root.join(format!("crates/{name}/clippy.toml"))).ok();
        let expected = is_pure.then(|| pure.clone());
        assert!(
            file == expected,
            "`{name}`: crates/{name}/clippy.toml is {}, and the map says {}",
            if file.is_some() { "there" } else { "not there" },
            if is_pure { "Pure" } else { "nothing of Pure" },
        );
    }
}
