//! The manifests of a catalogue, for tests elsewhere in this crate.

use suiro_scenario::Protocol;

use super::catalogue::Catalogue;
use super::{hls, mpd};

/// The MPD; with the address of a clock, if the origin has one.
pub(crate) fn mpd(catalogue: &Catalogue, unix_ns: u64, origin: Option<&str>) -> Option<String> {
    mpd::write(catalogue, unix_ns, origin)
}

pub(crate) fn multivariant(catalogue: &Catalogue) -> String {
    hls::multivariant(catalogue)
}

pub(crate) fn media(catalogue: &Catalogue, id: &str, unix_ns: u64) -> Option<String> {
    let container = catalogue.container(Protocol::Hls)?;
    let (track, rung) = catalogue.find(id, container)?;
    let rung = &catalogue.tracks[track].rungs[rung];
    Some(hls::media(container, rung, &catalogue.schedule, unix_ns))
}
