//! What was on a screen at each tick of the source's frame rate.

use suiro_record::Trial;

use crate::Records;
use crate::view::View;

/// Most ticks of a screen: a day at 120 a second.
const TICKS_MAX: i64 = 24 * 3600 * 120;

/// Frames whose median delay determines where ticks lie.
const PHASE_FRAMES: usize = 25;

/// One tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// When, in nanoseconds since the trial began.
    pub t_ns: i64,
    /// The source frame on the screen, and the rung it came from; `None` before the first.
    pub shown: Option<(u64, Option<u64>)>,
    /// True if the same frame was there at the tick before.
    pub repeated: bool,
    /// True if the decoder had to make up parts of it.
    pub damaged: bool,
}

/// The ticks of one viewer's screen at `rate` ticks a second, a fraction such as 30000/1001, from the trial's start to the end of
/// the viewing; empty if nothing was shown.
///
/// Ticks lie half a frame after the moments at which a stream that is played evenly shows its next frame: so each of
/// its frames is on one tick, even if it comes almost half a frame early or late.
pub fn ticks(trial: &Trial, records: &Records, endpoint: &str, rate: (u32, u32)) -> Vec<Tick> {
    let view = View::new(trial, records);
    let Some(player) = view.player(endpoint) else {
        return Vec::new();
    };
    let (shown, end_ns) = (player.screen.shown(), player.screen.end_ns().min(view.duration_ns));
    let (pictures, seconds) = (i128::from(rate.0), i128::from(rate.1));
    // A tick lasts a nanosecond at least.
    if shown.is_empty() || pictures == 0 || pictures > seconds * 1_000_000_000 {
        return Vec::new();
    }
    let time = |tick: i64| {
        let ns = i128::from(tick) * 1_000_000_000 * seconds / pictures;
        i64::try_from(ns).unwrap_or(i64::MAX)
    };
    // What is left of a display time when its frame's own time is taken away is the delay.
    let delays =
        shown.iter().take(PHASE_FRAMES).map(|(at, row)| at.saturating_sub(time(row.frame)));
    let mut delays: Vec<i64> = delays.collect();
    delays.sort_unstable();
    let phase_ns = delays[delays.len() / 2].saturating_add(time(1) / 2).rem_euclid(time(1));
    let mut next = shown.iter().peekable();
    let (mut now, mut damaged) = (None, false);
    let mut ticks: Vec<Tick> = Vec::new();
    for t_ns in (0..TICKS_MAX).map(|tick| phase_ns + time(tick)).take_while(|t| *t < end_ns) {
        while let Some((_, row)) = next.next_if(|(displayed_ns, _)| *displayed_ns <= t_ns) {
            let natural = |value: i64| u64::try_from(value).ok();
            damaged = row.damaged;
            now = natural(row.frame).map(|frame| (frame, row.rung_bps.and_then(natural)));
        }
        let repeated = now.is_some() && ticks.last().is_some_and(|last| last.shown == now);
        ticks.push(Tick { t_ns, shown: now, repeated, damaged });
    }
    ticks
}
