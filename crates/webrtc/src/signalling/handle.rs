//! What a session is known by to who opened it.

/// The two names of a session. Whoever knows them can end it, so that they come from the system's generator, never from
/// a trial's seed (RFC 9725 §5: a session's URL must be hard to guess).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle {
    /// Its name in the path of its resource: 128 bits in hexadecimal digits.
    pub name: String,
    /// Its entity tag: 64 bits.
    pub tag: String,
}

impl Handle {
    /// A new one.
    ///
    /// # Panics
    /// If the system has no generator: Linux has one since 3.17.
    pub fn draw() -> Self {
        let mut bytes = [0; 24];
        let drawn = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
        // getrandom(2): up to 256 bytes are never cut short.
        assert_eq!(drawn, Ok(bytes.len()), "the system's random numbers");
        let (name, tag) = bytes.split_at(16);
        let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { name: digits(name), tag: digits(tag) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_alike_and_all_are_as_long() {
        let (one, other) = (Handle::draw(), Handle::draw());
        assert!(one.name != other.name && one.tag != other.tag);
        assert_eq!((one.name.len(), one.tag.len()), (32, 16));
    }
}
