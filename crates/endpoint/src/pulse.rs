//! Whether an endpoint ran while it should have: a heartbeat on the thread that does its work.
//!
//! An endpoint that was stopped, or waited long for a CPU, measures that instead of the network. So it looks at its
//! clock every [`BEAT`], and writes to the table `lateness` how late it was. What an endpoint was not there to do, it
//! must not claim to have done: [`Pulse::now`] says when it was away.

mod tally;

use std::io;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suiro_clock::Clock;
use suiro_record::tables::LatenessRow;
use suiro_record::{RecordError, Writer};
use suiro_units::Time;

use tally::Tally;
pub use tally::{ABSENT, Absence, BEAT};

/// The heartbeat of an endpoint. Clones are the same heartbeat.
#[derive(Debug, Clone)]
pub struct Pulse {
    clock: Clock,
    tally: Arc<Mutex<Tally>>,
}

impl Pulse {
    /// A heartbeat that has not begun; it writes no table.
    pub fn new(clock: Clock) -> Self {
        Self { clock, tally: Arc::default() }
    }

    /// The clock that it beats on.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// The endpoint is ready: from now on, lateness is recorded.
    pub fn begin(&self) {
        self.tally().begin(self.clock.now());
    }

    /// Reads the clock for an endpoint that acts on the time. `away` first receives, in order and each once, the times
    /// longer than [`ABSENT`] at which the endpoint did not run, so that it does not act for them. Without a heartbeat
    /// there are none.
    pub fn now(&self, away: impl FnMut(Absence)) -> Time {
        let now = self.clock.now();
        let absences = {
            let mut tally = self.tally();
            tally.look(now);
            tally.take_absences()
        };
        absences.into_iter().for_each(away);
        now
    }

    /// Runs an asynchronous endpoint on this thread, with its heartbeat: it shares the machine with the link that
    /// measures it.
    ///
    /// # Errors
    /// What `work` fails with, or that the runtime cannot be started.
    pub fn block_on<T, E>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, E>
    where
        E: From<io::Error>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let done = runtime.block_on(async {
            let beating = tokio::spawn(self.clone().beat());
            let done = work.await;
            beating.abort();
            done
        });
        self.end();
        done
    }

    /// Runs `work`, which has threads of its own, with a heartbeat on another thread. That notices when the process is
    /// stopped or the machine is, not what delays one of its threads.
    ///
    /// # Errors
    /// What `work` fails with, or that the thread cannot be started.
    pub fn beside<T, E>(&self, work: impl FnOnce() -> Result<T, E>) -> Result<T, E>
    where
        E: From<io::Error>,
    {
        let (over, ended) = channel::<()>();
        let pulse = self.clone();
        let beat = move || {
            pulse.tally().keep(pulse.clock.now());
            loop {
                let due = pulse.clock.now() + BEAT;
                let wait = due.saturating_since(pulse.clock.now());
                match ended.recv_timeout(wait.into()) {
                    Err(RecvTimeoutError::Timeout) => pulse.tally().beat(pulse.clock.now(), due),
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        let beating = std::thread::Builder::new().name("pulse".to_owned()).spawn(beat)?;
        let done = work();
        drop(over);
        beating.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.end();
        done
    }

    /// Writes the table `lateness.NAME.parquet` into this folder.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, dir: &Path, name: &str) -> Result<(), RecordError> {
        let mut table = Writer::create_of(dir, name)?;
        let rows: Vec<LatenessRow> = self.tally().rows(&name.into());
        for row in rows {
            table.push(row)?;
        }
        table.close()
    }

    async fn beat(self) {
        self.tally().keep(self.clock.now());
        loop {
            let due = self.clock.now() + BEAT;
            self.clock.sleep_until(due).await;
            self.tally().beat(self.clock.now(), due);
        }
    }

    fn end(&self) {
        self.tally().end(self.clock.now());
    }

    /// A panic elsewhere leaves a tally that is still one.
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use suiro_units::Duration;

    use super::*;

    /// Blocks the thread, as nothing of an endpoint must.
    fn block(clock: Clock, time: Duration) {
        let until = clock.now() + time;
        while clock.now() < until {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_thread_that_does_not_run_is_noticed_and_recorded() {
        let pulse = Pulse::new(Clock::from_now());
        let inside = pulse.clone();
        let ran: io::Result<()> = pulse.block_on(async {
            let clock = inside.clock();
            clock.sleep_until(clock.now() + BEAT * 3).await;
            inside.begin();
            let before = inside.now(|absence| panic!("{absence:?}"));
            block(clock, ABSENT * 2);
            let mut absences = Vec::new();
            let after = inside.now(|absence| absences.push(absence));
            assert_eq!(absences, [Absence { from: before, to: after }]);
            inside.now(|absence| panic!("each once: {absence:?}"));
            Ok(())
        });
        ran.unwrap();
        let dir = tempfile::tempdir().unwrap();
        pulse.write(dir.path(), "viewer").unwrap();
        let rows: Vec<LatenessRow> = suiro_record::Reader::read_all(dir.path()).unwrap();
        let worst = rows.iter().map(|row| row.worst_ns).max().unwrap();
        assert!(worst >= ABSENT * 2 && &*rows[0].endpoint == "viewer", "{rows:?}");
    }

    #[test]
    fn beside_threads_it_notices_too() {
        let pulse = Pulse::new(Clock::from_now());
        let ran: io::Result<u8> = pulse.beside(|| {
            pulse.begin();
            let until = pulse.clock().now() + BEAT * 5;
            // Its own thread beats while this one is blocked.
            block(pulse.clock(), until.saturating_since(pulse.clock().now()));
            Ok(7)
        });
        assert_eq!(ran.unwrap(), 7);
        let beats: u64 = pulse.tally().rows(&"x".into()).iter().map(|row| row.looks).sum();
        assert!(beats > 0);
    }

    #[test]
    fn without_a_heartbeat_nothing_is_claimed() {
        let pulse = Pulse::new(Clock::from_now());
        pulse.begin();
        pulse.now(|absence| panic!("{absence:?}"));
        block(pulse.clock(), ABSENT * 2);
        pulse.now(|absence| panic!("{absence:?}"));
    }
}
