//! Pages of the web: what those had who loaded them.

use suiro_record::tables::PageRow;

use crate::period::Period;
use crate::stats::Distribution;
use crate::view::View;

/// All pages of all people that were begun within the period.
pub(crate) struct Web<'a> {
    pages: Vec<&'a PageRow>,
    period: Period,
}

impl<'a> Web<'a> {
    /// `None` if no page was loaded.
    pub fn of(view: &View<'a>) -> Option<Self> {
        let pages = view.within(&view.records.pages, |row| row.t_ns);
        (!pages.is_empty()).then_some(Self { pages, period: view.period })
    }

    /// Pages that were there, whole, within the trial, and when.
    fn loaded(&self) -> impl Iterator<Item = (&PageRow, i64)> {
        let pages = self.pages.iter().filter_map(|row| Some((*row, row.done_ns?)));
        pages.filter(|(_, done_ns)| *done_ns <= self.period.to_ns)
    }

    pub fn count(&self) -> f64 {
        self.loaded().count() as f64
    }

    pub fn unfinished(&self) -> f64 {
        self.pages.len() as f64 - self.count()
    }

    pub fn connections(&self) -> f64 {
        self.loaded().map(|(row, _)| row.connections as f64).sum()
    }

    pub fn load_s(&self) -> Distribution {
        let times = self.loaded().map(|(row, done_ns)| done_ns.saturating_sub(row.t_ns));
        Distribution::equal(times.map(|ns| ns as f64 / 1e9))
    }

    pub fn rate_bps(&self) -> f64 {
        let bytes: f64 = self.pages.iter().map(|row| row.body_bytes as f64).sum();
        bytes * 8e9 / self.period.length_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(begun_s: i64, took_s: Option<i64>) -> PageRow {
        let done_ns = took_s.map(|took| (begun_s + took) * 1_000_000_000);
        PageRow {
            t_ns: begun_s * 1_000_000_000,
            endpoint: "readers".into(),
            user: 1,
            page: 1,
            objects: 8,
            page_bytes: 1_000_000,
            connections: 6,
            body_bytes: 1_000_000,
            done_ns,
            error: done_ns.is_none().then(|| "the trial ended first".into()),
        }
    }

    #[test]
    fn by_hand() {
        let pages = [page(0, Some(1)), page(1, Some(2)), page(4, Some(4)), page(9, None)];
        let late = [page(8, Some(5)), page(11, Some(1))];
        let pages: Vec<_> =
            pages.iter().chain(&late).filter(|row| row.t_ns < 10_000_000_000).collect();
        let web = Web { pages, period: Period { from_ns: 0, to_ns: 10_000_000_000 } };
        assert_eq!((web.count(), web.unfinished(), web.connections()), (3.0, 2.0, 18.0));
        assert_eq!(web.load_s().percentile(0.5), Some(2.0));
        assert_eq!(web.load_s().percentile(0.95), Some(4.0));
        // 5 pages of 8 Mbit in 10 s.
        assert_eq!(web.rate_bps(), 4e6);
    }
}
