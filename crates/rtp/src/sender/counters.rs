//! What a sender counts.

use std::collections::BTreeMap;

use super::Disbelieved;

/// Counts since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent for the first time.
    pub packets: u64,
    /// Bytes of their payload.
    pub octets: u64,
    /// Packets of padding, for measurements of the path; they count as packets, too.
    pub padding: u64,
    /// Packets sent again.
    pub sent_again: u64,
    /// Packets asked for that were not sent again: forgotten, just sent, or too many.
    pub not_sent_again: u64,
    /// Frames that were left out because too much waited.
    pub frames_left_out: u64,
    /// Frames that were not sent because of a pause.
    pub frames_paused: u64,
    /// Packets that were held back because the rate allowed no more in this group of pictures.
    pub packets_held_back: u64,
    /// Reports that were believed.
    pub reports: u64,
    /// Key frames that were asked for.
    pub picture_losses: u64,
    /// Packets from addresses that are not the receiver's.
    pub strangers: u64,
    /// RTCP packets that could not be read.
    pub malformed: u64,
    /// Reports that said nothing new: sent with something else that was due, or replayed.
    pub reports_repeated: u64,
    /// Reports that were not believed, and why.
    pub disbelieved: BTreeMap<String, u64>,
}

impl Counters {
    pub(super) fn disbelieve(&mut self, why: Disbelieved) {
        match why {
            Disbelieved::Old => self.reports_repeated += 1,
            _ => *self.disbelieved.entry(why.to_string()).or_default() += 1,
        }
    }
}
