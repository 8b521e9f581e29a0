//! Every known cause is named, with its loss exact to the packet. The recordings are made up.

use suiro_layers::account::{Layer, Second};
use suiro_layers::clock::{Alignment, How};
use suiro_layers::report::{Report, report};
use suiro_layers::verdict::{Cause, Deed, Verdict};
use suiro_layers::{Key, Pause, Point, Protocol, Recording};

use crate::common::{MS, SECOND, Way, call};

const RCVBUFF: Option<u16> = Some(1);
const QDISC: Option<u16> = Some(2);
const NETFILTER: Option<u16> = Some(3);
const BACKLOG: Option<u16> = Some(4);

/// A thousand packets, 5 ms apart; every fifth takes the other path.
fn every_fifth(other: Way, usual: Way) -> Vec<Way> {
    (0..1_000).map(|number| if number % 5 == 4 { other } else { usual }).collect()
}

fn joined((a, b): &(Recording, Recording)) -> Report {
    let report = report(a, b, &Alignment::SAME);
    assert!(
        report.accounts.iter().all(|account| account.is_conserved()),
        "the counts do not add up"
    );
    report
}

/// The only verdict, which must be of this loss.
fn only_loss(report: &Report, from: Point, lost: u64) -> &Verdict {
    let [verdict] = &report.verdicts[..] else { panic!("not one verdict: {:#?}", report.verdicts) };
    assert_eq!(verdict.from, from, "{}", verdict.sentence);
    let Deed::Lost { count, .. } = verdict.deed else { panic!("not a loss: {}", verdict.sentence) };
    assert_eq!(count, lost);
    verdict
}

#[test]
fn a_clean_path_has_no_verdict() {
    let report = joined(&call(5 * MS, &[Way::through(); 1_000]));
    assert_eq!(report.verdicts, []);
    let account = &report.accounts[0];
    assert_eq!((account.sent, account.delivered, account.unsettled), (1_000, 1_000, 0));
    assert_eq!(account.loss(), Some(0.0));
    for layer in &account.layers {
        assert_eq!(layer.own_loss, Some(0.0), "{:?}", layer.layer);
    }
}

#[test]
fn a_full_socket_whose_application_is_not_scheduled() {
    let lost = Way::lost_after(Point::ReceiveSocket, RCVBUFF);
    let mut call = call(5 * MS, &every_fifth(lost, Way::through()));
    for second in &mut call.1.scheduling {
        (second.waiting_ns, second.running_ns) = (Some(840 * MS), Some(160 * MS));
    }
    let report = joined(&call);
    let verdict = only_loss(&report, Point::ReceiveSocket, 200);
    assert_eq!(
        verdict.sentence,
        "host B, receive, socket queue → system call: 20.0 % lost (socket buffer full): \
         the application waited for CPU 84 % of the time in which it could have run"
    );
    let own = report.accounts[0].layers.iter().map(|layer| layer.own_loss.unwrap());
    assert_eq!(
        own.map(|loss| (loss * 1e6).round()).collect::<Vec<_>>(),
        [200_000.0, 0.0, 0.0, 0.0]
    );
}

#[test]
fn a_socket_buffer_too_small_and_a_slow_reader() {
    let lost = Way::lost_after(Point::ReceiveSocket, RCVBUFF);
    let small = joined(&call(5 * MS, &every_fifth(lost, Way::through())));
    let verdict = only_loss(&small, Point::ReceiveSocket, 200);
    assert!(matches!(verdict.cause, Cause::BufferTooSmall { .. }), "{}", verdict.sentence);

    let late = Way::through().slow(Point::ReceiveSocket, 60 * MS);
    let slow = joined(&call(5 * MS, &every_fifth(lost, late)));
    assert_eq!(slow.verdicts.len(), 2, "loss and delay");
    for verdict in &slow.verdicts {
        assert_eq!(verdict.from, Point::ReceiveSocket);
        assert!(matches!(verdict.cause, Cause::ReadsSlowly { .. }), "{}", verdict.sentence);
    }

    let (a, mut b) = call(5 * MS, &every_fifth(lost, late));
    for second in &mut b.scheduling {
        second.running_ns = Some(950 * MS);
    }
    let busy = joined(&(a, b));
    let ran = |verdict: &Verdict| matches!(verdict.cause, Cause::Busy { ran, .. } if ran > 0.9);
    assert!(busy.verdicts.iter().all(ran), "{:#?}", busy.verdicts);
}

/// It may have waited for a CPU in the second that was not measured, or at any time if none was.
#[test]
fn a_reader_whose_cpu_time_is_not_known_is_not_called_slow() {
    let lost = Way::lost_after(Point::ReceiveSocket, RCVBUFF);
    let late = Way::through().slow(Point::ReceiveSocket, 60 * MS);
    let (a, mut b) = call(5 * MS, &every_fifth(lost, late));
    (b.scheduling[3].waiting_ns, b.scheduling[3].running_ns) = (None, None);
    let mut call = (a, b);
    is_not_called_slow(&call);
    call.1.scheduling.clear();
    is_not_called_slow(&call);
}

fn is_not_called_slow(call: &(Recording, Recording)) {
    let verdicts = joined(call).verdicts;
    assert_eq!(verdicts.len(), 2, "{verdicts:#?}");
    for verdict in &verdicts {
        let expected = match verdict.deed {
            Deed::Lost { .. } => Cause::Kernel { reason: "SOCKET_RCVBUFF".into() },
            Deed::Delayed { .. } => Cause::Unknown,
        };
        assert_eq!(verdict.cause, expected, "{}", verdict.sentence);
    }
}

#[test]
fn a_queue_discipline_and_a_firewall() {
    let full = Way::lost_after(Point::SendQdisc, QDISC);
    let qdisc = joined(&call(5 * MS, &every_fifth(full, Way::through())));
    let verdict = only_loss(&qdisc, Point::SendQdisc, 200);
    assert!(matches!(verdict.cause, Cause::QueueDiscipline { .. }), "{}", verdict.sentence);
    assert_eq!((verdict.host.as_deref(), verdict.part), (Some("A"), "send"));

    let filtered = Way::lost_after(Point::ReceiveIp, NETFILTER);
    let firewall = joined(&call(5 * MS, &every_fifth(filtered, Way::through())));
    let verdict = only_loss(&firewall, Point::ReceiveIp, 200);
    assert_eq!(
        verdict.sentence,
        "host B, receive, IP → UDP or TCP: 20.0 % lost (netfilter): dropped by a firewall rule"
    );
}

/// The receiver's softirq has no room for every fifth packet.
fn overrun() -> (Recording, Recording) {
    let overrun = Way::lost_after(Point::SendDriver, None);
    let (a, mut b) = call(5 * MS, &every_fifth(overrun, Way::through()));
    let dropped: Vec<_> = a.events.iter().filter(|event| event.ip_id % 5 == 4).copied().collect();
    for event in dropped.iter().filter(|event| event.point == Point::SendDriver) {
        let cause = BACKLOG.map(suiro_layers::DropCause);
        b.events.push(suiro_layers::Event { point: Point::Dropped, cause, ..*event });
    }
    (a, b)
}

/// The packets as segments of a TCP connection.
fn as_tcp(recording: Recording) -> Recording {
    let mut recording = recording;
    recording.flows[0].protocol = Protocol::Tcp;
    recording.events.retain(|event| event.point != Point::SendTransport);
    for event in &mut recording.events {
        let Key::Rtp { sequence, .. } = event.key else { panic!("{event:?}") };
        event.key = Key::Bytes { start: u32::from(sequence) * 1_000 };
    }
    recording
}

#[test]
fn a_softirq_that_is_overrun() {
    assert_eq!(
        only_loss(&joined(&overrun()), Point::SendDriver, 200).sentence,
        "host B, receive, driver → device: 20.0 % lost (backlog of the softirq full): \
         more packets arrive at one CPU than its receive softirq can handle"
    );
}

#[test]
fn the_host_that_drops_segments_of_tcp_is_named() {
    let (a, b) = overrun();
    let report = joined(&(as_tcp(a), as_tcp(b)));
    let verdict = only_loss(&report, Point::SendDriver, 200_000);
    assert_eq!((verdict.host.as_deref(), verdict.part), (Some("B"), "receive"));
}

#[test]
fn a_softirq_that_comes_late() {
    let lost = Way::lost_after(Point::SendDriver, None);
    let (a, mut b) = call(5 * MS, &every_fifth(lost, Way::through()));
    for second in &mut b.scheduling {
        second.softirq_late_ns = Some(400 * MS);
    }
    let report = joined(&(a, b));
    let verdict = only_loss(&report, Point::SendDriver, 200);
    let late = |cause: &Cause| matches!(cause, Cause::SoftirqLate { late } if *late > 0.39);
    assert!(late(&verdict.cause) && verdict.host.is_none(), "{}", verdict.sentence);
}

#[test]
fn a_link_that_loses_and_a_link_whose_queue_overflows() {
    let lost = Way::lost_after(Point::SendDriver, None);
    let loses = joined(&call(5 * MS, &every_fifth(lost, Way::through())));
    let verdict = only_loss(&loses, Point::SendDriver, 200);
    assert_eq!((&verdict.cause, verdict.part), (&Cause::LinkLoss, "between"));

    // The queue fills over 40 packets, loses 10, and drains.
    let ways: Vec<Way> = (0..1_000)
        .map(|number| match number % 50 {
            phase @ 0..40 => Way::through().slow(Point::SendDriver, (2 + phase) * MS),
            _ => lost,
        })
        .collect();
    let (a, mut b) = call(5 * MS, &ways);
    // That the softirq is sometimes late explains no such delay.
    for second in &mut b.scheduling {
        second.softirq_late_ns = Some(128 * MS);
    }
    let queue = joined(&(a, b));
    let loss = &queue.verdicts[0];
    assert_eq!(loss.from, Point::SendDriver);
    assert!(matches!(loss.deed, Deed::Lost { count: 200, .. }), "{}", loss.sentence);
    assert!(matches!(loss.cause, Cause::LinkQueue { .. }), "{}", loss.sentence);
}

#[test]
fn a_sender_that_is_held_back() {
    let held = Way::through().slow(Point::SendCall, 80 * MS);
    let report = joined(&call(5 * MS, &[held; 1_000]));
    let [verdict] = &report.verdicts[..] else { panic!("{:#?}", report.verdicts) };
    assert_eq!((&verdict.cause, verdict.host.as_deref()), (&Cause::BackPressure, Some("A")));
    let Deed::Delayed { delay, share } = verdict.deed else { panic!("{}", verdict.sentence) };
    assert_eq!((delay.mean_ns, delay.jitter_ns), (80e6, 0.0));
    assert!(share > 0.9);

    // It hardly runs, and waits for a CPU for some of that.
    let (mut a, b) = call(5 * MS, &[held; 1_000]);
    for second in &mut a.scheduling {
        (second.waiting_ns, second.running_ns) = (Some(MS), Some(MS));
    }
    assert_eq!(joined(&(a, b)).verdicts[0].cause, Cause::BackPressure);

    // The same, but whether it waited for a CPU is not known of one second.
    let (mut a, b) = call(5 * MS, &[held; 1_000]);
    (a.scheduling[3].waiting_ns, a.scheduling[3].running_ns) = (None, None);
    assert_eq!(joined(&(a, b)).verdicts[0].cause, Cause::Unknown);

    // And of no second.
    let (mut a, b) = call(5 * MS, &[held; 1_000]);
    a.scheduling.clear();
    assert_eq!(joined(&(a, b)).verdicts[0].cause, Cause::Unknown);

    // The same, but it waits for a CPU, in the middle of its call.
    let (mut a, b) = call(5 * MS, &[held; 1_000]);
    for second in &mut a.scheduling {
        (second.waiting_ns, second.running_ns) = (Some(900 * MS), Some(100 * MS));
    }
    let starved = joined(&(a, b));
    let [verdict] = &starved.verdicts[..] else { panic!("{:#?}", starved.verdicts) };
    assert_eq!(
        verdict.sentence,
        "host A, send, system call → UDP: 80.0 ms of delay on average, 80.0 ms at most: \
         the application waited for CPU 90 % of the time in which it could have run"
    );
}

#[test]
fn a_call_that_fails_is_a_loss_of_the_system_call_layer() {
    let failed = Way::lost_after(Point::SendCall, Some(5));
    let ways: Vec<Way> =
        (0..1_000).map(|number| if number % 4 == 3 { failed } else { Way::through() }).collect();
    let report = joined(&call(5 * MS, &ways));
    let own: Vec<Option<f64>> = report.accounts[0].layers.iter().map(|l| l.own_loss).collect();
    assert_eq!(own, [Some(0.25), Some(0.0), Some(0.0), Some(0.0)]);
    let [verdict] = &report.verdicts[..] else { panic!("{:#?}", report.verdicts) };
    assert_eq!(
        verdict.sentence,
        "host A, send, system call → UDP: 25.0 % lost (EAGAIN): send calls failed: the socket's send buffer has no room"
    );
}

/// The kernel may have skipped a probe as often as it says: so much is not claimed to be lost.
#[test]
fn what_a_skipped_probe_may_have_missed_is_no_loss() {
    let unseen = Way::lost_after(Point::ReceiveSocket, None);
    let mut ways = vec![Way::through(); 1_000];
    (ways[400], ways[500]) = (unseen, unseen);
    let (a, mut b) = call(5 * MS, &ways);
    b.points[Point::ReceiveCall as usize].skipped = 1;
    let report = joined(&(a, b));
    let hop = report.accounts[0].hops.last().unwrap();
    assert_eq!((hop.lost, hop.unplaced), (1, 1));
    assert_eq!(report.hosts[1].recording.runs_skipped, 1);
}

#[test]
fn a_delay_below_the_clocks_error_has_no_verdict() {
    let (a, mut b) = call(5 * MS, &[Way::through().slow(Point::SendDriver, 20 * MS); 1_000]);
    b.boot_id = "another kernel".into();
    let clock = Alignment { how: How::Exchange, error_ns: Some(25 * MS), ..Alignment::SAME };
    assert_eq!(report(&a, &b, &clock).verdicts, []);
    let unknown = Alignment { how: How::Unknown, error_ns: None, ..Alignment::SAME };
    assert_eq!(report(&a, &b, &unknown).verdicts, []);
    let good = Alignment { error_ns: Some(MS), ..clock };
    assert_eq!(report(&a, &b, &good).verdicts.len(), 1);
}

#[test]
fn the_recorders_own_gaps_are_not_a_layers_loss() {
    let (a, mut b) = call(5 * MS, &[Way::through(); 1_000]);
    // All packets were read, but the recorder had no room for the last event.
    b.events.retain(|event| event.point != Point::ReceiveCall || event.ip_id % 33 != 5);
    let gaps = 1_000 - b.events.iter().filter(|e| e.point == Point::ReceiveCall).count() as u64;
    b.points.iter_mut().find(|status| status.point == Point::ReceiveCall).unwrap().lost = gaps;
    // And 20 were not seen at IP, but later.
    b.events.retain(|event| event.point != Point::ReceiveIp || event.ip_id % 50 != 7);
    let report = joined(&(a, b));
    assert_eq!(report.verdicts, []);
    let account = &report.accounts[0];
    let last = account.hops.last().unwrap();
    assert_eq!((last.lost, last.unplaced), (0, gaps));
    for layer in &account.layers {
        let unplaced = if layer.layer == Layer::SystemCall { gaps as f64 / 1e3 } else { 0.0 };
        assert_eq!((layer.own_loss, layer.unplaced), (Some(0.0), Some(unplaced)));
    }
    assert!(account.seconds.iter().all(|second| second.lost_between == [0; 4]));
    let ip = account.saps.iter().find(|sap| sap.point == Point::ReceiveIp).unwrap();
    assert_eq!((ip.passed, ip.unseen), (1_000, 20));
}

#[test]
fn seconds_and_layers_lose_as_much_as_the_parts_of_the_path() {
    let full = Way::lost_after(Point::ReceiveSocket, RCVBUFF);
    let unseen = Way::lost_after(Point::ReceiveSocket, None);
    let way = |number: u64| match number % 25 {
        7 => unseen,
        3 | 13 => full,
        _ => Way::through(),
    };
    let (a, mut b) = call(5 * MS, &(0..1_000).map(way).collect::<Vec<_>>());
    b.points[Point::ReceiveCall as usize].lost = 30;
    let report = joined(&(a, b));
    let account = &report.accounts[0];
    let last = account.hops.last().unwrap();
    assert_eq!((last.lost, last.unplaced), (90, 30));
    let call = &account.layers[0];
    assert_eq!((call.loss_between, call.unplaced), (Some(0.09), Some(0.03)));
    let sum = |of: &dyn Fn(&Second) -> u64| account.seconds.iter().map(of).sum::<u64>();
    assert_eq!(sum(&|second| second.lost_between[0]), 90);
    assert_eq!(sum(&|second| second.lost_after[Point::ReceiveSocket as usize]), 90);
}

#[test]
fn packets_on_a_path_without_probes_are_not_lost() {
    let ends_at = |last| joined(&call(5 * MS, &[Way::lost_after(last, None); 1_000]));
    for (last, unseen) in [
        (Point::ReceiveSocket, &[Point::ReceiveCall][..]),
        (Point::ReceiveLocal, &[Point::ReceiveSocket, Point::ReceiveCall]),
    ] {
        let report = ends_at(last);
        assert_eq!(report.verdicts, [], "{last}");
        let account = &report.accounts[0];
        assert_eq!((account.sent, account.delivered), (1_000, 1_000), "{last}");
        let points: Vec<Point> = account.unseen.iter().map(|unseen| unseen.point).collect();
        assert_eq!((&points[..], account.layers[0].loss_between), (unseen, None));
    }
    // What the kernel reports as dropped is lost, and so is what disappears between the hosts.
    let dropped = joined(&call(5 * MS, &[Way::lost_after(Point::ReceiveLocal, NETFILTER); 1_000]));
    only_loss(&dropped, Point::ReceiveLocal, 1_000);
    only_loss(&ends_at(Point::SendDriver), Point::SendDriver, 1_000);
    only_loss(&ends_at(Point::SendQdisc), Point::SendQdisc, 1_000);

    let (mut a, b) = call(5 * MS, &[Way::through(); 1_000]);
    a.events.retain(|event| event.point >= Point::SendIp);
    let report = joined(&(a, b));
    let account = &report.accounts[0];
    assert_eq!((account.sent, account.appeared, account.unseen.len()), (1_000, 0, 2));
}

#[test]
fn packets_in_transit_when_recording_ended_are_not_lost() {
    let (mut a, mut b) = call(5 * MS, &[Way::through().slow(Point::SendDriver, 300 * MS); 1_000]);
    let end = 102 * SECOND;
    for recording in [&mut a, &mut b] {
        recording.end.monotonic_ns = end;
        recording.events.retain(|event| event.t_ns < end);
    }
    let report = joined(&(a, b));
    let account = &report.accounts[0];
    assert_eq!(account.sent, 300);
    // Those of the last 300 ms and slightly more.
    assert_eq!(account.unsettled, account.sent - account.delivered);
    assert!((60..=61).contains(&account.unsettled), "{}", account.unsettled);
    assert_eq!(account.loss(), Some(0.0));
}

#[test]
fn packets_that_came_while_a_host_was_not_recorded_are_not_lost() {
    let (a, mut b) = call(5 * MS, &[Way::through(); 1_000]);
    let pause = Pause { from_ns: 102 * SECOND, to_ns: 103 * SECOND };
    b.events.retain(|event| !(pause.from_ns..pause.to_ns).contains(&event.t_ns));
    b.pauses.push(pause);
    let report = joined(&(a, b));
    assert_eq!(report.verdicts, []);
    let account = &report.accounts[0];
    assert_eq!((account.sent, account.delivered, account.unsettled), (1_000, 800, 200));
    assert_eq!((account.loss(), account.layers[3].loss_between), (Some(0.0), Some(0.0)));
    // 800 packets of 1000 bytes in 9 of 10 s.
    let received = account.saps.iter().find(|sap| sap.point == Point::ReceiveDevice).unwrap();
    assert_eq!(received.throughput_bps.map(f64::round), Some(711_111.0));
    let told = suiro_layers::report::text(&report);
    assert!(told.contains("the recorder lost nothing; not recorded for 1.0 s of it"), "{told}");
}

#[test]
fn seconds_add_up_to_the_whole() {
    let lost = Way::lost_after(Point::ReceiveSocket, RCVBUFF);
    let report = joined(&call(5 * MS, &every_fifth(lost, Way::through())));
    let account = &report.accounts[0];
    let sum = |of: &dyn Fn(&suiro_layers::account::Second) -> u64| {
        account.seconds.iter().map(of).sum::<u64>()
    };
    assert_eq!(account.seconds.len(), 6, "from half past 100 s, 5 s long");
    assert_eq!(account.seconds[0].sent, 100);
    assert_eq!(sum(&|second| second.sent), 1_000);
    assert_eq!(sum(&|second| second.lost_after[Point::ReceiveSocket as usize]), 200);
    assert_eq!(sum(&|second| second.lost_between[0]), 200);
    for sap in &account.saps {
        assert_eq!(sum(&|second| second.bytes[sap.point as usize]), sap.bytes, "{}", sap.point);
    }
}

#[test]
fn clocks_of_two_hosts_are_compared_by_the_packets_themselves() {
    // Both directions between A and B; B's clock is 3 s ahead, and its kernel differs.
    let there = call(5 * MS, &[Way::through(); 1_000]);
    let back = call(5 * MS, &[Way::through().slow(Point::SendDriver, 12 * MS); 1_000]);
    let (mut a, mut b) = there;
    for (recording, other) in [(&mut a, &back.1), (&mut b, &back.0)] {
        let (local, remote) = (recording.flows[0].local, recording.flows[0].remote);
        recording.flows.push(suiro_layers::Flow { local, remote, ..other.flows[0] });
        recording.events.extend(
            other.events.iter().map(|event| suiro_layers::Event { direction_flow: 1, ..*event }),
        );
    }
    b.boot_id = "another kernel".into();
    for moment in [&mut b.start, &mut b.end] {
        moment.monotonic_ns += 3 * SECOND;
    }
    for event in &mut b.events {
        event.t_ns += 3 * SECOND;
    }
    let report = suiro_layers::report::joined(&a, &b);
    assert_eq!((report.clock.how, report.clock.error_ns), (How::Exchange, Some(7 * MS)));
    // 2 ms there and 12 ms back look like 7 ms each: within the error, so no part is named.
    assert_eq!(report.verdicts, []);
    assert_eq!(report.accounts.len(), 2);
    for account in &report.accounts {
        assert_eq!((account.sent, account.delivered), (1_000, 1_000), "{}", account.flow);
        let link = account.hops.iter().find(|hop| hop.from == Point::SendDriver).unwrap();
        assert_eq!(link.delay.unwrap().error_ns, Some(7 * MS));
    }
}
