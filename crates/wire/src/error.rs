//! What can go wrong in a live link.

/// Why a link could not be carried or checked.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The kernel refused.
    #[error("{doing}: {cause}")]
    Os {
        /// What was being done, to what.
        doing: String,
        /// The kernel's error.
        cause: std::io::Error,
    },
    /// A host could not be entered or queried.
    #[error(transparent)]
    Host(#[from] suiro_hosts::HostsError),
    /// The records could not be written.
    #[error(transparent)]
    Record(#[from] suiro_record::RecordError),
}

impl WireError {
    /// Wraps a kernel error.
    pub(crate) fn os<E: Into<std::io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |cause| Self::Os { doing: doing.into(), cause: cause.into() }
    }
}
