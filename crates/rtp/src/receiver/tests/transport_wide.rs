//! Transport-wide feedback between a sender and a receiver.

use super::*;

/// A world with feedback 20 times a second in which each twentieth packet is lost and sent again.
fn world() -> World {
    let change = |config: &mut Config| {
        config.again_type = Some(97);
        config.feedback = Some(Duration::from_millis(50));
    };
    let lost = |packet: u64| packet > 5 && packet.is_multiple_of(20);
    World::with(FeedbackFormat::TransportWide, change, lost)
}

/// The packets that arrived at the receiver.
fn packets(world: &World) -> Vec<Packet> {
    let of = |(_, to_receiver, transmit): &(Time, bool, Transmit)| match transmit {
        Transmit::Rtp(bytes) if *to_receiver => Some(Packet::parse(bytes).unwrap()),
        _ => None,
    };
    world.arrived.iter().filter_map(of).collect()
}

/// The messages of the receiver.
fn messages(world: &World) -> Vec<Message> {
    let of = |(_, to_receiver, transmit): &(Time, bool, Transmit)| match transmit {
        Transmit::Rtcp(bytes) if !to_receiver => Some(rtcp::parse(bytes).unwrap()),
        _ => None,
    };
    world.arrived.iter().filter_map(of).flatten().collect()
}

#[test]
fn all_packets_are_numbered_in_the_order_in_which_they_leave() {
    let mut world = world();
    world.run(100);
    let counters = world.receiver.counters();
    assert_eq!((counters.missing, counters.recovered), (10, 10), "{counters:?}");
    let packets = packets(&world);
    assert!(packets.iter().any(|packet| packet.payload_type == 97));
    let numbers: Vec<u16> = packets.iter().map(|packet| packet.wide.unwrap()).collect();
    let steps = numbers.windows(2).map(|two| two[1].wrapping_sub(two[0]));
    let steps: Vec<u16> = steps.collect();
    assert!(steps.iter().all(|step| [1, 2].contains(step)), "{numbers:?}");
    assert_eq!(steps.iter().filter(|step| **step == 2).count(), 10, "{numbers:?}");
    assert_eq!(packets.len() as u64 + 10, world.rtp);
}

#[test]
fn reports_are_transport_wide_and_believed() {
    let mut world = world();
    world.run(100);
    let told: Vec<TransportWide> = messages(&world)
        .into_iter()
        .filter_map(|message| match message {
            Message::TransportWide(told) => Some(told),
            Message::Congestion(_) => panic!("a report in another format"),
            _ => None,
        })
        .collect();
    // 4 s of 20 a second, in which nothing comes at some.
    assert!((70..100).contains(&told.len()), "{}", told.len());
    assert!(told.windows(2).all(|two| two[1].count == two[0].count.wrapping_add(1)));
    let counters = world.sender.counters();
    assert!(counters.malformed == 0 && counters.disbelieved.is_empty(), "{counters:?}");
    // Each packet that arrived is in a report, but for those after the last one.
    let arrived: usize = told.iter().map(|told| told.arrived.len()).sum();
    assert!(packets(&world).len() - arrived < 5, "{arrived}");
    let (mut lost, mut rtt) = (0, Duration::ZERO);
    for period in std::iter::from_fn(|| world.sender.take_period()) {
        lost += usize::from(period.loss.is_some_and(|loss| loss.get() > 0.0));
        rtt = period.rtt.unwrap_or(rtt);
    }
    assert_eq!(lost, 10);
    // The reports do not say how long the last packet waited for them: at most 50 ms.
    assert!((39.0..90.0).contains(&rtt.as_millis_f64()), "{rtt}");
}

/// A packet of the stream, with these numbers.
fn packet(sequence: u16, wide: Option<u16>) -> Vec<u8> {
    let (ssrc, payload_type, timestamp, marker, mark) = (7, 96, 0, true, None);
    let payload = vec![0x41, 0x9a];
    Packet { ssrc, payload_type, sequence, timestamp, marker, mark, wide, payload }.write()
}

/// The reports that leave a receiver at that time.
fn reports(receiver: &mut Receiver, now: Time) -> Vec<TransportWide> {
    let messages =
        std::iter::from_fn(|| receiver.poll(now)).flat_map(|it| rtcp::parse(&it).unwrap());
    messages
        .filter_map(|message| match message {
            Message::TransportWide(told) => Some(told),
            _ => None,
        })
        .collect()
}

#[test]
fn numbers_far_from_the_others_and_repeated_ones_are_not_reported() {
    let mut receiver = world().receiver;
    let numbers = [65_534, 65_535, 40_000, 0, 0, 2].into_iter().map(Some).chain([None, Some(3)]);
    for (sequence, wide) in (10..).zip(numbers) {
        receiver.on_rtp(ms(u64::from(sequence)), &packet(sequence, wide), 0);
    }
    let told = reports(&mut receiver, ms(20));
    let places: Vec<u16> = told[0].arrived.iter().map(|(place, _)| *place).collect();
    assert_eq!((told.len(), told[0].first), (1, 65_534));
    assert_eq!(places, [0, 1, 2, 4, 5], "of 65534 to 3");
}

#[test]
fn packets_that_the_stream_does_not_take_are_reported_too() {
    let mut receiver = world().receiver;
    let in_order = (0..301).filter(|number| *number != 150 && *number != 151);
    // Two are so late that they begin the stream anew.
    for (at, number) in (0..).zip(in_order.chain([150, 151, 301])) {
        receiver.on_rtp(ms(at), &packet(number, Some(number)), 0);
    }
    assert!(receiver.counters().jumps > 0);
    let mut came = Vec::new();
    for told in reports(&mut receiver, ms(310)) {
        came.extend(told.arrived.iter().map(|(place, _)| told.first + place));
    }
    assert_eq!(came, (0..=301).collect::<Vec<u16>>());
}
