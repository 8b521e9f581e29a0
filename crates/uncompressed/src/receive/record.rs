//! Writing received frames to a store, on a thread of its own: a disk that is slow costs frames of the
//! recording, never packets of the stream.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::track::Frame;
use crate::store::{Error, Header, Recorded, Recorder};

/// Frames that wait for the disk at a time.
const WAITING_MAX: usize = 16;

/// A recording under way.
#[derive(Debug)]
pub struct Recording {
    frames: SyncSender<Vec<u8>>,
    /// Memory of frames that were written, to be used again.
    spare: Receiver<Vec<u8>>,
    writer: JoinHandle<Result<Recorded, Error>>,
    left_out: u64,
}

/// How a recording ended.
#[derive(Debug)]
pub struct RecordingEnd {
    /// What was written, or why it ended before its time; what is whole is kept.
    pub written: Result<Recorded, Error>,
    /// Frames that are not in it: incomplete, or too many for the disk.
    pub left_out: u64,
}

impl Recording {
    /// Makes the store at `path`; a file of that name is replaced.
    pub fn create(path: &Path, header: Header) -> Result<Self, Error> {
        let mut recorder = Recorder::create(path, header)?;
        let (frames, waiting) = sync_channel::<Vec<u8>>(WAITING_MAX);
        let (done, spare) = sync_channel(WAITING_MAX + 1);
        let write = move || {
            for frame in waiting {
                recorder.write(&frame)?;
                let _ = done.try_send(frame);
            }
            recorder.finish()
        };
        let thread = std::thread::Builder::new().name("recorder".to_owned());
        let writer = thread.spawn(write).map_err(|source| Error::Io {
            path: path.to_owned(),
            doing: "starting its writer",
            source,
        })?;
        Ok(Self { frames, spare, writer, left_out: 0 })
    }

    /// Takes a frame; it never waits.
    pub fn frame(&mut self, frame: &Frame, picture: &[u8]) {
        let mut copy = self.spare.try_recv().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(picture);
        // A store's frames follow one another: of an incomplete one there is nothing to write.
        if !frame.whole || self.frames.try_send(copy).is_err() {
            self.left_out += 1;
        }
    }

    /// Waits until all frames are written.
    pub fn end(self) -> RecordingEnd {
        drop(self.frames);
        let written = self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        RecordingEnd { written, left_out: self.left_out }
    }
}
