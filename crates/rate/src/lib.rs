//! Rate control for real-time media, pure.
//!
//! A [`Controller`] receives what a sender sent and what its receiver reported, and returns how fast to send. The time
//! is an argument; it has no clock, no socket and no timer of its own, and knows neither RTP nor video. [`RateSpec`] is
//! what a user writes; [`RateSpec::build`] makes a controller of it.
//!
//! Controllers, each in a module of its own, with its source: [`fixed`], [`tfrcp`],
//! [`tfrc`], [`nada`], [`scream`], [`gcc`]; what a TCP would send: [`equation`]. [`copa`] and [`cubic`] are no such controllers: they
//! count a window, for QUIC.
//!
//! Rates and sizes count IP packets, headers included, as links and records do. Where a
//! specification counts the payload alone, the ratio to a TCP whose packets are as large is the
//! same.

mod base;
mod congestion;
pub mod copa;
pub mod cubic;
pub mod equation;
mod feedback;
pub mod fixed;
pub mod gcc;
mod least;
pub mod nada;
mod rtt;
pub mod scream;
mod silence;
mod spec;
pub mod tfrc;
pub mod tfrcp;

pub use congestion::QuicCongestion;
pub use feedback::{Arrived, Feedback, PacketReport};
pub use least::Least;
pub use spec::{EcnMode, FASTEST, RateKind, RateSpec, SLOWEST};

use suiro_units::{BitRate, Bytes, Duration, Ratio, Time};

/// Says how fast to send.
///
/// The sender calls [`Self::on_sent`] for every packet, [`Self::on_feedback`] for every report, and
/// [`Self::on_timer`] when [`Self::next_timer`] has come; then it asks [`Self::target`] again.
/// Times should not decrease; one that does counts as no time passed.
///
/// ```
/// use suiro_rate::{Feedback, RateSpec};
/// use suiro_units::{BitRate, Bytes, Time};
///
/// let spec: RateSpec = toml::from_str("kind = 'fixed'\nrate = '5 Mbit/s'")?;
/// let mut controller = spec.build(Time::ZERO)?;
/// controller.on_sent(Time::ZERO, Bytes::new(1500));
/// controller.on_feedback(Time::from_millis(40), &Feedback::counts(1, 1));
/// assert_eq!(controller.target(), BitRate::from_mbps(5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Controller: std::fmt::Debug + Send {
    /// A packet of the controlled flow has left. Its size is that of the IP packet.
    fn on_sent(&mut self, now: Time, size: Bytes);

    /// A report of the receiver has arrived. Any values are taken; absurd ones are bounded.
    fn on_feedback(&mut self, now: Time, feedback: &Feedback);

    /// When to call [`Self::on_timer`]; `None`: nothing is waited for. It may lie in the past.
    fn next_timer(&self) -> Option<Time>;

    /// Time has come. May be called at any time; before [`Self::next_timer`] it does nothing.
    fn on_timer(&mut self, now: Time);

    /// How fast to send on average, from now on: what an encoder is set to, or a version chosen by.
    fn target(&self) -> BitRate;

    /// How fast packets should follow one another at this moment. The target, unless a
    /// controller smooths its own effect on the queue.
    fn pacing(&self) -> BitRate {
        self.target()
    }

    /// What may leave at once after a time in which nothing did, in time at [`Self::pacing`]. By default one packet, after which the
    /// next ones follow at the pace.
    fn burst(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether as much is in flight as the controller allows: nothing should leave until a report or the timer changes that.
    fn is_blocked(&self) -> bool {
        false
    }

    /// Whether the sender should fill the pace with packets of padding where its source has nothing to send: the controller
    /// measures the path with a short burst.
    fn wants_padding(&self) -> bool {
        false
    }

    /// What the controller knows of the path, for records.
    fn estimate(&self) -> Estimate;
}

/// What a controller knows of the path; what it does not know or use is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    /// The round-trip time, smoothed.
    pub rtt: Option<Duration>,
    /// The loss that the target rests on: of the latest control interval, or the loss event rate.
    pub loss: Option<Ratio>,
}
