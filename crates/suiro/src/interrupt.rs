//! Ctrl-C and SIGTERM: what runs hears of them, ends cleanly and keeps what was measured; what only writes files leaves no
//! half of one.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use suiro_lab::process::Event;
use suiro_outside::unfinished;

/// Whether a signal has come.
static HAPPENED: AtomicBool = AtomicBool::new(false);

/// Where signals are reported.
static LISTENER: Mutex<Listener> = Mutex::new(Listener::NotYet);

enum Listener {
    /// Nothing watches for signals.
    NotYet,
    /// Nobody: a signal ends this process.
    Nobody,
    /// The last run that began, of several in one process.
    Run { events: Sender<Event>, last: Option<usize> },
}

/// True once a signal has come that asks this process to end.
pub fn happened() -> bool {
    HAPPENED.load(Ordering::Relaxed)
}

/// Sends [`Event::Interrupted`] for every SIGINT, SIGTERM and SIGHUP from now on. The third one ends
/// this process at once, and with it, as they cannot outlive it, all that it started.
pub fn forward_to(events: Sender<Event>) -> Result<()> {
    listen(Listener::Run { events, last: Some(3) })
}

/// The same in a process that another of ours interrupts, and ends when it must: here no number of
/// signals costs the records.
pub fn forward_inside(events: Sender<Event>) -> Result<()> {
    listen(Listener::Run { events, last: None })
}

/// From now on a signal that no run hears of removes what is half written before it ends this process.
pub fn leave_nothing_half() -> Result<()> {
    listen(Listener::Nobody)
}

fn listen(new: Listener) -> Result<()> {
    let mut listener = LISTENER.lock().expect("no holder panics: it only sends");
    let watched = !matches!(*listener, Listener::NotYet);
    // A run that has begun goes on to hear of signals.
    if !watched || matches!(new, Listener::Run { .. }) {
        *listener = new;
    }
    drop(listener);
    if watched {
        return Ok(());
    }
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("handling signals")?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for (earlier, _) in signals.forever().enumerate() {
            HAPPENED.store(true, Ordering::Relaxed);
            let listener = LISTENER.lock().expect("no holder panics: it only sends");
            match &*listener {
                Listener::Run { events, last } => {
                    let is_told = events.send(Event::Interrupted).is_ok();
                    if *last == Some(earlier + 1) || !is_told {
                        unfinished::remove_then(|| std::process::exit(130));
                    }
                }
                Listener::NotYet | Listener::Nobody => unfinished::remove_then(|| {
                    say!("interrupted: nothing is left half written");
                    std::process::exit(1);
                }),
            }
        }
    })?;
    Ok(())
}
