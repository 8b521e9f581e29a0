//! Packet captures: made on interfaces during a trial, written and read as pcapng, and matched between the two ends of a
//! link.
//!
//! A [`Point`] copies everything that passes one interface to a file ([`file`]). After a trial, [`rows`] reads the files
//! of a link's two ends again and finds each packet that one end sent among those that the other received: what is missing
//! was lost in between.

pub mod file;
mod hop;
mod identity;
mod packet;
mod point;
mod ring;
mod table;

pub use packet::{Ip, Unknown};
pub use point::{Counts, FILE_BYTES_MAX, Point, PointError, PointSpec, Prepared, Zero};
pub use table::{Addresses, End, TableError, path_rows, rows};
