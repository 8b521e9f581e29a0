//! Why there is no record of a viewing.

use std::io;
use std::path::{Path, PathBuf};

use suiro_media::sound::SoundError;
use suiro_record::RecordError;

/// Why a viewing could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The table could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The sound could not be coded.
    #[error(transparent)]
    Sound(#[from] SoundError),
    /// What was received could not be saved.
    #[error("saving the received video to {path}: {cause}")]
    Save {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
}

impl LogError {
    pub(crate) fn save(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Save { path, cause }
    }
}
