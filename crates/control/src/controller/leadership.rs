//! Whether this controller leads: decided from what nodes say of the controllers that they obey. Pure.
//!
//! A controller leads by a claim that nodes obey. While it asks them, its claim lasts there for [`LEASE`]; another controller
//! makes a greater claim only when no node has one that lasts. One that no node has obeyed for that time has lost its own: it
//! was suspended or cut off, and others may lead.

use std::collections::{BTreeMap, BTreeSet};

use suiro_units::{Duration, Time};

use crate::claim::{Claim, LEASE};
use crate::nmos::Tai;

/// How long no node must answer until a controller that has never met another one goes on as if it had never had any.
const FORSAKEN: Duration = Duration::from_secs(3);

/// What a controller may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// No node answers yet, and no other controller is known: it takes commands.
    Alone,
    /// Nodes obey it.
    Leads,
    /// It asks nodes whom they obey.
    Asks,
    /// No node answers any more: another controller may lead.
    CutOff,
    /// Another controller has the lock of its file.
    Locked,
    /// This node obeys another controller.
    Follows(String, Claim),
}

/// What a node said last.
#[derive(Debug, Clone)]
struct View {
    /// When it was asked.
    asked: Time,
    /// Whether it answers; if not, its connection was closed.
    answers: bool,
    /// Whom it obeys, and until when that claim lasts.
    obeys: Option<(Claim, Time)>,
}

/// What a controller knows of who leads.
#[derive(Debug)]
pub(super) struct Leadership {
    name: String,
    claim: Option<Claim>,
    /// The greatest number of a claim that was ever seen.
    number: u64,
    /// When a node that obeyed the claim was asked last.
    confirmed: Time,
    /// What nodes say of whom they obey counts if they were asked since then.
    since: Time,
    /// When the first node answered since then.
    first: Option<Time>,
    /// When a node answered last.
    answered: Option<Time>,
    nodes: BTreeMap<String, View>,
    /// Whether another controller was ever met.
    met: bool,
}

impl Leadership {
    /// Of a controller that begins now.
    pub fn new(name: &str, now: Time) -> Self {
        Self {
            name: name.to_owned(),
            claim: None,
            number: 0,
            confirmed: now,
            since: now,
            first: None,
            answered: None,
            nodes: BTreeMap::new(),
            met: false,
        }
    }

    /// The claim that nodes are asked to obey.
    pub const fn claim(&self) -> Option<&Claim> {
        self.claim.as_ref()
    }

    /// A node answered: whom it obeys, and how long that claim lasts.
    pub fn heard(&mut self, node: &str, asked: Time, now: Time, obeys: Option<(&Claim, Duration)>) {
        if let Some((claim, _)) = obeys {
            self.number = self.number.max(claim.number());
            if self.claim.as_ref() == Some(claim) {
                self.confirmed = self.confirmed.max(asked);
            }
        }
        if asked >= self.since {
            self.first.get_or_insert(now);
        }
        self.answered = Some(now);
        let obeys = obeys.map(|(claim, lasts)| (claim.clone(), now + lasts));
        self.nodes.insert(node.to_owned(), View { asked, answers: true, obeys });
    }

    /// The connection to a node is closed: the node obeys no controller that is known.
    pub fn closed(&mut self, node: &str, asked: Time) {
        self.nodes.insert(node.to_owned(), View { asked, answers: false, obeys: None });
    }

    /// Whether the own claim still lasts, with the nodes' last answers. A controller that was suspended may ask before its next
    /// turn.
    pub fn lasts(&self, now: Time) -> bool {
        self.claim.is_some() && now.saturating_since(self.confirmed) < LEASE
    }

    /// Decides anew. `watched` are the nodes that are asked; `is_ready` says whether this controller knows the newest plan.
    pub fn turn(
        &mut self,
        (now, tai): (Time, Tai),
        has_lock: bool,
        watched: &BTreeSet<&str>,
        is_ready: bool,
    ) -> Standing {
        self.nodes.retain(|node, _| watched.contains(node.as_str()));
        let others = self.nodes.iter().filter_map(|(node, view)| {
            let (claim, until) = view.obeys.as_ref()?;
            (self.claim.as_ref() != Some(claim)).then_some((node, claim, *until))
        });
        let greatest = others.max_by_key(|(_, claim, until)| (*until > now, *claim));
        let greatest = greatest.map(|(node, claim, until)| (node.clone(), claim.clone(), until));
        let is_outdone = greatest
            .as_ref()
            .is_some_and(|(_, other, _)| self.claim.as_ref().is_some_and(|own| other > own));
        if self.claim.is_some() && (is_outdone || !self.lasts(now)) {
            self.claim = None;
            self.ask_again(now);
        }
        if self.claim.is_some() {
            // A smaller claim that lasts elsewhere gives way as soon as that controller reads this one.
            return Standing::Leads;
        }
        if let Some((node, claim, _)) = greatest.filter(|(_, _, until)| *until > now) {
            self.met = true;
            self.ask_again(now);
            return Standing::Follows(node, claim);
        }
        if !has_lock {
            self.met = true;
            self.ask_again(now);
            return Standing::Locked;
        }
        self.stand((now, tai), watched, is_ready)
    }

    /// Nobody leads, as far as is known.
    fn stand(
        &mut self,
        (now, tai): (Time, Tai),
        watched: &BTreeSet<&str>,
        is_ready: bool,
    ) -> Standing {
        let Some(first) = self.first else {
            let is_forsaken = self.answered.is_none_or(|at| now.saturating_since(at) > FORSAKEN);
            return if is_forsaken && !self.met { Standing::Alone } else { Standing::CutOff };
        };
        let is_asked =
            |node: &&str| self.nodes.get(*node).is_some_and(|view| view.asked >= self.since);
        // One that is silent is not waited for longer than its claim could last.
        let is_complete = watched.iter().all(is_asked);
        if !is_ready || !(is_complete || now.saturating_since(first) > LEASE) {
            return Standing::Asks;
        }
        if !self.nodes.values().any(|view| view.answers && view.asked >= self.since) {
            self.ask_again(now);
            return Standing::Asks;
        }
        self.number = self.number.saturating_add(1);
        self.claim = Some(Claim::new(self.number, tai, &self.name));
        self.confirmed = now;
        Standing::Leads
    }

    fn ask_again(&mut self, now: Time) {
        (self.since, self.first) = (now, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKED: bool = true;

    /// Controllers and nodes that exchange everything at once, with the nodes' own rule.
    struct World {
        now: u64,
        nodes: BTreeMap<&'static str, (Option<Claim>, Time)>,
    }

    impl World {
        fn new() -> Self {
            let nodes = ["n1", "n2", "n3"].map(|node| (node, (None, Time::ZERO)));
            Self { now: 0, nodes: nodes.into() }
        }

        fn at(&self) -> (Time, Tai) {
            (Time::from_millis(self.now), Tai::from_nanos(self.now))
        }

        /// A controller asks the nodes that it reaches, then decides.
        fn turn(&mut self, own: &mut Leadership, reaches: &[&'static str]) -> Standing {
            let (now, tai) = self.at();
            for node in reaches {
                let (held, until) = self.nodes.get_mut(node).unwrap();
                if let Some(claim) =
                    own.claim().filter(|own| held.as_ref().is_none_or(|held| *own >= held))
                {
                    (*held, *until) = (Some(claim.clone()), now + LEASE);
                }
                let obeys = held.as_ref().map(|claim| (claim, until.saturating_since(now)));
                own.heard(node, now, now, obeys);
            }
            own.turn((now, tai), LOCKED, &self.nodes.keys().copied().collect(), true)
        }
    }

    const ALL: [&str; 3] = ["n1", "n2", "n3"];

    fn is_leading(standing: &Standing) -> bool {
        *standing == Standing::Leads
    }

    #[test]
    fn one_that_was_suspended_follows_the_one_that_took_over() {
        let mut world = World::new();
        let mut one = Leadership::new("one", Time::ZERO);
        let mut two = Leadership::new("two", Time::ZERO);
        assert!(is_leading(&world.turn(&mut one, &ALL)));
        world.turn(&mut one, &ALL);
        // The second one never challenges the first.
        for _ in 0..300 {
            world.now += 20;
            assert!(is_leading(&world.turn(&mut one, &ALL)));
            assert!(
                matches!(world.turn(&mut two, &ALL), Standing::Follows(_, claim) if claim.name() == "one")
            );
        }
        // The first one is suspended: the second one waits for its lease to end, no longer.
        let from = world.now;
        while !is_leading(&world.turn(&mut two, &ALL)) {
            world.now += 20;
        }
        assert_eq!(world.now - from, 1000, "one lease");
        // Resumed, the first one does not believe that it leads before it has asked anybody.
        let (now, _) = world.at();
        assert!(!one.lasts(now));
        for _ in 0..300 {
            world.now += 20;
            assert!(is_leading(&world.turn(&mut two, &ALL)));
            assert!(
                matches!(world.turn(&mut one, &ALL), Standing::Follows(_, claim) if claim.name() == "two")
            );
        }
    }

    #[test]
    fn one_that_is_cut_off_leads_again_when_nobody_else_does() {
        let mut world = World::new();
        let mut one = Leadership::new("one", Time::ZERO);
        assert!(is_leading(&world.turn(&mut one, &ALL)));
        for _ in 0..60 {
            world.now += 20;
            world.turn(&mut one, &[]);
        }
        assert_eq!(world.turn(&mut one, &[]), Standing::CutOff);
        world.now += 4000;
        assert_eq!(world.turn(&mut one, &[]), Standing::Alone, "it has never met another one");
        world.now += 20;
        assert!(is_leading(&world.turn(&mut one, &ALL)));
        assert_eq!(one.claim().unwrap().number(), 2);
    }

    #[test]
    fn of_two_that_begin_at_once_one_remains() {
        let mut world = World::new();
        let mut one = Leadership::new("one", Time::ZERO);
        let mut two = Leadership::new("two", Time::ZERO);
        // Both read the nodes before either claims them.
        for (own, name) in [(&mut one, "one"), (&mut two, "two")] {
            for node in ALL {
                own.heard(node, Time::ZERO, Time::ZERO, None);
            }
            let standing = own.turn((Time::ZERO, Tai::from_nanos(0)), LOCKED, &ALL.into(), true);
            assert!(is_leading(&standing), "{name}");
        }
        world.now = 20;
        world.turn(&mut one, &ALL);
        assert!(is_leading(&world.turn(&mut two, &ALL)));
        world.now = 40;
        assert!(matches!(world.turn(&mut one, &ALL), Standing::Follows(..)));
        assert!(is_leading(&world.turn(&mut two, &ALL)));
    }

    #[test]
    fn a_silent_node_delays_a_takeover_by_a_lease_and_a_dead_one_not_at_all() {
        let mut world = World::new();
        let mut own = Leadership::new("own", Time::ZERO);
        world.now = 20;
        assert_eq!(world.turn(&mut own, &["n1", "n2"]), Standing::Asks);
        world.now = 900;
        assert_eq!(world.turn(&mut own, &["n1", "n2"]), Standing::Asks);
        let mut other = Leadership::new("other", Time::ZERO);
        other.closed("n3", Time::from_millis(1));
        assert!(is_leading(&world.turn(&mut other, &["n1", "n2"])), "n3 is known to be dead");
        let mut world = World::new();
        world.now = 1100;
        assert_eq!(world.turn(&mut own, &["n1", "n2"]), Standing::Leads);
    }

    #[test]
    fn none_leads_without_the_newest_plan_or_the_lock() {
        let mut own = Leadership::new("own", Time::ZERO);
        own.heard("n1", Time::ZERO, Time::ZERO, None);
        let mut turn = |has_lock, is_ready| {
            own.turn((Time::ZERO, Tai::from_nanos(0)), has_lock, &["n1"].into(), is_ready)
        };
        assert_eq!(turn(true, false), Standing::Asks);
        assert_eq!(turn(false, true), Standing::Locked);
    }
}
