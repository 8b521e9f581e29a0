//! What was sent: for reports, which refer to sequence numbers, and for retransmission.

use std::collections::VecDeque;

use suiro_units::{Bytes, Duration, Time};

use crate::packet::Packet;
use crate::rtcp::transport_wide::PACKETS_MAX;

/// How long after it was sent a packet may be sent again.
const AGE_MAX: Duration = Duration::from_secs(2);

/// A packet that was sent.
#[derive(Debug, Clone)]
pub struct Past<P> {
    /// When it left.
    pub sent: Time,
    /// Size of the IP packet.
    pub size: Bytes,
    /// What is kept of it.
    packet: P,
    /// When it was sent again last.
    again: Option<Time>,
}

/// Packets by extended number, without gaps.
#[derive(Debug)]
pub struct Numbered<P> {
    past: VecDeque<Past<P>>,
    /// The number after the last.
    next: u64,
}

/// The packets of one stream.
pub type History = Numbered<Packet>;

/// All packets of a sender, by their transport-wide numbers.
pub type Departures = Numbered<()>;

impl<P> Numbered<P> {
    /// A history that begins with this number.
    pub fn new(first: u64) -> Self {
        Self { past: VecDeque::new(), next: first }
    }

    /// The packet with the next number has left.
    pub fn push(&mut self, now: Time, size: Bytes, packet: P) {
        if self.past.len() == PACKETS_MAX {
            self.past.pop_front();
        }
        self.past.push_back(Past { sent: now, size, packet, again: None });
        self.next += 1;
    }

    /// The number of the next packet.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The highest number sent; `None` before the first.
    pub fn highest(&self) -> Option<u64> {
        (!self.past.is_empty()).then(|| self.next - 1)
    }

    /// The number sent that ends in these 16 bits, of several the last; `None` if none was sent in the
    /// last turn.
    pub fn extend(&self, sequence: u16) -> Option<u64> {
        let highest = self.highest()?;
        highest.checked_sub((highest as u16).wrapping_sub(sequence).into())
    }

    /// What was sent with that number, if it is remembered.
    pub fn get(&self, sequence: u64) -> Option<&Past<P>> {
        self.past.get(self.place(sequence)?)
    }

    fn place(&self, sequence: u64) -> Option<usize> {
        let first = self.next - self.past.len() as u64;
        usize::try_from(sequence.checked_sub(first)?).ok()
    }
}

impl Numbered<Packet> {
    /// Bytes of the packets with these numbers; of those that are forgotten, as much as others.
    pub fn bytes(&self, numbers: std::ops::RangeInclusive<u64>) -> Bytes {
        let wanted = (numbers.end() + 1).saturating_sub(*numbers.start());
        let from = self.next - self.past.len() as u64;
        let skip = usize::try_from(numbers.start().saturating_sub(from)).unwrap_or(usize::MAX);
        let count = (numbers.end() + 1).saturating_sub((*numbers.start()).max(from));
        let known = self.past.iter().skip(skip).take(usize::try_from(count).unwrap_or(usize::MAX));
        let (packets, bytes) =
            known.fold((0u64, 0u64), |(n, sum), past| (n + 1, sum + past.size.get()));
        // Of at most a turn of the counter, so that nothing overflows.
        Bytes::new((bytes * wanted.min(1 << 17)).checked_div(packets).unwrap_or(0))
    }

    /// The packet, to be sent again: if it is remembered, not too old, and was not sent again within
    /// `rtt` before now, when the answer to an earlier question may be on its way.
    pub fn again(&mut self, now: Time, sequence: u64, rtt: Duration) -> Option<Packet> {
        let place = self.place(sequence)?;
        let past = self.past.get_mut(place)?;
        let recent = past.again.is_some_and(|again| now.saturating_since(again) < rtt);
        if recent || now.saturating_since(past.sent) > AGE_MAX {
            return None;
        }
        past.again = Some(now);
        Some(past.packet.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(sequence: u16) -> Packet {
        let (ssrc, payload_type, timestamp) = (1, 96, 0);
        let payload = vec![0; 10];
        Packet {
            ssrc,
            payload_type,
            sequence,
            timestamp,
            marker: false,
            mark: None,
            wide: None,
            payload,
        }
    }

    fn history(packets: u64) -> History {
        let mut history = History::new(65_530);
        for n in 0..packets {
            let sequence = (65_530 + n) as u16;
            history.push(Time::from_millis(n), Bytes::new(100 + n), packet(sequence));
        }
        history
    }

    #[test]
    fn numbers_are_found_over_the_wrap() {
        let history = history(10);
        assert_eq!(history.highest(), Some(65_539));
        assert_eq!(history.extend(65_535), Some(65_535));
        assert_eq!(history.extend(3), Some(65_539));
        assert_eq!(history.extend(4), Some(4), "a turn before; not sent");
        assert!(history.get(4).is_none());
        assert_eq!(history.get(65_530).unwrap().size, Bytes::new(100));
        assert_eq!(History::new(5).extend(5), None);
    }

    #[test]
    fn bytes_are_summed_and_what_is_forgotten_is_estimated() {
        let history = history(10);
        assert_eq!(history.bytes(65_530..=65_532), Bytes::new(303));
        assert_eq!(history.bytes(65_539..=65_539), Bytes::new(109));
        assert_eq!(history.bytes(65_528..=65_531), Bytes::new(402), "two of four are known");
        assert_eq!(history.bytes(70_000..=70_009), Bytes::ZERO);
    }

    #[test]
    fn nothing_is_sent_again_too_often_or_too_late() {
        let mut history = history(10);
        let rtt = Duration::from_millis(50);
        let mut again = |ms| history.again(Time::from_millis(ms), 65_535, rtt).is_some();
        assert_eq!([again(10), again(59), again(60), again(2010)], [true, false, true, false]);
        assert!(history.again(Time::from_millis(10), 65_540, rtt).is_none(), "never sent");
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let history = history(PACKETS_MAX as u64 + 3);
        assert_eq!(history.past.len(), PACKETS_MAX);
        assert!(history.get(65_532).is_none() && history.get(65_533).is_some());
    }
}
