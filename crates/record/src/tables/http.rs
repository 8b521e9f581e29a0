//! Streaming over HTTP: requests, players, origins.

use suiro_units::{BitRate, Time};

use crate::table;
use crate::table::Text;
use crate::words::{CacheFault, CacheOutcome, Container, PlayerState, RequestKind, Track};

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
        /// Bytes of body received, in gzip if it came so; for VLC, as announced; 0 for GStreamer, which does not report it.
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
        /// Why the player abandoned it: for a lower rung, because it jumped past what it holds, because what comes before
        /// it did not come, or because a clock did not answer; null if it did not.
        abandoned: Option<Text>,
        /// Which attempt at this object it was, from 1.
        attempt: i64,
        /// Time from `t_ns` until a connection was open, name resolution included; 0 if one was open; null if the
        /// player does not report it.
        handshake_ns: Option<i64>,
        /// Of a request for a clock: by how much the player then set its own forward, 0 if the two agreed as far as that could be
        /// known. Null for other requests, if the answer was no time, or if no listed segment was captured near it.
        clock_offset_ns: Option<i64>,
        /// CMSD (CTA-5006) of the response, as of the server nearest to the player, origin or cache: its estimate of the
        /// throughput (`etp`); null if it does not report it.
        cmsd_throughput_bps: Option<i64>,
        /// The same: its round-trip time (`rtt`).
        cmsd_rtt_ms: Option<i64>,
        /// The same: the highest bit rate that it suggests (`mb`).
        cmsd_maximum_bps: Option<i64>,
        /// The same: how long it took until there was a first byte of the body to send (`rd`).
        cmsd_delay_ms: Option<i64>,
        /// Priority of the response (RFC 9218) as the player asked for it: its urgency, from 0, the most urgent, to 7. Null over
        /// HTTP/1.1, where no other response shares the connection, and for players that do not report it.
        urgency: Option<i64>,
        /// The same: whether the player uses what has come of it before the rest is there.
        incremental: Option<bool>,
        /// Whether the server took the request with the first packets of its connection (0-RTT, RFC 9001 §4.6); false if it was
        /// sent that way, refused, and sent again. Null for requests that waited for the handshake, or needed none.
        early: Option<bool>,
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
        /// Live only: the latency that the player aims at, as its library has it, which may count from the end of the playlist; null
        /// if the player has none or does not report it, and in records of earlier versions.
        target_latency_ms: Option<f64>,
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
    /// One HTTP request that an origin or a cache answered.
    AccessRow = "access" {
        /// When its head had been read; of `POST`, its body.
        t_ns: i64,
        /// The endpoint's name in the scenario.
        endpoint: Text,
        /// Address and port of the client; in rows of an origin behind a cache, of the cache.
        peer: Text,
        /// Method, such as `GET`.
        method: Text,
        /// Path and query of the URL, without the argument of CMCD.
        path: Text,
        /// HTTP status of the answer.
        status: i64,
        /// Bytes of its body, in gzip if it was sent so; 0 for `HEAD` and with status 304. Of a segment that was sent while it was
        /// captured, what the client took of it.
        body_bytes: i64,
        /// When the answer was ready to be sent; of a segment that was sent while it was captured, its head.
        answered_ns: i64,
        /// CMCD (CTA-5004) of the request, in its headers, or else in its query: its version (`v`); null if it had none.
        cmcd_version: Option<i64>,
        /// The same: the playback session (`sid`); null if it was not said, as in all columns of CMCD.
        cmcd_session: Option<Text>,
        /// The same: the content (`cid`).
        cmcd_content: Option<Text>,
        /// The same: number of the request, from 0 (`sn`, version 2).
        cmcd_sequence: Option<i64>,
        /// The same: what was requested (`ot`): `v` video, `a` sound, `i` an initialisation segment, `m` a manifest, `o` other.
        cmcd_object: Option<Text>,
        /// The same: `d` for DASH, `h` for HLS (`sf`).
        cmcd_format: Option<Text>,
        /// The same: `l` for live, `v` for on demand (`st`); `ll` for low latency in version 2.
        cmcd_stream: Option<Text>,
        /// The same: what the player does (`sta`, version 2), such as `p` for playing and `r` for a stall.
        cmcd_state: Option<Text>,
        /// The same: bit rate of the rung (`br`).
        cmcd_bitrate_bps: Option<i64>,
        /// The same: bit rate of the highest rung (`tb`).
        cmcd_top_bps: Option<i64>,
        /// The same: duration of the object (`d`).
        cmcd_duration_ms: Option<i64>,
        /// The same: media buffered (`bl`).
        cmcd_buffer_ms: Option<i64>,
        /// The same: time until the buffer is empty (`dl`).
        cmcd_deadline_ms: Option<i64>,
        /// The same: throughput as the player measured it (`mtp`).
        cmcd_measured_bps: Option<i64>,
        /// The same: the highest throughput that is of use to the player (`rtp`).
        cmcd_maximum_bps: Option<i64>,
        /// The same: true if it is needed at once, at the start or after a stall (`su`).
        cmcd_startup: Option<bool>,
        /// The same: true if the buffer ran empty since the last request (`bs`).
        cmcd_starved: Option<bool>,
        /// The same: playback speed, if it is not 1 (`pr`).
        cmcd_speed: Option<f64>,
        /// The same: latency of a live stream (`ltc`, version 2).
        cmcd_latency_ms: Option<i64>,
        /// The same: what will be requested next (`nor`), as it was written.
        cmcd_next: Option<Text>,
        /// The same: the bytes of it (`nrr`).
        cmcd_next_range: Option<Text>,
        /// What of it could not be read first; null if all could. Of a version above 2, only this and the version are recorded.
        cmcd_error: Option<Text>,
        /// Where a cache had its answer from; null in rows of an origin.
        cache: Option<CacheOutcome>,
        /// Age of a cache's answer when its head was sent (RFC 9111 §4.2.3); null in rows of an origin, if the cache answered by
        /// itself, and if nothing came from its origin.
        cache_age_ms: Option<i64>,
        /// What the cache did wrong on purpose with this answer; null if nothing.
        cache_fault: Option<CacheFault>,
        /// Priority (RFC 9218) that the request asks for: its urgency, from 0, the most urgent, to 7; null if it has no header
        /// `priority` that can be read. Over HTTP/2 and HTTP/3 responses are sent in this order; HTTP/1.1 records it alone.
        urgency: Option<i64>,
        /// The same: whether the client uses what has come of the response before the rest is there.
        incremental: Option<bool>,
    }
}

table! {
    /// One event that a player reported to an origin by POST: the event mode of CMCD (CTA-5004-B). There is no table if there was
    /// none. Null stands for what the player does not report.
    CmcdEventRow = "cmcd_events" {
        /// When the request that reported it had come.
        t_ns: Time,
        /// The origin's name in the scenario.
        endpoint: Text,
        /// Address and port of the player.
        peer: Text,
        /// What happened (`e`), such as `ps` for a change of state, `bc` of the bit rate, `rr` for a response and `t` for the time to
        /// report.
        event: Text,
        /// When it happened by the player's wall clock (`ts`), which the player gives in milliseconds; below 0 before the trial began.
        happened_ns: i64,
        /// The playback session (`sid`).
        session: Option<Text>,
        /// The content (`cid`).
        content: Option<Text>,
        /// Number of the report (`sn`).
        sequence: Option<i64>,
        /// Of a response: what was requested (`ot`): `v` video, `a` sound, `i` an initialisation segment, `m` a manifest, `o` other.
        object: Option<Text>,
        /// `d` for DASH, `h` for HLS (`sf`).
        format: Option<Text>,
        /// `l` for live, `ll` at low latency, `v` for on demand (`st`).
        stream: Option<Text>,
        /// What the player does (`sta`), such as `p` for playing and `r` for a stall.
        state: Option<Text>,
        /// Bit rate of the rung (`br`); of several kinds of media the first one that is named, as in the columns below.
        bitrate_bps: Option<i64>,
        /// Bit rate of the highest rung (`tb`).
        top_bps: Option<i64>,
        /// Media buffered (`bl`).
        buffer_ms: Option<i64>,
        /// Throughput as the player measured it (`mtp`).
        measured_bps: Option<i64>,
        /// True if media is needed at once, at the start or after a stall (`su`).
        startup: Option<bool>,
        /// True if the buffer ran empty since the last report (`bs`).
        starved: Option<bool>,
        /// Playback speed, if it is not 1 (`pr`).
        speed: Option<f64>,
        /// Latency of a live stream (`ltc`).
        latency_ms: Option<i64>,
        /// True if the player is not visible (`bg`).
        hidden: Option<bool>,
        /// The playhead (`pt`): media time on demand, of a live stream the wall clock since 1970.
        playhead_ms: Option<i64>,
        /// Code of the first error, as the player calls it (`ec`).
        error: Option<Text>,
        /// Name of an event of the player's own (`cen`).
        name: Option<Text>,
        /// What was received, as the player requested it (`url`).
        url: Option<Text>,
        /// HTTP status of the response (`rc`).
        status: Option<i64>,
        /// Time from the request until its first byte (`ttfb`).
        first_byte_ms: Option<i64>,
        /// Time from the request until its last byte (`ttlb`).
        last_byte_ms: Option<i64>,
        /// The first value of the report that could not be read; it is left out.
        unread: Option<Text>,
    }
}

impl RequestRow {
    /// The error of a request that was under way when the player was stopped, as at the end of every trial.
    pub const STOPPED: &'static str = "the player was stopped";

    /// Whether it failed, or was answered with a status of 400 or more. One that was under way when the player was stopped
    /// did neither.
    pub fn has_failed(&self) -> bool {
        let error = self.error.as_deref().is_some_and(|error| error != Self::STOPPED);
        error || self.status.is_some_and(|status| status >= 400)
    }
}

impl Default for RequestRow {
    /// A request for a manifest, of which nothing else is known.
    fn default() -> Self {
        Self {
            t_ns: 0,
            endpoint: "".into(),
            url: "".into(),
            kind: RequestKind::Manifest,
            track: None,
            rung_bps: None,
            segment: None,
            media_ms: None,
            duration_ms: None,
            body_bytes: 0,
            first_byte_ns: None,
            done_ns: None,
            status: None,
            error: None,
            abandoned: None,
            attempt: 1,
            handshake_ns: None,
            clock_offset_ns: None,
            cmsd_throughput_bps: None,
            cmsd_rtt_ms: None,
            cmsd_maximum_bps: None,
            cmsd_delay_ms: None,
            urgency: None,
            incremental: None,
            early: None,
        }
    }
}

impl Default for AccessRow {
    /// A request of which nothing is known.
    fn default() -> Self {
        Self {
            t_ns: 0,
            endpoint: "".into(),
            peer: "".into(),
            method: "".into(),
            path: "".into(),
            status: 0,
            body_bytes: 0,
            answered_ns: 0,
            cmcd_version: None,
            cmcd_session: None,
            cmcd_content: None,
            cmcd_sequence: None,
            cmcd_object: None,
            cmcd_format: None,
            cmcd_stream: None,
            cmcd_state: None,
            cmcd_bitrate_bps: None,
            cmcd_top_bps: None,
            cmcd_duration_ms: None,
            cmcd_buffer_ms: None,
            cmcd_deadline_ms: None,
            cmcd_measured_bps: None,
            cmcd_maximum_bps: None,
            cmcd_startup: None,
            cmcd_starved: None,
            cmcd_speed: None,
            cmcd_latency_ms: None,
            cmcd_next: None,
            cmcd_next_range: None,
            cmcd_error: None,
            cache: None,
            cache_age_ms: None,
            cache_fault: None,
            urgency: None,
            incremental: None,
        }
    }
}
