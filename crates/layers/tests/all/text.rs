//! The report as text.

use suiro_layers::report::{html, joined, rows, text};
use suiro_layers::{Cost, Moment, Pause, Point};
use suiro_record::tables::FlowRow;
use suiro_record::words::{Carries, FlowRole, Layer, Transport};

use crate::common::{MS, SECOND, Way, call};

#[test]
fn a_call_that_loses() {
    let lost = Way::lost_after(Point::ReceiveSocket, Some(1));
    let ways: Vec<Way> =
        (0..1_000).map(|number| if number % 5 == 4 { lost } else { Way::through() }).collect();
    let (a, mut b) = call(5 * MS, &ways);
    for second in &mut b.scheduling {
        (second.waiting_ns, second.running_ns) = (Some(840 * MS), Some(160 * MS));
    }
    b.points[Point::ReceiveSocket as usize].lost = 3;
    insta::assert_snapshot!(text(&joined(&a, &b)));
}

/// Of a longer recording each line is of several seconds: here of three, and of one of these a single packet comes through,
/// late.
#[test]
fn the_delay_of_several_seconds_is_the_mean_over_their_packets() {
    let way = |number: u64| {
        let sent_ms = 500 + number * 100;
        match (sent_ms / 1000 % 3, sent_ms % 1000) {
            (0, 0) => Way::through().slow(Point::ReceiveSocket, 80 * MS),
            (0, _) => Way::lost_after(Point::ReceiveSocket, None),
            _ => Way::through(),
        }
    };
    let (mut a, mut b) = call(100 * MS, &(0..400).map(way).collect::<Vec<_>>());
    let end = Moment { monotonic_ns: 150 * SECOND, realtime_ns: (150 + 1_700_000_000) * SECOND };
    (a.end, b.end) = (end, end);
    let text = text(&joined(&a, &b));
    let line = text.lines().find(|line| line.starts_with("  3  ")).expect("a line from 3 s on");
    let cells: Vec<&str> = line.split_whitespace().collect();
    // 82.08 ms once, 2.09 ms twenty times.
    assert_eq!((cells[1], cells[2], cells[7]), ("30", "30.0", "5.899"), "{text}");
}

#[test]
fn nothing_was_recorded() {
    let (mut a, mut b) = call(MS, &[]);
    (a.flows, b.flows) = (Vec::new(), Vec::new());
    a.cost = None;
    let nothing = Cost {
        packets: 0,
        kernel: None,
        kernel_missing: Some("no packet arrived".into()),
        ..b.cost.unwrap()
    };
    b.cost = Some(nothing);
    b.boot_id = "another".into();
    insta::assert_snapshot!(text(&joined(&a, &b)));
}

#[test]
fn flows_are_named_as_endpoints_reported_them() {
    let (a, b) = call(5 * MS, &[Way::through(); 100]);
    let mut report = joined(&a, &b);
    let flow = report.accounts[0].flow.clone();
    let (_, ends) = flow.split_once(' ').unwrap();
    let (source, destination) = ends.split_once('>').unwrap();
    let row = FlowRow {
        t_ns: suiro_units::Time::ZERO,
        endpoint: "caller".into(),
        role: FlowRole::Sender,
        protocol: Transport::Udp,
        local: source.into(),
        remote: destination.into(),
        carries: Carries::Video,
        flows: 1,
        closed_ns: None,
        peer: Some("callee".into()),
    };
    report.name_flows(&[row]);
    let line = format!("{flow} (video from caller to callee)   A → B: 100 packets sent");
    assert!(text(&report).contains(&line), "{}", text(&report));
    report.name_flows(&[]);
    assert!(text(&report).contains(&format!("{flow}   A → B: 100 packets sent")));
}

#[test]
fn the_cost_of_recording_is_in_the_json_too() {
    let (a, mut b) = call(5 * MS, &[Way::through(); 100]);
    let cost = b.cost.as_mut().unwrap();
    cost.kernel = None;
    cost.kernel_missing = Some("timing BPF programs needs CAP_SYS_ADMIN".into());
    let report = joined(&a, &b);
    let hosts = serde_json::to_value(&report.hosts).unwrap();
    let of = |host: usize| &hosts[host]["recording"];
    assert_eq!(of(0)["kernel_ns_per_packet"], 1220.0);
    assert_eq!(of(0)["recorder_ns_per_packet"], 300.0);
    assert_eq!(of(0)["writing_ns_per_packet"], 750.0);
    assert_eq!((&of(0)["sample"]["runs"], &of(0)["events_lost"]), (&550_000.into(), &0.into()));
    assert_eq!(of(0)["missing"], serde_json::Value::Null);
    assert_eq!(of(1)["kernel_ns_per_packet"], serde_json::Value::Null);
    assert_eq!(of(1)["recorder_ns_per_packet"], 300.0);
    assert!(of(1)["missing"].as_str().unwrap().contains("CAP_SYS_ADMIN"));
    let text = text(&report);
    let line = "recording: unknown in the kernel (timing BPF programs needs CAP_SYS_ADMIN), \
                0.30 µs in the recorder, 0.75 µs after it ended, 0 events lost";
    assert!(text.contains(line), "{text}");
}

#[test]
fn rows_hold_the_whole_and_each_second() {
    let lost = Way::lost_after(Point::ReceiveSocket, Some(1));
    let ways: Vec<Way> =
        (0..1_000).map(|number| if number % 5 == 4 { lost } else { Way::through() }).collect();
    let (a, b) = call(5 * MS, &ways);
    let rows = rows(&joined(&a, &b), 500);
    assert_eq!(rows.len(), 4 * 7, "four layers, the whole and six seconds");
    let call: Vec<_> = rows.iter().filter(|row| row.layer == Layer::SystemCall).collect();
    assert!(
        call.iter().all(|row| row.own_loss_ratio.is_some_and(|loss| (loss - 0.2).abs() < 1e-9))
    );
    assert_eq!(
        call.iter().map(|row| row.sent).collect::<Vec<_>>(),
        [1000, 100, 200, 200, 200, 200, 100]
    );
    assert_eq!((call[0].t_ns, call[2].t_ns), (None, Some(1_000_000_500)));
    let link = rows.iter().filter(|row| row.layer == Layer::Link);
    assert!(link.clone().all(|row| row.own_loss_ratio == Some(0.0)));
    assert!(link.clone().all(|row| row.own_delay_mean_ms == row.between_delay_mean_ms));
}

#[test]
fn losses_that_the_recorders_gaps_leave_open_are_null() {
    let unseen = Way::lost_after(Point::ReceiveSocket, None);
    let ways: Vec<Way> =
        (0..1_000).map(|number| if number % 20 == 4 { unseen } else { Way::through() }).collect();
    let (a, mut b) = call(5 * MS, &ways);
    b.points[Point::ReceiveCall as usize].lost = 50;
    let rows = rows(&joined(&a, &b), 0);
    assert_eq!(rows.len(), 4 * 7);
    for row in rows {
        let loss = (row.layer != Layer::SystemCall).then_some(0.0);
        assert_eq!((row.between_loss_ratio, row.own_loss_ratio), (loss, loss), "{}", row.layer);
        assert!(row.own_delay_mean_ms.is_some());
    }
}

/// The verdict comes first, then both hosts of each flow, layer by layer, with four charts for each layer.
#[test]
fn the_page_shows_both_hosts_and_the_verdict_on_top() {
    let lost = Way::lost_after(Point::ReceiveSocket, Some(1));
    let ways: Vec<Way> =
        (0..1_000).map(|number| if number % 5 == 4 { lost } else { Way::through() }).collect();
    let (mut a, b) = call(5 * MS, &ways);
    a.host = "<script>alert(1)</script>".into();
    let page = html(&joined(&a, &b));
    let at = |what: &str| page.find(what).unwrap_or_else(|| panic!("{what} is missing in {page}"));
    let verdict = at("20.0 % lost (socket buffer full)");
    let stack = at("<table class=\"stack\">");
    assert!(verdict < stack, "the verdict is at {verdict}, the stack at {stack}");
    for (layer, told) in [("system call", "20.0 %"), ("UDP or TCP", "0.0 %"), ("IP", "0.0 %")] {
        at(&format!("<td class=\"layer\"><b>{layer}</b>{told} lost"));
    }
    // The receiver's own points: 800 of 1000 came out of the socket.
    at("<td class=\"sap\"><b>socket queue</b>1000 passed");
    at("<td class=\"sap\"><b>system call</b>800 passed");
    assert_eq!(page.matches("<svg").count(), 4 * 4);
    assert!(page.contains("20.0 %</text>"), "the loss chart's greatest value");
    assert!(!page.contains("<script"), "names of hosts are text");
    assert!(page.contains("&lt;script&gt;"));
}

/// Six charted seconds are 35 wide each. 200 packets of 1000 bytes in a second, 100 in the first and the last, are 1600 and 800
/// kbit/s; how many passed in the third is not known.
#[test]
fn the_page_shows_when_a_host_was_not_recorded() {
    let (a, mut b) = call(5 * MS, &[Way::through(); 1_000]);
    let none = html(&joined(&a, &b));
    assert!(!none.contains("not recorded") && !none.contains("class=\"pause\""), "{none}");
    let pause = Pause { from_ns: 102 * SECOND, to_ns: 103 * SECOND };
    b.events.retain(|event| !(pause.from_ns..pause.to_ns).contains(&event.t_ns));
    b.pauses.push(pause);
    let report = joined(&a, &b);
    assert!(report.hosts[0].pauses_s.is_empty());
    assert_eq!(report.hosts[1].pauses_s, [(2.0, 3.0)]);
    let page = html(&report);
    let told = "not recorded for 1.0 s of it, grey in the charts: from 2.0 s to 3.0 s";
    assert!(page.contains(told), "{page}");
    let area = "<path class=\"pause\" d=\"M70.0 12H105.0V56H70.0Z\">";
    assert_eq!(page.matches(area).count(), 4 * 4, "{page}");
    let throughput = "d=\"M0.0 35.0H35.0L35.0 14.0H70.0M105.0 14.0H140.0L140.0 14.0H175.0\
                      L175.0 35.0H210.0\"";
    assert_eq!(page.matches(throughput).count(), 4 * 2, "sent and received: {page}");
}
