//! Players of others, each that is installed, side by side through one link for a few seconds: what
//! each was sent is in its records, and it ends when it is asked to.

use std::path::Path;

use crate::common::{self, Done, Room, Trials};
use suiro_media::Ffmpeg;
use suiro_record::Reader;
use suiro_record::table::Row;
use suiro_record::tables::{AccessRow, FlowRow, PlayerRow, RequestRow};
use suiro_record::words::{PlayerState, RequestKind, Track, Transport};
use suiro_scenario::Program;

const RUNGS: [i64; 2] = [600_000, 200_000];

const PLAYERS: [(Program, &str); 4] = [
    (Program::Gstreamer, "hls"),
    (Program::Dashjs, "dash"),
    (Program::Hlsjs, "hls"),
    (Program::Shaka, "dash"),
];

const OVER_HTTP_3: [(Program, &str); 2] = [(Program::Dashjs, "dash"), (Program::Shaka, "hls")];

const VLC: [(Program, &str); 2] = [(Program::Vlc, "dash"), (Program::Vlc, "hls")];

const STREAM: &str = r#"
name = "players"
title = "a small stream"
duration = "20 s"
[topology]
shape = "dumbbell"
link = "access"
[links.access]
rate = "20 Mbit/s"
delay = "10 ms"
queue.limit = "100 kB"
[record]
# Nothing here looks at table `tcp`, and each sample takes the guest's time.
tcp_interval = "1 s"
[media.main]
source = "synthetic"
length = "4 s"
segment = "1 s"
fps = 24
ladder = [{ bitrate = "600 kbit/s", height = 180 }, { bitrate = "200 kbit/s", height = 120 }]
[endpoints.origin]
kind = "origin"
host = "server"
media = "main"
mode = "live"
"#;

/// More keys of the origin and of each player.
type Keys<'a> = (&'a str, &'a str);

/// The names of those players that are here, and a scenario of them.
fn scenario(players: &[(Program, &str)], (origin, more): Keys<'_>) -> (Vec<String>, String) {
    let (mut names, mut text) = (Vec::new(), format!("{STREAM}{origin}"));
    for (program, protocol) in players {
        if let Err(missing) = suiro_players::locate(*program).expect("a player that is not ours") {
            suiro_units::skipped(&missing);
            continue;
        }
        let player = program.name();
        let name = format!("{player}-{protocol}");
        text.push_str(&format!(
            r#"
[endpoints.{name}]
kind = "player"
host = "client"
origin = "origin"
player = "{player}"
protocol = "{protocol}"
abr = "dynamic"
{more}
"#
        ));
        names.push(name);
    }
    (names, text)
}

#[test]
fn players_of_others_play() {
    play(&PLAYERS, ("", ""), Trials::find);
}

#[test]
fn players_in_a_browser_play_over_http_3_and_report_their_playback() {
    let keys = ("http = \"3\"\n", "cmcd = \"query-v2\"");
    let Some((access, flows)) = play(&OVER_HTTP_3, keys, Trials::find) else { return };
    for format in ["d", "h"] {
        let said = access.iter().filter(|row| row.cmcd_format.as_deref() == Some(format));
        let said: Vec<_> = said.filter(|row| row.cmcd_bitrate_bps.is_some()).collect();
        assert!(said.len() >= 2, "{format}: {access:?}");
        for row in said {
            assert_eq!((row.cmcd_version, row.cmcd_error.as_deref()), (Some(2), None), "{row:?}");
            assert!(row.cmcd_sequence.is_some() && row.cmcd_session.is_some(), "{row:?}");
        }
    }
    assert!(flows.iter().all(|flow| flow.protocol == Transport::Udp), "{flows:?}");
}

/// Live, because nobody has run VLC in a guest yet.
#[test]
fn vlc_plays() {
    play(&VLC, ("", ""), Trials::live);
}

/// Runs a trial of these players there, and checks what holds on a machine that is busy too. Returns what the origin recorded;
/// `None` if nothing can be run here.
fn play(
    players: &[(Program, &str)],
    keys: Keys<'_>,
    place: impl FnOnce() -> Option<Trials>,
) -> Option<(Vec<AccessRow>, Vec<FlowRow>)> {
    let ffmpeg = Ffmpeg::locate().inspect_err(suiro_units::skipped).ok()?;
    let (names, text) = scenario(players, keys);
    if names.is_empty() {
        return None;
    }
    let trials = place()?;
    let room = Room::new();
    room.write("players.toml", &text);
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    link_libraries(&cache);
    let mut command = trials.run(&room, "players.toml");
    command.env("XDG_CACHE_HOME", cache).env("SUIRO_FFMPEG", ffmpeg.path());
    if trials.are_virtual() {
        // Twenty seconds are for programs that a busy machine starts slowly.
        command.args(["--duration", "8 s"]);
    }
    let done = Done::of(&mut command);
    let out = room.results("out");
    let trial = &out.summary().trials[0];
    if let Some(because) = &trial.invalid_because {
        let excused = !trials.are_virtual() && !because.contains("endpoint");
        assert!(excused, "{because}\n{}", done.stderr);
    }
    let dir = out.root().join("trials/all/1");
    let access: Vec<AccessRow> = Reader::read_all(&dir).unwrap();
    for name in &names {
        check_records(name, &dir, &access);
    }
    let left: Vec<_> = common::entries(&dir)
        .into_iter()
        .filter(|path| path.to_string_lossy().contains("profile"))
        .collect();
    assert!(left.is_empty(), "{left:?} was left behind");
    let version = |name: &String| name != "suiro" && name != "ffmpeg";
    assert!(out.manifest().versions.keys().any(version), "{:?}", out.manifest().versions);
    Some((access, Reader::read_all(&dir).unwrap()))
}

/// The libraries of browser players are in the user's cache; the tests have one of their own.
fn link_libraries(cache: &Path) {
    let kept = suiro_media::cache::folder().join("players");
    let ours = cache.join("suiro/players");
    std::fs::create_dir_all(cache.join("suiro")).unwrap();
    if kept.is_dir() && !ours.exists() {
        // Another test may have made it meanwhile.
        let _ = std::os::unix::fs::symlink(kept, ours);
    }
}

fn check_records(name: &str, dir: &Path, access: &[AccessRow]) {
    let requests: Vec<RequestRow> = of_player(name, dir);
    let states: Vec<PlayerRow> = of_player(name, dir);
    let video = requests.iter().filter(|row| {
        row.kind == RequestKind::Segment && row.track == Some(Track::Video) && row.error.is_none()
    });
    let mut count = 0;
    for row in video {
        count += 1;
        let sent = access.iter().find(|sent| sent.path == row.url);
        assert!(sent.is_some(), "{name}: the origin knows nothing of {}", row.url);
        let rung = row.rung_bps.unwrap();
        let near = |nominal: &i64| (rung / 3..rung * 3).contains(nominal);
        assert!(RUNGS.iter().any(near), "{name}: a rung of {rung} bit/s");
        let lasts = row.duration_ms.is_some_and(|ms| (900..1100).contains(&ms));
        assert!(row.media_ms.is_some() && lasts, "{name}: {row:?}");
    }
    assert!(count >= 2, "{name}: {count} video segments");
    assert_eq!(states[0].state, PlayerState::Starting, "{name}");
    assert!(states.iter().any(|row| row.state == PlayerState::Playing), "{name} never played");
    assert!(states.iter().any(|row| row.rung_bps.is_some()), "{name} never told its rung");
}

fn of_player<R: Row>(name: &str, dir: &Path) -> Vec<R> {
    Reader::read_file(&dir.join(format!("{}.{name}.parquet", R::TABLE))).unwrap()
}
