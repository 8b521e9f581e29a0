//! What a heartbeat finds, pure: it is handed the time of each look.

use suiro_record::Text;
use suiro_record::tables::LatenessRow;
use suiro_record::words::LatenessSource;
use suiro_units::{Duration, Time};

/// From one beat to the next.
pub const BEAT: Duration = Duration::from_millis(10);
/// The least time without a look that counts as an absence. Shorter ones are hidden by the refresh of a screen.
pub const ABSENT: Duration = Duration::from_millis(50);
/// How long a row of the table is; an absence ends it earlier.
const PERIOD: Duration = Duration::from_secs(1);
/// Most rows of the table: more than a day. What is later is part of the last one.
const ROWS_MAX: usize = 100_000;
/// Most absences that are kept for whoever asks; of more, the oldest are dropped.
const ABSENCES_MAX: usize = 1_000;

/// A time at which the endpoint did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absence {
    /// When it was last seen before.
    pub from: Time,
    /// When it was seen again.
    pub to: Time,
}

impl Absence {
    /// How long it was.
    pub fn duration(&self) -> Duration {
        self.to.saturating_since(self.from)
    }
}

/// Looks, absences and periods.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The last look; `None` unless a heartbeat is kept.
    last: Option<Time>,
    /// The period under way; `None` before the endpoint is ready.
    period: Option<Period>,
    over: Vec<Period>,
    absences: Vec<Absence>,
}

#[derive(Debug, Clone, Copy)]
struct Period {
    began: Time,
    ended: Time,
    beats: u64,
    late: Duration,
    worst: Absence,
}

impl Period {
    const fn new(began: Time) -> Self {
        let worst = Absence { from: began, to: began };
        Self { began, ended: began, beats: 0, late: Duration::ZERO, worst }
    }

    fn row(&self, endpoint: &Text) -> LatenessRow {
        LatenessRow {
            t_ns: self.ended,
            endpoint: endpoint.clone(),
            source: LatenessSource::Heartbeat,
            period_ns: self.ended.saturating_since(self.began),
            looks: self.beats,
            mean_ns: self.late.as_nanos().checked_div(self.beats).map(Duration::from_nanos),
            worst_ns: self.worst.duration(),
            worst_from_ns: self.worst.from,
            stopped: false,
        }
    }
}

impl Tally {
    /// A heartbeat is kept from now on.
    pub fn keep(&mut self, now: Time) {
        self.last = Some(now);
    }

    /// The endpoint is ready.
    pub fn begin(&mut self, now: Time) {
        self.period.get_or_insert(Period::new(now));
        self.last = self.last.map(|last| last.max(now));
    }

    /// A beat that was due at `due`.
    pub fn beat(&mut self, now: Time, due: Time) {
        if let Some(period) = &mut self.period {
            period.beats += 1;
            period.late += now.saturating_since(due);
        }
        self.look(now);
    }

    /// The endpoint runs.
    pub fn look(&mut self, now: Time) {
        let (Some(last), Some(period)) = (self.last, &mut self.period) else {
            self.last = self.last.map(|_| now);
            return;
        };
        self.last = Some(now.max(last));
        let absence = Absence { from: last, to: now };
        if absence.duration() > period.worst.duration() {
            period.worst = absence;
        }
        let absent = absence.duration() >= ABSENT;
        if absent {
            if self.absences.len() == ABSENCES_MAX {
                self.absences.remove(0);
            }
            self.absences.push(absence);
        }
        if absent || now >= period.began + PERIOD {
            self.close(now);
        }
    }

    /// The endpoint has ended.
    pub fn end(&mut self, now: Time) {
        self.look(now);
        self.close(now);
        (self.last, self.period) = (None, None);
    }

    pub fn take_absences(&mut self) -> Vec<Absence> {
        std::mem::take(&mut self.absences)
    }

    pub fn rows(&self, endpoint: &Text) -> Vec<LatenessRow> {
        self.over.iter().map(|period| period.row(endpoint)).collect()
    }

    /// Ends the period.
    fn close(&mut self, now: Time) {
        let Some(mut period) = self.period.take() else { return };
        period.ended = now;
        let full = self.over.len() == ROWS_MAX;
        match self.over.last_mut() {
            Some(last) if full => {
                last.ended = now;
                last.beats += period.beats;
                last.late += period.late;
                if period.worst.duration() > last.worst.duration() {
                    last.worst = period.worst;
                }
            }
            _ if now > period.began => self.over.push(period),
            _ => {}
        }
        self.period = Some(Period::new(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    /// A tally of a heartbeat from 0 that beat at these times, each due [`BEAT`] after the one before.
    fn tally(beats: impl IntoIterator<Item = u64>) -> Tally {
        let mut tally = Tally::default();
        tally.keep(ms(0));
        tally.begin(ms(0));
        let mut before = ms(0);
        for at in beats {
            tally.beat(ms(at), before + BEAT);
            before = ms(at);
        }
        tally
    }

    #[test]
    fn an_even_beat_has_a_row_a_second_and_no_absence() {
        let mut tally = tally((1..=250).map(|n| 10 * n));
        assert_eq!(tally.take_absences(), []);
        tally.end(ms(2500));
        let rows = tally.rows(&"origin".into());
        let facts: Vec<_> = rows.iter().map(|row| (row.t_ns, row.looks, row.worst_ns)).collect();
        let beat = BEAT;
        assert_eq!(facts, [(ms(1000), 100, beat), (ms(2000), 100, beat), (ms(2500), 50, beat)]);
        assert_eq!(rows[0].mean_ns, Some(Duration::ZERO));
    }

    #[test]
    fn a_stop_of_three_seconds_is_one_row_that_says_from_when_to_when() {
        let mut tally = tally([10, 20, 3020, 3030]);
        assert_eq!(tally.take_absences(), [Absence { from: ms(20), to: ms(3020) }]);
        tally.end(ms(3040));
        let rows = tally.rows(&"origin".into());
        assert_eq!(rows.len(), 2, "the row ends with the stop");
        assert_eq!((rows[0].worst_from_ns, rows[0].worst_ns), (ms(20), Duration::from_secs(3)));
        assert_eq!(rows[0].t_ns, ms(3020));
        assert_eq!(rows[1].worst_ns, BEAT);
    }

    #[test]
    fn each_of_several_stops_has_its_row() {
        let mut tally = tally([10, 130, 140, 260]);
        tally.end(ms(270));
        let rows = tally.rows(&"origin".into());
        let worst: Vec<_> = rows.iter().map(|row| row.worst_from_ns).collect();
        assert_eq!(worst[..2], [ms(10), ms(140)]);
    }

    #[test]
    fn what_is_before_ready_does_not_count() {
        let mut tally = Tally::default();
        tally.keep(ms(0));
        tally.beat(ms(900), ms(10));
        tally.begin(ms(1500));
        tally.beat(ms(1510), ms(910));
        assert_eq!(tally.take_absences(), []);
        tally.end(ms(1520));
        assert_eq!(tally.rows(&"x".into())[0].worst_ns, BEAT);
    }

    #[test]
    fn the_table_is_bounded() {
        let seconds = ROWS_MAX as u64 + 5;
        let mut tally = Tally::default();
        tally.keep(ms(0));
        tally.begin(ms(0));
        (1..=seconds).for_each(|second| tally.look(ms(1000 * second)));
        let rows = tally.rows(&"x".into());
        assert_eq!(rows.len(), ROWS_MAX);
        assert_eq!(rows.last().map(|row| row.t_ns), Some(ms(1000 * seconds)));
        assert_eq!(tally.take_absences().len(), ABSENCES_MAX);
    }
}
