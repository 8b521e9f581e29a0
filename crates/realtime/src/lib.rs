//! Real-time video without a transport: what every protocol that carries it needs at both ends.
//!
//! A sender has a [`Feed`]: a camera and its encoder, which takes a new bit rate, frame rate, size or a
//! request for a key frame between two frames; one for each quality ([`Feeds`]). [`Share`] makes the encoder's bit rate of what the
//! transport's rate control allows, [`ladder`] the size and frame rate that fit it, and [`split`] divides an allowance among
//! several media.
//!
//! A receiver hands each frame that its transport has put together to a [`Viewer`], and polls it for
//! the [`Seen`] of every frame: whether and when it was displayed. Where frames come in RTP packets,
//! [`Incoming`] puts them together. [`Log`] writes them to the table
//! `frames` and keeps the coded frames that could be decoded ([`Saver`]), from which screens are
//! filmed after the trial.
//!
//! ```text
//!  allowance ─► Share ─► Feed ─► Frame ─► (transport) ─► Delivered ─► Viewer ─► Seen ─► Log
//!  key frame request ────►▲                                          │ broken_since
//!                         └───────────────── (transport) ◄───────────┘
//! ```
//!
//! Sound goes from a [`Microphone`] to a [`Listener`], which writes the table `audio`.
//!
//! Nothing here opens a socket or knows a protocol. Time is an argument; only the [`Feed`]'s thread
//! waits, on the clock that it is given.

mod encoded;
mod error;
mod feed;
mod feeds;
mod incoming;
pub mod ladder;
mod listening;
mod log;
mod save;
mod share;
mod sound;
mod sync;
mod viewer;

pub use encoded::EncoderLog;
pub use error::LogError;
pub use feed::{Camera, Feed, FeedError, Frame, KEYS_WITHIN};
pub use feeds::{Begin, Feeds};
pub use incoming::Incoming;
pub use listening::Listening;
pub use log::{FrameLog, Log};
pub use save::{Saver, received};
pub use share::{Demand, Share, split};
pub use sound::{Listener, Microphone, Numbering, SoundFrame};
pub use sync::LipSync;
pub use viewer::{Delivered, Seen, Viewer};
