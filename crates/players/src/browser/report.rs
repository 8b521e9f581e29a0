//! What our page reports, read strictly.

use serde::Deserialize;
use suiro_http::cmcd;
use suiro_units::{Duration, Time};

use crate::ladder::Ladder;
use crate::record::{Request, State, View};

/// Most bytes of one report.
pub(super) const REPORT_BYTES_MAX: usize = 1 << 20;
/// Largest reading of the page's clock, in milliseconds: a year.
const CLOCK_MAX_MS: f64 = 366.0 * 86_400.0 * 1e3;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Report {
    /// The page's clock when the report was sent.
    sent_ms: f64,
    pub states: Vec<StateReport>,
    pub requests: Vec<RequestReport>,
    /// Why playback broke off; null if it did not.
    pub failure: Option<String>,
    /// Entries that were left out of reports because there were too many.
    pub left_out: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum Shown {
    Starting,
    Playing,
    Stalled,
    Ended,
}

/// The player at one moment of the page's clock.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct StateReport {
    at_ms: f64,
    state: Shown,
    position_s: f64,
    buffer_s: f64,
    speed: f64,
    /// Frames dropped so far.
    dropped: u64,
    /// Bit rate of the video rung under the playhead, as the manifest has it; null: the library does not tell it, or not yet.
    rung_bps: Option<u64>,
    /// Path of the video segment under the playhead; null as above.
    shown: Option<String>,
    /// When the frame under the playhead was captured, in milliseconds since 1970; null as above.
    captured_ms: Option<f64>,
    /// Live: the latency that the library aims at; null as above.
    target_latency_s: Option<f64>,
    /// Throughput as the library estimates it; null as above.
    estimate_bps: Option<f64>,
}

/// A request that is over.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct RequestReport {
    target: String,
    sent_ms: f64,
    first_byte_ms: Option<f64>,
    done_ms: f64,
    status: Option<u16>,
    body_bytes: u64,
}

/// The page's clock as the trial's: the least that reports took to arrive counts as no time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PageClock {
    /// Trial time at the page's zero, in milliseconds.
    zero_ms: Option<f64>,
}

impl PageClock {
    /// A report that was sent then arrives now.
    pub fn hear(&mut self, arrived: Time, report: &Report) {
        let zero_ms = arrived.as_nanos() as f64 / 1e6 - report.sent_ms;
        self.zero_ms = Some(self.zero_ms.map_or(zero_ms, |least| least.min(zero_ms)));
    }

    fn time(&self, page_ms: f64) -> Time {
        let ms = (self.zero_ms.unwrap_or(0.0) + page_ms).max(0.0);
        Time::ZERO + Duration::from_nanos((ms * 1e6) as u64)
    }
}

/// A report, if it is one.
pub(super) fn parse(body: &[u8]) -> Result<Report, String> {
    let report: Report =
        serde_json::from_slice(body).map_err(|e| format!("the page's report: {e}"))?;
    let states = report.states.iter().map(|state| state.at_ms);
    let requests = report.requests.iter().flat_map(|request| [request.sent_ms, request.done_ms]);
    let first_bytes = report.requests.iter().filter_map(|request| request.first_byte_ms);
    for ms in std::iter::once(report.sent_ms).chain(states).chain(requests).chain(first_bytes) {
        if !(0.0..=CLOCK_MAX_MS).contains(&ms) {
            return Err(format!("the page's report: a time of {ms} ms"));
        }
    }
    Ok(report)
}

impl StateReport {
    /// When it was so.
    pub fn at(&self, clock: &PageClock) -> Time {
        clock.time(self.at_ms)
    }

    /// Adds it to what was known. `unix_ns` is the wall clock then.
    pub fn apply(&self, view: &mut View, unix_ns: u64, ladder: &Ladder) {
        view.turn(match self.state {
            Shown::Starting => State::Starting,
            Shown::Playing => State::Playing,
            Shown::Stalled => State::Stalled,
            Shown::Ended => State::Ended,
        });
        view.position_ms = Some(self.position_s * 1e3);
        view.buffer_ms = Some(self.buffer_s * 1e3);
        view.speed = self.speed;
        view.dropped = Some(self.dropped);
        let shown = self.shown.as_deref().and_then(|target| ladder.place(target));
        let shown = shown.map(|place| place.rate.as_bps());
        // Before anything is shown, a library may name what it loads.
        let begun = view.state != State::Starting;
        view.rung_bps = self.rung_bps.or(shown).filter(|_| begun).or(view.rung_bps);
        // A video on demand was captured long ago: that is no latency.
        let live = ladder.zero_unix_ns.is_some() && begun;
        // dash.js says 0 where it does not know.
        let captured_ms = self.captured_ms.filter(|captured_ms| live && *captured_ms > 0.0);
        view.latency_ms = captured_ms.map(|captured_ms| unix_ns as f64 / 1e6 - captured_ms);
        view.target_latency_ms = self.target_latency_s.filter(|_| live).map(|target| target * 1e3);
        view.estimate_bps = self.estimate_bps.map(|bps| bps as u64).filter(|bps| *bps > 0);
    }
}

impl RequestReport {
    /// As a record has it.
    pub fn request(&self, clock: &PageClock) -> Request {
        let failed = match self.status {
            None => Some("no answer".to_owned()),
            Some(status @ 400..) => Some(format!("status {status}")),
            Some(_) => None,
        };
        Request {
            sent: clock.time(self.sent_ms),
            // What it says of itself differs from request to request.
            target: cmcd::without(&self.target),
            first_byte: self.first_byte_ms.map(|ms| clock.time(ms)),
            done: failed.is_none().then(|| clock.time(self.done_ms)),
            status: self.status,
            body_bytes: self.body_bytes,
            error: failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_report_is_told() {
        let refused = |text: &str| parse(text.as_bytes()).unwrap_err();
        assert!(refused("{").contains("EOF"));
        let more = r#"{"sent_ms":1,"states":[],"requests":[],"failure":null,"left_out":0,"x":1}"#;
        assert!(refused(more).contains("unknown field `x`"));
        let late = r#"{"sent_ms":1e300,"states":[],"requests":[],"failure":null,"left_out":0}"#;
        assert!(refused(late).contains("a time of"));
        let negative = late.replace("1e300", "-1");
        assert!(refused(&negative).contains("a time of -1 ms"));
    }

    const STATE: StateReport = StateReport {
        at_ms: 1.0,
        state: Shown::Playing,
        position_s: 20.0,
        buffer_s: 1.0,
        speed: 1.0,
        dropped: 0,
        rung_bps: None,
        shown: None,
        captured_ms: None,
        target_latency_s: None,
        estimate_bps: None,
    };

    fn apply(view: &mut View, state: &StateReport) {
        state.apply(view, 1_795_239_060_000_000_000, &crate::ladder::tests::ladder());
    }

    #[test]
    fn a_frame_that_was_captured_in_1970_has_no_latency() {
        let latency = |captured_ms| {
            let mut view = View::default();
            apply(&mut view, &StateReport { captured_ms: Some(captured_ms), ..STATE });
            view.latency_ms
        };
        assert_eq!([latency(1_795_239_058_500.0), latency(0.0)], [Some(1500.0), None]);
    }

    #[test]
    fn a_target_is_of_a_live_stream_that_has_begun() {
        let target = |state| {
            let mut view = View::default();
            apply(&mut view, &StateReport { state, target_latency_s: Some(0.8), ..STATE });
            view.target_latency_ms
        };
        assert_eq!([target(Shown::Starting), target(Shown::Playing)], [None, Some(800.0)]);
    }

    #[test]
    fn the_rung_is_what_is_shown_and_not_what_is_loaded_before() {
        let mut view = View::default();
        let states = [
            (Shown::Starting, Some(900_000)),
            (Shown::Starting, Some(300_000)),
            (Shown::Playing, Some(300_000)),
            (Shown::Stalled, None),
        ];
        let rungs = states.map(|(state, rung_bps)| {
            apply(&mut view, &StateReport { state, rung_bps, ..STATE });
            view.rung_bps
        });
        assert_eq!(rungs, [None, None, Some(300_000), Some(300_000)]);
    }

    #[test]
    fn a_request_is_recorded_without_what_it_says_of_its_player() {
        let report = |target: &str| RequestReport {
            target: target.to_owned(),
            sent_ms: 1.0,
            first_byte_ms: None,
            done_ms: 2.0,
            status: Some(200),
            body_bytes: 1,
        };
        let target = |text| report(text).request(&PageClock::default()).target;
        assert_eq!(target("/v1/38.m4s?CMCD=bl%3D1500%2Cot%3Dv"), "/v1/38.m4s");
        assert_eq!(target("/v1.m3u8?_HLS_msn=40&CMCD=ot%3Dm"), "/v1.m3u8?_HLS_msn=40");
    }

    #[test]
    fn the_pages_clock_is_that_of_the_quickest_report() {
        let report = |sent_ms| Report {
            sent_ms,
            states: Vec::new(),
            requests: Vec::new(),
            failure: None,
            left_out: 0,
        };
        let mut clock = PageClock::default();
        clock.hear(Time::from_secs(10), &report(1000.0));
        // A second that took 5 ms less to arrive.
        clock.hear(Time::ZERO + Duration::from_millis(10_995), &report(2000.0));
        clock.hear(Time::from_secs(12), &report(2500.0));
        assert_eq!(clock.time(1000.0), Time::ZERO + Duration::from_millis(9_995));
    }
}
