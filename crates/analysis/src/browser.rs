//! What browsers counted of their own video.

use suiro_record::tables::BrowserRow;
use suiro_record::words::Limitation;
use suiro_units::Duration;

use crate::group::grouped;
use crate::held::{Stretch, distribution, hold};
use crate::view::View;

/// One connection of a browser.
pub(crate) struct Connection<'a> {
    /// The endpoint's name, and the number of the connection if it had several.
    pub name: String,
    /// The periods after the warm-up, each until the next.
    rows: Vec<Stretch<&'a BrowserRow>>,
}

/// The connections of browsers, by endpoint and number.
pub(crate) fn connections<'v>(view: &'v View<'_>) -> Vec<Connection<'v>> {
    let nanos = |row: &BrowserRow| row.t_ns.as_nanos_i64();
    let rows = grouped(&view.records.browser, |row| (&*row.endpoint, row.session), nanos);
    let several = |endpoint: &str| rows.keys().filter(|(name, _)| *name == endpoint).count() > 1;
    let connection = |(&(endpoint, number), rows): (&(&'v str, u64), &Vec<&'v BrowserRow>)| {
        // A period's row is written at its end.
        let begun = |row: &BrowserRow| nanos(row).saturating_sub(row.period_ns.as_nanos_i64());
        let samples = rows.iter().map(|row| (begun(row), *row));
        let last = rows.last().map_or(0, |row| nanos(row));
        let name = match several(endpoint) {
            true => format!("{endpoint}.{number}"),
            false => endpoint.to_owned(),
        };
        Connection { name, rows: view.period.cut(hold(samples, last, view.duration_ns)) }
    };
    rows.iter().map(connection).collect()
}

impl Connection<'_> {
    /// The sum over all periods; `None` if the browser does not count that.
    pub fn total(&self, value: impl Fn(&BrowserRow) -> Option<f64>) -> Option<f64> {
        let known = self.rows.iter().filter_map(|row| value(row.value));
        known.reduce(|sum, value| sum + value)
    }

    /// The sum of `value` over that of `count`; `None` if the browser does not count them, or if there was nothing.
    pub fn ratio(
        &self,
        value: impl Fn(&BrowserRow) -> Option<f64>,
        count: impl Fn(&BrowserRow) -> Option<f64>,
    ) -> Option<f64> {
        let (sum, count) = (self.total(value)?, self.total(count)?);
        (count > 0.0).then(|| sum / count)
    }

    /// Share of the time in which that limited the encoder; `None` of a receiver.
    pub fn limited_ratio(&self, by: Limitation) -> Option<f64> {
        let is_it = |row: &&BrowserRow| Some(f64::from(row.limitation? == by));
        distribution(&self.rows, is_it).mean()
    }

    /// The stretches of what `value` makes of each period, for bins.
    pub fn stretches(
        &self,
        value: impl Fn(&BrowserRow) -> Option<f64>,
    ) -> impl Iterator<Item = Stretch<f64>> {
        self.rows.iter().filter_map(move |row| {
            Some(Stretch { from_ns: row.from_ns, to_ns: row.to_ns, value: value(row.value)? })
        })
    }
}

/// Frames that were encoded or decoded.
pub(crate) fn frames(row: &BrowserRow) -> Option<f64> {
    Some(row.frames as f64)
}

/// How long these took, in milliseconds.
pub(crate) fn coding_ms(row: &BrowserRow) -> Option<f64> {
    Some(row.coding_ns.as_millis_f64())
}

/// Their quantiser parameters, summed.
pub(crate) fn qp(row: &BrowserRow) -> Option<f64> {
    row.qp_sum.map(|sum| sum as f64)
}

/// Frames that left the jitter buffer.
pub(crate) fn buffered(row: &BrowserRow) -> Option<f64> {
    row.jitter_buffer_frames.map(|count| count as f64)
}

/// How long these were in it, in milliseconds.
pub(crate) fn buffered_ms(row: &BrowserRow) -> Option<f64> {
    row.jitter_buffer_ns.map(Duration::as_millis_f64)
}

/// How long they were to be in it, in milliseconds.
pub(crate) fn target_ms(row: &BrowserRow) -> Option<f64> {
    row.jitter_buffer_target_ns.map(Duration::as_millis_f64)
}

/// The mean of one period; `None` if nothing was counted in it.
pub(crate) fn mean(value: Option<f64>, count: Option<f64>) -> Option<f64> {
    let count = count.filter(|count| *count > 0.0)?;
    Some(value? / count)
}

#[cfg(test)]
mod tests {
    use suiro_record::words::FlowRole;
    use suiro_units::Time;

    use super::*;

    const MS: i64 = 1_000_000;

    fn row(frames: u64, qp_sum: Option<u64>, limitation: Option<Limitation>) -> BrowserRow {
        BrowserRow {
            t_ns: Time::from_millis(100),
            endpoint: "camera".into(),
            session: 1,
            role: FlowRole::Sender,
            period_ns: Duration::from_millis(100),
            frames,
            coding_ns: Duration::from_millis(4 * frames),
            key_frames: None,
            qp_sum,
            dropped: None,
            freezes: None,
            freezes_ns: None,
            jitter_buffer_frames: None,
            jitter_buffer_ns: None,
            jitter_buffer_target_ns: None,
            limitation,
        }
    }

    #[test]
    fn means_are_of_frames_and_shares_of_time() {
        let rows = [
            row(3, Some(60), Some(Limitation::None)),
            row(0, Some(0), Some(Limitation::Cpu)),
            row(1, Some(40), Some(Limitation::Cpu)),
        ];
        let times = [(0, 100), (100, 200), (200, 400)];
        let stretch = |((from, to), value)| Stretch { from_ns: from * MS, to_ns: to * MS, value };
        let rows = times.into_iter().zip(&rows).map(stretch).collect();
        let connection = Connection { name: "camera".into(), rows };
        assert_eq!(connection.ratio(qp, frames), Some(25.0));
        assert_eq!(connection.ratio(coding_ms, frames), Some(4.0));
        assert_eq!(connection.ratio(buffered_ms, buffered), None, "a sender has none");
        assert_eq!(connection.limited_ratio(Limitation::Cpu), Some(0.75));
        assert_eq!(connection.limited_ratio(Limitation::Bandwidth), Some(0.0));
        let means: Vec<f64> =
            connection.stretches(|row| mean(qp(row), frames(row))).map(|it| it.value).collect();
        assert_eq!(means, [20.0, 40.0], "a period without frames has no mean");
    }

    #[test]
    fn what_was_not_counted_is_not_zero() {
        let one = row(0, None, None);
        let rows = vec![Stretch { from_ns: 0, to_ns: 100 * MS, value: &one }];
        let connection = Connection { name: "camera".into(), rows };
        assert_eq!(connection.ratio(qp, frames), None);
        assert_eq!(connection.ratio(coding_ms, frames), None, "no frame");
        assert_eq!(connection.total(frames), Some(0.0));
        assert_eq!(connection.limited_ratio(Limitation::Cpu), None);
    }
}
