//! Trials in virtual time, in a real guest: the same bytes, whoever runs them and wherever, and faults that have a reason.
//! They need the kernel for guests, which `make test` builds where it can.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::common::{self, Done, Lines, Room, kernel};

/// A link on which random loss hits web pages, and a program that prints what a guest must not have of its host.
const SCENARIO: &str = "name = 'x'
title = 'x'
duration = '30 s'
time = 'virtual'
date = '2027-03-01T12:00:00Z'
[topology]
shape = 'dumbbell'
link = 'access'
[links.access]
rate = '2 Mbit/s'
delay = '10 ms'
loss = 0.02
queue.limit = '30 kB'
[endpoints.web]
kind = 'web-server'
host = 'server'
[endpoints.users]
kind = 'web-clients'
host = 'client'
server = 'web'
users = 2
[endpoints.look]
kind = 'command'
host = 'client'
command = ['sh', '-c', '''date +%s.%N; pwd; env | sort; head -c 8 /dev/urandom | od -x; exec sleep 100''']
";

/// `suiro` in this room, with that kernel.
fn suiro(room: &Room, kernel: &Path, arguments: &[&str]) -> Command {
    let mut command = room.suiro(arguments);
    command.env("SUIRO_KERNEL", kernel);
    command
}

fn with(text: &str, endpoint: &str) -> String {
    let (head, _) = text.split_once("[endpoints.web]").unwrap();
    format!("{head}{endpoint}")
}

/// All files below a folder, with their content.
fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in common::entries(&next) {
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let bytes = std::fs::read(&path).unwrap();
                    found.push((path.strip_prefix(folder).unwrap().to_owned(), bytes));
                }
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_same_trial_writes_the_same_bytes_and_verify_says_so() {
    let Some(kernel) = kernel() else { return };
    // Another folder, another name of the results, another PATH: nothing of that may show.
    let (room, other) = (Room::new(), Room::new());
    for room in [&room, &other] {
        room.write("x.toml", SCENARIO);
    }
    Done::of(&mut suiro(&room, &kernel, &["run", "x.toml", "--out", "one"])).exits(0);
    let mut again =
        suiro(&other, &kernel, &["run", "x.toml", "--jobs", "1", "--out", "a longer name"]);
    Done::of(again.env("PATH", "/usr/games:/opt/nowhere:/usr/bin:/bin")).exits(0);
    let (one, two) = (room.path("work").join("one"), other.path("work").join("a longer name"));
    let (a, b) = (content(&one), content(&two));
    let names = |content: &[(PathBuf, Vec<u8>)]| -> Vec<PathBuf> {
        content.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&a), names(&b));
    for ((name, a), (_, b)) in a.iter().zip(&b) {
        assert!(a == b, "{} differs", name.display());
    }
    let trial = room.results("one").trial("all/1");
    assert_eq!(trial.invalid_because, None);
    assert!(trial.virtual_time.is_some() && trial.started.starts_with("2027-03-01T12:00:0"));
    assert!(trial.links[0].offered > 100, "{:?}", trial.links[0]);
    // 5 µs is far more than reading clocks and a refused system call take.
    let late = |link: &suiro_record::LinkTotals| link.lateness.max_us.unwrap_or(0.0);
    assert!(trial.links.iter().all(|link| late(link) <= 5.0), "{:?}", trial.links);

    let verify = ["verify", "one"];
    let same = Done::of(&mut suiro(&room, &kernel, &verify)).exits(0);
    assert!(same.stdout.contains("1 of 1 trials are the same"), "{}", same.stdout);
    let log = one.join("trials/all/1/logs/look.out");
    std::fs::write(&log, "changed\n").unwrap();
    let differs = Done::of(&mut suiro(&room, &kernel, &verify)).exits(1);
    assert!(differs.stdout.contains("logs/look.out: line 1: changed / 18"), "{}", differs.stdout);
    assert_eq!(common::entries(&room.path("tmp")), Vec::<PathBuf>::new(), "nothing is left behind");
}

#[test]
fn another_seed_gives_another_trial() {
    let Some(kernel) = kernel() else { return };
    let room = Room::new();
    room.write("x.toml", SCENARIO);
    let look = |seed: &str| {
        let run = ["run", "x.toml", "--seed", seed, "--out", seed];
        Done::of(&mut suiro(&room, &kernel, &run)).exits(0);
        std::fs::read_to_string(room.path("work").join(seed).join("trials/all/1/logs/look.out"))
            .unwrap()
    };
    let (one, two) = (look("1"), look("2"));
    assert!(one.contains("PWD=/run/suiro/working"), "{one}");
    assert_ne!(one.lines().rev().nth(1), two.lines().rev().nth(1), "random numbers");
    // Endpoints start at other times, so repetitions of a scenario without randomness are no copies.
    assert_ne!(one.lines().next(), two.lines().next(), "the time of the start");
}

#[test]
fn any_command_runs_behind_a_link_in_virtual_time() {
    let Some(kernel) = kernel() else { return };
    let room = Room::new();
    let ping = ["link", "--virtual", "--delay", "300 ms", "--", "ping", "-c", "100", "server"];
    if common::has("ping") {
        let done = Done::of(&mut suiro(&room, &kernel, &ping)).exits(0);
        let exact = "rtt min/avg/max/mdev = 600.000/600.000/600.001/0.000 ms";
        assert!(done.stdout.contains(exact), "{}", done.stdout);
    }
    let link = ["link", "--virtual", "--no-check", "--record", "rec", "--", "sh", "-c"];
    let script = "echo out; echo err >&2; echo here > file; exit 7";
    let done = Done::of(&mut suiro(&room, &kernel, &[&link[..], &[script]].concat())).exits(7);
    assert_eq!(done.stdout, "out\n");
    done.says(&["err", "suiro link down: 0 packets in"]);
    let work = room.path("work");
    assert_eq!(std::fs::read_to_string(work.join("file")).unwrap(), "here\n");
    assert_eq!(common::entries(&work.join("rec")), [work.join("rec/link.link.parquet")]);
    assert_eq!(common::entries(&room.path("tmp")), Vec::<PathBuf>::new(), "nothing is left behind");
}

#[test]
fn a_guest_leaves_the_terminal_as_it_is() {
    let Some(kernel) = kernel() else { return };
    if !common::has("script") {
        return;
    }
    let room = Room::new();
    let line = format!(
        "'{}' link --virtual --no-check -- sh -c 'echo one; echo two'",
        env!("CARGO_BIN_EXE_suiro")
    );
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]);
    room.furnish(&mut terminal);
    let done = Done::of(terminal.env("SUIRO_KERNEL", kernel)).exits(0);
    // A terminal in raw mode does not return at the end of a line, and Ctrl-C interrupts nothing.
    assert!(done.stdout.contains("one\r\ntwo\r\n"), "{:?}", done.stdout);
}

#[test]
fn the_third_interrupt_ends_a_command_that_goes_on() {
    let Some(kernel) = kernel() else { return };
    let room = Room::new();
    let script = "trap 'echo asked >&2' INT; echo up >&2; while :; do sleep 1; done";
    let link = ["link", "--virtual", "--no-check", "--", "sh", "-c", script];
    let mut command = suiro(&room, &kernel, &link);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = Lines::of(child.stderr.take().unwrap());
    lines.until("up");
    common::signal(&child, Signal::INT);
    lines.until("asked");
    common::signal(&child, Signal::INT);
    lines.until("the third Ctrl-C ends it at once");
    common::signal(&child, Signal::INT);
    Done::wait(child).exits(130);
    assert_eq!(common::entries(&room.path("tmp")), Vec::<PathBuf>::new(), "nothing is left behind");
}

#[test]
fn faults_of_a_guest_have_a_reason() {
    let Some(kernel) = kernel() else { return };
    let room = Room::new();
    let run = |name: &str, script: &str| {
        let endpoint = format!(
            "[endpoints.it]\nkind = 'command'\nhost = 'client'\ncommand = ['sh', '-c', '''{script}''']\n"
        );
        let file = format!("{name}.toml");
        room.write(&file, &with(SCENARIO, &endpoint));
        Done::of(&mut suiro(&room, &kernel, &["run", &file, "--out", name]));
        let trial = room.results(name).trial("all/1");
        assert!(!trial.valid, "{name}");
        trial.invalid_because.unwrap()
    };
    assert_eq!(run("dies", "exit 3"), "endpoint it: ended early with exit code 3");
    // A command has no right to switch its guest off, as on the machine.
    let off = run("off", "echo o > /proc/sysrq-trigger; exit 4");
    assert!(off.starts_with("endpoint it: ended early with exit code 4"), "{off}");
    // It may not write to the host.
    let file = room.path("tmp").join("x");
    let write = run("writes", &format!("echo x > {}; echo x > /usr/x; exit 5", file.display()));
    assert!(write.contains("exit code 5: ") && write.contains("Read-only"), "{write}");
    assert!(!file.exists() && !Path::new("/usr/x").exists());
}

#[test]
fn an_interrupted_run_keeps_what_it_measured() {
    let Some(kernel) = kernel() else { return };
    let room = Room::new();
    room.write("x.toml", &SCENARIO.replace("'30 s'", "'1 h'"));
    let mut command = suiro(&room, &kernel, &["run", "x.toml", "--out", "out"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let phases = room.path("work").join("out/trials/all/1/logs/_trial.out");
    let phases = || std::fs::read_to_string(&phases).unwrap_or_default();
    common::eventually(|| phases().contains("running"), phases);
    common::signal(&child, Signal::TERM);
    Done::wait(child).exits(1);
    let trial = room.results("out").trial("all/1");
    assert_eq!(trial.invalid_because.as_deref(), Some("it was interrupted"));
    assert!(
        trial.duration_s < 3600.0 && room.results("out").has("trials/all/1/link.access.parquet")
    );
}

/// The endpoint of `kind = short` ends its trial by itself. That of `long` prints a line when it is asked to stop, and then needs
/// some seconds on the host's clock, as starting programs does.
const INTERRUPTED: &str = "[endpoints.it]
kind = 'command'
host = 'client'
exit = 'ends-trial'
grace = '1 min'
command = ['sh', '-c', '''trap 'echo asked; for a in 1 2 3 4 5 6 7 8; do for b in 1 2 3 4 5 6 7 8; do
    for c in 1 2 3 4 5 6 7 8; do sleep 0.1; done; done; done; exit' TERM
    [ ${kind} = long ] || exit 0
    while :; do sleep 1; done''']
";

#[test]
fn a_second_interrupt_loses_nothing_and_verify_leaves_out_what_was_interrupted() {
    let Some(kernel) = kernel() else { return };
    let room = Room::new();
    let text = with(SCENARIO, INTERRUPTED).replace("'30 s'", "'1 h'");
    room.write("x.toml", &format!("repetitions = 2\nmatrix.kind = ['short', 'long']\n{text}"));
    let command = ["run", "x.toml", "--out", "out", "--only", "kind=short"];
    Done::of(&mut suiro(&room, &kernel, &command)).exits(0);
    let resume = ["run", "x.toml", "--out", "out", "--resume", "--jobs", "1"];
    let mut command = suiro(&room, &kernel, &resume);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let logs = room.path("work").join("out/trials/kind=long/1/logs");
    let read = |name: &str| std::fs::read_to_string(logs.join(name)).unwrap_or_default();
    common::eventually(|| read("_trial.out").contains("running"), || read("_trial.log"));
    common::signal(&child, Signal::TERM);
    common::eventually(|| read("it.out").contains("asked"), || read("_trial.log"));
    common::signal(&child, Signal::TERM);
    Done::wait(child).exits(1);
    let out = room.results("out");
    let long = out.trial("kind=long/1");
    assert_eq!(long.invalid_because.as_deref(), Some("it was interrupted"));
    assert!(long.virtual_time.is_some() && out.has("trials/kind=long/1/tcp.client.parquet"));
    assert!(!out.has("trials/kind=long/2"), "nothing more was begun");

    let verify = |code| Done::of(&mut suiro(&room, &kernel, &["verify", "out"])).exits(code).stdout;
    let text = verify(0);
    assert!(text.contains("kind=long #1: left out: it was interrupted\n"), "{text}");
    assert!(text.ends_with("2 of 2 trials are the same; 1 left out\n"), "{text}");
    // One without its order does not keep the others from being verified.
    std::fs::remove_file(out.root().join("trials/kind=short/1/order.json")).unwrap();
    let text = verify(1);
    assert!(text.contains("kind=short #1: could not be run again: reading "), "{text}");
    assert!(
        text.ends_with("1 of 2 trials are the same; 1 could not be run again; 1 left out\n"),
        "{text}"
    );
    for repetition in [1, 2] {
        std::fs::remove_dir_all(out.root().join(format!("trials/kind=short/{repetition}")))
            .unwrap();
    }
    let none = Done::of(&mut suiro(&room, &kernel, &["verify", "out"])).exits(2);
    none.says(&["no trial can be verified: kind=long #1: it was interrupted", "hint: "]);
    assert_eq!(common::entries(&room.path("tmp")), Vec::<PathBuf>::new(), "nothing is left behind");
}

#[test]
fn a_run_goes_on_with_the_kernel_that_it_began_with() {
    let Some(kernel) = kernel() else { return };
    let room = Room::new();
    room.write("x.toml", &SCENARIO.replace("'30 s'", "'1 s'"));
    let run = |more: &[&str]| {
        Done::of(&mut suiro(&room, &kernel, &[&["run", "x.toml", "--out", "out"], more].concat()))
    };
    run(&[]).exits(0);
    let manifest = room.path("work").join("out/manifest.json");
    let whole = std::fs::read_to_string(&manifest).unwrap();
    run(&["--resume"]).exits(0);
    assert_eq!(std::fs::read_to_string(&manifest).unwrap(), whole);
    let sha256 = room.results("out").manifest().virtual_time.unwrap().kernel_sha256;
    std::fs::write(&manifest, whole.replace(&sha256, &"0".repeat(64))).unwrap();
    let other = "the guests' kernel is another one than here";
    run(&["--resume"]).exits(2).says(&[other, "hint: continue with that kernel (SUIRO_KERNEL)"]);
    Done::of(&mut suiro(&room, &kernel, &["verify", "out"])).exits(2).says(&["made with a kernel"]);
}

#[test]
fn a_verification_that_signals_end_leaves_no_folder_behind() {
    let Some(kernel) = kernel() else { return };
    let room = Room::new();
    room.write("x.toml", &SCENARIO.replace("'30 s'", "'60 s'"));
    Done::of(&mut suiro(&room, &kernel, &["run", "x.toml", "--out", "out"])).exits(0);
    let mut command = suiro(&room, &kernel, &["verify", "out"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let work = room.path("tmp").join(format!("suiro-verify-{}", child.id()));
    let phases = work.join("trials/all/1/logs/_trial.out");
    let phases = || std::fs::read_to_string(&phases).unwrap_or_default();
    common::eventually(|| phases().contains("running"), phases);
    // Each of these is counted; the third one ends the program at once.
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        common::signal(&child, signal);
    }
    Done::wait(child).exits(130);
    assert_eq!(common::entries(&room.path("tmp")), Vec::<PathBuf>::new());
}

#[test]
fn what_has_no_guest_is_refused() {
    let room = Room::new();
    room.write("x.toml", SCENARIO);
    let mut without = room.suiro(&["run", "x.toml", "--out", "out"]);
    let refused = Done::of(without.env_remove("SUIRO_KERNEL"));
    // A package has its kernel next to the program.
    if refused.code != Some(0) {
        refused.exits(1).says(&["virtual time needs a kernel for guests", "hint: make kernel"]);
    }
    let folder = room.path("work");
    std::fs::write(folder.join("linux"), "").unwrap();
    std::fs::write(folder.join("kernel.json"), r#"{"version": "1", "recipe": "0", "sha256": ""}"#)
        .unwrap();
    let old = Done::of(&mut suiro(&room, &folder, &["run", "x.toml", "--out", "old"]));
    old.exits(1).says(&["made from another configuration", "hint: make kernel"]);
    // A live run cannot be verified.
    let Some(kernel) = kernel() else { return };
    let layered = ["run", "layered-qos", "--virtual", "--out", "layered"];
    let layered = Done::of(&mut suiro(&room, &kernel, &layered));
    assert_ne!(layered.code, Some(0));
    assert!(layered.stderr.contains("record.layers = true"), "{}", layered.stderr);
}
