//! How an endpoint runs as a process: every kind has a function `run_job(job, context) -> Result<Summary, Failure>`,
//! and this crate has what all kinds share. A [`Context`] has the clock with the endpoint's heartbeat
//! ([`Pulse`]), the way to say that the endpoint is ready, and the request to stop; a [`Summary`] is what the endpoint
//! did, for its log.

pub mod cpu;
pub mod net;
mod pulse;

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use pulse::{ABSENT, Absence, BEAT, Pulse};
use suiro_units::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Versions of programs that an endpoint uses, by name.
pub type Versions = BTreeMap<String, String>;

/// Why an endpoint ended before it was asked to.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Is over when an endpoint must stop.
pub type Requested = Pin<Box<dyn Future<Output = ()>>>;

/// What the process gives to the endpoint that it runs.
pub struct Context {
    /// The clock, as time since the trial's epoch, and the endpoint's heartbeat on it.
    pub pulse: Pulse,
    /// When the endpoint must stop.
    pub stop: Stop,
    /// Prints a line for people into the endpoint's log.
    pub log: fn(&str),
    ready: Box<dyn FnOnce(&Versions)>,
}

impl Context {
    /// A context; `ready` is called once, when the endpoint serves or plays.
    pub fn new(
        pulse: Pulse,
        stop: Stop,
        log: fn(&str),
        ready: impl FnOnce(&Versions) + 'static,
    ) -> Self {
        Self { pulse, stop, log, ready: Box::new(ready) }
    }

    /// Runs an endpoint on one thread, with its heartbeat. It is given the pulse, what to call when it is ready, and what
    /// is over when it must stop.
    ///
    /// # Errors
    /// As of `work`; or if the signals cannot be caught.
    pub fn run<T, E: Into<Failure>>(
        self,
        work: impl AsyncFnOnce(&Pulse, Box<dyn FnOnce()>, Requested) -> Result<T, E>,
    ) -> Result<T, Failure> {
        self.run_with_versions(async |pulse, ready, stop| {
            work(pulse, Box::new(move || ready(&Versions::new())), stop).await
        })
    }

    /// The same for an endpoint that reports the versions of the programs that it uses.
    ///
    /// # Errors
    /// As of [`Context::run`].
    pub fn run_with_versions<T, E: Into<Failure>>(
        self,
        work: impl AsyncFnOnce(&Pulse, Box<dyn FnOnce(&Versions)>, Requested) -> Result<T, E>,
    ) -> Result<T, Failure> {
        let (pulse, ready, stop) = self.parts_with_versions();
        pulse.block_on(async {
            let stop = Box::pin(stop.requested()?);
            work(&pulse, Box::new(ready), stop).await.map_err(Into::into)
        })
    }

    /// The clock with its heartbeat, what to call when the endpoint is ready, and when it must stop. This is for an endpoint
    /// that works in threads, during [`Pulse::beside`].
    pub fn parts(self) -> (Pulse, impl FnOnce(), Stop) {
        let (pulse, ready, stop) = self.parts_with_versions();
        (pulse, move || ready(&Versions::new()), stop)
    }

    fn parts_with_versions(self) -> (Pulse, impl FnOnce(&Versions), Stop) {
        let pulse = self.pulse.clone();
        let ready = move |versions: &Versions| {
            (self.ready)(versions);
            pulse.begin();
        };
        (self.pulse, ready, self.stop)
    }
}

/// When an endpoint must stop: on SIGTERM, on SIGINT, or after a time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stop {
    after: Option<Duration>,
}

impl Stop {
    /// Stops after this time too; `None`: only on a signal.
    pub const fn after(after: Option<Duration>) -> Self {
        Self { after }
    }

    /// Ready when the endpoint must stop. Signals are caught from this call on.
    ///
    /// # Errors
    /// If the signals cannot be caught.
    ///
    /// # Panics
    /// Outside of a runtime of tokio.
    pub fn requested(self) -> io::Result<impl Future<Output = ()>> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        Ok(async move {
            let time_is_up = async {
                match self.after {
                    Some(time) => tokio::time::sleep(time.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                () = time_is_up => {}
            }
        })
    }

    /// For endpoints on threads: becomes true when a signal asks the endpoint to stop. The time is the caller's to
    /// keep.
    ///
    /// # Errors
    /// If the signals cannot be caught.
    pub fn flag() -> io::Result<Arc<AtomicBool>> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [libc::SIGINT, libc::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        Ok(stop)
    }
}

/// What an endpoint did, in a line for its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary(String);

impl Summary {
    /// A summary in these words.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A summary of counters, as they are.
    pub fn of(counters: &impl Debug) -> Self {
        Self(format!("{counters:?}"))
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use suiro_clock::Clock;

    use super::*;

    #[test]
    fn ready_is_heard_with_the_versions() {
        let heard = Rc::new(Cell::new(None));
        let told = Rc::clone(&heard);
        let context = Context::new(
            Pulse::new(Clock::from_now()),
            Stop::default(),
            |_| (),
            move |versions| {
                told.set(Some(versions.clone()));
            },
        );
        let (_, ready, _) = context.parts();
        ready();
        assert_eq!(heard.take(), Some(Versions::new()));
    }

    #[test]
    fn it_stops_when_its_time_is_up() {
        let stop = Stop::after(Some(Duration::from_millis(1)));
        let waited: io::Result<()> = Pulse::new(Clock::from_now()).block_on(async {
            stop.requested()?.await;
            Ok(())
        });
        assert!(waited.is_ok());
    }
}
