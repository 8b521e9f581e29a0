//! A calibrated load from one host to another: numbered UDP packets at an even pace, with the
//! arrival time of each.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use suiro_clock::Axis;
use suiro_hosts::{LinkEnd, ipv4};
use suiro_units::{Duration, Time};

use crate::WireError;
use crate::frame::{self, ETHERNET_BYTES, Flow};
use crate::pace::{self, Pace};
use crate::priority::Class;
use crate::socket::PacketSocket;

/// The destination port; nothing else runs in the hosts yet.
const PORT: u16 = 9;
/// IPv4 and UDP headers.
const HEADERS_BYTES: u32 = 28;
/// The number in each packet.
const NUMBER_BYTES: usize = 4;
/// How long the kernel may take to hand over the last packets.
const LAST: Duration = Duration::from_millis(100);
/// Smallest IP packet of a load.
pub(crate) const PACKET_BYTES_MIN: u32 = HEADERS_BYTES + NUMBER_BYTES as u32;

/// Packets of one size at an even pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Burst {
    /// Size of the IP packet, at least [`PACKET_BYTES_MIN`].
    pub packet_bytes: u32,
    /// Interval between packets.
    pub interval: Duration,
    /// How many packets.
    pub count: u32,
}

/// When a packet was sent and when it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Its number in the load, from 0.
    pub number: u32,
    /// When the kernel of the receiving host received it.
    pub at: Time,
}

/// What was sent and what arrived.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heard {
    /// When each packet was handed to the sending host, by packet number.
    pub sent: Vec<Time>,
    /// What arrived, in order of arrival, including copies.
    pub arrivals: Vec<Arrival>,
    /// Packets that arrived but that the check itself lost.
    pub missed: u64,
}

/// How the thread that sends a load is scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sending {
    /// Like the link's own threads, so that packets are sent when they should be.
    OnTime,
    /// Like any program. A load that fills a CPU must not keep the link's own threads off it.
    Ordinary,
}

/// A load on its way from one end of a link to the other.
pub(crate) struct Load {
    sender: UdpSocket,
    listener: Listener,
    sending: Sending,
    sent: Vec<Time>,
}

impl Load {
    /// Opens the sockets in the two hosts.
    pub(crate) fn open(
        clock: Axis,
        (from, to): (&LinkEnd, &LinkEnd),
        sending: Sending,
    ) -> Result<Self, WireError> {
        let opening =
            |host: &str| WireError::os(format!("opening a socket of the self-check in {host}"));
        let listener = to.host.enter(|| Listener::open(clock, to))?;
        let sender = from.host.enter(|| open_sender(from, to))?;
        Ok(Self {
            sender: sender.map_err(opening(from.host.name()))?,
            listener: listener.map_err(opening(to.host.name()))?,
            sending,
            sent: Vec::new(),
        })
    }

    /// Sends `bursts`, one after the other, with `pause` between them, and receives until
    /// everything has arrived or `patience` has passed since the last packet was sent.
    pub(crate) fn run(
        &mut self,
        bursts: &[Burst],
        pause: Duration,
        patience: Duration,
    ) -> Result<(), WireError> {
        let (done, wait) = std::io::pipe().map_err(WireError::os("making a pipe"))?;
        let Self { sender, listener, sending, sent } = self;
        let sending = *sending;
        let clock = listener.clock;
        let expected = bursts.iter().map(|burst| burst.count).sum();
        std::thread::scope(|scope| {
            // On its own thread, so that only this thread gets a higher priority.
            let thread = std::thread::Builder::new()
                .name("check-send".into())
                .spawn_scoped(scope, move || {
                    // When this closes, the listener knows that the last packet has been sent.
                    let _held = wait;
                    send_all((clock, sending), sender, bursts, pause)
                })
                .map_err(WireError::os("starting a thread"))?;
            let heard = listener.listen(expected, &done, patience);
            let all = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            *sent = all.map_err(WireError::os("sending the self-check"))?;
            heard.map_err(WireError::os("receiving the self-check"))
        })
    }

    /// Stops receiving once `delivered` packets have arrived or no more come. Call it when the link
    /// has ended: the packets that it sent last are still on their way through the kernel.
    pub(crate) fn finish(mut self, delivered: u64) -> Result<Heard, WireError> {
        self.listener
            .finish(delivered)
            .map(|(arrivals, missed)| Heard { sent: self.sent, arrivals, missed })
            .map_err(WireError::os("receiving the end of the self-check"))
    }
}

#[expect(clippy::disallowed_methods, reason = "the self-check's own socket")]
fn open_sender(from: &LinkEnd, to: &LinkEnd) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((ipv4(from.index), 0))?;
    socket.connect(SocketAddr::from((ipv4(to.index), PORT)))?;
    Ok(socket)
}

fn send_all(
    (clock, sending): (Axis, Sending),
    socket: &UdpSocket,
    bursts: &[Burst],
    pause: Duration,
) -> io::Result<Vec<Time>> {
    let mut class = (sending == Sending::OnTime).then(|| Class::raise(clock));
    let mut pace = Pace::new(clock);
    let mut sent = Vec::new();
    let mut begins = clock.now();
    for burst in bursts {
        let mut payload =
            vec![0; (burst.packet_bytes.max(PACKET_BYTES_MIN) - HEADERS_BYTES) as usize];
        for i in 0..burst.count {
            pace.wait(Some(begins + burst.interval * u64::from(i)), &[])?;
            payload[..NUMBER_BYTES].copy_from_slice(&(sent.len() as u32).to_be_bytes());
            let now = clock.now();
            sent.push(now);
            socket.send(&payload)?;
            class.iter_mut().for_each(|class| class.look(now));
        }
        begins = clock.now() + pause;
    }
    Ok(sent)
}

/// Receives the load in the receiving host, before any socket buffer can overflow.
struct Listener {
    clock: Axis,
    frames: PacketSocket,
    arrivals: Vec<Arrival>,
    /// Whether each packet has arrived, by packet number.
    known: Vec<bool>,
    /// Keeps the port open, so that the host does not answer with ICMP port unreachable. Never
    /// read.
    _port: UdpSocket,
}

impl Listener {
    #[expect(clippy::disallowed_methods, reason = "the self-check's own socket")]
    fn open(clock: Axis, end: &LinkEnd) -> io::Result<Self> {
        let port = UdpSocket::bind((ipv4(end.index), PORT))?;
        let frames = PacketSocket::open(&end.host_interface)?;
        Ok(Self { clock, frames, arrivals: Vec::new(), known: Vec::new(), _port: port })
    }

    /// Receives until `expected` different packets have arrived, or until `patience` after the end
    /// of `done`.
    fn listen(
        &mut self,
        expected: u32,
        done: &std::io::PipeReader,
        patience: Duration,
    ) -> io::Result<()> {
        self.known = vec![false; expected as usize];
        let (mut missing, mut deadline) = (expected, None);
        let mut pace = Pace::new(self.clock);
        while deadline.is_none_or(|deadline| self.clock.now() < deadline) {
            missing -= self.hear();
            if missing == 0 {
                break;
            }
            let all = [self.frames.as_fd(), done.as_fd()];
            let sources = if deadline.is_none() { &all[..] } else { &all[..1] };
            pace.wait(deadline, sources)?;
            if deadline.is_none() && pace::is_readable(done.as_fd())? {
                deadline = Some(self.clock.now() + patience);
            }
        }
        Ok(())
    }

    /// Takes what has arrived; returns how many packets arrived for the first time.
    fn hear(&mut self) -> u32 {
        let lead = self.clock.realtime_lead_ns();
        let mut new = 0;
        while let Some(arrival) = self.frames.receive(|frame| {
            let at = frame.realtime_ns.cast_signed() - lead;
            let number = number_of(frame.bytes)?;
            Some(Arrival { number, at: Time::from_nanos(at.max(0).cast_unsigned()) })
        }) {
            let Some(arrival) = arrival else { continue };
            if let Some(known) = self.known.get_mut(arrival.number as usize) {
                new += u32::from(!std::mem::replace(known, true));
                self.arrivals.push(arrival);
            }
        }
        new
    }

    /// What has arrived, once that is `delivered` packets or [`LAST`] has passed, and the number of
    /// packets lost because the ring was full.
    fn finish(&mut self, delivered: u64) -> io::Result<(Vec<Arrival>, u64)> {
        let deadline = self.clock.now() + LAST;
        let mut pace = Pace::new(self.clock);
        self.hear();
        while (self.arrivals.len() as u64) < delivered && self.clock.now() < deadline {
            pace.wait(Some(deadline), &[self.frames.as_fd()])?;
            self.hear();
        }
        Ok((std::mem::take(&mut self.arrivals), self.frames.drops()?))
    }
}

/// The number in a packet of the load; `None` for other packets.
fn number_of(bytes: &[u8]) -> Option<u32> {
    let headers = frame::parse(bytes)?;
    match headers.flow {
        Flow::Between { protocol: 17, ports: Some((_, PORT)), .. } => {}
        _ => return None,
    }
    let payload = bytes.get(ETHERNET_BYTES + HEADERS_BYTES as usize..)?;
    Some(u32::from_be_bytes(payload.get(..NUMBER_BYTES)?.try_into().ok()?))
}
