//! What held a sender of real-time video back, and what limited its flow from slice to slice.

use suiro_record::words::Cause;

use super::endpoints::absent;
use super::evidence::Rows;
use super::links::Carried;
use super::path::Seen;
use super::queues::Queues;
use super::realtime::{ROW_NS, Stream};
use super::rows::stretches;
use super::{Evidence, Subject, since};

/// A connection of QUIC is sampled as often as this, or more often.
const QUIC_ROW_NS: i64 = 10_000_000;

/// Bytes that a sender held back.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    by_pacing: i64,
    for_window: i64,
    /// Whether the sender recorded it.
    known: bool,
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl<'v> Stream<'_, 'v> {
    /// What limited it.
    pub fn subject(&self) -> Subject {
        let alive = self.packets(0, self.slices.end_ns);
        let times = alive.map(|row| self.slices.at(row.t_ns));
        let (first, last) = times.fold((usize::MAX, 0), |(a, b), t| (a.min(t), b.max(t)));
        let held = self.held_by_slice();
        let causes: Vec<Option<Cause>> = (0..self.slices.count)
            .map(|index| {
                (first..=last).contains(&index).then(|| self.limited_by(index, held[index]))
            })
            .collect();
        let mut limits = stretches(&causes, self.slices);
        for limit in &mut limits {
            limit.evidence.extend(self.link_rows(limit.from_ns, limit.to_ns));
        }
        Subject { name: self.player.name.to_owned(), is_viewer: true, limits }
    }

    fn limited_by(&self, index: usize, held: Held) -> Cause {
        let (from, to) = self.slices.span(index);
        let most = (to - from) / 2;
        let loads = || self.data.iter().filter_map(|way| way.own.get(index));
        if loads().any(|load| load.late_ns > most) {
            return Cause::Emulator;
        }
        if loads().any(|load| load.out_ns > most) {
            return Cause::Outage;
        }
        let repair = self.slices.span(index.saturating_sub(self.rules.repair_slices)).0;
        if let Some(cause) = self.dropped(repair, to) {
            return cause;
        }
        let seen = Seen::of(&self.data, from, to);
        if let Some(waited) = seen.waited.filter(|(ns, _)| *ns > self.rules.queued_ns) {
            return self.queue(waited);
        }
        if let Some(cause) = self.served(index) {
            return cause;
        }
        if absent(&self.senders, from, to).is_some() {
            return Cause::ServerProcessor;
        }
        if absent(&self.receivers, from, to).is_some() {
            return Cause::ClientProcessor;
        }
        match held {
            Held { for_window: 1.., .. } => Cause::CongestionWindow,
            Held { by_pacing: 1.., .. } => Cause::Pacing,
            Held { known: true, .. } => Cause::Application,
            Held { .. } => Cause::Unknown,
        }
    }

    /// The cause of a link that was busy with the flow for most of a slice.
    fn served(&self, index: usize) -> Option<Cause> {
        let busiest = self.data.iter().max_by(|a, b| a.busy(index).total_cmp(&b.busy(index)))?;
        let way = Some(busiest).filter(|way| way.busy(index) >= self.rules.served)?;
        Some(way.limit(index..index + 1, self.slices.span(index).0))
    }

    /// The most that the sender held back in each slice.
    fn held_by_slice(&self) -> Vec<Held> {
        let mut held = vec![Held::default(); self.slices.count];
        // A row is about the time before it.
        let mut note = |t_ns: i64, before_ns: i64, most: &dyn Fn(&mut Held)| {
            self.slices.spread(since(t_ns, before_ns), t_ns, |index, _| {
                held[index].known = true;
                most(&mut held[index]);
            });
        };
        let always = i64::MIN..=i64::MAX;
        for (t_ns, bytes) in self.queues.pacer(always.clone()) {
            note(*t_ns, ROW_NS, &|held| held.by_pacing = held.by_pacing.max(*bytes));
        }
        for (t_ns, _, bytes) in self.queues.window(always) {
            note(*t_ns, QUIC_ROW_NS, &|held| held.for_window = held.for_window.max(*bytes));
        }
        held
    }

    fn link_rows(&self, from: i64, to: i64) -> Vec<Evidence> {
        let rows = self.packets(from, to).collect();
        let steps = Rows { rows, from, to }.steps(self.records, |_| String::new(), "");
        steps.into_iter().map(|step| step.evidence).collect()
    }

    /// What made a sender hold data back from one time to another. A link without any event is to blame only if it was busy,
    /// or if its queue explains half of that time.
    pub fn held_back(&self, from: i64, until: i64) -> Option<Cause> {
        let by_rate = || {
            let waited = Seen::of(&self.data, from, until).waited_ns();
            waited >= since(until, from) / 2 || self.is_busy(from, until)
        };
        let met = self.trouble(from.saturating_sub(self.rules.held_ns), until);
        let met = met.filter(|cause| *cause != Cause::LinkRate || by_rate());
        let holds = |bytes: i64, cause| (bytes > 0).then_some(cause);
        met.or_else(|| self.overshoots(from).then_some(Cause::Encoder))
            .or_else(|| holds(self.waiting_bytes(from, until), Cause::CongestionWindow))
            .or_else(|| holds(self.held_bytes(from, until), Cause::Pacing))
    }

    /// Whether a link was busy with the flow for most of a stretch of time.
    fn is_busy(&self, from: i64, until: i64) -> bool {
        let share = |way: &Carried| {
            let mut busy_ns: i64 = 0;
            way.slices.spread(from, until, |index, ns| {
                busy_ns = busy_ns.saturating_add((way.busy(index) * ns as f64) as i64);
            });
            busy_ns as f64 / since(until, from).max(1) as f64
        };
        self.data.iter().any(|way| share(way) >= self.rules.served)
    }

    /// Bytes that waited in the sender at most, by its own record.
    pub fn held_bytes(&self, from: i64, to: i64) -> i64 {
        let until = to.saturating_add(ROW_NS);
        let held = self.queues.pacer(from..=until).iter().map(|(_, bytes)| *bytes).max();
        held.unwrap_or(0).max(self.waiting_bytes(from, until))
    }

    /// The longest time within a stretch in which nothing came to the first link, if that is most of it, and the sender held
    /// nothing back by its own rows, or writes none any more. `None` if they do not tell.
    pub fn silence(&self, (from, to): (i64, i64)) -> Option<(i64, i64)> {
        let begun = |way: &&Carried| way.rows.first().map_or(i64::MAX, |row| row.t_ns);
        let first = self.data.iter().min_by_key(begun)?;
        let came = first.within(from, to).iter().map(|row| row.t_ns);
        let times: Vec<i64> = [from].into_iter().chain(came).chain([to]).collect();
        let gaps = times.iter().copied().zip(times.iter().copied().skip(1));
        let (begun, ended) = gaps.max_by_key(|(begun, ended)| since(*ended, *begun))?;
        let is_most = since(ended, begun) as f64 > self.rules.most * since(to, from) as f64;
        let waiting =
            self.queues.window(begun..=ended).iter().map(|(t_ns, _, bytes)| (*t_ns, *bytes));
        let paced = self.queues.pacer(begun..=ended).iter().copied();
        let rows: Vec<(i64, i64)> = paced.chain(waiting).collect();
        let Some((_, last)) = rows.iter().max_by_key(|(t_ns, _)| *t_ns) else {
            let is_over = self.heard_last().is_some_and(|at| at <= begun.saturating_add(ROW_NS));
            return (is_most && is_over).then_some((begun, ended));
        };
        // A row is about the time before it.
        let inner = begun.saturating_add(ROW_NS)..ended.saturating_sub(ROW_NS);
        let held = rows.iter().any(|(t_ns, bytes)| inner.contains(t_ns) && *bytes > 0);
        (is_most && !held && *last == 0).then_some((begun, ended))
    }

    /// When the sender wrote its last row; `None` if it wrote none.
    fn heard_last(&self) -> Option<i64> {
        let rate = self.records.rate.iter().filter(|row| self.is_sender(&row.endpoint));
        let webrtc = self.webrtc().map(|row| row.t_ns.as_nanos_i64());
        let quic = self.queues.window(i64::MIN..=i64::MAX).last().map(|(t_ns, ..)| *t_ns);
        rate.map(|row| row.t_ns).chain(webrtc).chain(quic).max()
    }

    /// What waited in its senders. QUIC's rows are those of the sender and of relays that carry it.
    pub fn waiting_rows(&self) -> Queues<'v> {
        let sends = |endpoint: &str| self.sources.is_empty() || self.sources.contains(&endpoint);
        let quic = self.records.quic.iter().filter(|row| sends(&row.endpoint));
        let window = quic.filter(|row| self.sessions.has_quic(row)).filter_map(|row| {
            Some((row.t_ns.as_nanos_i64(), &*row.endpoint, signed(row.waiting_bytes?)))
        });
        let rate = self.records.rate.iter().filter(|row| self.is_sender(&row.endpoint));
        let webrtc = self
            .webrtc()
            .filter_map(|row| Some((row.t_ns.as_nanos_i64(), signed(row.queue_bytes?))));
        let pacer = rate.map(|row| (row.t_ns, row.queue_bytes)).chain(webrtc);
        Queues::of(window.collect(), pacer.collect())
    }

    /// How many bytes waited at most.
    pub fn waiting_bytes(&self, from: i64, to: i64) -> i64 {
        self.queues.window(from..=to).iter().map(|(.., bytes)| *bytes).max().unwrap_or(0)
    }

    /// Whether bytes waited in one endpoint all of this time, its end excluded.
    pub fn always_waits(&self, from: i64, to: i64) -> bool {
        let mut least: Vec<(&str, i64)> = Vec::new();
        for (_, endpoint, bytes) in self.queues.window(from..=to.saturating_sub(1)) {
            match least.iter_mut().find(|(other, _)| other == endpoint) {
                Some((_, least)) => *least = *bytes.min(least),
                None => least.push((endpoint, *bytes)),
            }
        }
        least.iter().any(|(_, bytes)| *bytes > 0)
    }
}
