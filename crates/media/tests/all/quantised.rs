//! Sets of versions, made by the real ffmpeg.

use std::path::Path;

use serde_json::{Value, json};
use suiro_media::quality;
use suiro_media::quantised::{GROUP, INDEX_FILE, Kind, Set, prepare_with};
use suiro_media::screen::{self, Received, Screen, Sent, Shown, Stream};
use suiro_media::spec::{Codec, Source};
use suiro_media::{Ffmpeg, MediaSpec};
use suiro_units::{BitRate, Duration};

fn ffmpeg() -> Ffmpeg {
    Ffmpeg::locate().expect("the tests of this crate need ffmpeg: `make setup`")
}

/// Two groups in two versions.
fn spec() -> MediaSpec {
    MediaSpec {
        codec: Codec::Mpeg2,
        quantisers: Some(vec![31, 4]),
        length: Duration::from_millis(2_100),
        stamp: true,
        ..MediaSpec::new(Source::Synthetic)
    }
}

fn prepare(cache: &Path) -> Set {
    prepare_with(&ffmpeg(), &spec(), cache, &mut |_, _| {}).unwrap()
}

#[test]
fn versions_of_the_same_pictures_by_rising_rate() {
    let cache = tempfile::tempdir().unwrap();
    let set = prepare(cache.path());
    assert_eq!((set.frames(), set.groups()), (60, 2));
    assert_eq!(set.versions.iter().map(|version| version.scale).collect::<Vec<_>>(), [31, 4]);
    let [low, high] = [set.versions[0].rate, set.versions[1].rate];
    for (rate, best) in [(BitRate::from_bps(1), None), (low, Some(0)), (high, Some(1))] {
        assert_eq!(set.best_under(rate), best, "{rate}");
    }
    assert_eq!(set.best_under(BitRate::from_bps(high.as_bps() - 1)), Some(0));
    assert_eq!(set.of_rate(high), Some(1));
    for version in &set.versions {
        let file = std::fs::read(set.folder.join(&version.file)).unwrap();
        let bits = file.len() as f64 * 8.0;
        assert!((bits / 2.002 - version.rate.as_bps() as f64).abs() <= 1.0);
        let group = set.group(set.of_rate(version.rate).unwrap(), 3).unwrap();
        // The second of the second loop.
        assert!(file.ends_with(group.bytes()));
        let pictures: Vec<_> = group.pictures().collect();
        assert_eq!(pictures.len(), GROUP as usize);
        assert_eq!((pictures[0].0, pictures[29].0), (Kind::I, Kind::P));
        assert_eq!(pictures.concat_bytes(), group.bytes());
        assert_eq!(pictures[0].1[..4], [0, 0, 1, 0xb3]);
    }
    // Found, not made again.
    let mut told = String::new();
    let again =
        prepare_with(&ffmpeg(), &spec(), cache.path(), &mut |_, what| told = what.to_owned());
    assert_eq!((again.unwrap(), told.as_str()), (set, "prepared before"));
}

trait Concat {
    fn concat_bytes(&self) -> Vec<u8>;
}

impl Concat for Vec<(Kind, &[u8])> {
    fn concat_bytes(&self) -> Vec<u8> {
        self.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect()
    }
}

#[test]
fn a_damaged_set_is_refused() {
    let cache = tempfile::tempdir().unwrap();
    let set = prepare(cache.path());
    let index = set.folder.join(INDEX_FILE);
    let whole: Value = serde_json::from_slice(&std::fs::read(&index).unwrap()).unwrap();
    let pictures = "/versions/0/pictures";
    for (place, value, why) in [
        ("/version", json!(0), "version 0"),
        ("/versions", json!([]), "no versions"),
        ("/versions/1/rate", json!("1 bit/s"), "do not rise"),
        ("/versions/0/file", json!("../q4.m2v"), "not in the set's folder"),
        ("/versions/0/file", json!("q31.m2v/x"), "not in the set's folder"),
        ("/versions/0/file", json!("none.m2v"), "No such file"),
        (pictures, json!([]), "0 frames are not a whole number of groups"),
        (&format!("{pictures}/1/kind"), json!("B"), "frame 1 is B-frame 1 of group 0"),
        (&format!("{pictures}/1/offset"), json!(0), "frame 1 is out of place"),
        (&format!("{pictures}/59/bytes"), json!(1), "bytes; expected"),
        (&format!("{pictures}/59/bytes"), json!(0), "out of place"),
        (&format!("{pictures}/59/bytes"), json!(-1), "invalid value"),
    ] {
        let mut changed = whole.clone();
        *changed.pointer_mut(place).unwrap() = value;
        std::fs::write(&index, changed.to_string()).unwrap();
        let refusal = Set::load(&set.folder).unwrap_err().to_string();
        assert!(refusal.contains(why) && refusal.contains("\nhint: "), "{place}: {refusal}");
    }
    // It is made anew.
    assert_eq!(prepare(cache.path()), set);
}

#[test]
fn a_screen_of_two_versions_is_filmed_and_scored() {
    let cache = tempfile::tempdir().unwrap();
    let set = prepare(cache.path());
    let ffmpeg = ffmpeg();
    // The low version, from the second group on the high one, a freeze of three, on into the loop.
    let frames = (0..33).chain([33, 33, 33]).chain(36..64);
    let ticks: Vec<Option<Shown>> = std::iter::once(None)
        .chain(frames.map(|frame| Some(Shown { frame, rung: usize::from(frame >= 30) })))
        .collect();
    let screen = Screen { ffmpeg: &ffmpeg, received: Received::Set(&set), ticks: &ticks };
    let stamps = screen.write(&cache.path().join("screen.mp4")).unwrap();
    let says: Vec<_> = stamps.iter().map(|stamp| stamp.map(|s| u64::from(s.frame))).collect();
    let wants: Vec<_> = ticks.iter().map(|shown| shown.map(|s| s.frame % 60)).collect();
    assert_eq!(says, wants);
    let quality = quality::measure(&screen, 1, cache.path(), &mut |_, _| {}).unwrap();
    let psnr = |tick: usize| quality.picture.ticks[tick].map(|score| score.psnr_db);
    assert!(psnr(20).unwrap() + 3.0 < psnr(50).unwrap(), "{:?} {:?}", psnr(20), psnr(50));
    assert_eq!(psnr(35), None);
    let frozen = quality.experience.ticks[36].unwrap().psnr_db;
    assert!(frozen < psnr(34).unwrap(), "{frozen}");
}

/// What a viewer kept that shows damage: of the first group a frame does not have slices in the middle, another
/// did not come at all; the second group is of another version, and whole.
fn damaged(set: &Set, folder: &Path) -> Stream {
    let (mut frames, mut bytes) = (Vec::new(), Vec::new());
    for (version, group) in [(1, 0), (0, 1)] {
        for (place, (_, picture)) in set.group(version, group).unwrap().pictures().enumerate() {
            match (group, place) {
                (0, 12) => {}
                (0, 20) => bytes.extend(without_slices(picture, 5..20)),
                _ => bytes.extend_from_slice(picture),
            }
            if (group, place) != (0, 12) {
                frames.push(group * u64::from(GROUP) + place as u64);
            }
        }
    }
    let file = folder.join("received.viewer.m2v");
    std::fs::write(&file, bytes).unwrap();
    let source = Sent::Set(Box::new(set.clone()));
    Stream { file, codec: screen::Codec::Mpeg2, frames, source, conceals: true }
}

/// A frame without the slices of those rows of macroblocks.
fn without_slices(picture: &[u8], rows: std::ops::Range<u8>) -> Vec<u8> {
    let codes = picture.windows(4).enumerate().filter(|(_, code)| code[..3] == [0, 0, 1]);
    let starts: Vec<(usize, u8)> = codes.map(|(at, code)| (at, code[3])).collect();
    let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([picture.len()]);
    let kept = starts.iter().zip(ends).filter(|((_, code), _)| {
        // Slice start codes count rows from 1 (ISO/IEC 13818-2 §6.2.4).
        !(1..=0xaf).contains(code) || !rows.contains(&(code - 1))
    });
    kept.flat_map(|((at, _), end)| picture[*at..end].to_vec()).collect()
}

#[test]
fn what_a_loss_made_of_pictures_is_on_the_screen() {
    let cache = tempfile::tempdir().unwrap();
    let set = prepare(cache.path());
    let stream = damaged(&set, cache.path());
    let last = |tick: u64| stream.frames.iter().rev().find(|frame| **frame <= tick);
    let ticks: Vec<_> =
        (0..60).map(|tick| last(tick).map(|frame| Shown { frame: *frame, rung: 0 })).collect();
    let ffmpeg = ffmpeg();
    let screen = Screen { ffmpeg: &ffmpeg, received: Received::Stream(&stream), ticks: &ticks };
    let stamps = screen.write(&cache.path().join("screen.viewer.mp4")).unwrap();
    let said: Vec<_> =
        stamps.iter().map(|stamp| stamp.map(|stamp| u64::from(stamp.frame))).collect();
    let shown: Vec<_> = ticks.iter().map(|shown| shown.map(|shown| shown.frame)).collect();
    // Before the damage and from the next group on each frame is what it says to be; in between, the
    // changes of the stamp that did not come make it unreadable.
    assert_eq!(said[..13], shown[..13]);
    assert_eq!(said[30..], shown[30..]);
    let quality = quality::measure(&screen, 0, cache.path(), &mut |_, _| {}).unwrap();
    let mean = |range: std::ops::Range<usize>| {
        let scores: Vec<f64> =
            range.filter_map(|n| Some(quality.picture.ticks[n]?.psnr_db)).collect();
        scores.iter().sum::<f64>() / scores.len() as f64
    };
    let (before, damaged, after) = (mean(0..12), mean(20..30), mean(30..60));
    assert!(damaged < before - 3.0, "before {before:.1}, damaged {damaged:.1} dB");
    assert!(damaged > 10.0, "it is concealed, not grey: {damaged:.1} dB");
    assert!(after > 20.0, "{after:.1} dB");
}
