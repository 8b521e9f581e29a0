//! A flood of small packets that keeps a host's CPU at work: the load of study S2.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};
use suiro_clock::Clock;
use suiro_endpoint::net::{self, NetError};
use suiro_endpoint::{Context, Failure, Stop, Summary, cpu};
use suiro_scenario::{Job, Spray};
use suiro_units::{Duration, Random, Time};

/// Bytes of the IPv4 and UDP headers.
const IP_UDP_BYTES: usize = 20 + 8;
/// Packets between two looks at the clock.
const BATCH: u32 = 16;

/// Runs a `spray` until SIGTERM.
///
/// # Errors
/// If the job is not one, the host has no address, or the priority cannot be changed.
pub fn run_job(job: &Job, context: Context) -> Result<Summary, Failure> {
    let spec: &Spray = job.endpoint.spec.downcast().ok_or("it is not a spray's job")?;
    let (pulse, ready, _) = context.parts();
    let stop = Stop::flag()?;
    let to = net::address_now(&spec.to)?;
    let mut flood = Flood {
        spec,
        clock: pulse.clock(),
        turns: Turns::new(spec, job.seed.random()),
        to: SocketAddr::from((to, spec.port)),
        packets: 0,
    };
    ready();
    pulse.beside(|| Ok::<_, Failure>(flood.run(&stop)?))?;
    Ok(Summary::new(format!("{} packets sent", flood.packets)))
}

struct Flood<'s> {
    spec: &'s Spray,
    clock: Clock,
    turns: Turns,
    to: SocketAddr,
    packets: u64,
}

impl Flood<'_> {
    fn run(&mut self, stop: &AtomicBool) -> Result<(), NetError> {
        let failed =
            |doing| move |error: rustix::io::Errno| NetError::Io { doing, cause: error.into() };
        let socket = rustix::net::socket_with(
            AddressFamily::INET,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            None,
        );
        let socket = socket.map_err(failed("opening the flood's socket"))?;
        rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))
            .map_err(failed("binding the flood's socket"))?;
        if let Some(cpu) = self.spec.cpu {
            cpu::stay_on_nth(cpu)
                .map_err(|cause| NetError::Io { doing: "staying on one CPU", cause })?;
        }
        let payload = vec![0; (self.spec.packet.get() as usize).saturating_sub(IP_UDP_BYTES)];
        while !stop.load(Ordering::Relaxed) {
            if let Some(first) = self.turns.change(self.clock.now()) {
                come_first(first)?;
            }
            for _ in 0..BATCH {
                // What has no room on the way is lost, as in a network.
                let sent = rustix::net::sendto(&socket, &payload, SendFlags::DONTWAIT, &self.to);
                self.packets += u64::from(sent.is_ok());
            }
        }
        Ok(())
    }
}

/// Puts this thread before every ordinary one (SCHED_FIFO), or among them. The first needs CAP_SYS_NICE.
fn come_first(first: bool) -> Result<(), NetError> {
    let (policy, priority) = if first { (libc::SCHED_FIFO, 1) } else { (libc::SCHED_OTHER, 0) };
    let to = libc::sched_param { sched_priority: priority };
    // SAFETY: 0 is the calling thread; the parameters outlive the call.
    if unsafe { libc::sched_setscheduler(0, policy, &raw const to) } == 0 {
        return Ok(());
    }
    let cause = std::io::Error::last_os_error();
    Err(NetError::Io { doing: "changing the priority of the flood", cause })
}

/// When the flood comes before every process, and when it is one of them.
#[derive(Debug)]
struct Turns {
    flood: Duration,
    ease: Duration,
    random: Random,
    /// Whether it floods, and when that changes; nothing before the first turn.
    now: Option<(bool, Time)>,
}

impl Turns {
    fn new(spec: &Spray, random: Random) -> Self {
        Self { flood: spec.flood, ease: spec.ease, random, now: None }
    }

    /// The turn that begins, if one does: whether it is one of the flood.
    fn change(&mut self, now: Time) -> Option<bool> {
        let first = match self.now {
            Some((_, until)) if now < until => return None,
            Some((first, _)) => !first,
            None => false,
        };
        let mean = if first { self.flood } else { self.ease };
        // From half of it to one and a half.
        let length = mean / 2 + Duration::from_nanos(self.random.below(mean.as_nanos().max(1)));
        self.now = Some((first, now + length));
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use suiro_units::Seed;

    use super::*;

    #[test]
    fn turns_alternate_and_have_their_mean_lengths() {
        let (flood, ease) = (Duration::from_millis(40), Duration::from_millis(100));
        let mut turns = Turns { flood, ease, random: Seed(7).random(), now: None };
        let (mut now, mut spent, mut count) = (Time::ZERO, [Duration::ZERO; 2], 0u64);
        let mut before = true;
        while count < 2000 {
            let first = turns.change(now).expect("a turn begins where the one before ends");
            assert_eq!(first, !before);
            assert_eq!(turns.change(now), None);
            let (_, until) = turns.now.expect("it has begun");
            let length = until.saturating_since(now);
            let mean = if first { flood } else { ease };
            assert!(length >= mean / 2 && length <= mean * 3 / 2, "{length:?}");
            spent[usize::from(first)] += length;
            (before, now, count) = (first, until, count + 1);
        }
        for (spent, mean) in [(spent[1], flood), (spent[0], ease)] {
            let ratio = spent.as_secs_f64() / (mean.as_secs_f64() * 1000.0);
            assert!((0.97..1.03).contains(&ratio), "{ratio}");
        }
    }
}
