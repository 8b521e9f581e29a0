//! Ctrl-C and SIGTERM as events: what runs ends cleanly and keeps what was measured.

use std::sync::mpsc::Sender;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use suiro_lab::process::Event;

/// Sends [`Event::Interrupted`] for every SIGINT, SIGTERM and SIGHUP from now on. The third one ends
/// this process at once.
pub fn forward_to(events: Sender<Event>) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("handling signals")?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for (count, _) in signals.forever().enumerate() {
            if count == 2 || events.send(Event::Interrupted).is_err() {
                std::process::exit(130);
            }
        }
    })?;
    Ok(())
}
