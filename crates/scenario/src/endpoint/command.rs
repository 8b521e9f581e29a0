//! The `command`: any program.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_units::Duration;

/// Runs any program in a host. Its output goes to the trial's logs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The program and its arguments; no shell looks at them.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// When the endpoints after it may start. Default: at once.
    #[serde(default)]
    pub ready: Ready,
    /// What it means that the program exits before the trial ends. Default: `allowed`.
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
pub enum Ready {
    /// As soon as it runs.
    #[default]
    #[serde(rename = "at once")]
    AtOnce,
    /// When a socket of its host listens at this TCP port.
    Port(u16),
    /// When it prints a line that contains this text, on standard output.
    Line(String),
}

/// What it means that a program exits before the trial ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// Exit 0 is fine, anything else fails the trial.
    #[default]
    Allowed,
    /// Exit 0 ends the trial at once, anything else fails it.
    EndsTrial,
    /// Any exit fails the trial: the program is to run to the end.
    Fails,
    /// No exit matters.
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

const fn grace() -> Duration {
    Duration::from_secs(2)
}
