//! What a viewer was shown, as the input of ITU-T P.1203 in mode 0: bit rates, sizes, frame rates and
//! stalls, no look into the stream. The form is that of the program `p1203-standalone`.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use suiro_analysis::Viewing;
use suiro_media::package::{Content, Track};
use suiro_media::{Container, Package};

/// The screen that P.1203 is to think of: that of the Recommendation's own tests.
const DISPLAY: (u32, u32) = (1920, 1080);

/// One stretch of frames from one segment.
struct Stretch {
    /// Rung of the package.
    rung: usize,
    /// How often the package was gone through before, and the segment in it.
    segment: (u64, usize),
    /// Frames shown.
    frames: u64,
}

/// The input for one viewer that began to ask at `begun_ns`; `rung` finds a package's rung by the bit
/// rate in the records. Times are media time as shown: what was jumped over takes none, so segments
/// follow each other without a gap, as the Recommendation asks. Start-up is the stall at 0.
///
/// A segment's bit rate is that of its bytes as fragmented MP4; where there is only a transport
/// stream, which holds the sound too, it is what the encoder was asked for.
///
/// # Errors
/// If nothing was shown, or what was shown is not what P.1203 is for: H.264 of at most 1920×1080.
pub fn input(
    package: &Package,
    viewing: &Viewing,
    begun_ns: i64,
    rung: impl Fn(u64) -> Result<usize>,
) -> Result<Value> {
    let first = viewing.moments.first().context("table `frames` has no frame that was shown")?;
    let stretches = stretches(package, viewing, rung)?;
    let fps = picture(&package.video[stretches[0].rung])?.2;
    let mut before = 0;
    let mut video = Vec::new();
    for stretch in &stretches {
        video.push(segment(&package.video[stretch.rung], stretch, before, fps)?);
        before += stretch.frames;
    }
    let media_s = before as f64 / f64::from(fps);
    let mut stalling = vec![(0.0, seconds(begun_ns, first.t_ns))];
    // A freeze counts from when its frame came; the frame's own time is no stall.
    let own_ns = 1_000_000_000 / i64::from(fps);
    stalling.extend(viewing.freezes.iter().map(|(from, to)| {
        let shown = viewing.moments.partition_point(|moment| moment.t_ns <= *from);
        (shown as f64 / f64::from(fps), seconds(from.saturating_add(own_ns), *to))
    }));
    Ok(json!({
        "I11": { "streamId": 1, "segments": sound(package, media_s)? },
        "I13": { "streamId": 1, "segments": video },
        "I23": { "streamId": 1, "stalling": stalling },
        "IGen": {
            "displaySize": format!("{}x{}", DISPLAY.0, DISPLAY.1),
            "device": "pc",
            "viewingDistance": "150cm",
        },
    }))
}

/// How much media an input describes, in seconds.
pub fn media_s(input: &Value) -> f64 {
    let durations = input["I13"]["segments"].as_array().into_iter().flatten();
    durations.filter_map(|segment| segment["duration"].as_f64()).sum()
}

fn seconds(from_ns: i64, to_ns: i64) -> f64 {
    to_ns.saturating_sub(from_ns).max(0) as f64 / 1e9
}

fn stretches(
    package: &Package,
    viewing: &Viewing,
    rung: impl Fn(u64) -> Result<usize>,
) -> Result<Vec<Stretch>> {
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut rungs = BTreeMap::new();
    for moment in &viewing.moments {
        let rate = moment.rung_bps.and_then(|rate| u64::try_from(rate).ok());
        let rate = rate.context("table `frames` does not have the rung")?;
        let rung = match rungs.get(&rate) {
            Some(rung) => *rung,
            None => *rungs.entry(rate).or_insert(rung(rate)?),
        };
        let frame = u64::try_from(moment.frame).context("a frame has a negative number")?;
        let segment = place(&package.video[rung], frame)?;
        match stretches.last_mut() {
            Some(stretch) if (stretch.rung, stretch.segment) == (rung, segment) => {
                stretch.frames += 1;
            }
            _ => stretches.push(Stretch { rung, segment, frames: 1 }),
        }
    }
    Ok(stretches)
}

/// The loop and the segment that a frame of the endless stream lies in.
fn place(track: &Track, frame: u64) -> Result<(u64, usize)> {
    let rendition = track.rendition(Container::Fmp4).or(track.rendition(Container::Ts));
    let segments = &rendition.context("a rung of the media has no segments")?.segments;
    let frames: u64 = segments.iter().map(|segment| u64::from(segment.frames)).sum();
    ensure!(frames > 0, "a rung of the media has no frames");
    let mut within = frame % frames;
    for (index, segment) in segments.iter().enumerate() {
        let own = u64::from(segment.frames);
        if within < own {
            return Ok((frame / frames, index));
        }
        within -= own;
    }
    bail!("frame {frame} lies in no segment")
}

fn segment(track: &Track, stretch: &Stretch, before: u64, fps: u32) -> Result<Value> {
    let (width, height, own) = picture(track)?;
    ensure!(own == fps, "the rungs differ in frame rate: {own} and {fps}");
    let bps = match track.rendition(Container::Fmp4) {
        None => track.bitrate.as_bps() as f64,
        Some(rendition) => {
            let segment = &rendition.segments[stretch.segment.1];
            segment.bytes as f64 * 8.0 * f64::from(track.timescale) / segment.duration as f64
        }
    };
    ensure!(bps.is_finite() && bps > 0.0, "a segment of {} has no bit rate", track.id);
    Ok(json!({
        "bitrate": bps / 1e3,
        "codec": "h264",
        "duration": stretch.frames as f64 / f64::from(fps),
        "fps": f64::from(fps),
        "representation": stretch.rung,
        "resolution": format!("{width}x{height}"),
        "start": before as f64 / f64::from(fps),
    }))
}

/// Width, height and frame rate of what P.1203 is for.
fn picture(track: &Track) -> Result<(u32, u32, u32)> {
    let Content::Video { width, height, fps } = track.content else {
        bail!("the rung {} is no video", track.id)
    };
    ensure!(track.codec.starts_with("avc"), "P.1203 is for H.264, not for {}", track.codec);
    let fits = width <= DISPLAY.0 && height <= DISPLAY.1;
    ensure!(fits, "P.1203 is for video of at most 1920x1080, not {width}x{height}");
    ensure!(fps > 0, "the rung {} has no frame rate", track.id);
    Ok((width, height, fps))
}

/// The sound, of one bit rate throughout; none is an empty list, which stands for sound of constant
/// high quality.
fn sound(package: &Package, media_s: f64) -> Result<Vec<Value>> {
    let Some(track) = &package.audio else { return Ok(Vec::new()) };
    let codec = match track.codec.as_str() {
        "mp4a.40.2" => "aaclc",
        "mp4a.40.5" => "heaac",
        other => bail!("P.1203 has no model of sound in {other}"),
    };
    let kbps = track.bitrate.as_bps() as f64 / 1e3;
    Ok(vec![json!({ "bitrate": kbps, "codec": codec, "duration": media_s, "start": 0.0 })])
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use suiro_analysis::Moment;
    use suiro_media::MediaSpec;
    use suiro_media::spec::Source;

    use super::*;

    /// Two rungs of two segments of ten frames (1 s), of 50 kB and 125 kB, 25 kB and 75 kB.
    fn package() -> Package {
        let segment = |index: u64, bytes: u64| json!({ "file": format!("{index}"), "bytes": bytes, "start": index * 10, "duration": 10, "frames": 10 });
        let rung = |id: &str, rate: &str, height: u32, sizes: [u64; 2]| {
            json!({
                "id": id, "label": id, "codec": "avc3.64001f", "bitrate": rate, "timescale": 10,
                "content": { "video": { "width": height * 16 / 9, "height": height, "fps": 10 } },
                "fmp4": {
                    "init": null, "bitrate_mean": rate, "bitrate_max": rate,
                    "segments": [segment(0, sizes[0]), segment(1, sizes[1])],
                },
                "ts": null,
            })
        };
        let tracks = json!([
            rung("v0", "400 kbit/s", 360, [25_000, 75_000]),
            rung("v1", "800 kbit/s", 720, [50_000, 125_000])
        ]);
        let audio = json!({
            "id": "a", "label": "a", "codec": "mp4a.40.2", "bitrate": "128 kbit/s", "timescale": 48_000,
            "content": { "audio": { "sample_rate": 48_000, "channels": 2 } }, "fmp4": null, "ts": null,
        });
        Package {
            version: 1,
            source: serde_json::from_value(json!({ "name": "s", "licence": null, "sha256": null }))
                .unwrap(),
            spec: MediaSpec::new(Source::Synthetic),
            ffmpeg: "7".into(),
            loop_duration: suiro_units::Duration::from_secs(2),
            video: serde_json::from_value(tracks).unwrap(),
            audio: Some(serde_json::from_value(audio).unwrap()),
            sha256: Default::default(),
            folder: Default::default(),
        }
    }

    fn moment(t_ms: i64, frame: i64, rung_bps: i64) -> Moment {
        Moment { t_ns: t_ms * 1_000_000, frame, captured_ns: None, rung_bps: Some(rung_bps) }
    }

    /// Five frames of the last segment of the loop, low; then a freeze, then five of the next loop's
    /// first, high.
    fn viewing() -> Viewing {
        let low = (0..5).map(|n| moment(1500 + n * 100, 15 + n, 0));
        let high = (0..5).map(|n| moment(3000 + n * 100, 20 + n, 1));
        Viewing {
            moments: low.chain(high).collect(),
            freezes: vec![(1_900_000_000, 3_000_000_000)],
            ..Viewing::default()
        }
    }

    fn made(package: &Package) -> Result<Value> {
        input(package, &viewing(), 500_000_000, |rate| Ok(rate as usize))
    }

    #[test]
    fn what_was_shown_is_told_to_the_letter() {
        let want = json!({
            "I11": { "streamId": 1, "segments": [
                { "bitrate": 128.0, "codec": "aaclc", "duration": 1.0, "start": 0.0 },
            ] },
            "I13": { "streamId": 1, "segments": [
                { "bitrate": 600.0, "codec": "h264", "duration": 0.5, "fps": 10.0,
                  "representation": 0, "resolution": "640x360", "start": 0.0 },
                { "bitrate": 400.0, "codec": "h264", "duration": 0.5, "fps": 10.0,
                  "representation": 1, "resolution": "1280x720", "start": 0.5 },
            ] },
            "I23": { "streamId": 1, "stalling": [[0.0, 1.0], [0.5, 1.0]] },
            "IGen": { "displaySize": "1920x1080", "device": "pc", "viewingDistance": "150cm" },
        });
        let made = made(&package()).unwrap();
        assert_eq!(made, want);
        assert_eq!(media_s(&made), 1.0);
    }

    #[test]
    fn without_sound_the_list_is_empty_and_without_fragments_the_asked_rate_counts() {
        let mut package = package();
        package.audio = None;
        for track in &mut package.video {
            track.ts = track.fmp4.take();
        }
        let made = made(&package).unwrap();
        assert_eq!(made["I11"]["segments"], json!([]));
        assert_eq!(made["I13"]["segments"][0]["bitrate"], 400.0);
    }

    #[test]
    fn a_rung_is_found_by_its_peak_or_by_the_rate_of_the_ladder() {
        let mut package = package();
        package.video[0].fmp4.as_mut().unwrap().bitrate_max = suiro_units::BitRate::from_kbps(600);
        let rung = |bps| crate::rung(&package, None, Some(bps)).ok();
        let found = [600_000, 400_000, 800_000, 500_000].map(rung);
        assert_eq!(found, [Some(0), Some(0), Some(1), None]);
    }

    #[test]
    fn what_p1203_is_not_for_is_refused() {
        let told = |change: fn(&mut Package)| {
            let mut package = package();
            change(&mut package);
            format!("{:#}", made(&package).unwrap_err())
        };
        assert!(told(|p| p.video[1].codec = "hvc1".into()).contains("H.264"));
        assert!(told(|p| p.audio.as_mut().unwrap().codec = "opus".into()).contains("opus"));
        let large = Content::Video { width: 3840, height: 2160, fps: 10 };
        let mut package = package();
        package.video[0].content = large;
        assert!(made(&package).unwrap_err().to_string().contains("3840x2160"));
        let nothing = input(&package, &Viewing::default(), 0, |_| Ok(0)).unwrap_err();
        assert!(nothing.to_string().contains("no frame"), "{nothing}");
    }
}
