//! Adaptive bitrate algorithms and the playout buffer, pure.
//!
//! A player asks [`Controller`] which rung of the ladder to fetch next, and tells [`Playout`] what
//! has arrived; `Playout` says what a viewer sees: start-up, playing, stalls, the playhead. Both are
//! state machines that are handed the time; neither knows HTTP.
//!
//! Algorithms, each in a module of its own, with its source:
//! [`throughput`], [`bola`], [`dynamic`], [`mpc`]; what they share: [`estimator`].
//! Whichever it is, [`abandon`] says when a download is better given up.

pub mod abandon;
pub mod bola;
pub mod controller;
pub mod dynamic;
pub mod estimator;
pub mod ladder;
pub mod mpc;
pub mod playout;
pub mod throughput;

pub use controller::{Choice, Controller, Limits};
pub use estimator::{Estimator, Sample};
pub use ladder::Ladder;
pub use playout::{Live, Playout, PlayoutConfig, State};

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
}

impl Algorithm {
    /// Every algorithm there is.
    pub const ALL: [Self; 4] = [Self::Throughput, Self::Bola, Self::Dynamic, Self::Mpc];

    /// Its name in a scenario.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Bola => "bola",
            Self::Dynamic => "dynamic",
            Self::Mpc => "mpc",
        }
    }
}

impl std::fmt::Display for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
