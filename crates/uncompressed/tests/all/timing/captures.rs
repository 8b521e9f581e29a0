//! The captures that are compared with the EBU's LIST.

use suiro_units::{Random, Seed};

use super::generator::{Sent, Video};

const HD59: Video = Video::progressive((60_000, 1001), 4320, 1080);
const UHD50: Video = Video::progressive((50, 1), 17_280, 2160);
const UHD59: Video = Video { frames: 4, ..Video::progressive((60_000, 1001), 17_280, 2160) };
const HD25I: Video = Video::interlaced((50, 1), 2160, 1080);
const HD29I: Video = Video::interlaced((60_000, 1001), 2160, 1080);

/// A capture: its name, what it is of, whether it is read with gaps, and its packets.
pub struct Case {
    pub name: &'static str,
    pub video: Video,
    pub gapped: bool,
    pub sent: Vec<Sent>,
}

pub fn all() -> Vec<Case> {
    let hd = Video::HD50;
    let case = |name, video, gapped, sent| Case { name, video, gapped, sent };
    let mut all = vec![
        case("gapped-1080p50", hd, true, hd.gapped(3.1)),
        case("gapped-1080p59", HD59, true, HD59.gapped(2.6)),
        case("gapped-1080p25", p25(), true, p25().gapped(5.4)),
        case("gapped-2160p50", UHD50, true, UHD50.gapped(12.3)),
        case("gapped-1080i25", HD25I, true, HD25I.gapped(1.7)),
        case("gapped-1080i29", HD29I, true, HD29I.gapped(2.2)),
        case("gapped-625i25", Video::interlaced((50, 1), 346, 576), true, pal().gapped(0.7)),
        case("gapped-525i29", ntsc(), true, ntsc().gapped(0.7)),
        case("gapped-720p50", p720(), true, p720().gapped(4.9)),
        case("linear-1080p50", hd, false, hd.linear(0.037)),
        case("linear-1080p59-at-0", HD59, false, HD59.linear(0.001)),
        case("linear-2160p59", UHD59, false, UHD59.linear(0.038)),
        case("early-by-150", hd, true, hd.gapped(150.5)),
        case("late-by-20", hd, true, hd.gapped(-20.3)),
    ];
    all.extend(uneven());
    all
}

const fn p25() -> Video {
    Video::progressive((25, 1), 4320, 1080)
}

const fn p720() -> Video {
    Video::progressive((50, 1), 1920, 720)
}

const fn pal() -> Video {
    Video::interlaced((50, 1), 346, 576)
}

const fn ntsc() -> Video {
    Video::interlaced((60_000, 1001), 292, 486)
}

/// When packet `j` of a gapped sender leaves that is so many packets ahead.
fn at(video: &Video, j: f64, ahead: f64) -> f64 {
    let step = video.period() * video.active() / video.packets as f64;
    video.period() * video.offset() + (j - ahead) * step
}

fn uneven() -> Vec<Case> {
    let hd = Video::HD50;
    let case = |name, gapped, sent| Case { name, video: hd, gapped, sent };
    let bursts = |of: u64| hd.sent(|_, j| at(&hd, (j / of * of) as f64, of as f64 + 1.5));
    let jittered = |us: f64| {
        let mut random = Seed(7).derive("jitter").random();
        // Later by up to so many microseconds; none overtakes another.
        let late =
            move |_, j| at(&hd, j as f64, us * 1e3 / 4444.0 + 1.3) + random.uniform() * us * 1e3;
        in_turn(hd.sent(late))
    };
    let mut random = Seed(7).derive("overtaking").random();
    let overtaking = hd.sent(|_, j| match j {
        // LIST takes what comes after the marker for the next frame: the packets around it stay in order.
        ..20 | 4200.. => at(&hd, j as f64, 9.3),
        _ => at(&hd, j as f64, 9.3) + random.uniform() * 20_000.0,
    });
    let mut frames = Seed(7).derive("frames").random();
    let starts: Vec<f64> = (0..hd.frames).map(|_| frames.uniform() * 150_000.0).collect();
    let wandering = hd.sent(|k, j| at(&hd, j as f64, 1.2) - starts[k as usize]);
    let fast = hd.sent(|_, j| at(&hd, j as f64 * 0.5, 2.2));
    let mut dropped = Seed(7).derive("loss").random();
    let lossy = hd.gapped(40.5).into_iter().filter(|_| keeps(&mut dropped));
    let doubled =
        hd.gapped(3.1).into_iter().enumerate().flat_map(|(at, packet)| {
            std::iter::repeat_n(packet, if at % 500 == 17 { 2 } else { 1 })
        });
    let legs = hd.gapped(3.1).into_iter().chain(second_leg(&hd.gapped(3.1))).collect();
    vec![
        case("two-legs", true, in_order(legs)),
        case("bursts-of-3", true, bursts(3)),
        case("bursts-of-5", true, bursts(5)),
        case("bursts-of-16", true, bursts(16)),
        case("bursts-of-90", true, bursts(90)),
        case("jitter-8us", true, jittered(8.0)),
        case("jitter-60us", true, jittered(60.0)),
        case("jitter-600us", true, jittered(600.0)),
        case("overtaking", true, overtaking),
        case("wandering-frames", true, wandering),
        case("twice-as-fast", true, fast),
        case("lossy", true, lossy.collect()),
        case("copies", true, doubled.collect()),
    ]
}

/// One of 200 packets is lost.
fn keeps(random: &mut Random) -> bool {
    random.below(200) > 0
}

/// The same packets to another group, 250 to 270 µs later, without one of 100.
fn second_leg(first: &[Sent]) -> Vec<Sent> {
    let mut random = Seed(7).derive("leg").random();
    let later = first.iter().map(|packet| Sent {
        group: 2,
        t_ns: packet.t_ns + 250_000 + random.below(20_000),
        ..*packet
    });
    in_turn(later.filter(|packet| packet.sequence % 100 != 50).collect())
}

/// As a queue passes packets on: in the order of their numbers, none within 400 ns of the one before.
fn in_turn(mut sent: Vec<Sent>) -> Vec<Sent> {
    sent.sort_by_key(|packet| packet.sequence);
    let mut next = 0;
    for packet in &mut sent {
        packet.t_ns = packet.t_ns.max(next);
        next = packet.t_ns + 400;
    }
    sent
}

fn in_order(mut sent: Vec<Sent>) -> Vec<Sent> {
    sent.sort_by_key(|packet| packet.t_ns);
    sent
}
