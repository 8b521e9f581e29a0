//! Ctrl-C and SIGTERM as events: what runs ends cleanly and keeps what was measured.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use suiro_lab::process::Event;

/// Whether a signal has come.
static HAPPENED: AtomicBool = AtomicBool::new(false);

/// Where signals are reported: to the last run that began, of several in one process. `None` until the first begins.
static LISTENER: Mutex<Option<Sender<Event>>> = Mutex::new(None);

/// True once a signal has come that asks this process to end.
pub fn happened() -> bool {
    HAPPENED.load(Ordering::Relaxed)
}

/// Sends [`Event::Interrupted`] for every SIGINT, SIGTERM and SIGHUP from now on. The third one ends
/// this process at once, and with it, as they cannot outlive it, all that it started.
pub fn forward_to(events: Sender<Event>) -> Result<()> {
    forward(events, Some(3))
}

/// The same in a process that another of ours interrupts, and ends when it must: here no number of
/// signals costs the records.
pub fn forward_inside(events: Sender<Event>) -> Result<()> {
    forward(events, None)
}

fn forward(events: Sender<Event>, last: Option<usize>) -> Result<()> {
    let before = LISTENER.lock().expect("no holder panics: it only sends").replace(events);
    if before.is_some() {
        return Ok(());
    }
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("handling signals")?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for (earlier, _) in signals.forever().enumerate() {
            HAPPENED.store(true, Ordering::Relaxed);
            let listener = LISTENER.lock().expect("no holder panics: it only sends");
            let is_told = listener.as_ref().is_some_and(|it| it.send(Event::Interrupted).is_ok());
            if Some(earlier + 1) == last || !is_told {
                std::process::exit(130);
            }
        }
    })?;
    Ok(())
}
