//! `suiro layers record` and `[record] layers = true`, against programs that are not ours.

use crate::common::{self, Done, Room, has};
use suiro_hosts::Privilege;
use suiro_layers::{Point, Recording};
use suiro_record::tables::LinkRow;
use suiro_record::words::{Direction, Verdict};
use suiro_record::{Reader, Trial};

/// More than the link carries, so that its queue drops.
const SCENARIO: &str = r#"
name = "layers"
title = "a test"
duration = "3 s"
[topology]
shape = "dumbbell"
link = "access"
[links.access]
rate = "4 Mbit/s"
delay = "5 ms"
queue = { limit = "50 kB" }
[record]
layers = true
[media]
[endpoints.listener]
kind = "command"
host = "server"
command = ["iperf3", "--server"]
ready = { port = 5201 }
exit = "fails"
[endpoints.transfer]
kind = "command"
host = "client"
command = ["iperf3", "--client", "server", "--udp", "--bitrate", "6M", "--time", "1"]
"#;

/// Whether the kernel lets this user probe; prints the reason if not.
fn can_probe() -> bool {
    let root = Privilege::of_this_process() == Privilege::Root;
    if !root {
        suiro_units::skipped("only root may probe the kernel");
    }
    root
}

fn count(recording: &Recording, point: Point) -> usize {
    let is_udp = |flow: u16| recording.flows[usize::from(flow)].to_string().starts_with("udp");
    let is = |event: &&suiro_layers::Event| event.point == point && is_udp(event.direction_flow);
    recording.events.iter().filter(is).count()
}

#[test]
fn a_trial_records_the_layers_of_every_host() {
    if !common::can_run() || !can_probe() || !has("iperf3") {
        return;
    }
    let room = Room::new();
    room.write("layers.toml", SCENARIO);
    let done = room.run(&["run", "layers.toml", "--out", "out"]);
    let out = room.results("out");
    let trial: Trial = out.trial("all/1");
    if let Some(because) = &trial.invalid_because {
        // A busy machine may be late with packets; they are to be seen all the same, unless it loses some.
        assert!(!because.contains("endpoint"), "{because}\n{}", done.stderr);
        if because.contains("itself lost") {
            return suiro_units::skipped(because);
        }
    }
    let dir = room.path("work").join("out/trials/all/1");
    let [client, server]: [Recording; 2] = Recording::read_all(&dir).unwrap().try_into().unwrap();
    assert_eq!([&client.host, &server.host], ["client", "server"]);
    assert_eq!(client.boot_id, server.boot_id);
    let missing =
        [&client, &server].map(|r| r.points.iter().filter(|p| p.missing.is_some()).count());
    assert_eq!(missing, [0, 0], "{:?}", client.points);
    let first = client.events.iter().map(|event| event.t_ns).min().unwrap();
    assert!(first >= trial.epoch_monotonic_ns, "times count from the trial's epoch");

    // The link's own record is the truth about what it dropped.
    let links: Vec<LinkRow> = Reader::read_all(&dir).unwrap();
    let up = |row: &&LinkRow| row.direction == Direction::Up && row.flow.starts_with("udp");
    let carried = links.iter().filter(up).count();
    let lost = links.iter().filter(up).filter(|row| row.verdict == Verdict::Dropped).count();
    assert!(lost > 0 && carried > lost, "{lost} of {carried}");
    for point in
        [Point::SendCall, Point::SendIp, Point::SendLink, Point::SendQdisc, Point::SendDriver]
    {
        let down = links
            .iter()
            .filter(|row| row.direction == Direction::Down && row.flow.starts_with("udp"));
        assert_eq!(count(&client, point), carried, "{point}");
        assert_eq!(count(&server, point), down.count(), "{point}");
    }
    for point in [Point::ReceiveDevice, Point::ReceiveIp, Point::ReceiveLocal, Point::ReceiveSocket]
    {
        assert_eq!(count(&server, point), carried - lost, "{point}");
    }
    // No kernel dropped anything, and the emulator between the hosts is none of theirs.
    assert_eq!([&client, &server].map(|recording| count(recording, Point::Dropped)), [0, 0]);
}

#[test]
fn what_is_asked_for_wrongly_is_told() {
    let room = Room::new();
    let run = |arguments: &[&str]| -> Done {
        room.run(&[&["layers", "record", "--out", "out"], arguments].concat())
    };
    run(&["--flow", "udp:10.0.0.1-*"])
        .exits(2)
        .says(&["first end `10.0.0.1`: no `:PORT`", "hint: "]);
    run(&[]).exits(2).says(&["--flow <FLOW>"]);
    run(&["--flow", "udp:*-*", "--netns", "no-such"]).exits(1).says(&["/run/netns/no-such: "]);
    std::fs::create_dir(room.path("work").join("out")).expect("who is refused leaves no folder");
    room.write("out/layers.json", "{}");
    run(&["--flow", "udp:*-*"]).exits(2).says(&[
        "already contains a recording",
        "choose another \
    --out",
    ]);
}
