//! In which order a connection sends its streams (draft-ietf-moq-transport-18, Priorities): first by the priority that
//! the subscriber gave to the track, then by the publisher's, which the header of each stream of a track has.
//!
//! moq-net sets a stream's priority to the subscriber's only, and asks for the lowest one whatever a viewer wants: the
//! publisher's is what distinguishes tracks. Of the groups of one track, those that began first are sent first, although moq-net
//! asks for the newest first (group order Descending): each is passed to QUIC as it is made.

/// The publisher's priority of a track that says none. A higher one is sent first; on the wire it is the other way round.
pub(crate) const DEFAULT: u8 = 127;
/// Protocols whose integers are those of RFC 9000 §16; later drafts have their own, and a stream for each request.
const QUIC_INTEGERS: [&str; 3] = ["moq-00", "moqt-15", "moqt-16"];

/// The order of a stream among those of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    /// The subscriber's priority, or that of a stream of control messages.
    pub subscriber: u8,
    /// The publisher's.
    pub publisher: u8,
}

impl Order {
    /// As QUIC has it: of two streams, the one with the greater number is sent first.
    pub fn number(self) -> i32 {
        i32::from(self.subscriber) << 8 | i32::from(self.publisher)
    }
}

/// The header of a subgroup (§11.4.2), with which a stream of objects begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// The alias of its track.
    pub track: u64,
    /// The number of its group.
    pub group: u64,
    /// The publisher's priority; `None` if the header has none.
    pub publisher: Option<u8>,
}

/// What a stream begins with, if it is the header of a subgroup.
pub(crate) fn header(protocol: Option<&str>, begin: &[u8]) -> Option<Header> {
    // Type: 0x10 to 0x1d, with 0x40 for a subgroup that begins with its first object; with 0x20 there is no priority.
    let (&kind, mut rest) = begin.split_first()?;
    if kind & 0x90 != 0x10 {
        return None;
    }
    let of_quic = is_of_quic(protocol);
    let (track, group) = (integer(of_quic, &mut rest)?, integer(of_quic, &mut rest)?);
    // The number of the subgroup, where the type says that it is there.
    if kind & 0x06 == 0x04 {
        integer(of_quic, &mut rest)?;
    }
    let publisher = if kind & 0x20 == 0 { Some(u8::MAX - rest.first()?) } else { None };
    Some(Header { track, group, publisher })
}

/// The alias of the track, and the number of the group, of an object that is a datagram (§11.3).
pub(crate) fn datagram(protocol: Option<&str>, datagram: &[u8]) -> Option<(u64, u64)> {
    // Type: 0x00 to 0x0f, with 0x20 for a status.
    let (&kind, mut rest) = datagram.split_first()?;
    if kind & 0xd0 != 0 {
        return None;
    }
    let of_quic = is_of_quic(protocol);
    Some((integer(of_quic, &mut rest)?, integer(of_quic, &mut rest)?))
}

/// Whether integers are those of RFC 9000 §16, and all requests share one stream.
pub(crate) fn is_of_quic(protocol: Option<&str>) -> bool {
    protocol.is_some_and(|protocol| QUIC_INTEGERS.contains(&protocol))
}

/// Takes an integer from the front.
pub(crate) fn integer(of_quic: bool, bytes: &mut &[u8]) -> Option<u64> {
    let first = *bytes.first()?;
    let (length, prefix) = if of_quic {
        (1 << (first >> 6), 2)
    } else {
        let ones = first.leading_ones();
        (ones as usize + 1, ones + 1)
    };
    let (integer, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    let high = u64::from(first) & (0xff_u64 >> prefix);
    Some(integer[1..].iter().fold(high, |value, byte| value << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publisher(protocol: Option<&str>, begin: &[u8]) -> Option<u8> {
        header(protocol, begin)?.publisher
    }

    #[test]
    fn a_header_says_the_publishers_priority() {
        // Draft 18: first object, end of group; alias 3, group 300 in two bytes, priority 55.
        let header = [0x58, 3, 0x81, 0x2c, 55, 0, 1];
        assert_eq!(publisher(Some("moqt-18"), &header), Some(200));
        // The same with a subgroup, and in the integers of QUIC.
        assert_eq!(publisher(Some("moqt-18"), &[0x5c, 3, 0x81, 0x2c, 7, 55]), Some(200));
        assert_eq!(publisher(Some("moqt-16"), &[0x18, 3, 0x41, 0x2c, 55]), Some(200));
        assert_eq!(publisher(None, &[0x58, 3, 1, 128]), Some(DEFAULT));
    }

    #[test]
    fn a_header_says_the_track_and_the_group() {
        fn place(protocol: &str, begin: &[u8]) -> Option<(u64, u64)> {
            header(Some(protocol), begin).map(|header| (header.track, header.group))
        }
        assert_eq!(place("moqt-18", &[0x58, 3, 0x81, 0x2c, 55]), Some((3, 300)));
        assert_eq!(place("moqt-16", &[0x18, 3, 0x41, 0x2c, 55]), Some((3, 300)));
        // Without a priority. The longest integer has nine bytes.
        let longest = [0x78, 3, 0xff, 1, 0, 0, 0, 0, 0, 0, 2];
        assert_eq!(place("moqt-18", &longest), Some((3, (1 << 56) + 2)));
        assert_eq!(datagram(Some("moqt-18"), &[0x02, 3, 0x81, 0x2c, 55]), Some((3, 300)));
        assert_eq!(datagram(Some("moqt-16"), &[0x20, 0x41, 0x2c, 5]), Some((300, 5)));
        for other in [&[0x58, 3, 1, 55][..], &[0x02, 3], &[]] {
            assert_eq!(datagram(Some("moqt-18"), other), None, "{other:?}");
        }
    }

    #[test]
    fn what_has_none_has_none() {
        // Without a priority, a header of a fetch, a control message, and headers that are cut off.
        for begin in [&[0x38, 3, 1, 55][..], &[0x05, 1], &[0x20, 0, 4], &[0x58, 3, 1], &[0x58], &[]]
        {
            assert_eq!(publisher(Some("moqt-18"), begin), None, "{begin:?}");
        }
    }

    #[test]
    fn a_subscribers_priority_comes_before_a_publishers() {
        let number = |subscriber, publisher| Order { subscriber, publisher }.number();
        assert!(number(1, 0) > number(0, 255) && number(0, 128) > number(0, 127));
        assert!(number(255, 0) < i32::MAX);
    }
}
