//! DASH and HLS over HTTP: an origin, a cache and a headless player; and [`web`] traffic next to them.
//!
//! [`origin::run`] serves a media package, live or on demand; [`player::run`] plays from any origin
//! and records what it asked for and what a viewer would have seen; [`edge::run`] is a cache between the two. All are
//! functions with a future that stops them; `suiro endpoint`, `suiro serve` and `suiro play` call them.
//!
//! The parts that decide are pure and are handed the time: [`presentation`] (manifests to one
//! model), [`origin::timeline`] (which segments there are when), [`player::session`] (what to
//! fetch next). [`Clock`] reads the clock, `net` opens sockets; nothing else does.

pub mod caching;
pub mod cmcd;
mod cmsd;
pub mod coding;
pub mod edge;
pub mod fields;
pub mod flows;
pub mod forwarded;
pub mod http3;
mod iso8601;
pub mod net;
pub mod origin;
pub mod player;
pub mod presentation;
pub mod priority;
mod recent;
pub mod server;
pub mod url;
pub mod web;

pub use suiro_clock::Clock;
pub use url::{Url, UrlError};
