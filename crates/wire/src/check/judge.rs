//! Compares what was measured with what was configured.
//!
//! Tolerances: delay −0.1 ms − 1 % to +1 ms + 2 %; rate ±2 %; queue ±2 packets ± 5 %, and above that
//! what the rate serves in 1 ms; loss four standard deviations of the model's own randomness;
//! accounting exact. They are wider by four standard deviations where the link itself is random
//! (jitter, delivery opportunities).

use suiro_link::{OPPORTUNITY, ServerConfig};
use suiro_record::words::{CheckedQuantity, CheckedUnit};
use suiro_record::{Check, LinkTotals, SelfCheck};
use suiro_units::{Duration, Time};

use super::load::Heard;
use super::plan::{self, Depth, Flood, Plan};

/// How far a measured rate may be off.
const RATE_TOLERANCE: f64 = 0.02;
/// How much later than configured a packet may be: the delay that a busy machine adds.
const DELAY_LATE_MS: f64 = 1.0;
const DELAY_LATE: f64 = 0.02;
/// How much earlier: the error of two clock readings.
const DELAY_EARLY_MS: f64 = 0.1;
const DELAY_EARLY: f64 = 0.01;
/// How far a measured queue may be off, and by how many packets.
const QUEUE_TOLERANCE: f64 = 0.05;
const QUEUE_PACKETS: f64 = 2.0;
/// Standard deviations of randomness that are allowed.
const SIGMAS: f64 = 4.0;
/// Fewest packets from which a rate can be measured.
const RATE_PACKETS_MIN: usize = 10;
/// The note where twice as many do not cross the link during the check.
const TOO_SLOW: &str = "too few packets cross the link during the check";
/// Parts of the flood, each of which gives a rate.
const RATE_PARTS: usize = 5;

/// Compares the packets received in one direction with its plan.
pub(crate) fn judge(link: &str, plan: &Plan, heard: &Heard, totals: &LinkTotals) -> SelfCheck {
    let arrivals = first_arrivals(heard);
    let (probe, flood) = arrivals.split_at((plan.probe.count as usize).min(arrivals.len()));
    let sent = heard.sent.get(probe.len()..).unwrap_or(&[]);
    let mut checks = vec![
        delay(plan, &heard.sent, probe),
        loss(plan, &heard.sent, probe),
        rate(plan, sent, flood),
        queue(plan, sent, flood),
    ];
    if heard.missed > 0 {
        // Packets that this check lost itself must not count against the link.
        for check in &mut checks {
            check.ok = None;
            check.measured = None;
            check.note = Some(format!("the self-check itself missed {} packets", heard.missed));
        }
    }
    checks.push(accounting(plan, heard, totals));
    SelfCheck {
        link: link.to_owned(),
        direction: totals.direction,
        attempt: 1,
        ok: checks.iter().all(|check| check.ok != Some(false)),
        checks,
    }
}

/// When the first copy of each packet arrived, by packet number.
fn first_arrivals(heard: &Heard) -> Vec<Option<Time>> {
    let mut first: Vec<Option<Time>> = vec![None; heard.sent.len()];
    for arrival in &heard.arrivals {
        if let Some(at) = first.get_mut(arrival.number as usize) {
            *at = Some(at.map_or(arrival.at, |known| known.min(arrival.at)));
        }
    }
    first
}

fn blank(what: CheckedQuantity, unit: CheckedUnit) -> Check {
    Check {
        what,
        unit,
        asked: None,
        measured: None,
        at_least: None,
        at_most: None,
        ok: None,
        note: None,
    }
}

/// A check with its bounds set: it passes if the measured value lies within them.
fn judged(mut check: Check, measured: Option<f64>) -> Check {
    check.measured = measured;
    check.ok = measured.map(|measured| {
        check.at_least.is_none_or(|least| measured >= least)
            && check.at_most.is_none_or(|most| measured <= most)
    });
    check
}

fn unmeasured(mut check: Check, note: impl Into<String>) -> Check {
    check.note = Some(note.into());
    check
}

/// One-way delays, in milliseconds, of the packets that arrived.
fn delays_ms(sent: &[Time], arrived: &[Option<Time>]) -> Vec<f64> {
    let delay = |(sent, arrived): (&Time, &Option<Time>)| {
        arrived.map(|at| at.saturating_since(*sent).as_millis_f64())
    };
    sent.iter().zip(arrived).filter_map(delay).collect()
}

fn delay(plan: &Plan, sent: &[Time], probe: &[Option<Time>]) -> Check {
    let path = &plan.path;
    let propagation = &path.propagation;
    let mut check = blank(CheckedQuantity::Delay, CheckedUnit::Milliseconds);
    let rate = plan::rate_bps(path);
    if rate == Some(0.0) {
        return unmeasured(check, "the link's rate is 0");
    }
    if !has_room(plan, sent) {
        return unmeasured(check, TOO_SLOW);
    }
    let bits = f64::from(plan.probe.packet_bytes) * 8.0;
    let waits_for_bits = match &path.server {
        ServerConfig::Steady(_) => bits,
        // A full bucket holds tokens for the rest.
        ServerConfig::Bucket { burst, .. } => (bits - burst.bits() as f64).max(0.0),
        _ => 0.0,
    };
    let serialise_ms = rate.map_or(0.0, |rate| waits_for_bits / rate * 1e3);
    let base_ms = propagation.delay.first.as_millis_f64() + serialise_ms;
    let mut delays = delays_ms(sent, probe);
    delays.sort_by(f64::total_cmp);
    let n = delays.len().max(1) as f64;
    let varies = propagation.jitter.is_some() || propagation.reorder.is_some();
    let (jitter_ms, below_ms, above_ms) = spread_ms(plan, n);
    let asked = base_ms + jitter_ms;
    check.asked = Some(asked);
    check.at_least = Some(asked * (1.0 - DELAY_EARLY) - DELAY_EARLY_MS - below_ms);
    // What a shared medium adds depends on its stations: only the minimum is known.
    let most = asked * (1.0 + DELAY_LATE) + DELAY_LATE_MS + above_ms;
    check.at_most = (!path.server.is_shared()).then_some(most);
    let (measured, note) = if path.server.is_shared() {
        (delays.first().copied(), Some("the minimum; contention and retries add to it"))
    } else if plan::by_opportunity(path) {
        let least = delays.first().copied();
        (least, Some("the minimum, because packets wait for delivery opportunities"))
    } else if varies {
        (Some(delays.iter().sum::<f64>() / n), None)
    } else {
        // The machine can only add to a delay that does not vary.
        (delays.get(delays.len() / 4).copied(), None)
    };
    if delays.is_empty() && path.server.is_shared() {
        return unmeasured(check, "no packet got across the shared medium");
    }
    if delays.is_empty() {
        let mut check = unmeasured(check, "no packet arrived");
        // If nearly everything is lost on purpose, this is the configured result.
        check.ok = (plan::loss(&path.loss.first, plan.probe.count).0 < 0.5).then_some(false);
        return check;
    }
    check.note = note.map(str::to_owned);
    judged(check, measured)
}

/// What jitter, reordering and delivery opportunities add to the mean delay, and how far the mean
/// of `n` packets may lie below and above that.
fn spread_ms(plan: &Plan, n: f64) -> (f64, f64, f64) {
    let (mut mean, mut below, mut above) = (0.0, 0.0, 0.0);
    let propagation = &plan.path.propagation;
    if let Some(jitter) = propagation.jitter {
        let sd = jitter.sd.as_millis_f64();
        mean += jitter.mean().as_millis_f64();
        // Delays that keep their order are correlated, which leaves fewer independent ones to average.
        let alike = 1.0 + jitter.memory() / plan.probe.interval.max(Duration::from_nanos(1));
        let spread = SIGMAS * sd * (alike / n).sqrt();
        below += spread;
        above += spread;
        // A delay cut off at zero has a larger mean, and so have packets that wait for others.
        let cut = propagation.delay.first.as_millis_f64() < 3.0 * sd;
        above += if cut { sd } else { 0.0 };
        above += jitter.waits().as_millis_f64();
    }
    if let Some(reorder) = propagation.reorder {
        let (chance, by) = (reorder.chance.get(), reorder.by.as_millis_f64());
        let spread = SIGMAS * by * (chance * (1.0 - chance) / n).sqrt();
        mean += chance * by;
        below += spread;
        above += spread;
    }
    if let Some(rate) = plan::rate_bps(&plan.path).filter(|_| plan::by_opportunity(&plan.path)) {
        above += OPPORTUNITY.bits() as f64 / rate.max(1.0) * 1e3;
    }
    (mean, below, above)
}

/// Whether a trace had an opportunity for each packet of the probe while packets were sent; true without a trace.
fn has_room(plan: &Plan, sent: &[Time]) -> bool {
    let (ServerConfig::Trace(trace), [first, .., last]) = (&plan.path.server, sent) else {
        return true;
    };
    plan::opportunities(trace, *first, *last) >= u64::from(plan.probe.count)
}

fn loss(plan: &Plan, sent: &[Time], probe: &[Option<Time>]) -> Check {
    let mut check = blank(CheckedQuantity::Loss, CheckedUnit::Ratio);
    if plan::rate_bps(&plan.path) == Some(0.0) {
        return unmeasured(check, "the link's rate is 0");
    }
    if !has_room(plan, sent) {
        return unmeasured(check, TOO_SLOW);
    }
    let n = probe.len() as f64;
    if n == 0.0 {
        return unmeasured(check, "no packet was sent");
    }
    let (asked, sd) = plan::loss(&plan.path.loss.first, plan.probe.count);
    // A flipped bit may make a packet unreadable to the check.
    let unreadable = plan.path.propagation.corrupt.get();
    // The tail of a few packets is longer than a normal one: allow 4 packets more. A certain
    // outcome has no spread.
    let grain = if sd > 0.0 { SIGMAS * sd + SIGMAS / n } else { 0.0 };
    check.asked = Some(asked);
    check.at_least = Some((asked - grain).max(0.0));
    // Frames that a shared medium gives up on are not an error of the emulator.
    let most = (asked + grain + unreadable).min(1.0);
    check.at_most = (!plan.path.server.is_shared()).then_some(most);
    let lost = probe.iter().filter(|arrived| arrived.is_none()).count();
    judged(check, Some(lost as f64 / n))
}

fn rate(plan: &Plan, sent: &[Time], flood: &[Option<Time>]) -> Check {
    let path = &plan.path;
    let mut check = blank(CheckedQuantity::Rate, CheckedUnit::BitsPerSecond);
    check.asked = plan::rate_bps(path);
    let planned = match &plan.flood {
        Ok(planned) => planned,
        Err(why) => return unmeasured(check, why.clone()),
    };
    let Some((begin, end)) = window(plan, planned, sent) else {
        return unmeasured(check, "nothing was sent");
    };
    let mut arrived: Vec<Time> =
        flood.iter().flatten().copied().filter(|at| (begin..=end).contains(at)).collect();
    arrived.sort_unstable();
    let bits = f64::from(planned.burst.packet_bytes) * 8.0;
    let mut slack = RATE_TOLERANCE;
    let window_s = end.saturating_since(begin).as_secs_f64();
    if let Some(jitter) = path.propagation.jitter {
        slack += SIGMAS * jitter.sd.as_secs_f64() / window_s;
    }
    let in_window = |arrived: &[Time]| arrived.len() as f64 / window_s;
    let per_second: &dyn Fn(&[Time]) -> f64 = if plan::by_opportunity(path) {
        &in_window
    } else if path.propagation.jitter.is_some() {
        // Where arrivals are random, the whole gives a better estimate than its parts.
        &packets_per_second
    } else {
        &median_per_second
    };
    match &path.server {
        ServerConfig::Poisson(_) => {
            let opportunities = check.asked.unwrap_or(0.0) * window_s / OPPORTUNITY.bits() as f64;
            slack += SIGMAS * (opportunities.sqrt() + 1.0) / opportunities.max(1.0);
        }
        ServerConfig::Trace(trace) => {
            let delay = path.propagation.delay.first;
            let count = plan::opportunities(trace, begin - delay, end - delay) as f64;
            check.asked = Some(count * OPPORTUNITY.bits() as f64 / window_s);
            check.note = Some("the mean of the trace during the check".into());
            slack += 3.0 / count.max(1.0);
        }
        ServerConfig::Unlimited
        | ServerConfig::Wifi
        | ServerConfig::Ethernet
        | ServerConfig::Cellular
        | ServerConfig::Steady(_)
        | ServerConfig::Bucket { .. } => {}
    }
    check.at_least = check.asked.map(|asked| asked * (1.0 - slack));
    check.at_most = check.asked.map(|asked| asked * (1.0 + slack));
    if !suffices(check.asked.unwrap_or(0.0), window_s, planned) {
        return unmeasured(check, TOO_SLOW);
    }
    if arrived.len() < RATE_PACKETS_MIN {
        check.ok = Some(false);
        return unmeasured(check, "too few packets arrived to measure it");
    }
    judged(check, Some(per_second(&arrived) * bits))
}

/// Whether a link of this rate lets enough of the flood's packets pass in so many seconds for a measurement.
fn suffices(rate_bps: f64, seconds: f64, flood: &Flood) -> bool {
    let packets = rate_bps * seconds / (f64::from(flood.burst.packet_bytes) * 8.0);
    packets >= 2.0 * RATE_PACKETS_MIN as f64
}

fn packets_per_second(arrived: &[Time]) -> f64 {
    let span = arrived[arrived.len() - 1].saturating_since(arrived[0]).as_secs_f64();
    (arrived.len() - 1) as f64 / span.max(1e-9)
}

/// The median of [`RATE_PARTS`] parts: on a busy machine, the sender may stall during one of them.
fn median_per_second(arrived: &[Time]) -> f64 {
    let length = arrived.len() / RATE_PARTS;
    // Adjacent parts share a packet: the last of one is the first of the next.
    let part = |i: usize| {
        packets_per_second(&arrived[i * length..=((i + 1) * length).min(arrived.len() - 1)])
    };
    let mut rates: Vec<f64> = (0..RATE_PARTS).map(part).collect();
    rates.sort_by(f64::total_cmp);
    rates[RATE_PARTS / 2]
}

/// When the rate is measured: from the point where the flood has settled to its last packet.
fn window(plan: &Plan, flood: &Flood, sent: &[Time]) -> Option<(Time, Time)> {
    let delay = plan.path.propagation.delay.first;
    let (first, last) = (*sent.first()?, *sent.last()?);
    let (begin, end) = (first + flood.settle + delay, last + delay);
    (begin < end).then_some((begin, end))
}

fn queue(plan: &Plan, sent: &[Time], flood: &[Option<Time>]) -> Check {
    let path = &plan.path;
    let planned = match &plan.flood {
        Ok(planned) => planned,
        Err(why) => {
            return unmeasured(blank(CheckedQuantity::Queue, CheckedUnit::Bytes), why.clone());
        }
    };
    let depth = match &planned.queue {
        Ok(depth) => *depth,
        Err(why) => {
            return unmeasured(blank(CheckedQuantity::Queue, CheckedUnit::Bytes), why.clone());
        }
    };
    let packet = f64::from(planned.burst.packet_bytes);
    let (mut check, asked, per_byte) = match depth {
        Depth::Bytes(bytes) => {
            (blank(CheckedQuantity::Queue, CheckedUnit::Bytes), bytes as f64, 1.0)
        }
        Depth::Packets(packets) => {
            (blank(CheckedQuantity::Queue, CheckedUnit::Packets), packets as f64, 1.0 / packet)
        }
    };
    let rate = plan::rate_bps(path).unwrap_or(0.0);
    let window_s =
        window(plan, planned, sent).map_or(0.0, |(begin, end)| (end - begin).as_secs_f64());
    if !suffices(rate, window_s, planned) {
        return unmeasured(check, TOO_SLOW);
    }
    let late = DELAY_LATE_MS / 1e3 * rate / 8.0 * per_byte;
    let grain = QUEUE_PACKETS * packet * per_byte;
    check.asked = Some(asked);
    check.at_least = Some((asked * (1.0 - QUEUE_TOLERANCE) - grain).max(0.0));
    check.at_most = Some(asked * (1.0 + QUEUE_TOLERANCE) + grain + late);
    let own_ms = path.propagation.delay.first.as_millis_f64() + packet * 8.0 / rate * 1e3;
    // Once the queue is full, every packet that gets in finds it full. The median, because a
    // machine that stops the sender for a moment affects a few packets.
    let settled = sent.partition_point(|at| *at < sent[0] + planned.settle);
    let mut waits = delays_ms(&sent[settled..], flood.get(settled..).unwrap_or(&[]));
    waits.sort_by(f64::total_cmp);
    let Some(wait_ms) = waits.get(waits.len() / 2) else {
        check.ok = Some(false);
        return unmeasured(check, "no packet arrived");
    };
    // What was served while the packet waited: the queue ahead of it.
    judged(check, Some((wait_ms - own_ms).max(0.0) / 1e3 * rate / 8.0 * per_byte))
}

/// Every packet that was sent came in, every packet that went out was received, and none is
/// missing.
fn accounting(plan: &Plan, heard: &Heard, totals: &LinkTotals) -> Check {
    let mut check = blank(CheckedQuantity::Accounting, CheckedUnit::Packets);
    let (sent, arrived) = (heard.sent.len() as u64, heard.arrivals.len() as u64);
    let mut wrong = totals.unaccounted + totals.offered.abs_diff(sent);
    // Some packets with a flipped bit look like other traffic.
    if plan.path.propagation.corrupt.get() == 0.0 && heard.missed == 0 {
        wrong += totals.delivered.abs_diff(arrived);
    }
    check.asked = Some(0.0);
    check.at_most = Some(0.0);
    check.note = Some(format!(
        "{sent} sent, {} came in, {} went out, {arrived} arrived, {} unaccounted",
        totals.offered, totals.delivered, totals.unaccounted
    ));
    judged(check, Some(wrong as f64))
}
