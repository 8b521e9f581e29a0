//! What is usual for a stream and for the packets of a flow, up to a time: what comes later explains nothing before.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use suiro_record::tables::FrameRow;

use super::since;

/// Frames of a part of a stream: five seconds of 30 per second.
const PART: usize = 150;

/// What is usual for a stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Usual {
    sending: Parts,
    transit: Parts,
    held: Parts,
    age: Parts,
    /// Between captures; the median.
    pub interval_ns: i64,
    /// Encoded; the median.
    pub bytes: i64,
}

/// The usual times of a frame that was captured at a time: the tenth percentile of the part of the stream in which this is
/// least, of the parts before and of its own part so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Times {
    /// From capture to sending.
    pub sending_ns: i64,
    /// From sending to the last byte received.
    pub transit_ns: i64,
    /// From the last byte received to display.
    pub held_ns: i64,
    /// From capture to display.
    pub age_ns: i64,
}

/// What is usual from each frame on, with when that was captured.
#[derive(Debug, Clone, Default)]
struct Parts(Vec<(i64, i64)>);

impl Parts {
    /// Of times of frames, each with when it was captured. One that falls behind has no usual delay as a whole.
    fn of(times: impl Iterator<Item = (i64, i64)>) -> Self {
        let (mut usual, mut least) = (Vec::new(), i64::MAX);
        let mut part: Vec<i64> = Vec::new();
        for (captured_ns, ns) in times {
            part.insert(part.partition_point(|other| *other < ns), ns);
            let tenth = part[part.len() / 10];
            // The first frames of a part are too few to be usual, except for those of the first part.
            let own = if part.len() >= PART / 5 { tenth } else { i64::MAX };
            let so_far = if least == i64::MAX { tenth } else { least.min(own) };
            usual.push((captured_ns, so_far));
            if part.len() == PART {
                least = least.min(tenth);
                part.clear();
            }
        }
        Self(usual)
    }

    /// Before the first frame, that of the first.
    fn at(&self, t_ns: i64) -> i64 {
        let after = self.0.partition_point(|(from, _)| *from <= t_ns);
        self.0.get(after.saturating_sub(1)).map_or(0, |(_, ns)| *ns)
    }
}

impl Usual {
    /// Of frames in the order of capture, each with when that was.
    pub fn of<'r>(frames: impl Iterator<Item = (i64, &'r FrameRow)>) -> Self {
        let frames: Vec<(i64, &FrameRow)> = frames.collect();
        let parts = |of: &dyn Fn(&FrameRow) -> Option<i64>| {
            Parts::of(frames.iter().filter_map(|(captured, row)| Some((*captured, of(row)?))))
        };
        let mut apart: Vec<i64> =
            frames.windows(2).map(|pair| since(pair[1].0, pair[0].0)).collect();
        apart.sort_unstable();
        let mut bytes: Vec<i64> = frames.iter().filter_map(|(_, row)| row.encoded_bytes).collect();
        bytes.sort_unstable();
        Self {
            sending: parts(&|row| Some(since(row.sent_ns?, row.captured_ns?))),
            transit: parts(&|row| Some(since(row.received_ns?, row.sent_ns?))),
            held: parts(&|row| Some(since(row.displayed_ns?, row.received_ns?))),
            age: parts(&|row| Some(since(row.displayed_ns?, row.captured_ns?))),
            interval_ns: apart.get(apart.len() / 2).copied().unwrap_or(0),
            bytes: bytes.get(bytes.len() / 2).copied().unwrap_or(0),
        }
    }

    /// What was usual when a frame was captured.
    pub fn at(&self, t_ns: i64) -> Times {
        let [sending_ns, transit_ns, held_ns, age_ns] =
            [&self.sending, &self.transit, &self.held, &self.age].map(|parts| parts.at(t_ns));
        Times { sending_ns, transit_ns, held_ns, age_ns }
    }

    /// What was usual at the end: the least of all parts.
    pub fn least(&self) -> Times {
        self.at(i64::MAX)
    }
}

/// How long the packets of a flow usually take on a link after their service: the tenth percentile of those that came up to the
/// end of a second.
#[derive(Debug, Clone, Default)]
pub(super) struct Delays(Vec<i64>);

impl Delays {
    const SECOND_NS: i64 = 1_000_000_000;

    /// Of times in the order in which packets came, each with when that was.
    pub fn of(times: impl Iterator<Item = (i64, i64)>) -> Self {
        let mut seconds: Vec<i64> = Vec::new();
        // The lowest tenth, and the others; the least of the others is the tenth percentile.
        let (mut low, mut high) = (BinaryHeap::new(), BinaryHeap::new());
        for (t_ns, ns) in times {
            match low.peek() {
                Some(most) if ns < *most => low.push(ns),
                _ => high.push(Reverse(ns)),
            }
            let tenth = (low.len() + high.len()) / 10;
            while low.len() > tenth {
                high.extend(low.pop().map(Reverse));
            }
            while low.len() < tenth {
                low.extend(high.pop().map(|Reverse(ns)| ns));
            }
            let usual = high.peek().map_or(0, |Reverse(ns)| *ns);
            let second = usize::try_from(t_ns.max(0) / Self::SECOND_NS).unwrap_or(0);
            match seconds.last().copied() {
                Some(before) => seconds.resize(seconds.len().max(second + 1), before),
                None => seconds.resize(second + 1, usual),
            }
            seconds[second] = usual;
        }
        Self(seconds)
    }

    pub fn at(&self, t_ns: i64) -> i64 {
        let second = usize::try_from(t_ns.max(0) / Self::SECOND_NS).unwrap_or(usize::MAX);
        let last = self.0.len().saturating_sub(1);
        self.0.get(second.min(last)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;
    const MS: i64 = 1_000_000;

    #[test]
    fn what_comes_later_is_not_usual_before() {
        // A packet each 10 ms: 250 ms, and 20 ms from 50 s on.
        let fallen = |n: i64| (n * 10 * MS, if n < 5000 { 250 * MS } else { 20 * MS });
        let delays = Delays::of((0..10_000).map(fallen));
        assert_eq!([0, 49 * S, 99 * S].map(|at| delays.at(at)), [250, 250, 20].map(|ms| ms * MS));
        // The other way round, 20 ms were usual and are.
        let risen = |n: i64| (n * 10 * MS, if n < 5000 { 20 * MS } else { 250 * MS });
        let delays = Delays::of((0..10_000).map(risen));
        assert_eq!([0, 50 * S, 99 * S].map(|at| delays.at(at)), [20 * MS; 3]);
        // Seconds without packets are like the one before, those before the first like that.
        let delays = Delays::of([(3 * S, 7), (9 * S, 8)].into_iter());
        assert_eq!([0, 3 * S, 5 * S, 9 * S, 99 * S].map(|at| delays.at(at)), [7; 5]);
        assert_eq!(Delays::default().at(5), 0);
    }

    #[test]
    fn the_tenth_percentile_is_that_of_all_sorted() {
        let times: Vec<i64> = (0..997).map(|n| n * 7919 % 1009).collect();
        for count in [1, 9, 10, 11, 500, 997] {
            let mut sorted = times[..count].to_vec();
            sorted.sort_unstable();
            let found = Delays::of(times[..count].iter().map(|ns| (0, *ns)));
            assert_eq!(found.at(0), sorted[count / 10], "{count}");
        }
    }

    #[test]
    fn a_frame_is_compared_with_those_before_it() {
        let of = |ms: fn(i64) -> i64| Parts::of((0..450).map(move |n| (n * 33 * MS, ms(n))));
        let fallen = of(|n| if n < 100 { 250 } else { 20 });
        assert_eq!([0, 3 * S, 6 * S, 14 * S].map(|at| fallen.at(at)), [250, 250, 20, 20]);
        let risen = of(|n| if n < 100 { 20 } else { 250 });
        assert_eq!([0, 3 * S, 6 * S, 14 * S].map(|at| risen.at(at)), [20; 4]);
        // Single frames of a later part that are faster are not usual.
        let single = of(|n| if n == 151 { 20 } else { 250 });
        assert_eq!([4 * S, 6 * S, 14 * S].map(|at| single.at(at)), [250; 3]);
    }
}
