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

/// Reports that a thread may have waiting to be written as rows: seconds and frames of many
/// streams.
const TOLD_MAX: usize = 4096;

/// Why a node ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A socket cannot be used.
    #[error(transparent)]
    Socket(#[from] socket::Error),
    /// Its source has no frames to send.
    #[error("stream {stream}: {cause}")]
    Frames {
        /// The stream's number.
        stream: u32,
        /// The reason.
        cause: reader::Error,
    },
    /// A stream's frames cannot be split into packets of this size.
    #[error("stream {stream}: {cause}")]
    Layout {
        /// The stream's number.
        stream: u32,
        /// The reason.
        cause: packet::LayoutError,
    },
    /// A stream's frames are whole rasters, but ST 2110-20 sends only images.
    #[error(
        "stream {stream}: its store holds whole rasters ({geometry}), but ST 2110-20 carries only images\n\
         hint: send them unchanged with --format raster"
    )]
    Raster {
        /// The stream's number.
        stream: u32,
        /// The format of the store's frames.
        geometry: Geometry,
    },
    /// The system does not send packets of a stream any more.
    #[error(
        "stream {stream} to {destination}: sending packets of {packet} bytes: {cause}{}",
        hint(cause, *packet)
    )]
    Sending {
        /// The stream's number.
        stream: u32,
        /// Its destination.
        destination: SocketAddrV4,
        /// Bytes of its largest IP packets.
        packet: u32,
        /// The system's error.
        cause: io::Error,
    },
    /// A recording cannot be started.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The records cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Sending or receiving failed.
    #[error("{doing}: {cause}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The system's error.
        cause: io::Error,
    },
}

/// What to do about an error from sending packets of `packet` bytes; empty if unknown.
fn hint(error: &io::Error, packet: u32) -> String {
    let small = format!(
        "send smaller packets with --packet N, or let all interfaces on the way take larger ones: \
         ip link set dev NAME mtu {packet}"
    );
    let hint = match error.raw_os_error() {
        Some(libc::EMSGSIZE) => small,
        // The error of kernels before 6.11 for segments that are larger than the interface takes.
        Some(libc::EINVAL) => {
            format!("{small}; or use --no-gso, if the kernel cannot segment bursts")
        }
        // udp_send_skb: segmentation needs checksum offload at the interface.
        Some(libc::EIO) => {
            "use --no-gso: UDP_SEGMENT needs checksum offload, which the interface does not have"
                .into()
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
    /// Their folder; `None` to write no records.
    pub dir: Option<PathBuf>,
    /// The endpoint at the other end of its streams; `None` if it is none of a trial.
    pub peer: Option<String>,
    /// The monotonic clock at `t_ns` = 0.
    pub epoch: Time,
}

impl Records {
    fn name(&self) -> Text {
        Arc::from(self.endpoint.as_str())
    }

    /// The current time on the records' time axis.
    fn now(&self) -> Time {
        Time::from_nanos(crate::clock::monotonic().saturating_since(self.epoch).as_nanos())
    }

    /// A monotonic time on the records' time axis.
    fn t_ns(&self, time: Time) -> i64 {
        time.as_nanos().wrapping_sub(self.epoch.as_nanos()).cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_sending_has_a_hint_if_the_cause_is_known() {
        let text = |errno| {
            let cause = io::Error::from_raw_os_error(errno);
            let destination = "192.0.2.7:5004".parse().unwrap();
            Error::Sending { stream: 3, destination, packet: 8800, cause }.to_string()
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
