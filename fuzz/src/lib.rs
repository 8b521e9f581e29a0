//! Fuzz targets: every parser of what comes from outside, as a function of bytes that must return.
//!
//! `make fuzz` lets libfuzzer drive each of them; `tests/seeds.rs` runs each on its seeds and on damaged
//! copies of them, so that a stable compiler keeps them working too.

mod files;
mod http3;
mod network;
mod rates;

use suiro_conference::codec::Size;
use suiro_conference::receiver::Receiver as CallReceiver;
use suiro_control::desired::Desired;
use suiro_control::discovery::{self, Resolvers, Targets};
use suiro_control::nmos::connection::{Connection, Media, Own, Side, Wanted};
use suiro_control::nmos::door::Door as NmosDoor;
use suiro_control::nmos::{Ask as NmosAsk, Id, Tai};
use suiro_control::registry::{Moment, Registry, websocket};
use suiro_http::Url;
use suiro_http::presentation::{Playlist, Segments, Source, from_mpd, from_playlist};
use suiro_layers::FlowFilter;
use suiro_layers::agent::message::{Answer, Request};
use suiro_layers::pcapng::{Capture, Ends, recordings};
use suiro_layers::report::joined;
use suiro_link::{parse_csv, parse_mahimahi};
use suiro_media::ts::{Packets, Shift};
use suiro_moq::catalog::Catalog;
use suiro_moq::{cmaf, container, data, relay};
use suiro_payload::Codec;
use suiro_rtp::receiver::{self, Receiver};
use suiro_scenario::{NoFiles, Overrides};
use suiro_tcp::diag;
use suiro_uncompressed::epoch::Epoch;
use suiro_uncompressed::live::What;
use suiro_uncompressed::live::merge::{Merge, Output};
use suiro_uncompressed::packet::{Format, Layout, PAYLOAD_TYPE, STUDY_PACKET_BYTES};
use suiro_uncompressed::sdp::{Announced, Description};
use suiro_uncompressed::store::{Content, Header};
use suiro_uncompressed::{Geometry, synth, timing};
use suiro_units::{Duration, Seed, Time};
use suiro_webrtc::signalling::{Ask, Command, Door, Reply};

pub use files::{browser_report, documents, foreign, layers_recording, node_status, tables};
pub use http3::http3;
pub use network::{
    caching, coding, common_media, frame, mp4_chunks, range, sound, webrtc_peer, webtransport,
};
pub use rates::{congestion, rtcp, rtp_header};

/// A target: its name, which is that of its program and of its folder in `seeds/`, and itself.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("agent", agent),
    ("browser_report", browser_report),
    ("caching", caching),
    ("capture", capture),
    ("coding", coding),
    ("common_media", common_media),
    ("conference", conference),
    ("congestion", congestion),
    ("desired_state", desired_state),
    ("dns_sd", dns_sd),
    ("documents", documents),
    ("flow", flow),
    ("foreign", foreign),
    ("frame", frame),
    ("frame_store", frame_store),
    ("http3", http3),
    ("layers_recording", layers_recording),
    ("moq", moq),
    ("mp4", mp4),
    ("mp4_chunks", mp4_chunks),
    ("mpd", mpd),
    ("nmos_connection", nmos_connection),
    ("nmos_registry", nmos_registry),
    ("node_status", node_status),
    ("playlist", playlist),
    ("quantised", quantised),
    ("range", range),
    ("rtcp", rtcp),
    ("rtp", rtp),
    ("rtp_header", rtp_header),
    ("scenario", scenario),
    ("sock_diag", sock_diag),
    ("sound", sound),
    ("study", study),
    ("tables", tables),
    ("trace", trace),
    ("ts", ts),
    ("uncompressed_merge", uncompressed_merge),
    ("uncompressed_packet", uncompressed_packet),
    ("uncompressed_sdp", uncompressed_sdp),
    ("url", url),
    ("webrtc_peer", webrtc_peer),
    ("webtransport", webtransport),
    ("whip", whip),
];

/// What comes to an agent or from one, before anything else is known of it.
pub fn agent(data: &[u8]) {
    if let Ok(request) = Request::parse(data) {
        assert_eq!(Request::parse(&request.to_bytes()), Ok(request));
    }
    if let Ok(answer) = Answer::parse(data) {
        assert_eq!(Answer::parse(&answer.to_bytes()), Ok(answer));
    }
}

/// A user's scenario, up to its plan; an error must be printable too.
pub fn scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let plan = suiro_scenario::parse(text, "fuzz.toml")
        .and_then(|scenario| scenario.plan_with(&Overrides::default(), &NoFiles));
    if let Err(error) = plan {
        assert!(!error.to_string().is_empty(), "an error says something");
    }
}

/// A study: its TOML and its formulas; an error must be printable too.
pub fn study(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(error) = suiro_study::parse(text, "fuzz.toml") {
        assert!(!error.to_string().is_empty(), "an error says something");
    }
}

/// A DASH manifest from any origin, and the segments that it names.
pub fn mpd(data: &[u8]) {
    let Ok(presentation) = from_mpd(data, &origin()) else { return };
    for rung in presentation.tracks.iter().flat_map(|track| &track.rungs) {
        if let Source::Segments(segments) = &rung.source {
            walk(segments);
        }
    }
}

fn walk(segments: &Segments) {
    let _ = (segments.first(), segments.last(), segments.by_number(7));
    for from in [Duration::ZERO, Duration::from_secs(3), Duration::from_nanos(u64::MAX / 4)] {
        let mut next = segments.at(from);
        for _ in 0..3 {
            let Some(segment) = next else { break };
            next = segments.following(segment.end());
            // A player that goes from segment to segment gets on.
            assert!(next.as_ref().is_none_or(|next| next.end() > segment.end()), "{segment:?}");
        }
    }
}

/// An HLS playlist, multivariant or of media, from any origin.
pub fn playlist(data: &[u8]) {
    match from_playlist(data, &origin()) {
        Ok(Playlist::Media(media)) => {
            let _ = media.duration();
            for start_ns in [0, -5_000_000_000, i64::MIN, i64::MAX] {
                walk(&media.segments_from(start_ns));
                let _ = media.parts.as_ref().map(|parts| parts.placed_at(start_ns));
            }
        }
        Ok(Playlist::Multivariant(presentation)) => {
            let rungs = presentation.tracks.iter().map(|track| track.rungs.len());
            assert!(rungs.into_iter().all(|rungs| rungs > 0), "a track has rungs");
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error says something"),
    }
}

/// A reference in a manifest or a redirect, resolved again and again, as by a loop of redirects.
pub fn url(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut url = origin();
    for reference in text.lines().cycle().take(20) {
        if let Ok(next) = url.join(reference) {
            assert_eq!(Url::parse(&next.to_string()).as_ref(), Ok(&next), "what is accepted stays");
            assert!(next.target().starts_with('/') && next.target().len() <= 2 * 4096);
            url = next;
        }
    }
}

/// A media segment of fragmented MP4, moved in time.
pub fn mp4(data: &[u8]) {
    for (offset, sequence) in [(0, 0), (90_000, 7), (1 << 40, u32::MAX)] {
        let _ = suiro_media::mp4::restamp(&mut data.to_vec(), offset, sequence);
    }
    if let Ok(Some(end)) = suiro_media::mp4::first_end(data, 1 << 20) {
        assert!(end <= data.len() && end <= 1 << 20, "a chunk lies within its bytes");
    }
    let _ = suiro_media::mp4::ends(data);
}

/// An MPEG-2 video elementary stream, cut into frames.
pub fn quantised(data: &[u8]) {
    let Ok(pictures) = suiro_media::quantised::parse(data) else { return };
    let mut next = 0;
    for picture in &pictures {
        assert_eq!(picture.offset, next, "every byte belongs to one frame");
        next += u64::from(picture.bytes);
    }
    assert!(pictures.is_empty() || next == data.len() as u64);
}

/// A segment of an MPEG-2 transport stream, moved in time.
pub fn ts(data: &[u8]) {
    let packets = [Packets { pid: 0x100, count: 15 }, Packets { pid: 0x1fff, count: u64::MAX }];
    for loops in [0, 1, u64::MAX] {
        let shift = Shift::new(Duration::from_millis(2002), loops, &packets);
        let _ = suiro_media::ts::restamp(&mut data.to_vec(), &shift);
    }
}

/// A user's choice of flows; what is accepted reads the same again.
pub fn flow(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match text.parse::<FlowFilter>() {
        Ok(filter) => assert_eq!(filter.to_string().parse(), Ok(filter), "what is accepted stays"),
        Err(error) => assert!(!error.to_string().is_empty(), "an error says something"),
    }
}

/// A trace of a link's rate, in either format.
pub fn trace(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(opportunities) = parse_mahimahi(text) {
        let _ = (opportunities.period(), opportunities.mean());
    }
    for repeat in [false, true] {
        if let Ok(curve) = parse_csv(text, repeat) {
            let _ = (curve.mean(), curve.carries());
            let _ = (curve.at(Time::ZERO), curve.at(Time::ZERO + Duration::from_secs(1 << 20)));
        }
    }
}

/// The kernel's answers about sockets.
pub fn sock_diag(data: &[u8]) {
    for message in diag::messages(data) {
        let Ok(message) = message else { return };
        if let diag::Body::Socket(sample) = message.body {
            let _ = (sample.id.local(), sample.id.remote(), sample.id.cookie());
            let _ = sample.info.map(|info| (info.in_flight(), info.congestion_state()));
        }
    }
}

/// The first page of a frame store.
pub fn frame_store(data: &[u8]) {
    // Behind the checksum, which random input does not find.
    let mut page = Header::new(Geometry::HD, Content::Picture).encode();
    for (byte, data) in page[..128].iter_mut().zip(data) {
        *byte = *data;
    }
    let sum = suiro_uncompressed::checksum::of_frame(&page[..4088]);
    page[4088..].copy_from_slice(&sum.to_le_bytes());
    if let Ok(header) = Header::decode(&page) {
        assert_eq!(header.encode()[..88], page[..88], "what is accepted is written the same");
        let _ = header.slot_offset(header.frames);
    }
    let _ = Header::decode(data);
    let _ = synth::verify(&Geometry::HD, data);
}

/// A datagram at the port of a stream of uncompressed video.
pub fn uncompressed_packet(data: &[u8]) {
    for (format, geometry) in
        [(Format::St2110, Geometry::HD), (Format::Raster, Geometry::HD_RASTER)]
    {
        let layout = Layout::new(format, &geometry, STUDY_PACKET_BYTES).expect("there is room");
        let Ok(received) = layout.parse(data, PAYLOAD_TYPE) else { continue };
        for (offset, piece) in received.pieces() {
            assert!(offset + piece.len() <= layout.frame_bytes(), "{offset} + {}", piece.len());
        }
    }
}

/// Datagrams of a stream from two paths, at any time: each has a path, a delay, a length and its bytes.
pub fn uncompressed_merge(data: &[u8]) {
    /// Checks that frames are handed on in order, each once.
    #[derive(Default)]
    struct InOrder(Option<u64>);
    impl Output for InOrder {
        fn frame(&mut self, frame: &suiro_uncompressed::receive::Frame, _: &[u8]) {
            assert!(self.0.is_none_or(|last| frame.number > last), "{:?} {}", self.0, frame.number);
            self.0 = Some(frame.number);
        }
        fn event(&mut self, _: Time, _: What) {}
    }
    let geometry: Geometry = "64x4 4:2:2 10 50".parse().expect("it is a geometry");
    let layout = Layout::new(Format::Raster, &geometry, 384).expect("there is room");
    let epoch = Epoch::measured(Time::from_secs(5), Time::from_secs(5));
    let mut merge = Merge::new(layout, PAYLOAD_TYPE, epoch, Duration::from_millis(30));
    let paths =
        [merge.join(0, None), merge.join(2, Some(97))].map(|slot| slot.expect("there are slots"));
    let (mut now, mut rest, mut out) = (Time::from_secs(5), data, InOrder::default());
    while let [head, length, tail @ ..] = rest {
        let (bytes, after) = tail.split_at(tail.len().min(usize::from(*length) * 2));
        now += Duration::from_micros(u64::from(head >> 1) * 200);
        merge.datagram(now, paths[usize::from(head & 1)], bytes, &mut out);
        merge.tick(now, &mut out);
        rest = after;
    }
    merge.tick(now + Duration::from_secs(2), &mut out);
}

/// A session description from any sender.
pub fn uncompressed_sdp(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(error) = Announced::read(text) {
        assert!(!error.to_string().is_empty(), "an error says something");
    }
    match text.parse::<Description>() {
        Ok(description) => {
            let again = description.to_string().parse::<Description>();
            let again = again.expect("what is written can be read");
            assert_eq!(again.geometry, description.geometry);
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error says something"),
    }
}

/// A capture of any tool, joined with itself, and the timing of its streams.
pub fn capture(data: &[u8]) {
    timing(data);
    let Ok(capture) = Capture::read(data) else { return };
    let ends = Ends { first_address: None, same_clock: capture.cut };
    match recordings([&capture, &capture], ["a", "b"], ends) {
        Ok([first, second]) => {
            let report = joined(&first, &second);
            assert!(report.accounts.iter().all(|account| account.is_conserved()), "it adds up");
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error says something"),
    }
}

/// The timing of the streams of a capture: every packet has its C_INST, and what cannot be analysed is named.
fn timing(data: &[u8]) {
    let capture = timing::Capture { name: "a", content: data };
    match timing::analyze(&[capture, capture], &timing::Options::default()) {
        Ok(analysis) => {
            for report in &analysis.streams {
                let counted: u64 = report.c_inst.histogram.iter().map(|(_, times)| times).sum();
                assert_eq!(counted, report.packets as u64, "each packet is counted");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty(), "an error says something"),
    }
}

/// A packet of a video call, and the same once more.
pub fn conference(data: &[u8]) {
    let size = Size::new(16, 16).expect("a multiple of 16");
    let mut receiver = CallReceiver::new(size);
    receiver.on_packet(Time::ZERO, data);
    receiver.on_packet(Time::from_secs(1), data);
    let counters = receiver.counters();
    assert_eq!(counters.packets + counters.refused, 2, "each packet is counted once");
    while receiver.take_seen().is_some() {}
}

fn origin() -> Url {
    Url::parse("http://server:8080/live/manifest").expect("it is a URL")
}

/// Packets one after the other, each after its length in two bytes, whose first bit says that it is for
/// the RTCP port; a millisecond apart.
fn packets(mut data: &[u8]) -> impl Iterator<Item = (Time, bool, &[u8])> {
    (0..1000).map_while(move |n| {
        let (length, rest) = data.split_first_chunk::<2>()?;
        let length = u16::from_be_bytes(*length);
        let (packet, rest) = rest.split_at(rest.len().min(usize::from(length & 0x7fff)));
        data = rest;
        Some((Time::from_millis(n), length >> 15 == 1, packet))
    })
}

/// Anything at the ports of a receiver, of either codec.
pub fn rtp(data: &[u8]) {
    for (codec, payload_type) in [(Codec::H264, 96), (Codec::Mpeg2, 32)] {
        let config = receiver::Config {
            codec,
            payload_type,
            again_type: Some(97),
            cname: "fuzz".into(),
            answer: true,
            feedback: Some(Duration::from_millis(5)),
            policy: suiro_viewer::Policy::default(),
            epoch_unix_ns: 1,
        };
        let mut receiver = Receiver::new(Time::ZERO, config, Seed(1).random());
        for (now, rtcp, packet) in packets(data) {
            if rtcp {
                receiver.on_rtcp(now, packet);
            } else {
                receiver.on_rtp(now, packet, 0);
            }
            // What is due, and no more: an endless answer would be found here.
            let sent = std::iter::from_fn(|| receiver.poll(now)).take(100).count();
            assert!(sent < 100, "it does not stop sending");
            while receiver.take_seen().is_some() {}
        }
        let end = receiver.next_event().unwrap_or(Time::ZERO).max(Time::from_secs(2));
        receiver.finish(end);
    }
}

/// A request at a resource of WHIP or WHEP: a line with method, path and type, and a body. What is refused has a status
/// of a refusal, and a fragment has no more candidates than are taken.
pub fn whip(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (head, body) = text.split_once('\n').unwrap_or((text, ""));
    let mut words = head.splitn(3, ' ').map(str::to_owned);
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
        None => (target, None),
    };
    let ask = Ask {
        method,
        path,
        query,
        content_type: words.next(),
        body: body.to_owned(),
        ..Ask::default()
    };
    let signalling = suiro_record::words::Signalling::Whep;
    match (Door { signalling, token: None }).judge(&ask) {
        Ok(Command::Trickle(name, _, fragment)) => {
            assert!(!name.is_empty() && fragment.candidates.len() <= 32);
        }
        Ok(Command::Offer(offer, _)) => assert_eq!(offer, body),
        Ok(Command::Delete(name)) => assert!(!name.contains('/')),
        Err(Reply { status, .. }) => assert!(status == 204 || (400..500).contains(&status)),
    }
}

/// What comes by Media over QUIC and is read by us: objects of video and data tracks, catalogs, and paths of sessions.
pub fn moq(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else { return };
    match kind {
        b'o' => {
            let Ok(picture) = container::read(rest) else { return };
            if let Some(mark) = picture.mark {
                let again =
                    container::read(&container::write(picture.time_us, mark, &picture.data));
                assert_eq!(again, Ok(picture));
            }
        }
        b'c' => {
            let Ok(catalog) = Catalog::read(rest) else { return };
            let again = Catalog::read(&catalog.write()).map_err(|error| error.to_string());
            if let Ok(tracks) = catalog.playable() {
                assert_eq!(again.as_ref().map(|again| again.playable().ok()), Ok(Some(tracks)));
            }
        }
        b'd' => {
            let Ok(message) = data::read(rest) else { return };
            let again = data::read(&data::write(message, data::Format::Json, rest.len()));
            assert_eq!(again.ok(), Some(message));
        }
        b'r' => {
            let Ok(catalog) = cmaf::Catalog::read(rest) else { return };
            let _ = catalog.choose();
        }
        b'i' => {
            // An initialisation segment, its length before it, and a fragment.
            let Some((size, rest)) = rest.split_first_chunk() else { return };
            let size = usize::from(u16::from_be_bytes(*size));
            let Some((init, fragment)) = rest.split_at_checked(size) else { return };
            let Ok(unpacker) = cmaf::Unpacker::new(init) else { return };
            let _ = unpacker.read(fragment);
        }
        _ => {
            let Ok(text) = std::str::from_utf8(rest) else { return };
            let (root, token) = relay::split(text);
            assert!(!root.starts_with('/') && token.is_none_or(|token| text.contains(token)));
        }
    }
}

/// Streams that carry out every command.
struct Obedient;

impl Media for Obedient {
    fn activate(
        &mut self,
        _: &Id,
        wanted: &Wanted,
        now: Tai,
        at: Option<Tai>,
    ) -> Result<Tai, String> {
        assert_eq!(wanted.legs.len(), 2);
        Ok(at.unwrap_or(now))
    }

    fn cancel(&mut self, _: &Id, _: Option<&Wanted>) -> Result<(), String> {
        Ok(())
    }

    fn fits(&self, _: &Id, _: &Description) -> Result<(), String> {
        Ok(())
    }

    fn description(&self, _: &Id, _: &Wanted, _: Tai) -> Option<String> {
        None
    }
}

/// A request to stage parameters of a sender and of a receiver (IS-05): the body of a PATCH.
pub fn nmos_connection(data: &[u8]) {
    let now = Tai::from_nanos(1_000_000_000_000);
    let interfaces = vec![[192, 0, 2, 1].into(), [192, 0, 2, 2].into()];
    for side in [Side::Sender, Side::Receiver] {
        let own = Own { interfaces: interfaces.clone(), destinations: Vec::new() };
        let mut connection = Connection::new(Id::named("fuzz"), side, own, now);
        let before = connection.clone();
        let ask = NmosAsk { body: data.to_vec(), ..NmosAsk::json("PATCH", "/", &().into()) };
        let reply = connection.answer(now, &["staged"], &ask, &mut Obedient);
        match reply.status {
            200 | 202 => assert!(reply.value()["transport_params"].is_array()),
            status => {
                assert!(matches!(status, 400 | 413 | 500), "{status}");
                assert_eq!(reply.value()["code"], status);
                assert!(connection == before, "a refused request changed something");
            }
        }
    }
}

/// A request to a registry (IS-04): `METHOD PATH?QUERY` on the first line, then the body. The same bytes are the key of a
/// client's WebSocket (RFC 6455).
pub fn nmos_registry(data: &[u8]) {
    let key = std::str::from_utf8(data).ok().and_then(websocket::accept);
    assert!(key.is_none_or(|accept| accept.len() == 28));
    let at = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let Ok(head) = std::str::from_utf8(&data[..at]) else { return };
    let (method, place) = head.split_once(' ').unwrap_or((head, ""));
    let (path, query) = place.split_once('?').unwrap_or((place, ""));
    let ask = NmosAsk {
        method: method.to_owned(),
        path: path.to_owned(),
        query: Some(query.to_owned()),
        content_type: Some("application/json".to_owned()),
        body: data.get(at + 1..).unwrap_or_default().to_vec(),
        ..NmosAsk::default()
    };
    let mut registry = Registry::default();
    let moment = |seconds: u64| Moment {
        tai: Tai::from_nanos(seconds * 1_000_000_000),
        monotonic: Time::from_secs(seconds),
    };
    for seconds in [0, 1, 60] {
        let reply = registry.answer(moment(seconds), &ask, &NmosDoor::open());
        assert!(reply.status < 400 || reply.value()["code"] == reply.status, "{}", reply.body);
    }
}

/// What a DNS server answers about registries, and a resolv.conf.
pub fn dns_sd(data: &[u8]) {
    const KIND: &str = "_nmos-register._tcp.studio.example";
    let mut known = Targets::default();
    discovery::targets(data, &mut known);
    let wanted = discovery::Wanted { tls: true, token: false };
    for own in discovery::services(data, KIND) {
        let key = own.to_ascii_lowercase();
        let Some((host, port)) = known.hosts.get(&key) else { continue };
        let texts = known.texts.get(&key).cloned().unwrap_or_default();
        let addresses =
            known.addresses.get(&host.to_ascii_lowercase()).cloned().unwrap_or_default();
        if let Some(found) = wanted.candidate((host, *port), &addresses, &texts) {
            assert!(found.pri < 100 && !found.base.host.is_empty(), "{found:?}");
        }
    }
    let resolvers = Resolvers::parse(&String::from_utf8_lossy(data));
    assert!(resolvers.servers.len() <= 3 && resolvers.domains.len() <= 6, "{resolvers:?}");
}

/// A desired state of a stream server: what is read comes back from its own text; an error must be printable.
pub fn desired_state(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Desired::parse(text, "fuzz.toml") {
        Ok(desired) => assert_eq!(Desired::parse(&desired.text(), "again"), Ok(desired)),
        Err(error) => assert!(!error.to_string().is_empty(), "an error says something"),
    }
}
