//! Head-of-line blocking: a response that had come over a TCP connection, in part, and waited because a link had lost a packet
//! before it.
//!
//! TCP passes bytes on in the order in which they were sent. So over HTTP/2 a lost packet of one response keeps back what has
//! come of the others (RFC 9114 §1.1). No record has the response that a packet is of. But a packet that was sent before a
//! response was ready has nothing of it, and what comes later has no more of it than its payload. Every number here is a least one.

use suiro_record::tables::{LinkRow, RequestRow, TcpRow};
use suiro_record::words::RequestKind;

use super::asked::{Asked, Request};
use super::drops::Dropped;
use super::evidence::{Evidence, Rows, Step};
use super::links::Carried;
use super::sender::{Samples, Sender};
use super::told::{Told, by_cause};
use super::transfers::Transfer;
use super::wording::{count, size, span};
use super::{since, total, turned};
use crate::Records;
use crate::held::Stretch;

/// A sample may have been read so much later than its time.
const READ_NS: i64 = 1_000_000;
/// A segment that fills a gap is acknowledged at once (RFC 5681 §4.2): at most this long after its arrival.
const ACK_NS: i64 = 1_000_000;
/// What has left a link, a socket has processed no later than this.
const PROCESSED_NS: i64 = 1_000_000;

/// How a request waited behind lost packets of its connection; empty if the records do not show it.
#[derive(Default)]
pub(super) struct Blocking<'v> {
    blocked: Option<Blocked<'v>>,
    shared: Option<Shared>,
}

/// A response that waited for the repair of packets that have nothing of it.
struct Blocked<'v> {
    request: Request<'v>,
    lost: Vec<&'v LinkRow>,
    /// So much of it waited.
    bytes: i64,
    /// From when until when some of it did.
    from_ns: i64,
    until_ns: i64,
}

/// Packets that waited for a repair while several responses were under way: it is not known which of them are of which.
struct Shared {
    packets: usize,
    /// How long the first of them waited.
    waited_ns: i64,
    /// Responses that were under way, apart from the one that was asked for.
    others: usize,
}

/// A packet that a link lost.
struct Gap<'v> {
    lost: &'v LinkRow,
    /// When packets came that were sent after it and came before its repair.
    behind: Vec<i64>,
    /// Its repair came no earlier.
    until_ns: i64,
}

impl<'v> Blocking<'v> {
    /// Of a request, by what was lost until `to`. `data` and `back` are links with the packets of its player.
    pub fn of(
        transfer: Option<&Transfer<'v>>,
        asked: &Asked<'v>,
        (data, back): (&[Carried<'_, 'v>], &[Carried<'_, 'v>]),
        row: &RequestRow,
        to_ns: i64,
    ) -> Self {
        let found = || {
            let request = asked.request(row)?;
            let access = request.access?;
            let peer = &*access.peer;
            let sender = transfer?.senders.iter().find(|sender| sender.ends_at(peer))?;
            let connection = Connection::of(sender, data, back)?;
            let from_ns = row.t_ns.saturating_sub(connection.data.rules.held_ns);
            let mut gaps = connection.gaps(from_ns, to_ns.min(request.end_ns));
            // A gap that was repaired before the request came kept back nothing of its answer.
            gaps.retain(|gap| gap.until_ns > access.t_ns);
            let others: Vec<&Request> = asked.next_to(request).collect();
            let blocked = connection.blocked(request, &gaps, &others);
            Some(Self { blocked, shared: shared(&gaps, &others) })
        };
        found().unwrap_or_default()
    }

    /// For how much of a stretch of time the response is known to have waited for a packet that has nothing of it.
    pub fn waited_ns(&self, from_ns: i64, to_ns: i64) -> i64 {
        let waited = |it: &Blocked| since(it.until_ns.min(to_ns), it.from_ns.max(from_ns)).max(0);
        self.blocked.as_ref().map_or(0, waited)
    }

    /// The response, what it waited for, and the rows that show both.
    pub fn told(&self, records: &Records) -> Option<Told> {
        let Blocked { request, lost, bytes, from_ns, until_ns } = self.blocked.as_ref()?;
        let (of, its) = match lost.len() {
            1 => ("another response", "its"),
            _ => ("other responses", "their"),
        };
        let clause = format!(
            "the link lost {} of {of} on the connection, and at least {} of the segment had come \
             and waited for {its} repair, the first of it for {}",
            count(lost.len(), "packet"),
            size(*bytes),
            span(since(*until_ns, *from_ns))
        );
        let from = lost.iter().map(|row| row.t_ns).min()?;
        let what = |rows: &[&LinkRow]| {
            let were = if rows.len() == 1 { "was" } else { "were" };
            format!("{} {were} lost before the answer was ready", count(rows.len(), "packet"))
        };
        let steps = by_cause(Rows { rows: lost.clone(), from, to: *until_ns });
        let steps = steps.flat_map(|(filter, rows)| {
            rows.steps(records, what, &format!("{filter},payload_bytes>0"))
        });
        let ready = request.access.and_then(|access| {
            let evidence = Evidence::row("access", &records.access, access)?;
            Some(Step { what: "when the answer was ready".into(), evidence })
        });
        Some(Told::new(clause, steps.chain(ready).collect()))
    }

    /// The sentence for packets of which the records do not show whose bytes were lost.
    pub fn told_shared(&self) -> Option<String> {
        let Shared { packets, waited_ns, others } = self.shared.as_ref()?;
        Some(format!(
            "; at least {} behind a lost one had arrived and waited for its repair, the first for \
             {}, because TCP delivers in order; {} of the connection {} under way, too",
            count(*packets, "packet"),
            span(*waited_ns),
            count(*others, "other response"),
            if *others == 1 { "was" } else { "were" }
        ))
    }
}

/// The longest wait behind a lost packet during which other responses were under way as well.
fn shared(gaps: &[Gap], others: &[&Request]) -> Option<Shared> {
    let found = gaps.iter().filter_map(|gap| {
        let is_ready =
            |it: &&Request| it.access.is_some_and(|access| access.answered_ns <= gap.until_ns);
        let ready = others.iter().copied().filter(is_ready);
        let others = ready.filter(|it| it.end_ns >= gap.until_ns).count();
        let waited_ns = since(gap.until_ns, *gap.behind.iter().min()?);
        (others > 0).then_some(Shared { packets: gap.behind.len(), waited_ns, others })
    });
    found.max_by_key(|it| it.waited_ns)
}

/// Whether a lost packet carried other responses only, none of which was needed before the one to `request`.
fn is_of_others(gap: &Gap, request: &Request, others: &[&Request]) -> bool {
    let sent_ns = gap.lost.t_ns;
    let is_ready = |it: &&Request| {
        it.row.t_ns < sent_ns && it.access.is_none_or(|access| access.answered_ns <= sent_ns)
    };
    let ready = others.iter().copied().filter(is_ready);
    let mut ready = ready.filter(|it| it.end_ns >= gap.until_ns).peekable();
    ready.peek().is_some() && ready.all(|it| it.access.is_some() && is_later(it.row, request.row))
}

/// Whether a player needs one response no earlier than it has played the other.
fn is_later(row: &RequestRow, than: &RequestRow) -> bool {
    let media = row.media_ms.zip(than.media_ms);
    match row.kind {
        RequestKind::Segment => row.abandoned.is_some() || media.is_some_and(|(a, b)| a > b),
        RequestKind::Manifest | RequestKind::Clock => true,
        RequestKind::Init => false,
    }
}

/// The packets of a flow in one direction of a link.
type Packets<'s, 'v> = (&'s Carried<'s, 'v>, &'s [&'v LinkRow]);

/// A TCP connection that one link carried.
struct Connection<'s, 'v> {
    samples: &'v [Stretch<&'v TcpRow>],
    data: &'s Carried<'s, 'v>,
    /// In the order in which they came to the link.
    rows: &'s [&'v LinkRow],
    /// What goes back to the sender, if one link carried it.
    back: Option<Packets<'s, 'v>>,
}

/// The packets of a flow, if exactly one link carried it.
fn only<'s, 'v>(links: &'s [Carried<'s, 'v>], flow: &str) -> Option<Packets<'s, 'v>> {
    let mut with =
        links.iter().filter_map(|link| Some((link, link.way.flows.get(flow)?.as_slice())));
    let one = with.next()?;
    with.next().is_none().then_some(one)
}

fn payload(row: &LinkRow) -> i64 {
    row.payload_bytes.unwrap_or(0)
}

impl<'s, 'v> Connection<'s, 'v> {
    /// `None` of QUIC, whose streams do not wait for one another (RFC 9000 §2), and if a link made copies: one of them may have
    /// come in the place of what was lost.
    fn of(
        sender: &Sender<'v>,
        data: &'s [Carried<'s, 'v>],
        back: &'s [Carried<'s, 'v>],
    ) -> Option<Self> {
        let Samples::Tcp(socket) = &sender.samples else { return None };
        let flow = sender.flow();
        let (data, rows) = only(data, &flow)?;
        let back = turned(&flow).and_then(|flow| only(back, &flow));
        (!data.way.copies).then_some(Self { samples: &socket.samples, data, rows, back })
    }

    /// When a packet came whole; `None` if it did not.
    fn came_ns(&self, row: &LinkRow) -> Option<i64> {
        row.departed_ns.filter(|_| self.data.way.dropped(row).is_none())
    }

    /// What was lost in a stretch of time.
    fn gaps(&self, from_ns: i64, to_ns: i64) -> Vec<Gap<'v>> {
        let at = |t_ns: i64| self.rows.partition_point(|row| row.t_ns < t_ns);
        let rows = self.rows[at(from_ns)..at(to_ns).max(at(from_ns))].iter().copied();
        let lost =
            |row: &&LinkRow| payload(row) > 0 && self.data.way.dropped(row) == Some(Dropped::Lost);
        rows.filter(lost).filter_map(|row| self.gap(row)).collect()
    }

    /// A packet that was lost. As long as the sender counts no more retransmissions than before it, everything was sent for the
    /// first time: the packet itself, and behind it what came to the link later. Its repair is among what came after that.
    fn gap(&self, lost: &'v LinkRow) -> Option<Gap<'v>> {
        let read_ns = lost.t_ns.saturating_sub(READ_NS);
        let next = self.samples.partition_point(|sample| sample.from_ns <= read_ns);
        let before = self.samples.get(next.checked_sub(1)?)?.value;
        let same = |it: &&Stretch<&TcpRow>| it.value.retransmits == before.retransmits;
        let again = next + self.samples[next..].iter().take_while(same).count();
        let last = self.samples.get(again.checked_sub(1)?)?.value;
        if last.t_ns < lost.t_ns || again == self.samples.len() {
            return None;
        }
        let sent = self.rows.partition_point(|row| row.t_ns <= last.t_ns);
        let repaired_ns = self.earliest(&self.rows[sent..])?;
        let acknowledged_ns = self.acknowledged(last, again, repaired_ns);
        let until_ns = repaired_ns.max(acknowledged_ns.unwrap_or(repaired_ns));
        let first = self.rows.partition_point(|row| row.t_ns <= lost.t_ns);
        let behind = self.rows[first..sent].iter().filter(|row| payload(row) > 0);
        let behind = behind.filter_map(|row| self.came_ns(row)).filter(|at| *at < until_ns);
        Some(Gap { lost, behind: behind.collect(), until_ns })
    }

    /// When the first of some packets with payload came.
    fn earliest(&self, rows: &[&LinkRow]) -> Option<i64> {
        let mut least: Option<i64> = None;
        for row in rows.iter().filter(|row| payload(row) > 0) {
            if least.is_some_and(|least| row.t_ns >= least) {
                break;
            }
            let came_ns = self.came_ns(row);
            least = least.into_iter().chain(came_ns).min();
        }
        least
    }

    /// When the receiver can have acknowledged a repair first. As long as the sender knows of no more bytes than at the sample
    /// before the first retransmission, whatever has come to it was no such acknowledgement.
    fn acknowledged(&self, last: &TcpRow, again: usize, repaired_ns: i64) -> Option<i64> {
        let stuck = |it: &&Stretch<&TcpRow>| it.value.acked_bytes == last.acked_bytes;
        let known_ns = self.samples[again..].iter().take_while(stuck).last()?.value.t_ns;
        let known_ns = known_ns.saturating_sub(PROCESSED_NS);
        let (link, rows) = self.back?;
        let from = rows.partition_point(|row| row.t_ns < repaired_ns);
        let may_be = |row: &&&LinkRow| {
            link.way.dropped(row).is_some() || row.departed_ns.is_none_or(|at| at >= known_ns)
        };
        rows[from..].iter().find(may_be).map(|row| row.t_ns.saturating_sub(ACK_NS))
    }

    /// How the response to a request waited for packets that were lost before it was ready.
    fn blocked(
        &self,
        request: &Request<'v>,
        gaps: &[Gap<'v>],
        others: &[&Request<'v>],
    ) -> Option<Blocked<'v>> {
        let (access, body) = (request.access?, request.row.body_bytes);
        let came = self.came(access.answered_ns, request.row.done_ns?);
        let from_ns = begun_ns(&came, body)?;
        let blocks = |gap: &&Gap| {
            gap.lost.t_ns < access.answered_ns
                && gap.until_ns > from_ns
                && is_of_others(gap, request, others)
        };
        let gaps: Vec<&Gap<'v>> = gaps.iter().filter(blocks).collect();
        let until_ns = gaps.iter().map(|gap| gap.until_ns).max()?;
        let later = came.iter().filter(|(at, _)| *at >= until_ns).map(|(_, bytes)| *bytes);
        let bytes = since(body, total(later));
        let lost = gaps.iter().map(|gap| gap.lost).collect();
        Some(Blocked { request: *request, lost, bytes, from_ns, until_ns })
    }

    /// What can be of a response that was ready at one time and complete at another: when each packet came, and its payload. The
    /// last comes first.
    fn came(&self, ready_ns: i64, done_ns: i64) -> Vec<(i64, i64)> {
        let at = |t_ns: i64| self.rows.partition_point(|row| row.t_ns < t_ns);
        let rows = self.rows[at(ready_ns)..at(done_ns).max(at(ready_ns))].iter();
        let came = rows.filter_map(|row| Some((self.came_ns(row)?, payload(row))));
        let mut came: Vec<(i64, i64)> = came.filter(|(at, _)| *at <= done_ns).collect();
        came.sort_unstable_by_key(|(at, _)| std::cmp::Reverse(*at));
        came
    }
}

/// By when some of a body had come: what came after that is less than all of it. `None` if the packets do not make it up.
fn begun_ns(came: &[(i64, i64)], body: i64) -> Option<i64> {
    let mut left = body;
    let first = came.iter().find(|(_, bytes)| {
        left = left.saturating_sub(*bytes);
        left <= 0
    });
    first.filter(|_| body > 0).map(|(at, _)| *at)
}
