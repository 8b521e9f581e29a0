//! Scenarios: strict TOML, expanded into a plan of trials.

mod endpoint;
mod job;

pub use endpoint::{
    Command, Endpoint, EndpointSpec, Exit, Mode, Origin, Player, Program, Protocol, Ready,
    StopSignal,
};
pub use job::{Job, Peer};
