//! The emulated link, pure: loss, queue, rate, propagation.
//!
//! A [`Link`] is a state machine that is handed the time and a seed; it has no clock, no socket and
//! no random source of its own. The same core runs live (`wire`) and in virtual time under test. For each
//! packet it gives one [`Event`] that says everything a record needs.
//!
//! Per direction, in the order in which a packet meets them: a loss model, a queue with its discipline (droptail,
//! CoDel, PIE, FQ-CoDel, DualPI2), a server (rate, schedule, token bucket, trace), and propagation (delay, jitter,
//! reordering, duplication, corruption). Each is in a module of its own. Where the link is Wi-Fi, half-duplex Ethernet or
//! cellular, one server, the `medium`, serves both directions. A [`Segment`] is such a medium with any number of stations.
//!
//! [`LinkSpec`] is what a user writes; [`LinkSpec::resolve`] makes a [`LinkConfig`] of it, with
//! presets applied, traces read and everything checked.
//!
//! Sizes are those of IP packets; times count from the trial's start.

mod bounds;
mod capacity;
mod check;
mod config;
mod erfc;
mod jitter;
mod link;
mod loss;
mod machine;
mod medium;
mod outcomes;
mod packet;
mod path;
mod preset;
mod propagation;
mod queue;
mod resolve;
mod schedule;
mod segment;
mod segment_spec;
mod server;
mod spec;
mod trace;
mod turns;

pub use bounds::MAX_QUEUED;
pub use config::{
    CodelConfig, DisciplineConfig, Distribution, Dualpi2Config, FqCodelConfig, GilbertElliott,
    JitterConfig, LimitConfig, LinkConfig, LossConfig, Order, PathConfig, PieConfig,
    PropagationConfig, QueueConfig, ReorderConfig, ServerConfig,
};
pub use link::Link;
pub use medium::cellular::{Bandwidth, CellularConfig, CellularSpec};
pub use medium::ethernet::{EthernetConfig, EthernetRate, EthernetSpec};
pub use medium::quantity::{Dbm, Decibels, KilometresPerHour, Metres};
pub use medium::wifi::{Air, WifiChangeSpec, WifiConfig, WifiSpec};
pub use outcomes::Counts;
pub use packet::{Backlog, Cause, Corruption, Direction, Ecn, Event, MAX_PACKET, Packet, Verdict};
pub use preset::Preset;
pub use propagation::MAX_IN_FLIGHT;
pub use schedule::{Change, Schedule};
pub use segment::{BaseStationConfig, CellConfig, HubConfig, Segment, SegmentConfig};
pub use segment_spec::{STATIONS_MAX, SegmentLinks, SegmentSpec, StationSpec};
pub use spec::{
    ChangeSpec, Discipline, JitterSpec, LimitSpec, LinkSpec, LossModel, LossSpec, LossTable,
    PathSpec, QueueSpec, ReorderSpec, ServiceSpec, TraceSpec, TraceTable,
};
pub use trace::{
    MAX_RATE, MAX_TRACE_LINES, MAX_TRACE_TIME, MIN_PERIOD, OPPORTUNITY, OpportunityTrace,
    RateCurve, RateStep, parse_csv, parse_mahimahi,
};
