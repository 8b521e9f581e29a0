//! TCP connections in a capture: whether they came about, and why data stopped in the middle.

use std::collections::BTreeMap;

use suiro_record::words::Cause;

use crate::hole::{Hole, seconds_with};
use crate::model::{Effect, Evidence, Happened, Stream};
use crate::numbers::{bit_rate, unwrapped};
use crate::packets::{Capture, Content, Packet, Segment, Way};
use suiro_analysis::why::wording::{count, rate, size, span};

/// Pauses below this, or below three round trips, are not reported.
const PAUSE_NS: i64 = 200_000_000;
const ROUND_TRIPS: i64 = 3;
/// A capture is at the host whose half of the handshake is so many times shorter.
const NEARER: i64 = 3;
/// Retransmissions are reported for seconds with at least this share, and this number, of them.
const AGAIN_SHARE: f64 = 0.02;
const AGAIN_MIN: usize = 3;

/// One direction of a connection, in bytes since its first.
#[derive(Debug, Default, Clone)]
struct Side {
    /// Its first sequence number.
    first: Option<u32>,
    /// End of what was sent.
    next: i64,
    /// End of what the opposite side acknowledged.
    acknowledged: i64,
    /// What the opposite side last offered to take beyond that, in bytes; none if its scale is not known.
    window: Option<i64>,
    /// From when to when this was last 0; it still is without an end.
    closed: Option<(i64, Option<i64>)>,
    bytes: u64,
    segments: usize,
    again: usize,
    closed_windows: usize,
    /// Parts that came after later ones, or did not come before this capture: the end of each by its start.
    holes: BTreeMap<i64, i64>,
}

#[derive(Debug)]
struct Connection<'c> {
    capture: &'c Capture,
    /// From the client to the server.
    way: Way,
    sides: [Side; 2],
    /// The window scale option in the SYN of each; none without its SYN.
    scales: [Option<Option<u8>>; 2],
    syn: Option<(i64, u32, usize)>,
    answered: Option<i64>,
    refused: bool,
    round_trip_ns: i64,
    /// When the last request was acknowledged by the server.
    request_ns: Option<i64>,
    span: (i64, i64),
    /// The last packet with payload: side, time, number.
    last: Option<(usize, i64, u32)>,
    pauses: Vec<Pause>,
    /// Segments that were sent again; and when each of the others was sent.
    again: Vec<Hole>,
    came: Vec<i64>,
    /// Segments that were sent again since the last data.
    in_vain: usize,
}

/// A time without data in the middle of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Pause {
    /// The connection, from its client to its server.
    way: Way,
    /// Whether the server ended it.
    pub by_server: bool,
    from: (i64, u32),
    to: (i64, u32),
    /// The cause, if this capture shows it.
    pub cause: Cause,
    pub because: String,
}

/// The connections of a capture.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    pub streams: Vec<Stream>,
    pub pauses: Vec<Pause>,
    /// Seconds in which much was sent again, by connection.
    pub again: Vec<(Way, Happened)>,
    /// Those that did not come about.
    pub failed: Vec<Happened>,
}

impl Side {
    const fn is_closed(&self) -> bool {
        matches!(self.closed, Some((_, None)))
    }

    /// This part has come: it is no hole any more.
    fn fill(&mut self, (start, end): (i64, i64)) {
        loop {
            let last = self.holes.range(..end).next_back().map(|(from, to)| (*from, *to));
            let Some((from, to)) = last.filter(|hole| hole.1 > start) else { return };
            self.holes.remove(&from);
            if from < start {
                self.holes.insert(from, start);
            }
            if to > end {
                self.holes.insert(end, to);
            }
        }
    }
}

impl Pause {
    /// Whether it is of this flow and at this time.
    pub fn is_of(&self, way: Way, from_ns: i64, to_ns: i64) -> bool {
        let own = if self.by_server { self.way.back() } else { self.way };
        own == way && self.from.0 < to_ns && from_ns < self.to.0
    }

    /// Whether it is of a flow of these.
    pub fn is_among(&self, ways: &[Way]) -> bool {
        ways.contains(&self.way) || ways.contains(&self.way.back())
    }

    /// As an effect of its own.
    pub fn effect(&self, source: &str) -> Happened {
        Happened {
            subject: self.way.to_string(),
            effect: Effect::Gap,
            from_ns: self.from.0,
            to_ns: self.to.0,
            cause: self.cause,
            what: format!("no data for {}", span(self.to.0 - self.from.0)),
            because: self.because.clone(),
            evidence: vec![Evidence::packets(source, self.from.1, self.to.1)],
            ssrc: None,
        }
    }
}

/// What a capture says about its connections.
pub(crate) fn connections(capture: &Capture) -> Connections {
    let mut found: Vec<Connection<'_>> = Vec::new();
    let mut places: BTreeMap<Way, usize> = BTreeMap::new();
    for packet in &capture.packets {
        let Content::Tcp(segment) = packet.content else { continue };
        let way = capture.way(packet);
        let known = places.get(&way).or_else(|| places.get(&way.back())).copied();
        // A port that is used again is another connection.
        let is_new = segment.syn && !segment.ack;
        let at = match known {
            Some(at) if !(is_new && found[at].is_over()) => at,
            _ => {
                let way = if is_client(&segment, way) { way } else { way.back() };
                found.push(Connection::new(capture, way, packet.t_ns));
                places.insert(way, found.len() - 1);
                places.remove(&way.back());
                found.len() - 1
            }
        };
        let side = usize::from(found[at].way != way);
        found[at].take(packet, &segment, side);
    }
    Connections {
        streams: found.iter().filter(|it| it.bytes() > 0).map(Connection::stream).collect(),
        again: found.iter().flat_map(Connection::sent_again).collect(),
        failed: found.iter().filter_map(Connection::failed).collect(),
        pauses: found.into_iter().flat_map(|it| it.pauses).collect(),
    }
}

/// Whether the sender of a connection's first packet is its client.
fn is_client(segment: &Segment, way: Way) -> bool {
    match segment.syn {
        true => !segment.ack,
        // Servers have the lower port.
        false => way.from.port() > way.to.port(),
    }
}

impl<'c> Connection<'c> {
    fn new(capture: &'c Capture, way: Way, t_ns: i64) -> Self {
        Self {
            capture,
            way,
            sides: [Side::default(), Side::default()],
            scales: [None; 2],
            syn: None,
            answered: None,
            refused: false,
            round_trip_ns: 0,
            request_ns: None,
            span: (t_ns, t_ns),
            last: None,
            pauses: Vec::new(),
            again: Vec::new(),
            came: Vec::new(),
            in_vain: 0,
        }
    }

    const fn is_over(&self) -> bool {
        self.answered.is_some() || self.refused
    }

    fn bytes(&self) -> u64 {
        self.sides.iter().map(|side| side.bytes).sum()
    }

    fn take(&mut self, packet: &Packet, segment: &Segment, side: usize) {
        self.span.1 = packet.t_ns;
        self.open(packet, segment, side);
        let own = &mut self.sides[side];
        let first = *own.first.get_or_insert(segment.sequence.wrapping_add(segment.syn.into()));
        let start = unwrapped(segment.sequence, first, own.next);
        if packet.bytes > 0 && !segment.syn {
            self.data(packet, start, side);
        }
        if segment.ack {
            self.acknowledge(packet.t_ns, segment, 1 - side);
        }
        self.refused |= segment.rst && self.answered.is_none() && side == 1;
    }

    fn open(&mut self, packet: &Packet, segment: &Segment, side: usize) {
        if segment.syn {
            self.scales[side] = Some(segment.scale);
        }
        match (segment.syn, segment.ack) {
            (true, false) => {
                let (t_ns, number, tries) = self.syn.unwrap_or((packet.t_ns, packet.number, 0));
                self.syn = Some((t_ns, number, tries + 1));
            }
            (true, true) => {
                self.answered.get_or_insert(packet.t_ns);
            }
            // Both halves of the handshake make one round trip, wherever the capture is; not if it was repeated.
            (false, true) if side == 0 && self.round_trip_ns == 0 => {
                if let (Some((t_ns, _, 1)), Some(_)) = (self.syn, self.answered) {
                    self.round_trip_ns = packet.t_ns - t_ns;
                }
            }
            _ => {}
        }
    }

    /// By how many bits the windows that a side offers are shifted; none if that is not known.
    fn shift(&self, side: usize) -> Option<u8> {
        // RFC 7323 §2.2: a scale counts if both have it.
        match self.scales {
            [Some(Some(client)), Some(Some(server))] => Some([client, server][side]),
            [Some(_), Some(_)] => Some(0),
            _ => None,
        }
    }

    fn acknowledge(&mut self, t_ns: i64, segment: &Segment, of: usize) {
        let shift = if segment.syn { Some(0) } else { self.shift(1 - of) };
        let side = &mut self.sides[of];
        let Some(first) = side.first else { return };
        let to = unwrapped(segment.acknowledges, first, side.acknowledged);
        if of == 0 && to > side.acknowledged {
            self.request_ns = Some(t_ns);
        }
        side.acknowledged = side.acknowledged.max(to);
        side.fill((i64::MIN, side.acknowledged));
        side.window = shift.map(|shift| i64::from(segment.window) << shift);
        // Whatever its scale is.
        match (segment.window, side.closed) {
            (0, None | Some((_, Some(_)))) => {
                side.closed = Some((t_ns, None));
                side.closed_windows += 1;
            }
            (1.., Some((from, None))) => side.closed = Some((from, Some(t_ns))),
            _ => {}
        }
    }

    fn data(&mut self, packet: &Packet, start: i64, side: usize) {
        let end = start + i64::from(packet.bytes);
        let least = PAUSE_NS.max(ROUND_TRIPS * self.round_trip_ns);
        // What is sent again into a silence does not end it.
        let into_silence = end <= self.sides[side].next
            && self.last.is_some_and(|last| packet.t_ns - last.1 > least && last.0 == side);
        if into_silence && self.sides[side].acknowledged < end && !self.sides[side].is_closed() {
            self.sides[side].segments += 1;
            self.sides[side].again += 1;
            self.again.push(Hole::at(packet));
            self.in_vain += 1;
            return;
        }
        if let Some(last) = self.last.filter(|last| packet.t_ns - last.1 > least) {
            self.pause(packet, (start, end), side, last);
        }
        let own = &mut self.sides[side];
        own.segments += 1;
        own.bytes += u64::from(packet.bytes);
        match () {
            // A probe of a closed window, or a keep-alive, has one old byte.
            () if end <= own.next && packet.bytes > 1 => {
                own.again += 1;
                self.again.push(Hole::at(packet));
            }
            () => {
                if start > own.next {
                    own.holes.insert(own.next, start);
                }
                self.came.push(packet.t_ns);
            }
        }
        own.fill((start, end));
        own.next = own.next.max(end);
        self.last = Some((side, packet.t_ns, packet.number));
        self.in_vain = 0;
        if side == 0 {
            self.request_ns = None;
        }
    }

    /// Notes that there was no data between `last` and `packet`, if that is worth a word.
    fn pause(
        &mut self,
        packet: &Packet,
        (start, end): (i64, i64),
        side: usize,
        last: (usize, i64, u32),
    ) {
        let length = packet.t_ns - last.1;
        // The update that opens the window comes before the data that ends the pause.
        let closed = self.sides[side].closed.and_then(|(from, to)| {
            let to = to.unwrap_or(packet.t_ns);
            let text = format!(
                "the receive window of the {} was 0 for {}",
                ["server", "client"][side],
                span(to - from)
            );
            ((to - from.max(last.1)) * 2 > length).then_some((Cause::SlowReader, text))
        });
        let why = closed
            .or_else(|| self.came_again((start, end), side, length))
            .or_else(|| self.in_flight(side))
            .or_else(|| self.silence(side, last, length));
        let Some((cause, because)) = why else { return };
        self.pauses.push(Pause {
            way: self.way,
            by_server: side == 1,
            from: (last.1, last.2),
            to: (packet.t_ns, packet.number),
            cause,
            because,
        });
    }

    /// If the data that ends a pause had been missing, or is not new.
    fn came_again(
        &self,
        (start, end): (i64, i64),
        side: usize,
        length: i64,
    ) -> Option<(Cause, String)> {
        let own = &self.sides[side];
        if own.holes.range(..end).next_back().is_some_and(|(_, to)| start < *to) {
            let text = format!(
                "{} had not come to this capture, and came after {}; a capture at the {} would show what the path did",
                size(end - start),
                span(length),
                ["client", "server"][side]
            );
            return Some((Cause::Unknown, text));
        }
        let times = match self.in_vain + usize::from(end <= own.next) {
            0 => return None,
            1 => "once".to_owned(),
            2 => "twice".to_owned(),
            more => format!("{more} times"),
        };
        let text = format!(
            "data was sent again {times} in {}; a capture at the other host would show whether it or its acknowledgement was \
             lost or held",
            span(length)
        );
        Some((Cause::Unknown, text))
    }

    /// If data was not acknowledged yet.
    fn in_flight(&self, side: usize) -> Option<(Cause, String)> {
        let own = &self.sides[side];
        let in_flight = own.next - own.acknowledged;
        let is_full = own.window.is_some_and(|window| window > 0 && in_flight >= window);
        let flight = size(in_flight);
        let why = match is_full {
            true => (
                Cause::ReceiveWindow,
                format!(
                    "the {} had {flight} in flight, all that the receive window takes",
                    ["client", "server"][side]
                ),
            ),
            false => (
                Cause::Unknown,
                format!(
                    "{flight} were in flight; a capture at the other host would show where they were"
                ),
            ),
        };
        (in_flight > 0).then_some(why)
    }

    /// Why a server sent nothing, as far as this capture shows it; nothing of a client, which need not ask for more.
    fn silence(
        &self,
        side: usize,
        last: (usize, i64, u32),
        length: i64,
    ) -> Option<(Cause, String)> {
        let is_near = self.near() == Some(side);
        let answers = last.0 == 0;
        let had_it = self.request_ns.is_some_and(|t_ns| t_ns - last.1 < length / 4);
        let length = span(length);
        let why = match () {
            () if answers && (is_near || had_it) => {
                (Cause::Application, format!("the server answered a request after {length}"))
            }
            () if !answers && is_near => {
                let text = format!(
                    "everything that the server had sent was acknowledged, and it sent nothing for {length}"
                );
                (Cause::Application, text)
            }
            () => {
                let text = format!(
                    "the server sent nothing for {length}, as seen here; a capture at the server would show why"
                );
                (Cause::Unknown, text)
            }
        };
        (side == 1).then_some(why)
    }

    /// The side that the capture was made at, from the two halves of the handshake.
    fn near(&self) -> Option<usize> {
        let to_server = self.answered? - self.syn.filter(|it| it.2 == 1)?.0;
        let to_client = self.round_trip_ns - to_server;
        match () {
            () if to_client < 0 || self.round_trip_ns == 0 => None,
            () if to_server > NEARER * to_client => Some(0),
            () if to_client > NEARER * to_server => Some(1),
            () => None,
        }
    }

    fn stream(&self) -> Stream {
        let length = self.span.1 - self.span.0;
        let [up, down] = &self.sides;
        let again = up.again + down.again;
        let mut text = format!(
            "{} up, {} down in {}",
            size(up.bytes as i64),
            size(down.bytes as i64),
            span(length)
        );
        text += &format!(" ({})", rate(bit_rate(self.bytes(), length)));
        if self.round_trip_ns > 0 {
            text += &format!(", handshake {}", span(self.round_trip_ns));
        }
        text +=
            &format!(", {} of {} sent again", again, count(up.segments + down.segments, "segment"));
        let closed = up.closed_windows + down.closed_windows;
        if closed > 0 {
            text += &format!(", receive window 0 {}", count(closed, "time"));
        }
        Stream { name: self.way.to_string(), source: self.capture.name.clone(), text }
    }

    /// Seconds in which much was sent again.
    fn sent_again(&self) -> Vec<(Way, Happened)> {
        let stretches = seconds_with(&self.again, &self.came, (AGAIN_SHARE, AGAIN_MIN));
        let told = stretches.into_iter().map(|(from, to)| {
            let inside: Vec<&Hole> =
                self.again.iter().filter(|it| (from..to).contains(&it.t_ns)).collect();
            let numbers = inside.first().zip(inside.last()).map_or((0, 0), |(a, b)| (a.number, b.number));
            let came = self.came.iter().filter(|t_ns| (from..to).contains(*t_ns));
            let all = inside.len() + came.count();
            let effect = Happened {
                subject: self.way.to_string(),
                effect: Effect::Loss,
                from_ns: from,
                to_ns: to,
                cause: Cause::Unknown,
                what: format!("{} of {} sent again in {}", inside.len(), count(all, "segment"), span(to - from)),
                because: "they or their acknowledgements were lost or late; a capture at the other host would show which".into(),
                evidence: vec![Evidence::packets(&self.capture.name, numbers.0, numbers.1)],
                ssrc: None,
            };
            (self.way, effect)
        });
        told.collect()
    }

    /// If it did not come about.
    fn failed(&self) -> Option<Happened> {
        let (t_ns, number, tries) = self.syn.filter(|_| self.answered.is_none())?;
        let because = match self.refused {
            true => "the server's host refused it (RST): no program listens there, or a firewall rejects it".into(),
            false => format!(
                "{} within {} without an answer; a capture at the server would show whether they came",
                count(tries, "SYN"),
                span(self.span.1 - t_ns)
            ),
        };
        Some(Happened {
            subject: self.way.to_string(),
            effect: Effect::NoConnection,
            from_ns: t_ns,
            to_ns: self.span.1,
            cause: if self.refused { Cause::Application } else { Cause::Unknown },
            what: "the connection did not come about".into(),
            because,
            evidence: vec![Evidence::packets(&self.capture.name, number, number)],
            ssrc: None,
        })
    }
}
