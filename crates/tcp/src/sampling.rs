//! What a sampler is asked for, what it counts, and why it fails.

use std::io;
use std::path::PathBuf;

use suiro_record::RecordError;
use suiro_units::Duration;

use crate::diag::DiagError;
use crate::probe::ProbeError;

/// The default time between samples.
pub const PERIOD: Duration = Duration::from_millis(10);
/// Shortest time between samples.
pub const PERIOD_MIN: Duration = Duration::from_millis(1);
/// Longest time between samples.
pub const PERIOD_MAX: Duration = Duration::from_secs(1);

/// Longest time between two lists of all sockets.
pub const LIST_EVERY: Duration = Duration::from_millis(100);
/// Longest time for which a row that repeats the last one is left out.
pub const REPEAT_EVERY: Duration = Duration::from_secs(1);
/// Most sockets of one host that are followed; more are counted in [`Counts::over_limit`].
pub const SOCKETS_MAX: usize = 1024;

/// What to sample, and where to write.
#[derive(Debug, Clone)]
pub struct SamplerSpec {
    /// The host's name in the scenario: column `host`, and part of the file's name.
    pub host: String,
    /// Time between samples, [`PERIOD_MIN`] to [`PERIOD_MAX`]; usually [`PERIOD`].
    pub period: Duration,
    /// Whether to write a row for each ACK as well, which needs root.
    pub each_ack: bool,
    /// The trial's folder; the file is `tcp.HOST.parquet`.
    pub dir: PathBuf,
}

/// The counts of a sampler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// How many times the host's sockets were sampled.
    pub samples: u64,
    /// Of these, more than half a period after they were due.
    pub late: u64,
    /// Samples never taken, because the thread was at least a whole period behind.
    pub lost: u64,
    /// ACKs traced.
    pub acks: u64,
    /// ACKs that were lost because the kernel's buffer was full.
    pub acks_lost: u64,
    /// Rows written.
    pub rows: u64,
    /// Different sockets seen.
    pub sockets: u64,
    /// Requests for a socket that the kernel did not answer.
    pub unanswered: u64,
    /// Samples of a socket beyond [`SOCKETS_MAX`], which was not followed.
    pub over_limit: u64,
    /// CPU time that the thread used.
    pub cpu: Duration,
}

/// Why a host's sockets cannot be sampled.
#[derive(Debug, thiserror::Error)]
pub enum SamplerError {
    /// The period is out of range.
    #[error("sampling period: expected {PERIOD_MIN} to {PERIOD_MAX}, found {0}")]
    Period(Duration),
    /// The kernel's socket diagnostics refused.
    #[error(
        "could not {doing} the kernel's socket diagnostics: {cause}\n\
         hint: run suiro doctor to see whether this kernel has them (CONFIG_INET_DIAG)"
    )]
    Netlink {
        /// What was being done.
        doing: &'static str,
        /// The system's error.
        cause: io::Error,
    },
    /// The kernel's answer is malformed.
    #[error("socket diagnostics: {0}")]
    Diag(DiagError),
    /// ACKs cannot be traced.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The table could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The thread could not be started.
    #[error("could not start the sampling thread: {0}")]
    Thread(io::Error),
}

impl From<DiagError> for SamplerError {
    fn from(cause: DiagError) -> Self {
        Self::Diag(cause)
    }
}
