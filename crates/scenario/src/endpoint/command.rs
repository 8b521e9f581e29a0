//! The `command`: any program.

use std::path::Path;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use suiro_record::words::Carries;
use suiro_strict::{Bounded, Bounds, Keys, Refusal, bounds, bounds_of};
use suiro_units::Duration;

use super::{Congestion, Kind, Listens, Need, PORT, wrapper};
use crate::check::Check;

bounds! {
    Command {
        command: Bounds::new(1, 4096),
        grace: Bounds::new(Duration::ZERO, Duration::from_secs(60));
        tables: ready
    }
}

impl Bounded for Ready {
    fn refuse(&self, at: &Keys, refusals: &mut Vec<Refusal>) {
        if let Self::Port(port) = self {
            refusals.extend(PORT.check(at.below("port"), *port).err());
        }
    }

    fn describe(schema: &mut Schema) {
        let forms = schema.get_mut("oneOf").and_then(Value::as_array_mut);
        for form in forms.into_iter().flatten() {
            if let Some(port) = form.pointer_mut("/properties/port").and_then(Value::as_object_mut)
            {
                PORT.describe_value(port);
            }
        }
    }
}

/// Runs any program in a host. Its output goes to the trial's logs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<Command>)]
pub struct Command {
    /// The program and its arguments, which are not passed through a shell.
    pub command: Vec<String>,
    /// More programs that must be installed, by name or path: those that a script starts. A trial without one of them
    /// is skipped. The program of `command` is known, also behind `taskset`, `nice`, `chrt`, `env`, `timeout` and the
    /// like, and in a simple `sh -c`. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// When the endpoints after it may start. Default: at once.
    #[serde(default)]
    pub ready: Ready,
    /// The kind of traffic on its `ready` port, for the table `flows`. Default: `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carries: Option<Carries>,
    /// Whether it runs with all capabilities of the lab and all its files. If not, it keeps only the capabilities that
    /// act on its own host (NET_ADMIN, NET_RAW, NET_BIND_SERVICE); in virtual time, an ordinary user's also DAC_OVERRIDE.
    /// It may write only in the trial's folder, the working folder (in virtual time, not there), /tmp (its HOME),
    /// /var/tmp and /run; the commands of a trial share these three, and they end with it. Of /home and /root it sees
    /// the folders of its programs, of PATH and suiro's cache; the rest is read-only or hidden, /proc/sys (but for
    /// /proc/sys/net), /sys, /etc/shadow and /etc/ssh among it. Default: `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub privileged: bool,
    /// The consequence if the program exits before the trial ends. Default: `allowed`.
    #[serde(default)]
    pub exit: Exit,
    /// The signal that asks it to stop at the trial's end. Default: `TERM`.
    #[serde(default)]
    pub stop: StopSignal,
    /// How long it may take to stop before it is killed. Default: 2 s.
    #[serde(default = "grace")]
    pub grace: Duration,
}

/// When a program counts as ready.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(transform = bounds_of::<Ready>)]
pub enum Ready {
    /// As soon as it runs.
    #[default]
    #[serde(rename = "at once")]
    AtOnce,
    /// When a socket in its host listens on this TCP port.
    Port(u16),
    /// When it prints a line that contains this text, on standard output.
    Line(String),
}

/// What it means if a program exits before the trial ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// Exit status 0 is allowed, any other fails the trial.
    #[default]
    Allowed,
    /// Exit status 0 ends the trial at once, any other fails it.
    EndsTrial,
    /// Any exit fails the trial: the program must run to the end.
    Fails,
    /// Exits are ignored.
    Ignored,
}

/// A signal that asks a program to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// SIGTERM.
    #[default]
    Term,
    /// SIGINT, as from Ctrl-C.
    Int,
    /// SIGQUIT.
    Quit,
    /// SIGHUP.
    Hup,
    /// SIGKILL: no time to write anything.
    Kill,
}

impl Kind for Command {
    fn listens(&self) -> Vec<Listens> {
        match self.ready {
            Ready::Port(port) => vec![Listens::tcp(port, "ready")],
            Ready::AtOnce | Ready::Line(_) => Vec::new(),
        }
    }

    fn congestion(&self) -> Option<Congestion<'_>> {
        let name = of_iperf3(&self.command)?;
        Some(Congestion { key: "command", name })
    }

    fn needs(&self) -> Vec<Need<'_>> {
        let programs = wrapper::programs(&self.command).into_iter();
        programs.chain(self.needs.iter().map(String::as_str)).map(Need::Command).collect()
    }

    fn exit(&self) -> Exit {
        self.exit
    }

    fn command(&self) -> Option<&Command> {
        Some(self)
    }

    fn check(&self, check: &mut Check<'_>) {
        if self.command.first().is_some_and(|program| program.trim().is_empty()) {
            let expected = "[\"PROGRAM\", \"ARGUMENT\", …]";
            check.push(check.refusal("command", "no program").expected(expected));
        }
        if let Some(n) = self.command.iter().position(|argument| argument.contains('\0')) {
            let refusal =
                check.refusal("command", format!("argument {n} contains a null character"));
            check.push(refusal.expected("an argument without null characters"));
        }
        let blank = |need: &String| need.trim().is_empty() || need.contains('\0');
        if self.needs.iter().any(blank) {
            let refusal = check.refusal("needs", "a program without a name");
            check.push(refusal.expected("names of programs"));
        }
        if self.ready == Ready::Line(String::new()) {
            let refusal = check.refusal("ready", "an empty text, which every line contains");
            check.push(
                refusal.expected("part of the line that the program prints when it is ready"),
            );
        }
        if self.carries.is_some() && !matches!(self.ready, Ready::Port(_)) {
            let refusal = check.refusal("carries", "no port is known that the flows go to");
            check.push(refusal.hint("set ready = { port = N }, or remove `carries`"));
        }
    }
}

/// The congestion control that the command asks iperf3 to use. For other programs it is not known.
fn of_iperf3(command: &[String]) -> Option<&str> {
    let (program, arguments) = command.split_first()?;
    if Path::new(program).file_name()? != "iperf3" {
        return None;
    }
    let long = arguments.iter().find_map(|argument| argument.strip_prefix("--congestion="));
    let at = arguments.iter().position(|argument| argument == "--congestion" || argument == "-C");
    long.or_else(|| arguments.get(at? + 1).map(String::as_str))
}

const fn grace() -> Duration {
    Duration::from_secs(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn congestion(command: &str) -> Option<String> {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        of_iperf3(&words).map(str::to_owned)
    }

    #[test]
    fn iperf3_says_what_it_needs() {
        let bbr = Some("bbr".to_owned());
        assert_eq!(congestion("iperf3 --client x --congestion bbr --time 9"), bbr);
        assert_eq!(congestion("/usr/bin/iperf3 --congestion=bbr"), bbr);
        assert_eq!(congestion("iperf3 -c x -C bbr"), bbr);
        assert_eq!(congestion("iperf3 --client x"), None);
        assert_eq!(congestion("iperf3 --congestion"), None);
        assert_eq!(congestion("echo -C bbr"), None);
    }
}
