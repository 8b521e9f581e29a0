//! When a flow is there: from its first packet until its sender stops, without the pauses of video.
//!
//! The sender counts, not the packets that arrive: a flow that others starve is there, with a rate of 0.

use std::ops::Range;

use crate::backlog::Backlog;
use crate::flow::{Flow, Over};

/// A GoP time: 30 frames at 30000/1001 per second.
pub(crate) const GOP_NS: i64 = 1_001_000_000;

/// A longer silence of a sender is an absence. A shorter one is that of a flow that was held up.
const ABSENT_NS: i64 = 5 * GOP_NS;

/// When a flow is there, within a trial that ends at `end_ns`: as its sender has it, later by the least time that packets
/// take, and until the last packet has been delivered. `pauses` are those of the video on a connection, whose reports and
/// acknowledgements go on.
pub(crate) fn spans(
    flow: &Flow,
    backlog: Option<&Backlog>,
    pauses: &[Range<i64>],
    end_ns: i64,
) -> Vec<Range<i64>> {
    let falls_silent = flow.over == Over::Rtp;
    let mut spans = at_sender(flow.sent(), backlog, falls_silent, end_ns);
    let transit_ns = flow.transit_ns();
    for span in &mut spans {
        span.start = span.start.saturating_add(transit_ns).min(end_ns);
        span.end = span.end.saturating_add(transit_ns).min(end_ns);
    }
    let begins: Vec<i64> = spans.iter().map(|span| span.start).skip(1).chain([end_ns]).collect();
    for (span, next) in spans.iter_mut().zip(begins) {
        let last = flow.media().filter(|t_ns| (span.start..next).contains(t_ns)).max();
        span.end = span.end.max(last.map_or(0, |last| last.saturating_add(1)));
    }
    without(spans, pauses, transit_ns)
}

/// What is left of spans outside of pauses of the sender, which come later by a time.
fn without(mut spans: Vec<Range<i64>>, pauses: &[Range<i64>], transit_ns: i64) -> Vec<Range<i64>> {
    for pause in pauses {
        let [from, to] = [pause.start, pause.end].map(|at| at.saturating_add(transit_ns));
        let parts = |it: Range<i64>| [it.start..it.end.min(from), it.start.max(to)..it.end];
        spans = spans.into_iter().flat_map(parts).filter(|part| !part.is_empty()).collect();
    }
    spans
}

/// The same at the sender: `sent` is when it sent packets, sorted. Without a backlog, a silence until the end counts as an end
/// if it is long. `pauses`: whether it may do so by itself; a connection that is silent in between waits for its turn.
fn at_sender(
    sent: &[i64],
    backlog: Option<&Backlog>,
    pauses: bool,
    end_ns: i64,
) -> Vec<Range<i64>> {
    let Some(&begin) = sent.first() else { return Vec::new() };
    let busy = backlog.map_or(&[][..], |backlog| &backlog.times);
    let busy = busy.iter().map(|time| time.start.max(begin)..time.end.min(end_ns));
    let packets = sent.iter().map(|t_ns| *t_ns..t_ns.saturating_add(1));
    let mut signs: Vec<Range<i64>> = packets.chain(busy.filter(|time| !time.is_empty())).collect();
    signs.sort_by_key(|sign| sign.start);
    let mut spans: Vec<Range<i64>> = Vec::new();
    for sign in signs {
        match spans.last_mut() {
            Some(last) if !pauses || sign.start.saturating_sub(last.end) <= ABSENT_NS => {
                last.end = last.end.max(sign.end);
            }
            _ => spans.push(sign),
        }
    }
    if backlog.is_none()
        && let Some(last) = spans.last_mut()
        && end_ns.saturating_sub(last.end) <= ABSENT_NS
    {
        last.end = end_ns;
    }
    spans
}

/// In which of the first `count` GoP times from `begin_ns` on a flow is there.
pub(crate) fn in_gops(spans: &[Range<i64>], begin_ns: i64, count: usize) -> Vec<bool> {
    let mut present = vec![false; count];
    let place = |t_ns: i64| {
        let place = t_ns.saturating_sub(begin_ns).div_euclid(GOP_NS);
        usize::try_from(place.max(0)).unwrap_or(usize::MAX).min(count)
    };
    for span in spans.iter().filter(|span| span.end > begin_ns) {
        let (first, last) = (place(span.start), place(span.end.saturating_sub(1)));
        present[first..last.saturating_add(1).min(count)].fill(true);
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

    /// The GoP times of a flow's absence, of 21: it sends in the middle of these.
    fn absent(sent: &[i64], backlog: Option<&[Range<i64>]>, pauses: bool) -> Vec<usize> {
        let sent: Vec<i64> = sent.iter().map(|gop| gop * GOP_NS + GOP_NS / 2).collect();
        let times = |gops: &Range<i64>| gops.start * GOP_NS..gops.end * GOP_NS;
        let backlog = backlog
            .map(|gops| Backlog { times: gops.iter().map(times).collect(), ..Backlog::default() });
        let spans = at_sender(&sent, backlog.as_ref(), pauses, 21 * GOP_NS);
        let present = in_gops(&spans, 0, 21);
        (0..21).filter(|gop| !present[*gop]).collect()
    }

    #[test]
    fn a_silence_of_more_than_five_gop_times_is_a_pause_of_video() {
        let sent = [2, 7, 13, 16];
        assert_eq!(absent(&sent, None, true), [0, 1, 8, 9, 10, 11, 12]);
        assert_eq!(absent(&sent, None, false), [0, 1], "a connection does not pause");
        assert_eq!(absent(&sent[..3], None, false), [0, 1, 14, 15, 16, 17, 18, 19, 20], "the end");
        assert_eq!(absent(&[], None, true), (0..21).collect::<Vec<_>>());
        assert_eq!(in_gops(&[], 0, 0), [false; 0]);
    }

    #[test]
    fn a_sender_with_data_has_neither_paused_nor_ended() {
        let sent = [2, 13];
        let held = |gops: Range<i64>| absent(&sent, Some(&[gops]), true);
        assert_eq!(held(3..13), [0, 1, 14, 15, 16, 17, 18, 19, 20], "blocked, then ended");
        assert_eq!(held(14..21), [0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], "a pause, then blocked");
        assert_eq!(held(0..2), [0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18, 19, 20]);
        // Of a sender with a table, a silence of two GoP times at the end is the end.
        assert_eq!(absent(&[0, 18], Some(&[]), false), [19, 20]);
        assert_eq!(absent(&[0, 18], None, false), [0; 0]);
    }

    #[test]
    fn a_connection_is_absent_while_its_video_pauses() {
        let left = |pauses: &[(i64, i64)]| {
            let pauses: Vec<Range<i64>> = pauses.iter().map(|(from, to)| *from..*to).collect();
            without(vec![10..100, 200..300], &pauses, 5)
        };
        assert_eq!(left(&[]), [10..100, 200..300]);
        // In the middle of one, from before one on, and from between them to the middle of one.
        assert_eq!(left(&[(40, 60)]), [10..45, 65..100, 200..300]);
        assert_eq!(left(&[(0, 60)]), [65..100, 200..300]);
        assert_eq!(left(&[(5, 20), (150, 250)]), [25..100, 255..300]);
        assert!(left(&[(0, 1000)]).is_empty());
    }

    #[test]
    fn changes_are_arrivals_and_departures_of_any_flow() {
        let present = |from: i64| {
            let span = from * GOP_NS..9 * GOP_NS;
            in_gops(std::slice::from_ref(&span), 0, 17)
        };
        let (early, late) = (present(2), present(8));
        assert_eq!(changes(17, [&*early, &*late].into_iter()), [2, 8, 9]);
    }
}
