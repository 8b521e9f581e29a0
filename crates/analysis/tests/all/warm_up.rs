//! Trials with a warm-up, by hand: metrics are about the time after it, series about all of it.

use suiro_analysis::{Records, summarise, timeline};
use suiro_record::tables::{
    AudioRow, ConferenceRow, FrameRow, LinkRow, PlayerRow, QuicRow, RequestRow, TcpRow,
};
use suiro_record::words::{
    AudioFate, Direction, LinkCause, PlayerState, RequestKind, TcpSource, Track, Verdict,
};
use suiro_record::{LinkRate, LinkTotals, Trial};
use suiro_units::{Duration, Time};

use crate::common::{self, assert_metrics};
use crate::rivals::two_films;
use crate::trial;
use crate::why_lies::quic_row;

const MS: i64 = 1_000_000;

/// A valid trial that warms up first.
pub fn warmed(duration_s: f64, warm_up_s: f64) -> Trial {
    Trial { warm_up_s, ..common::trial(duration_s) }
}

fn state(t_ms: i64, state: PlayerState, rung_bps: Option<i64>, stalls: i64) -> PlayerRow {
    PlayerRow {
        t_ns: t_ms * MS,
        endpoint: "viewer".into(),
        state,
        buffer_ms: Some(4000.0),
        position_ms: None,
        rung_bps,
        latency_ms: rung_bps.map(|_| 1000.0),
        target_latency_ms: None,
        speed: 1.0,
        stalls,
        estimate_bps: None,
        dropped_pictures: None,
    }
}

fn segment(t_ms: i64, first_ms: i64, status: i64) -> RequestRow {
    RequestRow {
        t_ns: t_ms * MS,
        endpoint: "viewer".into(),
        kind: RequestKind::Segment,
        track: Some(Track::Video),
        body_bytes: 1,
        first_byte_ns: Some(first_ms * MS),
        done_ns: Some((first_ms + 500) * MS),
        status: Some(status),
        attempt: 1,
        ..RequestRow::default()
    }
}

/// It stalls from 5 to 6 s, from 9 to 12 s and from 25 to 26 s.
fn player() -> Records {
    let (low, high) = (Some(1_000_000), Some(3_000_000));
    let player = vec![
        state(0, PlayerState::Starting, None, 0),
        state(1_000, PlayerState::Playing, low, 0),
        state(5_000, PlayerState::Stalled, low, 1),
        state(6_000, PlayerState::Playing, high, 1),
        state(9_000, PlayerState::Stalled, high, 2),
        state(12_000, PlayerState::Playing, high, 2),
        state(20_000, PlayerState::Playing, low, 2),
        state(25_000, PlayerState::Stalled, low, 3),
        state(26_000, PlayerState::Ended, None, 3),
    ];
    let requests =
        vec![segment(2_000, 2_700, 404), segment(9_900, 10_400, 200), segment(11_000, 11_030, 200)];
    Records { player, requests, ..Records::default() }
}

#[test]
fn a_player_counts_from_the_end_of_the_warm_up_on() {
    let whole = [
        ("player.startup_s", Some(1.0)),
        ("player.stalls", Some(3.0)),
        ("player.stall_s", Some(5.0)),
        ("player.played_s", Some(20.0)),
        ("player.switches", Some(2.0)),
        ("requests.failed", Some(1.0)),
        ("requests.first_byte_p50_ms", Some(500.0)),
    ];
    assert_metrics(&warmed(30.0, 0.0), &player(), &whole);
    // 3 Mbit/s for 8 s and 1 Mbit/s for 5 s, 30 chunks a second of which cost 0.005 each; 3 s of waiting; a change by 2 Mbit/s.
    let score = 8.0 * (3000.0 - 0.15) + 5.0 * (1000.0 - 0.15) - 3.0 * 1000.0 - 40.0;
    let measured = [
        // The start itself is not left out.
        ("player.startup_s", Some(1.0)),
        // Of the stall that began at 9 s, the part from 10 s on.
        ("player.stalls", Some(2.0)),
        ("player.stall_s", Some(3.0)),
        ("player.played_s", Some(13.0)),
        ("player.stall_ratio", Some(3.0 / 16.0)),
        ("player.switches", Some(1.0)),
        ("video.rung_mean_bps", Some((3e6 * 8.0 + 1e6 * 5.0) / 13.0)),
        ("player.nqoe", Some(score)),
        ("requests.failed", Some(0.0)),
        ("requests.first_byte_p50_ms", Some(30.0)),
    ];
    assert_metrics(&warmed(30.0, 10.0), &player(), &measured);
    let drawn = timeline(&warmed(30.0, 10.0), &player(), 600);
    assert_eq!(drawn.stalls, [(5.0, 6.0), (9.0, 12.0), (25.0, 26.0)], "all of it is drawn");
}

#[test]
fn only_segments_are_abandoned() {
    let gone = |kind| RequestRow {
        kind,
        abandoned: Some("given up".into()),
        ..segment(11_000, 11_030, 200)
    };
    let abandoned = |kind, count| {
        let records = Records { requests: vec![gone(kind)], ..Records::default() };
        assert_metrics(&warmed(30.0, 10.0), &records, &[("requests.abandoned", Some(count))]);
    };
    abandoned(RequestKind::Clock, 0.0);
    abandoned(RequestKind::Segment, 1.0);
}

#[test]
fn a_stall_that_begins_as_the_warm_up_ends_counts_once() {
    let want =
        |stalls, seconds| [("player.stalls", Some(stalls)), ("player.stall_s", Some(seconds))];
    assert_metrics(&warmed(30.0, 9.0), &player(), &want(2.0, 4.0));
    assert_metrics(&warmed(30.0, 12.0), &player(), &want(1.0, 1.0));
    assert_metrics(&warmed(30.0, 5.5), &player(), &want(3.0, 4.5));
}

#[test]
fn a_trial_that_ended_in_its_warm_up_has_no_values() {
    let metrics = summarise(&warmed(8.0, 10.0), &player());
    assert_eq!(metrics["player.stall_ratio"], None);
    assert_eq!(metrics["player.nqoe"], None);
    assert_eq!(metrics["player.startup_s"], Some(1.0));
    // A length that is none is no warm-up.
    for odd in [-5.0, f64::NAN, f64::INFINITY] {
        let metrics = summarise(&warmed(30.0, odd), &player());
        assert_eq!(metrics["player.stalls"], Some(3.0), "{odd}");
    }
}

/// A frame of 25 a second that was shown so much later than it was captured.
fn frame(frame: i64, after_ms: i64) -> FrameRow {
    let displayed_ns = (frame * 40 + after_ms) * MS;
    FrameRow {
        t_ns: displayed_ns,
        endpoint: "viewer".into(),
        frame,
        captured_ns: Some(frame * 40 * MS),
        rung_bps: None,
        encoded_bytes: None,
        sent_ns: None,
        received_ns: Some(displayed_ns),
        decodable: true,
        damaged: frame < 100,
        displayed_ns: Some(displayed_ns),
    }
}

#[test]
fn a_screen_counts_from_the_end_of_the_warm_up_on() {
    // The last frame before the freeze is shown at 8860 ms, the next at 12100 ms, and the last of all at 19980 ms.
    let frames = (0..200).map(|n| frame(n, 900)).chain((300..498).map(|n| frame(n, 100)));
    let records = Records { frames: frames.collect(), ..Records::default() };
    let whole = [
        ("video.freezes", Some(1.0)),
        ("video.freeze_s", Some(3.24)),
        ("video.frames_skipped", Some(100.0)),
        ("video.frames_damaged", Some(100.0)),
        ("media.latency_max_ms", Some(900.0)),
        ("video.fps_shown", Some(398.0 / 19.1)),
    ];
    assert_metrics(&warmed(20.0, 0.0), &records, &whole);
    let measured = [
        ("video.freezes", Some(1.0)),
        ("video.freeze_s", Some(2.1)),
        ("video.freeze_max_s", Some(2.1)),
        ("video.frames_skipped", Some(0.0)),
        ("video.frames_damaged", Some(0.0)),
        ("media.latency_max_ms", Some(100.0)),
        ("video.fps_shown", Some(198.0 / 10.0)),
    ];
    assert_metrics(&warmed(20.0, 10.0), &records, &measured);
    assert_metrics(&warmed(20.0, 12.5), &records, &[("video.freezes", Some(0.0))]);
}

/// A second of one end of a call, by when it ended.
fn call(endpoint: &str, t_s: i64, sent: i64, dropped: i64, received: i64) -> ConferenceRow {
    ConferenceRow {
        t_ns: t_s * 1000 * MS,
        endpoint: endpoint.into(),
        period_ns: 1000 * MS,
        captured_pictures: 10,
        skipped_pictures: 1,
        encode_ns: 0,
        sent_packets: sent,
        sent_bytes: sent * 1000,
        dropped_again_packets: dropped,
        dropped_buffers_packets: 0,
        dropped_other_packets: 0,
        received_packets: received,
        late_packets: 2,
        refused_packets: 0,
        decode_ns: 0,
    }
}

#[test]
fn a_call_counts_from_the_end_of_the_warm_up_on() {
    let conference = vec![
        call("a", 1, 75, 25, 50),
        call("b", 1, 60, 0, 70),
        call("a", 2, 60, 0, 90),
        call("b", 2, 100, 0, 60),
    ];
    // Shown at 20, 140, 1100 and 1230 ms. Of those of 200 and 1480 ms nothing came.
    let shown = [(0, 20), (1, 100), (23, 180), (30, 30)];
    let shown = shown.map(|(number, after_ms)| FrameRow {
        endpoint: "a".into(),
        damaged: number < 10,
        ..frame(number, after_ms)
    });
    let missing = [5, 37].map(|number| FrameRow {
        endpoint: "a".into(),
        received_ns: None,
        decodable: false,
        damaged: false,
        displayed_ns: None,
        ..frame(number, 0)
    });
    let frames = shown.into_iter().chain(missing).collect();
    let records = Records { conference, frames, ..Records::default() };
    let whole = [
        ("conference.a.pictures_sent", Some(20.0)),
        ("conference.a.packets_sent", Some(135.0)),
        ("conference.a.send_loss_ratio", Some(25.0 / 160.0)),
        // 140 of the 160 packets that the other end sent.
        ("conference.a.loss_ratio", Some(0.125)),
        ("conference.a.pictures_shown", Some(4.0)),
        ("conference.a.pictures_damaged", Some(2.0)),
        ("conference.a.pictures_lost", Some(2.0)),
        ("conference.a.delay_mean_ms", Some(82.5)),
    ];
    assert_metrics(&warmed(2.0, 0.0), &records, &whole);
    let measured = [
        ("conference.a.pictures_sent", Some(10.0)),
        ("conference.a.pictures_skipped", Some(1.0)),
        ("conference.a.packets_sent", Some(60.0)),
        ("conference.a.packets_received", Some(90.0)),
        ("conference.a.packets_late", Some(2.0)),
        ("conference.a.send_loss_ratio", Some(0.0)),
        ("conference.a.loss_ratio", Some(0.1)),
        ("conference.b.loss_ratio", Some(0.0)),
        ("conference.a.pictures_shown", Some(2.0)),
        ("conference.a.pictures_damaged", Some(0.0)),
        ("conference.a.pictures_lost", Some(1.0)),
        ("conference.a.delay_mean_ms", Some(105.0)),
    ];
    assert_metrics(&warmed(2.0, 1.0), &records, &measured);
    // The second that it ends in counts as a whole.
    let second = [
        ("conference.a.packets_sent", Some(60.0)),
        ("conference.a.pictures_shown", Some(0.0)),
        ("conference.a.pictures_lost", Some(0.0)),
    ];
    assert_metrics(&warmed(2.0, 1.5), &records, &second);
}

/// A frame of sound. Those captured in the first 0.9 s are played 100 ms later, after 15 ms in the buffer; the others after 60 and 40.
fn sound(number: u64, fate: AudioFate) -> AudioRow {
    let (age_ms, held_ms) = if number < 45 { (100, 15) } else { (60, 40) };
    let played_ms = number * 20 + age_ms;
    let played = Time::from_millis(played_ms);
    let is_played = fate == AudioFate::Played;
    AudioRow {
        t_ns: played,
        endpoint: "viewer".into(),
        frame: number.cast_signed(),
        captured_ns: Some(number.cast_signed() * 20 * MS),
        encoded_bytes: None,
        received_ns: (fate != AudioFate::Lost).then(|| Time::from_millis(played_ms - held_ms)),
        fate,
        played_ns: is_played.then_some(played),
        concealed: u64::from(matches!(fate, AudioFate::Lost | AudioFate::Late)),
        buffer_target_ns: Duration::ZERO,
        heard: is_played.then_some((number + 77) % 256),
    }
}

#[test]
fn sound_counts_from_the_end_of_the_warm_up_on() {
    let fate = |number: u64| match number {
        2..6 | 55 => AudioFate::Lost,
        6 | 56 => AudioFate::Late,
        57 => AudioFate::Skipped,
        _ => AudioFate::Played,
    };
    // In the first second 45 frames, of which 40 are played; then 50, of which 47 are.
    let mut audio: Vec<AudioRow> =
        (0..45).chain(50..100).map(|number| sound(number, fate(number))).collect();
    audio[40].heard = Some(217);
    // Shown at 600, 860, 1020, 1270 and 1330 ms: their sound was 20, 200, 80, 10 and 30 ms ahead.
    let frames = [(12, 120), (14, 300), (21, 180), (30, 70), (31, 90)];
    let frames = frames.map(|(number, after_ms)| frame(number, after_ms)).to_vec();
    let records = Records { audio, frames, ..Records::default() };
    let whole = [
        ("audio.frames", Some(95.0)),
        ("audio.loss_ratio", Some(5.0 / 95.0)),
        ("audio.late_ratio", Some(2.0 / 95.0)),
        ("audio.skipped_ratio", Some(1.0 / 95.0)),
        ("audio.concealed_ratio", Some(7.0 / 94.0)),
        ("audio.latency_p95_ms", Some(100.0)),
        ("audio.buffer_mean_ms", Some((40.0 * 15.0 + 47.0 * 40.0) / 87.0)),
        ("audio.lip_sync_p95_ms", Some(200.0)),
        ("audio.lip_sync_noticed_ratio", Some(0.4)),
        ("audio.misread", Some(1.0)),
    ];
    assert_metrics(&warmed(3.0, 0.0), &records, &whole);
    let measured = [
        ("audio.frames", Some(50.0)),
        ("audio.loss_ratio", Some(0.02)),
        ("audio.late_ratio", Some(0.02)),
        ("audio.skipped_ratio", Some(0.02)),
        ("audio.concealed_ratio", Some(2.0 / 49.0)),
        ("audio.latency_p50_ms", Some(60.0)),
        ("audio.latency_p95_ms", Some(60.0)),
        ("audio.buffer_mean_ms", Some(40.0)),
        // That of the frame at 1020 ms was played before the warm-up ended.
        ("audio.lip_sync_p95_ms", Some(80.0)),
        ("audio.lip_sync_noticed_ratio", Some(1.0 / 3.0)),
        ("audio.misread", Some(0.0)),
    ];
    assert_metrics(&warmed(3.0, 1.0), &records, &measured);
}

/// A packet of 1000 bytes, 960 of them payload.
fn packet(t_ms: i64, dequeued_ms: i64, departed_ms: i64) -> LinkRow {
    LinkRow {
        t_ns: t_ms * MS,
        flow: "tcp 10.0.0.1:80>10.0.0.2:40000".into(),
        size_bytes: 1000,
        payload_bytes: Some(960),
        dequeued_ns: Some(dequeued_ms * MS),
        scheduled_ns: Some(departed_ms * MS),
        departed_ns: Some(departed_ms * MS),
        ..common::packet(Direction::Down)
    }
}

fn dropped(t_ms: i64, queue_bytes: i64) -> LinkRow {
    LinkRow {
        verdict: Verdict::Dropped,
        cause: Some(LinkCause::Queue),
        dequeued_ns: None,
        scheduled_ns: None,
        departed_ns: None,
        queue_bytes,
        ..packet(t_ms, 0, 0)
    }
}

#[test]
fn a_link_counts_from_the_end_of_the_warm_up_on() {
    let link = vec![
        packet(100, 100, 111),
        dropped(200, 9000),
        // It waits while the warm-up ends.
        packet(995, 1005, 1016),
        packet(1200, 1200, 1211),
        dropped(1300, 3000),
    ];
    let totals = LinkTotals {
        offered: 5,
        delivered: 3,
        dropped: [(LinkCause::Queue, 2)].into(),
        ..LinkTotals::new("access", Direction::Down)
    };
    let asked = LinkRate {
        link: "access".into(),
        direction: Direction::Down,
        span_s: 0.5,
        rate_bps: vec![1e6, 1e6, 48_000.0, 16_000.0],
    };
    let trial = |warm_up_s| Trial {
        links: vec![totals.clone()],
        link_rates: vec![asked.clone()],
        ..warmed(2.0, warm_up_s)
    };
    let records = Records { link, ..Records::default() };
    let whole = [
        ("link.down.loss_ratio", Some(0.4)),
        ("link.down.throughput_mean_bps", Some(12_000.0)),
        ("link.down.queue_max_bytes", Some(9000.0)),
    ];
    assert_metrics(&trial(0.0), &records, &whole);
    let measured = [
        // Of what came after the warm-up, one was delivered and one dropped.
        ("link.down.loss_ratio", Some(0.5)),
        ("link.down.loss_queue_ratio", Some(0.5)),
        ("link.down.throughput_mean_bps", Some(16_000.0)),
        ("flow.goodput_mean_bps", Some(2.0 * 960.0 * 8.0)),
        ("link.down.utilisation", Some(0.5)),
        ("link.down.queue_delay_mean_ms", Some(5.0)),
        ("link.down.delay_mean_ms", Some(16.0)),
        ("link.down.queue_max_bytes", Some(3000.0)),
        ("link.down.unaccounted", Some(0.0)),
    ];
    assert_metrics(&trial(1.0), &records, &measured);
    let none = [("link.down.loss_ratio", None), ("link.down.loss_random_ratio", None)];
    assert_metrics(&trial(1.0), &Records::default(), &none);
    let drawn = timeline(&trial(1.0), &records, 600).series;
    let drops = drawn.iter().find(|series| series.name == "link.down.drops").unwrap();
    assert_eq!((drops.values[2], drops.values[13]), (Some(1.0), Some(1.0)), "all of it is drawn");
}

fn sample(t_ms: i64, cwnd_bytes: i64, acked_bytes: i64) -> TcpRow {
    TcpRow { source: TcpSource::TcpProbe, ..trial::sample(t_ms, "a", cwnd_bytes, acked_bytes) }
}

#[test]
fn counters_of_sockets_grow_from_their_last_sample_in_the_warm_up() {
    let tcp = vec![
        sample(0, 10_000, 0),
        sample(500, 20_000, 50_000),
        sample(1500, 40_000, 80_000),
        sample(2000, 40_000, 100_000),
    ];
    let records = Records { tcp, ..Records::default() };
    let whole = [
        ("tcp.cwnd_mean_bytes", Some((10.0 * 0.5 + 20.0 + 40.0 * 0.5) / 2.0 * 1e3)),
        ("tcp.retransmits", Some(100.0)),
        ("tcp.acked_mean_bps", Some(400_000.0)),
    ];
    assert_metrics(&warmed(2.0, 0.0), &records, &whole);
    let measured = [
        // The sample of 500 ms stands until 1500 ms.
        ("tcp.cwnd_mean_bytes", Some(30_000.0)),
        ("tcp.cwnd_ack_mean_bytes", Some(40_000.0)),
        ("tcp.retransmits", Some(50.0)),
        ("tcp.acked_mean_bps", Some(400_000.0)),
        ("tcp.sockets", Some(1.0)),
    ];
    assert_metrics(&warmed(2.0, 1.0), &records, &measured);
}

fn connection(t_ms: u64, sent: u64, lost: u64) -> QuicRow {
    QuicRow {
        t_ns: Time::from_millis(t_ms),
        endpoint: "publisher".into(),
        sent_packets: Some(sent),
        sent_bytes: Some(sent * 1000),
        received_bytes: Some(1),
        lost_packets: Some(lost),
        ..quic_row()
    }
}

#[test]
fn counters_of_quic_grow_from_their_last_sample_in_the_warm_up() {
    let quic = vec![
        connection(0, 0, 0),
        connection(1000, 500, 100),
        connection(1500, 600, 110),
        connection(2000, 700, 120),
    ];
    let records = Records { quic, ..Records::default() };
    let whole = [
        ("quic.publisher.lost_packets", Some(120.0)),
        ("quic.publisher.loss_ratio", Some(120.0 / 700.0)),
        ("quic.publisher.sent_mean_bps", Some(2.8e6)),
    ];
    assert_metrics(&warmed(2.0, 0.0), &records, &whole);
    let measured = [
        ("quic.publisher.lost_packets", Some(20.0)),
        ("quic.publisher.loss_ratio", Some(0.1)),
        ("quic.publisher.sent_mean_bps", Some(1.6e6)),
    ];
    assert_metrics(&warmed(2.0, 1.0), &records, &measured);
}

/// Checks how fast films settle that last for 100 GoP times, in a trial with a warm-up of so many.
fn settling(records: &Records, warm_up_gops: f64, link_rates: &[LinkRate], want: Option<f64>) {
    // A packet is delivered 1 ms after its GoP time has begun.
    let warm_up_s = if warm_up_gops > 0.0 { warm_up_gops * 1.001 + 0.001 } else { 0.0 };
    let links = vec![LinkTotals::new("ethernet", Direction::Down)];
    let trial =
        Trial { links, link_rates: link_rates.to_vec(), ..warmed(101.5 * 1.001, warm_up_s) };
    assert_metrics(&trial, records, &[("fairness.settling_s", want)]);
}

#[test]
fn the_end_of_the_warm_up_is_no_change_after_which_a_rate_settles() {
    let slow = |gop: i64| if gop < 5 { 100 } else { 1000 };
    let joined = two_films(|gop| match gop {
        ..50 => [slow(gop), 0],
        _ => [slow(gop - 50); 2],
    });
    // The second film begins in GoP time 51: in the last case it is the first one after the warm-up.
    for warm_up_gops in [0.0, 20.0, 51.0] {
        settling(&joined, warm_up_gops, &[], Some(5.0 * 1.001));
    }
    let constant = two_films(|gop| [slow(gop), 0]);
    settling(&constant, 0.0, &[], Some(5.0 * 1.001));
    settling(&constant, 20.0, &[], None);
    // The link changes in the warm-up.
    let mut rate_bps = vec![2e6; 11];
    rate_bps[0] = 1e6;
    let asked =
        LinkRate { link: "ethernet".into(), direction: Direction::Down, span_s: 10.0, rate_bps };
    settling(&constant, 0.0, std::slice::from_ref(&asked), Some(0.0));
    settling(&constant, 20.0, &[asked], None);
}
