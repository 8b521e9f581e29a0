//! How much work a filter may be. One loop answers all clients of a registry, and takes the heartbeats of all nodes. Pure.

use crate::nmos::Reply;

/// For one query, or a new subscription, over all resources: less than a second.
const QUERY: u64 = 1 << 29;
/// For one subscription, over changes that are reported together: each of many subscriptions looks at every change.
const CHANGES: u64 = 1 << 24;
/// For a value that is found, passed on the way to others, or compared. A pattern takes its length times that of the text.
const VALUE: u64 = 64;

/// The steps that are left.
#[derive(Debug)]
pub(in super::super) struct Steps {
    left: u64,
    is_over: bool,
}

impl Steps {
    /// Those of a query.
    pub const fn of_query() -> Self {
        Self { left: QUERY, is_over: false }
    }

    /// Those of a subscription, for changes that are reported together.
    pub const fn of_changes() -> Self {
        Self { left: CHANGES, is_over: false }
    }

    /// Takes some. False if fewer are left: then nothing that was found means anything.
    pub const fn take(&mut self, steps: u64) -> bool {
        match self.left.checked_sub(steps) {
            Some(left) => self.left = left,
            None => (self.left, self.is_over) = (0, true),
        }
        !self.is_over
    }

    /// Takes those of values.
    pub const fn take_values(&mut self, values: usize) -> bool {
        self.take(VALUE.saturating_mul(values as u64))
    }

    /// Whether they did not suffice.
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// The reply to a query for which they did not suffice.
    pub fn refusal() -> Reply {
        let error = "the query takes too long over all resources: expected fewer or shorter patterns, or fewer values";
        Reply::refusal(400, error)
    }
}
