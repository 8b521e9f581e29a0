//! Reading the index of a set, and what must be true of it.

use std::path::{Component, Path};

use crate::checksum::sha256;
use crate::quantised::{INDEX_FILE, Picture, Set, Version, parse};
use crate::{MediaError, cache};

/// Version of the index; a set of another one is prepared anew.
pub(super) const INDEX_VERSION: u32 = 2;

/// Largest index that is read.
const INDEX_BYTES_MAX: u64 = 256 << 20;

impl Set {
    /// Reads the index in `folder` and checks it, and size and hash of every file.
    ///
    /// # Errors
    /// [`MediaError::Damaged`], naming the file that is missing, changed or of another version, and what is
    /// wrong with it.
    pub fn load(folder: &Path) -> Result<Self, MediaError> {
        let index = folder.join(INDEX_FILE);
        let damaged = |message: String| MediaError::damaged(&index, message);
        let mut set: Self = cache::read_index(&index, INDEX_BYTES_MAX)?;
        folder.clone_into(&mut set.folder);
        set.check().map_err(damaged)?;
        for version in &set.versions {
            let file = folder.join(&version.file);
            let found = std::fs::metadata(&file);
            let found = found.map_err(|error| MediaError::damaged(&file, error))?.len();
            let told = end(&version.pictures).unwrap_or(0);
            if found != told {
                let message = format!("{found} bytes; expected {told} from the index");
                return Err(MediaError::damaged(&file, message));
            }
            let sum = sha256(&file).map_err(|error| MediaError::damaged(&file, error))?;
            if sum != version.sha256 {
                let message = format!(
                    "its content has the SHA-256 {sum}; expected {} from the index",
                    version.sha256
                );
                return Err(MediaError::damaged(&file, message));
            }
        }
        Ok(set)
    }

    fn check(&self) -> Result<(), String> {
        if self.version != INDEX_VERSION {
            return Err(format!("version {}, not {INDEX_VERSION}", self.version));
        }
        let Some(first) = self.versions.first() else { return Err("no versions".into()) };
        for version in &self.versions {
            let named = |message: String| format!("scale {}: {message}", version.scale);
            version.check().map_err(named)?;
            let (pictures, all) = (version.pictures.len(), first.pictures.len());
            if pictures != all {
                return Err(named(format!("{pictures} frames, but the lowest version has {all}")));
            }
        }
        if !self.versions.is_sorted_by(|a, b| a.rate < b.rate && a.scale > b.scale) {
            return Err("versions that do not rise in bit rate as their scale falls".into());
        }
        Ok(())
    }
}

impl Version {
    fn check(&self) -> Result<(), String> {
        let mut names = Path::new(&self.file).components();
        if !matches!((names.next(), names.next()), (Some(Component::Normal(_)), None)) {
            return Err(format!("{}: not in the set's folder", self.file));
        }
        parse::in_groups(&self.pictures)?;
        let mut next = 0;
        for picture in &self.pictures {
            if picture.offset != next || picture.bytes == 0 {
                return Err(format!("frame {} is out of place", picture.number));
            }
            next += u64::from(picture.bytes);
        }
        Ok(())
    }
}

/// Where the last frame ends.
pub(super) fn end(pictures: &[Picture]) -> Option<u64> {
    pictures.last().and_then(|last| last.offset.checked_add(u64::from(last.bytes)))
}
