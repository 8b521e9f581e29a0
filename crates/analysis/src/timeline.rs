//! Uniform time series of one trial, for figures.

use crate::bins::Bins;
use crate::crowd;
use crate::instance::Instance;
use crate::metric::Quantity;
use crate::panel::Panel;
use crate::player::Player;
use crate::view::View;

/// The time series of one trial, all in the same bins.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Width of a bin in seconds; the first begins at the trial's start.
    pub bin_s: f64,
    /// The series, in the order of a page.
    pub series: Vec<Series>,
    /// When at least half of the video froze: from and to, in seconds, sorted.
    pub stalls: Vec<(f64, f64)>,
}

/// One quantity over a trial.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name, such as `tcp.cwnd_bytes`.
    pub name: String,
    /// The figure it belongs to.
    pub panel: Panel,
    /// What it is: label, unit, style and meaning.
    pub quantity: &'static Quantity,
    /// Which one of several it is of.
    pub instance: Instance,
    /// One value per bin; `None` where nothing was measured.
    pub values: Vec<Option<f64>>,
}

/// Leaves out what is not finite and what has no value, and sorts by panel.
pub(crate) fn finish(view: &View, bins: &Bins, mut series: Vec<Series>) -> Timeline {
    for value in series.iter_mut().flat_map(|s| &mut s.values) {
        *value = value.filter(|value| value.is_finite());
    }
    series.retain(|s| s.values.iter().any(Option::is_some));
    series.sort_by_key(|s| s.panel);
    let players = view.players();
    let spans = crowd::mostly(players.iter().flat_map(Player::stall_spans), players.len());
    let stalls = spans.iter().map(|(from, to)| (*from as f64 / 1e9, *to as f64 / 1e9)).collect();
    Timeline { bin_s: bins.width_s(), series, stalls }
}
