//! The link's verdicts and causes as the words in records.

use suiro_link::{Cause, Verdict};
use suiro_record::words::{LinkCause, Verdict as Word};

/// What happened to a packet.
pub(crate) const fn verdict(verdict: &Verdict) -> Word {
    match verdict {
        Verdict::Delivered { .. } => Word::Delivered,
        Verdict::Dropped(_) => Word::Dropped,
        Verdict::Queued => Word::Queued,
    }
}

/// Why it was dropped, or how it was altered; `None` for a plain delivery.
pub(crate) const fn cause(verdict: &Verdict) -> Option<LinkCause> {
    match verdict {
        Verdict::Dropped(cause) => Some(dropped(*cause)),
        Verdict::Delivered { corruption: Some(_), .. } => Some(LinkCause::Corrupt),
        Verdict::Delivered { duplicate: true, .. } => Some(LinkCause::Duplicate),
        Verdict::Delivered { .. } | Verdict::Queued => None,
    }
}

/// Why a packet was dropped.
pub(crate) const fn dropped(cause: Cause) -> LinkCause {
    match cause {
        Cause::Loss => LinkCause::Loss,
        Cause::Queue => LinkCause::Queue,
        Cause::Aqm => LinkCause::Aqm,
        Cause::Size => LinkCause::Size,
        Cause::Retry => LinkCause::Retry,
        Cause::Lifetime => LinkCause::Lifetime,
        Cause::Collisions => LinkCause::Collisions,
        Cause::Limit => LinkCause::Limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_and_its_records_name_causes_alike() {
        for cause in Cause::ALL {
            assert_eq!(dropped(cause).name(), cause.name());
        }
    }
}
