//! The session description of a stream, for receivers of others: what its nodes announce, in one text. Nodes that send the
//! same packets over two paths (ST 2022-7) are a group of duplicates in it (RFC 7104).

use std::time::Duration as StdDuration;

use suiro_uncompressed::sdp::Description;

use super::{Control, carry};
use crate::client::{Base, Client, Manners};
use crate::net;
use crate::nmos::connection::{SDP, Side};
use crate::nmos::door::{self, missing};
use crate::nmos::{Ask, Reply};
use crate::server::Waiting;

/// How long a node may take.
const PATIENCE: StdDuration = StdDuration::from_millis(500);
/// Requests that wait for nodes at most.
const WAITING_MAX: usize = 16;

/// A request that waited for nodes, and what they announce together.
pub(super) struct Described {
    waiting: Waiting,
    stream: u32,
    found: Result<Description, String>,
}

/// A node that sends the stream: its name, its server, and the path of its transport file.
struct Sending {
    node: String,
    base: Base,
    path: String,
}

impl Control {
    /// Answers a request, some of them later.
    pub(super) fn serve(&mut self, waiting: Waiting) {
        let parts = door::parts(&waiting.ask.path);
        let reply = match parts[..] {
            ["x-suiro", "control", "v1.0", "streams", stream, "description"] => {
                match self.senders(&waiting.ask, stream) {
                    Ok((stream, senders)) => {
                        let manners = self.spec.manners.clone();
                        self.describing.spawn(async move {
                            let found = ask(senders, &manners).await;
                            Described { waiting, stream, found }
                        });
                        return;
                    }
                    Err(reply) => reply,
                }
            }
            _ => self.answer(&waiting.ask),
        };
        // Who asked may have gone.
        drop(waiting.reply.send(reply));
    }

    fn senders(&self, ask: &Ask, stream: &str) -> Result<(u32, Vec<Sending>), Reply> {
        self.door.admit(ask)?;
        door::reads(ask)?;
        let stream = stream.parse().map_err(|_| missing(&ask.path))?;
        let own = self.desired.stream(stream).ok_or_else(|| missing(&ask.path))?;
        if self.describing.len() >= WAITING_MAX {
            return Err(Reply::refusal(503, "too many descriptions are asked for"));
        }
        let sends = |node: &str| {
            let status = self.seen.get(node).map(|(_, status)| status)?;
            let is_on = status.lanes.iter().any(|lane| lane.stream == stream && lane.on);
            let base = self.watched.get(node).map(|(base, _)| base.clone())?;
            let path = carry::single(node, Side::Sender, stream, "transportfile");
            is_on.then(|| Sending { node: node.to_owned(), base, path })
        };
        let senders: Vec<_> = own.legs().filter_map(|(node, _)| sends(node)).collect();
        if senders.is_empty() {
            return Err(Reply::refusal(404, format!("no node sends stream {stream} now")));
        }
        Ok((stream, senders))
    }

    pub(super) fn described(&mut self, described: Described) {
        let Described { waiting, stream, found } = described;
        let reply = match found {
            Ok(found) => {
                let known = self.descriptions.remove(&stream);
                let now = net::tai().as_nanos();
                let text = versioned(found, known.as_ref(), now);
                let reply = Reply::text(SDP, text.to_string()).with("cache-control", "no-cache");
                self.descriptions.insert(stream, text);
                reply
            }
            Err(reason) => Reply::refusal(502, reason),
        };
        drop(waiting.reply.send(reply));
    }
}

/// What the nodes announce, as one stream; only the first two can be duplicates of one another.
async fn ask(senders: Vec<Sending>, manners: &Manners) -> Result<Description, String> {
    let mut found = Vec::new();
    for Sending { node, base, path } in senders.into_iter().take(2) {
        let mut client = Client::new(base, manners.clone());
        let reply = client.ask(&Ask::read(&path), PATIENCE).await;
        let reply = reply.map_err(|error| format!("{node}: {error}"))?;
        if reply.status != 200 {
            return Err(format!("{node}: {} (status {})", reply.reason(), reply.status));
        }
        found.push(reply.body.parse().map_err(|error| format!("{node}: {error}"))?);
    }
    joined(found)
}

fn joined(found: Vec<Description>) -> Result<Description, String> {
    let mut found = found.into_iter();
    let first = found.next().ok_or("no node sends it")?;
    let Some(second) = found.next() else { return Ok(first) };
    if (second.geometry, second.payload_type) != (first.geometry, first.payload_type) {
        let (first, second) = (first.geometry, second.geometry);
        return Err(format!("its two nodes announce different streams: {first} and {second}"));
    }
    let datagram_bytes = first.datagram_bytes.max(second.datagram_bytes);
    // The later offset: with it neither path is late.
    let troff_us = first.troff_us.max(second.troff_us);
    Ok(Description { twin: Some(second.path), datagram_bytes, troff_us, ..first })
}

/// RFC 8866 §5.2: another text of a session has a greater version, also if it is that of a node that started before.
fn versioned(found: Description, known: Option<&Description>, now: u64) -> Description {
    let Some(known) = known else { return Description { version: now, ..found } };
    let same = Description { version: known.version, ..found };
    if same == *known { same } else { Description { version: now.max(known.version + 1), ..same } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(node: u8, version: u64) -> Description {
        let text = format!(
            "v=0\r\no=- 1 {version} IN IP4 192.0.2.{node}\r\ns=stream 0\r\nt=0 0\r\n\
             m=video 5004 RTP/AVP 96\r\nc=IN IP4 239.0.0.{node}/16\r\n\
             a=source-filter: incl IN IP4 239.0.0.{node} 192.0.2.{node}\r\na=rtpmap:96 raw/90000\r\n\
             a=fmtp:96 sampling=YCbCr-4:2:2; width=1920; height=1080; exactframerate=50; depth=10; \r\n"
        );
        text.parse().unwrap()
    }

    #[test]
    fn twins_are_duplicates_with_their_own_sources() {
        let both = joined(vec![of(1, 5), of(2, 9)]).unwrap();
        let text = both.to_string();
        assert!(text.contains("a=group:DUP first second\r\n"), "{text}");
        for node in [1, 2] {
            let filter = format!("a=source-filter: incl IN IP4 239.0.0.{node} 192.0.2.{node}\r\n");
            assert!(text.contains(&filter), "{text}");
        }
        assert_eq!(text.parse(), Ok(both));
        assert_eq!(joined(vec![of(1, 5)]), Ok(of(1, 5)));
        let other = of(2, 9).to_string().replace("width=1920", "width=1280").parse().unwrap();
        assert!(joined(vec![of(1, 5), other]).unwrap_err().contains("different streams"));
    }

    #[test]
    fn a_version_is_greater_if_and_only_if_the_contents_are_others() {
        let first = versioned(of(1, 50), None, 1000);
        assert_eq!(first.version, 1000);
        assert_eq!(versioned(of(1, 50), Some(&first), 2000).version, 1000);
        // A node that activated its sender long ago takes over, and the clock was set back.
        let moved = versioned(of(2, 5), Some(&first), 900);
        assert_eq!(moved.version, 1001);
        let twin = versioned(joined(vec![of(2, 5), of(1, 50)]).unwrap(), Some(&moved), 3000);
        assert_eq!(twin.version, 3000);
    }
}
