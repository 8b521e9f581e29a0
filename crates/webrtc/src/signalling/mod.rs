//! Offer and answer over HTTP: WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep).

pub mod client;
pub mod door;
pub mod fragment;
mod handle;
pub mod server;

pub use door::{Ask, Command, Door, Reply};
pub use handle::Handle;
