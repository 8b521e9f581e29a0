//! Whether the rung that a player chose is to blame for what it had to bear, and whether a lower one would have come in time.

use suiro_record::tables::{LinkRow, RequestRow};
use suiro_record::words::{Cause, Track};

use super::account;
use super::segments::{Awaited, Story, goodput};
use super::told::last_fall;
use super::wording::{rate, size};

impl Story<'_, '_> {
    /// The link's rate is to blame only for what no lower rung would have avoided: of a link that had not just fallen,
    /// the player knew the rate when it chose.
    pub fn blame_rung(&self, awaited: &Awaited, shares: &mut Vec<(Cause, f64)>) {
        let request = awaited.request;
        let known = last_fall(&self.data, (awaited.since_ns, awaited.end_ns)).is_none_or(|fall| {
            let media = request.duration_ms.unwrap_or(0).saturating_mul(1_000_000);
            fall.from_ns < request.t_ns.saturating_sub(media.saturating_mul(2))
        });
        let came = goodput(request, awaited.end_ns);
        let Some(came) = came.filter(|_| known) else { return };
        let too_high = request.rung_bps.is_some_and(|own| own as f64 > came);
        let lower = self.lower_rungs(request).into_iter().any(|bps| bps as f64 <= came);
        if !too_high || !lower {
            return;
        }
        let weights = shares.drain(..).map(|(cause, share)| match cause {
            Cause::LinkRate | Cause::RateStep => (Cause::OversizedRung, share),
            cause => (cause, share),
        });
        *shares = account::shares(weights.collect::<Vec<_>>().into_iter());
    }

    /// Rungs below that of a request, as the origin offers them or requests name them; the highest first.
    fn lower_rungs(&self, request: &RequestRow) -> Vec<i64> {
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
        let mut rungs: Vec<i64> = asked.chain(offered).filter(|bps| *bps < own).collect();
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

    /// Whether a segment came faster than its rung: then what limited it is no reason to leave that.
    pub fn was_fast(&self, request: &RequestRow, ended: i64) -> bool {
        let came = goodput(request, ended).filter(|_| request.abandoned.is_none());
        came.zip(request.rung_bps).is_some_and(|(came, rung)| came > rung as f64)
    }
}
