//! What the tests of whole trials share.

use suiro_analysis::{Records, summarise};
use suiro_record::tables::{LinkRow, MoqSessionRow, WebrtcRow, WebrtcSessionRow};
use suiro_record::words::{Direction, FlowRole, Signalling, Verdict};
use suiro_record::{EndpointOutcome, Pause, Trial};
use suiro_units::{BitRate, Duration, Seed, Time};

/// A valid trial of which nothing else is known.
pub fn trial(duration_s: f64) -> Trial {
    Trial {
        cell: Default::default(),
        repetition: 1,
        seed: Seed(1),
        valid: true,
        invalid_because: None,
        only_late: false,
        attempts: Vec::new(),
        skipped: false,
        machine: None,
        virtual_time: None,
        started: "2026-01-01T00:00:00Z".into(),
        duration_s,
        warm_up_s: 0.0,
        epoch_monotonic_ns: 0,
        self_checks: Vec::new(),
        links: Vec::new(),
        standstills: None,
        link_rates: Vec::new(),
        cables: Vec::new(),
        tcp: Vec::new(),
        captures: Vec::new(),
        endpoints: Vec::new(),
        versions: Default::default(),
    }
}

/// An endpoint that ran until the trial's end, without a fault.
pub fn endpoint(name: &str) -> EndpointOutcome {
    EndpointOutcome {
        name: name.into(),
        host: "client".into(),
        kind: "rtp-receiver".into(),
        exit_code: Some(0),
        signal: None,
        failure: None,
        log: String::new(),
        left_s: None,
        pauses: Vec::new(),
        lateness: None,
    }
}

/// A trial in which these endpoints have no video from and until these seconds.
pub fn with_pauses(trial: Trial, names: &[&str], (from_s, to_s): (f64, f64)) -> Trial {
    let paused =
        |name: &&str| EndpointOutcome { pauses: vec![Pause { from_s, to_s }], ..endpoint(name) };
    Trial { endpoints: names.iter().map(paused).collect(), ..trial }
}

/// A packet on the link `access`, of which nothing else is known.
pub fn packet(direction: Direction) -> LinkRow {
    LinkRow {
        t_ns: 0,
        link: "access".into(),
        direction,
        packet: 0,
        flow: "udp".into(),
        size_bytes: 100,
        payload_bytes: None,
        queue_bytes: 0,
        queue_packets: 0,
        verdict: Verdict::Delivered,
        cause: None,
        ecn_marked: false,
        dequeued_ns: None,
        scheduled_ns: None,
        departed_ns: None,
        attempts: None,
    }
}

/// A WebRTC connection of a sender, of which nothing else is known.
pub fn webrtc_session(endpoint: &str) -> WebrtcSessionRow {
    WebrtcSessionRow {
        t_ns: Time::ZERO,
        endpoint: endpoint.into(),
        session: 1,
        role: FlowRole::Sender,
        signalling: Signalling::Whep,
        answered_ns: None,
        connected_ns: None,
        first_packet_ns: None,
        ended_ns: None,
        ended: None,
        candidates: "".into(),
        pair: None,
        codec: None,
        payload_types: None,
        feedback: None,
        extensions: None,
    }
}

/// A tenth of a second of the first session of a camera, of which nothing else is known.
pub fn webrtc_row() -> WebrtcRow {
    WebrtcRow {
        t_ns: Time::ZERO,
        endpoint: "camera".into(),
        session: 1,
        role: FlowRole::Sender,
        period_ns: Duration::from_millis(100),
        estimate_bps: None,
        target_bps: Some(BitRate::from_kbps(700)),
        sent_bps: BitRate::from_kbps(600),
        received_bps: BitRate::from_kbps(10),
        rtt_ns: None,
        loss_ratio: None,
        nacks: 0,
        retransmissions: 0,
        padding_bytes: None,
        plis: 0,
        firs: 0,
        queue_bytes: None,
        queue_ns: None,
        width: None,
        height: None,
        fps: None,
        quality: None,
    }
}

/// A session of Media over QUIC at its client, of which nothing else is known.
pub fn moq_session(endpoint: &str) -> MoqSessionRow {
    MoqSessionRow {
        t_ns: Time::ZERO,
        endpoint: endpoint.into(),
        session: 1,
        role: FlowRole::Client,
        addresses: "*>*".into(),
        congestion: "cubic".into(),
        version: None,
        connected_ns: None,
        set_up_ns: None,
        ended_ns: None,
        ended: None,
        streams: 0,
        datagrams: None,
        switches: None,
    }
}

/// Fails unless the metrics that are named have these values.
pub fn assert_metrics(trial: &Trial, records: &Records, want: &[(&str, Option<f64>)]) {
    let metrics = summarise(trial, records);
    for (name, want) in want {
        let got = *metrics.get(name).unwrap_or_else(|| panic!("{name} is missing"));
        let near = match (got, *want) {
            (Some(got), Some(want)) => (got - want).abs() <= 1e-9 * want.abs().max(1.0),
            (got, want) => got == want,
        };
        assert!(near, "{name}: {got:?}, expected {want:?}");
    }
}
