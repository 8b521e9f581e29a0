//! The parser, tested on what a kernel really sent, intact and damaged.
//!
//! `golden/dump-linux-6.18.bin`: the answer to `request_all(V4, ESTABLISHED, 7)` in a namespace
//! with one loopback connection, from bbr to reno, after 100,000 bytes one way and 10 the other.
#![cfg(target_endian = "little")]

use suiro_tcp::diag::{self, Body, DiagError, Family, Message};

const GOLDEN: &[u8] = include_bytes!("golden/dump-linux-6.18.bin");

fn parse(bytes: &[u8]) -> Result<Vec<Message<'_>>, DiagError> {
    diag::messages(bytes).collect()
}

#[test]
fn a_dump_of_linux_6_18() {
    let messages = parse(GOLDEN).unwrap();
    assert!(messages.iter().all(|message| message.sequence == 7));
    let [Body::Socket(client), Body::Socket(server), Body::Done] =
        [messages[0].body, messages[1].body, messages[2].body]
    else {
        panic!("{messages:?}")
    };
    assert_eq!(messages.len(), 3);
    assert_eq!(client.id.local(), "127.0.0.1:40000".parse().unwrap());
    assert_eq!(client.id.remote(), "127.0.0.1:8080".parse().unwrap());
    assert_eq!((client.congestion, server.congestion), (Some("bbr"), Some("reno")));
    assert_eq!((client.id.cookie(), server.id.cookie()), (0x2e, 0x2f));
    let (client, server) = (client.info.unwrap(), server.info.unwrap());
    // The side that connected counts its SYN as a byte.
    assert_eq!((client.bytes_acked, client.bytes_received), (11, 100_000));
    assert_eq!((server.bytes_acked, server.bytes_received), (100_000, 10));
    assert_eq!((server.snd_cwnd, server.snd_ssthresh, server.rtt_us), (10, None, 16));
    assert_eq!((server.min_rtt_us, server.in_flight()), (Some(8), 0));
    assert!(server.delivery_rate.is_some());
}

#[test]
fn every_truncation_is_an_error_except_between_messages() {
    let ends = [0, 0x1a0, 0x344, GOLDEN.len()];
    for length in 0..=GOLDEN.len() {
        assert_eq!(parse(&GOLDEN[..length]).is_ok(), ends.contains(&length), "cut at {length}");
    }
}

#[test]
fn wrong_lengths_are_reported() {
    let damaged = |at: usize, value: u8| {
        let mut bytes = GOLDEN.to_vec();
        bytes[at] = value;
        parse(&bytes).unwrap_err().to_string()
    };
    assert!(damaged(1, 0xff).contains("at byte 0: length 65440 does not fit in 856 bytes"));
    assert!(damaged(0, 0xf).contains("attribute of type 2: length 284 does not fit"));
    assert!(damaged(0x58, 3).contains("attribute of type 8: length 3"));
    assert!(damaged(0x59, 0xff).contains("does not fit in 328 bytes"));
    assert!(damaged(4, 99).contains("unexpected type 99"));
    assert!(damaged(0x10, 1).contains("unexpected address family 1"));
    assert!(damaged(0x1a1, 0xff).contains("netlink message at byte 416"));
}

#[test]
fn damage_anywhere_never_panics() {
    for at in 0..GOLDEN.len() {
        for bit in 0..8 {
            let mut bytes = GOLDEN.to_vec();
            bytes[at] ^= 1 << bit;
            let count = diag::messages(&bytes).count();
            assert!(count <= GOLDEN.len() / 16, "bit {bit} of byte {at}: {count} messages");
        }
    }
}

#[test]
fn a_request_identifies_the_socket_as_the_kernel_did() {
    let Body::Socket(sample) = parse(GOLDEN).unwrap()[0].body else { panic!() };
    let mut question = Vec::new();
    diag::request_one(&mut question, &sample.id, 9);
    assert_eq!(question.len(), 72);
    assert_eq!(question[24..], GOLDEN[20..68]);
    assert_eq!(diag::request_all(Family::V6, 1 << 1, 1)[16..24], [10, 6, 0b1010, 0, 2, 0, 0, 0]);
}
