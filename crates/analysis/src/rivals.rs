//! Real-time video and TCP that share a path: how the flows divide it between them.
//!
//! Video is RTP under a rate control, WebRTC or Media over QUIC. Video over the latter two is compared with others if it shares
//! a link with one, in the direction in which it sends more: a relay's two sides need not.
//!
//! Rates are those at which IP packets of a flow were delivered by the link that delivered the fewest
//! of its bytes: the last one, or the narrowest. They are looked at per *GoP time*, 30 frames at
//! 29.97 per second, as MPEG-TFRCP's authors did, from the first video packet on, or from the end of the warm-up. Metrics that
//! compare flows count the GoP times in which all of them are present, metrics of one flow those in which it is.

use std::collections::BTreeMap;

use suiro_record::tables::RateRow;

use crate::bins::Bins;
use crate::competing::{Told, begin_ns};
use crate::crowd;
use crate::flow::{Flow, Kind, Over, Packet};
use crate::group::grouped;
use crate::held::{self, Stretch, hold};
use crate::overhead::feedback_ratio;
use crate::period::Period;
use crate::presence::{self, GOP_NS};
use crate::settling;
use crate::stats::Distribution;
use crate::view::View;

/// GoP times over which rates are averaged for short-term fairness.
const SHORT: usize = 5;

/// GoP times in a row that must be fair for flows to have converged.
const SETTLED: usize = 10;

/// Jain's index from which on rates count as fair.
const FAIR: f64 = 0.9;

/// GoP times between two changes in which something can settle.
const SPAN_LEAST: usize = 15;

/// GoP times that are looked at: no trial takes longer than a day.
const GOPS_MAX: usize = 24 * 3600;

/// One flow, per GoP time.
struct Rival<'v> {
    flow: &'v Flow<'v>,
    /// Whether it is compared with other flows.
    competes: bool,
    /// Bits per second in each whole GoP time.
    rates: Vec<f64>,
    /// In which GoP times it is there.
    present: Vec<bool>,
}

/// All flows towards viewers, and what the senders of video saw.
pub(crate) struct Rivals<'v> {
    flows: Vec<Rival<'v>>,
    /// Rows of each sender, sorted.
    senders: BTreeMap<&'v str, Vec<&'v RateRow>>,
    period: Period,
    /// When the first video packet was delivered, or the warm-up ended if that was later.
    begin_ns: i64,
    /// Whether video had begun before the warm-up ended.
    is_cut: bool,
    /// When the rate of the link with the least changes.
    changes: Vec<i64>,
    /// Bytes of reports over those of media.
    pub feedback_ratio: Option<f64>,
}

impl<'v> Rivals<'v> {
    /// `None` if no video was sent under a rate control, nor any over WebRTC or Media over QUIC.
    pub fn of(view: &'v View<'_>) -> Option<Self> {
        if !has_video(view) {
            return None;
        }
        let period = view.period;
        let within = view.within_trial(&view.records.rate, |row| row.t_ns);
        let senders = grouped(within, |row| &*row.endpoint, |row| row.t_ns);
        let flows: Vec<&Flow> = view.rivals().iter().collect();
        let first_ns = begin_ns(view.rivals());
        let begin_ns = first_ns.max(period.from_ns);
        let is_cut = period.skips(first_ns);
        // Of several flows, one that shares its links with none of the others is compared with none.
        let compared = flows.iter().filter(|flow| flow.competes).count();
        let is_only = flows.len() == 1;
        let rival = |flow: &'v Flow<'v>| {
            let rates = rates(flow.delivered(), begin_ns, period.to_ns);
            let present = presence::in_gops(&flow.spans, begin_ns, rates.len());
            Rival { flow, competes: is_only || flow.competes && compared > 1, rates, present }
        };
        let flows = flows.into_iter().map(rival).collect();
        let changes = settling::changes(view.links());
        let feedback_ratio = feedback_ratio(view.links(), &view.records.flows);
        Some(Self { flows, senders, period, begin_ns, is_cut, changes, feedback_ratio })
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Rival<'v>> {
        self.flows.iter().filter(move |rival| rival.flow.kind() == kind)
    }

    /// Those that are compared with one another.
    fn competing(&self) -> impl Iterator<Item = &Rival<'v>> {
        self.flows.iter().filter(|rival| rival.competes)
    }

    /// The mean rate of each of them, while all are present.
    fn together(&self) -> Option<Vec<f64>> {
        together(self.competing())
    }

    /// How many flows there are.
    pub fn count(&self, kind: Kind) -> f64 {
        self.of_kind(kind).count() as f64
    }

    /// Mean rate of a flow of this kind, while it is present.
    pub fn mean_bps(&self, kind: Kind) -> Option<f64> {
        mean(self.of_kind(kind).filter_map(|rival| mean(while_present(rival))))
    }

    /// Video over TCP, while all are present.
    pub fn friendliness(&self) -> Option<f64> {
        let rates = self.together()?;
        let of_kind = |kind| {
            let rates = self.competing().zip(&rates).filter(|(rival, _)| rival.flow.kind() == kind);
            mean(rates.map(|(_, rate)| *rate))
        };
        let (video, tcp) = (of_kind(Kind::Video)?, of_kind(Kind::Tcp)?);
        (tcp > 0.0).then(|| video / tcp)
    }

    /// The rate of all flows over this, as a share of that of all flows together, while all are present; `None` without such a
    /// flow, or if it is alone.
    pub fn share_ratio(&self, over: Over) -> Option<f64> {
        let rates = self.together()?;
        let all: f64 = rates.iter().sum();
        let own = self.competing().zip(&rates).filter(|(rival, _)| rival.flow.over == over);
        let own = own.map(|(_, rate)| *rate).reduce(|sum, rate| sum + rate)?;
        (rates.len() > 1 && all > 0.0).then(|| own / all)
    }

    /// The least and the greatest mean rate of a flow, over that of an equal share, while all are present; `None` of one
    /// flow.
    pub fn extremes(&self) -> Option<(f64, f64)> {
        let rates = self.together().filter(|rates| rates.len() > 1)?;
        let equal = mean(rates.iter().copied()).filter(|equal| *equal > 0.0)?;
        let (least, most) = ends(&rates)?;
        Some((least / equal, most / equal))
    }

    /// Jain's index of the mean rates of all flows, while all are present; `None` of one flow.
    pub fn jain(&self) -> Option<f64> {
        jain(&self.together().filter(|rates| rates.len() > 1)?)
    }

    /// Jain's index of rates averaged over a few GoP times, at each GoP time from the first such on; `None` while a flow is
    /// absent, and of one flow.
    fn short_jain(&self) -> Vec<Option<f64>> {
        let is_one = self.competing().count() < 2;
        let windows = 0..(self.gops() + 1).saturating_sub(SHORT);
        let index = |from: usize| {
            let window = from..from + SHORT;
            let is_there = |rival: &Rival| rival.present[window.clone()].iter().all(|there| *there);
            if is_one || !self.competing().all(is_there) {
                return None;
            }
            let means = self
                .competing()
                .filter_map(|rival| mean(rival.rates[window.clone()].iter().copied()));
            jain(&means.collect::<Vec<_>>())
        };
        windows.map(index).collect()
    }

    /// Whole GoP times of the trial from its beginning here on.
    fn gops(&self) -> usize {
        self.flows.iter().map(|rival| rival.rates.len()).min().unwrap_or(0)
    }

    /// Mean of the short-term index.
    pub fn jain_short(&self) -> Option<f64> {
        mean(self.short_jain().into_iter().flatten())
    }

    /// Seconds from the arrival of the last flow, or from the end of the warm-up, until the flows have become fair and stayed so for
    /// a while.
    pub fn convergence_s(&self) -> Option<f64> {
        let fair: Vec<bool> = self
            .short_jain()
            .iter()
            .map(|index| index.is_some_and(|index| index >= FAIR))
            .collect();
        let begins = fair.windows(SETTLED).position(|fair| fair.iter().all(|fair| *fair))?;
        let first = |rival: &Rival| rival.present.iter().position(|there| *there);
        let arrived = self.competing().filter_map(first).max()?;
        Some(begins.saturating_sub(arrived) as f64 * GOP_NS as f64 / 1e9)
    }

    /// The mean rate of each video flow, while all of them are present; `None` of one.
    fn of_video(&self) -> Option<Vec<f64>> {
        let video = self.competing().filter(|rival| rival.flow.kind() == Kind::Video);
        together(video).filter(|rates| rates.len() > 1)
    }

    /// Jain's index of the video flows, while all of them are present.
    pub fn self_fairness(&self) -> Option<f64> {
        jain(&self.of_video()?)
    }

    /// The greatest over the least rate of a video flow, while all of them are present.
    pub fn rate_ratio(&self) -> Option<f64> {
        let (least, most) = ends(&self.of_video()?)?;
        (least > 0.0).then(|| most / least)
    }

    /// Seconds from a change until the rate of a video flow has settled. The capacity changes, or which flows are present. The
    /// end of the warm-up is no change.
    pub fn settling_s(&self) -> Option<f64> {
        mean(self.of_kind(Kind::Video).flat_map(|rival| self.settlings_s(rival)))
    }

    /// The same of each change for one flow.
    fn settlings_s(&self, rival: &Rival) -> Vec<f64> {
        let count = self.gops();
        let place = |t_ns: &i64| {
            let gops = t_ns.saturating_sub(self.begin_ns) / GOP_NS;
            usize::try_from(gops).unwrap_or(0).min(count)
        };
        let flows: Vec<&Rival> =
            self.competing().filter(|_| rival.competes).chain([rival]).collect();
        let mut bounds = presence::changes(count, flows.iter().map(|flow| &*flow.present));
        let changes = self.changes.iter().filter(|t_ns| **t_ns >= self.begin_ns);
        bounds.extend(changes.map(place));
        // Of the first GoP time it cannot be seen whether other flows are present than before.
        let first = self.begin_ns..self.begin_ns.saturating_add(GOP_NS);
        let mut starts = flows.iter().flat_map(|flow| &flow.flow.spans).map(|span| span.start);
        if !self.is_cut || starts.any(|start| first.contains(&start)) {
            bounds.push(0);
        }
        bounds.push(count);
        bounds.sort_unstable();
        let spans = bounds.windows(2).filter(|span| span[1] >= span[0] + SPAN_LEAST);
        let there = spans.filter(|span| rival.present[span[0]]);
        let gops = there.map(|span| settling::first(&rival.rates[span[0]..span[1]]));
        gops.map(|gops| gops as f64 * GOP_NS as f64 / 1e9).collect()
    }

    /// Standard deviation over mean of a flow's rate per GoP time in which it is present, mean over the flows of this kind.
    pub fn variation(&self, kind: Kind) -> Option<f64> {
        let of = |rival| variation(&while_present(rival).collect::<Vec<f64>>());
        mean(self.of_kind(kind).filter_map(of))
    }

    /// Share of the video's packets that links dropped.
    pub fn video_loss(&self) -> Option<f64> {
        let counts = |t_ns: &i64| !self.period.skips(*t_ns);
        let video = || self.of_kind(Kind::Video).map(|rival| rival.flow);
        let dropped: usize = video().map(|flow| flow.dropped().filter(counts).count()).sum();
        let delivered = video().flat_map(|flow| flow.delivered()).map(|packet| packet.t_ns);
        let delivered = delivered.filter(counts).count();
        let all = dropped + delivered;
        (all > 0).then(|| dropped as f64 / all as f64)
    }

    /// Round-trip times that the senders of video saw, in milliseconds.
    pub fn rtt_ms(&self) -> Distribution {
        let rows = self.senders.values().flatten().filter(|row| !self.period.skips(row.t_ns));
        Distribution::equal(rows.filter_map(|row| Some(row.rtt_ns? as f64 / 1e6)))
    }

    /// Mean rate in each bin of the flows of this kind that are present in it.
    pub fn rate_bins(&self, kind: Kind, bins: &Bins) -> Vec<Option<f64>> {
        crowd::means(self.of_kind(kind).map(|rival| rival.flow.rate_bins(bins)))
    }

    /// For how long a target stood, in seconds: from one change to the next. What the start or end of the period cuts off
    /// does not count.
    pub fn interval_s(&self) -> Option<f64> {
        mean(self.senders.values().flat_map(|rows| {
            let changes = rows.windows(2).filter(|pair| pair[0].target_bps != pair[1].target_bps);
            let times = changes.map(|pair| pair[1].t_ns);
            let times: Vec<i64> = times.filter(|t_ns| !self.period.skips(*t_ns)).collect();
            let spans = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64 / 1e9);
            spans.collect::<Vec<_>>()
        }))
    }

    /// Standard deviation over mean of what the rate control allows, over time; mean over the senders.
    pub fn target_variation(&self) -> Option<f64> {
        mean(self.senders.values().filter_map(|rows| {
            let known = rows.iter().map(|row| (row.t_ns, row.target_bps as f64));
            let stretches = self.period.cut(hold(known, last_ns(rows), self.period.to_ns));
            let targets = held::distribution(&stretches, |target| Some(*target));
            let squares = held::distribution(&stretches, |target| Some(target * target));
            let mean = targets.mean().filter(|mean| *mean > 0.0)?;
            Some((squares.mean()? - mean * mean).max(0.0).sqrt() / mean)
        }))
    }

    /// What `value` makes of the senders' rows, each standing until the next, and the last for as long as its period was.
    pub fn stretches(&self, value: impl Fn(&RateRow) -> Option<f64>) -> Vec<Stretch<f64>> {
        let mut all = Vec::new();
        for rows in self.senders.values() {
            let known = rows.iter().filter_map(|row| Some((row.t_ns, value(row)?)));
            all.extend(hold(known, last_ns(rows), self.period.to_ns));
        }
        all
    }

    /// The share of packets lost, as the senders' reports say, and when.
    pub fn losses(&self) -> impl Iterator<Item = (i64, f64)> {
        let rows = self.senders.values().flatten();
        rows.filter_map(|row| Some((row.t_ns, row.loss_ratio?)))
    }
}

/// Whether video was sent under a rate control, or over WebRTC or Media over QUIC.
pub(crate) fn has_video(view: &View<'_>) -> bool {
    let trial = 0..view.duration_ns;
    let is_video = |flow: &Flow| flow.kind() == Kind::Video;
    view.records.rate.iter().any(|row| trial.contains(&row.t_ns))
        || Told::of(view.records).connects() && view.rivals().iter().any(is_video)
}

/// Until when the last row of a sender stands, which is at the end of a period: for as long again. The sender may have ended
/// before the trial.
fn last_ns(rows: &[&RateRow]) -> i64 {
    rows.last().map_or(0, |row| row.t_ns.saturating_add(row.period_ns))
}

/// Bits per second in each whole GoP time from `begin_ns` on.
fn rates(delivered: &[Packet], begin_ns: i64, end_ns: i64) -> Vec<f64> {
    let count = usize::try_from((end_ns.saturating_sub(begin_ns)) / GOP_NS).unwrap_or(0);
    let count = count.min(GOPS_MAX);
    let mut rates = vec![0.0; count];
    for packet in delivered.iter().filter(|packet| packet.t_ns >= begin_ns) {
        let place = usize::try_from(packet.t_ns.saturating_sub(begin_ns) / GOP_NS).ok();
        if let Some(rate) = place.and_then(|place| rates.get_mut(place)) {
            *rate += packet.bits * 1e9 / GOP_NS as f64;
        }
    }
    rates
}

/// The rates of a flow in the GoP times in which it is present.
fn while_present(rival: &Rival) -> impl Iterator<Item = f64> {
    rival.rates.iter().zip(&rival.present).filter(|(_, there)| **there).map(|(rate, _)| *rate)
}

/// The mean rate of each flow over the GoP times in which all are present; `None` if there are none.
fn together<'f, 'v: 'f>(rivals: impl Iterator<Item = &'f Rival<'v>>) -> Option<Vec<f64>> {
    let rivals: Vec<&Rival> = rivals.collect();
    let count = rivals.iter().map(|rival| rival.rates.len()).min()?;
    let gops: Vec<usize> =
        (0..count).filter(|gop| rivals.iter().all(|rival| rival.present[*gop])).collect();
    let mean_of = |rival: &&Rival| mean(gops.iter().map(|gop| rival.rates[*gop]));
    rivals.iter().map(mean_of).collect()
}

/// The least and the greatest.
fn ends(rates: &[f64]) -> Option<(f64, f64)> {
    let least = rates.iter().copied().reduce(f64::min)?;
    Some((least, rates.iter().copied().reduce(f64::max)?))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0u32);
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}

/// (Σx)² ∕ (n·Σx²): Jain, Chiu and Hawe, "A quantitative measure of fairness", 1984.
fn jain(rates: &[f64]) -> Option<f64> {
    let (sum, squares) =
        rates.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}

fn variation(rates: &[f64]) -> Option<f64> {
    let mean = mean(rates.iter().copied())?;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    let degrees = rates.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    (mean > 0.0).then(|| (squares / degrees as f64).sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_hand() {
        assert_eq!(jain(&[1.0, 1.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0]), Some(0.5));
        assert_eq!(jain(&[3.0, 1.0]), Some(0.8));
        assert_eq!(jain(&[0.0]), None);
        // Mean 4, squares 4 + 4 = 8, n − 1 = 1.
        assert_eq!(variation(&[2.0, 6.0]), Some(8f64.sqrt() / 4.0));
        assert_eq!(variation(&[2.0]), None);
    }

    #[test]
    fn only_whole_gop_times_count_from_the_first_video_packet_on() {
        let at = |gops: f64| (gops * GOP_NS as f64) as i64;
        let delivered = [(at(0.5), 9.0), (at(1.0), 1001.0), (at(1.9), 1001.0), (at(3.2), 7.0)];
        let delivered = delivered.map(|(t_ns, bits)| Packet::at(t_ns, bits));
        assert_eq!(rates(&delivered, at(1.0), at(3.5)), [2000.0, 0.0]);
    }

    proptest! {
        #[test]
        fn jain_lies_between_one_of_n_and_one(rates in prop::collection::vec(0.001..1e9f64, 1..20)) {
            let index = jain(&rates).unwrap();
            prop_assert!(index <= 1.0 + 1e-9 && index >= 1.0 / rates.len() as f64 - 1e-9);
        }
    }
}
