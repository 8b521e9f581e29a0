//! What happened to some packets on links in a stretch of time, by the links' own records.

use suiro_record::tables::LinkRow;
use suiro_record::words::Cause;

use super::drops::Drops;
use super::links::Carried;
use super::rules::Rules;
use super::since;

/// Packets that were dropped or damaged in a stretch of time, and the longest delays of the others.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen<'v> {
    pub packets: u32,
    pub drops: Drops,
    /// The packet that waited longest for its link, and for how long.
    pub waited: Option<(i64, &'v LinkRow)>,
    /// The longest that one took from its arrival at a link to the end of its service.
    pub passed_ns: i64,
    /// The packet whose propagation was the furthest above the usual, by how much.
    pub slow: Option<(i64, &'v LinkRow)>,
    /// The longest that the emulator handed one over too late.
    pub late_ns: i64,
}

impl<'v> Seen<'v> {
    /// The packets of these flows that came to the links within a stretch of time.
    pub fn of(data: &[Carried<'_, 'v>], from_ns: i64, to_ns: i64) -> Self {
        let mut seen = Self::default();
        for way in data {
            way.within(from_ns, to_ns).iter().for_each(|row| seen.add(way, row));
        }
        seen
    }

    fn add(&mut self, way: &Carried<'_, 'v>, row: &'v LinkRow) {
        self.packets = self.packets.saturating_add(1);
        if let Some(how) = way.way.dropped(row) {
            self.drops.count(how);
        }
        if let (Some(due), Some(left)) = (row.scheduled_ns, row.departed_ns) {
            self.late_ns = self.late_ns.max(since(left, due));
        }
        if let Some(waited) = row.dequeued_ns.map(|t| since(t, row.t_ns)).filter(|ns| *ns > 0)
            && self.waited.is_none_or(|(longest, _)| waited > longest)
        {
            self.waited = Some((waited, row));
        }
        self.passed_ns = self.passed_ns.max(way.passed_ns(row).unwrap_or(0));
        if let Some(slow) = way.slow_ns(row)
            && self.slow.is_none_or(|(most, _)| slow > most)
        {
            self.slow = Some((slow, row));
        }
    }

    pub fn waited_ns(&self) -> i64 {
        self.waited.map_or(0, |(ns, _)| ns)
    }

    pub fn slow_ns(&self) -> i64 {
        self.slow.map_or(0, |(ns, _)| ns)
    }

    /// Whether what these packets met on the path back explains more of a sender's wait than the queue that its data met:
    /// acknowledgements waited for more than twice as long, or most of them were lost.
    pub fn outweighs(&self, data: &Self, rules: Rules) -> bool {
        let waited = self.waited_ns() > data.passed_ns.saturating_mul(2);
        (waited && self.waited_ns() > rules.queued_ns) || self.drops.count_all() > self.packets / 2
    }
}

/// Who filled the queue that a packet waited in, or that had no room for it.
pub(super) fn queue(data: &[Carried], (waited_ns, row): (i64, &LinkRow)) -> Cause {
    let Some(way) = data.iter().find(|way| way.carries(row)) else { return Cause::Unknown };
    let until = row.t_ns.saturating_add(waited_ns);
    // A shorter outage made it wait longer, but something else made it wait.
    let explains = way.rules.explains * waited_ns.max(1) as f64;
    let out = |from_ns: i64| way.way.out_ns(from_ns, until) as f64 >= explains;
    if out(row.t_ns) {
        return Cause::Outage;
    }
    let slices = way.slices;
    let range = slices.at(row.t_ns)..slices.at(until) + 1;
    if way.others_in_queue(range.clone()) >= way.rules.queue_shared {
        return if waited_ns > way.rules.bloat_ns { Cause::Bufferbloat } else { Cause::Competing };
    }
    // Its own packets waited, and other stations had the medium.
    if way.others(range) >= way.rules.queue_shared {
        return Cause::Competing;
    }
    // What waits was sent since the link was idle last, whatever it carries by now.
    let busy_ns = way.busy_since(row.t_ns);
    if out(busy_ns) {
        return Cause::Outage;
    }
    let falls = way.way.falls.iter();
    let fallen = falls.filter(|fall| fall.from_ns < until && fall.to_ns > busy_ns).count() > 0;
    if fallen { Cause::RateStep } else { Cause::LinkRate }
}

/// Packets before or after a slow one that show whether others were slow.
const AROUND_MIN: usize = 4;

/// Whether what delayed a packet on its way, other than a queue, delayed all, some, or only a few; `None` if too few packets came
/// around it to know.
pub(super) fn slowness(data: &[Carried], (slow_ns, row): (i64, &LinkRow)) -> Option<Cause> {
    let way = data.iter().find(|way| way.carries(row))?;
    let rules = way.rules;
    let (from, to) =
        (row.t_ns.saturating_sub(rules.around_ns), row.t_ns.saturating_add(rules.around_ns));
    let quartile = |rows: &[&LinkRow], of: usize| {
        let mut slow: Vec<i64> = rows.iter().filter_map(|row| way.slow_ns(row)).collect();
        slow.sort_unstable();
        slow.get(slow.len() * of / 4).copied().unwrap_or(0)
    };
    let all_slow = |rows: &[&LinkRow]| quartile(rows, 0) as f64 >= rules.explains * slow_ns as f64;
    let few_slow = |rows: &[&LinkRow]| (quartile(rows, 3) as f64) < rules.few * slow_ns as f64;
    // Where the delay rises or falls, only those on one side are slow.
    let sides = [way.within(from, row.t_ns.saturating_add(1)), way.within(row.t_ns, to)];
    let enough = |side: &&&[&LinkRow]| side.len() >= AROUND_MIN;
    if sides.iter().filter(enough).any(|side| all_slow(side)) {
        return Some(Cause::Delay);
    }
    let around = way.within(from, to);
    let left = |row: &LinkRow| row.departed_ns.unwrap_or(i64::MAX);
    let overtaken = around.iter().any(|other| other.t_ns > row.t_ns && left(other) < left(row));
    if overtaken && sides.iter().filter(enough).any(|side| few_slow(side)) {
        return Some(Cause::Reordering);
    }
    match sides.iter().all(|side| enough(&side)) {
        true => Some(Cause::Jitter),
        false => {
            let is_slow = |row: &&LinkRow| {
                way.slow_ns(row).is_some_and(|ns| ns as f64 >= rules.explains * slow_ns as f64)
            };
            around.iter().all(is_slow).then_some(Cause::Delay)
        }
    }
}
