//! When a flow is there: from its first packet to its last, without the pauses of video.

use crate::competing::Kind;

/// GoP times in a row without a packet that are an absence. Less is a flow that was held up.
const ABSENT: usize = 5;

/// For each GoP time, whether a flow with these rates is there. TCP without packets has not paused: it waits for its turn, unless
/// none follow.
pub(crate) fn present(rates: &[f64], kind: Kind) -> Vec<bool> {
    let mut present = vec![true; rates.len()];
    let mut at = 0;
    for run in rates.chunk_by(|a, b| (*a > 0.0) == (*b > 0.0)) {
        let (from, to) = (at, at + run.len());
        at = to;
        let is_pause = kind == Kind::Video || to == rates.len();
        if run[0] <= 0.0 && (from == 0 || run.len() >= ABSENT && is_pause) {
            present[from..to].fill(false);
        }
    }
    present
}

/// The GoP times from which on other flows are there than before, of the first `count`; the first one is none of them.
pub(crate) fn changes<'a>(count: usize, flows: impl Iterator<Item = &'a [bool]>) -> Vec<usize> {
    let flows: Vec<&[bool]> = flows.collect();
    let differs = |gop: &usize| flows.iter().any(|present| present[gop - 1] != present[*gop]);
    (1..count).filter(differs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: [f64; 17] = [0., 0., 1., 0., 0., 0., 0., 1., 0., 0., 0., 0., 0., 1., 0., 0., 0.];

    /// The GoP times of a flow's absence.
    fn absent(rates: &[f64], kind: Kind) -> Vec<usize> {
        let present = present(rates, kind);
        (0..rates.len()).filter(|gop| !present[*gop]).collect()
    }

    #[test]
    fn five_gop_times_without_a_packet_are_a_pause_of_video() {
        assert_eq!(absent(&RATES, Kind::Video), [0, 1, 8, 9, 10, 11, 12]);
        assert_eq!(absent(&RATES, Kind::Tcp), [0, 1], "TCP does not pause");
        let ends: Vec<f64> = RATES.iter().copied().chain([0.0, 0.0]).collect();
        assert_eq!(absent(&ends, Kind::Tcp), [0, 1, 14, 15, 16, 17, 18], "none follow");
        assert_eq!(absent(&[], Kind::Video), [0; 0]);
    }

    #[test]
    fn changes_are_arrivals_and_departures_of_any_flow() {
        let (video, tcp) = (present(&RATES, Kind::Video), present(&RATES, Kind::Tcp));
        assert_eq!(changes(17, [&*video, &*tcp].into_iter()), [2, 8, 13]);
    }
}
