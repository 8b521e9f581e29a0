//! What ours say of the frame that a packet begins.

use suiro_units::{Duration, Time};

/// What a sender of ours says of a frame in its first packet: RTP itself has a frame's time, but not
/// its number at the source, and nothing of where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameMark {
    /// The source frame's number.
    pub number: u32,
    /// How many frames before it the one is that it needs; 0 of a key frame. 255 stands for that many or more: it needs
    /// the frame that was sent before it. [`FrameMark::base`] reads it.
    pub references: u8,
    /// The bit rate of the version that it comes from or of its encoder; the most that fits if it is
    /// more.
    pub rate_bps: u32,
    /// How long after its capture its first packet left, in units of [`FrameMark::WAIT_UNIT`]; `None` if
    /// that is more than fits.
    pub waited: Option<u16>,
}

/// What a frame is decoded from, by its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Nothing: it is a key frame.
    Nothing,
    /// The frame with that number.
    Frame(u64),
    /// The frame that was sent before it.
    Before,
}

impl FrameMark {
    /// What stands for a distance that may not fit.
    const FAR: u8 = u8::MAX;

    /// 20 µs: of them 1.3 s fit.
    pub const WAIT_UNIT: Duration = Duration::from_micros(20);

    /// What stands for more than fits.
    const WAITED_LONG: u16 = u16::MAX;

    /// Bytes that it takes.
    pub const BYTES: usize = 11;

    /// The same of a frame that was captured then and leaves now.
    #[must_use]
    pub fn leaving(self, now: Time, captured: Time) -> Self {
        let units = now.saturating_since(captured) / Self::WAIT_UNIT;
        let waited = Some(units.round()).filter(|units| *units < f64::from(Self::WAITED_LONG));
        Self { waited: waited.map(|units| units as u16), ..self }
    }

    /// What it is decoded from; `None` if that would be before the first frame, so that the mark is in error.
    pub fn base(self) -> Option<Base> {
        let other = self.number.checked_sub(self.references.into())?;
        Some(match self.references {
            0 => Base::Nothing,
            Self::FAR => Base::Before,
            _ => Base::Frame(other.into()),
        })
    }

    /// How long after its capture its first packet left.
    pub fn waited(self) -> Option<Duration> {
        self.waited.map(|units| Self::WAIT_UNIT * u64::from(units))
    }

    /// As an extension's data: number, distance, rate, wait.
    pub fn write(self) -> [u8; Self::BYTES] {
        let [a, b, c, d] = self.number.to_be_bytes();
        let [w, x, y, z] = self.rate_bps.to_be_bytes();
        let [u, v] = self.waited.unwrap_or(Self::WAITED_LONG).to_be_bytes();
        [a, b, c, d, self.references, w, x, y, z, u, v]
    }

    /// From an extension's data; `None` if it has another length.
    pub fn read(data: &[u8]) -> Option<Self> {
        let &[a, b, c, d, references, w, x, y, z, u, v] = data else { return None };
        let number = u32::from_be_bytes([a, b, c, d]);
        let rate_bps = u32::from_be_bytes([w, x, y, z]);
        let waited = Some(u16::from_be_bytes([u, v])).filter(|units| *units != Self::WAITED_LONG);
        Some(Self { number, references, rate_bps, waited })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mark = FrameMark { number: 70_000, references: 3, rate_bps: 27_260, waited: Some(7) };
        assert_eq!(FrameMark::read(&mark.write()), Some(mark));
        let long = FrameMark { waited: None, ..mark };
        assert_eq!(FrameMark::read(&long.write()), Some(long));
        assert_eq!(FrameMark::read(&mark.write()[1..]), None);
    }

    #[test]
    fn a_mark_names_the_frame_that_is_needed() {
        let mark = |number, references| FrameMark { number, references, rate_bps: 5, waited: None };
        assert_eq!(mark(7, 0).base(), Some(Base::Nothing));
        assert_eq!(mark(7, 7).base(), Some(Base::Frame(0)));
        assert_eq!(mark(300, 254).base(), Some(Base::Frame(46)));
        assert_eq!(mark(300, 255).base(), Some(Base::Before));
        assert_eq!((mark(3, 9).base(), mark(254, 255).base()), (None, None));
    }

    #[test]
    fn a_frame_tells_how_long_it_waited() {
        let mark = FrameMark { number: 1, references: 0, rate_bps: 5, waited: None };
        let captured = Time::from_secs(9);
        let left = mark.leaving(captured + Duration::from_millis(3), captured);
        assert_eq!((left.waited, left.waited()), (Some(150), Some(Duration::from_millis(3))));
        assert_eq!(mark.leaving(captured + Duration::from_secs(2), captured).waited(), None);
        assert_eq!(mark.leaving(Time::ZERO, captured).waited(), Some(Duration::ZERO));
    }
}
