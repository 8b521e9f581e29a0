//! Numbers in either byte order.

/// A byte order: of the machine that wrote a file, or of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    little: bool,
}

impl Order {
    /// The least significant byte first.
    pub const LITTLE: Self = Self { little: true };
    /// The most significant byte first, as in all headers of a network.
    pub const BIG: Self = Self { little: false };

    /// The number of two bytes at `at`; `None` beyond the end.
    pub fn u16(self, data: &[u8], at: usize) -> Option<u16> {
        let bytes = data.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if self.little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    }

    /// The number of four bytes at `at`; `None` beyond the end.
    pub fn u32(self, data: &[u8], at: usize) -> Option<u32> {
        let bytes = data.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if self.little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    /// The number of eight bytes at `at`; `None` beyond the end.
    pub fn u64(self, data: &[u8], at: usize) -> Option<u64> {
        let bytes = data.get(at..at.checked_add(8)?)?.try_into().ok()?;
        Some(if self.little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) })
    }

    /// The length of four bytes at `at`; `None` beyond the end.
    pub fn size(self, data: &[u8], at: usize) -> Option<usize> {
        self.u32(data, at)?.try_into().ok()
    }
}
