//! Real-time video: a camera whose encoder can be steered, and a decoder.
//!
//! [`Footage`] is what the camera sees, decoded once. [`LiveSource`] captures it on the clock ([`Pace`]), stamps each
//! frame with its number and time ([`crate::stamp`]) and encodes it ([`Encoder`]). Bit rate, frame rate and size may
//! change at any frame. The source receives the time as an argument; [`Camera`] runs it in a thread. [`Decoder`] is the
//! other end.
//!
//! One thread encodes and another decodes. With [`Effort::Medium`], on one core of a Xeon at
//! 2.6 GHz and built with `nasm`, about 290 frames of 720 lines or 110 of 1080 are encoded in a
//! second, and 880 or 230 decoded. That is of footage that is hard to encode (`make bench`).
//! Encoding 1080p at 30 frames per second takes less than a third of a core. Without `nasm` it
//! takes nearly all.
//!
//! ```no_run
//! use suiro_media::live::{Camera, Effort, EncoderConfig, Footage, FootageSpec, LiveSource};
//! use suiro_media::{Ffmpeg, cache, spec::Source};
//! use suiro_units::{BitRate, Time};
//! # fn clock() -> Time { Time::ZERO }
//!
//! let spec = FootageSpec::new(Source::Bbb);
//! let footage = Footage::prepare(&Ffmpeg::locate()?, &spec, &cache::folder(), &mut |_, _| {})?;
//! let config = EncoderConfig {
//!     width: spec.width,
//!     height: spec.height,
//!     fps: spec.fps,
//!     bitrate: BitRate::from_kbps(1500),
//!     effort: Effort::Medium,
//!     may_skip: true,
//! };
//! let source = LiveSource::new(footage, config, clock(), 1_800_000_000_000)?;
//! let camera = Camera::start(source, clock, |frame| println!("frame {}", frame.number))?;
//! camera.set_bitrate(BitRate::from_kbps(500)); // the network has become worse
//! camera.request_key_frame(); // a viewer has lost a frame
//! camera.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod camera;
mod decoder;
mod encoder;
mod error;
mod footage;
mod pace;
mod picture;
mod scale;
mod soft;
mod source;

use suiro_strict::Bounds;

pub use camera::Camera;
pub use decoder::{Decoder, UNIT_MAX};
pub use encoder::{Effort, Encoded, Encoder, EncoderConfig, RATES};
pub use error::LiveError;
pub use footage::{BYTES_MAX, Footage, FootageSpec};
pub use pace::{Due, Pace};
pub use picture::Picture;
pub use source::{Captured, LiveSource, check_size};

/// Most frames per second.
pub const FPS: Bounds<u32> = Bounds::new(1, 120);
