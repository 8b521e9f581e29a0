//! The tests of origin and players, of one program.

mod common;
mod edge;
mod edge_codings;
mod edge_live;
mod edge_reports;
mod edge_validation;
mod faults;
mod loopback;
mod origin;
mod real;
