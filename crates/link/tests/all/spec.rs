//! What a user writes: errors that name the place, layers, presets, the schema.

use crate::common::{self, config};
use suiro_link::{
    Direction, DisciplineConfig, LimitConfig, LinkConfig, LinkSpec, LossConfig, Preset,
    ServerConfig,
};
use suiro_units::{BitRate, Bytes, Duration, Time};

/// The error of a description: from its reading, with its place, or from its meaning.
fn refusal(toml: &str) -> String {
    match toml::from_str::<LinkSpec>(toml) {
        Err(error) => error.to_string(),
        Ok(spec) => match spec.resolve(&mut common::trace) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("not refused: {toml}"),
        },
    }
}

#[test]
fn refusals() {
    let all = [
        "rat = '8 Mbit/s'",
        "rate = '8 MB/s'",
        "rate = 8000000",
        "delay = '20 m'",
        "down.rate = '8 Mbit'\ndown.dealy = '1 ms'",
        "preset = 'nepali'",
        "loss = 1.5",
        "loss = 2",
        "loss = { model = 'gilbert' }",
        "loss = { model = 'bernoulli', ratio = '5' }",
        "loss = { modle = 'list' }",
        "loss = { packets = [1] }",
        "queue.limit = '64'",
        "queue = { limit = '64p', disciplin = 'pie' }",
        "queue.discipline = 'red'",
        "jitter = { distribution = 'normal' }",
        "changes = [{ at = '1 s', rate = '1 Mbit' }, { at = '2 s', dely = '1 ms' }]",
        "trace = { name = 'cell' }",
        "trace = 5",
        // Meaning.
        "rate = '2000 Gbit/s'",
        "rate = '0 bit/s'",
        "rate = '1 Mbit/s'\ntrace = 'cell'",
        "trace = 'nowhere'",
        "trace = 'cell'\nburst = '3 kB'",
        "trace = 'cell'\nservice = 'poisson'",
        "trace = 'cell'\nchanges = [{ at = '1 s', rate = '1 Mbit/s' }]",
        "changes = [{ at = '1 s', rate = '1 Mbit/s' }]",
        "delay = '1 ms'\nchanges = [{ at = '2 s', delay = '1 ms' }, { at = '1 s', delay = '2 ms' }]",
        "up.changes = [{ at = '0 s', delay = '1 ms' }]",
        "delay = '2 h'",
        "burst = '3 kB'",
        "rate = '1 Mbit/s'\nburst = '0 B'",
        "rate = '1 Mbit/s'\nburst = '3 kB'\nservice = 'poisson'",
        "queue.limit = '0p'",
        "wifi = { distance = '5' }",
        "wifi = { busy = 1 }",
        "wifi = { walls = 1 }\nrate = '1 Mbit/s'",
        "wifi = { walls = 1 }\nqueue.limit = '50 ms'",
        "wifi = { changes = [{ at = '0 s' }] }",
        "wifi = {}\nethernet = {}",
        "preset = 'wifi-clear'\ncellular = {}",
        "cellular = { distance = '5 m' }",
        "cellular = { distance = 100 }",
        "cellular = { speed = '3 m/s' }",
        "cellular = { bandwidth = '10 Mbit/s' }",
        "cellular = { load = 1.2 }",
        "cellular = { block_errors = 0.6 }",
        "cellular = { radius = '5 km' }",
        "cellular = {}\nup.rate = '1 Mbit/s'",
        "cellular = {}\nqueue.limit = '50 ms'",
        "rate = '1 Mbit/s'\nup.queue.limit = '0 ms'",
        "queue.target = '5 ms'",
        "queue = { discipline = 'codel', flows = 3 }",
        "queue = { discipline = 'fq-codel', flows = 0 }",
        "queue = { discipline = 'pie', update = '1 us' }",
        "loss.model = 'bernoulli'",
        "loss = { model = 'bernoulli', ratio = 0.1, loss_bad = 0.5 }",
        "down.loss = { model = 'gilbert-elliott', good_to_bad = 0, bad_to_good = 0.5 }",
        "loss = { model = 'list', packets = [3, 3] }",
        "jitter = { distribution = 'normal', sd = '2 min' }",
        "reorder = { chance = 0.1, by = '0 s' }",
    ];
    let text: Vec<String> = all.iter().map(|toml| format!("{toml}\n→ {}", refusal(toml))).collect();
    insta::assert_snapshot!(text.join("\n\n"));
}

/// Its update period follows from both, and must not be zero.
#[test]
fn times_of_dualpi2_have_a_least_value() {
    for (key, time) in [("interval", "2 ns"), ("target", "1 ns"), ("target", "99 us")] {
        let text = format!("queue = {{ discipline = 'dualpi2', {key} = '{time}' }}");
        let refusal = refusal(&format!("rate = '1 Mbit/s'\n{text}"));
        assert!(refusal.contains(key) && refusal.contains("out of range"), "{refusal}");
    }
    for queue in [
        "{ discipline = 'dualpi2', interval = '100 us', target = '100 us' }",
        "{ discipline = 'codel', interval = '2 ns', target = '1 ns' }",
    ] {
        config(&format!("rate = '1 Mbit/s'\nqueue = {queue}"));
    }
}

#[test]
fn jitter_without_a_deviation_is_none() {
    let none = "{ distribution = 'truncated-gaussian', sd = '0 s' }";
    assert_eq!(config(&format!("delay = '5 ms'\njitter = {none}")), config("delay = '5 ms'"));
    let some = "{ distribution = 'normal', sd = '1 ms' }";
    let one = config(&format!("jitter = {some}\nup.jitter = {none}"));
    let other = config(&format!("down.jitter = {some}"));
    assert_eq!(one, other);
}

#[test]
fn every_refusal_of_a_reading_has_its_place() {
    for toml in [
        "rate = '8 Mbit/s'\nloss = { model = 'bernoulli', ratio = 7 }",
        "rate = '8 Mbit/s'\ntrace = { file = 'cell', again = true }",
        "rate = '8 Mbit/s'\nloss = 7",
        "rate = '8 Mbit/s'\nqueue.limit = 'x'",
    ] {
        let error = toml::from_str::<LinkSpec>(toml).expect_err("it is wrong");
        let span = error.span().expect("it has a place");
        assert!(span.start > 18 && span.end < toml.len() + 1, "{toml}: {span:?}");
    }
}

#[test]
fn a_direction_overrides_the_link_and_the_link_its_preset() {
    let config = config(
        "preset = 'nepal'\nloss = '1 %'\nqueue.discipline = 'codel'\nqueue.target = '9 ms'\n\
         [down]\nrate = '3 Mbit/s'\n[up]\ntrace = 'cell'\nqueue = { discipline = 'pie' }",
    );
    let rate = |d| config.direction(d).server.rate_at(Time::ZERO);
    assert_eq!(rate(Direction::Down), Some(BitRate::from_mbps(3)));
    assert!(matches!(config.down.server, ServerConfig::Poisson(_)), "the preset's service stays");
    assert!(matches!(config.up.server, ServerConfig::Trace(_)));
    assert_eq!(config.down.queue.limit, LimitConfig::Packets(14), "the preset's limit stays");
    let DisciplineConfig::Codel(codel) = config.down.queue.discipline else {
        panic!("{:?}", config.down.queue)
    };
    assert_eq!(codel.target, Duration::from_millis(9));
    let DisciplineConfig::Pie(pie) = config.up.queue.discipline else {
        panic!("{:?}", config.up.queue)
    };
    assert_eq!(pie.target, Duration::from_millis(15), "another discipline's target is not taken");
    for path in [&config.down, &config.up] {
        assert!(matches!(path.loss.first, LossConfig::Bernoulli(r) if r.get() == 0.01));
        assert_eq!(path.propagation.delay.first, Duration::from_millis(28));
    }
}

#[test]
fn defaults() {
    let nothing = config("");
    assert_eq!(nothing, LinkConfig::default());
    let rate = config("rate = '8 Mbit/s'").down;
    let hundred_ms = Bytes::new(100_000);
    assert_eq!(rate.queue.discipline, DisciplineConfig::Droptail);
    let LimitConfig::Bytes(limit) = rate.queue.limit else { panic!("{:?}", rate.queue) };
    assert_eq!((limit.first, limit.changes.len()), (hundred_ms, 0));
    // A queue for both directions, of which one has a rate.
    let one = config("down.rate = '8 Mbit/s'\nqueue.limit = '50 ms'");
    assert!(matches!(one.down.queue.limit, LimitConfig::Bytes(_)));
    assert_eq!(one.up.server, ServerConfig::Unlimited);
}

#[test]
fn every_preset_resolves_and_is_read_by_its_name() {
    for preset in Preset::ALL {
        let name = preset.name();
        let config = config(&format!("preset = '{name}'"));
        let served = config.down.server.rate_at(Time::ZERO).is_some() || config.wifi.is_some();
        assert!(served, "{name}");
        assert_eq!(serde_json::to_value(preset).unwrap(), name);
    }
    let nepal = config("preset = 'nepal'");
    assert_eq!(nepal.down.server.rate_at(Time::ZERO), Some(BitRate::from_kbps(570)));
    assert_eq!(nepal.down.queue.limit, LimitConfig::Packets(14));
    assert_eq!(nepal.down.loss.first.mean().map(|ratio| ratio.get()), Some(0.0477));
    assert_eq!(nepal.up.loss.first, LossConfig::None);
}

#[test]
fn what_was_resolved_survives_json() {
    for toml in [
        "preset = 'nepal'",
        "trace = { file = 'rate.csv', repeat = true }\nburst = '3 kB'",
        "trace = 'cell'\nqueue = { discipline = 'fq-codel', limit = '30 ms' }",
        "wifi = { walls = 1, lifetime = '512 ms' }",
        "cellular = { distance = '250 m', speed = '30 km/h', bandwidth = '1.4 MHz' }",
        "jitter = { distribution = 'truncated-gaussian', sd = '5 ms' }",
        "rate = '1 Mbit/s'\njitter = { distribution = 'pareto', sd = '3 ms', order = 'free' }\n\
         loss = { model = 'gilbert-elliott', good_to_bad = 0.1, bad_to_good = 0.3 }\n\
         changes = [{ at = '1 s', rate = '3 Mbit/s', loss = { model = 'list', packets = [4] } }]",
    ] {
        let config = config(toml);
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<LinkConfig>(&json).unwrap(), config);
        let spec: LinkSpec = toml::from_str(toml).unwrap();
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<LinkSpec>(&json).unwrap(), spec);
        assert_eq!(toml::from_str::<LinkSpec>(&toml::to_string(&spec).unwrap()).unwrap(), spec);
    }
}

#[test]
fn a_specs_schema_knows_every_key() {
    let schema = serde_json::to_value(schemars::schema_for!(LinkSpec)).unwrap();
    let keys = schema["properties"].as_object().expect("a link is an object");
    for key in ["preset", "down", "up", "rate", "burst", "service", "trace", "loss", "queue"] {
        assert!(keys.contains_key(key), "{key}");
        assert!(keys[key]["description"].is_string(), "{key} is described");
    }
    assert_eq!(schema["additionalProperties"], false);
}
