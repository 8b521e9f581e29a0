//! A fragmented file, read fragment by fragment: it may be larger than memory.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::fragment::{Fragment, fragments};
use super::init::{Init, init};
use crate::MediaError;

/// Largest box that is read into memory.
const BOX_MAX: u64 = 512 << 20;

/// A fragmented file of one track that is being read.
pub(crate) struct Stream {
    path: PathBuf,
    input: BufReader<File>,
    /// The initialisation segment's bytes.
    pub header: Vec<u8>,
    /// What they say.
    pub init: Init,
    /// The first box of the next fragment.
    next: Option<Vec<u8>>,
}

impl Stream {
    /// Opens a file and reads its initialisation segment.
    pub fn open(path: &Path) -> Result<Self, MediaError> {
        let file = suiro_outside::file::open(path).map_err(MediaError::io("opening", path))?;
        let mut input = BufReader::new(file);
        let mut header = Vec::new();
        let next = loop {
            match read_box(&mut input, path)? {
                Some(found) if kind(&found) != b"moof" => header.extend(found),
                end_or_fragment => break end_or_fragment,
            }
        };
        let init = init(&header).map_err(|error| MediaError::damaged(path, error))?;
        Ok(Self { path: path.to_owned(), input, header, init, next })
    }

    /// The next fragment, and the bytes that its samples lie in; `None` after the last.
    pub fn next(&mut self) -> Result<Option<(Fragment, Vec<u8>)>, MediaError> {
        let Some(mut bytes) = self.next.take() else { return Ok(None) };
        loop {
            match read_box(&mut self.input, &self.path)? {
                Some(found) if kind(&found) != b"moof" => bytes.extend(found),
                end_or_fragment => {
                    self.next = end_or_fragment;
                    break;
                }
            }
        }
        let damaged = |error| MediaError::damaged(&self.path, error);
        let found = fragments(&bytes, &self.init).map_err(damaged)?;
        Ok(found.into_iter().next().map(|fragment| (fragment, bytes)))
    }
}

fn kind(found: &[u8]) -> &[u8] {
    &found[4..8]
}

/// Reads a whole box with its header; `None` at the end of the file.
fn read_box(input: &mut BufReader<File>, path: &Path) -> Result<Option<Vec<u8>>, MediaError> {
    let failed = MediaError::io("reading", path);
    let mut found = Vec::new();
    let read = input.by_ref().take(8).read_to_end(&mut found).map_err(failed)?;
    if read == 0 {
        return Ok(None);
    }
    let damaged = |message: String| MediaError::damaged(path, message);
    let header =
        found.first_chunk::<8>().ok_or_else(|| damaged("a box header cut short".into()))?;
    let mut size = u64::from(u32::from_be_bytes([header[0], header[1], header[2], header[3]]));
    if size == 1 {
        let mut large = [0; 8];
        input.read_exact(&mut large).map_err(MediaError::io("reading", path))?;
        found.extend(large);
        size = u64::from_be_bytes(large);
    }
    let rest = size.checked_sub(found.len() as u64).filter(|_| size <= BOX_MAX);
    let rest = rest.ok_or_else(|| damaged(format!("a box of {size} bytes")))?;
    let read = input
        .by_ref()
        .take(rest)
        .read_to_end(&mut found)
        .map_err(MediaError::io("reading", path))?;
    if (read as u64) < rest {
        return Err(damaged(format!("cut: {} bytes of a box are missing", rest - read as u64)));
    }
    Ok(Some(found))
}
