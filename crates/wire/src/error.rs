//! What can go wrong on the wire.

/// Why a link could not be carried or checked.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The kernel refused.
    #[error("{doing}: {source}")]
    Os {
        /// What was being done, to what.
        doing: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A host could not be entered or asked.
    #[error(transparent)]
    Host(#[from] suiro_hosts::HostsError),
    /// The records could not be written.
    #[error(transparent)]
    Record(#[from] suiro_record::RecordError),
}

impl WireError {
    /// Wraps what the kernel said.
    pub(crate) fn os<E: Into<std::io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |source| Self::Os { doing: doing.into(), source: source.into() }
    }
}
