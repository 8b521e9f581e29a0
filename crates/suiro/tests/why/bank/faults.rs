//! What acts in a case, how a scenario does it, and what it may be called.

use std::fmt;

use suiro_units::Random;

use super::cases::{Protocol, SECONDS};

/// What can act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    RateFall,
    Outage,
    Loss,
    Corruption,
    DelayRise,
    Jitter,
    Reordering,
    Competing,
    AckPath,
    Policer,
    ServerStopped,
    ClientStopped,
}

/// All of them; those that are likelier, twice.
pub const KINDS: &[Kind] = &[
    Kind::RateFall,
    Kind::RateFall,
    Kind::Outage,
    Kind::Outage,
    Kind::Loss,
    Kind::Loss,
    Kind::Corruption,
    Kind::DelayRise,
    Kind::Jitter,
    Kind::Reordering,
    Kind::Competing,
    Kind::Competing,
    Kind::AckPath,
    Kind::Policer,
    Kind::ServerStopped,
    Kind::ClientStopped,
];

impl Kind {
    /// Whether it does anything to a viewer of this.
    pub fn acts_on(self, protocol: Protocol) -> bool {
        match self {
            Self::AckPath => matches!(protocol, Protocol::Dash | Protocol::Hls | Protocol::Moq),
            Self::Jitter | Self::Reordering | Self::DelayRise => protocol.is_real_time(),
            Self::Competing => protocol != Protocol::Moq,
            _ => true,
        }
    }

    /// Whether both can act in one scenario and each still shows.
    pub fn goes_with(self, other: Self) -> bool {
        let shapes = |kind: Self| matches!(kind, Self::RateFall | Self::Outage | Self::Policer);
        self != other && !(shapes(self) && shapes(other))
    }

    /// What is right to call it.
    pub const fn right(self) -> &'static [&'static str] {
        match self {
            Self::RateFall => &["rate_step", "oversized_rung"],
            Self::Outage => &["outage"],
            Self::Loss => &["loss"],
            Self::Corruption => &["corruption"],
            Self::DelayRise => &["delay"],
            Self::Jitter => &["jitter"],
            Self::Reordering => &["reordering"],
            Self::Competing => &["competing", "bufferbloat"],
            Self::AckPath => &["ack_path"],
            Self::Policer => &["policer"],
            Self::ServerStopped => &["server_processor"],
            Self::ClientStopped => &["client_processor"],
        }
    }

    /// What is true of it, but not all: a consequence, or a wider word.
    pub const fn near(self) -> &'static [&'static str] {
        match self {
            Self::RateFall => &["link_rate", "congestion_window", "key_frame", "timeout", "pacing"],
            Self::Outage => &["rate_step", "link_rate", "timeout", "key_frame", "pacing"],
            Self::Loss => &["timeout", "key_frame", "congestion_window", "pacing"],
            Self::Corruption => &["loss", "timeout", "key_frame", "congestion_window"],
            Self::DelayRise => &["round_trip", "congestion_window", "jitter_buffer"],
            Self::Jitter | Self::Reordering => &["jitter_buffer", "delay", "key_frame"],
            Self::Competing => &[
                "link_rate",
                "congestion_window",
                "oversized_rung",
                "key_frame",
                "timeout",
                "pacing",
            ],
            Self::AckPath => &["timeout", "congestion_window", "round_trip"],
            Self::Policer => &[
                "link_rate",
                "loss",
                "timeout",
                "oversized_rung",
                "congestion_window",
                "key_frame",
            ],
            Self::ServerStopped | Self::ClientStopped => &[],
        }
    }
}

/// Something that acts, from when to when.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub kind: Kind,
    pub from_ms: u64,
    pub to_ms: u64,
    /// How strong it is, 0 to 9.
    strength: u64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [from, to] = [self.from_ms, self.to_ms].map(|ms| ms as f64 / 1e3);
        write!(f, "{:?} {from:.1}-{to:.1} s", self.kind)
    }
}

impl Fault {
    pub fn of(kind: Kind, from_ms: u64, random: &mut Random) -> Self {
        let strength = random.below(10);
        let (from_ms, to_ms) = match kind {
            Kind::Jitter | Kind::Reordering | Kind::Corruption | Kind::Policer => {
                (0, SECONDS * 1000)
            }
            Kind::Competing => (from_ms, SECONDS * 1000),
            Kind::Outage | Kind::ServerStopped | Kind::ClientStopped => {
                (from_ms, from_ms + 2500 + 100 * strength)
            }
            _ => (from_ms, from_ms + 4000 + 150 * strength),
        };
        Self { kind, from_ms, to_ms, strength }
    }

    /// Keys of the link that do not change.
    pub fn constant(&self) -> String {
        match self.kind {
            Kind::Jitter => {
                let sd = 80 + 8 * self.strength;
                format!("jitter = {{ distribution = \"normal\", sd = \"{sd} ms\" }}\n")
            }
            Kind::Reordering => {
                let by = 250 + 10 * self.strength;
                format!("down.reorder = {{ chance = \"1 %\", by = \"{by} ms\" }}\n")
            }
            Kind::Corruption => format!("down.corrupt = \"{} %\"\n", 4 + self.strength),
            _ => String::new(),
        }
    }

    /// Changes of a direction of the link, each `AT_MS KEY = VALUE`.
    pub fn changes(&self, direction: &str, rate_kbps: u64) -> Vec<String> {
        let both = |key: &str, then: String, back: String| {
            vec![
                format!("{} {key} = {then}", self.from_ms),
                format!("{} {key} = {back}", self.to_ms),
            ]
        };
        let rate = |kbps: u64| format!("\"{kbps} kbit/s\"");
        let down = direction == "down";
        match self.kind {
            Kind::RateFall if down => both("rate", rate(120 + 20 * self.strength), rate(rate_kbps)),
            Kind::Outage if down => both("rate", "\"0 bit/s\"".into(), rate(rate_kbps)),
            Kind::Loss if down => {
                both("loss", format!("\"{} %\"", 15 + 2 * self.strength), "\"0 %\"".into())
            }
            Kind::DelayRise if down => {
                both("delay", format!("\"{} ms\"", 400 + 40 * self.strength), "\"20 ms\"".into())
            }
            Kind::AckPath if !down => both("rate", rate(2 + self.strength / 3), rate(rate_kbps)),
            _ => Vec::new(),
        }
    }

    /// Endpoints that make it.
    pub fn endpoints(&self, protocol: Protocol) -> String {
        let (server, client) = match protocol {
            Protocol::Moq => ("publisher", "viewer"),
            _ => ("server", "client"),
        };
        match self.kind {
            Kind::Competing => format!(
                "[endpoints.load-sink]\nkind = \"command\"\nhost = \"{client}\"\nexit = \"ignored\"\ncarries = \"load\"\n\
                 command = [TRAFFIC, \"sink\", \"5000\"]\nready = {{ port = 5000 }}\n\
                 [endpoints.load]\nkind = \"command\"\nhost = \"{server}\"\nexit = \"ignored\"\nstart = \"{} ms\"\n\
                 command = [TRAFFIC, \"source\", \"10.0.0.2:5000\"]\n",
                self.from_ms
            ),
            Kind::ServerStopped => self.stopper(server, "origin"),
            Kind::ClientStopped => self.stopper(client, "player"),
            _ => String::new(),
        }
    }

    /// Stops an endpoint. The bracket keeps the command from finding itself.
    fn stopper(&self, host: &str, who: &str) -> String {
        let seconds = (self.to_ms - self.from_ms) as f64 / 1e3;
        format!(
            "[endpoints.stopper-{who}]\nkind = \"command\"\nhost = \"{host}\"\nstart = \"{} ms\"\ncommand = [\"sh\", \"-c\", '''\n\
             cd /proc\nfor p in [0-9]*; do\n  if tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -q '[/]{who}.job.json'; then\n    \
             kill -STOP $p; sleep {seconds}; kill -CONT $p\n  fi\ndone\n''']\n",
            self.from_ms
        )
    }
}

/// Changes in the order of time, as a list of TOML tables.
pub fn in_order(changes: Vec<String>) -> String {
    let at = |change: &String| change.split(' ').next().and_then(|ms| ms.parse::<u64>().ok());
    let mut changes = changes;
    changes.sort_by_key(at);
    let table = |change: &String| {
        let (ms, rest) = change.split_once(' ').expect("a time comes first");
        format!("{{ at = \"{ms} ms\", {rest} }}")
    };
    changes.iter().map(table).collect::<Vec<_>>().join(", ")
}
