//! Reports as the table `layer_accounts`.

use std::path::Path;

use suiro_record::Writer;
use suiro_record::tables::LayerAccountRow;
use suiro_units::to_i64;

use super::{Report, joined};
use crate::account::{Account, Delay, Layer, LayerAccount, Second, below};
use crate::event::Recording;
use crate::record::FileError;

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
            rows.push(whole(layer, &blank));
            rows.extend(seconds(account, layer, &blank, start_ns));
        }
    }
    rows
}

fn whole(account: &LayerAccount, blank: &LayerAccountRow) -> LayerAccountRow {
    let mean = |delay: Option<Delay>| Some(delay?.mean_ns / 1e6);
    let max = |delay: Option<Delay>| Some(delay?.max_ns as f64 / 1e6);
    LayerAccountRow {
        between_loss_ratio: account.loss_between,
        own_loss_ratio: account.own_loss,
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
    blank: &LayerAccountRow,
    start_ns: i64,
) -> impl Iterator<Item = LayerAccountRow> {
    let watched = layer.loss_between.is_some();
    let (index, below) = (layer.layer as usize, below(layer.layer).map(|below| below as usize));
    let sent = account.seconds.iter().enumerate().filter(|(_, second)| second.sent > 0);
    sent.map(move |(number, second): (usize, &Second)| {
        let share = |lost: f64| watched.then(|| lost / second.sent as f64);
        let lost = second.lost_between[index] as f64;
        let lower = below.map_or(0.0, |below| second.lost_between[below] as f64);
        let ms = |ns: Option<f64>| Some(ns? / 1e6);
        LayerAccountRow {
            t_ns: Some(
                start_ns.saturating_add(to_i64(number as u64).saturating_mul(1_000_000_000)),
            ),
            sent: to_i64(second.sent),
            between_loss_ratio: share(lost),
            own_loss_ratio: share(lost - lower),
            between_delay_mean_ms: ms(second.delay_between_ns[index]),
            own_delay_mean_ms: ms(second.own_delay_ns[index]),
            ..blank.clone()
        }
    })
}
