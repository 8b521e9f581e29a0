//! Strict TOML: values that know their place in the text, and errors that name line and column, say
//! what was expected and what would mend it. Scenarios and studies are read with it. Pure.
//!
//! A text becomes a [`source::Source`]; [`document::parse`] makes the tree; [`document::read`] makes
//! types of its tables. What is wrong is an [`error::Issue`] about a span of the text, which
//! [`source::Source::error`] turns into the [`Error`] that a person reads.

pub mod document;
pub mod error;
pub mod source;

pub use error::{Error, PROBLEMS_MAX, Place, Problem};
