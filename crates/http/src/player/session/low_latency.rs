//! What a session does at low latency: chunks of segments under way, and playlists that the server holds.

use suiro_units::{Duration, Time};

use super::super::chunked::Chunk;
use super::super::request::{Fetch, Fetched, Piece, What};
use super::super::track::{Ahead, TrackState};
use super::Session;

impl Session {
    /// A chunk of a segment under way has come.
    pub(crate) fn on_chunk(&mut self, now: Time, number: u64, chunk: &Chunk) {
        self.advance(now);
        let Some(stream) = &mut self.stream else { return };
        let of = |track: &TrackState| track.is_fetching(number) || track.is_ahead(number);
        let Some(index) = stream.tracks.iter().position(of) else { return };
        let track = &mut stream.tracks[index];
        if let Some(controller) = &mut track.controller {
            controller.on_chunk(&chunk.arrival());
        }
        if !track.keep_chunk(number, chunk) {
            self.show(index, chunk);
        }
    }

    /// What has come of a track's part under way can be played.
    fn show(&mut self, index: usize, chunk: &Chunk) {
        let Some(stream) = &mut self.stream else { return };
        let track = &mut stream.tracks[index];
        let (Some((rate, start, end)), Some(playout)) =
            (track.on_chunk(chunk), &mut stream.playout)
        else {
            return;
        };
        let buffered = playout.end_of(index);
        // Without room, it is not played: the whole segment will be refused the same way.
        if playout.extend(self.now, index, end).is_err() {
            return;
        }
        track.mark(rate, start..end, buffered);
        if let (0, Ok(frames)) = (index, &mut stream.frames) {
            frames.on_arrival(chunk.at, rate, start, end);
        }
    }

    /// A track's request is over: that which was made ahead of it takes its place, with what has come of it.
    pub(super) fn promote(&mut self, index: usize) -> Vec<Piece> {
        let track = self.stream.as_mut().and_then(|stream| stream.tracks.get_mut(index));
        let ahead = track.and_then(|track| track.promote(self.now));
        let Some(ahead) = ahead else { return Vec::new() };
        let Ahead { request, chunks, fetched, .. } = ahead;
        for chunk in &chunks {
            self.show(index, chunk);
        }
        match fetched {
            Some(fetched) => self.on_fetched(self.now, &request.fetch, fetched),
            None => Vec::new(),
        }
    }

    /// How long the segment is that a request has brought, where its chunks have told: a part that was hinted at is listed
    /// without its length.
    pub(crate) fn length_of(&self, fetch: &Fetch) -> Option<Duration> {
        let mut tracks = self.stream.as_ref()?.tracks.iter();
        tracks.find(|track| track.is_fetching(fetch.number))?.length()
    }

    /// A playlist has come that the server held, or not.
    pub(super) fn on_reload(&mut self, index: usize, fetch: &Fetch, fetched: &Fetched) {
        let stream = self.stream.as_mut().expect("a track's request needs a stream");
        match (&fetched.body, &fetch.what) {
            (Ok(body), What::Playlist { rung }) => self.on_playlist(index, *rung, body, fetched),
            (Err(error), _) => {
                let tried =
                    stream.tracks[index].on_reload_failure(self.now, error, fetched.retry_after);
                self.failure = self.failure.take().or(tried);
            }
            (Ok(_), _) => unreachable!("this lane fetches playlists alone"),
        }
    }
}
