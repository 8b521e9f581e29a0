//! pion's program as a child: started, spoken to and heard, and killed with the endpoint.

use std::process::Stdio;

use suiro_browser::child::{self, Guarded, Lines};
use suiro_browser::installed;
use suiro_browser::{BrowserError, written};
use suiro_endpoint::Versions;
use suiro_scenario::PION;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::message::{FORMAT, Order, Said, Setup, parse};
use crate::EndpointError;

/// How long it may take to start, and to end.
const WITHIN: std::time::Duration = std::time::Duration::from_secs(10);
/// Orders and frames that wait to be written at most.
const WAITING_MAX: usize = 64;
/// Longest message: the program's answers and reasons are shorter (`format.go`).
const MESSAGE_BYTES_MAX: u64 = 512 << 10;

/// The program while it runs.
pub(super) struct Program {
    child: Guarded,
    lines: Lines<ChildStdout>,
    orders: mpsc::Sender<Vec<u8>>,
    writer: JoinHandle<()>,
}

impl Program {
    /// Starts it, and waits until it runs: with the versions of its libraries.
    pub async fn start(setup: Setup) -> Result<(Self, Versions), EndpointError> {
        let path = installed::peer(PION).map_err(BrowserError::from)?;
        let mut command = child::command(path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        child::bind(&mut command, false);
        let doing = || format!("starting {PION}");
        let mut child = Guarded::spawn(&mut command).map_err(BrowserError::system(doing()))?;
        let pipes = (child.child().stdin.take(), child.child().stdout.take());
        let (Some(stdin), Some(stdout)) = pipes else {
            return Err(EndpointError::Pion(format!("{}: it has no pipes", doing())));
        };
        let (orders, ordered) = mpsc::channel(WAITING_MAX);
        let writer = tokio::spawn(write(stdin, ordered));
        let mut program =
            Self { child, lines: Lines::of_at_most(MESSAGE_BYTES_MAX, stdout), orders, writer };
        program.offer(line(written(&Order::Set { setup })));
        let first = timeout(WITHIN, program.next()).await;
        let first =
            first.map_err(|_| EndpointError::Pion("it did not start within 10 s".into()))?;
        match first? {
            Said::Ready { format: FORMAT, versions } => Ok((program, versions)),
            Said::Ready { format, .. } => Err(EndpointError::Pion(format!(
                "{PION} was built for format {format}, expected {FORMAT}\nhint: make peers"
            ))),
            other => Err(EndpointError::Pion(format!("expected `ready` first, found {other:?}"))),
        }
    }

    /// Writes an order, with a frame's bytes after it. False if too many wait: it is lost.
    pub fn offer(&self, order: Vec<u8>) -> bool {
        self.orders.try_send(order).is_ok()
    }

    /// Writes an order when those before it have been taken. False if the program does not read for 10 s.
    pub async fn send(&self, order: Vec<u8>) -> bool {
        timeout(WITHIN, self.orders.send(order)).await.is_ok_and(|sent| sent.is_ok())
    }

    /// What it says next. A call that is dropped loses nothing.
    pub async fn next(&mut self) -> Result<Said, EndpointError> {
        match self.lines.next().await {
            Some(line) => parse(&line).map_err(EndpointError::Pion),
            None => {
                let status = timeout(WITHIN, self.child.wait()).await;
                let status = match status {
                    Ok(Ok(status)) => status.to_string(),
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "its standard output is closed".to_owned(),
                };
                Err(EndpointError::Pion(format!("it ended: {status}")))
            }
        }
    }

    /// Asks it to end, by the end of its input, and waits until it has closed its sessions.
    pub async fn stop(self) {
        let Self { mut child, mut lines, orders, writer } = self;
        drop(orders);
        let ends = async {
            // Its last words are of no interest, but it waits until they are read.
            while lines.next().await.is_some() {}
            child.wait().await
        };
        // What hangs is killed when it is dropped.
        let _ = timeout(WITHIN, ends).await;
        writer.abort();
    }
}

/// Writes orders until there are no more, or nobody reads them: then the program has ended, which its output shows.
async fn write(mut to: ChildStdin, mut orders: mpsc::Receiver<Vec<u8>>) {
    while let Some(order) = orders.recv().await {
        if to.write_all(&order).await.is_err() {
            return;
        }
    }
}

/// An order in a line.
pub(super) fn line(order: String) -> Vec<u8> {
    let mut bytes = order.into_bytes();
    bytes.push(b'\n');
    bytes
}
