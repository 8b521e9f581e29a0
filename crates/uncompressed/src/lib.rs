//! The uncompressed 8K stream server: frame stores, paced senders, verifying receivers.

pub mod bench;
pub mod checksum;
pub mod clock;
pub mod epoch;
pub mod geometry;
pub mod job;
pub mod live;
pub mod measure;
pub mod node;
pub mod output;
pub mod pace;
pub mod packet;
pub mod parts;
pub mod picture;
pub mod reader;
pub mod receive;
pub mod sdp;
pub mod send;
pub mod socket;
pub mod split;
pub mod store;
pub mod synth;
pub mod timing;

pub use geometry::{Depth, FrameRate, Geometry, Sampling};
