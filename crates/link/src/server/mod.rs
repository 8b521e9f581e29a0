//! How fast packets leave the queue.
//!
//! A new server is a variant here with three answers: when it next takes a packet, when that packet
//! is out, and what an empty queue means to it.

mod bucket;
mod curve;
mod opportunities;
mod steady;

use suiro_units::{Seed, Time};

use crate::config::ServerConfig;
use bucket::Bucket;
use opportunities::{Poisson, Recorded};
use steady::Steady;

/// Times of successive calls never decrease.
#[derive(Debug)]
pub(crate) enum Server {
    Unlimited,
    Steady(Steady),
    Bucket(Bucket),
    Poisson(Poisson),
    Recorded(Recorded),
    /// Never asked: a medium that stations share takes packets itself, of this many bytes at most.
    Shared {
        largest: u64,
    },
}

impl Server {
    pub fn new(config: &ServerConfig, seed: Seed) -> Self {
        match config {
            ServerConfig::Unlimited => Self::Unlimited,
            ServerConfig::Steady(rate) => Self::Steady(Steady::new(rate)),
            ServerConfig::Bucket { rate, burst } => Self::Bucket(Bucket::new(rate, *burst)),
            ServerConfig::Poisson(rate) => Self::Poisson(Poisson::new(rate, seed)),
            ServerConfig::Trace(trace) => Self::Recorded(Recorded::new(trace)),
            ServerConfig::Wifi => Self::Shared { largest: crate::medium::wifi::MAX_IP_BYTES },
            ServerConfig::Ethernet => {
                Self::Shared { largest: crate::medium::ethernet::MAX_IP_BYTES }
            }
            ServerConfig::Cellular => {
                Self::Shared { largest: crate::medium::cellular::MAX_IP_BYTES }
            }
        }
    }

    /// When it next takes a packet from the queue, one waiting since `now` or before. `None`:
    /// never again.
    pub fn takes_at(&mut self, now: Time) -> Option<Time> {
        match self {
            Self::Unlimited | Self::Bucket(_) => Some(now),
            Self::Shared { .. } => None,
            Self::Steady(server) => server.takes_at(now),
            Self::Poisson(server) => server.takes_at(now),
            Self::Recorded(server) => server.takes_at(now),
        }
    }

    /// Takes a packet at `now`, a time that [`Self::takes_at`] gave: when its last bit is out.
    /// `None`: never.
    pub fn serve(&mut self, now: Time, bytes: u64) -> Option<Time> {
        match self {
            Self::Unlimited => Some(now),
            Self::Shared { .. } => None,
            Self::Steady(server) => server.serve(now, bytes),
            Self::Bucket(server) => server.serve(now, bytes),
            Self::Poisson(server) => server.serve(now, bytes),
            Self::Recorded(server) => server.serve(now, bytes),
        }
    }

    /// The queue is empty at `now`, after service: what was left of an opportunity is lost.
    pub fn rest(&mut self) {
        match self {
            Self::Unlimited | Self::Shared { .. } | Self::Bucket(_) | Self::Steady(_) => {}
            Self::Poisson(server) => server.rest(),
            Self::Recorded(server) => server.rest(),
        }
    }

    /// Largest packet it can ever serve; `None`: any.
    pub fn largest(&self) -> Option<u64> {
        match self {
            Self::Shared { largest } => Some(*largest),
            _ => None,
        }
    }

    /// How often its trace has begun again by `now`.
    pub fn wraps(&self, now: Time) -> u64 {
        let period = match self {
            Self::Unlimited | Self::Shared { .. } => None,
            Self::Steady(server) => server.period(),
            Self::Bucket(server) => server.period(),
            Self::Poisson(server) => server.period(),
            Self::Recorded(server) => server.period(),
        };
        period.map_or(0, |period| now.as_nanos() / period)
    }
}

/// Work is counted in nanobits, billionths of a bit: what a rate of 1 bit/s does in 1 ns. So the
/// work of a whole number of nanoseconds at a whole rate is whole, and no rounding adds up.
const NANOBITS_PER_BYTE: u64 = 8_000_000_000;

/// The work of serving a packet; sizes are bounded by [`crate::MAX_PACKET`].
const fn work(bytes: u64) -> u64 {
    bytes * NANOBITS_PER_BYTE
}
