//! What players report by POST: events (CMCD, CTA-5004-B §2.2 and §3.3).

use std::net::SocketAddr;

use hyper::header::CONTENT_TYPE;
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use suiro_units::Time;

use super::serve::Service;
use crate::cmcd::events::{self, Event, MEDIA_TYPE};
use crate::http3::client::Early;
use crate::server::{BODY_MAX, Body, Posted, Unread, refusal};

impl Service {
    /// Records the events of a request that came at `came`. If one line of it is no event, it records none.
    pub(super) fn take_events(
        &self,
        came: Time,
        peer: SocketAddr,
        head: &Parts,
        body: Posted,
    ) -> Response<Body> {
        match read(head, body) {
            Ok(events) => {
                if let Some(log) = &self.log {
                    log.report(came, peer, self.clock.epoch_unix_ns(), events);
                }
                // §5: players expect this one.
                let mut response = Response::new(Body::EMPTY);
                *response.status_mut() = StatusCode::NO_CONTENT;
                response
            }
            Err((status, reason)) => refusal(status, &reason),
        }
    }
}

fn read(head: &Parts, body: Posted) -> Result<Vec<Event>, (StatusCode, String)> {
    // RFC 8470 §3: it may be a replay, and an event counts once.
    if head.extensions.get::<Early>().is_some() {
        return Err((StatusCode::TOO_EARLY, "events are taken after the handshake".into()));
    }
    let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case(MEDIA_TYPE) {
        let reason = format!("expected content of type {MEDIA_TYPE}");
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
    }
    let body = body.map_err(|unread| match unread {
        Unread::TooLong => {
            (StatusCode::PAYLOAD_TOO_LARGE, format!("the body is longer than {BODY_MAX} bytes"))
        }
        Unread::Late => (StatusCode::REQUEST_TIMEOUT, "the body has not come in time".into()),
        Unread::Cut => (StatusCode::BAD_REQUEST, "the body was cut off".into()),
    })?;
    events::read(&body).map_err(|problem| (StatusCode::BAD_REQUEST, problem))
}

#[cfg(test)]
mod tests {
    use hyper::Request;
    use hyper::body::Bytes;

    use super::*;

    #[test]
    fn events_that_came_before_the_handshake_are_refused() {
        let request = Request::post("/cmcd").header(CONTENT_TYPE, MEDIA_TYPE);
        let (mut head, ()) = request.body(()).expect("a request").into_parts();
        let body = || Ok(Bytes::from_static(b"e=ps,sta=p,ts=1700000000000,v=2\n"));
        assert!(read(&head, body()).is_ok());
        head.extensions.insert(Early);
        let refused = read(&head, body()).expect_err("it may be a replay");
        assert_eq!(refused.0, StatusCode::TOO_EARLY);
    }
}
