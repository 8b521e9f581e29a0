//! The versions of HTTP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum HttpVersion {
    /// RFC 9112: over TCP, one request at a time on a connection.
    #[default]
    #[serde(rename = "1.1")]
    Http1,
    /// RFC 9113: over TLS and TCP, many requests at a time on a connection.
    #[serde(rename = "2")]
    Http2,
    /// RFC 9114: over QUIC; a lost packet delays only the requests whose data was in it.
    #[serde(rename = "3")]
    Http3,
}

impl HttpVersion {
    /// Its name, as scenarios write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "1.1",
            Self::Http2 => "2",
            Self::Http3 => "3",
        }
    }

    /// Whether it runs over TLS here, with a certificate of the server.
    pub const fn is_secure(self) -> bool {
        !matches!(self, Self::Http1)
    }

    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
