//! Stalls and falls of quality of players of segmented media: from the frame to the segment, to what limited its
//! transfer, to what happened on the link.

use suiro_record::tables::{LinkRow, RequestRow, RungRow};
use suiro_record::words::{Cause, Effect, RequestKind, Track};
use suiro_units::BitRate;

use super::account;
use super::blocking::Blocking;
use super::caches::Wrong;
use super::evidence::Rows;
use super::links::{Carried, Links};
use super::rules::Rules;
use super::sender::{Samples, Sender};
use super::told::{LEAST_SHARE, Told, last_fall, others, told_fall, told_path, told_waited};
use super::transfers::{Transfer, Transfers, faulty};
use super::wording::{also, clause, count, opening, rate, seconds, size, span};
use super::{Change, Crossed, Evidence, Explained, Step};
use crate::Records;
use crate::player::{Player, is_video};
use crate::view::View;

/// A stall that is shorter is a late frame.
const LEAST_NS: i64 = 50_000_000;
/// A start that takes longer makes viewers leave (Krishnan, Sitaraman: Video Stream Quality Impacts Viewer Behavior, IMC 2012).
const START_NS: i64 = 2_000_000_000;
/// Requests that a buffer is followed back through.
const BACK_MAX: usize = 50;
/// Segments that take longer than so many times their length are slow.
const SLOW: f64 = 1.05;

/// Every player that asked for segments.
pub(super) fn stories<'a, 'v>(
    view: &'v View<'_>,
    links: &'a Links<'v>,
    transfers: &'a Transfers<'v>,
) -> Vec<Story<'a, 'v>> {
    let players = view.players().iter().filter(|player| !player.requests.is_empty());
    let story = |player: &'v Player<'v>| {
        let of = |it: &&Transfer| it.viewer.is_some_and(|viewer| viewer.name == player.name);
        Story::of(view, links, player, transfers.all.iter().find(of), transfers)
    };
    players.map(story).collect()
}

/// Everything that is known about one player.
pub(super) struct Story<'a, 'v> {
    pub records: &'v Records,
    pub rules: Rules,
    pub duration_ns: i64,
    pub player: &'v Player<'v>,
    transfer: Option<&'a Transfer<'v>>,
    pub transfers: &'a Transfers<'v>,
    pub data: Vec<Carried<'a, 'v>>,
    /// What goes back to the senders.
    back: Vec<Carried<'a, 'v>>,
    /// Slices in which a cache did wrong by it.
    faulty: Vec<bool>,
}

/// What a stall waited for.
pub(super) struct Awaited<'v> {
    pub request: &'v RequestRow,
    pub end_ns: i64,
    /// When the buffer began to drain: the time that is to be explained begins here.
    pub since_ns: i64,
    /// When the player went on.
    pub until_ns: i64,
}

impl<'a, 'v> Story<'a, 'v> {
    fn of(
        view: &'v View<'_>,
        links: &'a Links<'v>,
        player: &'v Player<'v>,
        transfer: Option<&'a Transfer<'v>>,
        transfers: &'a Transfers<'v>,
    ) -> Self {
        let flows = transfer.map_or(&[][..], |transfer| &transfer.flows);
        let turned: Vec<String> = flows.iter().filter_map(|name| super::turned(name)).collect();
        Self {
            records: view.records,
            rules: view.rules,
            duration_ns: view.duration_ns,
            player,
            transfer,
            transfers,
            data: links.of(flows),
            back: links.of(&turned),
            faulty: faulty(view, Some(player), transfers.slices),
        }
    }

    /// The links on the way of its media.
    pub fn crossed(&self) -> Crossed {
        Crossed::new(self.player.name, &self.data, &self.back)
    }

    /// Its stalls, falls of quality and slow start, and where it stayed behind, or lower than it could.
    pub fn explain(&self) -> Vec<Explained> {
        let long = |(from, to): &(i64, i64)| to.saturating_sub(*from) >= LEAST_NS;
        let stalls: Vec<(i64, i64)> = self.player.stall_spans().into_iter().filter(long).collect();
        // What one stall waited for, the next one did not.
        let ended = std::iter::once(0).chain(stalls.iter().map(|(_, to)| *to));
        let mut found: Vec<Explained> =
            stalls.iter().zip(ended).map(|(span, after)| self.stall(*span, after)).collect();
        found.extend(self.falls());
        found.extend(self.start());
        found.extend(self.stayed_behind());
        found.extend(self.stayed_low());
        found
    }

    fn stall(&self, (from, to): (i64, i64), after: i64) -> Explained {
        let awaited = self.awaited(from, to);
        let since = awaited.as_ref().map_or(from, |awaited| awaited.since_ns.min(from).max(after));
        // Where it went on after the last byte, that is to be explained as well.
        let ended = awaited.as_ref().map(|awaited| awaited.end_ns.clamp(from, to));
        let until =
            ended.filter(|end| to.saturating_sub(*end) <= self.rules.shown_ns).unwrap_or(to);
        let limited = self.limited(
            awaited
                .as_ref()
                .map_or_else(Vec::new, |awaited| self.on_the_way(awaited.request, (since, until))),
        );
        let blocking = awaited.as_ref().map(|awaited| self.blocking(awaited.request, until));
        let blocking = blocking.unwrap_or_default();
        let during = (since, until.max(since.saturating_add(1)));
        let mut shares = self.shares(&limited, &blocking, during);
        if let Some(awaited) = &awaited {
            self.blame_rung(awaited, &mut shares);
        }
        let told = self.told(&shares, &blocking, (since, until));
        let mut chain = self.screen(from, to);
        if let Some(awaited) = &awaited {
            chain.extend(self.segment(awaited));
        }
        let mut sentence = opening(Effect::Stall, from, to);
        sentence.push_str(": ");
        sentence.push_str(&told.text());
        let because = told.because();
        chain.extend(self.limit(since, until, &shares, told));
        if let Some(awaited) = &awaited {
            sentence.push_str(&self.told_segment(awaited, from));
        }
        let named = shares.first().is_some_and(|(cause, _)| *cause == Cause::Cache);
        let wrong = Wrong::of(self.records, self.player.name, (since, to));
        sentence.extend(wrong.filter(|_| !named).map(|wrong| format!("; {}", wrong.told())));
        let turns = awaited.as_ref().and_then(|it| self.told_turns(it, since, &shares));
        let second = shares.get(1).map(|(cause, _)| *cause);
        let is_said = turns.is_some() && second == Some(Cause::RoundTrip);
        let other = also(&shares, "time").filter(|_| !is_said);
        sentence.extend(other.map(|other| format!("; also {other}")));
        sentence.extend(turns);
        let subject = self.player.name.to_owned();
        Explained {
            subject,
            effect: Effect::Stall,
            from_ns: from,
            to_ns: to,
            shares,
            chain,
            sentence,
            because,
            change: None,
        }
    }

    /// A start that was slow, and what limited the player's flows until then.
    fn start(&self) -> Option<Explained> {
        let from = self.player.rows.first()?.t_ns;
        let seconds_ns = self.player.startup_s()? * 1e9;
        let to = from.saturating_add(seconds_ns as i64);
        if to.saturating_sub(from) <= START_NS {
            return None;
        }
        let blocking = Blocking::default();
        let mut shares = self.shares(&self.limited(Vec::new()), &blocking, (from, to));
        let first = self.first_segment(from, to);
        let took = |it: &&Awaited| super::since(it.end_ns.min(to), it.request.t_ns);
        // A choice that cost less than half of the time is not the cause of it.
        if let Some(first) = first.as_ref().filter(|it| took(it) > super::since(to, from) / 2) {
            self.blame_rung(first, &mut shares);
        }
        let told = self.told(&shares, &blocking, (from, to));
        let mut sentence = format!("{}: {}", opening(Effect::Startup, from, to), told.text());
        sentence.extend(first.as_ref().map(|first| self.told_first(first)));
        sentence.extend(also(&shares, "time").map(|other| format!("; also {other}")));
        let because = told.because();
        let limit = self.limit(from, to, &shares, told);
        Some(Explained {
            subject: self.player.name.to_owned(),
            effect: Effect::Startup,
            from_ns: from,
            to_ns: to,
            chain: first.and_then(|it| self.segment(&it)).into_iter().chain(limit).collect(),
            shares,
            sentence,
            because,
            change: None,
        })
    }

    /// The request whose answer ended the stall: of those that were pending, the one for what the playhead stood
    /// before, or else the one that ended last.
    fn awaited(&self, from: i64, to: i64) -> Option<Awaited<'v>> {
        let segments = || self.player.requests.iter().copied().filter(|row| is_segment(row));
        let before = self.player.rows.partition_point(|row| row.t_ns <= from);
        let position = before.checked_sub(1).and_then(|at| self.player.rows[at].position_ms);
        let pending = |row: &&RequestRow| row.t_ns <= to && end(row, to) >= from;
        let under = |row: &RequestRow| {
            let begins = row.media_ms.zip(position).map(|(ms, at)| (ms as f64, at));
            let length = row.duration_ms.unwrap_or(0) as f64;
            begins.is_some_and(|(begins, at)| {
                begins <= at + length / 2.0 && begins + length > at + 20.0
            })
        };
        let in_time = |row: &RequestRow| end(row, to) <= to.saturating_add(self.rules.shown_ns);
        let request = segments().filter(pending).max_by_key(|row| {
            (row.abandoned.is_none() && row.error.is_none(), under(row), in_time(row), end(row, to))
        })?;
        let (end_ns, since_ns) = (end(request, to), self.since(request, from));
        Some(Awaited { request, end_ns, since_ns, until_ns: to })
    }

    /// Back over the requests of the same track that each took longer than their media lasts. One that is captured while it comes
    /// takes as long as it lasts, and what a queue or a chunk adds.
    fn since(&self, request: &RequestRow, from: i64) -> i64 {
        let same = |row: &&&RequestRow| is_segment(row) && row.track == request.track;
        let mut earlier: Vec<&RequestRow> = self
            .player
            .requests
            .iter()
            .filter(same)
            .filter(|row| row.t_ns < request.t_ns)
            .copied()
            .collect();
        let mut since = request.t_ns.min(from);
        for _ in 0..BACK_MAX {
            let Some(row) = earlier.pop() else { break };
            let ended = end(row, since);
            let begun = self.begun(row);
            let slow = row
                .duration_ms
                .is_some_and(|ms| ended.saturating_sub(begun) as f64 > ms as f64 * 1e6 * SLOW);
            if !slow || since.saturating_sub(ended) > self.rules.next_request_ns {
                break;
            }
            since = begun;
        }
        since
    }

    /// When a segment was asked for, or what comes before it had come, whichever is later: it may be asked for ahead.
    pub fn begun(&self, request: &RequestRow) -> i64 {
        let requests = &self.player.requests;
        let earlier = &requests[..requests.partition_point(|row| row.t_ns < request.t_ns)];
        let same = |row: &&&RequestRow| is_segment(row) && row.track == request.track;
        let before = earlier.iter().rev().find(same).and_then(|row| row.done_ns);
        let before = before.map(|done| done.min(request.done_ns.unwrap_or(done)));
        request.t_ns.max(before.unwrap_or(request.t_ns))
    }

    /// How fast a segment came that ended then, in bits a second.
    pub fn goodput(&self, request: &RequestRow, end_ns: i64) -> Option<f64> {
        let ns = end_ns.saturating_sub(self.begun(request));
        (ns > 0 && request.body_bytes > 0).then(|| request.body_bytes as f64 * 8e9 / ns as f64)
    }

    /// The requests for the same track as one, in a stretch of time, and that one.
    fn on_the_way(&self, request: &'v RequestRow, (from, to): (i64, i64)) -> Vec<&'v RequestRow> {
        let during = |row: &&RequestRow| {
            is_segment(row) && row.track == request.track && (from..to).contains(&row.t_ns)
        };
        let others = self.player.requests.iter().copied().filter(during);
        others.filter(|row| !std::ptr::eq(*row, request)).chain([request]).collect()
    }

    /// What limited the connections of some requests, by slice; all of the player's, if not each of them is known, or there are
    /// none.
    pub fn limited(&self, requests: Vec<&'v RequestRow>) -> Vec<Option<Cause>> {
        let peers: Option<Vec<&str>> =
            requests.into_iter().map(|row| self.transfers.asked.peer(row)).collect();
        match self.transfer {
            Some(transfer) => transfer.limited(&peers.unwrap_or_default()),
            // The connection is not known, but the fault of the cache is.
            None => self.faulty.iter().map(|faulty| faulty.then_some(Cause::Cache)).collect(),
        }
    }

    /// How the answer to a request waited for what was lost before it.
    fn blocking(&self, request: &RequestRow, to: i64) -> Blocking<'v> {
        let paths = (&*self.data, &*self.back);
        Blocking::of(self.transfer, &self.transfers.asked, paths, request, to)
    }

    /// What limited the player's flows in a stretch of time, as shares of it. While a loss did, and the request is known to have
    /// waited for packets of others, that is the cause.
    pub fn shares(
        &self,
        limited: &[Option<Cause>],
        blocking: &Blocking,
        (from, to): (i64, i64),
    ) -> Vec<(Cause, f64)> {
        let slices = self.transfers.slices;
        let mut weights = Vec::new();
        slices.spread(from, to, |index, ns| {
            let cause = limited[index].unwrap_or(Cause::Unknown);
            let (begins, ends) = slices.span(index);
            let waited = match cause {
                Cause::Loss => blocking.waited_ns(begins.max(from), ends.min(to)),
                _ => 0,
            };
            weights.push((Cause::HeadOfLine, waited as f64));
            weights.push((cause, super::since(ns, waited) as f64));
        });
        let shares = account::shares(weights.into_iter());
        if shares.is_empty() { vec![(Cause::Unknown, 1.0)] } else { shares }
    }

    /// The main cause as a clause, with its numbers and the rows of links that show them.
    fn told(&self, shares: &[(Cause, f64)], blocking: &Blocking, during: (i64, i64)) -> Told {
        let cause = shares.first().map_or(Cause::Unknown, |(cause, _)| *cause);
        let waited =
            || told_waited(&self.data, during, self.records).map_or_else(Vec::new, |it| it.steps);
        let told = match cause {
            Cause::RateStep => {
                last_fall(&self.data, during).map(|fall| Told::new(told_fall(&fall), waited()))
            }
            Cause::Competing => {
                let share = others(&self.data, during);
                let clause = format!("other flows had {:.0} % of the link", share * 100.0);
                let told = Told::new(clause, waited());
                Some(Told { is_shown: share >= LEAST_SHARE, ..told })
            }
            Cause::Cache => self.told_cache(during),
            Cause::HeadOfLine => blocking.told(self.records),
            Cause::Unknown => {
                let clause = format!("not known: {}", self.missing());
                Some(Told { clause, ..Told::nothing(cause) })
            }
            _ => {
                let ways = (&*self.data, &*self.back);
                told_path(cause, ways, during, self.duration_ns, self.records)
            }
        };
        let mut told = told.unwrap_or_else(|| Told::plain(cause));
        match cause {
            Cause::Loss if told.is_shown => told.more.extend(blocking.told_shared()),
            Cause::Pacing => {
                told.more.extend(self.only(during).and_then(|sender| sender.told_slower(during)));
            }
            _ => {}
        }
        told
    }

    /// What its cache did, with the answers that show it.
    fn told_cache(&self, during: (i64, i64)) -> Option<Told> {
        let wrong = Wrong::of(self.records, self.player.name, during)?;
        Some(Told::new(wrong.told(), wrong.steps(self.records)))
    }

    /// Which record is missing.
    fn missing(&self) -> &'static str {
        let Some(transfer) = self.transfer else {
            return "neither table `tcp` nor `quic` has the connection that carried its requests";
        };
        let is_short = |sender: &Sender| match &sender.samples {
            Samples::Tcp(socket) => socket.samples.iter().any(|sample| {
                let row = sample.value;
                [row.busy_us, row.rwnd_limited_us, row.unsent_bytes].contains(&None)
            }),
            Samples::Quic(_) => false,
        };
        match transfer.senders.iter().any(is_short) {
            true => {
                "table `tcp` with `busy_us`, `rwnd_limited_us` and `unsent_bytes` would show it"
            }
            false => "the records of its connections do not show it",
        }
    }

    /// The segment that was awaited, and whether a lower rung would have been in time.
    fn told_segment(&self, awaited: &Awaited, from: i64) -> String {
        let request = awaited.request;
        let took = span(super::since(awaited.end_ns, self.begun(request)));
        let under_way = if request.t_ns <= from { "under way" } else { "that was missing" };
        if request.track == Some(Track::Audio) {
            // It has one rung, and is not given up.
            return format!("; the segment {under_way} was of the sound, took {took}");
        }
        let rung = request
            .rung_bps
            .map_or(String::new(), |bps| format!(" of the {} rung", rate(bps as f64)));
        let mut text = format!("; the segment {under_way} was{rung}, took {took}");
        match (request.abandoned.is_some(), self.given_up_before(request)) {
            (true, _) => text.push_str(" and was abandoned"),
            (false, None) => text.push_str(" and was not abandoned"),
            (false, Some(first)) => {
                let of = first
                    .rung_bps
                    .map_or(String::new(), |bps| format!(", of the {} rung,", rate(bps as f64)));
                text.push_str(&format!("; a try before it{of} was abandoned"));
            }
        }
        text.extend(self.told_carries(awaited));
        text.extend(self.counterfactual(request, from));
        text
    }

    /// The last request for the same media that the player abandoned before it made this one.
    fn given_up_before(&self, request: &RequestRow) -> Option<&'v RequestRow> {
        let media = |row: &RequestRow| (row.track, row.media_ms);
        let same = |row: &&&RequestRow| {
            row.t_ns < request.t_ns && row.abandoned.is_some() && media(row) == media(request)
        };
        let requests = self.player.requests.iter().filter(|_| request.media_ms.is_some());
        requests.filter(same).max_by_key(|row| row.t_ns).copied()
    }

    fn screen(&self, from: i64, to: i64) -> Vec<Step> {
        let frames = &self.records.frames;
        let shown = self.player.screen.shown();
        let next = shown.partition_point(|(t_ns, _)| *t_ns <= from);
        let last = next.checked_sub(1).and_then(|at| shown.get(at)).map(|(_, row)| *row);
        let first = shown.get(next).map(|(_, row)| *row);
        let evidence = match (last, first) {
            (Some(last), Some(first)) => Evidence::of("frames", frames, last, first),
            (Some(one), None) | (None, Some(one)) => Evidence::row("frames", frames, one),
            (None, None) => {
                let at = self.player.rows.iter().find(|row| row.t_ns >= from);
                at.and_then(|row| Evidence::row("player", &self.records.player, row))
            }
        };
        let what = format!("the screen did not change from {} to {}", seconds(from), seconds(to));
        evidence.map(|evidence| Step { what, evidence }).into_iter().collect()
    }

    fn segment(&self, awaited: &Awaited) -> Option<Step> {
        let request = awaited.request;
        let evidence = Evidence::row("requests", &self.records.requests, request)?;
        let what = format!(
            "it waited for {}, requested at {}, complete at {}",
            request.url,
            seconds(request.t_ns),
            seconds(awaited.end_ns)
        );
        Some(Step { what, evidence })
    }

    /// What limited the transfer, and where sockets and links show it.
    fn limit(&self, from: i64, to: i64, shares: &[(Cause, f64)], told: Told) -> Vec<Step> {
        let cause = shares.first().map_or(Cause::Unknown, |(cause, _)| *cause);
        let senders = self.transfer.into_iter().flat_map(|transfer| &transfer.senders);
        let found = senders.filter_map(|sender| sender.evidence(self.records, from, to));
        let busiest = found.max_by_key(|(bytes, _)| *bytes);
        let mut steps: Vec<Step> = Vec::new();
        steps.extend(busiest.map(|(_, evidence)| Step { what: clause(cause).into(), evidence }));
        match told.steps.is_empty() {
            false => steps.extend(told.steps),
            true => {
                let rows = self.data.iter().flat_map(|way| way.within(from, to).iter().copied());
                let rows = Rows { rows: rows.collect(), from, to };
                let what =
                    |rows: &[&LinkRow]| format!("{} came to links", count(rows.len(), "packet"));
                steps.extend(rows.steps(self.records, what, ""));
            }
        }
        steps
    }

    /// Its connection, if only one sent in a stretch of time.
    fn only(&self, (from, to): (i64, i64)) -> Option<&'a Sender<'v>> {
        let senders = self.transfer.into_iter().flat_map(|transfer| &transfer.senders);
        let sent = |sender: &&Sender| {
            sender.evidence(self.records, from, to).is_some_and(|(bytes, _)| bytes > 0)
        };
        let mut senders = senders.filter(sent);
        senders.next().filter(|_| senders.next().is_none())
    }

    /// Its requests for segments of video.
    pub fn videos(&self) -> Vec<&'v RequestRow> {
        self.player.requests.iter().copied().filter(|row| is_video(row)).collect()
    }

    /// Each time a segment of a lower rung than the one before was asked for: what limited that one.
    fn falls(&self) -> Vec<Explained> {
        let rows = self.videos();
        let falls = rows.iter().enumerate().filter_map(|(at, after)| {
            // Not one that was asked for ahead of a segment that was given up or failed.
            let is_before = |row: &&&RequestRow| {
                row.media_ms.zip(after.media_ms).is_none_or(|(row, after)| row <= after)
            };
            let before = rows[..at].iter().rev().find(is_before)?;
            let (was, is) = (before.rung_bps?, after.rung_bps?);
            let until = rows[at..].iter().find(|row| row.rung_bps >= Some(was));
            let until = until.map_or(self.duration_ns, |row| row.t_ns);
            (is < was).then(|| self.fell(before, after, (was, is), until))
        });
        falls.collect()
    }

    /// When the playhead was first where this segment begins.
    fn seen(&self, request: &RequestRow) -> Option<i64> {
        let begins = request.media_ms? as f64;
        let mut later = self.player.rows.iter().filter(|row| row.t_ns >= request.t_ns);
        later.find(|row| row.position_ms.is_some_and(|at| at >= begins)).map(|row| row.t_ns)
    }

    fn fell(
        &self,
        before: &'v RequestRow,
        after: &'v RequestRow,
        (was, is): (i64, i64),
        until: i64,
    ) -> Explained {
        let ended = end(before, after.t_ns).min(after.t_ns).max(before.t_ns.saturating_add(1));
        let blocking = self.blocking(before, ended);
        let limited = self.limited(vec![before]);
        let mut shares = self.shares(&limited, &blocking, (before.t_ns, ended));
        let was_in_time = self.was_in_time(before, ended, &shares);
        if was_in_time.is_some() {
            shares = vec![(Cause::Unknown, 1.0)];
        }
        let came = match &before.abandoned {
            Some(_) => {
                format!("a segment was abandoned, of which {} had come", size(before.body_bytes))
            }
            None => match self.goodput(before, ended) {
                Some(bps) => format!("the segment before came at {}", rate(bps)),
                // A player in a browser does not say how it arrived.
                None => "at what rate the segment before came is not known".to_owned(),
            },
        };
        let mut told = self.told(&shares, &blocking, (before.t_ns, ended));
        if let Some(reason) = was_in_time {
            told.clause = format!("not known: {reason}");
        }
        let change = Change { seen_ns: self.seen(after), ..change(&self.records.rungs, was, is) };
        let (Change { from, to, .. }, requested) = (&change, seconds(after.t_ns));
        let opening = match change.seen_ns {
            Some(seen) => {
                format!(
                    "quality fell from {from} to {to} at {}, requested at {requested}",
                    seconds(seen)
                )
            }
            None => format!("{to} was requested instead of {from} at {requested}"),
        };
        let mut sentence = format!("{opening}: {came}; {}", told.text());
        sentence.extend(also(&shares, "time").map(|other| format!("; also {other}")));
        let requests = &self.records.requests;
        let evidence = Evidence::of("requests", requests, before, after);
        let what = "a lower rung was requested".to_owned();
        let mut chain: Vec<Step> =
            evidence.map(|evidence| Step { what, evidence }).into_iter().collect();
        let because = told.because();
        chain.extend(self.limit(before.t_ns, ended, &shares, told));
        Explained {
            subject: self.player.name.to_owned(),
            effect: Effect::Quality,
            from_ns: after.t_ns,
            to_ns: until.max(after.t_ns),
            shares,
            chain,
            sentence,
            because,
            change: Some(change),
        }
    }
}

/// From one rung to another, by their heights if these differ.
fn change(rungs: &[RungRow], was: i64, is: i64) -> Change {
    let height = |bps: i64| {
        let named = |rate: Option<BitRate>| rate.and_then(|it| i64::try_from(it.as_bps()).ok());
        let is_it = |row: &&RungRow| {
            row.track == Track::Video && [row.dash_bps, row.hls_bps].map(named).contains(&Some(bps))
        };
        rungs.iter().find(is_it)?.height
    };
    let (from, to) = match height(was).zip(height(is)) {
        Some((was, is)) if was != is => (format!("{was}p"), format!("{is}p")),
        _ => (rate(was as f64), rate(is as f64)),
    };
    Change { from, to, level: is, seen_ns: None }
}

fn is_segment(row: &RequestRow) -> bool {
    row.kind == RequestKind::Segment
}

/// When a request ended; of one without an end, `otherwise`.
fn end(row: &RequestRow, otherwise: i64) -> i64 {
    row.done_ns.unwrap_or(otherwise.max(row.t_ns))
}
