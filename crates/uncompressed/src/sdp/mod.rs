//! The session description of an uncompressed video stream: SDP (RFC 8866) with the parameters of
//! ST 2110-20 §7 and RFC 4175 §6. A stream that is sent over two paths (ST 2022-7) has two media, which are a group of
//! duplicates (RFC 7104).

mod announced;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

pub use announced::{Announced, SenderType};
use suiro_units::Duration;

use crate::geometry::{self, Depth, FrameRate, Geometry, RTP_CLOCK_HZ};
use crate::packet::{EXTENDED_UDP_BYTES, STANDARD_UDP_BYTES, UDP_BYTES};

/// Longest description that is read, in bytes.
pub const BYTES_MAX: usize = 64 * 1024;
/// Largest UDP datagram of IPv4, header included.
const UDP_BYTES_MAX: u32 = 65_515;
/// Longest TROFF that is read, in microseconds: a second.
const TROFF_MAX_US: u32 = 1_000_000;
/// Videos of a description that are read; the others are skipped.
const VIDEOS_MAX: usize = 2;
/// The names of the two media of a group of duplicates.
const MIDS: [&str; 2] = ["first", "second"];

/// A path of a stream: where its packets come from and go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The only source from which receivers of a group take packets (RFC 4570); `None`: any.
    pub source: Option<Ipv4Addr>,
    /// The destination: a host's address, or a multicast group.
    pub destination: Ipv4Addr,
    /// The UDP port.
    pub port: u16,
    /// Hops that a multicast packet may take, 1 to 255; ignored for a host's address.
    pub ttl: u8,
}

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
    /// The address of who made the description; `None` if it is unknown.
    pub origin: Option<Ipv4Addr>,
    /// The hardware address of the sender, whose clock it follows; `None` if it has none.
    pub mac: Option<[u8; 6]>,
    /// Where its packets go.
    pub path: Path,
    /// Where the same packets go over another path (ST 2022-7).
    pub twin: Option<Path>,
    /// RTP payload type, 0 to 127; dynamic ones are 96 to 127.
    pub payload_type: u8,
    /// The images.
    pub geometry: Geometry,
    /// Largest UDP datagram, in bytes, without the UDP and IP headers.
    pub datagram_bytes: u32,
    /// TROFF in microseconds: from the beginning of a frame to the time at which receivers read its first packet. `None`:
    /// TRO_DEFAULT of the format (ST 2110-21 §8.2).
    pub troff_us: Option<u32>,
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session, version, .. } = self;
        let name = self.name.replace(['\r', '\n', '\0'], " ");
        let name = if name.is_empty() { "-" } else { &name };
        let origin = self.origin.unwrap_or(Ipv4Addr::UNSPECIFIED);
        write!(f, "v=0\r\no=- {session} {version} IN IP4 {origin}\r\ns={name}\r\nt=0 0\r\n")?;
        if self.twin.is_some() {
            write!(f, "a=group:DUP {} {}\r\n", MIDS[0], MIDS[1])?;
        }
        for (at, path) in std::iter::once(&self.path).chain(&self.twin).enumerate() {
            self.write_medium(f, path)?;
            if self.twin.is_some() {
                write!(f, "a=mid:{}\r\n", MIDS[at])?;
            }
        }
        Ok(())
    }
}

impl Description {
    fn write_medium(&self, f: &mut fmt::Formatter<'_>, path: &Path) -> fmt::Result {
        let Self { payload_type, geometry, .. } = self;
        let Path { source, destination, port, ttl } = path;
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
        write!(f, "TCS=SDR; colorimetry=BT709; PM=2110GPM; SSN=ST2110-20:2017; TP=2110TPW; ")?;
        if let Some(us) = self.troff_us {
            write!(f, "TROFF={us}; ")?;
        }
        let udp_bytes = self.datagram_bytes.saturating_add(UDP_BYTES);
        if udp_bytes > STANDARD_UDP_BYTES {
            // ST 2110-10 §6.4: one of the two limits, not the size of the packets.
            write!(f, "MAXUDP={}; ", udp_bytes.max(EXTENDED_UDP_BYTES))?;
        }
        // ST 2110-10 §8.2: a sender that does not claim a PTP domain identifies itself by its hardware address. That of a
        // loopback interface has zeros only, and stands for one that is not known.
        let mac = self.mac.unwrap_or_default().map(|octet| format!("{octet:02x}")).join("-");
        write!(f, "\r\na=ts-refclk:localmac={mac}\r\na=mediaclk:direct=0\r\n")
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

    /// Reads the first video of a description, and the second one if they are duplicates; other media are skipped.
    fn from_str(text: &str) -> Result<Self, Error> {
        if text.len() > BYTES_MAX {
            return Err(Error::Long(text.len()));
        }
        let media = Lines::of(text)?;
        let lines = media.first().ok_or(Error::Lacks("video (m=video …)"))?;
        let (medium, geometry, datagram_bytes, troff_us) = lines.video()?;
        let (session, version, origin) = lines.origin()?;
        let twin = match &media[1..] {
            [second] if lines.is_twin(second) => {
                let (twin, other, ..) = second.video()?;
                if other != geometry || twin.payload_type != medium.payload_type {
                    let (line, text) = second.line('m').unwrap_or_default();
                    return Err(error_at(
                        line,
                        text,
                        "a duplicate of the first video, with its format",
                    ));
                }
                Some(second.path(twin.port)?)
            }
            _ => None,
        };
        Ok(Self {
            name: lines.value('s').unwrap_or("-").to_owned(),
            session,
            version,
            origin,
            mac: lines.mac(),
            path: lines.path(medium.port)?,
            twin,
            payload_type: medium.payload_type,
            geometry,
            datagram_bytes,
            troff_us,
        })
    }
}

/// An offset as TROFF, in whole microseconds.
pub const fn troff_us(offset: Duration) -> u32 {
    let us = offset.as_nanos() / 1000;
    if us < TROFF_MAX_US as u64 { us as u32 } else { TROFF_MAX_US }
}

fn error_at(line: usize, text: &str, expected: &'static str) -> Error {
    Error::Line { line, text: text.chars().take(200).collect(), expected }
}

struct Medium {
    port: u16,
    payload_type: u8,
}

/// The lines that apply to a video: its own first, then the session's.
struct Lines<'a>(Vec<(usize, char, &'a str)>);

impl<'a> Lines<'a> {
    /// The first videos. Media that only have the name, such as ancillary data (RFC 8331), are left out if there are others.
    fn of(text: &'a str) -> Result<Vec<Self>, Error> {
        let (mut session, mut videos) = (Vec::new(), Vec::<Vec<_>>::new());
        // Where lines go: `None` to the session, or to a video, or nowhere.
        let mut of: Option<Option<usize>> = None;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_end();
            let mut characters = line.chars();
            let (Some(kind), Some('=')) = (characters.next(), characters.next()) else {
                if line.is_empty() {
                    continue;
                }
                return Err(error_at(number + 1, line, "TYPE=VALUE"));
            };
            let value = characters.as_str();
            if kind == 'm' {
                let is_read = value.starts_with("video ");
                of = Some(is_read.then_some(videos.len()));
                if is_read {
                    videos.push(Vec::new());
                }
            }
            match of {
                None => session.push((number + 1, kind, value)),
                Some(Some(video)) => videos[video].push((number + 1, kind, value)),
                Some(None) => {}
            }
        }
        let (pictures, others): (Vec<_>, Vec<_>) =
            videos.into_iter().map(Self).partition(Self::has_pictures);
        let mut videos = if pictures.is_empty() { others } else { pictures };
        videos.truncate(VIDEOS_MAX);
        for video in &mut videos {
            video.0.extend_from_slice(&session);
        }
        Ok(videos)
    }

    /// Whether a video is one of ST 2110-20 or ST 2110-22; true if its first line is wrong, which is reported.
    fn has_pictures(&self) -> bool {
        self.medium().map_or(true, |medium| {
            let map = self.attribute("rtpmap:", medium.payload_type);
            let encoding = map.and_then(|(_, map)| map.split('/').next());
            let is = |name: &str| encoding.is_some_and(|own| own.eq_ignore_ascii_case(name));
            is("raw") || is("jxsv")
        })
    }

    /// Port, payload type, images, the largest datagram, and TROFF.
    fn video(&self) -> Result<(Medium, Geometry, u32, Option<u32>), Error> {
        let medium = self.medium()?;
        let map = self.attribute("rtpmap:", medium.payload_type);
        let (line, map) = map.ok_or(Error::Lacks("a=rtpmap of the video's payload type"))?;
        if !map.eq_ignore_ascii_case("raw/90000") {
            return Err(error_at(line, map, "raw/90000"));
        }
        let parameters = self.attribute("fmtp:", medium.payload_type);
        let (_, parameters) =
            parameters.ok_or(Error::Lacks("a=fmtp of the video's payload type"))?;
        let parameters = Parameters(parameters);
        let (geometry, datagram_bytes) = (parameters.geometry()?, parameters.datagram_bytes()?);
        Ok((medium, geometry, datagram_bytes, parameters.troff_us()?))
    }

    fn path(&self, port: u16) -> Result<Path, Error> {
        let (destination, ttl) = self.connection()?;
        Ok(Path { source: self.filter(destination), destination, port, ttl })
    }

    /// The values of attributes that begin so.
    fn values(&self, name: &'static str) -> impl Iterator<Item = &'a str> {
        let attributes = self.0.iter().filter(|line| line.1 == 'a');
        attributes.filter_map(move |(_, _, value)| value.strip_prefix(name)).map(str::trim)
    }

    /// Whether the other video is a duplicate of this one: `a=group:DUP` names both (RFC 7104 §4.1).
    fn is_twin(&self, other: &Self) -> bool {
        let mids = self.values("mid:").next().zip(other.values("mid:").next());
        mids.is_some_and(|(own, other)| {
            self.values("group:DUP ").any(|group| {
                let has = |mid| group.split_ascii_whitespace().any(|one| one == mid);
                has(own) && has(other)
            })
        })
    }

    /// `a=source-filter: incl IN IP4 DESTINATION SOURCE`: the only source of a group. Several sources are no restriction
    /// that a receiver with one could follow.
    fn filter(&self, destination: Ipv4Addr) -> Option<Ipv4Addr> {
        self.values("source-filter:").find_map(|filter| {
            let words: Vec<&str> = filter.split_ascii_whitespace().collect();
            let ["incl", "IN", "IP4" | "*", to, source] = words[..] else { return None };
            let is_meant =
                destination.is_multicast() && (to == "*" || to.parse() == Ok(destination));
            source.parse().ok().filter(|source: &Ipv4Addr| is_meant && !source.is_unspecified())
        })
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
        let mac: [u8; 6] = octets.collect::<Option<Vec<_>>>()?.try_into().ok()?;
        Some(mac).filter(|mac| *mac != [0; 6])
    }

    /// The value of `a=NAME:TYPE VALUE`.
    fn attribute(&self, name: &str, payload_type: u8) -> Option<(usize, &'a str)> {
        self.0.iter().filter(|line| line.1 == 'a').find_map(|(number, _, value)| {
            let (of, value) = value.strip_prefix(name)?.split_once(' ')?;
            (of.parse() == Ok(payload_type)).then(|| (*number, value.trim()))
        })
    }
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

    /// TROFF, in microseconds.
    fn troff_us(&self) -> Result<Option<u32>, Error> {
        let Some(us) = self.find("TROFF").map(|_| self.number("TROFF")).transpose()? else {
            return Ok(None);
        };
        let because = "expected microseconds, at most a second";
        if us <= TROFF_MAX_US {
            Ok(Some(us))
        } else {
            Err(refused("TROFF", &us.to_string(), because))
        }
    }

    /// MAXUDP, which counts the UDP header, or the standard limit: without the header.
    fn datagram_bytes(&self) -> Result<u32, Error> {
        if self.find("MAXUDP").is_none() {
            return Ok(STANDARD_UDP_BYTES - UDP_BYTES);
        }
        let bytes = self.number("MAXUDP")?;
        let because = "expected 8 to 65515 bytes, the largest UDP datagram with its header";
        if (UDP_BYTES..=UDP_BYTES_MAX).contains(&bytes) {
            Ok(bytes - UDP_BYTES)
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
