//! The endpoint: one thread that turns the loop between camera, sockets and screen, and writes the tables `frames` and
//! `conference`. It alone opens a socket and reads a clock.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::SendFlags;
use suiro_clock::Clock;
use suiro_endpoint::net::{self, NetError};
use suiro_endpoint::{Context, Failure, Summary};
use suiro_record::flows::{End, Flow, FlowLog};
use suiro_record::tables::{ConferenceRow, FrameRow};
use suiro_record::words::{Carries, FlowRole, Transport};
use suiro_record::{Text, Writer};
use suiro_scenario::{Conference, Job};
use suiro_units::{Bytes, Duration, Seed, Time};
use tokio::net::UdpSocket;

use crate::camera;
use crate::codec::Size;
use crate::payload::Mark;
use crate::receiver::{Receiver, Seen};
use crate::schedule::{Due, Schedule};
use crate::sender::{Config, Sender};

/// Packets that are taken before the camera is looked at again.
const BATCH: usize = 32;
/// From an endpoint's start to its first frame, so that both ends have their sockets by then, as the signalling of a
/// call ensures.
const SET_UP: Duration = Duration::from_secs(1);
/// From the last frame to the trial's end, so that no end sends to one that has ended.
const HANG_UP: Duration = Duration::from_millis(500);
/// How long a row of the table `conference` is, at least.
const PERIOD: Duration = Duration::from_secs(1);

/// What one end of a call needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallJob {
    /// Its name, for records.
    pub name: String,
    /// The name of the other end, for records.
    pub with: String,
    /// Host and port of the other end.
    pub to: (String, u16),
    /// The UDP port that it sends from and receives at.
    pub port: u16,
    /// Size of the frames.
    pub size: Size,
    /// Frames per second, 1 or more.
    pub fps: u32,
    /// Most bytes of an encoded frame.
    pub picture: Bytes,
    /// Largest IP packet.
    pub packet: Bytes,
    /// What the socket may hold until it is sent, as SO_SNDBUF takes it; `None` for the kernel's default.
    pub send_buffer: Option<Bytes>,
    /// What the socket may hold until it is read, as SO_RCVBUF takes it; `None` for the kernel's default.
    pub receive_buffer: Option<Bytes>,
    /// The CPU that its thread stays on, counted among those that it may use; `None` for any.
    pub cpu: Option<u8>,
    /// Folder for records.
    pub dir: PathBuf,
    /// When to begin.
    pub start: Time,
    /// No frame is captured from then on.
    pub until: Time,
    /// The seed of its random numbers.
    pub seed: Seed,
}

impl CallJob {
    /// What a trial's job file asks for; `None` if the endpoint is no `conference`, or its other end is not among the
    /// peers.
    pub fn from_job(job: &Job) -> Option<Self> {
        let spec: &Conference = job.endpoint.spec.downcast()?;
        let peer = job.peers.get(&spec.with)?;
        Some(Self {
            name: job.endpoint.name.clone(),
            with: spec.with.clone(),
            to: (peer.host.clone(), peer.port?),
            port: spec.port,
            size: Size::new(spec.width, spec.height)?,
            fps: spec.fps,
            picture: spec.picture,
            packet: spec.packet,
            send_buffer: spec.send_buffer,
            receive_buffer: spec.receive_buffer,
            cpu: spec.cpu,
            dir: job.dir.clone(),
            start: Time::ZERO + job.endpoint.start + SET_UP,
            until: Time::ZERO + job.duration.saturating_sub(HANG_UP),
            seed: job.seed,
        })
    }
}

/// What a call did, in all or in one period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    /// Frames captured.
    pub captured: i64,
    /// Frames that the camera had and the thread captured too late, so that they are left out.
    pub skipped: i64,
    /// Time spent capturing and encoding, other programs' turns in between included.
    pub encoding: Duration,
    /// Packets that the kernel took.
    pub sent: i64,
    /// Bytes of these packets, without IP and UDP headers.
    pub sent_bytes: i64,
    /// Packets dropped because the socket's buffer was full (EAGAIN).
    pub dropped_again: i64,
    /// Packets dropped because the device had no room (ENOBUFS).
    pub dropped_buffers: i64,
    /// Packets dropped because the call failed otherwise.
    pub dropped_other: i64,
    /// Packets received of the other end's stream.
    pub received: i64,
    /// Packets received of frames that were over.
    pub late: i64,
    /// Packets received that are none of the call.
    pub refused: i64,
    /// Time spent decoding, other programs' turns in between included.
    pub decoding: Duration,
}

impl Account {
    fn add(&mut self, other: &Self) {
        self.captured += other.captured;
        self.skipped += other.skipped;
        self.encoding += other.encoding;
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        self.dropped_again += other.dropped_again;
        self.dropped_buffers += other.dropped_buffers;
        self.dropped_other += other.dropped_other;
        self.received += other.received;
        self.late += other.late;
        self.refused += other.refused;
        self.decoding += other.decoding;
    }

    /// Counts a send call that failed: its packet is dropped, as the applications of the time did.
    fn failed(&mut self, error: Errno) {
        match error {
            Errno::AGAIN => self.dropped_again += 1,
            Errno::NOBUFS => self.dropped_buffers += 1,
            _ => self.dropped_other += 1,
        }
    }
}

/// Runs a trial's job of one end of a call.
///
/// # Errors
/// If it is not one, or as [`run`].
pub fn run_job(job: &Job, context: Context) -> Result<Summary, Failure> {
    let work = CallJob::from_job(job).ok_or("a call's job names its other end")?;
    let done = context.run(async |pulse, ready, stop| run(&work, pulse.clock(), ready, stop).await);
    Ok(Summary::of(&done?))
}

/// Calls until `stop` is ready. `ready` is called once, when packets can come. Returns what was done in all.
///
/// # Errors
/// If the socket cannot be used, the other end has no address, or a record cannot be written.
pub async fn run(
    job: &CallJob,
    clock: Clock,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<Account, Failure> {
    if let Some(cpu) = job.cpu {
        let failed = |cause| NetError::Io { doing: "staying on one CPU", cause };
        suiro_endpoint::cpu::stay_on_nth(cpu).map_err(failed)?;
    }
    let socket = open(job).await?;
    let to = SocketAddr::from((net::address(&job.to.0).await?, job.to.1));
    let flow = Flow {
        role: FlowRole::Sender,
        protocol: Transport::Udp,
        local: End::Port(job.port),
        remote: to.into(),
        carries: Carries::Video,
        peer: Some(job.with.as_str().into()),
    };
    FlowLog::write(&job.dir, &job.name, clock.now(), [flow])?;
    let mut call = Call::new(job, clock, socket, to)?;
    ready();
    let mut stop = std::pin::pin!(stop);
    loop {
        let busy = call.turn()?;
        let period_ends = call.period_began + PERIOD;
        let wake = call.next_picture().map_or(period_ends, |next| next.min(period_ends));
        tokio::select! {
            biased;
            () = &mut stop => break,
            // Others of this thread, such as the signals that end it, have their turn too.
            () = tokio::task::yield_now(), if busy => {}
            readable = call.socket.readable(), if !busy => {
                readable.map_err(|cause| NetError::Io { doing: "waiting for packets", cause })?;
            }
            () = clock.sleep_until(wake), if !busy => {}
        }
    }
    call.finish()
}

#[expect(clippy::disallowed_methods, reason = "the one place that opens this socket")]
async fn open(job: &CallJob) -> Result<UdpSocket, NetError> {
    use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
    let at = SocketAddr::from((Ipv4Addr::UNSPECIFIED, job.port));
    let bound = UdpSocket::bind(at).await;
    let socket = bound.map_err(|cause| NetError::Bind { at, cause })?;
    let failed = |doing| move |error: Errno| NetError::Io { doing, cause: error.into() };
    if let Some(size) = job.send_buffer {
        set_socket_send_buffer_size(&socket, size.get() as usize)
            .map_err(failed("setting the socket's send buffer"))?;
    }
    if let Some(size) = job.receive_buffer {
        set_socket_recv_buffer_size(&socket, size.get() as usize)
            .map_err(failed("setting the socket's receive buffer"))?;
    }
    Ok(socket)
}

struct Call {
    clock: Clock,
    socket: UdpSocket,
    to: SocketAddr,
    size: Size,
    /// Nominal bit rate of what is received, if the other end's settings are ours.
    rate_bps: i64,
    schedule: Schedule,
    until: Time,
    sender: Sender,
    receiver: Receiver,
    name: Text,
    frames: Writer<FrameRow>,
    accounts: Writer<ConferenceRow>,
    buffer: Vec<u8>,
    period_began: Time,
    period: Account,
    total: Account,
}

impl Call {
    fn new(
        job: &CallJob,
        clock: Clock,
        socket: UdpSocket,
        to: SocketAddr,
    ) -> Result<Self, Failure> {
        let config = Config {
            picture_bytes: job.picture.get() as usize,
            packet_bytes: job.packet.get() as usize,
        };
        let interval = Duration::from_secs(1) / u64::from(job.fps.max(1));
        let rate = job.picture.get().saturating_mul(8).saturating_mul(u64::from(job.fps));
        Ok(Self {
            clock,
            socket,
            to,
            size: job.size,
            rate_bps: integer(rate),
            until: job.until,
            schedule: Schedule::new(job.start, interval),
            sender: Sender::new(config, &mut job.seed.random()),
            receiver: Receiver::new(job.size),
            name: job.name.as_str().into(),
            frames: Writer::create_of(&job.dir, &job.name)?,
            accounts: Writer::create_of(&job.dir, &job.name)?,
            buffer: vec![0; 64 << 10],
            period_began: clock.now(),
            period: Account::default(),
            total: Account::default(),
        })
    }

    /// Captures, encodes and sends the frame that is due, if one is; then receives and decodes what is there, up to
    /// [`BATCH`] packets. Whether there may be more to do at once.
    fn turn(&mut self) -> Result<bool, Failure> {
        if self.next_picture().is_some()
            && let Some(due) = self.schedule.take(self.clock.now())
        {
            self.capture(due);
        }
        let taken = self.receive();
        while let Some(seen) = self.receiver.take_seen() {
            self.frames.push(self.frame(&seen))?;
        }
        if self.clock.now() >= self.period_began + PERIOD {
            self.account()?;
        }
        Ok(taken == BATCH || self.next_picture().is_some_and(|next| self.clock.now() >= next))
    }

    /// When the next frame is due; `None` if there is none before the camera stops.
    fn next_picture(&self) -> Option<Time> {
        Some(self.schedule.next_at()).filter(|next| *next < self.until)
    }

    fn capture(&mut self, due: Due) {
        let began = self.clock.now();
        let slices = self.sender.encode(&camera::see(self.size, due.number));
        let encoded = self.clock.now();
        self.period.captured += 1;
        self.period.skipped += i64::from(self.schedule.take_skipped());
        self.period.encoding += encoded.saturating_since(began);
        let mark = Mark {
            picture: due.number,
            captured_unix_ns: self.clock.unix_ns(due.at),
            sent_unix_ns: self.clock.unix_ns(encoded),
        };
        for packet in self.sender.packets(due.at, mark, &slices) {
            // Not through tokio, which makes no call while it believes that there is no room.
            match rustix::net::sendto(&self.socket, &packet, SendFlags::DONTWAIT, &self.to) {
                Ok(_) => {
                    self.period.sent += 1;
                    self.period.sent_bytes += integer(packet.len() as u64);
                }
                Err(error) => self.period.failed(error),
            }
        }
    }

    /// Takes packets that are there, and decodes them; says how many.
    fn receive(&mut self) -> usize {
        for taken in 0..BATCH {
            // A packet sent to a port where no socket listens makes a later receive call fail.
            let Ok((length, from)) = self.socket.try_recv_from(&mut self.buffer) else {
                return taken;
            };
            if from != self.to {
                self.period.refused += 1;
                continue;
            }
            let before = self.receiver.counters();
            let began = self.clock.now();
            self.receiver.on_packet(began, &self.buffer[..length]);
            self.period.decoding += self.clock.now().saturating_since(began);
            let after = self.receiver.counters();
            self.period.received += integer(after.packets - before.packets);
            self.period.late += integer(after.late - before.late);
            self.period.refused += integer(after.refused - before.refused);
        }
        BATCH
    }

    fn frame(&self, seen: &Seen) -> FrameRow {
        let in_trial = |unix_ns: u64| {
            let since = i128::from(unix_ns) - i128::from(self.clock.epoch_unix_ns());
            i64::try_from(since).ok()
        };
        let shown = seen.shown;
        FrameRow {
            t_ns: nanos(seen.at),
            endpoint: self.name.clone(),
            frame: i64::from(seen.picture),
            captured_ns: shown.and_then(|shown| in_trial(shown.mark.captured_unix_ns)),
            rung_bps: shown.map(|_| self.rate_bps),
            encoded_bytes: shown.map(|shown| integer(shown.bytes)),
            sent_ns: shown.and_then(|shown| in_trial(shown.mark.sent_unix_ns)),
            received_ns: shown.map(|shown| nanos(shown.received)),
            decodable: shown.is_some(),
            damaged: shown.is_some_and(|shown| shown.damaged),
            displayed_ns: shown.map(|_| nanos(seen.at)),
        }
    }

    /// Writes down what the period was.
    fn account(&mut self) -> Result<(), Failure> {
        let now = self.clock.now();
        let period = std::mem::take(&mut self.period);
        self.total.add(&period);
        self.accounts.push(ConferenceRow {
            t_ns: nanos(now),
            endpoint: self.name.clone(),
            period_ns: integer(now.saturating_since(self.period_began).as_nanos()),
            captured_pictures: period.captured,
            skipped_pictures: period.skipped,
            encode_ns: integer(period.encoding.as_nanos()),
            sent_packets: period.sent,
            sent_bytes: period.sent_bytes,
            dropped_again_packets: period.dropped_again,
            dropped_buffers_packets: period.dropped_buffers,
            dropped_other_packets: period.dropped_other,
            received_packets: period.received,
            late_packets: period.late,
            refused_packets: period.refused,
            decode_ns: integer(period.decoding.as_nanos()),
        })?;
        self.period_began = now;
        Ok(())
    }

    fn finish(mut self) -> Result<Account, Failure> {
        self.account()?;
        self.frames.close()?;
        self.accounts.close()?;
        Ok(self.total)
    }
}

fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn nanos(time: Time) -> i64 {
    integer(time.as_nanos())
}

#[cfg(test)]
mod tests;
