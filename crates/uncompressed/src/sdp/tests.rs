use proptest::prelude::*;

use super::*;
use crate::geometry::Sampling;
use crate::packet::{Format, Layout};

fn description() -> Description {
    Description {
        name: "node 1".to_owned(),
        session: 7,
        version: 3_900_000_000,
        origin: Some(Ipv4Addr::new(192, 0, 2, 1)),
        mac: Some([0x02, 0, 0x5e, 0x10, 0, 0xff]),
        path: Path {
            source: Some(Ipv4Addr::new(192, 0, 2, 1)),
            destination: Ipv4Addr::new(239, 1, 2, 3),
            port: 5004,
            ttl: 32,
        },
        twin: None,
        payload_type: 96,
        geometry: Geometry::HD,
        datagram_bytes: 8952,
        troff_us: None,
    }
}

const TEXT: &str = "v=0\r
o=- 7 3900000000 IN IP4 192.0.2.1\r
s=node 1\r
t=0 0\r
m=video 5004 RTP/AVP 96\r
c=IN IP4 239.1.2.3/32\r
a=source-filter: incl IN IP4 239.1.2.3 192.0.2.1\r
a=rtpmap:96 raw/90000\r
a=fmtp:96 sampling=YCbCr-4:2:2; width=1920; height=1080; exactframerate=60000/1001; depth=10; \
TCS=SDR; colorimetry=BT709; PM=2110GPM; SSN=ST2110-20:2017; TP=2110TPW; MAXUDP=8960; \r
a=ts-refclk:localmac=02-00-5e-10-00-ff\r
a=mediaclk:direct=0\r
";

#[test]
fn it_is_written_as_others_read_it() {
    assert_eq!(description().to_string(), TEXT);
    let other = Description { troff_us: Some(2000), ..description() };
    let text = TEXT.replace("TP=2110TPW; ", "TP=2110TPW; TROFF=2000; ");
    assert_eq!(other.to_string(), text);
}

#[test]
fn an_unknown_sender_is_left_out() {
    let path = Path { source: None, ..description().path };
    let unknown = Description { origin: None, mac: None, path, ..description() };
    let text = unknown.to_string();
    assert!(text.contains("o=- 7 3900000000 IN IP4 0.0.0.0\r\n"), "{text}");
    assert!(
        text.contains("c=IN IP4 239.1.2.3/32\r\na=rtpmap"),
        "without a filter all sources are accepted: {text}"
    );
    assert!(text.contains("\r\na=ts-refclk:localmac=00-00-00-00-00-00\r\n"), "{text}");
    assert_eq!(text.parse(), Ok(unknown));
}

#[test]
fn the_first_video_is_read_and_the_session_gives_its_defaults() {
    let text = "v=0\no=- 1 1 IN IP4 host.example\ns=both\nc=IN IP4 192.0.2.7\nt=0 0\n\
        m=audio 5002 RTP/AVP 97\na=rtpmap:97 L24/48000\n\
        m=video 5006 RTP/AVP 112\na=rtpmap:112 raw/90000\n\
        a=fmtp:112 depth=8;width=64; height=4;sampling=RGB;exactframerate=50;\n\
        m=video 5008 RTP/AVP 96\nc=IN IP4 192.0.2.9\n";
    let read: Description = text.parse().unwrap();
    assert_eq!((read.path.destination, read.path.port), (Ipv4Addr::new(192, 0, 2, 7), 5006));
    assert_eq!((read.payload_type, read.origin, read.twin), (112, None, None));
    assert_eq!(read.geometry.to_string(), "64x4 RGB 8 bit 50");
}

#[test]
fn an_unsupported_description_is_refused_with_the_line() {
    let refused = |from: &str, to: &str| {
        assert!(TEXT.contains(from), "{from}");
        TEXT.replace(from, to).parse::<Description>().unwrap_err().to_string()
    };
    assert_eq!(
        refused("video 5004", "video 0"),
        "line 5: expected m=video PORT RTP/AVP PAYLOAD-TYPE, found \"video 0 RTP/AVP 96\""
    );
    assert_eq!(refused("m=video", "m=audio"), "video (m=video …) is missing");
    assert_eq!(
        refused("rtpmap:96", "rtpmap:97"),
        "a=rtpmap of the video's payload type is missing"
    );
    assert_eq!(
        refused("raw/90000", "H264/90000"),
        "line 8: expected raw/90000, found \"H264/90000\""
    );
    assert_eq!(refused("depth=10", "depth=16f"), "depth=16f: expected a whole number");
    assert_eq!(refused("depth=10", "depth=16"), "depth=16: expected 8, 10 or 12");
    assert_eq!(
        refused("TCS=SDR", "interlace"),
        "interlace=: only progressive video can be received"
    );
    assert_eq!(
        refused("239.1.2.3/32", "239.1.2.3/0"),
        "line 6: expected c=IN IP4 ADDRESS (for a group: ADDRESS/TTL), found \"IN IP4 239.1.2.3/0\""
    );
    assert!(refused("4:2:2", "4:1:1").contains("sampling that suiro supports"));
    assert!(refused("MAXUDP=8960", "MAXUDP=99999").contains("65515"));
    assert!(refused("MAXUDP=8960", "MAXUDP=7").contains("expected 8 to"));
    assert_eq!(refused("t=0 0", "t"), "line 4: expected TYPE=VALUE, found \"t\"");
}

#[test]
fn a_filter_restricts_a_group_to_its_source_and_the_origin_does_not() {
    let source = |text: &str| text.parse::<Description>().unwrap().path.source;
    let own = Ipv4Addr::new(192, 0, 2, 1);
    assert_eq!(source(TEXT), Some(own));
    let filter = "a=source-filter: incl IN IP4 239.1.2.3 192.0.2.1\r\n";
    assert_eq!(source(&TEXT.replace(filter, "")), None, "the origin is no filter");
    assert_eq!(source(&TEXT.replace("incl IN IP4 239.1.2.3", "incl IN IP4 *")), Some(own));
    assert_eq!(source(&TEXT.replace("incl IN IP4 239.1.2.3", "incl IN IP4 239.1.2.4")), None);
    assert_eq!(source(&TEXT.replace("incl", "excl")), None);
    // At the session's level it is for all media.
    let moved = TEXT.replace(filter, "").replace("t=0 0\r\n", &format!("t=0 0\r\n{filter}"));
    assert_eq!(source(&moved), Some(own));
}

#[test]
fn duplicates_are_two_paths_of_one_stream() {
    let twin = Path {
        source: Some(Ipv4Addr::new(192, 0, 2, 9)),
        destination: Ipv4Addr::new(239, 1, 2, 4),
        port: 5006,
        ttl: 32,
    };
    let both = Description { twin: Some(twin.clone()), ..description() };
    let text = both.to_string();
    assert!(text.contains("t=0 0\r\na=group:DUP first second\r\nm=video 5004"), "{text}");
    assert_eq!(text.matches("a=mid:").count(), 2, "{text}");
    assert_eq!(text.parse(), Ok(both.clone()));
    // Ancillary data between them are neither.
    let data =
        "m=video 5010 RTP/AVP 100\r\nc=IN IP4 239.1.2.5/32\r\na=rtpmap:100 smpte291/90000\r\n";
    let with_data = text.replace("m=video 5006", &format!("{data}m=video 5006"));
    assert_eq!(with_data.parse(), Ok(both));
    // Two videos that no group joins are two streams: the first one is read.
    let apart = text.replace("a=group:DUP first second\r\n", "");
    assert_eq!(apart.parse::<Description>().unwrap().twin, None);
    let lips = text.replace("group:DUP", "group:LS");
    assert_eq!(lips.parse::<Description>().unwrap().twin, None);
    let at = text.rfind("width=1920").unwrap();
    let other = format!("{}width=1280{}", &text[..at], &text[at + 10..]);
    let refused = other.parse::<Description>().unwrap_err().to_string();
    assert!(refused.contains("a duplicate of the first video"), "{refused}");
}

/// ST 2110-10 §6.3: the limit is that of the UDP datagram, with its header of 8 bytes.
#[test]
fn datagrams_keep_the_limit_that_is_announced() {
    let (mut standard, mut extended) = (0, 0);
    for sampling in Sampling::ALL {
        for depth in Depth::ALL {
            for width in (400..2400).step_by(4) {
                let geometry =
                    Geometry::new((width, 4), sampling, depth, FrameRate::P59_94).unwrap();
                for packet_bytes in [1500, 1600, 9000] {
                    let layout = Layout::new(Format::St2110, &geometry, packet_bytes).unwrap();
                    let datagram_bytes = layout.datagram_bytes() as u32;
                    let text =
                        Description { geometry, datagram_bytes, ..description() }.to_string();
                    let is_standard = !text.contains("MAXUDP");
                    assert!(is_standard || text.contains("MAXUDP=8960; "), "{text}");
                    let most = if is_standard { 1460 } else { 8960 };
                    assert!(datagram_bytes + 8 <= most, "{geometry}: {datagram_bytes}");
                    assert!(is_standard || packet_bytes > 1500, "{geometry}");
                    let read: Description = text.parse().unwrap();
                    assert_eq!(read.datagram_bytes, most - 8);
                    standard += u32::from(is_standard);
                    extended += u32::from(!is_standard);
                }
            }
        }
    }
    assert!(standard > 0 && extended > 0);
}

proptest! {
    #[test]
    fn it_is_read_as_it_was_written(
        (width, height, depth, sampling) in (1u32..500, 1u32..4000, 0usize..3, 0usize..3),
        (port, ttl, payload_type) in (1u16.., 1u8.., 0u8..128),
        (source, group, is_jumbo) in (any::<u32>(), any::<u32>(), any::<bool>()),
        (origin, twin) in (any::<u32>(), any::<Option<(u32, u16)>>()),
        (session, version, mac) in (any::<u64>(), any::<u64>(), any::<Option<[u8; 6]>>()),
        troff_us in proptest::option::of(0u32..=1_000_000),
    ) {
        let (sampling, depth) = (Sampling::ALL[sampling], Depth::ALL[depth]);
        let geometry = Geometry::new((width * 4, height), sampling, depth, FrameRate::P59_94).unwrap();
        let destination = Ipv4Addr::from(group);
        let source = Some(Ipv4Addr::from(source)).filter(|source| !source.is_unspecified());
        let path = |destination: Ipv4Addr, port| {
            let is_group = destination.is_multicast();
            let source = source.filter(|_| is_group);
            Path { source, destination, port, ttl: if is_group { ttl } else { 1 } }
        };
        let written = Description {
            session,
            version,
            origin: Some(Ipv4Addr::from(origin)).filter(|origin| !origin.is_unspecified()),
            mac: mac.filter(|mac| *mac != [0; 6]),
            path: path(destination, port),
            twin: twin.map(|(to, port)| path(Ipv4Addr::from(to), port.max(1))),
            payload_type,
            geometry,
            datagram_bytes: if is_jumbo { 8952 } else { 1452 },
            troff_us,
            ..description()
        };
        prop_assert_eq!(written.to_string().parse(), Ok(written));
    }
}
