//! The link's tests, of one program: each would link all that they share.

mod bounds;
mod by_hand;
mod cell;
mod cellular;
mod common;
mod conservation;
mod disciplines;
mod ethernet;
mod golden;
mod oracle;
mod propagation;
mod rate;
mod spec;
mod traces;
mod wifi;
