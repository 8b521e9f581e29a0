//! What an origin reports to a client with a response (CMSD): about the object, and about the connection.

use hyper::Response;
use hyper::http::request::Parts;
use suiro_units::{Duration, Time, to_i64};

use super::catalogue::Container;
use super::serve::{Brings, Service, Which, parse_file};
use super::timeline::Schedule;
use super::{MPD_PATH, TIME_PATH};
use crate::cmsd::{self, Cmsd, Object};
use crate::presentation::TrackKind;
use crate::server::{Body, connection};

impl Service {
    /// Adds what is known of the answer to a request that came at `asked`, if the server is to report it.
    pub(super) fn tell(
        &self,
        asked: Time,
        request: &Parts,
        brings: Brings,
        response: &mut Response<Body>,
    ) {
        let Some(name) = &self.cmsd else { return };
        // CTA-5006: until the first byte of the body can be sent. Of media that is still to be captured, the head leaves before.
        let begins = self.clock.now().max(brings.begins.unwrap_or(asked));
        let delay = begins.saturating_since(asked).as_nanos() / 1_000_000;
        let known = Cmsd { delay_ms: Some(to_i64(delay)), ..connection(request) };
        let is_success = response.status().is_success();
        let headers = response.headers_mut();
        if let Some(value) = known.written(name) {
            headers.insert(cmsd::DYNAMIC, value);
        }
        let object = self.object(request.uri.path(), brings).filter(|_| is_success);
        if let Some(value) = object.and_then(|object| object.written(name)) {
            headers.insert(cmsd::STATIC, value);
        }
    }

    /// What is at a path.
    fn object(&self, path: &str, brings: Brings) -> Option<Object> {
        let live = matches!(self.catalogue.schedule, Schedule::Live { .. });
        let stream = if live { "l" } else { "v" };
        let ms = |span: Duration| to_i64((span.as_nanos() + 500_000) / 1_000_000);
        let held_ms = brings.held.map(ms);
        let other = |kind, format| Object {
            kind,
            format,
            stream,
            bitrate_bps: None,
            duration_ms: None,
            held_ms,
        };
        if path == TIME_PATH {
            return Some(other("o", None));
        }
        let Some((id, file)) = path.strip_prefix('/')?.split_once('/') else {
            let format = if path == MPD_PATH { "d" } else { "h" };
            let is_manifest = path == MPD_PATH || path.ends_with(".m3u8");
            return is_manifest.then(|| other("m", Some(format)));
        };
        let (container, which) = parse_file(file)?;
        let (track, rung) = self.catalogue.find(id, container)?;
        let entry = &self.catalogue.tracks[track];
        let rung = &entry.rungs[rung];
        let span = match which {
            Which::Init => return Some(other("i", None)),
            Which::Number(number) => Some(rung.timeline.place(number)),
            Which::Start(ticks) => rung.timeline.number_at(ticks).map(|n| rung.timeline.place(n)),
            Which::Part(..) => None,
        };
        let duration = match which {
            Which::Part(number, part) => Some(rung.chunks.as_ref()?.part(number, part)?.duration),
            _ => span.map(|place| rung.timeline.time(place.duration)),
        };
        // CTA-5006: the mean over the object, where the rate varies.
        let measured = duration.filter(|span| !span.is_zero()).zip(brings.bytes);
        let rate = measured.map(|(span, bytes)| bytes / span);
        Some(Object {
            kind: if entry.kind == TrackKind::Video { "v" } else { "a" },
            format: match (container, which) {
                (Container::MpegTs, _) | (_, Which::Part(..)) => Some("h"),
                (Container::Fmp4, Which::Start(_)) => Some("d"),
                // In chunks, DASH counts segments as well.
                _ => rung.chunks.is_none().then_some("h"),
            },
            stream,
            bitrate_bps: rate.map(|rate| to_i64(rate.as_bps())),
            duration_ms: duration.map(ms),
            held_ms,
        })
    }
}
