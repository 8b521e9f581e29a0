//! Players: what their viewers had.

use std::collections::BTreeSet;

use suiro_record::Trial;
use suiro_record::tables::{PlayerRow, RequestRow};
use suiro_record::words::{PlayerState, RequestKind, Track};

use crate::departures::Departures;
use crate::group::grouped;
use crate::held::{Stretch, distribution, hold, total_ns};
use crate::period::Period;
use crate::screen::Screen;
use crate::stats::Distribution;
use crate::{Records, pauses};

/// One player.
pub(crate) struct Player<'a> {
    /// The endpoint's name in the scenario.
    pub name: &'a str,
    /// Its states within the period, and how long each stood.
    pub states: Vec<Stretch<&'a PlayerRow>>,
    /// Its states, in order, all of them.
    pub rows: Vec<&'a PlayerRow>,
    /// Its requests, in order, all of them.
    pub requests: Vec<&'a RequestRow>,
    /// What it showed.
    pub screen: Screen<'a>,
    /// The overall opinion of ITU-T P.1203, if its program was asked.
    pub p1203_mos: Option<f64>,
    /// The time that metrics are about.
    period: Period,
}

/// Every player, by name.
pub(crate) fn players<'a>(trial: &Trial, records: &'a Records, period: Period) -> Vec<Player<'a>> {
    let mut rows = grouped(&records.player, |row| &*row.endpoint, |row| row.t_ns);
    let mut requests = grouped(&records.requests, |row| &*row.endpoint, |row| row.t_ns);
    let mut frames = grouped(&records.frames, |row| &*row.endpoint, |row| row.t_ns);
    let mut quality = grouped(&records.quality, |row| &*row.endpoint, |row| row.t_ns);
    let names = rows.keys().chain(requests.keys()).chain(frames.keys()).chain(quality.keys());
    let names: BTreeSet<&str> = names.copied().collect();
    let end_ns = period.to_ns;
    let departures = Departures::of(trial, records);
    let players = names.into_iter().map(|name| {
        let rows = rows.remove(name).unwrap_or_default();
        let requests = requests.remove(name).unwrap_or_default();
        let last_ns = rows
            .last()
            .map_or(0, |row| row.t_ns.saturating_add(PlayerState::WRITTEN_EVERY.as_nanos_i64()));
        let states = period.cut(hold(rows.iter().map(|row| (row.t_ns, *row)), last_ns, end_ns));
        let frames = frames.remove(name).unwrap_or_default();
        let quality = quality.remove(name).unwrap_or_default();
        let ended =
            rows.iter().find(|row| is(row, PlayerState::Ended)).map_or(end_ns, |row| row.t_ns);
        let left = departures.end_ns(name, &frames).unwrap_or(end_ns);
        let viewing = Period { to_ns: ended.min(left).min(end_ns), ..period };
        let pauses = pauses::of(trial, name);
        let screen = Screen::new(&frames, quality, viewing, pauses);
        let made = records.screens.iter().find(|made| made.endpoint == name);
        let p1203_mos = made.and_then(|made| Some(made.p1203.as_ref()?.o46));
        Player { name, states, rows, requests, screen, p1203_mos, period }
    });
    players.collect()
}

fn is(row: &PlayerRow, state: PlayerState) -> bool {
    row.state == state
}

/// True once a frame was shown and before the end: the viewer is watching, or waiting.
fn is_watched(row: &PlayerRow) -> bool {
    is(row, PlayerState::Playing) || is(row, PlayerState::Stalled)
}

impl Player<'_> {
    /// From the player's first row to the first frame, in seconds; `None` if there was none.
    pub fn startup_s(&self) -> Option<f64> {
        let begun = self.rows.first()?.t_ns;
        let playing = self.rows.iter().find(|row| is(row, PlayerState::Playing))?.t_ns;
        Some(playing.saturating_sub(begun) as f64 / 1e9)
    }

    /// Interruptions, with one that has not ended with the warm-up; `None` if playback never began.
    pub fn stalls(&self) -> Option<f64> {
        self.startup_s()?;
        let last = self.period.last_before(&self.rows, |row| row.t_ns);
        let over =
            |row: &PlayerRow| row.stalls.saturating_sub(i64::from(is(row, PlayerState::Stalled)));
        let before = last.map_or(0, over);
        let stalls = self.rows.iter().map(|row| row.stalls).max()?;
        Some(stalls.saturating_sub(before) as f64)
    }

    /// Seconds spent in `state`; `None` if playback never began.
    fn seconds_in(&self, state: PlayerState) -> Option<f64> {
        self.startup_s()?;
        Some(total_ns(&self.states, |row| is(row, state)) / 1e9)
    }

    /// Seconds spent waiting after playback began.
    pub fn stall_s(&self) -> Option<f64> {
        self.seconds_in(PlayerState::Stalled)
    }

    /// Seconds of moving frame.
    pub fn played_s(&self) -> Option<f64> {
        self.seconds_in(PlayerState::Playing)
    }

    /// Waiting as a share of watching; `None` if playback never began.
    pub fn stall_ratio(&self) -> Option<f64> {
        let (stalled, played) = (self.stall_s()?, self.played_s()?);
        let watched = stalled + played;
        (watched > 0.0).then(|| stalled / watched)
    }

    /// Changes of rung under the playhead; `None` if no rung was shown.
    pub fn switches(&self) -> Option<f64> {
        let rows = self.period.since_last_before(&self.rows, |row| row.t_ns);
        let mut rungs: Vec<i64> = rows.iter().filter_map(|row| row.rung_bps).collect();
        rungs.dedup();
        rungs.len().checked_sub(1).map(|switches| switches as f64)
    }

    /// What `value` makes of the states in which somebody watches, over time.
    pub fn watched(&self, value: impl Fn(&PlayerRow) -> Option<f64>) -> Distribution {
        let watched = self.states.iter().filter(|state| is_watched(state.value));
        distribution(watched, |row| value(row))
    }

    /// What `value` makes of the states in which the frame moves, over time.
    pub fn playing(&self, value: impl Fn(&PlayerRow) -> Option<f64>) -> Distribution {
        let playing = self.states.iter().filter(|state| is(state.value, PlayerState::Playing));
        distribution(playing, |row| value(row))
    }

    /// The stretches of `value`, for bins.
    pub fn stretches(
        &self,
        value: impl Fn(&PlayerRow) -> Option<f64>,
    ) -> impl Iterator<Item = Stretch<f64>> {
        self.states.iter().filter_map(move |state| {
            let value = value(state.value)?;
            Some(Stretch { from_ns: state.from_ns, to_ns: state.to_ns, value })
        })
    }

    /// How old frames were when they were shown, in milliseconds. For a player that does not report
    /// its frames: how old the frame under its playhead was while somebody watched.
    pub fn latency(&self) -> Distribution {
        match self.screen.is_known() {
            true => Distribution::equal(self.screen.latencies().map(|(_, ms)| ms)),
            false => self.watched(|row| row.latency_ms),
        }
    }

    /// When the video froze after it began, as stretches of time that do not touch; of a player
    /// that does not report its frames, or too few, when it reports that it stalled.
    pub fn stall_spans(&self) -> Vec<(i64, i64)> {
        if self.screen.knows_freezes() {
            return self.screen.freezes().to_vec();
        }
        let mut spans: Vec<(i64, i64)> = Vec::new();
        for state in self.states.iter().filter(|state| is(state.value, PlayerState::Stalled)) {
            match spans.last_mut() {
                Some(last) if last.1 == state.from_ns => last.1 = state.to_ns,
                _ => spans.push((state.from_ns, state.to_ns)),
            }
        }
        spans
    }

    /// Its requests within the period.
    fn asked(&self) -> &[&RequestRow] {
        self.period.after_warm_up(&self.requests, |row| row.t_ns)
    }

    /// Requests that failed or were answered with an error; `None` without requests.
    pub fn failed_requests(&self) -> Option<f64> {
        let count = self.asked().iter().filter(|row| row.has_failed()).count();
        (!self.requests.is_empty()).then_some(count as f64)
    }

    /// Requests for segments that the player gave up; `None` without requests.
    pub fn abandoned_requests(&self) -> Option<f64> {
        let segments = self.asked().iter().filter(|row| row.kind == RequestKind::Segment);
        let count = segments.filter(|row| row.abandoned.is_some()).count();
        (!self.requests.is_empty()).then_some(count as f64)
    }

    /// Bit rate of the segments under the playhead while the frame moved, over time; `None` if it is not known.
    pub fn bitrate_mean_bps(&self) -> Option<f64> {
        let segments = Segments::of(&self.requests);
        self.playing(|row| segments.under(row)).mean()
    }

    /// Time from sending a request for a segment, on a connection that is open, to its first byte, in milliseconds.
    pub fn first_byte_times(&self) -> Distribution {
        let segments = self.asked().iter().filter(|row| row.kind == RequestKind::Segment);
        let times = segments.filter_map(|row| {
            let sent = row.t_ns.saturating_add(row.handshake_ns.unwrap_or(0));
            Some(crate::link::since(row.first_byte_ns?, sent))
        });
        Distribution::equal(times)
    }

    /// Time from sending a request to `end`, in milliseconds, of segments.
    pub fn segment_times(&self, end: impl Fn(&RequestRow) -> Option<i64>) -> Distribution {
        let segments = self.asked().iter().filter(|row| row.kind == RequestKind::Segment);
        let times = segments.filter_map(|row| Some(crate::link::since(end(row)?, row.t_ns)));
        Distribution::equal(times)
    }
}

/// Whether a request is for a segment of video, with or without sound.
pub fn is_video(row: &RequestRow) -> bool {
    row.kind == RequestKind::Segment && row.track != Some(Track::Audio)
}

/// The segments of video that a player has, by where they begin.
struct Segments<'a>(Vec<&'a RequestRow>);

impl<'a> Segments<'a> {
    /// Those that came whole.
    fn of(requests: &[&'a RequestRow]) -> Self {
        let whole = |row: &&&RequestRow| {
            let ok = row.error.is_none() && row.abandoned.is_none() && row.status < Some(400);
            is_video(row) && ok && row.body_bytes > 0
        };
        let mut found: Vec<_> = requests.iter().filter(whole).copied().collect();
        found.sort_by_key(|row| row.media_ms);
        Self(found)
    }

    /// The bit rate of the one under the playhead; of several, that of its rung which came last.
    fn under(&self, row: &PlayerRow) -> Option<f64> {
        let position = row.position_ms?;
        let begins = |segment: &RequestRow| segment.media_ms.map(|ms| ms as f64);
        // The playhead counts more exactly than the table: half a millisecond belongs to the next.
        let upto = self.0.partition_point(|segment| begins(segment) <= Some(position + 0.5));
        let over = |segment: &RequestRow| {
            let end = begins(segment).zip(segment.duration_ms).map(|(at, ms)| at + ms as f64);
            end.is_none_or(|end| end + 0.5 < position)
        };
        let mut under = self.0[..upto].iter().rev().take_while(|segment| !over(segment));
        let own =
            |segment: &&&RequestRow| row.rung_bps.is_none() || segment.rung_bps == row.rung_bps;
        let segment = under.clone().find(own).or_else(|| under.next())?;
        let seconds = segment.duration_ms.filter(|ms| *ms > 0)? as f64 / 1e3;
        Some(segment.body_bytes as f64 * 8.0 / seconds)
    }
}
