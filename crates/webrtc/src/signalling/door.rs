//! What a request means, before anything is done: the methods of WHIP (RFC 9725 §4) and WHEP
//! (draft-ietf-wish-whep §4), which differ only in who sends. Pure.

use suiro_record::words::Signalling;
use suiro_scenario::WebrtcQuality;
use suiro_serving::bearer::{self, Denied};
use suiro_units::UnknownWord;

use super::fragment::Fragment;

/// The type of session descriptions.
pub const SDP: &str = "application/sdp";
/// The type of fragments with candidates.
pub const FRAGMENT: &str = "application/trickle-ice-sdpfrag";
/// The type of reasons (RFC 9457).
pub const PROBLEM: &str = "application/problem+json";
/// Longest session description that is read, in bytes.
pub const DESCRIPTION_MAX: usize = 64 << 10;

/// What is before the wish of a viewer in a query.
const QUALITY: &str = "quality=";
/// Characters of a wish that are looked at.
const WORD_MAX: usize = 40;

/// A request, as far as it matters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ask {
    /// The method, such as `POST`.
    pub method: String,
    /// The path, without a query.
    pub path: String,
    /// The query, if there is one.
    pub query: Option<String>,
    /// `Content-Type`, as it came.
    pub content_type: Option<String>,
    /// `Authorization`, as it came.
    pub authorization: Option<String>,
    /// `If-Match`, as it came.
    pub if_match: Option<String>,
    /// The body.
    pub body: String,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Open a session with this offer, whose viewer asks for this quality.
    Offer(String, WebrtcQuality),
    /// Give these candidates to the session of that name, if its entity tag is this one.
    Trickle(String, Option<String>, Fragment),
    /// End the session of that name.
    Delete(String),
}

/// An answer to a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
}

impl Reply {
    /// A status without a body.
    pub fn empty(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// A refusal with its reason.
    pub fn problem(status: u16, title: &str, detail: &str) -> Self {
        let text = |text: &str| {
            let escaped = text.chars().map(|c| match c {
                '"' | '\\' => format!("\\{c}"),
                c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
                c => c.to_string(),
            });
            escaped.collect::<String>()
        };
        let (title, detail) = (text(title), text(detail));
        Self {
            status,
            headers: vec![("content-type", PROBLEM.to_owned())],
            body: format!("{{\"status\":{status},\"title\":\"{title}\",\"detail\":\"{detail}\"}}"),
        }
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// An endpoint's resource, such as `/whep`, and who may use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Door {
    /// The protocol, whose name is the path.
    pub signalling: Signalling,
    /// The bearer token that is asked for.
    pub token: Option<String>,
}

impl Door {
    /// The path of the resource that takes offers.
    pub fn path(&self) -> &'static str {
        match self.signalling {
            Signalling::Whip => "/whip",
            Signalling::Whep => "/whep",
        }
    }

    /// The resource that takes offers of a viewer with this wish: its path, and the wish as a query.
    pub fn resource(&self, quality: WebrtcQuality) -> String {
        match quality {
            WebrtcQuality::Auto => self.path().to_owned(),
            other => format!("{}?{QUALITY}{other}", self.path()),
        }
    }

    /// The path of a session.
    pub fn session_path(&self, name: &str) -> String {
        format!("{}/session/{name}", self.path())
    }

    /// The reply to an offer that was taken (RFC 9725 §4.2).
    pub fn created(&self, name: &str, tag: &str, answer: String) -> Reply {
        let reply = Reply { status: 201, body: answer, ..Reply::default() };
        reply
            .with("content-type", SDP)
            .with("location", &self.session_path(name))
            .with("etag", &format!("\"{tag}\""))
            .with("accept-patch", FRAGMENT)
    }

    /// What a request asks for.
    ///
    /// # Errors
    /// The reply, if that is all there is to do.
    pub fn judge(&self, ask: &Ask) -> Result<Command, Reply> {
        let session = ask.path.strip_prefix(self.path()).map(|rest| rest.strip_prefix("/session/"));
        let session = match session {
            Some(Some(name)) if !name.is_empty() && !name.contains('/') => Some(name),
            Some(None) if ask.path == self.path() => None,
            _ => {
                let detail = format!("the resource is {}", self.path());
                return Err(Reply::problem(404, "not found", &detail));
            }
        };
        // A page of another origin asks first whether it may, without credentials (Fetch §3.3.5).
        if ask.method == "OPTIONS" {
            return Err(options(session.is_some()));
        }
        self.admit(ask)?;
        match (ask.method.as_str(), session) {
            ("POST", None) => {
                check_type(ask, SDP, DESCRIPTION_MAX)?;
                Ok(Command::Offer(ask.body.clone(), self.quality(ask)?))
            }
            ("PATCH", Some(name)) => {
                check_type(ask, FRAGMENT, super::fragment::BYTES_MAX)?;
                let fragment = Fragment::parse(&ask.body).map_err(|error| {
                    Reply::problem(400, "malformed fragment", &error.to_string())
                })?;
                Ok(Command::Trickle(name.to_owned(), ask.if_match.clone(), fragment))
            }
            ("DELETE", Some(name)) => Ok(Command::Delete(name.to_owned())),
            (method, _) => {
                let allowed = if session.is_some() { "PATCH, DELETE" } else { "POST" };
                let detail = format!("expected {allowed} or OPTIONS, found {method}");
                Err(Reply::problem(405, "method not allowed", &detail)
                    .with("allow", &format!("{allowed}, OPTIONS")))
            }
        }
    }

    /// The quality that a viewer asks for. Other parts of a query are somebody else's.
    fn quality(&self, ask: &Ask) -> Result<WebrtcQuality, Reply> {
        let parts = ask.query.as_deref().unwrap_or_default().split('&');
        let asked = parts.into_iter().find_map(|part| part.strip_prefix(QUALITY));
        let Some(word) = asked.filter(|_| self.signalling == Signalling::Whep) else {
            return Ok(WebrtcQuality::Auto);
        };
        let word: String = word.chars().take(WORD_MAX).collect();
        word.parse().map_err(|unknown: UnknownWord| {
            Reply::problem(400, "unknown quality", &format!("quality: {unknown}"))
        })
    }

    /// RFC 6750 §2.1 and §3.
    fn admit(&self, ask: &Ask) -> Result<(), Reply> {
        let Some(token) = &self.token else { return Ok(()) };
        bearer::check(ask.authorization.as_deref(), token).map_err(|denied| {
            let detail = match denied {
                Denied::Another => "the bearer token is another",
                Denied::Missing => "expected `Authorization: Bearer TOKEN`",
            };
            Reply::problem(401, "unauthorized", detail).with("www-authenticate", denied.challenge())
        })
    }
}

fn options(of_session: bool) -> Reply {
    let (methods, accepts) = match of_session {
        true => ("PATCH, DELETE, OPTIONS", ("accept-patch", FRAGMENT)),
        false => ("POST, OPTIONS", ("accept-post", SDP)),
    };
    Reply::empty(204)
        .with("allow", methods)
        .with(accepts.0, accepts.1)
        .with("access-control-allow-methods", methods)
        .with("access-control-allow-headers", "authorization, content-type, if-match")
}

fn check_type(ask: &Ask, expected: &str, most: usize) -> Result<(), Reply> {
    let found = ask.content_type.as_deref().unwrap_or("none");
    let kind = found.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case(expected) {
        let detail = format!("expected {expected}, found {found}");
        return Err(Reply::problem(415, "unsupported media type", &detail));
    }
    if ask.body.len() > most {
        let detail = format!("expected at most {most} bytes, found {}", ask.body.len());
        return Err(Reply::problem(413, "content too large", &detail));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(token: Option<&str>) -> Door {
        Door { signalling: Signalling::Whep, token: token.map(str::to_owned) }
    }

    fn ask(method: &str, path: &str, content_type: &str, body: &str) -> Ask {
        let content_type = Some(content_type.to_owned()).filter(|text| !text.is_empty());
        let (method, path, body) = (method.to_owned(), path.to_owned(), body.to_owned());
        Ask { method, path, content_type, body, ..Ask::default() }
    }

    fn refused(ask: &Ask) -> (u16, String) {
        let reply = door(None).judge(ask).unwrap_err();
        (reply.status, reply.body)
    }

    #[test]
    fn the_methods_of_the_rfc_are_commands() {
        let door = door(None);
        let offer = ask("POST", "/whep", "application/sdp; charset=utf-8", "v=0");
        assert_eq!(door.judge(&offer), Ok(Command::Offer("v=0".into(), WebrtcQuality::Auto)));
        let end = ask("DELETE", "/whep/session/abc", "", "");
        assert_eq!(door.judge(&end), Ok(Command::Delete("abc".into())));
        let patch = ask("PATCH", "/whep/session/abc", FRAGMENT, "a=end-of-candidates");
        let Ok(Command::Trickle(name, None, fragment)) = door.judge(&patch) else { panic!() };
        assert!(name == "abc" && fragment.ends);
        let created = door.created("abc", "7", "v=0".into());
        assert_eq!(created.status, 201);
        assert!(created.headers.contains(&("location", "/whep/session/abc".into())));
        assert!(created.headers.contains(&("etag", "\"7\"".into())));
    }

    #[test]
    fn a_viewer_may_ask_for_a_quality() {
        let judged = |signalling, query: &str| {
            let door = Door { signalling, token: None };
            let offer = ask("POST", door.path(), SDP, "v=0");
            match door.judge(&Ask { query: Some(query.to_owned()), ..offer }) {
                Ok(Command::Offer(_, quality)) => Ok(quality),
                Ok(other) => panic!("{other:?}"),
                Err(reply) => Err((reply.status, reply.body)),
            }
        };
        let whep = |query: &str| judged(Signalling::Whep, query);
        assert_eq!(whep("quality=low"), Ok(WebrtcQuality::Low));
        assert_eq!(whep("room=7&quality=middle"), Ok(WebrtcQuality::Middle));
        assert_eq!(whep("qualityx=low&"), Ok(WebrtcQuality::Auto));
        assert_eq!(judged(Signalling::Whip, "quality=low"), Ok(WebrtcQuality::Auto));
        let (status, body) = whep(&format!("quality={}", "x".repeat(9000))).unwrap_err();
        assert!(status == 400 && body.len() < 300, "{body}");
        assert!(body.contains("expected `auto`, `high`, `middle` or `low`, found `xxx"), "{body}");
        let door = door(None);
        assert_eq!(door.resource(WebrtcQuality::Auto), "/whep");
        assert_eq!(door.resource(WebrtcQuality::High), "/whep?quality=high");
    }

    #[test]
    fn what_is_wrong_has_its_status_and_a_reason() {
        assert_eq!(refused(&ask("GET", "/", "", "")).0, 404);
        assert_eq!(refused(&ask("POST", "/whip", SDP, "")).0, 404);
        assert_eq!(refused(&ask("DELETE", "/whep/session/a/b", "", "")).0, 404);
        let (status, body) = refused(&ask("GET", "/whep", "", ""));
        assert_eq!((status, body.contains("expected POST or OPTIONS, found GET")), (405, true));
        let (status, body) = refused(&ask("POST", "/whep", "application/json", "{}"));
        assert!(status == 415 && body.contains("expected application/sdp, found application/json"));
        assert_eq!(refused(&ask("POST", "/whep", SDP, &" ".repeat(70_000))).0, 413);
        let (status, body) = refused(&ask("PATCH", "/whep/session/a", FRAGMENT, "x\"y"));
        assert_eq!(status, 400);
        assert!(body.contains("found `x\\\"y`"), "{body}");
        let options = door(None).judge(&ask("OPTIONS", "/whep", "", "")).unwrap_err();
        assert_eq!(options.status, 204);
        assert!(options.headers.contains(&("accept-post", SDP.into())));
    }

    #[test]
    fn a_stranger_is_not_let_in() {
        let with = |authorization: Option<&str>| {
            let offer = ask("POST", "/whep", SDP, "v=0");
            let authorization = authorization.map(str::to_owned);
            door(Some("s3cret"))
                .judge(&Ask { authorization, ..offer })
                .map_err(|reply| reply.status)
        };
        assert_eq!(with(None), Err(401));
        for wrong in ["Bearer s3cre", "Bearer s3cret2", "Bearer", "Basic s3cret", "s3cret"] {
            assert_eq!(with(Some(wrong)), Err(401), "{wrong}");
        }
        assert_eq!(
            with(Some("bearer s3cret")),
            Ok(Command::Offer("v=0".into(), WebrtcQuality::Auto))
        );
        let options = Ask { method: "OPTIONS".into(), path: "/whep".into(), ..Ask::default() };
        assert_eq!(door(Some("s3cret")).judge(&options).unwrap_err().status, 204);
    }
}
