//! Control of the 8K stream server in the terms of AMWA NMOS. There are nodes whose streams are commanded by IS-04 and
//! IS-05, a registry that knows which of them live, and a controller that keeps the streams on the nodes that the
//! operator wants.
//!
//! [`nmos`], [`registry`], [`desired`] and [`plan`] are functions of what they are handed, the time included; [`node`] runs
//! them with sockets and clocks from [`net`].

pub mod claim;
pub mod client;
pub mod controller;
pub mod desired;
pub mod discovery;
pub mod events;
pub mod job;
pub mod net;
pub mod nmos;
pub mod node;
pub mod page;
pub mod plan;
pub mod registry;
pub mod server;
