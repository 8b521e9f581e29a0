//! `suiro uncompressed analyze`: the text, the JSON and the refusals. The numbers are tested in the crate `uncompressed`.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Two legs of four small frames at 50 per second, 50 µs apart; the second one lost a packet.
const CAPTURE: &str = "../../fuzz/seeds/capture/st2110.pcap";

fn analyze(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_suiro"));
    command.args(["uncompressed", "analyze"]).args(arguments).output().unwrap()
}

fn said(arguments: &[&str], code: i32) -> [String; 2] {
    let output = analyze(arguments);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let said = [text(&output.stdout), text(&output.stderr)];
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said:?}");
    said
}

#[test]
fn a_capture_as_text() {
    let only = ["--to", "239.0.0.1:5004", "--histograms"];
    let [text, errors] = said(&[&[CAPTURE][..], &only].concat(), 0);
    assert_eq!(errors, "");
    for part in [
        "1002 rows, progressive, 50 frames/s, 14 packets per frame, IP packets up to 1262 bytes, read gapped",
        "clock: the capture's times are TAI, because RTP timestamps agree",
        "result: narrow (C_INST: narrow; VRX with TRO_DEFAULT: narrow)",
        "ok: markers: 0 frames without one",
        "C_MAX narrow 4, wide 16",
        "TRO_DEFAULT 746.67",
        "C_INST: packets with each value",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains("stream 2"), "{text}");
}

#[test]
fn two_legs_as_json() {
    let [json, _] = said(&[CAPTURE, "--json"], 1);
    let analysis: Value = serde_json::from_str(&json).unwrap();
    let [first, second] = &analysis["streams"].as_array().unwrap()[..] else { panic!("{json}") };
    assert_eq!(first["verdict"]["profile"], "narrow");
    assert_eq!(second["verdict"]["profile"], "not_compliant");
    assert_eq!(second["sequence"]["lost"], 1);
    assert_eq!(first["limits"]["vrx_full_narrow"], 8);
    let pair = &analysis["pairs"][0];
    assert_eq!((&pair["recovered"], &pair["lost"][1]), (&Value::from(1), &Value::from(1)));
    assert_eq!(pair["skew_us"]["max"], 50.0);
    // With an offset that both keep, only what follows the lost packet is late.
    let [json, _] = said(&[CAPTURE, "--json", "--troff", "2500", "--tai-offset", "0"], 0);
    let analysis: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(analysis["streams"][0]["clock"]["from"], "given");
    assert_eq!(analysis["streams"][1]["verdict"]["basis"], "announced");
}

#[test]
fn a_description_is_taken_and_one_of_another_stream_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let describe = |name: &str, parameters: &str, group: u8| {
        let text = format!(
            "v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\nt=0 0\nm=video 5004 RTP/AVP 96\nc=IN IP4 239.0.0.{group}/64\n\
             a=rtpmap:96 raw/90000\na=fmtp:96 {parameters}\n"
        );
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let only = ["--to", "239.0.0.1:5004"];
    let good = "width=1920; height=1080; exactframerate=50; TP=2110TPN; TROFF=760";
    let own = describe("own.sdp", good, 1);
    let [text, _] = said(&[&[CAPTURE, "--sdp", &own][..], &only].concat(), 0);
    assert!(text.contains("VRX with the announced TROFF: narrow"), "{text}");
    assert!(text.contains("ok: sender type: narrow; expected narrow, as announced (TP)"), "{text}");
    let other = describe("other.sdp", good, 9);
    let [_, errors] = said(&[&[CAPTURE, "--sdp", &other][..], &only].concat(), 0);
    assert!(errors.contains("a stream to 239.0.0.9:5004, which is not analysed"), "{errors}");
    let wrong = describe("wrong.sdp", "TP=fast", 1);
    let [_, errors] = said(&[CAPTURE, "--sdp", &wrong], 2);
    assert!(errors.contains("wrong.sdp: line 8: expected TP=2110TPN"), "{errors}");
}

#[test]
fn what_is_no_capture_is_refused() {
    let [_, errors] = said(&["/nowhere.pcap"], 2);
    assert!(errors.contains("/nowhere.pcap: No such file"), "{errors}");
    let source = Path::new("Cargo.toml");
    let [_, errors] = said(&[source.to_str().unwrap()], 2);
    assert!(errors.contains("not a capture") && errors.contains("hint: "), "{errors}");
    let [_, errors] = said(&[CAPTURE, "--rate", "0"], 2);
    assert!(errors.contains("expected 1 to 1000 per second"), "{errors}");
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.pcap");
    let whole = std::fs::read(CAPTURE).unwrap();
    std::fs::write(&cut, &whole[..whole.len() - 5]).unwrap();
    let [_, errors] = said(&[cut.to_str().unwrap(), "--to", "239.0.0.1:5004"], 0);
    assert!(errors.contains("ends within a packet: what is before it is analysed"), "{errors}");
}
