//! `suiro uncompressed send` where it cannot do what it was asked for: it prints which stream, why, and what helps, and
//! its exit code reports the failure.

use std::process::Command;

use crate::common::{Done, Room};

/// The program with the words of a line, of which `_` stands for a space within one, on a machine
/// that is alone in its network; none where such networks cannot be made. `prepare` makes the network.
fn alone(room: &Room, prepare: &str, line: &str) -> Option<Done> {
    let mut probe = Command::new("unshare");
    if !probe.args(["-rn", "ip", "link"]).output().is_ok_and(|probe| probe.status.success()) {
        suiro_units::skipped("no network namespaces, or no ip (Debian: iproute2)");
        return None;
    }
    let mut command = Command::new("unshare");
    let script = format!("{prepare} && exec \"$@\"");
    command.args(["-rn", "sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_suiro")]);
    room.furnish(&mut command);
    command.arg("uncompressed").args(words(line));
    Some(Done::of(&mut command))
}

fn words(line: &str) -> impl Iterator<Item = String> {
    line.split(' ').map(|word| word.replace('_', " "))
}

fn run(room: &Room, line: &str) -> Done {
    let words: Vec<_> = ["uncompressed".to_owned()].into_iter().chain(words(line)).collect();
    room.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

const PICTURES: &str = "--geometry 64x16_4:2:2_10_50";

#[test]
fn pictures_without_room_for_the_stamp_are_refused() {
    let line = "send 127.0.0.1:9 --geometry 16x16_4:2:2_10_50";
    run(&Room::new(), line)
        .exits(2)
        .says(&["--geometry 16x16 YCbCr-4:2:2 10 bit 50", "64 samples"]);
}

#[test]
fn packets_that_are_too_large_name_their_stream_and_what_helps() {
    for cutting in ["", " --no-gso"] {
        let line = format!(
            "send 127.0.0.1:9 127.0.0.1:10 --format raster {PICTURES} --packet 1400{cutting}"
        );
        let network = "ip link set lo mtu 1280 up";
        let Some(done) = alone(&Room::new(), network, &line) else { return };
        done.exits(1).says(&[
            "stream 0 to 127.0.0.1:9: sending packets of 1400 bytes: ",
            "hint: send smaller packets with --packet N",
            "ip link set dev NAME mtu 1400",
        ]);
    }
}

#[test]
fn whole_rasters_are_no_pictures_of_st_2110() {
    let room = Room::new();
    run(&room, "synth --out nodes --nodes 1 --frames 1 --raster").exits(0);
    let line = "send 127.0.0.1:9 --store nodes/node-1.frames --from memory --once";
    run(&room, line).exits(1).says(&["stream 0: ", "2200x1125", "--format raster"]);
}

#[test]
fn what_nobody_takes_is_told_and_fails() {
    let room = Room::new();
    let line = format!("send 127.0.0.1:9 {PICTURES} --duration 300_ms");
    let Some(done) = alone(&room, "ip link set lo up", &line) else { return };
    let done = done.exits(1);
    let (told, _) = done.stdout.split_once(" packets unreachable;").expect("they are told");
    let unreachable: u64 = told.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(unreachable > 0, "{}", done.stdout);
}

#[test]
fn a_ring_that_memory_cuts_says_so() {
    let room = Room::new();
    run(&room, "synth --out nodes --nodes 1 --frames 9 --geometry 64x16_4:2:2_10_50").exits(0);
    // Slots of one page: 2560 bytes of frame, and the trailer.
    let store = "--store nodes/node-1.frames";
    let line = format!("send 127.0.0.1:9 {store} --from cached --memory 40_kB --duration 1_ms");
    run(&room, &line).says(&["ring of 9 frames of 600 asked: 40 kB of memory"]);
    let line = format!("send 127.0.0.1:9 {store} --from memory --ring 4 --duration 1_ms");
    run(&room, &line).says(&["ring of 4 frames, the first of the store's 9"]);
}

#[test]
fn a_session_description_names_who_sends() {
    let room = Room::new();
    let line = format!("send 239.0.0.1:5004 127.0.0.1:5006 {PICTURES} --sdp . --duration 1_ms");
    let network = "ip link set lo up && ip link add near address 02:00:5e:00:00:07 type veth peer name far && \
        ip addr add 192.0.2.7/24 dev near && ip link set near up && ip link set far up && \
        ip route add 239.0.0.0/8 dev near";
    let Some(done) = alone(&room, network, &line) else { return };
    assert!(done.stderr.contains("Ctrl-C"), "{}", done.stderr);
    let read = |name: &str| std::fs::read_to_string(room.path("work").join(name)).unwrap();
    let (group, host) = (read("stream-0.sdp"), read("stream-1.sdp"));
    // Without --source: the interface that the routes choose.
    assert!(group.contains("a=source-filter: incl IN IP4 239.0.0.1 192.0.2.7\r\n"), "{group}");
    assert!(group.contains("a=ts-refclk:localmac=02-00-5e-00-00-07\r\n"), "{group}");
    assert!(host.contains(" IN IP4 127.0.0.1\r\ns="), "{host}");
    // A loopback interface has no hardware address of its own.
    assert!(host.contains("a=ts-refclk:localmac=00-00-00-00-00-00\r\n"), "{host}");
    let origin = |text: &str| text.lines().nth(1).unwrap().split(' ').nth(1).unwrap().to_owned();
    assert_ne!(origin(&group), origin(&host), "streams of one sender are told apart");
}
