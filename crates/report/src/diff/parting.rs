//! When two trials of the same seed begin to differ: the first packet that fared otherwise.

use std::collections::BTreeMap;

use suiro_record::tables::LinkRow;
use suiro_record::{Folder, PlannedTrial, Reader};

/// The first difference between the packets of two trials.
#[derive(Debug, Clone, PartialEq)]
pub struct Parting {
    /// When the packet arrived at its link, in seconds since the trial began.
    pub t_s: f64,
    /// The link.
    pub link: String,
    /// Its direction.
    pub direction: String,
}

/// When two trials part. `None` if each link met the same packets and did the same with them, or if either has no such
/// records.
///
/// In virtual time trials of the same seed are the same until the first effect of what differs between them; live they part
/// at once.
pub fn parting(
    (one, first): (&Folder, &PlannedTrial),
    (other, second): (&Folder, &PlannedTrial),
) -> Option<Parting> {
    let rows = |folder: &Folder, planned| -> Option<Vec<LinkRow>> {
        Reader::read_all(&folder.trial(planned)).ok()
    };
    part(&rows(one, first)?, &rows(other, second)?)
}

fn part(one: &[LinkRow], other: &[LinkRow]) -> Option<Parting> {
    let (of_one, of_other) = (by_link(one), by_link(other));
    let parted = of_one.iter().filter_map(|(place, rows)| {
        let others = of_other.get(place)?;
        let at = rows.iter().zip(others).position(|(a, b)| a != b);
        let at =
            at.or_else(|| (rows.len() != others.len()).then(|| rows.len().min(others.len())))?;
        let t_ns =
            [rows.get(at), others.get(at)].into_iter().flatten().map(|row| row.t_ns).min()?;
        Some((t_ns, place))
    });
    let (t_ns, (link, direction)) = parted.min()?;
    Some(Parting { t_s: t_ns as f64 / 1e9, link: link.clone(), direction: direction.clone() })
}

/// The rows of each direction of each link, in the order of arrival.
fn by_link(rows: &[LinkRow]) -> BTreeMap<(String, String), Vec<&LinkRow>> {
    let mut found: BTreeMap<(String, String), Vec<&LinkRow>> = BTreeMap::new();
    for row in rows {
        found.entry((row.link.to_string(), row.direction.to_string())).or_default().push(row);
    }
    for rows in found.values_mut() {
        rows.sort_by_key(|row| (row.t_ns, row.packet));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use suiro_record::words::{Direction, Verdict};

    fn row(t_ns: i64, direction: Direction, packet: i64, queue_bytes: i64) -> LinkRow {
        LinkRow {
            t_ns,
            link: "access".into(),
            direction,
            packet,
            flow: "udp 10.0.0.1:1>10.0.0.2:2".into(),
            size_bytes: 1000,
            payload_bytes: Some(972),
            queue_bytes,
            queue_packets: 0,
            verdict: Verdict::Delivered,
            cause: None,
            ecn_marked: false,
            dequeued_ns: Some(t_ns),
            scheduled_ns: Some(t_ns + 5),
            departed_ns: Some(t_ns + 5),
            attempts: None,
        }
    }

    #[test]
    fn the_first_packet_that_fares_otherwise_parts_them() {
        let both = [
            row(1_000_000_000, Direction::Down, 0, 0),
            row(2_000_000_000, Direction::Up, 0, 0),
            row(3_000_000_000, Direction::Down, 1, 0),
        ];
        assert_eq!(part(&both, &both), None);
        let mut other = both.clone();
        other[2].queue_bytes = 500;
        let at = |t_s: f64, direction: &str| {
            Some(Parting { t_s, link: "access".into(), direction: direction.into() })
        };
        assert_eq!(part(&both, &other), at(3.0, "down"));
        assert_eq!(part(&both, &both[..2]), at(3.0, "down"), "it is missing");
        other[1].t_ns = 1_900_000_000;
        assert_eq!(part(&both, &other), at(1.9, "up"), "it came earlier");
    }
}
