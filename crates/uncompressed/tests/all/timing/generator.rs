//! Captures of streams whose packets leave when a test says: pcap, with the headers of each packet only.

use std::net::Ipv4Addr;

/// Frame 89,000,000,000 at 50 per second begins in 2026.
pub const BEGIN_S: u64 = 1_780_000_000;
/// Bytes of each IP packet.
const IP_BYTES: u16 = 1262;

/// A stream of video.
#[derive(Debug, Clone, Copy)]
pub struct Video {
    /// Frames or fields, in seconds.
    pub rate: (u64, u64),
    /// Packets of each.
    pub packets: u64,
    /// Rows of a frame.
    pub height: u64,
    pub interlaced: bool,
    /// How many frames or fields.
    pub frames: u64,
}

/// A packet, as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    pub t_ns: u64,
    /// The last byte of its group, 239.0.0.x.
    pub group: u8,
    pub sequence: u32,
    pub timestamp: u32,
    pub marker: bool,
    pub row: u16,
    pub second: bool,
    pub ssrc: u32,
    /// A byte of its payload.
    pub content: u8,
}

impl Video {
    pub const HD50: Self = Self::progressive((50, 1), 4320, 1080);

    pub const fn progressive(rate: (u64, u64), packets: u64, height: u64) -> Self {
        Self { rate, packets, height, interlaced: false, frames: 6 }
    }

    pub const fn interlaced(rate: (u64, u64), packets: u64, height: u64) -> Self {
        Self { interlaced: true, ..Self::progressive(rate, packets, height) }
    }

    /// T in nanoseconds.
    pub fn period(&self) -> f64 {
        self.rate.1 as f64 * 1e9 / self.rate.0 as f64
    }

    /// TRO_DEFAULT as a share of T.
    pub fn offset(&self) -> f64 {
        match (self.interlaced, self.height) {
            (false, ..1080) => 28.0 / 750.0,
            (false, _) => 43.0 / 1125.0,
            (true, ..576) => 40.0 / 525.0,
            (true, ..1080) => 52.0 / 625.0,
            (true, _) => 44.0 / 1125.0,
        }
    }

    /// R_ACTIVE of gapped reading.
    pub fn active(&self) -> f64 {
        match (self.interlaced, self.height) {
            (true, ..576) => 487.0 / 525.0,
            (true, ..1080) => 576.0 / 625.0,
            _ => 1080.0 / 1125.0,
        }
    }

    /// The first frame, which begins at or after [`BEGIN_S`]; of interlaced video a first field.
    fn first(&self) -> u64 {
        (BEGIN_S * self.rate.0).div_ceil(self.rate.1).next_multiple_of(2)
    }

    /// The packets in order of time, if packet `j` of frame `k` leaves `leaves(k, j)` nanoseconds after the frame
    /// begins.
    pub fn sent(&self, mut leaves: impl FnMut(u64, u64) -> f64) -> Vec<Sent> {
        let rows = if self.interlaced { self.height / 2 } else { self.height };
        let mut sent = Vec::new();
        for k in 0..self.frames {
            let number = u128::from(self.first() + k);
            let of =
                |parts: u128| number * u128::from(self.rate.1) * parts / u128::from(self.rate.0);
            for j in 0..self.packets {
                sent.push(Sent {
                    t_ns: (of(1_000_000_000) as i128 + leaves(k, j).round() as i128) as u64,
                    group: 1,
                    // The sequence numbers pass 65,535.
                    sequence: (60_000 + k * self.packets + j) as u32,
                    timestamp: of(90_000) as u32,
                    marker: j + 1 == self.packets,
                    row: (j * rows / self.packets) as u16,
                    second: self.interlaced && k % 2 == 1,
                    ssrc: 7,
                    content: j as u8,
                });
            }
        }
        sent.sort_by_key(|packet| packet.t_ns);
        sent
    }

    /// As a gapped reader reads, so many packets before.
    pub fn gapped(&self, ahead: f64) -> Vec<Sent> {
        let step = self.period() * self.active() / self.packets as f64;
        self.sent(|_, j| self.period() * self.offset() + (j as f64 - ahead) * step)
    }

    /// Evenly over the frame time, after this share of it.
    pub fn linear(&self, offset: f64) -> Vec<Sent> {
        let step = self.period() / self.packets as f64;
        self.sent(|_, j| self.period() * offset + j as f64 * step)
    }
}

/// A packet from its Ethernet header on, up to a byte of its samples.
pub fn headers(packet: &Sent) -> Vec<u8> {
    let mut frame = vec![1, 0, 94, 0, 0, packet.group, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0]);
    frame.extend(IP_BYTES.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend(Ipv4Addr::new(192, 0, 2, 1).octets());
    frame.extend([239, 0, 0, packet.group]);
    for field in [5004, 5004, IP_BYTES - 20, 0] {
        frame.extend(field.to_be_bytes());
    }
    frame.extend([0x80, u8::from(packet.marker) << 7 | 96]);
    frame.extend((packet.sequence as u16).to_be_bytes());
    frame.extend(packet.timestamp.to_be_bytes());
    frame.extend(packet.ssrc.to_be_bytes());
    frame.extend(((packet.sequence >> 16) as u16).to_be_bytes());
    frame.extend(1200u16.to_be_bytes());
    frame.extend((u16::from(packet.second) << 15 | packet.row).to_be_bytes());
    frame.extend([0, 0, packet.content]);
    frame
}

/// The length of a packet in its Ethernet frame.
pub const LENGTH: usize = IP_BYTES as usize + 14;

/// A capture with nanoseconds, or with microseconds.
pub fn pcap(sent: &[Sent], nanoseconds: bool) -> Vec<u8> {
    let magic: u32 = if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut file = Vec::new();
    for field in [magic, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(field.to_le_bytes());
    }
    for packet in sent {
        let data = headers(packet);
        let (seconds, rest) = (packet.t_ns / 1_000_000_000, packet.t_ns % 1_000_000_000);
        let rest = if nanoseconds { rest } else { rest / 1000 };
        for field in [seconds as u32, rest as u32, data.len() as u32, LENGTH as u32] {
            file.extend(field.to_le_bytes());
        }
        file.extend(data);
    }
    file
}
