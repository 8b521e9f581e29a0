//! `suiro why --prove`: the trial again without a cause, in virtual time.

use std::path::PathBuf;

use suiro_media::Ffmpeg;
use suiro_record::Reader;
use suiro_record::tables::{CauseRow, LinkRow};
use suiro_record::words::{Cause, Effect, Proof};

use crate::common::{self, Done, Room};

/// A camera behind a link that carries nothing for a second.
const OUTAGE: &str = r#"
name = "x"
title = "x"
duration = "8 s"
[topology]
shape = "dumbbell"
link = "access"
[links.access]
rate = "2 Mbit/s"
delay = "10 ms"
loss = "1 %"
queue = { limit = "100 ms" }
down.changes = [{ at = "3 s", rate = "0 bit/s" }, { at = "4 s", rate = "2 Mbit/s" }]
[endpoints.camera]
kind = "rtp-sender"
host = "server"
to = "viewer"
codec = "h264"
camera = { source = "synthetic", width = 320, height = 180, fps = 30, length = "2 s" }
control = { kind = "fixed", rate = "500 kbit/s" }
[endpoints.viewer]
kind = "rtp-receiver"
host = "client"
codec = "h264"
[record]
# Nothing here looks at table `tcp`, and each sample takes the guest's time.
tcp_interval = "1 s"
"#;

/// A room with results of both scenarios, `with` the outage and `without` it, and what `suiro` needs there; none without a
/// kernel for guests or ffmpeg.
fn room() -> Option<(Room, [(&'static str, PathBuf); 2])> {
    let kernel = common::kernel()?;
    let ffmpeg = Ffmpeg::locate().inspect_err(suiro_units::skipped).ok()?;
    let needs = [("SUIRO_KERNEL", kernel), ("SUIRO_FFMPEG", ffmpeg.path().to_owned())];
    let room = Room::new();
    let (before, after) = OUTAGE.split_once("down.changes").unwrap();
    let (_, after) = after.split_once('\n').unwrap();
    for (name, text) in [("with", OUTAGE.to_owned()), ("without", format!("{before}{after}"))] {
        let file = format!("{name}.toml");
        room.write(&file, &text);
        let arguments = ["run", &file, "--virtual", "--out", name, "--seed", "7"];
        Done::of(room.suiro(&arguments).envs(needs.clone())).exits(0);
    }
    Some((room, needs))
}

fn rows<R: suiro_record::table::Row>(room: &Room, name: &str) -> Vec<R> {
    Reader::read_all(&room.path("work").join(name).join("trials/all/1")).unwrap()
}

#[test]
fn a_cause_is_proved_by_the_trial_without_it() {
    let Some((room, needs)) = room() else { return };
    let suiro = |arguments: &[&str]| Done::of(room.suiro(arguments).envs(needs.clone()));

    // Until the change acts, both trials are the same; loss acts all the time.
    let before = |name: &str| -> Vec<LinkRow> {
        let rows: Vec<LinkRow> = rows(&room, name);
        rows.into_iter().filter(|row| row.t_ns < 2_900_000_000).collect()
    };
    let (with, without) = (before("with"), before("without"));
    assert!(with.len() > 100, "{}", with.len());
    assert!(with == without);

    let proved = suiro(&["why", "with", "--prove", "--seeds", "2"]).exits(0);
    let said = "proved: without the outage of link access it does not happen (0 ms of";
    assert!(proved.stdout.contains(said), "{}", proved.stdout);
    let seeds = "2 of 2 seeds; 2 of 2 seeds have the effect)";
    assert!(proved.stdout.contains(seeds), "{}", proved.stdout);
    let causes = || rows::<CauseRow>(&room, "with");
    let freezes = |row: &&CauseRow| row.effect == Effect::Freeze && row.cause == Cause::Outage;
    let proofs = |rows: &[CauseRow]| rows.iter().filter(freezes).map(|row| row.proof).collect();
    let found: Vec<Option<Proof>> = proofs(&causes());
    assert!(!found.is_empty() && found.iter().all(|it| *it == Some(Proof::Proved)), "{found:?}");

    // A report makes the table again, and keeps what was proved.
    suiro(&["report", "with"]).exits(0);
    let again: Vec<Option<Proof>> = proofs(&causes());
    assert_eq!(found, again);
    assert!(causes().iter().all(|row| row.effect != Effect::Limit || row.proof.is_none()));

    // What one effect alone is asked for is added to it.
    let all = || causes().into_iter().map(|row| row.proof).collect::<Vec<_>>();
    let before = all();
    assert!(before.iter().flatten().count() >= 2, "{before:?}");
    suiro(&["why", "with", "--prove", "--seeds", "1", "--effect", "0"]).exits(0);
    assert_eq!(all(), before);

    let one = ["why", "with", "--prove", "--effect", "99"];
    suiro(&one).exits(2).says(&["--effect 99: expected a number from 0 to ", "hint: suiro why"]);
}
