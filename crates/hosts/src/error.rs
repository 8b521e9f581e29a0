//! What can go wrong while building hosts.

/// Why a host, a cable or a network could not be built.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// The kernel refused.
    #[error("{doing}: {cause}")]
    Os {
        /// What was being done, to what.
        doing: String,
        /// The kernel's error.
        cause: std::io::Error,
    },
    /// The program `ip` refused one of its lines.
    #[error("ip in {host}: `{line}`: {message}")]
    Ip {
        /// The host in whose namespace it ran.
        host: String,
        /// The line of the batch that failed; the whole batch if `ip` did not name one.
        line: String,
        /// What `ip` printed.
        message: String,
    },
    /// The network asked for cannot be built.
    #[error("{0}")]
    Spec(String),
}

impl HostsError {
    /// Wraps a kernel error; `doing` is formatted only on failure.
    pub(crate) fn os<E: Into<std::io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |cause| Self::Os { doing: doing.into(), cause: cause.into() }
    }
}
