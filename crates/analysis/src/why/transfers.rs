//! What limited each TCP flow that carries media or load, and each viewer's flows together.

use std::collections::BTreeMap;

use suiro_record::flows;
use suiro_record::tables::{AccessRow, RequestRow};
use suiro_record::words::{Cause, FlowRole, RequestKind, Transport};

use super::endpoints::{Absence, absences, absent, on_host};
use super::evidence::Evidence;
use super::links::{Carried, Links};
use super::slices::Slices;
use super::sockets::{Account, Sender};
use super::{FLOWS_MAX, Limit, Subject};
use crate::player::Player;
use crate::view::View;

/// A share of a slice that decides.
const MOST: f64 = 0.5;
/// The link is what limits a flow whose packets wait or are served for this share of a slice.
const SERVED: f64 = 0.7;
/// The link is shared if others have this share of its bytes.
const SHARED: f64 = 0.2;
/// Slices before and after, over which the share of others counts.
const AROUND: usize = 5;
/// A buffer that holds this share of what it holds at most is full.
const FULL: f64 = 0.9;

/// The flows of a viewer, or one flow that belongs to none.
pub(super) struct Transfer<'v> {
    pub viewer: Option<&'v Player<'v>>,
    pub senders: Vec<Sender<'v>>,
    /// What limited all of them together, by slice; `None` where none existed.
    pub together: Vec<Option<Cause>>,
}

/// All of a trial.
pub(super) struct Transfers<'v> {
    pub all: Vec<Transfer<'v>>,
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
    let mut senders: Vec<Sender> =
        view.sockets().iter().filter_map(|socket| Sender::of(socket, slices)).collect();
    senders.sort_by_key(|sender| std::cmp::Reverse(sender.socket.acked_bytes));
    let left_out = senders.len().saturating_sub(FLOWS_MAX);
    senders.truncate(FLOWS_MAX);
    let asked = Asked::of(view);
    let mut groups: BTreeMap<String, (Option<&Player>, Vec<Sender>)> = BTreeMap::new();
    for sender in senders {
        let viewer = asked.viewer(view, &sender);
        let name = viewer.map_or(sender.name, |viewer| viewer.name).to_owned();
        groups.entry(name).or_insert((viewer, Vec::new())).1.push(sender);
    }
    let mut all = Vec::new();
    let mut subjects = Vec::new();
    for (name, (viewer, senders)) in groups {
        let transfer = decide(view, links, slices, &asked, viewer, senders);
        let limits = limits(view, &transfer, slices);
        subjects.push(Subject { name, is_viewer: viewer.is_some(), limits });
        all.push(transfer);
    }
    (subjects, Transfers { all, slices, left_out })
}

fn decide<'v>(
    view: &'v View<'_>,
    links: &Links<'v>,
    slices: Slices,
    asked: &Asked<'v>,
    viewer: Option<&'v Player<'v>>,
    senders: Vec<Sender<'v>>,
) -> Transfer<'v> {
    let names = |turned: bool| {
        let name = move |sender: &Sender| match sender.name.split_once('>') {
            Some((local, remote)) if turned => format!("tcp {remote}>{local}"),
            _ => format!("tcp {}", sender.name),
        };
        senders.iter().map(name).collect::<Vec<_>>()
    };
    let (data, acks) = (links.of(&names(false)), links.of(&names(true)));
    let mut causes = Vec::new();
    for sender in &senders {
        let judge = Judge {
            slices,
            sender,
            asked: asked.of_sender(viewer, sender),
            manifests: asked.manifests(viewer),
            full: viewer.map(|viewer| full(viewer, slices)).unwrap_or_default(),
            own: links.of(&[format!("tcp {}", sender.name)]),
            data: &data,
            acks: &acks,
            server: absences(view, &servers(view, sender)),
            client: absences(view, &clients(view, viewer, sender)),
        };
        causes.push(judge.causes());
    }
    let together = together(&senders, &causes, slices);
    Transfer { viewer, senders, together }
}

/// The endpoints that send: those on the socket's host.
fn servers<'v>(view: &'v View<'_>, sender: &Sender<'v>) -> Vec<&'v str> {
    on_host(view, sender.socket.host)
}

/// The endpoint that receives: the viewer, or those on the host that has the other end.
fn clients<'v>(
    view: &'v View<'_>,
    viewer: Option<&'v Player<'v>>,
    sender: &Sender<'v>,
) -> Vec<&'v str> {
    if let Some(viewer) = viewer {
        return vec![viewer.name];
    }
    let turned = sender.name.split_once('>').map(|(local, remote)| format!("{remote}>{local}"));
    let other = view.records.tcp.iter().find(|row| Some(&*row.socket) == turned.as_deref());
    let host = other.map_or("", |row| &row.host);
    let found = on_host(view, host);
    // With no name, absences would be those of all.
    if found.is_empty() { vec![""] } else { found }
}

/// The slices in which a player's buffer was full.
fn full(viewer: &Player, slices: Slices) -> Vec<bool> {
    let mut buffers: Vec<f64> = viewer.rows.iter().filter_map(|row| row.buffer_ms).collect();
    buffers.sort_by(f64::total_cmp);
    let Some(most) = buffers.get(buffers.len() * 95 / 100) else { return Vec::new() };
    let mut is_full = vec![false; slices.count];
    for state in &viewer.states {
        let enough = state.value.buffer_ms.is_some_and(|ms| ms >= FULL * most && ms > 0.0);
        slices.spread(state.from_ns, state.to_ns, |index, _| is_full[index] |= enough);
    }
    is_full
}

/// Requests of players, and the connections that they came by.
pub(super) struct Asked<'v> {
    all: Vec<Request<'v>>,
}

/// A request, when it was pending, and what the origin says about it.
#[derive(Clone, Copy)]
pub(super) struct Request<'v> {
    pub row: &'v RequestRow,
    pub access: Option<&'v AccessRow>,
    pub end_ns: i64,
}

impl<'v> Asked<'v> {
    fn of(view: &'v View<'_>) -> Self {
        let mut by_path: BTreeMap<&str, Vec<&AccessRow>> = BTreeMap::new();
        for row in &view.records.access {
            by_path.entry(&row.path).or_default().push(row);
        }
        for rows in by_path.values_mut() {
            rows.sort_by_key(|row| std::cmp::Reverse(row.t_ns));
        }
        let mut rows: Vec<&RequestRow> = view.records.requests.iter().collect();
        rows.sort_by_key(|row| row.t_ns);
        // One that failed ended before it was tried again.
        let mut again: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        let mut ends: Vec<i64> = Vec::new();
        for row in rows.iter().rev() {
            let next = again.insert((&row.endpoint, &row.url), row.t_ns);
            ends.push(row.done_ns.or(next).unwrap_or(i64::MAX));
        }
        let mut all: Vec<Request> = Vec::new();
        for (row, end_ns) in rows.into_iter().zip(ends.into_iter().rev()) {
            let answers = by_path.get_mut(&*row.url);
            let access = answers.and_then(|answers| {
                let fits = |it: &&&AccessRow| it.t_ns >= row.t_ns && it.t_ns <= end_ns;
                let place = answers.iter().rposition(|it| fits(&it))?;
                Some(answers.remove(place))
            });
            all.push(Request { row, access, end_ns });
        }
        Self::close(&mut all, view.duration_ns);
        Self { all }
    }

    /// A request without an end was given up before the next one on its connection began.
    fn close(all: &mut [Request], end_ns: i64) {
        let mut next: BTreeMap<(String, String), i64> = BTreeMap::new();
        for request in all.iter_mut().rev() {
            let peer = request.access.map_or_else(String::new, |access| access.peer.to_string());
            let key = (request.row.endpoint.to_string(), peer);
            if request.end_ns == i64::MAX {
                request.end_ns = next.get(&key).copied().unwrap_or(end_ns);
            }
            next.insert(key, request.row.t_ns);
        }
    }

    /// The player whose requests came by this connection.
    fn viewer(&self, view: &'v View<'_>, sender: &Sender) -> Option<&'v Player<'v>> {
        let (local, remote) = sender.name.split_once('>')?;
        let by_peer = || {
            let found = self
                .all
                .iter()
                .find(|request| request.access.is_some_and(|access| &*access.peer == remote))?;
            view.player(&found.row.endpoint)
        };
        let told = flows::find(&view.records.flows, Transport::Tcp, (local, remote));
        let told = told.and_then(|row| match row.role {
            FlowRole::Client | FlowRole::Receiver => view.player(&row.endpoint),
            FlowRole::Server | FlowRole::Sender => view.player(row.peer.as_deref()?),
        });
        told.or_else(by_peer).filter(|player| !player.requests.is_empty())
    }

    /// Requests that were pending on this connection, or on one that is not known; without a viewer nothing is.
    fn of_sender(&self, viewer: Option<&Player>, sender: &Sender) -> Option<Vec<Request<'v>>> {
        let viewer = viewer?;
        let remote = sender.name.split_once('>').map(|(_, remote)| remote);
        let own = |request: &&Request| {
            &*request.row.endpoint == viewer.name
                && request.access.is_none_or(|access| Some(&*access.peer) == remote)
        };
        Some(self.all.iter().filter(own).copied().collect())
    }

    fn manifests(&self, viewer: Option<&Player>) -> Vec<Request<'v>> {
        let own = |request: &&Request| {
            viewer.is_some_and(|viewer| *request.row.endpoint == *viewer.name)
                && request.row.kind == RequestKind::Manifest
        };
        self.all.iter().filter(own).copied().collect()
    }
}

/// The request that was pending for most of a slice.
fn pending<'a, 'v>(
    requests: &'a [Request<'v>],
    from_ns: i64,
    to_ns: i64,
) -> Option<&'a Request<'v>> {
    let overlap =
        |it: &Request| super::since(it.end_ns.min(to_ns), it.row.t_ns.max(from_ns)).max(0);
    let most = requests.iter().max_by_key(|request| overlap(request))?;
    (overlap(most) * 2 >= to_ns - from_ns).then_some(most)
}

/// Decides what limited one sender.
struct Judge<'a, 'v> {
    slices: Slices,
    sender: &'a Sender<'v>,
    /// `None` for a flow without a viewer.
    asked: Option<Vec<Request<'v>>>,
    manifests: Vec<Request<'v>>,
    /// Slices in which the player's buffer was full.
    full: Vec<bool>,
    /// The sender's own packets.
    own: Vec<Carried<'a, 'v>>,
    /// All packets of the viewer's flows, and their ACKs.
    data: &'a [Carried<'a, 'v>],
    acks: &'a [Carried<'a, 'v>],
    server: Vec<Absence<'v>>,
    client: Vec<Absence<'v>>,
}

/// Why a congestion window is smaller than it was.
#[derive(Clone, Copy, PartialEq)]
enum Reduced {
    No,
    Loss,
    Overflow,
    Timeout,
}

impl Judge<'_, '_> {
    fn causes(&self) -> Vec<Option<Cause>> {
        let mut causes = vec![None; self.slices.count];
        let mut reduced = Reduced::No;
        for index in self.sender.lifetime.clone() {
            let account = &self.sender.accounts[index];
            reduced = self.reduced(reduced, index);
            causes[index] = Some(self.cause(index, account, reduced));
        }
        causes
    }

    fn reduced(&self, before: Reduced, index: usize) -> Reduced {
        let account = &self.sender.accounts[index];
        let sum = |of: fn(&super::links::Load) -> u32| -> u32 {
            self.own.iter().filter_map(|way| way.own.get(index)).map(of).sum()
        };
        match (sum(|load| load.lost), sum(|load| load.overflowed)) {
            _ if account.timeout >= MOST => Reduced::Timeout,
            (0, 0) => before,
            (lost, overflowed) if lost >= overflowed => Reduced::Loss,
            _ => Reduced::Overflow,
        }
    }

    /// The rules, the most certain first.
    fn cause(&self, index: usize, account: &Account, reduced: Reduced) -> Cause {
        let (from, to) = self.slices.span(index);
        let all = || self.data.iter().chain(self.acks).filter_map(|way| way.own.get(index));
        let share = |ns: i64| ns as f64 / (to - from).max(1) as f64;
        if all().any(|load| share(load.late_ns) >= MOST) {
            return Cause::Emulator;
        }
        if account.timeout >= MOST {
            return Cause::Timeout;
        }
        if account.busy < MOST {
            return self.idle(index);
        }
        let served = self.own.iter().filter_map(|way| way.own.get(index));
        let served = served.map(|load| share(load.queued_ns)).fold(0.0, f64::max);
        if served >= SERVED {
            return self.link(index);
        }
        if account.receive_window >= Some(MOST) {
            return self.receiver(index, account);
        }
        if account.send_buffer >= Some(MOST) {
            return Cause::SendBuffer;
        }
        if account.unsent.is_some_and(|unsent| unsent < MOST) {
            return self.supplied(from, to);
        }
        if account.recovery >= MOST {
            return Cause::Loss;
        }
        self.window(index, account, reduced, served)
    }

    /// What the congestion window, pacing and what is left of the link's time say.
    fn window(&self, index: usize, account: &Account, reduced: Reduced, served: f64) -> Cause {
        let (from, to) = self.slices.span(index);
        if account.window_full >= MOST || account.filled >= SERVED {
            return match reduced {
                Reduced::Loss => Cause::Loss,
                Reduced::Timeout => Cause::Timeout,
                Reduced::No | Reduced::Overflow if served >= MOST => self.link(index),
                Reduced::No | Reduced::Overflow => Cause::CongestionWindow,
            };
        }
        if served >= MOST {
            return self.link(index);
        }
        let paced = account.pacing_bps.map(|bps| bps as f64 * (to - from) as f64 / 8e9);
        if account.unsent >= Some(MOST)
            && paced.is_some_and(|bytes| account.acked as f64 >= 0.7 * bytes)
        {
            return Cause::Pacing;
        }
        if absent(&self.client, from, to).is_some() {
            return Cause::ClientProcessor;
        }
        match reduced {
            Reduced::Loss if account.unsent >= Some(MOST) => Cause::Loss,
            Reduced::Timeout if account.unsent >= Some(MOST) => Cause::Timeout,
            _ if account.unsent >= Some(MOST) => Cause::CongestionWindow,
            _ => Cause::Unknown,
        }
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
            return match (absent(&self.client, from, to), pending(&self.manifests, from, to)) {
                (Some(_), _) => Cause::ClientProcessor,
                (None, Some(_)) => Cause::Manifest,
                (None, None) => Cause::NoRequest,
            };
        };
        if request.row.kind == RequestKind::Manifest {
            return Cause::Manifest;
        }
        if absent(&self.server, from, to).is_some() {
            return Cause::ServerProcessor;
        }
        let stopped = absent(&self.client, from, to).is_some();
        match request.access {
            // The client's host has all of it, and the client does not take it.
            Some(access) if stopped && self.arrived(access, index) => Cause::ClientProcessor,
            Some(access) if access.t_ns <= from => Cause::Application,
            _ => Cause::RoundTrip,
        }
    }

    /// Whether the client's host acknowledged as much as the answer's body since it was asked for.
    fn arrived(&self, access: &AccessRow, index: usize) -> bool {
        let since = (0..=index).rev().take_while(|at| self.slices.span(*at).1 > access.t_ns);
        let acked: i64 = since.map(|at| self.sender.accounts[at].acked).sum();
        acked >= access.body_bytes
    }

    /// Everything that the application wrote was sent.
    fn supplied(&self, from: i64, to: i64) -> Cause {
        if absent(&self.server, from, to).is_some() {
            return Cause::ServerProcessor;
        }
        match &self.asked {
            None => Cause::Application,
            Some(_) => Cause::RoundTrip,
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
            Some(left) if left < super::sockets::FILLED => Cause::SlowReader,
            _ => Cause::ReceiveWindow,
        }
    }

    /// The link was busy with the flow: by itself, with others, or since its rate fell.
    fn link(&self, index: usize) -> Cause {
        let queued = |way: &&Carried| way.own.get(index).map_or(0, |load| load.queued_ns);
        let Some(way) = self.data.iter().max_by_key(queued) else { return Cause::LinkRate };
        let around = index.saturating_sub(AROUND)..(index + AROUND + 1).min(self.slices.count);
        if way.others(around) >= SHARED {
            return Cause::Competing;
        }
        match way.way.fall(self.slices.span(index).0) {
            Some(_) => Cause::RateStep,
            None => Cause::LinkRate,
        }
    }
}

/// Of several senders, the one that moves the most bytes counts; one that waits counts only if all do.
fn together(
    senders: &[Sender],
    causes: &[Vec<Option<Cause>>],
    slices: Slices,
) -> Vec<Option<Cause>> {
    let rank = |cause: Cause| match cause {
        Cause::NoRequest => 0,
        Cause::RoundTrip | Cause::Application | Cause::Manifest => 1,
        _ => 2,
    };
    let at = |index: usize| {
        let each = senders.iter().zip(causes);
        let alive = each.filter_map(|(sender, causes)| Some((sender, causes[index]?)));
        let best = alive.max_by_key(|(sender, cause)| (rank(*cause), sender.accounts[index].acked));
        best.map(|(_, cause)| cause)
    };
    (0..slices.count).map(at).collect()
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
    let samples = transfer.senders.iter().filter_map(|sender| {
        let (first, last) = sender.samples(limit.from_ns, limit.to_ns)?;
        Some((last.acked_bytes.saturating_sub(first.acked_bytes), first, last))
    });
    let busiest = samples.max_by_key(|(bytes, ..)| *bytes);
    let found =
        busiest.and_then(|(_, first, last)| Evidence::of("tcp", &view.records.tcp, first, last));
    found.into_iter().collect()
}
