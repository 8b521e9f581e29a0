//! The uncompressed 8K stream server: frame stores, paced senders, verifying receivers.

pub mod checksum;
pub mod geometry;
pub mod packet;
pub mod parts;
pub mod picture;
pub mod reader;
pub mod sdp;
pub mod split;
pub mod store;
pub mod synth;

pub use geometry::{Depth, FrameRate, Geometry, Sampling};
