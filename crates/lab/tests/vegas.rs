//! TCP Vegas' dynamics over an emulated link: what its paper claims must hold for ours. Needs root and a kernel that
//! accepts it; where either is missing it prints that and passes. It has its own `main` because a sandbox starts this
//! very program again.
#![expect(clippy::print_stdout, reason = "a test program prints its results")]
#![expect(clippy::disallowed_methods, reason = "the sockets of this test")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;

use suiro_clock::Axis;
use suiro_hosts::{CableKind, CableSpec, Network, NetworkSpec, Privilege, Sandbox, ipv4};
use suiro_link::{LinkConfig, LinkSpec};
use suiro_record::Reader;
use suiro_record::tables::LinkRow;
use suiro_record::words::Verdict;
use suiro_tcp::probe::{Ack, Probe};
use suiro_tcp::set_congestion;
use suiro_tcp::vegas::Loaded;
use suiro_tcp::vegas::model::{Arrival, Model};
use suiro_units::{Seed, Time};
use suiro_wire::{Carrier, CarrierSpec, Medium};

/// TCP_CA_CWR: from here on a loss is being repaired.
const CWR: u8 = 2;
/// TCP_INFINITE_SSTHRESH.
const INFINITE: u32 = 0x7fff_ffff;
/// Our own, whatever other `vegas` this kernel may have.
const VEGAS: &str = "suiro_vegas_lab";

/// 10 Mbit/s and 40 ms: the path holds 33 packets.
const LINK: &str = "rate = '10 Mbit/s'\ndelay = '20 ms'\nqueue = { limit = '1 MB' }";
/// The path holds 42 packets, the queue three times as many. It is faster than [`LINK`] because the other congestion
/// controls begin with a heavy loss and must have recovered before they are judged.
const DEEP_LINK: &str = "rate = '25 Mbit/s'\ndelay = '10 ms'\nqueue = { limit = '200 kB' }";
/// The path holds 17 packets; one in a hundred is lost. A flow repairs a loss some 30 times a second.
const LOSSY_LINK: &str =
    "rate = '200 Mbit/s'\ndelay = '2 ms'\nqueue = { limit = '1 MB' }\nloss = 0.01";
const END: Time = Time::from_secs(7);
/// Flows are judged from this time on: slow start is over.
const SETTLED: Time = Time::from_secs(3);

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("inside") {
        inside();
        return ExitCode::SUCCESS;
    }
    if Privilege::of_this_process() == Privilege::User {
        suiro_units::skipped("loading TCP Vegas into the kernel needs root");
        return ExitCode::SUCCESS;
    }
    let mut worker = Sandbox::new(["inside"]).spawn().unwrap();
    if worker.wait().unwrap().success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn inside() {
    let _loaded = match Loaded::new(VEGAS) {
        Ok(loaded) => loaded,
        Err(error) => {
            suiro_units::skipped(&error);
            return;
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| report("a few packets stay queued", a_few_packets_stay_queued));
        scope.spawn(|| report("the equations lead to the kernel's windows", the_model_agrees));
        scope.spawn(|| report("it loses to Reno", || it_loses_to("reno")));
        scope.spawn(|| report("it loses to CUBIC", || it_loses_to("cubic")));
        scope.spawn(|| report("two share fairly", two_share_fairly));
        scope.spawn(|| report("a loss halves the window", a_loss_halves_the_window));
    });
}

fn report(name: &str, test: impl FnOnce()) {
    test();
    println!("{name} ... ok");
}

/// What was recorded about some flows over a link.
struct Seen {
    /// The link's record of each flow's data.
    flows: Vec<Vec<LinkRow>>,
    /// The ACKs that the senders received.
    acks: Vec<Ack>,
}

/// Sends over such a link, one flow with each of these congestion controls at once, until [`END`].
fn run(link: &str, controls: &[&str]) -> Seen {
    let spec = NetworkSpec {
        hosts: vec!["server".into(), "client".into()],
        cables: vec![CableSpec { from: 0, to: 1, mtu: 1500, kind: CableKind::Emulated }],
        detours: vec![],
    };
    let network = Network::build(&spec).unwrap();
    let (clock, dir) = (Axis::starting_now(), tempfile::tempdir().unwrap());
    let carrier = Carrier::start(&CarrierSpec {
        name: "live",
        medium: &Medium::Link { link: &network.links()[0], config: config(link) },
        wire: network.wire(),
        seed: Seed(7),
        clock,
        records: Some(dir.path()),
    })
    .unwrap();
    let probe = network.hosts()[0].enter(Probe::start).unwrap().unwrap();
    let flows: Vec<_> = controls.iter().map(|control| Flow::new(&network, control)).collect();
    std::thread::scope(|scope| {
        for flow in &flows {
            scope.spawn(|| flow.send());
            scope.spawn(|| flow.receive(clock));
        }
    });
    carrier.stop().unwrap();
    let rows = Reader::read_all::<LinkRow>(dir.path()).unwrap();
    let of = |flow: &Flow| {
        let rows = rows.iter().filter(|row| *row.flow == flow.name);
        rows.filter(|row| row.payload_bytes > Some(0)).cloned().collect()
    };
    assert_eq!(probe.lost().unwrap(), 0);
    Seen { flows: flows.iter().map(of).collect(), acks: probe.acks().unwrap().collect() }
}

fn config(link: &str) -> LinkConfig {
    let spec: LinkSpec = toml::from_str(link).unwrap();
    spec.resolve(&mut |_| Err("no traces here".into())).unwrap()
}

struct Flow {
    /// The name of the flow, as the link writes it.
    name: String,
    sender: TcpStream,
    receiver: TcpStream,
}

impl Flow {
    /// A connection that has seen the path empty. A flow that first meets the queues of others takes them for part of
    /// the path (U. Hengartner et al., "TCP Vegas Revisited", INFOCOM 2000).
    fn new(network: &Network, control: &str) -> Self {
        let [server, client] = [0, 1].map(|host| &network.hosts()[host]);
        let listener = client.enter(|| TcpListener::bind((ipv4(1), 0))).unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        let sender = server.enter(|| TcpStream::connect(address)).unwrap().unwrap();
        let (receiver, peer) = listener.accept().unwrap();
        set_congestion(&sender, control).unwrap();
        for socket in [&sender, &receiver] {
            socket.set_nodelay(true).unwrap();
        }
        // A packet as long as the later ones, and an answer that carries its acknowledgement.
        (&sender).write_all(&[0; 1448]).unwrap();
        (&receiver).read_exact(&mut [0; 1448]).unwrap();
        (&receiver).write_all(&[0]).unwrap();
        (&sender).read_exact(&mut [0]).unwrap();
        Self { name: format!("tcp {peer}>{address}"), sender, receiver }
    }

    /// Until the receiver closes.
    fn send(&self) {
        while (&self.sender).write_all(&[7; 65_536]).is_ok() {}
    }

    fn receive(&self, clock: Axis) {
        let mut buffer = vec![0; 65_536];
        while clock.now() < END {
            assert!((&self.receiver).read(&mut buffer).unwrap() > 0, "the sender does not close");
        }
        self.receiver.shutdown(std::net::Shutdown::Both).unwrap();
    }
}

/// The packets that arrived while flows were judged.
fn settled(rows: &[LinkRow]) -> impl Iterator<Item = &LinkRow> {
    let range = [SETTLED, END].map(|time| i64::try_from(time.as_nanos()).unwrap());
    rows.iter().filter(move |row| (range[0]..range[1]).contains(&row.t_ns))
}

fn goodput_bps(rows: &[LinkRow]) -> f64 {
    let delivered = settled(rows).filter(|row| row.departed_ns.is_some());
    let bytes: i64 = delivered.filter_map(|row| row.payload_bytes).sum();
    bytes as f64 * 8.0 / END.saturating_since(SETTLED).as_secs_f64()
}

/// α = 2 and β = 4 packets, ± 1: a delayed ACK releases packets in pairs, the second of which finds the first in the
/// queue, and a packet does not count itself.
fn a_few_packets_stay_queued() {
    let Seen { flows, .. } = run(LINK, &[VEGAS]);
    let mut queues: Vec<_> = settled(&flows[0]).map(|row| row.queue_packets).collect();
    queues.sort_unstable();
    // A machine that is busy with other work may hold up the ACKs of a round.
    let queued = queues[queues.len() / 2];
    println!("({queued} packets queued, {:.2} Mbit/s)", goodput_bps(&flows[0]) / 1e6);
    assert!((1..=5).contains(&queued), "{queued}");
    assert!(flows[0].iter().all(|row| row.verdict != Verdict::Dropped), "no loss");
}

fn it_loses_to(other: &str) {
    let Seen { flows, .. } = run(DEEP_LINK, &[VEGAS, other]);
    let [vegas, greedy] = [&flows[0], &flows[1]].map(|rows| goodput_bps(rows));
    println!("(Vegas {:.2} Mbit/s, {other} {:.2} Mbit/s)", vegas / 1e6, greedy / 1e6);
    assert!(vegas < greedy / 2.0);
}

/// In whole packets, one flow may keep 2 in the queue and the other just under 5 without either changing its window:
/// with shares of 2 to 5, Jain's index is 0.845. Usually it is 0.94 or more.
fn two_share_fairly() {
    let Seen { flows, .. } = run(LINK, &[VEGAS, VEGAS]);
    let rates = [&flows[0], &flows[1]].map(|rows| goodput_bps(rows));
    let sum: f64 = rates.iter().sum();
    let jain = sum * sum / (2.0 * rates.iter().map(|rate| rate * rate).sum::<f64>());
    println!("({rates:?}, Jain {jain:.3})");
    assert!(jain >= 0.84, "{rates:?}");
}

/// The start of `struct vegas` in the BPF program.
struct Private {
    round_end: u32,
    base_rtt_us: Option<u32>,
    sample_us: Option<u32>,
    acks: u32,
    corrected: u32,
}

impl Private {
    fn of(ack: &Ack) -> Self {
        let bytes: Vec<_> = ack.private.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let word = |at: usize| u32::from_ne_bytes(*bytes[at..].first_chunk().unwrap());
        Self {
            round_end: word(0),
            base_rtt_us: Some(word(4)).filter(|&rtt| rtt != u32::MAX),
            sample_us: Some(word(20)).filter(|&rtt| rtt > 0),
            acks: word(24),
            corrected: word(28),
        }
    }
}

/// Linux was once seen to keep a threshold of 668,121,856 packets instead of the one that Vegas returned. With
/// `SUIRO_VEGAS_RECOVERIES=10000` the flows go on until they have repaired that many losses.
fn a_loss_halves_the_window() {
    let wanted = std::env::var("SUIRO_VEGAS_RECOVERIES").ok();
    let wanted = wanted.map_or(100, |number| number.parse().unwrap());
    let (mut recoveries, mut corrected) = (0, 0);
    while recoveries < wanted {
        let mut acks: BTreeMap<_, Vec<Ack>> = BTreeMap::new();
        for ack in run(LOSSY_LINK, &[VEGAS; 4]).acks {
            acks.entry(ack.id.cookie()).or_default().push(ack);
        }
        for acks in acks.values().filter(|acks| acks[0].congestion() == VEGAS) {
            let greatest = acks.iter().map(|ack| ack.info.snd_cwnd).max().unwrap();
            for pair in acks.windows(2) {
                let [before, after] = [&pair[0], &pair[1]];
                let (was, is) = (before.info.ca_state, after.info.ca_state);
                recoveries += usize::from(was < CWR && is >= CWR);
                // Infinite until the first loss, and after one that turned out to be none.
                let ssthresh = after.ssthresh;
                assert!(ssthresh <= greatest || ssthresh == INFINITE, "{before:?}\n{after:?}");
            }
            corrected += acks.last().map_or(0, |ack| Private::of(ack).corrected);
        }
    }
    println!("({recoveries} recoveries, {corrected} thresholds corrected)");
    assert_eq!(corrected, 0);
}

/// Exact to the segment, at every ACK: the model is given the very samples that the kernel's Vegas was given, and no
/// loss occurs.
fn the_model_agrees() {
    let acks = run(LINK, &[VEGAS]).acks;
    let first = Private::of(&acks[0]);
    let (window, ssthresh) = (acks[0].info.snd_cwnd, acks[0].ssthresh);
    let mut model = Model::new(window, ssthresh, first.base_rtt_us, first.round_end);
    let mut compared = 0;
    for pair in acks.windows(2) {
        let ([before, after], private) = ([&pair[0], &pair[1]], Private::of(&pair[1]));
        assert_eq!((after.congestion(), after.info.ca_state), (VEGAS, 0), "{after:?}");
        if private.acks == Private::of(before).acks {
            continue; // It acknowledged nothing.
        }
        assert_eq!(private.acks, Private::of(before).acks + 1, "an ACK is missing");
        let arrival = Arrival {
            ack: after.snd_una,
            snd_nxt: before.snd_nxt,
            acked: after.delivered - before.delivered,
            rtt_us: private.sample_us,
            max_packets_out: before.max_packets_out,
        };
        if !model.arrive(&arrival) {
            model.window = after.info.snd_cwnd;
        }
        assert_eq!(
            (model.window, model.ssthresh, model.base_rtt_us),
            (after.info.snd_cwnd, after.ssthresh, private.base_rtt_us),
            "after {compared} ACKs: {arrival:?}\n{model:?}\n{after:?}"
        );
        if after.snd_una == before.snd_nxt {
            model.restart(after.snd_una);
        }
        compared += 1;
    }
    println!("({compared} ACKs, the window at last {})", model.window);
    assert!(compared > 1_000);
}
