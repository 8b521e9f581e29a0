//! What follows from whether this controller leads.

use std::collections::BTreeSet;

use super::Control;
use super::leadership::Standing;
use crate::claim::Claim;
use crate::net;
use crate::nmos::Reply;

impl Control {
    /// Decides whether it leads, and reports when that changes.
    pub(super) fn decide_who_leads(&mut self) {
        let watched: BTreeSet<&str> = self.watched.keys().map(String::as_str).collect();
        let is_ready = self.has_newest_plan();
        let at = (net::monotonic(), net::tai());
        let standing = self.leadership.turn(at, self.has_lock, &watched, is_ready);
        let claim = self.leadership.claim().map(Claim::to_string);
        self.claims.send_if_modified(|own| {
            let is_news = *own != claim;
            *own = claim;
            is_news
        });
        if standing == self.standing {
            return;
        }
        let before = std::mem::replace(&mut self.standing, standing.clone());
        let led = self.leads();
        match standing {
            Standing::Leads => {
                let number = self.leadership.claim().map_or(0, Claim::number);
                let detail = format!(
                    "holds {}.lock; nodes obey it with the number {number}",
                    self.spec.file.display()
                );
                self.note("leads", None, None, &detail);
                self.lead_with_plan();
            }
            Standing::Alone => {
                let detail =
                    format!("holds {}.lock; no node answers yet", self.spec.file.display());
                self.note("leads", None, None, &detail);
            }
            Standing::CutOff => {
                self.note("follows", None, None, "no node answers: another controller may lead");
            }
            Standing::Follows(..) | Standing::Locked => {
                let is_same = |other: &Standing| {
                    std::mem::discriminant(other) == std::mem::discriminant(&before)
                };
                let leader = self.leader();
                if led || !is_same(&self.standing) || self.told_leader.as_ref() != Some(&leader) {
                    self.note(
                        "follows",
                        None,
                        None,
                        &format!("another controller leads: {leader}"),
                    );
                }
                self.told_leader = Some(leader);
            }
            Standing::Asks => {}
        }
    }

    /// Whether it acts.
    pub(super) const fn leads(&self) -> bool {
        matches!(self.standing, Standing::Leads | Standing::Alone)
    }

    /// Whether it may take a command now.
    ///
    /// # Errors
    /// The reply: who leads, or that this is not known.
    pub(super) fn may_command(&mut self) -> Result<(), Reply> {
        match self.standing {
            Standing::Alone => Ok(()),
            Standing::Leads if self.leadership.lasts(net::monotonic()) => Ok(()),
            Standing::Follows(..) | Standing::Locked => {
                let leader = self.leader();
                Err(Reply::refusal(409, format!("another controller leads: {leader}")))
            }
            Standing::Leads | Standing::Asks | Standing::CutOff => {
                let error =
                    "the nodes do not answer, or are being asked which controller leads; try again";
                Err(Reply::refusal(503, error))
            }
        }
    }

    /// Who leads, in words.
    pub(super) fn leader(&mut self) -> String {
        match &self.standing {
            Standing::Follows(node, claim) if self.has_lock => {
                let name = suiro_outside::text::printable(claim.name()).into_owned();
                format!("{name}, with another file: the node {node} obeys it")
            }
            Standing::CutOff => "not known: no node answers".to_owned(),
            _ => self.lease.holder(),
        }
    }
}
