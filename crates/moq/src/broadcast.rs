//! The broadcast of a publisher: its catalog, a video track for each quality, a track of sound, and a data track.

use moq_net::{Timescale, Timestamp, broadcast, group, origin, track};
use suiro_realtime::SoundFrame;
use suiro_scenario::{MoqPublisher, MoqStreams};

use crate::EndpointError;
use crate::catalog::{self, Catalog};
use crate::container;
use crate::data::{self, Message};
use crate::deadline::Deadline;
use crate::job::{FOREVER, PublisherJob};

/// Largest object that is sent as a datagram, in bytes. Every path of QUIC carries UDP payloads of 1,200 bytes (RFC 9000
/// §14); the headers of QUIC, of MoQT and of a session of WebTransport need less than 100 of them.
pub const DATAGRAM_MAX: usize = 1100;

/// The priority of the catalog: before everything.
const CATALOG_PRIORITY: u8 = u8::MAX;
/// That of the video of the highest quality.
const VIDEO_PRIORITY: u8 = MoqPublisher::VIDEO_PRIORITY;
const SOUND_PRIORITY: u8 = MoqPublisher::SOUND_PRIORITY;

/// The deadline of video and sound. Neither the catalog nor the data track has one: no scenario has a data track with the
/// priority of video or sound and a deadline that ends before the trial.
pub(crate) fn deadline(job: &PublisherJob) -> Option<Deadline> {
    let priorities = priorities(job.rates.len(), job.audio.is_some());
    job.deadline.map(|after| Deadline { after, priorities: Some(priorities) })
}

/// The priorities of the tracks of video and sound.
fn priorities(qualities: usize, sound: bool) -> Vec<u8> {
    (VIDEO_PRIORITY..).take(qualities).chain(sound.then_some(SOUND_PRIORITY)).collect()
}

/// Tracks that are announced to the relay. They end when they are dropped.
pub(crate) struct Broadcast {
    _broadcast: broadcast::Producer,
    _catalog: track::Producer,
    /// From the highest quality to the lowest. A lower one is sent first: a viewer changes to it because the link is full of
    /// the higher one.
    pub videos: Vec<Video>,
    /// The track of sound.
    sound: Option<(track::Producer, MoqStreams)>,
    data: Option<Data>,
}

/// A video track of one quality.
pub(crate) struct Video {
    track: track::Producer,
    streams: MoqStreams,
    /// The current group of pictures, if each is one stream.
    group: Option<group::Producer>,
}

struct Data {
    track: track::Producer,
    streams: MoqStreams,
    spec: data::Spec,
    number: u64,
}

impl Broadcast {
    pub fn announce(origin: &origin::Producer, job: &PublisherJob) -> Result<Self, EndpointError> {
        let failed = || EndpointError::session(format!("publishing `{}`", job.common.broadcast));
        let broadcast = origin.create_broadcast(&job.common.broadcast).map_err(failed())?;
        let info = track::Info::default().with_timescale(Timescale::MICRO);
        let first = info.clone().with_priority(CATALOG_PRIORITY);
        let mut catalog = broadcast.create_track(catalog::TRACK, first).map_err(failed())?;
        let deadline = job.deadline.map_or(FOREVER, Into::into);
        let qualities = job.qualities();
        let mut videos = Vec::new();
        for (quality, priority) in qualities.iter().zip(VIDEO_PRIORITY..) {
            let info = info.clone().with_max_age(deadline).with_priority(priority);
            let track = broadcast.create_track(quality.name.as_str(), info).map_err(failed())?;
            videos.push(Video { track, streams: job.streams, group: None });
        }
        let sound = job.audio.map(|_| {
            let info = info.clone().with_max_age(deadline).with_priority(SOUND_PRIORITY);
            broadcast.create_track(catalog::SOUND, info).map_err(failed())
        });
        let sound = sound.transpose()?.map(|track| (track, job.streams));
        let data = job.data.map(|spec| {
            let info = info.clone().with_max_age(FOREVER).with_priority(spec.priority);
            let track = broadcast.create_track(data::TRACK, info).map_err(failed())?;
            Ok::<_, EndpointError>(Data { track, streams: job.streams, spec, number: 0 })
        });
        let data = data.transpose()?;
        let text = Catalog::of(&qualities, job.audio, job.data.map(|data| data.format)).write();
        catalog.write_frame(Timestamp::ZERO, text).map_err(failed())?;
        broadcast.announce(Default::default()).map_err(failed())?;
        Ok(Self { _broadcast: broadcast, _catalog: catalog, videos, sound, data })
    }

    /// Whether somebody receives the sound.
    pub fn is_heard(&self) -> bool {
        self.sound.as_ref().is_some_and(|(track, _)| track.is_used())
    }

    /// Publishes a frame of sound, captured at a time since 1970.
    pub fn send_sound(&mut self, time_us: u64, frame: &SoundFrame) -> Result<(), moq_net::Error> {
        let Some((track, streams)) = &mut self.sound else { return Ok(()) };
        send(track, *streams, time_us, container::write_sound(time_us, &frame.data))
    }

    /// Publishes the next object of the data track, if there is one.
    pub fn send_data(&mut self, time_us: u64) -> Result<(), moq_net::Error> {
        let Some(Data { track, streams, spec, number }) = &mut self.data else { return Ok(()) };
        let message = Message { number: *number, time_us };
        *number += 1;
        let object = data::write(message, spec.format, spec.size.get() as usize);
        send(track, *streams, time_us, object)
    }
}

impl Video {
    /// Whether somebody receives it.
    pub fn is_wanted(&self) -> bool {
        self.track.is_used()
    }

    /// Publishes a frame.
    pub fn send(
        &mut self,
        (time_us, key): (u64, bool),
        object: Vec<u8>,
    ) -> Result<(), moq_net::Error> {
        if self.streams != MoqStreams::Gop {
            return send(&mut self.track, self.streams, time_us, object);
        }
        if key && let Some(before) = self.group.take() {
            before.finish()?;
        }
        if self.group.is_none() {
            self.group = Some(self.track.append_group()?);
        }
        match &mut self.group {
            Some(group) => group.write_frame(time(time_us)?, object),
            None => Ok(()),
        }
    }
}

/// Publishes an object as a group of its own, or as a datagram if it may and fits.
fn send(
    track: &mut track::Producer,
    streams: MoqStreams,
    time_us: u64,
    object: Vec<u8>,
) -> Result<(), moq_net::Error> {
    if streams == MoqStreams::Datagram && object.len() <= DATAGRAM_MAX {
        return track.append_datagram(time(time_us)?, object).map(drop);
    }
    track.write_frame(time(time_us)?, object)
}

fn time(time_us: u64) -> Result<Timestamp, moq_net::Error> {
    Timestamp::from_micros(time_us).map_err(|_| moq_net::Error::Closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn video_and_sound_have_a_deadline_and_the_catalog_has_none() {
        assert_eq!(priorities(3, true), [127, 128, 129, 220]);
        assert_eq!(priorities(1, false), [127]);
        assert!(!priorities(5, true).contains(&CATALOG_PRIORITY));
    }
}
