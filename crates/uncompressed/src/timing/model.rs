//! What ST 2110-21 expects of a format: the packet read schedule, its default offset, and the limits.

use std::fmt;

use serde::Serialize;

use crate::geometry::FrameRate;
use crate::measure::Limits;

/// Most packets of a frame or field that are analysed.
pub const PACKETS_MAX: u32 = 1_000_000;
/// An IP packet of the standard size limit of ST 2110-10; limits are for no smaller ones, as in the EBU's LIST.
const STANDARD_IP_BYTES: u32 = 1500;

/// How the rows of an image follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scan {
    /// Whole frames.
    Progressive,
    /// Two fields for each frame, each with a marker and a timestamp; also progressive segmented frames.
    Interlaced,
}

/// When a receiver reads the packets of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// With a pause between frames, like the blanking of SDI (ST 2110-21 §6.3).
    Gapped,
    /// Evenly over the whole frame time (§6.4).
    Linear,
}

/// What the models need to know of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Packets of a frame, or of a field: N.
    pub packets: u32,
    /// Frames per second, or fields: 1 / T.
    pub rate: FrameRate,
    /// Rows of a frame; `None` if they are not known.
    pub height: Option<u32>,
    /// Frames or fields.
    pub scan: Scan,
    /// When they are read.
    pub schedule: Schedule,
    /// The largest IP packet, in bytes.
    pub ip_bytes: u32,
}

impl fmt::Display for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Progressive => "progressive",
            Self::Interlaced => "interlaced",
        })
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gapped => "gapped",
            Self::Linear => "linear",
        })
    }
}

impl Format {
    /// R_ACTIVE as a fraction: the share of the frame time in which packets are read (ST 2110-21 §6.3, §6.4).
    pub fn active(&self) -> (u32, u32) {
        match (self.schedule, self.scan, self.height) {
            (Schedule::Linear, ..) => (1, 1),
            (_, Scan::Interlaced, Some(height)) if height < 576 => (487, 525),
            (_, Scan::Interlaced, Some(height)) if height < 1080 => (576, 625),
            _ => (1080, 1125),
        }
    }

    /// TRO_DEFAULT as a fraction of T: from the beginning of a frame to the time at which its first packet is read
    /// (§6.3.2, §6.3.3). That of interlaced video is a share of two fields. `None` if it depends on a height that is not
    /// known.
    pub fn offset(&self) -> Option<(u32, u32)> {
        Some(match (self.scan, self.height?) {
            (Scan::Progressive, ..1080) => (28, 750),
            (Scan::Progressive, _) => (43, 1125),
            (Scan::Interlaced, ..576) => (40, 525),
            (Scan::Interlaced, ..1080) => (52, 625),
            (Scan::Interlaced, _) => (44, 1125),
        })
    }

    /// TRO_DEFAULT in nanoseconds.
    pub fn offset_ns(&self) -> Option<f64> {
        let (of, parts) = self.offset()?;
        Some(self.period_ns() * f64::from(of) / f64::from(parts))
    }

    /// T in nanoseconds.
    pub fn period_ns(&self) -> f64 {
        f64::from(self.rate.seconds()) * 1e9 / f64::from(self.rate.frames())
    }

    /// T_RS, from one packet's reading to the next, in nanoseconds.
    pub fn step_ns(&self) -> f64 {
        let (of, parts) = self.active();
        self.period_ns() * f64::from(of) / f64::from(parts) / f64::from(self.packets)
    }

    /// Ticks of the RTP clock in a frame or field.
    pub fn ticks(&self) -> f64 {
        self.period_ns() * 90_000.0 / 1e9
    }

    /// C_MAX and VRX_FULL of narrow and wide senders.
    pub fn limits(&self) -> Limits {
        let ip_bytes = self.ip_bytes.max(STANDARD_IP_BYTES);
        Limits::exact(self.packets, ip_bytes, self.rate, self.active())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(packets: u32, rate: (u32, u32), height: u32, scan: Scan) -> Format {
        Format {
            packets,
            rate: FrameRate::new(rate.0, rate.1).unwrap(),
            height: Some(height),
            scan,
            schedule: Schedule::Gapped,
            ip_bytes: 1500,
        }
    }

    fn limits(format: &Format) -> [u32; 4] {
        let limits = format.limits();
        [limits.burst_narrow, limits.burst_wide, limits.buffer_narrow, limits.buffer_wide]
    }

    #[test]
    fn limits_of_usual_formats() {
        // 216,000 packets/s: C 216000/43200/0.96 = 5.2, 216000/21600 = 10; VRX 216000/27000 = 8, exactly, 216000/300 = 720.
        let hd50 = format(4320, (50, 1), 1080, Scan::Progressive);
        assert_eq!(limits(&hd50), [5, 16, 8, 720]);
        let linear = Format { schedule: Schedule::Linear, ..hd50 };
        assert_eq!(limits(&linear), [5, 16, 8, 720]);
        // 1,035,764 packets/s: 24.97, 47.95; 38.4, 3452.5.
        let uhd = format(17_280, (60_000, 1001), 2160, Scan::Progressive);
        assert_eq!(limits(&uhd), [24, 47, 38, 3452]);
        assert_eq!(limits(&Format { schedule: Schedule::Linear, ..uhd }), [23, 47, 38, 3452]);
        // Large packets: 709 · 59.94 = 42497/s; MAXIP 8800.
        let raster =
            Format { ip_bytes: 8800, ..format(709, (60_000, 1001), 1125, Scan::Progressive) };
        assert_eq!(limits(&raster), [4, 16, 1, 141]);
    }

    #[test]
    fn offsets_and_steps_of_usual_formats() {
        // 43/1125 of 20 ms; 0.96 · 20 ms / 4320.
        let hd50 = format(4320, (50, 1), 1080, Scan::Progressive);
        assert_eq!(hd50.offset_ns().unwrap().round(), 764_444.0);
        assert_eq!(hd50.step_ns().round(), 4444.0);
        assert_eq!(hd50.ticks(), 1800.0);
        // 22/1125 of 40 ms.
        let hd25i = format(2160, (50, 1), 1080, Scan::Interlaced);
        assert_eq!(hd25i.offset_ns().unwrap().round(), 782_222.0);
        // 26/625 of 40 ms, 576/625 of 20 ms; 20/525 of 33.3667 ms, 487/525.
        let pal = format(400, (50, 1), 576, Scan::Interlaced);
        assert_eq!(pal.offset_ns().unwrap().round(), 1_664_000.0);
        assert_eq!(pal.active(), (576, 625));
        let ntsc = format(350, (60_000, 1001), 486, Scan::Interlaced);
        assert_eq!(ntsc.offset_ns().unwrap().round(), 1_271_111.0);
        assert_eq!(ntsc.active(), (487, 525));
        // 28/750 of 20 ms.
        let p720 = format(1920, (50, 1), 720, Scan::Progressive);
        assert_eq!(p720.offset_ns().unwrap().round(), 746_667.0);
        assert_eq!(Format { height: None, ..p720 }.offset(), None);
    }
}
