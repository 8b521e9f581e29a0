//! What limited each flow that carries media or load over TCP or HTTP/3, and each viewer's flows together.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use suiro_record::tables::AccessRow;
use suiro_record::words::{Cause, RequestKind};

use super::asked::{Asked, Request, pending, waits_for_origin};
use super::caches;
use super::connections;
use super::drops::Drops;
use super::endpoints::{Absence, absences, absent, clients, servers};
use super::evidence::Evidence;
use super::links::{Carried, Links, Load};
use super::path::{Seen, slowness};
use super::rules::Rules;
use super::sender::{Account, Sender};
use super::slices::Slices;
use super::sockets;
use super::upstream::{Brought, Upstream, upstream};
use super::{FLOWS_MAX, Limit, SLICE_NS, Subject};
use crate::player::Player;
use crate::view::View;

/// The flows of a viewer, or one flow that belongs to none.
pub(super) struct Transfer<'v> {
    pub viewer: Option<&'v Player<'v>>,
    pub senders: Vec<Sender<'v>>,
    /// As links name them: the senders' flows, and others that brought this viewer something.
    pub flows: Vec<String>,
    /// What limited each of them, by slice; `None` where it did not exist.
    causes: Vec<Vec<Option<Cause>>>,
    /// What limited all of them together, by slice; `None` where none existed.
    pub together: Vec<Option<Cause>>,
}

impl Transfer<'_> {
    /// What limited those of its connections that end at these peers, by slice; all of them where none of these existed.
    pub fn limited(&self, peers: &[&str]) -> Vec<Option<Cause>> {
        let each = self.senders.iter().zip(&self.causes);
        let own = each.filter(|(sender, _)| peers.iter().any(|peer| sender.ends_at(peer)));
        let own = together(&own.collect::<Vec<_>>(), self.together.len());
        own.into_iter().zip(&self.together).map(|(own, all)| own.or(*all)).collect()
    }
}

/// All of a trial.
pub(super) struct Transfers<'v> {
    pub all: Vec<Transfer<'v>>,
    pub asked: Asked<'v>,
    pub slices: Slices,
    /// Flows beyond [`FLOWS_MAX`].
    pub left_out: usize,
}

/// What limited viewers and flows; and what that was found out of.
pub(super) fn subjects<'v>(
    view: &'v View<'_>,
    links: &Links<'v>,
    slices: Slices,
) -> (Vec<Subject>, Transfers<'v>) {
    let mut senders: Vec<Sender> = view
        .sockets()
        .iter()
        .filter_map(|socket| sockets::sender(socket, slices, view.rules))
        .collect();
    senders.extend(connections::senders(view, slices));
    senders.sort_by_key(|sender| std::cmp::Reverse(sender.acked_bytes));
    let left_out = senders.len().saturating_sub(FLOWS_MAX);
    senders.truncate(FLOWS_MAX);
    let asked = Asked::of(view);
    let mut groups: BTreeMap<String, (Option<&Player>, Vec<Sender>)> = BTreeMap::new();
    for sender in senders {
        let viewer = asked.viewer(view, &sender);
        let name = viewer.map_or(&*sender.name, |viewer| viewer.name).to_owned();
        groups.entry(name).or_insert((viewer, Vec::new())).1.push(sender);
    }
    let mut all = Vec::new();
    let mut subjects = Vec::new();
    let brought = Brought::of(view, links);
    for (name, (viewer, senders)) in groups {
        let mut flows: BTreeSet<String> = senders.iter().map(Sender::flow).collect();
        flows.extend(brought.to(&name));
        let flows = flows.into_iter().collect();
        let transfer = decide(view, (links, &brought), slices, &asked, (viewer, senders, flows));
        let limits = limits(view, &transfer, slices);
        subjects.push(Subject { name, is_viewer: viewer.is_some(), limits });
        all.push(transfer);
    }
    (subjects, Transfers { all, asked, slices, left_out })
}

fn decide<'v>(
    view: &'v View<'_>,
    (links, brought): (&Links<'v>, &Brought<'v>),
    slices: Slices,
    asked: &Asked<'v>,
    (viewer, senders, flows): (Option<&'v Player<'v>>, Vec<Sender<'v>>, Vec<String>),
) -> Transfer<'v> {
    let names: Vec<String> = senders.iter().map(Sender::flow).collect();
    let turned: Vec<String> = flows.iter().filter_map(|name| super::turned(name)).collect();
    let (data, acks) = (links.of(&flows), links.of(&turned));
    let faulty = faulty(view, viewer, slices);
    let upstream = upstream(links, brought, asked, viewer);
    let judge = |(sender, name): (_, &String)| Judge {
        slices,
        rules: view.rules,
        sender,
        asked: asked.of_sender(viewer, sender),
        manifests: asked.manifests(viewer),
        full: viewer.map(|viewer| full(viewer, slices, view.rules.full)).unwrap_or_default(),
        faulty: &faulty,
        handshakes: asked.handshakes(viewer),
        round_trips_ns: round_trips_ns(sender),
        own: links.of(std::slice::from_ref(name)),
        data: &data,
        acks: &acks,
        upstream: &upstream,
        server: absences(view, &servers(view, sender)),
        client: absences(view, &clients(view, viewer, sender)),
    };
    let judges: Vec<Judge> = senders.iter().zip(&names).map(judge).collect();
    let causes: Vec<_> = judges.iter().map(Judge::causes).collect();
    // It is of the viewer, whichever connection is judged.
    let opening = judges.last().map(Judge::opening).unwrap_or_default();
    let each: Vec<_> = senders.iter().zip(&causes).collect();
    let mut together = together(&each, slices.count);
    // Where no connection existed, the player may have been opening one.
    let alone = together.iter_mut().zip(opening).filter(|(cause, _)| cause.is_none());
    alone.for_each(|(cause, opening)| *cause = opening);
    // Or a cache had cut off the only one.
    let cut =
        together.iter_mut().zip(&faulty).filter(|(cause, faulty)| cause.is_none() && **faulty);
    cut.for_each(|(cause, _)| *cause = Some(Cause::Cache));
    Transfer { viewer, senders, flows, causes, together }
}

/// Longer than this, what is on its way met something: three of the shortest round trips, and a slice.
fn round_trips_ns(sender: &Sender) -> i64 {
    sender.least_rtt_ns().saturating_mul(3).saturating_add(super::SLICE_NS)
}

/// The slices in which a cache did wrong by a viewer.
pub(super) fn faulty(view: &View<'_>, viewer: Option<&Player>, slices: Slices) -> Vec<bool> {
    let mut lasted_ns = vec![0; slices.count];
    for (from, to) in viewer.map_or_else(Vec::new, |viewer| caches::acted(view.records, viewer)) {
        slices.spread(from, to, |index, ns| lasted_ns[index] += ns);
    }
    let most = |(index, ns): (usize, i64)| {
        let (from, to) = slices.span(index);
        ns * 2 >= to - from
    };
    lasted_ns.into_iter().enumerate().map(most).collect()
}

/// The slices in which a player's buffer was full.
fn full(viewer: &Player, slices: Slices, full: f64) -> Vec<bool> {
    let mut buffers: Vec<f64> = viewer.rows.iter().filter_map(|row| row.buffer_ms).collect();
    buffers.sort_by(f64::total_cmp);
    let Some(most) = buffers.get(buffers.len() * 95 / 100) else { return Vec::new() };
    let mut is_full = vec![false; slices.count];
    for state in &viewer.states {
        let enough = state.value.buffer_ms.is_some_and(|ms| ms >= full * most && ms > 0.0);
        slices.spread(state.from_ns, state.to_ns, |index, _| is_full[index] |= enough);
    }
    is_full
}

/// Decides what limited one sender.
struct Judge<'a, 'v> {
    slices: Slices,
    rules: Rules,
    sender: &'a Sender<'v>,
    /// `None` for a flow without a viewer.
    asked: Option<Vec<Request<'v>>>,
    manifests: Vec<Request<'v>>,
    /// When the player opened connections.
    handshakes: Vec<(i64, i64)>,
    /// Slices in which a cache did wrong by the viewer.
    faulty: &'a [bool],
    /// Slices in which the player's buffer was full.
    full: Vec<bool>,
    /// See [`round_trips_ns`].
    round_trips_ns: i64,
    /// The sender's own packets.
    own: Vec<Carried<'a, 'v>>,
    /// All packets of the viewer's flows, and their ACKs.
    data: &'a [Carried<'a, 'v>],
    acks: &'a [Carried<'a, 'v>],
    /// What came to the caches that answered the viewer.
    upstream: &'a [Upstream<'a, 'v>],
    server: Vec<Absence<'v>>,
    client: Vec<Absence<'v>>,
}

/// Why a congestion window is smaller than it was.
#[derive(Clone, Copy, PartialEq)]
struct Reduced {
    cause: Cause,
    /// What the window was before.
    cwnd: i64,
    /// The slice in which it was reduced.
    at: usize,
}

/// Where something may have happened to some packets.
#[derive(Clone, Copy)]
struct Path<'p, 'a, 'v> {
    /// Links with these packets.
    ways: &'p [Carried<'a, 'v>],
    /// The same links with all packets of the viewer, which do not compete with one another.
    all: &'p [Carried<'a, 'v>],
    /// The acknowledgements.
    acks: &'p [Carried<'a, 'v>],
    /// Whether some came in the slice that is judged.
    progress: bool,
    /// Whether a queue that they have left by then counts no more: they are in transit again.
    left: bool,
}

impl<'a, 'v> Judge<'a, 'v> {
    const fn own_path(&self) -> Path<'_, 'a, 'v> {
        Path { ways: self.own.as_slice(), ..self.whole_path() }
    }

    const fn whole_path(&self) -> Path<'_, 'a, 'v> {
        let (progress, left) = (false, false);
        Path { ways: self.data, all: self.data, acks: self.acks, progress, left }
    }

    fn causes(&self) -> Vec<Option<Cause>> {
        let mut causes = vec![None; self.slices.count];
        let mut reduced = None;
        for index in self.sender.lifetime.clone() {
            let account = &self.sender.accounts[index];
            reduced = self.reduced(reduced, index);
            let cause = self.cause(index, account, reduced);
            causes[index] = Some(if self.faulty[index] { by_cache(cause) } else { cause });
        }
        causes
    }

    /// A window is small because of a loss until it is what it was, and no longer than [`Rules::regained_slices`].
    fn reduced(&self, before: Option<Reduced>, index: usize) -> Option<Reduced> {
        let cwnd = self.sender.accounts[index].cwnd;
        if let Some(cause) = self.dropped(self.own_path(), index..index + 1) {
            let last = self.sender.accounts[index.saturating_sub(1)].cwnd;
            let was = before.map_or(last, |before| before.cwnd.max(last));
            return Some(Reduced { cause, cwnd: was, at: index });
        }
        before
            .filter(|before| cwnd < before.cwnd && index - before.at <= self.rules.regained_slices)
    }

    /// What kept packets of some slices from their receiver; `None` if nothing did.
    fn dropped(&self, Path { ways, all, .. }: Path, slices: Range<usize>) -> Option<Cause> {
        let of = |slices: Range<usize>| {
            let loads = ways.iter().filter_map(|way| way.own.get(slices.clone())).flatten();
            let mut drops = Drops::default();
            loads.for_each(|load| drops.add(&load.drops));
            drops
        };
        let how = of(slices.clone()).most()?;
        // A full queue is judged by the link as it was then.
        let last = || slices.clone().rev().find(|at| of(*at..at + 1).most() == Some(how));
        how.cause().or_else(|| Some(self.link(all, last()?)))
    }

    /// Whether a timeout has lasted for longer than what packets met in a queue explains: it has been backed off.
    fn is_backed_off(&self, index: usize) -> bool {
        let busy = |load: &Load| load.drops.count_all() > 0 || load.queued_ns > SLICE_NS / 2;
        let recent = index.saturating_sub(self.rules.timer_slices)..index + 1;
        !self.own.iter().any(|way| way.own.get(recent.clone()).unwrap_or_default().iter().any(busy))
    }

    /// What packets and their acknowledgements met on the links from one slice to another, the worst first.
    fn met(&self, path: Path, first: usize, last: usize) -> Option<Cause> {
        let Path { ways, acks, .. } = path;
        let slices = first.max(last.saturating_sub(self.rules.back_slices))..last + 1;
        let out = |ways: &[Carried]| {
            let mut loads = ways.iter().filter_map(|way| way.own.get(slices.clone())).flatten();
            loads.any(|load| load.out_ns > 0)
        };
        if out(ways) {
            return Some(Cause::Outage);
        }
        if let Some(cause) = self.dropped(path, slices.clone()) {
            return Some(cause);
        }
        let (from, to) = (self.slices.span(slices.start).0, self.slices.span(last).1);
        let there = Seen::of(ways, from, to);
        let slow = there.slow.filter(|(ns, _)| *ns > self.rules.slow_ns);
        if let Some(cause) = slow.and_then(|slow| slowness(ways, slow)) {
            return Some(cause);
        }
        let back = Seen::of(acks, from, to);
        // At a low rate, the service of a few packets takes as long as a queue.
        let queued = there.passed_ns > self.rules.queued_ns && !back.outweighs(&there, self.rules);
        if queued && !(path.left && self.has_left(ways, last)) {
            let waited = there.waited.map_or(last, |(_, row)| self.slices.at(row.t_ns));
            return Some(self.link(path.all, waited));
        }
        let delayed =
            back.waited_ns() > self.rules.queued_ns || back.slow_ns() > self.rules.slow_ns;
        // One that is lost matters only if no other comes.
        let lost = !path.progress && (out(acks) || back.drops.most().is_some());
        (lost || delayed).then_some(Cause::AckPath)
    }

    /// Whether no packet waited or was in service for most of a slice.
    fn has_left(&self, ways: &[Carried], index: usize) -> bool {
        ways.iter().all(|way| way.busy(index) < self.rules.most)
    }

    /// The slice in which something began that holds for this one.
    fn since(&self, index: usize, holds: impl Fn(&Account) -> bool) -> usize {
        let accounts = &self.sender.accounts;
        let before =
            (0..index).rev().take(self.rules.back_slices).take_while(|at| holds(&accounts[*at]));
        before.last().unwrap_or(index)
    }

    /// What a sender met that has waited since the slice `first`: then and a little before, and since the oldest of what is in
    /// flight was sent.
    fn met_since(&self, first: usize, index: usize, left: bool) -> Option<Cause> {
        let (_, until) = self.slices.span(index);
        let in_flight = self.sender.accounts[index].in_flight;
        let sent = self.own.iter().filter_map(|way| way.sent_last(until, in_flight));
        let sent = sent.min().map_or(first, |t_ns| self.slices.at(t_ns));
        let begun = first.saturating_sub(self.rules.before_slices).min(sent);
        let progress = self.sender.accounts[index].acked > 0;
        self.met(Path { progress, left, ..self.own_path() }, begun, index)
    }

    /// The rules, the most certain first.
    fn cause(&self, index: usize, account: &Account, reduced: Option<Reduced>) -> Cause {
        let (from, to) = self.slices.span(index);
        let all = || self.data.iter().chain(self.acks).filter_map(|way| way.own.get(index));
        let share = |ns: i64| ns as f64 / (to - from).max(1) as f64;
        if all().any(|load| share(load.late_ns) >= self.rules.most) {
            return Cause::Emulator;
        }
        let mut own = self.own.iter().filter_map(|way| way.own.get(index));
        let waits = account.busy >= self.rules.most || account.timeout >= self.rules.most;
        if waits && own.any(|load| share(load.out_ns) >= self.rules.most) {
            return Cause::Outage;
        }
        let served = self.own.iter().map(|way| way.busy(index)).fold(0.0, f64::max);
        if waits && served >= self.rules.served {
            // A timeout meanwhile is premature: the link still has what the sender waits for.
            return self.link(self.data, index);
        }
        if account.timeout >= self.rules.most {
            let since = self.since(index, |account| account.timeout >= self.rules.most);
            let met = self.met_since(since, index, false).unwrap_or(Cause::Timeout);
            let by_queue = matches!(met, Cause::LinkRate | Cause::RateStep | Cause::Competing);
            return if by_queue && self.is_backed_off(index) { Cause::Timeout } else { met };
        }
        if account.busy < self.rules.most {
            return self.idle(index);
        }
        if account.receive_window >= Some(self.rules.most) {
            return self.receiver(index, account);
        }
        if account.send_buffer >= Some(self.rules.most) {
            return Cause::SendBuffer;
        }
        if account.unsent.is_some_and(|unsent| unsent < self.rules.most) {
            return self.supplied(index);
        }
        if account.recovery >= self.rules.most {
            let since = self.since(index, |account| account.recovery >= self.rules.most);
            if let Some(cause) = self.met_since(since, index, false) {
                return cause;
            }
        }
        self.window(index, account, reduced, served)
    }

    /// What the congestion window, pacing and what is left of the link's time say.
    fn window(
        &self,
        index: usize,
        account: &Account,
        reduced: Option<Reduced>,
        served: f64,
    ) -> Cause {
        let (from, to) = self.slices.span(index);
        if served >= self.rules.most {
            return self.link(self.data, index);
        }
        if absent(&self.client, from, to).is_some() {
            return Cause::ClientProcessor;
        }
        let full = account.window_full >= self.rules.most || account.filled >= self.rules.served;
        if full && let Some(reduced) = reduced {
            return reduced.cause;
        }
        let progress = self.since(index, |account| account.acked == 0);
        if let Some(cause) = self.met_since(progress, index, false) {
            return cause;
        }
        if full {
            return Cause::CongestionWindow;
        }
        let paced = account.pacing_bps.map(|bps| bps as f64 * (to - from) as f64 / 8e9);
        let unsent = account.unsent >= Some(self.rules.most);
        if unsent && paced.is_some_and(|bytes| account.acked as f64 >= self.rules.paced * bytes) {
            return Cause::Pacing;
        }
        Cause::Unknown
    }

    /// Nothing was in flight and nothing waited to be sent.
    fn idle(&self, index: usize) -> Cause {
        let (from, to) = self.slices.span(index);
        let Some(asked) = &self.asked else {
            return match absent(&self.server, from, to) {
                Some(_) => Cause::ServerProcessor,
                None => Cause::Application,
            };
        };
        let Some(request) = pending(asked, from, to) else {
            return self.unasked(index);
        };
        if absent(&self.server, from, to).is_some() {
            return Cause::ServerProcessor;
        }
        let stopped = absent(&self.client, from, to).is_some();
        let is_manifest = request.row.kind == RequestKind::Manifest;
        match request.access {
            // The client's host has all of it, and the client does not take it.
            Some(access) if stopped && self.arrived(access, index) => {
                return Cause::ClientProcessor;
            }
            Some(access) if access.t_ns <= from && !is_manifest => {
                return self.supplier(access, index);
            }
            _ => {}
        }
        let asked = self.slices.at(request.row.t_ns);
        let on_the_way = match () {
            () if is_manifest => Cause::Manifest,
            () if self.opens(from, to) => Cause::Handshake,
            () => self.round_trip(request.row.t_ns, from),
        };
        let path = Path { left: true, ..self.whole_path() };
        self.met(path, asked, index).unwrap_or(on_the_way)
    }

    /// A server that has an unanswered request and sends nothing has nothing to send. A cache that asked its origin waits for
    /// what its own connections met.
    fn supplier(&self, access: &AccessRow, index: usize) -> Cause {
        if !waits_for_origin(access) {
            return Cause::Application;
        }
        let upstream = self.upstream.iter().find(|it| it.cache == &*access.endpoint);
        let met = upstream.and_then(|Upstream { data, acks, .. }| {
            let path = Path { ways: data, all: data, acks, ..self.whole_path() };
            self.met(path, self.slices.at(access.t_ns), index)
        });
        met.unwrap_or(Cause::Unknown)
    }

    /// Nothing was asked for on this connection.
    fn unasked(&self, index: usize) -> Cause {
        let (from, to) = self.slices.span(index);
        if absent(&self.client, from, to).is_some() {
            return Cause::ClientProcessor;
        }
        if self.opens(from, to) {
            let opened = self.handshakes.iter().filter(|(begun, _)| *begun < to);
            let opened = opened.map(|(begun, _)| *begun).max().unwrap_or(from);
            let met = self.met(self.whole_path(), self.slices.at(opened), index);
            return met.unwrap_or(Cause::Handshake);
        }
        match pending(&self.manifests, from, to) {
            Some(_) => Cause::Manifest,
            None => Cause::NoRequest,
        }
    }

    /// The slices in which the player opened a connection, each with what that met.
    fn opening(&self) -> Vec<Option<Cause>> {
        let opens = |index: usize| {
            let (from, to) = self.slices.span(index);
            self.opens(from, to)
        };
        (0..self.slices.count).map(|index| opens(index).then(|| self.unasked(index))).collect()
    }

    /// Whether the player opened a connection for most of a slice.
    fn opens(&self, from: i64, to: i64) -> bool {
        let overlap = |(begun, done): &(i64, i64)| super::since(*done.min(&to), *begun.max(&from));
        self.handshakes.iter().any(|handshake| overlap(handshake) * 2 >= to - from)
    }

    /// Whether the client's host acknowledged as much as the answer's body since it was asked for.
    fn arrived(&self, access: &AccessRow, index: usize) -> bool {
        let since = (0..=index).rev().take_while(|at| self.slices.span(*at).1 > access.t_ns);
        let acked: i64 = since.map(|at| self.sender.accounts[at].acked).sum();
        acked >= access.body_bytes
    }

    /// Everything that the application wrote was sent.
    fn supplied(&self, index: usize) -> Cause {
        let (from, to) = self.slices.span(index);
        if absent(&self.server, from, to).is_some() {
            return Cause::ServerProcessor;
        }
        if self.asked.is_none() {
            return Cause::Application;
        }
        let progress = self.since(index, |account| account.acked == 0);
        let served = (progress..index).rev().find(|at| !self.has_left(&self.own, *at));
        let begun = served.map_or(self.slices.span(progress).0, |at| self.slices.span(at).1);
        let met = self.met_since(progress, index, true);
        met.unwrap_or_else(|| self.round_trip(begun, from))
    }

    /// The round trip, of what has been on its way for no longer than a few of them. After that it has met something that
    /// is not recorded.
    fn round_trip(&self, since: i64, until: i64) -> Cause {
        match super::since(until, since) <= self.round_trips_ns {
            true => Cause::RoundTrip,
            false => Cause::Unknown,
        }
    }

    /// The receive window held it back.
    fn receiver(&self, index: usize, account: &Account) -> Cause {
        let (from, to) = self.slices.span(index);
        if absent(&self.client, from, to).is_some() {
            return Cause::ClientProcessor;
        }
        if self.full.get(index).copied().unwrap_or(false) {
            return Cause::NoRequest;
        }
        match account.window_left {
            Some(left) if left < self.rules.filled => Cause::SlowReader,
            _ => Cause::ReceiveWindow,
        }
    }

    /// A link was busy with these flows: by themselves, with others, or since its rate fell.
    fn link(&self, ways: &[Carried], index: usize) -> Cause {
        let queued = |way: &&Carried| way.own.get(index).map_or(0, |load| load.queued_ns);
        let Some(way) = ways.iter().max_by_key(queued) else { return Cause::LinkRate };
        let near = self.rules.shared_slices;
        let around = index.saturating_sub(near)..(index + near + 1).min(self.slices.count);
        way.limit(around, self.slices.span(index).0)
    }
}

/// The cause while a cache is faulty: if no data was on its way, it is the cache.
const fn by_cache(cause: Cause) -> Cause {
    match cause {
        Cause::NoRequest
        | Cause::Application
        | Cause::RoundTrip
        | Cause::Manifest
        | Cause::Handshake
        | Cause::Unknown => Cause::Cache,
        other => other,
    }
}

/// Of several senders, each with its causes, the one that moves the most bytes counts; one that waits counts only if all do.
fn together(each: &[(&Sender, &Vec<Option<Cause>>)], count: usize) -> Vec<Option<Cause>> {
    let rank = |cause: Cause| match cause {
        Cause::NoRequest => 0,
        Cause::RoundTrip | Cause::Application | Cause::Manifest | Cause::Handshake => 1,
        _ => 2,
    };
    let at = |index: usize| {
        let alive = each.iter().filter_map(|(sender, causes)| Some((sender, causes[index]?)));
        let best = alive.max_by_key(|(sender, cause)| (rank(*cause), sender.accounts[index].acked));
        best.map(|(_, cause)| cause)
    };
    (0..count).map(at).collect()
}

/// Neighbouring slices of one cause as one stretch.
fn limits(view: &View<'_>, transfer: &Transfer, slices: Slices) -> Vec<Limit> {
    let mut limits = super::rows::stretches(&transfer.together, slices);
    for limit in &mut limits {
        limit.evidence = evidence(view, transfer, limit);
    }
    limits
}

/// The samples of the busiest sender in a stretch of time.
fn evidence(view: &View<'_>, transfer: &Transfer, limit: &Limit) -> Vec<Evidence> {
    let senders = transfer.senders.iter();
    let found =
        senders.filter_map(|sender| sender.evidence(view.records, limit.from_ns, limit.to_ns));
    found.max_by_key(|(bytes, _)| *bytes).map(|(_, evidence)| evidence).into_iter().collect()
}
