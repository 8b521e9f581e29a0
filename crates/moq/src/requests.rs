//! The subscriptions that a connection has asked for, so that they can be cancelled while their tracks are still read.
//!
//! A viewer that changes to another quality wants what is on its way of the old one, and nothing more. It cancels a request
//! with STOP_SENDING on the stream that answers it, and the publisher resets the streams of the subscription
//! (draft-ietf-moq-transport-18, Subscription State Management). What was sent before arrives before these resets.
//! moq-net sends it only when the track has no reader left, and then drops its open groups with all that has arrived of them.
//! docs/method.md (Changing quality) names the places. So the adapter to QUIC sends it earlier. moq-net gets no end of that
//! stream, which it would take for the end of the track. The sending direction stays open until moq-net ends it.
//!
//! Until draft 16 all requests share one stream, and none can be cancelled here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use crate::order::{integer, is_of_quic};
use crate::signal::Signal;

/// The code of a request that is cancelled: `CANCELLED` of moq-transport, in all drafts since 17.
pub(crate) const CODE: u32 = 0x1;
/// The type of the message that asks for a subscription.
const SUBSCRIBE: u8 = 0x3;
/// Its message has one field more.
const DRAFT_17: &str = "moqt-17";

/// The tracks that a connection has subscribed to, by their names.
#[derive(Debug, Default)]
pub struct Requests(Mutex<BTreeMap<String, Weak<Signal>>>);

impl Requests {
    /// Cancels the newest subscription to a track: the peer sends nothing more, and what is on its way is received. Returns
    /// whether there is one that can be cancelled. To its readers, the track goes on without groups.
    pub fn cancel(&self, track: &str) -> bool {
        let tracks = self.0.lock().expect("no holder panics");
        let cancelled = tracks.get(track).and_then(Weak::upgrade);
        drop(tracks);
        cancelled.inspect(|cancelled| cancelled.give()).is_some()
    }

    fn insert(&self, track: String, cancelled: &Arc<Signal>) {
        let mut tracks = self.0.lock().expect("no holder panics");
        tracks.retain(|_, other| other.strong_count() > 0);
        tracks.insert(track, Arc::downgrade(cancelled));
    }
}

/// The beginning of a stream with which this end asks for something, until it is known what that is.
#[derive(Debug)]
pub(crate) struct Request {
    requests: Arc<Requests>,
    cancelled: Arc<Signal>,
    /// At most one message of 64 kB.
    written: Vec<u8>,
}

impl Request {
    /// A stream that begins. Also returns what is given when its request is cancelled.
    pub fn new(requests: &Arc<Requests>) -> (Self, Arc<Signal>) {
        let (requests, cancelled) = (Arc::clone(requests), Arc::<Signal>::default());
        let request = Self { requests, cancelled: Arc::clone(&cancelled), written: Vec::new() };
        (request, cancelled)
    }

    /// Takes what was written next. Returns whether it is known now what is asked for.
    pub fn is_known(&mut self, protocol: Option<&str>, written: &[u8]) -> bool {
        self.written.extend_from_slice(written);
        match asked(protocol, &self.written) {
            Asked::Track(track) => self.requests.insert(track, &self.cancelled),
            Asked::Other => {}
            Asked::Short => return false,
        }
        true
    }
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    /// A subscription to this track.
    Track(String),
    Other,
    /// That is not known before more is written.
    Short,
}

fn asked(protocol: Option<&str>, written: &[u8]) -> Asked {
    if is_of_quic(protocol) {
        return Asked::Other;
    }
    match written {
        [] | [SUBSCRIBE] | [SUBSCRIBE, _] => Asked::Short,
        [SUBSCRIBE, high, low, rest @ ..] => {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            match rest.get(..length) {
                Some(message) => track(protocol, message).map_or(Asked::Other, Asked::Track),
                None => Asked::Short,
            }
        }
        _ => Asked::Other,
    }
}

/// The name of the track in a SUBSCRIBE message: after the number of the request and the fields of the namespace.
fn track(protocol: Option<&str>, mut message: &[u8]) -> Option<String> {
    let rest = &mut message;
    integer(false, rest)?;
    if protocol == Some(DRAFT_17) {
        integer(false, rest)?;
    }
    for _ in 0..integer(false, rest)? {
        text(rest)?;
    }
    String::from_utf8(text(rest)?.to_vec()).ok()
}

/// Takes a text, which begins with its length, from the front.
fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(integer(false, bytes)?).ok()?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    /// A message that asks for the track `video` of `yard/camera`, without parameters. `numbers` come before the namespace.
    fn subscribe(numbers: &[u8]) -> Vec<u8> {
        let message = [numbers, b"\x02\x04yard\x06camera\x05video", &[0]].concat();
        [&[SUBSCRIBE, 0, message.len() as u8][..], &message].concat()
    }

    fn is_given(signal: &Signal) -> bool {
        signal.is_given(&Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_subscription_is_asked_for_by_the_name_of_its_track() {
        let video = Asked::Track("video".to_owned());
        // The number of the request has one byte, then two.
        for numbers in [&[6][..], &[0x81, 0x2c]] {
            let whole = subscribe(numbers);
            assert_eq!(asked(Some("moqt-18"), &whole), video);
            for end in 0..whole.len() {
                assert_eq!(asked(Some("moqt-18"), &whole[..end]), Asked::Short, "{end} bytes");
            }
        }
        assert_eq!(asked(Some("moqt-17"), &subscribe(&[6, 0])), video);
        assert_eq!(asked(Some("moqt-22"), &subscribe(&[6])), video);
    }

    #[test]
    fn what_is_no_subscription_is_none() {
        // A fetch, a name that is cut off, and requests that share a stream.
        assert_eq!(asked(Some("moqt-18"), &[0x16, 0, 1, 0]), Asked::Other);
        assert_eq!(asked(Some("moqt-18"), &[SUBSCRIBE, 0, 4, 6, 0, 5, b'v']), Asked::Other);
        for protocol in ["moq-00", "moqt-15", "moqt-16"] {
            assert_eq!(asked(Some(protocol), &subscribe(&[6])), Asked::Other);
        }
    }

    #[test]
    fn the_newest_subscription_to_a_track_is_cancelled() {
        let requests = Arc::<Requests>::default();
        let ask = || {
            let (mut request, cancelled) = Request::new(&requests);
            let whole = subscribe(&[6]);
            assert!(!request.is_known(Some("moqt-18"), &whole[..1]));
            assert!(request.is_known(Some("moqt-18"), &whole[1..]));
            cancelled
        };
        let (first, second) = (ask(), ask());
        assert!(!requests.cancel("sound") && !is_given(&second));
        assert!(requests.cancel("video") && is_given(&second) && !is_given(&first));
        drop(second);
        assert!(!requests.cancel("video"), "its stream has ended");
    }
}
