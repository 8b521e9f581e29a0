//! Video over RTP: a sender under a rate control, a receiver, payload formats, RTCP.
//!
//! [`send::run`] sends what a camera sees, and writes the table `rate`; [`receive::run`] receives,
//! plays without a screen and writes the table `frames`. Both are functions with a future that stops
//! them; `suiro endpoint` calls them.
//!
//! The parts that decide are pure and are handed the time: [`sender::Sender`] (what leaves when),
//! [`receiver::Receiver`] (what became of frames, what is asked for), [`rtcp`] (reports and
//! feedback), [`suiro_payload`] (frames into packets and back). `net` opens sockets; nothing else
//! does. `ecn` reads and writes the bits of ECN of their packets.

mod ecn;
mod error;
pub mod net;
pub mod packet;
pub mod receive;
pub mod receiver;
pub mod rtcp;
pub mod send;
pub mod sender;
mod source;
pub mod versions;

pub use error::EndpointError;
