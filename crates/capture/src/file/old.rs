//! pcap: draft-ietf-opsawg-pcap §4 (the header of the file) and §5 (of a packet).

use super::{BLOCK_BYTES, Contents, FileError, Frame, Order};

const HEADER: usize = 24;
const PACKET_HEADER: usize = 16;

pub(super) fn read<'a>(
    file: &'a [u8],
    take: &mut dyn FnMut(&Frame<'a>),
) -> Result<Contents, FileError> {
    let no_capture = || FileError::NotACapture(file.iter().take(4).copied().collect());
    let (order, nanoseconds) = match file {
        [0xd4, 0xc3, 0xb2, 0xa1, ..] => (Order::LITTLE, 1_000),
        [0x4d, 0x3c, 0xb2, 0xa1, ..] => (Order::LITTLE, 1),
        [0xa1, 0xb2, 0xc3, 0xd4, ..] => (Order::BIG, 1_000),
        [0xa1, 0xb2, 0x3c, 0x4d, ..] => (Order::BIG, 1),
        _ => return Err(no_capture()),
    };
    // The upper bits describe a frame check sequence, which comes last and is ignored.
    let link = (order.u32(file, 20).ok_or_else(no_capture)? & 0xffff) as u16;
    let mut contents = Contents::default();
    let mut at = HEADER;
    while at < file.len() {
        let Some((frame, next)) = packet(file, at, order, nanoseconds, link)? else {
            contents.cut = true;
            break;
        };
        take(&frame);
        at = next;
    }
    Ok(contents)
}

/// The packet at this byte and the offset of the next; `None` if the file ends before that.
fn packet(
    file: &[u8],
    at: usize,
    order: Order,
    nanoseconds: u64,
    link: u16,
) -> Result<Option<(Frame<'_>, usize)>, FileError> {
    let (Some(seconds), Some(fraction)) = (order.u32(file, at), order.u32(file, at + 4)) else {
        return Ok(None);
    };
    let Some(size) = order.size(file, at + 8) else { return Ok(None) };
    if size > BLOCK_BYTES {
        return Err(FileError::Broken { at: at + 8, what: "a packet longer than 16 MiB" });
    }
    let begin = at + PACKET_HEADER;
    let Some(data) = file.get(begin..begin + size) else { return Ok(None) };
    let Some(length) = order.size(file, at + 12) else { return Ok(None) };
    let t_ns = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * nanoseconds;
    Ok(Some((Frame { t_ns, link, data, length, sent: None }, begin + size)))
}
