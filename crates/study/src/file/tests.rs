//! What a study's file refuses, with place and remedy.

const GOOD: &str = r#"id = "T"
title = "A test"
source = "nobody"
[axes]
protocol = ["dash", "hls"]
tcp = ["reno", "vegas"]
[metrics]
cwnd = { metric = "tcp.cwnd_mean_bytes", unit = "kbit" }
rtt = { metric = "tcp.srtt_mean_ms" }
[[table]]
id = "1"
title = "Windows and round trips"
tolerance = 1.5
columns = [{ title = "window", metric = "cwnd" }, { title = "RTT", metric = "rtt" }]
rows = [{ title = "DASH, Reno", at = ["dash", "tcp=reno"], published = [100, 20] }]
[[figure]]
id = "1"
title = "Round trips"
series = "tcp.srtt_ms"
at = ["dash"]
lines = "tcp"
seconds = 120
bands = [{ from = 10, to = 20, text = "a dip" }]
[[figure]]
id = "2"
title = "Both times"
at = ["hls", "vegas"]
curves = [{ label = "RTT", series = "tcp.srtt_ms" }, { label = "queue", series = "link.queue_delay_ms" }]
seconds = 60
[[finding]]
id = "T.1"
claim = "Vegas is smaller."
holds = """
every protocol:
  cwnd[vegas] < cwnd[reno]
"""
"#;

use super::parse;

#[test]
fn a_study_is_read() {
    let study = parse(GOOD, "t.toml").unwrap();
    assert_eq!((study.tables.len(), study.figures.len(), study.findings.len()), (1, 2, 1));
    let entry = &study.tables[0].rows[0].entries[1];
    assert_eq!((entry.metric, entry.cell.as_slice(), entry.published), (1, &[0, 0][..], 20.0));
    let cwnd = &study.metrics[0];
    assert!((cwnd.printed(14_480.0) - 115.84).abs() < 1e-9);
    assert_eq!(study.findings[0].formula, "every protocol: cwnd[vegas] < cwnd[reno]");
    let [labels, curves] = study.figures.as_slice() else { panic!("two figures") };
    assert_eq!((labels.axis, labels.unit.name, labels.lines.len()), (Some(1), "ms", 2));
    assert_eq!(
        (labels.lines[1].label.as_str(), labels.lines[1].cell.as_slice()),
        ("vegas", &[0, 1][..])
    );
    assert_eq!((curves.axis, curves.lines[1].series.as_str()), (None, "link.queue_delay_ms"));
    assert_eq!(curves.lines[1].cell, [1, 1]);
}

#[test]
fn refusals_name_the_place_and_the_remedy() {
    let mut found = String::new();
    for (old, new) in [
        ("title = \"A test\"", "titel = \"A test\""),
        ("source = \"nobody\"\n", ""),
        ("protocol = [\"dash\", \"hls\"]", "protocol = []"),
        ("unit = \"kbit\"", "unit = \"kbits\""),
        ("unit = \"kbit\"", "unit = \"ms\""),
        ("tolerance = 1.5", "tolerance = 0.5"),
        ("metric = \"rtt\"", "metric = \"rrt\""),
        (", metric = \"rtt\"", ""),
        ("\"tcp=reno\"", "\"tcp=rneo\""),
        ("\"dash\", \"tcp=reno\"", "\"dash\""),
        ("published = [100, 20]", "published = [100]"),
        ("lines = \"tcp\"", "lines = \"protocol\""),
        ("lines = \"tcp\"\n", ""),
        ("at = [\"dash\"]\nlines", "lines"),
        ("at = [\"hls\", \"vegas\"]", "at = [\"hls\"]"),
        ("link.queue_delay_ms", "link.queue_bytes"),
        ("seconds = 120", "seconds = -1"),
        ("seconds = 120", "seconds = 120\nmean_over = 0"),
        ("to = 20", "to = 200"),
        ("to = 20", "till = 20"),
        ("cwnd[reno]", "cwnd[rneo]"),
        ("holds = ", "formula = "),
        ("holds = ", "given = \"cwnd[rneo] > 1 kbit\"\nholds = "),
        ("[[table]]", "[table]"),
        ("title = \"A test\"", "title = A"),
        ("[[finding]]", "[[finding]]\nid = \"T.1\"\nclaim = \"\"\nholds = \"1 < 2\"\n[[finding]]"),
    ] {
        assert!(GOOD.contains(old), "{old}");
        let error = parse(&GOOD.replacen(old, new, 1), "t.toml").expect_err(new);
        found.push_str(&format!("--- {new}\n{error}\n\n"));
    }
    insta::assert_snapshot!(found);
}
