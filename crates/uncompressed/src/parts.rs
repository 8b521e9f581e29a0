//! The frame stores of a whole image sequence: one for each stream, side by side in a folder.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::geometry::{self, Geometry};
use crate::picture::Raster;
use crate::split::{self, PARTS, Split, Splitter};
use crate::store::{self, Content, Header, Recorded, Recorder, Store};

/// The store of part `part`, counted from 0, in a folder: `node-1.frames` is that of part 0.
pub fn file(folder: &Path, part: usize) -> PathBuf {
    folder.join(format!("node-{}.frames", part + 1))
}

/// Why parts cannot be written or joined.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A store cannot be read or written.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The image cannot be split.
    #[error(transparent)]
    Split(#[from] split::Error),
    /// A geometry is out of bounds.
    #[error(transparent)]
    Geometry(#[from] geometry::Error),
    /// The SDI raster for the parts is unknown.
    #[error("the SDI raster is unknown for images of {0}\nhint: use {hd}", hd = Geometry::HD)]
    Raster(Geometry),
    /// A store does not belong to this sequence, or not to this part.
    #[error("{}: {because}", path.display())]
    Foreign {
        /// The store.
        path: PathBuf,
        /// What is wrong.
        because: &'static str,
    },
    /// A store has no frame in common with the others.
    #[error(
        "{}: it holds frames {} to {}, but the stores before it have frames {} to {} in common\n\
         hint: record all streams at the same time", path.display(), own.start, own.end - 1, common.start,
        common.end - 1
    )]
    Apart {
        /// The store.
        path: PathBuf,
        /// Numbers of its frames.
        own: Range<u64>,
        /// Numbers of the frames that the stores before it have in common.
        common: Range<u64>,
    },
}

/// Splits a sequence, frame by frame.
#[derive(Debug)]
pub struct Writer {
    splitter: Splitter,
    raster: Option<Raster>,
    recorders: Vec<Recorder>,
    picture: Vec<u8>,
    framed: Vec<u8>,
}

impl Writer {
    /// Creates the stores in `folder`, which must exist; stores with the same names are replaced.
    pub fn create(folder: &Path, splitter: Splitter, content: Content) -> Result<Self, Error> {
        let part = *splitter.part();
        let raster = match content {
            Content::Picture => None,
            Content::Raster => Some(Raster::around(&part).ok_or(Error::Raster(part))?),
        };
        let geometry = raster.map_or(part, |raster| raster.total);
        let header = Header {
            split: Some(splitter.split()),
            parts: PARTS as u32,
            ..Header::new(geometry, content)
        };
        let create = |part: usize| {
            Recorder::create(&file(folder, part), Header { part: part as u32, ..header })
        };
        Ok(Self {
            splitter,
            raster,
            recorders: (0..PARTS).map(create).collect::<Result<_, _>>()?,
            picture: vec![0; part.frame_bytes()],
            framed: vec![0; geometry.frame_bytes()],
        })
    }

    /// How the frames are split.
    pub const fn splitter(&self) -> &Splitter {
        &self.splitter
    }

    /// Writes the parts of the next raw frame.
    ///
    /// # Panics
    /// If the length of `raw` is not [`Splitter::raw_bytes`].
    pub fn write(&mut self, raw: &[u8]) -> Result<(), Error> {
        for (part, recorder) in self.recorders.iter_mut().enumerate() {
            self.splitter.take(raw, part, &mut self.picture);
            let frame = match self.raster {
                None => &self.picture,
                Some(raster) => {
                    raster.embed(&self.picture, &mut self.framed);
                    &self.framed
                }
            };
            recorder.write(frame)?;
        }
        Ok(())
    }

    /// Closes the stores and returns their contents.
    pub fn finish(self) -> Result<Vec<Recorded>, Error> {
        let recorded: Result<Vec<_>, _> =
            self.recorders.into_iter().map(Recorder::finish).collect();
        Ok(recorded?)
    }
}

/// Joins the parts of a sequence.
#[derive(Debug)]
pub struct Reader {
    splitter: Splitter,
    raster: Option<Raster>,
    stores: Vec<Store>,
    numbers: Range<u64>,
    picture: Vec<u8>,
    slot: Vec<u8>,
}

impl Reader {
    /// Opens the stores of all parts, in the order of the parts. Frames are joined by number: of
    /// recordings that do not begin or end together, only the frames that all of them have are
    /// joined. Stores that were recorded by receivers do not contain the split: for those, `split`
    /// is used, and their order determines which part each is.
    pub fn open(paths: &[PathBuf], split: Option<Split>) -> Result<Self, Error> {
        let foreign = |path: &Path, because| Error::Foreign { path: path.to_owned(), because };
        let stores = paths.iter().map(|path| Store::open(path)?.with_frames());
        let stores = stores.collect::<Result<Vec<_>, _>>()?;
        if stores.len() != PARTS {
            let path = paths.first().map_or(Path::new("."), |path| path);
            return Err(foreign(path, "an image needs eight stores"));
        }
        let first = *stores[0].header();
        for (part, store) in stores.iter().enumerate() {
            if let Some(because) = contradiction(&first, store.header(), part) {
                return Err(foreign(store.path(), because));
            }
        }
        let split = first.split.or(split);
        let split = split
            .ok_or_else(|| foreign(stores[0].path(), "it does not record how it was split"))?;
        let geometry = first.geometry;
        let raster = match first.content {
            Content::Picture => None,
            Content::Raster => Some(Raster::of_total(&geometry).ok_or(Error::Raster(geometry))?),
        };
        let part = raster.map_or(geometry, |raster| raster.active);
        Ok(Self {
            splitter: Splitter::of_parts(split, &part)?,
            raster,
            numbers: common(&stores)?,
            picture: vec![0; part.frame_bytes()],
            slot: vec![0; first.slot_bytes()],
            stores,
        })
    }

    /// How the parts are joined.
    pub const fn splitter(&self) -> &Splitter {
        &self.splitter
    }

    /// Numbers of the frames that all parts have.
    pub const fn numbers(&self) -> &Range<u64> {
        &self.numbers
    }

    /// Frames of any part that are not joined because some part does not have them.
    pub fn ragged(&self) -> u64 {
        let all = self.stores.iter().map(|store| numbers(store.header()));
        let (first, end) = all.fold((self.numbers.start, self.numbers.end), |(first, end), own| {
            (first.min(own.start), end.max(own.end))
        });
        (self.numbers.start - first) + (end - self.numbers.end)
    }

    /// Joins frame `number` into `raw`; the checksum of each part is verified.
    ///
    /// # Errors
    /// [`store::Error::Missing`] if a part was recorded without that frame.
    ///
    /// # Panics
    /// If the length of `raw` is not [`Splitter::raw_bytes`], or `number` is not in
    /// [`Self::numbers`].
    pub fn read(&mut self, number: u64, raw: &mut [u8]) -> Result<(), Error> {
        assert!(self.numbers.contains(&number), "not all parts have frame {number}");
        let bytes = self.stores[0].header().geometry.frame_bytes();
        for (part, store) in self.stores.iter().enumerate() {
            store.read_verified(number - store.header().first, &mut self.slot)?;
            let frame = &self.slot[..bytes];
            let picture = match self.raster {
                None => frame,
                Some(raster) => {
                    raster.extract(frame, &mut self.picture);
                    &self.picture
                }
            };
            self.splitter.put(picture, part, raw);
        }
        Ok(())
    }
}

const fn numbers(header: &Header) -> Range<u64> {
    header.first..header.first + header.frames
}

/// Numbers of the frames that all stores have.
fn common(stores: &[Store]) -> Result<Range<u64>, Error> {
    let mut common = 0..u64::MAX;
    for store in stores {
        let own = numbers(store.header());
        let both = common.start.max(own.start)..common.end.min(own.end);
        if both.is_empty() {
            return Err(Error::Apart { path: store.path().to_owned(), own, common });
        }
        common = both;
    }
    Ok(common)
}

/// Why `header` does not belong to the sequence whose first part is `first`.
fn contradiction(first: &Header, header: &Header, part: usize) -> Option<&'static str> {
    let same = (header.geometry, header.content, header.split);
    if same != (first.geometry, first.content, first.split) {
        return Some("its images differ from those of the first part");
    }
    let known = header.split.is_some();
    let wrong = header.part as usize != part || header.parts as usize != PARTS;
    (known && wrong).then_some("it is a different part of the image from the one expected here")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Depth, FrameRate, Sampling};
    use crate::split::sample_bytes;

    fn splitter(split: Split, size: (u32, u32)) -> Splitter {
        let whole = Geometry::new(size, Sampling::Rgb, Depth::Ten, FrameRate::P59_94).unwrap();
        Splitter::new(split, &whole).unwrap()
    }

    fn raw(splitter: &Splitter, number: usize) -> Vec<u8> {
        let samples = splitter.raw_bytes() / sample_bytes(Depth::Ten);
        let value = |i: usize| (((i + number) * 40_503) >> 5) as u16 & 0x3ff;
        (0..samples).flat_map(|i| value(i).to_le_bytes()).collect()
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        (0..PARTS).map(|part| file(folder, part)).collect()
    }

    /// Writes `frames` frames in eight stores, and reads them back.
    fn round_trip(splitter: Splitter, content: Content, frames: usize) {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(folder.path(), splitter, content).unwrap();
        for number in 0..frames {
            writer.write(&raw(&splitter, number)).unwrap();
        }
        assert!(writer.finish().unwrap().iter().all(|part| part.frames == frames as u64));
        let mut reader = Reader::open(&files(folder.path()), None).unwrap();
        assert_eq!(*reader.numbers(), 0..frames as u64);
        let mut back = vec![0; reader.splitter().raw_bytes()];
        for number in 0..frames {
            reader.read(number as u64, &mut back).unwrap();
            assert!(back == raw(&splitter, number), "{content:?} frame {number}");
        }
    }

    #[test]
    fn a_sequence_comes_back_from_its_parts() {
        round_trip(splitter(Split::Tiles, (64, 16)), Content::Picture, 3);
        round_trip(splitter(Split::Dg, (64, 16)), Content::Picture, 3);
    }

    #[test]
    fn an_8k_picture_comes_back_from_eight_rasters() {
        round_trip(splitter(Split::Dg, (7680, 4320)), Content::Raster, 1);
    }

    #[test]
    fn only_hd_has_a_raster() {
        let folder = tempfile::tempdir().unwrap();
        let splitter = splitter(Split::Dg, (64, 16));
        let error = Writer::create(folder.path(), splitter, Content::Raster).unwrap_err();
        assert!(
            error.to_string().contains("the SDI raster is unknown for images of 16x4"),
            "{error}"
        );
    }

    #[test]
    fn stores_that_do_not_belong_together_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let splitter = splitter(Split::Dg, (64, 16));
        let mut writer = Writer::create(folder.path(), splitter, Content::Picture).unwrap();
        writer.write(&raw(&splitter, 0)).unwrap();
        writer.finish().unwrap();
        let mut paths = files(folder.path());
        paths.swap(2, 3);
        let error = Reader::open(&paths, None).unwrap_err().to_string();
        assert!(
            error.ends_with(
                "node-4.frames: it is a different part of the image from the one expected here"
            ),
            "{error}"
        );
        let error = Reader::open(&paths[..7], None).unwrap_err().to_string();
        assert!(error.contains("an image needs eight stores"), "{error}");
        // A recording by a receiver has no split, and may begin later.
        paths.swap(2, 3);
        let header = Header { first: 5, ..Header::new(*splitter.part(), Content::Picture) };
        let mut recorder = Recorder::create(&paths[7], header).unwrap();
        recorder.write(&vec![0; splitter.part().frame_bytes()]).unwrap();
        recorder.finish().unwrap();
        let error = Reader::open(&paths, None).unwrap_err().to_string();
        assert!(error.ends_with("its images differ from those of the first part"), "{error}");
    }

    /// Recordings by receivers that did not begin together and lost different frames.
    fn recorded(folder: &Path, splitter: &Splitter, numbers: impl Fn(usize) -> Vec<u64>) {
        let mut picture = vec![0; splitter.part().frame_bytes()];
        for (part, path) in files(folder).iter().enumerate() {
            let header = Header::new(*splitter.part(), Content::Picture);
            let mut recorder = Recorder::create(path, header).unwrap();
            for number in numbers(part) {
                splitter.take(&raw(splitter, number as usize), part, &mut picture);
                recorder.put(number, &picture).unwrap();
            }
            recorder.finish().unwrap();
        }
    }

    #[test]
    fn recordings_are_joined_by_number() {
        let (folder, splitter) = (tempfile::tempdir().unwrap(), splitter(Split::Dg, (64, 16)));
        let of_part = |part| (70 + part as u64 % 3..76 - part as u64 % 2).collect();
        recorded(folder.path(), &splitter, of_part);
        let mut reader = Reader::open(&files(folder.path()), Some(Split::Dg)).unwrap();
        assert_eq!((reader.numbers().clone(), reader.ragged()), (72..75, 3));
        let mut back = vec![0; splitter.raw_bytes()];
        for number in 72..75 {
            reader.read(number, &mut back).unwrap();
            assert!(back == raw(&splitter, number as usize), "frame {number}");
        }
    }

    #[test]
    fn a_gap_of_a_recording_is_named_and_shifts_nothing() {
        let (folder, splitter) = (tempfile::tempdir().unwrap(), splitter(Split::Dg, (64, 16)));
        let of_part = |part| if part == 4 { vec![70, 72] } else { vec![70, 71, 72] };
        recorded(folder.path(), &splitter, of_part);
        let mut reader = Reader::open(&files(folder.path()), Some(Split::Dg)).unwrap();
        let mut back = vec![0; splitter.raw_bytes()];
        let error = reader.read(71, &mut back).unwrap_err().to_string();
        assert!(error.contains("node-5.frames: frame 71 is missing"), "{error}");
        reader.read(72, &mut back).unwrap();
        assert!(back == raw(&splitter, 72));
    }

    #[test]
    fn recordings_of_different_times_are_refused() {
        let (folder, splitter) = (tempfile::tempdir().unwrap(), splitter(Split::Dg, (64, 16)));
        recorded(
            folder.path(),
            &splitter,
            |part| {
                if part == 7 { vec![80, 81] } else { vec![70, 71] }
            },
        );
        let error = Reader::open(&files(folder.path()), Some(Split::Dg)).unwrap_err().to_string();
        let told = "node-8.frames: it holds frames 80 to 81, but the stores before it have frames 70 to 71 in common";
        assert!(error.contains(told), "{error}");
    }
}
