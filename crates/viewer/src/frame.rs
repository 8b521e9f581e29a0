//! What arrives, and what became of it.

use suiro_units::Time;

/// Most numbers between a frame and the next one to be decided: half an hour at 30 frames a second.
pub const GAP_MAX: u64 = 1 << 16;

/// A frame, as a transport hands it over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Its place in the order of display: the source frame's number. The source may leave numbers
    /// out.
    pub number: u64,
    /// When it was captured, on any clock that runs as fast as the viewer's.
    pub captured: Time,
    /// The frame without which it cannot be decoded; of several, the last. `None`: a key frame.
    pub references: Option<u64>,
    /// What of it arrived. Of one that is not whole, no other part is awaited.
    pub parts: Parts,
}

/// What of a frame arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// All.
    All,
    /// Not all, but a decoder can make a frame of it that conceals what is missing.
    Some,
    /// Too little for a frame.
    TooFew,
}

/// What became of a frame. Every frame, from the first received to the last, has one outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Its number.
    pub frame: u64,
    /// When it was captured; `None` if nothing of it came.
    pub captured: Option<Time>,
    /// When it was received; `None` if nothing of it came.
    pub received: Option<Time>,
    /// What became of it.
    pub fate: Fate,
    /// When that was decided: of a displayed frame, its display time. Never decreases.
    pub at: Time,
    /// Whether it was decoded although parts were missing, of it or of what it refers to.
    pub damaged: bool,
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It was on the screen.
    Displayed,
    /// It was decoded and not displayed: too late, or another one was due as well; or the viewing
    /// ended.
    Skipped,
    /// It was incomplete, or what it refers to had not been decoded when its time, and that of
    /// waiting, was over.
    Undecodable,
    /// Nothing of it came in time: lost, or never sent.
    Missing,
}

impl Outcome {
    /// When it was displayed; `None` if never.
    pub fn displayed(&self) -> Option<Time> {
        (self.fate == Fate::Displayed).then_some(self.at)
    }

    /// Whether it was decoded.
    pub fn decodable(&self) -> bool {
        matches!(self.fate, Fate::Displayed | Fate::Skipped)
    }
}

/// Why a frame was not taken. What was decided before stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is here already.
    #[error("frame {0} arrived twice")]
    Duplicate(u64),
    /// It came after its [`Outcome`].
    #[error("frame {0} arrived after it was given up or shown")]
    TooLate(u64),
    /// It refers to itself or to a later one, so its transport is in error.
    #[error("frame {number} refers to frame {references}, which is not before it")]
    Reference {
        /// The frame.
        number: u64,
        /// What it refers to.
        references: u64,
    },
    /// It is too far from what the viewer knows to be of the same stream.
    #[error("frame {number} is more than {} frames from frame {expected}", GAP_MAX)]
    FarAway {
        /// The frame.
        number: u64,
        /// The next one to be decided.
        expected: u64,
    },
}
