//! What endpoints of uncompressed video refer to, and what cannot be.

use suiro_units::{BitRate, Bytes};

use super::{Check, Placed};
use crate::endpoint::{EndpointSpec, UncompressedReceiver, UncompressedSender, UncompressedSource};
use crate::error::Issue;

const PACKET: std::ops::RangeInclusive<Bytes> = Bytes::new(576)..=Bytes::new(9000);
const BUFFER: std::ops::RangeInclusive<Bytes> = Bytes::new(1_000_000)..=Bytes::new(256_000_000);
const FRAMES: std::ops::RangeInclusive<u32> = 3..=600;
const RATE: std::ops::RangeInclusive<BitRate> =
    BitRate::from_mbps(1)..=BitRate::from_mbps(1_000_000);
const BURST: std::ops::RangeInclusive<u32> = 1..=64;

impl Check<'_, '_> {
    pub(super) fn uncompressed_sender(
        &self,
        placed: &Placed,
        sender: &UncompressedSender,
        issues: &mut Vec<Issue>,
    ) {
        self.uncompressed_to(placed, sender, issues);
        if !PACKET.contains(&sender.packet) {
            let message = format!("packets of {}", sender.packet);
            issues.push(self.issue(placed, "packet", message).expected("576 B to 9000 B"));
        }
        if !FRAMES.contains(&sender.frames) {
            let message = format!("{} frames", sender.frames);
            issues.push(self.issue(placed, "frames", message).expected("3 to 600"));
        }
        if !BURST.contains(&sender.burst) {
            let message = format!("bursts of {} packets", sender.burst);
            issues.push(self.issue(placed, "burst", message).expected("1 to 64"));
        }
        if let UncompressedSource::Storage { rate, .. } = &sender.source
            && !RATE.contains(rate)
        {
            let message = format!("a storage of {rate}");
            issues.push(self.issue(placed, "source", message).expected("1 Mbit/s to 1 Tbit/s"));
        }
        if let Some(end) = self.duration.filter(|end| sender.begin >= *end) {
            let message = format!("a first frame at {}", sender.begin);
            let issue = self.issue(placed, "begin", message);
            issues.push(issue.expected(format!("before the trial ends, at {end}")));
        }
        let twice = self.endpoints.iter().any(|other| {
            matches!(&other.endpoint.spec, EndpointSpec::UncompressedSender(it)
                if it.stream == sender.stream && other.endpoint.name < placed.endpoint.name)
        });
        if twice {
            let message = format!("a second sender of stream {}", sender.stream);
            issues.push(self.issue(placed, "stream", message).hint("each has a stream of its own"));
        }
    }

    fn uncompressed_to(
        &self,
        placed: &Placed,
        sender: &UncompressedSender,
        issues: &mut Vec<Issue>,
    ) {
        if self.unread.contains(&sender.to) {
            return;
        }
        let receivers = || {
            self.endpoints.iter().filter_map(|other| match &other.endpoint.spec {
                EndpointSpec::UncompressedReceiver(receiver) => Some((&other.endpoint, receiver)),
                _ => None,
            })
        };
        let Some((_, receiver)) = receivers().find(|(other, _)| other.name == sender.to) else {
            let message = format!("no uncompressed-receiver is named `{}`", sender.to);
            let known: Vec<&str> = receivers().map(|(other, _)| other.name.as_str()).collect();
            issues.push(self.issue(placed, "to", message).instead(&sender.to, known));
            return;
        };
        if !receiver.streams.contains(&sender.stream) {
            let message = format!("`{}` has no stream {}", sender.to, sender.stream);
            let known: Vec<_> = receiver.streams.iter().map(ToString::to_string).collect();
            let expected = format!("one of its streams: {}", known.join(", "));
            issues.push(self.issue(placed, "stream", message).expected(expected));
        }
        if receiver.format != sender.format {
            let (ours, theirs) = (sender.format.name(), receiver.format.name());
            let message = format!("it sends `{ours}`, but `{}` takes `{theirs}`", sender.to);
            let hint = "give both the same format";
            issues.push(self.issue(placed, "format", message).hint(hint));
        }
    }

    pub(super) fn uncompressed_receiver(
        &self,
        placed: &Placed,
        receiver: &UncompressedReceiver,
        issues: &mut Vec<Issue>,
    ) {
        let most = UncompressedReceiver::STREAMS_MAX;
        if receiver.streams.is_empty() {
            let issue = self.issue(placed, "streams", "no streams".to_owned());
            issues.push(issue.expected("one at least"));
        }
        for (at, stream) in receiver.streams.iter().enumerate() {
            let others = self.endpoints.iter().filter(|it| it.endpoint.name < placed.endpoint.name);
            let taken = others.filter_map(|other| match &other.endpoint.spec {
                EndpointSpec::UncompressedReceiver(other) => Some(&other.streams),
                _ => None,
            });
            let mut taken = taken.flatten().chain(&receiver.streams[..at]);
            let problem = match stream {
                _ if *stream >= most => format!("stream {stream}"),
                _ if taken.any(|other| other == stream) => format!("stream {stream} twice"),
                _ => continue,
            };
            let expected = format!("numbers below {most}, each once in the scenario");
            issues.push(self.issue(placed, "streams", problem).expected(expected));
        }
        if !BUFFER.contains(&receiver.buffer) {
            let message = format!("a receive buffer of {}", receiver.buffer);
            issues.push(self.issue(placed, "buffer", message).expected("1 MB to 256 MB"));
        }
    }
}
