//! Sets of versions, made by the real ffmpeg.

use std::path::Path;

use serde_json::{Value, json};
use suiro_media::quality;
use suiro_media::quantised::{GROUP, INDEX_FILE, Kind, Set, prepare_with};
use suiro_media::screen::{Received, Screen, Shown};
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
        (pictures, json!([]), "0 pictures are no whole groups"),
        (&format!("{pictures}/1/kind"), json!("B"), "picture 1 is B-picture 1 of group 0"),
        (&format!("{pictures}/1/offset"), json!(0), "picture 1 is out of place"),
        (&format!("{pictures}/59/bytes"), json!(1), "bytes; the index says"),
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
