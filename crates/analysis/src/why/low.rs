//! Players that stay at a rung though the network would carry a higher one, because they take it for slower than it is.

use std::collections::BTreeMap;

use suiro_record::tables::RequestRow;
use suiro_record::words::{Cause, Effect};

use super::account;
use super::asked::waits_for_origin;
use super::blocking::Blocking;
use super::segments::Story;
use super::wording::{opening, rate};
use super::{Evidence, Explained, Step, since};
use crate::stats::Distribution;

/// So many times the next rung is room for it, whatever share of the network a player leaves unused.
const ROOM: f64 = 2.0;
/// A player has seen enough by then, of several segments.
const LASTING_NS: i64 = 10_000_000_000;
const SEGMENTS: usize = 3;
/// Of the time in which there was something to send, this share at most may be of losses, windows and the like.
const HELD_BACK: f64 = 0.1;

/// A segment that was requested although there was room for the next rung, and what the player took the network for.
#[derive(Clone, Copy)]
struct Low<'v> {
    request: &'v RequestRow,
    next_bps: i64,
    estimate_bps: f64,
    carries_bps: f64,
}

impl<'v> Story<'_, 'v> {
    /// Times of at least ten seconds in which the links carried twice the next rung, the player's estimate was below that rung, and
    /// neither losses, windows, other flows nor an origin behind a cache limited its connections.
    pub fn stayed_low(&self) -> Vec<Explained> {
        let rows = self.videos();
        // Parts are many, and rungs are few.
        let mut nexts = BTreeMap::new();
        let mut next =
            |row: &RequestRow| *nexts.entry(row.rung_bps).or_insert_with(|| self.next_rung(row));
        let lows: Vec<Option<Low>> = rows.iter().map(|row| self.low(row, next(row)?)).collect();
        let (mut found, mut at) = (Vec::new(), 0);
        for run in lows.chunk_by(|a, b| a.is_some() == b.is_some()) {
            at += run.len();
            let next = rows.get(at).map_or(self.duration_ns, |row| row.t_ns);
            let run: Vec<Low> = run.iter().copied().flatten().collect();
            found.extend(self.was_low(&run, next));
        }
        found
    }

    fn low(&self, request: &'v RequestRow, next_bps: i64) -> Option<Low<'v>> {
        let estimate = self.estimate(request);
        let rates = self.data.iter().map(|way| way.way.rate_bps(request.t_ns));
        let rates = rates.collect::<Option<Vec<f64>>>()?;
        let carries_bps = rates.into_iter().min_by(f64::total_cmp)?;
        let low = Low { request, next_bps, estimate_bps: estimate? as f64, carries_bps };
        let next = next_bps as f64;
        (carries_bps >= ROOM * next && low.estimate_bps < next).then_some(low)
    }

    /// `next`: when the segment after these was requested.
    fn was_low(&self, run: &[Low<'v>], next: i64) -> Option<Explained> {
        let (first, last) = (run.first()?, run.last()?);
        // A player that asks for nothing more may have all that there is.
        let media_ns = last.request.duration_ms.unwrap_or(0).saturating_mul(1_000_000);
        let during = (first.request.t_ns, next.min(last.request.t_ns.saturating_add(media_ns)));
        let is_short = run.len() < SEGMENTS || since(during.1, during.0) < LASTING_NS;
        if is_short || self.waited_for_origin(during) || self.was_held_back(run, during) {
            return None;
        }
        let median =
            |of: fn(&Low) -> f64| Distribution::equal(run.iter().map(of)).percentile(0.5).map(rate);
        let reason = format!(
            "the player's estimate was {}, below the next rung of {}; the link carried {}",
            median(|low| low.estimate_bps)?,
            median(|low| low.next_bps as f64)?,
            median(|low| low.carries_bps)?
        );
        let requests = &self.records.requests;
        let evidence = Evidence::of("requests", requests, first.request, last.request);
        let evidence = evidence.map(|it| it.only(format!("endpoint={}", self.player.name)));
        let what = "a higher rung would have fitted".to_owned();
        Some(Explained {
            subject: self.player.name.to_owned(),
            effect: Effect::Quality,
            from_ns: during.0,
            to_ns: during.1,
            shares: account::shares([(Cause::Underestimate, 1.0)].into_iter()),
            chain: evidence.map(|evidence| Step { what, evidence }).into_iter().collect(),
            sentence: format!("{}: {reason}", opening(Effect::Quality, during.0, during.1)),
            because: Some(reason),
            change: None,
        })
    }

    /// Whether a cache asked its origin meanwhile: then the path from there may be what limits.
    fn waited_for_origin(&self, (from, to): (i64, i64)) -> bool {
        let mut access = self.records.access.iter();
        access.any(|row| (from..to).contains(&row.t_ns) && waits_for_origin(row))
    }

    /// Whether something limited the connections of these requests that a player which asks for more would meet as well.
    fn was_held_back(&self, run: &[Low<'v>], during: (i64, i64)) -> bool {
        let requests = run.iter().map(|low| low.request).collect();
        let shares = self.shares(&self.limited(requests), &Blocking::default(), during);
        let of = |is: fn(Cause) -> bool| -> f64 {
            shares.iter().filter(|(cause, _)| is(*cause)).map(|(_, share)| share).sum()
        };
        let busy = 1.0 - of(is_idle);
        busy - of(is_free) > HELD_BACK * busy
    }
}

/// Whether nothing was to be sent.
const fn is_idle(cause: Cause) -> bool {
    matches!(cause, Cause::NoRequest | Cause::Application)
}

/// Whether a connection that this limits would carry more if the player asked for more.
const fn is_free(cause: Cause) -> bool {
    matches!(cause, Cause::RoundTrip | Cause::Handshake | Cause::Manifest | Cause::LinkRate)
}
