//! What a stranger may have made: files that are devices or endless, folders with links that lead
//! out of them, names with terminal escapes. Every read of such a file goes through here.
//!
//! - [`file`]: regular files only, read up to a bound.
//! - [`beneath`]: files of a folder, reached without following a link or leaving the folder.
//! - [`beside`]: a file is written next to its place and renamed into it.
//! - [`text`]: text without terminal escapes.
//! - [`tree`]: a folder is copied, up to a bound.
//! - [`unfinished`]: what is written next to its place is removed when the process is asked to end.

pub mod beneath;
pub mod beside;
pub mod file;
pub mod text;
pub mod tree;
pub mod unfinished;

pub use beside::Beside;
pub use text::printable;
pub use unfinished::Unfinished;
