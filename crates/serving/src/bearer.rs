//! Bearer tokens (RFC 6750). Pure.

/// Why a request is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// It has no bearer token.
    Missing,
    /// Its token is another.
    Another,
}

impl Denied {
    /// What `WWW-Authenticate` says (RFC 6750 §3).
    pub const fn challenge(self) -> &'static str {
        match self {
            Self::Missing => "Bearer",
            Self::Another => "Bearer error=\"invalid_token\"",
        }
    }
}

/// Checks the header `Authorization`, if there is one (RFC 6750 §2.1), against the expected token.
///
/// # Errors
/// [`Denied`].
pub fn check(authorization: Option<&str>, token: &str) -> Result<(), Denied> {
    let given = authorization.and_then(|header| {
        let (scheme, given) = header.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| given.trim())
    });
    match given {
        Some(given) if is_same(given, token) => Ok(()),
        Some(_) => Err(Denied::Another),
        None => Err(Denied::Missing),
    }
}

/// Compares in a time that does not depend on how much is the same.
fn is_same(given: &str, token: &str) -> bool {
    let differences = given.bytes().zip(token.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    given.len() == token.len() && differences == 0
}
