//! Messages to the page for Media over QUIC. `web/src/generated/moq.ts` is generated from these types and from those of
//! `report`.

use serde::Serialize;
use suiro_browser::{FootageMessage, PauseMessage};
use suiro_scenario::BrowserCongestion;

/// What the page is to do.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Job {
    /// Where the relay is: `https://HOST:PORT/`, with the token.
    pub url: String,
    /// SHA-256 of its certificate, byte by byte.
    pub certificate: Vec<u8>,
    pub broadcast: String,
    /// What the browser is asked to optimise its sending rate for.
    pub congestion: BrowserCongestion,
    /// The protocol that is offered, such as `moqt-18`.
    pub protocol: String,
    /// Of a publisher; null: it is a viewer.
    pub camera: Option<CameraJob>,
    /// The trial's epoch in milliseconds since 1970.
    pub epoch_unix_ms: f64,
}

/// What a publisher sends.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct CameraJob {
    pub footage: FootageMessage,
    /// Its codec (RFC 6381).
    pub codec: String,
    /// The catalog that has it.
    pub catalog: String,
    pub rate_bps: u64,
    pub key_every_ms: f64,
    pub streams: Streams,
    /// When it captures nothing, in order.
    pub pauses: Vec<PauseMessage>,
}

/// What becomes a stream.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) enum Streams {
    Frame,
    Gop,
}

/// What the endpoint wants next.
#[derive(Debug, Serialize)]
#[serde(tag = "do", rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) enum Command {
    Begin,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chromium::report::Report;

    /// What the page and the endpoint send to each other. Times are milliseconds since the trial's epoch, unless they say
    /// otherwise.
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Messages {
        job: Job,
        command: Command,
        report: Report,
    }

    #[test]
    fn the_types_of_the_page_are_current() {
        suiro_page_types::check::<Messages>("moq.ts", "moq/src/chromium/");
    }
}
