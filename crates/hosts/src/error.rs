//! What can go wrong while hosts are made.

/// Why a host, a cable or a network could not be made.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// The kernel refused.
    #[error("{doing}: {source}")]
    Os {
        /// What was being done, to what.
        doing: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The program `ip` refused one of its lines.
    #[error("ip in {host}: `{line}`: {message}")]
    Ip {
        /// The host in whose namespace it ran.
        host: String,
        /// The line of the batch that failed; all of it if `ip` did not say which.
        line: String,
        /// What `ip` said.
        message: String,
    },
    /// The network asked for cannot be built.
    #[error("{0}")]
    Spec(String),
}

impl HostsError {
    /// Wraps what the kernel said; `doing` is only written out on failure.
    pub(crate) fn os<E: Into<std::io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |source| Self::Os { doing: doing.into(), source: source.into() }
    }
}
