//! What is counted of a connection: from the packets before they are encrypted and after they are decrypted.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use str0m::rtp::RawPacket;
use str0m::rtp::rtcp::{NackEntry, Rtcp};

/// Sizes of headers of IP and UDP.
const IPV4_UDP_BYTES: u64 = 20 + 8;
const IPV6_UDP_BYTES: u64 = 40 + 8;

/// Counters of one interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// IP packets that were sent, their bytes with headers.
    pub sent_bytes: u64,
    /// IP packets that came, their bytes with headers.
    pub received_bytes: u64,
    /// Packets that were asked for again: by this end if it receives, else by the other.
    pub nacks: u64,
    /// Packets sent again because they were asked for.
    pub retransmissions: u64,
    /// Bytes of RTP sent to probe for capacity: packets sent again that nobody asked for, and empty ones.
    pub padding_bytes: u64,
    /// Requests for a key frame by picture loss indication (RFC 4585 §6.3.1).
    pub plis: u64,
    /// The same by full intra request (RFC 5104 §4.3.1).
    pub firs: u64,
    /// Datagrams that are neither STUN, DTLS, RTP nor RTCP.
    pub malformed: u64,
    /// Events that were left out because too many waited for the caller.
    pub left_out: u64,
}

/// Counts, from one interval to the next.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    counts: Counts,
    /// Numbers that the other end asked for and that were not sent again yet.
    asked: BTreeSet<u16>,
}

/// Numbers that are remembered as asked for; of more, all are forgotten.
const ASKED_MAX: usize = 4096;

impl Counter {
    /// What was counted since the last call.
    pub fn take(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    /// A datagram to that address.
    pub fn sent(&mut self, to: SocketAddr, payload: usize) {
        self.counts.sent_bytes += ip_bytes(to, payload);
    }

    /// A datagram from that address.
    pub fn received(&mut self, from: SocketAddr, payload: usize) {
        self.counts.received_bytes += ip_bytes(from, payload);
    }

    /// A datagram that is nothing of WebRTC's.
    pub fn malformed(&mut self) {
        self.counts.malformed += 1;
    }

    /// Too many events wait: one was left out.
    pub fn left_out(&mut self) {
        self.counts.left_out += 1;
    }

    /// A packet before it is encrypted, or after it is decrypted. `again` is the payload type of retransmissions.
    pub fn on_raw(&mut self, raw: &RawPacket, again: Option<u8>) {
        match raw {
            RawPacket::RtcpRx(rtcp) | RawPacket::RtcpTx(rtcp) => self.on_rtcp(rtcp),
            RawPacket::RtpTx(header, packet) => {
                let payload = packet.get(header.header_len..).unwrap_or_default();
                // RFC 4588 §4: the number of the original comes first.
                let original = payload.first_chunk().map(|bytes| u16::from_be_bytes(*bytes));
                let is_again = Some(*header.payload_type) == again && !header.has_padding;
                if is_again && original.is_some_and(|number| self.asked.remove(&number)) {
                    self.counts.retransmissions += 1;
                } else if is_again || header.has_padding {
                    self.counts.padding_bytes += packet.len() as u64;
                }
            }
            RawPacket::RtpRx(..) => {}
        }
    }

    fn on_rtcp(&mut self, rtcp: &Rtcp) {
        match rtcp {
            Rtcp::Nack(nack) => nack.reports.iter().for_each(|entry| self.on_nack(*entry)),
            Rtcp::Pli(_) => self.counts.plis += 1,
            Rtcp::Fir(_) => self.counts.firs += 1,
            _ => {}
        }
    }

    /// RFC 4585 §6.2.1: a number, and a bit for each of the 16 after it.
    fn on_nack(&mut self, NackEntry { pid, blp }: NackEntry) {
        let others = (0..16).filter(|bit| blp & 1 << bit != 0).map(|bit| pid.wrapping_add(bit + 1));
        for number in [pid].into_iter().chain(others) {
            self.counts.nacks += 1;
            if self.asked.len() == ASKED_MAX {
                self.asked.clear();
            }
            self.asked.insert(number);
        }
    }
}

fn ip_bytes(other: SocketAddr, payload: usize) -> u64 {
    let headers = if other.is_ipv4() { IPV4_UDP_BYTES } else { IPV6_UDP_BYTES };
    payload as u64 + headers
}

#[cfg(test)]
mod tests {
    use str0m::rtp::RtpHeader;
    use str0m::rtp::rtcp::{Fir, FirEntry, Nack, Pli};

    use super::*;

    const AGAIN: u8 = 103;

    fn sent_again(number: u16) -> RawPacket {
        let header =
            RtpHeader { payload_type: AGAIN.into(), header_len: 12, ..RtpHeader::default() };
        let packet = [&[0; 12][..], &number.to_be_bytes(), &[1; 86]].concat();
        RawPacket::RtpTx(header, packet)
    }

    #[test]
    fn only_what_was_asked_for_is_a_retransmission() {
        let mut counter = Counter::default();
        // 10, and the bits of 11 and 26.
        let nack = Nack {
            sender_ssrc: 1.into(),
            ssrc: 2.into(),
            reports: NackEntry { pid: 10, blp: 0x8001 }.into(),
        };
        counter.on_raw(&RawPacket::RtcpRx(Rtcp::Nack(nack)), Some(AGAIN));
        for number in [10, 26, 26, 12] {
            counter.on_raw(&sent_again(number), Some(AGAIN));
        }
        let counts = counter.take();
        assert_eq!((counts.nacks, counts.retransmissions, counts.padding_bytes), (3, 2, 200));
        counter.on_raw(&sent_again(11), Some(AGAIN));
        assert_eq!(counter.take().retransmissions, 1, "it is remembered in the next interval");
    }

    #[test]
    fn headers_and_requests_are_counted() {
        let mut counter = Counter::default();
        counter.sent("10.0.0.1:9".parse().unwrap(), 100);
        counter.received("[fd00::1]:9".parse().unwrap(), 100);
        let pli = Pli { sender_ssrc: 1.into(), ssrc: 2.into() };
        counter.on_raw(&RawPacket::RtcpTx(Rtcp::Pli(pli)), None);
        let fir =
            Fir { sender_ssrc: 1.into(), reports: FirEntry { ssrc: 2.into(), seq_no: 0 }.into() };
        counter.on_raw(&RawPacket::RtcpRx(Rtcp::Fir(fir)), None);
        let counts = counter.take();
        assert_eq!((counts.sent_bytes, counts.received_bytes), (128, 148));
        assert_eq!((counts.plis, counts.firs), (1, 1));
        assert_eq!(counter.take(), Counts::default());
    }
}
