//! The types of a compiled BPF program, from its section `.BTF` (Documentation/bpf/btf.rst of the kernel).

/// Nesting of types that is followed; a loop of typedefs would be clang's mistake.
const DEPTH_MAX: usize = 16;

const INT: u32 = 1;
const PTR: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const DECL_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM64: u32 = 19;

const SIGNED: u32 = 1;

/// A type that a record may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// An integer.
    Int {
        /// True if it has a sign. A `char` has none here: it is text.
        signed: bool,
        /// Its size.
        bytes: usize,
    },
    /// So many of a type.
    Array(Box<Type>, usize),
    /// A structure, by its name.
    Struct(String),
    /// An enumeration of this size.
    Enum(usize),
}

/// One member of a structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Bytes from the structure's start.
    pub offset: usize,
    /// Its type.
    pub kind: Type,
}

/// A structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Struct {
    /// Its size.
    pub bytes: usize,
    /// Its members, by offset.
    pub members: Vec<Member>,
}

/// One entry of the table of types.
struct Entry {
    name: u32,
    kind: u32,
    /// Its size, or the number of the type that it refers to.
    size_or_type: u32,
    /// What follows the head, by words.
    rest: Vec<u32>,
}

/// All types of an object.
pub struct Types {
    /// By number, from 1.
    entries: Vec<Entry>,
    strings: Vec<u8>,
}

impl Types {
    /// Reads those of a compiled program.
    pub fn of_object(object: &[u8]) -> Result<Self, String> {
        Self::parse(section(object, b".BTF")?).ok_or_else(|| ".BTF is cut short".to_owned())
    }

    fn parse(btf: &[u8]) -> Option<Self> {
        let head = |at: usize| word(btf, at).map(|word| word as usize);
        let [length, types_at, types_length, strings_at, strings_length] =
            [head(4)?, head(8)?, head(12)?, head(16)?, head(20)?];
        let types = btf.get(length + types_at..)?.get(..types_length)?;
        let strings = btf.get(length + strings_at..)?.get(..strings_length)?.to_vec();
        let mut entries = Vec::new();
        let mut at = 0;
        while at < types.len() {
            let (name, info) = (word(types, at)?, word(types, at + 4)?);
            let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            let words = match kind {
                INT | VAR | DECL_TAG => 1,
                ARRAY => 3,
                STRUCT | UNION | DATASEC | ENUM64 => 3 * count,
                ENUM | FUNC_PROTO => 2 * count,
                _ => 0,
            };
            let rest = (0..words).map(|i| word(types, at + 12 + 4 * i)).collect::<Option<_>>()?;
            entries.push(Entry { name, kind, size_or_type: word(types, at + 8)?, rest });
            at += 12 + 4 * words;
        }
        Some(Self { entries, strings })
    }

    /// The structure of this name.
    pub fn structure(&self, name: &str) -> Result<Struct, String> {
        let entry = self.named(STRUCT, name).ok_or_else(|| format!("no `struct {name}`"))?;
        let member = |words: &[u32]| {
            let name = self.text(words[0]);
            let kind = self.kind(words[1], 0).map_err(|error| format!("{name}: {error}"))?;
            // With bit fields the upper byte is a size, and the rest need not be whole bytes.
            if !words[2].is_multiple_of(8) || words[2] >> 24 != 0 {
                return Err(format!("{name}: a bit field"));
            }
            Ok(Member { name, offset: words[2] as usize / 8, kind })
        };
        let members = entry.rest.chunks_exact(3).map(member).collect::<Result<_, String>>();
        let members = members.map_err(|error| format!("struct {name}: {error}"))?;
        Ok(Struct { bytes: entry.size_or_type as usize, members })
    }

    /// The names and values of an enumeration.
    pub fn enumeration(&self, name: &str) -> Result<Vec<(String, u32)>, String> {
        let entry = self.named(ENUM, name).ok_or_else(|| format!("no `enum {name}`"))?;
        Ok(entry.rest.chunks_exact(2).map(|words| (self.text(words[0]), words[1])).collect())
    }

    fn named(&self, kind: u32, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.kind == kind && self.text(entry.name) == name)
    }

    fn kind(&self, number: u32, depth: usize) -> Result<Type, String> {
        let entry = (number as usize).checked_sub(1).and_then(|at| self.entries.get(at));
        let entry = entry.filter(|_| depth < DEPTH_MAX).ok_or("no type")?;
        let inner = |number| self.kind(number, depth + 1);
        Ok(match entry.kind {
            INT => Type::Int {
                signed: entry.rest[0] >> 24 & SIGNED != 0 && self.text(entry.name) != "char",
                bytes: entry.size_or_type as usize,
            },
            ARRAY => Type::Array(Box::new(inner(entry.rest[0])?), entry.rest[2] as usize),
            STRUCT => Type::Struct(self.text(entry.name)),
            ENUM => Type::Enum(entry.size_or_type as usize),
            TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG => inner(entry.size_or_type)?,
            PTR => return Err("a pointer".into()),
            UNION => return Err("a union".into()),
            other => return Err(format!("a type of kind {other}")),
        })
    }

    fn text(&self, at: u32) -> String {
        let text = self.strings.get(at as usize..).unwrap_or_default();
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        String::from_utf8_lossy(&text[..end]).into_owned()
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A section of an ELF file of 64 bits in this machine's byte order, which is what clang writes for `-target bpf`.
fn section<'o>(object: &'o [u8], name: &[u8]) -> Result<&'o [u8], String> {
    let find = || {
        let half =
            |at: usize| Some(usize::from(u16::from_ne_bytes(*object.get(at..)?.first_chunk()?)));
        let long =
            |at: usize| usize::try_from(u64::from_ne_bytes(*object.get(at..)?.first_chunk()?)).ok();
        let (table, size, count) = (long(0x28)?, half(0x3a)?, half(0x3c)?);
        let header = |index: usize| Some(table + index * size).filter(|_| index < count);
        let bytes = |header: usize| object.get(long(header + 0x18)?..)?.get(..long(header + 0x20)?);
        let names = bytes(header(half(0x3e)?)?)?;
        let is_named = |header: &usize| {
            let rest = word(object, *header).and_then(|at| names.get(at as usize..));
            rest.is_some_and(|rest| rest.strip_prefix(name).is_some_and(|rest| rest[0] == 0))
        };
        bytes((0..count).filter_map(header).find(is_named)?)
    };
    find().ok_or_else(|| format!("the object has no section {}", String::from_utf8_lossy(name)))
}
