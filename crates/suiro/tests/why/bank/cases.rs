//! The cases of the bank: a scenario for each seed, and what acts in it and when.

use suiro_units::{Random, Seed};

use super::faults::{Fault, KINDS, Kind};

/// Cases of the bank, from seed 0.
pub const CASES: u64 = 200;
/// How long each trial lasts.
pub const SECONDS: u64 = 16;

/// What a case streams, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Dash,
    Hls,
    WebRtc,
    Moq,
    Rtp,
}

impl Protocol {
    /// Whether it is video that is shown as it comes, without segments.
    pub fn is_real_time(self) -> bool {
        !matches!(self, Self::Dash | Self::Hls)
    }
}

/// A scenario, and what acts in it.
pub struct Case {
    pub seed: u64,
    pub protocol: Protocol,
    pub faults: Vec<Fault>,
    pub scenario: String,
    /// Of two faults: the same scenario without the first, and without the second.
    pub without: Vec<String>,
}

/// A third of every protocol's cases, which no rule was chosen by.
pub fn is_held_out(seed: u64) -> bool {
    (seed / 6 + seed).is_multiple_of(3)
}

impl Case {
    /// Of ten blocks of six cases, two have no fault and four have two.
    pub fn of(seed: u64) -> Self {
        let mut random = Seed(seed + 1000).random();
        let protocol = match seed % 6 {
            0 | 2 => Protocol::Dash,
            1 => Protocol::Hls,
            3 => Protocol::WebRtc,
            4 => Protocol::Moq,
            _ => Protocol::Rtp,
        };
        let count = match seed / 6 % 10 {
            0 | 5 => 0,
            2 | 4 | 6 | 8 => 2,
            _ => 1,
        };
        let faults = faults(&mut random, protocol, count);
        let of = |acting: &[Fault]| scenario(random.clone(), seed, protocol, (&faults, acting));
        let scenario = of(&faults);
        let without = match &faults[..] {
            [a, b] => vec![of(&[*b]), of(&[*a])],
            _ => Vec::new(),
        };
        Self { seed, protocol, faults, scenario, without }
    }

    pub fn name(&self) -> String {
        let faults: Vec<String> = self.faults.iter().map(Fault::to_string).collect();
        let faults = if faults.is_empty() { "nothing".into() } else { faults.join(" and ") };
        format!("{:02} {:?}: {faults}", self.seed, self.protocol)
    }
}

/// So many faults of different kinds: of two, in half of the cases at the same time.
fn faults(random: &mut Random, protocol: Protocol, count: usize) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    let together = random.chance(0.5);
    while faults.len() < count {
        let kind = KINDS[random.below(KINDS.len() as u64) as usize];
        let fits = kind.acts_on(protocol) && faults.iter().all(|other| other.kind.goes_with(kind));
        if !fits {
            continue;
        }
        let from_ms = match faults.len() {
            1 if !together => 9000 + random.below(1500),
            _ => 4000 + random.below(1500),
        };
        faults.push(Fault::of(kind, from_ms, random));
    }
    faults
}

/// A case's scenario, in which only some of its faults act. What is random does not depend on which.
fn scenario(
    mut random: Random,
    seed: u64,
    protocol: Protocol,
    (all, faults): (&[Fault], &[Fault]),
) -> String {
    let random = &mut random;
    let has = |kind: Kind| faults.iter().any(|fault| fault.kind == kind);
    let competes = all.iter().any(|fault| fault.kind == Kind::Competing);
    let rate_kbps = match protocol.is_real_time() {
        true => 3000 + random.below(4000),
        false => 2500 + random.below(4000),
    };
    let policed = has(Kind::Policer);
    let queue = if competes && random.chance(0.5) { 600 } else { 150 };
    let mut link = format!("delay = \"{} ms\"\n", 5 + random.below(30));
    if policed {
        link.push_str(&format!("up.rate = \"{rate_kbps} kbit/s\"\ndown.rate = \"1 Mbit/s\"\n"));
        link.push_str("down.burst = \"12 kB\"\ndown.queue = { limit = \"1p\" }\n");
    } else {
        link.push_str(&format!(
            "rate = \"{rate_kbps} kbit/s\"\nqueue = {{ limit = \"{queue} ms\" }}\n"
        ));
    }
    faults.iter().for_each(|fault| link.push_str(&fault.constant()));
    for direction in ["down", "up"] {
        let changes: Vec<String> =
            faults.iter().flat_map(|fault| fault.changes(direction, rate_kbps)).collect();
        if !changes.is_empty() {
            link.push_str(&format!(
                "{direction}.changes = [{}]\n",
                super::faults::in_order(changes)
            ));
        }
    }
    let topology = match protocol {
        Protocol::Moq => {
            let links = if random.chance(0.5) { "[\"l\", \"wide\"]" } else { "[\"wide\", \"l\"]" };
            format!(
                "shape = \"chain\"\nlinks = {links}\n[links.wide]\nrate = \"50 Mbit/s\"\ndelay = \"5 ms\"\n"
            )
        }
        _ => "shape = \"dumbbell\"\nlink = \"l\"\n".to_owned(),
    };
    let mut rest = endpoints(random, protocol);
    faults.iter().for_each(|fault| rest.push_str(&fault.endpoints(protocol)));
    format!(
        "name = \"case-{seed}\"\ntitle = \"a case of the bank\"\nduration = \"{SECONDS} s\"\n\
         [topology]\n{topology}[links.l]\n{link}{rest}"
    )
}

fn endpoints(random: &mut Random, protocol: Protocol) -> String {
    const CAMERA: &str = "camera = { source = \"synthetic\", width = 480, height = 270, fps = 30, length = \"4 s\" }\nabsence = \"ignored\"\n";
    let fixed = ["900 kbit/s", "1200 kbit/s", "1600 kbit/s"][random.below(3) as usize];
    match protocol {
        Protocol::Dash | Protocol::Hls => player(random, protocol),
        Protocol::WebRtc => format!(
            "[endpoints.origin]\nkind = \"webrtc-publisher\"\nhost = \"server\"\n{CAMERA}max_rate = \"{fixed}\"\n\
             [endpoints.player]\nkind = \"webrtc-viewer\"\nhost = \"client\"\nfrom = \"origin\"\nabsence = \"ignored\"\n"
        ),
        Protocol::Moq => {
            let congestion = ["cubic", "bbr", "new-reno"][random.below(3) as usize];
            format!(
                "[endpoints.relay]\nkind = \"moq-relay\"\nhost = \"relay\"\ncongestion = \"{congestion}\"\n\
                 [endpoints.origin]\nkind = \"moq-publisher\"\nhost = \"publisher\"\nto = \"relay\"\n{CAMERA}\
                 rate = \"{fixed}\"\ncongestion = \"{congestion}\"\n\
                 [endpoints.player]\nkind = \"moq-viewer\"\nhost = \"viewer\"\nfrom = \"relay\"\nabsence = \"ignored\"\n"
            )
        }
        Protocol::Rtp => format!(
            "[endpoints.origin]\nkind = \"rtp-sender\"\nhost = \"server\"\nto = \"player\"\ncodec = \"h264\"\n{CAMERA}\
             control = {{ kind = \"fixed\", rate = \"{fixed}\" }}\n\
             [endpoints.player]\nkind = \"rtp-receiver\"\nhost = \"client\"\ncodec = \"h264\"\nabsence = \"ignored\"\n"
        ),
    }
}

fn player(random: &mut Random, protocol: Protocol) -> String {
    let (words, rungs) = match protocol {
        Protocol::Dash => ("dash", ""),
        _ => ("hls", ""),
    };
    let one = |choices: &[&'static str], random: &mut Random| {
        choices[random.below(choices.len() as u64) as usize]
    };
    let tcp = one(&["reno", "cubic"], random);
    let abr = one(&["throughput", "dynamic", "bola"], random);
    let ladder = match random.below(3) {
        0 => "[{ bitrate = \"800 kbit/s\", height = 360 }]",
        1 => {
            "[{ bitrate = \"800 kbit/s\", height = 360 }, { bitrate = \"200 kbit/s\", height = 180 }]"
        }
        _ => {
            "[{ bitrate = \"1500 kbit/s\", height = 480 }, { bitrate = \"600 kbit/s\", height = 240 }, \
             { bitrate = \"200 kbit/s\", height = 180 }]"
        }
    };
    let buffer = 1500 + 500 * random.below(3);
    format!(
        "[media.main]\nsource = \"synthetic\"\nlength = \"4 s\"\nsegment = \"500 ms\"\naudio = false\n\
         preset = \"ultrafast\"\nladder = {ladder}\n\
         [endpoints.origin]\nkind = \"origin\"\nhost = \"server\"\nmedia = \"main\"\nmode = \"vod\"\n\
         length = \"60 s\"\ntcp = \"{tcp}\"\nabsence = \"ignored\"\n{rungs}\
         [endpoints.player]\nkind = \"player\"\nhost = \"client\"\norigin = \"origin\"\nprotocol = \"{words}\"\n\
         abr = \"{abr}\"\nbuffer = \"{buffer} ms\"\nabsence = \"ignored\"\n"
    )
}
