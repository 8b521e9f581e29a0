//! Programs that make traffic with one fault, for the culprits; and how the emulator is held up.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Child;
use std::time::Duration;

use rustix::event::{Timespec, poll};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_tcp_congestion};
use rustix::process::{Pid, Signal, kill_process};

use crate::common;

/// `sink PORT [RECEIVE_BUFFER [BYTES_A_READ [MS_BETWEEN]]]`, or `source HOST:PORT [BYTES_A_WRITE MS_BETWEEN [IN_ALL]]`.
pub fn run(words: &[String]) {
    let number = |at: usize| words.get(at).map(|word| word.parse::<usize>().expect("a number"));
    match words[0].as_str() {
        "sink" => sink(number(1).expect("a port") as u16, number(2), number(3), number(4)),
        _ => source(&words[1], number(2), number(3), number(4)),
    }
}

fn sink(port: u16, buffer: Option<usize>, chunk: Option<usize>, between: Option<usize>) {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).unwrap();
    if let Some(bytes) = buffer.filter(|bytes| *bytes > 0) {
        set_socket_recv_buffer_size(&listener, bytes).unwrap();
    }
    let mut bytes = vec![0; chunk.unwrap_or(1 << 18)];
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        while stream.read(&mut bytes).is_ok_and(|count| count > 0) {
            pause(between.unwrap_or(0));
        }
    }
}

fn source(to: &str, chunk: Option<usize>, between: Option<usize>, whole: Option<usize>) {
    let mut stream = TcpStream::connect(to).unwrap();
    // One congestion control, whatever the machine's default is; where it is missing, the default has to do.
    let _ = set_tcp_congestion(&stream, "cubic");
    let bytes = vec![7; chunk.unwrap_or(1 << 18)];
    let mut sent = 0;
    while whole.is_none_or(|whole| sent < whole) && stream.write_all(&bytes).is_ok() {
        sent += bytes.len();
        pause(between.unwrap_or(0));
    }
    drop(stream.shutdown(std::net::Shutdown::Write));
    drop(stream.read(&mut [0; 1]));
    // The endpoint stays until the trial ends.
    pause(60_000);
}

fn pause(ms: usize) {
    if ms > 0 {
        let time = Timespec::try_from(Duration::from_millis(ms as u64)).unwrap();
        poll(&mut [], Some(&time)).unwrap();
    }
}

/// Stops the process of the trial, in which the emulator runs, for half of every second; its endpoints go on.
pub fn hold_trial(run: &Child) {
    let trial = || {
        let children = std::fs::read_dir("/proc").ok()?;
        let mut found =
            children.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        found.find(|pid| is_trial(*pid, run.id()))
    };
    // Looked for once: between two looks it may have fewer threads, and would not be held at all.
    let found = std::cell::Cell::new(None);
    let starts = || {
        found.set(trial().and_then(Pid::from_raw));
        found.get().is_some()
    };
    common::eventually(starts, || "the trial does not start".into());
    let pid = found.get().expect("it was waited for");
    while kill_process(pid, Signal::STOP).is_ok() {
        pause(900);
        let _ = kill_process(pid, Signal::CONT);
        pause(100);
    }
}

/// Whether a process is the emulator's of this run: a `suiro trial` below it.
fn is_trial(pid: i32, run: u32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = line.split(|byte| *byte == 0);
    let trial = words.nth(1).is_some_and(|word| word == b"trial");
    trial
        && below(pid, run)
        && std::fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|tasks| tasks.count() > 2)
}

fn below(pid: i32, run: u32) -> bool {
    let mut at = pid;
    for _ in 0..16 {
        let text = std::fs::read_to_string(format!("/proc/{at}/stat")).unwrap_or_default();
        let after = text.rsplit_once(')').map_or("", |(_, rest)| rest);
        match after.split_whitespace().nth(1).and_then(|word| word.parse::<i32>().ok()) {
            Some(parent) if parent as u32 == run => return true,
            Some(parent) if parent > 1 => at = parent,
            _ => return false,
        }
    }
    false
}
