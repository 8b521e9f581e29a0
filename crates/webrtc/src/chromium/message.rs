//! Messages to the page for WebRTC. `web/src/generated/webrtc.ts` is generated from these types and from those of `report`.

use serde::Serialize;
use suiro_browser::{FootageMessage, PauseMessage};
use suiro_scenario::WebrtcCodec;

/// What the page is to do.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Job {
    pub role: PageRole,
    /// The codec of the video, without any other as a fallback.
    pub codec: WebrtcCodec,
    /// Where the page makes its offer; null: it answers the offers that the endpoint hands over.
    pub offers_to: Option<Resource>,
    /// Most bits per second that a publisher sends.
    pub max_bps: u64,
    /// From one key frame of a publisher to the next at most; null: the browser decides.
    pub key_every_ms: Option<f64>,
    /// What a publisher's camera sees.
    pub footage: Option<FootageMessage>,
    /// When it captures nothing, in order.
    pub pauses: Vec<PauseMessage>,
    /// The trial's epoch in milliseconds since 1970.
    pub epoch_unix_ms: f64,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) enum PageRole {
    Publisher,
    Viewer,
}

/// A resource of WHIP or WHEP.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Resource {
    pub url: String,
    pub token: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chromium::report::Report;
    use crate::desk::Order;

    /// What the page and the endpoint send to each other. Times are milliseconds since the trial's epoch, unless they say
    /// otherwise.
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Messages {
        job: Job,
        command: Order<'static>,
        report: Report,
    }

    #[test]
    fn the_types_of_the_page_are_current() {
        suiro_page_types::check::<Messages>("webrtc.ts", "webrtc/src/chromium/");
    }
}
