//! A real-time source in a thread of its own, on a real clock: the one module here that waits.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use suiro_units::{BitRate, Duration, Time};

use super::{Captured, LiveError, LiveSource};

/// A running source. Dropping it ends it after the frame at hand.
pub struct Camera {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<Result<(), LiveError>>>,
}

/// Where wishes lie until the camera takes them: of each kind, the last.
#[derive(Default)]
struct Desk {
    wishes: Mutex<Wishes>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Wishes {
    bitrate: Option<BitRate>,
    fps: Option<u32>,
    size: Option<(u32, u32)>,
    key_frame: bool,
    stop: bool,
}

impl Camera {
    /// Runs `source`. `clock` is the clock of its times. `sink` receives every frame when it is
    /// encoded, on the camera's thread: if it takes long there, frames are missed.
    ///
    /// # Errors
    /// That of the operating system, if no thread can be started.
    pub fn start(
        source: LiveSource,
        clock: impl Fn() -> Time + Send + 'static,
        sink: impl FnMut(Captured) + Send + 'static,
    ) -> std::io::Result<Self> {
        let desk = Arc::new(Desk::default());
        let builder = std::thread::Builder::new().name("camera".into());
        let theirs = Arc::clone(&desk);
        let thread = builder.spawn(move || run(source, clock, sink, &theirs))?;
        Ok(Self { desk, thread: Some(thread) })
    }

    /// The bit rate from the next frame on; out of range, it ends the source.
    pub fn set_bitrate(&self, bitrate: BitRate) {
        self.desk.wish(|wishes| wishes.bitrate = Some(bitrate));
    }

    /// The frame rate from the next frame on; out of range, it ends the source.
    pub fn set_fps(&self, fps: u32) {
        self.desk.wish(|wishes| wishes.fps = Some(fps));
    }

    /// The size from the next frame on, which is a key frame; an invalid size ends the source ([`super::check_size`]).
    pub fn set_size(&self, width: u32, height: u32) {
        self.desk.wish(|wishes| wishes.size = Some((width, height)));
    }

    /// Makes the next frame a key frame.
    pub fn request_key_frame(&self) {
        self.desk.wish(|wishes| wishes.key_frame = true);
    }

    /// Ends it, after the frame at hand.
    ///
    /// # Errors
    /// What ended it before.
    pub fn stop(mut self) -> Result<(), LiveError> {
        self.desk.wish(|wishes| wishes.stop = true);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

impl Drop for Camera {
    fn drop(&mut self) {
        self.desk.wish(|wishes| wishes.stop = true);
        if let Some(thread) = self.thread.take() {
            // Who wants to know how it ended, calls `stop`.
            let _ = thread.join();
        }
    }
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Wishes> {
        // Nothing panics between a change and the next.
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wish(&self, change: impl FnOnce(&mut Wishes)) {
        change(&mut self.lock());
        self.changed.notify_one();
    }

    /// Takes the wishes; waits for some, but not longer than `most`.
    fn take(&self, most: Duration) -> Wishes {
        let mut wishes = self.lock();
        if *wishes == Wishes::default() {
            let waited = self.changed.wait_timeout(wishes, most.into());
            wishes = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::take(&mut *wishes)
    }
}

/// Captures until it is to stop.
fn run(
    mut source: LiveSource,
    clock: impl Fn() -> Time,
    mut sink: impl FnMut(Captured),
    desk: &Desk,
) -> Result<(), LiveError> {
    loop {
        let wishes = desk.take(source.next().saturating_since(clock()));
        if wishes.stop {
            return Ok(());
        }
        if let Some(bitrate) = wishes.bitrate {
            source.set_bitrate(bitrate)?;
        }
        if let Some(fps) = wishes.fps {
            source.set_fps(fps)?;
        }
        if let Some((width, height)) = wishes.size {
            source.set_size(width, height)?;
        }
        if wishes.key_frame {
            source.request_key_frame();
        }
        if let Some(captured) = source.capture(clock())? {
            sink(captured);
        }
    }
}
