//! Who may come in, and what every API answers alike: bearer tokens (BCP-003-02, RFC 6750), pre-flight requests. Pure.

use suiro_serving::bearer::{self, Denied};

use super::{Ask, Reply};

/// Fewest characters of a token: 128 bits in base64.
pub const TOKEN_MIN: usize = 22;

/// Who may use an API.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Door(Guests);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Guests {
    #[default]
    Everybody,
    Local,
    Token(String),
}

/// Why a text cannot be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "token: expected {TOKEN_MIN} or more of the characters A-Z a-z 0-9 - . _ ~ + / =, found {found}"
)]
pub struct TokenError {
    found: &'static str,
}

impl Door {
    /// Everybody may.
    pub const fn open() -> Self {
        Self(Guests::Everybody)
    }

    /// The programs of this machine may; pages that a browser shows may only read. For a listener at loopback: any page
    /// can send a POST to it (Fetch §3.2: such a request has an `Origin`). It can do so also under a name of its own
    /// that it lets point to loopback (DNS rebinding: such a request has that name as its `Host`).
    pub const fn local() -> Self {
        Self(Guests::Local)
    }

    /// Who has this token may (RFC 6750 §2.1: `b64token`).
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn with(token: &str) -> Result<Self, TokenError> {
        let fits = |c: u8| c.is_ascii_alphanumeric() || b"-._~+/=".contains(&c);
        if !token.bytes().all(fits) {
            return Err(TokenError { found: "another one" });
        }
        if token.len() < TOKEN_MIN {
            return Err(TokenError { found: "fewer" });
        }
        Ok(Self(Guests::Token(token.to_owned())))
    }

    /// Whether a token is asked for.
    pub const fn is_closed(&self) -> bool {
        matches!(self.0, Guests::Token(_))
    }

    /// Lets a request in, or answers it.
    ///
    /// # Errors
    /// The reply: to a pre-flight request, 401 with its challenge (RFC 6750 §3), or 403 to a page in a browser.
    pub fn admit(&self, ask: &Ask) -> Result<(), Reply> {
        // A page of another origin asks first whether it may, without credentials (Fetch §3.3.5).
        if ask.method == "OPTIONS" {
            let reply = Reply::empty(200);
            return Err(match self.0 {
                Guests::Local => reply.with("access-control-allow-methods", "GET, HEAD, OPTIONS"),
                Guests::Everybody | Guests::Token(_) => reply,
            });
        }
        match &self.0 {
            Guests::Everybody => Ok(()),
            Guests::Local => admit_local(ask),
            Guests::Token(token) => admit_bearer(token, ask),
        }
    }
}

fn admit_local(ask: &Ask) -> Result<(), Reply> {
    let refused = |what: String| {
        let hint = "only programs of this machine may command it; --token-file FILE lets others in";
        Reply::refusal(403, format!("{what}: {hint}"))
    };
    let shown = |text: &str| text.chars().take(100).collect::<String>();
    if let Some(host) = ask.host.as_deref().filter(|host| !is_loopback(host)) {
        return Err(refused(format!(
            "Host: expected an address of loopback, found {}",
            shown(host)
        )));
    }
    match &ask.origin {
        Some(origin) if reads(ask).is_err() => {
            Err(refused(format!("a page of {} sends {}", shown(origin), shown(&ask.method))))
        }
        _ => Ok(()),
    }
}

/// Whether a `Host` (RFC 9110 §7.2: a name or an address, and perhaps a port) is this machine's own.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let address: Result<std::net::IpAddr, _> = address.parse();
    name.eq_ignore_ascii_case("localhost")
        || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

fn admit_bearer(token: &str, ask: &Ask) -> Result<(), Reply> {
    bearer::check(ask.authorization.as_deref(), token).map_err(|denied| {
        let error = match denied {
            Denied::Another => "the bearer token is not the configured one",
            Denied::Missing => "expected the header `Authorization: Bearer TOKEN`",
        };
        Reply::refusal(401, error).with("www-authenticate", denied.challenge())
    })
}

/// The children of a path, as every level of an NMOS API lists them.
pub fn listing(children: &[&str]) -> Reply {
    Reply::json(200, &serde_json::json!(children))
}

/// The parts of a path; a slash at its end does not matter (IS-04 v1.3, APIs: trailing slashes).
pub fn parts(path: &str) -> Vec<&str> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    path.split('/').collect()
}

/// Nothing is there.
pub fn missing(path: &str) -> Reply {
    let shown: String = path.chars().take(200).collect();
    Reply::refusal(404, format!("{shown}: there is no such resource"))
}

/// The method is not for this resource.
pub fn not_allowed(ask: &Ask, allowed: &str) -> Reply {
    let method: String = ask.method.chars().take(20).collect();
    let error = format!("method: expected {allowed} or OPTIONS, found {method}");
    Reply::refusal(405, error).with("allow", format!("{allowed}, OPTIONS"))
}

/// Refuses every method but GET and HEAD.
///
/// # Errors
/// The reply.
pub fn reads(ask: &Ask) -> Result<(), Reply> {
    match ask.method.as_str() {
        "GET" | "HEAD" => Ok(()),
        _ => Err(not_allowed(ask, "GET, HEAD")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "correct-horse-battery-staple";

    #[test]
    fn only_the_token_opens() {
        let door = Door::with(TOKEN).unwrap();
        let with = |authorization: &str| {
            let authorization = Some(authorization.to_owned());
            door.admit(&Ask { authorization, ..Ask::read("/") }).map_err(|reply| reply.status)
        };
        assert_eq!(with(&format!("Bearer {TOKEN}")), Ok(()));
        assert_eq!(with(&format!("bearer  {TOKEN}")), Ok(()));
        for wrong in
            ["", "Bearer", "Bearer ", "Basic x", TOKEN, "Bearer correct-horse-battery-stapl"]
        {
            assert_eq!(with(wrong), Err(401), "{wrong}");
        }
        let reply = door.admit(&Ask::read("/")).unwrap_err();
        assert!(reply.headers.contains(&("www-authenticate", "Bearer".to_owned())));
        assert_eq!(reply.value()["code"], 401);
        let preflight = Ask { method: "OPTIONS".to_owned(), ..Ask::read("/") };
        assert_eq!(door.admit(&preflight).unwrap_err().status, 200);
        assert_eq!(Door::open().admit(&Ask::read("/")), Ok(()));
    }

    #[test]
    fn a_page_may_read_but_not_command() {
        let door = Door::local();
        let asks = |method: &str, host: &str, origin: Option<&str>| {
            let (host, origin) = (Some(host.to_owned()), origin.map(str::to_owned));
            let ask = Ask { method: method.to_owned(), host, origin, ..Ask::read("/") };
            door.admit(&ask).map_err(|reply| reply.status)
        };
        for host in
            ["localhost", "LOCALHOST:80", "127.0.0.1:8010", "127.9.9.9", "[::1]:8010", "[::1]"]
        {
            assert_eq!(asks("POST", host, None), Ok(()), "{host}");
        }
        for host in [
            "evil.example:8010",
            "10.0.0.1",
            "localhost.evil.example",
            "",
            "127.0.0.1.evil",
            "[::2]:1",
        ] {
            assert_eq!(asks("GET", host, None), Err(403), "{host}");
        }
        for origin in ["https://evil.example", "http://127.0.0.1:8010", "null"] {
            assert_eq!(asks("GET", "127.0.0.1:8010", Some(origin)), Ok(()), "{origin}");
            for method in ["POST", "PATCH", "PUT", "DELETE", "BREW"] {
                assert_eq!(asks(method, "127.0.0.1:8010", Some(origin)), Err(403), "{origin}");
            }
        }
        assert_eq!(door.admit(&Ask::json("POST", "/", &serde_json::json!(1))), Ok(()));
        let preflight = door.admit(&Ask { method: "OPTIONS".to_owned(), ..Ask::read("/") });
        let methods = ("access-control-allow-methods", "GET, HEAD, OPTIONS".to_owned());
        assert!(preflight.unwrap_err().headers.contains(&methods));
        // Who has the token may from any page, and everybody behind an open door.
        let (host, origin) = (Some("studio.example".to_owned()), Some("https://x".to_owned()));
        let authorization = Some(format!("Bearer {TOKEN}"));
        let ask = Ask { method: "POST".to_owned(), host, origin, authorization, ..Ask::read("/") };
        assert_eq!(Door::with(TOKEN).unwrap().admit(&ask), Ok(()));
        assert_eq!(Door::open().admit(&ask), Ok(()));
    }

    #[test]
    fn a_token_that_can_be_guessed_is_refused() {
        assert!(Door::with("secret").unwrap_err().to_string().contains("found fewer"));
        let with_a_line = format!("{TOKEN}\n");
        assert!(Door::with(&with_a_line).unwrap_err().to_string().contains("another one"));
    }

    #[test]
    fn a_path_has_parts() {
        assert_eq!(parts("/x-nmos/node/"), ["x-nmos", "node"]);
        assert_eq!(parts("/"), [""]);
        assert_eq!(parts("/a//b"), ["a", "", "b"]);
    }
}
