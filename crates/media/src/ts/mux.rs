//! Segments with one programme: H.264, and AAC if there is sound.

use std::collections::BTreeMap;

use super::restamp::write_stamp;
use super::{PACKET, Packets, START, TIMESCALE};
use crate::aac::AudioConfig;
use crate::mp4::Frame;
use crate::{ParseError, h264};

const PAT_PID: u16 = 0;
const PMT_PID: u16 = 0x1000;
const VIDEO_PID: u16 = 0x100;
const AUDIO_PID: u16 = 0x101;

/// The programme clock runs this far behind the decoding times: how long the first bytes of a frame
/// may wait in the decoder's buffer. Half a second is below the one second of §2.4.2.7.
const CLOCK_LEAD: u64 = 45_000;

/// Bytes of sound in one PES packet at most. A frame each would be padded to whole packets, which
/// at 96 kbit/s is half as much again.
const AUDIO_PES_MAX: usize = 2_900;

/// The frames of a segment and the ticks per second of their times.
pub(crate) struct Timed<'f> {
    pub frames: &'f [Frame],
    pub timescale: u32,
}

impl Timed<'_> {
    fn ticks(&self, time: u64) -> u64 {
        START + (u128::from(time) * u128::from(TIMESCALE) / u128::from(self.timescale)) as u64
    }
}

/// Writes the segments of a loop one after the other; continuity counters run on between them.
pub(crate) struct Muxer {
    audio: Option<AudioConfig>,
    /// How far decoding times lie before those of the frames, in ticks of 90 kHz: frames that are
    /// reordered must be decoded before they are shown.
    reorder: u64,
    packets: BTreeMap<u16, u64>,
}

impl Muxer {
    pub fn new(audio: Option<AudioConfig>, reorder: u64) -> Self {
        Self { audio, reorder, packets: BTreeMap::new() }
    }

    /// Packets written so far.
    pub fn packets(&self) -> Vec<Packets> {
        self.packets.iter().map(|(&pid, &count)| Packets { pid, count }).collect()
    }

    /// Writes a segment: tables, then frames and sound by their times.
    ///
    /// # Errors
    /// If a frame is not what its codec says.
    pub fn segment(&mut self, video: &Timed, audio: &Timed) -> Result<Vec<u8>, ParseError> {
        let mut out = Vec::new();
        self.table(&mut out, PAT_PID, &pat());
        self.table(&mut out, PMT_PID, &pmt(self.audio.is_some()));
        let mut sound = self.sound(audio)?.into_iter().peekable();
        for frame in video.frames {
            let decode = video.ticks(frame.decode) - self.reorder;
            while let Some(unit) = sound.next_if(|unit| unit.shown <= decode) {
                self.pes(&mut out, &unit);
            }
            let unit = Unit {
                pid: VIDEO_PID,
                stream: 0xe0,
                shown: video.ticks(frame.shown),
                decode,
                sync: frame.sync,
                data: h264::byte_stream(&frame.data)?,
            };
            self.pes(&mut out, &unit);
        }
        sound.for_each(|unit| self.pes(&mut out, &unit));
        Ok(out)
    }

    /// Sound, several frames to a unit.
    fn sound(&self, audio: &Timed) -> Result<Vec<Unit>, ParseError> {
        let Some(config) = self.audio else { return Ok(Vec::new()) };
        let mut units: Vec<Unit> = Vec::new();
        for frame in audio.frames {
            let data = config.adts(&frame.data)?;
            match units.last_mut() {
                Some(last) if last.data.len() + data.len() <= AUDIO_PES_MAX => {
                    last.data.extend(data);
                }
                _ => {
                    let shown = audio.ticks(frame.shown);
                    let (decode, sync) = (shown, true);
                    units.push(Unit { pid: AUDIO_PID, stream: 0xc0, shown, decode, sync, data });
                }
            }
        }
        Ok(units)
    }

    fn table(&mut self, out: &mut Vec<u8>, pid: u16, section: &[u8]) {
        // The pointer to the section, which begins at once.
        let mut payload = vec![0];
        payload.extend(section);
        // What follows a section is filled with 0xff (§2.4.4).
        payload.resize(PACKET - 4, 0xff);
        self.packet(out, pid, true, Vec::new(), &payload);
    }

    /// §2.4.3.6.
    fn pes(&mut self, out: &mut Vec<u8>, unit: &Unit) {
        let mut bytes = unit.header();
        bytes.extend(&unit.data);
        let mut adaptation = unit.adaptation();
        let mut rest = &bytes[..];
        let mut starts = true;
        while !rest.is_empty() {
            let taken = self.packet(out, unit.pid, starts, std::mem::take(&mut adaptation), rest);
            rest = &rest[taken..];
            starts = false;
        }
    }

    /// Writes one packet with as much of `payload` as it holds, filled up in its adaptation field,
    /// and returns how much that was. `adaptation` is the field without its length.
    fn packet(
        &mut self,
        out: &mut Vec<u8>,
        pid: u16,
        starts: bool,
        mut adaptation: Vec<u8>,
        payload: &[u8],
    ) -> usize {
        let room = PACKET - 4;
        let mut field = if adaptation.is_empty() { 0 } else { 1 + adaptation.len() };
        let taken = payload.len().min(room - field);
        if field + taken < room {
            field = room - taken;
            if adaptation.is_empty() && field > 1 {
                adaptation.push(0);
            }
            adaptation.resize(field - 1, 0xff);
        }
        let count = self.packets.entry(pid).or_insert(0);
        let counter = (*count & 0x0f) as u8;
        *count += 1;
        let [high, low] = pid.to_be_bytes();
        let content = if field > 0 { 0x30 } else { 0x10 };
        out.extend([0x47, u8::from(starts) << 6 | high, low, content | counter]);
        if field > 0 {
            out.push((field - 1) as u8);
            out.extend(adaptation);
        }
        out.extend(&payload[..taken]);
        taken
    }
}

/// What becomes one PES packet. Times are in ticks of 90 kHz.
struct Unit {
    pid: u16,
    stream: u8,
    shown: u64,
    decode: u64,
    sync: bool,
    data: Vec<u8>,
}

impl Unit {
    fn header(&self) -> Vec<u8> {
        let stamps = if self.shown == self.decode { 1 } else { 2 };
        let after = 3 + 5 * stamps + self.data.len();
        // A frame's size may be left out; it may not fit anyway.
        let size = if self.pid == VIDEO_PID { 0 } else { after as u16 };
        let mut header = vec![0, 0, 1, self.stream];
        header.extend(size.to_be_bytes());
        // The data is aligned: it begins with an access unit.
        let flags = if stamps == 2 { 0xc0 } else { 0x80 };
        header.extend([0x84, flags, 5 * stamps as u8]);
        let at = header.len();
        header.resize(at + 5 * stamps, 0);
        write_stamp(&mut header[at..at + 5], if stamps == 2 { 3 } else { 2 }, self.shown);
        if stamps == 2 {
            write_stamp(&mut header[at + 5..], 1, self.decode);
        }
        header
    }

    /// §2.4.3.4: each frame carries the clock, at intervals below the 100 ms of §2.7.2 from
    /// 10 frames per second on; where decoding can begin, that is said.
    fn adaptation(&self) -> Vec<u8> {
        if self.pid != VIDEO_PID {
            return Vec::new();
        }
        let clock = self.decode - CLOCK_LEAD;
        let mut field = vec![0x10 | u8::from(self.sync) << 6];
        field.extend(((clock >> 1) as u32).to_be_bytes());
        // The base's last bit, six reserved bits, an extension of 0.
        field.extend([((clock & 1) as u8) << 7 | 0x7e, 0]);
        field
    }
}

/// Programme association (§2.4.4.3): programme 1 is described at `PMT_PID`.
fn pat() -> Vec<u8> {
    let [high, low] = PMT_PID.to_be_bytes();
    section(0x00, &[0, 1, 0xe0 | high, low])
}

/// Programme map (§2.4.4.8): its clock and its streams.
fn pmt(with_audio: bool) -> Vec<u8> {
    let [high, low] = VIDEO_PID.to_be_bytes();
    // No descriptors of the programme; H.264 (0x1b) without descriptors.
    let mut content = vec![0xe0 | high, low, 0xf0, 0, 0x1b, 0xe0 | high, low, 0xf0, 0];
    if with_audio {
        let [high, low] = AUDIO_PID.to_be_bytes();
        // AAC in ADTS (0x0f).
        content.extend([0x0f, 0xe0 | high, low, 0xf0, 0]);
    }
    section(0x02, &content)
}

/// A section with the number 1, version 0, current, the only one, and its checksum.
fn section(table: u8, content: &[u8]) -> Vec<u8> {
    let size = content.len() + 9;
    let mut out = vec![table, 0xb0 | (size >> 8) as u8, size as u8, 0, 1, 0xc1, 0, 0];
    out.extend(content);
    out.extend(crc32(&out).to_be_bytes());
    out
}

/// ISO/IEC 13818-1 annex A: polynomial 0x04c11db7, all ones at first, not reflected.
fn crc32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 24, |crc, _| {
            if crc & 0x8000_0000 == 0 { crc << 1 } else { crc << 1 ^ 0x04c1_1db7 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum() {
        // The catalogue's check value of CRC-32/MPEG-2.
        assert_eq!(crc32(b"123456789"), 0x0376_e6e7);
        // A section with its checksum has the checksum 0.
        assert_eq!(crc32(&pat()), 0);
        assert_eq!(crc32(&pmt(true)), 0);
    }

    #[test]
    fn any_size_makes_whole_packets() {
        for size in 1..600 {
            let mut muxer = Muxer::new(None, 0);
            let mut out = Vec::new();
            let (pid, stream, data) = (AUDIO_PID, 0xc0, vec![0xaa; size]);
            let unit = Unit { pid, stream, shown: 90_000, decode: 90_000, sync: true, data };
            muxer.pes(&mut out, &unit);
            assert_eq!(out.len() % PACKET, 0, "{size}");
            let payload = |packet: &[u8]| {
                let field = if packet[3] & 0x20 == 0 { 0 } else { 1 + usize::from(packet[4]) };
                packet[4 + field..].to_vec()
            };
            let carried: Vec<u8> = out.chunks_exact(PACKET).flat_map(payload).collect();
            assert_eq!(carried, [unit.header(), unit.data].concat(), "{size}");
        }
    }
}
