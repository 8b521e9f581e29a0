//! What reports about media cost.

use std::collections::{BTreeMap, BTreeSet};

use suiro_record::flows;
use suiro_record::tables::FlowRow;
use suiro_record::words::Carries;

use crate::link::Direction;

/// Bytes of reports over bytes of the media that they are about, each flow at the link to which most of it came. `None` if no
/// endpoint reported a flow of reports, as over WebRTC, where reports and media are one flow; or if there was no media.
pub(crate) fn feedback_ratio(links: &[Direction], rows: &[FlowRow]) -> Option<f64> {
    let feedback = rows.iter().filter(|row| row.carries == Carries::Feedback);
    let endpoints: BTreeSet<&str> = feedback.map(|row| &*row.endpoint).collect();
    if endpoints.is_empty() {
        return None;
    }
    let (mut reports, mut media) = (0.0, 0.0);
    for (flow, bytes) in sent(links) {
        match flows::find_named(rows, flow) {
            Some(row) if row.carries == Carries::Feedback => reports += bytes,
            Some(row) if is_media(row.carries) && endpoints.contains(&*row.endpoint) => {
                media += bytes;
            }
            _ => {}
        }
    }
    (media > 0.0).then(|| reports / media)
}

const fn is_media(carries: Carries) -> bool {
    matches!(carries, Carries::Video | Carries::Audio)
}

/// The bytes of each flow, at the link to which most of them came.
fn sent<'a>(links: &[Direction<'a>]) -> BTreeMap<&'a str, f64> {
    let mut most: BTreeMap<&str, f64> = BTreeMap::new();
    for link in links {
        let mut here: BTreeMap<&str, f64> = BTreeMap::new();
        for row in link.originals_that_came() {
            *here.entry(&row.flow).or_default() += row.size_bytes as f64;
        }
        for (flow, bytes) in here {
            let before = most.entry(flow).or_default();
            *before = before.max(bytes);
        }
    }
    most
}
