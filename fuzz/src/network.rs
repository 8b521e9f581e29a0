//! What any machine may send: frames on a link, headers of requests, segments in chunks, session descriptions and packets of
//! WebRTC, streams of WebTransport, sound.

use std::pin::pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use hyper::header::{ACCEPT_ENCODING, HeaderValue};
use suiro_http::forwarded::Asked;
use suiro_http::origin::parts;
use suiro_http::player::check_chunks;
use suiro_http::priority::Priority;
use suiro_http::server::range::{Part, part};
use suiro_http::{caching, cmcd, coding, fields};
use suiro_media::mp4;
use suiro_media::sound::{Decoder, Ear, SAMPLES};
use suiro_moq::container;
use suiro_moq::webtransport::{belongs, kind_of_uni};
use suiro_units::{BitRate, Duration, Time};
use suiro_webrtc::peer::{Certificate, Peer, Setup, Way};
use suiro_wire::frame;

/// An Ethernet frame on an emulated link.
pub fn frame(data: &[u8]) {
    let before = frame::parse(data);
    let mut marked = data.to_vec();
    frame::mark_congestion(&mut marked);
    let after = frame::parse(&marked);
    match (&before, &after) {
        (None, None) => assert_eq!(marked, data, "what is not IP stays as it is"),
        (Some(before), Some(after)) => {
            assert!(before.size as usize <= data.len());
            assert!(before.payload.is_none_or(|payload| payload <= before.size));
            assert_eq!((before.size, before.payload), (after.size, after.payload));
            assert_eq!(before.flow.to_string(), after.flow.to_string());
            assert!(after.ecn == 3 || marked == data);
        }
        _ => panic!("a mark changes what a frame carries"),
    }
    let (byte, bit) = (u32::from(data.first().copied().unwrap_or(0)), data.len() as u8);
    frame::flip_bit(&mut marked, byte, bit);
    let _ = frame::parse(&marked);
}

/// CMCD in the query of a request or as events, a priority, and the structured fields that they and CMSD consist of.
pub fn common_media(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for members in [fields::list(text), fields::dictionary(text)].into_iter().flatten() {
        assert!(members.len() <= 64, "{} members", members.len());
    }
    assert!(Priority::parse(text).is_none_or(|priority| priority.urgency <= 7));
    if let Ok(events) = cmcd::events::read(data) {
        assert!((1..=cmcd::events::EVENTS_MAX).contains(&events.len()));
    }
    for query in [text.to_owned(), format!("CMCD={text}")] {
        if let Some(read) = cmcd::read(Some(&query), &Default::default()) {
            assert!(read.said.next.is_none_or(|next| next.len() <= 256));
            assert!(read.said.session.is_none_or(|session| session.len() <= 64));
            assert!(read.said.content.is_none_or(|content| content.len() <= 128));
        }
        assert!(cmcd::without(&format!("/a?{query}")).len() <= query.len() + 3);
    }
}

/// A segment that an origin sends in chunks: the length of an initialisation segment in two bytes and that segment, the number
/// of pieces in a byte and the size of each, and the body. However it is cut, the chunks are the same.
pub fn mp4_chunks(data: &[u8]) {
    let Some((size, rest)) = data.split_first_chunk() else { return };
    let size = usize::from(u16::from_be_bytes(*size));
    let Some((init, rest)) = rest.split_at_checked(size) else { return };
    let Some((pieces, rest)) = rest.split_first() else { return };
    let Some((pieces, body)) = rest.split_at_checked(usize::from(*pieces)) else { return };
    let Ok(init) = mp4::init(init) else { return };
    if let Ok(fragments) = mp4::fragments(body, &init) {
        let data = fragments.iter().flat_map(|fragment| &fragment.samples).map(|it| &it.data);
        data.for_each(|data| assert!(data.start <= data.end && data.end <= body.len()));
    }
    let whole = check_chunks(init.clone(), body, []);
    let cut = check_chunks(init, body, pieces.iter().map(|size| usize::from(*size)));
    assert_eq!(cut.ok(), whole.ok());
}

/// What a cache reads of an origin's response: `Cache-Control` and dates; and what an origin reads of a request: `Forwarded`,
/// `If-None-Match`, and a query that asks for a later playlist.
pub fn caching(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let directives = caching::Directives::parse(text);
    let longest = Some(Duration::from_secs(1 << 31));
    assert!(directives.max_age <= longest && directives.shared_max_age <= longest);
    assert!(text.len() <= 4096 || directives.not_shared, "what is too long is not shared");
    if let Some(seconds) = caching::http_date_s(text)
        && let Some(ns) = seconds.checked_mul(1_000_000_000)
    {
        let again = caching::http_date(ns).to_str().ok().and_then(caching::http_date_s);
        assert_eq!(again, Some(seconds));
    }
    assert_eq!(caching::lists_tag(text, "\"a\""), caching::lists_tag(text, "W/\"a\""));
    if let Ok(asked) = parts::Directives::parse(Some(text)) {
        assert!(asked.part.is_none() || asked.segment.is_some());
    }
    if let Some(asked) = Asked::parse(text) {
        let written = asked.written().and_then(|value| value.to_str().ok().and_then(Asked::parse));
        assert!(written.is_none_or(|written| written == asked));
    }
}

/// Content that is said to be gzip, and an `Accept-Encoding` header.
pub fn coding(data: &[u8]) {
    const BYTES_MAX: u64 = 1 << 16;
    if let Ok(content) = coding::gunzip(data, BYTES_MAX) {
        assert!(content.len() as u64 <= BYTES_MAX);
        let again = coding::gunzip(&coding::gzip(&content), BYTES_MAX);
        assert_eq!(again.ok(), Some(content));
    }
    let headers = HeaderValue::from_bytes(data).map(|value| (ACCEPT_ENCODING, value));
    coding::takes_gzip(&headers.into_iter().collect());
}

/// A `Range` header, for bodies of several lengths.
pub fn range(data: &[u8]) {
    let Ok(header) = std::str::from_utf8(data) else { return };
    for length in [0, 1, 1000, u64::MAX] {
        if let Part::Range(first, last) = part(Some(header), length) {
            assert!(first <= last && last < length, "{first} to {last} of {length}");
        }
    }
}

/// The headers of streams in a connection of WebTransport, in which they arrive whole or cut.
pub fn webtransport(data: &[u8]) {
    for end in [data.len(), data.len() / 2] {
        let (mut uni, mut bi) = (&data[..end], &data[..end]);
        let _ = now(kind_of_uni(&mut uni, 4));
        let _ = now(belongs(&mut bi, 4));
        assert!(uni.len() <= end && bi.len() <= end);
    }
}

/// The result of what need not wait.
fn now<T>(work: impl Future<Output = T>) -> T {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("bytes in memory are there"),
    }
}

static CERTIFICATE: LazyLock<Certificate> =
    LazyLock::new(|| Certificate::generate().expect("the system has random numbers"));
#[expect(clippy::disallowed_methods, reason = "str0m counts from an instant, whichever")]
static ZERO: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A session description up to a zero byte, and then packets, each after its length in two bytes: of one that publishes,
/// and of one that views.
pub fn webrtc_peer(data: &[u8]) {
    let (offer, packets) = match data.iter().position(|byte| *byte == 0) {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &[][..]),
    };
    let Ok(offer) = std::str::from_utf8(offer) else { return };
    let local = "10.0.0.1:5000".parse().expect("it is an address");
    let remote = "10.0.0.2:5000".parse().expect("it is an address");
    for way in [Way::Sends, Way::Receives] {
        let setup = Setup {
            way,
            local: vec![local],
            certificate: CERTIFICATE.clone(),
            rates: (BitRate::from_kbps(300), BitRate::from_kbps(2500)),
            answers: true,
            sound: true,
            plain: true,
        };
        let mut at = Time::from_secs(1);
        let mut peer = Peer::new(at, *ZERO, setup).expect("the address can be a candidate");
        if let Ok(answer) = peer.answer(at, offer) {
            assert!(answer.starts_with("v=0\r\n"), "{answer}");
        }
        for (_, _, packet) in crate::packets(packets).take(100) {
            at += Duration::from_millis(1);
            if peer.on_packet(at, (remote, local), packet).is_err() {
                break;
            }
            let sent = std::iter::from_fn(|| peer.take_transmit()).take(1000).count();
            assert!(sent < 1000, "it does not stop sending");
            while peer.take_happened().is_some() {}
        }
    }
}

/// Objects of a track of sound, each after its length in two bytes, whose first bit says that it did not come. Whatever they
/// are, the decoder says something of a bounded length, and conceals afterwards.
pub fn sound(data: &[u8]) {
    let mut decoder = Decoder::new().expect("48 kHz and one channel can be decoded");
    let mut ear = Ear::default();
    for (_, lost, object) in crate::packets(data).take(50) {
        if let (false, Ok((_, packet))) = (lost, container::read_sound(object))
            && let Ok(said) = decoder.decode(&packet)
        {
            assert!(said.len() <= 6 * SAMPLES, "{} samples", said.len());
            ear.hear(said);
        } else if let Ok(said) = decoder.conceal() {
            assert!(said.len() <= SAMPLES, "{} samples", said.len());
            ear.hear(said);
        }
    }
}
