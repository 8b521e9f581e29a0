//! Messages to the page for dash.js, hls.js and Shaka Player. `web/src/generated/players.ts` is generated from these types and from those of
//! `report`.

use serde::Serialize;
use suiro_abr::CatchUp;
use suiro_scenario::{DashEstimate, DashRules};

/// What the page is to play.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Job {
    pub player: Library,
    pub manifest: String,
    /// Most media to hold ahead of the playhead.
    pub buffer_s: f64,
    /// Live: how far behind the live edge to play; null: as the library does.
    pub target_latency_s: Option<f64>,
    /// dash.js: which of its rules choose the rung.
    pub rules: DashRules,
    /// dash.js: how it measures the throughput of responses in chunks.
    pub estimate: DashEstimate,
    /// dash.js: `lolp` is a rule of LoL+ for its speed; with others it has its own.
    pub catch_up: CatchUp,
    /// By how much the speed may change; null: as the library does.
    pub speed_change: Option<f64>,
    /// How far behind its target it may fall before it seeks; null: as the library does.
    pub max_drift_s: Option<f64>,
    /// How it reports its playback to the server; null: it does not.
    pub cmcd: Option<CmcdJob>,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) enum Library {
    Dashjs,
    Hlsjs,
    Shaka,
}

/// Common Media Client Data (CTA-5004).
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct CmcdJob {
    /// 1 or 2.
    pub version: u8,
    /// In headers of requests; false: in their query.
    pub headers: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::browser::report::Report;

    /// What the page and the endpoint send to each other. Times are of the page's clock.
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Messages {
        job: Job,
        report: Report,
    }

    #[test]
    fn the_types_of_the_page_are_current() {
        suiro_page_types::check::<Messages>("players.ts", "players/src/browser/");
    }
}
