//! What ffmpeg is asked for: the source's frames, and all versions of them in one run.

use std::ffi::OsString;

use crate::MediaSpec;
use crate::quantised::{GROUP, GROUP_DURATION, RATE, SIZE};
use crate::source::Kind;
use crate::spec::Source;

/// Frames of whole groups in the length that is asked for.
pub(super) fn frames(spec: &MediaSpec) -> u64 {
    spec.length.as_nanos() / GROUP_DURATION.as_nanos() * u64::from(GROUP)
}

/// File of a version, in the set's folder.
pub(super) fn file(scale: u8) -> String {
    format!("q{scale}.m2v")
}

/// ffmpeg's arguments for the source's frames, before they are encoded.
pub(crate) fn pictures(spec: &MediaSpec, input: &Kind) -> Vec<OsString> {
    let mut arguments = Vec::new();
    let (pictures, seconds) = RATE;
    let prepared = match (input, &spec.source) {
        // A film of 24 frames per second: each is shown once and for a shorter time. Repeats, every
        // fifth frame, would be coded with next to no bits and make the stream come in gusts.
        (Kind::File(_), Source::Bbb) => {
            format!("[0:v:0]setpts=N*{seconds}/{pictures}/TB,fps={pictures}/{seconds}")
        }
        (Kind::File(_), _) => format!("[0:v:0]setpts=PTS-STARTPTS,fps={pictures}/{seconds}"),
        (Kind::Made { video, .. }, _) => format!("{video},fps={pictures}/{seconds}"),
    };
    if let Kind::File(file) = input {
        arguments.extend(["-i".into(), file.clone()]);
    }
    let graph = format!(
        "{prepared},{},scale={}:{}:flags=bicubic,setsar=1,format=yuv420p[v]",
        trimmed(spec),
        SIZE.0,
        SIZE.1
    );
    arguments.extend(["-filter_complex", &graph, "-map", "[v]"].map(OsString::from));
    arguments
}

/// The filter that leaves the part that is asked for.
fn trimmed(spec: &MediaSpec) -> String {
    let (pictures, seconds) = (u64::from(RATE.0), u64::from(RATE.1));
    let first = spec.from.as_nanos() / 1_000_000 * pictures / (seconds * 1000);
    let end = first + frames(spec);
    match first {
        0 => format!("trim=end_frame={end}"),
        _ => format!("trim=start_frame={first}:end_frame={end},setpts=PTS-STARTPTS"),
    }
}

/// ffmpeg's arguments that encode its input 0. One thread for each version: they are encoded side by
/// side anyway, and slices of several threads would depend on how many there are.
pub(super) fn versions(scales: &[u8]) -> Vec<OsString> {
    let mut arguments = Vec::new();
    let mut add = |words: &[&str]| arguments.extend(words.iter().map(OsString::from));
    let group = GROUP.to_string();
    for scale in scales {
        add(&["-map", "0:v:0", "-c:v", "mpeg2video", "-threads", "1", "-b_strategy", "0"]);
        add(&["-qscale:v", &scale.to_string(), "-qmin", "1", "-qmax", "31"]);
        // Closed groups of a fixed length: ffmpeg demands that it looks for no scene cuts.
        add(&["-g", &group, "-bf", "0", "-flags", "+cgop", "-sc_threshold", "1000000000"]);
        add(&["-map_metadata", "-1", "-fps_mode", "passthrough"]);
        add(&["-f", "mpeg2video", &file(*scale)]);
    }
    arguments
}
