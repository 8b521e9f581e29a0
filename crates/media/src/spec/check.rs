//! What no encoder or player could make of a specification.

use std::collections::BTreeSet;

use suiro_strict::{Bounded, Bounds, Holds, Keys, Refusal, bounds};
use suiro_units::{BitRate, Duration};

use crate::quantised::GROUP_DURATION;
use crate::stamp;

use super::{Audio, Codec, MediaSpec, Rung, Source};

/// Most rungs of a ladder.
pub const RUNGS_MAX: usize = 16;

/// Longest clip that is encoded; it repeats anyway.
pub const LENGTH_MAX: Duration = Duration::from_secs(3600);

const SEGMENT: Bounds<Duration> = Bounds::new(Duration::from_millis(200), Duration::from_secs(20));
const LENGTH: Bounds<Duration> = Bounds::new(*SEGMENT.least(), LENGTH_MAX);
const FPS: Bounds<u32> = Bounds::new(1, 120);
const SCALES: Bounds<u8> = Bounds::new(1, 31);

bounds! {
    MediaSpec {
        ladder: Bounds::new(1, RUNGS_MAX),
        segment: SEGMENT,
        fps: FPS,
        length: LENGTH,
        from: Bounds::new(Duration::ZERO, LENGTH_MAX),
        quantisers: Bounds::new(1, RUNGS_MAX),
        b_frames: Bounds::new(0, 4),
        audio: Bounds::new(BitRate::from_kbps(32), BitRate::from_kbps(320));
        tables: ladder;
        each: quantisers: SCALES
    }
}

bounds! {
    Rung {
        bitrate: Bounds::new(BitRate::from_kbps(50), BitRate::from_mbps(200)),
        width: Bounds::new(64, 8192),
        height: Bounds::new(64, 4320),
        fps: FPS,
    }
}

impl Holds<BitRate> for Audio {
    fn held(&self) -> Option<BitRate> {
        match self {
            Self::Off => None,
            Self::On(rate) => Some(*rate),
        }
    }
}

const NAME_MAX: usize = 40;

impl MediaSpec {
    /// Checks what the types cannot: bounds, and how values go together.
    ///
    /// # Errors
    /// The first of [`Self::refusals`].
    pub fn validate(&self) -> Result<(), Refusal> {
        self.refusals().into_iter().next().map_or(Ok(()), Err)
    }

    /// Everything that is wrong: first what is out of its bounds, then what does not go together.
    pub fn refusals(&self) -> Vec<Refusal> {
        let mut faults = Faults(self.out_of_bounds());
        if matches!(&self.source, Source::File(path) if path.as_os_str().is_empty()) {
            faults.add(&["source"], "no source", "write \"bbb\", \"synthetic\" or a path");
        }
        if self.codec == Codec::Mpeg2 {
            self.check_mpeg2(&mut faults);
            return faults.0;
        }
        if self.quantisers.is_some() {
            let hint = "write codec = \"mpeg2\", or remove it";
            faults.add(&["quantisers"], "`h264` uses a ladder, not quantisers", hint);
        }
        if !self.from.is_zero() {
            let hint = "remove it, or write codec = \"mpeg2\"";
            faults.add(&["from"], "`h264` always begins at the start of its source", hint);
        }
        self.check_ladder(&mut faults);
        self.check_times(&mut faults);
        faults.0
    }

    fn check_mpeg2(&self, faults: &mut Faults) {
        let plain = Self::new(self.source.clone());
        let same = [
            ("ladder", self.ladder == plain.ladder),
            ("segment", self.segment == plain.segment),
            ("gop", self.gop == plain.gop),
            ("fps", self.fps == plain.fps),
            ("preset", self.preset == plain.preset),
            ("b_frames", self.b_frames == plain.b_frames),
            ("audio", matches!(self.audio, Audio::Off) || self.audio == plain.audio),
            ("format", self.format == plain.format),
        ];
        for (key, _) in same.iter().filter(|(_, same)| !same) {
            let hint = "remove it: `mpeg2` is always 720×480 at 29.97 per second, in groups of 30";
            faults.add(&[key], "not for `mpeg2`", hint);
        }
        faults.at_least("length", self.length, GROUP_DURATION, "one group of pictures");
        let scales = self.scales();
        let distinct: BTreeSet<&u8> = scales.iter().collect();
        if distinct.len() != scales.len() {
            faults.expect(&["quantisers"], format!("the scales {scales:?}"), "each scale once");
        }
    }

    fn check_ladder(&self, faults: &mut Faults) {
        for (index, rung) in self.ladder.iter().enumerate() {
            self.check_rung(&index.to_string(), rung, faults);
            let same = |other: &&Rung| other.label() == rung.label();
            if self.ladder[..index].iter().any(|other| same(&other)) {
                let message = format!("two rungs are named `{}`", rung.label());
                let hint = "give each its own `name`";
                faults.add(&["ladder", &index.to_string(), "name"], message, hint);
            }
        }
    }

    fn check_rung(&self, index: &str, rung: &Rung, faults: &mut Faults) {
        if rung.name.as_ref().is_some_and(|n| n.is_empty() || n.chars().count() > NAME_MAX) {
            let found = format!("the name `{}`", rung.name.as_deref().unwrap_or_default());
            faults.expect(&["ladder", index, "name"], found, format!("1 to {NAME_MAX} characters"));
        }
        if let Some(width) = rung.width {
            faults.even(&["ladder", index, "width"], width);
        }
        faults.even(&["ladder", index, "height"], rung.height);
        if self.stamp && rung.height < stamp::HEIGHT_MIN {
            let message = format!("{} lines are too few for a stamp", rung.height);
            let expected = format!("at least {} lines, or `stamp = false`", stamp::HEIGHT_MIN);
            faults.expect(&["ladder", index, "height"], message, expected);
        }
        let fps = self.fps_of(rung);
        if FPS.contains(&fps) && !whole_frames(self.gop(), fps) {
            let gop = self.gop();
            let message =
                format!("{gop} between key frames is not a whole number of frames at {fps}");
            let key = if self.gop.is_some() { "gop" } else { "segment" };
            faults.add(&[key], message, "use a multiple of 1 s, or another `fps`");
        }
    }

    fn check_times(&self, faults: &mut Faults) {
        faults.whole_ms("segment", self.segment);
        if let Some(gop) = self.gop {
            faults.whole_ms("gop", gop);
            if gop.is_zero() || !self.segment.as_nanos().is_multiple_of(gop.as_nanos()) {
                let message = format!("segments of {} cannot begin at key frames", self.segment);
                faults.expect(&["gop"], message, "the segment divided by a whole number");
            }
        }
        faults.at_least("length", self.length, self.segment, "one segment");
    }
}

fn whole_frames(span: Duration, fps: u32) -> bool {
    (u128::from(span.as_nanos()) * u128::from(fps)).is_multiple_of(1_000_000_000)
}

struct Faults(Vec<Refusal>);

impl Faults {
    fn push(&mut self, refusal: Refusal) {
        // One value of all rungs, such as `fps`, is refused once.
        if !self.0.contains(&refusal) {
            self.0.push(refusal);
        }
    }

    fn add(&mut self, key: &[&str], found: impl Into<String>, hint: impl Into<String>) {
        self.push(Refusal::new(keys(key), found).hint(hint));
    }

    fn expect(&mut self, key: &[&str], found: impl Into<String>, expected: impl Into<String>) {
        self.push(Refusal::new(keys(key), found).expected(expected));
    }

    /// A duration within its own bounds must also be at least `least`, which is `what`.
    fn at_least(&mut self, key: &str, value: Duration, least: Duration, what: &str) {
        if value < least && LENGTH.contains(&value) {
            let expected = format!("at least {what}, {least}");
            self.expect(&[key], format!("{value} is too short"), expected);
        }
    }

    fn even(&mut self, key: &[&str], value: u32) {
        if !value.is_multiple_of(2) {
            // 4:2:0 has one colour sample for two pixels across and down.
            let found = format!("{value} is odd; 4:2:0 video needs an even number");
            self.expect(key, found, format!("{} or {}", value - 1, value.saturating_add(1)));
        }
    }

    fn whole_ms(&mut self, key: &str, value: Duration) {
        if !value.as_nanos().is_multiple_of(1_000_000) {
            let message = format!("{value} is not a whole number of milliseconds");
            self.add(&[key], message, "round it to a millisecond");
        }
    }
}

fn keys(key: &[&str]) -> Keys {
    Keys(key.iter().map(|step| (*step).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use suiro_strict::Site;

    use super::*;

    fn spec() -> MediaSpec {
        MediaSpec::new(Source::Bbb)
    }

    fn keys(spec: &MediaSpec) -> Vec<String> {
        spec.refusals().iter().map(|refusal| refusal.place.name()).collect()
    }

    #[test]
    fn the_defaults_are_sound() {
        for source in [Source::Bbb, Source::Synthetic, Source::File("a.mp4".into())] {
            assert_eq!(MediaSpec::new(source).validate(), Ok(()));
        }
    }

    #[test]
    fn each_fault_names_its_key() {
        let ms = Duration::from_millis;
        type Change = Box<dyn Fn(&mut MediaSpec)>;
        let cases: Vec<(&str, Change)> = vec![
            ("source", Box::new(|s| s.source = Source::File("".into()))),
            ("ladder", Box::new(|s| s.ladder.clear())),
            ("ladder.1.height", Box::new(|s| s.ladder[1].height = 541)),
            ("ladder.3.height", Box::new(|s| (s.stamp, s.ladder[3].height) = (true, 88))),
            ("ladder.2.width", Box::new(|s| s.ladder[2].width = Some(2))),
            ("ladder.0.bitrate", Box::new(|s| s.ladder[0].bitrate = BitRate::from_bps(9))),
            ("ladder.3.fps", Box::new(|s| s.ladder[3].fps = Some(0))),
            ("ladder.1.name", Box::new(|s| s.ladder[1].name = Some("720p".into()))),
            ("fps", Box::new(|s| s.fps = Some(1000))),
            ("segment", Box::new(move |s| s.segment = ms(2_010))),
            ("segment", Box::new(move |s| s.segment = Duration::from_secs(21))),
            ("gop", Box::new(move |s| s.gop = Some(ms(750)))),
            ("gop", Box::new(move |s| s.gop = Some(Duration::ZERO))),
            ("length", Box::new(move |s| s.length = ms(1_999))),
            ("length", Box::new(move |s| s.length = Duration::from_secs(3601))),
            ("b_frames", Box::new(|s| s.b_frames = 5)),
            ("quantisers", Box::new(|s| s.quantisers = Some(vec![2]))),
            ("from", Box::new(move |s| s.from = ms(1))),
            ("from", Box::new(move |s| (s.codec, s.from) = (Codec::Mpeg2, ms(3_600_001)))),
            ("fps", Box::new(|s| (s.codec, s.fps) = (Codec::Mpeg2, Some(30)))),
            ("ladder", Box::new(|s| (s.codec, _) = (Codec::Mpeg2, s.ladder.pop()))),
            ("length", Box::new(move |s| (s.codec, s.length) = (Codec::Mpeg2, ms(1_000)))),
            ("quantisers", Box::new(|s| (s.codec, s.quantisers) = (Codec::Mpeg2, Some(vec![])))),
            ("quantisers.0", Box::new(|s| (s.codec, s.quantisers) = (Codec::Mpeg2, Some(vec![0])))),
            (
                "quantisers",
                Box::new(|s| (s.codec, s.quantisers) = (Codec::Mpeg2, Some(vec![2, 2]))),
            ),
            ("audio", Box::new(|s| s.audio = Audio::On(BitRate::from_kbps(8)))),
        ];
        for (key, change) in cases {
            let mut spec = spec();
            change(&mut spec);
            assert_eq!(keys(&spec), [key], "{spec:?}");
        }
    }

    #[test]
    fn an_error_reads_well() {
        let mut spec = spec();
        spec.ladder[1].height = 541;
        assert_eq!(
            spec.validate().unwrap_err().to_string(),
            "ladder.1.height: 541 is odd; 4:2:0 video needs an even number\nexpected: 540 or 542"
        );
    }

    #[test]
    fn text_round_trips_and_unknown_keys_are_refused() {
        let text = r#"{"source":"film.mp4","ladder":[{"bitrate":"1 Mbit/s","height":360}],
            "audio":"64 kbit/s","format":"both","gop":"500 ms"}"#;
        let spec: MediaSpec = serde_json::from_str(text).unwrap();
        assert_eq!(spec.source, Source::File("film.mp4".into()));
        assert_eq!(spec.audio, Audio::On(BitRate::from_kbps(64)));
        let again = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<MediaSpec>(&again).unwrap(), spec);
        let silent: MediaSpec = serde_json::from_str(r#"{"source":"bbb","audio":false}"#).unwrap();
        assert_eq!(silent.audio, Audio::Off);
        let error = serde_json::from_str::<MediaSpec>(r#"{"source":"bbb","lader":[]}"#);
        assert!(error.unwrap_err().to_string().contains("unknown field `lader`"));
    }
}
