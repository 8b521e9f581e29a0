//! Prepares a stamped package, shows every frame of every rung once and prints how many stamps are
//! read:
//! `cargo run --release -p suiro-media --example stamps -- CACHE '{"source": "bbb", "stamp": true}'`.

use std::path::Path;

use suiro_media::screen::{Received, Screen, Shown};
use suiro_media::{Ffmpeg, MediaSpec, prepare};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [cache, spec] = &arguments[..] else {
        return Err("usage: stamps CACHE '{\"source\": \"bbb\", \"stamp\": true}'".into());
    };
    let spec: MediaSpec = serde_json::from_str(spec)?;
    let ffmpeg = Ffmpeg::locate()?;
    let package = prepare(&spec, Path::new(cache), &mut |_, _| {})?;
    for (rung, track) in package.video.iter().enumerate() {
        let frames: u32 =
            track.fmp4.iter().flat_map(|fmp4| &fmp4.segments).map(|segment| segment.frames).sum();
        let ticks: Vec<_> =
            (0..u64::from(frames)).map(|frame| Some(Shown { frame, rung })).collect();
        let screen =
            Screen { ffmpeg: &ffmpeg, received: Received::Package(&package), ticks: &ticks };
        let stamps = screen.write(&Path::new(cache).join(format!("screen.{}.mp4", track.id)))?;
        let is_right = |at: &usize| stamps[*at].is_some_and(|stamp| stamp.frame as usize == *at);
        let right = (0..stamps.len()).filter(is_right).count();
        let read = stamps.iter().flatten().count();
        eprintln!(
            "{} {}: {frames} frames, {right} stamps right, {} wrong, {} not read",
            track.label,
            track.bitrate,
            read - right,
            stamps.len() - read,
        );
    }
    Ok(())
}
