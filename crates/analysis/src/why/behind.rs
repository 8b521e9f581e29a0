//! Players of live streams that stay behind the latency that they aim at, though they hold the media to catch up.

use suiro_record::tables::PlayerRow;
use suiro_record::words::{Cause, Effect, PlayerState};

use super::account;
use super::segments::Story;
use super::wording::{opening, span};
use super::{Evidence, Explained, Step, since, total};
use crate::held::{Stretch, distribution};

/// Players begin to catch up when they are 20 to 50 ms behind. Some of them count from the end of the playlist, which may be a few
/// hundred milliseconds old.
const BEHIND_MS: f64 = 400.0;
/// A player that catches up by 5 % makes up for 500 ms in this time.
const LASTING_NS: i64 = 10_000_000_000;
/// Played faster, as a share of the time that it played: it did try.
const TRIED: f64 = 0.25;
/// What is worth telling, as a share of the time.
const TOLD: f64 = 0.005;

/// A time in which a player was behind.
struct Behind<'a, 'v> {
    rows: &'a [&'v PlayerRow],
    target_ms: f64,
    /// Median of how far it was behind its target.
    over_ms: f64,
    /// Median of the media that it held.
    held_ms: f64,
    /// The share of the time that it played in which it played faster.
    faster: f64,
}

impl Story<'_, '_> {
    /// Times of at least ten seconds in which it was behind the target that it began with, held the media to make up for half of
    /// that or more, and mostly did not play faster.
    pub fn stayed_behind(&self) -> Vec<Explained> {
        let live: Vec<&PlayerRow> =
            self.player.rows.iter().filter(|row| row.latency_ms.is_some()).copied().collect();
        let Some(target_ms) = live.iter().find_map(|row| row.target_latency_ms) else {
            return Vec::new();
        };
        let is_behind = |row: &PlayerRow| row.latency_ms > Some(target_ms + BEHIND_MS);
        let times = live.chunk_by(|a, b| is_behind(a) == is_behind(b));
        let behind = times.filter(|rows| is_behind(rows[0]));
        behind
            .filter_map(|rows| Some(self.behind(&self.could_catch_up(rows, target_ms)?)))
            .collect()
    }

    fn could_catch_up<'a, 'v>(
        &self,
        rows: &'a [&'v PlayerRow],
        target_ms: f64,
    ) -> Option<Behind<'a, 'v>> {
        let (from, to) = (rows.first()?.t_ns, rows.last()?.t_ns);
        let playing = |it: &&Stretch<&PlayerRow>| {
            (from..to).contains(&it.from_ns) && it.value.state == PlayerState::Playing
        };
        let playing = || self.player.states.iter().filter(playing);
        let played_ns = playing().map(Stretch::length_ns).sum::<f64>();
        let faster = playing().filter(|it| it.value.speed > 1.0);
        let faster_ns = faster.map(Stretch::length_ns).sum::<f64>();
        let over_ms = distribution(playing(), |row| row.latency_ms).percentile(0.5)? - target_ms;
        let held_ms = distribution(playing(), |row| row.buffer_ms).percentile(0.5)?;
        let faster = faster_ns / played_ns;
        let could = since(to, from) >= LASTING_NS && faster <= TRIED && held_ms >= over_ms / 2.0;
        could.then_some(Behind { rows, target_ms, over_ms, held_ms, faster })
    }

    fn behind(&self, behind: &Behind) -> Explained {
        let (first, last) = (behind.rows[0], behind.rows[behind.rows.len() - 1]);
        let (from_ns, to_ns) = (first.t_ns, last.t_ns);
        let length = |ms: f64| span((ms * 1e6) as i64);
        let mostly = if behind.faster < TOLD {
            String::new()
        } else {
            format!(" for {:.0} % of that time", (1.0 - behind.faster) * 100.0)
        };
        let held = length(behind.held_ms);
        let reason = format!("the player held {held} of media and played at normal speed{mostly}");
        // Of what it did not hold, this is not the cause.
        let own = (behind.held_ms / behind.over_ms).min(1.0);
        let shares = [(Cause::NoCatchUp, own), (Cause::Unknown, 1.0 - own)];
        let mut sentence = format!(
            "{}: {reason}, {} behind its target of {}",
            opening(Effect::Late, from_ns, to_ns),
            length(behind.over_ms),
            length(behind.target_ms)
        );
        sentence.extend(self.told_origin(behind, to_ns).map(|origin| format!("; {origin}")));
        let targets = behind.rows.iter().filter_map(|row| row.target_latency_ms);
        let most_ms = targets.fold(behind.target_ms, f64::max);
        if most_ms > behind.target_ms {
            sentence.push_str(&format!("; it raised its target to {}", length(most_ms)));
        }
        let evidence = Evidence::of("player", &self.records.player, first, last);
        let evidence = evidence.map(|it| it.only(format!("endpoint={}", self.player.name)));
        let what = format!("it played {} behind its target", length(behind.over_ms));
        Explained {
            subject: self.player.name.to_owned(),
            effect: Effect::Late,
            from_ns,
            to_ns,
            shares: account::shares(shares.into_iter()),
            chain: evidence.map(|evidence| Step { what, evidence }).into_iter().collect(),
            sentence,
            because: Some(reason),
            change: None,
        }
    }

    /// What put it there, if that was most of it: how late it began, or the time that it had stalled.
    fn told_origin(&self, behind: &Behind, to_ns: i64) -> Option<String> {
        let most = behind.over_ms * 1e6 / 2.0;
        let stalls = self.player.stall_spans().into_iter().filter(|(from, _)| *from < to_ns);
        let stalled_ns = total(stalls.map(|(from, to)| since(to, from)));
        if stalled_ns as f64 >= most {
            return Some(format!("it stalled for {} in all", span(stalled_ns)));
        }
        let first = self.player.rows.iter().find(|row| row.state == PlayerState::Playing)?;
        let begun_ns = (first.latency_ms? - behind.target_ms) * 1e6;
        (begun_ns >= most).then(|| format!("it began {} behind it", span(begun_ns as i64)))
    }
}
