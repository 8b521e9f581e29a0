//! What a scenario needs of this host that is not there, found before anything runs.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use suiro_guest::Kernel;
use suiro_lab::guests;
use suiro_lab::lacking::lacking;
use suiro_media::{cache, program};
use suiro_outside::printable;
use suiro_record::Cell;
use suiro_scenario::{Need, Plan, Setup, TimeKind};
use suiro_tcp::vegas;

use crate::doctor::programs;

/// This host, and what has been looked for on it.
#[derive(Default)]
pub struct Host {
    /// Congestion controls that `suiro run` loads itself.
    loadable: Vec<&'static str>,
    /// What is missing for each need, by the need's name.
    found: RefCell<BTreeMap<String, Option<Missing>>>,
    /// What is wrong with the kernel of guests.
    kernel: OnceCell<Option<String>>,
}

/// Something that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Missing {
    what: String,
    hint: String,
}

impl From<suiro_browser::Missing> for Missing {
    fn from(it: suiro_browser::Missing) -> Self {
        let what = format!("player {}: {}", it.name, it.reason);
        Self { what, hint: it.remedy.to_owned() }
    }
}

/// How much of a plan this host can run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Cells of the plan.
    pub cells: usize,
    /// Cells that cannot run here, each with the reason.
    pub skipped: Vec<(Cell, String)>,
}

impl Host {
    /// This host before a run: what the run loads first counts as there.
    pub fn before_a_run() -> Self {
        let root = rustix::process::geteuid().is_root();
        let loadable = if root { vec![vegas::NAME] } else { Vec::new() };
        Self { loadable, ..Self::default() }
    }

    /// Why the trials of `setup` cannot run here in this time, with a hint on a line of its own for each thing that is missing;
    /// `None` if nothing is known to be missing.
    pub fn missing(&self, setup: &Setup, time: TimeKind) -> Option<String> {
        let mut reasons: Vec<String> = self.missing_programs(setup);
        reasons.extend(match time {
            TimeKind::Real => lacking(setup, &self.loadable),
            TimeKind::Virtual => guests::unsuitable(setup).or_else(|| self.missing_kernel()),
        });
        (!reasons.is_empty()).then(|| reasons.join("\n"))
    }

    /// Why there are no guests.
    fn missing_kernel(&self) -> Option<String> {
        let find = || Kernel::find(&cache::folder()).err().map(|error| error.to_string());
        self.kernel.get_or_init(find).clone()
    }

    fn missing_programs(&self, setup: &Setup) -> Vec<String> {
        let mut endpoints: BTreeMap<String, (Missing, Vec<&str>)> = BTreeMap::new();
        for endpoint in &setup.endpoints {
            let needs = endpoint.spec.kind().needs();
            let missing = needs.into_iter().filter_map(|need| self.look(need));
            let missing: BTreeMap<String, Missing> =
                missing.map(|missing| (missing.what.clone(), missing)).collect();
            for (what, missing) in missing {
                let entry = endpoints.entry(what).or_insert_with(|| (missing, Vec::new()));
                entry.1.push(&endpoint.name);
            }
        }
        let told = |(missing, names): (Missing, Vec<&str>)| {
            let who = if names.len() == 1 { "endpoint" } else { "endpoints" };
            format!("{who} {}: {}\nhint: {}", names.join(", "), missing.what, missing.hint)
        };
        endpoints.into_values().map(told).collect()
    }

    fn look(&self, need: Need<'_>) -> Option<Missing> {
        let key = format!("{need:?}");
        if let Some(known) = self.found.borrow().get(&key) {
            return known.clone();
        }
        let missing = match need {
            Need::Command(program) => missing_command(program),
            Need::Player(player) => {
                suiro_players::locate(player).and_then(Result::err).map(Missing::from)
            }
            Need::Chromium => suiro_browser::chromium().err().map(Missing::from),
            Need::FieldTrial(name) => suiro_browser::field_trial(name).err().map(Missing::from),
            Need::Peer(name) => suiro_browser::installed::peer(name)
                .err()
                .map(|it| Missing { what: it.reason, hint: it.remedy.to_owned() }),
        };
        self.found.borrow_mut().insert(key, missing.clone());
        missing
    }

    /// How much of `plan` can run here.
    pub fn verdict(&self, plan: &Plan) -> Verdict {
        let mut verdict = Verdict::default();
        // The repetitions of a cell share its setup.
        let mut seen = BTreeSet::new();
        for trial in &plan.trials {
            if !seen.insert(Arc::as_ptr(&trial.setup)) {
                continue;
            }
            verdict.cells += 1;
            if let Some(because) = self.missing(&trial.setup, plan.time) {
                verdict.skipped.push((trial.planned.cell.clone(), because));
            }
        }
        verdict
    }
}

fn missing_command(program: &str) -> Option<Missing> {
    if program::can_start(program.as_ref()) {
        return None;
    }
    let name = printable(program);
    let what = match program.contains('/') {
        true => format!("there is no program at `{name}`"),
        false => format!("the program `{name}` is not in PATH"),
    };
    let hint = programs::install(program).or_else(|| suiro_players::remedy(program));
    let hint = hint.map_or_else(|| "install it, or name its path".to_owned(), str::to_owned);
    Some(Missing { what, hint })
}

impl Verdict {
    /// Whether every cell can run.
    pub fn is_whole(&self) -> bool {
        self.skipped.is_empty()
    }

    /// The reasons, each once.
    pub fn reasons(&self) -> Vec<&str> {
        let reasons: BTreeSet<&str> =
            self.skipped.iter().map(|(_, because)| because.as_str()).collect();
        reasons.into_iter().collect()
    }

    /// `3 of 4 cells can run on this host`.
    pub fn summary(&self) -> String {
        let possible = self.cells - self.skipped.len();
        format!(
            "{possible} of {} can run on this host",
            suiro_analysis::why::wording::count(self.cells, "cell")
        )
    }
}

#[cfg(test)]
mod tests {
    use suiro_scenario::{NoFiles, Overrides, parse};

    use super::*;

    fn plan(commands: &str) -> Plan {
        let text = format!(
            "name = 'x'\ntitle = 'x'\nduration = '1 s'\nrepetitions = 2\n[matrix]\nwith = {commands}\n\
             [topology]\nshape = 'dumbbell'\nlink = 'x'\n[links.x]\nrate = '1 Mbit/s'\n\
             [endpoints.a]\nkind = 'command'\nhost = 'server'\ncommand = ['nice', '$with']\n\
             [endpoints.b]\nkind = 'command'\nhost = 'client'\ncommand = ['sh', '-c', 'x | y']\nneeds = ['$with']\n"
        );
        parse(&text, "x.toml").unwrap().plan_with(&Overrides::default(), &NoFiles).unwrap()
    }

    #[test]
    fn cells_whose_programs_are_missing_are_found_with_the_remedy() {
        let plan = plan("['sh', 'no-such-program', '/no/such/path']");
        let verdict = Host::default().verdict(&plan);
        let expected = [
            "endpoints a, b: the program `no-such-program` is not in PATH\nhint: install it, or name its path",
            "endpoints a, b: there is no program at `/no/such/path`\nhint: install it, or name its path",
        ];
        assert_eq!(verdict.reasons(), expected);
        assert_eq!(verdict.summary(), "1 of 3 cells can run on this host");
        assert!(!verdict.is_whole());
        assert_eq!(verdict.skipped[0].0["with"], "no-such-program");
    }

    #[test]
    fn a_cell_is_absent_if_chromium_does_not_have_its_field_trial() {
        let text = "name = 'x'\ntitle = 'x'\nduration = '1 s'\n[matrix]\n\
             control = [{ label = 'gcc', value = '' }, { label = 'scream', value = 'A/Enabled/B/Enabled/' }]\n\
             [topology]\nshape = 'dumbbell'\nlink = 'x'\n[links.x]\nrate = '1 Mbit/s'\n\
             [endpoints.camera]\nkind = 'webrtc-publisher'\nendpoint = 'chromium'\nhost = 'server'\n\
             camera = { source = 'synthetic' }\nfield_trials = '$control'\n\
             [endpoints.screen]\nkind = 'webrtc-viewer'\nendpoint = 'chromium'\nhost = 'client'\n\
             from = 'camera'\nfield_trials = '$control'\n";
        let plan = parse(text, "x.toml").unwrap().plan_with(&Overrides::default(), &NoFiles);
        let unknown = Missing { what: "it has no `B`".to_owned(), hint: "another".to_owned() };
        let found = [
            (Need::Chromium, None),
            (Need::FieldTrial("A"), None),
            (Need::FieldTrial("B"), Some(unknown)),
        ];
        let found = found.map(|(need, missing)| (format!("{need:?}"), missing));
        let host = Host { found: RefCell::new(BTreeMap::from(found)), ..Host::default() };
        let verdict = host.verdict(&plan.unwrap());
        assert_eq!(verdict.reasons(), ["endpoints camera, screen: it has no `B`\nhint: another"]);
        assert_eq!(verdict.summary(), "1 of 2 cells can run on this host");
        assert_eq!(verdict.skipped[0].0["control"], "scream");
    }

    #[test]
    fn known_programs_have_the_command_that_installs_them() {
        for program in ["iperf3", "ping", "taskset", "gst-launch-1.0", "vlc", "chromium"] {
            let hint = programs::install(program).or_else(|| suiro_players::remedy(program));
            assert!(hint.is_some_and(|hint| hint.contains("apt")), "{program}: {hint:?}");
        }
    }
}
