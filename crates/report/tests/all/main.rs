//! The tests of reports, of one program.

mod folder;
mod many;
mod synthetic;
mod types;
