//! What was played, in files that a decoder plays.
//!
//! A track goes to `played.NAME.TRACK.0001.mp4`: the initialisation segment, then segments in the
//! order of playing. A decoder takes one initialisation segment per file, so a rung with another
//! one begins the next file. MPEG-TS needs none: it is one file, `….0001.ts`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use bytes::Bytes;

use super::PlayerError;
use super::session::Piece;
use crate::presentation::TrackKind;

pub(crate) struct Saver {
    dir: PathBuf,
    name: String,
    tracks: BTreeMap<TrackKind, TrackFiles>,
    saved: Vec<PathBuf>,
}

#[derive(Default)]
struct TrackFiles {
    /// The initialisation segment that the next segment needs.
    init: Option<Bytes>,
    /// The file that is being written, and the initialisation segment at its beginning.
    open: Option<(PathBuf, BufWriter<File>, Option<Bytes>)>,
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
            Piece::Segment(kind, body) => self.segment(kind, &body),
        }
    }

    fn segment(&mut self, kind: TrackKind, body: &Bytes) -> Result<(), PlayerError> {
        let track = self.tracks.entry(kind).or_default();
        if track.open.as_ref().is_none_or(|(_, _, init)| *init != track.init) {
            if let Some((path, mut file, _)) = track.open.take() {
                file.flush().map_err(|source| PlayerError::Save { path, source })?;
            }
            track.count += 1;
            let extension = if track.init.is_some() { "mp4" } else { "ts" };
            let file =
                format!("played.{}.{}.{:04}.{extension}", self.name, kind.name(), track.count);
            let path = self.dir.join(file);
            let fail = |source| PlayerError::Save { path: path.clone(), source };
            let mut file = BufWriter::new(File::create(&path).map_err(fail)?);
            file.write_all(track.init.as_deref().unwrap_or_default()).map_err(fail)?;
            self.saved.push(path.clone());
            track.open = Some((path, file, track.init.clone()));
        }
        let (path, file, _) = track.open.as_mut().expect("a file was opened or is open");
        file.write_all(body).map_err(|source| PlayerError::Save { path: path.clone(), source })
    }

    pub(crate) fn close(mut self) -> Result<Vec<PathBuf>, PlayerError> {
        for track in self.tracks.values_mut() {
            if let Some((path, mut file, _)) = track.open.take() {
                file.flush().map_err(|source| PlayerError::Save { path, source })?;
            }
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

    #[test]
    fn another_initialisation_begins_another_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut saver = Saver::new(dir.path().into(), "player");
        for (init, body) in [("A", "1"), ("A", "2"), ("B", "3"), ("A", "4")] {
            saver.add(Piece::Init(TrackKind::Video, init.into())).unwrap();
            saver.add(Piece::Segment(TrackKind::Video, body.into())).unwrap();
        }
        saver.add(Piece::Segment(TrackKind::Audio, "5".into())).unwrap();
        saver.add(Piece::Segment(TrackKind::Audio, "6".into())).unwrap();
        let saved = saver.close().unwrap();
        let names: Vec<_> =
            saved.iter().map(|p| p.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(
            names,
            [
                "played.player.video.0001.mp4",
                "played.player.video.0002.mp4",
                "played.player.video.0003.mp4",
                "played.player.audio.0001.ts",
            ]
        );
        let texts: Vec<_> = saved.iter().map(text).collect();
        assert_eq!(texts, ["A12", "B3", "A4", "56"]);
    }
}
