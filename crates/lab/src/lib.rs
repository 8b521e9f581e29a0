//! The lab: hosts, links and endpoint processes of one trial, and the trials of a plan.

pub mod clock;
pub mod machine;
pub mod process;
