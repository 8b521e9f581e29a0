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
    /// `rd`: how long the response took to begin.
    pub delay_ms: Option<i64>,
}

impl Cmsd {
    /// What the server nearest to the client says that says anything (its item is the last); nothing, if that is not to be
    /// understood.
    pub fn read(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(DYNAMIC).into_iter();
        let lines: Vec<&str> = lines.filter_map(|line| line.to_str().ok()).collect();
        let items = fields::list(&lines.join(",")).unwrap_or_default();
        let of = |name: &str| {
            let named = |parameters: &[(String, fields::Value)]| {
                let found = parameters.iter().find(|(key, _)| key == name)?;
                found.1.integer().filter(|number| *number >= 0)
            };
            items.iter().rev().find_map(|item| named(&item.parameters))
        };
        let rate = |name: &str| of(name).map(|kbps| kbps.saturating_mul(1000));
        Self {
            throughput_bps: rate("etp"),
            rtt_ms: of("rtt"),
            maximum_bps: rate("mb"),
            delay_ms: of("rd"),
        }
    }

    /// The item of the server of that name. Rates are rounded down to kbit/s.
    pub fn written(&self, server: &str) -> Option<HeaderValue> {
        let kbps = |bps: i64| bps / 1000;
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
    /// `st`: `l` live, `v` on demand.
    pub stream: &'static str,
    /// `br`: bit rate, in bit/s.
    pub bitrate_bps: Option<u64>,
    /// `d`: how long it plays, in milliseconds.
    pub duration_ms: Option<u64>,
}

impl Object {
    /// The header, by the server of that name.
    pub fn written(&self, server: &str) -> Option<HeaderValue> {
        let rate =
            self.bitrate_bps.map_or(String::new(), |bps| format!("br={},", bps.div_ceil(1000)));
        let length = self.duration_ms.map_or(String::new(), |ms| format!("d={ms},"));
        let Self { kind, stream, .. } = self;
        let text = format!("{rate}{length}n=\"{}\",ot={kind},st={stream}", plain(server));
        HeaderValue::from_str(&text).ok()
    }
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
    fn the_nearest_server_counts_of_all_that_say_it() {
        // The example of CTA-5006 has several servers on the path.
        let found =
            read(&["\"far\";etp=96;rtt=8;mb=5000", "\"near\";etp=115;rtt=16, \"edge\";rd=3"]);
        let expected = Cmsd {
            throughput_bps: Some(115_000),
            rtt_ms: Some(16),
            maximum_bps: Some(5_000_000),
            delay_ms: Some(3),
        };
        assert_eq!(found, expected);
        assert_eq!(read(&[]), Cmsd::default());
        assert_eq!(read(&["\"broken\";etp=", "x"]), Cmsd::default());
        assert_eq!(read(&["\"a\";etp=-5;rtt=2"]).throughput_bps, None);
    }

    #[test]
    fn what_is_written_is_read() {
        let known = Cmsd { throughput_bps: Some(9_653_999), rtt_ms: Some(50), ..Cmsd::default() };
        let written = known.written("ori\"gin").expect("a header");
        assert_eq!(written, "\"origin\";etp=9653;rtt=50");
        let back = read(&[written.to_str().expect("ASCII")]);
        assert_eq!((back.throughput_bps, back.rtt_ms), (Some(9_653_000), Some(50)));
        let object =
            Object { kind: "v", stream: "l", bitrate_bps: Some(1), duration_ms: Some(1000) };
        assert_eq!(object.written("o").expect("a header"), "br=1,d=1000,n=\"o\",ot=v,st=l");
        let members = fields::dictionary("br=1,d=1000,n=\"o\",ot=v,st=l").expect("a dictionary");
        assert_eq!(members.len(), 5);
    }
}
