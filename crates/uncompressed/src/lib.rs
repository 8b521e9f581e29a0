//! The uncompressed 8K stream server: frame stores, paced senders, verifying receivers.

pub mod checksum;
pub mod geometry;
pub mod packet;
pub mod sdp;

pub use geometry::{Depth, FrameRate, Geometry, Sampling};
