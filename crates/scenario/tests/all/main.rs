//! The scenarios' tests, of one program.

mod bounds;
mod broken;
mod plan;
mod schema;
