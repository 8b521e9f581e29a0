//! Sandboxes and networks of the real kernel. Needs root or user namespaces; where neither is
//! permitted it prints the reason and passes. It has its own `main` because a sandbox starts this
//! very program again.
#![expect(clippy::print_stdout, reason = "a test program prints its results")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, ExitCode, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use suiro_hosts::sandbox::probe;
use suiro_hosts::{
    CableKind, CableSpec, Confinement, Detour, Host, LinkEnd, Network, NetworkSpec, Privilege,
    Sandbox, ipv4, ipv6, tests_ended,
};

/// Time limit for everything here.
const PATIENCE: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

fn main() -> ExitCode {
    let role = std::env::args().nth(1).unwrap_or_default();
    match role.as_str() {
        "inside" => inside(),
        "exit-7" => return ExitCode::from(7),
        "maker" => maker(),
        "sit" => sit(),
        _ => return outside(),
    }
    ExitCode::SUCCESS
}

/// A test that fails panics and ends the program.
#[expect(clippy::disallowed_methods, reason = "how long tests took is for people")]
fn outside() -> ExitCode {
    let (began, mut passed) = (std::time::Instant::now(), 0);
    for privilege in [Privilege::Root, Privilege::User] {
        if privilege == Privilege::Root && Privilege::of_this_process() != privilege {
            println!("skipped: as {privilege}: needs root");
            continue;
        }
        if let Err(error) = probe(privilege) {
            println!("skipped: as {privilege}: {error}");
            continue;
        }
        report(privilege, "exit codes come back", exit_codes_come_back);
        report(privilege, "nothing outlives its parent", nothing_outlives_its_parent);
        report(privilege, "networks", |privilege| {
            let mut worker = Sandbox::new(["inside"]).privilege(privilege).spawn().unwrap();
            assert!(worker.wait().unwrap().success(), "the tests inside failed");
        });
        passed += 3;
    }
    tests_ended(passed, 0, 0, began.elapsed().as_secs_f64())
}

fn report(privilege: Privilege, name: &str, test: impl FnOnce(Privilege)) {
    test(privilege);
    println!("as {privilege}: {name} ... ok");
}

fn exit_codes_come_back(privilege: Privilege) {
    let mut worker = Sandbox::new(["exit-7"]).privilege(privilege).spawn().unwrap();
    assert_eq!(worker.wait().unwrap().code(), Some(7));
    assert_eq!(worker.wait().unwrap().code(), Some(7), "the exit code can be read twice");
    let (read, write) = std::io::pipe().unwrap();
    let mut worker = Sandbox::new(["sit"]).privilege(privilege).stdout(write).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(read).read_line(&mut line).unwrap();
    worker.signal(Signal::KILL);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&worker.wait().unwrap()), Some(9));
}

/// Parent → sandbox → a child of the sandbox; the parent is killed with SIGKILL, ten times.
fn nothing_outlives_its_parent(privilege: Privilege) {
    for _ in 0..10 {
        let mut maker = Command::new("/proc/self/exe")
            .args(["maker", &privilege.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(maker.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let worker: i32 = line.trim().parse().expect("the parent prints the worker's pid");
        let children = format!("/proc/{worker}/task/{worker}/children");
        let child: i32 = std::fs::read_to_string(children).unwrap().trim().parse().unwrap();
        let watched = [worker, child]
            .map(|pid| pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap());
        kill_process(Pid::from_child(&maker), Signal::KILL).unwrap();
        maker.wait().unwrap();
        for pidfd in &watched {
            assert!(has_ended(pidfd), "a process outlived its parent");
        }
    }
}

fn has_ended(pidfd: &OwnedFd) -> bool {
    poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&PATIENCE)).unwrap() == 1
}

/// Makes a sandbox that sleeps, and sleeps itself.
fn maker() {
    let privilege = match std::env::args().nth(2).as_deref() {
        Some("root") => Privilege::Root,
        _ => Privilege::User,
    };
    let (read, write) = std::io::pipe().unwrap();
    // The requesting thread ends before the worker does: that must not matter.
    let ask = move || Sandbox::new(["sit"]).privilege(privilege).stdout(write).spawn().unwrap();
    let worker = std::thread::spawn(ask).join().unwrap();
    let mut line = String::new();
    BufReader::new(read).read_line(&mut line).unwrap();
    println!("{}", worker.pid());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// PID 1 of a sandbox, with a child.
fn sit() {
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    println!("ready");
    child.wait().unwrap();
}

fn inside() {
    assert_eq!(std::process::id(), 1, "a worker is the init of its PID namespace");
    assert!(rustix::process::geteuid().is_root());
    let own = std::fs::read_link("/proc/self").unwrap();
    assert_eq!(own.to_str(), Some("1"), "/proc is the sandbox's own");
    a_host_alone_has_a_loopback();
    let network = dumbbell(CableKind::Plain);
    network.publish_names().unwrap();
    hosts_reach_each_other(&network);
    packets_are_whole(&network);
    failures_name_the_line(&network);
    assert_eq!(network.offloads(0).unwrap(), [vec![], Vec::<String>::new()]);
    card_offloads_skip_checksums_but_split_packets();
    an_emulated_link_carries_nothing_by_itself();
    a_detour_leads_by_the_router();
    nobody_chatters(&network);
    commands_have_limits(&network);
}

/// They keep three capabilities, share a /tmp, and of the real one see only the folders named.
fn commands_have_limits(network: &Network) {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let readable = tempfile::tempdir().unwrap();
    std::fs::write(readable.path().join("film"), "pictures").unwrap();
    let limits =
        Confinement::prepare(dir.path(), &[dir.path()], &[readable.path().to_owned()]).unwrap();
    let run = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(dir.path());
        network.host("client").unwrap().command(&mut command);
        limits.command(&mut command).output().unwrap()
    };
    let status = run("cat /proc/self/status").stdout;
    let status = String::from_utf8(status).unwrap();
    // CAP_NET_BIND_SERVICE is 10, CAP_NET_ADMIN 12, CAP_NET_RAW 13 (capability.h).
    for line in ["CapPrm:\t", "CapEff:\t", "CapBnd:\t"] {
        assert!(status.contains(&format!("{line}0000000000003400\n")), "{status}");
    }
    assert!(status.contains("NoNewPrivs:\t1\n"), "{status}");
    assert!(run("echo shared > /tmp/of-the-trial && ip link set dev lo mtu 1400").status.success());
    assert_eq!(run("cat /tmp/of-the-trial").stdout, b"shared\n");
    let here = dir.path().display();
    assert!(run(&format!("echo kept > {here}/kept")).status.success());
    assert_eq!(std::fs::read(dir.path().join("kept")).unwrap(), b"kept\n");
    assert!(!run(&format!("test -e {}", other.path().display())).status.success());
    let film = readable.path().join("film");
    let film = film.display();
    assert_eq!(run(&format!("cat {film}")).stdout, b"pictures");
    // The kernel refuses before it asks who owns a file.
    for denied in [
        &format!("touch -c {film}"),
        "touch -c /etc/passwd",
        "touch -c /proc/sys/kernel/core_pattern",
    ] {
        let told = String::from_utf8(run(denied).stderr).unwrap();
        assert!(told.contains("Read-only file system"), "{denied}: {told}");
    }
    let mounts = String::from_utf8(run("cat /proc/self/mounts").stdout).unwrap();
    let writable: Vec<&str> = mounts.lines().filter(|line| line.contains(" rw,")).collect();
    let at = |line: &&str| line.split(' ').nth(1).unwrap().to_owned();
    for mount in writable.iter().map(at) {
        let own = ["/dev", "/proc", "/tmp", "/var/tmp", "/run"].iter();
        assert!(own.into_iter().any(|own| mount.starts_with(own)), "{mount}: {mounts}");
        assert!(!mount.starts_with("/proc/sys") || mount == "/proc/sys/net", "{mounts}");
    }
    assert!(run("echo 1 > /proc/sys/net/ipv4/ip_forward").status.success());
    assert_eq!(run("cat /etc/shadow; ls -A /home /root/.ssh /etc/ssh").stdout, b"/home:\n");
    assert_eq!(run("echo ~; pwd").stdout, format!("/tmp\n{here}\n").as_bytes());
    drop(limits);
    assert!(!std::path::Path::new("/tmp/of-the-trial").exists());
    assert!(!dir.path().join(".tmp").exists());
    let limits = Confinement::prepare(dir.path(), &[dir.path()], &[]).unwrap().whoever_owns_files();
    let mut command = Command::new("cat");
    network.host("client").unwrap().command(command.arg("/proc/self/status"));
    let status = limits.command(&mut command).output().unwrap().stdout;
    let status = String::from_utf8(status).unwrap();
    // CAP_DAC_OVERRIDE is 1.
    assert!(status.contains("CapEff:\t0000000000003402\n"), "{status}");
}

#[expect(clippy::disallowed_methods, reason = "the sockets of this test")]
fn a_host_alone_has_a_loopback() {
    let host = Host::new("alone").unwrap();
    let echoed = host.enter(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        exchange(&listener, listener.local_addr().unwrap())
    });
    assert!(echoed.unwrap());
    assert!(host.settings().unwrap()["net.ipv4.tcp_rmem"].split(' ').count() == 3);
}

#[expect(clippy::disallowed_methods, reason = "the sockets of this test")]
fn exchange(listener: &TcpListener, to: SocketAddr) -> bool {
    let mut client = TcpStream::connect(to).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(b"over").unwrap();
    let mut heard = [0; 4];
    server.read_exact(&mut heard).unwrap();
    &heard == b"over"
}

/// server1, server2 – left – right – client, all joined by cables of that kind.
fn dumbbell(kind: CableKind) -> Network {
    let cable = |from, to| CableSpec { from, to, mtu: 9000, kind };
    let names = ["server1", "server2", "left", "right", "client"];
    let spec = NetworkSpec {
        hosts: names.map(str::to_owned).to_vec(),
        cables: vec![cable(0, 2), cable(1, 2), cable(2, 3), cable(3, 4)],
        detours: vec![],
    };
    Network::build(&spec).unwrap()
}

/// What clients behind a bridge send to each other passes the router, and comes back.
fn a_detour_leads_by_the_router() {
    let cable = |from, to| CableSpec { from, to, mtu: 1500, kind: CableKind::Plain };
    let spec = NetworkSpec {
        hosts: ["a", "b", "bridge", "router"].map(str::to_owned).to_vec(),
        cables: vec![cable(2, 0), cable(2, 1), cable(3, 2)],
        detours: vec![Detour { host: 2, cable: 2 }],
    };
    let network = Network::build(&spec).unwrap();
    let router = network.host("router").unwrap();
    for address in [ipv4(1).to_string(), ipv6(1).to_string()] {
        let before = sent_packets(router);
        assert!(ping(network.host("a").unwrap(), &[&address]), "{address}");
        let passed = sent_packets(router) - before;
        // The kernel may send one of its own.
        assert!(passed >= 2, "{address}: {passed} packets, not the request and its reply");
    }
}

fn ping(host: &Host, arguments: &[&str]) -> bool {
    let mut ping = Command::new("ping");
    ping.args(["-c", "1", "-W", "5"]).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    host.command(&mut ping).status().unwrap().success()
}

fn hosts_reach_each_other(network: &Network) {
    let server = network.host("server1").unwrap();
    for name in ["server1", "server2", "left", "right", "client"] {
        assert!(ping(server, &["-4", name]), "IPv4 to {name}");
        assert!(ping(server, &["-6", name]), "IPv6 to {name}");
    }
    let client = network.host("client").unwrap();
    assert!(ping(client, &["-4", "-M", "do", "-s", "8972", "server2"]), "9000 bytes in one packet");
    assert!(!ping(client, &["-4", "-M", "do", "-s", "8973", "server2"]), "and not more");
}

/// A large write crosses the cable in packets no larger than the MTU, not as one super-packet.
#[expect(clippy::disallowed_methods, reason = "the sockets of this test")]
fn packets_are_whole(network: &Network) {
    let [from, to] = ["server1", "client"].map(|name| network.host(name).unwrap());
    let listener = to.enter(|| TcpListener::bind((ipv6(4), 0)).unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let before = sent_packets(from);
    let mut sender = from.enter(|| TcpStream::connect(address).unwrap()).unwrap();
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut all).unwrap();
        all.len()
    });
    let bytes = 4_000_000;
    sender.write_all(&vec![1; bytes]).unwrap();
    drop(sender);
    assert_eq!(reader.join().unwrap(), bytes);
    let packets = sent_packets(from) - before;
    assert!(packets as usize >= bytes / 9000, "{packets} packets for {bytes} bytes");
    assert_eq!(ipv4(4).to_string(), "10.0.0.5");
}

/// Cables with offloads carry the same packets, and report which offloads are on.
fn card_offloads_skip_checksums_but_split_packets() {
    let network = dumbbell(CableKind::Card);
    hosts_reach_each_other(&network);
    packets_are_whole(&network);
    for end in network.offloads(3).unwrap() {
        assert!(end.contains(&"rx-gro".to_owned()), "{end:?}");
        assert!(end.contains(&"tx-checksum-ip-generic".to_owned()), "{end:?}");
        assert!(!end.iter().any(|name| name.contains("segmentation")), "{end:?}");
    }
    let error = network.offloads(4).unwrap_err().to_string();
    assert!(error.contains("no cable 5"), "{error}");
}

/// Packets that `eth0` has sent.
fn sent_packets(host: &Host) -> u64 {
    host.interface_counts("eth0").unwrap().sent
}

fn failures_name_the_line(network: &Network) {
    let lines = ["link set lo up".to_owned(), "link set nope up".to_owned()];
    let error = network.hosts()[0].ip(&lines).unwrap_err().to_string();
    assert!(error.contains("ip in server1: `link set nope up`: Cannot find device"), "{error}");
    let error = network.hosts()[0].set("net.ipv4.nope", "1").unwrap_err().to_string();
    assert!(error.contains("setting net.ipv4.nope to 1: No such file"), "{error}");
    let error = network.hosts()[0].offloads_off("nope").unwrap_err().to_string();
    assert!(error.contains("offloads of nope"), "{error}");
}

fn an_emulated_link_carries_nothing_by_itself() {
    let spec = NetworkSpec {
        hosts: vec!["server".to_owned(), "client".to_owned()],
        cables: vec![CableSpec { from: 0, to: 1, mtu: 1500, kind: CableKind::Emulated }],
        detours: vec![],
    };
    let network = Network::build(&spec).unwrap();
    let server = network.host("server").unwrap();
    let client_address = ipv4(1).to_string();
    assert!(!ping(server, &["-W", "1", &client_address]));
    let link = &network.links()[0];
    assert_eq!(link.from.host.name(), "server");
    let counts = |end: &LinkEnd| network.wire().interface_counts(&end.wire_interface).unwrap();
    assert_eq!((counts(&link.from).received, counts(&link.to).sent), (1, 0));
}

/// No discovery, no announcements: only requested packets cross a cable.
fn nobody_chatters(network: &Network) {
    let idle = network.host("server2").unwrap();
    let before = sent_packets(idle);
    // Other tests have taken several seconds since the cables came up, and announcements would come
    // in the first second.
    assert!(before <= 4, "{before} packets from a host that answered three pings");
}
