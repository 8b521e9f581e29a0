//! Which players this host has, where, and in which version.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use suiro_browser::Missing;
use suiro_browser::installed::{CHROMIUM, first_of, version};
use suiro_outside::file;
use suiro_scenario::Program;

/// Largest library that is looked at.
pub(crate) const LIBRARY_BYTES_MAX: u64 = 16 << 20;

/// A player that is not ours.
#[derive(Debug)]
struct Known {
    program: Program,
    /// Its name for people, and its key in the trial's `versions`.
    name: &'static str,
    /// The first of these that is in PATH.
    commands: &'static [&'static str],
    library: Option<&'static Library>,
    remedy: &'static str,
}

/// A JavaScript player in the cache, fetched at set-up and never part of suiro.
#[derive(Debug)]
pub struct Library {
    /// The file in the folder `players` of suiro's cache.
    pub file: &'static str,
    /// Its version.
    pub version: &'static str,
    /// SHA-256 of the file, which is checked whenever it is used.
    sha256: &'static str,
}

static DASH_JS: Library = Library {
    file: "dash.js",
    version: "5.2.1",
    sha256: "3a22b1f4576ab294f41e56f156cec7972a5f83edda379416778293ff22d2eb49",
};
/// Of 2022, before its L2A-LL was fixed (dash.js, pull request 4195).
static DASH_JS_45: Library = Library {
    file: "dash.js-4.5",
    version: "4.5.0",
    sha256: "69df2926793f31fb7d749a06fc8fd1c1b80dab80a72318e5d119f61360d1c252",
};
static HLS_JS: Library = Library {
    file: "hls.js",
    version: "1.7.4",
    sha256: "cfc70cc9e9fc63d071919e087670abc760c8fd1bc889b88588026e4d22193bbe",
};
/// The first with low latency, which measures throughput from the request on (hls.js, issues 2861 and 3563).
static HLS_JS_10: Library = Library {
    file: "hls.js-1.0",
    version: "1.0.0",
    sha256: "c8f57525a3c0464d454ec50de3a021742c8a57e0ffc2a9a79eb6ee2e647892f2",
};
static SHAKA: Library = Library {
    file: "shaka",
    version: "5.2.12",
    sha256: "b22dfdba631104c48a654cb623b08b0f79e2d52c83c0e9b4b7cff54730b55894",
};

static KNOWN: [Known; 7] = [
    Known {
        program: Program::Vlc,
        name: "vlc",
        commands: &["vlc"],
        library: None,
        remedy: "make players, or sudo apt-get install vlc-bin vlc-plugin-base",
    },
    Known {
        program: Program::Gstreamer,
        name: "gstreamer",
        commands: &["gst-launch-1.0"],
        library: None,
        remedy: "make players, or sudo apt-get install gstreamer1.0-tools gstreamer1.0-plugins-base \
                 gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-libav",
    },
    Known {
        program: Program::Dashjs,
        name: "dash.js",
        commands: CHROMIUM,
        library: Some(&DASH_JS),
        remedy: "make players (Chromium by apt, dash.js by npm)",
    },
    Known {
        program: Program::Dashjs45,
        name: "dash.js 4.5",
        commands: CHROMIUM,
        library: Some(&DASH_JS_45),
        remedy: "make players (Chromium by apt, dash.js by npm)",
    },
    Known {
        program: Program::Hlsjs,
        name: "hls.js",
        commands: CHROMIUM,
        library: Some(&HLS_JS),
        remedy: "make players (Chromium by apt, hls.js by npm)",
    },
    Known {
        program: Program::Hlsjs10,
        name: "hls.js 1.0",
        commands: CHROMIUM,
        library: Some(&HLS_JS_10),
        remedy: "make players (Chromium by apt, hls.js by npm)",
    },
    Known {
        program: Program::Shaka,
        name: "Shaka Player",
        commands: CHROMIUM,
        library: Some(&SHAKA),
        remedy: "make players (Chromium by apt, Shaka Player by npm)",
    },
];

/// Where a player is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The program.
    pub command: PathBuf,
    /// The JavaScript library that the program is to run; `None` of programs that play themselves.
    pub library: Option<PathBuf>,
}

/// A player that is here, and its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Where it is.
    pub at: Located,
    /// Versions by program, as the trial records them.
    pub versions: BTreeMap<String, String>,
}

impl std::fmt::Display for Installed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let texts: Vec<String> = self.versions.iter().map(|(k, v)| format!("{k} {v}")).collect();
        f.write_str(&texts.join(", "))
    }
}

/// The players of others that a scenario can name.
pub fn programs() -> impl Iterator<Item = (Program, &'static str)> {
    KNOWN.iter().map(|known| (known.program, known.name))
}

/// Where the player is; `None` of our own.
///
/// # Errors
/// [`Missing`] names what is missing and how to fix it.
pub fn locate(program: Program) -> Option<Result<Located, Missing>> {
    let known = KNOWN.iter().find(|known| known.program == program)?;
    Some(known.locate(&suiro_media::cache::folder()))
}

/// The command that installs the program `command` of a player; `None` if no player has it.
pub fn remedy(command: &str) -> Option<&'static str> {
    let known = KNOWN.iter().find(|known| known.commands.contains(&command))?;
    Some(known.remedy)
}

impl Known {
    fn locate(&self, cache: &Path) -> Result<Located, Missing> {
        let missing = |reason: String| Missing { name: self.name, reason, remedy: self.remedy };
        let command = first_of(self.commands).map_err(missing)?;
        let library = match self.library {
            None => None,
            Some(library) => Some(library.locate(cache).map_err(missing)?),
        };
        Ok(Located { command, library })
    }
}

impl Library {
    fn locate(&self, cache: &Path) -> Result<PathBuf, String> {
        let path = cache.join("players").join(self.file);
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let bytes = file::read(&path, LIBRARY_BYTES_MAX).map_err(|error| failed(&error))?;
        let sum: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
        if sum != self.sha256 {
            let version = self.version;
            return Err(failed(&format!("has the SHA-256 {sum}, not that of version {version}")));
        }
        Ok(path)
    }
}

impl Installed {
    /// The player, once its program has printed its version.
    pub(crate) async fn find(program: Program) -> Result<Self, Missing> {
        let known = KNOWN.iter().find(|known| known.program == program);
        let known = known.expect("our own player does not come here");
        let at = known.locate(&suiro_media::cache::folder())?;
        let version = version(&at.command).await.unwrap_or_else(|| "unknown".to_owned());
        let mut versions = BTreeMap::new();
        match known.library {
            None => versions.insert(known.name.to_owned(), version),
            Some(library) => {
                versions.insert("chromium".to_owned(), version);
                versions.insert(known.name.to_owned(), library.version.to_owned())
            }
        };
        Ok(Self { at, versions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_absent_or_another_is_told_with_the_remedy() {
        let cache = tempfile::tempdir().unwrap();
        let path = cache.path().join("players/dash.js");
        let reason = DASH_JS.locate(cache.path()).unwrap_err();
        assert!(reason.contains("players/dash.js: No such file"), "{reason}");
        std::fs::create_dir(cache.path().join("players")).unwrap();
        std::fs::write(&path, "alert(1)").unwrap();
        let reason = DASH_JS.locate(cache.path()).unwrap_err();
        assert!(reason.contains("not that of version 5.2.1"), "{reason}");
    }
}
