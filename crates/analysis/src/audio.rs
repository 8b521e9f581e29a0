//! Sound in real time: what receivers played of it, and how it fits the video.

use suiro_record::tables::AudioRow;
use suiro_record::words::AudioFate;
use suiro_viewer::PIECE;

use crate::group::grouped;
use crate::stats::Distribution;
use crate::view::View;

const PIECE_NS: i64 = PIECE.as_nanos() as i64;
/// What viewers notice (ITU-R BT.1359-1): sound that is so many milliseconds ahead of the video, or so many behind it.
const NOTICED_AHEAD_MS: f64 = 45.0;
const NOTICED_BEHIND_MS: f64 = -125.0;
/// The number that the sound says repeats after so many frames, and may be off by three: Opus lets a tone that ends fade. At
/// 32 kbit/s one number of 256 was read as the one of three frames before.
const NUMBERS: i64 = 256;
const FADES: usize = 3;
/// For so many frames after a concealed piece, or one that was left out, a decoder may say something else: Opus predicts the
/// energy of a frame from the one before. With 4 % of loss, all numbers were right from the tenth frame on.
const RECOVERS: u32 = 25;

/// What one receiver heard.
pub(crate) struct Listener<'a> {
    /// The endpoint's name.
    pub name: &'a str,
    /// The frames within the period, in order.
    rows: Vec<&'a AudioRow>,
    /// When a frame of video was displayed, and by how much the sound of its capture time had been played before, in
    /// milliseconds.
    skews: Vec<(i64, f64)>,
}

/// The receivers of sound, by name.
pub(crate) fn listeners<'v>(view: &'v View<'_>) -> Vec<Listener<'v>> {
    let within = view.within_trial(&view.records.audio, nanos);
    let rows = grouped(within, |row| &*row.endpoint, nanos);
    let listener = |(name, mut rows): (&'v str, Vec<&'v AudioRow>)| {
        // Of several senders, one after the other, each may count from anywhere.
        rows.sort_by_key(|row| (row.t_ns, row.frame));
        let screen = view.player(name).map(|player| player.screen.shown());
        let shown = screen.unwrap_or_default().iter();
        let shown = shown.filter_map(|(t_ns, frame)| Some((*t_ns, frame.captured_ns?)));
        let skews = shown.filter_map(|shown| Some((shown.0, skew_ms(&rows, shown)?))).collect();
        rows.retain(|row| !view.period.skips(nanos(row)));
        Listener { name, rows, skews }
    };
    rows.into_iter().map(listener).collect()
}

fn nanos(row: &AudioRow) -> i64 {
    row.t_ns.as_nanos_i64()
}

/// By how much earlier the sound of its capture time was played than a frame was displayed, in milliseconds; `None` if that
/// sound was not played.
fn skew_ms(rows: &[&AudioRow], (displayed, captured): (i64, i64)) -> Option<f64> {
    let after = rows.partition_point(|row| row.captured_ns.is_none_or(|begun| begun <= captured));
    let row = rows.get(after.checked_sub(1)?)?;
    let into = captured.checked_sub(row.captured_ns?).filter(|into| *into < PIECE_NS)?;
    let played = row.played_ns?.as_nanos_i64().checked_add(into)?;
    Some(displayed.checked_sub(played)? as f64 / 1e6)
}

impl Listener<'_> {
    fn count(&self, fate: AudioFate) -> f64 {
        self.rows.iter().filter(|row| row.fate == fate).count() as f64
    }

    /// Frames of that fate as a share of all.
    pub fn share(&self, fate: AudioFate) -> Option<f64> {
        (!self.rows.is_empty()).then(|| self.count(fate) / self.rows.len() as f64)
    }

    /// Frames from the first that came to the last that was due.
    pub fn frames(&self) -> f64 {
        self.rows.len() as f64
    }

    /// Pieces that were concealed as a share of all that were played.
    pub fn concealed_ratio(&self) -> Option<f64> {
        let concealed = self.rows.iter().map(|row| row.concealed as f64).sum::<f64>();
        let pieces = concealed + self.count(AudioFate::Played);
        (pieces > 0.0).then(|| concealed / pieces)
    }

    /// When frames were played, and for how long they had been held, in milliseconds.
    pub fn held_ms(&self) -> impl Iterator<Item = (i64, f64)> {
        self.rows.iter().filter_map(|row| {
            let (played, received) = (row.played_ns?, row.received_ns?);
            Some((nanos(row), played.saturating_since(received).as_millis_f64()))
        })
    }

    /// When frames were played, and how old they were then, in milliseconds.
    pub fn ages_ms(&self) -> impl Iterator<Item = (i64, f64)> {
        self.rows.iter().filter_map(|row| {
            let age = row.played_ns?.as_nanos_i64().checked_sub(row.captured_ns?)?;
            Some((nanos(row), age as f64 / 1e6))
        })
    }

    /// When frames of video were displayed, and by how much the sound was ahead of them, in milliseconds.
    pub fn skews_ms(&self) -> impl Iterator<Item = (i64, f64)> {
        self.skews.iter().copied()
    }

    /// When pieces were concealed, and how long they were, in milliseconds.
    pub fn concealed_ms(&self) -> impl Iterator<Item = (i64, f64)> {
        self.rows.iter().flat_map(|row| {
            // In place of one that did not come in time, or before one that did.
            let last = match row.fate {
                AudioFate::Lost | AudioFate::Late => nanos(row),
                AudioFate::Played | AudioFate::Skipped => nanos(row).saturating_sub(PIECE_NS),
            };
            let all = std::iter::successors(Some(last), |at| at.checked_sub(PIECE_NS));
            let count = usize::try_from(row.concealed).unwrap_or(usize::MAX);
            // None was before the trial.
            let within = all.take(count).take_while(|at| *at >= 0);
            within.map(|at| (at, PIECE.as_millis_f64()))
        })
    }

    /// Frames of video with sound that viewers notice to be ahead or behind, as a share of those with sound.
    pub fn noticed_ratio(&self) -> Option<f64> {
        let fits = |ms: f64| (NOTICED_BEHIND_MS..=NOTICED_AHEAD_MS).contains(&ms);
        let noticed = self.skews.iter().filter(|(_, ms)| !fits(*ms)).count() as f64;
        (!self.skews.is_empty()).then(|| noticed / self.skews.len() as f64)
    }

    /// Frames whose sound says another number than they have, of those before and after which nothing was concealed or left
    /// out; `None` if none of them says any.
    pub fn misread(&self) -> Option<f64> {
        let mut undisturbed = 0;
        let mut apart = Vec::new();
        for (row, next) in self.rows.iter().zip(self.rows.iter().skip(1)) {
            let is_whole = |row: &AudioRow| row.fate == AudioFate::Played && row.concealed == 0;
            undisturbed = if is_whole(row) { undisturbed + 1 } else { 0 };
            if undisturbed > RECOVERS && is_whole(next) {
                apart.extend(row.heard.zip(row.captured_ns).and_then(off));
            }
        }
        // Numbers in the sound count from 1970, those in the trial from its epoch: how far apart they are is the same for all.
        let mut counts = [0_u32; NUMBERS as usize];
        for apart in &apart {
            counts[*apart] += 1;
        }
        let most = (0..counts.len()).max_by_key(|apart| counts[*apart])?;
        let is_other = |apart: &&usize| {
            apart.abs_diff(most).min(NUMBERS as usize - apart.abs_diff(most)) > FADES
        };
        (!apart.is_empty()).then(|| apart.iter().filter(is_other).count() as f64)
    }
}

/// How far what a frame says is from its place in the trial.
fn off((heard, captured): (u64, i64)) -> Option<usize> {
    let heard = i64::try_from(heard).ok()?;
    usize::try_from(heard.checked_sub(captured.div_euclid(PIECE_NS))?.rem_euclid(NUMBERS)).ok()
}

/// The values of what comes with times.
pub(crate) fn values(all: impl Iterator<Item = (i64, f64)>) -> Distribution {
    Distribution::equal(all.map(|(_, value)| value))
}

#[cfg(test)]
mod tests {
    use suiro_units::{Duration, Time};

    use super::*;

    fn row(frame: i64, fate: AudioFate, played_ms: u64, concealed: u64) -> AudioRow {
        let played = Time::from_millis(played_ms);
        let is_played = fate == AudioFate::Played;
        AudioRow {
            t_ns: played,
            endpoint: "viewer".into(),
            frame,
            captured_ns: Some(frame * PIECE_NS),
            encoded_bytes: None,
            received_ns: (fate != AudioFate::Lost).then(|| Time::from_millis(played_ms - 15)),
            fate,
            played_ns: is_played.then_some(played),
            concealed,
            buffer_target_ns: Duration::ZERO,
            heard: is_played.then_some((frame as u64 + 77) % 256),
        }
    }

    fn listener<'a>(rows: &'a [AudioRow], shown: &[(i64, i64)]) -> Listener<'a> {
        let rows: Vec<&AudioRow> = rows.iter().collect();
        let ms = |ms: i64| ms * 1_000_000;
        let skews = shown.iter().filter_map(|(displayed, captured)| {
            Some((ms(*displayed), skew_ms(&rows, (ms(*displayed), ms(*captured)))?))
        });
        let skews = skews.collect();
        Listener { name: "viewer", rows, skews }
    }

    #[test]
    fn sound_that_is_played_before_its_video_is_ahead() {
        let rows = [
            row(0, AudioFate::Played, 100, 0),
            row(1, AudioFate::Lost, 120, 1),
            row(2, AudioFate::Played, 140, 0),
        ];
        // Captured at 10 ms, which was played at 110 ms; at 30 ms, which was lost; at 45 and 70 ms.
        let shown = [(130, 10), (150, 30), (120, 45), (170, 70)];
        let one = listener(&rows, &shown);
        let skews: Vec<f64> = one.skews_ms().map(|(_, ms)| ms).collect();
        assert_eq!(skews, [20.0, -25.0]);
        assert_eq!(one.noticed_ratio(), Some(0.0));
        assert_eq!(
            listener(&rows, &[(160, 10), (130, 10), (-20, 10)]).noticed_ratio(),
            Some(2.0 / 3.0)
        );
        assert_eq!(listener(&rows, &[]).noticed_ratio(), None);
    }

    #[test]
    fn shares_are_of_frames_and_of_pieces() {
        let rows = [
            row(0, AudioFate::Played, 100, 0),
            row(1, AudioFate::Late, 120, 1),
            row(2, AudioFate::Played, 160, 1),
            row(3, AudioFate::Lost, 180, 1),
            row(4, AudioFate::Skipped, 180, 0),
        ];
        let one = listener(&rows, &[]);
        assert_eq!(one.share(AudioFate::Lost), Some(0.2));
        assert_eq!(one.share(AudioFate::Late), Some(0.2));
        // Two pieces of frames, three concealed.
        assert_eq!(one.concealed_ratio(), Some(0.6));
        assert_eq!(values(one.held_ms()).mean(), Some(15.0));
        assert_eq!(values(one.ages_ms()).mean(), Some(110.0));
    }

    #[test]
    fn pieces_are_concealed_one_after_the_other() {
        let rows = [
            row(0, AudioFate::Played, 100, 0),
            row(1, AudioFate::Played, 180, 3),
            row(2, AudioFate::Lost, 220, 2),
            row(3, AudioFate::Late, 240, 1),
            row(4, AudioFate::Skipped, 260, 0),
            row(5, AudioFate::Played, 20, u64::MAX),
        ];
        let all: Vec<(i64, f64)> = listener(&rows, &[]).concealed_ms().collect();
        assert!(all.iter().all(|(_, ms)| *ms == 20.0));
        let times: Vec<i64> = all.iter().map(|(at, _)| at / 1_000_000).collect();
        assert_eq!(times, [160, 140, 120, 220, 200, 240, 0]);
    }

    #[test]
    fn what_says_another_number_is_counted() {
        let mut rows: Vec<AudioRow> = (0..600).map(|n| row(n, AudioFate::Played, 100, 0)).collect();
        assert_eq!(listener(&rows, &[]).misread(), Some(0.0));
        rows[300].heard = rows[301].heard;
        rows[400].heard = rows[410].heard;
        rows[500].heard = None;
        assert_eq!(listener(&rows, &[]).misread(), Some(1.0), "the next number is a smear");
        rows[397].concealed = 1;
        assert_eq!(listener(&rows, &[]).misread(), Some(0.0), "after a concealed piece");
        rows[397].concealed = 0;
        rows[401].fate = AudioFate::Lost;
        assert_eq!(listener(&rows, &[]).misread(), Some(0.0), "before a lost one");
        for row in &mut rows {
            row.heard = None;
        }
        assert_eq!(listener(&rows, &[]).misread(), None);
    }
}
