//! SHA-256 of files: by their content packages and sources are known.

use std::io::Read as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// SHA-256 of a file, in hexadecimal.
pub(crate) fn sha256(path: &Path) -> std::io::Result<String> {
    let mut file = suiro_outside::file::open(path)?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&piece[..read]),
        }
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
