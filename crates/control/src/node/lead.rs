//! Which controller a node obeys, if controllers with different files want to command it: the one that claimed it first, as
//! long as it keeps asking. Pure.

use suiro_units::{Duration, Time};

use crate::nmos::Tai;

/// How long a claim lasts after it was last repeated.
pub const LEASE: Duration = Duration::from_secs(1);
/// Longest claim, in bytes.
const BYTES_MAX: usize = 128;

/// The claim of a controller: when it was started, and its name. Of two claims the smaller one is the older one.
pub fn claim(since: Tai, name: &str) -> String {
    let named = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let named: String = named.take(60).collect();
    format!("{:020}-{named}", since.as_nanos())
}

/// Who may command a node.
#[derive(Debug, Clone, Default)]
pub(super) struct Lead {
    held: Option<(String, Time)>,
}

impl Lead {
    /// A controller claims the node, or does so again. It has it unless another one's claim still lasts.
    pub fn claim(&mut self, claim: &str, now: Time) {
        let is_held = self.holder(now).is_some_and(|holder| holder != claim);
        if !is_held && claim.len() <= BYTES_MAX {
            self.held = Some((claim.to_owned(), now + LEASE));
        }
    }

    /// The claim that lasts.
    pub fn holder(&self, now: Time) -> Option<&str> {
        self.held.as_ref().filter(|(_, until)| now < *until).map(|(claim, _)| claim.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_claim_holds_as_long_as_it_is_repeated() {
        let mut lead = Lead::default();
        let at = Time::from_millis;
        assert_eq!(lead.holder(at(0)), None);
        lead.claim("a", at(0));
        lead.claim("b", at(500));
        lead.claim("a", at(900));
        lead.claim("b", at(1500));
        assert_eq!(lead.holder(at(1899)), Some("a"));
        lead.claim("b", at(1900));
        assert_eq!(lead.holder(at(1900)), Some("b"));
        lead.claim(&"c".repeat(BYTES_MAX + 1), at(5000));
        assert_eq!(lead.holder(at(5000)), None);
    }

    #[test]
    fn the_older_claim_is_the_smaller_one_and_stands_in_a_path() {
        let (old, new) =
            (claim(Tai::from_nanos(9), "ops/2 north"), claim(Tai::from_nanos(10), "a"));
        assert!(old < new);
        assert_eq!(old, "00000000000000000009-ops-2-north");
    }
}
