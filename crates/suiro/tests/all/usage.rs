//! A mistyped command line is reported, with exit code 2 and without a panic; what is asked for is
//! printed.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{self, Done, Room};
use serde_json::Value;

fn broken() -> Vec<PathBuf> {
    let folder = Path::new("../scenario/tests/broken");
    let files = common::entries(&folder.canonicalize().unwrap());
    files.into_iter().filter(|file| file.extension().is_some_and(|e| e == "toml")).collect()
}

#[test]
fn broken_scenarios_are_refused_by_check_and_by_run() {
    let room = Room::new();
    let files = broken();
    assert!(files.len() >= 20, "{} broken scenarios", files.len());
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let file = file.to_str().unwrap();
        for arguments in [&["check", file][..], &["run", file, "--out", "results"]] {
            let done = room.run(arguments).exits(2).says(&["error: ", name]);
            assert_eq!(done.stdout, "", "{name}");
        }
        assert!(!room.path("work").join("results").exists(), "{name} left a results folder");
    }
    assert!(room.strays().is_empty());
}

#[test]
fn what_is_mistyped_is_named() {
    let room = Room::new();
    room.write("file", "");
    let wrong: &[(&[&str], &str)] = &[
        (&[], "Usage"),
        (&["rum", "ping"], "rum"),
        (&["run"], "SCENARIO"),
        (&["run", "ping", "--fast"], "--fast"),
        (&["run", "pong"], "pong"),
        (&["run", "./nowhere.toml"], "nowhere.toml"),
        (&["run", "ping", "--set", "tcp"], "--set tcp"),
        (&["run", "ping", "--set", "links.access.rat=1 Mbit/s"], "did you mean"),
        (&["run", "ping", "--set", "links.access.rate=1 MB"], "1 MB"),
        (&["run", "quick", "--only", "tcp=renno"], "did you mean `reno`"),
        (&["run", "quick", "--only", "abr=bola"], "--only abr=bola"),
        (&["run", "ping", "--duration", "5"], "--duration"),
        (&["run", "ping", "--duration", "0 s"], "duration"),
        (&["run", "ping", "--repeat", "0"], "--repeat 0"),
        (&["run", "ping", "--jobs", "0"], "--jobs"),
        (&["run", "ping", "--jobs", "65"], "'65' for '--jobs <N>': expected 1 to 64"),
        (&["run", "ping", "--seed", "x"], "'x' for '--seed <N>': expected a whole number"),
        (&["run", "ping", "--quick"], "--quick"),
        (&["run", "ping", "--resume"], "--out"),
        (&["run", "ping", "--out", "file"], "hint: name a folder"),
        (&["check", "pong"], "pong"),
        (&["show", "pong"], "pong"),
        (
            &["link", "--delay", "20 ms", "ping", "server"],
            "hint: suiro link --delay \"20 ms\" -- ping server",
        ),
        (&["link", "--preset", "5g", "--", "true"], "`slow-4g`"),
        (&["layers", "report", "nowhere"], "hint: name a folder that `suiro layers record` made"),
        (&["play", "not a url"], "not a url"),
        (&["serve", "bbb", "--qualities", "300 kbit/s"], "--whep"),
        (
            &["serve", "bbb", "--whep", "--qualities", "300 kbit/s,900 kbit/s"],
            "each below the one before and below --max-rate, found 2.5 Mbit/s, 300 kbit/s, 900 kbit/s",
        ),
        (&["publish", "http://host/whip", "--audio", "9 Mbit/s"], "'--audio <RATE>': expected"),
        (&["play", "http://host/x.mp4"], "neither an MPD"),
        (&["play", "http://host/x.mp4?from=y.mpd"], "neither an MPD"),
    ];
    for (arguments, text) in wrong {
        let done = room.run(arguments).exits(2).says(&[text]);
        assert_eq!(done.stdout, "", "{arguments:?}");
    }
    assert_eq!(common::entries(&room.path("work")), [room.path("work").join("file")]);
}

#[test]
fn inner_halves_refuse_to_run_among_the_hosts_own_interfaces() {
    let room = Room::new();
    for arguments in [["trial", "order.json"], ["link-inside", "0"]] {
        room.run(&arguments).exits(2).says(&["namespaces of its own only", "hint: "]);
    }
}

#[test]
fn results_are_not_written_over() {
    let room = Room::new();
    std::fs::create_dir(room.path("work").join("full")).unwrap();
    room.write("full/thesis.tex", "years of work");
    room.run(&["run", "ping", "--out", "full"]).exits(2).says(&["full is not empty", "hint: "]);
    room.write("full/manifest.json", "{}");
    room.run(&["run", "ping", "--out", "full"]).exits(2).says(&["already holds", "--resume"]);
    let done = room.run(&["run", "ping", "--out", "full", "--resume"]);
    assert!(done.code == Some(1) && done.stderr.contains("manifest.json"), "{}", done.stderr);
    let kept = std::fs::read_to_string(room.path("work").join("full/thesis.tex")).unwrap();
    assert_eq!(kept, "years of work");
}

#[test]
fn scenarios_are_listed_shown_and_checked() {
    let room = Room::new();
    let list = room.run(&["list"]).exits(0).stdout;
    let entries: Value = room.run(&["list", "--json"]).exits(0).json();
    let entries = entries.as_array().unwrap();
    assert!(entries.iter().any(|entry| entry["name"] == "tfrcp" && entry["study"] == "S4"));
    assert!(
        entries.iter().any(|entry| entry["name"] == "layered-qos" && entry["needs_root"] == true)
    );
    for entry in entries {
        let name = entry["name"].as_str().unwrap();
        assert!(
            list.contains(&format!("\n  {name} "))
                && list.contains(entry["subject"].as_str().unwrap()),
            "{list}"
        );
        let keys: Value = room.run(&["show", name, "--json"]).exits(0).json();
        assert_eq!(keys["title"], entry["title"]);
        let shown = room.run(&["show", name]).exits(0).stdout;
        // What is shown is the scenario: written to a file, it is checked the same.
        room.write("copy.toml", &shown);
        let checked = room.run(&["check", name]).exits(0).stdout;
        assert_eq!(room.run(&["check", "copy.toml"]).exits(0).stdout, checked);
        assert!(checked.contains(" trial"), "{checked}");
    }
    let only = room.run(&["check", "quick", "--only", "tcp=reno"]).exits(0).stdout;
    assert!(only.contains("1 cell, 1 trial, "), "{only}");
}

#[test]
fn files_elsewhere_and_those_of_commands_are_named() {
    let room = Room::new();
    let scenario = |source: &str, word: &str| {
        format!(
            "name = 'mine'\ntitle = 'x'\nduration = '1 s'\n[topology]\nshape = 'explicit'\nhosts = ['server', 'client']\n\
             cables = [{{ from = 'server', to = 'client' }}]\n[links]\n[media.main]\nsource = '{source}'\n\
             [endpoints.it]\nkind = 'command'\nhost = 'client'\ncommand = ['sh', '-c', 'exec python3 \"{word}\" --rate=5']\n\
             [endpoints.origin]\nkind = 'origin'\nhost = 'server'\nmode = 'vod'\nmedia = 'main'\n"
        )
    };
    std::fs::create_dir(room.path("work").join("tools")).unwrap();
    for file in ["film.mp4", "tools/send.py", "rate"] {
        room.write(file, "");
    }
    room.write("tools/mine.toml", &scenario("../film.mp4", "tools/send.py"));
    let said = room.run(&["check", "tools/mine.toml"]).exits(0).stdout;
    let expected = "reads these files outside of the scenario's folder:\n  ../film.mp4\n";
    assert!(said.contains(expected), "{said}");
    let plan: Value = room.run(&["check", "tools/mine.toml", "--json"]).exits(0).json();
    assert_eq!(plan["files"], serde_json::json!(["../film.mp4"]));
    assert_eq!(plan["command_files"], serde_json::json!(["tools/send.py"]));
    assert_eq!(plan["time"], "real");
    room.write("inside.toml", &scenario("./film.mp4", "/nowhere/send.py"));
    let said = room.run(&["check", "inside.toml"]).exits(0).stdout;
    assert!(!said.contains("outside of"), "{said}");
}

#[test]
fn the_schema_is_json_and_names_the_sections() {
    let schema: Value = Room::new().run(&["schema"]).exits(0).json();
    for section in ["topology", "links", "media", "endpoints", "matrix", "duration"] {
        assert!(schema["properties"][section].is_object(), "{section}");
    }
}

#[test]
fn a_reader_that_leaves_gets_no_message() {
    let room = Room::new();
    for arguments in [&["list"][..], &["schema"], &["show", "quick"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = room.suiro(arguments);
        let child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        assert_eq!(Done::wait(child).exits(1).stderr, "", "{arguments:?}");
    }
}

#[test]
fn reports_of_nothing_name_what_is_missing() {
    let room = Room::new();
    for command in ["report", "findings"] {
        let done = room.run(&[command, "nowhere"]).exits(2);
        done.says(&["nowhere is not a results folder", "hint: "]);
    }
}

/// A command that is given something else names what is expected, and a hint can be typed.
#[test]
fn what_is_no_results_folder_is_refused_alike() {
    let room = Room::new();
    room.write("report.html", "");
    std::fs::create_dir(room.path("work").join("empty")).unwrap();
    let hint = "hint: give the folder that suiro run wrote";
    room.run(&["report", "report.html"])
        .exits(2)
        .says(&["report.html is not a results folder: it is a file", hint]);
    room.run(&["verify", "empty"])
        .exits(2)
        .says(&["empty is not a results folder: it has no manifest.json", hint]);
}

#[test]
fn names_of_media_and_urls_are_refused_with_a_remedy() {
    let room = Room::new();
    room.run(&["serve", "nofile.mp4"])
        .exits(2)
        .says(&["nofile.mp4: there is no such file", "suiro serve bbb"]);
    let done = room.run(&["play", "foo"]).exits(2).says(&["only http and https URLs"]);
    assert_eq!(done.stderr.matches("foo").count(), 1, "{}", done.stderr);
}

/// The hint names the scenario as it was typed: a file is not known by its name.
#[test]
fn a_trial_that_is_not_there_is_refused_with_a_command_that_works() {
    let room = Room::new();
    let shown = room.run(&["show", "ping"]).exits(0).stdout;
    room.write("queues.toml", &shown);
    let hint = "hint: suiro check queues.toml --json lists the trials";
    room.run(&["run", "queues.toml", "--trial", "9"]).exits(2).says(&[hint]);
    room.run(&["check", "queues.toml", "--json"]).exits(0);
}

#[test]
fn of_a_script_check_shows_the_beginning() {
    let told = Room::new().run(&["check", "8k-faults"]).exits(0).stdout;
    let script = "  site1: bash -c case $0 in … (11 more lines), 3 different ones\n";
    assert!(told.contains(script), "{told}");
    assert!(!told.contains("blackhole"), "{told}");
}

#[test]
fn play_without_a_manifest_fails_with_the_cause() {
    let room = Room::new();
    // Nobody listens at port 1 of this host; its name has no address.
    for (url, cause) in [
        ("http://127.0.0.1:1/x.mpd", "there was no manifest: connecting: "),
        ("http://no-such-host.invalid/x.m3u8", "there was no manifest: "),
    ] {
        let play = ["play", url, "--duration", "500 ms", "--out", "played", "--replace"];
        room.run(&play).exits(1).says(&["error: ", url, cause]);
    }
}

/// Neither a server that does not answer nor a command that does nothing costs what was recorded before.
#[test]
fn what_an_earlier_session_left_is_kept() {
    let room = Room::new();
    for (earlier, command) in [
        ("frames.player.parquet", &["play", "http://127.0.0.1:1/x.mpd"][..]),
        ("played.player.video.0001.mp4", &["play", "http://127.0.0.1:1/whep", "--save"]),
        ("flows.publisher.parquet", &["publish", "http://127.0.0.1:1/whip"]),
        ("flows.publisher.parquet", &["serve", "bbb", "--whep"]),
        ("link.link.parquet", &["link", "--record", ".", "--", "true"]),
    ] {
        room.write(earlier, "years of work");
        let refused = format!("{earlier} is there already\nhint: --replace ");
        room.run(command).exits(2).says(&[&refused]);
        assert_eq!(
            std::fs::read_to_string(room.path("work").join(earlier)).unwrap(),
            "years of work"
        );
        std::fs::remove_file(room.path("work").join(earlier)).unwrap();
    }
}

/// A server whose segments never come: what is played is nothing, however long.
#[test]
#[expect(clippy::disallowed_methods, reason = "the server of this test")]
fn play_that_shows_nothing_fails() {
    let manifest = r#"<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT8S"
        minBufferTime="PT1S" profiles="urn:mpeg:dash:profile:isoff-live:2011"><Period>
        <AdaptationSet contentType="video" mimeType="video/mp4"><SegmentTemplate timescale="1" duration="2"
        startNumber="1" media="$Number$.m4s" initialization="init.mp4"/><Representation id="v" codecs="avc1.42c01e"
        bandwidth="300000" width="320" height="180" frameRate="25"/></AdaptationSet></Period></MPD>"#;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x.mpd", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap();
            if request[..length].windows(6).any(|word| word == b"/x.mpd") {
                let head =
                    "HTTP/1.1 200 OK\r\ncontent-type: application/dash+xml\r\nconnection: close";
                let length = manifest.len();
                let reply = format!("{head}\r\ncontent-length: {length}\r\n\r\n{manifest}");
                stream.write_all(reply.as_bytes()).unwrap();
            } else {
                held.push(stream);
            }
        }
    });
    let room = Room::new();
    let done = room.run(&["play", &url, "--duration", "1 s", "--out", "."]).exits(1);
    done.says(&["error: ", &url, "not a single frame was shown"]);
}
