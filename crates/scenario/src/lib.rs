//! Scenarios: strict TOML, expanded into a plan of trials.

mod cell;
mod check;
mod document;
mod endpoint;
mod error;
mod files;
mod header;
mod job;
mod overrides;
mod plan;
mod scenario;
mod schema;
mod setup;
mod source;
mod substitute;
mod topology;

pub use endpoint::{
    Command, Endpoint, EndpointSpec, Exit, Mode, Origin, Player, Program, Protocol, Ready,
    StopSignal,
};
pub use error::{PROBLEMS_MAX, Place, Problem, ScenarioError};
pub use files::{Disk, Files, NoFiles};
pub use job::{Job, Peer};
pub use overrides::Overrides;
pub use plan::{Plan, TRIALS_MAX, Trial};
pub use scenario::{Scenario, parse};
pub use schema::schema;
pub use setup::{Link, RecordOptions, Setup, Topology};
