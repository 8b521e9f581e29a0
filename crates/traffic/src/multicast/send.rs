//! A sender: numbered packets to a group, at a constant rate.

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};

use suiro_clock::Clock;
use suiro_endpoint::{Context, Failure, Stop, Summary};
use suiro_record::flows::{End, Flow, FlowLog};
use suiro_record::words::{Carries, FlowRole, Transport};
use suiro_scenario::{Job, MulticastSender};
use suiro_units::Duration;

use super::socket;

/// Bytes of the IPv4 and UDP headers.
const HEADER_BYTES: usize = 28;
/// Bytes of the number at the beginning of each datagram.
const NUMBER_BYTES: usize = 8;
/// Most packets that leave together after the sender was held up; what is due beyond is left out.
const BURST_MAX: u64 = 64;
/// Longest sleep, so that a request to stop is noticed.
const REST: Duration = Duration::from_millis(20);

/// What a sender did.
struct Sent {
    packets: u64,
    skipped: u64,
}

/// Runs a `multicast-sender` until SIGTERM.
///
/// # Errors
/// If the job is not one, or the socket cannot be used.
pub fn run_job(job: &Job, context: Context) -> Result<Summary, Failure> {
    let spec: &MulticastSender =
        job.endpoint.spec.downcast().ok_or("it is not a multicast sender's job")?;
    let (pulse, ready, _) = context.parts();
    let stop = Stop::flag()?;
    let to = SocketAddrV4::new(spec.group, spec.port);
    let flow = Flow {
        role: FlowRole::Sender,
        protocol: Transport::Udp,
        local: End::Any,
        remote: std::net::SocketAddr::V4(to).into(),
        carries: Carries::Unknown,
        peer: None,
    };
    FlowLog::write(&job.dir, &job.endpoint.name, pulse.clock().now(), [flow])?;
    let doing = |error: std::io::Error| Failure::from(format!("sending to {to}: {error}"));
    let socket = socket::sender(to, spec.ttl).map_err(doing)?;
    ready();
    let sent = pulse.beside(|| send(&socket, spec, pulse.clock(), &stop).map_err(doing));
    let Sent { packets, skipped } = sent?;
    Ok(Summary::new(format!("{packets} packets sent, {skipped} left out")))
}

fn send(
    socket: &std::os::fd::OwnedFd,
    spec: &MulticastSender,
    clock: Clock,
    stop: &AtomicBool,
) -> std::io::Result<Sent> {
    let size = usize::try_from(spec.packet.get()).expect("the scenario was checked");
    let mut datagram = vec![0; size.saturating_sub(HEADER_BYTES).max(NUMBER_BYTES)];
    let interval = spec.packet / spec.rate;
    let mut due = clock.now();
    let (mut sent, mut skipped) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        let waiting = now.saturating_since(due).as_nanos() / interval.as_nanos().max(1);
        if let Some(beyond) = waiting.checked_sub(BURST_MAX) {
            skipped += beyond;
            due += Duration::from_nanos(interval.as_nanos() * beyond);
        }
        while due <= now {
            datagram[..NUMBER_BYTES].copy_from_slice(&u64::to_be_bytes(sent));
            socket::send(socket, &datagram)?;
            sent += 1;
            due += interval;
        }
        socket::rest(due.saturating_since(now).min(REST))?;
    }
    Ok(Sent { packets: sent, skipped })
}
