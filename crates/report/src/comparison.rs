//! What `suiro compare` left in a results folder, put into the page: the page is one file.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use suiro_outside::{beneath, file};
use suiro_record::folder::COMPARISON;

use crate::page::PageComparison;

/// A larger video would make a page that browsers open slowly; the page has only its name.
const VIDEO_BYTES_MAX: u64 = 32 << 20;
/// A larger poster is none of ours.
const POSTER_BYTES_MAX: u64 = 8 << 20;

/// The comparison in `root`, if there is one.
pub(crate) fn find(root: &Path) -> Option<PageComparison> {
    let video = Path::new(COMPARISON);
    beneath::open(root, video).ok()?;
    Some(PageComparison {
        file: COMPARISON.to_owned(),
        poster: data_url(root, &video.with_extension("png"), "image/png", POSTER_BYTES_MAX),
        video: data_url(root, video, "video/mp4", VIDEO_BYTES_MAX),
    })
}

/// A file of a folder as an RFC 2397 URL; `None` if it is too large, a link, or cannot be read.
fn data_url(root: &Path, name: &Path, kind: &str, bytes_max: u64) -> Option<String> {
    let bytes = file::bytes(beneath::open(root, name).ok()?, bytes_max).ok()?;
    Some(format!("data:{kind};base64,{}", STANDARD.encode(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_is_embedded_and_its_absence_is_no_fault() {
        let dir = tempfile::tempdir().unwrap();
        assert!(find(dir.path()).is_none());
        std::fs::write(dir.path().join("compare.mp4"), b"film").unwrap();
        let found = find(dir.path()).unwrap();
        assert_eq!(found.video.as_deref(), Some("data:video/mp4;base64,ZmlsbQ=="));
        assert_eq!(found.poster, None);
    }

    #[test]
    fn what_is_too_large_is_only_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x.png"), [0; 100]).unwrap();
        let url = |most| data_url(dir.path(), Path::new("x.png"), "image/png", most);
        assert_eq!(url(99), None);
        assert!(url(100).is_some());
    }
}
