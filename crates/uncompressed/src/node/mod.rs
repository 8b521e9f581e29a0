//! Nodes: the streams of one process, sent or received, with their records.

mod reading;
mod receiver;
mod rows;
mod sender;

use std::io;
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::sync::Arc;

use suiro_record::RecordError;
use suiro_record::table::Text;
use suiro_units::Time;

pub use reading::{ReadTotal, ReaderJob, read};
pub use receiver::{Received, ReceiverJob, ReceiverStream, Total, Warn, receive};
pub use sender::{SenderJob, SenderStream, SentTotal, Source, send};

use crate::geometry::Geometry;
use crate::{packet, reader, socket, store};

/// What a thread tells waits here for its rows: seconds and frames of many streams.
const TOLD_MAX: usize = 4096;

/// Why a node ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A socket is of no use.
    #[error(transparent)]
    Socket(#[from] socket::Error),
    /// There are no frames to send.
    #[error("stream {stream}: {source}")]
    Frames {
        /// The stream's number.
        stream: u32,
        /// Why.
        source: reader::Error,
    },
    /// A stream cannot be cut so.
    #[error("stream {stream}: {source}")]
    Layout {
        /// The stream's number.
        stream: u32,
        /// Why.
        source: packet::LayoutError,
    },
    /// A stream's frames are whole rasters, of which ST 2110-20 sends the picture alone.
    #[error(
        "stream {stream}: its store has whole rasters ({geometry}), and ST 2110-20 carries pictures\n\
         hint: --format raster sends it as it is"
    )]
    Raster {
        /// The stream's number.
        stream: u32,
        /// What the store has.
        geometry: Geometry,
    },
    /// The system takes no more packets of a stream.
    #[error(
        "stream {stream} to {destination}: sending packets of {packet} bytes: {source}{}",
        hint(source, *packet)
    )]
    Sending {
        /// The stream's number.
        stream: u32,
        /// Where it goes.
        destination: SocketAddrV4,
        /// Bytes of its largest IP packets.
        packet: u32,
        /// What the system says.
        source: io::Error,
    },
    /// A recording cannot be begun.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The records cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Sending or receiving failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
}

/// What to do about an error of sending packets of `packet` bytes; empty where nothing is known.
fn hint(error: &io::Error, packet: u32) -> String {
    let small = format!(
        "--packet N sends packets of N bytes; or all interfaces on the way take larger ones: \
         ip link set dev NAME mtu {packet}"
    );
    let hint = match error.raw_os_error() {
        Some(libc::EMSGSIZE) => small,
        // What kernels before 6.11 say of segments that are larger than the interface takes.
        Some(libc::EINVAL) => format!("{small}; or --no-gso, if the kernel cannot cut bursts"),
        // udp_send_skb: segmentation needs the interface to sum up.
        Some(libc::EIO) => {
            "--no-gso: the interface does no checksums, which UDP_SEGMENT needs".into()
        }
        _ => return String::new(),
    };
    format!("\nhint: {hint}")
}

/// Where a node's records go.
#[derive(Debug, Clone)]
pub struct Records {
    /// The endpoint's name in the records.
    pub endpoint: String,
    /// The folder for them; `None` to write none.
    pub dir: Option<PathBuf>,
    /// The monotonic clock at `t_ns` = 0.
    pub epoch: Time,
}

impl Records {
    fn name(&self) -> Text {
        Arc::from(self.endpoint.as_str())
    }

    /// Now, on the records' axis.
    fn now(&self) -> Time {
        Time::from_nanos(crate::clock::monotonic().saturating_since(self.epoch).as_nanos())
    }

    /// A monotonic time on the records' axis.
    fn t_ns(&self, time: Time) -> i64 {
        time.as_nanos().wrapping_sub(self.epoch.as_nanos()).cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_sending_says_what_helps_if_that_is_known() {
        let text = |errno| {
            let source = io::Error::from_raw_os_error(errno);
            let destination = "192.0.2.7:5004".parse().unwrap();
            Error::Sending { stream: 3, destination, packet: 8800, source }.to_string()
        };
        for (errno, remedies) in [
            (libc::EMSGSIZE, ["--packet N", "mtu 8800"].as_slice()),
            (libc::EINVAL, &["--packet N", "mtu 8800", "--no-gso"]),
            (libc::EIO, &["--no-gso"]),
        ] {
            let text = text(errno);
            let (what, hint) = text.split_once("\nhint: ").expect("there is a hint");
            assert!(
                what.starts_with("stream 3 to 192.0.2.7:5004: sending packets of 8800 bytes: ")
            );
            assert!(remedies.iter().all(|remedy| hint.contains(remedy)), "{errno}: {hint}");
        }
        assert!(!text(libc::EPERM).contains("hint"));
    }
}
