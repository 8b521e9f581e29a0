//! What an origin reports with its responses (CMSD, CTA-5006), computed by hand.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use hyper::Request;
use hyper::header::{CONTENT_RANGE, HOST, HeaderMap, HeaderName, RANGE};
use suiro_units::Duration;

use super::Media;
use super::catalogue::Catalogue;
use super::parts_tests::{ZERO, catalogue};
use super::serve::Service;
use crate::{Clock, cmsd};

/// The size of a chunk: 10,000 bytes in a twelfth of a second are 960 kbit/s, and the peak of the catalogue is 500.
const CHUNK: u32 = 10_000;

/// Segments of as many chunks as those of the video have.
struct Even;

impl Media for Even {
    fn init(&self, _: usize, _: usize) -> io::Result<Bytes> {
        Ok(Bytes::from_static(b"init"))
    }

    fn segment(&self, _: usize, _: usize, _: u64) -> io::Result<Bytes> {
        let mut chunk = CHUNK.to_be_bytes().to_vec();
        chunk.extend_from_slice(b"mdat");
        chunk.resize(CHUNK as usize, 0);
        Ok(chunk.repeat(24).into())
    }
}

/// What the origin of a stream answers 21.1 s after its beginning. The epoch is ahead, so the clock does not go on by itself.
async fn answer(catalogue: Catalogue, path: &str, name: HeaderName, value: &str) -> HeaderMap {
    let epoch = Clock::new(0, 0).now() + Duration::from_secs(3600);
    let clock = Clock::new(epoch.as_nanos(), ZERO + 21_100_000_000);
    let own = Some("origin".to_owned());
    let service = Service::new(catalogue, Arc::new(Even), clock, 0, None, own);
    let request = Request::get(path).header(name, value).body(Ok(Bytes::new())).expect("a request");
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    Arc::new(service).respond(peer, request).await.into_parts().0.headers
}

fn text(headers: &HeaderMap, name: HeaderName) -> String {
    headers.get(name).map_or("", |value| value.to_str().expect("ASCII")).to_owned()
}

/// What it reports of the object and of the response.
async fn reported(catalogue: Catalogue, path: &str) -> [String; 2] {
    let headers = answer(catalogue, path, HOST, "origin").await;
    [text(&headers, cmsd::STATIC), text(&headers, cmsd::DYNAMIC)]
}

/// Segment 10 began at 20 s, and its third part at 21 s.
#[tokio::test(start_paused = true)]
async fn the_delay_lasts_until_there_is_a_body_to_send() {
    for (path, object, delay_ms) in [
        ("/v0/9.m4s", "br=960,d=2000,n=\"origin\",ot=v,st=l", 0),
        // Its first chunk is there.
        ("/v0/10.m4s", "br=960,d=2000,n=\"origin\",ot=v,st=l", 0),
        // Its first chunk will be at 22.0833 s.
        ("/v0/11.m4s", "br=960,d=2000,n=\"origin\",ot=v,st=l", 983),
        ("/v0/10.1.m4s", "br=960,d=500,n=\"origin\",ot=v,sf=h,st=l", 0),
        // All of it will be at 21.5 s.
        ("/v0/10.2.m4s", "br=960,d=500,ht=400,n=\"origin\",ot=v,sf=h,st=l", 400),
        ("/v0/init.mp4", "n=\"origin\",ot=i,st=l", 0),
        ("/manifest.mpd", "n=\"origin\",ot=m,sf=d,st=l", 0),
        ("/time", "n=\"origin\",ot=o,st=l", 0),
        ("/v0.m3u8", "n=\"origin\",ot=m,sf=h,st=l", 0),
        ("/v0.m3u8?_HLS_msn=10&_HLS_part=1", "n=\"origin\",ot=m,sf=h,st=l", 0),
        ("/v0.m3u8?_HLS_msn=10&_HLS_part=2", "ht=400,n=\"origin\",ot=m,sf=h,st=l", 400),
        ("/v0.m3u8?_HLS_msn=10", "ht=900,n=\"origin\",ot=m,sf=h,st=l", 900),
    ] {
        let expected = [object.to_owned(), format!("\"origin\";rd={delay_ms}")];
        assert_eq!(reported(catalogue(500), path).await, expected, "{path}");
    }
}

/// Without chunks, HLS names segments by number and DASH by time, here 18 s.
#[tokio::test(start_paused = true)]
async fn an_object_has_the_format_that_names_it() {
    for (path, format) in [("/v0/9.m4s", "h"), ("/v0/t432000.m4s", "d")] {
        let mut catalogue = catalogue(500);
        for rung in catalogue.tracks.iter_mut().flat_map(|track| &mut track.rungs) {
            rung.chunks = None;
        }
        let [object, _] = reported(catalogue, path).await;
        assert_eq!(object, format!("br=960,d=2000,n=\"origin\",ot=v,sf={format},st=l"));
    }
}

/// The bit rate is the object's, also if less of it is asked for.
#[tokio::test(start_paused = true)]
async fn a_range_of_an_object_has_its_bit_rate() {
    let headers = answer(catalogue(500), "/v0/9.m4s", RANGE, "bytes=0-99").await;
    assert_eq!(text(&headers, CONTENT_RANGE), "bytes 0-99/240000");
    assert_eq!(text(&headers, cmsd::STATIC), "br=960,d=2000,n=\"origin\",ot=v,st=l");
}
