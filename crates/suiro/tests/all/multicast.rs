//! Multicast through FRR's routers, live: packets pass where somebody listens, and nowhere else. Needs FRR; where hosts cannot
//! be made or FRR is missing it prints that and passes. A trial of 9 s costs 2 s of CPU time live, and 24 s in virtual time.

use std::path::{Path, PathBuf};

use crate::common::{Room, can_run, has};
use suiro_record::Reader;
use suiro_record::tables::{MembershipRow, MulticastLinkRow, MulticastRow};

/// Two groups of little traffic: a viewer joins and leaves the first one, and no host joins the second. With sources named
/// (IGMPv3), `other` sends to the first group as well, and is not among the sources that the viewer names.
const SCENARIO: &str = r#"
name = "groups"
title = "groups"
duration = "9 s"
[matrix]
igmp = [
  { label = "v2", value = { version = 2, sources = 0, any = 1, group = "239.1.1.1" } },
  { label = "v3", value = { version = 3, sources = 1, any = 0, group = "232.1.1.1" } },
]
[topology]
shape = "explicit"
hosts = ["a", "b", "lan", "core", "edge", "viewer"]
switches = ["lan"]
cables = [
  { from = "a", to = "lan" },
  { from = "b", to = "lan" },
  { from = "lan", to = "core", capacity = "50 Mbit/s" },
  { from = "core", to = "edge" },
  { from = "edge", to = "viewer" },
]
[multicast]
routers = ["core", "edge"]
rendezvous = "edge"
igmp = "$igmp.version"
[endpoints.wanted]
kind = "multicast-sender"
host = "a"
group = "$igmp.group"
[endpoints.unheard]
kind = "multicast-sender"
host = "a"
group = "239.1.1.2"
[endpoints.other]
kind = "multicast-sender"
host = "b"
count = "$igmp.sources"
group = "$igmp.group"
[endpoints.any]
kind = "multicast-receiver"
host = "viewer"
count = "$igmp.any"
start = "1 s"
group = "$igmp.group"
hold = "600 ms"
pause = "900 ms"
[endpoints.one]
kind = "multicast-receiver"
host = "viewer"
count = "$igmp.sources"
start = "1 s"
group = "$igmp.group"
source = "wanted"
hold = "600 ms"
pause = "900 ms"
"#;

/// The scenario run once, and the folder of each cell's trial.
fn run(room: &Room) -> [PathBuf; 2] {
    room.write("groups.toml", SCENARIO);
    room.run(&["run", "./groups.toml", "--out", "out", "--jobs", "2"]).exits(0);
    let out = room.path("work").join("out");
    ["igmp=v2", "igmp=v3"].map(|cell| out.join("trials").join(cell).join("1"))
}

#[test]
fn packets_pass_routers_where_somebody_listens_and_nowhere_else() {
    if !can_run() || !has("vtysh") {
        return;
    }
    let room = Room::new();
    for (trial, group) in run(&room).into_iter().zip(["239.1.1.1", "232.1.1.1"]) {
        joins_are_answered_and_leaves_end(&trial);
        nothing_passes_that_nobody_wants(&trial, group);
        nothing_is_left(&trial);
    }
}

fn joins_are_answered_and_leaves_end(trial: &Path) {
    let rows = Reader::read_all::<MembershipRow>(trial).unwrap();
    let left: Vec<_> = rows.iter().filter(|row| row.left_ns.is_some()).collect();
    assert!(left.len() >= 3, "{rows:?}");
    let answered = left.iter().filter(|row| row.first_ns.is_some());
    assert!(answered.count() * 2 > left.len(), "{rows:?}");
    // A busy machine holds anything up; not every time.
    let join = left.iter().filter_map(|row| Some(row.first_ns? - row.t_ns)).min().unwrap();
    assert!(join < 300_000_000, "{rows:?}");
    let silence = |row: &&&MembershipRow| row.last_ns.map_or(0, |last| last - row.left_ns.unwrap());
    let leave = left.iter().map(|row| silence(&row)).min().unwrap();
    assert!(leave < 600_000_000, "{rows:?}");
    // 89 packets a second for 0.6 s.
    assert!(left.iter().any(|row| row.packets >= 20), "{rows:?}");
}

fn nothing_passes_that_nobody_wants(trial: &Path, group: &'static str) {
    let rows = Reader::read_all::<MulticastRow>(trial).unwrap();
    let heard = |group: &'static str| rows.iter().filter(move |row| &*row.group == group);
    let unheard: Vec<_> = heard("239.1.1.2").filter(|row| &*row.router == "core").collect();
    assert!(unheard.iter().any(|row| row.packets > 100), "the core hears it");
    // The first packets of a source go to the rendezvous point until it says stop (RFC 7761 §3.2), and nowhere else.
    assert!(unheard.iter().all(|row| ["", "register"].contains(&&*row.outputs)), "{unheard:?}");
    let wanted = heard(group).filter(|row| &*row.router == "core" && &*row.source == "10.0.0.1");
    let outputs: Vec<_> = wanted.map(|row| &*row.outputs).collect();
    assert!(outputs.contains(&"core-edge"), "{outputs:?}");
    assert!(outputs.contains(&""), "{outputs:?}");
    // What is not from the named source reaches no viewer.
    let others = heard(group).filter(|row| &*row.source == "10.0.0.2");
    assert!(others.into_iter().all(|row| !row.outputs.contains("edge-viewer")));

    let links = Reader::read_all::<MulticastLinkRow>(trial).unwrap();
    let of = |router: &str, link: &str| {
        let own = links.iter().filter(|row| &*row.router == router && &*row.link == link);
        own.max_by_key(|row| row.t_ns).unwrap().clone()
    };
    // Three senders at 89 packets a second would be above 1500; one of them wanted for less than half of the time.
    let core = of("core", "core-edge");
    assert!((1..1000).contains(&core.packets_out), "{core:?}");
    assert_eq!(of("core", "lan-core").packets_out, 0, "nothing goes back to the servers");
}

fn nothing_is_left(trial: &Path) {
    for router in ["core", "edge"] {
        let folder = std::fs::read_dir(trial.join("routers").join(router)).unwrap();
        let mut names: Vec<_> = folder.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["pimd.conf", "zebra.conf"]);
    }
}
