//! Adaptive bitrate algorithms and the playout buffer, pure.
//!
//! A player asks [`Controller`] which rung of the ladder to fetch next, and passes to [`Playout`] what has arrived;
//! `Playout` computes what a viewer sees: start-up, playing, stalls, the playhead. Both are state machines that are
//! handed the time; neither knows HTTP.
//!
//! Algorithms, each in a module of its own, with its source:
//! [`throughput`], [`bola`], [`dynamic`], [`mpc`], and for low latency [`l2a`] and [`lolp`]; what they share: [`estimator`].
//! Whichever it is, [`abandon`] says when a download is better given up.

pub mod abandon;
pub mod bola;
pub mod catch_up;
pub mod choice;
pub mod controller;
pub mod dynamic;
pub mod estimator;
pub mod l2a;
pub mod ladder;
pub mod lolp;
pub mod mpc;
pub mod playout;
pub mod throughput;

pub use catch_up::{CatchUp, Live};
pub use choice::{Choice, Limits};
pub use controller::Controller;
pub use estimator::{Arrival, ChunkEstimator, Estimator, Sample};
pub use ladder::Ladder;
pub use playout::{Playout, PlayoutConfig, State};

/// How a player picks the rung of the next segment.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// The highest rung below a share of the measured throughput.
    Throughput,
    /// The buffer level alone decides, by Lyapunov optimisation.
    Bola,
    /// Throughput while the buffer is low, BOLA while it is high: the default, as it
    /// is dash.js's.
    #[default]
    Dynamic,
    /// Plans five segments ahead, with a throughput estimate reduced by past errors.
    Mpc,
    /// Learns the rung by online convex optimisation; for low latency.
    L2a,
    /// LoL+: weighs throughput, latency, stalls and switches by a self-organising map; for low latency.
    Lolp,
}

impl Algorithm {
    /// Every algorithm there is.
    pub const ALL: [Self; 6] =
        [Self::Throughput, Self::Bola, Self::Dynamic, Self::Mpc, Self::L2a, Self::Lolp];

    /// Its name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Bola => "bola",
            Self::Dynamic => "dynamic",
            Self::Mpc => "mpc",
            Self::L2a => "l2a",
            Self::Lolp => "lolp",
        }
    }
}

impl std::fmt::Display for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
