//! What a player reports without a request for media: the event mode of CMCD (CTA-5004-B §2.2), whose reports are the bodies of
//! requests; pure.

use suiro_record::Text;
use suiro_record::tables::CmcdEventRow;
use suiro_units::{Time, to_i64};

use super::{Cmcd, KEPT_MAX, Read, keep, shown};
use crate::fields;

/// The media type of a body (§3.3).
pub const MEDIA_TYPE: &str = "application/cmcd";
/// The most events of a body.
pub const EVENTS_MAX: usize = 256;
/// The version that has events.
const VERSION: i64 = 2;
/// Every event there is (table 1, key `e`).
const EVENTS: [&str; 19] = [
    "abe", "abs", "ae", "as", "b", "bc", "c", "ce", "e", "h", "m", "pc", "pe", "pr", "ps", "rr",
    "sk", "t", "um",
];

/// What happened to a player.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Event {
    /// `e`: what it was.
    pub kind: String,
    /// `ts`: when it was, in milliseconds since 1970.
    pub at_unix_ms: i64,
    /// What reports of requests have too.
    pub said: Cmcd,
    /// `bg`: the player is not visible.
    pub hidden: Option<bool>,
    /// `pt`: the playhead, in milliseconds; of a live stream since 1970.
    pub playhead_ms: Option<i64>,
    /// `ec`: the code of the first error.
    pub error: Option<String>,
    /// `cen`: the name of a player's own event.
    pub name: Option<String>,
    /// `url`: what was received.
    pub url: Option<String>,
    /// `rc`: the status of the response.
    pub status: Option<i64>,
    /// `ttfb`: when its first byte came, in milliseconds after the request.
    pub first_byte_ms: Option<i64>,
    /// `ttlb`: when its last byte came.
    pub last_byte_ms: Option<i64>,
    /// The first value that could not be read.
    pub problem: Option<String>,
}

/// Reads a body (§3.3). A value that cannot be read is left out, and the rest of its event counts (§6).
///
/// # Errors
/// The first line that is no event, and why: then nothing of the body counts.
pub fn read(body: &[u8]) -> Result<Vec<Event>, String> {
    let text = std::str::from_utf8(body).map_err(|_| "the body is not UTF-8".to_owned())?;
    // Players end the last line as well.
    let lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    let number = |(index, line)| {
        if index == EVENTS_MAX {
            return Err(format!("more than {EVENTS_MAX} events"));
        }
        event(line).map_err(|problem| format!("line {}: {problem}", index + 1))
    };
    lines.enumerate().map(number).collect()
}

fn event(line: &str) -> Result<Event, String> {
    let mut read = Read { said: Cmcd::default(), problem: None };
    let (mut kind, mut at) = (None, None);
    let mut event = Event::default();
    for member in &fields::dictionary(line)? {
        read.member(member);
        let value = &member.value;
        let count = || value.integer().filter(|number| *number >= 0);
        let text = || value.text().map(str::to_owned);
        let short = || text().filter(|text| text.len() <= KEPT_MAX);
        let understood = match member.key.as_str() {
            "e" => keep(&mut kind, text().filter(|kind| EVENTS.contains(&kind.as_str()))),
            "ts" => keep(&mut at, count()),
            "bg" => keep(&mut event.hidden, value.boolean()),
            "pt" => keep(&mut event.playhead_ms, count()),
            "ec" => keep(&mut event.error, text()),
            "cen" => keep(&mut event.name, short()),
            "url" => keep(&mut event.url, text()),
            "rc" => keep(&mut event.status, count()),
            "ttfb" => keep(&mut event.first_byte_ms, count()),
            "ttlb" => keep(&mut event.last_byte_ms, count()),
            // Those of requests are read above.
            _ => true,
        };
        if !understood {
            read.problem(format!("the value of `{}` is not one", shown(&member.key)));
        }
    }
    event.kind = kind.ok_or("there is no valid `e`")?;
    event.at_unix_ms = at.ok_or("there is no valid `ts`")?;
    (event.said, event.problem) = (read.said, read.problem);
    event.check()?;
    Ok(event)
}

impl Event {
    /// Whether it has what table 1 wants of its kind.
    fn check(&self) -> Result<(), String> {
        if self.said.version != VERSION {
            return Err(format!("expected v={VERSION}"));
        }
        let wanted = match self.kind.as_str() {
            "ps" => ("sta", self.said.state.is_some()),
            "e" => ("ec", self.error.is_some()),
            "ce" => ("cen", self.name.is_some()),
            "rr" => ("url", self.url.is_some()),
            _ => return Ok(()),
        };
        match wanted {
            (_, true) => Ok(()),
            (key, false) => Err(format!("the event `{}` needs `{key}`", self.kind)),
        }
    }

    /// Its row, of what came at `came`; `epoch_unix_ns` is the wall clock at the trial's epoch.
    pub(crate) fn row(
        self,
        came: Time,
        epoch_unix_ns: u64,
        endpoint: Text,
        peer: Text,
    ) -> CmcdEventRow {
        let (said, at_ns) = (self.said, self.at_unix_ms.saturating_mul(1_000_000));
        CmcdEventRow {
            t_ns: came,
            endpoint,
            peer,
            event: self.kind.into(),
            happened_ns: at_ns.saturating_sub(to_i64(epoch_unix_ns)),
            session: said.session.map(Into::into),
            content: said.content.map(Into::into),
            sequence: said.sequence,
            object: said.object.map(Into::into),
            format: said.format.map(Into::into),
            stream: said.stream.map(Into::into),
            state: said.state.map(Into::into),
            bitrate_bps: said.bitrate_bps,
            top_bps: said.top_bps,
            buffer_ms: said.buffer_ms,
            measured_bps: said.measured_bps,
            startup: said.startup,
            starved: said.starved,
            speed: said.speed,
            latency_ms: said.latency_ms,
            hidden: self.hidden,
            playhead_ms: self.playhead_ms,
            error: self.error.map(Into::into),
            name: self.name.map(Into::into),
            url: self.url.map(Into::into),
            status: self.status,
            first_byte_ms: self.first_byte_ms,
            last_byte_ms: self.last_byte_ms,
            unread: self.problem.map(Into::into),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(line: &str) -> Event {
        let mut events = read(line.as_bytes()).expect("it can be read");
        assert_eq!(events.len(), 1);
        events.remove(0)
    }

    /// Examples of CTA-5004-B: sections 8.2.1, 8.2.3 to 8.2.9.
    #[test]
    fn examples_of_the_standard_are_understood() {
        let least = one("e=t,ts=1764752400000,v=2");
        let said = Cmcd { version: 2, ..Cmcd::default() };
        let (kind, at_unix_ms) = ("t".into(), 1_764_752_400_000);
        assert_eq!(least, Event { kind, at_unix_ms, said, ..Event::default() });

        let received = one(
            "cid=\"bbb\",cmsdd=\"ZXRwPTEyNTAwO3J0dD0zNTttYj02MDAwO3JkPTIwMA==\",cmsds=\"c2lkPSI5YTNiLTIxY2QiO2JyPTQ1MDA7ZD00\
             MDAwO290PXY7c3Q9dg==\",e=rr,nor=(\"video/segment-6.m4v\"),ot=v,rc=200,sid=\"session1\",ts=1763657019723,ttfb=180\
             ,ttlb=200,url=\"video/segment-5.m4v\",v=2",
        );
        assert_eq!((received.kind.as_str(), received.status), ("rr", Some(200)));
        assert_eq!((received.first_byte_ms, received.last_byte_ms), (Some(180), Some(200)));
        assert_eq!(received.url.as_deref(), Some("video/segment-5.m4v"));
        assert_eq!(received.said.content.as_deref(), Some("bbb"));

        let failed = one("e=e,ec=(\"CODEC_NOT_SUPPORTED\"),sid=\"s\",ts=1764269150213,v=2");
        assert_eq!(failed.error.as_deref(), Some("CODEC_NOT_SUPPORTED"));
        let stalled = one("e=ps,sid=\"session-id-123\",sta=r,ts=1764269150889,v=2");
        assert_eq!(stalled.said.state.as_deref(), Some("r"));
        let sought = one("bl=(0),cid=\"c\",e=ps,pt=30000,sid=\"s\",sta=k,ts=1764269150529,v=2");
        assert_eq!((sought.said.buffer_ms, sought.playhead_ms), (Some(0), Some(30_000)));
        let hidden = one(
            "bg,bl=(2100;v 1800;a),br=(3000;v 164;a),bs,bsa=(3;v 1;a),d=4000,dl=1000,e=rr,ec=(\"2001\"),h=\"example.com\",\
             lb=(500;v 32;a) ,ltc=13500,msd=1700, mtp=(15000;v 6000;a), nor=(\"next-seg.mp4\"),nr,ot=v, pb=(2000;v 164;a),\
             pr=1.1, pt=632782,rc=200,sn=129,st=l,sta=p,su,tb=(6000;v 350;a),ts=1764677101751, url=\"/v.mp4\",v=2",
        );
        assert_eq!((hidden.hidden, hidden.said.bitrate_bps), (Some(true), Some(3_000_000)));
        assert_eq!((hidden.said.latency_ms, hidden.said.speed), (Some(13_500), Some(1.1)));
    }

    /// Section 3.3: lines are events, spaces around them do not count.
    #[test]
    fn a_body_has_an_event_on_each_line() {
        let body = " e=t,ts=1,v=2 \n e=ps,sta=p,ts=2,v=2\ne=ce,cen=\"a\",ts=3,v=2\n";
        let events = read(body.as_bytes()).expect("it can be read");
        let seen = events.iter().map(|event| (event.kind.as_str(), event.at_unix_ms));
        assert_eq!(seen.collect::<Vec<_>>(), [("t", 1), ("ps", 2), ("ce", 3)]);
        let many = |count: usize| vec!["e=t,ts=1,v=2"; count].join("\n");
        assert_eq!(read(many(EVENTS_MAX).as_bytes()).map(|events| events.len()), Ok(EVENTS_MAX));
        let refused = read(many(EVENTS_MAX + 1).as_bytes());
        assert_eq!(refused, Err("more than 256 events".into()));
    }

    /// Section 6: such values must be ignored. Section 5: `url` and `nor` may be long; of the latter we keep 256 bytes.
    #[test]
    fn a_value_that_cannot_be_read_is_left_out_and_named() {
        let event = one("bl=(full),br=(3000),e=ps,pt=x,sta=p,ts=1,v=2");
        let said = (event.said.buffer_ms, event.said.bitrate_bps, event.playhead_ms);
        assert_eq!(said, (None, Some(3_000_000), None));
        assert_eq!(event.problem.as_deref(), Some("the value of `bl` is not one"));

        let url = "x".repeat(3000);
        let event = one(&format!("e=rr,nor=(\"{url}\"),rc=200,ts=1,url=\"{url}\",v=2"));
        assert_eq!((event.url, event.status, event.said.next), (Some(url), Some(200), None));
        assert_eq!(event.problem.as_deref(), Some("the value of `nor` is not one"));
    }

    #[test]
    fn a_body_that_is_wrong_is_refused_with_the_line_and_the_reason() {
        for (body, why) in [
            ("", "line 1: there is no valid `e`"),
            ("\n\n", "line 1: there is no valid `e`"),
            ("e=t,ts=1,v=2\nv=2", "line 2: there is no valid `e`"),
            ("e=t,v=2", "line 1: there is no valid `ts`"),
            ("e=t,ts=1", "line 1: expected v=2"),
            ("e=t,ts=1,v=3", "line 1: expected v=2"),
            ("e=x,ts=1,v=2", "line 1: there is no valid `e`"),
            ("e=t,ts=-1,v=2", "line 1: there is no valid `ts`"),
            ("e=ps,ts=1,v=2", "line 1: the event `ps` needs `sta`"),
            ("e=e,ts=1,v=2", "line 1: the event `e` needs `ec`"),
            ("e=ce,ts=1,v=2", "line 1: the event `ce` needs `cen`"),
            ("e=rr,ts=1,v=2", "line 1: the event `rr` needs `url`"),
            ("e=t,ts=1,v=2,", "line 1: byte 13: a comma at the end"),
        ] {
            assert_eq!(read(body.as_bytes()), Err(why.to_owned()), "{body:?}");
        }
        assert_eq!(read(b"e=t\xff"), Err("the body is not UTF-8".into()));
        let name = |length| format!("e=ce,cen=\"{}\",ts=1,v=2", "x".repeat(length));
        assert!(read(name(64).as_bytes()).is_ok() && read(name(65).as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn any_body_is_read_or_refused(body in "(e=t,|ts=1,|v=2|[a-z=,()\";\n ]){0,40}") {
            if let Ok(events) = read(body.as_bytes()) {
                prop_assert!(!events.is_empty() && events.len() <= EVENTS_MAX);
            }
        }
    }
}
