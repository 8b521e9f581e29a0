//! A flow that shares a path with others, link by link.

use std::ops::Range;

use suiro_record::tables::LinkRow;
use suiro_record::words::Verdict;

use crate::bins::Bins;

/// What a flow carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Video,
    Tcp,
}

impl Kind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Video => "video",
            Self::Tcp => "tcp",
        }
    }
}

/// What carries a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Over {
    /// RTP under a rate control.
    Rtp,
    Webrtc,
    /// Media over QUIC.
    Moq,
    Tcp,
}

impl Over {
    /// Whether it counts even if it goes up only: a camera behind a link may send to a relay or to another camera.
    pub const fn goes_anywhere(self) -> bool {
        matches!(self, Self::Webrtc | Self::Moq)
    }

    pub const fn kind(self) -> Kind {
        match self {
            Self::Tcp => Kind::Tcp,
            Self::Rtp | Self::Webrtc | Self::Moq => Kind::Video,
        }
    }
}

/// A packet that a link delivered.
pub(crate) struct Packet {
    /// When.
    pub t_ns: i64,
    /// Its bits.
    pub bits: f64,
    /// How long it was in the link.
    took_ns: i64,
    /// Whether it is a report, such as RTCP.
    is_report: bool,
}

#[cfg(test)]
impl Packet {
    /// A packet that took no time.
    pub const fn at(t_ns: i64, bits: f64) -> Self {
        Self { t_ns, bits, took_ns: 0, is_report: false }
    }
}

/// A flow at one link.
struct Crossing {
    /// The link, by its place in the list.
    link: usize,
    /// When packets came that are no reports, those that the link dropped included; sorted.
    came: Vec<i64>,
    /// Bits of all packets that came.
    came_bits: f64,
    /// What the link delivered within the trial.
    delivered: Vec<Packet>,
    /// Bits of that.
    bits: f64,
    /// When packets came that the link dropped.
    dropped: Vec<i64>,
}

/// One flow.
pub(crate) struct Flow<'a> {
    /// What carries it.
    pub over: Over,
    /// What sets it apart from others over the same: of RTP the sending endpoint, of others the connection.
    pub name: String,
    /// It as tables name it: `PROTOCOL SOURCE:PORT>DESTINATION:PORT`. RTP and its RTCP are two of these; this is one of them.
    pub flow: &'a str,
    /// The links that its packets met.
    crossings: Vec<Crossing>,
    /// Whether it is compared with other flows.
    pub competes: bool,
    /// When it is there, sorted.
    pub spans: Vec<Range<i64>>,
}

impl<'a> Flow<'a> {
    /// A flow of which no packet is known.
    pub const fn new(over: Over, name: String, flow: &'a str) -> Self {
        Self { over, name, flow, crossings: Vec::new(), competes: true, spans: Vec::new() }
    }

    /// A packet of it met a link in the `0..duration_ns` of a trial. Links come one after another, the packets of each in order of
    /// arrival, without the copies that the link made.
    pub fn add(&mut self, link: usize, row: &LinkRow, is_report: bool, duration_ns: i64) {
        if self.crossings.last().is_none_or(|crossing| crossing.link != link) {
            self.crossings.push(Crossing::new(link));
        }
        if let Some(crossing) = self.crossings.last_mut() {
            crossing.add(row, is_report, duration_ns);
        }
    }

    pub const fn kind(&self) -> Kind {
        self.over.kind()
    }

    /// The links that its packets met, by their places in the list.
    pub fn links(&self) -> impl Iterator<Item = usize> {
        self.crossings.iter().map(|crossing| crossing.link)
    }

    fn first_link(&self) -> Option<&Crossing> {
        self.crossings.iter().min_by_key(|crossing| crossing.began_ns())
    }

    /// The link that delivered the fewest bits of it.
    fn narrowest(&self) -> Option<&Crossing> {
        self.crossings.iter().min_by(|a, b| a.bits.total_cmp(&b.bits))
    }

    /// When its sender sent packets that are no reports: when they came to the first link, dropped ones included. Sorted.
    pub fn sent(&self) -> &[i64] {
        self.first_link().map_or(&[], |crossing| &crossing.came)
    }

    /// Bits that its sender sent.
    pub fn sent_bits(&self) -> f64 {
        self.first_link().map_or(0.0, |crossing| crossing.came_bits)
    }

    /// What was delivered by the link that delivered the fewest bits of it.
    pub fn delivered(&self) -> &[Packet] {
        self.narrowest().map_or(&[], |crossing| &crossing.delivered)
    }

    /// The same without reports: when.
    pub fn media(&self) -> impl Iterator<Item = i64> {
        self.delivered().iter().filter(|packet| !packet.is_report).map(|packet| packet.t_ns)
    }

    /// When packets came that links dropped.
    pub fn dropped(&self) -> impl Iterator<Item = i64> {
        self.crossings.iter().flat_map(|crossing| &crossing.dropped).copied()
    }

    /// The least time that a packet takes from the first link until the narrowest has delivered it.
    pub fn transit_ns(&self) -> i64 {
        let last = self.narrowest().map_or(0, Crossing::began_ns);
        let links = self.crossings.iter().filter(|crossing| crossing.began_ns() <= last);
        let least = |crossing: &Crossing| crossing.delivered.iter().map(|it| it.took_ns).min();
        links.filter_map(least).fold(0, i64::saturating_add)
    }

    /// From when and until when it is there, pauses included.
    pub fn ends(&self) -> Option<Range<i64>> {
        Some(self.spans.first()?.start..self.spans.last()?.end)
    }

    /// How long that is.
    pub fn lasted_ns(&self) -> i64 {
        self.ends().map_or(0, |ends| ends.end.saturating_sub(ends.start))
    }

    /// Its rate in the part of a time in which it is there; `None` if there is none.
    pub fn rate_bps(&self, within: &Range<i64>) -> Option<f64> {
        let parts = || {
            let part = |it: &Range<i64>| it.start.max(within.start)..it.end.min(within.end);
            self.spans.iter().map(part).filter(|part| !part.is_empty())
        };
        let ns: i64 = parts().map(|part| part.end.saturating_sub(part.start)).sum();
        let inside = |packet: &&Packet| parts().any(|part| part.contains(&packet.t_ns));
        let bits: f64 = self.delivered().iter().filter(inside).map(|packet| packet.bits).sum();
        (ns > 0).then(|| bits * 1e9 / ns as f64)
    }

    /// The same in each bin that it is there in.
    pub fn rate_bins(&self, bins: &Bins) -> Vec<Option<f64>> {
        let bits = bins.sum(self.delivered().iter().map(|packet| (packet.t_ns, packet.bits)));
        let here = bits.into_iter().zip(bins.reached(&self.spans));
        here.map(|(bits, is_there)| is_there.then(|| bits / bins.width_s())).collect()
    }

    /// The mean over packets of the time in links, all of them together; `None` if a link delivered none.
    pub fn delay_ms(&self, within: &Range<i64>) -> Option<f64> {
        let mean = |crossing: &Crossing| {
            let inside = crossing.delivered.iter().filter(|packet| within.contains(&packet.t_ns));
            let (ns, count) = inside
                .fold((0.0, 0u32), |(ns, count), packet| (ns + packet.took_ns as f64, count + 1));
            (count > 0).then(|| ns / 1e6 / f64::from(count))
        };
        self.crossings.iter().map(mean).sum()
    }
}

impl Crossing {
    const fn new(link: usize) -> Self {
        Self {
            link,
            came: Vec::new(),
            came_bits: 0.0,
            delivered: Vec::new(),
            bits: 0.0,
            dropped: Vec::new(),
        }
    }

    /// When the first packet came that is no report; later than all if none did.
    fn began_ns(&self) -> i64 {
        self.came.first().copied().unwrap_or(i64::MAX)
    }

    fn add(&mut self, row: &LinkRow, is_report: bool, duration_ns: i64) {
        let bits = row.size_bytes as f64 * 8.0;
        self.came_bits += bits;
        if !is_report {
            self.came.push(row.t_ns);
        }
        match (row.verdict, row.departed_ns.or(row.scheduled_ns)) {
            (Verdict::Delivered, Some(t_ns)) if (0..duration_ns).contains(&t_ns) => {
                let took_ns = t_ns.saturating_sub(row.t_ns);
                self.bits += bits;
                self.delivered.push(Packet { t_ns, bits, took_ns, is_report });
            }
            (Verdict::Dropped, _) => self.dropped.push(row.t_ns),
            _ => {}
        }
    }
}
