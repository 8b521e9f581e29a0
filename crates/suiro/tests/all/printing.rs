//! Nothing that is printed ends a run: neither a reader that leaves nor a terminal that is closed.

use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Child, Stdio};

use crate::common::{self, Lines, Room};

/// Two trials, one after the other, of a command on plain hosts.
const SCENARIO: &str = "
name = 'tiny'
title = 'a test'
duration = '300 ms'
repetitions = 2
jobs = 1
[topology]
shape = 'explicit'
hosts = ['server', 'client']
cables = [{ from = 'server', to = 'client' }]
[links]
[media]
[endpoints.it]
kind = 'command'
host = 'client'
command = ['sleep', '100']
";

const RUN: [&str; 4] = ["run", "tiny.toml", "--out", "out"];

/// Both ends of a new terminal, that of who looks at it first.
fn terminal() -> (OwnedFd, OwnedFd) {
    let (mut master, mut slave) = (0, 0);
    let (name, settings, size) = (std::ptr::null_mut(), std::ptr::null(), std::ptr::null());
    // SAFETY: both places are valid, and null asks for no name and for the usual settings.
    let opened = unsafe { libc::openpty(&mut master, &mut slave, name, settings, size) };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the kernel has just opened both for us.
    unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) }
}

/// The exit code, once both trials are found to have been measured and reported.
#[track_caller]
fn measured(room: &Room, child: &mut Child) -> Option<i32> {
    let code = common::end_of(child).code();
    let out = room.results("out");
    for path in ["trials/all/1/trial.json", "trials/all/2/trial.json"] {
        assert!(out.has(path), "{path} was lost; exit {code:?}");
    }
    assert!(out.has("report.html"), "no report; exit {code:?}");
    assert_eq!(out.summary().trials.iter().filter(|trial| trial.valid).count(), 2);
    code
}

#[test]
fn a_reader_that_leaves_costs_no_trial() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    room.write("tiny.toml", SCENARIO);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = room.suiro(&RUN);
    command.stdout(writer.try_clone().unwrap()).stderr(writer);
    let mut child = command.spawn().unwrap();
    drop(command);
    assert_eq!(measured(&room, &mut child), Some(0));
}

#[test]
fn a_full_disk_costs_what_was_to_be_printed_only() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    room.write("tiny.toml", SCENARIO);
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let mut child = room.suiro(&RUN).stdout(full()).stderr(full()).spawn().unwrap();
    // Who redirected the table into a file has to learn that it is not there.
    assert_eq!(measured(&room, &mut child), Some(1));
}

#[test]
fn a_terminal_that_is_closed_costs_no_trial() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    room.write("tiny.toml", SCENARIO);
    let (master, slave) = terminal();
    let mut command = room.suiro(&RUN);
    command.stdout(slave.try_clone().unwrap()).stderr(slave).stdin(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    // Wait until it draws, then close the window on it.
    assert!(common::readable(&master, common::WITHIN), "it drew nothing");
    drop(master);
    assert_eq!(measured(&room, &mut child), Some(0));
}

#[test]
fn a_recording_or_a_link_survives_its_reader() {
    if !common::can_run() {
        return;
    }
    let room = Room::new();
    let mut command =
        room.suiro(&["link", "--no-check", "--json", "--", "sh", "-c", "echo on >&2"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let lines = Lines::of(child.stderr.take().unwrap());
    lines.until("on");
    drop(command);
    assert_eq!(common::end_of(&mut child).code(), Some(0));
}
