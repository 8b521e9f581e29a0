//! ffmpeg and what it was built with.

use std::path::{Path, PathBuf};

use super::programs::{find, first_line};
use super::{Check, State, machine};

const GROUP: &str = "media";
const MEND: &str = "make setup (installs ffmpeg 8 or later with all of it), or set SUIRO_FFMPEG";

struct Feature {
    name: &'static str,
    purpose: &'static str,
    /// What `ffmpeg -h` is asked for, and how its answer begins if it has that.
    question: &'static str,
    answer: &'static str,
    required: bool,
}

const FEATURES: [Feature; 4] = [
    Feature {
        name: "libx264",
        purpose: "H.264 ladders",
        question: "encoder=libx264",
        answer: "Encoder libx264",
        required: true,
    },
    Feature {
        name: "aac",
        purpose: "sound",
        question: "encoder=aac",
        answer: "Encoder aac",
        required: true,
    },
    Feature {
        name: "libvmaf",
        purpose: "picture quality as a viewer sees it",
        question: "filter=libvmaf",
        answer: "Filter libvmaf",
        required: false,
    },
    Feature {
        name: "WHIP",
        purpose: "publishing over WebRTC",
        question: "muxer=whip",
        answer: "Muxer whip",
        required: false,
    },
];

/// All checks of this module.
pub fn checks() -> Vec<Check> {
    let purpose = "encodes, packages and decodes all media";
    let Some(path) = locate() else {
        let check = Check::ok(GROUP, "ffmpeg", purpose, "not found").required();
        return vec![check.but(State::Missing, MEND)];
    };
    let version = first_line(&path, &["-version"]);
    let found = version.as_deref().unwrap_or("does not run");
    let short = found.split(" Copyright").next().unwrap_or(found);
    let check = Check::ok(GROUP, "ffmpeg", purpose, &format!("{} ({short})", path.display()));
    if version.is_none() {
        return vec![check.required().but(State::Missing, MEND)];
    }
    let features = FEATURES.iter().map(|feature| feature.check(&path));
    std::iter::once(check.required()).chain(features).collect()
}

impl Feature {
    fn check(&self, ffmpeg: &Path) -> Check {
        let told = first_line(ffmpeg, &["-hide_banner", "-h", self.question]);
        let there = told.is_some_and(|line| line.starts_with(self.answer));
        let found = if there { "built in" } else { "this ffmpeg was built without" };
        let mut check = Check::ok(GROUP, self.name, self.purpose, found);
        if self.required {
            check = check.required();
        }
        if there { check } else { check.but(State::Missing, MEND) }
    }
}

/// SUIRO_FFMPEG, else the one that `make setup` installs, else one in PATH.
fn locate() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("SUIRO_FFMPEG") {
        return Some(path.into());
    }
    installed().or_else(|| find("ffmpeg".as_ref()))
}

fn installed() -> Option<PathBuf> {
    let python = first_entry(&machine::cache_folder().join("ffmpeg-venv/lib"), "python")?;
    first_entry(&python.join("site-packages/imageio_ffmpeg/binaries"), "ffmpeg-linux-")
}

fn first_entry(folder: &Path, prefix: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.filter_map(Result::ok);
    entries.map(|entry| entry.path()).find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
    })
}
