//! pcapng: sections of blocks (draft-ietf-opsawg-pcapng §3.1, §4).

use super::{BLOCK_BYTES, Contents, FileError, Frame, Order};

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
pub(super) const INTERFACE_STATISTICS: u32 = 5;
pub(super) const ENHANCED_PACKET: u32 = 6;
/// Most interfaces in one section.
const INTERFACES: usize = 65_536;
/// A block's type and length before its body, and its length after it.
const FRAME: usize = 12;

/// What a packet's block refers to (§4.2).
#[derive(Debug, Clone, Copy)]
struct Interface {
    link: u16,
    /// Timestamp ticks per second.
    ticks: u64,
    /// Added to timestamps.
    offset_s: i64,
    lost: u64,
}

pub(super) fn read<'a>(
    file: &'a [u8],
    take: &mut dyn FnMut(&Frame<'a>),
) -> Result<Contents, FileError> {
    let mut order = Order::LITTLE;
    let mut contents = Contents::default();
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut at = 0;
    while at < file.len() {
        if let Some(found) = section(file, at)? {
            contents.lost = contents.lost.saturating_add(lost(&interfaces));
            order = found;
            interfaces.clear();
        }
        let Some(size) = order.size(file, at + 4) else {
            contents.cut = true;
            break;
        };
        if size < FRAME || size % 4 != 0 || size > BLOCK_BYTES {
            return Err(FileError::Broken { at: at + 4, what: "a block with an invalid length" });
        }
        let Some(block) = file.get(at..at + size) else {
            contents.cut = true;
            break;
        };
        if order.size(block, size - 4) != Some(size) {
            let what = "a block whose two lengths differ";
            return Err(FileError::Broken { at: at + size - 4, what });
        }
        match one(order, block, at, &mut interfaces)? {
            Block::Packet(frame) => take(&frame),
            Block::Untimed => contents.untimed += 1,
            Block::Other => {}
        }
        at += size;
    }
    contents.lost = contents.lost.saturating_add(lost(&interfaces));
    Ok(contents)
}

fn lost(interfaces: &[Interface]) -> u64 {
    interfaces.iter().fold(0, |sum, interface| sum.saturating_add(interface.lost))
}

/// The byte order, if a section begins here (§4.1).
fn section(file: &[u8], at: usize) -> Result<Option<Order>, FileError> {
    let little = Order::LITTLE;
    // This type reads the same in both orders.
    if little.u32(file, at) != Some(SECTION_HEADER) {
        return Ok(None);
    }
    match little.u32(file, at + 8) {
        Some(0x1a2b_3c4d) => Ok(Some(little)),
        Some(0x4d3c_2b1a) => Ok(Some(Order::BIG)),
        _ => Err(FileError::Broken { at: at + 8, what: "a section without a byte-order magic" }),
    }
}

/// What a block is to the reader.
enum Block<'a> {
    Packet(Frame<'a>),
    Untimed,
    Other,
}

fn one<'a>(
    order: Order,
    block: &'a [u8],
    at: usize,
    interfaces: &mut Vec<Interface>,
) -> Result<Block<'a>, FileError> {
    let broken = |what| FileError::Broken { at, what };
    let body = &block[8..block.len() - 4];
    match order.u32(block, 0) {
        Some(INTERFACE_DESCRIPTION) => {
            let interface =
                interface(order, body).ok_or_else(|| broken("a truncated interface block"))?;
            if interfaces.len() >= INTERFACES {
                return Err(broken("more than 65,536 interfaces"));
            }
            interfaces.push(interface);
        }
        Some(ENHANCED_PACKET) => {
            let frame = enhanced(order, body, interfaces);
            let broken = || broken("a truncated packet block, or one without an interface");
            return frame.map(Block::Packet).ok_or_else(broken);
        }
        // It has no timestamp.
        Some(SIMPLE_PACKET) => return Ok(Block::Untimed),
        Some(INTERFACE_STATISTICS) => {
            let number = order.size(body, 0).and_then(|number| interfaces.get_mut(number));
            let interface = number.ok_or_else(|| broken("statistics without an interface"))?;
            interface.lost = dropped(order, body);
        }
        // Other blocks may be skipped (§3.1).
        _ => {}
    }
    Ok(Block::Other)
}

/// §4.2, with the options if_tsresol (9) and if_tsoffset (14).
fn interface(order: Order, body: &[u8]) -> Option<Interface> {
    let link = order.u16(body, 0)?;
    let mut interface = Interface { link, ticks: 1_000_000, offset_s: 0, lost: 0 };
    for (code, value) in options(order, body.get(8..)?) {
        match (code, value) {
            (9, [resolution, ..]) => {
                let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
                let power = u32::from(resolution & 0x7f);
                interface.ticks = base.checked_pow(power).filter(|&ticks| ticks > 0)?;
            }
            (14, value) => interface.offset_s = order.u64(value, 0)? as i64,
            _ => {}
        }
    }
    Some(interface)
}

/// §4.3, with the option epb_flags (2), whose last two bits give the direction.
fn enhanced<'a>(order: Order, body: &'a [u8], interfaces: &[Interface]) -> Option<Frame<'a>> {
    let interface = interfaces.get(order.size(body, 0)?)?;
    let ticks = u64::from(order.u32(body, 4)?) << 32 | u64::from(order.u32(body, 8)?);
    let size = order.size(body, 12)?;
    let length = order.size(body, 16)?;
    let data = body.get(20..20usize.checked_add(size)?)?;
    let rest = body.get(20 + size.next_multiple_of(4)..).unwrap_or_default();
    let flags = options(order, rest).find(|(code, _)| *code == 2);
    let sent = match flags.and_then(|(_, value)| order.u32(value, 0)).map(|flags| flags & 3) {
        Some(1) => Some(false),
        Some(2) => Some(true),
        _ => None,
    };
    let since = u128::from(ticks) * 1_000_000_000 / u128::from(interface.ticks);
    let t_ns = i128::try_from(since).ok()? + i128::from(interface.offset_s) * 1_000_000_000;
    Some(Frame { t_ns: u64::try_from(t_ns).ok()?, link: interface.link, data, length, sent })
}

/// §4.6: isb_ifdrop (5) and isb_osdrop (7).
fn dropped(order: Order, body: &[u8]) -> u64 {
    let counts = options(order, body.get(12..).unwrap_or_default());
    let drops = counts.filter(|(code, _)| matches!(code, 5 | 7));
    drops.filter_map(|(_, value)| order.u64(value, 0)).fold(0, u64::saturating_add)
}

/// Code and value of each option (§3.5), up to the end or the first truncated one.
fn options(order: Order, mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let code = order.u16(rest, 0).filter(|&code| code != 0)?;
        let size = usize::from(order.u16(rest, 2)?);
        let value = rest.get(4..4 + size)?;
        rest = rest.get(4 + size.next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    })
}
