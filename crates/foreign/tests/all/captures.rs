//! RTP in one capture, and in two.

use suiro_foreign::{Account, Effect, Happened, Source, explain};
use suiro_record::words::Cause;

use crate::made::{
    MS, Made, RECEIVER, SENDER, Sent, both, capture, one_way, reported, stream, udp,
};

fn account(stream: &[Sent]) -> Account {
    of_two(&both(stream))
}

fn of_two([near, far]: &[Vec<u8>; 2]) -> Account {
    explain(&[Source { name: "near", content: near }, Source { name: "far", content: far }])
        .unwrap()
}

/// What the receiver's capture alone says.
fn far(stream: &[Sent]) -> Account {
    let [_, far] = both(stream);
    explain(&[Source { name: "far", content: &far }]).unwrap()
}

fn told(account: &Account) -> Vec<(Effect, Cause)> {
    account.effects.iter().map(|it| (it.effect, it.cause)).collect()
}

fn only(account: &Account) -> &Happened {
    assert_eq!(account.effects.len(), 1, "{:#?}", account.effects);
    &account.effects[0]
}

fn during(stream: &mut [Sent], from: i64, to: i64, change: impl Fn(&mut Sent)) {
    stream.iter_mut().filter(|it| (from * MS..to * MS).contains(&it.t_ns)).for_each(change);
}

#[test]
fn a_stream_without_a_fault_has_no_effect() {
    assert_eq!(told(&account(&stream())), []);
    assert_eq!(told(&far(&stream())), []);
    let account = account(&stream());
    assert!(account.streams.iter().any(|it| it.text.contains("0 lost (0.0 %)")), "{account:#?}");
    assert!(account.streams.iter().any(|it| it.text.contains("video (90 kHz)")), "{account:#?}");
}

/// A stream that loses packets at random for 3 s.
fn lossy() -> Vec<Sent> {
    let mut stream = stream();
    during(&mut stream, 5000, 8000, |it| {
        if (it.t_ns / MS) % 7 == 3 {
            it.came_ns = None;
        }
    });
    stream
}

#[test]
fn clocks_do_not_decide_the_direction_of_a_stream() {
    let next = |(address, port): ([u8; 4], u16)| (address, port + 1);
    // Reports on other ports, and none.
    for files in
        [reported(&lossy(), (next(RECEIVER), next(SENDER))), one_way(&lossy(), [None, None])]
    {
        let account = of_two(&files);
        let loss = only(&account);
        assert_eq!((loss.effect, loss.cause), (Effect::Loss, Cause::Loss), "{loss:?}");
        assert!(loss.because.starts_with("between near and far"), "{loss:?}");
    }
    let text_of = |sent| of_two(&one_way(&stream(), sent)).streams[0].text.clone();
    let known = text_of([Some(true), Some(false)]);
    assert!(known.starts_with("from near to far"), "{known}");
    // As if the first capture were the receiver's.
    let turned = text_of([Some(false), Some(true)]);
    assert!(turned.starts_with("from far to near"), "{turned}");
    let unknown = text_of([None, None]);
    assert!(unknown.starts_with("1800 packets also in far, direction not known"), "{unknown}");
    assert_eq!(told(&of_two(&one_way(&stream(), [None, None]))), []);
}

#[test]
fn packets_lost_at_random_are_a_loss_between_the_captures() {
    let stream = lossy();
    let account = account(&stream);
    let loss = only(&account);
    assert_eq!((loss.effect, loss.cause), (Effect::Loss, Cause::Loss));
    assert!(loss.because.contains("no queue was full"), "{loss:?}");
    assert_eq!(told(&far(&stream)), [(Effect::Loss, Cause::Loss)]);
}

#[test]
fn a_path_that_carries_nothing_is_an_outage_whether_it_loses_or_holds_packets() {
    let mut lost = stream();
    during(&mut lost, 5000, 6500, |it| it.came_ns = None);
    let account_lost = account(&lost);
    let gap = only(&account_lost);
    assert_eq!((gap.effect, gap.cause), (Effect::Gap, Cause::Outage));
    assert!(gap.because.contains("135 packets sent in this time, 135 were lost"), "{gap:?}");
    assert_eq!(told(&far(&lost)), [(Effect::Gap, Cause::Outage)]);
    let mut held = stream();
    during(&mut held, 5000, 6500, |it| it.came_ns = Some(6450 * MS + it.t_ns / 100));
    assert_eq!(told(&account(&held)), [(Effect::Gap, Cause::Outage)]);
    // One capture cannot distinguish it from a sender that was held up.
    assert_eq!(told(&far(&held)), [(Effect::Gap, Cause::Unknown)]);
}

#[test]
fn a_sender_that_sends_nothing_is_told_from_the_path() {
    let silent: Vec<Sent> =
        stream().into_iter().filter(|it| !(5000 * MS..6500 * MS).contains(&it.t_ns)).collect();
    // Its sequence numbers go on.
    let mut number = 0;
    let silent: Vec<Sent> = silent
        .into_iter()
        .map(|it| {
            let frame = (it.t_ns * 30 / 1_000_000_000) as u32;
            number += 1;
            Sent { data: crate::made::rtp(frame, number), ..it }
        })
        .collect();
    for account in [account(&silent), far(&silent)] {
        let gap = only(&account);
        assert_eq!((gap.effect, gap.cause), (Effect::Gap, Cause::Application), "{gap:?}");
    }
}

/// Behind a queue with room for so much time: a packet takes 16 ms from 5 to 9 s, else 2 ms.
fn queued(room: i64) -> Vec<Sent> {
    let (mut stream, mut free) = (stream(), 0);
    for it in &mut stream {
        let takes = if (5000 * MS..9000 * MS).contains(&it.t_ns) { 16 * MS } else { 2 * MS };
        if free - it.t_ns > room {
            it.came_ns = None;
            continue;
        }
        free = free.max(it.t_ns) + takes;
        it.came_ns = Some(free + 18 * MS);
    }
    stream
}

#[test]
fn a_queue_of_a_slower_link_is_its_rate_and_a_longer_path_is_its_delay() {
    // 90 packets a second, of which 60 are carried.
    let queue = queued(i64::MAX);
    let late = told(&account(&queue));
    assert_eq!(late, [(Effect::Late, Cause::LinkRate)]);
    assert_eq!(told(&far(&queue)), [(Effect::Late, Cause::Unknown)]);
    let mut longer = stream();
    during(&mut longer, 5000, 9000, |it| it.came_ns = Some(it.t_ns + 420 * MS));
    // The first packet of the longer path comes after a gap of its own, which says the same.
    let causes: Vec<Cause> = account(&longer).effects.iter().map(|it| it.cause).collect();
    assert!(causes.contains(&Cause::Delay), "{causes:?}");
    assert!(!causes.contains(&Cause::LinkRate), "{causes:?}");
}

#[test]
fn a_longer_path_may_lose_a_few_packets() {
    let mut longer = stream();
    during(&mut longer, 5000, 9000, |it| it.came_ns = Some(it.t_ns + 1420 * MS));
    // One of the 128 that were sent while none came.
    during(&mut longer, 5500, 5501, |it| it.came_ns = None);
    let account = account(&longer);
    let gap = account.effects.iter().find(|it| it.effect == Effect::Gap).unwrap();
    assert_eq!(gap.cause, Cause::Delay, "{gap:?}");
    assert!(gap.because.contains("all but 1 came later: the path became longer"), "{gap:?}");
}

#[test]
fn a_sender_that_begins_anew_lost_nothing() {
    let mut stream = stream();
    during(&mut stream, 5000, 6500, |it| it.came_ns = None);
    let anew = stream.into_iter().enumerate().map(|(n, it)| {
        let (frame, number) = ((it.t_ns * 30 / 1_000_000_000) as u32, n as u16);
        let number = if it.t_ns < 6500 * MS { number } else { number + 5000 };
        Sent { data: crate::made::rtp(frame, number), ..it }
    });
    let account = far(&anew.collect::<Vec<_>>());
    let gap = only(&account);
    assert_eq!((gap.effect, gap.cause), (Effect::Gap, Cause::Unknown), "{gap:?}");
    assert_eq!(gap.because, "sequence numbers jumped by 5135: the sender began anew");
}

#[test]
fn losses_behind_a_long_queue_are_its_overflow() {
    let stream = queued(100 * MS);
    let account = account(&stream);
    let loss = only(&account);
    assert_eq!((loss.effect, loss.cause), (Effect::Loss, Cause::LinkRate), "{loss:?}");
    assert_eq!(told(&far(&stream)), [(Effect::Loss, Cause::LinkRate)]);
}

#[test]
fn checks_of_ice_that_nobody_answers_are_told() {
    let message = |kind: [u8; 2], transaction: u8, attributes: &[u8]| {
        let mut data = vec![kind[0], kind[1], 0, attributes.len() as u8, 0x21, 0x12, 0xa4, 0x42];
        data.resize(20, transaction);
        [&data[..], attributes].concat()
    };
    // USERNAME of 3 bytes, PRIORITY.
    let attributes = [0, 6, 0, 3, b'a', b':', b'b', 0, 0, 0x24, 0, 4, 1, 2, 3, 4];
    let check = message([0, 1], 7, &attributes);
    let packet = |n: i64| Made { t_ns: n * 500 * MS, data: udp(SENDER, RECEIVER, &check) };
    let mut packets: Vec<Made> = (0..10).map(packet).collect();
    // A server is asked for a candidate, and answers.
    let server = ([10, 0, 0, 9], 3478);
    packets.push(Made { t_ns: MS, data: udp(SENDER, server, &message([0, 1], 8, &[])) });
    packets.push(Made { t_ns: 30 * MS, data: udp(server, SENDER, &message([1, 1], 8, &[])) });
    let content = capture(&packets);
    let account = explain(&[Source { name: "x", content: &content }]).unwrap();
    let failed = only(&account);
    assert_eq!((failed.effect, failed.cause), (Effect::NoConnection, Cause::Unknown));
    assert!(
        failed.because.starts_with("10 connectivity checks over 1 candidate pair in 4.5 s"),
        "{failed:?}"
    );
    // An error, such as 401, is an answer.
    packets.push(Made { t_ns: 50 * MS, data: udp(RECEIVER, SENDER, &message([1, 0x11], 7, &[])) });
    let content = capture(&packets);
    let account = explain(&[Source { name: "x", content: &content }]).unwrap();
    let because = &only(&account).because;
    assert!(
        because.ends_with("none with success: the other host answered with 1 error"),
        "{because}"
    );
    packets.push(Made { t_ns: 60 * MS, data: udp(RECEIVER, SENDER, &message([1, 1], 7, &[])) });
    let content = capture(&packets);
    assert_eq!(told(&explain(&[Source { name: "x", content: &content }]).unwrap()), []);
}
