//! What a player reports to a server about its playback with each request (CMCD).

use suiro_abr::{Controller, State};
use suiro_scenario::Protocol;
use suiro_units::{Duration, to_i64};

use super::super::request::{Fetch, What, track_of};
use super::super::track::TrackState;
use super::Session;
use crate::cmcd::{self, Cmcd, Told};
use crate::presentation::TrackKind;
use crate::priority::Priority;
use crate::url::Url;

/// More than so many times the bit rate of a segment is of no use to a player: dash.js's factor for `rtp`.
const ENOUGH: i64 = 5;

/// Urgency of what everything waits for (RFC 9218 §4.1). 0, the most urgent, is not used.
const FIRST: u8 = 1;
/// Urgency of the media that is played next.
const SOON: u8 = 2;
/// Urgency of media that is fetched ahead: that of a request that says nothing.
const LATER: u8 = 3;

impl Session {
    /// A request with what it says about itself, and about the player, if the player says anything.
    pub(super) fn tell(&mut self, mut fetch: Fetch) -> Fetch {
        fetch.priority = self.config.priorities.then(|| self.priority(&fetch));
        // It is recorded also if it never ends.
        if let Some(request) = self.underway(fetch.number) {
            request.fetch.priority = fetch.priority;
        }
        let Some(mode) = self.config.cmcd else { return fetch };
        let said = self.said(&fetch, cmcd::version(mode));
        Fetch { told: Some(Told::new(mode, &said)), ..fetch }
    }

    /// How urgent a request is. Small things that everything waits for come first: the clock, manifests, what a decoder needs
    /// before media. Then the media that is played next: at low latency all of it, else what follows a buffer of less than its
    /// own length. Media that comes in chunks is incremental, so that sound does not wait for the video of the same moment. What is
    /// asked for behind what is under way is not: none of it is used before that, nor may it take a share of its link.
    fn priority(&self, fetch: &Fetch) -> Priority {
        let mut tracks = self.stream.iter().flat_map(|stream| &stream.tracks);
        if tracks.any(|track| track.is_ahead(fetch.number)) {
            return Priority { urgency: LATER, incremental: false };
        }
        let incremental = fetch.chunks.is_some();
        let What::Segment { segment, .. } = &fetch.what else {
            return Priority { urgency: FIRST, incremental };
        };
        let playout = self.stream.as_ref().and_then(|stream| stream.playout.as_ref());
        let buffer = playout.zip(track_of(fetch.lane)).map(|(p, track)| p.buffer_of(track));
        let soon = incremental || buffer.is_none_or(|buffer| buffer < segment.duration);
        Priority { urgency: if soon { SOON } else { LATER }, incremental }
    }

    fn said(&mut self, fetch: &Fetch, version: i64) -> Cmcd {
        let ms = |span: Duration| to_i64(span.as_nanos() / 1_000_000);
        let mut said = Cmcd {
            version,
            session: Some(self.config.session.clone()),
            // It begins at 0 (CTA-5004-B, table 1).
            sequence: Some(to_i64(fetch.number - 1)),
            object: Some(object(&fetch.what).into()),
            format: Some(if self.config.protocol == Protocol::Dash { "d" } else { "h" }.into()),
            ..Cmcd::default()
        };
        let Some(stream) = &self.stream else {
            said.startup = Some(true);
            return said;
        };
        let low_latency = stream.tracks.iter().any(TrackState::is_low_latency);
        let live = match version {
            2.. if low_latency => "ll",
            _ => "l",
        };
        said.stream = Some(if stream.live.is_some() { live } else { "v" }.into());
        let measured = stream.tracks[0].controller.as_ref().and_then(Controller::estimate);
        said.measured_bps = measured.map(|rate| to_i64(rate.as_bps()));
        let Some(playout) = &stream.playout else {
            said.startup = Some(true);
            return said;
        };
        said.startup = Some(matches!(playout.state(), State::Starting | State::Stalled));
        said.state = Some(state(playout.state()).into());
        said.latency_ms = playout.latency_ns().map(|ns| (ns / 1_000_000).max(0));
        // 0 if nothing is played (CTA-5004, table 1).
        let speed = playout.speed();
        said.speed = Some(speed);
        let stalls = playout.totals().stalls;
        said.starved = Some(stalls > self.told_stalls);
        self.told_stalls = stalls;
        if let What::Segment { rate, segment, .. } = &fetch.what
            && let Some(track) = track_of(fetch.lane).and_then(|at| stream.tracks.get(at))
        {
            let buffer = playout.buffer_of(track.index);
            said.buffer_ms = Some(ms(buffer));
            // A request ahead: the rest of the segment under way is played first, and has not come yet.
            let until = segment.start.saturating_sub(playout.position()).max(buffer);
            // Once it goes on, a stalled player plays at normal speed.
            let speed = if speed > 0.0 { speed } else { 1.0 };
            said.deadline_ms = Some(ms(until.mul_f64(1.0 / speed)));
            // HLS gives a rendition of sound no bit rate.
            if track.kind == TrackKind::Video || self.config.protocol == Protocol::Dash {
                said.bitrate_bps = Some(to_i64(rate.as_bps()));
                said.maximum_bps = Some(to_i64(rate.as_bps()).saturating_mul(ENOUGH));
                said.top_bps = track.rates().last().map(|rate| to_i64(rate.as_bps()));
            }
            said.duration_ms = Some(ms(segment.duration));
            said.next =
                track.after(*rate, segment.number).map(|next| next_to(&fetch.resource.url, &next));
        }
        said
    }
}

fn object(what: &What) -> &'static str {
    match what {
        What::Manifest | What::Playlist { .. } => "m",
        What::Init { .. } => "i",
        What::Segment { kind: TrackKind::Video, .. } => "v",
        What::Segment { kind: TrackKind::Audio, .. } => "a",
        What::Clock => "o",
    }
}

const fn state(state: State) -> &'static str {
    match state {
        State::Starting => "s",
        State::Playing => "p",
        State::Stalled => "r",
        State::Ended => "e",
    }
}

/// The address of `next`, relative to `this` where it is in the same folder.
fn next_to(this: &Url, next: &Url) -> String {
    let folder = |url: &Url| url.target().rsplit_once('/').map(|(folder, _)| folder.to_owned());
    match folder(next) {
        Some(same) if folder(this).as_ref() == Some(&same) => {
            next.target()[same.len() + 1..].to_owned()
        }
        _ => next.target().to_owned(),
    }
}
