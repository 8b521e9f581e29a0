//! A client's WebSocket: what is new about the resources of its subscription.

use std::io;
use std::time::Duration as StdDuration;

use bytes::Bytes;
use futures_util::{Sink, SinkExt, StreamExt};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame, Frame};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::subscriptions::{News, Subscription};
use crate::net;
use crate::nmos::Id;

/// Changes that may wait for a client; one that does not keep up is disconnected.
pub(super) const WAITING_MAX: usize = 8192;
/// Longest message that a client may send, in bytes: it has nothing to say.
const MESSAGE_MAX: usize = 64 << 10;
/// From this length on, in bytes, a fragment of a message is sent.
const FRAGMENT: usize = 64 << 10;
/// How long a client may take to read a fragment.
const PATIENCE: StdDuration = StdDuration::from_secs(10);
/// How often a silent client is asked whether it is there.
const PING: StdDuration = StdDuration::from_secs(30);

/// Sends a subscription's changes until the client goes, or `entries` has no sender any more.
pub(super) async fn run(
    upgrade: OnUpgrade,
    (id, subscription): (Id, Subscription),
    sync: Vec<News>,
    entries: mpsc::Receiver<News>,
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
    waiting: Vec<News>,
}

impl Socket {
    async fn serve<S>(mut self, stream: S, mut entries: mpsc::Receiver<News>) -> Result<(), Error>
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
                    self.tell(&mut writer).await?;
                }
                _ = ping.tick() => send(&mut writer, Message::Ping(Bytes::new())).await?,
            }
        }
    }

    /// Sends what waits as one message, in fragments (RFC 6455 §5.4): a client that does not read holds one of them, however
    /// much there is to say.
    async fn tell(
        &mut self,
        writer: &mut (impl Sink<Message, Error = Error> + Unpin),
    ) -> Result<(), Error> {
        let (mut text, tail) = self.subscription.message(&self.id, net::tai());
        let mut kind = Data::Text;
        let mut fragment = |text: String, is_last: bool| {
            let kind = OpCode::Data(std::mem::replace(&mut kind, Data::Continue));
            Message::Frame(Frame::message(text, kind, is_last))
        };
        for (at, news) in std::mem::take(&mut self.waiting).into_iter().enumerate() {
            if text.len() >= FRAGMENT {
                send(writer, fragment(std::mem::take(&mut text), false)).await?;
            }
            if at > 0 {
                text.push(',');
            }
            text += &news.text();
        }
        send(writer, fragment(text + &tail, true)).await
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::nmos::Ask;
    use crate::nmos::door::Door;
    use crate::registry::{Moment, RESOURCE_BYTES_MAX, Registry};

    /// A subscription to all nodes.
    fn subscription() -> (Id, Subscription) {
        let mut registry = Registry::at("r", false);
        let wanted = json!({ "max_update_rate_ms": 0, "resource_path": "/nodes", "params": {}, "persist": true });
        let ask = Ask::json("POST", "/x-nmos/query/v1.3/subscriptions", &wanted);
        let made = registry.answer(Moment::default(), &ask, &Door::open()).value();
        let path = made["ws_href"].as_str().unwrap().strip_prefix("ws://r").unwrap();
        let (id, own) = registry.subscription_at(path).unwrap();
        (id, own.clone())
    }

    #[tokio::test]
    async fn a_long_message_is_sent_in_fragments() {
        let long = |n: u64| json!({ "id": n, "description": "x".repeat(RESOURCE_BYTES_MAX / 2) });
        let own: Vec<_> = (0..100).map(|n| Arc::new(long(n))).collect();
        let news = |own: &Arc<Value>| News { pre: Some(own.clone()), post: Some(own.clone()) };
        let (id, subscription) = subscription();
        let waiting = own.iter().map(news).collect();
        let mut socket = Socket { id, subscription, waiting };
        let mut sent = Vec::new();
        let mut writer = Box::pin(futures_util::sink::unfold(&mut sent, async |sent, message| {
            let Message::Frame(frame) = message else { panic!("{message:?} is no fragment") };
            sent.push(frame);
            Ok(sent)
        }));
        socket.tell(&mut writer).await.unwrap();
        drop(writer);
        let longest = sent.iter().map(|frame| frame.payload().len()).max().unwrap();
        assert!(longest < FRAGMENT + 2 * RESOURCE_BYTES_MAX, "{longest} bytes");
        let kind = |at: usize| if at == 0 { Data::Text } else { Data::Continue };
        for (at, frame) in sent.iter().enumerate() {
            let (header, is_last) = (frame.header(), at + 1 == sent.len());
            assert_eq!((header.opcode, header.is_final), (OpCode::Data(kind(at)), is_last));
        }
        let text: Vec<u8> = sent.iter().flat_map(|frame| frame.payload().to_vec()).collect();
        let message: Value = serde_json::from_slice(&text).unwrap();
        let entries = message["grain"]["data"].as_array().unwrap();
        assert_eq!(entries.len(), own.len());
        assert!(entries.iter().zip(&own).all(|(entry, own)| entry["post"] == **own));
    }
}
