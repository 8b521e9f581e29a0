//! What requests say of their players, written and read.

use proptest::prelude::*;

use super::*;

fn said() -> Cmcd {
    Cmcd {
        version: 1,
        session: Some("6e2fb550-c457-11e9-bb97-0800200c9a66".into()),
        sequence: Some(7),
        object: Some("v".into()),
        format: Some("d".into()),
        stream: Some("l".into()),
        state: Some("p".into()),
        bitrate_bps: Some(3_200_000),
        top_bps: Some(6_000_000),
        duration_ms: Some(4004),
        buffer_ms: Some(21_349),
        deadline_ms: Some(18_510),
        measured_bps: Some(25_449_000),
        maximum_bps: Some(15_000_000),
        startup: Some(true),
        starved: Some(true),
        speed: Some(1.08),
        latency_ms: Some(1637),
        next: Some("../300kbps/track.m4v".into()),
        ..Cmcd::default()
    }
}

#[test]
fn version_1_in_a_query_and_in_headers() {
    let text = "CMCD=bl%3D21300%2Cbr%3D3200%2Cbs%2Cd%3D4004%2Cdl%3D18500%2Cmtp%3D25400%2Cnor%3D%22..%252F300kbps\
                %252Ftrack.m4v%22%2Cot%3Dv%2Cpr%3D1.08%2Crtp%3D15000%2Csf%3Dd%2Csid%3D%226e2fb550-c457-11e9-bb97-\
                0800200c9a66%22%2Cst%3Dl%2Csu%2Ctb%3D6000";
    assert_eq!(said().argument(), text);
    let headers = said().headers();
    let of = |name: &str| {
        headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.to_str().expect("ASCII"))
    };
    assert_eq!(of("cmcd-object"), Some("br=3200,d=4004,ot=v,tb=6000"));
    let asked = "bl=21300,dl=18500,mtp=25400,nor=\"..%2F300kbps%2Ftrack.m4v\",su";
    assert_eq!(of("cmcd-request"), Some(asked));
    assert_eq!(of("cmcd-status"), Some("bs,rtp=15000"));
    let session = "pr=1.08,sf=d,sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\",st=l";
    assert_eq!(of("cmcd-session"), Some(session));
    let from_query =
        read(Some(&format!("a=1&{text}")), &HeaderMap::new()).expect("it says something");
    assert_eq!(read(None, &headers.into_iter().collect()), Some(from_query.clone()));
    let Read { said, problem } = from_query;
    assert_eq!((said.buffer_ms, said.bitrate_bps, problem), (Some(21_300), Some(3_200_000), None));
    // As it was written: what an address means is for others to say.
    assert_eq!(said.next.as_deref(), Some("..%2F300kbps%2Ftrack.m4v"));
    assert_eq!((said.sequence, said.latency_ms, said.version), (None, None, 1));
}

#[test]
fn a_speed_is_said_unless_it_is_normal() {
    let written = |speed| {
        let said = Cmcd { version: 1, speed: Some(speed), ..Cmcd::default() };
        said.argument()
    };
    let expected = ["CMCD=pr%3D0", "CMCD=", "CMCD=", "CMCD=pr%3D1.1", "CMCD=pr%3D0.95"];
    assert_eq!([0.0, 1.0, 1.001, 1.1, 0.95].map(written), expected);
}

#[test]
fn version_2_has_lists_and_more_keys() {
    let second = Cmcd { version: 2, next: Some("11.m4s".into()), ..said() };
    let headers: HeaderMap = second.headers().into_iter().collect();
    assert_eq!(headers["cmcd-object"], "br=(3200;v),d=4004,ot=v,tb=(6000;v)");
    let asked = "bl=(21300;v),dl=18500,ltc=1637,mtp=(25400;v),nor=(\"11.m4s\"),sn=7,sta=p,su";
    assert_eq!(headers["cmcd-request"], asked);
    assert_eq!(headers["cmcd-status"], "bs,pr=1.08,rtp=15000");
    let session = "sf=d,sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\",st=l,v=2";
    assert_eq!(headers["cmcd-session"], session);
    let Read { said, problem } = read(None, &headers).expect("it says something");
    assert_eq!(problem, None);
    assert_eq!((said.version, said.sequence, said.latency_ms), (2, Some(7), Some(1637)));
    assert_eq!((said.state.as_deref(), said.next.as_deref()), (Some("p"), Some("11.m4s")));
    assert_eq!((said.bitrate_bps, said.measured_bps), (Some(3_200_000), Some(25_400_000)));
}

/// CTA-5004-B, section 8.1.4: what is no media has values without a kind of object.
#[test]
fn values_of_version_2_have_the_kind_of_media_that_they_are_of() {
    let written = |object: &str| {
        let object = Some(object.into());
        Cmcd { version: 2, object, measured_bps: Some(15_000_000), ..Cmcd::default() }.headers()
    };
    let measured = |object| written(object)[1].1.clone();
    let expected = ["mtp=(15000;v)", "mtp=(15000;a)", "mtp=(15000;av)"];
    assert_eq!(["v", "a", "av"].map(measured), expected);
    assert_eq!(["m", "i", "o"].map(measured), ["mtp=(15000)"; 3]);
}

/// CTA-5004-B, section 6, item 8.
#[test]
fn a_query_is_ignored_if_there_are_headers() {
    let mut headers = HeaderMap::new();
    headers.insert("cmcd-object", HeaderValue::from_static("br=3200"));
    let read = read(Some("CMCD=br%3D100%2Cbl%3D2000%2Csid%3D%22a%22"), &headers);
    let said = Cmcd { version: 1, bitrate_bps: Some(3_200_000), ..Cmcd::default() };
    assert_eq!(read, Some(Read { said, problem: None }));
}

/// CTA-5004-B, section 6, item 13.
#[test]
fn of_a_later_version_nothing_is_kept_but_its_number() {
    let read = |query| read(Some(query), &HeaderMap::new()).expect("it says something");
    let later = read("CMCD=bl%3D(2000%3Bv)%2Cbr%3Dfast%2Csid%3D%22a%22%2Cv%3D3");
    let said = Cmcd { version: 3, ..Cmcd::default() };
    assert_eq!(later, Read { said, problem: Some("version 3 is not understood".into()) });
    assert_eq!(read("CMCD=bl%3D(2000%3Bv)%2Cv%3D2").said.buffer_ms, Some(2000));
}

/// Queries that dash.js 5.2.1 and hls.js 1.7.4 sent.
const RECORDED: [&str; 5] = [
    "CMCD=bl%3D1500%2Cbr%3D664%2Cd%3D1000%2Cdl%3D1500%2Cmtp%3D11500%2Cot%3Dv%2Cpr%3D1.006%2Crtp%3D2300%2Csf%3Dd%2Csid%3D\
     %220bf4e418-847e-467a-802b-20f7db5de6d7%22%2Cst%3Dl%2Ctb%3D665",
    "CMCD=bl%3D1300%2Cbr%3D665%2Cd%3D500%2Cdl%3D1300%2Cmtp%3D8600%2Cot%3Dv%2Crtp%3D3300%2Csf%3Dh%2Csid%3D\
     %22366900e4-3109-4f0b-b5e6-ce8ee3cec9ea%22%2Cst%3Dll",
    "CMCD=ab%3D%28665%3Bv%29%2Cbl%3D%281400%3Bv%29%2Cbr%3D%28664%3Bv%29%2Cd%3D1000%2Cdl%3D1400%2Clab%3D%28233%3Bv%29\
     %2Cltc%3D1537%2Cmtp%3D%2811500%3Bv%29%2Cot%3Dv%2Cpb%3D%28665%3Bv%29%2Cpr%3D1.005%2Crtp%3D2400%2Csf%3Dd%2Csid%3D\
     %220ebe3fd0-866a-4874-9280-5ff29781ff18%22%2Csn%3D12%2Cst%3Dl%2Csta%3Dp%2Ctab%3D%28665%3Bv%29%2Ctb%3D%28665%3Bv%29\
     %2Ctpb%3D%28664.744%3Bv%29%2Cv%3D2",
    "CMCD=bl%3D%281300%29%2Cbr%3D%28665%29%2Cd%3D500%2Cdl%3D1300%2Cmtp%3D%289900%29%2Cot%3Dv%2Cpb%3D%28664.744%29%2Crtp\
     %3D3300%2Csf%3Dh%2Csid%3D%229752fbb2-5b8c-4c6e-8649-8954bd1a1ae9%22%2Csn%3D50%2Cst%3Dll%2Csta%3Dp%2Ctpb\
     %3D%28664.744%29%2Cv%3D2",
    "CMCD=ab%3D%28656%3Bv+99%3Ba%29%2Cbl%3D%281600%3Bv%29%2Cbr%3D%28655%3Bv%29%2Cd%3D1000%2Cdl%3D1600%2Clab%3D%28224%3Bv\
     +99%3Ba%29%2Cltc%3D3165%2Cmtp%3D%2813500%3Bv%29%2Cot%3Dv%2Cpb%3D%28656%3Bv%29%2Crtp%3D2100%2Csf%3Dd%2Csid%3D\
     %22b178e484-d1a4-4aa1-a1bd-0a5f4888d9f5%22%2Csn%3D20%2Cst%3Dl%2Csta%3Dp%2Ctab%3D%28656%3Bv+99%3Ba%29%2Ctb\
     %3D%28656%3Bv%29%2Ctpb%3D%28655.592%3Bv%29%2Cv%3D2",
];

#[test]
fn what_dashjs_and_hlsjs_say_is_understood() {
    let said = RECORDED.map(|query| {
        let Read { said, problem } =
            read(Some(query), &HeaderMap::new()).expect("it says something");
        assert_eq!(problem, None, "{query}");
        said
    });
    let media = |said: &Cmcd| (said.bitrate_bps, said.buffer_ms, said.measured_bps);
    assert_eq!(media(&said[0]), (Some(664_000), Some(1500), Some(11_500_000)));
    assert_eq!(media(&said[1]), (Some(665_000), Some(1300), Some(8_600_000)));
    assert_eq!(media(&said[2]), (Some(664_000), Some(1400), Some(11_500_000)));
    assert_eq!(media(&said[3]), (Some(665_000), Some(1300), Some(9_900_000)));
    assert_eq!(media(&said[4]), (Some(655_000), Some(1600), Some(13_500_000)));
    assert_eq!(said.each_ref().map(|said| said.version), [1, 1, 2, 2, 2]);
    let sequence = said.each_ref().map(|said| said.sequence);
    assert_eq!(sequence, [None, None, Some(12), Some(50), Some(20)]);
    let streams = said.each_ref().map(|said| said.stream.as_deref());
    assert_eq!(streams, [Some("l"), Some("ll"), Some("l"), Some("ll"), Some("l")]);
    assert_eq!((said[2].latency_ms, said[4].latency_ms), (Some(1537), Some(3165)));
}

#[test]
fn what_is_wrong_is_named_and_the_rest_is_kept() {
    let problem = |query: &str| read(Some(query), &HeaderMap::new()).and_then(|read| read.problem);
    assert_eq!(problem("CMCD=br%3Dfast,bl=100").as_deref(), Some("the value of `br` is not one"));
    assert_eq!(
        problem("CMCD=br%3").as_deref(),
        Some("CMCD: not an escaped text of at most 8192 bytes")
    );
    assert_eq!(problem("CMCD=br%3D1%2C").as_deref(), Some("CMCD: byte 5: a comma at the end"));
    assert_eq!(problem("CMCD=com.example-key%3D1"), None);
    let long = format!("CMCD=sid%3D%22{}%22%2Cbl%3D100", "x".repeat(65));
    let read_long = read(Some(&long), &HeaderMap::new()).expect("it says something");
    assert_eq!((read_long.said.session, read_long.said.buffer_ms), (None, Some(100)));
    // Version 2 lets the name of content be twice as long.
    let content = |length| {
        let query = format!("CMCD=cid%3D%22{}%22%2Cv%3D2", "x".repeat(length));
        read(Some(&query), &HeaderMap::new()).and_then(|read| read.said.content)
    };
    assert_eq!([128, 129].map(content), [Some("x".repeat(128)), None]);
    assert_eq!(read(Some("a=CMCD"), &HeaderMap::new()), None);
}

#[test]
fn a_path_is_known_without_it() {
    let cases = [
        ("/v0.m3u8?_HLS_msn=3&CMCD=a%3D1&_HLS_part=1", "/v0.m3u8?_HLS_msn=3&_HLS_part=1"),
        ("/v0/3.m4s?CMCD=a", "/v0/3.m4s"),
        ("/v0/3.m4s?CMCDS=a", "/v0/3.m4s?CMCDS=a"),
        ("/v0/3.m4s", "/v0/3.m4s"),
    ];
    assert_eq!(cases.map(|(asked, _)| without(asked)), cases.map(|(_, known)| known.to_owned()));
}

proptest! {
    #[test]
    fn any_request_is_read(query in "(CMCD=)?[a-z0-9%=;,()\"&.-]{0,80}", header in "[ -~]{0,60}") {
        let mut headers = HeaderMap::new();
        headers.insert("cmcd-session", HeaderValue::from_str(&header).expect("printable"));
        let read = read(Some(&query), &headers).expect("it has a header");
        prop_assert!(read.said.session.is_none_or(|text| text.len() <= KEPT_MAX));
        let _ = without(&format!("/a?{query}"));
    }

    #[test]
    fn what_is_written_is_read(
        version in 1i64..=2, bps in 0i64..1_000_000_000, ms in 0i64..1_000_000, name in "[a-z0-9./-]{1,60}"
    ) {
        let said = Cmcd {
            version,
            bitrate_bps: Some(bps),
            buffer_ms: Some(ms),
            session: Some(name.clone()),
            object: Some("a".into()),
            ..Cmcd::default()
        };
        let read = read(Some(&said.argument()), &HeaderMap::new()).expect("it says something");
        prop_assert_eq!(read.problem, None);
        prop_assert_eq!(read.said.session, Some(name));
        prop_assert!(read.said.bitrate_bps.is_some_and(|back| (back - bps).abs() <= 500));
        prop_assert!(read.said.buffer_ms.is_some_and(|back| (back - ms).abs() <= 50));
    }
}
