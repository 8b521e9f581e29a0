//! Reports as the table `layer_accounts`.

use std::path::Path;

use suiro_record::Writer;
use suiro_record::tables::LayerAccountRow;
use suiro_units::to_i64;

use super::{Report, joined};
use crate::account::{Account, Delay, Layer, LayerAccount, Second, below};
use crate::event::Recording;
use crate::record::FileError;

/// A share of losses is null if the recorder's own gaps leave more than this open.
const OPEN_MOST: f64 = 0.001;

/// Joins the recordings in a folder, host by host, and writes table `layer_accounts` next to them.
/// Its times count from `epoch_monotonic_ns`. A flow between two hosts has one account.
///
/// # Errors
/// If a recording cannot be read, or the table cannot be written.
pub fn write(dir: &Path, epoch_monotonic_ns: u64) -> Result<(), FileError> {
    let recordings = Recording::read_all(dir)?;
    let mut writer = Writer::<LayerAccountRow>::create(dir)?;
    for (number, first) in recordings.iter().enumerate() {
        for second in recordings.iter().skip(number + 1) {
            let start = to_i64(first.start.monotonic_ns) - to_i64(epoch_monotonic_ns);
            for row in rows(&joined(first, second), start) {
                writer.push(row)?;
            }
        }
    }
    Ok(writer.close()?)
}

/// The rows of a report whose first recording began at `start_ns` of the table's time. Flows that
/// only one of the hosts saw have no rows.
pub fn rows(report: &Report, start_ns: i64) -> Vec<LayerAccountRow> {
    let mut rows = Vec::new();
    for account in &report.accounts {
        let (Some(sender), Some(receiver)) = (&account.sender, &account.receiver) else { continue };
        let blank = LayerAccountRow {
            t_ns: None,
            flow: account.flow.as_str().into(),
            sender: sender.as_str().into(),
            receiver: receiver.as_str().into(),
            layer: Layer::SystemCall,
            sent: to_i64(account.sent),
            between_loss_ratio: None,
            own_loss_ratio: None,
            between_delay_mean_ms: None,
            between_delay_max_ms: None,
            own_delay_mean_ms: None,
            own_delay_max_ms: None,
            own_jitter_ms: None,
        };
        for layer in &account.layers {
            let blank = LayerAccountRow { layer: layer.layer, ..blank.clone() };
            let known = Known::of(account, layer.layer);
            rows.push(whole(layer, &known, &blank));
            rows.extend(seconds(account, layer, &known, &blank, start_ns));
        }
    }
    rows
}

/// Whether the losses of a layer are known: not if gaps of the recorder leave too much open.
struct Known {
    between: bool,
    own: bool,
}

impl Known {
    fn of(account: &Account, layer: Layer) -> Self {
        let known = |layer: Layer| {
            let of_layer = account.layers.iter().find(|account| account.layer == layer);
            let open = of_layer.and_then(|account| account.unplaced);
            open.is_some_and(|share| share <= OPEN_MOST)
        };
        let between = known(layer);
        Self { between, own: between && below(layer).is_none_or(known) }
    }
}

fn whole(account: &LayerAccount, known: &Known, blank: &LayerAccountRow) -> LayerAccountRow {
    let mean = |delay: Option<Delay>| Some(delay?.mean_ns / 1e6);
    let max = |delay: Option<Delay>| Some(delay?.max_ns as f64 / 1e6);
    LayerAccountRow {
        between_loss_ratio: account.loss_between.filter(|_| known.between),
        own_loss_ratio: account.own_loss.filter(|_| known.own),
        between_delay_mean_ms: mean(account.delay_between),
        between_delay_max_ms: max(account.delay_between),
        own_delay_mean_ms: mean(account.own_delay),
        own_delay_max_ms: max(account.own_delay),
        own_jitter_ms: account.own_delay.map(|delay| delay.jitter_ns / 1e6),
        ..blank.clone()
    }
}

fn seconds(
    account: &Account,
    layer: &LayerAccount,
    known: &Known,
    blank: &LayerAccountRow,
    start_ns: i64,
) -> impl Iterator<Item = LayerAccountRow> {
    let (index, below) = (layer.layer as usize, below(layer.layer).map(|below| below as usize));
    let sent = account.seconds.iter().enumerate().filter(|(_, second)| second.sent > 0);
    sent.map(move |(number, second): (usize, &Second)| {
        let share = |known: bool, lost: f64| known.then(|| lost / second.sent as f64);
        let lost = second.lost_between[index] as f64;
        let lower = below.map_or(0.0, |below| second.lost_between[below] as f64);
        let ms = |ns: Option<f64>| Some(ns? / 1e6);
        LayerAccountRow {
            t_ns: Some(
                start_ns.saturating_add(to_i64(number as u64).saturating_mul(1_000_000_000)),
            ),
            sent: to_i64(second.sent),
            between_loss_ratio: share(known.between, lost),
            own_loss_ratio: share(known.own, lost - lower),
            between_delay_mean_ms: ms(second.delay_between_ns[index]),
            own_delay_mean_ms: ms(second.own_delay_ns[index]),
            ..blank.clone()
        }
    })
}
