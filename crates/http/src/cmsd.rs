//! What a server reports to a client with a response: Common Media Server Data (CTA-5006); pure.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use crate::fields;

/// The header of what changes from response to response, to which each server on the path adds an item.
pub const DYNAMIC: HeaderName = HeaderName::from_static("cmsd-dynamic");
/// The header of what is true of the object.
pub const STATIC: HeaderName = HeaderName::from_static("cmsd-static");

/// What a server knows of the connection. Bit rates are in bit/s, times in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cmsd {
    /// `etp`: estimated throughput.
    pub throughput_bps: Option<i64>,
    /// `rtt`: round-trip time.
    pub rtt_ms: Option<i64>,
    /// `mb`: the highest bit rate that it suggests.
    pub maximum_bps: Option<i64>,
    /// `rd`: from the request until the first byte of the body can be sent.
    pub delay_ms: Option<i64>,
}

impl Cmsd {
    /// What the server nearest to the client says, whose item is the last: what others say is of their own connections. Nothing,
    /// if it is not to be understood.
    pub fn read(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(DYNAMIC).into_iter();
        let lines: Vec<&str> = lines.filter_map(|line| line.to_str().ok()).collect();
        let items = fields::list(&lines.join(",")).unwrap_or_default();
        let of = |name: &str| {
            let (_, value) = items.last()?.parameters.iter().find(|(key, _)| key == name)?;
            value.integer().filter(|number| *number >= 0)
        };
        let rate = |name: &str| of(name).map(|kbps| kbps.saturating_mul(1000));
        Self {
            throughput_bps: rate("etp"),
            rtt_ms: of("rtt"),
            maximum_bps: rate("mb"),
            delay_ms: of("rd"),
        }
    }

    /// The item of the server of that name.
    pub fn written(&self, server: &str) -> Option<HeaderValue> {
        let keys = [
            ("etp", self.throughput_bps.map(kbps)),
            ("mb", self.maximum_bps.map(kbps)),
            ("rd", self.delay_ms),
            ("rtt", self.rtt_ms),
        ];
        let known = keys.iter().filter_map(|(key, value)| Some(format!(";{key}={}", (*value)?)));
        let known: String = known.collect();
        HeaderValue::from_str(&format!("\"{}\"{known}", plain(server))).ok()
    }
}

/// What is true of an object wherever it is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// `ot`: as in CMCD.
    pub kind: &'static str,
    /// `sf`: `d` for DASH, `h` for HLS; `None` for what is of both.
    pub format: Option<&'static str>,
    /// `st`: `l` live, `v` on demand.
    pub stream: &'static str,
    /// `br`: mean bit rate while it plays, in bit/s.
    pub bitrate_bps: Option<i64>,
    /// `d`: how long it plays, in milliseconds.
    pub duration_ms: Option<i64>,
    /// `ht`: how long the response was held back, in milliseconds, because HLS asked to wait for it.
    pub held_ms: Option<i64>,
}

impl Object {
    /// The header, by the server of that name.
    pub fn written(&self, server: &str) -> Option<HeaderValue> {
        let Self { kind, stream, .. } = self;
        let numbers =
            [("br", self.bitrate_bps.map(kbps)), ("d", self.duration_ms), ("ht", self.held_ms)];
        let known = numbers.iter().filter_map(|(key, value)| Some(format!("{key}={},", (*value)?)));
        let known: String = known.collect();
        let format = self.format.map_or(String::new(), |format| format!("sf={format},"));
        let text = format!("{known}n=\"{}\",ot={kind},{format}st={stream}", plain(server));
        HeaderValue::from_str(&text).ok()
    }
}

/// Whether the servers of a response report anything.
pub fn is_in(headers: &HeaderMap) -> bool {
    headers.contains_key(STATIC) || headers.contains_key(DYNAMIC)
}

/// A rate in kbit/s, rounded to the nearest.
fn kbps(bps: i64) -> i64 {
    bps / 1000 + i64::from(bps % 1000 >= 500)
}

/// A name without what a string would have to escape.
fn plain(name: &str) -> String {
    name.chars().filter(|c| matches!(c, ' '..='~') && !matches!(c, '"' | '\\')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Cmsd {
        let values = lines.iter().map(|line| HeaderValue::from_str(line).expect("a header"));
        let mut headers = HeaderMap::new();
        values.for_each(|value| {
            headers.append(DYNAMIC, value);
        });
        Cmsd::read(&headers)
    }

    #[test]
    fn the_server_nearest_to_the_client_counts() {
        // The example of CTA-5006 has several servers on the path.
        let (far, near) = ("\"far\";etp=96;rtt=8;mb=5000", "\"near\";etp=115;rtt=16;mb=2000;rd=3");
        let expected = Cmsd {
            throughput_bps: Some(115_000),
            rtt_ms: Some(16),
            maximum_bps: Some(2_000_000),
            delay_ms: Some(3),
        };
        assert_eq!([read(&[far, near]), read(&[&format!("{far}, {near}")])], [expected; 2]);
        // The throughput of another connection is none of the client's.
        let edge = Cmsd { delay_ms: Some(3), ..Cmsd::default() };
        assert_eq!(read(&[far, "\"edge\";rd=3"]), edge);
        assert_eq!(read(&[]), Cmsd::default());
        assert_eq!(read(&["\"broken\";etp=", "x"]), Cmsd::default());
        assert_eq!(read(&["\"a\";etp=-5;rtt=2"]).throughput_bps, None);
    }

    #[test]
    fn what_is_written_is_read() {
        let known = Cmsd { throughput_bps: Some(9_653_999), rtt_ms: Some(50), ..Cmsd::default() };
        let written = known.written("ori\"gin").expect("a header");
        // CTA-5006: to the nearest kbit/s.
        assert_eq!(written, "\"origin\";etp=9654;rtt=50");
        let back = read(&[written.to_str().expect("ASCII")]);
        assert_eq!((back.throughput_bps, back.rtt_ms), (Some(9_654_000), Some(50)));
        assert_eq!([1499, 1500, i64::MAX].map(kbps), [1, 2, 9_223_372_036_854_776]);
        let bare = Object {
            kind: "i",
            format: None,
            stream: "v",
            bitrate_bps: None,
            duration_ms: None,
            held_ms: None,
        };
        assert_eq!(bare.written("o").expect("a header"), "n=\"o\",ot=i,st=v");
        let part = Object {
            kind: "v",
            format: Some("h"),
            stream: "l",
            bitrate_bps: Some(960_499),
            duration_ms: Some(500),
            held_ms: Some(400),
        };
        let text = "br=960,d=500,ht=400,n=\"o\",ot=v,sf=h,st=l";
        assert_eq!(part.written("o").expect("a header"), text);
        assert_eq!(fields::dictionary(text).expect("a dictionary").len(), 7);
    }
}
