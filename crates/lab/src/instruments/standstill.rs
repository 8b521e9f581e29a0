//! Whether the machine itself stalled during a trial: a watcher on each CPU sleeps to absolute times, and notes
//! when it was woken late. What a stream of uncompressed video loses to that is not the stream's fault.
//!
//! A watcher that is late may have waited for its turn: another thread had the CPU, which is load. The kernel says
//! how long a thread waited on a run queue (/proc/thread-self/schedstat), and only the rest counts: for that time not even
//! the timer's interrupt came. Watchers ask for real-time priority, so that they wait little; without privilege they go without.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use anyhow::Result;
use rustix::thread::{ClockId, CpuSet, Timespec, clock_nanosleep_absolute};
use suiro_record::tables::StandstillRow;
use suiro_record::{Standstills, Writer};
use suiro_units::{Duration, Time};

use super::{Found, Instrument, Prepared, Running, Scene};
use crate::clock::Epoch;

/// From one look to the next: a quarter of a frame time. A look takes about 28 µs of CPU time on a virtual machine, so
/// a watcher costs 0.7 % of its CPU.
const EVERY: Duration = Duration::from_millis(4);
/// A standstill is at least a tenth of a frame time at 59.94 frames per second; `suiro doctor` has the same bound.
const LEAST: Duration = Duration::from_micros(1_668);
/// Most rows of one CPU; later ones are not written.
const ROWS_MAX: usize = 10_000;
/// Who writes the table, for the file's name; no endpoint's name begins so.
const OWN: &str = "_lab";

/// The CPUs of this machine. Their watchers begin at time zero.
pub struct Cpus;

/// The watchers of a trial.
struct Watchers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Watched>>,
}

/// What a watcher found on its CPU.
#[derive(Debug, Default)]
struct Watched {
    looks: u64,
    rows: Vec<StandstillRow>,
    /// Standstills, also those without a row: how many, all together, and the longest.
    count: u64,
    total: Duration,
    longest: Duration,
    /// CPU time of the watcher.
    cost: Duration,
    /// From its first look to its last.
    span: Duration,
}

impl Instrument for Cpus {
    /// Only trials with uncompressed video are watched: standstills of milliseconds change their figures.
    fn prepare(&self, scene: Scene<'_>) -> Result<Option<Box<dyn Prepared>>> {
        let mut endpoints = scene.setup.endpoints.iter();
        let wanted = endpoints.any(|it| it.spec.name().starts_with("uncompressed-"));
        Ok(wanted.then(|| Box::new(Self) as Box<dyn Prepared>))
    }
}

impl Prepared for Cpus {
    fn start(self: Box<Self>, _: Scene<'_>, epoch: Epoch) -> Result<Box<dyn Running>> {
        Ok(Box::new(Watchers::start(epoch)))
    }
}

impl Running for Watchers {
    fn stop(self: Box<Self>, scene: Scene<'_>, _: Epoch, found: &mut Found) -> Result<()> {
        found.standstills = self.finish(scene.dir)?;
        Ok(())
    }
}

impl Watchers {
    /// Begins to watch every CPU that this process may use. One that cannot be watched is left out.
    fn start(epoch: Epoch) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let watch = |cpu: usize| {
            let stop = Arc::clone(&stop);
            let thread = Builder::new().name(format!("standstill{cpu}"));
            thread.spawn(move || watch(cpu, epoch, &stop).unwrap_or_default()).ok()
        };
        let threads = processors().into_iter().filter_map(watch).collect();
        Self { stop, threads }
    }

    /// Ends watching.
    fn end(self) -> Vec<Watched> {
        self.stop.store(true, Ordering::Relaxed);
        let joined = self
            .threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.filter(|watched| watched.looks > 0).collect()
    }

    /// Ends watching, writes the table `standstills`, and says what it holds; `None` if no CPU was watched.
    fn finish(self, dir: &Path) -> Result<Option<Standstills>> {
        let watched = self.end();
        if watched.is_empty() {
            return Ok(None);
        }
        let summary = summary(&watched);
        let mut table = Writer::create_of(dir, OWN)?;
        for row in watched.into_iter().flat_map(|watched| watched.rows) {
            table.push(row)?;
        }
        table.close()?;
        Ok(Some(summary))
    }
}

fn summary(watched: &[Watched]) -> Standstills {
    let span = watched.iter().map(|watched| watched.span).max().unwrap_or_default();
    let cost_s: f64 = watched.iter().map(|watched| watched.cost.as_secs_f64()).sum();
    Standstills {
        processors: watched.len() as u64,
        looks: watched.iter().map(|watched| watched.looks).sum(),
        count: watched.iter().map(|watched| watched.count).sum(),
        total_s: watched.iter().map(|watched| watched.total.as_secs_f64()).sum(),
        longest_s: watched.iter().map(|w| w.longest.as_secs_f64()).fold(0.0, f64::max),
        least_s: LEAST.as_secs_f64(),
        watcher_cores: if span.is_zero() { 0.0 } else { cost_s / span.as_secs_f64() },
    }
}

fn processors() -> Vec<usize> {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}

/// Watches one CPU until `stop` is set.
fn watch(cpu: usize, epoch: Epoch, stop: &AtomicBool) -> io::Result<Watched> {
    prepare(cpu)?;
    let queue = Queue::open()?;
    let mut watched = Watched::default();
    let began = epoch.elapsed();
    let (mut due, mut queued) = (began + EVERY, queue.waited()?);
    while !stop.load(Ordering::Relaxed) {
        sleep_until(epoch, due);
        let now = epoch.elapsed();
        let queued_now = queue.waited()?;
        watched.look(cpu, due, now, queued_now.saturating_sub(queued));
        queued = queued_now;
        let next = due + EVERY;
        due = if next > now { next } else { now + EVERY };
    }
    watched.span = epoch.elapsed().saturating_since(began);
    watched.cost = Duration::from_nanos(suiro_clock::kernel::thread_cpu_ns());
    Ok(watched)
}

impl Watched {
    /// The watcher of CPU `cpu` was due at `due` and ran at `now`, after it had waited `queued` for its turn.
    fn look(&mut self, cpu: usize, due: Time, now: Time, queued: Duration) {
        self.looks += 1;
        let length = now.saturating_since(due).saturating_sub(queued);
        if length < LEAST {
            return;
        }
        self.count += 1;
        self.total += length;
        self.longest = self.longest.max(length);
        if self.rows.len() < ROWS_MAX {
            let processor = cpu as u64;
            self.rows.push(StandstillRow {
                t_ns: due,
                length_ns: length,
                processor,
                queued_ns: queued,
            });
        }
    }
}

/// Binds the thread to a CPU and lets it wake exactly.
fn prepare(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set)?;
    // Failing only costs precision.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let least = libc::sched_param { sched_priority: 1 };
    // SAFETY: `least` lives through the call, which reads it.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const least)
    };
    Ok(())
}

fn sleep_until(epoch: Epoch, time: Time) {
    let ns = epoch.monotonic_ns.saturating_add(time.as_nanos());
    let request = Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (ns % 1_000_000_000) as _,
    };
    // A signal ends it early, which is not late.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &request);
}

/// How long this thread has waited for its turn so far.
struct Queue(File);

impl Queue {
    fn open() -> io::Result<Self> {
        File::open("/proc/thread-self/schedstat").map(Self)
    }

    fn waited(&self) -> io::Result<Duration> {
        let mut text = [0; 96];
        let length = self.0.read_at(&mut text, 0)?;
        let text = String::from_utf8_lossy(&text[..length]);
        // `RUNNING WAITED TURNS`, the first two in nanoseconds.
        let waited = text.split_ascii_whitespace().nth(1).and_then(|waited| waited.parse().ok());
        waited.map(Duration::from_nanos).ok_or_else(|| io::Error::other("no schedstat"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_watcher_did_not_wait_for_its_turn_counts() {
        let (ms, at) = (Duration::from_millis, Time::from_millis);
        let mut watched = Watched::default();
        watched.look(1, at(10), at(11), Duration::ZERO);
        watched.look(1, at(20), at(30), ms(9));
        assert_eq!((watched.looks, watched.count), (2, 0), "load, not a standstill");
        watched.look(1, at(40), at(70), ms(1));
        watched.look(1, at(80), at(82), Duration::ZERO);
        assert_eq!((watched.count, watched.total, watched.longest), (2, ms(31), ms(29)));
        let row = StandstillRow { t_ns: at(40), length_ns: ms(29), processor: 1, queued_ns: ms(1) };
        assert_eq!(watched.rows[0], row);
        watched.span = Duration::from_secs(1);
        watched.cost = ms(5);
        let summary = summary(&[watched, Watched { looks: 1, ..Watched::default() }]);
        assert_eq!((summary.processors, summary.looks, summary.count), (2, 5, 2));
        assert_eq!(
            (summary.total_s, summary.longest_s, summary.watcher_cores),
            (0.031, 0.029, 0.005)
        );
    }

    #[test]
    fn every_processor_is_watched_and_the_cost_is_told() {
        let epoch = Epoch::now();
        let watchers = Watchers::start(epoch);
        assert_eq!(watchers.threads.len(), processors().len());
        while epoch.elapsed() < Time::from_millis(60) {
            std::hint::spin_loop();
        }
        let dir = tempfile::tempdir().unwrap();
        // Without CONFIG_SCHED_INFO nothing can be measured.
        let Some(told) = watchers.finish(dir.path()).unwrap() else { return };
        assert!(told.looks > 0 && told.watcher_cores > 0.0, "{told:?}");
        let rows: Vec<StandstillRow> = suiro_record::Reader::read_all(dir.path()).unwrap();
        assert_eq!(rows.len() as u64, told.count);
    }
}
