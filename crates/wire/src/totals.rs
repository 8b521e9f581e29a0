//! The counts of one direction, and whether it can be trusted.

use std::collections::BTreeMap;

use suiro_link::{Cause, Direction, Verdict};
use suiro_record::LinkTotals;
use suiro_record::words::LinkCause;

use crate::histogram::Histogram;
use crate::words;

/// What happened to the packets in one direction, as seen by the carrier.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    pub offered: u64,
    pub delivered: u64,
    pub duplicated: u64,
    /// Copies among the delivered.
    pub duplicates_delivered: u64,
    pub queued: u64,
    pub foreign: u64,
    pub dropped: [u64; Cause::ALL.len()],
    pub lateness: Histogram,
    /// How long the call took that each packet left with.
    pub departure_error: Histogram,
}

/// What the kernel lost around the carrier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KernelLosses {
    /// Frames that arrived when the ring was full.
    pub ring: u64,
    /// Packets that the sending host's interface lost on the way to us.
    pub before: u64,
    /// Packets that our interface accepted but lost on the way to the receiving host.
    pub after: u64,
}

impl Counts {
    pub(crate) fn new() -> Self {
        Self {
            offered: 0,
            delivered: 0,
            duplicated: 0,
            duplicates_delivered: 0,
            queued: 0,
            foreign: 0,
            dropped: [0; Cause::ALL.len()],
            lateness: Histogram::new(),
            departure_error: Histogram::new(),
        }
    }

    /// Counts what was not delivered. Deliveries are counted when they have happened.
    pub(crate) fn count_end(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Queued => self.queued += 1,
            Verdict::Dropped(cause) => {
                let at = Cause::ALL.iter().position(|known| *known == cause);
                self.dropped[at.expect("ALL holds every cause")] += 1;
            }
            Verdict::Delivered { .. } => {}
        }
    }

    /// Counts a delivery that has happened.
    pub(crate) fn count_delivered(&mut self, verdict: Verdict) {
        self.delivered += 1;
        let is_copy = matches!(verdict, Verdict::Delivered { duplicate: true, .. });
        self.duplicates_delivered += u64::from(is_copy);
    }

    /// Packets that came in and are unaccounted for, or that went out without having come in.
    fn missing(&self) -> u64 {
        let came = self.offered + self.duplicated;
        let went = self.delivered + self.queued + self.dropped.iter().sum::<u64>();
        came.abs_diff(went)
    }

    pub(crate) fn totals(
        &self,
        link: &str,
        direction: Direction,
        losses: KernelLosses,
    ) -> LinkTotals {
        let dropped: BTreeMap<_, _> = Cause::ALL
            .iter()
            .zip(self.dropped)
            .filter(|(_, count)| *count > 0)
            .map(|(cause, count)| (words::dropped(*cause), count))
            .collect();
        LinkTotals {
            offered: self.offered,
            delivered: self.delivered,
            dropped,
            queued: self.queued,
            duplicated: self.duplicated,
            duplicates_delivered: Some(self.duplicates_delivered),
            unaccounted: self.missing() + losses.ring + losses.before + losses.after,
            foreign: self.foreign,
            lateness: self.lateness.lateness(),
            departure_error: self.departure_error.lateness(),
            ..LinkTotals::new(link, direction)
        }
    }
}

/// A reason not to use what was measured over a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// One sentence.
    pub because: String,
    /// True if packets were late and nothing else: another try, when the machine is less busy, may do better.
    pub late: bool,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.because)
    }
}

/// Why measurements in this direction must not be used: the emulator itself lost packets, its own bounds were reached, or
/// the 99th percentile of lateness is above its bound ([`lateness_bound`](crate::lateness_bound)). `None` if they may be
/// used.
pub fn fault(totals: &LinkTotals) -> Option<Fault> {
    let of = format!("link {} {}", totals.link, totals.direction);
    let limited = totals.dropped.get(&LinkCause::Limit).copied().unwrap_or(0);
    if totals.unaccounted > 0 {
        let because = format!(
            "{of}: the emulator itself lost {} of {} packets",
            totals.unaccounted, totals.offered
        );
        return Some(Fault { because, late: false });
    }
    if limited > 0 {
        let because = format!("{of}: {limited} packets exceeded the emulator's own bounds");
        return Some(Fault { because, late: false });
    }
    let (p99_us, bound_us) = totals.lateness.p99_us.zip(totals.lateness_bound_us)?;
    let because = format!(
        "{of}: one packet in a hundred left at least {p99_us:.0} µs late; the bound is {bound_us:.0} µs"
    );
    (p99_us > bound_us).then_some(Fault { because, late: true })
}

#[cfg(test)]
mod tests {
    use suiro_link::Corruption;
    use suiro_units::Duration;

    use super::*;

    fn counts() -> Counts {
        let mut counts = Counts::new();
        (counts.offered, counts.duplicated, counts.delivered) = (100, 3, 90);
        for _ in 0..8 {
            counts.count_end(Verdict::Dropped(Cause::Queue));
        }
        (0..5).for_each(|_| counts.count_end(Verdict::Queued));
        counts.lateness.add(Duration::from_micros(10));
        counts
    }

    fn totals(counts: &Counts, losses: KernelLosses) -> LinkTotals {
        let totals = counts.totals("access", Direction::Down, losses);
        LinkTotals { lateness_bound_us: Some(2000.0), ..totals }
    }

    #[test]
    fn what_adds_up_is_valid() {
        let totals = totals(&counts(), KernelLosses::default());
        assert_eq!(
            (totals.unaccounted, totals.dropped[&LinkCause::Queue], totals.queued),
            (0, 8, 5)
        );
        assert_eq!(fault(&totals), None);
    }

    #[test]
    fn copies_that_went_out_are_counted_whether_or_not_a_bit_of_them_is_flipped() {
        let mut counts = Counts::new();
        let flipped = Some(Corruption { byte: 0, bit: 0 });
        for (duplicate, corruption) in [(false, None), (true, None), (true, flipped)] {
            counts.count_delivered(Verdict::Delivered { duplicate, corruption });
        }
        let totals = totals(&counts, KernelLosses::default());
        assert_eq!((totals.delivered, totals.duplicates_delivered), (3, Some(2)));
    }

    #[test]
    fn losses_lateness_and_bounds_invalidate() {
        let found = |counts: &Counts, losses| fault(&totals(counts, losses)).unwrap();
        let say = |counts: &Counts, losses| {
            let fault = found(counts, losses);
            assert!(!fault.late, "{fault}");
            fault.because
        };
        let lost = say(&counts(), KernelLosses { ring: 1, before: 2, after: 4 });
        assert_eq!(lost, "link access down: the emulator itself lost 7 of 100 packets");
        let mut gone = counts();
        gone.delivered -= 1;
        assert!(say(&gone, KernelLosses::default()).contains("lost 1 of 100"));
        let mut late = counts();
        late.lateness.add(Duration::from_micros(2100));
        let late = found(&late, KernelLosses::default());
        assert!(late.late, "nothing else is wrong");
        let late = late.because;
        assert!(late.contains("2100 µs late") && late.contains("the bound is 2000 µs"), "{late}");
        let mut limited = counts();
        limited.offered += 1;
        limited.count_end(Verdict::Dropped(Cause::Limit));
        assert!(say(&limited, KernelLosses::default()).contains("own bounds"));
    }
}
