//! Many players in one figure: what most of them had.

/// Players that are drawn each by itself; of more only the mean.
pub(crate) const DRAWN_MAX: usize = 4;

/// The mean of those that are known; `None` if none is.
pub(crate) fn mean(each: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = each.iter().copied().flatten().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// The mean of several series, bin by bin over those that have a value there.
pub(crate) fn means(each: impl Iterator<Item = Vec<Option<f64>>>) -> Vec<Option<f64>> {
    let mut sums: Vec<(Option<f64>, u32)> = Vec::new();
    for values in each {
        sums.resize(sums.len().max(values.len()), (None, 0));
        for ((sum, count), value) in sums.iter_mut().zip(values) {
            if let Some(value) = value {
                *sum = Some(sum.unwrap_or(0.0) + value);
                *count += 1;
            }
        }
    }
    sums.into_iter().map(|(sum, count)| sum.map(|sum| sum / f64::from(count))).collect()
}

/// When at least half of `of` players stalled, from all their spans; sorted, none meets another.
pub(crate) fn mostly(spans: impl Iterator<Item = (i64, i64)>, of: usize) -> Vec<(i64, i64)> {
    let mut edges: Vec<(i64, i32)> =
        spans.filter(|(from, to)| from < to).flat_map(|(from, to)| [(from, 1), (to, -1)]).collect();
    edges.sort_unstable();
    let half = i32::try_from(of.div_ceil(2).max(1)).unwrap_or(i32::MAX);
    let mut found: Vec<(i64, i64)> = Vec::new();
    let (mut still, mut since) = (0, None);
    for (at, step) in edges {
        still += step;
        match since {
            None if still >= half => since = Some(at),
            Some(from) if still < half => {
                since = None;
                match found.last_mut() {
                    // One stalled as another went on.
                    Some(last) if last.1 == from => last.1 = at,
                    _ if from < at => found.push((from, at)),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_over_those_that_have_a_value() {
        let first = vec![Some(1.0), None, Some(4.0), None];
        let all = means([first, vec![Some(3.0), Some(5.0), None, None]].into_iter());
        assert_eq!(all, [Some(2.0), Some(5.0), Some(4.0), None]);
        assert_eq!(mean(&all), Some(11.0 / 3.0));
        assert_eq!(mean(&[None]), None);
    }

    #[test]
    fn half_of_them_must_stand_still() {
        let spans = [(0, 10), (5, 15), (10, 20), (30, 40)];
        let mostly = |of| mostly(spans.into_iter(), of);
        assert_eq!(mostly(1), [(0, 20), (30, 40)]);
        assert_eq!(mostly(2), [(0, 20), (30, 40)]);
        assert_eq!(mostly(4), [(5, 15)]);
        assert!(mostly(8).is_empty());
    }
}
