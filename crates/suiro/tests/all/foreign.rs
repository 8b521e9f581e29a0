//! `suiro why` with files of other programs.

use std::path::Path;

use serde_json::Value;

use crate::common::Room;

/// Small files of each kind.
fn sample(name: &str) -> String {
    let seeds = Path::new("../../fuzz/seeds/foreign").canonicalize().unwrap();
    seeds.join(name).display().to_string()
}

#[test]
fn files_of_other_programs_are_explained_together() {
    let room = Room::new();
    let (capture, reports) = (sample("capture.pcapng"), sample("reports.json"));
    let done = room.run(&["why", &capture, &reports]).exits(0);
    for part in [
        "capture.pcapng: capture, 20 packets of UDP and TCP",
        "reports.json: reports of getStats(), 2 objects",
        "incoming video 0x00001234: the video froze for 1.0 s",
        "loss and its repair: 40 of 300 packets were lost, and requested again in 40 NACKs",
        "reports.json: IT1: freezeCount, totalFreezesDuration",
    ] {
        assert!(done.stdout.contains(part), "no `{part}` in:\n{}", done.stdout);
    }
    let found: Value = room.run(&["why", &reports, "--json"]).exits(0).json();
    assert_eq!(found["effects"][0]["effect"], "freeze");
    assert_eq!(found["effects"][0]["cause"], "loss");
    assert_eq!(found["effects"][0]["from_s"], 9.0);
}

#[test]
fn what_cannot_be_explained_is_refused_with_its_name() {
    let room = Room::new();
    room.write("notes.txt", "nothing of the kind");
    room.run(&["why", "notes.txt"])
        .exits(2)
        .says(&["notes.txt: expected a capture", "a log of ffmpeg"]);
    room.run(&["why", &sample("capture.pcapng"), "gone.pcapng"])
        .exits(2)
        .says(&["gone.pcapng", "No such file"]);
    let capture = sample("capture.pcapng");
    room.run(&["why", &capture, "--prove"]).exits(2).says(&["--prove need a results folder"]);
}
