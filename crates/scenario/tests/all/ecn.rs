//! Which packets take part in ECN, and what `rmcat` has for L4S.

use suiro_link::{DisciplineConfig, Dualpi2Config};
use suiro_rate::EcnMode;
use suiro_scenario::{EndpointSpec, Need, NoFiles, Overrides, Plan, Scenario, Setup};

use crate::plan::{only, plan, set};

fn rmcat(control: &str) -> Plan {
    let scenario = Scenario::load("rmcat").unwrap();
    plan(&scenario, &only(&[&format!("control={control}"), "case=5.1"]))
}

/// The disciplines of the bottleneck, down and up.
fn disciplines(setup: &Setup) -> [&DisciplineConfig; 2] {
    let link = setup.topology.links.iter().find(|link| link.name == "bottleneck").unwrap();
    let config = link.config.as_ref().unwrap();
    [&config.down.queue.discipline, &config.up.queue.discipline]
}

/// How the packets of RTP senders of ours are marked.
fn marks(setup: &Setup) -> Vec<Option<EcnMode>> {
    let specs = setup.endpoints.iter().map(|endpoint| &endpoint.spec);
    let marks = specs.filter_map(|spec| match spec {
        EndpointSpec::RtpSender(sender) => Some(sender.control.ecn),
        _ => None,
    });
    marks.collect()
}

/// RFC 9331 §4.1: ECT(1) asks for the queue of L4S, which RFC 9332 describes.
#[test]
fn rmcat_has_scream_with_l4s_at_a_queue_that_marks() {
    let dualpi2 = DisciplineConfig::Dualpi2(Dualpi2Config::default());
    let ours = rmcat("scream l4s").trials.remove(0);
    assert_eq!(disciplines(&ours.setup), [&dualpi2; 2]);
    assert_eq!(marks(&ours.setup), [Some(EcnMode::L4s)]);
    let chromium = rmcat("chromium scream l4s").trials.remove(0);
    assert_eq!(disciplines(&chromium.setup), [&dualpi2; 2]);

    let usual = rmcat("scream").trials.remove(0);
    assert_eq!(disciplines(&usual.setup), [&DisciplineConfig::Droptail; 2]);
    assert_eq!(marks(&usual.setup), [None]);
    let scenario = Scenario::load("rmcat").unwrap();
    let marking = Overrides {
        set: vec!["discipline=dualpi2".to_owned()],
        ..only(&["control=scream", "case=5.1"])
    };
    assert_eq!(disciplines(&plan(&scenario, &marking).trials[0].setup), [&dualpi2; 2]);
}

/// Chromium ignores field trials that it does not know: each is asked for before the run.
#[test]
fn chromium_needs_the_field_trials_that_it_is_given() {
    let needs = |control: &str| {
        let trial = rmcat(control).trials.remove(0);
        let specs = trial.setup.endpoints.iter().map(|endpoint| &endpoint.spec);
        let ends = specs.filter(|spec| spec.name().starts_with("webrtc-"));
        let needs = ends.map(|spec| format!("{:?}", spec.kind().needs()));
        needs.collect::<Vec<String>>()
    };
    let trials = ["WebRTC-RFC8888CongestionControlFeedback", "WebRTC-Bwe-ScreamV2"];
    let [reports, scream] = trials.map(Need::FieldTrial);
    let scream = format!("{:?}", [Need::Chromium, reports, scream]);
    assert_eq!(needs("chromium scream"), [scream.clone(), scream]);
    let gcc = format!("{:?}", [Need::Chromium]);
    assert_eq!(needs("chromium"), [gcc.clone(), gcc]);
}

#[test]
fn packets_of_quic_take_part_in_ecn_unless_a_scenario_says_otherwise() {
    let scenario = Scenario::load("rmcat").unwrap();
    let at = only(&["control=moq cubic", "case=5.1"]);
    let of = |overrides: &Overrides| {
        let trial = plan(&scenario, overrides).trials.remove(0);
        let specs = trial.setup.endpoints.iter().map(|endpoint| &endpoint.spec);
        let ecn = specs.filter_map(|spec| match spec {
            EndpointSpec::MoqPublisher(it) => Some(("publisher", it.ecn)),
            EndpointSpec::MoqRelay(it) => Some(("relay", it.ecn)),
            EndpointSpec::MoqViewer(it) => Some(("viewer", it.ecn)),
            _ => None,
        });
        let mut ecn: Vec<(&str, bool)> = ecn.collect();
        ecn.sort_unstable();
        ecn
    };
    assert_eq!(of(&at), [("publisher", true), ("relay", true), ("viewer", true)]);
    let off = ["source-a", "relay", "screen-a"].map(|name| format!("endpoints.{name}.ecn=false"));
    let off = Overrides { set: off.to_vec(), ..at.clone() };
    assert_eq!(of(&off), [("publisher", false), ("relay", false), ("viewer", false)]);

    let chromium = ["endpoints.source-a.endpoint=chromium", "endpoints.source-a.ecn=false"];
    let chromium = Overrides { only: at.only, ..set(&chromium) };
    let refused = scenario.plan_with(&chromium, &NoFiles).unwrap_err().to_string();
    assert!(refused.contains("Chromium decides for itself whether it uses ECN"), "{refused}");
}

/// Screens are made of what viewers keep.
#[test]
fn rmcat_has_the_quality_of_each_viewer_when_it_is_set() {
    let scenario = Scenario::load("rmcat").unwrap();
    let controls = ["control=nada", "control=webrtc", "control=chromium", "control=moq cubic"];
    for (quality, kept) in [(false, 0), (true, 3)] {
        let overrides = Overrides {
            set: vec![format!("quality={quality}")],
            ..only(&[&controls[..], &["case=5.4"][..]].concat())
        };
        let trials = plan(&scenario, &overrides).trials;
        assert!(!trials.is_empty());
        for trial in trials {
            assert_eq!(trial.setup.record.quality, quality);
            let specs = trial.setup.endpoints.iter().map(|endpoint| &endpoint.spec);
            let saves = specs.filter(|spec| match spec {
                EndpointSpec::RtpReceiver(it) => it.save,
                EndpointSpec::WebrtcViewer(it) => it.save,
                EndpointSpec::MoqViewer(it) => it.save,
                _ => false,
            });
            assert_eq!(saves.count(), kept, "{}", trial.planned.folder);
        }
    }
}
