//! Writes received frames to a store on a thread of its own: a slow disk loses frames of the recording, never packets
//! of the stream.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use super::track::Frame;
use crate::store::{Error, Header, Recorded, Recorder};

/// Frames that may wait for the disk at a time.
const WAITING_MAX: usize = 16;

/// A recording in progress.
#[derive(Debug)]
pub struct Recording {
    frames: SyncSender<(u64, Vec<u8>)>,
    /// Memory of frames that were written, for reuse.
    spare: Receiver<Vec<u8>>,
    writer: JoinHandle<Result<Recorded, Error>>,
    left_out: LeftOut,
}

/// Frames that should be in a recording and are not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// They did not arrive completely, or had begun to arrive before images were wanted.
    pub incomplete: u64,
    /// Too many waited for the disk.
    pub slow: u64,
    /// They arrived after the recording had ended, for example because of a full disk.
    pub ended: u64,
}

/// How a recording ended.
#[derive(Debug)]
pub struct RecordingEnd {
    /// What was written, or why it ended early; complete frames are kept.
    pub written: Result<Recorded, Error>,
    /// Frames that are not in it.
    pub left_out: LeftOut,
}

impl Recording {
    /// Creates the store at `path`; an existing file is replaced only if `replace`. `on_failure` is called at once, by
    /// the writing thread, if the recording ends early.
    pub fn create(
        path: &Path,
        header: Header,
        replace: bool,
        on_failure: impl FnOnce(&Error) + Send + 'static,
    ) -> Result<Self, Error> {
        let create = if replace { Recorder::create } else { Recorder::create_new };
        let mut recorder = create(path, header)?;
        let (frames, waiting) = sync_channel::<(u64, Vec<u8>)>(WAITING_MAX);
        let (done, spare) = sync_channel(WAITING_MAX + 1);
        let write = move || {
            for (number, frame) in waiting {
                recorder.put(number, &frame)?;
                let _ = done.try_send(frame);
            }
            recorder.finish()
        };
        let write = move || write().inspect_err(|error| on_failure(error));
        let thread = std::thread::Builder::new().name("recorder".to_owned());
        let writer = thread.spawn(write).map_err(|cause| Error::Io {
            path: path.to_owned(),
            doing: "starting its writer",
            cause,
        })?;
        Ok(Self { frames, spare, writer, left_out: LeftOut::default() })
    }

    /// Takes a frame without waiting. An incomplete frame, or one without its image, is not written: the store marks it as
    /// missing.
    pub fn frame(&mut self, frame: &Frame, picture: &[u8]) {
        if !frame.whole || picture.is_empty() {
            self.left_out.incomplete += 1;
            return;
        }
        let mut copy = self.spare.try_recv().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(picture);
        match self.frames.try_send((frame.number, copy)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.left_out.slow += 1,
            Err(TrySendError::Disconnected(_)) => self.left_out.ended += 1,
        }
    }

    /// Waits until all frames are written.
    pub fn end(self) -> RecordingEnd {
        drop(self.frames);
        let written = self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        RecordingEnd { written, left_out: self.left_out }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::geometry::{Depth, FrameRate, Geometry, Sampling};
    use crate::receive::track::blank;
    use crate::store::{Content, Store};
    use suiro_units::Time;

    fn frame(number: u64, whole: bool) -> Frame {
        Frame { whole, ..blank(number, Time::ZERO, None) }
    }

    #[test]
    fn a_frame_without_its_image_is_a_gap() {
        let geometry = Geometry::new((64, 4), Sampling::YCbCr422, Depth::Ten, FrameRate::P59_94);
        let header = Header::new(geometry.unwrap(), Content::Picture);
        let picture = vec![7; header.geometry.frame_bytes()];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stream-0.frames");
        let mut recording = Recording::create(&path, header, false, |_| {}).unwrap();
        recording.frame(&frame(1000, true), &picture);
        recording.frame(&frame(1001, true), &[]);
        recording.frame(&frame(1002, true), &picture);
        let RecordingEnd { written, left_out } = recording.end();
        let written = written.unwrap();
        assert_eq!((written.frames, written.missing), (3, 1));
        assert_eq!(left_out, LeftOut { incomplete: 1, ..LeftOut::default() });
    }

    #[test]
    fn a_recording_that_ends_early_reports_at_once_and_keeps_its_frames() {
        let geometry = Geometry::new((64, 4), Sampling::YCbCr422, Depth::Ten, FrameRate::P59_94);
        let header = Header::new(geometry.unwrap(), Content::Picture);
        let picture = vec![7; header.geometry.frame_bytes()];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stream-0.frames");
        let (tell, told) = channel();
        let failed = move |error: &Error| tell.send(error.to_string()).unwrap();
        let mut recording = Recording::create(&path, header, false, failed).unwrap();
        recording.frame(&frame(1000, true), &picture);
        recording.frame(&frame(1001, false), &picture);
        recording.frame(&frame(1002, true), &picture);
        // A sender that restarted with a clock that is hours behind.
        recording.frame(&frame(5, true), &picture);
        let error = told.recv().unwrap();
        assert!(error.contains("frame 5 cannot follow frame 1002"), "{error}");
        recording.frame(&frame(6, true), &picture);
        let RecordingEnd { written, left_out } = recording.end();
        assert!(matches!(written, Err(Error::Jump { frames: 3, .. })), "{written:?}");
        assert_eq!(left_out, LeftOut { incomplete: 1, slow: 0, ended: 1 });
        let store = Store::open(&path).unwrap();
        assert_eq!((store.header().first, store.header().frames), (1000, 3));
        let again = Recording::create(&path, header, false, |_| {}).unwrap_err();
        assert!(again.to_string().contains("exists"), "{again}");
    }
}
