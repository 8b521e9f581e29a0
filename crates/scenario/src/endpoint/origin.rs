//! The `origin`: an HTTP server of media.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use suiro_media::spec::Codec;
use suiro_strict::{Bounds, bounds, bounds_of};
use suiro_units::{BitRate, Duration};

use super::{Kind, Medium, PORT, serves_tcp};
use crate::check::Check;

const DAY: Duration = Duration::from_secs(24 * 3600);

bounds! {
    Origin {
        port: PORT,
        window: Bounds::above(Duration::ZERO, DAY),
        length: Bounds::new(Duration::from_secs(1), DAY),
    }
}

/// Serves one media package over HTTP/1.1, as DASH and as HLS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = bounds_of::<Origin>)]
pub struct Origin {
    /// The media it serves: a name below `[media]`.
    pub media: String,
    /// Whether segments appear as time passes, or are all available from the start.
    pub mode: Mode,
    /// TCP congestion control of its connections, as the kernel names it (`reno`, `cubic`, `bbr`,
    /// …). Default: the kernel's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<String>,
    /// TCP port that it listens on. Default: 80.
    #[serde(default = "http")]
    pub port: u16,
    /// Live: how much of the past can still be fetched (`timeShiftBufferDepth`, the playlist's
    /// length). The stream behaves as if it had started this long before the trial. Default: 30 s.
    #[serde(default = "window")]
    pub window: Duration,
    /// On demand: how much media there is, with the footage repeated. Default: the
    /// duration of the trial. A player with a long buffer needs more, because otherwise it has
    /// downloaded everything before the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<Duration>,
    /// Which rungs of the ladder the HLS multivariant playlist lists; DASH always offers all of
    /// them. Default: `all`.
    #[serde(default)]
    pub hls_rungs: HlsRungs,
    /// Rungs of video whose bit rate in the manifests is above this are not offered, except the lowest. Default: all are
    /// offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<BitRate>,
}

/// Which rungs HLS offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HlsRungs {
    /// All of them, for players that adapt.
    #[default]
    All,
    /// Only the one with the highest bit rate: a stream that no player can adapt.
    Top,
}

/// How a stream's segments become available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Each segment becomes available when its last frame has passed, by the wall clock.
    Live,
    /// All are available from the start (video on demand), repeated as often as the trial's
    /// duration requires.
    Vod,
}

impl Kind for Origin {
    serves_tcp!();

    fn medium(&self) -> Option<Medium<'_>> {
        Some(Medium { key: "media", name: &self.media, codec: Codec::H264 })
    }

    fn check(&self, check: &mut Check<'_>) {
        if self.length.is_some() && self.mode == Mode::Live {
            let refusal = check.refusal("length", "a live stream has no length");
            check.push(refusal.hint("remove `length`, or set mode = \"vod\""));
        }
    }
}

const fn http() -> u16 {
    80
}

const fn window() -> Duration {
    Duration::from_secs(30)
}
