//! Timing of streams in captures: by hand, against the EBU's LIST, and what is wrong with captures.

mod captures;
mod generator;
mod oracle;
mod own;

use std::net::SocketAddr;

use suiro_capture::file::{Counted, Described, ETHERNET, Writer};
use suiro_uncompressed::timing::model::{Scan, Schedule};
use suiro_uncompressed::timing::{
    Analysis, Basis, Capture, Error, Given, Known, Options, Profile, Report, analyze,
};

use generator::{LENGTH, Sent, Video, headers, pcap};

fn run(file: &[u8], options: &Options) -> Result<Analysis, Error> {
    analyze(&[Capture { name: "a.pcap", content: file }], options)
}

/// The only stream of a capture.
fn one(sent: &[Sent]) -> Report {
    let analysis = run(&pcap(sent, true), &Options::default()).unwrap();
    analysis.streams.into_iter().next().unwrap()
}

/// A case of [`captures::all`], as it is read without any settings.
fn case(name: &str) -> Report {
    let case = captures::all().into_iter().find(|case| case.name == name).unwrap();
    one(&case.sent)
}

#[test]
fn what_a_stream_is_follows_from_its_packets() {
    for case in captures::all() {
        let name = case.name;
        let report = one(&case.sent);
        let format = &report.format;
        assert_eq!(u64::from(format.packets_per_frame), case.video.packets, "{name}");
        assert_eq!(format.height, Some(case.video.height as u32), "{name}");
        assert_eq!(format.scan == Scan::Interlaced, case.video.interlaced, "{name}");
        assert!((format.t_frame_us - case.video.period() / 1e3).abs() < 1e-6, "{name}");
        // Two senders leave a pause after each frame that is none of a schedule, or fill it with late packets.
        if !["jitter-600us", "bursts-of-90"].contains(&name) {
            assert_eq!(format.schedule == Schedule::Gapped, case.gapped, "{name}");
        }
        assert_eq!(
            (report.clock.tai_offset_s, report.clock.from),
            (0, Known::Timestamps),
            "{name}"
        );
    }
}

#[test]
fn a_gapped_sender_that_keeps_its_schedule_is_narrow() {
    // 3.1 packets before their reading, which makes 4 that are not yet read.
    let report = case("gapped-1080p50");
    let vrx = report.vrx.ideal.as_ref().unwrap();
    assert_eq!((report.c_inst.min, report.c_inst.max), (0, 0));
    assert_eq!((vrx.levels.min, vrx.levels.max), (4, 4));
    assert_eq!(report.verdict.profile, Profile::Narrow);
    assert_eq!(report.verdict.basis, Basis::Default);
    assert_eq!(report.verdict.reasons, Vec::<String>::new());
    assert!(report.is_well(), "{:?}", report.checks);
    // T_VD is 764.4 µs after the frame begins, T_RS 4.444 µs: 13.8 µs before it.
    let fpt = report.fpt_us.unwrap();
    assert!((fpt.mean - 750.667).abs() < 0.01, "{fpt:?}");
    assert!((vrx.margin_us.min - 13.778).abs() < 0.01, "{:?}", vrx.margin_us);
    assert!((vrx.first_margin_us.max - 13.778).abs() < 0.01, "{:?}", vrx.first_margin_us);
    // The RTP timestamp is the beginning of the frame: 1800 ticks from one to the next.
    let latency = report.latency_us.unwrap();
    assert!((latency.max - 750.667).abs() < 0.01, "{latency:?}");
    let step = report.rtp_step_ticks.unwrap();
    assert_eq!((step.min, step.max), (1800.0, 1800.0));
    let spacing = report.spacing_us;
    assert!((spacing.within.unwrap().mean - 4.444).abs() < 0.001);
    // 0.04 of 20 ms in addition.
    assert!((spacing.between.unwrap().mean - 804.444).abs() < 0.01);
}

#[test]
fn a_linear_sender_has_a_constant_level() {
    let report = case("linear-1080p50");
    let vrx = report.vrx.ideal.as_ref().unwrap();
    // 0.0382222 − 0.037 of 20 ms are 5.28 packets of 4.63 µs.
    assert_eq!((vrx.levels.min, vrx.levels.max), (6, 6));
    assert_eq!(report.verdict.profile, Profile::NarrowLinear);
}

#[test]
fn bursts_fill_both_buffers() {
    let report = case("bursts-of-16");
    // The burst before has drained but for one: 16 · 4.44 µs are 16.9 of T_DRAIN.
    assert_eq!(report.c_inst.max, 15);
    // They come 17.5 packets before their reading, at once: the first is one of 18 to read.
    let vrx = &report.vrx.ideal.as_ref().unwrap().levels;
    assert_eq!((vrx.min, vrx.max), (18, 33));
    assert_eq!(report.verdict.profile, Profile::Wide);
    assert_eq!(report.verdict.network, Profile::Wide);
    let reasons = report.verdict.reasons.join("\n");
    assert!(reasons.contains("C_INST reaches 15, above C_MAX of narrow senders, 5"), "{reasons}");
    assert!(reasons.contains("VRX reaches 33, above VRX_FULL of narrow receivers, 8"), "{reasons}");
    assert_eq!(case("bursts-of-90").verdict.network, Profile::NotCompliant);
    // In the bursts of 3 that the narrow limits allow, VRX is 3 + 1.5 ahead.
    let three = case("bursts-of-3");
    assert_eq!((three.c_inst.max, three.verdict.profile), (2, Profile::Narrow));
}

#[test]
fn a_late_sender_is_told_by_how_much_and_what_offset_would_do() {
    let report = case("late-by-20");
    assert_eq!(report.verdict.profile, Profile::NotCompliant);
    let vrx = report.vrx.ideal.as_ref().unwrap();
    assert_eq!(vrx.levels.max, -20);
    // 20.3 packets of 4.444 µs.
    assert!((vrx.margin_us.min + 90.22).abs() < 0.01, "{:?}", vrx.margin_us);
    assert!(report.verdict.reasons[0].contains("came after their reading, up to 90.2 µs"));
    let least = report.vrx.least.as_ref().unwrap();
    assert_eq!(least.levels.min, 0);
    // The next packet's reading: 764.444 + 90.222 − 4.444 µs.
    assert!((least.offset_us - 850.22).abs() < 0.01, "{}", least.offset_us);
    // With that offset announced, it is narrow.
    let given = Given { troff_us: Some(855), ..Given::default() };
    let options = Options { given, ..Options::default() };
    let sent = Video::HD50.gapped(-20.3);
    let analysis = run(&pcap(&sent, true), &options).unwrap();
    let verdict = &analysis.streams[0].verdict;
    assert_eq!((verdict.profile, verdict.basis), (Profile::Narrow, Basis::Announced));
}

#[test]
fn lost_packets_are_counted_and_explain_the_level() {
    let report = case("lossy");
    let sent = Video::HD50.gapped(40.5).len();
    assert_eq!(report.sequence.lost, (sent - report.packets) as u64);
    assert!(report.sequence.lost > 80, "{:?}", report.sequence);
    assert_eq!(report.markers.missing, 0);
    let copies = case("copies").sequence;
    assert_eq!((copies.lost, copies.copies, copies.reordered), (0, 52, 0));
    let overtaking = case("overtaking").sequence;
    assert!(overtaking.reordered > 1000 && overtaking.lost == 0, "{overtaking:?}");
}

#[test]
fn times_in_utc_are_made_tai() {
    let utc = |sent: &Sent| Sent { t_ns: sent.t_ns - 37_000_000_000, ..*sent };
    let sent: Vec<Sent> = Video::HD50.gapped(3.1).iter().map(utc).collect();
    let report = one(&sent);
    assert_eq!((report.clock.tai_offset_s, report.clock.from), (37, Known::Timestamps));
    assert_eq!(report.verdict.profile, Profile::Narrow);
    // Told that it is TAI, it is 37 s early, and frames begin at other times.
    let options = Options { tai_offset_s: Some(0), ..Options::default() };
    let analysis = run(&pcap(&sent, true), &options).unwrap();
    let report = &analysis.streams[0];
    assert_eq!(report.clock.from, Known::Given);
    assert!(!report.is_well());
}

#[test]
fn a_clock_of_its_own_leaves_what_needs_no_clock() {
    let own = |sent: &Sent| Sent { t_ns: sent.t_ns - 1_000_000_003_217, ..*sent };
    let sent: Vec<Sent> = Video::HD50.gapped(3.1).iter().map(own).collect();
    let report = one(&sent);
    assert_eq!(report.clock.from, Known::Unknown);
    assert_eq!((&report.fpt_us, &report.latency_us, &report.vrx.ideal), (&None, &None, &None));
    assert_eq!((report.verdict.profile, report.verdict.basis), (Profile::Narrow, Basis::Least));
    // Packets come at their reading, give or take the rounding to nanoseconds.
    for reading in [report.vrx.least.unwrap(), report.vrx.first_packet.unwrap()] {
        assert!((0..=1).contains(&reading.levels.min) && (0..=1).contains(&reading.levels.max));
    }
}

#[test]
fn microseconds_and_pcapng_are_read_too() {
    let sent = captures::all().into_iter().find(|case| case.name == "jitter-8us").unwrap().sent;
    let exact = one(&sent);
    let rounded = run(&pcap(&sent, false), &Options::default()).unwrap().streams.remove(0);
    let near = |a: i64, b: i64| (a - b).abs() <= 1;
    assert!(near(rounded.c_inst.max, exact.c_inst.max));
    let (a, b) = (rounded.vrx.ideal.unwrap().levels, exact.vrx.ideal.clone().unwrap().levels);
    assert!(near(a.min, b.min) && near(a.max, b.max));
    let interface = Described { name: "x", description: "", link: ETHERNET, snap: 96 };
    let mut file = Writer::new(Vec::new(), &interface).unwrap();
    for packet in &sent {
        file.packet(packet.t_ns, &headers(packet), LENGTH, None).unwrap();
    }
    let counted = Counted { dropped: 3, ..Counted::default() };
    let analysis = run(&file.finish(&counted).unwrap(), &Options::default()).unwrap();
    assert_eq!(analysis.files[0].lost, 3);
    let report = &analysis.streams[0];
    assert_eq!((&report.c_inst, &report.vrx.ideal), (&exact.c_inst, &exact.vrx.ideal));
}

#[test]
fn two_legs_are_compared() {
    let case = captures::all().into_iter().find(|case| case.name == "two-legs").unwrap();
    let analysis = run(&pcap(&case.sent, true), &Options::default()).unwrap();
    assert_eq!(analysis.streams.len(), 2);
    let [pair] = &analysis.pairs[..] else { panic!("{:?}", analysis.pairs) };
    // 25,920 packets from 60,000 on: 259 of the second leg are missing, those that end in 50.
    assert_eq!((pair.packets, pair.common, pair.lost), (25_920, 25_661, [0, 259]));
    assert_eq!((pair.recovered, pair.lost_on_both, pair.different), (259, 0, 0));
    assert!(pair.skew_us.min >= 250.0 && pair.skew_us.max < 270.0, "{:?}", pair.skew_us);
    assert_eq!(analysis.streams[1].sequence.lost, 259);

    // In two files with one address; a packet is lost on both, and one has other contents.
    let leg = |group: u8| -> Vec<Sent> {
        let begins = if group == 1 { 60_000 } else { 60_010 };
        let is_of = |packet: &&Sent| packet.group == group && packet.sequence >= begins;
        let of = case.sent.iter().filter(is_of).filter(|packet| packet.sequence != 70_000);
        let change = |packet: &Sent| Sent {
            group: 1,
            content: if group == 2 && packet.sequence == 70_001 { 99 } else { packet.content },
            ..*packet
        };
        of.map(change).collect()
    };
    let files = [pcap(&leg(1), true), pcap(&leg(2), true)];
    let captures =
        [Capture { name: "a", content: &files[0] }, Capture { name: "b", content: &files[1] }];
    let analysis = analyze(&captures, &Options::default()).unwrap();
    let [pair] = &analysis.pairs[..] else { panic!("{:?}", analysis.pairs) };
    assert_eq!((pair.packets, pair.lost), (25_910, [1, 260]));
    assert_eq!((pair.recovered, pair.lost_on_both, pair.different), (259, 1, 1));
}

#[test]
fn streams_of_one_device_are_no_legs() {
    let other = |packet: &Sent| Sent { group: 2, content: packet.content ^ 1, ..*packet };
    let sent = Video::HD50.gapped(3.1);
    let both: Vec<Sent> = sent.iter().flat_map(|packet| [*packet, other(packet)]).collect();
    let analysis = run(&pcap(&both, true), &Options::default()).unwrap();
    assert_eq!((analysis.streams.len(), analysis.pairs.len()), (2, 0));
}

#[test]
fn markers_are_checked() {
    let mut sent = Video::HD50.gapped(3.1);
    sent.iter_mut().for_each(|packet| packet.marker = false);
    let report = one(&sent);
    assert_eq!((report.markers.missing, report.frames), (5, 6));
    assert_eq!((report.format.packets_per_frame, report.verdict.profile), (4320, Profile::Narrow));
    let check = report.checks.iter().find(|check| check.name == "markers").unwrap();
    assert!(!check.holds && !report.is_well());
    let mut sent = Video::HD50.gapped(3.1);
    sent[4320 * 3 + 5].marker = true;
    let report = one(&sent);
    assert_eq!((report.markers.early, report.markers.missing), (1, 0));
    assert_eq!(report.format.packets_per_frame, 4320);
}

#[test]
fn what_cannot_be_analysed_is_named_with_a_remedy() {
    let refused = |file: &[u8], options: &Options| run(file, options).unwrap_err().to_string();
    let any = Options::default();
    let whole = pcap(&Video::HD50.gapped(3.1), true);
    assert!(refused(b"not a capture", &any).contains("a.pcap: not a capture"));
    assert!(refused(&whole[..24], &any).contains("no RTP stream of 10 packets or more: found 0"));
    let mut broken = whole.clone();
    broken[24 + 8..24 + 12].copy_from_slice(&[0xff; 4]);
    assert!(refused(&broken, &any).contains("at byte 32: a packet longer than 16 MiB"));
    // Two frames are not enough.
    let short = Video { frames: 2, ..Video::HD50 }.gapped(3.1);
    assert!(refused(&pcap(&short, true), &any).contains("expected at least 3\nhint: capture"));
    // Timestamps of 37 frames per second.
    let strange = Video { rate: (37, 1), ..Video::HD50 }.gapped(3.1);
    let text = refused(&pcap(&strange, true), &any);
    assert!(
        text.contains("the frame rate is unknown: 2432 ticks") && text.contains("hint: --rate")
    );
    // A stream of audio: a timestamp for each packet.
    let audio = |packet: &Sent| Sent { timestamp: packet.sequence * 48, ..*packet };
    let audio: Vec<Sent> = Video::HD50.gapped(3.1).iter().map(audio).collect();
    assert!(refused(&pcap(&audio, true), &any).contains("not video"));
    // 48 packets at once, as a kernel hands them to a capture before they are divided.
    let mut gathered = whole.clone();
    gathered[24 + 16 + 16..24 + 16 + 18].copy_from_slice(&60_000u16.to_be_bytes());
    let text = refused(&gathered, &any);
    assert!(
        text.contains("IP packets of 60000 bytes are larger") && text.contains("hint: capture")
    );
    let only: SocketAddr = "239.0.0.9:5004".parse().unwrap();
    let text = refused(&whole, &Options { only: vec![only], ..any });
    assert!(
        text.contains(
            "no RTP stream to 239.0.0.9:5004: the captures have streams to 239.0.0.1:5004"
        )
    );
}

#[test]
fn a_capture_that_ends_in_a_packet_is_analysed_up_to_it() {
    let whole = pcap(&Video::HD50.gapped(3.1), true);
    let analysis = run(&whole[..whole.len() - 7], &Options::default()).unwrap();
    assert!(analysis.files[0].cut);
    assert_eq!(analysis.streams[0].packets, 6 * 4320 - 1);
    assert_eq!(analysis.streams[0].verdict.profile, Profile::Narrow);
}

#[test]
fn what_is_given_counts_more_than_what_is_found() {
    let given = Given {
        rate: Some("25".parse().unwrap()),
        height: Some(1080),
        scan: Some(Scan::Interlaced),
        schedule: Some(Schedule::Linear),
        packets: Some(2000),
        ..Given::default()
    };
    let analysis =
        run(&pcap(&Video::HD50.gapped(3.1), true), &Options { given, ..Options::default() });
    let format = &analysis.unwrap().streams[0].format;
    assert_eq!((format.packets_per_frame, &*format.frame_rate), (2000, "25"));
    assert_eq!((format.schedule, format.t_frame_us), (Schedule::Linear, 20_000.0));
}
