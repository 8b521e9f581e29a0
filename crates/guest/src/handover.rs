//! The instructions for a guest: a file that its init reads, `guest.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where a guest has the folders of its host. They are at the same place in every guest, so that nothing in a guest depends
/// on where they are on the host.
pub const ROOM: &str = "/run/suiro";
/// The name below [`ROOM`] of suiro's cache folder, which is `suiro` below `XDG_CACHE_HOME`.
pub const CACHE: &str = "xdg/suiro";

/// The path on the host of a file in the cache, of which a guest has the path. `cache` is the host's cache folder.
pub fn on_host(path: &Path, cache: &Path) -> PathBuf {
    let below = path.strip_prefix(Path::new(ROOM).join(CACHE));
    below.map_or_else(|_| path.to_owned(), |below| cache.join(below))
}

/// The instructions for a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handover {
    /// Folders of the host that the guest gets below [`ROOM`].
    pub mounts: Vec<Mount>,
    /// The program, as a path in the guest.
    pub program: PathBuf,
    /// Its arguments, without its name.
    pub arguments: Vec<String>,
    /// Its environment, and nothing else.
    pub environment: BTreeMap<String, String>,
    /// Its working folder in the guest.
    pub working: PathBuf,
}

/// A folder of the host in a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Its path on the host.
    pub host: PathBuf,
    /// Its name below [`ROOM`].
    pub name: String,
    /// Whether the guest may write there.
    pub writable: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_guest_names_is_found_on_the_host() {
        let found = |path: &str| on_host(Path::new(path), Path::new("/home/me/.cache/suiro"));
        assert_eq!(
            found("/run/suiro/xdg/suiro/packages/1"),
            Path::new("/home/me/.cache/suiro/packages/1")
        );
        assert_eq!(found("/elsewhere/1"), Path::new("/elsewhere/1"));
    }
}
