//! What a player reports of itself with its requests (CMCD).

use suiro_scenario::Cmcd;

use super::*;
use crate::cmcd::{self, Told};

/// CTA-5004: `pr` is 0 if nothing is played; `dl` is when the buffer would be empty.
#[test]
fn a_player_that_is_stalled_has_no_speed_and_all_of_its_buffer() {
    let mut world = world(live(), &[(0, 8000), (8, 200), (30, 8000)]);
    let config = config(Protocol::Dash, Algorithm::Throughput);
    let config = Config { cmcd: Some(Cmcd::QueryV2), ..config };
    let run = run(&mut world, config, Time::from_secs(45));
    let mut seen = [0; 3];
    let mut sequence = Vec::new();
    for (at, fetch, _) in &run.fetches {
        let Some(Told::Argument(argument)) = &fetch.told else { panic!("it reports") };
        let read = cmcd::read(Some(argument), &Default::default()).expect("it says something");
        assert_eq!(read.problem, None);
        let said = read.said;
        sequence.extend(said.sequence);
        let Some(state) = said.state else { continue };
        let (index, speed) = match state.as_str() {
            "s" => (0, 0.0),
            "r" => (1, 0.0),
            _ => (2, said.speed.unwrap_or(1.0)),
        };
        assert_eq!(said.speed.unwrap_or(1.0), speed, "{state} at {at}");
        assert_eq!(said.startup, (index < 2).then_some(true), "{state} at {at}");
        assert!(index < 2 || speed > 0.9, "{state} at {at}: {speed}");
        if let Some((buffer, deadline)) = said.buffer_ms.zip(said.deadline_ms) {
            assert!(index == 2 || buffer == deadline, "{state} at {at}: {buffer} {deadline}");
            seen[index] += 1;
        }
    }
    // CTA-5004-B, table 1: `sn` begins at 0 with a session, and each report has the next.
    assert!(sequence.iter().copied().eq(0..run.fetches.len() as i64), "{sequence:?}");
    assert!(seen[0] > 0 && seen[1] > 0 && seen[2] > 10, "{seen:?}");
    let stalled_with_media = run.fetches.iter().any(|(_, fetch, _)| match &fetch.told {
        Some(Told::Argument(text)) => text.contains("sta%3Dr") && !text.contains("dl%3D0%2C"),
        _ => false,
    });
    assert!(stalled_with_media, "the deadline is more than nothing at least once");
}

/// HLS gives a rendition of sound none, and what is not known is not said.
#[test]
fn sound_has_a_bit_rate_in_dash_alone() {
    for (protocol, has_one) in [(Protocol::Dash, true), (Protocol::Hls, false)] {
        let mut world = world(live(), &[(0, 8000)]);
        let config = config(protocol, Algorithm::Throughput);
        let config = Config { cmcd: Some(Cmcd::QueryV2), ..config };
        let run = run(&mut world, config, Time::from_secs(20));
        let said = run.fetches.iter().filter_map(|(_, fetch, _)| {
            let Some(Told::Argument(argument)) = &fetch.told else { panic!("it reports") };
            cmcd::read(Some(argument), &Default::default()).map(|read| read.said)
        });
        let sound: Vec<_> = said.filter(|said| said.object.as_deref() == Some("a")).collect();
        assert!(sound.len() > 5, "{protocol:?}: {}", sound.len());
        assert!(sound.iter().all(|said| said.bitrate_bps.is_some() == has_one), "{protocol:?}");
        assert!(sound.iter().all(|said| said.top_bps.is_some() == has_one), "{protocol:?}");
    }
}
