//! A viewer of Media over QUIC that changes to another quality: which frames it left out, and which it did not.

use suiro_analysis::why::Why;
use suiro_analysis::{Records, explain};
use suiro_record::tables::{EncoderRow, FlowRow, FrameRow, MoqSessionRow};
use suiro_record::words::{Cause, Direction, Effect};
use suiro_record::{LinkRate, Trial};
use suiro_units::{BitRate, Time};

use crate::common::trial;
use crate::why::{
    FRAME_NS, MS, SECONDS, Sent, VIDEO, carried, frames_of, main_cause, moq_session, receives,
    records_of, video,
};
use crate::why_lies::{SEEN, sentences, share};

/// The last frame of 1 Mbit/s that is played, and the first of 250 kbit/s.
const LAST: i64 = 120;
const FIRST: i64 = 135;

/// A link of 8 Mbit/s.
const WIDE: &str = "rate = '8 Mbit/s'\ndelay = '20 ms'";

fn why(records: &Records) -> Why {
    explain(&trial(SECONDS as f64), records)
}

/// Frames as a viewer has them of which nothing came, with what else its rows have.
fn gone(numbers: std::ops::Range<i64>, like: &FrameRow) -> Vec<FrameRow> {
    let row = |frame| FrameRow {
        t_ns: frame * FRAME_NS + 500 * MS,
        frame,
        captured_ns: None,
        rung_bps: None,
        encoded_bytes: None,
        sent_ns: None,
        received_ns: None,
        decodable: false,
        displayed_ns: None,
        ..like.clone()
    };
    numbers.map(row).collect()
}

/// A frame that one of the camera's encoders made.
fn made(quality: u64, frame: i64, (kbps, bytes): (u64, Option<i64>)) -> EncoderRow {
    EncoderRow {
        t_ns: Time::from_nanos((frame * FRAME_NS + 4 * MS).cast_unsigned()),
        endpoint: "camera".into(),
        quality,
        frame,
        captured_ns: Time::from_nanos((frame * FRAME_NS).cast_unsigned()),
        encoded_bytes: bytes.map(i64::cast_unsigned),
        key: frame % FIRST == 0,
        target_bps: BitRate::from_kbps(kbps),
        width: 640,
        height: 360,
        fps: 30,
        missed: 0,
        lost: false,
    }
}

/// A viewer that changes to a lower quality on a link that loses nothing.
fn changes() -> Records {
    changed(WIDE, [1000, 250])
}

/// A viewer that changes from one quality to another, in kbit/s. The old encoder makes its last frame 127, the new one its first
/// 125, and nothing is sent between the two.
fn changed(link: &str, [was, is]: [u64; 2]) -> Records {
    let bps = |frame: i64| (1000 * if frame > LAST { is } else { was }).cast_signed();
    let is_gone = |frame: i64| (LAST + 1..FIRST).contains(&frame);
    let sent = video(|at| bps(at / FRAME_NS)).into_iter();
    let sent = sent.filter(|(.., frame): &Sent| !frame.is_some_and(is_gone)).collect();
    let passed = carried(link, sent);
    let mut frames = frames_of(&passed, |_| true);
    frames.iter_mut().for_each(|row| row.rung_bps = Some(bps(row.frame)));
    let missing = gone(LAST + 1..FIRST, &frames[0]);
    frames.extend(missing);
    frames.sort_by_key(|row| row.frame);
    let size = |number: i64| {
        frames.iter().find(|row| row.frame == number).and_then(|row| row.encoded_bytes)
    };
    let (was, is) = ((was, size(LAST)), (is, size(FIRST)));
    let old = (0..128).map(|frame| made(0, frame, was));
    let new = (125..SECONDS * 30).map(|frame| made(1, frame, is));
    let encoder = old.chain(new).collect();
    let session = MoqSessionRow { endpoint: "viewer".into(), switches: Some(1), ..moq_session() };
    let link = passed.into_iter().map(|(row, _)| row).collect();
    let records = records_of(link, frames, 1_000_000);
    Records { encoder, moq_sessions: vec![session], ..records }
}

#[test]
fn frames_between_two_qualities_were_left_out_by_the_viewer() {
    let direct = changes();
    // Of a publisher on the relay's host no link shows whose frames they are.
    let relayed = FlowRow { peer: Some("relay".into()), ..receives() };
    let relayed = Records { flows: vec![relayed], ..changes() };
    for records in [direct, relayed] {
        let why = why(&records);
        let told = sentences(&why);
        assert!(why.effects.iter().all(|it| it.effect == Effect::Freeze), "{told}");
        assert_eq!(main_cause(&why, &[Effect::Freeze]), (Cause::QualityChange, 0.0), "{told}");
        let changed = "the viewer changed from 1 Mbit/s to 250 kbit/s";
        let clause = format!("{changed}, and left out 14 frames between them");
        assert_eq!(why.effects[0].because.as_deref(), Some(&*clause), "{told}");
        let step = why.effects[0].chain.last().unwrap();
        assert_eq!(step.what, changed);
        let rows = "frames[120..135]{endpoint=viewer,frame=120..136}";
        assert_eq!(step.evidence.to_string(), rows);
    }
}

#[test]
fn what_the_encoder_left_out_between_two_qualities_the_viewer_did_not() {
    let mut records = changes();
    let skipped = |row: &&mut EncoderRow| row.quality == 0 && [123, 124].contains(&row.frame);
    records.encoder.iter_mut().filter(skipped).for_each(|row| row.encoded_bytes = None);
    let why = why(&records);
    let told = sentences(&why);
    let own = share(&why, SEEN, Cause::QualityChange);
    assert!((own - 12.0 / 14.0).abs() < 1e-9, "{own}: {told}");
    assert!(told.contains("and left out 12 frames between them"), "{told}");
}

/// What a viewer has of a change between two qualities on a link whose rate falls from one tenth of a second to another.
fn after_a_fall(kbps: u64, tenths: std::ops::Range<i64>, qualities: [u64; 2]) -> Why {
    let seconds = |tenth: i64| format!("{} s", tenth as f64 / 10.0);
    let (from, to) = (seconds(tenths.start), seconds(tenths.end));
    let link = format!(
        "{WIDE}\nqueue = {{ limit = '3 s' }}\ndown.changes = [\
         {{ at = '{from}', rate = '{kbps} kbit/s' }}, {{ at = '{to}', rate = '8 Mbit/s' }}]"
    );
    let bps = |tenth: i64| if tenths.contains(&tenth) { kbps as f64 * 1e3 } else { 8e6 };
    let rates = LinkRate {
        link: "access".into(),
        direction: Direction::Down,
        span_s: 0.1,
        rate_bps: (0..SECONDS * 10).map(bps).collect(),
    };
    let trial = Trial { link_rates: vec![rates], ..trial(SECONDS as f64) };
    explain(&trial, &changed(&link, qualities))
}

/// The link falls to 500 kbit/s at 3.5 s. It needs 67 ms for each frame of 1 Mbit/s from then on: the last one comes 0.5 s late.
/// It is on the screen until just before the first of 250 kbit/s.
#[test]
fn what_made_a_viewer_change_down_is_the_cause() {
    let why = after_a_fall(500, 35..70, [1000, 250]);
    let told = sentences(&why);
    assert_eq!(main_cause(&why, &[Effect::Missing]), (Cause::RateStep, 0.0), "{told}");
    assert_eq!(share(&why, SEEN, Cause::QualityChange), 0.0, "{told}");
    let missing = why.effects.iter().find(|it| it.effect == Effect::Missing).unwrap();
    let fall = "the link fell from 8 Mbit/s to 500 kbit/s at 3.5 s";
    assert!(missing.sentence.contains(fall), "{told}");
}

/// From 2.5 to 3.5 s the link carries 100 kbit/s, and frames of 250 kbit/s wait for up to 0.5 s. A fall makes no viewer change up.
#[test]
fn a_fall_is_not_why_a_viewer_changes_up() {
    let why = after_a_fall(100, 25..35, [250, 1000]);
    let told = sentences(&why);
    assert!(share(&why, &[Effect::Late], Cause::RateStep) >= 0.9, "{told}");
    assert_eq!(main_cause(&why, &[Effect::Freeze]), (Cause::QualityChange, 0.0), "{told}");
}

#[test]
fn a_key_frame_that_came_too_late_to_be_shown_begins_a_quality() {
    let mut records = changes();
    records.frames[135].displayed_ns = None;
    let why = why(&records);
    let own = share(&why, SEEN, Cause::QualityChange);
    assert!(own >= 14.0 / 15.0 - 1e-9, "{own}: {}", sentences(&why));
}

/// Fails if a change of quality is named once the records have been changed so.
fn assert_not_named(what: &str, edit: impl Fn(&mut Records)) {
    let mut records = changes();
    edit(&mut records);
    let why = why(&records);
    assert_eq!(share(&why, SEEN, Cause::QualityChange), 0.0, "{what}: {}", sentences(&why));
}

#[test]
fn a_change_of_quality_is_named_only_where_the_records_show_it() {
    assert_not_named("no change was counted", |it| it.moq_sessions[0].switches = Some(0));
    assert_not_named("it cannot change", |it| it.moq_sessions[0].switches = None);
    assert_not_named("nothing is known of encoders", |it| it.encoder.clear());
    assert_not_named("no key frame begins it", |it| {
        it.encoder.iter_mut().for_each(|row| row.key = false);
    });
    assert_not_named("one encoder was set to another rate", |it| {
        it.encoder.iter_mut().for_each(|row| row.quality = 0);
    });
    assert_not_named("the other encoder is another publisher's", |it| {
        let new = it.encoder.iter_mut().filter(|row| row.quality == 1);
        new.for_each(|row| row.endpoint = "other".into());
    });
    assert_not_named("two encoders may have made its first frame", |it| {
        let first = it.encoder.iter().find(|row| row.frame == FIRST).unwrap().clone();
        it.encoder.push(EncoderRow { quality: 2, ..first });
    });
    // Rows are at the places of their numbers.
    assert_not_named("a frame between them came", |it| {
        it.frames[128].received_ns = Some(128 * FRAME_NS + 50 * MS);
    });
    assert_not_named("the last frame before it was not shown", |it| {
        it.frames[120].displayed_ns = None;
    });
}

/// A quality that is received again after two seconds without any viewer. Packets that probe hide from the link that its frames
/// were not sent meanwhile.
#[test]
fn an_encoder_that_is_off_leaves_nothing_out() {
    let is_off = |frame: i64| (121..180).contains(&frame);
    let probe = |n: i64| (0..6).map(move |at| (n * FRAME_NS + (5 + at) * MS, VIDEO, 1200, None));
    let is_sent = |(.., frame): &Sent| !frame.is_some_and(is_off);
    let sent = video(|_| 600_000).into_iter().filter(is_sent);
    let sent = sent.chain((121..180).flat_map(probe)).collect();
    let passed = carried("rate = '8 Mbit/s'\ndelay = '20 ms'", sent);
    let mut frames = frames_of(&passed, |_| true);
    frames.iter_mut().for_each(|row| row.rung_bps = Some(700_000));
    let missing = gone(121..180, &frames[0]);
    frames.extend(missing);
    let all = (0..SECONDS * 30).filter(|frame| !is_off(*frame));
    let encoder = all.map(|frame| made(0, frame, (700, Some(2500)))).collect();
    let link = passed.into_iter().map(|(row, _)| row).collect();
    let records = Records { encoder, ..records_of(link, frames, 700_000) };
    let why = why(&records);
    let effects = [SEEN, &[Effect::FrameRate]].concat();
    assert_eq!(share(&why, &effects, Cause::EncoderChoice), 0.0, "{}", sentences(&why));
}
