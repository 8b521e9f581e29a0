//! The origin's record of what it offers: table `rungs`.

use std::path::Path;

use suiro_record::tables::RungRow;
use suiro_record::words;
use suiro_record::{RecordError, Writer};
use suiro_scenario::Protocol;

use super::catalogue::{Catalogue, Container, TrackEntry};

/// Writes `rungs.NAME.parquet`.
pub(super) fn write(catalogue: &Catalogue, dir: &Path, endpoint: &str) -> Result<(), RecordError> {
    let mut table = Writer::create_of(dir, endpoint)?;
    for track in &catalogue.tracks {
        for row in rows(catalogue, track, endpoint) {
            table.push(row)?;
        }
    }
    table.close()
}

fn rows(
    catalogue: &Catalogue,
    track: &TrackEntry,
    endpoint: &str,
) -> impl Iterator<Item = RungRow> {
    track.rungs.iter().enumerate().map(move |(index, rung)| RungRow {
        endpoint: endpoint.into(),
        track: track.kind,
        rung: rung.id.as_str().into(),
        container: match track.container {
            Container::Fmp4 => words::Container::Fmp4,
            Container::MpegTs => words::Container::MpegTs,
        },
        dash_bps: catalogue.rate_in(Protocol::Dash, track, index),
        hls_bps: catalogue.rate_in(Protocol::Hls, track, index),
        nominal_bps: rung.nominal,
        average_bps: rung.mean_rate,
        peak_bps: rung.rate,
        height: rung.size.map(|(_, height)| i64::from(height)),
    })
}
