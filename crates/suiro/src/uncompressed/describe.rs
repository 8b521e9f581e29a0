//! Session descriptions of streams that are sent by hand.

use std::path::Path;

use anyhow::{Context, Result};
use suiro_outside::{beside, file};
use suiro_scenario::Bounds;
use suiro_uncompressed::clock;
use suiro_uncompressed::node::{SenderJob, Source};
use suiro_uncompressed::packet::Layout;
use suiro_uncompressed::sdp::{self, Description};
use suiro_uncompressed::socket::Departure;
use suiro_uncompressed::store::Store;
use suiro_units::Duration;

use crate::outputs::{self, Existing};

/// TROFF that may be announced. Packets leave from the beginning of the frame on, and a wide receiver has room for those of 3.3 ms
/// (ST 2110-21 §6.6.2: N / (300 · T) packets).
pub const TROFF: Bounds<Duration> = Bounds::new(Duration::ZERO, Duration::from_millis(3));
/// What it is for.
pub const TROFF_HELP: &str = "Announce that receivers read a frame this long after it begins (TROFF), up to 3 ms: how late packets may leave, on a \
    machine that wakes programs late [default: TRO_DEFAULT of ST 2110-21, which is not announced: 638 µs at 59.94 frames per second]";

/// Writes one for each stream of ST 2110, `stream-N.sdp`.
pub fn write(job: &SenderJob, troff: Option<Duration>, dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    for stream in &job.streams {
        let geometry = match &stream.source {
            Source::Store(path) => Store::open(path)?.header().geometry,
            Source::Synthetic { geometry, .. } => *geometry,
        };
        let layout = Layout::new(stream.format, &geometry, stream.packet_bytes)?;
        let route = &stream.route;
        let departure = Departure::of(route)?;
        let (destination, port) = (*route.destination.ip(), route.destination.port());
        let description = Description {
            name: format!("suiro stream {}", stream.number),
            // A sender has one stream to each destination.
            session: u64::from(u32::from(destination)) << 16 | u64::from(port),
            version: ntp_seconds(),
            origin: Some(departure.address),
            mac: departure.mac,
            path: sdp::Path { source: Some(departure.address), destination, port, ttl: route.ttl },
            twin: None,
            payload_type: stream.stream.payload_type,
            geometry,
            datagram_bytes: layout.datagram_bytes() as u32,
            troff_us: troff.map(sdp::troff_us),
        };
        let path = dir.join(format!("stream-{}.sdp", stream.number));
        // Every send describes its streams anew; what is there and no such description is kept.
        let ours = file::read_text(&path, sdp::BYTES_MAX as u64)
            .is_ok_and(|text| text.contains("\ns=suiro stream "));
        outputs::check(std::slice::from_ref(&path), &[], Existing::of(ours))?;
        beside::write(&path, description.to_string().as_bytes())
            .with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// The time in seconds since 1900, as NTP counts.
fn ntp_seconds() -> u64 {
    let unix = clock::monotonic().as_nanos().wrapping_add_signed(clock::realtime_lead_ns());
    unix / 1_000_000_000 + 2_208_988_800
}
