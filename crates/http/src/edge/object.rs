//! The objects of a cache: those that it has, and those that are on their way; pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hyper::header::{ETAG, HeaderMap, HeaderValue};
use hyper::{StatusCode, Version};
use suiro_record::words::CacheOutcome;
use suiro_units::Time;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::headers::weight;
use crate::caching::Freshness;
use crate::coding::takes_gzip;
use crate::recent::{Recent, Weighs};

/// The most pieces of an object: one that comes byte by byte must not take many times its size.
const PIECES_MAX: usize = 1 << 16;
/// A piece takes a whole number of these, in bytes, of what all objects on their way may take.
const UNIT_BYTES: usize = 1024;
/// What an entry takes apart from its body and its headers, in bytes; about.
const ENTRY_BYTES: usize = 512;

/// What an origin says before the body.
#[derive(Debug)]
pub(super) struct Head {
    pub status: StatusCode,
    /// What it answered last: 304 if the object was stored before, and is still valid.
    pub answered: StatusCode,
    /// Those of its headers that are passed on.
    pub headers: HeaderMap,
    /// What it was received in.
    pub version: Version,
    /// The body's length, if it is known.
    pub length: Option<u64>,
    pub freshness: Freshness,
}

impl Head {
    /// True if it may answer other requests too. RFC 9111 §3 allows more than 200; of media, nothing else is worth keeping.
    pub fn is_shared(&self) -> bool {
        self.status == StatusCode::OK && self.freshness.is_shared
    }

    /// True if it is of an object that was stored before.
    pub fn is_revalidated(&self) -> bool {
        self.answered != self.status
    }
}

/// An object that the cache has.
#[derive(Debug)]
pub(super) struct Stored {
    pub head: Arc<Head>,
    pub body: Bytes,
}

impl Stored {
    /// Its entity tag, by which the origin can be asked whether it is still valid.
    pub fn tag(&self) -> Option<&HeaderValue> {
        self.head.headers.get(ETAG)
    }
}

impl Weighs for Arc<Stored> {
    fn weight(&self) -> usize {
        self.body.len() + weight(&self.head.headers) + ENTRY_BYTES
    }
}

/// Why an origin's answer did not come, or not all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// What a client gets for it, if nothing was sent yet.
    pub status: StatusCode,
    pub reason: String,
}

/// How much may have come of objects on their way.
pub(super) struct Bounds {
    /// Of one of them, in bytes.
    pub object: u64,
    /// Of all of them, until the last response with them has ended; in units.
    all: Arc<Semaphore>,
}

impl Bounds {
    /// So many bytes of one object, and of all.
    pub fn new(object: u64, all: u64) -> Self {
        let units = usize::try_from(all).unwrap_or(usize::MAX) / UNIT_BYTES;
        Self { object, all: Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS))) }
    }
}

/// The part of an object on its way that has come.
#[derive(Debug, Default)]
pub(super) struct Coming {
    pub head: Option<Arc<Head>>,
    /// None of an object that was stored before: its end has the whole.
    pub pieces: Vec<Bytes>,
    /// Bytes of all pieces.
    pub bytes: u64,
    /// The whole, or why it failed; `None` while more is to come.
    pub end: Option<Result<Bytes, Failure>>,
    /// True if the cache had it, but not fresh.
    pub expired: bool,
    /// The room that its pieces take among all objects, until the last response with them has ended.
    pub room: Option<OwnedSemaphorePermit>,
}

/// Who follows an object on its way.
pub(super) type Following = watch::Receiver<Coming>;

impl Coming {
    /// A piece has come.
    ///
    /// # Errors
    /// Why it is not taken.
    pub fn push(&mut self, piece: Bytes, bounds: &Bounds) -> Result<(), String> {
        self.bytes += piece.len() as u64;
        if self.bytes > bounds.object {
            return Err(format!("the body is larger than {} bytes", bounds.object));
        }
        if self.pieces.len() == PIECES_MAX {
            return Err(format!("the body comes in more than {PIECES_MAX} pieces"));
        }
        let units = u32::try_from(piece.len().div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&bounds.all).try_acquire_many_owned(units) else {
            return Err("there is no room for more of the objects that are on their way".into());
        };
        match &mut self.room {
            Some(taken) => taken.merge(room),
            None => self.room = Some(room),
        }
        self.pieces.push(piece);
        Ok(())
    }

    /// The body has ended; returns the whole.
    ///
    /// # Errors
    /// It is not as long as its head said.
    pub fn finish(&self) -> Result<Bytes, String> {
        let length = self.head.as_ref().and_then(|head| head.length);
        if let Some(length) = length.filter(|length| *length != self.bytes) {
            return Err(format!("{} bytes came of {length}", self.bytes));
        }
        let mut whole = BytesMut::with_capacity(usize::try_from(self.bytes).unwrap_or(0));
        self.pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
        Ok(whole.freeze())
    }
}

/// What a client calls the server, path and query, and whether it takes gzip: what distinguishes objects (RFC 9111 §2, §4.1).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub host: String,
    pub target: String,
    /// False of all but manifests: the clients that take gzip share the media with those that do not.
    pub gzip: bool,
}

impl Key {
    /// The object that a request with these headers asks for.
    pub fn of(host: String, target: String, headers: &HeaderMap) -> Self {
        let path = path(&target);
        let is_manifest = path.ends_with(".m3u8") || path.ends_with(".mpd");
        let gzip = is_manifest && takes_gzip(headers);
        Self { host, target, gzip }
    }
}

/// Without the query.
fn path(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

/// Everything that a cache has and fetches.
#[derive(Debug)]
pub(super) struct Objects {
    stored: Recent<Key, Arc<Stored>>,
    coming: BTreeMap<Key, Following>,
}

/// Where an answer is.
#[derive(Debug)]
pub(super) enum Found {
    Stored(Arc<Stored>, CacheOutcome),
    Coming(Following),
    /// Nowhere, apart from what has expired.
    Nowhere(Option<Arc<Stored>>),
}

impl Objects {
    pub fn new(bytes_max: usize) -> Self {
        Self { stored: Recent::new(bytes_max), coming: BTreeMap::new() }
    }

    /// Looks for an object; with `stale`, for one that has expired too, and for the last version of a playlist.
    pub fn find(&mut self, key: &Key, now: Time, stale: bool) -> Found {
        let stored = self.stored.get(key);
        let is_fresh = |stored: &Arc<Stored>| stored.head.freshness.is_fresh(now);
        if let Some(fresh) = stored.as_ref().filter(|stored| is_fresh(stored)) {
            return Found::Stored(fresh.clone(), CacheOutcome::Hit);
        }
        if let Some(old) = stored.clone().or_else(|| self.last_version(key)).filter(|_| stale) {
            return Found::Stored(old, CacheOutcome::Stale);
        }
        match self.coming.get(key) {
            Some(following) => Found::Coming(following.clone()),
            None => Found::Nowhere(stored),
        }
    }

    /// The last that came of this path with another query.
    fn last_version(&self, key: &Key) -> Option<Arc<Stored>> {
        let first = Key { target: path(&key.target).to_owned(), gzip: false, ..key.clone() };
        let same = |(other, _): &(&Key, &Arc<Stored>)| {
            other.host == key.host && other.target.starts_with(&first.target)
        };
        let versions = self.stored.from(&first).take_while(same);
        let versions = versions
            .filter(|(other, _)| path(&other.target) == first.target && other.gzip == key.gzip);
        let last = versions.max_by_key(|(_, stored)| stored.head.freshness.received());
        last.map(|(_, stored)| stored.clone())
    }

    /// An object is on its way now.
    pub fn begin(&mut self, key: Key, following: Following) {
        self.coming.insert(key, following);
    }

    /// An object is not on its way any more, or not for others.
    pub fn end(&mut self, key: &Key) {
        self.coming.remove(key);
    }

    /// An object has come.
    pub fn keep(&mut self, key: Key, stored: Stored) {
        self.coming.remove(&key);
        self.stored.insert(key, Arc::new(stored));
    }

    /// An object is of no more use, unless another has taken its place.
    pub fn forget(&mut self, key: &Key, old: &Arc<Stored>) {
        if self.stored.get(key).is_some_and(|stored| Arc::ptr_eq(&stored, old)) {
            self.stored.remove(key);
        }
    }

    /// How many objects have made room for others so far.
    pub fn evicted(&self) -> u64 {
        self.stored.evicted()
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::{ACCEPT_ENCODING, CACHE_CONTROL, HeaderValue};

    use super::*;

    fn head(caching: &'static str, at: Time, length: Option<u64>) -> Arc<Head> {
        let mut headers = HeaderMap::new();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
        let freshness = Freshness::of(&headers, at, at, 0);
        let (status, version) = (StatusCode::OK, Version::HTTP_11);
        Arc::new(Head { status, answered: status, headers, version, length, freshness })
    }

    fn key(target: &str) -> Key {
        Key { host: "edge".into(), target: target.into(), gzip: false }
    }

    fn found(objects: &mut Objects, target: &str, at_s: u64, stale: bool) -> String {
        match objects.find(&key(target), Time::from_secs(at_s), stale) {
            Found::Stored(stored, outcome) => {
                format!("{outcome} {}", String::from_utf8_lossy(&stored.body))
            }
            Found::Coming(_) => "coming".into(),
            Found::Nowhere(expired) => format!("nowhere, expired: {}", expired.is_some()),
        }
    }

    #[test]
    fn what_is_fresh_is_served_and_what_is_not_only_by_a_fault() {
        let mut objects = Objects::new(100_000);
        let keep = |objects: &mut Objects, target, at_s, body: &'static str| {
            let head = head("max-age=6", Time::from_secs(at_s), None);
            objects.keep(key(target), Stored { head, body: Bytes::from_static(body.as_bytes()) });
        };
        keep(&mut objects, "/v0.m3u8?_HLS_msn=1", 0, "one");
        keep(&mut objects, "/v0.m3u8?_HLS_msn=2", 1, "two");
        keep(&mut objects, "/v0.m3u8x", 2, "other");
        let of = |objects: &mut Objects, target: &str, at, stale| found(objects, target, at, stale);
        assert_eq!(of(&mut objects, "/v0.m3u8?_HLS_msn=1", 5, false), "hit one");
        assert_eq!(of(&mut objects, "/v0.m3u8?_HLS_msn=1", 6, false), "nowhere, expired: true");
        assert_eq!(of(&mut objects, "/v0.m3u8?_HLS_msn=1", 6, true), "stale one");
        assert_eq!(of(&mut objects, "/v0.m3u8?_HLS_msn=3", 2, false), "nowhere, expired: false");
        assert_eq!(of(&mut objects, "/v0.m3u8?_HLS_msn=3", 2, true), "stale two");
        assert_eq!(of(&mut objects, "/v1.m3u8", 2, true), "nowhere, expired: false");
        let (_sender, following) = watch::channel(Coming::default());
        objects.begin(key("/v1.m3u8"), following);
        assert_eq!(of(&mut objects, "/v1.m3u8", 2, false), "coming");
        objects.end(&key("/v1.m3u8"));
        assert_eq!(of(&mut objects, "/v1.m3u8", 2, false), "nowhere, expired: false");
    }

    #[test]
    fn clients_that_take_gzip_and_others_share_all_but_manifests() {
        let key = |target: &str, codings: &'static str| {
            let headers = [(ACCEPT_ENCODING, HeaderValue::from_static(codings))];
            Key::of("edge".into(), target.into(), &headers.into_iter().collect())
        };
        for target in ["/v0/1.m4s", "/v0/init.mp4", "/v0/1.ts?x=.m3u8", "/time", "/"] {
            assert_eq!(key(target, "gzip"), key(target, "identity"), "{target}");
        }
        for target in ["/v0.m3u8", "/v0.m3u8?x=1.ts", "/manifest.mpd"] {
            assert_ne!(key(target, "gzip"), key(target, "identity"), "{target}");
            assert_eq!(key(target, "gzip, br"), key(target, "*"), "{target}");
        }
        // The last version is one that the client can read.
        let mut objects = Objects::new(100_000);
        let head = head("max-age=6", Time::ZERO, None);
        let body = Bytes::from_static(b"coded");
        objects.keep(key("/v0.m3u8?_HLS_msn=1", "gzip"), Stored { head, body });
        let mut is_found = |codings| {
            let found = objects.find(&key("/v0.m3u8?_HLS_msn=2", codings), Time::ZERO, true);
            matches!(found, Found::Stored(..))
        };
        assert!(is_found("gzip") && !is_found("identity"));
    }

    #[test]
    fn what_is_forgotten_is_not_what_came_after_it() {
        let mut objects = Objects::new(100_000);
        let stored = |at_s| {
            let head = head("max-age=6", Time::from_secs(at_s), None);
            Stored { head, body: Bytes::from_static(b"x") }
        };
        let late = Time::from_secs(60);
        let expired = |objects: &mut Objects| match objects.find(&key("/a"), late, false) {
            Found::Nowhere(expired) => expired,
            found => panic!("{found:?}"),
        };
        objects.keep(key("/a"), stored(0));
        let first = expired(&mut objects).expect("the first has expired");
        objects.keep(key("/a"), stored(1));
        objects.forget(&key("/a"), &first);
        let second = expired(&mut objects).expect("the second is still there");
        objects.forget(&key("/a"), &second);
        assert!(expired(&mut objects).is_none());
    }

    #[test]
    fn what_was_not_asked_for_longest_makes_room() {
        let mut objects = Objects::new(2 * (ENTRY_BYTES + 20) + 20);
        for target in ["/a", "/b", "/c"] {
            let body = Bytes::from_static(b"x");
            let head = head("max-age=6", Time::ZERO, None);
            objects.keep(key(target), Stored { head, body });
        }
        assert_eq!(found(&mut objects, "/a", 0, true), "nowhere, expired: false");
        assert_eq!(found(&mut objects, "/c", 0, false), "hit x");
        assert!(objects.evicted() > 0);
    }

    #[test]
    fn a_length_that_lies_and_a_body_without_end_are_refused() {
        let piece = || Bytes::from_static(b"1234");
        let mut coming =
            Coming { head: Some(head("max-age=6", Time::ZERO, Some(9))), ..Coming::default() };
        let mut bounds = Bounds::new(100, 1 << 30);
        coming.push(piece(), &bounds).unwrap();
        coming.push(piece(), &bounds).unwrap();
        assert_eq!(coming.finish(), Err("8 bytes came of 9".into()));
        bounds.object = 11;
        assert_eq!(coming.push(piece(), &bounds), Err("the body is larger than 11 bytes".into()));
        let mut whole = Coming::default();
        whole.push(piece(), &bounds).unwrap();
        assert_eq!(whole.finish(), Ok(piece()));
        let mut tiny = Coming::default();
        bounds.object = u64::MAX;
        let pushed = (0..=PIECES_MAX).map(|_| tiny.push(Bytes::from_static(b"1"), &bounds));
        assert!(pushed.last().unwrap().is_err());
    }

    #[test]
    fn objects_on_their_way_share_their_room_until_they_are_sent_on() {
        let bounds = Bounds::new(1 << 20, 4 * UNIT_BYTES as u64);
        let piece = |bytes: usize| Bytes::from(vec![0; bytes]);
        let (mut one, mut other) = (Coming::default(), Coming::default());
        one.push(piece(2 * UNIT_BYTES), &bounds).unwrap();
        // A piece takes a whole unit, however small it is.
        one.push(piece(1), &bounds).unwrap();
        other.push(piece(UNIT_BYTES), &bounds).unwrap();
        let refused = other.push(piece(1), &bounds).unwrap_err();
        assert!(refused.contains("no room"), "{refused}");
        drop(one);
        other.push(piece(3 * UNIT_BYTES), &bounds).unwrap();
        assert!(other.push(piece(1), &bounds).is_err());
    }
}
