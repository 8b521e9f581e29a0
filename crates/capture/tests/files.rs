//! The reader, and Wireshark's `tshark`, read what the writer wrote.

use std::io::Write;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use suiro_capture::file::{Contents, Counted, Described, ETHERNET, FileError, Writer, read};

const EPOCH: u64 = 1_700_000_000_123_456_789;

fn described() -> Described<'static> {
    Described { name: "eth0", description: "client, link access", link: ETHERNET, snap: 128 }
}

type Packet = (u64, Vec<u8>, usize, Option<bool>);

fn written(packets: &[Packet], counted: &Counted) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &described()).unwrap();
    for (t_ns, data, length, sent) in packets {
        writer.packet(*t_ns, data, *length, *sent).unwrap();
    }
    let before = writer.written();
    let file = writer.finish(counted).unwrap();
    assert!(file.len() as u64 > before);
    file
}

fn reread(file: &[u8]) -> Result<(Vec<Packet>, Contents), FileError> {
    let mut packets = Vec::new();
    let contents = read(file, |frame| {
        assert_eq!(frame.link, ETHERNET);
        packets.push((frame.t_ns, frame.data.to_vec(), frame.length, frame.sent));
    })?;
    Ok((packets, contents))
}

proptest! {
    #[test]
    fn the_reader_reads_what_the_writer_wrote(
        packets in prop::collection::vec(
            (any::<u64>(), prop::collection::vec(any::<u8>(), 0..200), 0..70_000usize, any::<Option<bool>>()),
            0..20,
        ),
        dropped: u64,
    ) {
        let counted = Counted { t_ns: EPOCH, received: packets.len() as u64, dropped };
        let file = written(&packets, &counted);
        let contents = Contents { untimed: 0, lost: dropped, cut: false };
        prop_assert_eq!(reread(&file), Ok((packets, contents)));
    }
}

#[test]
fn a_file_without_its_end_can_be_read() {
    let packets = [(EPOCH, vec![7; 61], 1514, Some(true)), (EPOCH + 1, vec![8; 60], 60, None)];
    let file = written(&packets, &Counted::default());
    let mut writer = Writer::new(Vec::new(), &described()).unwrap();
    writer.packet(EPOCH, &[7; 61], 1514, Some(true)).unwrap();
    let first = usize::try_from(writer.written()).unwrap();
    for end in first + 1..first + 90 {
        let (read, contents) = reread(&file[..end]).unwrap();
        assert_eq!((&read[..], contents.cut), (&packets[..1], true), "cut at {end}");
    }
}

/// An Ethernet frame with an empty UDP datagram over IPv4.
fn datagram() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 28];
    frame.extend([0, 9, 0, 0, 64, 17, 0x66, 0xc6, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x13, 0x88, 0x13, 0x8c, 0, 8, 0, 0]);
    frame
}

#[test]
fn wireshark_reads_it() {
    let columns =
        ["frame.time_epoch", "frame.len", "frame.interface_name", "ip.dst", "udp.dstport"];
    let mut command = Command::new("tshark");
    command.args(["-r", "-", "-T", "fields"]).args(columns.iter().flat_map(|it| ["-e", it]));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let Ok(mut tshark) = command.spawn() else {
        suiro_units::skipped("tshark is not installed");
        return;
    };
    let file = written(&[(EPOCH, datagram(), 1442, Some(false))], &Counted::default());
    tshark.stdin.take().unwrap().write_all(&file).unwrap();
    let output = tshark.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.trim(), "1700000000.123456789\t1442\teth0\t10.0.0.2\t5004");
}
