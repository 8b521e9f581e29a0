//! A client's WebSocket: what is new about the resources of its subscription.

use std::io;
use std::time::Duration as StdDuration;

use bytes::Bytes;
use futures_util::{Sink, SinkExt, StreamExt};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::subscriptions::Subscription;
use crate::net;
use crate::nmos::Id;

/// Changes that may wait for a client; one that does not keep up is disconnected.
pub(super) const WAITING_MAX: usize = 8192;
/// Longest message that a client may send, in bytes: it has nothing to say.
const MESSAGE_MAX: usize = 64 << 10;
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
    async fn serve<S>(mut self, stream: S, mut entries: mpsc::Receiver<Value>) -> Result<(), Error>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_MAX))
            .max_frame_size(Some(MESSAGE_MAX));
        let stream = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
        let (mut writer, mut reader) = stream.split();
        let every = StdDuration::from(self.subscription.every()).max(StdDuration::from_millis(1));
        let (mut tick, mut ping) = (net::every(every), net::every(PING));
        loop {
            tokio::select! {
                got = reader.next() => match got {
                    // Pings and farewells are answered by the library.
                    Some(Ok(_)) => {}
                    Some(Err(Error::Protocol(_) | Error::Capacity(_))) => {
                        let reason = CloseFrame { code: CloseCode::Protocol, reason: "".into() };
                        return send(&mut writer, Message::Close(Some(reason))).await;
                    }
                    Some(Err(error)) => return Err(error),
                    None => return Ok(()),
                },
                entry = entries.recv() => match entry {
                    Some(entry) if self.waiting.len() < WAITING_MAX => self.waiting.push(entry),
                    _ => return send(&mut writer, Message::Close(None)).await,
                },
                _ = tick.tick(), if !self.waiting.is_empty() => {
                    let entries = std::mem::take(&mut self.waiting);
                    let text = self.subscription.message(&self.id, &entries, net::tai()).to_string();
                    send(&mut writer, Message::Text(text.into())).await?;
                }
                _ = ping.tick() => send(&mut writer, Message::Ping(Bytes::new())).await?,
            }
        }
    }
}

/// Sends to a client that reads in time.
async fn send(
    writer: &mut (impl Sink<Message, Error = Error> + Unpin),
    message: Message,
) -> Result<(), Error> {
    let late = |_| Error::Io(io::ErrorKind::TimedOut.into());
    tokio::time::timeout(PATIENCE, writer.send(message)).await.map_err(late)?
}
