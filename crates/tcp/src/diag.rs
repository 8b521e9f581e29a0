//! The wire format of the kernel's socket diagnostics: sock_diag(7), linux/netlink.h,
//! linux/inet_diag.h.
//!
//! Pure: bytes in, samples out. Integers are in the machine's byte order, addresses and ports in
//! network byte order. Every length is checked; a malformed message is an error, never a panic.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::info::{ShortInfo, TcpInfo};

const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + 8 + ID_BYTES;
const ID_BYTES: usize = 48;
/// `struct inet_diag_msg`: four small fields, the socket's id, five counters.
const BODY_BYTES: usize = 4 + ID_BYTES + 20;

const NLMSG_NOOP: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_DUMP: u16 = 0x300;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
/// The two highest bits of an attribute's type are flags.
const ATTRIBUTE_TYPE: u16 = 0x3fff;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;

/// `TCP_ESTABLISHED`: a connection open in both directions.
pub const STATE_ESTABLISHED: u8 = 1;
/// `TCP_SYN_SENT`: a connection that is being opened from this side.
pub const STATE_SYN_SENT: u8 = 2;
/// States in which a socket may have data to send or in flight: ESTABLISHED, FIN_WAIT1, CLOSE_WAIT,
/// LAST_ACK, CLOSING.
pub const STATES_WITH_DATA: u32 = 1 << 1 | 1 << 4 | 1 << 8 | 1 << 9 | 1 << 11;

/// An address family that TCP runs over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6, and IPv4 on a socket opened for IPv6.
    V6,
}

/// A socket as the kernel identifies it. Opaque except for [`SocketId::cookie`] and the addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketId {
    family: Family,
    raw: [u8; ID_BYTES],
}

impl SocketId {
    /// Builds it from its parts, with addresses as the kernel stores them: IPv4 in the first four
    /// bytes.
    pub(crate) fn new(
        family: u16,
        local: (&[u8; 16], u16),
        remote: (&[u8; 16], u16),
        interface: u32,
        cookie: u64,
    ) -> Option<Self> {
        let family = match u8::try_from(family).ok()? {
            AF_INET => Family::V4,
            AF_INET6 => Family::V6,
            _ => return None,
        };
        let mut raw = [0; ID_BYTES];
        raw[0..2].copy_from_slice(&local.1.to_be_bytes());
        raw[2..4].copy_from_slice(&remote.1.to_be_bytes());
        raw[4..20].copy_from_slice(local.0);
        raw[20..36].copy_from_slice(remote.0);
        raw[36..40].copy_from_slice(&interface.to_ne_bytes());
        // The low half comes first, whatever the machine's byte order.
        raw[40..44].copy_from_slice(&(cookie as u32).to_ne_bytes());
        raw[44..48].copy_from_slice(&((cookie >> 32) as u32).to_ne_bytes());
        Some(Self { family, raw })
    }

    /// The kernel's number for the socket; not reused while the machine is up.
    pub fn cookie(&self) -> u64 {
        u64::from(self.word(40)) | u64::from(self.word(44)) << 32
    }

    /// The local address. An IPv4 address on an IPv6 socket is returned as IPv4.
    pub fn local(&self) -> SocketAddr {
        SocketAddr::new(self.address(4), self.port(0))
    }

    /// The remote address.
    pub fn remote(&self) -> SocketAddr {
        SocketAddr::new(self.address(20), self.port(2))
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes(*self.raw[at..].first_chunk().expect("inside the id"))
    }

    fn port(&self, at: usize) -> u16 {
        u16::from_be_bytes(*self.raw[at..].first_chunk().expect("inside the id"))
    }

    fn address(&self, at: usize) -> IpAddr {
        let bytes: [u8; 16] = *self.raw[at..].first_chunk().expect("inside the id");
        match self.family {
            Family::V4 => Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into(),
            Family::V6 => Ipv6Addr::from(bytes).to_canonical(),
        }
    }
}

/// A request for every TCP socket of `family` in one of `states` (one bit per state).
pub fn request_all(family: Family, states: u32, sequence: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(REQUEST_BYTES);
    push_request(&mut out, family, states, NLM_F_DUMP, sequence, &[0; ID_BYTES]);
    out
}

/// Appends a request for one socket to `out`. Several requests may share one datagram.
pub fn request_one(out: &mut Vec<u8>, id: &SocketId, sequence: u32) {
    push_request(out, id.family, u32::MAX, 0, sequence, &id.raw);
}

fn push_request(
    out: &mut Vec<u8>,
    family: Family,
    states: u32,
    flags: u16,
    sequence: u32,
    id: &[u8; ID_BYTES],
) {
    let length = u32::try_from(REQUEST_BYTES).expect("72 fits");
    let family = match family {
        Family::V4 => AF_INET,
        Family::V6 => AF_INET6,
    };
    let wanted = 1u8 << (INET_DIAG_INFO - 1) | 1u8 << (INET_DIAG_CONG - 1);
    out.extend_from_slice(&length.to_ne_bytes());
    out.extend_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    out.extend_from_slice(&(NLM_F_REQUEST | flags).to_ne_bytes());
    out.extend_from_slice(&sequence.to_ne_bytes());
    out.extend_from_slice(&0u32.to_ne_bytes());
    out.extend_from_slice(&[family, IPPROTO_TCP, wanted, 0]);
    out.extend_from_slice(&states.to_ne_bytes());
    out.extend_from_slice(id);
}

/// One message from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// The sequence number of the request that it answers.
    pub sequence: u32,
    /// Its content.
    pub body: Body<'a>,
}

/// The content of a message.
#[expect(clippy::large_enum_variant, reason = "handed over one at a time, never kept")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// A socket.
    Socket(Sample<'a>),
    /// The answer to [`request_all`] is complete.
    Done,
    /// The kernel refused, with this error number (positive); 0 is an acknowledgement.
    Error(i32),
    /// Padding.
    Nothing,
}

/// One sample of one socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample<'a> {
    /// The socket.
    pub id: SocketId,
    /// Its connection state: `TCP_ESTABLISHED` is 1.
    pub state: u8,
    /// Absent for a socket that has no TCP state yet or any more (TIME_WAIT).
    pub info: Option<TcpInfo>,
    /// The congestion control's name; absent as above.
    pub congestion: Option<&'a str>,
}

/// Why bytes from the kernel could not be parsed as messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DiagError {
    /// A message's header or body extends past the end of the datagram, or its length is smaller
    /// than a header.
    #[error("netlink message at byte {at}: length {length} does not fit in {left} bytes")]
    MessageLength {
        /// Its offset in the datagram.
        at: usize,
        /// The length in its header; 0 if the header is incomplete.
        length: usize,
        /// The bytes available.
        left: usize,
    },
    /// A message is shorter than its type needs.
    #[error("netlink message of type {kind}: {length} bytes, expected at least {expected}")]
    Short {
        /// The message's type.
        kind: u16,
        /// Bytes after the header.
        length: usize,
        /// Bytes required.
        expected: usize,
    },
    /// A message of a type that does not answer any of our requests.
    #[error("netlink message of unexpected type {0}")]
    Kind(u16),
    /// Neither IPv4 nor IPv6.
    #[error("socket of unexpected address family {0}")]
    Family(u8),
    /// An attribute's length is smaller than its header, or extends past its message.
    #[error("attribute of type {kind}: length {length} does not fit in {left} bytes")]
    AttributeLength {
        /// The attribute's type; 0 if the header is incomplete.
        kind: u16,
        /// The length in its header.
        length: usize,
        /// The bytes available.
        left: usize,
    },
    /// The congestion control's name is not NUL-terminated text.
    #[error("the congestion control's name is not text")]
    Name,
    /// The socket's state is too short.
    #[error(transparent)]
    Info(#[from] ShortInfo),
}

/// Iterates over the messages of a datagram. An error is the last item.
pub fn messages(datagram: &[u8]) -> Messages<'_> {
    Messages { datagram, at: 0 }
}

/// The messages of a datagram; see [`messages`].
#[derive(Debug, Clone)]
pub struct Messages<'a> {
    datagram: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, DiagError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.datagram[self.at..];
        if rest.is_empty() {
            return None;
        }
        let parsed = split_message(rest, self.at).and_then(|(length, header, body)| {
            self.at = (self.at + length.next_multiple_of(4)).min(self.datagram.len());
            Ok(Message { sequence: header.sequence, body: parse_body(header.kind, body)? })
        });
        if parsed.is_err() {
            self.at = self.datagram.len();
        }
        Some(parsed)
    }
}

struct Header {
    kind: u16,
    sequence: u32,
}

fn split_message(rest: &[u8], at: usize) -> Result<(usize, Header, &[u8]), DiagError> {
    let left = rest.len();
    let header: &[u8; HEADER_BYTES] =
        rest.first_chunk().ok_or(DiagError::MessageLength { at, length: 0, left })?;
    let length = u32_at(header, 0) as usize;
    if length < HEADER_BYTES || length > left {
        return Err(DiagError::MessageLength { at, length, left });
    }
    let kind = u16_at(header, 4);
    Ok((length, Header { kind, sequence: u32_at(header, 8) }, &rest[HEADER_BYTES..length]))
}

fn parse_body(kind: u16, body: &[u8]) -> Result<Body<'_>, DiagError> {
    match kind {
        NLMSG_NOOP => Ok(Body::Nothing),
        NLMSG_DONE => Ok(Body::Done),
        NLMSG_ERROR => {
            let number = u32_at(whole::<4>(kind, body)?, 0).cast_signed();
            Ok(Body::Error(number.saturating_neg()))
        }
        SOCK_DIAG_BY_FAMILY => parse_socket(kind, body).map(Body::Socket),
        other => Err(DiagError::Kind(other)),
    }
}

fn parse_socket(kind: u16, body: &[u8]) -> Result<Sample<'_>, DiagError> {
    let fixed = whole::<BODY_BYTES>(kind, body)?;
    let family = match fixed[0] {
        AF_INET => Family::V4,
        AF_INET6 => Family::V6,
        other => return Err(DiagError::Family(other)),
    };
    let raw = *fixed[4..].first_chunk().expect("inside the fixed part");
    let mut sample =
        Sample { id: SocketId { family, raw }, state: fixed[1], info: None, congestion: None };
    let mut rest = &body[BODY_BYTES..];
    while !rest.is_empty() {
        let (kind, value, after) = split_attribute(rest)?;
        match kind {
            INET_DIAG_INFO => sample.info = Some(TcpInfo::parse(value)?),
            INET_DIAG_CONG => sample.congestion = Some(name(value)?),
            _ => {}
        }
        rest = after;
    }
    Ok(sample)
}

/// Type, value and remaining bytes of the attribute at the start of `rest`.
fn split_attribute(rest: &[u8]) -> Result<(u16, &[u8], &[u8]), DiagError> {
    let left = rest.len();
    let header: &[u8; 4] =
        rest.first_chunk().ok_or(DiagError::AttributeLength { kind: 0, length: 0, left })?;
    let length = usize::from(u16_at(header, 0));
    let kind = u16_at(header, 2) & ATTRIBUTE_TYPE;
    if length < header.len() || length > left {
        return Err(DiagError::AttributeLength { kind, length, left });
    }
    let after = length.next_multiple_of(4).min(left);
    Ok((kind, &rest[header.len()..length], &rest[after..]))
}

fn name(value: &[u8]) -> Result<&str, DiagError> {
    let text = std::ffi::CStr::from_bytes_until_nul(value).map_err(|_| DiagError::Name)?;
    text.to_str().map_err(|_| DiagError::Name)
}

fn whole<const N: usize>(kind: u16, body: &[u8]) -> Result<&[u8; N], DiagError> {
    body.first_chunk().ok_or(DiagError::Short { kind, length: body.len(), expected: N })
}

fn u16_at<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
