//! In which order a connection sends its streams (draft-ietf-moq-transport-18, Priorities): first by the priority that
//! the subscriber gave to the track, then by the publisher's, which the header of each stream of a track has.
//!
//! moq-net sets a stream's priority to the subscriber's only, and asks for the lowest one whatever a viewer wants: the
//! publisher's is what distinguishes tracks.

/// The publisher's priority of a track that says none. A higher one is sent first; on the wire it is the other way round.
pub(crate) const DEFAULT: u8 = 127;
/// Protocols whose integers are those of RFC 9000 §16; later drafts have their own.
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

/// The publisher's priority in the header of a subgroup (§11.4.2), with which a stream of objects begins. `None` if the
/// stream has no such header, or its header has no priority.
pub(crate) fn publisher(protocol: Option<&str>, begin: &[u8]) -> Option<u8> {
    // Type: 0x10 to 0x1d, with 0x40 for a subgroup that begins with its first object; with 0x20 there is no priority.
    let (&kind, mut rest) = begin.split_first()?;
    if kind & 0xb0 != 0x10 {
        return None;
    }
    let of_quic = protocol.is_some_and(|protocol| QUIC_INTEGERS.contains(&protocol));
    // The alias of the track, the number of the group, and that of the subgroup where the type says that it is there.
    let integers = if kind & 0x06 == 0x04 { 3 } else { 2 };
    for _ in 0..integers {
        let first = *rest.first()?;
        let length = if of_quic { 1 << (first >> 6) } else { first.leading_ones() as usize + 1 };
        rest = rest.get(length..)?;
    }
    rest.first().map(|priority| u8::MAX - priority)
}

#[cfg(test)]
mod tests {
    use super::*;

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
