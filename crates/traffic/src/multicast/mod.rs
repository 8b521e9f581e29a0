//! Multicast as endpoints of a trial: what runs the kinds `multicast-sender` and `multicast-receiver`.
//!
//! The sender sends numbered packets at a constant rate. The receiver joins and leaves, and watches the interfaces of its
//! host by a packet socket, which sees packets of the group also after it has left: `receive` records when they begin
//! and end. `membership` decides what a packet means, and is pure.

mod membership;
mod receive;
mod send;
mod socket;

pub use receive::run_job as run_receiver;
pub use send::run_job as run_sender;
