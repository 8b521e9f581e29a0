//! What waited in the senders of a stream, by their own rows.

use std::ops::RangeInclusive;

/// Rows in order of time.
#[derive(Default)]
pub(super) struct Queues<'v> {
    /// Bytes that waited for QUIC's congestion window, in the sender and in relays, each with its endpoint.
    window: Vec<(i64, &'v str, i64)>,
    /// Bytes that waited in the sender for its pacer.
    pacer: Vec<(i64, i64)>,
}

/// Those of a stretch of time.
fn within<T>(rows: &[T], during: RangeInclusive<i64>, t_ns: impl Fn(&T) -> i64) -> &[T] {
    let rest = &rows[rows.partition_point(|row| t_ns(row) < *during.start())..];
    &rest[..rest.partition_point(|row| t_ns(row) <= *during.end())]
}

impl<'v> Queues<'v> {
    pub fn of(mut window: Vec<(i64, &'v str, i64)>, mut pacer: Vec<(i64, i64)>) -> Self {
        window.sort_by_key(|(t_ns, ..)| *t_ns);
        pacer.sort_by_key(|(t_ns, _)| *t_ns);
        Self { window, pacer }
    }

    pub fn window(&self, during: RangeInclusive<i64>) -> &[(i64, &'v str, i64)] {
        within(&self.window, during, |(t_ns, ..)| *t_ns)
    }

    pub fn pacer(&self, during: RangeInclusive<i64>) -> &[(i64, i64)] {
        within(&self.pacer, during, |(t_ns, _)| *t_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_stretch_are_found_in_any_order() {
        let queues =
            Queues::of(vec![(30, "b", 3), (10, "a", 1), (20, "a", 2)], vec![(5, 9), (4, 8)]);
        assert_eq!(queues.window(10..=20), [(10, "a", 1), (20, "a", 2)]);
        assert_eq!(queues.window(31..=40), []);
        assert_eq!(queues.window(i64::MIN..=i64::MAX).len(), 3);
        assert_eq!(queues.pacer(0..=4), [(4, 8)]);
        let ends_before_it_begins = RangeInclusive::new(6, 5);
        assert_eq!(queues.pacer(ends_before_it_begins), []);
    }
}
