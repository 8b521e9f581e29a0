//! Limits on metrics: exit codes, files, and the example of `docs/ci.md`.

use serde_json::Value;
use suiro_media::Ffmpeg;
use suiro_media::ffmpeg::Feature;

use crate::common::{Done, Room, Trials};

/// A ping over a link of 10 ms, there and back 20.
const PING: &str = "name = 'ping'
title = 'A ping'
duration = '3 s'
[topology]
shape = 'dumbbell'
link = 'access'
[links.access]
delay = '10 ms'
[endpoints.ping]
kind = 'command'
host = 'client'
command = ['ping', '-i', '0.2', 'server']
[limits]
fast = 'link.down.delay_p95_ms < 15 ms'
no_slower = 'link.down.delay_p95_ms <= baseline'
";

/// The same over links of two lengths.
fn two_links() -> String {
    PING.replace("delay = '10 ms'", "delay = '${delay}'") + "[matrix]\ndelay = ['10 ms', '20 ms']\n"
}

fn run(trials: &Trials, room: &Room, out: &str, more: &[&str]) -> Done {
    Done::of(trials.run_to(room, "ping.toml", out).args(more))
}

#[test]
fn a_broken_limit_has_an_exit_code_of_its_own() {
    let Some(trials) = Trials::find() else { return };
    let room = Room::new();
    room.write("ping.toml", PING);
    let done = run(&trials, &room, "before", &[]).exits(0);
    for part in
        ["limits: 1 kept, 1 skipped", "kept  link.down.delay_p95_ms < 15 ms (fast) in all: 10"]
    {
        assert!(done.stdout.contains(part), "no `{part}` in:\n{}", done.stdout);
    }
    let slower = ["--baseline", "before", "--set", "links.access.delay=12 ms"];
    let done = run(&trials, &room, "slower", &slower).exits(3);
    assert!(done.stdout.contains("limits: 1 broken, 1 kept"), "{}", done.stdout);
    run(&trials, &room, "slow", &["--set", "links.access.delay=20 ms"]).exits(3);

    let file =
        |name: &str| std::fs::read_to_string(room.path("work").join("slower").join(name)).unwrap();
    let json: Value = serde_json::from_str(&file("limits.json")).unwrap();
    assert_eq!((&json["kept"], &json["baseline"]), (&false.into(), &"before".into()));
    let xml = file("limits.xml");
    assert!(xml.contains("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\""), "{xml}");
    let markdown = file("limits.md");
    assert!(
        markdown.contains("| ❌ **broken** | `link.down.delay_p95_ms <= baseline` | `all` | 12"),
        "{markdown}"
    );

    // The same, and other limits, of a folder that is there.
    let report = |more: &[&str]| room.run(&[&["report", "slower"], more].concat());
    report(&[]).exits(0);
    report(&["--baseline", "before"]).exits(3);
    report(&["--limit", "link.down.delay_p95_ms < 11"]).exits(3);
    report(&["--baseline", "before", "--limit", "link.down.delay_p95_ms <= baseline + 50 %"])
        .exits(3);
    report(&["--limit", "player.stall_s < 1"]).exits(3);
    // Without a limit, the verdict of earlier ones is not left.
    room.write("ping.toml", PING.split("[limits]").next().unwrap());
    run(&trials, &room, "free", &[]).exits(0);
    let free = room.path("work").join("free");
    let verdicts =
        || ["limits.json", "limits.xml", "limits.md"].map(|name| free.join(name).exists());
    room.run(&["report", "free", "--limit", "link.down.delay_p95_ms < 11 ms"]).exits(0);
    assert_eq!(verdicts(), [true; 3]);
    room.run(&["report", "free"]).exits(0);
    assert_eq!(verdicts(), [false; 3]);
    room.write("ping.toml", PING);
    // A limit without cells: `--only` left them out.
    room.write("ping.toml", &two_links());
    let limit = "delay=10 ms: link.down.delay_p95_ms < 1 ms";
    let done = run(&trials, &room, "only", &["--only", "delay=20 ms", "--limit", limit]).exits(3);
    let skipped = "skipped  delay=10 ms: link.down.delay_p95_ms < 1 ms in 10 ms: this run leaves its cells out";
    assert!(done.stdout.contains(skipped), "{}", done.stdout);
    let unknown = ["report", "only", "--limit", "delay=10ms: link.down.delay_p95_ms < 1 ms"];
    room.run(&unknown).exits(2).says(&["did you mean `10 ms`"]);
    // The other cell is not its baseline.
    let done = room.run(&["report", "only", "--baseline", "before"]).exits(3);
    assert!(done.stdout.contains("broken  link.down.delay_p95_ms <= baseline"), "{}", done.stdout);
    run(&trials, &room, "other", &["--only", "delay=10 ms"]).exits(0);
    let done = room.run(&["report", "other", "--baseline", "only"]).exits(1);
    let none = "not judged  link.down.delay_p95_ms <= baseline (no_slower) in 10 ms: 10";
    assert!(done.stdout.contains(none), "{}", done.stdout);
    assert!(done.stdout.contains("the baseline has no such cell"), "{}", done.stdout);
    room.write("ping.toml", PING);
    // A trial that is not valid comes first: nothing is known of its metrics.
    let broken = "command = ['false']\nexit = 'fails'";
    room.write("ping.toml", &PING.replace("command = ['ping', '-i', '0.2', 'server']", broken));
    run(&trials, &room, "invalid", &["--set", "links.access.delay=20 ms"]).exits(1);
}

#[test]
fn wrong_limits_are_refused_with_their_place_and_the_remedy() {
    let room = Room::new();
    room.write("ping.toml", &PING.replace("delay_p95_ms < 15", "dely_p95_ms < 15"));
    let places = [
        "ping.toml:14:8: there is no metric `link.down.dely_p95_ms`",
        "did you mean `link.down.delay_p95_ms`",
    ];
    room.run(&["check", "ping.toml"]).exits(2).says(&places);
    room.run(&["run", "ping.toml", "--out", "out"]).exits(2).says(&places);
    room.write("ping.toml", PING);
    let wrong: [(&str, &[&str]); 4] = [
        ("link.down.delay_p95_ms == 5", &["--limit", "needs one of"]),
        ("link.down.delay_p95_ms < 5 kB", &["`kB` is a size", "link.down.delay_p95_ms is in ms"]),
        ("player.stal_s < 5", &["there is no metric", "did you mean `player.stall_s`"]),
        ("player.stall_s <= baseline", &["hint: name a results folder with --baseline"]),
    ];
    for (limit, says) in wrong {
        room.run(&["run", "ping.toml", "--out", "out", "--limit", limit]).exits(2).says(says);
    }
    room.write("ping.toml", &two_links());
    let wrong: [(&str, &[&str]); 3] = [
        ("dely=10 ms", &["there is no axis `dely`", "did you mean `delay`"]),
        ("delay=10ms", &["the axis `delay` has no value `10ms`", "did you mean `10 ms`"]),
        (
            "delay=10 ms, delay=20 ms",
            &["it names the axis `delay` twice", "a limit for each value"],
        ),
    ];
    for (labels, says) in wrong {
        let limit = format!("{labels}: link.down.delay_p95_ms < 5");
        room.run(&["run", "ping.toml", "--out", "out", "--limit", &limit]).exits(2).says(says);
    }
    assert!(!room.path("work").join("out").exists());
}

/// The commands of a step of the example workflow.
fn step(name: &str) -> String {
    let page = "../../docs/ci.md";
    let page = std::fs::read_to_string(page).unwrap();
    let (_, after) = page.split_once(&format!("- name: {name}\n")).expect("the step is there");
    let step = after.split("\n      - ").next().unwrap();
    let (_, commands) = step.split_once("run:").expect("the step runs something");
    commands.trim_start_matches(" |").lines().map(|line| line.trim().to_owned() + "\n").collect()
}

/// A film over a link that carries its middle rung; `$window` is what gets worse.
const PLAYER: &str = "name = 'player'
title = 'Our player over a link of 3 Mbit/s'
duration = '8 s'
[topology]
shape = 'dumbbell'
link = 'access'
[links.access]
rate = '3 Mbit/s'
delay = '20 ms'
queue = { limit = '50 kB' }
[media.main]
source = 'synthetic'
length = '4 s'
segment = '1 s'
ladder = [{ bitrate = '6 Mbit/s', height = 720 }, { bitrate = '1.5 Mbit/s', height = 360 }]
[endpoints.origin]
kind = 'origin'
host = 'server'
media = 'main'
mode = 'vod'
[endpoints.player]
kind = 'player'
host = 'client'
origin = 'origin'
abr = 'dynamic'
buffer = '4 s'
";

#[test]
fn the_example_workflow_fails_a_build_when_a_player_gets_worse() {
    let Some(trials) = Trials::find().filter(Trials::are_virtual) else { return };
    let ffmpeg = Ffmpeg::locate().ok().filter(|it| it.has(Feature::Libx264));
    let Some(ffmpeg) = ffmpeg else {
        suiro_units::skipped("it needs an ffmpeg with libx264");
        return;
    };
    let room = Room::new();
    let ci = room.path("work").join("ci");
    std::fs::create_dir(&ci).unwrap();
    let player = |text: &str| std::fs::write(ci.join("player.toml"), text).unwrap();
    let build = |script: &str| {
        let bin = std::path::Path::new(env!("CARGO_BIN_EXE_suiro")).parent().unwrap();
        let path = std::env::join_paths(
            [bin.into()]
                .into_iter()
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        );
        let mut shell = std::process::Command::new("bash");
        room.furnish(&mut shell);
        shell.args(["-e", "-c", script]).env("PATH", path.unwrap());
        trials.equip(&mut shell);
        shell
            .env("SUIRO_FFMPEG", ffmpeg.path())
            .env("GITHUB_STEP_SUMMARY", room.path("work").join("summary.md"));
        Done::of(&mut shell)
    };
    player(PLAYER);
    build(
        "suiro run ci/player.toml --virtual --out results/first && mkdir ci/baseline && \
           cp results/first/manifest.json results/first/summary.json ci/baseline",
    )
    .exits(0);

    let the_run = step("Run the player in virtual time");
    build(&the_run).exits(0);
    // The player reads into a buffer so small that it gets a fraction of what the link carries.
    player(&PLAYER.replace("buffer = '4 s'", "buffer = '4 s'\nreceive_buffer = '4 kB'"));
    let worse = build(&format!("rm -r results/now; {the_run}")).exits(3);
    assert!(worse.stdout.contains("broken  player.stall_s <= baseline in all"), "{}", worse.stdout);
    build(&step("Show what became of the limits")).exits(0);
    let summary = std::fs::read_to_string(room.path("work").join("summary.md")).unwrap();
    assert!(summary.contains("❌ **broken**"), "{summary}");
    let changed = build(&step("Show what changed")).exits(0);
    assert!(
        changed.stdout.contains("endpoints.player.receive_buffer: – → \"4 kB\""),
        "{}",
        changed.stdout
    );
}
