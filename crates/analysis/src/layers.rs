//! What each protocol layer lost and delayed, between two hosts.

use std::collections::BTreeMap;

use suiro_record::flows;
use suiro_record::tables::{FlowRow, LayerAccountRow};
use suiro_record::words::{Carries, Layer};

use crate::Records;

/// The main flow from one host to another: that which sent most packets.
pub(crate) struct Direction<'a> {
    /// The host that sends.
    pub sender: &'a str,
    /// The host that receives.
    pub receiver: &'a str,
    rows: Vec<&'a LayerAccountRow>,
}

/// Every direction in which hosts sent something. Its main flow is one that carries media, as endpoints reported;
/// without any, one of UDP, or else of TCP.
pub(crate) fn directions(records: &Records) -> Vec<Direction<'_>> {
    let mut flows: BTreeMap<(&str, &str), BTreeMap<&str, Vec<&LayerAccountRow>>> = BTreeMap::new();
    for row in &records.layer_accounts {
        let pair = (&*row.sender, &*row.receiver);
        flows.entry(pair).or_default().entry(&*row.flow).or_default().push(row);
    }
    let main = flows.into_iter().filter_map(|((sender, receiver), flows)| {
        let size = |rows: &[&LayerAccountRow]| {
            rows.iter().filter(|row| row.t_ns.is_none()).map(|row| row.sent).max()
        };
        let rank = |flow: &str| (is_media(&records.flows, flow), flow.starts_with("udp"));
        let (_, rows) = flows.into_iter().max_by_key(|(flow, rows)| (rank(flow), size(rows)))?;
        Some(Direction { sender, receiver, rows })
    });
    main.collect()
}

/// Whether an endpoint reported that a flow, `PROTOCOL SOURCE:PORT>DESTINATION:PORT`, carries media.
fn is_media(told: &[FlowRow], flow: &str) -> bool {
    let row = flows::find_named(told, flow);
    row.is_some_and(|row| {
        matches!(row.carries, Carries::Video | Carries::Audio | Carries::HttpMedia)
    })
}

impl<'a> Direction<'a> {
    /// Over the whole recording, of one layer.
    pub fn whole(&self, layer: Layer, of: fn(&LayerAccountRow) -> Option<f64>) -> Option<f64> {
        let whole = self.rows.iter().find(|row| row.t_ns.is_none() && row.layer == layer);
        whole.and_then(|row| of(row))
    }

    /// Second by second, of one layer.
    pub fn seconds(
        &self,
        layer: Layer,
        of: fn(&LayerAccountRow) -> Option<f64>,
    ) -> impl Iterator<Item = (i64, f64)> {
        let rows = self.rows.iter().filter(move |row| row.layer == layer);
        rows.filter_map(move |row| Some((row.t_ns?, of(row)?)))
    }
}
