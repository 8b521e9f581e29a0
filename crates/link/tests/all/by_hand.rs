//! A configuration as a file has it: what a scenario gives is read back, what was changed by hand
//! is refused with its place.

use serde_json::{Value, json};
use suiro_link::{LinkConfig, LinkSpec, Preset};

fn resolved(toml: &str) -> LinkConfig {
    let spec: LinkSpec = toml::from_str(toml).unwrap();
    let traces = |path: &std::path::Path| match path.to_str() {
        Some("cell") => Ok("0\n5\n20\n".to_owned()),
        _ => Ok("time,rate\n0 s,8 Mbit/s\n10 s,0 bit/s\n20 s,1 Mbit/s\n".to_owned()),
    };
    spec.resolve(&mut { traces }).unwrap()
}

const EACH_PART: [&str; 9] = [
    "",
    "rate = '8 Mbit/s'\nburst = '3 kB'\nchanges = [{ at = '1 s', rate = '0 bit/s', loss = 1 }]",
    "trace = 'cell'\nqueue.discipline = 'pie'",
    "trace = { file = 'a.csv', repeat = true }\nqueue.limit = '1 ns'",
    "trace = 'a.csv'\nservice = 'poisson'\nqueue = { limit = '1 h', discipline = 'codel' }",
    "rate = '1 Mbit/s'\nqueue = { discipline = 'dualpi2', interval = '60 ms' }",
    "queue = { limit = '7p', discipline = 'fq-codel' }\nreorder = { chance = 0.1, by = '1 ms' }",
    "loss = { model = 'gilbert-elliott', good_to_bad = 0.1, bad_to_good = 0.5 }\ndelay = '1 h'",
    "loss = { model = 'list', packets = [1, 5] }\njitter = { distribution = 'pareto', sd = '1 ms' }",
];

#[test]
fn what_a_scenario_gives_is_read_back() {
    let presets = Preset::ALL.map(|preset| format!("preset = '{}'", preset.name()));
    for toml in EACH_PART.into_iter().chain(presets.iter().map(String::as_str)) {
        let config = resolved(toml);
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<LinkConfig>(&text).unwrap(), config, "{toml}");
    }
}

/// The configuration of `toml` with `value` at `place` of its `down` direction.
fn refusal(toml: &str, place: &str, value: Value) -> String {
    let mut config = serde_json::to_value(resolved(toml)).unwrap();
    let found = config.pointer_mut(&format!("/down/{place}"));
    *found.unwrap_or_else(|| panic!("{toml} has no {place}")) = value;
    serde_json::from_value::<LinkConfig>(config).unwrap_err().to_string()
}

#[test]
fn what_would_break_a_link_is_refused() {
    let [_, bucket, trace, repeating, codel, dual, fq, bursts, list] = EACH_PART;
    let cases = [
        (bucket, "server/bucket/rate/steps", json!([]), "must be at 0 s"),
        (bucket, "server/bucket/rate/steps/1/at", json!("0 ns"), "steps must increase"),
        (bucket, "server/bucket/rate/steps/0/rate", json!("0 bit/s"), "carries no packets"),
        (bucket, "server/bucket/rate/steps/0/rate", json!("9000 Gbit/s"), "out of range"),
        (bucket, "server/bucket/burst", json!("0 B"), "out of range"),
        (bucket, "loss/changes/0/at", json!("0 ns"), "changes must increase"),
        (repeating, "server/steady/period", json!("0 ns"), "out of range"),
        (repeating, "server/steady/period", json!("10 s"), "after its last step"),
        (trace, "server/trace/times_ms", json!([]), "out of range"),
        (trace, "server/trace/times_ms", json!([0, 7, 5]), "must not decrease"),
        (trace, "queue/discipline/pie/update", json!("0 ns"), "out of range"),
        (codel, "queue/discipline/codel/interval", json!("9 h"), "out of range"),
        (dual, "queue/discipline/dualpi2/ce_threshold", json!("0 ns"), "out of range"),
        (dual, "queue/discipline/dualpi2/interval", json!("2 ns"), "out of range"),
        (dual, "queue/discipline/dualpi2/target", json!("1 ns"), "out of range"),
        (fq, "queue/discipline/fq-codel/flows", json!(0), "out of range"),
        (fq, "queue/discipline/fq-codel/quantum", json!("0 B"), "out of range"),
        (fq, "queue/limit/packets", json!(0), "out of range"),
        (fq, "propagation/reorder/by", json!("5000000 h"), "out of range"),
        (bursts, "propagation/delay/first", json!("5000000 h"), "out of range"),
        (bursts, "loss/first/gilbert-elliott/good_to_bad", json!(0), "above 0"),
        (list, "loss/first/list", json!([5, 1]), "must increase"),
        (list, "propagation/jitter/sd", json!("0 ns"), "out of range"),
    ];
    for (toml, place, value, why) in cases {
        let refusal = refusal(toml, place, value.clone());
        assert!(refusal.contains(why) && refusal.contains("down."), "{place}: {value}: {refusal}");
    }
}
