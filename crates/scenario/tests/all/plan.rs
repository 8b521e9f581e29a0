//! Properties of the expansion, and what the command line changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use proptest::prelude::*;
use suiro_link::{EthernetRate, LimitConfig};
use suiro_scenario::{
    Endpoint, EndpointSpec, NoFiles, Overrides, Plan, Scenario, ScenarioError, Setup, Topology,
    Trial, built_in, parse,
};
use suiro_units::{Duration, Ratio, Seed};

const BODY: &str = r#"
[topology]
shape = "dumbbell"
link = "access"

[links.access]
delay = "20 ms"
down.rate = "8 Mbit/s"
up.rate = "8 Mbit/s"

[endpoints.ping]
kind = "command"
host = "client"
"#;

/// A scenario with these axes, each as many values as it says.
fn scenario(sizes: &[usize], repetitions: u32) -> Scenario {
    let mut text =
        format!("name = \"x\"\ntitle = \"x\"\nduration = \"1 s\"\nrepetitions = {repetitions}\n");
    text.push_str("[matrix]\n");
    for (axis, size) in sizes.iter().enumerate() {
        let values: Vec<String> = (0..*size).map(|value| format!("\"v {value}\"")).collect();
        text.push_str(&format!("a{axis} = [{}]\n", values.join(", ")));
    }
    let names: Vec<String> = (0..sizes.len()).map(|axis| format!("\"$a{axis}\"")).collect();
    text.push_str(&format!("{BODY}command = [\"true\", {}]\n", names.join(", ")));
    parse(&text, "x.toml").unwrap()
}

pub fn plan(scenario: &Scenario, overrides: &Overrides) -> Plan {
    scenario.plan_with(overrides, &NoFiles).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(scenario: &Scenario, overrides: &Overrides) -> ScenarioError {
    scenario.plan_with(overrides, &NoFiles).expect_err("this cannot be run")
}

pub fn set(what: &[&str]) -> Overrides {
    Overrides { set: what.iter().map(|&s| s.to_owned()).collect(), ..Overrides::default() }
}

pub fn only(what: &[&str]) -> Overrides {
    Overrides { only: what.iter().map(|&s| s.to_owned()).collect(), ..Overrides::default() }
}

static BUILT_IN: LazyLock<Vec<Scenario>> = LazyLock::new(built_in);

/// The plans of all of them, by their names.
pub static PLANS: LazyLock<BTreeMap<&str, Plan>> = LazyLock::new(|| {
    let planned = |scenario: &'static Scenario| {
        let plan = scenario.plan(&Overrides::default());
        (&*scenario.name, plan.unwrap_or_else(|error| panic!("{error}")))
    };
    BUILT_IN.iter().map(planned).collect()
});

/// The trials of one of them in the cells with this value of an axis.
pub fn trials(scenario: &str, axis: &str, label: &str) -> Vec<&'static Trial> {
    let in_cells = |trial: &&Trial| trial.planned.cell[axis] == label;
    let trials: Vec<&Trial> = PLANS[scenario].trials.iter().filter(in_cells).collect();
    assert!(!trials.is_empty(), "{scenario}: {axis}={label}");
    trials
}

proptest! {
    #[test]
    fn trials_are_the_product(sizes in prop::collection::vec(1usize..4, 0..4), repetitions in 1u32..4) {
        let plan = plan(&scenario(&sizes, repetitions), &Overrides::default());
        prop_assert_eq!(plan.trials.len(), sizes.iter().product::<usize>() * repetitions as usize);
        let folders: BTreeSet<&str> = plan.trials.iter().map(|t| t.planned.folder.as_str()).collect();
        prop_assert_eq!(folders.len(), plan.trials.len());
    }

    #[test]
    fn only_keeps_trials_as_they_were(
        sizes in prop::collection::vec(1usize..4, 1..4), axis in 0usize..3, value in 0usize..3,
    ) {
        let axis = axis % sizes.len();
        let label = format!("v {}", value % sizes[axis]);
        let scenario = scenario(&sizes, 2);
        let all = plan(&scenario, &Overrides::default());
        let kept = plan(&scenario, &only(&[&format!("a{axis}={label}")]));
        let expected: Vec<_> =
            all.trials.into_iter().filter(|t| t.planned.cell[&format!("a{axis}")] == label).collect();
        prop_assert_eq!(kept.trials, expected);
    }

    #[test]
    fn one_repetition_has_one_seed(sizes in prop::collection::vec(1usize..4, 0..3), seed in any::<u32>()) {
        let overrides = Overrides { seed: Some(Seed(seed.into())), ..Overrides::default() };
        let plan = plan(&scenario(&sizes, 3), &overrides);
        let seeds: BTreeSet<(u32, Seed)> =
            plan.trials.iter().map(|t| (t.planned.repetition, t.planned.seed)).collect();
        prop_assert_eq!(seeds.len(), 3);
        prop_assert_eq!(seeds.iter().map(|(_, seed)| seed).collect::<BTreeSet<_>>().len(), 3);
    }

    #[test]
    fn no_text_is_a_panic(text in "(\\PC|\\n){0,200}") {
        let _ = parse(&text, "x").map(|s| s.plan_with(&Overrides::default(), &NoFiles));
    }

    #[test]
    fn no_damage_is_a_panic(
        which: prop::sample::Index, at in 0usize..4000, cut in 0usize..40, put in "(\\PC|\\n){0,6}"
    ) {
        let scenario = which.get(&BUILT_IN);
        let floor = |at: usize| scenario.text().floor_char_boundary(at % scenario.text().len());
        let (start, end) = (floor(at), floor(at).max(floor(at + cut)));
        let mut text = scenario.text().to_owned();
        text.replace_range(start..end, &put);
        let _ = parse(&text, "x").map(|s| s.plan_with(&short(scenario), &NoFiles));
    }

    #[test]
    fn no_override_is_a_panic(
        which: prop::sample::Index, path in "[a-z.0-9\"= \\[\\]$]{0,30}", value in "\\PC{0,20}"
    ) {
        let scenario = which.get(&BUILT_IN);
        let overrides = Overrides { set: vec![format!("{path}={value}")], ..short(scenario) };
        let _ = scenario.plan_with(&overrides, &NoFiles);
    }
}

/// The short form of a scenario that has one: hundreds of cells take seconds, and are read as the first ones are.
fn short(scenario: &Scenario) -> Overrides {
    Overrides { quick: scenario.text().contains("\n[quick"), ..Overrides::default() }
}

/// Links and media that no cell uses do nothing, so that a misspelt name must not pass.
#[test]
fn links_and_media_that_nothing_uses_are_refused() {
    let quick = Scenario::load("quick").unwrap();
    let told = refused(&quick, &set(&["links.acces.down.rate=3 Mbit/s"])).to_string();
    assert!(told.contains("no cell uses `links.acces`"), "{told}");
    assert!(told.contains("hint: did you mean `access`?"), "{told}");
    assert!(told.contains("set by --set links.acces.down.rate=3 Mbit/s"), "{told}");
    let sections = "[links.other]\ndelay = \"1 ms\"\n[media.other]\nsource = \"bbb\"\n";
    let with = parse(&format!("{}\n{sections}", quick.text()), "x.toml").unwrap();
    let told = refused(&with, &Overrides::default()).to_string();
    assert!(told.contains("no cell uses `links.other`"), "{told}");
    assert!(told.contains("no cell uses `media.other`"), "{told}");
    // The cells that are left out may be those that use it, and an override may leave one unused.
    plan(&with, &only(&["tcp=reno"]));
    plan(&with, &set(&["tcp=reno"]));
}

#[test]
fn a_segment_is_a_hub_with_a_link_to_each_station() {
    let text = r#"
        name = "lan"
        title = "Two stations and a router at a hub"
        duration = "1 s"
        [topology]
        shape = "explicit"
        hosts = ["ws1", "ws2", "router", "server"]
        cables = [{ from = "server", to = "router" }]
        [segments.lan]
        ethernet = { rate = "100 Mbit/s" }
        stations = [{ host = "ws1", queue = { limit = "9p" } }, { host = "ws2" }, { host = "router" }]
        [endpoints.ping]
        kind = "command"
        host = "ws1"
        command = ["ping", "server"]
    "#;
    let scenario = parse(text, "lan.toml").unwrap();
    let topology = plan(&scenario, &Overrides::default()).trials.remove(0).setup.topology.clone();
    assert_eq!(topology.hosts, ["ws1", "ws2", "router", "server", "lan"]);
    assert_eq!(topology.hubs, ["lan"]);
    let links: Vec<_> = topology.links.iter().map(|link| (&*link.name, &*link.to)).collect();
    let expected = [
        ("server-router", "router"),
        ("lan-ws1", "ws1"),
        ("lan-ws2", "ws2"),
        ("lan-router", "router"),
    ];
    assert_eq!(links, expected);
    let limit = |link: usize| &topology.links[link].config.as_ref().unwrap().up.queue.limit;
    assert_eq!([limit(1), limit(2)], [&LimitConfig::Packets(9), &LimitConfig::Packets(50)]);

    let slower = set(&["segments.lan.ethernet.rate=10 Mbit/s"]);
    let topology = plan(&scenario, &slower).trials.remove(0).setup.topology.clone();
    let rate = |link: usize| topology.links[link].config.as_ref().unwrap().ethernet.unwrap().rate;
    assert_eq!(rate(3), EthernetRate::Ten);
}

/// The topology of hosts that share a cell, in that order.
fn cell_of(hosts: &str, cell: &str) -> Topology {
    let text = format!(
        r#"
        name = "cell"
        title = "Two stations and what serves them"
        duration = "1 s"
        [topology]
        shape = "explicit"
        hosts = {hosts}
        [segments.cell]
        {cell}
        [endpoints.ping]
        kind = "command"
        host = "near"
        command = ["ping", "far"]
        "#
    );
    let scenario = parse(&text, "cell.toml").unwrap();
    plan(&scenario, &Overrides::default()).trials.remove(0).setup.topology.clone()
}

#[test]
fn a_wifi_cell_is_links_from_its_access_point() {
    let topology = cell_of(
        r#"["ap", "near", "far"]"#,
        r#"
        wifi = { busy = 0.2, lifetime = "512 ms" }
        access_point = "ap"
        stations = [{ host = "near" }, { host = "far", wifi = { walls = 2, lifetime = "300 ms" } }]
        "#,
    );
    assert_eq!(topology.hosts, ["ap", "near", "far"]);
    let links = topology.links.iter().map(|link| (&*link.name, &*link.from, &*link.to));
    let expected = [("cell-near", "ap", "near"), ("cell-far", "ap", "far")];
    assert_eq!(links.collect::<Vec<_>>(), expected);
    let cell = &topology.cells[0];
    assert_eq!((&*cell.name, &cell.links), ("cell", &vec!["cell-near".into(), "cell-far".into()]));
    assert_eq!(cell.busy.as_ref().unwrap().first, Ratio::new(0.2).unwrap());
    let wifi = |link: usize| topology.links[link].config.as_ref().unwrap().wifi.clone().unwrap();
    assert_eq!((wifi(0).walls, wifi(1).walls, wifi(1).air.first.busy), (0, 2, Ratio::ZERO));
    let lifetimes = [0, 1].map(|link| wifi(link).lifetime);
    assert_eq!(lifetimes, [512, 300].map(|ms| Some(Duration::from_millis(ms))));
}

#[test]
fn a_cellular_cell_is_links_from_its_base_station() {
    let topology = cell_of(
        r#"["near", "far", "bs"]"#,
        r#"
        cellular = { load = 0.2, cell_radius = "300 m" }
        base_station = "bs"
        stations = [{ host = "near" }, { host = "far", cellular = { distance = "250 m" } }]
        "#,
    );
    let links = topology.links.iter().map(|link| (&*link.name, &*link.from, &*link.to));
    let expected = [("cell-near", "bs", "near"), ("cell-far", "bs", "far")];
    assert_eq!(links.collect::<Vec<_>>(), expected);
    let cell = &topology.cells[0];
    assert_eq!((&*cell.name, &cell.busy, cell.links.len()), ("cell", &None, 2));
    let cellular = |link: usize| topology.links[link].config.as_ref().unwrap().cellular.unwrap();
    let of = |link: usize| (cellular(link).distance.0, cellular(link).cell_radius.0);
    assert_eq!((of(0), of(1)), ((100.0, 300.0), (250.0, 300.0)));
    assert_eq!(cellular(1).load, Ratio::new(0.2).unwrap());
}

#[test]
fn cells_run_through_the_last_axis_first_and_repetitions_last() {
    let plan = plan(&scenario(&[2, 2], 2), &Overrides::default());
    let folders: Vec<&str> = plan.trials.iter().map(|t| t.planned.folder.as_str()).collect();
    let expected = [
        "trials/a0=v-0,a1=v-0/1",
        "trials/a0=v-0,a1=v-1/1",
        "trials/a0=v-1,a1=v-0/1",
        "trials/a0=v-1,a1=v-1/1",
        "trials/a0=v-0,a1=v-0/2",
        "trials/a0=v-0,a1=v-1/2",
        "trials/a0=v-1,a1=v-0/2",
        "trials/a0=v-1,a1=v-1/2",
    ];
    assert_eq!(folders, expected);
}

#[test]
fn a_plan_without_a_matrix_has_one_cell() {
    let plan = plan(&scenario(&[], 1), &Overrides::default());
    assert_eq!(plan.trials[0].planned.folder, "trials/all/1");
    assert!(plan.trials[0].planned.cell.is_empty() && plan.axes.is_empty());
}

#[test]
fn folders_are_safe_short_and_apart() {
    let long = "long-".repeat(12);
    let text = scenario(&[1, 1, 1], 1).text().to_owned();
    let text = text.replace("a0 = [\"v 0\"]", "a0 = [\"a/b\", \"a b\", \"..\", \"é\"]");
    let text = text.replace("a1 = [\"v 0\"]", &format!("a1 = [\"{long}x\", \"{long}y\"]"));
    let text = text.replace("a2 = [\"v 0\"]", &format!("a2 = [\"{long}x\", \"{long}y\"]"));
    let plan = plan(&parse(&text, "x.toml").unwrap(), &Overrides::default());
    let folders: BTreeSet<&str> = plan.trials.iter().map(|t| t.planned.folder.as_str()).collect();
    assert_eq!(folders.len(), 16);
    for folder in folders {
        let parts: Vec<&str> = folder.split('/').collect();
        assert!(parts.len() == 3 && parts[1].len() <= 120, "{folder}");
        assert!(folder.chars().all(|c| c.is_ascii_graphic()), "{folder}");
    }
}

#[test]
fn overrides_are_in_the_text_and_the_text_gives_the_same_plan() {
    let overrides = Overrides {
        set: vec!["tcp=reno".into(), "abr=bola".into(), "links.access.delay=5 ms".into()],
        duration: Some(Duration::from_secs(7)),
        repetitions: Some(3),
        seed: Some(Seed(9)),
        ..Overrides::default()
    };
    let first = plan(&Scenario::load("quick").unwrap(), &overrides);
    assert_eq!(first.trials.len(), 3);
    assert_eq!(first.trials[0].setup.duration, Duration::from_secs(7));
    let again = plan(&parse(&first.text, "quick.toml").unwrap(), &Overrides::default());
    assert_eq!(again, first);
}

#[test]
fn a_warm_up_is_a_value_like_others_and_shorter_than_the_trial() {
    let head = "name = \"x\"\ntitle = \"x\"\nduration = \"$how.long\"\nwarm_up = \"$how.warm\"\n";
    let axis = "[matrix]\nhow = [{ label = \"short\", value = { long = \"9 s\", warm = \"0 s\" } }, \
                { label = \"long\", value = { long = \"40 s\", warm = \"15 s\" } }]";
    let text = format!("{head}{axis}\n{BODY}command = [\"true\"]\n");
    let scenario = parse(&text, "x.toml").unwrap();
    let warm_ups: Vec<Duration> = plan(&scenario, &Overrides::default())
        .trials
        .iter()
        .map(|trial| trial.setup.warm_up)
        .collect();
    assert_eq!(warm_ups, [Duration::ZERO, Duration::from_secs(15)]);
    let short = Overrides { duration: Some(Duration::from_secs(5)), ..Overrides::default() };
    let error = refused(&scenario, &short).to_string();
    assert!(error.contains("warm_up: 15 s leaves no time"), "{error}");
    assert!(error.contains("expected: less than `duration`, which is 5 s"), "{error}");
}

#[test]
fn the_short_form_may_have_another_warm_up() {
    let head = "name = \"x\"\ntitle = \"x\"\nduration = \"9 s\"\nwarm_up = \"6 s\"\n";
    let quick = "[quick]\nduration = \"5 s\"\nwarm_up = \"2 s\"\n";
    let text = format!("{head}{quick}{BODY}command = [\"true\"]\n");
    let quick = Overrides { quick: true, ..Overrides::default() };
    let plan = plan(&parse(&text, "x.toml").unwrap(), &quick);
    assert_eq!(plan.trials[0].setup.warm_up, Duration::from_secs(2));
}

#[test]
fn a_setup_without_a_warm_up_is_written_and_read_as_before() {
    let planned = plan(&Scenario::load("quick").unwrap(), &Overrides::default());
    let setup: &Setup = &planned.trials[0].setup;
    let text = serde_json::to_string(setup).unwrap();
    assert!(!text.contains("warm_up"), "{text}");
    let again: Setup = serde_json::from_str(&text).unwrap();
    assert_eq!(&again, setup);
}

#[test]
fn quick_takes_the_short_form_and_options_win_over_it() {
    let scenario = Scenario::load("quick").unwrap();
    let quick = Overrides { quick: true, ..Overrides::default() };
    assert_eq!(plan(&scenario, &quick).trials[0].setup.duration, Duration::from_secs(22));
    let both = Overrides { duration: Some(Duration::from_secs(3)), ..quick.clone() };
    assert_eq!(plan(&scenario, &both).trials[0].setup.duration, Duration::from_secs(3));
    let error = refused(&Scenario::load("ping").unwrap(), &quick).to_string();
    assert!(error.starts_with("--quick: the scenario has no short form"), "{error}");
}

#[test]
fn repetitions_of_a_cell_share_its_setup() {
    let plan = plan(&scenario(&[2], 2), &Overrides::default());
    assert!(std::sync::Arc::ptr_eq(&plan.trials[0].setup, &plan.trials[2].setup));
    assert_ne!(plan.trials[0].setup, plan.trials[1].setup);
}

#[test]
fn built_in_scenarios_can_be_planned() {
    for scenario in &*BUILT_IN {
        assert_eq!(format!("{}.toml", scenario.name), scenario.file());
        assert!(!PLANS[&*scenario.name].trials.is_empty(), "{}", scenario.name);
    }
}

/// What was read for the cells before it does not change a cell.
#[test]
fn a_cell_is_planned_as_if_it_were_alone() {
    for scenario in &*BUILT_IN {
        let trials = &PLANS[&*scenario.name].trials;
        let last = trials.iter().rfind(|trial| trial.planned.repetition == 1).unwrap();
        let cell = last.planned.cell.iter();
        let cell: Vec<String> =
            cell.map(|(axis, label)| format!("{axis}={}", label.as_str().unwrap())).collect();
        let alone = plan(scenario, &Overrides { only: cell, ..Overrides::default() });
        assert_eq!(alone.trials[0], *last);
    }
}

#[test]
fn every_viewer_of_the_built_in_scenarios_has_a_source() {
    let mut viewers = 0;
    for plan in PLANS.values() {
        let setup = &plan.trials[0].setup;
        let shows = setup.endpoints.iter().filter(|it| it.spec.kind().viewer().is_some());
        for viewer in shows {
            let source = setup.source_of(&viewer.name);
            let source = source.unwrap_or_else(|| panic!("{}: {}", plan.name, viewer.name));
            assert!(source.spec.kind().viewer().is_none());
            viewers += 1;
        }
    }
    assert!(viewers >= 10, "{viewers}");
}

#[test]
fn setups_survive_json() {
    // The repetitions of a cell share its setup.
    let trials = PLANS.values().flat_map(|plan| &plan.trials);
    for trial in trials.filter(|trial| trial.planned.repetition == 1) {
        let json = serde_json::to_string(&*trial.setup).unwrap();
        assert_eq!(serde_json::from_str::<Setup>(&json).unwrap(), *trial.setup);
    }
}

/// An array for an axis replaces its values; each is one of its own by label, or a new one.
#[test]
fn an_axis_can_be_set_to_several_values() {
    let labels = |scenario: &Scenario, what: &str| {
        plan(scenario, &set(&[what]))
            .axes
            .iter()
            .map(|axis| axis.labels.clone())
            .collect::<Vec<_>>()
    };
    let quick = Scenario::load("quick").unwrap();
    for what in ["matrix.tcp=[\"reno\", \"bbr\"]", "tcp=[\"reno\", \"bbr\"]"] {
        assert_eq!(labels(&quick, what), [["reno", "bbr"]], "{what}");
    }
    let body = BODY.replace("8 Mbit/s", "$speed.rate");
    let axis = "[matrix]\nspeed = [{ label = \"slow\", value = { rate = \"1 Mbit/s\" } }, \
                { label = \"fast\", value = { rate = \"9 Mbit/s\" } }, { label = \"idle\", value = { rate = \"1 kbit/s\" } }]";
    let head = "name = \"x\"\ntitle = \"x\"\nduration = \"1 s\"";
    let labelled = parse(&format!("{head}\n{axis}\n{body}command = [\"true\"]\n"), "x").unwrap();
    assert_eq!(labels(&labelled, "speed=[\"fast\", \"slow\"]"), [["fast", "slow"]]);
    let told = refused(&labelled, &set(&["speed=[\"fast\", \"slwo\"]"])).to_string();
    assert!(told.contains("the axis `speed` has no value `slwo`"), "{told}");
    assert!(told.contains("did you mean `slow`?"), "{told}");
}

#[test]
fn command_line_errors() {
    let quick = Scenario::load("quick").unwrap();
    let told = [
        set(&["tpc=reno"]),
        set(&["tcp"]),
        set(&["abr=bolla"]),
        set(&["links.access.delay=5"]),
        set(&["links.access.dealy=5 ms"]),
        set(&["endpoints.player=5"]),
        only(&["tpc=reno"]),
        only(&["tcp=ren"]),
        only(&["reno"]),
        Overrides { duration: Some(Duration::ZERO), ..Overrides::default() },
        Overrides { repetitions: Some(0), ..Overrides::default() },
    ]
    .map(|overrides| refused(&quick, &overrides).to_string());
    insta::assert_snapshot!(told.join("\n--------\n"));
    let told = Scenario::load("qiuck").unwrap_err().to_string()
        + "\n--------\n"
        + &Scenario::load("./nowhere.toml").unwrap_err().to_string();
    insta::assert_snapshot!(told);
}

#[test]
fn a_value_of_an_axis_may_be_a_table_that_refers_to_parameters() {
    let text = format!(
        "name = \"x\"\ntitle = \"x\"\nduration = \"1 s\"\n[parameters]\nn = 3\n\
         [[matrix.how]]\nlabel = \"once\"\nvalue = {{ args = [\"-c\", \"${{n}}\"], on = \"client\" }}\n\
         {BODY}command = \"$how.args\"\n"
    );
    let scenario =
        parse(&text.replace("host = \"client\"", "host = \"$how.on\""), "x.toml").unwrap();
    let command = |overrides: &Overrides| {
        let plan = plan(&scenario, overrides);
        let spec = plan.trials[0].setup.endpoints[0].spec.clone();
        spec.command().unwrap().command.clone()
    };
    assert_eq!(command(&Overrides::default()), ["-c", "3"]);
    assert_eq!(command(&set(&["n=4"])), ["-c", "4"]);
    let gone = text.replace("$how.args", "$how.arg");
    let error = refused(&parse(&gone, "x.toml").unwrap(), &Overrides::default()).to_string();
    assert!(error.contains("`how` has no `arg`") && error.contains("args"), "{error}");
}

#[test]
fn a_value_of_an_axis_may_name_only_what_differs_from_a_parameter() {
    let whole = "[matrix]\nhow = [{ label = \"a\", value = { n = \"1\", m = \"2\" } }, \
                 { label = \"b\", value = { n = \"1\", m = \"3\" } }]\n";
    let short = "[parameters]\nhow = { n = \"1\", m = \"2\" }\n[matrix]\nhow = [{ label = \"a\", value = {} }, \
                 { label = \"b\", value = { m = \"3\" } }]\n";
    let scenario = |cells| {
        let text = format!(
            "name = \"x\"\ntitle = \"x\"\nduration = \"1 s\"\n{cells}{BODY}command = [\"$how.n\", \"$how.m\"]\n"
        );
        parse(&text, "x.toml").unwrap()
    };
    let trials = |scenario: &Scenario, overrides: &Overrides| plan(scenario, overrides).trials;
    let (whole, short) = (scenario(whole), scenario(short));
    assert_eq!(trials(&short, &Overrides::default()), trials(&whole, &Overrides::default()));
    assert_eq!(
        trials(&short, &set(&["how=b"])),
        trials(&whole, &set(&["how=b"])),
        "an axis is fixed"
    );
    let command = |trial: &suiro_scenario::Trial| {
        trial.setup.endpoints[0].spec.clone().command().unwrap().command.clone()
    };
    let changed = trials(&short, &set(&["parameters.how.n=7"]));
    assert_eq!(changed.iter().map(command).collect::<Vec<_>>(), [["7", "2"], ["7", "3"]]);
}

/// The receivers and senders of this scenario's only trial: name, host, port and whom it sends to.
fn rtp(endpoints: &str) -> Vec<(String, String, u16, String)> {
    let text = format!(
        "name = \"x\"\ntitle = \"x\"\nduration = \"1 s\"\n[matrix]\nvideos = [3]\n{}{endpoints}",
        "[topology]\nshape = \"dumbbell\"\nclients = 2\nlink = \"x\"\n[links.x]\nrate = \"8 Mbit/s\"\n",
    );
    let plan = plan(&parse(&text, "x.toml").unwrap(), &Overrides::default());
    let row = |endpoint: &Endpoint| {
        let to = match &endpoint.spec {
            EndpointSpec::RtpSender(sender) => sender.to.clone(),
            _ => String::new(),
        };
        let port = endpoint.spec.port().unwrap_or_default();
        (endpoint.name.clone(), endpoint.host.clone(), port, to)
    };
    plan.trials[0].setup.endpoints.iter().map(row).collect()
}

#[test]
fn copies_have_names_ports_and_partners_of_their_own() {
    let found = rtp(r#"
[endpoints.viewer]
kind = "rtp-receiver"
host = "client*"
count = "$videos"
codec = "h264"
[endpoints.camera]
kind = "rtp-sender"
host = "server"
count = 6
to = "viewer"
codec = "h264"
port = 6000
camera = { source = "synthetic" }
control = { kind = "tfrc" }
"#);
    let viewer = |n, host: &str, port| (format!("viewer{n}"), host.to_owned(), port, String::new());
    let camera = |n, port| (format!("camera{n}"), "server".to_owned(), port, format!("viewer{n}"));
    let expected = [
        viewer(1, "client1", 5004),
        viewer(2, "client1", 5006),
        viewer(3, "client1", 5008),
        viewer(4, "client2", 5004),
        viewer(5, "client2", 5006),
        viewer(6, "client2", 5008),
        camera(1, 6000),
        camera(2, 6002),
        camera(3, 6004),
        camera(4, 6006),
        camera(5, 6008),
        camera(6, 6010),
    ];
    assert_eq!(found, expected);
}
