//! Who may come in, and what every API answers alike: bearer tokens (BCP-003-02, RFC 6750), pre-flight requests. Pure.

use super::{Ask, Reply};

/// Fewest characters of a token: 128 bits in base64.
pub const TOKEN_MIN: usize = 22;

/// Who may use an API.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Door {
    token: Option<String>,
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
        Self { token: None }
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
        Ok(Self { token: Some(token.to_owned()) })
    }

    /// Whether a token is asked for.
    pub const fn is_closed(&self) -> bool {
        self.token.is_some()
    }

    /// Lets a request in, or answers it.
    ///
    /// # Errors
    /// The reply: to a pre-flight request, or 401 with its challenge (RFC 6750 §3).
    pub fn admit(&self, ask: &Ask) -> Result<(), Reply> {
        // A page of another origin asks first whether it may, without credentials (Fetch §3.3.5).
        if ask.method == "OPTIONS" {
            return Err(Reply::empty(200));
        }
        let Some(token) = &self.token else { return Ok(()) };
        let given = ask.authorization.as_deref().and_then(|header| {
            let (scheme, given) = header.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| given.trim())
        });
        let (error, challenge) = match given {
            Some(given) if is_same(given, token) => return Ok(()),
            Some(_) => {
                ("the bearer token is not the configured one", "Bearer error=\"invalid_token\"")
            }
            None => ("expected the header `Authorization: Bearer TOKEN`", "Bearer"),
        };
        Err(Reply::refusal(401, error).with("www-authenticate", challenge))
    }
}

/// Compares in a time that does not depend on how much is the same.
fn is_same(given: &str, token: &str) -> bool {
    let differences = given.bytes().zip(token.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    given.len() == token.len() && differences == 0
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
