//! One GET for a program that plays by itself: the manifest that says what its requests mean.

use std::path::Path;
use std::time::Duration as StdDuration;

use bytes::{Bytes, BytesMut};
use hyper::header::{ACCEPT_ENCODING, HeaderValue, USER_AGENT};
use suiro_scenario::{Download, HttpVersion};
use tokio::time::timeout;

use super::failure::{FetchError, whole};
use super::wire::Transport;
use crate::coding::{Coding, GZIP};
use crate::{Clock, Url};

/// What it calls itself: not a client of ours, so that the server records its connection.
const AGENT: HeaderValue = HeaderValue::from_static("suiro-reader");

/// Where a document is, and how it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What the user named: its host may be of this machine.
    pub home: &'a Url,
    /// The document.
    pub url: &'a Url,
    /// The version of HTTP that is spoken there.
    pub http: HttpVersion,
    /// The file with the only certificate that is trusted, for HTTP/2 and HTTP/3.
    pub certificate: &'a Path,
}

/// Reads a document of at most `bytes_max` bytes, on a connection of its own. Redirects are not followed.
///
/// # Errors
/// What went wrong, in words: the connection, a status that is not 2xx, a body that is too long, or that did not come within
/// `within`.
pub async fn get(
    asked: Asked<'_>,
    clock: Clock,
    bytes_max: usize,
    within: StdDuration,
) -> Result<Bytes, String> {
    match timeout(within, read(asked, clock, bytes_max)).await {
        Ok(read) => read.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", within.as_secs())),
    }
}

async fn read(asked: Asked<'_>, clock: Clock, bytes_max: usize) -> Result<Bytes, FetchError> {
    let Asked { home, url, http, certificate } = asked;
    let transport = Transport::new(Download::Segment, None, http, certificate, clock);
    let (mut connection, _) = transport.connect(url, (home, None)).await?;
    let headers = [(USER_AGENT, AGENT), (ACCEPT_ENCODING, GZIP)];
    let response = connection.send(url, None, &headers).await?;
    if !response.status().is_success() {
        return Err(FetchError::Status(response.status().as_u16()));
    }
    let coding = Coding::of(response.headers(), true)?;
    let mut body = response.into_body();
    let length = body.length();
    let mut kept = BytesMut::new();
    while let Some((data, _)) = body.data().await? {
        if kept.len() + data.len() > bytes_max {
            return Err(FetchError::TooLarge(bytes_max as u64));
        }
        kept.extend_from_slice(&data);
    }
    whole(kept.len() as u64, length)?;
    Ok(coding.decode(kept.freeze(), bytes_max as u64)?)
}
