//! Bits, and numbers as Exp-Golomb codes (ITU-T H.264 §9.1).

/// Writes bits, the most significant first.
#[derive(Debug, Clone, Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
    /// Bits of the last byte that are used; 0 if it is full or there is none.
    used: u32,
}

impl Writer {
    /// Bits so far.
    pub fn len(&self) -> usize {
        match self.used {
            0 => self.bytes.len() * 8,
            used => (self.bytes.len() - 1) * 8 + used as usize,
        }
    }

    /// Back to `len` bits.
    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len.div_ceil(8));
        self.used = (len % 8) as u32;
        if self.used > 0
            && let Some(last) = self.bytes.last_mut()
        {
            *last &= 0xffu8 << (8 - self.used);
        }
    }

    fn bit(&mut self, bit: bool) {
        if self.used == 0 {
            self.bytes.push(0);
        }
        if bit && let Some(last) = self.bytes.last_mut() {
            *last |= 0x80 >> self.used;
        }
        self.used = (self.used + 1) % 8;
    }

    /// A number from 0, below 2^31.
    pub fn unsigned(&mut self, value: u32) {
        let code = value + 1;
        let length = code.ilog2();
        for _ in 0..length {
            self.bit(false);
        }
        for place in (0..=length).rev() {
            self.bit(code >> place & 1 == 1);
        }
    }

    /// A number of either sign.
    pub fn signed(&mut self, value: i32) {
        let magnitude = value.unsigned_abs();
        self.unsigned(if value > 0 { magnitude * 2 - 1 } else { magnitude * 2 });
    }

    /// The bytes; the last is filled with zeros.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads what [`Writer`] wrote.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn bit(&mut self) -> Option<bool> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte << (self.at % 8) & 0x80 != 0;
        self.at += 1;
        Some(bit)
    }

    /// A number; `None` at the end, or of more than 24 bits.
    pub fn unsigned(&mut self) -> Option<u32> {
        let mut length = 0;
        while !self.bit()? {
            length += 1;
            if length > 24 {
                return None;
            }
        }
        let mut code = 1;
        for _ in 0..length {
            code = code << 1 | u32::from(self.bit()?);
        }
        Some(code - 1)
    }

    /// A number of either sign; `None` as with the other.
    pub fn signed(&mut self) -> Option<i32> {
        let code = self.unsigned()?.cast_signed();
        Some(if code % 2 == 1 { code / 2 + 1 } else { -(code / 2) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let mut writer = Writer::default();
        for value in -300..300 {
            writer.signed(value);
        }
        let len = writer.len();
        writer.unsigned(77);
        writer.truncate(len);
        writer.unsigned(5);
        let bytes = writer.into_bytes();
        let mut reader = Reader::new(&bytes);
        for value in -300..300 {
            assert_eq!(reader.signed(), Some(value));
        }
        assert_eq!(reader.unsigned(), Some(5));
        assert_eq!(Reader::new(&[0; 9]).unsigned(), None);
    }

    #[test]
    fn the_code_is_that_of_the_standard() {
        // ITU-T H.264 table 9-2: 0 is `1`, 1 is `010`, 3 is `00100`.
        let mut writer = Writer::default();
        [0, 1, 3].into_iter().for_each(|value| writer.unsigned(value));
        assert_eq!((writer.len(), writer.into_bytes()), (9, vec![0b1010_0010, 0b0000_0000]));
    }
}
