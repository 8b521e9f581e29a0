//! A node as the controller of the benchmark has it: a process that obeys, and can be killed.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddrV4;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use suiro_hosts::Host;
use suiro_uncompressed::Geometry;
use suiro_units::Duration;

/// A node that is running.
pub struct Site {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// The synchronisation source of its first lane.
    pub ssrc: u32,
}

impl Site {
    /// Starts a node in `host`, or in this process's network, and waits until it is a standby.
    pub fn start(
        host: Option<&Host>,
        geometry: &Geometry,
        ssrc: u32,
        to: &[SocketAddrV4],
    ) -> Result<Self> {
        let program = std::env::current_exe().context("finding this program")?;
        let mut command = Command::new(program);
        command.args(["uncompressed", "bench", "node", "--geometry", &geometry.to_string()]);
        command.args(["--ssrc", &ssrc.to_string()]);
        for to in to {
            command.args(["--to", &to.to_string()]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(host) = host {
            host.command(&mut command);
        }
        let mut child = command.spawn().context("starting a node")?;
        let orders = child.stdin.take().context("a node has a standard input")?;
        let answers = BufReader::new(child.stdout.take().context("a node has a standard output")?);
        let mut site = Self { child, orders, answers, ssrc };
        match site.answer()?.as_str() {
            "ready" => Ok(site),
            other => bail!("a node is not ready: {other}"),
        }
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).context("reading a node's answer")?;
        Ok(line.trim_end().to_owned())
    }

    /// Gives an order for a time in TAI, or for the next frame.
    pub fn order(&mut self, what: &str, at: Option<Duration>) -> Result<()> {
        let at = at.map_or_else(|| "next".to_owned(), |at| at.as_nanos().to_string());
        writeln!(self.orders, "{what} {at}").context("giving a node an order")?;
        match self.answer()?.as_str() {
            "ok" => Ok(()),
            refused => bail!("a node refused to {what}: {refused}"),
        }
    }

    /// Ends it at once, as a crash does.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill().context("killing a node")?;
        self.child.wait().context("waiting for a killed node")?;
        Ok(())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // One that has been killed is gone; the others end with their input, or now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
