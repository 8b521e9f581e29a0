//! Many players in one figure: what most of them had.

use crate::timeline::Series;

/// Players that are drawn each by itself; of more only the mean.
pub(crate) const DRAWN_MAX: usize = 4;

/// The mean of the series of one name, bin by bin over those that have a value there.
pub(crate) fn means(each: Vec<Series>) -> Vec<Series> {
    let mut means: Vec<(Series, Vec<u32>)> = Vec::new();
    for series in each {
        let Some((sum, counts)) = means.iter_mut().find(|(sum, _)| sum.name == series.name) else {
            let counts = series.values.iter().map(|value| u32::from(value.is_some())).collect();
            means.push((series, counts));
            continue;
        };
        for ((sum, count), value) in sum.values.iter_mut().zip(counts).zip(series.values) {
            if let Some(value) = value {
                *sum = Some(sum.unwrap_or(0.0) + value);
                *count += 1;
            }
        }
    }
    for (series, counts) in &mut means {
        series.label.push_str(", mean");
        for (value, count) in series.values.iter_mut().zip(counts) {
            *value = value.map(|sum| sum / f64::from(*count));
        }
    }
    means.into_iter().map(|(series, _)| series).collect()
}

/// When at least half of `of` players stood still, from all their spans; sorted, none meets another.
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
                    // One began to stand still as another went on.
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
    use crate::timeline::{Panel, Style};

    fn series(values: &[Option<f64>]) -> Series {
        Series {
            name: "player.latency_ms".into(),
            panel: Panel::Latency,
            label: "latency".into(),
            unit: "ms",
            style: Style::Line,
            doc: "",
            values: values.to_vec(),
        }
    }

    #[test]
    fn means_are_over_those_that_have_a_value() {
        let all = means(vec![
            series(&[Some(1.0), None, Some(4.0), None]),
            series(&[Some(3.0), Some(5.0), None, None]),
        ]);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].values, [Some(2.0), Some(5.0), Some(4.0), None]);
        assert_eq!(all[0].label, "latency, mean");
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
