//! What two results folders were made with, and where that differs.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use suiro_record::{Machine, Manifest};
use toml::Value;

/// Differences of one kind that are listed; more are counted.
const LISTED: usize = 200;

/// What a difference between two folders is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettingKind {
    /// A key of the scenario.
    Scenario,
    /// A program's version, or the kernel of virtual time.
    Version,
    /// The machine.
    Machine,
}

/// Something that differs between two folders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Setting {
    /// What it is about.
    pub kind: SettingKind,
    /// A dotted path of the scenario, the name of a program, or what of the machine.
    pub name: String,
    /// In the first folder; null if there is none.
    pub first: Option<String>,
    /// In the second folder.
    pub second: Option<String>,
}

/// All that differs between two runs, apart from when and where they were made.
pub(super) fn settings(first: &Manifest, second: &Manifest) -> Vec<Setting> {
    let both = |of: fn(&Manifest) -> BTreeMap<String, String>| [of(first), of(second)];
    let kinds = [
        (SettingKind::Scenario, both(scenario)),
        (SettingKind::Version, both(versions)),
        (SettingKind::Machine, both(|manifest| machine(&manifest.machine))),
    ];
    kinds.iter().flat_map(|(kind, [one, other])| differing(*kind, one, other)).collect()
}

fn differing(
    kind: SettingKind,
    first: &BTreeMap<String, String>,
    second: &BTreeMap<String, String>,
) -> Vec<Setting> {
    let names: BTreeSet<&String> = first.keys().chain(second.keys()).collect();
    let setting = |name: &String| {
        let (one, other) = (first.get(name).cloned(), second.get(name).cloned());
        (one != other).then(|| Setting { kind, name: name.clone(), first: one, second: other })
    };
    names.into_iter().filter_map(setting).take(LISTED).collect()
}

/// The keys of the scenario that bear on results; its whole text, if that is not TOML.
fn scenario(manifest: &Manifest) -> BTreeMap<String, String> {
    let mut found = BTreeMap::from([("scenario".to_owned(), manifest.scenario.clone())]);
    match manifest.text.parse::<toml::Table>() {
        Ok(root) => {
            for (key, value) in root.iter().filter(|(key, _)| !is_prose(key)) {
                flatten(key, value, &mut found);
            }
        }
        Err(_) => drop(found.insert("text".to_owned(), manifest.text.clone())),
    }
    found.insert("seed".to_owned(), manifest.seed.to_string());
    found
}

/// Keys that say what a scenario is for, or what it would be with an option.
fn is_prose(key: &str) -> bool {
    matches!(key, "name" | "title" | "description" | "quick" | "jobs")
}

fn flatten(path: &str, value: &Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                flatten(&format!("{path}.{key}"), value, found);
            }
        }
        value => drop(found.insert(path.to_owned(), value.to_string())),
    }
}

fn versions(manifest: &Manifest) -> BTreeMap<String, String> {
    let mut found = manifest.versions.clone();
    found.insert("suiro".to_owned(), manifest.suiro.clone());
    if let Some(time) = &manifest.virtual_time {
        let kernel = format!("{}, SHA-256 {:.16}…", time.kernel, time.kernel_sha256);
        found.insert("kernel of virtual time".to_owned(), kernel);
    }
    found
}

fn machine(machine: &Machine) -> BTreeMap<String, String> {
    let Machine {
        name,
        kernel,
        system,
        cpu,
        cores,
        memory_bytes,
        clock_source,
        privilege,
        settings,
    } = machine;
    let of = |name: &str, value: String| (name.to_owned(), value);
    let mut found: BTreeMap<String, String> = settings.clone();
    // The priority of a trial's processes, which a merge or a skipped trial does not have.
    found.remove("nice");
    found.extend([
        of("name", name.clone()),
        of("kernel", kernel.clone()),
        of("system", system.clone()),
        of("CPU", cpu.clone()),
        of("cores", cores.to_string()),
        of("memory", format!("{:.1} GB", *memory_bytes as f64 / 1e9)),
        of("clock", clock_source.clone()),
        of("privilege", privilege.to_string()),
    ]);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::tests::manifest;

    fn told(first: &Manifest, second: &Manifest) -> Vec<String> {
        let side = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let line = |it: Setting| {
            format!("{:?} {}: {} {}", it.kind, it.name, side(it.first), side(it.second))
        };
        settings(first, second).into_iter().map(line).collect()
    }

    #[test]
    fn keys_that_differ_are_named_and_prose_is_not() {
        let one = manifest(
            "title = \"a\"\n[links.access]\nrate = \"8 Mbit/s\" # each\ndelay = \"1 ms\"\n",
        );
        let other = manifest(
            "title = \"b\"\n[links.access]\nqueue = { limit = 5 }\nrate = \"9 Mbit/s\"\ndelay = \"1 ms\"\n",
        );
        assert_eq!(told(&one, &one), Vec::<String>::new());
        assert_eq!(
            told(&one, &other),
            [
                "Scenario links.access.queue.limit: - 5",
                "Scenario links.access.rate: \"8 Mbit/s\" \"9 Mbit/s\""
            ]
        );
    }

    #[test]
    fn programs_and_machines_that_differ_are_named() {
        let (one, mut other) = (manifest(""), manifest(""));
        other.suiro = "9.9.9".into();
        other.machine.cores = 64;
        other.started = "2030-01-01T00:00:00Z".into();
        let expected =
            [format!("Version suiro: {} 9.9.9", one.suiro), "Machine cores: 2 64".into()];
        assert_eq!(told(&one, &other), expected);
    }

    #[test]
    fn a_text_that_is_not_toml_is_compared_whole() {
        assert_eq!(told(&manifest("= 1"), &manifest("= 2")), ["Scenario text: = 1 = 2"]);
    }
}
