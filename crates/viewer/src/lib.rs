//! The viewer of real-time video: jitter buffer, display times, freezes; pure.
//!
//! An endpoint hands each frame that its transport delivers to a [`Playout`], and polls it for the
//! [`Outcome`] of every frame: displayed, skipped, undecodable or missing. [`Freezes`] finds in the
//! display times when the video froze. [`Hearing`] is the jitter buffer of sound. All are state machines that are handed the time;
//! none knows a transport or a codec. [`Policy`] is what a scenario says of them.
//!
//! ```
//! use suiro_strict::Bounded;
//! use suiro_units::{Duration, Time};
//! use suiro_viewer::{Fate, Frame, Parts, Playout, Policy};
//!
//! let policy: Policy = toml::from_str("buffer = '50 ms'\nwait = '0 s'")?;
//! policy.check_bounds()?;
//! let mut playout = Playout::new(policy);
//! // Every 40 ms a frame that refers to the one before; each takes 20 ms; the second is lost.
//! for number in [0, 2, 3] {
//!     let captured = Time::from_millis(40 * number);
//!     let references = number.checked_sub(1);
//!     let frame = Frame { number, captured, references, parts: Parts::All };
//!     playout.on_frame(captured + Duration::from_millis(20), frame)?;
//! }
//! playout.finish(Time::from_secs(1));
//! let outcomes: Vec<_> = std::iter::from_fn(|| playout.poll(Time::from_secs(1))).collect();
//! assert_eq!(outcomes[0].displayed(), Some(Time::from_millis(70)));
//! let fates: Vec<Fate> = outcomes.iter().map(|outcome| outcome.fate).collect();
//! assert_eq!(fates, [Fate::Displayed, Fate::Missing, Fate::Undecodable, Fate::Undecodable]);
//! assert!(playout.broken_since().is_some(), "a key frame is needed");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod delay;
mod frame;
mod freeze;
mod hearing;
mod playout;
mod policy;

pub use delay::Delay;
pub use frame::{Fate, Frame, GAP_MAX, Outcome, Parts, Refused};
pub use freeze::{Freeze, Freezes};
pub use hearing::{Heard, Hearing, PIECE, Piece, Sounded, Unheard};
pub use playout::{HELD_MAX, Playout};
pub use policy::{Buffer, Late, Loss, Policy};
