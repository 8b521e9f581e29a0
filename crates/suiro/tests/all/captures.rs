//! `[record] capture`: what two captures of a link show, next to the link's own record.

use crate::common::{Done, Room, Trials, has};
use suiro_record::tables::{HopRow, LinkRow};
use suiro_record::words::{Direction, Verdict};
use suiro_record::{Reader, Trial};

/// A link that does to packets all that a link can do, less than it is offered, and a plain cable before it. Packets
/// flow until the end.
const SCENARIO: &str = r#"
name = "captures"
title = "a test"
duration = "4 s"
[topology]
shape = "explicit"
hosts = ["server", "router", "client"]
cables = [
  { from = "server", to = "router" },
  { from = "router", to = "client", link = "access" },
]
[links.access]
rate = "4 Mbit/s"
delay = "5 ms"
loss = "3 %"
duplicate = "2 %"
corrupt = "1 %"
queue = { limit = "20 kB" }
[record]
capture = ["server", "router", "client:access"]
[endpoints.sender]
kind = "command"
host = "client"
command = ["python3", "-c", """
import itertools, socket, time
to = (socket.gethostbyname("server"), 9)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in itertools.count():
    sender.sendto(number.to_bytes(8, "big") + bytes(492), to)
    time.sleep(0.0008)
"""]
"#;

/// How many packets the link's rows of one direction say were offered and delivered, its copies among the delivered.
fn of_link(rows: &[LinkRow], direction: Direction) -> (i64, i64) {
    let rows = || rows.iter().filter(|row| row.direction == direction);
    let delivered = rows().filter(|row| row.verdict == Verdict::Delivered).count();
    let offered = rows().map(|row| row.packet).collect::<std::collections::BTreeSet<_>>().len();
    (offered as i64, delivered as i64)
}

#[test]
fn captures_agree_with_the_links_own_record() {
    if !has("python3") {
        return;
    }
    let Some(trials) = Trials::find() else { return };
    let room = Room::new();
    room.write("captures.toml", SCENARIO);
    let done = Done::of(&mut trials.run(&room, "captures.toml"));
    let out = room.results("out");
    let trial: Trial = out.trial("all/1");
    if let Some(because) = &trial.invalid_because {
        // Live, a busy machine may be late with packets; every packet is accounted for all the same.
        let excused = !because.contains("captur") && !because.contains("endpoint");
        assert!(excused && !trials.are_virtual(), "{because}\n{}", done.stderr);
    }
    let points: Vec<_> = trial.captures.iter().map(|capture| capture.point.as_str()).collect();
    let expected =
        ["server:server-router", "router:server-router", "router:access", "client:access"];
    assert_eq!(points, expected);
    for capture in &trial.captures {
        assert_eq!((capture.dropped, capture.beyond_limit), (0, 0), "{capture:?}");
        assert!(out.has(&format!("trials/all/1/{}", capture.file)), "{capture:?}");
    }
    let dir = out.root().join("trials/all/1");
    let hops: Vec<HopRow> = Reader::read_all(&dir).unwrap();
    let link: Vec<LinkRow> = Reader::read_all(&dir).unwrap();
    for direction in Direction::BOTH {
        let whole = |name: &str| {
            let mut rows = hops.iter().filter(|row| row.t_ns.is_none());
            rows.find(|row| &*row.link == name && row.direction == direction).unwrap()
        };
        let access = whole("access");
        let (sent, received) = (access.sent.unwrap(), access.received.unwrap());
        assert_eq!((sent, received), of_link(&link, direction), "{direction}: {access:?}");
        let net = access.lost.unwrap() - access.copies.unwrap();
        assert_eq!(net, sent - received, "{direction}: {access:?}");
        let metric = format!("capture.access.{direction}.link_difference");
        assert_eq!(
            out.summary().trials[0].metrics[&metric],
            Some(0.0),
            "{access:?} {:?}",
            trial.links
        );
        // The cable loses nothing.
        let cable = whole("server-router");
        assert_eq!((cable.sent, cable.lost, cable.altered), (cable.received, Some(0), Some(0)));
        // The spans add up to the whole.
        let spans = hops.iter().filter(|row| row.t_ns.is_some() && row.direction == direction);
        let spans = spans.filter(|row| &*row.link == "access");
        assert_eq!(spans.filter_map(|row| row.lost).sum::<i64>(), access.lost.unwrap());
    }
    let up = hops
        .iter()
        .find(|row| row.t_ns.is_none() && &*row.link == "access" && row.direction == Direction::Up);
    let up = up.unwrap();
    assert!(up.lost > Some(100) && up.copies > Some(0) && up.altered > Some(0), "{up:?}");
    assert!(up.delay_mean_ms.is_some_and(|delay| (5.0..60.0).contains(&delay)), "{up:?}");
}

#[test]
fn a_capture_point_that_does_not_exist_is_refused() {
    let room = Room::new();
    room.write("captures.toml", &SCENARIO.replace("client:access", "client:acess"));
    let done = room.run(&["check", "captures.toml"]);
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(done.stderr.contains("no interface is named `client:acess`"), "{}", done.stderr);
    assert!(done.stderr.contains("client:access"), "{}", done.stderr);
    let listed = SCENARIO.lines().find(|line| line.starts_with("capture")).unwrap();
    room.write("captures.toml", &SCENARIO.replace(listed, "capture = \"all\""));
    let done = room.run(&["check", "captures.toml"]);
    assert!(done.stderr.contains("capture points such as"), "{}", done.stderr);
}
