//! Broken scenarios, and the errors that their writer sees. Each file of `broken/` has one
//! snapshot; read a change of one as a user would.

use std::path::PathBuf;

use suiro_scenario::{Overrides, Scenario, ScenarioError};

fn folder() -> PathBuf {
    PathBuf::from("tests/broken")
}

fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".toml").map(str::to_owned)).collect();
    names.sort();
    names
}

fn run(name: &str) -> ScenarioError {
    let file = folder().join(format!("{name}.toml"));
    let result = Scenario::load(file.to_str().unwrap())
        .and_then(|scenario| scenario.plan(&Overrides::default()));
    result.err().unwrap_or_else(|| panic!("{name}.toml can be run"))
}

#[test]
fn every_fault_is_told_with_its_place_and_remedy() {
    let names = names();
    assert!(names.len() >= 40, "only {} broken scenarios", names.len());
    for name in names {
        let told = run(&name).to_string().replace(folder().to_str().unwrap(), "broken");
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, told);
        });
    }
}

#[test]
fn most_faults_have_a_place() {
    let without: Vec<String> = names()
        .into_iter()
        .filter(|name| run(name).refusals.iter().any(|refusal| refusal.place.line.is_none()))
        .collect();
    // Only what is not there has no place.
    assert_eq!(without, ["missing-sections", "unknown-key"]);
}

#[test]
fn every_fault_has_a_remedy() {
    for name in names() {
        for refusal in run(&name).refusals {
            assert!(refusal.expected.is_some() || refusal.hint.is_some(), "{name}: {refusal}");
        }
    }
}
