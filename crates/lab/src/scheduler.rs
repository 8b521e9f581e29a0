//! Programs of others, watched from outside: what the kernel's scheduler reports about their threads in /proc. A
//! program that is stopped, or waits for a CPU, cannot report that itself.
//!
//! Each look reads the state of every process below an endpoint's, and for each of its threads how long it waited on a
//! run queue so far and how often it got a CPU (/proc/PID/task/TID/schedstat; absent without CONFIG_SCHED_INFO).
//! From that follows a lower bound of the longest single wait: the mean wait of the time between two looks, or what was
//! waited more than there was time between them, because that began before.

use std::collections::BTreeMap;
use std::fs;

use suiro_record::tables::LatenessRow;
use suiro_record::words::LatenessSource;
use suiro_units::{Duration, Time};

use crate::lateness::BOUND;

/// From one look to the next.
pub const EVERY: Duration = Duration::from_millis(100);
/// The same in virtual time: no thread waits for a CPU there, so a look finds only programs that were stopped.
pub const EVERY_VIRTUAL: Duration = Duration::from_secs(1);
/// Looks of one row.
const LOOKS: u64 = 10;
/// Most threads that one look reads, of all endpoints together; those beyond are counted.
const THREADS_MAX: usize = 512;
/// Most rows of all endpoints together; later ones are not written.
const ROWS_MAX: usize = 100_000;

/// A process, as /proc/PID/stat has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    parent: i32,
    stopped: bool,
}

/// What a thread's /proc/PID/task/TID/schedstat counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waits {
    /// Time on a run queue without a CPU.
    waited: Duration,
    /// How often it got a CPU.
    turns: u64,
}

/// What a look finds of one endpoint.
#[derive(Debug, Default)]
struct Look {
    stopped: bool,
    threads: BTreeMap<i32, Waits>,
    /// Threads that it did not read because [`THREADS_MAX`] was reached.
    left_out: usize,
}

/// What all looks found.
#[derive(Debug, Default)]
pub struct Scheduled {
    /// Rows of table `lateness`.
    pub rows: Vec<LatenessRow>,
    /// Threads that a look left out, the most of any, by endpoint; those without are not listed.
    pub left_out: BTreeMap<String, u64>,
}

/// Watches the programs of a trial.
#[derive(Debug)]
pub struct Watch {
    every: Duration,
    due: Time,
    members: BTreeMap<usize, Member>,
    found: Scheduled,
}

/// One endpoint: its process, and what is below it.
#[derive(Debug)]
struct Member {
    name: String,
    pid: i32,
    /// False if the process itself has a heartbeat.
    itself: bool,
    last: Option<(Time, Look)>,
    stopped_since: Option<Time>,
    period: Option<Period>,
}

#[derive(Debug)]
struct Period {
    began: Time,
    looks: u64,
    waited: Duration,
    turns: u64,
    worst: Duration,
    worst_from: Time,
    stopped: bool,
}

impl Watch {
    /// Nobody is watched yet. `every`: from one look to the next.
    pub fn new(every: Duration) -> Self {
        Self { every, due: Time::ZERO, members: BTreeMap::new(), found: Scheduled::default() }
    }

    /// Watches the process `pid` of endpoint `number`, and all below it; not the process itself if it watches itself.
    pub fn add(&mut self, number: usize, name: &str, pid: i32, itself: bool) {
        let member = Member {
            name: name.to_owned(),
            pid,
            itself,
            last: None,
            stopped_since: None,
            period: None,
        };
        self.members.insert(number, member);
    }

    /// The endpoint has ended.
    pub fn remove(&mut self, number: usize, now: Time) {
        if let Some(mut member) = self.members.remove(&number) {
            self.found.rows.extend(member.close(now));
        }
    }

    /// When to look next.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Looks, if it is time.
    pub fn look(&mut self, now: Time) {
        if now < self.due {
            return;
        }
        self.due = now + self.every;
        let processes = processes();
        let mut left = THREADS_MAX;
        for member in self.members.values_mut() {
            let found = member.find(&processes, &mut left, &read_threads);
            self.found.count_left_out(&member.name, found.left_out);
            if let Some(row) = member.note(now, found)
                && self.found.rows.len() < ROWS_MAX
            {
                self.found.rows.push(row);
            }
        }
    }

    /// What was found, when all has ended.
    pub fn finish(mut self, now: Time) -> Scheduled {
        for mut member in std::mem::take(&mut self.members).into_values() {
            self.found.rows.extend(member.close(now));
        }
        self.found
    }
}

impl Scheduled {
    fn count_left_out(&mut self, endpoint: &str, threads: usize) {
        if threads > 0 {
            let most = self.left_out.entry(endpoint.to_owned()).or_default();
            *most = (*most).max(threads as u64);
        }
    }
}

impl Member {
    /// Reads what is there now, by `threads` of each process; `left` is how many more threads this look may read.
    fn find(
        &self,
        processes: &BTreeMap<i32, Process>,
        left: &mut usize,
        threads: &dyn Fn(i32, usize) -> Threads,
    ) -> Look {
        let mut look = Look::default();
        for (&pid, process) in processes {
            let own = pid == self.pid;
            if own && !self.itself || !own && !is_below(pid, self.pid, processes) {
                continue;
            }
            look.stopped |= process.stopped;
            let found = threads(pid, *left);
            *left = left.saturating_sub(found.read.len());
            look.left_out += found.left_out;
            look.threads.extend(found.read);
        }
        look
    }

    /// Takes in a look; a row if one is complete.
    fn note(&mut self, now: Time, found: Look) -> Option<LatenessRow> {
        let nothing = found.threads.is_empty() && found.left_out == 0 && !found.stopped;
        if nothing && self.last.is_none() {
            return None;
        }
        let before = self.last.replace((now, found));
        let Some((then, before)) = before else {
            self.period = Some(Period::new(now));
            return None;
        };
        let (_, found) = self.last.as_ref()?;
        let period = self.period.get_or_insert_with(|| Period::new(then));
        period.looks += 1;
        let span = now.saturating_since(then);
        for (thread, waits) in &found.threads {
            let Some(earlier) = before.threads.get(thread) else { continue };
            let waited = waits.waited.saturating_sub(earlier.waited);
            let turns = waits.turns.saturating_sub(earlier.turns);
            period.waited += waited;
            period.turns += turns;
            period.worst(now, longest(waited, turns, span), false);
        }
        match (found.stopped, self.stopped_since) {
            (true, None) => self.stopped_since = Some(now),
            (true, Some(_)) => {}
            // It was seen stopped at the look before, and runs by now.
            (false, Some(since)) => {
                period.worst(then, then.saturating_since(since), true);
                self.stopped_since = None;
            }
            (false, None) => {}
        }
        // A wait that counts ends the row, so that no row has two of them.
        let over = period.looks >= LOOKS || period.worst > BOUND;
        if over { self.close(now) } else { None }
    }

    /// Ends the row under way.
    fn close(&mut self, now: Time) -> Option<LatenessRow> {
        let mut period = self.period.take()?;
        if let Some((then, look)) = &self.last
            && look.stopped
            && let Some(since) = self.stopped_since
        {
            period.worst(*then, then.saturating_since(since), true);
        }
        (period.looks > 0).then(|| period.row(now, &self.name))
    }
}

impl Period {
    const fn new(began: Time) -> Self {
        let worst = Duration::ZERO;
        Self { began, looks: 0, waited: worst, turns: 0, worst, worst_from: began, stopped: false }
    }

    /// It did not run for this long, until `to`.
    fn worst(&mut self, to: Time, lasted: Duration, stopped: bool) {
        if lasted > self.worst {
            self.worst = lasted;
            self.worst_from = Time::ZERO + to.saturating_since(Time::ZERO + lasted);
            self.stopped = stopped;
        }
    }

    fn row(self, now: Time, name: &str) -> LatenessRow {
        LatenessRow {
            t_ns: now,
            endpoint: name.into(),
            source: LatenessSource::Scheduler,
            period_ns: now.saturating_since(self.began),
            looks: self.looks,
            mean_ns: self.waited.as_nanos().checked_div(self.turns).map(Duration::from_nanos),
            worst_ns: self.worst,
            worst_from_ns: self.worst_from,
            stopped: self.stopped,
        }
    }
}

/// At least how long the longest wait was, of a thread that waited this long before its turns of this span.
fn longest(waited: Duration, turns: u64, span: Duration) -> Duration {
    let mean = waited.as_nanos().checked_div(turns).map_or(Duration::ZERO, Duration::from_nanos);
    mean.max(waited.saturating_sub(span))
}

fn is_below(pid: i32, root: i32, processes: &BTreeMap<i32, Process>) -> bool {
    // A process and its ancestors are fewer than there are processes; parents may change while they are read.
    let mut at = pid;
    for _ in 0..processes.len() {
        match processes.get(&at) {
            Some(process) if process.parent == root => return true,
            Some(process) => at = process.parent,
            None => return false,
        }
    }
    false
}

/// Every process of this PID namespace.
fn processes() -> BTreeMap<i32, Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, parse_stat(&stat)?))
    })
    .collect()
}

/// The threads of a process.
#[derive(Debug, Default)]
struct Threads {
    read: Vec<(i32, Waits)>,
    /// How many more there are.
    left_out: usize,
}

/// Reads this many threads of a process at most.
fn read_threads(pid: i32, most: usize) -> Threads {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let ids: Vec<i32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let (chosen, others) = ids.split_at(most.min(ids.len()));
    let waits = |id: &i32| {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{id}/schedstat")).ok()?;
        Some((*id, parse_schedstat(&text)?))
    };
    Threads { read: chosen.iter().filter_map(waits).collect(), left_out: others.len() }
}

/// `PID (NAME) STATE PARENT …`; a name may hold anything, parentheses too.
fn parse_stat(text: &str) -> Option<Process> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut words = rest.split_ascii_whitespace();
    let state = words.next()?;
    Some(Process { parent: words.next()?.parse().ok()?, stopped: matches!(state, "T" | "t") })
}

/// `RUNNING WAITED TURNS`, the first two in nanoseconds.
fn parse_schedstat(text: &str) -> Option<Waits> {
    let mut words = text.split_ascii_whitespace().skip(1);
    let waited = Duration::from_nanos(words.next()?.parse().ok()?);
    Some(Waits { waited, turns: words.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn member() -> Member {
        Member {
            name: "it".to_owned(),
            pid: 7,
            itself: true,
            last: None,
            stopped_since: None,
            period: None,
        }
    }

    fn look(waited_ms: u64, turns: u64, stopped: bool) -> Look {
        let waits = Waits { waited: Duration::from_millis(waited_ms), turns };
        Look { stopped, threads: [(7, waits)].into(), left_out: 0 }
    }

    #[test]
    fn what_the_kernel_writes() {
        let stat = "71 (a) b) c) T 7 71 71 0 -1 4194304 106";
        assert_eq!(parse_stat(stat), Some(Process { parent: 7, stopped: true }));
        assert_eq!(parse_stat("71 (sh) S 1 71"), Some(Process { parent: 1, stopped: false }));
        assert_eq!(parse_stat("71 sh S"), None);
        let waits = Waits { waited: Duration::from_nanos(4567), turns: 89 };
        assert_eq!(parse_schedstat("123 4567 89\n"), Some(waits));
        assert_eq!(parse_schedstat("123"), None);
    }

    #[test]
    fn the_longest_wait_is_bounded_from_below() {
        let ms = Duration::from_millis;
        assert_eq!(longest(ms(300), 1, ms(100)), ms(300), "one wait");
        assert_eq!(longest(ms(90), 45, ms(100)), ms(2), "many, as of a program that computes");
        assert_eq!(longest(ms(350), 50, ms(100)), ms(250), "one began long before");
        assert_eq!(longest(ms(0), 0, ms(100)), ms(0));
    }

    #[test]
    fn a_wait_and_a_stop_are_found_in_what_the_looks_read() {
        let mut member = member();
        assert_eq!(member.note(ms(0), look(1000, 50, false)), None, "from here on");
        member.note(ms(100), look(1002, 52, false));
        // A wait of over 150 ms ends the row.
        let row = member.note(ms(500), look(1302, 53, false)).unwrap();
        assert_eq!((row.worst_ns, row.stopped), (Duration::from_millis(300), false));
        assert_eq!((row.worst_from_ns, row.looks), (ms(200), 2));

        for at in [600, 700, 800, 900] {
            member.note(ms(at), look(1302, 53, true));
        }
        let row = member.note(ms(1000), look(1302, 54, false)).unwrap();
        assert_eq!((row.worst_from_ns, row.worst_ns), (ms(600), Duration::from_millis(300)));
        assert!(row.stopped);
    }

    #[test]
    fn a_row_is_a_second_and_who_stays_stopped_is_in_it() {
        let mut member = member();
        let rows = (0..=25).filter_map(|n| member.note(ms(100 * n), look(0, 0, n >= 5)));
        let rows: Vec<LatenessRow> = rows.collect();
        assert_eq!(rows.iter().map(|row| row.t_ns).collect::<Vec<_>>(), [ms(1000), ms(2000)]);
        assert_eq!(rows[1].worst_ns, Duration::from_millis(1500));
        let last = member.close(ms(2500)).unwrap();
        assert_eq!((last.worst_from_ns, last.worst_ns), (ms(500), Duration::from_secs(2)));
    }

    #[test]
    fn descendants_are_found_whatever_their_depth() {
        let process = |parent| Process { parent, stopped: false };
        let all =
            BTreeMap::from([(1, process(0)), (7, process(1)), (8, process(7)), (9, process(8))]);
        assert!(is_below(9, 7, &all) && is_below(8, 7, &all));
        assert!(!is_below(7, 7, &all) && !is_below(1, 7, &all));
        let circle = BTreeMap::from([(8, process(9)), (9, process(8))]);
        assert!(!is_below(8, 7, &circle));
    }

    /// Looks at two endpoints of ten processes with so many threads each: threads read and left out, of each.
    fn two_of_ten(threads: usize) -> Vec<(usize, usize)> {
        let process = |pid: i32| {
            let parent = if pid % 10 == 0 { 1 } else { pid / 10 * 10 };
            (pid, Process { parent, stopped: false })
        };
        let all: BTreeMap<i32, Process> = (10..30).map(process).collect();
        let waits = Waits { waited: Duration::ZERO, turns: 1 };
        let read = |pid: i32, most: usize| {
            let ids = (0..threads.min(most)).map(|n| (pid * 1000 + n as i32, waits));
            Threads { read: ids.collect(), left_out: threads.saturating_sub(most) }
        };
        let mut left = THREADS_MAX;
        let mut look = |pid| {
            let look = Member { pid, ..member() }.find(&all, &mut left, &read);
            (look.threads.len(), look.left_out)
        };
        vec![look(10), look(20)]
    }

    #[test]
    fn every_thread_up_to_the_bound_is_read_and_the_others_are_counted() {
        assert_eq!(two_of_ten(20), [(200, 0), (200, 0)]);
        // 300 of the first leave 212 of 512 to the second.
        assert_eq!(two_of_ten(30), [(300, 0), (212, 88)]);
        assert_eq!(two_of_ten(60), [(512, 88), (0, 600)]);
        let mut found = Scheduled::default();
        [0, 88, 3].into_iter().for_each(|threads| found.count_left_out("browser", threads));
        found.count_left_out("other", 0);
        assert_eq!(found.left_out, BTreeMap::from([("browser".to_owned(), 88)]));
    }

    #[test]
    fn a_process_whose_threads_are_all_left_out_is_seen_when_it_is_stopped() {
        let mut member = member();
        let look = |stopped| Look { stopped, left_out: 5, ..Look::default() };
        assert_eq!(member.note(ms(0), look(false)), None);
        (1..=5).for_each(|n| drop(member.note(ms(100 * n), look(n >= 2))));
        let row = member.note(ms(600), look(false)).unwrap();
        assert_eq!((row.worst_from_ns, row.worst_ns), (ms(200), Duration::from_millis(300)));
        assert_eq!((row.mean_ns, row.stopped), (None, true));
    }

    #[test]
    fn this_process_is_seen() {
        let own = std::process::id().cast_signed();
        let mut watch = Watch::new(EVERY);
        watch.add(0, "own", own, true);
        watch.look(ms(0));
        watch.look(ms(50));
        assert_eq!(watch.due(), ms(100), "too soon to look again");
        watch.look(ms(100));
        let Scheduled { rows, left_out } = watch.finish(ms(150));
        assert_eq!((rows.len(), rows[0].looks, &*rows[0].endpoint), (1, 1, "own"));
        assert!(left_out.is_empty(), "{left_out:?}");
    }
}
