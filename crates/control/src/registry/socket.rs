//! A client's WebSocket: what is new about the resources of its subscription.

use std::io;
use std::time::Duration as StdDuration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use super::subscriptions::Subscription;
use super::websocket::{self, Kind};
use crate::net;
use crate::nmos::Id;

/// Changes that may wait for a client; one that does not keep up is disconnected.
pub(super) const WAITING_MAX: usize = 8192;
/// How long a client may take to read.
const PATIENCE: StdDuration = StdDuration::from_secs(10);
/// How often a silent client is asked whether it is there.
const PING: StdDuration = StdDuration::from_secs(30);

/// Sends a subscription's changes until the client goes, or `entries` has no sender any more.
pub(super) async fn run(
    upgrade: OnUpgrade,
    (id, subscription): (Id, Subscription),
    sync: Vec<Value>,
    entries: mpsc::Receiver<Value>,
) {
    if let Ok(Ok(upgraded)) = tokio::time::timeout(PATIENCE, upgrade).await {
        let socket = Socket { id, subscription, waiting: sync };
        // A client that is gone needs no farewell.
        drop(socket.serve(TokioIo::new(upgraded), entries).await);
    }
}

struct Socket {
    id: Id,
    subscription: Subscription,
    /// What was not sent yet.
    waiting: Vec<Value>,
}

impl Socket {
    async fn serve<S>(mut self, stream: S, mut entries: mpsc::Receiver<Value>) -> io::Result<()>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let (mut read, mut piece) = (Vec::new(), [0; 4096]);
        let every = StdDuration::from(self.subscription.every()).max(StdDuration::from_millis(1));
        let (mut tick, mut ping) = (net::every(every), net::every(PING));
        loop {
            tokio::select! {
                got = reader.read(&mut piece) => {
                    let got = got?;
                    if got == 0 {
                        return Ok(());
                    }
                    read.extend_from_slice(&piece[..got]);
                    if answer(&mut read, &mut writer).await? {
                        return Ok(());
                    }
                }
                entry = entries.recv() => match entry {
                    Some(entry) if self.waiting.len() < WAITING_MAX => self.waiting.push(entry),
                    _ => return send(&mut writer, Kind::Close, &[]).await,
                },
                _ = tick.tick(), if !self.waiting.is_empty() => {
                    let entries = std::mem::take(&mut self.waiting);
                    let text = self.subscription.message(&self.id, &entries, net::tai()).to_string();
                    send(&mut writer, Kind::Message, text.as_bytes()).await?;
                }
                _ = ping.tick() => send(&mut writer, Kind::Ping, &[]).await?,
            }
        }
    }
}

/// Answers the frames that are complete. True if the client has ended.
async fn answer<W: tokio::io::AsyncWrite + Unpin>(
    read: &mut Vec<u8>,
    writer: &mut W,
) -> io::Result<bool> {
    loop {
        match websocket::parse(read) {
            Ok(Some(frame)) => {
                read.drain(..frame.bytes);
                match frame.kind {
                    Kind::Ping => send(writer, Kind::Pong, &frame.payload).await?,
                    Kind::Close => {
                        send(writer, Kind::Close, &frame.payload).await?;
                        return Ok(true);
                    }
                    Kind::Message | Kind::Pong => {}
                }
            }
            Ok(None) => return Ok(false),
            Err(_) => {
                // RFC 6455 §7.4.1: a protocol error.
                send(writer, Kind::Close, &1002u16.to_be_bytes()).await?;
                return Ok(true);
            }
        }
    }
}

async fn send<W: tokio::io::AsyncWrite + Unpin>(
    writer: &mut W,
    kind: Kind,
    payload: &[u8],
) -> io::Result<()> {
    let bytes = websocket::frame(kind, payload);
    let writing = async {
        writer.write_all(&bytes).await?;
        writer.flush().await
    };
    tokio::time::timeout(PATIENCE, writing).await.map_err(|_| io::ErrorKind::TimedOut)?
}
