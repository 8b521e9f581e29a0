//! Writing pcapng: one section with one interface (draft-ietf-opsawg-pcapng §4.1, §4.2, §4.3, §4.6).

use std::io::{self, Write};

use super::next_generation::{
    ENHANCED_PACKET, INTERFACE_DESCRIPTION, INTERFACE_STATISTICS, SECTION_HEADER,
};

/// What a capture's file says about its interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Described<'a> {
    /// The interface's name (`if_name`).
    pub name: &'a str,
    /// What it is (`if_description`).
    pub description: &'a str,
    /// The link type of its packets, such as [`ETHERNET`](super::ETHERNET).
    pub link: u16,
    /// Most bytes that are kept of a packet; 0 for no limit.
    pub snap: u32,
}

/// What was counted at the interface: the statistics at the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// When, in nanoseconds since 1970.
    pub t_ns: u64,
    /// Packets that the interface handed over, whether they are in the file or not (`isb_ifrecv`).
    pub received: u64,
    /// Packets of them that are not in the file (`isb_ifdrop`).
    pub dropped: u64,
}

/// Writes a file, packet by packet. Times have a resolution of 1 ns. Without [`finish`](Self::finish) the file has no
/// statistics, but can be read.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    block: Vec<u8>,
    written: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the beginning: a section, and the interface.
    ///
    /// # Errors
    /// If `out` cannot be written to.
    pub fn new(out: W, interface: &Described<'_>) -> io::Result<Self> {
        let mut writer = Self { out, block: Vec::new(), written: 0 };
        let mut section = Body::default();
        section.u32(0x1a2b_3c4d).u16(1).u16(0).u64(u64::MAX);
        section.option(4, concat!("suiro ", env!("CARGO_PKG_VERSION")).as_bytes()).end();
        writer.block(SECTION_HEADER, &section)?;
        let mut description = Body::default();
        description.u16(interface.link).u16(0).u32(interface.snap);
        description.option(2, interface.name.as_bytes());
        description.option(3, interface.description.as_bytes());
        // if_tsresol: units of 10⁻⁹ s.
        description.option(9, &[9]).end();
        writer.block(INTERFACE_DESCRIPTION, &description)?;
        Ok(writer)
    }

    /// Adds a packet: `data` is what was captured of its `length` bytes. `t_ns` counts from 1970.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn packet(
        &mut self,
        t_ns: u64,
        data: &[u8],
        length: usize,
        sent: Option<bool>,
    ) -> io::Result<()> {
        let number = |size: usize| u32::try_from(size).map_err(io::Error::other);
        let mut body = Body(std::mem::take(&mut self.block));
        body.0.clear();
        body.u32(0).time(t_ns).u32(number(data.len())?).u32(number(length)?).padded(data);
        if let Some(sent) = sent {
            let flags: u32 = if sent { 2 } else { 1 };
            body.option(2, &flags.to_le_bytes()).end();
        }
        let written = self.block(ENHANCED_PACKET, &body);
        self.block = body.0;
        written
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Adds the statistics, and returns what was written to, flushed.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self, counted: &Counted) -> io::Result<W> {
        let mut body = Body::default();
        body.u32(0).time(counted.t_ns);
        body.option(4, &counted.received.to_le_bytes());
        body.option(5, &counted.dropped.to_le_bytes()).end();
        self.block(INTERFACE_STATISTICS, &body)?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes a block: its type, its length, its body, and its length again.
    fn block(&mut self, kind: u32, body: &Body) -> io::Result<()> {
        let size = u32::try_from(body.0.len() + 12).map_err(io::Error::other)?;
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&size.to_le_bytes())?;
        self.out.write_all(&body.0)?;
        self.out.write_all(&size.to_le_bytes())?;
        self.written += u64::from(size);
        Ok(())
    }
}

/// The body of a block, in little-endian order.
#[derive(Debug, Default)]
struct Body(Vec<u8>);

impl Body {
    fn u16(&mut self, number: u16) -> &mut Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    fn u32(&mut self, number: u32) -> &mut Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    fn u64(&mut self, number: u64) -> &mut Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    /// The upper half first, whatever the byte order (§4.3).
    fn time(&mut self, t_ns: u64) -> &mut Self {
        self.u32((t_ns >> 32) as u32).u32(t_ns as u32)
    }

    fn padded(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// An option (§3.5); a value that is too long for its length is cut.
    fn option(&mut self, code: u16, value: &[u8]) -> &mut Self {
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.u16(code).u16(length).padded(&value[..usize::from(length)])
    }

    /// The end of the options.
    fn end(&mut self) -> &mut Self {
        self.u32(0)
    }
}
