//! What a session description announces about the timing of its videos, whether suiro could receive them or not: other
//! people's streams are analysed, too.

use std::net::SocketAddrV4;

use super::{BYTES_MAX, Error, Lines, Parameters, error_at};
use crate::geometry::FrameRate;
use crate::packet::{IP_UDP_BYTES, UDP_BYTES};
use crate::timing::Given;
use crate::timing::model::{Scan, Schedule};

/// The sender type of ST 2110-21: TP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderType {
    /// `2110TPN`.
    Narrow,
    /// `2110TPNL`.
    NarrowLinear,
    /// `2110TPW`.
    Wide,
}

/// What is announced of one video.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced {
    /// Where its packets go.
    pub destination: SocketAddrV4,
    /// Frames per second.
    pub rate: Option<FrameRate>,
    /// Rows of a frame.
    pub height: Option<u32>,
    /// Frames or fields.
    pub scan: Scan,
    /// TP.
    pub sender: Option<SenderType>,
    /// TROFF, in microseconds.
    pub troff_us: Option<u32>,
    /// MAXUDP, which counts the UDP header, as the size of an IP packet.
    pub ip_bytes: Option<u32>,
}

impl Announced {
    /// The videos of a description; of a group of duplicates both.
    ///
    /// # Errors
    /// If it cannot be parsed, or has no video.
    pub fn read(text: &str) -> Result<Vec<Self>, Error> {
        if text.len() > BYTES_MAX {
            return Err(Error::Long(text.len()));
        }
        let videos = Lines::of(text)?;
        if videos.is_empty() {
            return Err(Error::Lacks("video (m=video …)"));
        }
        videos.iter().map(Self::of).collect()
    }

    fn of(lines: &Lines<'_>) -> Result<Self, Error> {
        let medium = lines.medium()?;
        let (address, _) = lines.connection()?;
        let parameters = lines.attribute("fmtp:", medium.payload_type);
        let (line, parameters) =
            parameters.ok_or(Error::Lacks("a=fmtp of the video's payload type"))?;
        let parameters = Parameters(parameters);
        let number = |name| parameters.find(name).map(|_| parameters.number(name)).transpose();
        let rate = parameters.find("exactframerate");
        let rate: Option<FrameRate> = rate.map(str::parse).transpose()?;
        let sender = match parameters.find("TP") {
            None => None,
            Some("2110TPN") => Some(SenderType::Narrow),
            Some("2110TPNL") => Some(SenderType::NarrowLinear),
            Some("2110TPW") => Some(SenderType::Wide),
            Some(_) => {
                return Err(error_at(line, parameters.0, "TP=2110TPN, 2110TPNL or 2110TPW"));
            }
        };
        let is_interlaced = parameters.find("interlace").is_some();
        Ok(Self {
            destination: SocketAddrV4::new(address, medium.port),
            rate,
            height: number("height")?,
            scan: if is_interlaced { Scan::Interlaced } else { Scan::Progressive },
            sender,
            troff_us: parameters.troff_us()?,
            ip_bytes: number("MAXUDP")?.map(|bytes| bytes.saturating_add(IP_UDP_BYTES - UDP_BYTES)),
        })
    }

    /// What follows for the analysis.
    pub fn given(&self) -> Given {
        Given {
            packets: None,
            rate: self.rate,
            height: self.height,
            scan: Some(self.scan),
            schedule: match self.sender {
                Some(SenderType::Narrow) => Some(Schedule::Gapped),
                Some(SenderType::NarrowLinear) => Some(Schedule::Linear),
                // A wide sender may be meant for either.
                Some(SenderType::Wide) | None => None,
            },
            troff_us: self.troff_us,
            ip_bytes: self.ip_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERLACED: &str = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nt=0 0\r\n\
        a=group:DUP 1 2\r\n\
        m=video 5004 RTP/AVP 96\r\nc=IN IP4 239.0.0.1/64\r\na=rtpmap:96 raw/90000\r\n\
        a=fmtp:96 sampling=YCbCr-4:2:2; width=1920; height=1080; exactframerate=25; depth=10; interlace; \
        TCS=SDR; colorimetry=BT709; PM=2110GPM; SSN=ST2110-20:2017; TP=2110TPN; TROFF=37; \r\na=mid:1\r\n\
        m=audio 5010 RTP/AVP 97\r\nc=IN IP4 239.0.0.3/64\r\n\
        m=video 5006 RTP/AVP 96\r\nc=IN IP4 239.0.0.2/64\r\na=rtpmap:96 raw/90000\r\n\
        a=fmtp:96 height=1080; exactframerate=30000/1001; TP=2110TPNL; MAXUDP=8960\r\na=mid:2\r\n";

    #[test]
    fn both_videos_of_a_group_are_read_interlaced_or_not() {
        let [first, second] = Announced::read(INTERLACED).unwrap().try_into().unwrap();
        assert_eq!(first.destination, "239.0.0.1:5004".parse().unwrap());
        assert_eq!(
            (first.scan, first.troff_us, first.height),
            (Scan::Interlaced, Some(37), Some(1080))
        );
        assert_eq!(first.given().schedule, Some(Schedule::Gapped));
        assert_eq!(first.rate, FrameRate::new(25, 1).ok());
        assert_eq!((second.scan, second.troff_us), (Scan::Progressive, None));
        assert_eq!(second.given().schedule, Some(Schedule::Linear));
        assert_eq!(second.ip_bytes, Some(8980));
    }

    #[test]
    fn ancillary_data_is_no_video() {
        let audio = "m=audio 5010 RTP/AVP 97\r\nc=IN IP4 239.0.0.3/64\r\n";
        let data =
            "m=video 5010 RTP/AVP 100\r\nc=IN IP4 239.0.0.3/64\r\na=rtpmap:100 smpte291/90000\r\n";
        assert!(INTERLACED.contains(audio));
        let text = INTERLACED.replace(audio, data);
        assert_eq!(Announced::read(&text), Announced::read(INTERLACED));
        assert_eq!(Announced::read(&text).unwrap().len(), 2);
        let compressed = text.replace("raw/90000", "jxsv/90000");
        assert_eq!(Announced::read(&compressed), Announced::read(INTERLACED));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |from: &str, to: &str| {
            Announced::read(&INTERLACED.replace(from, to)).unwrap_err().to_string()
        };
        assert!(wrong("TP=2110TPN;", "TP=narrow;").contains("expected TP=2110TPN"));
        assert!(wrong("TROFF=37", "TROFF=soon").contains("TROFF=soon: expected a whole number"));
        assert!(wrong("TROFF=37", "TROFF=37000000").contains("at most a second"));
        assert!(wrong("exactframerate=25", "exactframerate=0").contains("frame rate"));
        assert!(wrong("m=video", "m=audio").contains("video (m=video …) is missing"));
        assert!(wrong("a=fmtp", "a=x").contains("a=fmtp"));
    }
}
