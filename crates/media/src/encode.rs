//! What ffmpeg is asked for: the whole ladder and the sound in one run.

use std::ffi::OsString;

use suiro_units::{BitRate, Duration};

use crate::source::Kind;
use crate::spec::{MediaSpec, Rung};

/// Samples per second of the sound: a whole number to every millisecond.
pub(crate) const AUDIO_RATE: u32 = 48_000;

/// File of the sound, in ffmpeg's working directory.
pub(crate) const AUDIO_FILE: &str = "a.mp4";

/// The rungs by rising bit rate, as a package has them.
pub(crate) fn rungs(spec: &MediaSpec) -> Vec<&Rung> {
    let mut rungs: Vec<&Rung> = spec.ladder.iter().collect();
    rungs.sort_by_key(|rung| rung.bitrate);
    rungs
}

/// File of a rung, by its place in [`rungs`].
pub(crate) fn video_file(index: usize) -> String {
    format!("v{index}.mp4")
}

/// Ticks per second of a rung: a thousand for each frame, so that every time is whole.
pub(crate) fn timescale(fps: u32) -> u32 {
    fps * 1000
}

/// Frames in a span of time that has a whole number of them.
pub(crate) fn frames(span: Duration, fps: u32) -> u64 {
    (u128::from(span.as_nanos()) * u128::from(fps) / 1_000_000_000) as u64
}

/// Frames per second of the source: those of the fastest rung.
pub(crate) fn source_fps(spec: &MediaSpec) -> u32 {
    spec.ladder.iter().map(|rung| spec.fps_of(rung)).max().unwrap_or(1)
}

/// ffmpeg's arguments for the source's frames alone, at the pace of the fastest rung and in the
/// size of the tallest.
pub(crate) fn pictures(spec: &MediaSpec, input: &Kind) -> Vec<OsString> {
    let (fps, length) = (source_fps(spec), spec.segment * spec.segments());
    let tallest = spec.ladder.iter().max_by_key(|rung| (rung.height, rung.width));
    let picture = prepared(input);
    let scaled = tallest.map(|rung| scaled(rung, fps, length)).unwrap_or_default();
    let mut arguments = Vec::new();
    if let Kind::File(file) = input {
        arguments.extend(["-i".into(), file.clone()]);
    }
    let graph = format!("{picture},{scaled}[v]");
    arguments.extend(["-filter_complex", &graph, "-map", "[v]"].map(OsString::from));
    arguments
}

/// ffmpeg's arguments. If the frames are stamped, they are input 0, which is not among these.
/// `sound` is the rate of the sound, if it is wanted and there.
pub(crate) fn arguments(spec: &MediaSpec, input: &Kind, sound: Option<BitRate>) -> Vec<OsString> {
    let mut arguments = Vec::new();
    if let Kind::File(file) = input
        && (!spec.stamp || sound.is_some())
    {
        arguments.extend(["-i".into(), file.clone()]);
    }
    let mut add = |words: &[&str]| arguments.extend(words.iter().map(OsString::from));
    add(&["-filter_complex", &graph(spec, input, sound.is_some())]);
    for (index, rung) in rungs(spec).into_iter().enumerate() {
        add(&["-map", &format!("[v{index}]")]);
        encoder(spec, rung, &mut add);
        container(&mut add);
        let timescale = timescale(spec.fps_of(rung)).to_string();
        add(&["-video_track_timescale", &timescale, "-tag:v", "avc3"]);
        add(&["-movflags", "+empty_moov+default_base_moof+frag_keyframe+skip_trailer"]);
        add(&["-f", "mp4", &video_file(index)]);
    }
    if let Some(rate) = sound {
        add(&["-map", "[a]", "-c:a", "aac", "-b:a", &rate.as_bps().to_string()]);
        container(&mut add);
        add(&["-movflags", "+empty_moov+default_base_moof+skip_trailer"]);
        add(&["-frag_duration", "1000000", "-f", "mp4", AUDIO_FILE]);
    }
    arguments
}

/// Fixed groups of pictures, closed: no scene cuts, no reference across a key frame. The rate is
/// capped over one second, so that a rung's bit rate is true of every segment. One thread for each
/// rung: rungs are encoded side by side anyway, and with several threads x264's rate control does
/// not repeat to the bit.
fn encoder(spec: &MediaSpec, rung: &Rung, add: &mut impl FnMut(&[&str])) {
    let group = frames(spec.gop(), spec.fps_of(rung)).to_string();
    let rate = rung.bitrate.as_bps().to_string();
    add(&["-c:v", "libx264", "-threads", "1", "-preset", spec.preset.name(), "-profile:v", "high"]);
    add(&["-g", &group, "-keyint_min", &group, "-sc_threshold", "0", "-flags", "+cgop"]);
    add(&["-bf", &spec.b_frames.to_string()]);
    add(&["-b:v", &rate, "-maxrate", &rate, "-bufsize", &rate]);
}

/// Times from 0 and no edit lists: what the times mean, the packager says. No metadata that differs
/// from source to source.
fn container(add: &mut impl FnMut(&[&str])) {
    add(&["-map_metadata", "-1", "-map_chapters", "-1", "-use_editlist", "0"]);
}

fn graph(spec: &MediaSpec, input: &Kind, with_sound: bool) -> String {
    let rungs = rungs(spec);
    let length = spec.segment * spec.segments();
    let picture =
        if spec.stamp { "[0:v:0]setpts=PTS-STARTPTS".to_owned() } else { prepared(input) };
    let ends: String = (0..rungs.len()).map(|index| format!("[s{index}]")).collect();
    let mut graph = format!("{picture},split={}{ends}", rungs.len());
    for (index, rung) in rungs.iter().enumerate() {
        let fps = spec.fps_of(rung);
        graph += &format!(";[s{index}]{}[v{index}]", scaled(rung, fps, length));
    }
    if with_sound {
        let sound = match input {
            // Gaps are filled; sound that begins late, begins late.
            Kind::File(_) => {
                format!("[{}:a:0]aresample=async=1:first_pts=0", u8::from(spec.stamp))
            }
            Kind::Made { audio, .. } => audio.clone(),
        };
        // Half a second more than the frames: the packager cuts it on the sample.
        let end = length.as_secs_f64() + 0.5;
        graph += &format!(
            ";{sound},aformat=sample_rates={AUDIO_RATE}:channel_layouts=stereo,apad,\
             atrim=end={end}[a]"
        );
    }
    graph
}

/// The source's frames, from time 0.
fn prepared(input: &Kind) -> String {
    match input {
        Kind::File(_) => "[0:v:0]setpts=PTS-STARTPTS".to_owned(),
        Kind::Made { video, .. } => video.clone(),
    }
}

/// The filters that make a rung's frames.
fn scaled(rung: &Rung, fps: u32, length: Duration) -> String {
    // -2: what keeps the shape, and is even.
    let width = rung.width.map_or_else(|| "-2".to_owned(), |width| width.to_string());
    format!(
        "fps={fps},trim=end_frame={},scale={width}:{}:flags=bicubic,setsar=1,format=yuv420p",
        frames(length, fps),
        rung.height,
    )
}
