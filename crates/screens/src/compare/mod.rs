//! Several trials side by side in one video, in step.
//!
//! Every trial's screen was made from the trial's start on, so all are on one time: of live streams,
//! what was captured at the same moment is shown by each when its viewer saw it.

mod canvas;
mod choice;
mod font;
mod layout;
mod painter;

pub use choice::{TRIALS_MAX, fitting, one};

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use suiro_analysis::{Records, viewing};
use suiro_media::mosaic::{self, Mosaic};
use suiro_media::stamp;
use suiro_media::{Ffmpeg, Progress};
use suiro_record::tables::{CauseRow, FrameRow, PlayerRow};
use suiro_record::words::Effect;
use suiro_record::{Folder, PlannedTrial, Reader, ScreenOutcome, folder};

use crate::Unsuitable;
use layout::{Layout, TileAreas};
use painter::{Content, Painter, Tile};

/// What is to be compared.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The heading.
    pub title: &'a str,
    /// The trials, [`TRIALS_MAX`] at most; their screens have been made.
    pub trials: &'a [Chosen<'a>],
    /// The viewer whose screen is shown, where a trial has several; `None`: the first.
    pub player: Option<&'a str>,
    /// The video to write; the poster, a still of it, is written next to it as PNG.
    pub output: &'a Path,
}

/// A trial to compare.
#[derive(Debug, Clone)]
pub struct Chosen<'a> {
    /// The results folder that it is in.
    pub results: &'a Folder,
    /// The trial.
    pub planned: &'a PlannedTrial,
    /// What it is called.
    pub label: String,
}

/// The trials of a folder that are meant by `cells`: each by its values joined with `+`, and `#N` for another repetition
/// than the first. Of no words: the first repetition of each cell.
///
/// # Errors
/// [`Unsuitable`]: a word that fits no cell, or several; more than fit on a frame.
pub fn choose<'a>(
    results: &'a Folder,
    plan: &'a [PlannedTrial],
    cells: &[String],
) -> Result<Vec<Chosen<'a>>> {
    let label = |planned: &PlannedTrial| {
        let name = choice::name(planned).replace('+', " · ");
        if planned.repetition == 1 { name } else { format!("{name} #{}", planned.repetition) }
    };
    let chosen = choice::choose(plan, cells)?.into_iter();
    Ok(chosen.map(|planned| Chosen { results, planned, label: label(planned) }).collect())
}

/// One trial to show.
struct Shown {
    tile: Tile,
    screen: ScreenOutcome,
    /// Width and height of what is shown, without the strip of the stamps.
    size: (u32, u32),
    /// Lines of the video that this strip takes.
    strip: u32,
    video: PathBuf,
}

/// Makes the comparison; returns where its poster is. `progress` receives the share that is done.
///
/// # Errors
/// [`Unsuitable`]: no such cell or viewer, or a trial without a screen. Else the folder cannot be read,
/// or ffmpeg fails.
pub fn make(request: &Request<'_>, progress: Progress) -> Result<PathBuf> {
    let of = |chosen: &Chosen<'_>| shown(chosen, request.player);
    let shown: Vec<Shown> = request.trials.iter().map(of).collect::<Result<_>>()?;
    let poster = request.output.with_extension("png");
    write(request.title, &shown, (request.output, &poster), progress)
        .with_context(|| format!("making {}", request.output.display()))?;
    Ok(poster)
}

/// A trial's screen and what its viewer saw.
fn shown(chosen: &Chosen<'_>, player: Option<&str>) -> Result<Shown> {
    let Chosen { results, planned, .. } = *chosen;
    let (dir, name) = (results.trial(planned), choice::name(planned));
    let lacks = |because: &str| {
        let hint = "suiro run NAME --set record.quality=true makes it after the trials; with \
                    --resume also in a folder that does not have it";
        Unsuitable(format!("{name} has no screen video: {because}\nhint: {hint}"))
    };
    let outcome = results.outcome(planned)?.ok_or_else(|| lacks("the trial was not run"))?;
    let screens = folder::screens(&dir)?.ok_or_else(|| lacks("none was made"))?;
    let mut screens = screens.screens.into_iter();
    let Some(screen) = screens.find(|s| player.is_none_or(|player| s.endpoint == player)) else {
        bail!(lacks("no such player took part"));
    };
    let (Some(video), Some((width, height))) = (&screen.video, screen.size) else {
        bail!(lacks(screen.problem.as_deref().unwrap_or("none was made")));
    };
    if let Err(error) = suiro_outside::beneath::open(&dir, Path::new(video)) {
        bail!(lacks(&format!("{}: {error}", dir.join(video).display())));
    }
    let video = dir.join(video);
    let records = Records {
        frames: Reader::read_all::<FrameRow>(&dir)?,
        player: Reader::read_all::<PlayerRow>(&dir)?,
        ..Records::default()
    };
    let viewing = viewing(&outcome, &records, &screen.endpoint);
    let label = chosen.label.clone();
    let tile = Tile { label, viewing, reasons: reasons(&dir, &screen.endpoint)? };
    let stamped = screen.stamps_agree + screen.stamps_differ > 0;
    let strip = if stamped { stamp::strip(height) } else { 0 };
    Ok(Shown { tile, screen, size: (width, height.saturating_sub(strip)), strip, video })
}

/// Why a viewer's video froze, by table `causes`, which `suiro report` writes; none in a folder of before.
fn reasons(dir: &Path, endpoint: &str) -> Result<Vec<(i64, i64, String)>> {
    let rows: Vec<CauseRow> = Reader::read_all(dir)?;
    let still = rows.into_iter().filter(|row| matches!(row.effect, Effect::Stall | Effect::Freeze));
    let own = still.filter(|row| *row.subject == *endpoint);
    let reason = |row: CauseRow| {
        let sentence = row.sentence?;
        let reason = sentence.split_once(": ").map_or(&*sentence, |(_, reason)| reason);
        let reason = reason.split(';').next().unwrap_or(reason).to_owned();
        Some((row.t_ns, row.to_ns, reason))
    };
    Ok(own.filter_map(reason).collect())
}

fn write(
    title: &str,
    shown: &[Shown],
    (output, poster): (&Path, &Path),
    progress: Progress,
) -> Result<()> {
    let ffmpeg = Ffmpeg::locate()?;
    let (width, height) = shown.first().context("there is nothing to compare")?.size;
    let fps = shown.iter().map(|shown| shown.screen.fps).fold(1.0, f64::max);
    // 29.97 make a comparison of 30.
    let fps = fps.round().min(f64::from(u16::MAX)) as u32;
    let duration_ns = shown.iter().map(|shown| shown.tile.viewing.end_ns).max().unwrap_or(0);
    let layout = Layout::new(shown.len() as u32, f64::from(width) / f64::from(height.max(1)));
    let tiles = shown.iter().zip(&layout.tiles).map(|(shown, areas)| tile(shown, areas));
    let mosaic = Mosaic {
        width: layout.width,
        height: layout.height,
        fps,
        pictures: u64::try_from(i128::from(duration_ns) * i128::from(fps) / 1_000_000_000)?,
        tiles: tiles.collect(),
    };
    let tiles = shown.iter().map(|shown| shown.tile.clone()).collect();
    let mut painter = Painter::new(Content { title: title.to_owned(), duration_ns, tiles }, layout);
    mosaic.write(&ffmpeg, output, |picture, planes| {
        let t_ns = i128::from(picture) * 1_000_000_000 / i128::from(fps);
        planes.extend_from_slice(painter.paint(t_ns as i64));
        progress(picture as f64 / mosaic.pictures.max(1) as f64, "side by side");
    })?;
    // Two thirds through, something has happened.
    mosaic::still(&ffmpeg, output, mosaic.pictures * 2 / 3, poster)?;
    Ok(())
}

fn tile(shown: &Shown, areas: &TileAreas) -> mosaic::Tile {
    let canvas::Area { x, y, width, height } = areas.video;
    let later_ms = u32::try_from(shown.screen.from_ns / 1_000_000).unwrap_or(0);
    let left_out = shown.strip;
    mosaic::Tile { video: shown.video.clone(), x, y, width, height, later_ms, left_out }
}
