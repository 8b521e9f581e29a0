//! What is guessed of flows that no endpoint reported: those of folders recorded before table `flows`,
//! and the sockets of programs of which a scenario says nothing.

use crate::rivals::Kind;
use crate::tcp::Socket;

/// A socket that sent less than this share of what the busiest sent is not a media socket.
const LEAST_SHARE: f64 = 0.01;

/// All UDP is video. RTP and its RTCP, on the next port (RFC 3550 §11), are one flow.
pub(crate) fn rival(flow: &str) -> Option<(Kind, String)> {
    let (protocol, ends) = flow.split_once(' ')?;
    match protocol {
        "tcp" => Some((Kind::Tcp, ends.to_owned())),
        "udp" => {
            let (from, to) = ends.split_once('>')?;
            let even = |end: &str| {
                let (host, port) = end.rsplit_once(':')?;
                Some(format!("{host}:{}", port.parse::<u16>().ok()? & !1))
            };
            Some((Kind::Video, format!("{}>{}", even(from)?, even(to)?)))
        }
        _ => None,
    }
}

/// Who had more payload acknowledged than it received, sends.
pub(crate) const fn sends(acked_bytes: i64, received_bytes: i64) -> bool {
    acked_bytes > received_bytes
}

/// A socket carries media if it had at least a hundredth of what the busiest had acknowledged.
pub(crate) fn is_busy(socket: &Socket, busiest_bytes: i64) -> bool {
    socket.acked_bytes as f64 >= busiest_bytes as f64 * LEAST_SHARE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rtp_and_rtcp_are_one_flow() {
        let rtp = rival("udp 10.0.0.1:5004>10.0.0.2:5006");
        assert_eq!(rtp, Some((Kind::Video, "10.0.0.1:5004>10.0.0.2:5006".into())));
        assert_eq!(rival("udp 10.0.0.1:5005>10.0.0.2:5007"), rtp);
        assert_ne!(rival("udp 10.0.0.1:5006>10.0.0.2:5008"), rtp);
        assert_eq!(rival("icmp 10.0.0.1>10.0.0.2"), None);
        assert_eq!(rival("udp nonsense"), None);
    }
}
