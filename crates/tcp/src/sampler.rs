//! Samples every TCP socket of a host at a steady rate, and writes the `tcp` table.
//!
//! One thread per host. To list all sockets, the kernel walks its whole table of connections, including those of other
//! namespaces. So the list is made only when the number of sockets has changed, and at least every `LIST_EVERY`; in
//! between, each known socket is requested by its identity. Measured with 20 busy sockets every 10 ms and 262,144
//! buckets: 1.25 % of a core, against 3.9 % with a list each time. The CPU time that a thread actually used is in
//! [`Counts::cpu`].
//!
//! A row that differs from the socket's last one only in its time is left out, for at most `REPEAT_EVERY`: a row
//! holds until the next. The last sample, taken at the stop, is written in full. Every 65,536 rows the table is written
//! to disk, which takes some 45 ms; the samples that fall into that time are counted in [`Counts::lost`].
//!
//! With [`SamplerSpec::each_ack`] the same thread also writes a row for each ACK (source `tcp_probe`; see
//! [`crate::probe`]), as it finds them at its next sample. These show a socket just before the ACK is processed. The
//! samples (source `sock_diag`) continue, for what changes without an ACK and for the state after the last ACK.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

use suiro_clock::Axis;
use suiro_clock::kernel::{monotonic_ns, thread_cpu_ns};
use suiro_units::Duration;

use crate::follow::{Follower, Repeats};
use crate::sampling::{Counts, PERIOD_MAX, PERIOD_MIN, SamplerError, SamplerSpec};

/// A sampler that has loaded its programs and created its file, but does not sample yet. Preparing takes some 50 ms
/// with [`SamplerSpec::each_ack`], which is best done before the trial begins.
pub struct Prepared {
    follower: Follower,
    period: Duration,
    host: String,
}

/// A running sampler. When dropped, it stops and closes its file; [`Sampler::stop`] also waits for that and returns the
/// result.
#[derive(Debug)]
pub struct Sampler {
    stop: Sender<()>,
    thread: JoinHandle<Result<Counts, SamplerError>>,
}

impl Prepared {
    /// Prepares to sample the network namespace that the **calling thread** is in.
    ///
    /// # Errors
    /// A period out of range, a kernel without socket diagnostics, a file that cannot be created; with
    /// [`SamplerSpec::each_ack`], missing privileges ([`SamplerError::Probe`]).
    pub fn new(spec: &SamplerSpec) -> Result<Self, SamplerError> {
        if !(PERIOD_MIN..=PERIOD_MAX).contains(&spec.period) {
            return Err(SamplerError::Period(spec.period));
        }
        Ok(Self { follower: Follower::new(spec)?, period: spec.period, host: spec.host.clone() })
    }

    /// Starts sampling, from any thread. Rows count their time from `epoch_monotonic_ns`, the trial's time zero on
    /// CLOCK_MONOTONIC in nanoseconds.
    ///
    /// # Errors
    /// The thread could not be started. Later failures are returned by [`Sampler::stop`].
    pub fn start(self, epoch_monotonic_ns: u64) -> Result<Sampler, SamplerError> {
        let Self { follower, period, host } = self;
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name(format!("tcp-{host}"))
            .spawn(move || run(follower, period, epoch_monotonic_ns, &stopped))
            .map_err(SamplerError::Thread)?;
        Ok(Sampler { stop, thread })
    }
}

impl Sampler {
    /// Takes a last sample, closes the file, and returns the counts.
    ///
    /// # Errors
    /// What ended the sampling early, or kept the file from being closed.
    pub fn stop(self) -> Result<Counts, SamplerError> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// The thread: samples on a fixed grid, so that lateness does not accumulate.
fn run(
    mut follower: Follower,
    period: Duration,
    epoch_ns: u64,
    stopped: &Receiver<()>,
) -> Result<Counts, SamplerError> {
    let axis = Axis::since(epoch_ns);
    let period_ns = period.as_nanos();
    let (mut late, mut lost) = (0, 0);
    let mut due = monotonic_ns();
    loop {
        let wait = due.saturating_sub(monotonic_ns());
        match stopped.recv_timeout(std::time::Duration::from_nanos(wait)) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
        let behind = monotonic_ns().saturating_sub(due);
        late += u64::from(behind > period_ns / 2);
        lost += behind / period_ns;
        due += period_ns * (1 + behind / period_ns);
        follower.trace(epoch_ns)?;
        follower.sample(axis.now(), Repeats::LeaveOut)?;
    }
    follower.trace(epoch_ns)?;
    follower.sample(axis.now(), Repeats::Write)?;
    let counts = follower.close()?;
    Ok(Counts { late, lost, cpu: Duration::from_nanos(thread_cpu_ns()), ..counts })
}
