//! Boxes (ISO/IEC 14496-12 §4.2) and the fields in them.

use crate::ParseError;

/// A box: where it lies in the bytes it was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Boxed {
    /// Its four-character code.
    pub kind: [u8; 4],
    /// Where its header begins.
    pub start: usize,
    /// Where its content begins.
    pub content: usize,
    /// Where it ends.
    pub end: usize,
}

/// The boxes that fill `bytes[from..to]` without a gap.
///
/// # Errors
/// If a box ends beyond `to`, or is smaller than its header.
pub(crate) fn boxes(bytes: &[u8], from: usize, to: usize) -> Result<Vec<Boxed>, ParseError> {
    let mut found = Vec::new();
    let mut at = from;
    while at < to {
        let next = header(bytes, at, to)?;
        at = next.end;
        found.push(next);
    }
    Ok(found)
}

/// The box at `at`, which ends at `to` or before.
pub(crate) fn header(bytes: &[u8], at: usize, to: usize) -> Result<Boxed, ParseError> {
    let mut field = Fields::new(bytes, at, to)?;
    let short = field.u32()?;
    let kind = field.array::<4>()?;
    let size = match short {
        // Size 0, "to the end of the file", has no place in a segment.
        0 => return Err(ParseError::new(at, "a box without a size")),
        1 => field.u64()?,
        size => u64::from(size),
    };
    let content = field.at;
    let end = usize::try_from(size).ok().and_then(|size| at.checked_add(size));
    match end {
        Some(end) if end >= content && end <= to => Ok(Boxed { kind, start: at, content, end }),
        _ => Err(ParseError::new(
            at,
            format!("box `{}` of {size} bytes does not fit", kind.escape_ascii()),
        )),
    }
}

/// The one box of `kind` among `found`.
///
/// # Errors
/// If there is none, or more than one. `at` is where they were looked for.
pub(crate) fn only(found: &[Boxed], kind: &[u8; 4], at: usize) -> Result<Boxed, ParseError> {
    let mut of_kind = found.iter().filter(|found| &found.kind == kind);
    match (of_kind.next(), of_kind.next()) {
        (Some(one), None) => Ok(*one),
        (None, _) => Err(ParseError::new(at, format!("no box `{}`", kind.escape_ascii()))),
        (Some(_), Some(second)) => {
            Err(ParseError::new(second.start, format!("a second box `{}`", kind.escape_ascii())))
        }
    }
}

/// Reads big-endian fields, one after the other.
pub(crate) struct Fields<'b> {
    bytes: &'b [u8],
    /// Where the next field begins.
    pub at: usize,
    to: usize,
}

impl<'b> Fields<'b> {
    /// The fields of `bytes[from..to]`.
    pub fn new(bytes: &'b [u8], from: usize, to: usize) -> Result<Self, ParseError> {
        if from > to || to > bytes.len() {
            return Err(ParseError::new(from, "cut short"));
        }
        Ok(Self { bytes, at: from, to })
    }

    pub fn of(bytes: &'b [u8], found: &Boxed) -> Result<Self, ParseError> {
        Self::new(bytes, found.content, found.end)
    }

    pub fn take(&mut self, count: usize) -> Result<&'b [u8], ParseError> {
        let left = self.to - self.at;
        if count > left {
            return Err(ParseError::new(self.at, format!("{count} bytes expected, {left} left")));
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        self.take(N).map(|taken| taken.try_into().expect("as many bytes as were asked for"))
    }

    pub fn u8(&mut self) -> Result<u8, ParseError> {
        self.array().map(u8::from_be_bytes)
    }

    pub fn u16(&mut self) -> Result<u16, ParseError> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, ParseError> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, ParseError> {
        self.array().map(u64::from_be_bytes)
    }

    /// Version and flags of a full box (§4.2.2).
    pub fn version(&mut self) -> Result<(u8, u32), ParseError> {
        let word = self.u32()?;
        Ok(((word >> 24) as u8, word & 0x00ff_ffff))
    }
}
