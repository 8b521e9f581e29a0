//! The same captures as the EBU's LIST measures them.
//!
//! Each row is what LIST's own classes `compliance_analyzer`, `vrx_calculator` and `calculate_rtp_to_packet_deltas` returned
//! for a capture of [`captures`]. They come from its repository at beaac28d, and were compiled unchanged into a program that
//! reads a pcap. It hands them each packet's time, marker and timestamp, with N, frame rate, height, scan and schedule of
//! the case. What differs by one packet is VRX, before T_VD or where a packet comes just when it is read.
//! `SUIRO_TIMING_CAPTURES=DIR cargo test -p suiro-uncompressed --test all oracle` writes the captures.

use suiro_uncompressed::timing::model::Schedule;
use suiro_uncompressed::timing::receiver::Reading;
use suiro_uncompressed::timing::{
    Capture, Given, Levels, Options, Profile, Report, Spread, analyze,
};

use super::captures::{self, Case};
use super::generator::pcap;

/// Least, mean and greatest.
type Range = (i64, f64, i64);

/// What LIST measured.
#[derive(Debug)]
struct Row {
    name: &'static str,
    /// C_MAX of narrow and wide, VRX_FULL of narrow and wide.
    limits: [u32; 4],
    c_inst: Range,
    /// VRX with TRO_DEFAULT, with the mean FPT, and from the first packet of the first frame on.
    ideal: Range,
    adjusted: Range,
    first: Range,
    /// FPT: least, mean, greatest, in nanoseconds.
    fpt: [i64; 3],
    /// Latency: least and greatest, in nanoseconds.
    latency: [i64; 2],
    /// Offset of RTP timestamps: least and greatest, in ticks.
    offset: [i64; 2],
    profile: Profile,
}

#[expect(clippy::too_many_arguments, reason = "a row of a table")]
const fn row(
    name: &'static str,
    limits: [u32; 4],
    c_inst: Range,
    ideal: Range,
    adjusted: Range,
    first: Range,
    fpt: [i64; 3],
    latency: [i64; 2],
    offset: [i64; 2],
    profile: Profile,
) -> Row {
    Row { name, limits, c_inst, ideal, adjusted, first, fpt, latency, offset, profile }
}

use Profile::{Narrow, NarrowLinear, NotCompliant, Wide};

#[rustfmt::skip]
const LIST: &[Row] = &[
    row("gapped-1080p50", [5, 16, 8, 720], (0, 0.0000, 0), (3, 3.9993, 4), (0, 0.7799, 1), (0, 0.7799, 1), [750667, 750667, 750667], [750542, 750780], [0, 0], Narrow),
    row("two-legs/1", [5, 16, 8, 720], (0, 0.0000, 0), (3, 3.9993, 4), (0, 0.7799, 1), (0, 0.7799, 1), [750667, 750667, 750667], [750542, 750780], [0, 0], Narrow),
    row("two-legs/2", [5, 16, 8, 720], (0, 1.2511, 5), (-101, -76.9662, -53), (-46, -22.1694, 2), (-46, -22.7099, 1), [1001222, 1007872, 1016806], [1001358, 1016855], [0, 0], NotCompliant),
    row("bursts-of-3", [5, 16, 8, 720], (0, 1.0000, 2), (4, 5.9986, 7), (0, 1.0063, 3), (0, 1.0063, 3), [744444, 744444, 744444], [744581, 744581], [0, 0], Narrow),
    row("bursts-of-5", [5, 16, 8, 720], (0, 2.0000, 4), (6, 8.9977, 11), (0, 2.8900, 5), (0, 2.8900, 5), [735556, 735556, 735556], [735521, 735521], [0, 0], Wide),
    row("bursts-of-16", [5, 16, 8, 720], (0, 7.5000, 15), (17, 25.4926, 33), (0, 8.2889, 16), (0, 8.2889, 16), [686667, 686667, 686667], [686646, 686646], [0, 0], Wide),
    row("bursts-of-90", [5, 16, 8, 720], (0, 44.5000, 89), (91, 136.4583, 181), (0, 44.5000, 89), (0, 44.5000, 89), [357778, 357778, 357778], [357866, 357866], [0, 0], NotCompliant),
    row("jitter-8us", [5, 16, 8, 720], (0, 0.5521, 2), (1, 2.6510, 4), (0, 0.4909, 1), (0, 0.9868, 2), [752473, 754592, 757837], [752449, 757933], [0, 0], Narrow),
    row("jitter-60us", [5, 16, 8, 720], (0, 2.7751, 11), (2, 5.4675, 13), (-6, -2.7037, 5), (-2, 1.4689, 9), [712216, 728108, 752444], [712156, 752449], [0, 0], Wide),
    row("jitter-600us", [5, 16, 8, 720], (0, 10.4198, 42), (2, 14.9605, 106), (-68, -55.0940, 36), (-26, -13.3288, 78), [294157, 453080, 696439], [294209, 696421], [0, 0], NotCompliant),
    row("overtaking", [5, 16, 8, 720], (0, 1.0851, 5), (5, 7.6247, 10), (-4, -1.7138, 1), (-4, -1.7138, 1), [723111, 723111, 723111], [723124, 723362], [0, 0], Wide),
    row("wandering-frames", [5, 16, 8, 720], (0, 0.0000, 0), (12, 18.7959, 29), (-5, 0.7994, 11), (-15, -9.8663, 1), [638055, 683439, 707553], [638008, 707626], [0, 0], Wide),
    row("twice-as-fast", [5, 16, 8, 720], (0, 1019.7861, 2039), (2, 1082.4993, 2162), (0, 1080.3910, 2160), (0, 1080.3910, 2160), [754667, 754667, 754667], [754595, 754833], [0, 0], NotCompliant),
    row("lossy", [5, 16, 8, 720], (0, 0.0000, 0), (19, 32.6609, 41), (-22, -8.3277, 1), (-22, -8.3277, 1), [584444, 584444, 584444], [584364, 584602], [0, 0], Wide),
    row("copies", [5, 16, 8, 720], (0, 0.0252, 1), (3, 8.3034, 13), (0, 5.0839, 10), (0, 5.0839, 10), [750667, 750667, 750667], [750542, 750780], [0, 0], Wide),
    row("early-by-150", [5, 16, 8, 720], (0, 0.0000, 0), (150, 150.9653, 151), (0, 0.8910, 1), (0, 0.8910, 1), [95556, 95556, 95556], [95606, 95606], [0, 0], Wide),
    row("late-by-20", [5, 16, 8, 720], (0, 0.0000, 0), (-20, -20.0000, -20), (0, 0.7799, 1), (0, 0.7799, 1), [854667, 854667, 854667], [854731, 854969], [0, 0], NotCompliant),
    row("linear-1080p50", [5, 16, 8, 720], (0, 0.0000, 0), (5, 5.9988, 6), (0, 0.4847, 1), (0, 0.4847, 1), [740000, 740000, 740000], [740051, 740051], [0, 0], NarrowLinear),
    row("gapped-1080p59", [6, 16, 9, 863], (0, 0.0000, 0), (2, 2.9995, 3), (1, 1.0000, 1), (0, 0.8691, 1), [627944, 628061, 628179], [627518, 638723], [-1, 0], Narrow),
    row("gapped-1080p25", [4, 16, 8, 720], (0, 0.0000, 0), (5, 5.9988, 6), (0, 0.5576, 1), (0, 0.5576, 1), [1480889, 1480889, 1480889], [1480818, 1481056], [0, 0], Narrow),
    row("gapped-2160p50", [20, 40, 32, 2880], (0, 0.0000, 0), (12, 12.9993, 13), (0, 0.6672, 1), (0, 0.6672, 1), [750778, 750778, 750778], [750780, 751019], [0, 0], Narrow),
    row("gapped-1080i25", [4, 16, 8, 720], (0, 0.0000, 0), (1, 1.9995, 2), (0, 0.3375, 1), (0, 0.3375, 1), [767111, 767111, 767111], [767231, 767231], [0, 0], Narrow),
    row("gapped-1080i29", [4, 16, 8, 720], (0, 0.0000, 0), (2, 2.9991, 3), (1, 1.0000, 1), (0, 0.6328, 1), [636100, 636217, 636335], [635624, 647068], [-1, 0], Narrow),
    row("gapped-625i25", [4, 16, 8, 720], (0, 0.0000, 0), (1, 1.0000, 1), (0, 0.6705, 1), (0, 0.6705, 1), [1626710, 1626710, 1626710], [1626492, 1626730], [0, 0], Narrow),
    row("gapped-525i29", [4, 16, 8, 720], (0, 0.0000, 0), (1, 1.0000, 1), (1, 1.0000, 1), (0, 0.9411, 1), [1233921, 1234038, 1234156], [1233578, 1244783], [-1, 0], Narrow),
    row("gapped-720p50", [4, 16, 8, 720], (0, 0.0000, 0), (4, 4.9979, 5), (0, 0.7026, 1), (0, 0.7026, 1), [697667, 697667, 697667], [697613, 697613], [0, 0], Narrow),
    row("linear-1080p59-at-0", [5, 16, 9, 863], (0, 0.0000, 0), (160, 160.9630, 161), (1, 1.0000, 1), (0, 0.4282, 1), [16592, 16709, 16827], [16212, 27418], [-1, 0], Wide),
    row("linear-2160p59", [23, 47, 38, 3452], (0, 0.0000, 0), (3, 3.9998, 4), (1, 1.0000, 1), (0, 0.9440, 1), [633924, 634009, 634111], [633478, 644922], [-1, 0], NarrowLinear),
];

/// The streams of a case, in the order of their groups, with the schedule that LIST was given.
fn reports(case: &Case) -> Vec<Report> {
    let schedule = if case.gapped { Schedule::Gapped } else { Schedule::Linear };
    let given = Given { schedule: Some(schedule), ..Given::default() };
    let file = pcap(&case.sent, true);
    let capture = Capture { name: case.name, content: &file };
    analyze(&[capture], &Options { given, ..Options::default() }).unwrap().streams
}

fn near_levels(name: &str, what: &str, list: Range, ours: &Levels) -> bool {
    let (least, mean, most) = list;
    let apart = [(ours.min - least) as f64, ours.mean - mean, (ours.max - most) as f64];
    assert!(
        apart.iter().all(|apart| apart.abs() <= 1.0),
        "{name}: {what} of LIST {list:?}, ours ({}, {:.4}, {})",
        ours.min,
        ours.mean,
        ours.max
    );
    apart.iter().all(|apart| apart.abs() < 0.01)
}

/// LIST computes FPT with floating-point numbers, whose steps are 238 ns in 2026. For latencies it rounds the beginning of
/// a frame to whole ticks first: half a tick is 5.6 µs.
fn near_times(name: &str, what: &str, (list, within_ns): (&[i64], f64), ours: Option<Spread>) {
    let ours = ours.unwrap();
    let ours = match list.len() {
        3 => vec![ours.min, ours.mean, ours.max],
        _ => vec![ours.min, ours.max],
    };
    for (list, ours) in list.iter().zip(ours) {
        assert!(
            (*list as f64 - ours * 1e3).abs() <= within_ns,
            "{name}: {what} of LIST {list}, ours {ours}"
        );
    }
}

#[test]
fn list_measures_the_same() {
    let (mut equal, mut all) = (0, 0);
    let cases = captures::all();
    let reports = cases.iter().flat_map(|case| {
        let of = reports(case);
        let many = of.len() > 1;
        of.into_iter().enumerate().map(move |(at, report)| match many {
            true => (format!("{}/{}", case.name, at + 1), report),
            false => (case.name.to_owned(), report),
        })
    });
    for (name, report) in reports {
        let row = LIST.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("{name}"));
        let limits = report.limits;
        let ours =
            [limits.burst_narrow, limits.burst_wide, limits.buffer_narrow, limits.buffer_wide];
        assert_eq!(ours, row.limits, "{name}");
        let levels = |reading: &Option<Reading>| reading.clone().unwrap().levels;
        for (what, list, ours) in [
            ("C_INST", row.c_inst, report.c_inst.clone()),
            ("VRX", row.ideal, levels(&report.vrx.ideal)),
            ("VRX with the mean FPT", row.adjusted, levels(&report.vrx.measured)),
            ("VRX from the first packet", row.first, levels(&report.vrx.first_packet)),
        ] {
            let is_equal = near_levels(&name, what, list, &ours);
            assert!(is_equal || what != "C_INST", "{name}: C_INST is LIST's, exactly");
            equal += usize::from(is_equal);
            all += 1;
        }
        near_times(&name, "FPT", (&row.fpt, 500.0), report.fpt_us);
        near_times(&name, "latency", (&row.latency, 6_100.0), report.latency_us);
        let offset = report.rtp_offset_ticks.unwrap();
        let apart = [offset.min - row.offset[0] as f64, offset.max - row.offset[1] as f64];
        assert!(apart.iter().all(|apart| apart.abs() <= 1.0), "{name}: {offset:?}");
        assert_eq!(report.verdict.profile, row.profile, "{name}: {:?}", report.verdict.reasons);
    }
    assert_eq!((equal, all), (75, 112), "all others are within one packet");
}

/// Writes the captures for LIST to a folder, if one is named.
#[test]
fn captures_are_written_on_request() {
    let Some(folder) = std::env::var_os("SUIRO_TIMING_CAPTURES") else { return };
    for case in captures::all() {
        let path = std::path::Path::new(&folder).join(case.name).with_extension("pcap");
        std::fs::write(path, pcap(&case.sent, true)).unwrap();
    }
}
