//! Records to metrics, series and comparisons, pure: no file, no clock, no random source.
//!
//! [`summarise`] turns one trial's [`Records`] into flat metrics, whose names, units and meanings stand in the [`catalogue()`],
//! and [`timeline`] turns the records into uniform time series. [`compare`] joins the repetitions of each cell with confidence
//! intervals, [`diff()`] compares two runs, and [`findings::judge`] sets results next to what a study published.
//!
//! # Conventions
//!
//! - *The trial* is the time from `t_ns` = 0 to `duration_s`; what lies outside is not counted. Only
//!   what the emulator counted itself (loss ratios, lost packets, lateness) goes on until it stopped,
//!   shortly after.
//! - Metrics are about its *period*: with `warm_up_s`, the time from then on. Series and causes are of the whole trial.
//! - A *mean* of something sampled (window, round-trip time, buffer) is weighted by time: a sample
//!   stands until the next one of the same socket or player.
//! - A *percentile* is the least value that is not exceeded in at least that share of the time (or of
//!   the packets): the inverse of the distribution function, no interpolation, so it is always a
//!   value that occurred.
//! - What could not be measured is `None`, never zero.

mod accounts;
mod analyse;
mod audio;
mod backlog;
mod bins;
mod browser;
mod cache;
mod catalogue;
mod compare;
mod competing;
mod conference;
mod control;
mod crowd;
mod departures;
mod diff;
mod drawn;
mod family;
pub mod findings;
mod flow;
mod group;
mod guess;
mod held;
mod hops;
mod instance;
mod layers;
mod limits;
mod link;
mod metric;
mod multicast;
mod newcomer;
mod nqoe;
mod overhead;
mod panel;
mod pauses;
mod period;
mod player;
mod presence;
mod quic;
mod rivals;
mod screen;
mod settling;
mod shown;
mod stats;
mod still;
mod student;
mod tcp;
mod ticks;
mod timeline;
mod uncompressed;
mod view;
mod viewing;
mod web;
mod webrtc;
pub mod why;

pub use accounts::disagreements;
pub use analyse::{Analysis, analyse, explain, explain_by, summarise, timeline};
pub use catalogue::{catalogue, describe, describe_among, documentation, quantities};
pub use compare::{CellSummary, INTERVAL, compare, compare_some, means};
pub use diff::{CellDiff, Diff, DiffVerdict, MARGIN, MetricDiff, TEST, VERDICT_LEAST, diff};
pub use hops::difference;
pub use instance::Instance;
pub use limits::{JudgedCell, JudgedLimit, LimitOutcome, limits};
pub use metric::{Better, Metric, Quantity};
pub use panel::{Look, Panel, Style};
pub use period::warm_up_ns;
pub use stats::{Distribution, Spread};
pub use still::standing_still;
pub use ticks::{Tick, ticks};
pub use timeline::{Series, Timeline};
pub use viewing::{Moment, Viewing, viewing};
pub use why::Why;

pub use suiro_record::Records;

use suiro_record::Trial;

/// A trial's duration in nanoseconds; 0 if it is not a positive finite number.
fn duration_ns(trial: &Trial) -> i64 {
    let ns = trial.duration_s * 1e9;
    if ns.is_finite() && ns > 0.0 { ns as i64 } else { 0 }
}
