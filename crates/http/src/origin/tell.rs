//! What an origin reports to a client with a response (CMSD): about the object, and about the connection.

use std::os::fd::AsFd;

use hyper::StatusCode;
use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use moq_noq::{Connection, PathId};
use suiro_serving::Socket;
use suiro_tcp::socket_info;
use suiro_units::{Time, to_i64};

use super::serve::{Service, Which, parse_file};
use super::timeline::Schedule;
use super::{MPD_PATH, TIME_PATH};
use crate::cmsd::{self, Cmsd, Object};
use crate::presentation::TrackKind;

impl Service {
    /// Adds what is known of the answer to a request that came at `asked`, if the server is to report it.
    pub(super) fn tell(
        &self,
        asked: Time,
        request: &Parts,
        status: StatusCode,
        headers: &mut HeaderMap,
    ) {
        let Some(name) = &self.cmsd else { return };
        let delay = self.clock.now().saturating_since(asked).as_nanos() / 1_000_000;
        let known = Cmsd { delay_ms: Some(to_i64(delay)), ..connection(request) };
        if let Some(value) = known.written(name) {
            headers.insert(cmsd::DYNAMIC, value);
        }
        let object = self.object(request.uri.path()).filter(|_| status.is_success());
        if let Some(value) = object.and_then(|object| object.written(name)) {
            headers.insert(cmsd::STATIC, value);
        }
    }

    /// What is at a path.
    fn object(&self, path: &str) -> Option<Object> {
        let live = matches!(self.catalogue.schedule, Schedule::Live { .. });
        let stream = if live { "l" } else { "v" };
        let other = |kind| Object { kind, stream, bitrate_bps: None, duration_ms: None };
        if path == TIME_PATH {
            return Some(other("o"));
        }
        let Some((id, file)) = path.strip_prefix('/')?.split_once('/') else {
            return (path == MPD_PATH || path.ends_with(".m3u8")).then(|| other("m"));
        };
        let (container, which) = parse_file(file)?;
        let (track, rung) = self.catalogue.find(id, container)?;
        let entry = &self.catalogue.tracks[track];
        let rung = &entry.rungs[rung];
        let span = match which {
            Which::Init => return Some(other("i")),
            Which::Number(number) => Some(rung.timeline.place(number)),
            Which::Start(ticks) => rung.timeline.number_at(ticks).map(|n| rung.timeline.place(n)),
            Which::Part(..) => None,
        };
        let duration = match which {
            Which::Part(number, part) => Some(rung.chunks.as_ref()?.part(number, part)?.duration),
            _ => span.map(|place| rung.timeline.time(place.duration)),
        };
        Some(Object {
            kind: if entry.kind == TrackKind::Video { "v" } else { "a" },
            stream,
            bitrate_bps: Some(rung.rate.as_bps()),
            duration_ms: duration.map(|span| (span.as_nanos() + 500_000) / 1_000_000),
        })
    }
}

/// What is known of the connection that a request came on.
fn connection(request: &Parts) -> Cmsd {
    let socket = request.extensions.get::<Socket>();
    if let Some(info) = socket.and_then(|socket| socket_info(socket.as_fd()).ok()) {
        let rate = info.delivery_rate.map(|bytes| to_i64(bytes.saturating_mul(8)));
        let rtt = i64::from(info.rtt_us.div_ceil(1000));
        return Cmsd { throughput_bps: rate, rtt_ms: Some(rtt), ..Cmsd::default() };
    }
    let quic = request.extensions.get::<Connection>();
    let path = quic.and_then(|connection| connection.path_stats(PathId::ZERO));
    let rtt = path
        .map(|path| to_i64(u64::try_from(path.rtt.as_micros()).unwrap_or(u64::MAX).div_ceil(1000)));
    Cmsd { rtt_ms: rtt, ..Cmsd::default() }
}
