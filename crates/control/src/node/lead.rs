//! Which controller a node obeys: the one with the greatest claim that ever reached it. It also keeps that one's plan, so that
//! the next controller follows the same. Pure.

use suiro_units::{Duration, Time};

use crate::claim::{Claim, LEASE, PlanId};
use crate::desired::BYTES_MAX;

/// Who may command a node, as long as it runs: one that starts again obeys the first claim.
#[derive(Debug, Clone, Default)]
pub(super) struct Lead {
    /// The greatest claim, and until when it lasts.
    held: Option<(Claim, Time)>,
    plan: Option<(PlanId, String)>,
}

impl Lead {
    /// A controller claims the node, or does so again. True if the node obeys it from now on; one that obeys a greater claim
    /// never goes back, also when that one has lapsed.
    pub fn claim(&mut self, claim: &Claim, now: Time) -> bool {
        let is_greatest = self.held.as_ref().is_none_or(|(held, _)| claim >= held);
        if is_greatest {
            self.held = Some((claim.clone(), now + LEASE));
        }
        is_greatest
    }

    /// The claim that it obeys, and how long that one lasts: no time at all if it has lapsed.
    pub fn held(&self, now: Time) -> Option<(&Claim, Duration)> {
        self.held.as_ref().map(|(claim, until)| (claim, until.saturating_since(now)))
    }

    /// The plan that it keeps.
    pub fn plan(&self) -> Option<(&PlanId, &str)> {
        self.plan.as_ref().map(|(id, text)| (id, text.as_str()))
    }

    /// Keeps a plan of the controller that it obeys.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn keep(&mut self, id: PlanId, text: &str, now: Time) -> Result<(), String> {
        if text.len() > BYTES_MAX {
            return Err(format!("plan: expected {BYTES_MAX} bytes at most, found {}", text.len()));
        }
        if !self.claim(&id.claim, now) {
            return Err(self.refusal());
        }
        if let Some((own, _)) = self.plan.as_ref().filter(|(own, _)| *own > id) {
            return Err(format!("plan: expected a newer one than {own}, found {id}"));
        }
        self.plan = Some((id, text.to_owned()));
        Ok(())
    }

    /// Why a smaller claim is refused.
    pub fn refusal(&self) -> String {
        let (number, name) =
            self.held.as_ref().map_or((0, ""), |(claim, _)| (claim.number(), claim.name()));
        format!("this node obeys the controller {name} with the number {number}, a newer one")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nmos::Tai;

    fn claim(number: u64) -> Claim {
        Claim::new(number, Tai::from_nanos(number), "c")
    }

    #[test]
    fn the_greatest_claim_holds_and_none_below_it_ever_again() {
        let mut lead = Lead::default();
        let at = Time::from_millis;
        assert_eq!(lead.held(at(0)), None);
        assert!(lead.claim(&claim(1), at(0)) && lead.claim(&claim(1), at(500)));
        assert_eq!(lead.held(at(900)), Some((&claim(1), Duration::from_millis(600))));
        assert!(lead.claim(&claim(2), at(900)), "a greater one is obeyed at once");
        assert!(!lead.claim(&claim(1), at(1000)));
        assert_eq!(lead.held(at(9000)), Some((&claim(2), Duration::ZERO)));
        assert!(!lead.claim(&claim(1), at(9000)), "also when the greater one has lapsed");
        assert!(lead.refusal().contains("with the number 2"));
    }

    #[test]
    fn a_plan_is_kept_until_a_newer_one_comes() {
        let mut lead = Lead::default();
        let now = Time::from_millis(1);
        let id = |number, revision| PlanId { claim: claim(number), revision };
        assert_eq!(lead.keep(id(2, 7), "a", now), Ok(()));
        assert!(lead.keep(id(2, 6), "b", now).unwrap_err().contains("expected a newer one"));
        assert!(lead.keep(id(1, 9), "b", now).unwrap_err().contains("obeys the controller c"));
        assert_eq!(lead.plan(), Some((&id(2, 7), "a")));
        assert_eq!(lead.keep(id(3, 1), "c", now), Ok(()));
        assert!(lead.keep(id(3, 2), &"x".repeat(BYTES_MAX + 1), now).is_err());
        assert_eq!(lead.plan(), Some((&id(3, 1), "c")));
    }
}
