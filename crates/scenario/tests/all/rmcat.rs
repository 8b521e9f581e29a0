//! The scenarios of RFC 8867 and RFC 8869 have the flows, times and jitter that these prescribe.

use std::collections::BTreeSet;

use suiro_link::{Distribution, JitterConfig, Order};
use suiro_record::words::Carries;
use suiro_scenario::{Endpoint, EndpointSpec, Overrides, Pause, Scenario, Setup};
use suiro_units::Duration;

use crate::plan::{PLANS, only, plan, set, trials};

/// A flow: the hosts that it goes from and to, when it begins, and when it ends.
type Place = (String, String, Duration, Option<Duration>);

/// The video over RTP of a trial, sorted.
fn videos(setup: &Setup) -> Vec<Place> {
    let host = |name: &str| {
        let named = setup.endpoints.iter().find(|it| it.name == name);
        named.expect("a plan has whom a sender names").host.clone()
    };
    let place = |it: &Endpoint| match &it.spec {
        EndpointSpec::RtpSender(sender) => {
            Some((it.host.clone(), host(&sender.to), it.start, it.end))
        }
        _ => None,
    };
    let mut places: Vec<Place> = setup.endpoints.iter().filter_map(place).collect();
    places.sort();
    places
}

/// What follows an argument of an endpoint's command.
fn argument(endpoint: &Endpoint, name: &str) -> Option<String> {
    let command = &endpoint.spec.command()?.command;
    let at = command.iter().position(|argument| argument == name)?;
    command.get(at + 1).cloned()
}

/// The flows of iperf3 in these endpoints, sorted. Each has a server of its own.
fn flows_of_iperf3(endpoints: &[&Endpoint]) -> Vec<Place> {
    let (clients, servers): (Vec<&Endpoint>, Vec<&Endpoint>) =
        endpoints.iter().copied().partition(|it| argument(it, "--client").is_some());
    let mut servers: BTreeSet<(String, Option<u16>)> =
        servers.into_iter().map(|it| (it.host.clone(), it.spec.port())).collect();
    let mut places = Vec::new();
    for client in clients {
        let server = argument(client, "--client").unwrap();
        let port = argument(client, "--port").map(|port| port.parse().unwrap());
        assert!(servers.remove(&(server.clone(), port)), "{} has no server", client.name);
        let command = &client.spec.command().unwrap().command;
        let (from, to) = match command.iter().any(|argument| argument == "--reverse") {
            true => (server, client.host.clone()),
            false => (client.host.clone(), server),
        };
        places.push((from, to, client.start, client.end));
    }
    assert!(servers.is_empty(), "servers without a client: {servers:?}");
    places.sort();
    places
}

/// RFC 8869 §3.2.3, the last case: those before it with 4 to 20 flows, which begin at random within the first 10 s and end
/// within the last 10. Five flows of CBR or TCP next to them go up.
#[test]
fn numbers_of_flows_over_wifi_are_those_of_rfc_8869() {
    let nada = trials("rmcat-wireless", "control", "nada");
    let within = |at: Duration, from, to| {
        (Duration::from_secs(from)..=Duration::from_secs(to)).contains(&at)
    };
    // How many halves of the flows go up, and from when to when others are next to them.
    let series = [
        ("", 1, None),
        (" down", 0, None),
        (" up", 2, None),
        (" CBR ends", 1, Some([0, 60])),
        (" CBR begins", 1, Some([61, 120])),
        (" next to TCP", 1, Some([40, 80])),
    ];
    let cases = [4, 8, 12, 16, 20].into_iter().flat_map(|flows| series.map(|it| (flows, it)));
    for (flows, (series, halves, others)) in cases {
        let case = format!("3.2g of {flows}{series}");
        let trial = nada.iter().find(|trial| trial.planned.cell["case"] == *case).unwrap();
        let videos = videos(&trial.setup);
        let up = videos.iter().filter(|(from, ..)| from != "fixed").count();
        assert_eq!((videos.len(), up), (flows, halves * flows / 2), "{case}");
        for (from, to, start, end) in &videos {
            let ends = end.is_some_and(|end| within(end, 110, 120));
            assert!(within(*start, 0, 10) && ends, "{case}: {from} to {to}, {start} to {end:?}");
        }
        let endpoints = trial.setup.endpoints.iter();
        let commands: Vec<&Endpoint> =
            endpoints.clone().filter(|it| it.spec.command().is_some()).collect();
        let next_to_them = flows_of_iperf3(&commands);
        assert_eq!(next_to_them.len(), if others.is_some() { 5 } else { 0 }, "{case}");
        let times = others.map(|times: [u64; 2]| times.map(Duration::from_secs));
        for (_, to, start, end) in &next_to_them {
            assert_eq!((&**to, end.map(|end| [*start, end])), ("fixed", times), "{case}");
        }
        // Each flow has a station of its own.
        let stations = endpoints.map(|it| &*it.host).filter(|host| *host != "fixed");
        let stations = stations.collect::<BTreeSet<&str>>().len();
        assert_eq!(stations, flows + next_to_them.len(), "{case}");
    }
}

/// RFC 8869 §3.2.4: as many TCP flows as there were media flows, in the same directions, here also between the same hosts and at
/// the same times. Next to them is the same as next to media.
#[test]
fn tcp_can_be_in_the_place_of_each_media_flow() {
    let [media, tcp] = ["nada", "tcp"].map(|it| trials("rmcat-wireless", "control", it));
    assert_eq!(media.len(), tcp.len());
    for (media, tcp) in media.iter().zip(&tcp) {
        let case = &media.planned.folder;
        let endpoints = tcp.setup.endpoints.iter();
        let (flows, others): (Vec<&Endpoint>, Vec<&Endpoint>) =
            endpoints.partition(|it| it.name.starts_with("bulk-"));
        let next_to_media = media.setup.endpoints.iter().filter(|it| it.spec.command().is_some());
        assert!(next_to_media.eq(others), "{case}");
        let videos = videos(&media.setup);
        assert!(!videos.is_empty(), "{case}");
        assert_eq!(flows_of_iperf3(&flows), videos, "{case}");
        let clients = flows.iter().filter(|it| argument(it, "--client").is_some());
        let controls: BTreeSet<_> = clients.map(|it| argument(it, "--congestion")).collect();
        assert_eq!(controls, BTreeSet::from([Some("reno".to_owned())]), "{case}");
    }
}

/// By table `flows` it would be a TCP flow that competes, as iperf3 holds it for as long as it sends over UDP.
#[test]
fn the_connection_that_controls_a_cbr_flow_is_no_load() {
    let mut found = 0;
    for trial in trials("rmcat-wireless", "control", "nada") {
        for sink in trial.setup.endpoints.iter().filter(|it| it.name.starts_with("cbr-sink")) {
            let carries = sink.spec.command().unwrap().carries;
            assert_eq!(carries, Some(Carries::Control), "{}", sink.name);
            found += 1;
        }
    }
    // One in each of two cases of 3.1, five in each of 3.2d, 3.2e and ten cases of 3.2g.
    assert_eq!(found, 2 + 5 * 12);
}

/// RFC 8869 §2.1.2: 30 to 60 s are evaluated, also by metrics.
#[test]
fn calls_in_a_cell_are_evaluated_when_rfc_8869_evaluates_them() {
    for trial in &PLANS["rmcat-cellular"].trials {
        let times = (trial.setup.warm_up, trial.setup.duration);
        assert_eq!(times, (Duration::from_secs(30), Duration::from_secs(60)));
    }
    let scenario = Scenario::load("rmcat-cellular").unwrap();
    let quick = Overrides { quick: true, ..Overrides::default() };
    assert_eq!(plan(&scenario, &quick).trials[0].setup.warm_up, Duration::ZERO);
}

/// RFC 8868 §4.5, in both directions of each path before the bottleneck.
#[test]
fn rmcat_has_the_jitter_of_rfc_8868_when_it_is_set() {
    has_jitter_when_it_is_set("rmcat", 5, |link| link != "bottleneck");
}

/// RFC 8869 §3.1.2 and §3.2.2: 30 ms at most, which is three times the deviation.
#[test]
fn the_wired_path_of_rmcat_wireless_has_jitter_when_it_is_set() {
    has_jitter_when_it_is_set("rmcat-wireless", 10, |link| link == "wired");
}

/// These links have a jitter of so many milliseconds in both directions. Nothing else differs from the plan without it.
fn has_jitter_when_it_is_set(scenario: &str, ms: u64, varies: impl Fn(&str) -> bool) {
    let usual = &PLANS[scenario];
    let scenario = Scenario::load(scenario).unwrap();
    let varied = plan(&scenario, &set(&[&format!("jitter={ms} ms")]));
    assert_eq!(usual.trials.len(), varied.trials.len());
    let jitter = JitterConfig {
        distribution: Distribution::TruncatedGaussian,
        sd: Duration::from_millis(ms),
        order: Order::Kept,
    };
    for (usual, varied) in usual.trials.iter().zip(&varied.trials) {
        assert_eq!(usual.planned, varied.planned);
        if usual.planned.repetition > 1 {
            // It shares the setup of the first.
            continue;
        }
        let mut setup = Setup::clone(&varied.setup);
        for link in &mut setup.topology.links {
            let Some(config) = &mut link.config else { continue };
            let found =
                [&mut config.down, &mut config.up].map(|path| path.propagation.jitter.take());
            let expected = varies(&link.name).then_some(jitter);
            assert_eq!(found, [expected; 2], "{}", link.name);
        }
        assert_eq!(setup, *usual.setup);
    }
}

/// RFC 8867 §5.8: with each control the second of three flows pauses for 20 s, and so its viewer has no video.
#[test]
fn the_second_of_three_flows_pauses() {
    let pause = Pause { from: Duration::from_secs(40), to: Duration::from_secs(60) };
    let mut kinds = BTreeSet::new();
    for trial in trials("rmcat", "case", "5.8") {
        let (setup, case) = (&trial.setup, &trial.planned.folder);
        let pauses = |it: &&Endpoint| !setup.pauses_of(&it.name).is_empty();
        let paused: Vec<&Endpoint> = setup.endpoints.iter().filter(pauses).collect();
        let mut hosts: Vec<&str> = paused.iter().map(|it| &*it.host).collect();
        hosts.sort_unstable();
        assert_eq!(hosts, ["b", "receivers"], "{case}");
        for it in paused {
            assert!(it.name.ends_with("-b"), "{case}: {}", it.name);
            assert_eq!(setup.pauses_of(&it.name), [pause], "{case}: {}", it.name);
            kinds.insert(it.spec.name());
        }
    }
    let senders = ["moq-publisher", "rtp-sender", "webrtc-publisher"];
    assert!(senders.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
}

/// RFC 8867 §4.3 and RFC 8869 §2.1.2: next to each video a flow of sound, between the same hosts and at the same times.
#[test]
fn videos_have_sound_next_to_them_when_it_is_set() {
    for name in ["rmcat", "rmcat-cellular"] {
        let scenario = Scenario::load(name).unwrap();
        let with_sound =
            Overrides { set: vec!["audio=true".to_owned()], ..only(&["control=nada"]) };
        let usual = trials(name, "control", "nada");
        let sounding = plan(&scenario, &with_sound).trials;
        assert_eq!(usual.len(), sounding.len());
        for (usual, sounding) in usual.iter().zip(&sounding) {
            let case = &usual.planned.folder;
            let (sounds, others): (Vec<&Endpoint>, Vec<&Endpoint>) =
                sounding.setup.endpoints.iter().partition(|it| it.name.starts_with("audio-"));
            assert!(others.into_iter().eq(&usual.setup.endpoints), "{case}");
            let videos = videos(&usual.setup);
            assert!(!videos.is_empty(), "{case}");
            assert_eq!(flows_of_iperf3(&sounds), videos, "{name}, {case}");
        }
    }
}
