//! The ends of video calls: what each sent, and what came of what the other end sent.

use std::collections::BTreeMap;

use suiro_record::tables::{ConferenceRow, FlowRow, FrameRow};

use crate::Records;
use crate::group::grouped;
use crate::period::Period;
use crate::stats::Distribution;

/// One end of a call, over the call without the warm-up.
pub(crate) struct End<'a> {
    pub name: &'a str,
    periods: Vec<&'a ConferenceRow>,
    /// The periods of the other end; none if it is not known.
    other: Vec<&'a ConferenceRow>,
    frames: Vec<&'a FrameRow>,
    period: Period,
}

/// Every end of every call, by name.
pub(crate) fn ends(records: &Records, period: Period) -> Vec<End<'_>> {
    let mut periods = grouped(&records.conference, |row| &*row.endpoint, |row| row.t_ns);
    // The row of a period is written at its end.
    for rows in periods.values_mut() {
        rows.retain(|row| !period.is_counted_before(row.t_ns));
    }
    let mut frames = grouped(&records.frames, |row| &*row.endpoint, |row| row.t_ns);
    let names: Vec<&str> = periods.keys().copied().collect();
    let mut others: BTreeMap<&str, Vec<&ConferenceRow>> = names
        .iter()
        .filter_map(|name| {
            Some((*name, periods.get(other(&records.flows, &names, name)?)?.clone()))
        })
        .collect();
    let end = |name| End {
        name,
        periods: periods.remove(name).unwrap_or_default(),
        other: others.remove(name).unwrap_or_default(),
        frames: frames.remove(name).unwrap_or_default(),
        period,
    };
    names.into_iter().map(end).collect()
}

/// The other end of a call: the one that sends to this one, as it reported, or else the only other one.
fn other<'a>(told: &'a [FlowRow], names: &[&'a str], name: &str) -> Option<&'a str> {
    let mut reported = told.iter().filter(|row| row.peer.as_deref() == Some(name));
    let mut rest = names.iter().filter(|it| **it != name);
    match (reported.next(), rest.next(), rest.next()) {
        (Some(row), ..) => Some(&row.endpoint),
        (None, Some(other), None) => Some(other),
        _ => None,
    }
}

impl End<'_> {
    /// A count of this end, over all periods.
    pub fn sum(&self, of: impl Fn(&ConferenceRow) -> i64) -> f64 {
        self.periods.iter().map(|row| of(row) as f64).sum()
    }

    /// Of the packets that this end was to send, the share that a failed send call dropped.
    pub fn send_loss(&self) -> Option<f64> {
        let dropped = self.sum(dropped);
        let all = dropped + self.sum(|row| row.sent_packets);
        (all > 0.0).then(|| dropped / all)
    }

    /// Of the packets that the other end's send calls took, the share that did not come.
    pub fn loss(&self) -> Option<f64> {
        let sent: f64 = self.other.iter().map(|row| row.sent_packets as f64).sum();
        let came = self.sum(|row| row.received_packets);
        (sent > 0.0).then(|| (1.0 - came / sent).max(0.0))
    }

    /// Frames of the other end of which something was shown within the period.
    fn shown(&self) -> impl Iterator<Item = (&FrameRow, i64)> {
        let shown = self.frames.iter().filter_map(|row| Some((*row, row.displayed_ns?)));
        shown.filter(|(_, at)| self.period.contains(*at))
    }

    /// How many were shown.
    pub fn pictures_shown(&self) -> f64 {
        self.shown().count() as f64
    }

    /// How many of these were damaged.
    pub fn pictures_damaged(&self) -> f64 {
        self.shown().filter(|(row, _)| row.damaged).count() as f64
    }

    /// Of how many nothing came within the period.
    pub fn pictures_lost(&self) -> f64 {
        let within = |row: &&&FrameRow| self.period.contains(row.t_ns);
        self.frames.iter().filter(within).filter(|row| row.received_ns.is_none()).count() as f64
    }

    /// From a frame's capture to its display, in milliseconds.
    pub fn delay_ms(&self) -> Distribution {
        let delays = self.shown().filter_map(|(row, at)| at.checked_sub(row.captured_ns?));
        Distribution::equal(delays.map(|ns| ns as f64 / 1e6))
    }
}

/// Packets that failed send calls dropped.
const fn dropped(row: &ConferenceRow) -> i64 {
    row.dropped_again_packets + row.dropped_buffers_packets + row.dropped_other_packets
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn period(endpoint: &str, t_ms: i64, sent: i64, dropped: i64, received: i64) -> ConferenceRow {
        ConferenceRow {
            t_ns: t_ms * MS,
            endpoint: endpoint.into(),
            period_ns: 1000 * MS,
            captured_pictures: 10,
            skipped_pictures: 1,
            encode_ns: 0,
            sent_packets: sent,
            sent_bytes: sent * 1000,
            dropped_again_packets: dropped,
            dropped_buffers_packets: 0,
            dropped_other_packets: 0,
            received_packets: received,
            late_packets: 2,
            refused_packets: 0,
            decode_ns: 0,
        }
    }

    fn frame(number: i64, shown_ms: Option<i64>, damaged: bool) -> FrameRow {
        let captured_ns = number * 100 * MS;
        FrameRow {
            t_ns: shown_ms.map_or(captured_ns, |ms| ms * MS),
            endpoint: "a".into(),
            frame: number,
            captured_ns: shown_ms.map(|_| captured_ns),
            rung_bps: None,
            encoded_bytes: None,
            sent_ns: None,
            received_ns: shown_ms.map(|ms| ms * MS),
            decodable: shown_ms.is_some(),
            damaged,
            displayed_ns: shown_ms.map(|ms| ms * MS),
        }
    }

    #[test]
    fn by_hand() {
        let records = Records {
            conference: vec![
                period("a", 1000, 75, 25, 50),
                period("b", 1000, 60, 0, 70),
                period("a", 2000, 75, 25, 70),
                period("b", 2000, 90, 0, 80),
            ],
            frames: vec![
                frame(0, Some(20), false),
                frame(1, Some(140), true),
                frame(2, None, false),
                // After the trial.
                frame(30, Some(3020), false),
            ],
            ..Records::default()
        };
        let ends = ends(&records, Period { from_ns: 0, to_ns: 2000 * MS });
        let [a, b] = &ends[..] else { panic!("{} ends", ends.len()) };
        assert_eq!((a.name, b.name), ("a", "b"));
        assert_eq!(a.sum(|row| row.captured_pictures), 20.0);
        assert_eq!((a.send_loss(), b.send_loss()), (Some(0.25), Some(0.0)));
        // 120 of 150 packets came to a, and all 150 to b.
        assert!((a.loss().unwrap() - 0.2).abs() < 1e-12);
        assert_eq!(b.loss(), Some(0.0));
        assert_eq!((a.pictures_shown(), a.pictures_damaged(), a.pictures_lost()), (2.0, 1.0, 1.0));
        assert_eq!(a.delay_ms().mean(), Some(30.0));
        assert_eq!(b.delay_ms().mean(), None);
    }

    #[test]
    fn of_several_calls_the_other_end_is_the_one_that_reported_it() {
        let names = ["a", "b", "c", "d"];
        let told = [FlowRow {
            t_ns: suiro_units::Time::ZERO,
            endpoint: "c".into(),
            role: suiro_record::words::FlowRole::Sender,
            protocol: suiro_record::words::Transport::Udp,
            local: "*:5004".into(),
            remote: "10.0.0.2:5004".into(),
            carries: suiro_record::words::Carries::Video,
            flows: 1,
            closed_ns: None,
            peer: Some("a".into()),
        }];
        assert_eq!(other(&told, &names, "a"), Some("c"));
        assert_eq!(other(&told, &names, "b"), None);
        assert_eq!(other(&[], &names[..2], "b"), Some("a"));
    }
}
