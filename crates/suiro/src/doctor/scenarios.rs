//! The built-in scenarios: which of them this host can run whole.

use suiro_scenario::{Overrides, Scenario};

use super::{Check, State};
use crate::missing::{Host, Verdict};

const GROUP: &str = "scenarios";

/// All checks of this module.
pub fn checks() -> Vec<Check> {
    let host = Host::before_a_run();
    let check = |scenario: &Scenario| {
        let plan = scenario
            .plan(&Overrides::default())
            .expect("built-in scenarios can be planned: tested");
        check(&scenario.name, &host.verdict(&plan))
    };
    suiro_scenario::built_in().iter().map(check).collect()
}

fn check(name: &str, verdict: &Verdict) -> Check {
    let name = format!("suiro run {name}");
    let reasons = verdict.reasons();
    let lines = || reasons.iter().flat_map(|reason| reason.lines());
    let hints: Vec<&str> = lines().filter_map(|line| line.strip_prefix("hint: ")).collect();
    let found: Vec<&str> = lines().filter(|line| !line.starts_with("hint: ")).collect();
    let found = match verdict.is_whole() {
        true => verdict.summary(),
        false => format!("{}: {}", verdict.summary(), found.join("; ")),
    };
    let check = Check::ok(GROUP, &name, "a built-in scenario", &found);
    if verdict.is_whole() {
        return check;
    }
    let none = verdict.skipped.len() == verdict.cells;
    let mut hints = hints;
    hints.dedup();
    check.but(if none { State::Missing } else { State::Limited }, &hints.join("; "))
}

#[cfg(test)]
mod tests {
    use suiro_record::Cell;

    use super::*;

    #[test]
    fn a_scenario_that_runs_in_part_is_limited_and_has_the_remedy() {
        let because =
            "endpoint a: the program `x` is not in PATH\nhint: sudo apt install x".to_owned();
        let verdict = Verdict { cells: 2, skipped: vec![(Cell::new(), because.clone())] };
        let limited = check("ping", &verdict);
        assert_eq!((limited.state, limited.name.as_str()), (State::Limited, "suiro run ping"));
        assert_eq!(limited.mend.as_deref(), Some("sudo apt install x"));
        assert!(
            limited.found.starts_with("1 of 2 cells can run on this host: endpoint a: "),
            "{}",
            limited.found
        );
        let verdict = Verdict { cells: 1, skipped: vec![(Cell::new(), because)] };
        assert_eq!(check("ping", &verdict).state, State::Missing);
        assert_eq!(check("ping", &Verdict { cells: 3, skipped: Vec::new() }).state, State::Ok);
    }
}
