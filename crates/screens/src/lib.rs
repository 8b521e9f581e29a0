//! What viewers saw, as video: filmed after the trials, scored, and set side by side.
//!
//! [`make`] films the screens of a results folder that have not been filmed yet: of each viewer it makes
//! a video from what the table `frames` says was displayed and when, and scores it against the source.
//! Where the user has installed it, [`p1203`] scores it too. [`compare`] sets several screens side by
//! side in one video. What is made is the same every time, so all of it can be made again.
//! Nothing here prints: an [`Observer`] receives the progress, and is asked whether to stop.

use suiro_record::PlannedTrial;

pub mod compare;
mod film;
pub mod p1203;
mod rung;

pub use film::make;
pub use rung::rung;

/// Watches work that takes long.
pub trait Observer {
    /// That share of all work is done, 0 to 1; this is done now, for that trial.
    fn progress(&mut self, trial: &PlannedTrial, done: f64, doing: &str);
    /// A screen of that trial, of that endpoint, is not as it should be.
    fn problem(&mut self, trial: &PlannedTrial, endpoint: &str, problem: &str);
    /// True if the work should end soon; what is made by then is kept.
    fn interrupted(&self) -> bool;
}

/// True if a wait should end, because the user wants to.
pub type Stop<'s> = &'s dyn Fn() -> bool;

/// What was asked for is not there, or cannot be: the request is wrong, not the work.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unsuitable(pub String);
