//! The threads that carry one link: its *hands*, each on a CPU of its own. One of them is on duty; the other takes
//! the turn when that one is late.
//!
//! A thread waits for whatever its CPU does inside the kernel, in the real-time class too, and a hypervisor stops CPUs
//! one by one. That takes milliseconds, but seldom on two CPUs at the same time. Of two threads that slept until the
//! same moments for 40 s, each woke more than 2 ms late in 0.13 % of times, the first of both in 0.025 %.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread::JoinHandle;

use suiro_clock::Axis;
use suiro_units::{Duration, Time};

use crate::engine::{Carried, Engine};
use crate::pace::Pace;
use crate::priority::{Class, Priority};

/// Most hands of one link.
const HANDS_MAX: usize = 2;
/// The hand on duty may be late by this share of the link's bound before another one takes the turn. With less, the other
/// one would wake more often for nothing, which costs some 20 µs on a busy CPU.
const GRACE_SHARE: u64 = 10;
/// How long to stay away while another hand is in the middle of its turn.
const AWAY: Duration = Duration::from_micros(200);

/// The hands of a running link.
#[derive(Debug)]
pub(crate) struct Hands {
    shared: Arc<Shared>,
    wake: Option<PipeWriter>,
    threads: Vec<JoinHandle<io::Result<Worked>>>,
}

/// What is left of a link that has ended.
pub(crate) struct Ended {
    pub carried: Carried,
    /// The best priority that the hands were allowed.
    pub priority: Priority,
    /// CPU time of all hands, in cores.
    pub cpu_cores: f64,
    /// The share of the time in which a hand was of the real-time class.
    pub real_time: f64,
    /// How often a hand took the turn because the one on duty was late.
    pub takeovers: u64,
}

/// What one hand did.
struct Worked {
    /// From the hand that ended the link.
    carried: Option<Carried>,
    priority: Priority,
    ran: Duration,
    span: Duration,
    real_time: f64,
    takeovers: u64,
}

/// What the hands of a link have in common.
struct Shared {
    clock: Axis,
    /// How late the hand on duty may be.
    grace: Duration,
    /// Nobody waits for it while the link runs. Empty when the link has ended.
    engine: Mutex<Option<Engine>>,
    sockets: Vec<OwnedFd>,
    /// Readable when the link is to stop.
    wake: PipeReader,
    stopped: AtomicBool,
    on_duty: AtomicUsize,
    /// Turns taken so far.
    turns: AtomicU64,
    /// A [`Plan`] as one number: a hand that read half of an old one and half of a new one could wait for nothing, for
    /// ever.
    plan: AtomicU64,
}

/// When the next turn is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plan {
    /// Not before something arrives if `None`.
    due: Option<Time>,
    /// Whether a frame that arrives makes a turn due; always if nothing else does.
    watched: bool,
}

impl Plan {
    /// The number for [`due`](Self::due) being absent; no clock reaches half of it.
    const NEVER: u64 = u64::MAX;

    fn to_bits(self) -> u64 {
        self.due.map_or(Self::NEVER, |due| due.as_nanos() << 1 | u64::from(self.watched))
    }

    fn from_bits(bits: u64) -> Self {
        let due = (bits != Self::NEVER).then(|| Time::from_nanos(bits >> 1));
        Self { due, watched: bits & 1 == 1 }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("turns", &self.turns).finish_non_exhaustive()
    }
}

impl Hands {
    /// Starts to carry packets, one in a hundred of which may be late by `bound`. The threads are called `link-NAME`.
    pub(crate) fn start(
        name: &str,
        clock: Axis,
        engine: Engine,
        bound: Duration,
    ) -> io::Result<Self> {
        let (reader, wake) = io::pipe()?;
        let shared = Arc::new(Shared {
            clock,
            grace: bound / GRACE_SHARE,
            sockets: engine.sockets()?,
            engine: Mutex::new(Some(engine)),
            wake: reader,
            stopped: AtomicBool::new(false),
            on_duty: AtomicUsize::new(0),
            turns: AtomicU64::new(0),
            plan: AtomicU64::new(Plan { due: Some(Time::ZERO), watched: false }.to_bits()),
        });
        let mut hands = Self { shared, wake: Some(wake), threads: Vec::new() };
        for (own, processor) in places().into_iter().enumerate() {
            let shared = Arc::clone(&hands.shared);
            let thread = std::thread::Builder::new().name(format!("link-{name}"));
            hands.threads.push(thread.spawn(move || {
                if let Some(processor) = processor {
                    stay_on(processor);
                }
                Hand::new(&shared, own).work()
            })?);
        }
        Ok(hands)
    }

    /// Asks the link to stop, without waiting for it.
    pub(crate) fn ask_to_stop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        self.wake = None;
    }

    /// Stops the link and waits until its hands have ended.
    pub(crate) fn stop(mut self) -> io::Result<Ended> {
        self.ask_to_stop();
        let mut all = Vec::new();
        for thread in std::mem::take(&mut self.threads) {
            all.push(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        let count = all.len().max(1) as f64;
        let cores = |hand: &Worked| if hand.span.is_zero() { 0.0 } else { hand.ran / hand.span };
        Ok(Ended {
            priority: all.iter().map(|hand| hand.priority).min().unwrap_or(Priority::Ordinary),
            cpu_cores: all.iter().map(cores).sum(),
            real_time: all.iter().map(|hand| hand.real_time).sum::<f64>() / count,
            takeovers: all.iter().map(|hand| hand.takeovers).sum(),
            carried: all
                .into_iter()
                .find_map(|hand| hand.carried)
                .ok_or_else(|| io::Error::other("no thread ended the link"))?,
        })
    }
}

impl Drop for Hands {
    fn drop(&mut self) {
        self.ask_to_stop();
        for thread in self.threads.drain(..) {
            // The result cannot be returned from here.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn plan(&self) -> Plan {
        Plan::from_bits(self.plan.load(Ordering::Acquire))
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// One thread's part.
struct Hand<'s> {
    shared: &'s Shared,
    /// What it waits for: the end, then frames.
    sources: Vec<BorrowedFd<'s>>,
    own: usize,
    pace: Pace,
    class: Class,
    takeovers: u64,
}

impl<'s> Hand<'s> {
    fn new(shared: &'s Shared, own: usize) -> Self {
        let clock = shared.clock;
        let sockets = shared.sockets.iter().map(OwnedFd::as_fd);
        let sources = std::iter::once(shared.wake.as_fd()).chain(sockets).collect();
        Self {
            shared,
            sources,
            own,
            pace: Pace::new(clock),
            class: Class::raise(clock),
            takeovers: 0,
        }
    }

    fn work(mut self) -> io::Result<Worked> {
        let (began, ran) = (self.shared.clock.now(), self.class.ran());
        while !self.shared.is_stopped() {
            if self.wait()? {
                self.turn()?;
            }
            self.class.look(self.shared.clock.now());
        }
        let ended = self.shared.clock.now();
        // The first hand that comes here ends the link; the others find that it has ended.
        let engine = self.shared.engine.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(Worked {
            carried: engine.map(Engine::finish),
            priority: self.class.best(),
            ran: self.class.ran().saturating_sub(ran),
            span: ended.saturating_since(began),
            real_time: self.class.real_time_share(ended),
            takeovers: self.takeovers,
        })
    }

    /// Waits until a turn is due; true if it is this hand's.
    fn wait(&mut self) -> io::Result<bool> {
        let Shared { clock, grace, .. } = self.shared;
        let seen = self.shared.turns.load(Ordering::Acquire);
        let Plan { due, watched } = self.shared.plan();
        let all = &self.sources;
        let sources: &[BorrowedFd<'_>] = if watched { all } else { &all[..1] };
        if self.is_on_duty() {
            if self.class.rest().is_zero() {
                self.pace.wait(due, sources)?;
            } else {
                self.pace.doze(due, sources)?;
            }
            return Ok(self.is_on_duty());
        }
        let timed_out = self.pace.doze(due.map(|due| due + *grace), sources)?;
        if !timed_out && !self.shared.is_stopped() {
            self.pace.doze(Some(clock.now() + *grace), &all[..1])?;
        }
        Ok(self.shared.turns.load(Ordering::Acquire) == seen)
    }

    fn is_on_duty(&self) -> bool {
        self.shared.on_duty.load(Ordering::Acquire) == self.own
    }

    /// Takes the turn, unless another hand has it.
    fn turn(&mut self) -> io::Result<()> {
        let shared = self.shared;
        let mut engine = match shared.engine.try_lock() {
            Ok(engine) => engine,
            Err(TryLockError::WouldBlock) => {
                let away = shared.clock.now() + AWAY;
                return self.pace.doze(Some(away), &[shared.wake.as_fd()]).map(drop);
            }
            Err(TryLockError::Poisoned(_)) => {
                // The other thread panicked; joining it reports why.
                shared.stopped.store(true, Ordering::Relaxed);
                return Ok(());
            }
        };
        let Some(engine) = engine.as_mut() else { return Ok(()) };
        if shared.on_duty.swap(self.own, Ordering::AcqRel) != self.own {
            self.takeovers += 1;
        }
        while !engine.turn() && !shared.is_stopped() {
            shared.turns.fetch_add(1, Ordering::AcqRel);
            self.class.look(shared.clock.now());
        }
        let (next, rest, unread) =
            (engine.next_event(), self.class.rest(), engine.may_leave_unread());
        let due = if rest.is_zero() {
            next
        } else {
            // What arrives or is due until then goes together.
            let rested = shared.clock.now() + rest;
            next.filter(|next| unread && *next > rested).or(Some(rested))
        };
        let plan = Plan { due, watched: due.is_none() || rest.is_zero() && !unread };
        shared.plan.store(plan.to_bits(), Ordering::Release);
        shared.turns.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

/// The CPUs of a link's hands, a different first one for each link; one hand that is bound to none where there is
/// only one CPU.
fn places() -> Vec<Option<usize>> {
    static LINKS: AtomicUsize = AtomicUsize::new(0);
    let usable = processors();
    if usable.len() < 2 {
        return vec![None];
    }
    let first = LINKS.fetch_add(1, Ordering::Relaxed);
    (0..HANDS_MAX).map(|hand| Some(usable[(first + hand) % usable.len()])).collect()
}

/// The CPUs that this thread may use.
fn processors() -> Vec<usize> {
    // SAFETY: plain bits, read with their own size.
    unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|&at| libc::CPU_ISSET(at, &set)).collect()
    }
}

/// Binds the calling thread to a CPU. If that fails it works wherever it is.
fn stay_on(processor: usize) {
    // SAFETY: plain bits, written with their own size; `processor` is below CPU_SETSIZE.
    unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_one_number() {
        for due in [Time::ZERO, Time::from_nanos(1), Time::from_secs(10_000_000)] {
            for watched in [false, true] {
                let plan = Plan { due: Some(due), watched };
                assert_eq!(Plan::from_bits(plan.to_bits()), plan);
            }
        }
        let idle = Plan { due: None, watched: true };
        assert_eq!(Plan::from_bits(idle.to_bits()), idle);
        // Whoever waits for no time waits for frames.
        assert_eq!(Plan::from_bits(Plan { due: None, watched: false }.to_bits()), idle);
    }
}
