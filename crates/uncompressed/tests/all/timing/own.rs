//! suiro's own streams: what its session descriptions announce is what their packets keep.

use std::net::Ipv4Addr;

use suiro_uncompressed::packet::{Format, Layout, PAYLOAD_TYPE, STANDARD_PACKET_BYTES};
use suiro_uncompressed::sdp::{Announced, Description, Path};
use suiro_uncompressed::timing::{Analysis, Basis, Capture, Options, Profile, analyze};
use suiro_uncompressed::{Geometry, pace::Pace, send};
use suiro_units::{Duration, Time};

use super::generator::{Video, pcap};

fn layout() -> Layout {
    Layout::new(Format::St2110, &Geometry::HD, STANDARD_PACKET_BYTES).unwrap()
}

fn description(troff_us: Option<u32>) -> Description {
    let destination = Ipv4Addr::new(239, 0, 0, 1);
    Description {
        name: "stream 0".to_owned(),
        session: 1,
        version: 1,
        origin: None,
        mac: None,
        path: Path { source: None, destination, port: 5004, ttl: 16 },
        twin: None,
        payload_type: PAYLOAD_TYPE,
        geometry: Geometry::HD,
        datagram_bytes: layout().datagram_bytes() as u32,
        troff_us,
    }
}

/// What is measured of a stream whose thread is kept from running for so long, when it has caught up with the time before: at 1.1
/// times the rate of the packets, as the wide limit of C_INST allows.
fn measured(troff_us: Option<u32>, stall: Duration) -> Analysis {
    let period = Geometry::HD.rate().period();
    let packets = layout().packets_per_frame();
    let mut pace = Pace::new(packets, send::BURST, layout().packets_per_run(), period);
    let video = Video::progressive((60_000, 1001), packets.into(), 1080);
    let start = |frame: u64| Time::ZERO + period * (frame + 1);
    let (mut leaves, mut now, mut next) = (Vec::new(), Time::ZERO, Time::from_millis(20));
    for frame in 0..video.frames {
        pace.begin(start(frame), start(frame + 1));
        while let Some(burst) = pace.next() {
            now = now.max(burst.at);
            if now >= next {
                now += stall;
                next = now + stall * 12;
            }
            pace.sent(now, &burst);
            let since = now.as_nanos().cast_signed() - start(frame).as_nanos().cast_signed();
            leaves.extend((0..burst.packets).map(|_| since as f64));
        }
    }
    let sent = video.sent(|frame, packet| leaves[(frame * video.packets + packet) as usize]);
    let announced = Announced::read(&description(troff_us).to_string()).unwrap();
    let options = Options { announced, ..Options::default() };
    analyze(&[Capture { name: "own", content: &pcap(&sent, true) }], &options).unwrap()
}

#[test]
fn a_stream_is_of_the_type_that_its_description_announces() {
    for (troff_us, stall_us, basis) in [
        (None, 0, Basis::Default),
        (None, 550, Basis::Default),
        (Some(2000), 1800, Basis::Announced),
    ] {
        let analysis = measured(troff_us, Duration::from_micros(stall_us));
        let report = &analysis.streams[0];
        assert_eq!(report.verdict.profile, Profile::Wide, "{troff_us:?} {:?}", report.verdict);
        assert_eq!(report.verdict.basis, basis);
        let check = report.checks.iter().find(|check| check.name == "sender type").unwrap();
        assert!(check.holds, "{:?}", report.checks);
        // JT-NM Tested's latency of a millisecond is what such a machine cannot keep.
        assert_eq!(report.is_well(), troff_us.is_none(), "{:?}", report.checks);
    }
    // A machine that wakes programs later than TRO_DEFAULT, 638 µs, must announce it.
    let late = measured(None, Duration::from_micros(1800));
    assert_eq!(late.streams[0].verdict.receiver, Profile::NotCompliant);
    assert!(!late.streams[0].is_well());
}
