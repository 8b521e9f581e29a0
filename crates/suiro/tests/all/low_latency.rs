//! Live streams in chunks on a link that carries them: how far behind the live edge they are played.

use crate::common::run_with_media;

const TARGET_MS: f64 = 800.0;

fn scenario() -> String {
    format!(
        r#"
name = "low-latency"
title = "a live stream in chunks"
duration = "20 s"
[matrix]
stream = [
  {{ label = "dash", value = {{ protocol = "dash", http = "1.1" }} }},
  {{ label = "hls", value = {{ protocol = "hls", http = "3" }} }},
]
[topology]
shape = "dumbbell"
link = "access"
[links.access]
rate = "10 Mbit/s"
delay = "25 ms"
queue.limit = "100 ms"
[media.main]
source = "synthetic"
length = "4 s"
segment = "1 s"
fps = 24
ladder = [{{ bitrate = "600 kbit/s", height = 180 }}, {{ bitrate = "200 kbit/s", height = 120 }}]
[endpoints.origin]
kind = "origin"
host = "server"
media = "main"
mode = "live"
chunk = "100 ms"
part = "250 ms"
http = "$stream.http"
[endpoints.player]
kind = "player"
host = "client"
origin = "origin"
protocol = "$stream.protocol"
abr = "throughput"
target_latency = "{TARGET_MS} ms"
[record]
# Nothing here looks at table `tcp`, and each sample takes the guest's time.
tcp_interval = "1 s"
"#
    )
}

#[test]
fn a_stream_in_chunks_is_played_at_its_target_latency() {
    let Some((trials, room, done)) = run_with_media("low-latency", &scenario()) else { return };
    let summary = room.results("out").summary();
    assert_eq!(summary.trials.len(), 2, "{}", done.stderr);
    for trial in &summary.trials {
        let stream = trial.cell["stream"].to_string();
        if !trials.are_virtual() && !trial.valid {
            suiro_units::skipped(&format!("{stream}: {:?}", trial.invalid_because));
            continue;
        }
        assert!(trial.valid, "{stream}: {:?}\n{}", trial.invalid_because, done.stderr);
        let metric =
            |name: &str| trial.metrics[name].unwrap_or_else(|| panic!("{stream}: {name} is null"));
        let (stalls, latency) = (metric("player.stalls"), metric("media.latency_p50_ms"));
        if !trials.are_virtual() && stalls > 0.0 {
            suiro_units::skipped(&format!("{stream}: it stalled, which a busy machine may cost"));
            continue;
        }
        assert_eq!(stalls, 0.0, "{stream}");
        assert!((latency - TARGET_MS).abs() <= 100.0, "{stream}: {latency} ms");
        assert!(metric("player.played_s") > 15.0, "{stream}");
    }
}
