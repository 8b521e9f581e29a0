//! libvmaf, run by ffmpeg.
//!
//! Both frames of a pair go through one pipe, the shown one above the source's, and are cut apart
//! by ffmpeg: they cannot get out of step.

use std::ffi::OsString;
use std::path::Path;

use serde::Deserialize;

use crate::raw::{Encoder, Header};
use crate::{Ffmpeg, MediaError};

/// The model that scores: the one for a television at three times its height (Netflix, `libvmaf`).
pub const MODEL: &str = "vmaf_v0.6.1";

/// Lines of that television: the model was trained on frames of 1920×1080 (Netflix, `libvmaf`,
/// resource/doc/models.md), and frames of fewer lines score better than they look there.
pub const MODEL_LINES: u32 = 1080;

/// Most bytes of the log for each frame, and for all else.
const LOG_FRAME_MAX: u64 = 4096;

pub(super) struct Vmaf {
    encoder: Encoder,
}

impl Vmaf {
    /// Starts the comparison of frames of that size without the first `left_out` lines, scaled so that whole ones
    /// would have `lines` lines.
    pub fn start(
        ffmpeg: &Ffmpeg,
        size: &Header,
        left_out: u32,
        lines: u32,
    ) -> Result<Self, MediaError> {
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(16));
        let (height, kept) = (size.height, size.height.saturating_sub(left_out));
        let scale = if lines == height {
            String::new()
        } else {
            let of = |sides: u32| even(u64::from(sides) * u64::from(lines), height.into());
            format!(",scale={}:{}:flags=bicubic", of(size.width), of(kept))
        };
        let graph = format!(
            "[0:v]split[a][b];[a]crop=iw:{kept}:0:{left_out}{scale}[shown];\
             [b]crop=iw:{kept}:0:{}{scale}[source];[shown][source]libvmaf=model=version={MODEL}:\
             n_threads={threads}:log_fmt=json:log_path=/dev/stdout",
            height + left_out,
        );
        let arguments = ["-filter_complex", &graph, "-f", "null", "-"].map(OsString::from);
        let stacked = Header { height: 2 * height, ..size.clone() };
        let encoder = Encoder::start_telling(ffmpeg, &stacked, &arguments, Path::new("/"))?;
        Ok(Self { encoder })
    }

    /// Hands over two frames of three packed planes.
    pub fn pair(&mut self, shown: &[u8], source: &[u8]) -> Result<(), MediaError> {
        // Luma is two thirds of a frame of even sides, each chroma plane a sixth.
        let planes = |picture: &'_ [u8]| {
            let (luma, chroma) = (picture.len() * 2 / 3, picture.len() / 6);
            [0..luma, luma..luma + chroma, luma + chroma..luma + 2 * chroma]
        };
        let [y, u, v] = planes(shown);
        let parts = [y, u, v].map(|plane| [&shown[plane.clone()], &source[plane]]);
        self.encoder.picture(parts.as_flattened())
    }

    /// Version of libvmaf and the scores of all pairs.
    pub fn finish(self, count: usize) -> Result<(String, Vec<f64>), MediaError> {
        let told = self.encoder.finish_telling((count as u64 + 16) * LOG_FRAME_MAX)?;
        parse(&told, count).map_err(|message| MediaError::Vmaf { message })
    }
}

/// The even number next to a fraction.
pub(super) fn even(numerator: u64, denominator: u64) -> u32 {
    let half = (numerator + denominator) / (2 * denominator.max(1));
    u32::try_from(2 * half.max(1)).unwrap_or(u32::MAX - 1)
}

#[derive(Deserialize)]
struct Log {
    version: String,
    frames: Vec<Frame>,
}

#[derive(Deserialize)]
struct Frame {
    #[serde(rename = "frameNum")]
    number: usize,
    metrics: Metrics,
}

#[derive(Deserialize)]
struct Metrics {
    vmaf: f64,
}

/// One score for each of `count` frames, in order, or what is wrong with the log.
fn parse(log: &[u8], count: usize) -> Result<(String, Vec<f64>), String> {
    let log: Log = serde_json::from_slice(log).map_err(|error| error.to_string())?;
    if log.frames.len() != count {
        return Err(format!("{} frames scored, not {count}", log.frames.len()));
    }
    let score = |(place, frame): (usize, &Frame)| match frame.metrics.vmaf {
        _ if frame.number != place => Err(format!("frame {} in place {place}", frame.number)),
        // Rounding may leave a hair beyond the ends.
        vmaf if (-0.001..=100.001).contains(&vmaf) => Ok(vmaf.clamp(0.0, 100.0)),
        vmaf => Err(format!("frame {place} scored {vmaf}")),
    };
    let scores = log.frames.iter().enumerate().map(score).collect::<Result<_, _>>()?;
    Ok((log.version, scores))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = r#"{"version": "3.0.0", "fps": 9.5, "frames": [
        {"frameNum": 0, "metrics": {"integer_motion2": 0.0, "vmaf": 97.5}},
        {"frameNum": 1, "metrics": {"integer_motion2": 1.0, "vmaf": 99}}],
        "pooled_metrics": {"vmaf": {"mean": 98.25}}, "aggregate_metrics": {}}"#;

    #[test]
    fn a_log_has_a_score_for_each_frame() {
        assert_eq!(parse(LOG.as_bytes(), 2), Ok(("3.0.0".into(), vec![97.5, 99.0])));
    }

    #[test]
    fn what_is_not_a_whole_log_is_refused() {
        for (from, to, why) in [
            (r#""frameNum": 1"#, r#""frameNum": 2"#, "frame 2 in place 1"),
            (r#""vmaf": 99}"#, r#""vmaf": 999}"#, "frame 1 scored 999"),
            (r#""vmaf": 99}"#, r#""vmaf": null}"#, "invalid type: null"),
            (r#""vmaf": 99}"#, r#""vmaf": NaN}"#, "expected value"),
            (r#", "vmaf": 99"#, "", "missing field `vmaf`"),
            (r#""aggregate_metrics": {}}"#, "", "EOF"),
        ] {
            let refusal = parse(LOG.replace(from, to).as_bytes(), 2).unwrap_err();
            assert!(refusal.contains(why), "{to}: {refusal}");
        }
        assert_eq!(parse(LOG.as_bytes(), 3).unwrap_err(), "2 frames scored, not 3");
        assert!(parse(b"", 0).unwrap_err().contains("EOF"));
    }
}
