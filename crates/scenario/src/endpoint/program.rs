//! The programs that play.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A program that plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// suiro's own headless player.
    #[default]
    Suiro,
    /// VLC 3.
    Vlc,
    /// GStreamer's `playbin3`.
    Gstreamer,
    /// dash.js 5 in Chromium: DASH only.
    Dashjs,
    /// dash.js 4.5.0, of 2022, which published studies used.
    #[serde(rename = "dashjs-4.5")]
    Dashjs45,
    /// hls.js 1.7 in Chromium: HLS only.
    Hlsjs,
    /// hls.js 1.0.0, of 2021, the first with low latency.
    #[serde(rename = "hlsjs-1.0")]
    Hlsjs10,
    /// Shaka Player 5 in Chromium.
    Shaka,
}

impl Program {
    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Suiro => "suiro",
            Self::Vlc => "vlc",
            Self::Gstreamer => "gstreamer",
            Self::Dashjs => "dashjs",
            Self::Dashjs45 => "dashjs-4.5",
            Self::Hlsjs => "hlsjs",
            Self::Hlsjs10 => "hlsjs-1.0",
            Self::Shaka => "shaka",
        }
    }

    /// Whether it is a version of dash.js.
    pub const fn is_dashjs(self) -> bool {
        matches!(self, Self::Dashjs | Self::Dashjs45)
    }

    /// Whether it runs in a browser.
    pub const fn is_in_browser(self) -> bool {
        self.is_dashjs() || matches!(self, Self::Hlsjs | Self::Hlsjs10 | Self::Shaka)
    }
}
