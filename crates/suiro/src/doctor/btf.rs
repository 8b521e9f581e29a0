//! The kernel's type information (BTF): enough of it to find a type's number by its name.
//!
//! Format: Documentation/bpf/btf.rst of the Linux source.

/// Kinds of type that are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `struct NAME`.
    Struct = 4,
    /// `typedef … NAME`.
    Typedef = 8,
    /// The function `NAME`.
    Function = 12,
}

const MAGIC: u16 = 0xeb9f;

/// The kernel's types, as read from /sys/kernel/btf/vmlinux.
pub struct Btf {
    bytes: Vec<u8>,
    types: std::ops::Range<usize>,
    names: usize,
}

impl Btf {
    /// The running kernel's; `None` if it gives none.
    pub fn of_kernel() -> Option<Self> {
        Self::parse(std::fs::read("/sys/kernel/btf/vmlinux").ok()?)
    }

    fn parse(bytes: Vec<u8>) -> Option<Self> {
        let magic = u16::from_ne_bytes(*bytes.first_chunk()?);
        let header = u32_at(&bytes, 4)? as usize;
        let start = header.checked_add(u32_at(&bytes, 8)? as usize)?;
        let end = start.checked_add(u32_at(&bytes, 12)? as usize)?;
        let names = header.checked_add(u32_at(&bytes, 16)? as usize)?;
        let fits = magic == MAGIC && end <= bytes.len() && names <= bytes.len();
        fits.then_some(Self { bytes, types: start..end, names })
    }

    /// The number of the type `name` of that kind.
    pub fn find(&self, kind: Kind, name: &str) -> Option<u32> {
        let mut at = self.types.start;
        let mut number = 1;
        while at < self.types.end {
            let info = u32_at(&self.bytes, at + 4)?;
            let found_kind = info >> 24 & 0x1f;
            if found_kind == kind as u32 && self.is_named(u32_at(&self.bytes, at)?, name) {
                return Some(number);
            }
            at += 12 + bytes_after(found_kind, info & 0xffff)?;
            number += 1;
        }
        None
    }

    fn is_named(&self, offset: u32, name: &str) -> bool {
        let rest = self.bytes.get(self.names + offset as usize..).unwrap_or_default();
        rest.strip_prefix(name.as_bytes()).is_some_and(|after| after.first() == Some(&0))
    }
}

/// What follows the fixed 12 bytes of a type; `None` for a kind not known here.
fn bytes_after(kind: u32, members: u32) -> Option<usize> {
    let members = members as usize;
    Some(match kind {
        // Integer, variable, tag of a declaration.
        1 | 14 | 17 => 4,
        // Array.
        3 => 12,
        // Struct, union, data section, 64-bit enumeration.
        4 | 5 | 15 | 19 => 12 * members,
        // Enumeration, prototype.
        6 | 13 => 8 * members,
        // Pointer, forward, typedef, volatile, const, restrict, function, float, tag of a type.
        2 | 7..=12 | 16 | 18 => 0,
        _ => return None,
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two types: `int` and `struct abc` of one member.
    fn sample() -> Vec<u8> {
        let words = |words: &[u32]| words.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<_>>();
        let int = words(&[1, 1 << 24, 4, 32]);
        let abc = words(&[5, 4 << 24 | 1, 4, 1, 1, 0]);
        let names = b"\0int\0abc\0";
        let types = [int, abc].concat();
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        let length = u32::try_from(types.len()).unwrap();
        bytes.extend(words(&[24, 0, length, length, u32::try_from(names.len()).unwrap()]));
        [bytes, types, names.to_vec()].concat()
    }

    #[test]
    fn types_are_found_by_name_and_kind() {
        let btf = Btf::parse(sample()).unwrap();
        assert_eq!(btf.find(Kind::Struct, "abc"), Some(2));
        assert_eq!(btf.find(Kind::Function, "abc"), None);
        assert_eq!(btf.find(Kind::Struct, "ab"), None);
    }

    #[test]
    fn every_cut_is_survived() {
        let whole = sample();
        for length in 0..whole.len() {
            if let Some(btf) = Btf::parse(whole[..length].to_vec()) {
                assert!(btf.find(Kind::Typedef, "none").is_none());
            }
        }
    }
}
