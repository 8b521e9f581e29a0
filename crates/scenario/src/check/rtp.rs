//! What RTP endpoints refer to, and what cannot be.

use suiro_units::{Bytes, Duration};

use super::{Check, Placed};
use crate::document::{self};
use crate::endpoint::{EndpointSpec, RtpCodec, RtpReceiver, RtpSender};
use crate::error::Issue;

/// Sizes of IP packets: what every host takes (RFC 791 §3.1) to the topology's largest.
const PACKET: std::ops::RangeInclusive<Bytes> = Bytes::new(576)..=Bytes::new(9000);
const PICTURES: std::ops::RangeInclusive<u32> = 1..=1000;
const FEEDBACK: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(5)..=Duration::from_secs(5);

impl Check<'_, '_> {
    pub(super) fn rtp_sender(&self, placed: &Placed, sender: &RtpSender, issues: &mut Vec<Issue>) {
        self.receiver_of(placed, sender, issues);
        self.source(placed, sender, issues);
        self.even(placed, sender.port, issues);
        if let Err(error) = sender.control.check() {
            let steps = ["endpoints", &placed.section, "control", error.key];
            let place = document::place(self.body, &steps);
            let issue = Issue::new(place, format!("control.{error}"));
            issues.push(issue.hint("each kind has keys and ranges of its own: see suiro schema"));
        }
        if !PACKET.contains(&sender.packet) {
            let message = format!("packets of {}", sender.packet);
            issues.push(self.issue(placed, "packet", message).expected("576 B to 9000 B"));
        }
        if !PICTURES.contains(&sender.report_pictures) {
            let message = format!("a report each {} pictures", sender.report_pictures);
            issues.push(self.issue(placed, "report_pictures", message).expected("1 to 1000"));
        }
    }

    fn receiver_of(&self, placed: &Placed, sender: &RtpSender, issues: &mut Vec<Issue>) {
        if self.unread.contains(&sender.to) {
            return;
        }
        let receivers = || {
            self.endpoints.iter().filter_map(|other| match &other.endpoint.spec {
                EndpointSpec::RtpReceiver(receiver) => Some((&other.endpoint, receiver)),
                _ => None,
            })
        };
        let Some((_, receiver)) = receivers().find(|(other, _)| other.name == sender.to) else {
            let message = format!("no rtp-receiver is named `{}`", sender.to);
            let known: Vec<&str> = receivers().map(|(other, _)| other.name.as_str()).collect();
            issues.push(self.issue(placed, "to", message).instead(&sender.to, known));
            return;
        };
        if receiver.codec != sender.codec {
            let (ours, theirs) = (sender.codec.name(), receiver.codec.name());
            let message = format!("it sends `{ours}`, but `{}` takes `{theirs}`", sender.to);
            let hint = "give both the same codec";
            issues.push(self.issue(placed, "codec", message).hint(hint));
        }
    }

    /// A camera or media, as the codec needs.
    fn source(&self, placed: &Placed, sender: &RtpSender, issues: &mut Vec<Issue>) {
        let mut tell = |key: &str, message: &str, hint: &str| {
            issues.push(self.issue(placed, key, message.into()).hint(hint));
        };
        match (sender.codec, &sender.camera, &sender.media) {
            (RtpCodec::H264, None, _) => {
                tell("codec", "no camera", "add camera = { source = \"bbb\" }");
            }
            (RtpCodec::H264, Some(_), Some(_)) => {
                tell("media", "an encoder in the loop takes a camera", "remove media");
            }
            (RtpCodec::Mpeg2, Some(_), _) => {
                tell("camera", "`mpeg2` is prepared", "remove camera, and name a medium");
            }
            (RtpCodec::Mpeg2, None, None) => {
                tell("codec", "no media", "add media = \"NAME\" of a section [media.NAME]");
            }
            (RtpCodec::H264, Some(camera), None) => {
                if let Err(error) = camera.validate() {
                    let text = error.to_string();
                    let (message, hint) = text.split_once("\nhint: ").unwrap_or((&text, ""));
                    tell("camera", message, hint);
                }
            }
            (RtpCodec::Mpeg2, None, Some(media)) => {
                if !self.media.contains_key(media) {
                    let message = format!("no medium is named `{media}`");
                    let known = self.media.keys().map(String::as_str);
                    issues.push(self.issue(placed, "media", message).instead(media, known));
                }
            }
        }
    }

    pub(super) fn rtp_receiver(
        &self,
        placed: &Placed,
        receiver: &RtpReceiver,
        issues: &mut Vec<Issue>,
    ) {
        self.even(placed, receiver.port, issues);
        if receiver.feedback.is_some_and(|every| !FEEDBACK.contains(&every)) {
            let issue = self.issue(placed, "feedback", "out of range".into());
            issues.push(issue.expected("5 ms to 5 s"));
        }
        if let Err(error) = receiver.viewer.validate() {
            let steps = ["endpoints", &placed.section, "viewer", error.key];
            let place = document::place(self.body, &steps);
            let message = format!("viewer.{}: {}", error.key, error.found);
            issues.push(Issue::new(place, message).expected(error.hint));
        }
    }

    /// RFC 3550 §11: RTP has an even port and RTCP the next.
    fn even(&self, placed: &Placed, port: u16, issues: &mut Vec<Issue>) {
        if !port.is_multiple_of(2) {
            let issue = self.issue(placed, "port", format!("port {port} is odd"));
            issues.push(issue.expected("an even port; RTCP has the next"));
        }
    }
}
