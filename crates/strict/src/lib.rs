//! Strict configuration: TOML whose values know their place in the text, the bounds of keys, and the
//! one shape in which every layer refuses what a person wrote. Pure.
//!
//! A text becomes a [`source::Source`]; [`document::parse`] makes the tree; [`document::read`] makes
//! types of its tables. The bounds of a type's keys are declared once, by [`bounds!`]; the check, the
//! message and the JSON Schema have them from there. What is wrong is a [`Refusal`]: at the keys of
//! a table, at a span of the text, or, after [`source::Source::error`], at a line of a file.

pub mod bounds;
pub mod document;
pub mod error;
pub mod refusal;
pub mod source;

pub use bounds::{Bounded, Bounds, Entries, Holds, bounds_of, refuse_entries, refuse_value};
pub use error::{Error, REFUSALS_MAX};
pub use refusal::{Keys, Line, Place, Refusal, Site, Span, TextLine};
#[doc(hidden)]
pub use schemars::Schema;
