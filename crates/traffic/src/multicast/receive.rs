//! A receiver: it joins and leaves, and records when packets begin and end.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use suiro_clock::Clock;
use suiro_endpoint::net::address_now;
use suiro_endpoint::{Context, Failure, Stop, Summary};
use suiro_record::Writer;
use suiro_record::table::Text;
use suiro_record::tables::MembershipRow;
use suiro_scenario::{Job, MulticastReceiver};
use suiro_units::{Duration, Time};

use super::membership::{Membership, Schedule, Step};
use super::socket::{Member, Watch};

/// Longest wait, so that a request to stop is noticed.
const REST: Duration = Duration::from_millis(20);
/// Packets taken before the time is read again.
const BATCH: u32 = 64;

/// What a receiver did.
#[derive(Default)]
struct Joined {
    times: u64,
    packets: u64,
}

/// Runs a `multicast-receiver` until SIGTERM.
///
/// # Errors
/// If the job is not one, the group cannot be joined, or the record cannot be written.
pub fn run_job(job: &Job, context: Context) -> Result<Summary, Failure> {
    let spec: &MulticastReceiver =
        job.endpoint.spec.downcast().ok_or("it is not a multicast receiver's job")?;
    let (pulse, ready, _) = context.parts();
    let stop = Stop::flag()?;
    let source = spec.source.as_ref().map(|name| {
        let sender = job.peers.get(name).ok_or("a receiver's job names its source")?;
        Ok::<_, Failure>(address_now(&sender.host)?)
    });
    let source = source.transpose()?;
    let doing = |what: &'static str| {
        let group = spec.group;
        move |error: std::io::Error| format!("{what} {group}: {error}")
    };
    let watch = Watch::open(spec.group, source).map_err(doing("watching for packets of"))?;
    let member = Member::new(spec.group, source).map_err(doing("opening a socket for"))?;
    let mut log = Log::create(job, spec.group, source)?;
    ready();
    let schedule = Schedule::new(spec.hold, spec.pause);
    pulse.beside(|| -> Result<(), Failure> {
        let last = follow(schedule, (&watch, &member), pulse.clock(), &stop, &mut log)?;
        log.write(last, &watch)
    })?;
    let joined = log.close()?;
    Ok(Summary::new(format!("{} memberships, {} packets", joined.times, joined.packets)))
}

/// Joins and leaves as the schedule says; returns the last membership.
fn follow(
    mut schedule: Schedule,
    (watch, member): (&Watch, &Member),
    clock: Clock,
    stop: &AtomicBool,
    log: &mut Log,
) -> Result<Option<Membership>, Failure> {
    while !stop.load(Ordering::Relaxed) {
        let time = clock.now();
        if let Some((step, ended)) = schedule.step(time) {
            log.write(ended, watch)?;
            match step {
                Step::Join => member.join().map_err(|error| format!("joining: {error}"))?,
                Step::Leave => member.leave().map_err(|error| format!("leaving: {error}"))?,
            }
        }
        let due = schedule.due().map_or(REST, |due| due.saturating_since(time).min(REST));
        watch.wait(due)?;
        let time = clock.now();
        for _ in 0..BATCH {
            if !watch.take()? {
                break;
            }
            schedule.packet(time);
        }
    }
    Ok(schedule.end())
}

/// The table `memberships`.
struct Log {
    endpoint: Text,
    group: Text,
    source: Option<Text>,
    rows: Writer<MembershipRow>,
    joined: Joined,
}

impl Log {
    fn create(job: &Job, group: Ipv4Addr, source: Option<Ipv4Addr>) -> Result<Self, Failure> {
        let name = &job.endpoint.name;
        Ok(Self {
            endpoint: Arc::from(name.as_str()),
            group: Arc::from(group.to_string()),
            source: source.map(|source| Arc::from(source.to_string())),
            rows: Writer::create_of(&job.dir, name)?,
            joined: Joined::default(),
        })
    }

    fn write(&mut self, ended: Option<Membership>, watch: &Watch) -> Result<(), Failure> {
        let Some(ended) = ended else { return Ok(()) };
        let t_ns = |time: Time| time.as_nanos().cast_signed();
        self.joined.times += 1;
        self.joined.packets += ended.packets;
        self.rows.push(MembershipRow {
            t_ns: t_ns(ended.joined),
            endpoint: self.endpoint.clone(),
            group: self.group.clone(),
            source: self.source.clone(),
            first_ns: ended.first.map(t_ns),
            left_ns: ended.left.map(t_ns),
            last_ns: ended.last.map(t_ns),
            packets: ended.packets.cast_signed(),
            packets_after: ended.packets_after.cast_signed(),
            dropped_packets: watch.dropped()?.cast_signed(),
        })?;
        Ok(())
    }

    fn close(self) -> Result<Joined, Failure> {
        self.rows.close()?;
        Ok(self.joined)
    }
}
