//! What was played, in files that a decoder plays.
//!
//! A track goes to `played.NAME.TRACK.0001.mp4` (or `.ts`): the initialisation segment, then
//! segments in the order of playing. What a decoder cannot take in one go begins the next file: in
//! MP4 another initialisation segment, in MPEG-TS another rung, whose continuity counters count
//! apart (ISO/IEC 13818-1 §2.4.3.3).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use bytes::Bytes;
use suiro_units::BitRate;

use super::PlayerError;
use super::session::Piece;
use crate::presentation::TrackKind;

pub(crate) struct Saver {
    dir: PathBuf,
    name: String,
    tracks: BTreeMap<TrackKind, TrackFiles>,
    saved: Vec<PathBuf>,
}

/// A file that is being written, and what must stay the same in it.
struct OpenFile {
    path: PathBuf,
    file: BufWriter<File>,
    init: Option<Bytes>,
    rate: BitRate,
}

impl OpenFile {
    /// Whether a segment of that rung, with that initialisation segment, may follow.
    fn takes(&self, init: Option<&Bytes>, rate: BitRate) -> bool {
        self.init.as_ref() == init && (init.is_some() || self.rate == rate)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), PlayerError> {
        let failed = |cause| PlayerError::Save { path: self.path.clone(), cause };
        self.file.write_all(bytes).map_err(failed)
    }

    fn close(mut self) -> Result<(), PlayerError> {
        let flushed = self.file.flush();
        flushed.map_err(|cause| PlayerError::Save { path: self.path, cause })
    }
}

#[derive(Default)]
struct TrackFiles {
    /// The initialisation segment that the next segment needs.
    init: Option<Bytes>,
    open: Option<OpenFile>,
    count: u32,
}

impl Saver {
    pub(crate) fn new(dir: PathBuf, name: &str) -> Self {
        Self { dir, name: name.into(), tracks: BTreeMap::new(), saved: Vec::new() }
    }

    pub(crate) fn add(&mut self, piece: Piece) -> Result<(), PlayerError> {
        match piece {
            Piece::Init(kind, body) => {
                self.tracks.entry(kind).or_default().init = Some(body);
                Ok(())
            }
            Piece::Segment(kind, rate, body) => self.segment(kind, rate, &body),
        }
    }

    fn segment(&mut self, kind: TrackKind, rate: BitRate, body: &Bytes) -> Result<(), PlayerError> {
        let track = self.tracks.entry(kind).or_default();
        let init = track.init.as_ref();
        if track.open.as_ref().is_none_or(|open| !open.takes(init, rate)) {
            if let Some(done) = track.open.take() {
                done.close()?;
            }
            track.count += 1;
            let extension = if track.init.is_some() { "mp4" } else { "ts" };
            let (name, track_name) = (&self.name, kind.name());
            let path = format!("played.{name}.{track_name}.{:04}.{extension}", track.count);
            let path = self.dir.join(path);
            let created = File::create(&path);
            let file = created.map_err(|cause| PlayerError::Save { path: path.clone(), cause })?;
            self.saved.push(path.clone());
            let (file, init) = (BufWriter::new(file), track.init.clone());
            let mut open = OpenFile { path, file, init, rate };
            open.write(track.init.as_deref().unwrap_or_default())?;
            track.open = Some(open);
        }
        track.open.as_mut().expect("a file was opened or is open").write(body)
    }

    pub(crate) fn close(mut self) -> Result<Vec<PathBuf>, PlayerError> {
        for track in std::mem::take(&mut self.tracks).into_values() {
            track.open.map_or(Ok(()), OpenFile::close)?;
        }
        Ok(self.saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &PathBuf) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    const VIDEO: TrackKind = TrackKind::Video;

    fn rung(kbps: u64) -> BitRate {
        BitRate::from_kbps(kbps)
    }

    /// The files' names and what is in them.
    fn saved(pieces: impl IntoIterator<Item = Piece>) -> Vec<(String, String)> {
        let dir = tempfile::tempdir().unwrap();
        let mut saver = Saver::new(dir.path().into(), "player");
        for piece in pieces {
            saver.add(piece).unwrap();
        }
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        saver.close().unwrap().iter().map(|path| (name(path), text(path))).collect()
    }

    #[test]
    fn another_initialisation_begins_another_file() {
        let pieces = [("A", "1", 1), ("A", "2", 2), ("B", "3", 2), ("A", "4", 1)];
        let files = saved(pieces.into_iter().flat_map(|(init, body, kbps)| {
            [Piece::Init(VIDEO, init.into()), Piece::Segment(VIDEO, rung(kbps), body.into())]
        }));
        let file =
            |n: u32, text: &str| (format!("played.player.video.000{n}.mp4"), text.to_owned());
        assert_eq!(files, [file(1, "A12"), file(2, "B3"), file(3, "A4")]);
    }

    #[test]
    fn another_rung_of_a_transport_stream_begins_another_file() {
        let pieces = [("1", 1), ("2", 1), ("3", 2)];
        let segment =
            |(body, kbps): (&'static str, u64)| Piece::Segment(VIDEO, rung(kbps), body.into());
        let files = saved(pieces.map(segment));
        let file = |n: u32, text: &str| (format!("played.player.video.000{n}.ts"), text.to_owned());
        assert_eq!(files, [file(1, "12"), file(2, "3")]);
    }
}
