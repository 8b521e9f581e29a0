//! The live link.
mod clock;
mod flows;
mod frame;
mod histogram;
mod pool;
mod recorder;
mod socket;
