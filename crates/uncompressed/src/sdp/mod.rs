//! The session description of an uncompressed video stream: SDP (RFC 8866) with the parameters of
//! ST 2110-20 §7 and RFC 4175 §6.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use crate::geometry::{self, Depth, FrameRate, Geometry, RTP_CLOCK_HZ};

/// Longest description that is read, in bytes.
pub const BYTES_MAX: usize = 64 * 1024;
/// Largest UDP datagram of ST 2110-10's standard limit; a larger one must be announced.
const STANDARD_UDP_BYTES: u32 = 1460;

/// One stream of uncompressed video.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The name of the session; one line.
    pub name: String,
    /// Its number, which distinguishes it from all others of this sender (RFC 8866 §5.2: sess-id).
    pub session: u64,
    /// Its version: a later version of the same session is greater. RFC 8866 §5.2 recommends the
    /// time in seconds since 1900.
    pub version: u64,
    /// The sender's address, to which receivers of a group restrict the stream; `None` if it is
    /// unknown.
    pub source: Option<Ipv4Addr>,
    /// The hardware address of the sender, whose clock it follows; `None` if it has none.
    pub mac: Option<[u8; 6]>,
    /// The destination: a host's address, or a multicast group.
    pub destination: Ipv4Addr,
    /// The UDP port.
    pub port: u16,
    /// Hops that a multicast packet may take, 1 to 255; ignored for a host's address.
    pub ttl: u8,
    /// RTP payload type, 0 to 127; dynamic ones are 96 to 127.
    pub payload_type: u8,
    /// The images.
    pub geometry: Geometry,
    /// Largest UDP datagram, in bytes, without the UDP and IP headers.
    pub datagram_bytes: u32,
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, destination, port, ttl, payload_type, geometry, .. } = self;
        let name = self.name.replace(['\r', '\n', '\0'], " ");
        let name = if name.is_empty() { "-" } else { &name };
        let origin = source.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let Self { session, version, .. } = self;
        write!(f, "v=0\r\no=- {session} {version} IN IP4 {origin}\r\ns={name}\r\nt=0 0\r\n")?;
        write!(f, "m=video {port} RTP/AVP {payload_type}\r\nc=IN IP4 {destination}")?;
        if destination.is_multicast() {
            write!(f, "/{ttl}")?;
            if let Some(source) = source {
                write!(f, "\r\na=source-filter: incl IN IP4 {destination} {source}")?;
            }
        }
        write!(f, "\r\na=rtpmap:{payload_type} raw/{RTP_CLOCK_HZ}\r\n")?;
        write!(f, "a=fmtp:{payload_type} sampling={}; ", geometry.sampling())?;
        write!(f, "width={}; height={}; ", geometry.width(), geometry.height())?;
        write!(f, "exactframerate={}; depth={}; ", geometry.rate(), geometry.depth().bits())?;
        write!(f, "TCS=SDR; colorimetry=BT709; PM=2110GPM; SSN=ST2110-20:2017; TP=2110TPW")?;
        if self.datagram_bytes > STANDARD_UDP_BYTES {
            write!(f, "; MAXUDP={}", self.datagram_bytes)?;
        }
        // ST 2110-10 §8.2: a sender that does not claim a PTP domain identifies itself by its
        // hardware address. RFC 7273 §4.8 defines a value for senders without one.
        match self.mac {
            Some([a, b, c, d, e, g]) => {
                write!(
                    f,
                    "\r\na=ts-refclk:localmac={a:02x}-{b:02x}-{c:02x}-{d:02x}-{e:02x}-{g:02x}"
                )?;
            }
            None => write!(f, "\r\na=ts-refclk:local")?,
        }
        write!(f, "\r\na=mediaclk:direct=0\r\n")
    }
}

/// Why a text does not describe a stream that suiro can receive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is longer than [`BYTES_MAX`].
    #[error("description: expected at most {BYTES_MAX} bytes, found {0}")]
    Long(usize),
    /// A line or parameter is missing.
    #[error("{0} is missing")]
    Lacks(&'static str),
    /// A line that cannot be parsed.
    #[error("line {line}: expected {expected}, found {text:?}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// Its text.
        text: String,
        /// What was expected.
        expected: &'static str,
    },
    /// A parameter with a value that suiro cannot receive.
    #[error("{parameter}={value}: {because}")]
    Parameter {
        /// Its name.
        parameter: &'static str,
        /// Its value.
        value: String,
        /// Why not.
        because: &'static str,
    },
    /// The image is out of bounds.
    #[error(transparent)]
    Geometry(#[from] geometry::Error),
}

impl FromStr for Description {
    type Err = Error;

    /// Reads the first video medium of a description; other media are skipped.
    fn from_str(text: &str) -> Result<Self, Error> {
        if text.len() > BYTES_MAX {
            return Err(Error::Long(text.len()));
        }
        let lines = Lines::of(text)?;
        let medium = lines.medium()?;
        let (destination, ttl) = lines.connection()?;
        let map = lines.attribute("rtpmap:", medium.payload_type);
        let (line, map) = map.ok_or(Error::Lacks("a=rtpmap of the video's payload type"))?;
        if !map.eq_ignore_ascii_case("raw/90000") {
            return Err(error_at(line, map, "raw/90000"));
        }
        let parameters = lines.attribute("fmtp:", medium.payload_type);
        let (_, parameters) =
            parameters.ok_or(Error::Lacks("a=fmtp of the video's payload type"))?;
        let parameters = Parameters(parameters);
        let (session, version, source) = lines.origin()?;
        Ok(Self {
            name: lines.value('s').unwrap_or("-").to_owned(),
            session,
            version,
            source,
            mac: lines.mac(),
            destination,
            port: medium.port,
            ttl,
            payload_type: medium.payload_type,
            geometry: parameters.geometry()?,
            datagram_bytes: parameters.datagram_bytes()?,
        })
    }
}

fn error_at(line: usize, text: &str, expected: &'static str) -> Error {
    Error::Line { line, text: text.chars().take(200).collect(), expected }
}

struct Medium {
    port: u16,
    payload_type: u8,
}

/// The lines that apply to the first video: its own first, then the session's.
struct Lines<'a>(Vec<(usize, char, &'a str)>);

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Result<Self, Error> {
        let (mut session, mut video, mut media) = (Vec::new(), Vec::new(), Vec::new());
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_end();
            let mut characters = line.chars();
            let (Some(kind), Some('=')) = (characters.next(), characters.next()) else {
                if line.is_empty() {
                    continue;
                }
                return Err(error_at(number + 1, line, "TYPE=VALUE"));
            };
            if kind == 'm' {
                media.push(characters.as_str());
            }
            let of = match media[..] {
                [] => &mut session,
                [.., last] if last.starts_with("video ") && !is_video_before(&media) => &mut video,
                _ => continue,
            };
            of.push((number + 1, kind, characters.as_str()));
        }
        video.append(&mut session);
        Ok(Self(video))
    }

    fn line(&self, kind: char) -> Option<(usize, &'a str)> {
        self.0.iter().find(|line| line.1 == kind).map(|(number, _, value)| (*number, *value))
    }

    fn value(&self, kind: char) -> Option<&'a str> {
        self.line(kind).map(|(_, value)| value)
    }

    /// `m=video PORT RTP/AVP TYPE`
    fn medium(&self) -> Result<Medium, Error> {
        let (number, value) = self.line('m').ok_or(Error::Lacks("video (m=video …)"))?;
        let words: Vec<_> = value.split_ascii_whitespace().collect();
        let medium = match words[..] {
            ["video", port, "RTP/AVP", payload_type, ..] => {
                let payload_type = payload_type.parse().ok().filter(|p: &u8| *p < 128);
                let port = port.parse().ok().filter(|port: &u16| *port > 0);
                port.zip(payload_type)
            }
            _ => None,
        };
        let (port, payload_type) =
            medium.ok_or_else(|| error_at(number, value, "m=video PORT RTP/AVP PAYLOAD-TYPE"))?;
        Ok(Medium { port, payload_type })
    }

    /// `c=IN IP4 ADDRESS/TTL`
    fn connection(&self) -> Result<(Ipv4Addr, u8), Error> {
        let (number, value) = self.line('c').ok_or(Error::Lacks("address (c=IN IP4 …)"))?;
        let wrong = || error_at(number, value, "c=IN IP4 ADDRESS (for a group: ADDRESS/TTL)");
        let address = value.strip_prefix("IN IP4 ").ok_or_else(wrong)?.trim();
        let (address, ttl) = address.split_once('/').unwrap_or((address, "1"));
        let address: Ipv4Addr = address.parse().map_err(|_| wrong())?;
        Ok((address, ttl.parse().ok().filter(|ttl| *ttl > 0).ok_or_else(wrong)?))
    }

    /// `o=- SESSION VERSION IN IP4 ADDRESS`: numbers beyond 64 bits, and a name instead of an
    /// address, are not errors, but are ignored.
    fn origin(&self) -> Result<(u64, u64, Option<Ipv4Addr>), Error> {
        let (number, value) = self.line('o').ok_or(Error::Lacks("origin (o=…)"))?;
        let words: Vec<_> = value.split_ascii_whitespace().collect();
        let [_, session, version, _, _, address, ..] = words[..] else {
            return Err(error_at(number, value, "o=- SESSION VERSION IN IP4 ADDRESS"));
        };
        let address = match address.parse() {
            Ok(IpAddr::V4(address)) => Some(address).filter(|address| !address.is_unspecified()),
            _ => None,
        };
        Ok((session.parse().unwrap_or(0), version.parse().unwrap_or(0), address))
    }

    /// `a=ts-refclk:localmac=MAC`; other clocks are ignored.
    fn mac(&self) -> Option<[u8; 6]> {
        let mut values = self.0.iter().filter(|line| line.1 == 'a').map(|(_, _, value)| value);
        let mac = values.find_map(|value| value.strip_prefix("ts-refclk:localmac="))?;
        let octets = mac.split('-').map(|octet| u8::from_str_radix(octet, 16).ok());
        octets.collect::<Option<Vec<_>>>()?.try_into().ok()
    }

    /// The value of `a=NAME:TYPE VALUE`.
    fn attribute(&self, name: &str, payload_type: u8) -> Option<(usize, &'a str)> {
        self.0.iter().filter(|line| line.1 == 'a').find_map(|(number, _, value)| {
            let (of, value) = value.strip_prefix(name)?.split_once(' ')?;
            (of.parse() == Ok(payload_type)).then(|| (*number, value.trim()))
        })
    }
}

fn is_video_before(media: &[&str]) -> bool {
    media[..media.len() - 1].iter().any(|medium| medium.starts_with("video "))
}

/// `NAME=VALUE; NAME; …`
struct Parameters<'a>(&'a str);

impl Parameters<'_> {
    /// The value of a parameter, empty if it is a flag.
    fn find(&self, name: &str) -> Option<&str> {
        self.0.split(';').find_map(|parameter| {
            let parameter = parameter.trim();
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    fn number(&self, name: &'static str) -> Result<u32, Error> {
        let value = self.find(name).ok_or(Error::Lacks(name))?;
        let because = "expected a whole number";
        value.parse().map_err(|_| refused(name, value, because))
    }

    fn geometry(&self) -> Result<Geometry, Error> {
        for flag in ["interlace", "segmented"] {
            if let Some(value) = self.find(flag) {
                let because = "only progressive video can be received";
                return Err(refused(flag, value, because));
            }
        }
        let bits = self.number("depth")?;
        let depth = Depth::of_bits(bits);
        let unknown = || refused("depth", &bits.to_string(), "expected 8, 10 or 12");
        let rate: FrameRate =
            self.find("exactframerate").ok_or(Error::Lacks("exactframerate"))?.parse()?;
        let sampling = self.find("sampling").ok_or(Error::Lacks("sampling"))?.parse()?;
        let size = (self.number("width")?, self.number("height")?);
        Ok(Geometry::new(size, sampling, depth.ok_or_else(unknown)?, rate)?)
    }

    fn datagram_bytes(&self) -> Result<u32, Error> {
        if self.find("MAXUDP").is_none() {
            return Ok(STANDARD_UDP_BYTES);
        }
        let bytes = self.number("MAXUDP")?;
        let because = "expected at most 65507 bytes, the largest UDP datagram";
        if bytes <= 65_507 {
            Ok(bytes)
        } else {
            Err(refused("MAXUDP", &bytes.to_string(), because))
        }
    }
}

fn refused(parameter: &'static str, value: &str, because: &'static str) -> Error {
    Error::Parameter { parameter, value: value.chars().take(200).collect(), because }
}

#[cfg(test)]
mod tests;
