//! The tests of reports, of one program.

mod folder;
mod synthetic;
mod types;
