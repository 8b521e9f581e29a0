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

/// Complete frames that may wait to be looked at: of 64 streams while the thread is stalled for a quarter of a second at
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

    /// Shows until all senders of frames are gone, or the receiver of the reports.
    ///
    /// # Errors
    /// If the thread cannot be prepared.
    pub fn run(&mut self, told: &SyncSender<Told>) -> io::Result<()> {
        clock::prepare_thread(None)?;
        let mut tick = self.epoch.frame_at(self.rate, clock::monotonic()) + 1;
        loop {
            let due = self.epoch.start(self.rate, tick);
            let woke = clock::wait_until(due);
            for (_, output) in &mut self.outputs {
                output.tick(tick, due, woke);
            }
            let ended = self.take();
            // Nothing more will be taken: what is not known now never will be.
            let now = if ended { None } else { Some(woke) };
            if !self.tell(now, told) || ended {
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

    /// Reports what is known at `now`; without a time, everything. False if the receiver of the reports is gone. Waiting for
    /// room in the channel delays only this thread.
    fn tell(&mut self, now: Option<Time>, told: &SyncSender<Told>) -> bool {
        self.outputs.iter_mut().all(|(stream, output)| {
            let mut shown = std::iter::from_fn(|| output.shown(now));
            shown.all(|shown| told.send(Told::Shown(*stream, shown)).is_ok())
        })
    }
}
