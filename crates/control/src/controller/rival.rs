//! Which of several controllers leads. Those with one file have its lock for that; those with different files meet at the
//! nodes, which obey the first that claims them.

use crate::node::LEASE;

use super::Control;

impl Control {
    /// Leads with the lock, unless a node obeys an older controller; one that began later than this gives way itself.
    pub(super) fn decide_who_leads(&mut self) {
        let rival = self.rival();
        let leads = self.has_lock && rival.is_none();
        let claim = Some(self.claim.clone()).filter(|_| leads);
        self.claims.send_if_modified(|own| {
            let is_news = *own != claim;
            *own = claim;
            is_news
        });
        if leads && !self.leads {
            self.note("leads", None, None, &format!("holds {}.lock", self.spec.file.display()));
        } else if !leads && (self.leads || self.events.is_empty()) {
            let leader = self.leader();
            self.note("follows", None, None, &format!("another controller leads: {leader}"));
        }
        self.leads = leads;
    }

    /// Who leads, in words.
    pub(super) fn leader(&mut self) -> String {
        match self.rival().filter(|_| self.has_lock) {
            Some((node, claim)) => {
                // The claim is a time, then a name.
                let name = claim.split_once('-').map_or(claim.as_str(), |(_, name)| name);
                let name = suiro_outside::text::printable(name).into_owned();
                format!("{name}, with another file: the node {node} obeys it")
            }
            None => self.lease.holder(),
        }
    }

    /// A node that obeys an older controller, and that one's claim.
    fn rival(&self) -> Option<(String, String)> {
        let now = crate::net::monotonic();
        self.seen.iter().find_map(|(node, (asked, status))| {
            let recent = now.saturating_since(*asked) < LEASE;
            let other = status.controller.as_ref().filter(|own| recent && **own < self.claim)?;
            Some((node.clone(), other.clone()))
        })
    }
}
