//! Frame stores: made, split, joined, examined.

use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;
use suiro_media::{Ffmpeg, PlainFormat, PlainPictures};
use suiro_uncompressed::parts::{self, Reader, Writer};
use suiro_uncompressed::picture::Raster;
use suiro_uncompressed::split::{PARTS, Split, Splitter, dg_from_rgb, sample_bytes};
use suiro_uncompressed::store::{Content, Header, Recorder, Store};
use suiro_uncompressed::{Depth, Geometry, Sampling, synth};

use crate::outputs::{self, Batch, Existing, Output};
use crate::progress::Work;
use crate::{Outcome, Usage};

/// How a frame is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum How {
    /// 8K-DG: two green planes, a red and a blue one, of a quarter of the pixels each, two streams for
    /// each plane.
    Dg,
    /// Four columns and two rows of tiles.
    Tiles,
}

impl From<How> for Split {
    fn from(how: How) -> Self {
        match how {
            How::Dg => Self::Dg,
            How::Tiles => Self::Tiles,
        }
    }
}

/// Arguments of `synth`.
#[derive(Debug, Args)]
pub struct SynthArgs {
    /// The folder for the stores, `node-1.frames` and so on.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Frames of each store.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    frames: u64,
    /// Stores.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    nodes: u32,
    /// The frames of each store.
    #[arg(long, value_name = "TEXT", default_value_t = Geometry::HD)]
    geometry: Geometry,
    /// Put each frame into an SDI raster, like the study's streams of 2.97 Gbit/s.
    #[arg(long)]
    raster: bool,
    /// Replace files that are there already.
    #[arg(long)]
    replace: bool,
}

/// Arguments of `split`.
#[derive(Debug, Args)]
pub struct SplitArgs {
    /// A file that ffmpeg reads, or with --raw, raw frames.
    input: PathBuf,
    /// The folder for the eight stores, `node-1.frames` to `node-8.frames`.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// How to split.
    #[arg(long = "as", value_name = "HOW", value_enum, default_value_t = How::Dg)]
    how: How,
    /// The whole frames; a file that ffmpeg reads is scaled to them. For dg, raw frames are the planes G1 G2
    /// R B of half the width and height; of tiles, planes Y Cb Cr or G B R. Samples of more than 8 bits are
    /// 16-bit words, little-endian.
    #[arg(long, value_name = "TEXT", default_value = "7680x4320 RGB 10 60000/1001")]
    geometry: Geometry,
    /// The input is raw frames.
    #[arg(long)]
    raw: bool,
    /// Split no more frames than these [default: all].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    frames: Option<u64>,
    /// Put each frame into an SDI raster, like the study's streams of 2.97 Gbit/s.
    #[arg(long)]
    raster: bool,
    /// Replace files that are there already.
    #[arg(long)]
    replace: bool,
}

/// Arguments of `join`.
#[derive(Debug, Args)]
pub struct JoinArgs {
    /// The eight stores, in the order of their parts. Frames are joined by their numbers.
    #[arg(required = true)]
    stores: Vec<PathBuf>,
    /// The file for the raw frames.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How they were split, if the stores do not record it, like those written by `receive`.
    #[arg(long = "as", value_name = "HOW", value_enum)]
    how: Option<How>,
    /// Replace a file that is there already.
    #[arg(long)]
    replace: bool,
}

/// Arguments of `info`.
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// The stores.
    #[arg(required = true)]
    stores: Vec<PathBuf>,
    /// Read all frames and verify their checksums, and the stamps of synthetic ones.
    #[arg(long)]
    verify: bool,
    /// Cut a truncated store to its complete frames.
    #[arg(long)]
    repair: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

const fn content(raster: bool) -> Content {
    if raster { Content::Raster } else { Content::Picture }
}

/// Begins to write the stores of a folder.
fn begin(folder: &Path, stores: usize, inputs: &[PathBuf], replace: bool) -> Result<Batch> {
    let places: Vec<PathBuf> = (0..stores).map(|part| parts::file(folder, part)).collect();
    outputs::check(&places, inputs, Existing::of(replace))?;
    Batch::begin(folder, places)
}

/// `synth`
pub fn synth(args: &SynthArgs) -> Result<Outcome> {
    if !synth::fits(&args.geometry) {
        bail!(Usage(format!("a row of {} is too short for the stamp", args.geometry)));
    }
    let raster = match (args.raster, Raster::around(&args.geometry)) {
        (false, _) => None,
        (true, Some(raster)) => Some(raster),
        (true, None) => bail!(Usage(format!("--raster needs frames of {}", Geometry::HD))),
    };
    let batch = begin(&args.out, args.nodes as usize, &[], args.replace)?;
    let mut work = Work::new("synthetic frames");
    for part in 0..args.nodes {
        work.update(f64::from(part) / f64::from(args.nodes), &format!("node {}", part + 1));
        synth_store(args, batch.folder(), raster, part)?;
    }
    work.finish();
    batch.keep()?;
    told(&args.out, args.nodes as usize, args.frames)
}

fn synth_store(args: &SynthArgs, to: &Path, raster: Option<Raster>, part: u32) -> Result<()> {
    let split = (args.nodes as usize == PARTS).then_some(Split::Dg);
    let geometry = raster.map_or(args.geometry, |raster| raster.total);
    let (parts, content) = (args.nodes, content(args.raster));
    let header = Header { split, part, parts, ..Header::new(geometry, content) };
    let mut recorder = Recorder::create(&parts::file(to, part as usize), header)?;
    let mut picture = vec![0; args.geometry.frame_bytes()];
    let mut framed = vec![0; geometry.frame_bytes()];
    for number in 0..args.frames {
        synth::draw(&args.geometry, number, part as u16, &mut picture);
        if let Some(raster) = raster {
            raster.embed(&picture, &mut framed);
        }
        recorder.write(if raster.is_some() { &framed } else { &picture })?;
    }
    recorder.finish()?;
    Ok(())
}

fn told(folder: &Path, stores: usize, frames: u64) -> Result<Outcome> {
    let folder = folder.display();
    writeln!(crate::say::results(), "{stores} stores of {frames} frames in {folder}")?;
    Ok(Outcome::Done)
}

/// Where whole raw frames come from.
enum Source {
    /// A file of them.
    Raw(BufReader<File>),
    /// Any file, decoded by ffmpeg.
    Decoded(Box<PlainPictures>),
    /// Any file, decoded to R′G′B′ and sampled as dual green.
    Sampled(Box<PlainPictures>, Vec<u8>, Geometry),
}

impl Source {
    fn open(args: &SplitArgs) -> Result<Self> {
        if args.raw {
            let file = File::open(&args.input);
            let file = file.with_context(|| format!("opening {}", args.input.display()))?;
            return Ok(Self::Raw(BufReader::with_capacity(1 << 20, file)));
        }
        let (sampling, how) = (args.geometry.sampling(), args.how);
        let sampling = if how == How::Dg { Sampling::Rgb } else { sampling };
        let format = plain_format(&args.geometry, sampling);
        let pictures = Box::new(PlainPictures::open(&Ffmpeg::locate()?, &args.input, &format)?);
        Ok(match how {
            How::Dg => Self::Sampled(pictures, vec![0; format.bytes], args.geometry),
            How::Tiles => Self::Decoded(pictures),
        })
    }

    /// Reads the next frame; false after the last.
    fn next(&mut self, raw: &mut [u8]) -> Result<bool> {
        match self {
            Self::Raw(file) => read_frame(file, raw),
            Self::Decoded(pictures) => Ok(pictures.next(raw)?),
            Self::Sampled(pictures, gbr, whole) => {
                let more = pictures.next(gbr)?;
                if more {
                    dg_from_rgb(whole, gbr, raw);
                }
                Ok(more)
            }
        }
    }
}

fn read_frame(file: &mut impl Read, raw: &mut [u8]) -> Result<bool> {
    let mut done = 0;
    while done < raw.len() {
        match file.read(&mut raw[done..]) {
            Ok(0) if done == 0 => return Ok(false),
            Ok(0) => bail!("the last frame is cut: {done} of {} bytes", raw.len()),
            Ok(more) => done += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// What ffmpeg is asked for.
fn plain_format(geometry: &Geometry, sampling: Sampling) -> PlainFormat {
    let pixel_format = match (sampling, geometry.depth()) {
        (Sampling::YCbCr422, Depth::Eight) => "yuv422p",
        (Sampling::YCbCr422, Depth::Ten) => "yuv422p10le",
        (Sampling::YCbCr422, Depth::Twelve) => "yuv422p12le",
        (Sampling::YCbCr444, Depth::Eight) => "yuv444p",
        (Sampling::YCbCr444, Depth::Ten) => "yuv444p10le",
        (Sampling::YCbCr444, Depth::Twelve) => "yuv444p12le",
        (Sampling::Rgb, Depth::Eight) => "gbrp",
        (Sampling::Rgb, Depth::Ten) => "gbrp10le",
        (Sampling::Rgb, Depth::Twelve) => "gbrp12le",
    };
    let (width, height) = (geometry.width(), geometry.height());
    let pixels = width as usize * height as usize;
    let samples = pixels * sampling.samples_per_pair() as usize / 2;
    let rate = (geometry.rate().frames(), geometry.rate().seconds());
    PlainFormat {
        width,
        height,
        rate,
        pixel_format,
        bytes: samples * sample_bytes(geometry.depth()),
    }
}

/// `split`
pub fn split(args: &SplitArgs) -> Result<Outcome> {
    let splitter = Splitter::new(args.how.into(), &args.geometry)
        .map_err(|error| Usage(format!("--geometry \"{}\": {error}", args.geometry)))?;
    let mut source = Source::open(args)?;
    let batch = begin(&args.out, PARTS, std::slice::from_ref(&args.input), args.replace)?;
    let writer = Writer::create(batch.folder(), splitter, content(args.raster))?;
    let mut frames = 0;
    let split = split_frames(args, &mut source, writer, &mut frames);
    if frames == 0 {
        split?;
        bail!("{} has no frame", args.input.display());
    }
    // What came before a failure is kept.
    batch.keep()?;
    split?;
    told(&args.out, PARTS, frames)
}

/// Splits all that comes, and counts it.
fn split_frames(
    args: &SplitArgs,
    source: &mut Source,
    mut writer: Writer,
    frames: &mut u64,
) -> Result<()> {
    let splitter = *writer.splitter();
    let mut raw = vec![0; splitter.raw_bytes()];
    let mut work = Work::new("split");
    while args.frames.is_none_or(|most| *frames < most) {
        let more = source.next(&mut raw);
        if !more.with_context(|| format!("reading {}", args.input.display()))? {
            break;
        }
        writer.write(&raw)?;
        *frames += 1;
        if let Some(most) = args.frames {
            work.update(*frames as f64 / most as f64, &format!("frame {frames}"));
        }
    }
    work.finish();
    writer.finish()?;
    Ok(())
}

/// `join`
pub fn join(args: &JoinArgs) -> Result<Outcome> {
    let mut reader = Reader::open(&args.stores, args.how.map(Split::from))?;
    let doing = || format!("writing {}", args.out.display());
    outputs::check(std::slice::from_ref(&args.out), &args.stores, Existing::of(args.replace))?;
    let mut file = BufWriter::with_capacity(1 << 20, Output::begin(&args.out)?);
    let mut raw = vec![0; reader.splitter().raw_bytes()];
    let mut work = Work::new("join");
    let numbers = reader.numbers().clone();
    let frames = numbers.end - numbers.start;
    for number in numbers.clone() {
        let index = number - numbers.start;
        work.update(index as f64 / frames as f64, &format!("frame {}", index + 1));
        reader.read(number, &mut raw)?;
        file.write_all(&raw).with_context(doing)?;
    }
    let file = file.into_inner().map_err(|error| error.into_error()).with_context(doing)?;
    file.keep().with_context(doing)?;
    work.finish();
    let (ragged, whole) = (reader.ragged(), reader.splitter().whole());
    if ragged > 0 {
        say!(
            "frames {} to {} joined; {ragged} before and after them, which not all stores have, were left out",
            numbers.start,
            numbers.end - 1
        );
    }
    writeln!(crate::say::results(), "{frames} frames of {whole} in {}", args.out.display())?;
    Ok(Outcome::Done)
}

/// A store, as `info --json` prints it.
#[derive(Debug, Default, Serialize)]
struct Info {
    path: PathBuf,
    /// Why it is no whole store; null if it is one.
    error: Option<String>,
    geometry: Option<String>,
    content: Option<&'static str>,
    frame_bytes: Option<usize>,
    first: Option<u64>,
    frames: Option<u64>,
    part: Option<u32>,
    parts: Option<u32>,
    split: Option<&'static str>,
    /// Frames whose checksum was verified; null if that was not requested.
    verified: Option<u64>,
    /// Frames that a recording does not have; null if that was not requested.
    missing: Option<u64>,
    /// Of these, frames with a sound stamp of the synthetic source.
    stamped: Option<u64>,
}

impl Info {
    fn of(path: &Path, args: &InfoArgs) -> Self {
        let mut info = Self { path: path.to_owned(), ..Self::default() };
        if let Err(error) = info.fill(path, args) {
            info.error = Some(error.to_string());
        }
        info
    }

    fn fill(
        &mut self,
        path: &Path,
        args: &InfoArgs,
    ) -> Result<(), suiro_uncompressed::store::Error> {
        if args.repair {
            Recorder::append(path)?.finish()?;
        }
        let store = Store::open(path)?;
        let header = *store.header();
        self.geometry = Some(header.geometry.to_string());
        self.content = Some(match header.content {
            Content::Picture => "image",
            Content::Raster => "raster",
        });
        self.frame_bytes = Some(header.geometry.frame_bytes());
        (self.first, self.frames) = (Some(header.first), Some(header.frames));
        (self.part, self.parts) = (Some(header.part), Some(header.parts));
        self.split = header.split.map(|split| match split {
            Split::Dg => "dg",
            Split::Tiles => "tiles",
        });
        if args.verify { self.verify(&store) } else { Ok(()) }
    }

    fn verify(&mut self, store: &Store) -> Result<(), suiro_uncompressed::store::Error> {
        let header = *store.header();
        let raster =
            Raster::of_total(&header.geometry).filter(|_| header.content == Content::Raster);
        let active = raster.map_or(header.geometry, |raster| raster.active);
        let mut picture = vec![0; active.frame_bytes()];
        let mut slot = vec![0; header.slot_bytes()];
        (self.verified, self.stamped, self.missing) = (Some(0), Some(0), Some(0));
        for index in 0..header.frames {
            match store.read_verified(index, &mut slot) {
                Err(suiro_uncompressed::store::Error::Missing { .. }) => {
                    self.missing = self.missing.map(|missing| missing + 1);
                    continue;
                }
                read => read?,
            };
            let frame = &slot[..header.geometry.frame_bytes()];
            match raster {
                Some(raster) => raster.extract(frame, &mut picture),
                None => picture.copy_from_slice(frame),
            }
            self.verified = self.verified.map(|verified| verified + 1);
            let stamp = synth::verify(&active, &picture);
            let sound = stamp.is_some_and(|stamp| stamp.sound);
            self.stamped = self.stamped.map(|stamped| stamped + u64::from(sound));
        }
        Ok(())
    }

    fn line(&self) -> String {
        let path = self.path.display();
        let (Some(geometry), Some(content), Some(frames)) =
            (&self.geometry, self.content, self.frames)
        else {
            return self.error.clone().unwrap_or_default();
        };
        let mut line = format!("{path}: {frames} frames of {geometry}, {content}");
        if let (Some(split), Some(part), Some(parts)) = (self.split, self.part, self.parts) {
            line += &format!(", {split}, part {} of {parts}", part + 1);
        }
        if let (Some(verified), Some(stamped)) = (self.verified, self.stamped) {
            line += &format!("; {verified} verified, {stamped} stamped");
        }
        if let Some(missing) = self.missing.filter(|missing| *missing > 0) {
            line += &format!(", {missing} missing");
        }
        if let Some(error) = &self.error {
            line += &format!("\n{error}");
        }
        line
    }
}

/// `info`
pub fn info(args: &InfoArgs) -> Result<Outcome> {
    let infos: Vec<_> = args.stores.iter().map(|path| Info::of(path, args)).collect();
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &infos)?;
        writeln!(out)?;
    } else {
        for info in &infos {
            writeln!(out, "{}", info.line())?;
        }
    }
    let sound = infos.iter().all(|info| info.error.is_none());
    Ok(if sound { Outcome::Done } else { Outcome::Failed })
}
