//! Streaming over HTTP: requests, players, origins.

use suiro_units::BitRate;

use crate::table;
use crate::table::Text;
use crate::words::{Container, PlayerState, RequestKind, Track};

table! {
    /// One HTTP request of a player.
    RequestRow = "requests" {
        /// When the request began; for one that opens a connection, before that (`handshake_ns`).
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Path and query of the URL.
        url: Text,
        /// What was requested.
        kind: RequestKind,
        /// The track that it belongs to; null for a manifest.
        track: Option<Track>,
        /// Bit rate that the manifest gives for the requested rung, its peak (table `rungs` has the others); null for a
        /// manifest.
        rung_bps: Option<i64>,
        /// Number of the segment, or of the one that the part of low-latency HLS belongs to; null for others.
        segment: Option<i64>,
        /// Media time at which the segment begins; null for others.
        media_ms: Option<i64>,
        /// Media duration of the segment or part, as the manifest gives it; of a part that it only announces, the part target.
        /// Null for others.
        duration_ms: Option<i64>,
        /// Bytes of body received; for VLC, as announced; 0 for GStreamer, which does not report
        /// it.
        body_bytes: i64,
        /// First byte of the response's body; null if none arrived, or the player does not report
        /// it.
        first_byte_ns: Option<i64>,
        /// Last byte of the body; null if it never arrived, or the player does not report it.
        done_ns: Option<i64>,
        /// HTTP status; null if there was no response.
        status: Option<i64>,
        /// What went wrong; null if nothing did.
        error: Option<Text>,
        /// Why the player abandoned it for a segment of a lower rung; null if it did not.
        abandoned: Option<Text>,
        /// Which attempt at this object it was, from 1.
        attempt: i64,
        /// Time from `t_ns` until a connection was open, name resolution included; 0 if one was open; null if the
        /// player does not report it.
        handshake_ns: Option<i64>,
    }
}

table! {
    /// One rung of a track that an origin offers, in one container. The other tables name a rung by the bit rate that
    /// the manifest gives it (`rung_bps`).
    RungRow = "rungs" {
        /// The origin's name in the scenario.
        endpoint: Text,
        /// The track.
        track: Track,
        /// Its name in URLs.
        rung: Text,
        /// How its segments are wrapped.
        container: Container,
        /// `@bandwidth` in the MPD; null if DASH does not offer it.
        dash_bps: Option<BitRate>,
        /// `BANDWIDTH` in the multivariant playlist, the sound that is played with it included; null if HLS does not
        /// list it as a variant.
        hls_bps: Option<BitRate>,
        /// Nominal: the bit rate in the scenario's ladder, container not counted.
        nominal_bps: BitRate,
        /// Average over all segments, all bytes counted.
        average_bps: BitRate,
        /// Peak: that of the segment that has the highest, all bytes counted.
        peak_bps: BitRate,
        /// Lines of its frames; null for sound, and in records of earlier versions.
        height: Option<i64>,
    }
}

table! {
    /// A player's state: a row at every change and at least every 100 ms.
    PlayerRow = "player" {
        /// When.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Its state.
        state: PlayerState,
        /// Media buffered ahead of the playhead; null if the player does not report it.
        buffer_ms: Option<f64>,
        /// The playhead in media time; null if the player does not report it.
        position_ms: Option<f64>,
        /// Bit rate that the manifest gives for the video rung under the playhead, its peak (table `rungs` has the
        /// others); null before the first frame, or if the player does not report it.
        rung_bps: Option<i64>,
        /// Live only: age of the frame under the playhead, from the moment it was captured.
        latency_ms: Option<f64>,
        /// Playback speed: 1 is normal, 0 is paused.
        speed: f64,
        /// Stalls so far, start-up not counted.
        stalls: i64,
        /// Throughput as the player estimates it; null before the first estimate, or if the player
        /// does not report it.
        estimate_bps: Option<i64>,
        /// Frames that were not shown because they were too late, so far; null if the player does
        /// not report it, or does not decode.
        dropped_pictures: Option<i64>,
    }
}

table! {
    /// One page that one of the users of `web-clients` loaded, or tried to load.
    PageRow = "pages" {
        /// When the first connection was started.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Which of its users, from 1.
        user: i64,
        /// Which of the user's pages, from 1.
        page: i64,
        /// Objects of the page.
        objects: i64,
        /// Bytes of all of them.
        page_bytes: i64,
        /// TCP connections started for it.
        connections: i64,
        /// Bytes of bodies received.
        body_bytes: i64,
        /// When the last byte of the last object arrived; null if it never did.
        done_ns: Option<i64>,
        /// Why it was not loaded; null if it was.
        error: Option<Text>,
    }
}

table! {
    /// One HTTP request that an origin answered.
    AccessRow = "access" {
        /// When its head had been read.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Address and port of the client.
        peer: Text,
        /// Method, such as `GET`.
        method: Text,
        /// Path and query of the URL.
        path: Text,
        /// HTTP status of the answer.
        status: i64,
        /// Bytes of its body; 0 for `HEAD`. Of a segment that was sent while it was captured, what the client took of it.
        body_bytes: i64,
        /// When the answer was ready to be sent; of a segment that was sent while it was captured, its head.
        answered_ns: i64,
    }
}
