//! One viewer's screen over time, for whoever draws it.

use suiro_record::Trial;

use crate::Records;
use crate::player::Player;
use crate::view::View;

/// A frame that came on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// When, in nanoseconds since the trial began.
    pub t_ns: i64,
    /// Which source frame.
    pub frame: i64,
    /// When it was captured; `None` unless live.
    pub captured_ns: Option<i64>,
    /// Nominal bit rate of its rung; `None` if unknown.
    pub rung_bps: Option<i64>,
}

/// What one viewer saw.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Viewing {
    /// The frames, in order; empty if it is not known what was shown.
    pub moments: Vec<Moment>,
    /// When the video froze: from and to, in order.
    pub freezes: Vec<(i64, i64)>,
    /// Media buffered, in milliseconds, from a time on; in order. Empty if the viewer does not report it.
    pub buffer: Vec<(i64, f64)>,
    /// When the viewing ended.
    pub end_ns: i64,
}

/// What the viewer of that name saw; nothing if there is none.
pub fn viewing(trial: &Trial, records: &Records, endpoint: &str) -> Viewing {
    let view = View::new(trial, records);
    view.player(endpoint).map(|player| of(player, view.duration_ns)).unwrap_or_default()
}

fn of(player: &Player, duration_ns: i64) -> Viewing {
    let moments = player.screen.shown().iter().map(|(t_ns, row)| Moment {
        t_ns: *t_ns,
        frame: row.frame,
        captured_ns: row.captured_ns,
        rung_bps: row.rung_bps,
    });
    let buffer = player.rows.iter().filter_map(|row| Some((row.t_ns, row.buffer_ms?)));
    Viewing {
        moments: moments.collect(),
        freezes: player.screen.freezes().to_vec(),
        buffer: buffer.collect(),
        end_ns: player.screen.end_ns().min(duration_ns),
    }
}

impl Viewing {
    /// The frame on the screen at a time; `None` before the first.
    pub fn at(&self, t_ns: i64) -> Option<&Moment> {
        let after = self.moments.partition_point(|moment| moment.t_ns <= t_ns);
        after.checked_sub(1).map(|index| &self.moments[index])
    }

    /// How old the frame on the screen is, in nanoseconds; `None` unless live.
    pub fn age_ns(&self, t_ns: i64) -> Option<i64> {
        Some(t_ns.saturating_sub(self.at(t_ns)?.captured_ns?))
    }

    /// Media buffered at a time, in milliseconds.
    pub fn buffer_ms(&self, t_ns: i64) -> Option<f64> {
        let after = self.buffer.partition_point(|(at, _)| *at <= t_ns);
        after.checked_sub(1).map(|index| self.buffer[index].1)
    }

    /// For how long the frame has been frozen, in nanoseconds, if that is a freeze.
    pub fn frozen_ns(&self, t_ns: i64) -> Option<i64> {
        let after = self.freezes.partition_point(|(from, _)| *from <= t_ns);
        let (from, to) = self.freezes[after.checked_sub(1)?];
        (t_ns < to).then(|| t_ns - from)
    }
}
