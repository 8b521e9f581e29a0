//! TCP connections.

use suiro_foreign::{Account, Effect, Source, explain};
use suiro_record::words::Cause;

use crate::made::{MS, Made, capture};

const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 2], 40_000);
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
const SYN: u8 = 2;
const ACK: u8 = 16;
const RST: u8 = 4;

/// A segment: whether the client sends it, its flags, sequence number, acknowledgement, window and bytes of payload.
fn segment(
    t_ms: i64,
    by_client: bool,
    flags: u8,
    (seq, ack): (u32, u32),
    window: u16,
    bytes: usize,
) -> Made {
    let (from, to) = if by_client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    let mut data = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    data.extend((40 + bytes as u16).to_be_bytes());
    data.extend([0, 0, 0, 0, 64, 6, 0, 0]);
    data.extend(from.0);
    data.extend(to.0);
    data.extend(from.1.to_be_bytes());
    data.extend(to.1.to_be_bytes());
    data.extend(seq.to_be_bytes());
    data.extend(ack.to_be_bytes());
    data.extend([0x50, flags]);
    data.extend(window.to_be_bytes());
    data.extend([0; 4]);
    data.resize(14 + 40 + bytes, 1);
    Made { t_ns: t_ms * MS, data }
}

/// A handshake of 20 ms and a request, whose answer begins with sequence number 1001.
fn opened() -> Vec<Made> {
    vec![
        segment(0, true, SYN, (500, 0), 60_000, 0),
        segment(20, false, SYN | ACK, (1000, 501), 60_000, 0),
        segment(20, true, ACK, (501, 1001), 60_000, 0),
        segment(21, true, ACK, (501, 1001), 60_000, 100),
    ]
}

fn account(packets: &[Made]) -> Account {
    explain(&[Source { name: "x", content: &capture(packets) }]).unwrap()
}

fn causes(packets: &[Made]) -> Vec<(Effect, Cause)> {
    account(packets).effects.iter().map(|it| (it.effect, it.cause)).collect()
}

#[test]
fn an_answer_at_once_has_no_effect_and_a_late_one_is_the_servers() {
    let answer = |t_ms| segment(t_ms, false, ACK, (1001, 601), 60_000, 1000);
    let mut packets = opened();
    packets.push(answer(45));
    packets.push(segment(45, true, ACK, (601, 2001), 60_000, 0));
    assert_eq!(causes(&packets), []);
    let text = &account(&packets).streams[0].text;
    assert!(
        text.contains("100 B up, 1 kB down") || text.contains("100 B up, 1.0 kB down"),
        "{text}"
    );
    let mut packets = opened();
    packets.push(segment(41, false, ACK, (1001, 601), 60_000, 0));
    packets.push(answer(1500));
    assert_eq!(causes(&packets), [(Effect::Gap, Cause::Application)]);
}

#[test]
fn a_client_that_asks_for_nothing_has_no_effect() {
    let mut packets = opened();
    packets.push(segment(45, false, ACK, (1001, 601), 60_000, 1000));
    packets.push(segment(45, true, ACK, (601, 2001), 60_000, 0));
    packets.push(segment(5000, true, ACK, (601, 2001), 60_000, 100));
    assert_eq!(causes(&packets), []);
}

#[test]
fn data_that_is_sent_again_after_a_pause_may_have_been_lost() {
    let mut packets = opened();
    packets.push(segment(45, false, ACK, (1001, 601), 60_000, 1000));
    // Sent again into silence: one gap, to the next new data.
    packets.push(segment(300, false, ACK, (1001, 601), 60_000, 1000));
    packets.push(segment(700, false, ACK, (1001, 601), 60_000, 1000));
    packets.push(segment(720, true, ACK, (601, 2001), 60_000, 0));
    packets.push(segment(721, false, ACK, (2001, 601), 60_000, 1000));
    let account = account(&packets);
    let told: Vec<_> = account.effects.iter().map(|it| (it.effect, it.cause)).collect();
    assert_eq!(told, [(Effect::Gap, Cause::Unknown)]);
    // The segment or its acknowledgement: one capture does not show it.
    let gap = &account.effects[0];
    assert!(gap.because.contains("sent again twice"), "{gap:?}");
    assert_eq!((gap.from_ns, gap.to_ns), (45_000_000, 721_000_000));
    assert!(account.streams[0].text.contains("2 of 5 segments sent again"), "{account:?}");
}

#[test]
fn a_closed_window_is_a_slow_reader() {
    let mut packets = opened();
    packets.push(segment(45, false, ACK, (1001, 601), 60_000, 1000));
    packets.push(segment(46, true, ACK, (601, 2001), 0, 0));
    packets.push(segment(900, false, ACK, (2001, 601), 60_000, 1000));
    assert_eq!(causes(&packets), [(Effect::Gap, Cause::SlowReader)]);
    // A receiver that reads again opens its window before the data comes.
    packets.push(segment(880, true, ACK, (601, 2001), 60_000, 0));
    assert_eq!(causes(&packets), [(Effect::Gap, Cause::SlowReader)]);
    let because = &account(&packets).effects[0].because;
    assert_eq!(because, "the receive window of the client was 0 for 834 ms");
}

/// A connection from its middle, in which the server has 99 kB in flight, and then pauses for a second.
fn without_a_handshake(window: u16) -> Vec<Made> {
    let data = |n: u32| segment(i64::from(n), false, ACK, (1001 + n * 1000, 701), 501, 1000);
    let mut packets: Vec<Made> = (0..100).map(data).collect();
    packets.push(segment(100, true, ACK, (701, 2001), window, 0));
    packets.push(segment(1100, false, ACK, (101_001, 701), 501, 1000));
    packets
}

#[test]
fn a_window_of_unknown_scale_limits_only_if_it_is_0() {
    assert_eq!(causes(&without_a_handshake(501)), [(Effect::Gap, Cause::Unknown)]);
    assert_eq!(causes(&without_a_handshake(0)), [(Effect::Gap, Cause::SlowReader)]);
}

#[test]
fn a_hole_that_several_segments_filled_is_none() {
    let mut packets = opened();
    for (n, start) in [1001, 5001, 2001, 3001, 4001].into_iter().enumerate() {
        packets.push(segment(45 + n as i64, false, ACK, (start, 601), 60_000, 1000));
    }
    packets.push(segment(60, true, ACK, (601, 1001), 60_000, 100));
    packets.push(segment(900, false, ACK, (3001, 701), 60_000, 1000));
    let account = account(&packets);
    let gap = account.effects.iter().find(|it| it.effect == Effect::Gap).unwrap();
    assert!(gap.because.starts_with("data was sent again once"), "{gap:?}");
}

#[test]
fn a_connection_that_nobody_answers_or_that_is_refused() {
    let silent: Vec<Made> =
        [0, 1000, 3000].map(|t| segment(t, true, SYN, (500, 0), 60_000, 0)).into();
    assert_eq!(causes(&silent), [(Effect::NoConnection, Cause::Unknown)]);
    let refused =
        [segment(0, true, SYN, (500, 0), 60_000, 0), segment(1, false, RST | ACK, (0, 501), 0, 0)];
    assert_eq!(causes(&refused), [(Effect::NoConnection, Cause::Application)]);
}

#[test]
fn sequence_numbers_that_wrap_are_followed() {
    let mut packets = vec![segment(0, false, ACK, (u32::MAX - 999, 1), 60_000, 1000)];
    packets.push(segment(10, false, ACK, (0, 1), 60_000, 1000));
    packets.push(segment(20, true, ACK, (1, 1000), 60_000, 0));
    packets.push(segment(1000, false, ACK, (1000, 1), 60_000, 1000));
    // Nothing is in flight; without a handshake it is not known which host the capture is of.
    let account = account(&packets);
    assert!(account.effects[0].because.starts_with("the server sent nothing"), "{account:?}");
    assert_eq!(account.effects.len(), 1);
}
