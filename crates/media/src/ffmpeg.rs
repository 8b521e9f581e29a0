//! The one ffmpeg: where it is, what it can do, how it is run.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::thread::JoinHandle;

use suiro_units::Duration;

use crate::child::{self, Guarded};
use crate::{MediaError, cache, program};

/// An ffmpeg that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ffmpeg {
    path: PathBuf,
    version: String,
}

/// What an ffmpeg may have been built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// The encoder of all H.264 ladders.
    Libx264,
    /// The encoder of sound.
    Aac,
    /// The filter that measures quality as a viewer sees it.
    Libvmaf,
    /// The muxer that publishes over WebRTC (WHIP).
    Whip,
}

impl Feature {
    /// All features.
    pub const ALL: [Self; 4] = [Self::Libx264, Self::Aac, Self::Libvmaf, Self::Whip];

    /// Its name, as ffmpeg has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Libx264 => "libx264",
            Self::Aac => "aac",
            Self::Libvmaf => "libvmaf",
            Self::Whip => "whip",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Libx264 | Self::Aac => "encoder",
            Self::Libvmaf => "filter",
            Self::Whip => "muxer",
        }
    }
}

impl Ffmpeg {
    /// Finds ffmpeg: `SUIRO_FFMPEG`; else the static build that was installed with this program, by
    /// pip, or that `make setup` put into the cache; else the one in `PATH`.
    ///
    /// # Errors
    /// [`MediaError::NoFfmpeg`] if there is none, or the first of these that exists does not run.
    pub fn locate() -> Result<Self, MediaError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::current_exe().ok();
        match first(std::env::var_os("SUIRO_FFMPEG"), program.as_deref(), &cache::folder(), &path) {
            Some(found) => Self::at(&found),
            None => {
                let because = "not in SUIRO_FFMPEG, the cache or PATH".into();
                Err(MediaError::NoFfmpeg { because })
            }
        }
    }

    /// The ffmpeg at `path`.
    ///
    /// # Errors
    /// [`MediaError::NoFfmpeg`] if it does not print its version.
    pub fn at(path: &Path) -> Result<Self, MediaError> {
        let failed = |because: String| MediaError::NoFfmpeg {
            because: format!("{} {because}", path.display()),
        };
        // It will run in other folders; a bare name is looked up in PATH.
        let is_bare = path.components().count() == 1;
        let path = &if is_bare { path.to_owned() } else { absolute(path) };
        let output = child::command(path).arg("-version").output();
        let output = output.map_err(|error| failed(format!("does not run: {error}")))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.strip_prefix("ffmpeg version ").and_then(|rest| rest.split(' ').next());
        let version = version.ok_or_else(|| failed("prints no version".into()))?.to_owned();
        Ok(Self { path: path.to_owned(), version })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its version, such as `8.0.1` or `n9.0.2-17-g2a571b6068`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether it was built with a feature.
    pub fn has(&self, feature: Feature) -> bool {
        let question = format!("{}={}", feature.kind(), feature.name());
        let told = child::command(&self.path).args(["-hide_banner", "-h", &question]).output();
        let answer = format!("{} {}", feature.kind(), feature.name());
        told.is_ok_and(|told| {
            let told = String::from_utf8_lossy(&told.stdout).to_lowercase();
            told.trim_start().starts_with(&answer)
        })
    }

    /// Whether a file has sound.
    pub(crate) fn has_sound(&self, file: &OsStr) -> bool {
        let mut command = child::command(&self.path);
        command.args(["-v", "quiet", "-nostdin", "-i"]).arg(file);
        command.args(["-map", "0:a:0", "-c", "copy", "-t", "0", "-f", "null", "-"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// Runs ffmpeg in `folder`. `progress` receives how much of its output is done, in its time.
    ///
    /// # Errors
    /// [`MediaError::Ffmpeg`] with the last lines of what it printed.
    pub(crate) fn run(
        &self,
        arguments: &[OsString],
        folder: &Path,
        progress: &mut dyn FnMut(Duration),
    ) -> Result<(), MediaError> {
        let told: Vec<_> = ["-progress", "pipe:1"].into_iter().map(OsString::from).collect();
        let arguments = [&told, arguments].concat();
        let mut running = self.start(&arguments, folder, Stdio::null(), Stdio::piped())?;
        let stdout = running.stdout().expect("stdout is piped");
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if let Some(done) = out_time(&line) {
                progress(done);
            }
        }
        running.wait()
    }

    /// Starts ffmpeg in `folder`.
    pub(crate) fn start(
        &self,
        arguments: &[OsString],
        folder: &Path,
        stdin: Stdio,
        stdout: Stdio,
    ) -> Result<Running, MediaError> {
        let mut command = child::command(&self.path);
        command.args(["-hide_banner", "-v", "error", "-nostdin", "-y"]);
        command.args(arguments).current_dir(folder);
        command.stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        let words = child::words(&command);
        let spawned = command.spawn().map_err(MediaError::io("running", &self.path))?;
        let mut child = Guarded(spawned);
        let stderr = child.0.stderr.take().expect("stderr is piped");
        let told = Some(std::thread::spawn(move || child::last_lines(stderr)));
        Ok(Running { child, words, told })
    }
}

/// An ffmpeg at work; killed if it is dropped.
pub(crate) struct Running {
    child: Guarded,
    words: String,
    told: Option<JoinHandle<String>>,
}

impl Running {
    /// Its standard input, once, if that is piped.
    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.0.stdin.take()
    }

    /// Its standard output, once, if that is piped.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.0.stdout.take()
    }

    /// Waits until it ends.
    ///
    /// # Errors
    /// [`MediaError::Ffmpeg`] with the last lines of what it printed; only the first call has them.
    pub fn wait(&mut self) -> Result<(), MediaError> {
        let status = self.child.0.wait();
        let status = status.map_err(MediaError::io("waiting for", Path::new("ffmpeg")))?;
        let told = self.told.take().map(JoinHandle::join).transpose();
        let told = told.expect("reading what ffmpeg prints does not panic").unwrap_or_default();
        if status.success() {
            Ok(())
        } else {
            Err(MediaError::Ffmpeg { command: self.words.clone(), status, told })
        }
    }
}

/// The time in a line of `-progress`; it is `N/A` before the first output.
fn out_time(line: &str) -> Option<Duration> {
    line.strip_prefix("out_time_us=")?.trim().parse().ok().map(Duration::from_micros)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn first(
    chosen: Option<OsString>,
    program: Option<&Path>,
    cache: &Path,
    path: &OsStr,
) -> Option<PathBuf> {
    if let Some(chosen) = chosen.filter(|chosen| !chosen.is_empty()) {
        return Some(chosen.into());
    }
    // PREFIX/bin/suiro of an environment of Python.
    let own = program.and_then(|program| program.parent()?.parent()).and_then(installed);
    let cached = || installed(&cache.join("ffmpeg-venv"));
    own.or_else(cached).or_else(|| program::among(path, OsStr::new("ffmpeg")))
}

/// In the environment that PyPI's `imageio-ffmpeg` was installed into.
fn installed(environment: &Path) -> Option<PathBuf> {
    let python = entry(&environment.join("lib"), "python3")?;
    entry(&python.join("site-packages/imageio_ffmpeg/binaries"), "ffmpeg-linux-")
}

/// The last of a folder's entries, by name, that begins with `prefix`.
fn entry(folder: &Path, prefix: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    named.map(|entry| entry.path()).max()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_chosen_one_then_the_cache_then_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let make = |path: &str| {
            let file = folder.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            file
        };
        let find = |chosen: Option<&str>| {
            let path = folder.path().join("bin");
            let program = folder.path().join("venv/bin/suiro");
            let cache = folder.path().join("cache");
            first(chosen.map(Into::into), Some(&program), &cache, path.as_os_str())
        };
        assert_eq!(find(None), None);
        let in_path = make("bin/ffmpeg");
        assert_eq!(find(None), Some(in_path));
        let below = "cache/ffmpeg-venv/lib/python3.11/site-packages/imageio_ffmpeg/binaries";
        let cached = make(&format!("{below}/ffmpeg-linux-x86_64-v8.0"));
        assert_eq!(find(None), Some(cached));
        let beside =
            "venv/lib/python3.13/site-packages/imageio_ffmpeg/binaries/ffmpeg-linux-x86_64-v8.0";
        let beside = make(beside);
        assert_eq!(find(None), Some(beside));
        assert_eq!(find(Some("/else/ffmpeg")), Some("/else/ffmpeg".into()));
    }

    #[test]
    fn progress_lines() {
        assert_eq!(out_time("out_time_us=1500000"), Some(Duration::from_millis(1500)));
        assert_eq!(out_time("out_time_us=N/A"), None);
        assert_eq!(out_time("out_time_us=-21333"), None);
        assert_eq!(out_time("frame=3"), None);
    }

    #[test]
    fn what_is_not_ffmpeg_is_refused() {
        let error = Ffmpeg::at(Path::new("/bin/true")).unwrap_err().to_string();
        assert!(error.contains("/bin/true prints no version\nhint: "), "{error}");
        let error = Ffmpeg::at(Path::new("/no/such")).unwrap_err().to_string();
        assert!(error.contains("/no/such does not run"), "{error}");
    }
}
