//! Scenarios: strict TOML, expanded into a plan of trials.

mod document;
mod endpoint;
mod error;
mod job;
mod overrides;
mod plan;
mod setup;
mod source;
mod substitute;

pub use endpoint::{
    Command, Endpoint, EndpointSpec, Exit, Mode, Origin, Player, Program, Protocol, Ready,
    StopSignal,
};
pub use error::{PROBLEMS_MAX, Place, Problem, ScenarioError};
pub use job::{Job, Peer};
pub use overrides::Overrides;
pub use plan::{Plan, TRIALS_MAX, Trial};
pub use setup::{Link, RecordOptions, Setup, Topology};
