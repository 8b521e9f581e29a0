//! Prepares a package, shows one loop of it with a freeze of 2 s, writes the screen's video and
//! prints its quality:
//! `cargo run --release -p suiro-media --example quality -- CACHE SCREEN.mp4 '{"source": "bbb"}'`.

use std::path::Path;

use suiro_media::quality::{MODEL, Scores, measure, usual_delay};
use suiro_media::screen::{Received, Screen, Shown};
use suiro_media::{Ffmpeg, MediaSpec, prepare};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [cache, video, spec] = &arguments[..] else {
        return Err("usage: quality CACHE SCREEN.mp4 '{\"source\": \"bbb\"}'".into());
    };
    let spec: MediaSpec = serde_json::from_str(spec)?;
    let (ffmpeg, cache) = (Ffmpeg::locate()?, Path::new(cache));
    let package = prepare(&spec, cache, &mut |_, _| {})?;
    let (received, rung) = (Received::Package(&package), package.video.len() - 1);
    let fps = u64::from(received.rate().0);
    let frames = package.loop_duration.as_nanos() * fps / 1_000_000_000;
    let frozen = frames / 2..(frames / 2 + 2 * fps).min(frames);
    let frame = |tick| if frozen.contains(&tick) { frozen.start } else { tick };
    let ticks: Vec<_> = (0..frames).map(|tick| Some(Shown { frame: frame(tick), rung })).collect();
    let screen = Screen { ffmpeg: &ffmpeg, received, ticks: &ticks };
    let stamps = screen.write(Path::new(video))?;
    let right = stamps.iter().zip(&ticks).filter(|(stamp, shown)| {
        stamp.zip(**shown).is_some_and(|(stamp, shown)| u64::from(stamp.frame) == shown.frame)
    });
    eprintln!("{frames} ticks, {} stamps right", right.count());
    let delay = usual_delay(&ticks).unwrap_or_default();
    let quality = measure(&screen, delay, cache, &mut |_, _| {})?;
    tell("picture", &quality.picture);
    tell("experience", &quality.experience);
    Ok(())
}

fn tell(what: &str, scores: &Scores) {
    let all: Vec<_> = scores.ticks.iter().flatten().collect();
    let mean = |sum: f64| sum / all.len().max(1) as f64;
    eprintln!(
        "{what}: {} frames, VMAF {:.2} at 1080 lines, {:.2} native ({MODEL}, libvmaf {}), SSIM {:.4}, PSNR {:.2} dB",
        all.len(),
        mean(all.iter().map(|score| score.vmaf).sum()),
        mean(all.iter().map(|score| score.vmaf_native).sum()),
        scores.vmaf_version,
        mean(all.iter().map(|score| score.ssim).sum()),
        mean(all.iter().map(|score| score.psnr_db).sum()),
    );
}
