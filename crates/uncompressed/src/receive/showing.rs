//! The thread of a converter's output: it wakes at each tick and reports what its streams show. It is no part of the way of
//! the packets: the receiving thread gives it one message for each complete frame, without waiting or waking it.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use suiro_units::Time;

use super::Told;
use crate::clock;
use crate::epoch::Epoch;
use crate::geometry::FrameRate;
use crate::output::{Output, Ready, Tally};

/// Complete frames that may wait to be looked at: of 64 streams while the thread stands still for a quarter of a second at
/// 60 frames per second; of two streams for eight seconds.
const FRAMES_MAX: usize = 1024;

/// Where a stream's complete frames go.
pub type ToOutput = SyncSender<(u32, Ready)>;

/// The outputs of a converter, one for each of its streams.
#[derive(Debug)]
pub struct Showing {
    epoch: Epoch,
    rate: FrameRate,
    outputs: Vec<(u32, Output)>,
    frames: Receiver<(u32, Ready)>,
}

impl Showing {
    /// Outputs for streams of these numbers, all of this rate, that show a frame `delay` frame times after it begins; and
    /// where their complete frames are to be sent.
    pub fn new(
        epoch: Epoch,
        rate: FrameRate,
        delay: u8,
        streams: impl IntoIterator<Item = u32>,
    ) -> (Self, ToOutput) {
        let (sender, frames) = sync_channel(FRAMES_MAX);
        let outputs = streams.into_iter().map(|stream| (stream, Output::new(delay))).collect();
        (Self { epoch, rate, outputs, frames }, sender)
    }

    /// Shows until all senders of frames are gone, or nobody hears the reports any more.
    ///
    /// # Errors
    /// If the thread cannot be prepared.
    pub fn run(&mut self, told: &SyncSender<Told>) -> io::Result<()> {
        clock::prepare_thread(None)?;
        let mut tick = self.epoch.frame_at(self.rate, clock::monotonic()) + 1;
        loop {
            let due = self.epoch.start(self.rate, tick);
            let woke = clock::wait_until(due);
            let ended = self.take();
            if !self.tick(tick, due, woke, told) || ended {
                return Ok(());
            }
            tick += 1;
        }
    }

    /// What was counted of each stream.
    pub fn tallies(&self) -> impl Iterator<Item = (u32, Tally)> {
        self.outputs.iter().map(|(stream, output)| (*stream, *output.tally()))
    }

    /// Takes what became complete; true if no more will come.
    fn take(&mut self) -> bool {
        loop {
            match self.frames.try_recv() {
                Ok((stream, frame)) => {
                    let own = self.outputs.iter_mut().find(|(number, _)| *number == stream);
                    if let Some((_, output)) = own {
                        output.ready(frame);
                    }
                }
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => return true,
            }
        }
    }

    /// Reports a tick of all streams; false if nobody hears it. Waiting for room costs only this thread.
    fn tick(&mut self, tick: u64, due: Time, woke: Time, told: &SyncSender<Told>) -> bool {
        let late = woke.saturating_since(due);
        self.outputs.iter_mut().all(|(stream, output)| {
            let shown = output.tick(tick, due);
            shown.is_none_or(|shown| told.send(Told::Shown(*stream, shown, late)).is_ok())
        })
    }
}
