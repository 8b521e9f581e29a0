//! What is guessed of the flows of a trial without table `flows`: one that was recorded before there was that table,
//! or whose endpoints are programs of which the scenario names no port.

use suiro_record::words::Transport;

/// All UDP is video. RTP and its RTCP, on the next port (RFC 3550 §11), are one flow, and so are the two directions of
/// each.
pub(crate) fn rival(flow: &str) -> Option<(Transport, String)> {
    let (from, to) = ends(flow)?;
    match flow.split_once(' ')?.0 {
        "tcp" => Some((Transport::Tcp, connection((from, to)))),
        "udp" => {
            let even = |end: &str| {
                let (host, port) = end.rsplit_once(':')?;
                Some(format!("{host}:{}", port.parse::<u16>().ok()? & !1))
            };
            Some((Transport::Udp, connection((&even(from)?, &even(to)?))))
        }
        _ => None,
    }
}

/// Where the packets of a flow come from and where they go, as tables name it: `PROTOCOL SOURCE:PORT>DESTINATION:PORT`.
pub(crate) fn ends(flow: &str) -> Option<(&str, &str)> {
    flow.split_once(' ')?.1.split_once('>')
}

/// A name for what goes between two ends, the same in both directions.
pub(crate) fn connection((from, to): (&str, &str)) -> String {
    format!("{}>{}", from.min(to), from.max(to))
}

/// Who had more payload acknowledged than it received, sends; media, if it is busy.
pub(crate) const fn sends(acked_bytes: i64, received_bytes: i64) -> bool {
    acked_bytes > received_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rtp_and_rtcp_are_one_flow() {
        let rtp = rival("udp 10.0.0.1:5004>10.0.0.2:5006");
        assert_eq!(rtp, Some((Transport::Udp, "10.0.0.1:5004>10.0.0.2:5006".into())));
        assert_eq!(rival("udp 10.0.0.1:5005>10.0.0.2:5007"), rtp);
        assert_eq!(rival("udp 10.0.0.2:5007>10.0.0.1:5005"), rtp, "reports");
        assert_ne!(rival("udp 10.0.0.1:5006>10.0.0.2:5008"), rtp);
        assert_eq!(rival("icmp 10.0.0.1>10.0.0.2"), None);
        assert_eq!(rival("udp nonsense"), None);
    }
}
