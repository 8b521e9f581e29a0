//! Screens: which frames a viewer was shown, when, and how good they looked.

use std::ops::Range;

use suiro_record::tables::{FrameRow, QualityRow};
use suiro_units::{Duration, Time};
use suiro_viewer::Freezes;

use crate::period::Period;
use crate::stats::Distribution;

/// Capture times may be of whole milliseconds: a frame that seems to come so shortly before a pause may be one of it.
const NEAR_NS: i64 = 2_000_000;

/// One viewer's screen.
#[derive(Debug, Default)]
pub(crate) struct Screen<'a> {
    /// What was shown within the trial, in order.
    all: Vec<(i64, &'a FrameRow)>,
    /// How many of these were shown in the warm-up.
    warm_up: usize,
    /// When the video froze within the period.
    freezes: Vec<(i64, i64)>,
    /// Whether these are all freezes: too few frames do not show the rate of their source.
    knows_freezes: bool,
    /// When nothing was captured that could be shown.
    pauses: Vec<Range<i64>>,
    /// The same on the screen.
    still: Vec<Still>,
    /// Scores of what was shown within the period, in order.
    pub quality: Vec<&'a QualityRow>,
    /// When the warm-up ended.
    from_ns: i64,
    /// When the viewing ended.
    end_ns: i64,
}

impl<'a> Screen<'a> {
    /// From the rows of one viewer, in any order, the period, which ends with the viewing, and when its source paused.
    pub fn new(
        frames: &[&'a FrameRow],
        mut quality: Vec<&'a QualityRow>,
        period: Period,
        pauses: Vec<Range<i64>>,
    ) -> Self {
        let Period { from_ns, to_ns: end_ns } = period;
        let within = |t_ns: &i64| (0..end_ns).contains(t_ns);
        let time = |row: &'a FrameRow| Some((row.displayed_ns.filter(within)?, row));
        let mut all: Vec<_> = frames.iter().filter_map(|row| time(row)).collect();
        all.sort_by_key(|(t_ns, row)| (*t_ns, row.frame));
        let warm_up = all.partition_point(|(t_ns, _)| period.skips(*t_ns));
        let still = still(&all, &pauses, end_ns);
        let moves = |t_ns: i64| !still.iter().any(|it| (it.from_ns..it.to_ns).contains(&t_ns));
        quality.retain(|row| period.contains(row.t_ns) && moves(row.t_ns));
        quality.sort_by_key(|row| row.t_ns);
        let (freezes, is_certain) = find_freezes(interval(frames), (&all, &still), end_ns);
        let freezes = freezes.into_iter().filter_map(|freeze| period.part(freeze)).collect();
        let knows_freezes = is_certain && !all.is_empty();
        Self { all, warm_up, freezes, knows_freezes, pauses, still, quality, from_ns, end_ns }
    }

    /// Whether a frame that was not received would have been captured in a pause of the source, or up to 2 ms before one.
    pub fn is_paused(&self, captured_ns: i64) -> bool {
        self.pauses.iter().any(|pause| near(pause).contains(&captured_ns))
    }

    /// True if it is known which frames were shown.
    pub fn is_known(&self) -> bool {
        !self.all.is_empty()
    }

    /// How old each frame was when it was shown, in milliseconds, with when that was.
    pub fn latencies(&self) -> impl Iterator<Item = (i64, f64)> {
        self.shown().iter().filter_map(|(t_ns, row)| {
            Some((*t_ns, t_ns.saturating_sub(row.captured_ns?) as f64 / 1e6))
        })
    }

    /// The time from one event to another of the frames shown, in milliseconds, where both are known. Media that is
    /// fetched in segments has none: its `received_ns` is of the segment.
    pub fn between(
        &self,
        from: fn(&FrameRow) -> Option<i64>,
        to: fn(&FrameRow) -> Option<i64>,
    ) -> Distribution {
        let sent = self.shown().iter().filter(|(_, row)| row.sent_ns.is_some());
        let times = sent.filter_map(|(_, row)| Some((from(row)?, to(row)?)));
        Distribution::equal(times.map(|(from, to)| to.saturating_sub(from) as f64 / 1e6))
    }

    /// What was shown within the period, with when, in order.
    pub fn shown(&self) -> &[(i64, &'a FrameRow)] {
        &self.all[self.warm_up..]
    }

    /// When the first frame was shown at that time or later, in the warm-up or after it.
    pub fn first_shown_ns(&self, since_ns: i64) -> Option<i64> {
        self.all.iter().map(|(t_ns, _)| *t_ns).find(|t_ns| *t_ns >= since_ns)
    }

    /// When the viewing ended.
    pub fn end_ns(&self) -> i64 {
        self.end_ns
    }

    /// When the video froze within the period, as stretches of time. Unless [`Self::knows_freezes`], there may have been more.
    pub fn freezes(&self) -> &[(i64, i64)] {
        &self.freezes
    }

    /// Whether it is known when the video froze.
    pub const fn knows_freezes(&self) -> bool {
        self.knows_freezes
    }

    /// The lengths of the freezes in seconds; `None` if they are not known.
    fn freeze_lengths(&self) -> Option<Vec<f64>> {
        let lengths = self.freezes.iter().map(|(from, to)| (to - from) as f64 / 1e9);
        self.knows_freezes.then(|| lengths.collect())
    }

    /// How often the video froze.
    pub fn freeze_count(&self) -> Option<f64> {
        Some(self.freeze_lengths()?.len() as f64)
    }

    /// How long it stalled in total, in seconds.
    pub fn freeze_s(&self) -> Option<f64> {
        Some(self.freeze_lengths()?.iter().sum())
    }

    /// How long it stalled at most, in seconds.
    pub fn freeze_max_s(&self) -> Option<f64> {
        Some(self.freeze_lengths()?.into_iter().fold(0.0, f64::max))
    }

    /// Frames shown per second, from the first one, or the end of the warm-up, to the end of the viewing, without pauses.
    pub fn fps_shown(&self) -> Option<f64> {
        let from_ns = self.all.first()?.0.max(self.from_ns);
        let still = self.still.iter().map(|it| it.to_ns.saturating_sub(it.from_ns.max(from_ns)));
        let still_ns = still.map(|ns| ns.max(0)).fold(0, i64::saturating_add);
        let span_ns = (self.end_ns - from_ns).saturating_sub(still_ns);
        (span_ns > 0).then(|| self.shown().len() as f64 * 1e9 / span_ns as f64)
    }

    /// Frames left out between one that was shown and the next, without those of pauses. If the number falls, the player went
    /// back, and nothing counts.
    pub fn frames_skipped(&self) -> Option<f64> {
        let between = self.shown().windows(2).map(|pair| {
            let (one, next) = (pair[0].1, pair[1].1);
            let between = next.frame.saturating_sub(one.frame).saturating_sub(1).max(0);
            between.saturating_sub(paused_between(one, next, &self.pauses)).max(0)
        });
        let skipped = between.fold(0, i64::saturating_add);
        self.is_known().then_some(skipped as f64)
    }

    /// Frames shown of which a decoder had to make up parts.
    pub fn frames_damaged(&self) -> Option<f64> {
        let damaged = self.shown().iter().filter(|(_, row)| row.damaged).count();
        self.is_known().then_some(damaged as f64)
    }

    /// What `value` makes of the ticks of the screen.
    pub fn scores(&self, value: impl Fn(&QualityRow) -> Option<f64>) -> Distribution {
        Distribution::equal(self.quality.iter().filter_map(|row| value(row)))
    }

    /// The opinion that viewers would have of the frames, from 1 (bad) to 5 (excellent). The VMAF
    /// model v0.6.1 was trained on votes on that scale and is linear in it, with "bad" at about 20
    /// and "excellent" at 100 (Netflix, `resource/doc/models.md` of the VMAF repository).
    pub fn mos(&self) -> Option<f64> {
        let vmaf = self.scores(|row| row.picture_vmaf).mean()?;
        Some((vmaf / 20.0).clamp(1.0, 5.0))
    }
}

/// A time for which the source has nothing new for the screen, because it pauses: after so many frames that were shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Still {
    shown: usize,
    from_ns: i64,
    to_ns: i64,
}

/// When a screen has nothing new to show: a pause comes to it with the age of the frame that was shown before it. It begins when the
/// pause does. The 2 ms of [`near`] are not added: they are only for frames that were not shown.
fn still(shown: &[(i64, &FrameRow)], pauses: &[Range<i64>], end_ns: i64) -> Vec<Still> {
    let after = shown.iter().skip(1).map(|(t_ns, row)| (*t_ns, row.captured_ns));
    let after = after.chain([(end_ns, None)]);
    let mut found = Vec::new();
    for (count, ((from_ns, row), (to_ns, next_ns))) in (1..).zip(shown.iter().zip(after)) {
        let captured_ns = row.captured_ns.unwrap_or(*from_ns);
        let age_ns = from_ns.saturating_sub(captured_ns);
        let on_screen = |t_ns: i64| t_ns.saturating_add(age_ns).max(*from_ns).min(to_ns);
        for pause in pauses {
            let begins = pause.start.max(captured_ns);
            let ends = pause.end.min(next_ns.unwrap_or(to_ns));
            if begins < ends {
                let (from_ns, to_ns) = (on_screen(begins), on_screen(ends));
                found.push(Still { shown: count, from_ns, to_ns });
            }
        }
    }
    found
}

/// A pause, and what may be one of its frames.
fn near(pause: &Range<i64>) -> Range<i64> {
    pause.start.saturating_sub(NEAR_NS)..pause.end
}

/// How many of the frames between two that were shown would have been captured in a pause, if all of them were captured at equal
/// intervals.
fn paused_between(one: &FrameRow, next: &FrameRow, pauses: &[Range<i64>]) -> i64 {
    let Some((from_ns, to_ns)) = one.captured_ns.zip(next.captured_ns) else { return 0 };
    let frames = i128::from(next.frame) - i128::from(one.frame);
    let ns = i128::from(to_ns) - i128::from(from_ns);
    if frames < 2 || ns <= 0 {
        return 0;
    }
    // How many of them come before a time.
    let before = |t_ns: i64| {
        let elapsed = (i128::from(t_ns) - i128::from(from_ns)).clamp(0, ns);
        let after = elapsed.saturating_mul(frames).saturating_add(ns - 1) / ns;
        (after - 1).clamp(0, frames - 1)
    };
    let paused = pauses.iter().map(near).map(|pause| before(pause.end) - before(pause.start));
    i64::try_from(paused.sum::<i128>()).unwrap_or(i64::MAX)
}

/// The freezes in what was shown, and whether these are all.
fn find_freezes(
    interval: Option<Duration>,
    (shown, still): (&[(i64, &FrameRow)], &[Still]),
    end_ns: i64,
) -> (Vec<(i64, i64)>, bool) {
    let time = |ns: i64| Time::from_nanos(u64::try_from(ns).unwrap_or(0));
    let mut freezes = interval.map(Freezes::of).unwrap_or_default();
    let mut found = Vec::new();
    let mut still = still.iter().peekable();
    for count in 0..=shown.len() {
        while let Some(it) = still.next_if(|it| it.shown == count) {
            found.extend(freezes.on_end(time(it.from_ns)));
            freezes.on_resumed(time(it.to_ns));
        }
        found.extend(match shown.get(count) {
            Some((t_ns, _)) => freezes.on_displayed(time(*t_ns)),
            None => freezes.on_end(time(end_ns)),
        });
    }
    let ns = |time: Time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let found = found.iter().map(|freeze| (ns(freeze.from), ns(freeze.to))).collect();
    (found, freezes.is_certain())
}

/// The time from one frame of the source to the next: what most frames were captured after the one that is known before.
fn interval(frames: &[&FrameRow]) -> Option<Duration> {
    let captured = frames.iter().filter_map(|row| Some((row.frame, row.captured_ns?)));
    let mut captured: Vec<(i64, i64)> = captured.collect();
    captured.sort_unstable();
    let apart = captured.windows(2).filter_map(|pair| {
        let frames = pair[1].0.checked_sub(pair[0].0).filter(|frames| *frames > 0)?;
        let ns = u64::try_from(pair[1].1.checked_sub(pair[0].1)?).ok()?;
        Some(ns / frames.unsigned_abs()).filter(|ns| *ns > 0)
    });
    let mut apart: Vec<u64> = apart.collect();
    apart.sort_unstable();
    apart.get(apart.len() / 2).copied().map(Duration::from_nanos)
}
