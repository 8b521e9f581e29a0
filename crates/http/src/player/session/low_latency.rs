//! What a session does at low latency: chunks of segments under way, and playlists that the server holds.

use suiro_units::{Duration, Time};

use super::super::chunked::Chunk;
use super::super::request::{Fetch, Fetched, What};
use super::Session;

impl Session {
    /// A chunk of a segment under way has come.
    pub(crate) fn on_chunk(&mut self, now: Time, number: u64, chunk: &Chunk) {
        self.advance(now);
        let Some(stream) = &mut self.stream else { return };
        let its = stream.tracks.iter().position(|track| track.is_fetching(number));
        let Some(index) = its else { return };
        let track = &mut stream.tracks[index];
        if let (Some(controller), Some(sample)) = (&mut track.controller, &chunk.burst) {
            controller.on_chunk(sample);
        }
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
