//! Two captures of the same packets: which is nearer to the sender, how far apart their clocks are, and what became of
//! each packet in between.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use suiro_analysis::why::wording::count;

use crate::model::Stream;
use crate::numbers::{between, quantile, unwrapped};
use crate::packets::{Capture, Content, Packet, Way};

/// Two captures have to share so many packets of a flow.
const SHARED_MIN: usize = 20;
/// A host's card may join segments up to this length.
const JOINED_MAX: i64 = 65_536;

/// A packet that one capture has and the other should have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passage<'c> {
    pub sent: &'c Packet,
    /// When it came, on the sender's clock, and the packet there; none if it did not.
    pub received: Option<(i64, &'c Packet)>,
}

impl Passage<'_> {
    /// From one capture to the other.
    pub fn delay_ns(&self) -> Option<i64> {
        Some(self.received?.0.saturating_sub(self.sent.t_ns))
    }
}

/// The packets of a flow between two captures, in the order in which they were sent.
#[derive(Debug)]
pub(crate) struct Crossing<'c> {
    /// The flow, as the sender's capture has it.
    pub way: Way,
    /// The capture nearer to the sender, and the other.
    pub near: &'c Capture,
    pub far: &'c Capture,
    pub passages: Vec<Passage<'c>>,
    /// Where in `passages` a packet of the far capture is, by its number.
    by_number: BTreeMap<u32, usize>,
}

impl<'c> Crossing<'c> {
    /// The passage of a packet of the far capture.
    pub fn of(&self, number: u32) -> Option<&Passage<'c>> {
        Some(&self.passages[*self.by_number.get(&number)?])
    }

    /// The packets that were sent after one time and before another, by the near capture's clock.
    pub fn sent(&self, after_ns: i64, before_ns: i64) -> &[Passage<'c>] {
        between(&self.passages, |it| it.sent.t_ns, (after_ns, before_ns))
    }

    /// A time of the near capture's clock by the far capture's.
    pub fn there(&self, t_ns: i64) -> i64 {
        let any = self.passages.iter().find_map(|it| it.received);
        any.map_or(t_ns, |(by_near, got)| t_ns.saturating_add(got.t_ns - by_near))
    }
}

/// The flows that two captures share: those whose direction is known, and the others, each in one line.
pub(crate) fn crossings<'c>(a: &'c Capture, b: &'c Capture) -> (Vec<Crossing<'c>>, Vec<Stream>) {
    let shared = shared(a, b);
    let leads: Vec<Lead> = shared.iter().map(|(flow, pairs)| Lead::of(*flow, pairs)).collect();
    let hosts = Hosts::of(a, &leads);
    let mut forwards = BTreeMap::new();
    let mut unknown = Vec::new();
    for ((flow, pairs), lead) in shared.iter().zip(&leads) {
        if pairs.len() < SHARED_MIN {
            continue;
        }
        let by_hosts = || hosts.goes_forwards(a.flows[*flow as usize], lead);
        match by_hosts().or_else(|| by_senders(pairs)).or_else(|| by_missing((a, b), pairs)) {
            Some(is_forwards) => {
                forwards.insert(*flow, (is_forwards, lead));
            }
            None => unknown.push(direction_unknown((a, b), *flow, pairs.len())),
        }
    }
    // The least delays of both directions are taken as equal (Cristian 1989); with one direction, the least as 0.
    let least = |wanted: bool| {
        let of = forwards.values().filter(|(is_forwards, _)| *is_forwards == wanted);
        of.map(|(_, lead)| if wanted { lead.least_ns } else { -lead.most_ns }).min()
    };
    let offset = match (least(true), least(false)) {
        (Some(there), Some(back)) => (there - back) / 2,
        (Some(there), None) => there,
        (None, Some(back)) => -back,
        (None, None) => 0,
    };
    let mut crossings: Vec<Crossing<'_>> = Vec::new();
    for (flow, pairs) in &shared {
        let Some(&(is_forwards, _)) = forwards.get(flow) else { continue };
        let crossing = match is_forwards {
            true => crossing(a, b, *flow, pairs, -offset),
            false => {
                let turned: Vec<_> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
                let Some((first, _)) = turned.first() else { continue };
                crossing(b, a, first.flow, &turned, offset)
            }
        };
        crossings.push(crossing);
    }
    crossings.sort_by_key(|crossing| crossing.way);
    (crossings, unknown)
}

/// How far the second capture's times of a flow are ahead of the first's: delay and clocks.
#[derive(Debug, Clone, Copy)]
struct Lead {
    flow: u32,
    least_ns: i64,
    usual_ns: i64,
    most_ns: i64,
}

impl Lead {
    fn of(flow: u32, pairs: &[(&Packet, &Packet)]) -> Self {
        let mut all: Vec<i64> = pairs.iter().map(|(a, b)| b.t_ns.saturating_sub(a.t_ns)).collect();
        let [least_ns, usual_ns, most_ns] =
            [0.0, 0.5, 1.0].map(|share| quantile(&mut all, share).unwrap_or(0));
        Self { flow, least_ns, usual_ns, most_ns }
    }
}

/// The usual lead of what each host sends and receives, over all its flows: a stream may have its reports on other ports.
struct Hosts {
    from: BTreeMap<IpAddr, i64>,
    to: BTreeMap<IpAddr, i64>,
}

impl Hosts {
    fn of(a: &Capture, leads: &[Lead]) -> Self {
        let mut from: BTreeMap<IpAddr, Vec<i64>> = BTreeMap::new();
        let mut to: BTreeMap<IpAddr, Vec<i64>> = BTreeMap::new();
        for lead in leads {
            let way = a.flows[lead.flow as usize];
            from.entry(way.from.ip()).or_default().push(lead.usual_ns);
            to.entry(way.to.ip()).or_default().push(lead.usual_ns);
        }
        let usual = |leads: BTreeMap<IpAddr, Vec<i64>>| {
            let usual =
                |(host, mut leads): (IpAddr, Vec<i64>)| Some((host, quantile(&mut leads, 0.5)?));
            leads.into_iter().filter_map(usual).collect()
        };
        Self { from: usual(from), to: usual(to) }
    }

    /// Whether a flow goes from the first capture to the second; none if nothing goes back.
    fn goes_forwards(&self, way: Way, lead: &Lead) -> Option<bool> {
        if way.from.ip() == way.to.ip() {
            return None;
        }
        // What is sent to a multicast group is answered to its sender.
        let back = self.to.get(&way.from.ip()).or_else(|| self.from.get(&way.to.ip()))?;
        // Whatever the clocks: what is later at the second than the opposite direction goes there.
        (lead.usual_ns != *back).then_some(lead.usual_ns > *back)
    }
}

/// The same, by what the captures say about the direction of their packets.
fn by_senders(pairs: &[(&Packet, &Packet)]) -> Option<bool> {
    let mut forwards = 0i64;
    for sent in pairs.iter().flat_map(|(a, b)| [a.sent, b.sent.map(|sent| !sent)]).flatten() {
        forwards += if sent { 1 } else { -1 };
    }
    (forwards != 0).then_some(forwards > 0)
}

/// The same, by which capture has fewer of the packets: the path lost the others.
fn by_missing((a, b): (&Capture, &Capture), pairs: &[(&Packet, &Packet)]) -> Option<bool> {
    // In the time that both have.
    let packets = |capture: &Capture, shared: &[&Packet]| {
        let times = || shared.iter().map(|it| it.t_ns);
        let (first, last) = (times().min()?, times().max()?);
        let flow = shared.first()?.flow;
        let of_flow = |it: &&Packet| it.flow == flow && (first..=last).contains(&it.t_ns);
        Some(capture.packets.iter().filter(of_flow).count())
    };
    let (of_a, of_b): (Vec<&Packet>, Vec<&Packet>) = pairs.iter().copied().unzip();
    let (of_a, of_b) = (packets(a, &of_a)?, packets(b, &of_b)?);
    (of_a != of_b).then_some(of_a > of_b)
}

/// A flow in both captures that does not show which of them is nearer to its sender.
fn direction_unknown((a, b): (&Capture, &Capture), flow: u32, packets: usize) -> Stream {
    let text = format!(
        "{} also in {}, direction not known: nothing goes back, neither capture has fewer packets, and neither says which \
         its host sent",
        count(packets, "packet"),
        b.name
    );
    Stream { name: a.flows[flow as usize].to_string(), source: a.name.clone(), text }
}

/// `offset`: what is added to the far capture's times.
fn crossing<'c>(
    near: &'c Capture,
    far: &'c Capture,
    flow: u32,
    pairs: &[(&'c Packet, &'c Packet)],
    offset: i64,
) -> Crossing<'c> {
    let way = near.flows[flow as usize];
    let all: BTreeMap<u32, &Packet> = match way.is_tcp {
        false => pairs.iter().map(|(sent, got)| (sent.number, *got)).collect(),
        true => {
            let mut all = segments(near, far, (flow, pairs[0].1.flow), least(pairs));
            let empty = pairs.iter().filter(|(sent, _)| start_of(sent).is_none());
            all.extend(empty.map(|(sent, got)| (sent.number, *got)));
            all
        }
    };
    // A capture may begin later or end sooner than the other.
    let first = pairs.iter().map(|(sent, _)| sent.t_ns).min().unwrap_or(i64::MIN);
    let last = pairs.iter().map(|(sent, _)| sent.t_ns).max().unwrap_or(i64::MAX);
    let during = |packet: &&Packet| packet.flow == flow && (first..=last).contains(&packet.t_ns);
    let passage = |sent: &'c Packet| {
        let received = all.get(&sent.number).map(|got| (got.t_ns.saturating_add(offset), *got));
        Passage { sent, received }
    };
    let passages: Vec<Passage<'_>> = near.packets.iter().filter(during).map(passage).collect();
    let numbers = passages.iter().enumerate();
    let by_number = numbers.filter_map(|(at, it)| Some((it.received?.1.number, at))).collect();
    Crossing { way, near, far, passages, by_number }
}

/// The least time from one capture to the other, whatever the clocks.
fn least(pairs: &[(&Packet, &Packet)]) -> i64 {
    pairs.iter().map(|(sent, got)| got.t_ns.saturating_sub(sent.t_ns)).min().unwrap_or(0)
}

/// The segments that came, by the number of each that was sent. Cards may have joined segments at either host, so it is
/// the first byte that is looked for; of several transmissions of it, the last that can have come is the one that did.
fn segments<'c>(
    near: &'c Capture,
    far: &'c Capture,
    (sent, came): (u32, u32),
    least_ns: i64,
) -> BTreeMap<u32, &'c Packet> {
    let of_flow = |it: &&Packet| it.flow == sent;
    let Some(base) = near.packets.iter().filter(of_flow).find_map(start_of) else {
        return BTreeMap::new();
    };
    // Sequence numbers in whole numbers, from the flow's first.
    let whole = |flow: u32, capture: &'c Capture| {
        let mut last = 0i64;
        let of_flow = capture.packets.iter().filter(move |it| it.flow == flow);
        of_flow.filter_map(move |packet| {
            last = unwrapped(start_of(packet)?, base, last);
            Some((last, packet))
        })
    };
    let mut there: BTreeMap<i64, Vec<&Packet>> = BTreeMap::new();
    whole(came, far).for_each(|(start, packet)| there.entry(start).or_default().push(packet));
    let mut sent_from: BTreeMap<i64, Vec<&Packet>> = BTreeMap::new();
    whole(sent, near).for_each(|(start, packet)| sent_from.entry(start).or_default().push(packet));
    let mut all = BTreeMap::new();
    for (start, mut transmissions) in sent_from {
        let covers = there.range(start - JOINED_MAX..=start).flat_map(|(from, list)| {
            list.iter().filter(move |it| from + i64::from(it.bytes).max(1) > start)
        });
        let mut arrivals: Vec<&Packet> = covers.copied().collect();
        arrivals.sort_by_key(|it| it.t_ns);
        for got in arrivals.into_iter().rev() {
            let can = |it: &&Packet| it.t_ns.saturating_add(least_ns) <= got.t_ns;
            let Some(at) = transmissions.iter().rposition(can) else { continue };
            all.insert(transmissions.remove(at).number, got);
        }
    }
    all
}

/// The first sequence number of a segment with payload.
fn start_of(packet: &Packet) -> Option<u32> {
    match packet.content {
        Content::Tcp(segment) if packet.bytes > 0 => Some(segment.sequence),
        _ => None,
    }
}

type Pairs<'c> = Vec<(&'c Packet, &'c Packet)>;

/// Packets that both captures have, by flow of `a`. Equal ones are matched in order of time.
fn shared<'c>(a: &'c Capture, b: &'c Capture) -> Vec<(u32, Pairs<'c>)> {
    let mut there: BTreeMap<u64, VecDeque<&Packet>> = BTreeMap::new();
    for packet in &b.packets {
        there.entry(packet.identity).or_default().push_back(packet);
    }
    let mut flows: Vec<(u32, Pairs<'_>)> = Vec::new();
    let mut places: BTreeMap<u32, usize> = BTreeMap::new();
    for packet in &a.packets {
        let found = there.get_mut(&packet.identity).and_then(VecDeque::pop_front);
        let Some(found) = found.filter(|found| b.way(found).is_tcp == a.way(packet).is_tcp) else {
            continue;
        };
        let at = *places.entry(packet.flow).or_insert_with(|| {
            flows.push((packet.flow, Vec::new()));
            flows.len() - 1
        });
        flows[at].1.push((packet, found));
    }
    flows
}
