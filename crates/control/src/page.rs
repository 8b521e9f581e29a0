//! The controller's page: one file, made from `web/control` by `npm run build`.

use crate::nmos::Reply;

/// The page.
const PAGE: &str = include_str!("../page.html");

/// It runs nothing but itself, and talks to its own server only.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The reply with the page.
pub fn reply() -> Reply {
    Reply::text("text/html; charset=utf-8", PAGE.to_owned())
        .with("content-security-policy", POLICY)
        .with("cache-control", "no-store")
        .with("referrer-policy", "no-referrer")
}
