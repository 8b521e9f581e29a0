//! Web traffic: a server of objects of any size, and people who load pages from it.
//!
//! [`pages`] draws what they load, from a seed; [`server`] and [`clients`] turn the loops.

pub mod clients;
pub mod pages;
pub mod server;

pub use clients::{ClientsJob, WebError};
pub use server::ServerJob;
