//! Registry, nodes and controller as an operator starts them, over loopback with a token: by the command line, and by the
//! controller's page in Chromium.

mod chromium;
mod server;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use suiro_record::Reader;
use suiro_record::tables::ControlRow;

use crate::common::{Done, Room};
use chromium::Browser;
use server::{Server, TOKEN};

/// Whether a node's card shows this in words.
fn shows(node: &str, text: &str) -> String {
    format!("document.querySelector('[data-node={node}]')?.innerText.includes('{text}') === true")
}

/// Frames as an operator sees them, for a person to look at; nothing may stick out at the side.
fn look(browser: &mut Browser, name: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("control");
    std::fs::create_dir_all(&folder).unwrap();
    for width in [1280, 390] {
        for colours in ["light", "dark"] {
            let path = folder.join(format!("{name}-{width}-{colours}.png"));
            browser.picture(width, colours, &path);
            let wide = browser.read("document.documentElement.scrollWidth");
            assert!(wide.as_u64() <= Some(width.into()), "{name}: {wide} px wide on {width}");
        }
    }
    eprintln!("frames of the page: {}", folder.display());
}

#[test]
fn an_operator_moves_a_stream_by_clicking() {
    let program = match suiro_browser::chromium() {
        Ok(found) => found,
        Err(missing) => return suiro_units::skipped(&missing),
    };
    let mut server = Server::start();
    server.until("all on air", |status| server::on_air(status, 0) == ["n1"]);
    let profile = server.room.path("tmp").join("profile");
    let mut browser = Browser::start(&program, &profile);
    browser.open(&server.url());

    // Nobody without the token, nor with another.
    browser.until("!document.querySelector('#login').hidden");
    assert_eq!(browser.read("document.querySelectorAll('[data-node]').length"), 0);
    look(&mut browser, "login");
    browser.click("#token");
    browser.write("another-token-0123456789");
    browser.press("Enter");
    browser.until("document.querySelector('#refused').textContent.includes('refused')");
    assert_eq!(browser.read("document.querySelectorAll('[data-node]').length"), 0);
    browser.read("document.querySelector('#token').value = ''");
    browser.click("#token");
    browser.write(TOKEN);
    browser.press("Enter");

    // Nodes by site, and what they do.
    browser.until("document.querySelectorAll('[data-site]').length === 2");
    let of = "[...document.querySelectorAll('[data-site=west] [data-node]')].map((one) => one.dataset.node).join()";
    assert_eq!(browser.read(of), "n3,n4,n5");
    browser.until(&format!("{} && {}", shows("n1", "On air"), shows("n3", "Standby")));
    browser.until(&format!("{} && {}", shows("n1", "Mbit/s"), shows("n5", "Not there")));
    look(&mut browser, "before");

    // A stream, then the node that shall send it.
    browser.click("[data-node=n1] [data-stream='0']");
    browser.until(
        "document.querySelector('[data-stream=\"0\"]').getAttribute('aria-pressed') === 'true'",
    );
    look(&mut browser, "chosen");
    browser.click("[data-node=n3] [data-here]");
    browser.until(&format!("{} && {}", shows("n3", "On air"), shows("n1", "Standby")));
    browser.until("document.querySelector('#events').innerText.includes('takes over from n1')");
    look(&mut browser, "after");
    server.until("moved", |status| server::on_air(status, 0) == ["n3"]);

    // Without a mouse.
    browser.read("document.querySelector('[data-stream=\"0\"]').focus()");
    browser.press("Enter");
    browser.until("document.querySelectorAll('[data-here]:not([hidden])').length > 0");
    browser.read("document.querySelector('[data-node=n1] [data-here]').focus()");
    browser.press("Enter");
    browser.until(&format!("{} && {}", shows("n1", "On air"), shows("n3", "Standby")));

    // Off air, after a question.
    browser.click("#stop");
    browser.until("document.querySelector('#state').textContent.startsWith('Off air')");
    drop(browser);
    moved_at_one_frame(&server.end());
}

/// The nodes' own records: n3 sent the frame after the last of n1, and the other way round.
fn moved_at_one_frame(records: &Path) {
    let rows: Vec<ControlRow> = Reader::read_all(records).unwrap();
    let frames = |node: &str, what: &str| -> Vec<u64> {
        let own = rows.iter().filter(|row| &*row.endpoint == node && &*row.what == what);
        let own = own.filter(|row| row.stream == Some(0));
        own.map(|row| row.detail.split(' ').nth(1).unwrap().parse().unwrap()).collect()
    };
    let (started, stopped) = (frames("n3", "started"), frames("n1", "stopped"));
    assert_eq!(started[0], stopped[0] + 1, "{rows:?}");
    assert_eq!(frames("n1", "started")[1], frames("n3", "stopped")[0] + 1, "{rows:?}");
    let told =
        |text: &str| rows.iter().any(|row| &*row.endpoint == "c" && row.detail.contains(text));
    assert!(told("stream 0 to n3") && told("takes over from n1"), "{rows:?}");
}

#[test]
fn the_command_line_shows_and_moves() {
    let mut server = Server::start();
    server.until("all on air", |status| server::on_air(status, 1) == ["n2"]);
    let shown = server.control(&["status"]);
    assert!(shown.contains("on air; leader: c (process"), "{shown}");
    assert!(
        shown.contains("stream  0  n1") && shown.contains("n3               standby"),
        "{shown}"
    );
    assert_eq!(server.control(&["move", "1", "n4"]), "accepted: stream 1 to n4\n");
    server.until("moved", |status| server::on_air(status, 1) == ["n4"]);
    let file: Value = toml::from_str(&server.file()).unwrap();
    assert_eq!(file["streams"]["1"]["node"], "n4");
    server.end();
}

#[test]
fn everything_is_served_over_tls() {
    let room = Room::new();
    let names = vec!["127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    // Its own authority.
    room.write("certificate.pem", &made.cert.pem());
    room.write("authority.pem", &made.cert.pem());
    room.write("key.pem", &made.signing_key.serialize_pem());
    let all =
        ["--certificate", "certificate.pem", "--key", "key.pem", "--authority", "authority.pem"];
    let mut server = Server::with(room, &all, &[]);
    assert!(server.url().starts_with("https://127.0.0.1:"), "{}", server.url());
    server.until("all on air", |status| server::on_air(status, 0) == ["n1"]);
    assert_eq!(server.control(&["move", "0", "n3"]), "accepted: stream 0 to n3\n");
    server.until("moved", |status| server::on_air(status, 0) == ["n3"]);

    // Who does not trust the authority is not talked to; without TLS there is no answer.
    let mut asked =
        server.room.suiro(&["uncompressed", "control", "status", "--token-file", "token"]);
    asked.args(["--controller", server.url().trim_end_matches('/')]);
    let done = Done::of(&mut asked).exits(1);
    assert!(done.stderr.contains("--authority"), "{}", done.stderr);
    let plain = server.url().replace("https", "http");
    let mut asked =
        server.room.suiro(&["uncompressed", "control", "status", "--token-file", "token"]);
    asked.args(["--controller", plain.trim_end_matches('/')]);
    Done::of(&mut asked).exits(1);
    server.end();
}

/// A process that the hook began: ended with the test.
struct Begun(Pid);

impl Drop for Begun {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::INT);
    }
}

#[test]
fn the_hook_makes_a_node_that_is_not_there() {
    let room = Room::new();
    // As a cloud's command line would: it starts what is missing. `timeout` in case nobody ends it.
    let hook = format!(
        "#!/bin/sh\necho $$ >hook.pid\nexec timeout 300 {} uncompressed node --name $1 --address 127.0.0.1 \
         --listen 127.0.0.1:0 --token-file token --registry $(cat registry) \
         --stream 1=nodes/node-2.frames --packet 1500 --ring 5 2>hook.log\n",
        env!("CARGO_BIN_EXE_suiro")
    );
    room.write("hook", &hook);
    let path = room.path("work").join("hook");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut server = Server::with(room, &[], &["--hook", "./hook"]);
    server.room.write("registry", server.registry());
    server.until("all on air", |status| server::on_air(status, 1) == ["n2"]);
    server.control(&["move", "1", "n5"]);
    server.until("made and on air", |status| server::on_air(status, 1) == ["n5"]);
    let pid = std::fs::read_to_string(server.room.path("work").join("hook.pid")).unwrap();
    let _begun = Begun(Pid::from_raw(pid.trim().parse().unwrap()).unwrap());
    let rows: Vec<ControlRow> = Reader::read_all(&server.end()).unwrap();
    let at = |what: &str| {
        rows.iter().position(|row| {
            &*row.what == what && row.node.as_deref() == Some("n5") && &*row.endpoint == "c"
        })
    };
    assert!(at("hook").is_some() && at("hook") < at("heard"), "{rows:?}");
}

#[test]
fn the_second_controller_says_who_leads() {
    let mut server = Server::start();
    server.until("all on air", |status| server::on_air(status, 0) == ["n1"]);
    let second = server.controller(&["--name", "second"]);
    let shown = server.control_of(&second, &["status"]).exits(0).stdout;
    assert!(shown.contains("leader: c (process"), "{shown}");
    let refused = server.control_of(&second, &["move", "0", "n3"]).exits(1);
    assert!(refused.stderr.contains("another controller leads: c (process"), "{}", refused.stderr);
    server.end();
}

/// The blocks of a page that begin with this line.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let fences = page.split(&fence).skip(1);
    fences.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn the_commands_of_the_operators_guide_work() {
    let page = Path::new("../../docs/stream-server.md");
    // An address of this test's own: another one may run at the same time.
    let [_, a, b, c] = std::process::id().to_be_bytes();
    let own = format!("127.{}.{b}.{}", a | 1, c.clamp(1, 254));
    let page = std::fs::read_to_string(page).unwrap().replace("127.0.0.1", &own);
    let (state, commands) = (blocks(&page, "toml"), blocks(&page, "sh"));
    let ([state], [serve, ask, store]) = (&state[..], &commands[..]) else {
        panic!("{commands:?}")
    };
    let room = Room::new();
    room.write("desired.toml", state);
    // A person waits for the streams to start, and on a busy machine keeps nodes that are late.
    let patience = "--silence \"1 s\" --faulty-frames 60";
    assert!(serve.contains(patience), "{serve}");
    let serve = serve.replace(patience, "--silence '30 s' --faulty-frames 1000000");
    // The page's state names no node that stores: a test of `control` has one.
    let start_storing = store.lines().next().unwrap();
    let asked = format!("{ask}! {start_storing} 2>&1").replace(
        "--token-file token",
        &format!("--token-file token --controller http://{own}:8090"),
    );
    let script = format!(
        "trap 'kill $(jobs -p); wait' EXIT\n{serve}\n\
         until [ $(suiro uncompressed control status --json --token-file token --controller http://{own}:8090 \
         | grep -c '\"on\": true') = 8 ]; do sleep 0.2; done\n{asked}"
    );
    let program = Path::new(env!("CARGO_BIN_EXE_suiro"));
    let path =
        format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = std::process::Command::new("bash");
    room.furnish(&mut command);
    command.args(["-euo", "pipefail", "-c", &script]).env("PATH", path);
    let done = Done::of(&mut command);
    assert_eq!(done.code, Some(0), "{}\n{}", done.stdout, done.stderr);
    assert!(done.stdout.contains("stream  7  n10"), "{}", done.stdout);
    // What the nodes sent is printed after that.
    assert!(done.stdout.contains("accepted: stream 1 to n7\naccepted: stop\n"), "{}", done.stdout);
    assert!(done.stdout.contains("expected stored_by in the state"), "{}", done.stdout);
}
