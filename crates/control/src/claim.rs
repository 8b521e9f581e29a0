//! Which controller leads, as nodes and controllers write it: the claim of a controller, and the plan that it follows. Pure.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use suiro_units::Duration;

use crate::nmos::Tai;

/// How long a claim lasts after it was last repeated.
pub const LEASE: Duration = Duration::from_secs(1);
/// Longest claim as text, in bytes.
const BYTES_MAX: usize = 128;
/// Longest name of a controller in a claim.
const NAME_MAX: usize = 60;

/// A controller's claim to command nodes. Of two claims the greater one is obeyed: the one with the greater number, of two
/// with one number the later one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(with = "String"))]
pub struct Claim {
    number: u64,
    since: Tai,
    name: String,
}

impl Claim {
    /// The claim of a controller with this name, made at a time. `number` is greater than that of every claim that it knows.
    pub fn new(number: u64, since: Tai, name: &str) -> Self {
        let named = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
        Self { number, since, name: named.take(NAME_MAX).collect() }
    }

    /// Its number: a node that has obeyed it obeys no smaller one.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The name of the controller.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.number, self.since.as_nanos(), self.name)
    }
}

impl FromStr for Claim {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "a claim, NUMBER-NANOSECONDS-NAME";
        let number = |digits: &str| -> Option<u64> {
            let is_plain = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
            is_plain.then(|| digits.parse().ok())?
        };
        let mut parts = text.splitn(3, '-');
        let mut next = || parts.next().ok_or(EXPECTED);
        let (first, second, name) = (next()?, next()?, next()?);
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if text.len() > BYTES_MAX || name.len() > NAME_MAX || !name.chars().all(fits) {
            return Err(EXPECTED);
        }
        let (first, second) = number(first).zip(number(second)).ok_or(EXPECTED)?;
        Ok(Self { number: first, since: Tai::from_nanos(second), name: name.to_owned() })
    }
}

impl TryFrom<String> for Claim {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Claim> for String {
    fn from(claim: Claim) -> Self {
        claim.to_string()
    }
}

/// Which version of the desired state: of two, the greater one is the newer one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanId {
    /// The claim of the controller that made it.
    pub claim: Claim,
    /// Counts its changes.
    pub revision: u64,
}

impl fmt::Display for PlanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.claim, self.revision)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claim(number: u64, since: u64, name: &str) -> Claim {
        Claim::new(number, Tai::from_nanos(since), name)
    }

    #[test]
    fn the_number_decides_then_the_time() {
        assert!(claim(2, 1, "a") > claim(1, 9, "b"));
        assert!(claim(10, 1, "a") > claim(9, 1, "a"), "numbers, not texts");
        assert!(claim(1, 2, "a") > claim(1, 1, "b"));
        assert_eq!(claim(1, 9, "ops/2 north").to_string(), "1-9-ops-2-north");
    }

    #[test]
    fn what_is_no_claim_is_refused() {
        for wrong in [
            "",
            "1",
            "1-2",
            "-1-2-a",
            "1--a",
            "1-2-ä",
            "1-2-a/b",
            "+1-2-a",
            "99999999999999999999-1-a",
        ] {
            assert!(wrong.parse::<Claim>().is_err(), "{wrong}");
        }
        assert!(format!("1-2-{}", "x".repeat(NAME_MAX + 1)).parse::<Claim>().is_err());
        assert_eq!("1-2-".parse(), Ok(claim(1, 2, "")));
    }

    proptest! {
        #[test]
        fn every_claim_comes_back(number: u64, since: u64, name: String) {
            let claim = claim(number, since, &name);
            prop_assert_eq!(claim.to_string().parse(), Ok(claim));
        }
    }
}
