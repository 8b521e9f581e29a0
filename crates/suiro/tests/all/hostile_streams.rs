//! Servers that play tricks on `suiro play`, and clients that play them on `suiro serve`.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;

use crate::common::{self, Done, Lines, Room};
use rustix::net::{AddressFamily, SocketType};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use suiro_media::Ffmpeg;

/// Answers every request with the same bytes, for as long as the test runs.
#[expect(clippy::disallowed_methods, reason = "the server of this test")]
fn server(answer: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), answer) = (stream, answer.clone()) else { break };
            std::thread::spawn(move || {
                let mut request = Vec::new();
                let mut bytes = [0; 1024];
                while !request.ends_with(b"\r\n\r\n") {
                    match stream.read(&mut bytes) {
                        Ok(read) if read > 0 => request.extend_from_slice(&bytes[..read]),
                        _ => return,
                    }
                }
                // The player may have gone away.
                let _ = stream.write_all(&answer);
            });
        }
    });
    address
}

fn document(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[test]
fn a_stream_without_a_manifest_ends_in_failure_with_the_cause() {
    let redirect = "HTTP/1.1 302 Found\r\nLocation: /again.mpd\r\nContent-Length: 0\r\n\r\n";
    // Ten entities of ten each: a billion characters.
    let entities: String = (1..10)
        .map(|n| format!("<!ENTITY e{n} \"{}\">", format!("&e{};", n - 1).repeat(10)))
        .collect();
    let laughs = format!("<!DOCTYPE MPD [<!ENTITY e0 \"ha\">{entities}]><MPD>&e9;</MPD>");
    let deep = format!("<MPD>{}{}</MPD>", "<a>".repeat(240_000), "</a>".repeat(240_000));
    let cases = [
        (redirect.as_bytes().to_vec(), "more than 5 redirects"),
        (document(&laughs), "DTD"),
        (document(&deep), "no <Period>"),
        (document(&format!("<MPD>{}</MPD>", "<a/>".repeat(600_000))), "nodes"),
        (document("not a manifest"), "line 1"),
    ];
    // Each asks again and again for three seconds, and all may do so at once.
    std::thread::scope(|scope| {
        for (answer, cause) in cases {
            scope.spawn(move || {
                let url = format!("http://{}/live.mpd", server(answer));
                let play = ["play", &url, "--duration", "3 s", "--out", "played"];
                Room::new().run(&play).exits(1).says(&["there was no manifest", cause]);
            });
        }
    });
}

/// A video of four seconds, made by ffmpeg.
fn video(ffmpeg: &Ffmpeg, file: &Path) {
    let mut command = std::process::Command::new(ffmpeg.path());
    command.args(["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=24", "-t", "4"]);
    let output = common::output(command.args(["-pix_fmt", "yuv420p"]).arg(file));
    assert!(output.status.success(), "{output:?}");
}

/// A connection from an address of this machine.
fn connect(from: Ipv4Addr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    rustix::net::bind(&socket, &SocketAddr::new(IpAddr::V4(from), 0))?;
    rustix::net::connect(&socket, &to)?;
    Ok(TcpStream::from(socket))
}

/// The first line of the answer to a request.
fn answer(from: Ipv4Addr, to: SocketAddr) -> String {
    let mut stream = connect(from, to).unwrap();
    let request = "GET /manifest.mpd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let mut text = Vec::new();
    // A connection that is closed at once takes no request and has no answer.
    let _ = stream.write_all(request.as_bytes());
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a port for the server of this test")]
fn silent_connections_keep_nobody_out_and_serve_listens_where_it_is_told() {
    let ffmpeg = Ffmpeg::locate().inspect_err(suiro_units::skipped);
    let Ok(ffmpeg) = ffmpeg else { return };
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let room = Room::new();
    video(&ffmpeg, &room.path("work").join("film.mp4"));
    let own = Ipv4Addr::new(127, 0, 0, 3);
    let to = TcpListener::bind((own, 0)).unwrap().local_addr().unwrap();
    let port = to.port().to_string();
    let mut command = room.suiro(&["serve", "film.mp4", "--port", &port, "--bind", "127.0.0.3"]);
    command.env("SUIRO_FFMPEG", ffmpeg.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = Lines::of(child.stderr.take().unwrap());
    lines.until("DASH");

    let elsewhere = SocketAddr::from((Ipv4Addr::LOCALHOST, to.port()));
    assert!(connect(Ipv4Addr::LOCALHOST, elsewhere).is_err(), "it listens where it was told");
    let silent: Vec<_> = (0..1030).map_while(|_| connect(Ipv4Addr::LOCALHOST, to).ok()).collect();
    assert_eq!(silent.len(), 1030, "the test itself has too few descriptors: {limit:?}");
    assert_eq!(answer(Ipv4Addr::new(127, 0, 0, 4), to), "HTTP/1.1 200 OK");
    assert_eq!(answer(Ipv4Addr::LOCALHOST, to), "", "who holds so many gets no more");
    drop(silent);
    child.kill().unwrap();
    let _ = Done::wait(child);
}
