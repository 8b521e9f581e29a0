//! Whether the rung that a player chose is to blame for what it had to bear, and whether a lower one would have come in time.

use suiro_record::tables::{LinkRow, PlayerRow, RequestRow};
use suiro_record::words::{Cause, RequestKind, Track};

use super::account;
use super::segments::{Awaited, Story};
use super::told::last_fall;
use super::wording::{rate, size, span};
use crate::player::is_video;

impl<'v> Story<'_, 'v> {
    /// The link's rate is to blame only for what no lower rung would have avoided.
    pub fn blame_rung(&self, awaited: &Awaited, shares: &mut Vec<(Cause, f64)>) {
        if self.carries(awaited).is_none() {
            return;
        }
        let weights = shares.drain(..).map(|(cause, share)| match cause {
            Cause::LinkRate | Cause::RateStep => (Cause::OversizedRung, share),
            cause => (cause, share),
        });
        *shares = account::shares(weights.collect::<Vec<_>>().into_iter());
    }

    /// What the link carried when a segment was requested, if its rung was above that, a lower one was not, and the segments of that
    /// time took longer than they play. `None` of a link that had just fallen: of another one, the player could know the rate.
    fn carries(&self, awaited: &Awaited) -> Option<f64> {
        let request = awaited.request;
        let media_ns = request.duration_ms.unwrap_or(0).saturating_mul(1_000_000);
        let fall = last_fall(&self.data, (awaited.since_ns, awaited.end_ns));
        let is_known = fall.is_none_or(|fall| {
            fall.from_ns < request.t_ns.saturating_sub(media_ns.saturating_mul(2))
        });
        let came = self.goodput(request, awaited.end_ns).filter(|_| is_known)?;
        // A short answer comes more slowly than the link carries: a round trip is part of its time.
        let rates = self.data.iter().filter_map(|way| way.way.rate_bps(request.t_ns));
        let carries = rates.min_by(f64::total_cmp).map_or(came, |rate| rate.max(came));
        let is_slow = self.excess_ns(awaited) > 0;
        let is_above = request.rung_bps.is_some_and(|own| own as f64 > carries);
        let lower = || self.lower_rungs(request).into_iter().any(|bps| bps as f64 <= carries);
        (is_slow && is_above && lower()).then_some(carries)
    }

    /// How much longer the segments of the time that is explained took, in all, than they play.
    fn excess_ns(&self, awaited: &Awaited) -> i64 {
        let until = awaited.until_ns.max(awaited.end_ns);
        let done = |row: &RequestRow| row.done_ns.unwrap_or(until);
        let within = |row: &&&RequestRow| {
            row.kind == RequestKind::Segment
                && row.track == awaited.request.track
                && (awaited.since_ns..until).contains(&row.t_ns)
                && done(row) <= until
        };
        let excess = |row: &&RequestRow| {
            let media_ns = row.duration_ms.unwrap_or(0).saturating_mul(1_000_000);
            super::since(super::since(done(row), self.begun(row)), media_ns)
        };
        super::total(self.player.requests.iter().filter(within).map(excess))
    }

    /// What the link carried, of a segment whose rung was above that, and the player's estimate if that was above it as well.
    pub fn told_carries(&self, awaited: &Awaited) -> Option<String> {
        let carries = self.carries(awaited)?;
        let estimate =
            self.estimate(awaited.request).map(|bps| bps as f64).filter(|bps| *bps > carries);
        let estimate = estimate.map(|bps| format!(", and the player's estimate was {}", rate(bps)));
        let carries = rate(carries);
        Some(format!(
            "; the link carried {carries} when it was requested{}",
            estimate.unwrap_or_default()
        ))
    }

    /// The player's estimate when it made a request.
    pub fn estimate(&self, request: &RequestRow) -> Option<i64> {
        self.latest(request.t_ns, |row| row.estimate_bps)
    }

    /// What the player's rows up to a time say last.
    fn latest<T>(&self, t_ns: i64, of: impl Fn(&PlayerRow) -> Option<T>) -> Option<T> {
        let rows = &self.player.rows;
        let upto = rows.partition_point(|row| row.t_ns <= t_ns);
        rows[..upto].iter().rev().find_map(|row| of(row))
    }

    /// The first segment of video that was requested in a stretch of time, if it came.
    pub fn first_segment(&self, from: i64, to: i64) -> Option<Awaited<'v>> {
        let is_first = |row: &&&RequestRow| is_video(row) && (from..to).contains(&row.t_ns);
        let request = *self.player.requests.iter().filter(is_first).min_by_key(|row| row.t_ns)?;
        let end_ns = request.done_ns?;
        Some(Awaited { request, end_ns, since_ns: request.t_ns, until_ns: to })
    }

    /// The first segment's rung, and how long it took.
    pub fn told_first(&self, first: &Awaited) -> String {
        let request = first.request;
        let rung = request
            .rung_bps
            .map_or_else(String::new, |bps| format!(" was of the {} rung and", rate(bps as f64)));
        let took = span(super::since(first.end_ns, self.begun(request)));
        let carries = self.told_carries(first).unwrap_or_default();
        format!("; the first segment{rung} took {took}{carries}")
    }

    /// Rungs below that of a request; the highest first.
    fn lower_rungs(&self, request: &RequestRow) -> Vec<i64> {
        let all = self.rungs(request);
        all.into_iter().filter(|bps| Some(*bps) < request.rung_bps).collect()
    }

    /// The rung above that of a request.
    pub fn next_rung(&self, request: &RequestRow) -> Option<i64> {
        let own = request.rung_bps?;
        self.rungs(request).into_iter().rev().find(|bps| *bps > own)
    }

    /// Rungs that the player of a request can choose, as the origin offers them or requests name them; the highest first.
    fn rungs(&self, request: &RequestRow) -> Vec<i64> {
        let Some(own) = request.rung_bps else { return Vec::new() };
        let asked = self.player.requests.iter().filter(|row| row.track == request.track);
        let asked = asked.filter_map(|row| row.rung_bps);
        let offered = self.records.rungs.iter().filter(|row| row.track == Track::Video);
        let offered = offered.filter(|_| request.track != Some(Track::Audio));
        let bps = |rate: suiro_units::BitRate| i64::try_from(rate.as_bps()).ok();
        let named: Vec<(Option<i64>, Option<i64>)> =
            offered.map(|row| (row.dash_bps.and_then(bps), row.hls_bps.and_then(bps))).collect();
        // A player sees the rungs of one manifest: the one that names its own rung.
        let dash = named.iter().any(|(dash, _)| *dash == Some(own));
        let offered =
            named.into_iter().filter_map(|(in_dash, hls)| if dash { in_dash } else { hls });
        let mut rungs: Vec<i64> = asked.chain(offered).collect();
        rungs.sort_unstable_by_key(|bps| std::cmp::Reverse(*bps));
        rungs.dedup();
        rungs
    }

    /// Exact only where so much had arrived before the stall that a lower rung's segment, at its largest, is covered.
    pub fn counterfactual(&self, request: &RequestRow, from: i64) -> Option<String> {
        let lower = self.lower_rungs(request);
        let duration = request.duration_ms.filter(|ms| *ms > 0)?;
        let arrived = self.arrived(request, from)?;
        let largest = |bps: i64| bps.saturating_mul(duration) / 8000;
        let bps = lower.into_iter().find(|bps| largest(*bps) <= arrived)?;
        (request.t_ns < from).then(|| {
            format!(
                "; the {} rung, {} at most, would have arrived in time: {} had come when it stalled",
                rate(bps as f64),
                size(largest(bps)),
                size(arrived)
            )
        })
    }

    /// Payload of a request's connection that the last link on the way delivered since it was asked for. `None` if the connection
    /// is not known, or a link lost any of it: what comes after a loss waits for its repair.
    fn arrived(&self, request: &RequestRow, until: i64) -> Option<i64> {
        let peer = self.transfers.asked.peer(request)?;
        let is_own = |row: &&&LinkRow| row.flow.split_once('>').is_some_and(|(_, to)| to == peer);
        let ways = self.data.iter().filter(|way| way.rows.iter().any(|row| is_own(&row)));
        let sums = ways.map(|way| {
            let sent = || way.within(request.t_ns, until).iter().filter(is_own);
            let came = |row: &&&LinkRow| {
                row.departed_ns.is_some_and(|at| (request.t_ns..until).contains(&at))
            };
            let whole = sent().all(|row| way.way.dropped(row).is_none());
            let own = way.rows.iter().filter(is_own).filter(came);
            whole.then(|| super::total(own.map(|row| row.payload_bytes.unwrap_or(0))))
        });
        sums.collect::<Option<Vec<i64>>>()?.into_iter().min()
    }

    /// Why what limited a segment that came, with these shares, is no reason to leave its rung, if so: it came faster than that plays,
    /// or as fast as it was captured, and the sender mostly waited for that.
    pub fn was_in_time(
        &self,
        request: &RequestRow,
        ended: i64,
        shares: &[(Cause, f64)],
    ) -> Option<String> {
        let came = self.goodput(request, ended).filter(|_| request.abandoned.is_none())?;
        let rung = request.rung_bps? as f64;
        if came > rung {
            return Some(format!("its rung needs {}", rate(rung)));
        }
        let waits = [Cause::Application, Cause::RoundTrip, Cause::NoRequest];
        let waited = shares.iter().filter(|(cause, _)| waits.contains(cause)).map(|it| it.1);
        let is_live = waited.sum::<f64>() > 0.5 && self.came_live(request, ended);
        is_live.then(|| "it came as it was captured".to_owned())
    }

    /// Whether a segment was captured while it came, and was complete at most a quarter of its length later.
    fn came_live(&self, request: &RequestRow, ended: i64) -> bool {
        let seen = |row: &PlayerRow| Some((row.t_ns, row.position_ms?, row.latency_ms?));
        let known = self.latest(request.t_ns, seen);
        let media = request.media_ms.zip(request.duration_ms);
        let (Some((at, position, latency)), Some((begins, length))) = (known, media) else {
            return false;
        };
        // What is under the playhead was captured by the latency earlier, and the segment's end by so much after that.
        let after_ms = begins.saturating_add(length) as f64 - position - latency;
        let captured = at.saturating_add((after_ms * 1e6) as i64);
        let late = super::since(ended, captured);
        captured > self.begun(request) && late <= length.saturating_mul(1_000_000) / 4
    }
}
