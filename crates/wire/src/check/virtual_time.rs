//! Tests the judge against the link core in virtual time: what the core does with a plan must pass
//! that plan's checks, whatever the link, and must fail those of another link.

use suiro_link::{Cause, Direction, Ecn, Link, LinkConfig, LinkSpec, Packet, Preset, Verdict};
use suiro_record::{Check, LinkTotals, SelfCheck};
use suiro_units::{Bytes, Duration, Seed, Time};

use super::judge::judge;
use super::load::{Arrival, Burst, Heard};
use super::plan::Plan;

fn config(text: &str) -> LinkConfig {
    let spec: LinkSpec = toml::from_str(text).unwrap();
    spec.resolve(&mut |file| trace(&file.to_string_lossy())).unwrap()
}

/// `steady`: an opportunity every 4 ms, 3 Mbit/s. `waves`: 1 to 10 in each 20 ms, 0.6 to 6 Mbit/s, repeating every 2 s.
/// `late` and `slow-first`: as `steady`, but from 3 s on. `rare`: an opportunity every 3 s. `steps.csv`: 2 Mbit/s, then 5.
fn trace(name: &str) -> Result<String, String> {
    let lines = |times: Vec<u32>| times.iter().map(|ms| format!("{ms}\n")).collect();
    match name {
        "steady" => Ok(lines((1..=250).map(|i| i * 4).collect())),
        "waves" => {
            let wave = |i: u32| (0..=(i % 50).min(50 - i % 50) * 9 / 25).map(move |_| i * 20 + 20);
            Ok(lines((0..100).flat_map(wave).collect()))
        }
        "late" => Ok(lines((0..250).map(|i| 3000 + i * 4).collect())),
        "slow-first" => {
            let slow = (1..30).map(|i| i * 100);
            Ok(lines(slow.chain((0..1000).map(|i| 3000 + i * 4)).collect()))
        }
        "rare" => Ok(lines(vec![3000])),
        "steps.csv" => Ok("time_s,rate_mbps\n0,2\n30,5\n".into()),
        other => Err(format!("no trace {other}")),
    }
}

/// Sends a plan's load straight through a link core, without a real machine.
fn virtually(plan: &Plan, seed: Seed) -> (Heard, LinkTotals) {
    let (down, up) = (plan.path.clone(), plan.path.clone());
    let config = LinkConfig { down, up, wifi: None, ethernet: None, cellular: None };
    let mut link = Link::new(&config, seed);
    let mut heard = Heard::default();
    let mut totals = LinkTotals::new("", Direction::Down);
    let mut begins = Time::from_millis(5);
    for burst in plan.bursts() {
        for i in 0..burst.count {
            let now = begins + burst.interval * u64::from(i);
            let packet = Packet {
                id: heard.sent.len() as u64,
                size: Bytes::new(burst.packet_bytes.into()),
                flow: 0,
                ecn: Ecn::NotEct,
            };
            heard.sent.push(now);
            link.arrive(now, Direction::Down, packet);
            fetch(&mut link, now, &mut heard, &mut totals);
        }
        begins = *heard.sent.last().unwrap() + Duration::from_millis(20);
    }
    let end = *heard.sent.last().unwrap() + plan.patience;
    fetch(&mut link, end, &mut heard, &mut totals);
    totals.offered = heard.sent.len() as u64;
    (heard, totals)
}

fn fetch(link: &mut Link, now: Time, heard: &mut Heard, totals: &mut LinkTotals) {
    while let Some(event) = link.poll(now) {
        assert_ne!(event.verdict, Verdict::Dropped(Cause::Limit));
        if let Verdict::Delivered { .. } = event.verdict {
            totals.delivered += 1;
            heard.arrivals.push(Arrival { number: event.packet.id as u32, at: event.at });
        }
    }
}

fn judged(asked: &str, done: &str, seed: Seed) -> SelfCheck {
    let asked = Plan::new(&config(asked).down);
    let done = Plan { path: Plan::new(&config(done).down).path, ..asked.clone() };
    let (heard, totals) = virtually(&done, seed);
    judge("access", &asked, &heard, &totals)
}

fn part<'a>(check: &'a SelfCheck, what: &str) -> &'a Check {
    check.checks.iter().find(|part| part.what.name() == what).unwrap()
}

/// Links of every kind, each with what its check must be able to measure.
const LINKS: &[(&str, &[&str])] = &[
    ("rate = '2 Mbit/s'\ndelay = '20 ms'", &["delay", "loss", "rate", "queue"]),
    ("rate = '100 kbit/s'\ndelay = '100 ms'", &["delay", "loss", "rate"]),
    ("rate = '10 kbit/s'", &["delay", "loss"]),
    ("rate = '1 kbit/s'", &["delay", "loss"]),
    ("rate = '80 Mbit/s'\ndelay = '5 ms'\nqueue = { limit = '100p' }", &["rate", "queue"]),
    ("rate = '1 Mbit/s'\nqueue = { limit = '1p' }", &["rate", "queue"]),
    ("rate = '5 Mbit/s'\nburst = '30 kB'\nqueue = { limit = '50 kB' }", &["rate", "queue"]),
    ("rate = '10 Mbit/s'\nburst = '10 MB'", &["delay", "loss"]),
    ("rate = '100 kbit/s'\nburst = '50 B'", &["delay", "loss", "rate", "queue"]),
    ("rate = '5 Mbit/s'\ndelay = '10 ms'\nqueue = { discipline = 'codel' }", &["rate"]),
    ("rate = '5 Mbit/s'\ndelay = '10 ms'\nqueue = { discipline = 'pie' }", &["rate"]),
    ("rate = '5 Mbit/s'\ndelay = '10 ms'\nqueue = { discipline = 'fq-codel' }", &["rate"]),
    ("rate = '5 Mbit/s'\ndelay = '10 ms'\nqueue = { discipline = 'dualpi2' }", &["rate"]),
    ("rate = '3 Mbit/s'\nservice = 'poisson'\ndelay = '30 ms'", &["delay", "rate"]),
    ("delay = '30 ms'", &["delay", "loss"]),
    ("rate = '5 Mbit/s'\nloss = '5 %'", &["loss", "rate", "queue"]),
    ("rate = '5 Mbit/s'\nloss = '100 %'", &["loss"]),
    (
        "rate = '9 Mbit/s'\nloss = { model = 'gilbert-elliott', good_to_bad = 0.01, \
         bad_to_good = 0.2 }",
        &["loss", "rate"],
    ),
    ("rate = '5 Mbit/s'\nloss = { model = 'list', packets = [0, 3, 100] }", &["loss", "rate"]),
    (
        "rate = '5 Mbit/s'\ndelay = '30 ms'\njitter = { distribution = 'normal', sd = '3 ms' }",
        &["delay", "rate"],
    ),
    (
        "delay = '30 ms'\njitter = { distribution = 'truncated-gaussian', sd = '5 ms' }",
        &["delay", "loss"],
    ),
    (
        "rate = '5 Mbit/s'\ndelay = '30 ms'\n\
         jitter = { distribution = 'truncated-gaussian', sd = '3 ms' }",
        &["delay", "rate"],
    ),
    (
        "rate = '5 Mbit/s'\ndelay = '30 ms'\n\
         jitter = { distribution = 'truncated-gaussian', sd = '3 ms', order = 'free' }",
        &["delay", "rate"],
    ),
    ("delay = '5 ms'\nduplicate = '2 %'\ncorrupt = '1 %'", &["delay", "loss"]),
    ("trace = 'steady'\ndelay = '30 ms'", &["delay", "rate"]),
    ("trace = 'waves'\ndelay = '30 ms'", &["delay", "rate"]),
    ("trace = 'late'\ndelay = '30 ms'", &["delay", "loss", "rate"]),
    ("trace = 'slow-first'\ndelay = '30 ms'", &["delay", "loss", "rate"]),
    ("trace = 'rare'\ndelay = '30 ms'", &[]),
    ("trace = 'steps.csv'\ndelay = '30 ms'", &["delay", "rate", "queue"]),
    ("delay = '5 ms'\nreorder = { chance = '5 %', by = '10 ms' }", &["delay", "loss"]),
];

#[test]
fn the_core_passes_its_own_check() {
    let presets = Preset::ALL.map(|preset| {
        let name = serde_json::to_string(&preset).unwrap();
        (format!("preset = {name}"), &[][..])
    });
    let links = LINKS.iter().map(|(text, parts)| ((*text).to_owned(), *parts)).chain(presets);
    for (text, parts) in links {
        for seed in 0..5 {
            let check = judged(&text, &text, Seed(seed));
            assert!(check.ok, "seed {seed}: {text}: {:#?}", check.checks);
            for what in parts {
                assert_eq!(part(&check, what).ok, Some(true), "{what} of {text}: {check:#?}");
            }
        }
    }
}

#[test]
fn another_link_does_not_pass() {
    let asked = "rate = '4 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '60 kB' }";
    for (what, done) in [
        ("rate", "rate = '4.2 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '60 kB' }"),
        ("rate", "rate = '3.8 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '60 kB' }"),
        ("delay", "rate = '4 Mbit/s'\ndelay = '22 ms'\nqueue = { limit = '60 kB' }"),
        ("delay", "rate = '4 Mbit/s'\ndelay = '19 ms'\nqueue = { limit = '60 kB' }"),
        ("queue", "rate = '4 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '70 kB' }"),
        ("queue", "rate = '4 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '50 kB' }"),
        ("loss", "rate = '4 Mbit/s'\ndelay = '20 ms'\nloss = '1 %'\nqueue = { limit = '60 kB' }"),
    ] {
        let check = judged(asked, done, Seed(1));
        assert!(!check.ok && part(&check, what).ok == Some(false), "{done}: {check:#?}");
    }
}

/// The result of 40 ± 5 ms at 2,000 packets/s when each delay was drawn independently and order
/// kept.
#[test]
fn jitter_off_its_mean_does_not_pass() {
    let asked = "delay = '40 ms'\njitter = { distribution = 'normal', sd = '5 ms' }";
    let done = "delay = '46 ms'\njitter = { distribution = 'normal', sd = '2900 us' }";
    for seed in 0..5 {
        let check = judged(asked, done, Seed(seed));
        assert_eq!(part(&check, "delay").ok, Some(false), "seed {seed}: {check:#?}");
        let check = judged(asked, asked, Seed(seed));
        assert_eq!(part(&check, "delay").ok, Some(true), "seed {seed}: {check:#?}");
    }
}

#[test]
fn accounts_must_balance() {
    let plan = Plan::new(&config("rate = '4 Mbit/s'").down);
    let (heard, mut totals) = virtually(&plan, Seed(1));
    totals.offered -= 1;
    totals.unaccounted = 2;
    let check = judge("access", &plan, &heard, &totals);
    let accounting = part(&check, "accounting");
    assert_eq!((accounting.ok, accounting.measured), (Some(false), Some(3.0)));
}

#[test]
fn what_the_check_missed_itself_is_not_the_links_fault() {
    let plan = Plan::new(&config("rate = '4 Mbit/s'").down);
    let (mut heard, totals) = virtually(&plan, Seed(1));
    heard.missed = 1;
    heard.arrivals.truncate(heard.arrivals.len() / 2);
    let check = judge("access", &plan, &heard, &totals);
    assert!(check.ok && part(&check, "rate").ok.is_none(), "{check:#?}");
    assert!(check.measured_nothing(), "so that it is repeated");
    heard.missed = 0;
    assert!(!judge("access", &plan, &heard, &totals).measured_nothing());
}

/// A check must be short: three seconds, longer only where a single packet takes that long or the
/// link's own delay requires it.
#[test]
fn checks_are_short() {
    for (rate, seconds) in
        [("1 kbit/s", 6), ("64 kbit/s", 3), ("1 Mbit/s", 3), ("50 Mbit/s", 3), ("1 Gbit/s", 3)]
    {
        let plan = Plan::new(&config(&format!("rate = '{rate}'")).down);
        let time = |all: Duration, burst: &Burst| all + burst.interval * u64::from(burst.count);
        let sending = plan.bursts().iter().fold(Duration::ZERO, time);
        assert!(sending + plan.patience < Duration::from_secs(seconds), "{rate}: {plan:#?}");
    }
}
