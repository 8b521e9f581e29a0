//! What can go wrong while media is prepared or read.

use std::path::{Path, PathBuf};

use suiro_strict::Refusal;

use crate::stamp::Unfit;

/// Why media could not be prepared or read. A second line, where there is one, says what to try.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// The specification cannot be met by anything.
    #[error(transparent)]
    Spec(#[from] Refusal),
    /// The file system refused.
    #[error("{doing}: {cause}")]
    Io {
        /// What was being done, to what.
        doing: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// There is no ffmpeg that can be run.
    #[error(
        "no ffmpeg: {because}\nhint: run `make setup`, install ffmpeg, or set SUIRO_FFMPEG to one"
    )]
    NoFfmpeg {
        /// Where it was looked for, or why what was found does not run.
        because: String,
    },
    /// ffmpeg failed.
    #[error("ffmpeg failed ({status}): {command}\n{told}")]
    Ffmpeg {
        /// The command line, ready to be repeated in a shell.
        command: String,
        /// Its exit status.
        status: std::process::ExitStatus,
        /// The last of what it wrote on stderr.
        told: String,
    },
    /// The source cannot be had, or there is too little of it.
    #[error("source `{source_name}`: {message}\nhint: {hint}")]
    Source {
        /// The source as the specification names it.
        source_name: String,
        /// What is wrong.
        message: String,
        /// What to try.
        hint: String,
    },
    /// A frame cannot be stamped.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// The disk is full.
    #[error("writing {}: no space left\nhint: free some space; the records are complete", file.display())]
    DiskFull {
        /// What was being written.
        file: PathBuf,
    },
    /// A screen on which nothing was to be seen.
    #[error("nothing was shown: there is no frame to look at or to measure")]
    NothingShown,
    /// This ffmpeg cannot measure VMAF.
    #[error(
        "ffmpeg {version} was built without libvmaf\nhint: run `make setup`, which fetches one with it"
    )]
    NoVmaf {
        /// Its version.
        version: String,
    },
    /// The output of libvmaf is not one score for each frame.
    #[error("the log of libvmaf: {message}")]
    Vmaf {
        /// What is wrong with it.
        message: String,
    },
    /// A screen with more ticks than are handled.
    #[error("{ticks} frames on screen, more than the {most} that are handled")]
    TooLong {
        /// Its ticks.
        ticks: usize,
        /// How many may be.
        most: usize,
    },
    /// A frame of a rung that is not there.
    #[error("frame {frame} is of rung {rung}, but the package has {rungs}")]
    NoRung {
        /// The frame.
        frame: u64,
        /// The rung it should be of.
        rung: usize,
        /// Rungs of the package.
        rungs: usize,
    },
    /// What a viewer kept of a stream is not what its records say.
    #[error("{}: {message}", file.display())]
    Stream {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// A file of a package is missing, cut or of another version.
    #[error("{}: {message}\nhint: remove that folder; the next run prepares it again", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        message: String,
    },
}

impl MediaError {
    /// Wraps what the system said; `doing` is only written out on failure.
    pub(crate) fn io<'a>(
        doing: &'a str,
        file: &'a Path,
    ) -> impl FnOnce(std::io::Error) -> Self + 'a {
        move |cause| Self::Io { doing: format!("{doing} {}", file.display()), cause }
    }

    /// [`Self::DiskFull`], if that is what ffmpeg printed: it has no exit status of its own for it.
    pub(crate) fn of_full_disk(self, file: &Path) -> Self {
        match self {
            Self::Ffmpeg { told, .. } if told.contains("No space left on device") => {
                Self::DiskFull { file: file.to_owned() }
            }
            other => other,
        }
    }

    pub(crate) fn damaged(file: &Path, message: impl std::fmt::Display) -> Self {
        Self::Damaged { file: file.to_owned(), message: message.to_string() }
    }
}

/// Why bytes are not the media they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: {message}")]
pub struct ParseError {
    /// Where in the bytes handed over.
    pub at: usize,
    /// What is wrong there.
    pub message: String,
}

impl ParseError {
    pub(crate) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }

    /// The same error of bytes that begin `base` bytes into larger ones.
    pub(crate) fn within(mut self, base: usize) -> Self {
        self.at += base;
        self
    }
}
