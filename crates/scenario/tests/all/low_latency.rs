//! The scenario `low-latency` has players of others next to suiro's and the links of study S1, and everything in it that adapts
//! can notice the link.

use suiro_link::{LimitConfig, RateCurve, Schedule, ServerConfig};
use suiro_scenario::{
    MoqPublisher, MoqViewer, Origin, Overrides, Player, Protocol, Scenario, Trial,
};
use suiro_units::{BitRate, Bytes};

use crate::plan::{PLANS, only, plan};

fn scenario() -> Scenario {
    Scenario::load("low-latency").unwrap()
}

fn label<'t>(trial: &'t Trial, axis: &str) -> &'t str {
    trial.planned.cell[axis].as_str().unwrap()
}

/// Who plays what over which version of HTTP; `None` if it is not over HTTP.
type Plays = Option<(&'static str, Protocol, &'static str)>;

fn plays(trial: &Trial) -> Plays {
    let endpoints = &trial.setup.endpoints;
    let player = endpoints.iter().find_map(|it| it.spec.downcast::<Player>())?;
    let origin = endpoints.iter().find_map(|it| it.spec.downcast::<Origin>())?;
    Some((player.program.name(), player.protocol(), origin.http.name()))
}

fn rows(trials: &[Trial]) -> Vec<(&str, Plays)> {
    trials.iter().map(|trial| (label(trial, "protocol"), plays(trial))).collect()
}

#[test]
fn players_of_others_are_rows_but_not_in_the_short_form() {
    use Protocol::{Dash, Hls};
    let expected: [(&str, Plays); 14] = [
        ("ll-dash http/1.1", Some(("suiro", Dash, "1.1"))),
        ("ll-dash http/2", Some(("suiro", Dash, "2"))),
        ("ll-dash http/3", Some(("suiro", Dash, "3"))),
        ("ll-dash http/2 dash.js", Some(("dashjs", Dash, "2"))),
        ("ll-dash http/3 dash.js", Some(("dashjs", Dash, "3"))),
        ("ll-dash http/2 shaka", Some(("shaka", Dash, "2"))),
        ("ll-hls http/1.1", Some(("suiro", Hls, "1.1"))),
        ("ll-hls http/2", Some(("suiro", Hls, "2"))),
        ("ll-hls http/3", Some(("suiro", Hls, "3"))),
        ("ll-hls http/2 hls.js", Some(("hlsjs", Hls, "2"))),
        ("ll-hls http/3 hls.js", Some(("hlsjs", Hls, "3"))),
        ("ll-hls http/2 shaka", Some(("shaka", Hls, "2"))),
        ("webrtc", None),
        ("moq", None),
    ];
    let whole = &PLANS["low-latency"];
    // Two values of the loss, six links.
    assert_eq!(whole.trials.len(), expected.len() * 2 * 6);
    let one_link = plan(&scenario(), &only(&["loss=0 %", "link=10 Mbit/s"]));
    assert_eq!(rows(&one_link.trials), expected);
    let short = plan(&scenario(), &Overrides { quick: true, ..Overrides::default() });
    let own = expected.iter().filter(|(_, plays)| plays.is_none_or(|(who, ..)| who == "suiro"));
    assert_eq!(rows(&short.trials), own.copied().collect::<Vec<_>>());
    for trial in &short.trials {
        assert_eq!((label(trial, "loss"), label(trial, "link")), ("0 %", "10 Mbit/s"));
    }
}

/// Study S1 limits both directions to 2 Mbit/s, 1 Mbit/s, 500 and 300 kbit/s, and leaves the queue as it is.
#[test]
fn the_links_of_study_s1_carry_the_lowest_rung() {
    for (label, kbps) in
        [("2 Mbit/s", 2000), ("1 Mbit/s", 1000), ("500 kbit/s", 500), ("300 kbit/s", 300)]
    {
        let cell = only(&["protocol=ll-dash http/2", "loss=0 %", &format!("link={label}")]);
        let trial = plan(&scenario(), &cell).trials.remove(0);
        let (rate, queue) = (BitRate::from_kbps(kbps), Bytes::new(50_000));
        let link = trial.setup.topology.links[0].config.as_ref().unwrap();
        for path in [&link.down, &link.up] {
            assert_eq!(path.server, ServerConfig::Steady(RateCurve::constant(rate)), "{label}");
            assert_eq!(path.queue.limit, LimitConfig::Bytes(Schedule::constant(queue)), "{label}");
        }
        // 12 chunks in a second, each with 110 bytes of boxes and two packets' headers of 60 bytes, add 22 kbit/s. A quarter of
        // the lowest rung is 50.
        let lowest = trial.setup.media["main"].ladder.last().unwrap().bitrate;
        assert!(lowest.mul_f64(1.25) < rate, "{label}: {lowest}");
    }
}

/// The viewer changes between what a player of DASH changes between, and the relay is as far from it as the origin is from the
/// player.
#[test]
fn media_over_quic_has_the_rungs_of_the_ladder() {
    let cell = |protocol| plan(&scenario(), &only(&[protocol, "link=mobile"])).trials.remove(0);
    let dash = cell("protocol=ll-dash http/3");
    let rungs: Vec<BitRate> =
        dash.setup.media["main"].ladder.iter().map(|rung| rung.bitrate).collect();
    let moq = cell("protocol=moq");
    let endpoints = &moq.setup.endpoints;
    let publisher = endpoints.iter().find_map(|it| it.spec.downcast::<MoqPublisher>()).unwrap();
    assert_eq!(publisher.rates(), rungs);
    let viewer = endpoints.iter().find_map(|it| it.spec.downcast::<MoqViewer>()).unwrap();
    assert!(viewer.adaptation.has_qualities());
    let host = |name: &str| endpoints.iter().find(|it| it.name == name).map(|it| &*it.host);
    assert_eq!(["relay", "moq-viewer"].map(host), [Some("server"), Some("client")]);
}

/// An encoder follows its connection to the relay, which within one host does not show the link.
#[test]
fn no_encoder_follows_a_connection_within_a_host() {
    for plan in PLANS.values() {
        for trial in &plan.trials {
            let endpoints = &trial.setup.endpoints;
            for camera in endpoints {
                let Some(publisher) = camera.spec.downcast::<MoqPublisher>() else { continue };
                let relay = endpoints.iter().find(|it| it.name == publisher.to).unwrap();
                let follows = publisher.adaptation.encoder_follows();
                let (name, folder) = (&plan.name, &trial.planned.folder);
                assert!(!follows || relay.host != camera.host, "{name}, {folder}: {}", camera.name);
            }
        }
    }
}
