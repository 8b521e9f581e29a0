//! The culprits: a scenario each, in which one cause acts.

use suiro_record::words::{Cause, Effect};

use crate::{FLOW, VIEWER};

/// What the test itself holds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    Nothing,
    Emulator,
}

/// A scenario and the cause that acts in it.
pub struct Culprit {
    pub name: &'static str,
    pub cause: Cause,
    pub shows_in: &'static [Effect],
    /// What the link does; jitter and loss are added for the noisy ones.
    link: &'static str,
    /// One way.
    delay: &'static str,
    /// Everything else of the scenario; `TRAFFIC` is the program that makes it.
    rest: &'static str,
    duration: &'static str,
    pub needs_media: bool,
    pub held: Held,
    /// Whether what it does makes the trial invalid.
    pub invalid: bool,
    /// Whether it is never in virtual time: the machine is the cause, or it stands for those that live samples show, which are
    /// taken at each ACK.
    pub live: bool,
    /// Whether `make test` runs it.
    pub quick: bool,
}

impl Culprit {
    pub fn scenario(&self, noisy: bool) -> String {
        let program = std::env::current_exe().unwrap();
        let rest = self.rest.replace("TRAFFIC", &format!("\"{}\", \"traffic\"", program.display()));
        let noise = match noisy {
            true => "jitter = { distribution = \"normal\", sd = \"10 ms\" }\n",
            false => "",
        };
        // A list of lost packets is a loss model by itself.
        let lossy = noisy && !self.link.contains("loss");
        let loss = if lossy { "loss = \"0.1 %\"\n" } else { "" };
        let media = if self.needs_media { MEDIA } else { "" };
        format!(
            "name = \"{}\"\ntitle = \"one cause acts\"\nduration = \"{}\"\n[topology]\nshape = \"dumbbell\"\nlink = \"l\"\n\
             [links.l]\ndelay = \"{}\"\n{noise}{loss}{}\n{media}{rest}",
            self.name, self.duration, self.delay, self.link
        )
    }
}

const MEDIA: &str = r#"
[media.main]
source = "synthetic"
length = "4 s"
segment = "500 ms"
audio = false
preset = "ultrafast"
ladder = [{ bitrate = "800 kbit/s", height = 360 }, { bitrate = "200 kbit/s", height = 180 }]
"#;

/// A sink on the client and a source on the server, with further arguments.
macro_rules! bulk {
    ($name:literal, $port:literal, $sink:literal, $source:literal, $start:literal) => {
        concat!(
            "[endpoints.", $name, "-sink]\nkind = \"command\"\nhost = \"client\"\nexit = \"ignored\"\ncarries = \"load\"\n",
            "command = [TRAFFIC, \"sink\", \"", $port, "\"", $sink, "]\nready = { port = ", $port, " }\n",
            "[endpoints.", $name, "]\nkind = \"command\"\nhost = \"server\"\nexit = \"ignored\"\nstart = \"", $start, "\"\n",
            "command = [TRAFFIC, \"source\", \"10.0.0.2:", $port, "\"", $source, "]\n",
        )
    };
}

/// An origin and a player with so much buffer.
macro_rules! player {
    ($buffer:literal) => {
        concat!(
            "[endpoints.origin]\nkind = \"origin\"\nhost = \"server\"\nmedia = \"main\"\nmode = \"vod\"\n",
            "length = \"60 s\"\ntcp = \"reno\"\nhls_rungs = \"top\"\n",
            "[endpoints.player]\nkind = \"player\"\nhost = \"client\"\norigin = \"origin\"\nprotocol = \"hls\"\n",
            "abr = \"throughput\"\nbuffer = \"", $buffer, "\"\n",
        )
    };
}

/// Stops an endpoint for three seconds. The bracket keeps the command from finding itself.
macro_rules! stopper {
    ($who:literal) => {
        concat!(
            "[endpoints.stopper]\nkind = \"command\"\nhost = \"client\"\nstart = \"3 s\"\ncommand = [\"sh\", \"-c\", '''\n",
            "cd /proc\nfor p in [0-9]*; do\n  if tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -q '[/]", $who,
            ".job.json'; then\n    kill -STOP $p; sleep 3; kill -CONT $p\n  fi\ndone\n''']\n",
        )
    };
}

/// A bulk transfer.
const FLOWS: Culprit = Culprit {
    name: "",
    cause: Cause::Unknown,
    shows_in: FLOW,
    link: "rate = \"20 Mbit/s\"\nqueue = { limit = \"50 ms\" }",
    rest: bulk!("load", "5000", "", "", "0 s"),
    delay: "20 ms",
    duration: "5 s",
    needs_media: false,
    held: Held::Nothing,
    invalid: false,
    live: false,
    quick: true,
};

/// A player with a small buffer.
const PLAYED: Culprit = Culprit {
    shows_in: VIEWER,
    link: "rate = \"8 Mbit/s\"",
    rest: player!("2 s"),
    duration: "8 s",
    needs_media: true,
    ..FLOWS
};

/// All of them.
pub const CULPRITS: &[Culprit] = &[
    Culprit {
        name: "small-receive-window",
        cause: Cause::ReceiveWindow,
        live: true,
        rest: bulk!("load", "5000", ", \"8000\"", "", "0 s"),
        ..FLOWS
    },
    Culprit {
        name: "writes-in-gaps",
        cause: Cause::Application,
        live: true,
        rest: bulk!("load", "5000", "", ", \"8000\", \"150\"", "0 s"),
        ..FLOWS
    },
    Culprit {
        name: "slow-reader",
        cause: Cause::SlowReader,
        rest: bulk!("load", "5000", ", \"60000\", \"6000\", \"60\"", "", "0 s"),
        ..FLOWS
    },
    Culprit {
        name: "timeout",
        // The first window and its repetitions: the sender waits for timeouts, of which the link shows the cause.
        cause: Cause::Loss,
        link: "rate = \"20 Mbit/s\"\n\
               down.loss = { model = \"list\", packets = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14] }",
        rest: bulk!("load", "5000", "", ", \"14000\", \"0\", \"14000\"", "0 s"),
        ..FLOWS
    },
    Culprit {
        name: "random-loss",
        cause: Cause::Loss,
        link: "rate = \"100 Mbit/s\"\ndown.loss = \"3 %\"",
        ..FLOWS
    },
    Culprit {
        name: "competing-cubic",
        cause: Cause::Competing,
        link: "rate = \"8 Mbit/s\"\nqueue = { limit = \"80 ms\" }",
        rest: concat!(bulk!("load", "5000", "", "", "0 s"), bulk!("other", "5001", "", "", "0 s"),),
        ..FLOWS
    },
    Culprit {
        name: "emulator-held-up",
        invalid: true,
        live: true,
        cause: Cause::Emulator,
        held: Held::Emulator,
        ..FLOWS
    },
    Culprit {
        name: "rate-step",
        cause: Cause::RateStep,
        link: "rate = \"4 Mbit/s\"\ndown.changes = [{ at = \"3 s\", rate = \"250 kbit/s\" }]",
        quick: true,
        ..PLAYED
    },
    Culprit {
        name: "rung-too-high",
        cause: Cause::OversizedRung,
        link: "rate = \"500 kbit/s\"",
        ..PLAYED
    },
    Culprit {
        name: "slow-cache",
        cause: Cause::Cache,
        link: "rate = \"20 Mbit/s\"",
        rest: concat!(
            "[endpoints.origin]\nkind = \"origin\"\nhost = \"server\"\nport = 8080\nmedia = \"main\"\nmode = \"vod\"\n",
            "length = \"60 s\"\nhls_rungs = \"top\"\n",
            "[endpoints.edge]\nkind = \"cache\"\nhost = \"server\"\norigin = \"origin\"\ntcp = \"reno\"\n",
            "fault = { kind = \"slow\", rate = \"150 kbit/s\", from = \"2 s\", to = \"5 s\" }\n",
            "[endpoints.player]\nkind = \"player\"\nhost = \"client\"\norigin = \"edge\"\nprotocol = \"hls\"\n",
            "abr = \"throughput\"\nbuffer = \"1 s\"\n",
        ),
        quick: true,
        ..PLAYED
    },
    Culprit {
        name: "full-buffer",
        cause: Cause::NoRequest,
        shows_in: FLOW,
        link: "rate = \"100 Mbit/s\"",
        delay: "2 ms",
        ..PLAYED
    },
    Culprit {
        name: "server-stopped",
        invalid: true,
        live: true,
        cause: Cause::ServerProcessor,
        rest: concat!(player!("1 s"), stopper!("origin")),
        ..PLAYED
    },
    Culprit {
        name: "client-stopped",
        invalid: true,
        live: true,
        cause: Cause::ClientProcessor,
        rest: concat!(player!("1 s"), stopper!("player")),
        ..PLAYED
    },
];
