//! A listener that is made when the first packet comes: a viewer of video without sound has no table of sound.

use std::path::PathBuf;

use suiro_units::Time;
use suiro_viewer::Policy;

use crate::{Listener, LogError, Numbering, Seen};

/// The [`Listener`] of one endpoint, from its first packet on.
pub struct Listening {
    dir: PathBuf,
    name: String,
    epoch_unix_ns: u64,
    policy: (Policy, bool),
    listener: Option<Listener>,
}

impl Listening {
    /// Nothing has come yet. What is given is for [`Listener::create`].
    pub fn new(dir: PathBuf, name: String, epoch_unix_ns: u64, policy: (Policy, bool)) -> Self {
        Self { dir, name, epoch_unix_ns, policy, listener: None }
    }

    /// A packet of Opus has come, with the number of its frame; see [`Listener::on_packet`].
    ///
    /// # Errors
    /// The table cannot be made.
    pub fn on_packet(
        &mut self,
        now: Time,
        (number, numbering): (u64, Numbering),
        data: Vec<u8>,
    ) -> Result<(), LogError> {
        let listener = match &mut self.listener {
            Some(listener) => listener,
            None => {
                let Self { dir, name, epoch_unix_ns, policy, .. } = self;
                self.listener.insert(Listener::create(dir, name, *epoch_unix_ns, *policy)?)
            }
        };
        listener.on_packet(now, number, numbering, data);
        Ok(())
    }

    /// When to call [`Self::advance`] next; `None` before the first packet.
    pub fn next_event(&self) -> Option<Time> {
        self.listener.as_ref()?.next_event()
    }

    /// What became of a frame of video.
    pub fn on_seen(&mut self, seen: &Seen) {
        if let Some(listener) = &mut self.listener {
            listener.on_seen(seen);
        }
    }

    /// Plays what is due by `now`.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn advance(&mut self, now: Time) -> Result<(), LogError> {
        self.listener.as_mut().map_or(Ok(()), |listener| listener.advance(now))
    }

    /// The sender has ended; see [`Listener::end`].
    pub fn end(&mut self) {
        if let Some(listener) = &mut self.listener {
            listener.end();
        }
    }

    /// Another sender begins; see [`Listener::restart`].
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn restart(&mut self, now: Time) -> Result<(), LogError> {
        self.listener.as_mut().map_or(Ok(()), |listener| listener.restart(now))
    }

    /// Ends it, and completes the table.
    ///
    /// # Errors
    /// A row could not be written.
    pub fn close(self, now: Time) -> Result<(), LogError> {
        self.listener.map_or(Ok(()), |listener| listener.close(now))
    }
}
