//! The rates of links that send at the moments of a trace: without the rounding to whole packets.

/// What a moment of a trace sends at most: a packet (Mahimahi's format).
const OPPORTUNITY_BITS: f64 = 1500.0 * 8.0;

/// A span of time with its rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub from_ns: i64,
    pub to_ns: i64,
    pub bps: f64,
}

impl Span {
    fn opportunities(&self) -> f64 {
        self.bps * (self.to_ns.saturating_sub(self.from_ns)) as f64 / 1e9 / OPPORTUNITY_BITS
    }
}

/// From when on which rate, neighbours of one rate joined. If each span has a whole number of packets, neighbours count as one
/// rate as long as one packet more or less is all that it does not explain. A steady 300 kbit/s has two and three packets in
/// tenths of a second, and 80 kbit/s has none in every third.
pub(super) fn without_rounding(spans: &[Span]) -> Vec<(i64, f64)> {
    let counts: Vec<f64> = spans.iter().map(Span::opportunities).collect();
    let is_whole = |count: &f64| (count - count.round()).abs() < 1e-3;
    // The last span may be shorter than the others, which a rate of bits does not show.
    let whole = counts.len().saturating_sub(1);
    let is_steady = spans.windows(2).all(|pair| pair[0].bps == pair[1].bps);
    let mut rates: Vec<(i64, f64)> = Vec::new();
    if is_steady || !counts[..whole].iter().all(is_whole) {
        rates.extend(spans.iter().map(|span| (span.from_ns, span.bps)));
    } else {
        let mut first = 0;
        while first < spans.len() {
            let end = first + of_one_rate(&counts[first..]);
            let sum: f64 = counts[first..end].iter().sum();
            let length = spans[end - 1].to_ns.saturating_sub(spans[first].from_ns);
            rates.push((spans[first].from_ns, sum * OPPORTUNITY_BITS * 1e9 / length.max(1) as f64));
            first = end;
        }
    }
    rates.dedup_by(|next, before| next.1 == before.1);
    rates
}

/// How many of the first spans have one rate: from their beginning on, it and the sum of packets differ by at most one packet.
fn of_one_rate(counts: &[f64]) -> usize {
    let (mut least, mut most, mut sum) = (0.0f64, f64::INFINITY, 0.0);
    for (index, count) in counts.iter().enumerate() {
        sum += count;
        let so_far = (index + 1) as f64;
        least = least.max((sum - 1.0) / so_far);
        most = most.min((sum + 1.0) / so_far);
        if least > most + 1e-9 {
            // It changed when the first of the last spans came that are alike.
            let alike = counts[..index].iter().rev().take_while(|it| *it == count).count();
            return (index - alike).max(1);
        }
    }
    counts.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(counts: &[i64]) -> Vec<Span> {
        let span = |(at, count): (usize, &i64)| {
            let from_ns = at as i64 * 100_000_000;
            Span { from_ns, to_ns: from_ns + 100_000_000, bps: *count as f64 * 120_000.0 }
        };
        counts.iter().enumerate().map(span).collect()
    }

    fn kbps(counts: &[i64]) -> Vec<(i64, i64)> {
        let rates = without_rounding(&spans(counts)).into_iter();
        rates.map(|(at, bps)| (at / 100_000_000, (bps / 1e3).round() as i64)).collect()
    }

    #[test]
    fn a_steady_trace_has_one_rate() {
        let of = |packets: i64, spans: i64| -> Vec<i64> {
            let until = |n: i64| n * packets / spans;
            (0..600).map(|n| until(n + 1) - until(n)).collect()
        };
        assert_eq!(kbps(&of(5, 2)), [(0, 300)]);
        assert_eq!(kbps(&of(2, 3)), [(0, 80)]);
        assert_eq!(kbps(&of(1, 1)), [(0, 120)]);
    }

    #[test]
    fn a_trace_that_changes_changes_when_it_does() {
        let counts = [[2, 3].repeat(20), vec![0; 10], vec![50; 10], vec![10; 10]].concat();
        assert_eq!(kbps(&counts), [(0, 300), (40, 0), (50, 6000), (60, 1200)]);
        // Rates of links without a trace that happen to be whole.
        let counts = [vec![2; 40], vec![1; 40]].concat();
        assert_eq!(kbps(&counts), [(0, 240), (40, 120)]);
    }

    #[test]
    fn other_rates_remain_as_they_are() {
        let mut rates = spans(&[2, 3, 0]);
        rates[1].bps = 1e6;
        let found: Vec<f64> = without_rounding(&rates).into_iter().map(|(_, bps)| bps).collect();
        assert_eq!(found, [240_000.0, 1e6, 0.0]);
        assert!(without_rounding(&[]).is_empty());
    }
}
