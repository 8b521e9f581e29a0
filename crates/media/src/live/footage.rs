//! Raw footage: a source's frames, decoded once and kept in the cache.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_strict::{Bounded, Bounds, Refusal, bounds, bounds_of};
use suiro_units::{Bytes, Duration};

use super::picture::{SIDE_MIN, SIDES_MAX};
use super::{FPS, LiveError, Picture};
use crate::cache::{Lock, Recipe};
use crate::encode;
use crate::source::{Input, Kind};
use crate::spec::{MediaSpec, Source};
use crate::{Ffmpeg, MediaError, Progress};

/// Most bytes of one footage: 43 s of 1080p at 30 frames per second.
pub const BYTES_MAX: Bytes = Bytes::new(4_000_000_000);

/// Version of what is kept; that of another one is made anew.
const VERSION: u32 = 1;

const SIDE: Bounds<u32> = Bounds::new(SIDE_MIN, SIDES_MAX.0);

bounds! { FootageSpec { width: SIDE, height: SIDE, fps: FPS } }

/// The video of a real-time source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<FootageSpec>)]
pub struct FootageSpec {
    /// The video: `bbb` (Big Buck Bunny, 30 s), `synthetic` or a path to any file that ffmpeg
    /// reads.
    pub source: Source,
    /// Width in pixels, even. Frames of another aspect ratio get black borders.
    /// Default: 1280.
    #[serde(default = "width")]
    pub width: u32,
    /// Height in pixels, even. Default: 720.
    #[serde(default = "height")]
    pub height: u32,
    /// Frames per second. Default: 30.
    #[serde(default = "fps")]
    pub fps: u32,
    /// How much of the source is used, from its start; it then repeats. Default: 10 s.
    #[serde(default = "length")]
    pub length: Duration,
    /// Where in `length` the first frame is, at most in its last one. Cameras that begin at different places do not see
    /// the same at the same time, so they do not all need many bits at once, or few. Default: 0 s.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub begin: Duration,
    /// Shows a scene of which little moves, as many cameras do: the frame in the middle of
    /// `length`, and in a fifth of its width and height the source itself. Default: `false`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub still: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
const fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_zero(span: &Duration) -> bool {
    *span == Duration::ZERO
}

const fn width() -> u32 {
    1280
}
const fn height() -> u32 {
    720
}
const fn fps() -> u32 {
    30
}
const fn length() -> Duration {
    Duration::from_secs(10)
}

/// Raw footage that is at hand, and repeats without end.
#[derive(Debug)]
pub struct Footage {
    file: File,
    path: PathBuf,
    width: u32,
    height: u32,
    fps: u32,
    frames: u64,
    /// The frame that is read first.
    first: u64,
}

impl FootageSpec {
    /// `source`, and the default of everything else.
    pub fn new(source: Source) -> Self {
        Self {
            source,
            width: width(),
            height: height(),
            fps: fps(),
            length: length(),
            begin: Duration::ZERO,
            still: false,
        }
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    /// A size, rate or length that cannot be.
    pub fn validate(&self) -> Result<(), Refusal> {
        self.check_bounds()?;
        Picture::new(self.width, self.height)?;
        let bytes = self.frames().saturating_mul(self.frame_bytes());
        if self.frames() == 0 || bytes > BYTES_MAX.get() {
            let most = BYTES_MAX.get() / self.frame_bytes() / u64::from(self.fps);
            let found = format!("{} of frames are {}", self.length, Bytes::new(bytes));
            let expected = format!("a length from one frame to {most} s, or a smaller frame size");
            return Err(Refusal::key("length", found).expected(expected));
        }
        if self.first() >= self.frames() {
            let expected = format!("a place in the {} that are used (`length`)", self.length);
            return Err(Refusal::key("begin", self.begin.to_string()).expected(expected));
        }
        Ok(())
    }

    fn first(&self) -> u64 {
        encode::frames(self.begin, self.fps)
    }

    fn frames(&self) -> u64 {
        encode::frames(self.length, self.fps)
    }

    fn frame_bytes(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height) * 3 / 2
    }

    /// ffmpeg's arguments; its output is the file `out`.
    fn arguments(&self, kind: &Kind, out: &str) -> Vec<OsString> {
        let (width, height, fps) = (self.width, self.height, self.fps);
        let picture = match kind {
            Kind::File(_) => "[0:v:0]setpts=PTS-STARTPTS",
            Kind::Made { video, .. } => video,
        };
        let sized = format!(
            "fps={fps},trim=end_frame={},scale={width}:{height}:flags=bicubic:\
             force_original_aspect_ratio=decrease:force_divisible_by=2,\
             pad={width}:{height}:-1:-1,setsar=1",
            self.frames(),
        );
        let graph = match self.still {
            false => format!("{picture},{sized},format=yuv420p[v]"),
            // Sides of frames in 4:2:0 are even.
            true => {
                let (wide, high) = ((width / 5) & !1, (height / 5) & !1);
                let (left, top) = ((width / 2) & !1, (height / 2) & !1);
                let middle = self.frames() / 2;
                format!(
                    "{picture},{sized},split[all][part];\
                     [all]trim=start_frame={middle}:end_frame={},loop=loop=-1:size=1,\
                     setpts=N/{fps}/TB[back];\
                     [part]scale={wide}:{high}:flags=bicubic[front];\
                     [back][front]overlay={left}:{top}:shortest=1,format=yuv420p[v]",
                    middle + 1,
                )
            }
        };
        let mut arguments = Vec::new();
        if let Kind::File(file) = kind {
            arguments.extend(["-i".into(), file.clone()]);
        }
        let rest = ["-filter_complex", &graph, "-map", "[v]", "-f", "rawvideo", out];
        arguments.extend(rest.map(OsString::from));
        arguments
    }

    /// SHA-256, in part, of everything that bears on the content.
    fn name(&self, ffmpeg: &Ffmpeg, input: &Input) -> String {
        let mut recipe = Recipe::new();
        recipe.add(&VERSION.to_be_bytes());
        recipe.add(ffmpeg.version().as_bytes());
        recipe.add(input.origin.sha256.as_deref().unwrap_or_default().as_bytes());
        let by_content = Kind::File(OsString::new());
        let kind = if input.origin.sha256.is_some() { &by_content } else { &input.kind };
        for argument in self.arguments(kind, "") {
            recipe.add(argument.as_encoded_bytes());
        }
        recipe.name()
    }
}

impl Footage {
    /// Makes the footage in a cache folder, or finds it there.
    ///
    /// # Errors
    /// [`LiveError`]: the specification cannot be met, the source cannot be had, ffmpeg fails, or
    /// the cache cannot be written.
    pub fn prepare(
        ffmpeg: &Ffmpeg,
        spec: &FootageSpec,
        cache: &Path,
        progress: Progress,
    ) -> Result<Self, LiveError> {
        spec.validate()?;
        let media = MediaSpec { fps: Some(spec.fps), ..MediaSpec::new(spec.source.clone()) };
        let input = Input::get(&media, cache, progress)?;
        let folder = cache.join("footage");
        let name = spec.name(ffmpeg, &input);
        let path = folder.join(format!("{name}.yuv"));
        // It gets this name when it is whole, so a cache that cannot be written to serves as well.
        if let Ok(footage) = Self::open(&path, spec) {
            progress(1.0, "prepared before");
            return Ok(footage);
        }
        let _lock = Lock::take(&folder.join(format!("{name}.lock")), || {
            progress(0.0, "waiting for another run that prepares the same footage");
        })?;
        if let Ok(footage) = Self::open(&path, spec) {
            progress(1.0, "prepared before");
            return Ok(footage);
        }
        let new = format!("{name}.new");
        let phase = format!("decoding {}", input.origin.name);
        let made = ffmpeg.run(&spec.arguments(&input.kind, &new), &folder, &mut |done| {
            progress((done / spec.length).min(1.0), &phase);
        });
        let new = folder.join(new);
        if let Err(error) = made {
            // What led here matters more than what may be left.
            let _ = fs::remove_file(&new);
            return Err(error.into());
        }
        fs::rename(&new, &path).map_err(MediaError::io("renaming", &new))?;
        Ok(Self::open(&path, spec)?)
    }

    /// Opens what was made; its length says how many frames the source had.
    fn open(path: &Path, spec: &FootageSpec) -> Result<Self, MediaError> {
        let file = suiro_outside::file::open(path).map_err(MediaError::io("opening", path))?;
        let bytes = file.metadata().map_err(MediaError::io("reading", path))?.len();
        let frames = bytes / spec.frame_bytes();
        if frames == 0 || !bytes.is_multiple_of(spec.frame_bytes()) {
            return Err(MediaError::damaged(path, format!("{bytes} bytes are no whole frames")));
        }
        let (width, height, fps) = (spec.width, spec.height, spec.fps);
        Ok(Self { file, path: path.to_owned(), width, height, fps, frames, first: spec.first() })
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// Frames per second.
    pub fn fps(&self) -> u32 {
        self.fps
    }

    /// Frames until it repeats.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Reads frame `number`, of footage that repeats, into `picture`, which must have its size.
    ///
    /// # Errors
    /// [`LiveError`]: another size, or the file system fails.
    pub fn read(&self, number: u64, picture: &mut Picture) -> Result<(), LiveError> {
        if picture.size() != self.size() {
            return Err(LiveError::OtherSize { found: picture.size(), wanted: self.size() });
        }
        let data = picture.data_mut();
        let at = (number.wrapping_add(self.first) % self.frames) * data.len() as u64;
        let read = self.file.read_exact_at(data, at);
        Ok(read.map_err(MediaError::io("reading", &self.path))?)
    }
}
