//! What tshark makes of our RTP and RTCP: nothing malformed, and the losses and the jitter that the
//! receiver counted. Without tshark, these tests print that and pass.

use std::path::Path;
use std::process::Command;

use super::*;

/// A capture (libpcap's format, link type "raw IP") of what arrived.
fn pcap(arrived: &[(Time, bool, Transmit)]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(0xa1b2_3c4d_u32.to_le_bytes()); // times in nanoseconds
    file.extend([2, 0, 4, 0]);
    [0, 0, 65_535, 101u32].iter().for_each(|word| file.extend(word.to_le_bytes()));
    for (at, to_receiver, transmit) in arrived {
        let (port, payload) = match transmit {
            Transmit::Rtp(bytes) => (5004, bytes),
            Transmit::Rtcp(bytes) => (5005, bytes),
        };
        let packet = ip(*to_receiver, port, payload);
        let nanos = at.as_nanos();
        let words = [nanos / 1_000_000_000, nanos % 1_000_000_000];
        words.iter().for_each(|word| file.extend((*word as u32).to_le_bytes()));
        [packet.len(); 2].iter().for_each(|length| file.extend((*length as u32).to_le_bytes()));
        file.extend(packet);
    }
    file
}

/// IPv4 and UDP (without checksums) around a payload.
fn ip(to_receiver: bool, port: u16, payload: &[u8]) -> Vec<u8> {
    let (server, client) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let (from, to) = if to_receiver { (server, client) } else { (client, server) };
    let length = (28 + payload.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    packet.extend([from, to].concat());
    [port, port, length - 20, 0].iter().for_each(|word| packet.extend(word.to_be_bytes()));
    packet.extend(payload);
    packet
}

/// What tshark prints.
fn tshark(file: &Path, arguments: &[&str]) -> String {
    let out = Command::new("tshark")
        .arg("-r")
        .arg(file)
        .args(["-d", "udp.port==5004,rtp", "-d", "udp.port==5005,rtcp"])
        .args(["-o", "ip.check_checksum:false"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn count(file: &Path, filter: &str) -> usize {
    tshark(file, &["-Y", filter, "-T", "fields", "-e", "frame.number"]).lines().count()
}

/// Whether there is a tshark; prints that it is skipped if not.
fn is_there() -> bool {
    let there = Command::new("tshark").arg("--version").output().is_ok();
    if !there {
        suiro_units::skipped("no tshark");
    }
    there
}

#[test]
fn tshark_reads_transport_wide_numbers_and_reports() {
    if !is_there() {
        return;
    }
    let change = |config: &mut Config| {
        (config.codec, config.payload_type) = (Codec::Mpeg2, 32);
        config.feedback = Some(Duration::from_millis(100));
    };
    let mut world =
        World::with(FeedbackFormat::TransportWide, change, |packet| packet > 5 && packet % 10 == 7);
    world.run(100);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("world.pcap");
    std::fs::write(&file, pcap(&world.arrived)).unwrap();
    assert_eq!(count(&file, "_ws.malformed || _ws.expert.severity == error"), 0);
    assert!(count(&file, "rtcp.pt == 205 && rtcp.rtpfb.fmt == 15") > 20);
    let rtp = world.arrived.iter().filter(|(_, _, it)| matches!(it, Transmit::Rtp(_))).count();
    assert_eq!(count(&file, "rtp.ext.rfc5285.id == 2 && rtp.ext.rfc5285.len == 2"), rtp);
}

#[test]
fn tshark_reads_everything_and_counts_the_same() {
    if !is_there() {
        return;
    }
    let all = |config: &mut Config| {
        // Of static payload types alone tshark knows the clock, which jitter counts in.
        (config.codec, config.payload_type) = (Codec::Mpeg2, 32);
        config.again_type = Some(97);
        config.feedback = Some(Duration::from_millis(100));
    };
    let mut world = World::new(all, |packet| packet > 5 && packet % 10 == 7);
    world.run(100);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("world.pcap");
    std::fs::write(&file, pcap(&world.arrived)).unwrap();

    assert_eq!(count(&file, "_ws.malformed || _ws.expert.severity == error"), 0);
    let kinds = |kind: fn(&Transmit) -> bool| {
        world.arrived.iter().filter(|(_, _, transmit)| kind(transmit)).count()
    };
    assert_eq!(count(&file, "rtp"), kinds(|transmit| matches!(transmit, Transmit::Rtp(_))));
    assert_eq!(count(&file, "rtcp"), kinds(|transmit| matches!(transmit, Transmit::Rtcp(_))));
    // Reports of both kinds, names, NACKs and congestion feedback are known as such.
    let believed = world.sender.counters().clone();
    assert!(count(&file, "rtcp.pt == 200 && rtcp.pt == 202") > 10);
    assert!(count(&file, "rtcp.pt == 205 && rtcp.rtpfb.fmt == 1") > 10, "{believed:?}");
    assert!(count(&file, "rtcp.pt == 205 && rtcp.rtpfb.fmt == 11") > 20, "{believed:?}");

    let streams = tshark(&file, &["-q", "-z", "rtp,streams"]);
    let reception = world.receiver.reception().unwrap();
    let ssrc = format!("0x{:08X}", reception.ssrc());
    let line = streams.lines().find(|line| line.contains(&ssrc)).expect("the stream is known");
    let words: Vec<&str> = line.split_whitespace().collect();
    let lost = words.iter().position(|word| word.starts_with('(')).expect("a share of losses");
    let ours = reception.expected() - reception.received();
    assert_eq!(words[lost - 1].parse(), Ok(ours), "{line}");
    // Then the deltas and the jitters: least, mean and most, in ms.
    let jitter: f64 = words[lost + 6].parse().unwrap();
    let ours = world.jitter_max / 90.0;
    assert!((jitter - ours).abs() < 0.02 * ours, "{jitter} and {ours}: {line}");
}
