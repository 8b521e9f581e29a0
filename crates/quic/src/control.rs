//! Which congestion control a connection has, and what it does: every controller is wrapped in a [`Watched`], which
//! passes on every call and keeps what a record needs.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use moq_noq::congestion::{
    Bbr3Config, Controller, ControllerFactory, ControllerMetrics, NewRenoConfig, PacketId,
};
use moq_noq::{Connection, PathId};
use moq_noq_proto::RttEstimator;
use suiro_rate::QuicCongestion;
use suiro_rate::copa::Copa;
use suiro_rate::cubic::{Acked, Cubic};
use suiro_units::{BitRate, Bytes, Time};

use crate::Written;

/// Bytes of a packet that are no stream data, estimated: its header, the header of the STREAM frame, and the AEAD tag.
const PACKET_OVERHEAD: u64 = 32;

/// Makes the controllers of connections.
#[derive(Debug)]
pub struct Factory {
    congestion: QuicCongestion,
    delta: f64,
}

impl Factory {
    /// Makes controllers of that kind; `delta` is Copa's.
    pub fn new(congestion: QuicCongestion, delta: f64) -> Arc<Self> {
        Arc::new(Self { congestion, delta })
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let inner = match self.congestion {
            QuicCongestion::NewReno => Arc::new(NewRenoConfig::default()).build(now, mtu),
            // noq's has no end of slow start but a loss: in a queue of a thousand packets the window doubles until as many are
            // lost.
            QuicCongestion::Cubic => {
                let cubic = Cubic::new(Bytes::new(mtu.into()));
                Box::new(ByLoss { begun: now, initial: cubic.window(), cubic })
            }
            QuicCongestion::Bbr => Arc::new(Bbr3Config::default()).build(now, mtu),
            QuicCongestion::Copa => {
                let copa = Copa::new(Bytes::new(mtu.into()), self.delta);
                Box::new(ByDelay { begun: now, initial: copa.window(), copa })
            }
        };
        Box::new(Watched::new(inner))
    }
}

/// What a connection's congestion control does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Congestion window in bytes.
    pub window: u64,
    /// Slow-start threshold in bytes; `None` while it is infinite.
    pub threshold: Option<u64>,
    /// Pacing rate; `None` where the window alone decides.
    pub pacing: Option<BitRate>,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Bytes that streams have accepted and that are still to be sent, or to be sent again, estimated.
    pub waiting: u64,
    /// Bytes of packets that were sent.
    pub sent: u64,
    /// Bytes of packets that were acknowledged.
    pub acked: u64,
    /// Least round-trip time; `None` before the first acknowledgement.
    pub min_rtt: Option<Duration>,
    /// The newest round-trip time, not smoothed; `None` before the first acknowledgement.
    pub rtt: Option<Duration>,
}

impl Look {
    /// What a controller of [`Factory`] does now; `None` for any other.
    pub fn of(controller: &dyn Controller) -> Option<Self> {
        let watched: Box<Watched> = controller.clone_box().into_any().downcast().ok()?;
        Some(watched.look())
    }
}

/// What the congestion control of a connection does now; `None` after its end.
pub fn look(connection: &Connection) -> Option<Look> {
    watched(connection).map(|watched| watched.look())
}

/// The counters of what is written to the connection. Its controller reads them to estimate what waits.
pub fn written(connection: &Connection) -> Arc<Written> {
    watched(connection).map(|watched| Arc::clone(&watched.written)).unwrap_or_default()
}

/// The counters that a controller of [`Factory`] reads; of any other, counters that nobody reads.
pub fn written_of(controller: &dyn Controller) -> Arc<Written> {
    let watched = controller.clone_box().into_any().downcast::<Watched>();
    watched.map(|watched| Arc::clone(&watched.written)).unwrap_or_default()
}

fn watched(connection: &Connection) -> Option<Box<Watched>> {
    connection.congestion_state(PathId::ZERO)?.into_any().downcast().ok()
}

/// Bytes of stream data in a packet of that size, estimated.
fn stream_data(packet: impl Into<u64>) -> u64 {
    packet.into().saturating_sub(PACKET_OVERHEAD)
}

#[derive(Debug)]
struct Watched {
    inner: Box<dyn Controller>,
    written: Arc<Written>,
    in_flight: u64,
    sent: u64,
    acked: u64,
    min_rtt: Option<Duration>,
    /// The least round-trip time of the packets that were acknowledged last, and when that was.
    newest: Option<(Instant, Duration)>,
}

impl Watched {
    fn new(inner: Box<dyn Controller>) -> Self {
        Self {
            inner,
            written: Arc::default(),
            in_flight: 0,
            sent: 0,
            acked: 0,
            min_rtt: None,
            newest: None,
        }
    }

    fn look(&self) -> Look {
        let metrics = self.inner.metrics();
        Look {
            window: self.inner.window(),
            threshold: metrics.ssthresh.filter(|threshold| *threshold != u64::MAX),
            pacing: metrics.pacing_rate.map(|rate| BitRate::from_bps(rate.saturating_mul(8))),
            in_flight: self.in_flight,
            waiting: self.written.waiting(),
            sent: self.sent,
            acked: self.acked,
            min_rtt: self.min_rtt,
            rtt: self.newest.map(|(_, rtt)| rtt),
        }
    }
}

impl Controller for Watched {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest: u64) {
        self.inner.on_sent(now, bytes, largest);
    }

    fn on_packet_space_sent(&mut self, now: Instant, bytes: u16, packet: PacketId) {
        self.in_flight += u64::from(bytes);
        self.sent += u64::from(bytes);
        self.written.sent(stream_data(bytes));
        self.inner.on_packet_space_sent(now, bytes, packet);
    }

    fn on_cwnd_limited(&mut self) {
        self.inner.on_cwnd_limited();
    }

    fn on_app_limited(&mut self, in_flight: u64) {
        self.written.drained();
        self.inner.on_app_limited(in_flight);
    }

    fn on_packet_space_acked(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        packet: PacketId,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.acked += bytes;
        self.written.acked(stream_data(bytes));
        // noq's least round-trip time begins with a guess of 333 ms.
        let took = now.saturating_duration_since(sent);
        self.min_rtt = Some(self.min_rtt.map_or(took, |least| least.min(took)));
        let before = self.newest.filter(|(at, _)| *at == now);
        self.newest = Some((now, before.map_or(took, |(_, before)| before.min(took))));
        self.inner.on_packet_space_acked(now, sent, bytes, packet, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest: Option<u64>,
    ) {
        self.in_flight = in_flight;
        self.written.in_flight(in_flight);
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event_space(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost: PacketId,
    ) {
        self.inner.on_congestion_event_space(
            now,
            sent,
            is_persistent,
            is_ecn,
            lost_bytes,
            largest_lost,
        );
    }

    fn on_packet_space_lost(&mut self, lost_bytes: u16, packet: PacketId, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(lost_bytes.into());
        self.written.lost(stream_data(lost_bytes));
        self.inner.on_packet_space_lost(lost_bytes, packet, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.inner.on_mtu_update(mtu);
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, delay: Duration) {
        self.inner.on_ack_frequency_update(threshold, delay);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            written: Arc::clone(&self.written),
            ..*self
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Copa behind noq's trait.
#[derive(Debug, Clone)]
struct ByDelay {
    copa: Copa,
    begun: Instant,
    initial: Bytes,
}

impl ByDelay {
    fn time(&self, at: Instant) -> Time {
        Time::ZERO + at.saturating_duration_since(self.begun).into()
    }
}

impl Controller for ByDelay {
    fn on_packet_space_acked(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        _: PacketId,
        app_limited: bool,
        _: &RttEstimator,
    ) {
        let rtt = now.saturating_duration_since(sent).into();
        self.copa.on_ack(self.time(now), rtt, Bytes::new(bytes), app_limited);
    }

    fn on_congestion_event_space(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent: bool,
        is_ecn: bool,
        _: u64,
        _: PacketId,
    ) {
        if is_ecn {
            self.copa.on_mark(self.time(now), self.time(sent));
        }
        if is_persistent {
            self.copa.on_persistent_congestion();
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.copa.set_packet(Bytes::new(mtu.into()));
    }

    fn window(&self) -> u64 {
        self.copa.window().get()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.pacing_rate = self.copa.pacing().map(|rate| rate.as_bps() / 8);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.initial.get()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// CUBIC behind noq's trait.
#[derive(Debug, Clone)]
struct ByLoss {
    cubic: Cubic,
    begun: Instant,
    initial: Bytes,
}

impl ByLoss {
    fn time(&self, at: Instant) -> Time {
        Time::ZERO + at.saturating_duration_since(self.begun).into()
    }
}

impl Controller for ByLoss {
    fn on_packet_space_acked(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        _: PacketId,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let acked = Acked {
            sent: self.time(sent),
            size: Bytes::new(bytes),
            smoothed: rtt.get().into(),
            limited: app_limited,
        };
        self.cubic.on_ack(self.time(now), acked);
    }

    fn on_congestion_event_space(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent: bool,
        _: bool,
        _: u64,
        _: PacketId,
    ) {
        self.cubic.on_congestion(self.time(now), self.time(sent));
        if is_persistent {
            self.cubic.on_persistent_congestion();
        }
    }

    fn on_spurious_congestion_event(&mut self) {
        self.cubic.on_spurious();
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.cubic.set_packet(Bytes::new(mtu.into()));
    }

    fn window(&self) -> u64 {
        self.cubic.window().get()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.ssthresh = self.cubic.threshold().map(Bytes::get);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.initial.get()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
