//! What an origin offers: tracks in rungs, with what manifests say about them.

use suiro_scenario::{HlsRungs, Protocol};
use suiro_units::{BitRate, Duration};

use super::chunks::Chunks;
use super::timeline::{Loop, Schedule};
use crate::presentation::TrackKind;

/// `PART-HOLD-BACK` in part targets: RFC 8216bis §4.4.3.8 requires two and advises three.
pub const PART_HOLD_BACK: u64 = 3;

/// Everything that manifests are made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalogue {
    /// The tracks, video first. A package in two containers has its video twice.
    pub tracks: Vec<TrackEntry>,
    /// When segments are there.
    pub schedule: Schedule,
    /// Which rungs of video the multivariant playlist lists.
    pub hls_rungs: HlsRungs,
    /// Distinguishes this content from other content at the same URLs; part of entity tags. Letters
    /// and digits.
    pub version: String,
}

/// One track.
#[derive(Debug, Clone, PartialEq)]
pub struct TrackEntry {
    /// What it carries.
    pub kind: TrackKind,
    /// How its segments are wrapped.
    pub container: Container,
    /// Its rungs, lowest bit rate first.
    pub rungs: Vec<RungEntry>,
}

/// How segments are wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// Fragmented MP4 with an initialisation segment.
    Fmp4,
    /// MPEG transport stream, sound and frames together; HLS only.
    MpegTs,
}

impl Container {
    /// Ending of a segment's name.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Fmp4 => "m4s",
            Self::MpegTs => "ts",
        }
    }
}

/// One rung.
#[derive(Debug, Clone, PartialEq)]
pub struct RungEntry {
    /// Its name in URLs: `v0`, `v1`, `a`.
    pub id: String,
    /// Bit rate of its largest segment, all bytes counted: what RFC 8216 §4.3.4.2 calls the peak
    /// segment bit rate, and enough for DASH's `@bandwidth` with a `minBufferTime` of one segment
    /// (ISO/IEC 23009-1 §5.3.5.2).
    pub rate: BitRate,
    /// What manifests give: [`rate`](Self::rate), unless the scenario wants another.
    pub declared: BitRate,
    /// Mean bit rate, all bytes counted.
    pub mean_rate: BitRate,
    /// What the encoder was asked for.
    pub nominal: BitRate,
    /// Codecs as RFC 6381 names them.
    pub codecs: String,
    /// Width and height in pixels; `None` for sound.
    pub size: Option<(u32, u32)>,
    /// Frames per second as numerator and denominator; `None` for sound.
    pub frame_rate: Option<(u32, u32)>,
    /// Channels of sound; `None` for video.
    pub channels: Option<u32>,
    /// Its segments in time.
    pub timeline: Loop,
    /// The chunks of its segments, which are released as they are captured; `None` if segments are released whole.
    pub chunks: Option<Chunks>,
}

impl RungEntry {
    /// The length by which DASH counts its segments, in ticks: their mean. Each begins less than half of it from where it
    /// would be counted.
    pub fn nominal_segment(&self) -> u64 {
        self.timeline.mean_ticks()
    }
}

impl Catalogue {
    /// The track and the rung of that name in that container, as indices.
    pub fn find(&self, id: &str, container: Container) -> Option<(usize, usize)> {
        let tracks = self.tracks.iter().enumerate();
        tracks.filter(|(_, entry)| entry.container == container).find_map(|(track, entry)| {
            Some((track, entry.rungs.iter().position(|rung| rung.id == id)?))
        })
    }

    /// The container that DASH or HLS is served in: HLS takes transport streams where there are
    /// any. `None` if there is none for it.
    pub fn container(&self, protocol: Protocol) -> Option<Container> {
        let has = |container| self.tracks.iter().any(|track| track.container == container);
        match protocol {
            Protocol::Dash => has(Container::Fmp4).then_some(Container::Fmp4),
            Protocol::Hls if has(Container::MpegTs) => Some(Container::MpegTs),
            Protocol::Hls => has(Container::Fmp4).then_some(Container::Fmp4),
        }
    }

    /// The tracks in one container.
    pub fn tracks_in(&self, container: Option<Container>) -> impl Iterator<Item = &TrackEntry> {
        self.tracks.iter().filter(move |track| Some(track.container) == container)
    }

    /// The bit rate of a rung in the manifests of a protocol; `None` if they do not list it as one to choose. HLS counts
    /// the sound that is played with it (RFC 8216 §4.3.4.2).
    pub fn rate_in(&self, protocol: Protocol, track: &TrackEntry, rung: usize) -> Option<BitRate> {
        if self.container(protocol) != Some(track.container) {
            return None;
        }
        let rate = track.rungs.get(rung)?.declared;
        match (protocol, track.kind) {
            (Protocol::Dash, _) => Some(rate),
            (Protocol::Hls, TrackKind::Audio) => None,
            (Protocol::Hls, TrackKind::Video) => {
                let listed = rung >= self.first_in_hls(track);
                let sound = self.sound_in_hls().map_or(0, |audio| audio.declared.as_bps());
                listed.then(|| BitRate::from_bps(rate.as_bps() + sound))
            }
        }
    }

    /// The sound that HLS offers next to the video; `None` if there is none, or it is in the segments of the video.
    pub fn sound_in_hls(&self) -> Option<&RungEntry> {
        let mut tracks = self.tracks_in(self.container(Protocol::Hls));
        tracks.find(|track| track.kind == TrackKind::Audio)?.rungs.first()
    }

    /// The first rung that the multivariant playlist lists.
    pub fn first_in_hls(&self, video: &TrackEntry) -> usize {
        match self.hls_rungs {
            HlsRungs::All => 0,
            HlsRungs::Top => video.rungs.len().saturating_sub(1),
        }
    }

    /// Manifests give what the encoder was asked for.
    pub fn declare_nominal(&mut self) {
        for rung in self.tracks.iter_mut().flat_map(|track| &mut track.rungs) {
            rung.declared = rung.nominal;
        }
    }

    /// Offers no rung of video above this bit rate, except the lowest.
    pub fn leave_out_above(&mut self, top: BitRate) {
        for track in self.tracks.iter_mut().filter(|track| track.kind == TrackKind::Video) {
            let kept = track.rungs.iter().take_while(|rung| rung.declared <= top).count();
            track.rungs.truncate(kept.max(1));
        }
    }

    /// Live with chunks: the latency that manifests advise, three times the longest part target. RFC 8216bis §4.4.3.8
    /// advises so for `PART-HOLD-BACK`; DASH gets the same, so that the protocols can be compared.
    pub fn advised_latency(&self) -> Option<Duration> {
        let rungs = self.tracks.iter().flat_map(|track| &track.rungs);
        let targets = rungs.filter_map(|rung| Some(rung.chunks.as_ref()?.part_target()));
        targets.max().map(|target| target * PART_HOLD_BACK)
    }

    /// The longest segment of any track.
    pub fn longest_segment(&self) -> Duration {
        let rungs = self.tracks.iter().flat_map(|track| &track.rungs);
        rungs.map(|rung| rung.timeline.longest()).max().unwrap_or_default()
    }
}
