//! The scenarios' tests, of one program.

mod bounds;
mod broken;
mod ecn;
mod low_latency;
mod plan;
mod rmcat;
mod schema;
