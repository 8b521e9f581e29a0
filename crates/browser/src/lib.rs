//! Chromium with a page of ours, as an end of a trial: what starts and watches both, whatever the page does.
//!
//! [`Chromium`] is the program as it is installed. [`Stage`] is a page on it: it is served to the browser in its own host,
//! asks for its job, for commands and for the camera's frames, and sends what it measured, which are [`Events`]. A page
//! that needs less than that is served by [`server`] to a [`Browser`]. [`child`] and [`installed`] are for every program of
//! others.

pub mod child;
mod chromium;
mod executable;
pub mod installed;
mod report;
pub mod server;
mod site;
mod stage;

pub use chromium::Browser;
pub use executable::field_trial;
pub use installed::{Missing, chromium};
pub use report::Ms;
pub use site::{CAMERA, FootageMessage, Page, PauseMessage, Sent};
pub use stage::{Chromium, Event, Events, Show, Stage, footage, judge, written};

/// Why a program of others does not run.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// It is not installed.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// It could not be started or talked to.
    #[error("{doing}: {cause}")]
    System {
        /// What was being done.
        doing: String,
        /// What the system said.
        cause: std::io::Error,
    },
}

impl BrowserError {
    /// The system's error, while something was being done.
    pub fn system(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let doing = doing.into();
        move |cause| Self::System { doing, cause }
    }
}
