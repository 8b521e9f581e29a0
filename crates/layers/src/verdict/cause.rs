//! Why a part of the path lost or delayed packets: from the kernel's reasons, the CPU's account and the delays
//! around the losses.

use std::fmt;

use serde::Serialize;

use super::Evidence;
use crate::account::Hop;
use crate::errno;
use crate::event::{Point, Recording, Second};
use crate::matching::{Passage, side};

/// The application waited for a CPU if it did so for this share of the time in which it could have run.
const WAITED: f64 = 0.3;
/// The application was busy if it ran for this share of the time.
const BUSY: f64 = 0.8;
/// The receive softirq is late if it is pending for this share of the time.
const SOFTIRQ_LATE: f64 = 0.1;
/// A reader is prompt if it usually takes no longer than this.
const PROMPT_NS: i64 = 5_000_000;
/// A queue is assumed where the delay grows by more than this.
const QUEUE_NS: i64 = 2_000_000;

/// A reason.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Cause {
    /// The socket's buffer was full, or data stayed in it, because the application did not get a CPU.
    NotScheduled {
        /// The kernel's reason, for losses.
        reason: Option<String>,
        /// Waiting time as a share of the time in which it could have run.
        waited: f64,
    },
    /// The same, because the application was busy.
    Busy {
        /// The kernel's reason, for losses.
        reason: Option<String>,
        /// Share of the time in which it ran.
        ran: f64,
    },
    /// The same, although the application neither ran nor waited for a CPU.
    ReadsSlowly {
        /// The kernel's reason, for losses.
        reason: Option<String>,
    },
    /// The socket's buffer was full although the application reads promptly: it is too small for the bursts.
    BufferTooSmall {
        /// The kernel's reason.
        reason: Option<String>,
    },
    /// A rule of the firewall.
    Firewall {
        /// The kernel's reason.
        reason: String,
    },
    /// The queue discipline was full, dropped packets by design, or held packets.
    QueueDiscipline {
        /// The kernel's reason, for losses.
        reason: Option<String>,
    },
    /// The network's receive softirq was late.
    SoftirqLate {
        /// Share of the time, on the CPU where it was late for longest.
        late: f64,
    },
    /// The receive softirq's backlog on one CPU was full.
    SoftirqOverload {
        /// The kernel's reason.
        reason: String,
    },
    /// A queue between the hosts was full, or held packets.
    LinkQueue {
        /// How far its delay rose above the minimum.
        risen_ns: i64,
    },
    /// Lost between the hosts, without a queue.
    LinkLoss,
    /// The sender's call had to wait: its socket has no room, or TCP may not send yet.
    BackPressure,
    /// Propagation between the hosts.
    Propagation,
    /// The send call failed.
    SendFailed {
        /// The error's name, such as `EAGAIN`.
        error: String,
    },
    /// The kernel's reason for a drop.
    Kernel {
        /// Its name.
        reason: String,
    },
    /// The reason is unknown.
    Unknown,
}

/// In words, without the kernel's reason.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| share * 100.0;
        match self {
            Self::NotScheduled { waited, .. } => write!(
                f,
                "the application waited for CPU {:.0} % of the time in which it could have run",
                percent(*waited)
            ),
            Self::Busy { ran, .. } => {
                write!(f, "the application was busy, it ran {:.0} % of the time", percent(*ran))
            }
            Self::ReadsSlowly { .. } => f.write_str("the application reads too slowly"),
            Self::BufferTooSmall { .. } => f.write_str(
                "the application reads promptly, but the buffer is too small for the bursts",
            ),
            Self::Firewall { .. } => f.write_str("dropped by a firewall rule"),
            Self::QueueDiscipline { .. } => {
                f.write_str("the device's queue discipline receives more than it may send")
            }
            Self::SoftirqLate { late } => {
                write!(f, "the receive softirq was late {:.0} % of the time", percent(*late))
            }
            Self::SoftirqOverload { .. } => {
                f.write_str("more packets arrive at one CPU than its receive softirq can handle")
            }
            Self::LinkQueue { risen_ns } => write!(
                f,
                "a queue between the hosts: delay rises by {:.1} ms above the minimum",
                *risen_ns as f64 / 1e6
            ),
            Self::LinkLoss => f.write_str("not in a queue: delay did not rise before the loss"),
            Self::BackPressure => {
                f.write_str("back-pressure: the sender's call had to wait for room")
            }
            Self::Propagation => f.write_str("propagation between the hosts"),
            Self::SendFailed { error } => {
                write!(f, "send calls failed: {}", errno::words(error).unwrap_or("unknown error"))
            }
            Self::Kernel { .. } => f.write_str("dropped by the kernel"),
            Self::Unknown => f.write_str("the reason is unknown"),
        }
    }
}

impl Cause {
    /// The kernel's reason in words, if it gave one.
    pub fn reason_in_words(&self) -> Option<String> {
        match self {
            Self::SendFailed { error } => Some(error.clone()),
            _ => self.reason().map(words),
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            Self::Firewall { reason }
            | Self::SoftirqOverload { reason }
            | Self::Kernel { reason } => Some(reason),
            Self::NotScheduled { reason, .. }
            | Self::Busy { reason, .. }
            | Self::ReadsSlowly { reason }
            | Self::BufferTooSmall { reason }
            | Self::QueueDiscipline { reason } => reason.as_deref(),
            _ => None,
        }
    }
}

/// The kernel's name of a reason in plain words, where there are any.
fn words(reason: &str) -> String {
    match reason {
        "SOCKET_RCVBUFF" => "socket buffer full".into(),
        "NETFILTER_DROP" => "netfilter".into(),
        "QDISC_DROP" => "queue discipline full".into(),
        "CPU_BACKLOG" => "backlog of the softirq full".into(),
        "NO_SOCKET" => "no socket is listening".into(),
        other => other.to_lowercase().replace('_', " "),
    }
}

/// Why a part of the path lost packets.
pub(super) fn of_loss(evidence: &Evidence, hop: &Hop) -> Cause {
    let most = hop.causes.iter().max_by_key(|(_, count)| **count);
    let reason = most.map(|(reason, _)| reason.clone());
    match (reason.as_deref(), hop.from) {
        (Some(error), Point::SendCall) if errno::words(error).is_some() => {
            Cause::SendFailed { error: error.to_owned() }
        }
        (Some("SOCKET_RCVBUFF" | "PROTO_MEM" | "SOCKET_BACKLOG"), _) => {
            of_reader(evidence, hop, reason)
        }
        (Some(name), _) if name.contains("NETFILTER") => {
            Cause::Firewall { reason: name.to_string() }
        }
        (Some(name), _) if name.contains("QDISC") => Cause::QueueDiscipline { reason },
        (Some(name @ "CPU_BACKLOG"), _) => Cause::SoftirqOverload { reason: name.to_string() },
        (Some(name), _) => Cause::Kernel { reason: name.to_string() },
        (None, from) if side(from) != side(hop.to) => of_way(evidence, hop),
        (None, Point::ReceiveSocket) => of_reader(evidence, hop, None),
        (None, Point::SendQdisc) => Cause::QueueDiscipline { reason: None },
        (None, _) => Cause::Unknown,
    }
}

/// Why a part of the path was slow.
pub(super) fn of_delay(evidence: &Evidence, hop: &Hop) -> Cause {
    match hop.from {
        Point::SendCall => match starved(evidence.sender, hop) {
            Some(waited) => Cause::NotScheduled { reason: None, waited },
            None if evidence.sender.is_some_and(is_unmeasured) => Cause::Unknown,
            None => Cause::BackPressure,
        },
        Point::SendQdisc => Cause::QueueDiscipline { reason: None },
        Point::ReceiveLocal | Point::ReceiveSocket => of_reader(evidence, hop, None),
        from if side(from) != side(hop.to) => {
            let late = softirq_late(evidence.receiver).unwrap_or(0.0);
            match hop.delay.map_or(0, |delay| delay.p95_ns.saturating_sub(delay.min_ns)) {
                _ if late >= SOFTIRQ_LATE => Cause::SoftirqLate { late },
                risen_ns if risen_ns > QUEUE_NS => Cause::LinkQueue { risen_ns },
                _ => Cause::Propagation,
            }
        }
        _ => Cause::Unknown,
    }
}

/// Why data stays in a socket.
fn of_reader(evidence: &Evidence, hop: &Hop, reason: Option<String>) -> Cause {
    let receiver = evidence.receiver;
    if let Some(waited) = starved(receiver, hop) {
        return Cause::NotScheduled { reason, waited };
    }
    if hop.delay.is_some_and(|delay| delay.p50_ns <= PROMPT_NS) && reason.is_some() {
        return Cause::BufferTooSmall { reason };
    }
    match receiver.and_then(ran).filter(|&ran| ran >= BUSY) {
        Some(ran) => Cause::Busy { reason, ran },
        None if receiver.is_some_and(is_unmeasured) => {
            reason.map_or(Cause::Unknown, |reason| Cause::Kernel { reason })
        }
        None => Cause::ReadsSlowly { reason },
    }
}

/// Why packets were lost between the hosts. A queue that overflowed is known by its delay, and goes first: a late softirq
/// is only known to have been late at all.
fn of_way(evidence: &Evidence, hop: &Hop) -> Cause {
    let late = softirq_late(evidence.receiver).filter(|&late| late >= SOFTIRQ_LATE);
    match (risen_before_losses(evidence, hop), late) {
        (Some(risen_ns), _) => Cause::LinkQueue { risen_ns },
        (None, Some(late)) => Cause::SoftirqLate { late },
        (None, None) => Cause::LinkLoss,
    }
}

/// How far the delay had risen before losses, if they were in a queue: then the packets that got through just before were
/// delayed. The clocks cancel out in the difference.
fn risen_before_losses(evidence: &Evidence, hop: &Hop) -> Option<i64> {
    let delay = hop.delay?;
    let range = delay.max_ns.saturating_sub(delay.min_ns);
    let before = delays_before_losses(evidence, hop);
    let mean = before.iter().map(|&ns| (ns - delay.min_ns) as f64).sum::<f64>()
        / before.len().max(1) as f64;
    (range > QUEUE_NS && mean > range as f64 / 2.0).then_some(mean as i64)
}

/// For each packet lost in this part, the delay of the previous packet that got through.
fn delays_before_losses(evidence: &Evidence, hop: &Hop) -> Vec<i64> {
    let mut passages: Vec<(i64, &Passage)> = evidence
        .matched
        .passages
        .iter()
        .filter_map(|passage| Some((passage.at(hop.from)?, passage)))
        .collect();
    passages.sort_by_key(|(t_ns, _)| *t_ns);
    let (mut before, mut latest) = (Vec::new(), None);
    for (t_ns, passage) in passages {
        match passage.at(hop.to) {
            Some(done) => latest = Some(done.saturating_sub(t_ns)),
            None if passage.last() == Some(hop.from) => before.extend(latest),
            None => {}
        }
    }
    before
}

/// The share of time that the application waited for a CPU, out of the time in which it could have run, if that
/// explains the delay in this part. It does if the application waited much of the time, and in total not much less than
/// the longest delay. For an application that hardly runs, a large share means little.
fn starved(recording: Option<&Recording>, hop: &Hop) -> Option<f64> {
    let (mut waiting, mut running) = (0u64, 0u64);
    for second in &recording?.scheduling {
        waiting = waiting.saturating_add(second.waiting_ns?);
        running = running.saturating_add(second.running_ns?);
    }
    let longest = hop.delay.map_or(0, |delay| delay.max_ns.max(0).unsigned_abs());
    let waited = waiting as f64 / waiting.saturating_add(running).max(1) as f64;
    (waited >= WAITED && waiting >= longest / 2).then_some(waited)
}

/// Whether it is not known, at least for some seconds, if the application ran or waited for a CPU. A recording without an
/// account of the CPUs knows it of none.
fn is_unmeasured(recording: &Recording) -> bool {
    let is_null = |second: &Second| second.waiting_ns.is_none() || second.running_ns.is_none();
    recording.scheduling.is_empty() || recording.scheduling.iter().any(is_null)
}

/// The share of the time in which the application ran; may exceed 1 with several threads.
fn ran(recording: &Recording) -> Option<f64> {
    let running: Option<u64> = recording.scheduling.iter().map(|second| second.running_ns).sum();
    Some(running? as f64 / span_ns(recording)?)
}

/// The share of the time in which the receive softirq of a CPU was raised and had not started.
fn softirq_late(recording: Option<&Recording>) -> Option<f64> {
    let recording = recording?;
    let late: Option<u64> = recording.scheduling.iter().map(|second| second.softirq_late_ns).sum();
    Some(late? as f64 / span_ns(recording)?)
}

/// The time that the account of the CPUs covers: all of the recording, or the seconds that an agent had room for.
fn span_ns(recording: &Recording) -> Option<f64> {
    let seconds = (recording.scheduling.len() as u64).saturating_mul(1_000_000_000);
    let span = recording.end.monotonic_ns.checked_sub(recording.start.monotonic_ns)?.min(seconds);
    (span > 0).then_some(span as f64)
}
