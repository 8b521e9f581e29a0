//! After the trials: what each viewer saw is made again as a video, and measured. Never next to a
//! trial, which would be disturbed; nothing that goes wrong here touches what was recorded.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use suiro_analysis::{Records, Tick, ticks};
use suiro_media::quality::{self, Quality};
use suiro_media::quantised::{self, Set};
use suiro_media::screen::{self, Received, Screen, Sent, Shown, Stream};
use suiro_media::spec::Codec;
use suiro_media::stamp::Stamp;
use suiro_media::{Ffmpeg, Package, Progress, cache};
use suiro_record::tables::{FrameRow, PlayerRow, QualityRow};
use suiro_record::{
    Folder, P1203, PlannedTrial, Reader, Row as _, ScreenOutcome, Screens, Text, Trial, Writer,
};
use suiro_scenario::{Delivery, Order, Viewer};
use suiro_units::{BitRate, Duration};

use crate::{Observer, Stop, p1203, rung};

/// Largest `order.json` that is read. A resolved trace stands in it as numbers.
const ORDER_BYTES_MAX: u64 = 256 << 20;

/// Makes the screens of all trials that ask for them and have none yet.
///
/// # Errors
/// If there is no ffmpeg, or the folder cannot be written. What goes wrong with one screen is
/// recorded in its [`ScreenOutcome`].
pub fn make(folder: &Folder, plan: &[PlannedTrial], observer: &mut dyn Observer) -> Result<()> {
    let wanted: Vec<(Order, Trial)> =
        plan.iter().filter_map(|planned| wanted(folder, planned)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let ffmpeg = Ffmpeg::locate().context("making screens")?;
    let p1203 = p1203::Program::locate()
        .and_then(|program| scorer(program, &|| observer.interrupted()))
        .map_err(|error| format!("{error:#}"));
    for (index, (order, trial)) in wanted.iter().enumerate() {
        let mut progress = |done: f64, doing: &str| {
            let done = (index as f64 + done) / wanted.len() as f64;
            observer.progress(&order.trial, done, doing);
        };
        let mut screens = of_trial(&ffmpeg, order, trial, &mut progress);
        opinions(&p1203, order, trial, (&mut screens, &|| observer.interrupted()));
        if observer.interrupted() {
            break;
        }
        for screen in &screens.screens {
            if let Some(problem) = &screen.problem {
                observer.problem(&order.trial, &screen.endpoint, problem);
            }
        }
        if let Err(error) = suiro_record::folder::write_screens(&order.dir, &screens) {
            observer.problem(&order.trial, "screens.json", &error.to_string());
        }
    }
    Ok(())
}

/// The trial, if it was run, asks for its screens and has none yet.
fn wanted(folder: &Folder, planned: &PlannedTrial) -> Option<(Order, Trial)> {
    let dir = folder.trial(planned);
    let trial = folder.outcome(planned).ok()??;
    let order = dir.join("order.json");
    let text = suiro_outside::file::read_text(&order, ORDER_BYTES_MAX).ok()?;
    let order: Order = serde_json::from_str(&text).ok()?;
    let made = matches!(suiro_record::folder::screens(&dir), Ok(Some(_)));
    let cache = cache::folder();
    let packages = order.packages.into_iter();
    let packages =
        packages.map(|(name, path)| (name, suiro_guest::on_host(&path, &cache))).collect();
    let order = Order { dir, packages, ..order };
    (order.setup.record.quality && !trial.skipped && !made).then_some((order, trial))
}

fn of_trial(ffmpeg: &Ffmpeg, order: &Order, trial: &Trial, progress: Progress) -> Screens {
    let viewers = order.setup.endpoints.iter().filter_map(|endpoint| {
        endpoint.spec.kind().viewer()?;
        let source = order.setup.source_of(&endpoint.name)?;
        Some((endpoint.name.as_str(), source.name.as_str()))
    });
    let screens = viewers.map(|(name, origin)| {
        let mut outcome = ScreenOutcome { endpoint: name.to_owned(), ..ScreenOutcome::default() };
        if let Err(error) = of_viewer(ffmpeg, order, trial, (origin, progress), &mut outcome) {
            let missing = if outcome.video.is_some() { "quality" } else { "screen and quality" };
            outcome.problem = Some(format!("{missing}: null because {error:#}"));
        }
        outcome
    });
    Screens { screens: screens.collect() }
}

/// A program that scores, with its version.
type Scorer = (p1203::Program, String);

fn scorer(program: Option<p1203::Program>, stop: Stop) -> Result<Option<Scorer>> {
    let Some(program) = program else { return Ok(None) };
    let version = program.version(stop)?;
    Ok(Some((program, version)))
}

/// Adds what P.1203 says, where its program is; what goes wrong takes nothing from the rest.
fn opinions(
    p1203: &Result<Option<Scorer>, String>,
    order: &Order,
    trial: &Trial,
    (screens, stop): (&mut Screens, Stop),
) {
    // P.1203 is of segmented media.
    let is_of_segments = |name: &str| {
        viewer(order, name).is_some_and(|viewer| viewer.delivery == Delivery::Segments)
    };
    for screen in screens.screens.iter_mut().filter(|screen| is_of_segments(&screen.endpoint)) {
        let scored = match p1203 {
            Ok(None) => return,
            _ if stop() => return,
            Ok(Some((program, version))) => {
                let said = opinion(program, order, trial, (&screen.endpoint, stop));
                said.map(|said| (said, version))
            }
            Err(problem) => Err(anyhow::anyhow!("{problem}")),
        };
        match scored {
            Ok((said, version)) => {
                screen.p1203 = Some(said);
                screen.scored_by.insert("p1203-standalone".to_owned(), version.clone());
            }
            Err(error) => {
                let own = format!("P.1203: null because {error:#}");
                let others = screen.problem.take().map(|other| format!("{other}; {own}"));
                screen.problem = Some(others.unwrap_or(own));
            }
        }
    }
}

fn opinion(
    program: &p1203::Program,
    order: &Order,
    trial: &Trial,
    (name, stop): (&str, Stop),
) -> Result<P1203> {
    let source = order.setup.source_of(name).context("nothing serves it media")?;
    let records = records(&order.dir)?;
    let served = Served::load(order, &source.name, name, &records.frames)?;
    let Served::Package(package, chunk) = served else { bail!("its media is not in segments") };
    let viewer = p1203::Viewer { name, package: &package, chunk, trial, records: &records };
    program.score(&order.dir, &viewer, stop)
}

/// How the endpoint of that name shows video.
fn viewer(order: &Order, name: &str) -> Option<Viewer> {
    let endpoint = order.setup.endpoints.iter().find(|endpoint| endpoint.name == name)?;
    endpoint.spec.kind().viewer()
}

fn of_viewer(
    ffmpeg: &Ffmpeg,
    order: &Order,
    trial: &Trial,
    (origin, progress): (&str, Progress),
    outcome: &mut ScreenOutcome,
) -> Result<()> {
    let records = records(&order.dir)?;
    let served = Served::load(order, origin, &outcome.endpoint, &records.frames)?;
    let received = served.received();
    let rate = Screen { ffmpeg, received, ticks: &[] }.rate();
    outcome.fps = f64::from(rate.0) / f64::from(rate.1);
    let seen = ticks(trial, &records, &outcome.endpoint, rate);
    ensure!(!seen.is_empty(), "the table `frames` records no frame that it showed");
    let shown = shown(&served, &seen)?;
    let screen = Screen { ffmpeg, received, ticks: &shown };
    progress(0.0, "the screen's video");
    let file = format!("screen.{}.mp4", outcome.endpoint);
    let stamps = screen.write(&order.dir.join(&file)).context("the screen's video")?;
    outcome.video = Some(file);
    outcome.size = served.picture_size();
    (outcome.from_ns, outcome.ticks) = (seen[0].t_ns, seen.len() as u64);
    check(served.frames(), &seen, &stamps, outcome);
    // Start-up is a measure of its own: quality begins with the first frame.
    let first = shown.iter().position(Option::is_some).unwrap_or(0);
    let watched = Screen { ticks: &shown[first..], ..screen };
    let delay = quality::usual_delay(watched.ticks).context("no frame was shown")?;
    let quality = quality::measure(&watched, delay, &cache::folder(), progress)?;
    write_quality(&order.dir, &outcome.endpoint, &seen[first..], &quality)?;
    outcome.scored_by = scored_by(ffmpeg, &quality);
    Ok(())
}

/// Writes the table `quality`, whole or not at all.
fn write_quality(dir: &Path, endpoint: &str, ticks: &[Tick], quality: &Quality) -> Result<()> {
    let written = quality_rows(endpoint, ticks, quality, Writer::create_of(dir, endpoint)?);
    if written.is_err() {
        // A table that is cut is no table; why it was cut matters more than what may be left.
        let _ = std::fs::remove_file(dir.join(format!("{}.{endpoint}.parquet", QualityRow::TABLE)));
    }
    written.context("writing the scores")
}

fn quality_rows(
    endpoint: &str,
    ticks: &[Tick],
    quality: &Quality,
    mut table: Writer<QualityRow>,
) -> Result<()> {
    let endpoint: Text = endpoint.into();
    let scores = quality.picture.ticks.iter().zip(&quality.experience.ticks);
    for (tick, (picture, experience)) in ticks.iter().zip(scores) {
        table.push(QualityRow {
            t_ns: tick.t_ns,
            endpoint: endpoint.clone(),
            frame: tick.shown.and_then(|(frame, _)| frame.try_into().ok()),
            repeated: tick.repeated,
            picture_vmaf: picture.map(|score| score.vmaf),
            picture_ssim: picture.map(|score| score.ssim),
            picture_psnr_db: picture.map(|score| score.psnr_db),
            experience_vmaf: experience.map(|score| score.vmaf),
            experience_ssim: experience.map(|score| score.ssim),
            experience_psnr_db: experience.map(|score| score.psnr_db),
            picture_vmaf_native: picture.map(|score| score.vmaf_native),
            experience_vmaf_native: experience.map(|score| score.vmaf_native),
        })?;
    }
    table.close()?;
    Ok(())
}

/// What scored a screen.
fn scored_by(ffmpeg: &Ffmpeg, quality: &Quality) -> BTreeMap<String, String> {
    let scores = &quality.picture;
    let native = match scores.left_out {
        0 => format!("{}x{}", scores.width, scores.height),
        lines => format!("{}x{}, without the {lines} lines on top", scores.width, scores.height),
    };
    let (width, height) = scores.television;
    let size = format!("{width}x{height}");
    let parts = [
        ("ffmpeg", ffmpeg.version()),
        ("libvmaf", &scores.vmaf_version),
        ("model", quality::MODEL),
        ("size", &size),
        ("native size", &native),
    ];
    parts.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// What a viewer was sent: the prepared media that an endpoint serves, or what the viewer kept of a
/// camera's.
enum Served {
    /// Of an origin, in chunks of at most this length if it sends such.
    Package(Box<Package>, Option<Duration>),
    Set(Set),
    Stream(Stream),
}

impl Served {
    fn load(order: &Order, from: &str, viewer: &str, frames: &[FrameRow]) -> Result<Self> {
        let served = order.setup.endpoints.iter().find(|endpoint| endpoint.name == from);
        let conceals = self::viewer(order, viewer).is_some_and(|viewer| viewer.shows_damage);
        let stream = |codec, source| {
            let file = suiro_realtime::received(&order.dir, viewer, codec);
            Self::Stream(Stream { file, codec, frames: kept(frames, viewer), source, conceals })
        };
        if let Some(camera) = served.and_then(|endpoint| endpoint.spec.kind().camera()) {
            return Ok(stream(screen::Codec::H264, Sent::Camera(camera.clone())));
        }
        let medium = served.and_then(|endpoint| endpoint.spec.kind().medium());
        let found = medium.and_then(|medium| {
            let codec = order.setup.media.get(medium.name)?.codec;
            Some((order.packages.get(medium.name)?, codec, medium.chunk))
        });
        let (folder, codec, chunk) =
            found.with_context(|| format!("{from} serves no prepared media of ours"))?;
        let loaded = match codec {
            Codec::H264 => {
                Package::load(folder).map(|package| Self::Package(Box::new(package), chunk))
            }
            // Who shows only what came whole shows what was sent.
            Codec::Mpeg2 => Set::load(folder).map(|set| match conceals {
                true => stream(screen::Codec::Mpeg2, Sent::Set(Box::new(set))),
                false => Self::Set(set),
            }),
        };
        loaded.context("the media that was served; it may have left the cache")
    }

    fn received(&self) -> Received<'_> {
        match self {
            Self::Package(package, _) => Received::Package(package),
            Self::Set(set) => Received::Set(set),
            Self::Stream(stream) => Received::Stream(stream),
        }
    }

    fn picture_size(&self) -> Option<(u32, u32)> {
        match self {
            Self::Package(package, _) => package.picture_size(),
            Self::Set(_) => Some(quantised::SIZE),
            Self::Stream(stream) => Some(stream.size()),
        }
    }

    /// Frames of a loop; a camera's stamps count on.
    fn frames(&self) -> u64 {
        match self {
            Self::Package(package, _) => {
                let received = Received::Package(package);
                let fps = received.rate().0;
                package.loop_duration.as_nanos() * u64::from(fps) / 1_000_000_000
            }
            Self::Set(set) => set.frames(),
            Self::Stream(Stream { source: Sent::Set(set), .. }) => set.frames(),
            Self::Stream(_) => u64::from(u32::MAX),
        }
    }

    /// The rung, or version, of a rate in the table `frames`.
    fn rung(&self, rate: Option<u64>) -> Result<usize> {
        let set = match self {
            Self::Package(package, chunk) => return rung(package, *chunk, rate),
            Self::Set(set) => set,
            Self::Stream(_) => return Ok(0),
        };
        let rate = rate.context("table `frames` does not have the version")?;
        let found = set.of_rate(BitRate::from_bps(rate));
        found.with_context(|| format!("the media has no version of {rate} bit/s"))
    }
}

/// The frames of what an RTP receiver keeps: those that it could decode, in their order.
fn kept(rows: &[FrameRow], viewer: &str) -> Vec<u64> {
    let own = rows.iter().filter(|row| &*row.endpoint == viewer && row.decodable);
    own.filter_map(|row| row.frame.try_into().ok()).collect()
}

/// The tables that record what was on the screen.
fn records(dir: &Path) -> Result<Records> {
    Ok(Records {
        frames: Reader::read_all::<FrameRow>(dir)?,
        player: Reader::read_all::<PlayerRow>(dir)?,
        ..Records::default()
    })
}

/// Frames and rungs, tick by tick.
fn shown(served: &Served, ticks: &[Tick]) -> Result<Vec<Option<Shown>>> {
    let mut rungs: BTreeMap<Option<u64>, usize> = BTreeMap::new();
    let shown = ticks.iter().map(|tick| {
        let Some((frame, rate)) = tick.shown else { return Ok(None) };
        let rung = match rungs.get(&rate) {
            Some(rung) => *rung,
            None => *rungs.entry(rate).or_insert(served.rung(rate)?),
        };
        Ok(Some(Shown { frame, rung }))
    });
    shown.collect()
}

/// Compares the numbers in the stamps, which count from the start of a loop of `frames`, with those in the records. A
/// damaged frame may have the stamp of the frame before, or a made-up one.
fn check(frames: u64, ticks: &[Tick], stamps: &[Option<Stamp>], outcome: &mut ScreenOutcome) {
    let mut first = None;
    for (tick, stamp) in ticks.iter().zip(stamps) {
        let Some((frame, _)) = tick.shown.filter(|_| !tick.damaged) else { continue };
        let within = frame % frames.max(1);
        match stamp {
            None => outcome.stamps_unread += 1,
            Some(stamp) if u64::from(stamp.frame) == within => outcome.stamps_agree += 1,
            Some(stamp) => {
                outcome.stamps_differ += 1;
                first.get_or_insert((tick.t_ns, stamp.frame, within));
            }
        }
    }
    if let Some((t_ns, says, recorded)) = first {
        let (differ, all) = (outcome.stamps_differ, outcome.ticks);
        outcome.problem = Some(format!(
            "{differ} of {all} frames say that they are another frame than the records say; the \
             first, at {:.3} s, says {says}, the records {recorded}",
            t_ns as f64 / 1e9
        ));
    }
}
