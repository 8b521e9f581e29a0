//! Watching a segment of video while it comes, to give it up in time ([`suiro_abr::abandon`]).

use suiro_abr::abandon::{self, Download, LiveDownload};
use suiro_abr::{Controller, Sample};
use suiro_units::{Bytes, Duration, Time};

use super::parts::Received;
use super::request::{Underway, What};
use crate::presentation::Segment;

/// How often it is checked: the browser reports progress to dash.js about as often.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// What has been seen of the segment that is under way.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// When it is looked at next; `None` if nothing is under way.
    due: Option<Time>,
    samples: u32,
    bytes: u64,
    /// Where the last segment began that was given up: none is twice.
    given_up: Option<Duration>,
}

/// A request that is to be cancelled.
#[derive(Debug)]
pub(crate) struct Abandoned {
    pub request: Underway,
    /// Why, for the record.
    pub reason: String,
}

impl Watch {
    /// A request begins.
    pub(crate) fn begin(&mut self, now: Time, what: &What) {
        let segment = matches!(what, What::Segment { .. });
        self.due = segment.then_some(now + LOOK);
        self.samples = 0;
        self.bytes = 0;
    }

    /// It has ended.
    pub(crate) fn end(&mut self) {
        self.due = None;
    }

    pub(crate) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Looks at a request of video, if it is time; `received` is what has come of it in chunks, and with `is_held` the server may
    /// have waited for it. Says which rung to fetch instead, and why, if it is to be given up.
    pub(crate) fn look(
        &mut self,
        now: Time,
        request: &Underway,
        controller: &mut Controller,
        (buffer, received, is_held): (Duration, &Received, bool),
    ) -> Option<(usize, String)> {
        if self.due? > now {
            return None;
        }
        self.due = Some(now + LOOK);
        let What::Segment { rate, segment, .. } = &request.fetch.what else { return None };
        let progress = &request.progress;
        let bytes = progress.bytes;
        self.samples += u32::from(bytes > self.bytes);
        self.bytes = bytes;
        let first_byte = progress.first_byte?;
        if self.given_up == Some(segment.start) {
            return None;
        }
        // Time in which it was not read says nothing about the network.
        let running = now.saturating_since(first_byte).saturating_sub(progress.held);
        let (came, samples, ladder) = (Bytes::new(bytes), self.samples, controller.ladder());
        let (rate, segment_length) = (*rate, segment.duration);
        let verdict = match progress.length.map(Bytes::new) {
            Some(whole) => {
                let download =
                    Download { rate, segment: segment_length, running, samples, came, whole };
                abandon::judge(ladder, &download, buffer)?
            }
            // Sent while it is captured. The remaining time of any other body of unknown length is unknown.
            None if request.fetch.chunks.is_some() => {
                let (segment, first, chunks) = (segment_length, received.first, received.bytes);
                let media = received.of(&request.fetch.what);
                let download =
                    LiveDownload { rate, segment, running, samples, came, media, chunks, first };
                abandon::judge_live(ladder, &download, buffer)?
            }
            None => return None,
        };
        self.give_up(segment);
        // Time in which it was waited for says nothing about the network.
        let requested = progress.requested.filter(|_| !is_held);
        let requested = requested.unwrap_or(first_byte);
        let sample = Sample { bytes: came, requested, done: now };
        controller.on_abandon(&sample, verdict.rung, buffer);
        let instead = controller.ladder().rungs()[verdict.rung];
        let seconds = |span: Duration| span.as_secs_f64();
        let reason = format!(
            "{:.1} s to go with {:.1} s buffered: {instead} instead",
            seconds(verdict.rest),
            seconds(buffer)
        );
        Some((verdict.rung, reason))
    }

    fn give_up(&mut self, segment: &Segment) {
        self.given_up = Some(segment.start);
        self.due = None;
    }
}
