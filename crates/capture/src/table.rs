//! Two capture points as rows of the table `hops`.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use suiro_record::Text;
use suiro_record::tables::HopRow;
use suiro_units::{Direction, to_i64};

use crate::file::{self, FileError};
use crate::hop::{Fate, Kind, Matched, Seen, matched};
use crate::identity::{addresses, identify};
use crate::point::{FILE_BYTES_MAX, Zero};

/// Why a capture's file cannot be read again.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The system refused.
    #[error("reading {}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// It is not a capture.
    #[error("reading {}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: FileError,
    },
}

/// The capture point at one end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End<'a> {
    /// Its name in the table.
    pub name: &'a str,
    /// Its file.
    pub path: &'a Path,
    /// Whether every packet is in the file; otherwise what was lost between the ends is not known.
    pub complete: bool,
}

/// The IP packets of one capture point, in the order of the file.
#[derive(Default)]
struct Passed {
    sent: Vec<Seen>,
    received: Vec<Seen>,
}

/// The addresses of a host.
pub type Addresses = [IpAddr; 2];

impl Passed {
    /// With `hosts`, only packets from one of the two hosts to the other.
    fn read(path: &Path, hosts: Option<&[Addresses; 2]>) -> Result<Self, TableError> {
        // The last packet and the statistics come after the limit.
        let file = suiro_outside::file::read(path, FILE_BYTES_MAX + (1 << 20));
        let file = file.map_err(|cause| TableError::Io { path: path.to_owned(), cause })?;
        let mut passed = Self::default();
        file::read(&file, |frame| {
            let Some((identity, bytes)) = identify(frame) else { return };
            if hosts.is_some_and(|hosts| !is_between(frame, hosts)) {
                return;
            }
            let seen = Seen { t_ns: frame.t_ns, identity, bytes };
            match frame.sent {
                Some(true) => passed.sent.push(seen),
                Some(false) => passed.received.push(seen),
                None => {}
            }
        })
        .map_err(|cause| TableError::File { path: path.to_owned(), cause })?;
        Ok(passed)
    }
}

/// The rows of both directions of a link, from the capture points at its ends `from` and `to`, as far as there are some.
/// Their times count from `zero`. Packets that were sent after `until_ns` of CLOCK_MONOTONIC do not count.
///
/// # Errors
/// If a file cannot be read.
pub fn rows(
    link: &str,
    ends: [Option<&End<'_>>; 2],
    zero: Zero,
    until_ns: u64,
) -> Result<Vec<HopRow>, TableError> {
    let read = |end: Option<&End<'_>>| end.map(|end| Passed::read(end.path, None)).transpose();
    let passed = [read(ends[0])?, read(ends[1])?];
    Ok(both_ways(link, ends, &passed, (zero, until_ns)))
}

/// The same of the path between two hosts, whatever lies between them: what one sent to the other. Down is from the
/// first to the second. `hosts` are the addresses of both.
///
/// # Errors
/// If a file cannot be read.
pub fn path_rows(
    path: &str,
    (ends, hosts): ([&End<'_>; 2], &[Addresses; 2]),
    zero: Zero,
    until_ns: u64,
) -> Result<Vec<HopRow>, TableError> {
    let read = |end: &End<'_>| Passed::read(end.path, Some(hosts)).map(Some);
    let passed = [read(ends[0])?, read(ends[1])?];
    Ok(both_ways(path, ends.map(Some), &passed, (zero, until_ns)))
}

/// Whether a packet goes from one of the hosts to the other.
fn is_between(frame: &file::Frame<'_>, hosts: &[Addresses; 2]) -> bool {
    addresses(frame).is_some_and(|(from, to)| {
        let [one, other] = hosts;
        one.contains(&from) && other.contains(&to) || other.contains(&from) && one.contains(&to)
    })
}

fn both_ways(
    link: &str,
    ends: [Option<&End<'_>>; 2],
    passed: &[Option<Passed>; 2],
    (zero, until_ns): (Zero, u64),
) -> Vec<HopRow> {
    let until_ns = zero.at(until_ns);
    let mut rows = Vec::new();
    for (direction, [from, to]) in [(Direction::Down, [0, 1]), (Direction::Up, [1, 0])] {
        let hop = Hop { link: link.into(), direction, ends: [ends[from], ends[to]] };
        let sent = passed[from].as_ref().map(|passed| &passed.sent[..]);
        let received = passed[to].as_ref().map(|passed| &passed.received[..]);
        rows.extend(hop.rows(sent, received, zero.realtime_ns, until_ns));
    }
    rows
}

/// One direction of a link.
struct Hop<'a> {
    link: Text,
    direction: Direction,
    ends: [Option<&'a End<'a>>; 2],
}

/// What a span of time, or the whole, adds up to.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    sent: i64,
    sent_bytes: i64,
    received: i64,
    received_bytes: i64,
    lost: i64,
    in_flight: i64,
    altered: i64,
    copies: i64,
    unknown: i64,
    delays: i64,
    delay_ns: i64,
    delay_max_ns: i64,
}

impl Hop<'_> {
    fn rows(
        &self,
        sent: Option<&[Seen]>,
        received: Option<&[Seen]>,
        zero_ns: u64,
        until_ns: u64,
    ) -> Vec<HopRow> {
        let in_time: Vec<_> =
            sent.unwrap_or_default().iter().filter(|seen| seen.t_ns <= until_ns).copied().collect();
        let mut matched = matched(&in_time, received.unwrap_or_default());
        // Packets that were sent too late belong to no packet that counts.
        matched.received.retain(|(seen, kind)| *kind != Kind::Unknown || seen.t_ns <= until_ns);
        let (whole, spans) = sums(&matched, zero_ns);
        let row = |t_ns, sum: &Sum| self.row(t_ns, sum, [sent.is_some(), received.is_some()]);
        let spans = spans.iter().map(|(t_ns, sum)| row(Some(*t_ns), sum));
        std::iter::once(row(None, &whole)).chain(spans).collect()
    }

    fn row(&self, t_ns: Option<i64>, sum: &Sum, [sent, received]: [bool; 2]) -> HopRow {
        let complete = self.ends.iter().all(|end| end.is_some_and(|end| end.complete));
        let compared = |count: i64| complete.then_some(count);
        let ms = |ns: f64| (sum.delays > 0).then_some(ns / 1e6);
        HopRow {
            t_ns,
            link: self.link.clone(),
            direction: self.direction,
            from: self.ends[0].map(|end| end.name.into()),
            to: self.ends[1].map(|end| end.name.into()),
            sent: sent.then_some(sum.sent),
            sent_bytes: sent.then_some(sum.sent_bytes),
            received: received.then_some(sum.received),
            received_bytes: received.then_some(sum.received_bytes),
            lost: compared(sum.lost),
            in_flight: compared(sum.in_flight),
            altered: compared(sum.altered),
            copies: compared(sum.copies),
            unknown: compared(sum.unknown),
            delay_mean_ms: ms(sum.delay_ns as f64 / sum.delays as f64),
            delay_max_ms: ms(sum.delay_max_ns as f64),
        }
    }
}

/// Over the whole, and by the beginning of each span in which a packet passed.
fn sums(matched: &Matched, zero_ns: u64) -> (Sum, BTreeMap<i64, Sum>) {
    let (mut whole, mut spans) = (Sum::default(), BTreeMap::<i64, Sum>::new());
    let span = |seen: &Seen| {
        let t_ns = to_i64(seen.t_ns) - to_i64(zero_ns);
        t_ns.div_euclid(HopRow::SPAN_NS) * HopRow::SPAN_NS
    };
    for (seen, fate) in &matched.sent {
        whole.add_sent(seen, *fate);
        spans.entry(span(seen)).or_default().add_sent(seen, *fate);
    }
    for (seen, kind) in &matched.received {
        whole.add_received(seen, *kind);
        spans.entry(span(seen)).or_default().add_received(seen, *kind);
    }
    (whole, spans)
}

impl Sum {
    fn add_sent(&mut self, seen: &Seen, fate: Fate) {
        self.sent += 1;
        self.sent_bytes += i64::from(seen.bytes);
        match fate {
            Fate::Received(Some(took)) => {
                self.delays += 1;
                self.delay_ns = self.delay_ns.saturating_add(to_i64(took));
                self.delay_max_ns = self.delay_max_ns.max(to_i64(took));
            }
            Fate::Received(None) => {}
            Fate::Altered => self.altered += 1,
            Fate::Lost => self.lost += 1,
            Fate::InFlight => {
                self.lost += 1;
                self.in_flight += 1;
            }
        }
    }

    fn add_received(&mut self, seen: &Seen, kind: Kind) {
        self.received += 1;
        self.received_bytes += i64::from(seen.bytes);
        match kind {
            // Where they were sent, altered ones count.
            Kind::Original | Kind::Altered => {}
            Kind::Copy => self.copies += 1,
            Kind::Unknown => self.unknown += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Counted, Described, ETHERNET, Writer};

    /// One of ten packets, none of which has a part in common with another.
    fn packet(number: u8) -> [u8; 60] {
        let mut data = [number; 60];
        data[12..18].copy_from_slice(&[8, 0, 0x45, 0, 0, 46]);
        data
    }

    #[test]
    fn a_step_of_the_wall_clock_does_not_move_the_end_of_a_link() {
        const HOUR_NS: i64 = 3_600_000_000_000;
        const STEP_NS: u64 = 100_000_000;
        let zero = Zero { monotonic_ns: 5_000_000_000, realtime_ns: 1_700_000_000_000_000_000 };
        for step_ns in [-HOUR_NS, HOUR_NS] {
            let dir = tempfile::tempdir().unwrap();
            let lead_ns = (zero.realtime_ns - zero.monotonic_ns).cast_signed() + step_ns;
            let write = |name: &str, sent: bool, delay_ns: u64| {
                let interface =
                    Described { name: "eth0", description: "", link: ETHERNET, snap: 0 };
                let mut writer = Writer::new(Vec::new(), &interface).unwrap();
                for number in 0..10u8 {
                    let monotonic_ns = zero.monotonic_ns + u64::from(number) * STEP_NS + delay_ns;
                    let realtime_ns = monotonic_ns.saturating_add_signed(lead_ns);
                    let t_ns = zero.time(realtime_ns, lead_ns);
                    writer.packet(t_ns, &packet(number), 60, Some(sent)).unwrap();
                }
                let path = dir.path().join(name);
                std::fs::write(&path, writer.finish(&Counted::default()).unwrap()).unwrap();
                path
            };
            let (from, to) = (write("from", true, 0), write("to", false, 1_000_000));
            let from = End { name: "from", path: &from, complete: true };
            let to = End { name: "to", path: &to, complete: true };
            // The end is between the fifth packet and the sixth.
            let until_ns = zero.monotonic_ns + 4 * STEP_NS + STEP_NS / 2;
            let rows = rows("link", [Some(&from), Some(&to)], zero, until_ns).unwrap();
            let down = |row: &&HopRow| row.t_ns.is_none() && row.direction == Direction::Down;
            let row = rows.iter().find(down).unwrap();
            let counts = [row.sent, row.received, row.lost, row.unknown];
            assert_eq!(counts, [Some(5), Some(5), Some(0), Some(0)], "{row:?}");
        }
    }
}
