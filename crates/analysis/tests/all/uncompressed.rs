//! Streams of uncompressed video and their rings, computed by hand.

use crate::common::trial;
use suiro_analysis::{Records, standing_still, summarise, timeline};
use suiro_record::tables::{
    StandstillRow, UncompressedFrameRow, UncompressedRingRow, UncompressedShownRow,
};
use suiro_record::words::Shown;
use suiro_record::{Standstills, Trial, TrialSummary};
use suiro_units::{Duration, Seed, Time};

const MS: i64 = 1_000_000;

/// Frame `frame` of a stream, 10 ms each, begun `late_ms` after it was due, of ten packets.
fn frame(stream: i64, frame: i64, late_ms: f64) -> UncompressedFrameRow {
    let due = frame * 10 * MS;
    let t_ns = due + (late_ms * 1e6) as i64;
    UncompressedFrameRow {
        t_ns,
        endpoint: "receiver".into(),
        stream,
        frame,
        period_ns: 10 * MS,
        due_ns: Some(due),
        last_ns: Some(t_ns + 9 * MS),
        content: Some(frame),
        packets: 10,
        lost_packets: 0,
        duplicate_packets: 0,
        reordered_packets: 0,
        bytes: 1000,
        sound: Some(true),
        burst_packets: Some(4.0),
        over_packets: Some(0),
        buffer_packets: Some(7.5),
    }
}

fn second(stream: i64, s: i64, free: i64, read_bps: Option<f64>) -> UncompressedRingRow {
    UncompressedRingRow {
        t_ns: s * 1000 * MS,
        endpoint: "node".into(),
        stream,
        slots: 10,
        free,
        reading: 1,
        waiting: 8 - free,
        read_bps,
        send_bps: Some(5.0),
        repeats: free / 4,
        sent_frames: 100 * s,
        repeated_frames: 0,
    }
}

fn metric(records: &Records, name: &str) -> Option<f64> {
    *summarise(&trial(30.0), records).get(name).unwrap_or_else(|| panic!("{name} is missing"))
}

#[test]
fn streams_in_step_are_neither_late_nor_lost() {
    let rows = (0..100).flat_map(|n| [frame(0, n, 0.1), frame(1, n, 0.3)]);
    let records = Records { uncompressed: rows.collect(), ..Records::default() };
    assert_eq!(metric(&records, "stream.streams"), Some(2.0));
    assert_eq!(metric(&records, "stream.lost_packets"), Some(0.0));
    assert_eq!(metric(&records, "stream.late_frames"), Some(0.0));
    assert_eq!(metric(&records, "stream.damaged_frames"), Some(0.0));
    assert_eq!(metric(&records, "stream.over_ratio"), Some(0.0));
    assert_eq!(metric(&records, "stream.burst_max_packets"), Some(4.0));
    assert_eq!(metric(&records, "stream.buffer_max_packets"), Some(7.5));
    assert_eq!(metric(&records, "stream.skew_p99_ms"), Some(0.2));
    assert_eq!(metric(&records, "stream.lateness_max_ms"), Some(0.3));
    let rate = metric(&records, "stream.rate_mean_bps").unwrap();
    // A hundred frames of 10 ms, whatever the trial's length.
    assert!((rate - 200.0 * 1000.0 * 8.0).abs() < 1e-6, "{rate}");
}

#[test]
fn what_is_lost_late_damaged_or_bursty_counts() {
    let mut rows: Vec<_> = (0..10).flat_map(|n| [frame(0, n, 0.0), frame(1, n, 0.0)]).collect();
    // Late by more than a frame time; not at all there; damaged; above the limit.
    rows[2] = frame(0, 1, 10.5);
    rows[4] = UncompressedFrameRow {
        packets: 0,
        lost_packets: 10,
        bytes: 0,
        last_ns: None,
        sound: None,
        over_packets: None,
        ..frame(0, 2, 0.0)
    };
    rows[7].sound = Some(false);
    rows[9].over_packets = Some(5);
    let records = Records { uncompressed: rows, ..Records::default() };
    assert_eq!(metric(&records, "stream.lost_packets"), Some(10.0));
    assert_eq!(metric(&records, "stream.lost_frames"), Some(1.0));
    assert_eq!(metric(&records, "stream.late_frames"), Some(2.0));
    assert_eq!(metric(&records, "stream.damaged_frames"), Some(1.0));
    assert_eq!(metric(&records, "stream.over_ratio"), Some(5.0 / 190.0));
    assert_eq!(metric(&records, "stream.skew_max_ms"), Some(10.5));
}

/// A standstill of CPU 0.
fn standstill(from_ms: u64, length_ms: u64) -> StandstillRow {
    StandstillRow {
        t_ns: Time::from_millis(from_ms),
        length_ns: Duration::from_millis(length_ms),
        processor: 0,
        queued_ns: Duration::ZERO,
    }
}

/// A trial that was watched.
fn watched(records: &Records) -> Trial {
    let lengths = || records.standstills.iter().map(|row| row.length_ns.as_secs_f64());
    let standstills = Standstills {
        processors: 2,
        looks: 60_000,
        count: records.standstills.len() as u64,
        total_s: lengths().sum(),
        longest_s: lengths().fold(0.0, f64::max),
        least_s: 0.001_668,
        watcher_cores: 0.008,
    };
    Trial { standstills: Some(standstills), ..trial(30.0) }
}

#[test]
fn late_frames_that_fall_into_a_standstill_are_told_apart() {
    let mut rows: Vec<_> = (0..10).flat_map(|n| [frame(0, n, 0.1), frame(1, n, 0.3)]).collect();
    // Due at 10 ms and 50 ms, late by more than a frame time; the machine stalled during the first.
    rows[2] = frame(0, 1, 12.0);
    rows[11] = frame(1, 5, 15.0);
    let standstills = vec![standstill(12, 8), standstill(15, 3), standstill(40, 2)];
    let records = Records { uncompressed: rows, standstills, ..Records::default() };
    let metrics = summarise(&watched(&records), &records);
    let value = |name: &str| *metrics.get(name).unwrap_or_else(|| panic!("{name} is missing"));
    assert_eq!(value("stream.late_frames"), Some(2.0));
    assert_eq!(value("stream.late_still_frames"), Some(1.0));
    assert_eq!(value("stream.lateness_max_ms"), Some(15.0));
    assert_eq!(value("stream.lateness_max_running_ms"), Some(15.0));
    assert_eq!(value("stream.skew_max_ms"), Some(14.9));
    assert_eq!(
        (value("machine.standstills"), value("machine.standstill_max_ms")),
        (Some(3.0), Some(8.0))
    );
    assert_eq!(
        (value("machine.standstill_total_ms"), value("machine.watcher_cores")),
        (Some(13.0), Some(0.008))
    );

    // The other one, too: what is left has never been late.
    let standstills = vec![standstill(12, 8), standstill(64, 2)];
    let records = Records { standstills, ..records };
    let metrics = summarise(&watched(&records), &records);
    let value = |name: &str| *metrics.get(name).unwrap_or_else(|| panic!("{name} is missing"));
    assert_eq!(value("stream.late_still_frames"), Some(2.0));
    assert_eq!(value("stream.lateness_max_running_ms"), Some(0.3));
    assert_eq!(value("stream.skew_p99_running_ms"), Some(0.2));
    let summary = TrialSummary {
        cell: Default::default(),
        repetition: 1,
        seed: Seed(1),
        valid: true,
        skipped: false,
        invalid_because: None,
        metrics,
    };
    let told = "CPUs stalled 2 times in 1 trial, for 8.0 ms at most; 2 of 2 late frames fell into a \
                standstill; skew 14.9 ms, without them 0.2 ms (99 %, worst trial); watching took 0.008 of a CPU";
    assert_eq!(standing_still(&[summary]).as_deref(), Some(told));
}

#[test]
fn without_watchers_nothing_is_said_of_standstills() {
    let records = Records { uncompressed: vec![frame(0, 1, 12.0)], ..Records::default() };
    assert_eq!(metric(&records, "stream.late_still_frames"), None);
    assert_eq!(metric(&records, "stream.lateness_max_running_ms"), None);
    assert!(!summarise(&trial(30.0), &records).contains_key("machine.standstills"));
    assert_eq!(standing_still(&[]), None);
}

#[test]
fn without_a_common_clock_lateness_is_unknown() {
    let row =
        |stream, late| UncompressedFrameRow { due_ns: None, sound: None, ..frame(stream, 3, late) };
    let records = Records { uncompressed: vec![row(0, 0.0), row(1, 2.0)], ..Records::default() };
    for name in ["late_frames", "lateness_p99_ms", "damaged_frames", "skew_p99_ms"] {
        assert_eq!(metric(&records, &format!("stream.{name}")), None, "{name}");
    }
    assert!(!summarise(&trial(30.0), &Records::default()).contains_key("stream.streams"));
}

#[test]
fn a_ring_tells_its_least_fill_its_rates_and_its_repeats() {
    let rings = vec![
        second(0, 1, 0, None),
        second(0, 2, 4, Some(30.0)),
        second(0, 3, 0, Some(10.0)),
        // While a ring is filled, and in the second that the first frame is taken, rates are not its mean.
        UncompressedRingRow { sent_frames: 1, ..second(1, 0, 0, Some(99.0)) },
        second(1, 1, 0, Some(99.0)),
        second(1, 2, 1, Some(15.0)),
    ];
    let records = Records { rings, ..Records::default() };
    assert_eq!(metric(&records, "ring.repeats"), Some(1.0));
    assert_eq!(metric(&records, "ring.fill_min_ratio"), Some(0.5));
    // Nothing was repeated since the rings began; of another one, a fifth.
    assert_eq!(metric(&records, "ring.starved_ratio"), Some(0.0));
    let starved = UncompressedRingRow { repeated_frames: 40, ..second(2, 2, 4, None) };
    let more =
        Records { rings: [records.rings.clone(), vec![starved]].concat(), ..Records::default() };
    assert_eq!(metric(&more, "ring.starved_ratio"), Some(0.2));
    assert_eq!(metric(&records, "ring.read_mean_bps"), Some(35.0));
    assert_eq!(metric(&records, "ring.read_slowest_bps"), Some(15.0));
    assert_eq!(metric(&records, "ring.send_mean_bps"), Some(10.0));
    let memory = Records { rings: vec![second(0, 1, 0, None)], ..Records::default() };
    assert_eq!(metric(&memory, "ring.read_slowest_bps"), None);
}

#[test]
fn rings_are_drawn_together_and_each_by_itself() {
    let rings = (0..3).flat_map(|s| [second(0, s, 2, Some(30.0)), second(1, s, s, Some(10.0))]);
    let records = Records { rings: rings.collect(), ..Records::default() };
    let timeline = timeline(&trial(30.0), &records, 30);
    assert_eq!(timeline.bin_s, 1.0);
    let values = |name: &str| {
        let series = timeline.series.iter().find(|series| series.name == name);
        series.unwrap_or_else(|| panic!("{name} is missing")).values[..3].to_vec()
    };
    // From each second's row to the next: what waited at its beginning, what was read in it.
    assert_eq!(values("ring.node.0.waiting"), [Some(6.0), Some(6.0), None]);
    assert_eq!(values("ring.node.1.waiting"), [Some(8.0), Some(7.0), None]);
    assert_eq!(values("ring.waiting"), [Some(6.0), Some(6.0), None]);
    assert_eq!(values("ring.read_bps"), [Some(40.0), Some(40.0), None]);
    assert_eq!(values("ring.send_bps"), [Some(10.0), Some(10.0), None]);
    assert_eq!(values("ring.node.1.read_bps"), [Some(10.0), Some(10.0), None]);
}

#[test]
fn the_latest_frame_and_what_is_lost_are_drawn() {
    let mut rows: Vec<_> = (0..10).flat_map(|n| [frame(0, n, 0.0), frame(1, n, 2.5)]).collect();
    let drawn = |rows: &[UncompressedFrameRow], name: &str| {
        let records = Records { uncompressed: rows.to_vec(), ..Records::default() };
        let series = timeline(&trial(30.0), &records, 30).series;
        series
            .into_iter()
            .find(|series| series.name == name)
            .map(|series| series.values[..2].to_vec())
    };
    assert_eq!(drawn(&rows, "stream.lateness_ms"), Some(vec![Some(2.5), None]));
    assert_eq!(drawn(&rows, "stream.lost_packets"), None);
    rows[3].lost_packets = 4;
    assert_eq!(drawn(&rows, "stream.lost_packets"), Some(vec![Some(4.0), Some(0.0)]));
}

/// Tick `tick` of a stream, 10 ms each, whose converter shows frames four ticks after they begin.
fn shown(stream: i64, tick: i64, frame: Option<i64>, outcome: Shown) -> UncompressedShownRow {
    UncompressedShownRow {
        t_ns: tick * 10 * MS,
        endpoint: "converter".into(),
        stream,
        tick,
        period_ns: 10 * MS,
        wanted_frame: tick - 4,
        frame,
        content: frame.map(|frame| frame % 30),
        outcome,
        margin_ns: (outcome != Shown::Underrun).then_some((5 + stream) * MS),
        skipped_frames: 0,
        late_ns: stream * MS / 10,
    }
}

/// Ticks at which both streams show the wanted frame.
fn in_step(ticks: std::ops::Range<i64>) -> Vec<UncompressedShownRow> {
    let both = |tick| [0, 1].map(|stream| shown(stream, tick, Some(tick - 4), Shown::New));
    ticks.flat_map(both).collect()
}

#[test]
fn converters_that_show_the_same_frame_at_each_tick_are_in_step() {
    let records = Records { shown: in_step(4..104), ..Records::default() };
    let value = |name: &str| metric(&records, &format!("converter.{name}"));
    assert_eq!((value("streams"), value("ticks")), (Some(2.0), Some(100.0)));
    for none in ["underruns", "repeats", "skipped_frames", "apart_ticks", "mixed_ticks"] {
        assert_eq!(value(none), Some(0.0), "{none}");
    }
    assert_eq!((value("margin_min_ms"), value("tick_late_max_ms")), (Some(5.0), Some(0.1)));
    assert!(!summarise(&trial(30.0), &Records::default()).contains_key("converter.ticks"));
}

#[test]
fn an_underrun_a_repeat_and_a_stream_that_is_missing_are_out_of_step() {
    let mut rows = in_step(4..14);
    // No new frame at tick 6; the next one passes over one frame.
    rows[4] = shown(0, 6, Some(1), Shown::Underrun);
    rows[6].skipped_frames = 1;
    // Its sender repeats the frame at tick 8, and is a frame behind at tick 9.
    rows[8] = UncompressedShownRow { content: Some(3), ..shown(0, 8, Some(4), Shown::Repeat) };
    rows[10] = UncompressedShownRow { content: Some(4), ..shown(0, 9, Some(5), Shown::New) };
    // The other stream begins later, and has no row of tick 12.
    rows.retain(|row| row.stream == 0 || (row.tick != 4 && row.tick != 12));
    let records = Records { shown: rows.clone(), ..Records::default() };
    let value = |name: &str| metric(&records, &format!("converter.{name}"));
    assert_eq!((value("underruns"), value("skipped_frames")), (Some(1.0), Some(1.0)));
    assert_eq!((value("repeats"), value("ticks")), (Some(1.0), Some(9.0)));
    assert_eq!((value("apart_ticks"), value("mixed_ticks")), (Some(2.0), Some(4.0)));
    let series = timeline(&trial(30.0), &records, 30).series;
    let drawn = |name: &str| series.iter().find(|series| series.name == name).unwrap().values[0];
    assert_eq!(drawn("converter.underruns"), Some(1.0));
    assert_eq!(drawn("converter.margin_ms"), Some(5.0));

    // Packets that do not carry the frame's number.
    rows.iter_mut().for_each(|row| row.content = None);
    let unknown = Records { shown: rows.clone(), ..Records::default() };
    assert_eq!(metric(&unknown, "converter.mixed_ticks"), None);
    rows.retain(|row| row.stream == 0);
    let alone = Records { shown: rows, ..Records::default() };
    assert_eq!(metric(&alone, "converter.apart_ticks"), None);
}
