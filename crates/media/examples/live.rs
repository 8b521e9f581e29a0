//! Runs the real-time camera on this machine's clock, decodes what it encodes, and says whether both
//! kept up: `cargo run --release -p suiro-media --example live -- [1080|720] [SECONDS] [SOURCE]`.
#![expect(clippy::print_stdout, reason = "a program for people")]

use std::sync::mpsc;
use std::time::Instant;

use suiro_media::live::{
    Camera, Captured, Decoder, Effort, EncoderConfig, Footage, FootageSpec, LiveSource, Picture,
};
use suiro_media::spec::Source;
use suiro_media::{Ffmpeg, cache};
use suiro_units::{BitRate, Duration, Time};

type Failure = Box<dyn std::error::Error>;

/// This machine's clock, from now on.
#[expect(clippy::disallowed_methods, reason = "the one place here that reads the clock")]
fn clock() -> impl Fn() -> Time + Send + Clone + 'static {
    let epoch = Instant::now();
    move || Time::ZERO + Duration::from(epoch.elapsed())
}

fn spec() -> Result<(FootageSpec, u64), Failure> {
    let mut words = std::env::args().skip(1);
    let (width, height) = match words.next().as_deref() {
        Some("720") => (1280, 720),
        _ => (1920, 1080),
    };
    let seconds = words.next().map_or(Ok(10), |word| word.parse())?;
    let source = match words.next().as_deref() {
        None | Some("bbb") => Source::Bbb,
        Some("synthetic") => Source::Synthetic,
        Some(path) => Source::File(path.into()),
    };
    Ok((FootageSpec { width, height, ..FootageSpec::new(source) }, seconds))
}

fn main() -> Result<(), Failure> {
    let (spec, seconds) = spec()?;
    let footage = Footage::prepare(&Ffmpeg::locate()?, &spec, &cache::folder(), &mut |_, _| {})?;
    let config = EncoderConfig {
        width: spec.width,
        height: spec.height,
        fps: spec.fps,
        bitrate: BitRate::from_mbps(if spec.height > 720 { 4 } else { 2 }),
        effort: Effort::Medium,
        may_skip: true,
    };
    let clock = clock();
    let (sent, received) = mpsc::channel::<Captured>();
    let source = LiveSource::new(footage, config, clock(), 0)?;
    let camera = Camera::start(source, clock.clone(), move |frame| drop(sent.send(frame)))?;
    let (mut decoder, mut picture) = (Decoder::new()?, Picture::new(16, 16)?);
    let (mut delays, mut missed, mut skipped, mut bytes) = (Vec::new(), 0, 0, 0);
    let end = clock() + Duration::from_secs(seconds);
    for frame in received.iter().take_while(|frame| frame.captured < end) {
        missed += frame.missed;
        let Some(encoded) = frame.encoded else {
            skipped += 1;
            continue;
        };
        bytes += encoded.bytes.len();
        decoder.decode(&encoded.bytes, &mut picture)?;
        let stamp = picture.read_stamp().ok_or("a frame without its stamp")?;
        assert_eq!(u64::from(stamp.frame), frame.number, "the picture is another one");
        delays.push((clock() - frame.captured).as_millis_f64());
    }
    camera.stop()?;
    delays.sort_by(f64::total_cmp);
    let at = |share: f64| delays[(share * (delays.len() - 1) as f64) as usize];
    println!("{} frames decoded, {missed} missed, {skipped} skipped", delays.len());
    println!("{:.0} kbit/s", bytes as f64 * 8.0 / 1000.0 / seconds as f64);
    println!("capture to decoded: median {:.1} ms, p99 {:.1} ms", at(0.5), at(0.99));
    Ok(())
}
