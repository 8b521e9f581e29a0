//! One task for each node: it asks for the node's status again and again over one connection.

use std::time::Duration as StdDuration;

use suiro_units::Time;
use tokio::sync::{mpsc, watch};

use crate::client::{Base, Client, ClientError, Manners};
use crate::net;
use crate::nmos::Ask;
use crate::node::Status;

/// What was heard of a node.
#[derive(Debug)]
pub struct Heard {
    /// Its name.
    pub node: String,
    /// When it was asked, on the monotonic clock: what it says is no older.
    pub asked: Time,
    /// What it said, or why nothing was heard.
    pub said: Result<Status, Silence>,
}

/// Why nothing was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Silence {
    /// There is no connection, or it was closed.
    Closed(String),
    /// No answer in time.
    Late,
    /// It is not the node that was expected, or its answer cannot be read.
    Strange(String),
}

/// How long a node may take to answer before it is asked over another connection: at least, and at most. TCP sends a lost
/// request again after 200 ms, in which a node that is well would count as silent.
const PATIENCE: [StdDuration; 2] = [StdDuration::from_millis(20), StdDuration::from_millis(500)];
/// How long an answer is waited for: four times as long as answers take, and twice as long after each that did not come.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// How long answers take: a running mean with gain 1/8.
    usual: StdDuration,
    /// How many in a row did not come.
    late: u32,
}

impl Patience {
    fn now(self) -> StdDuration {
        let [least, most] = PATIENCE;
        ((self.usual * 4).max(least) * (1 << self.late.min(5))).min(most)
    }

    /// An answer took so long, or did not come.
    fn took(&mut self, time: Option<StdDuration>) {
        match time {
            Some(time) => {
                self.usual = self.usual * 7 / 8 + time / 8;
                self.late = 0;
            }
            None => self.late = self.late.saturating_add(1),
        }
    }
}

/// How long to wait before a connection is tried again.
const PAUSE: StdDuration = StdDuration::from_millis(250);

/// Asks a node periodically, until the receiver of its answers is gone. As long as `claim` has one, the node is asked to obey
/// it.
pub async fn run(
    node: String,
    base: Base,
    manners: Manners,
    every: StdDuration,
    claim: watch::Receiver<Option<String>>,
    tell: mpsc::Sender<Heard>,
) {
    let mut client = Client::new(base, manners);
    let mut patience = Patience { usual: StdDuration::ZERO, late: 0 };
    let mut tick = net::every(every);
    loop {
        tick.tick().await;
        let claim = claim.borrow().as_deref().map(|claim| format!("/{claim}")).unwrap_or_default();
        let ask = Ask::read(&format!("/x-suiro/node/v1.0/status{claim}"));
        let asked = net::monotonic();
        let answered = client.ask(&ask, patience.now()).await;
        patience.took(answered.is_ok().then(|| net::monotonic().saturating_since(asked).into()));
        let said = match answered {
            Ok(reply) if reply.status == 200 => {
                Status::parse(&node, &reply.body).map_err(Silence::Strange)
            }
            Ok(reply) => {
                Err(Silence::Strange(format!("status {}: {}", reply.status, reply.reason())))
            }
            Err(ClientError::Late(_)) => Err(Silence::Late),
            Err(error) => Err(Silence::Closed(error.to_string())),
        };
        let is_late = matches!(said, Err(Silence::Late));
        let failed = said.is_err() && !is_late;
        if is_late {
            tick.reset_immediately();
        }
        if tell.send(Heard { node: node.clone(), asked, said }).await.is_err() {
            return;
        }
        if failed {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_follows_answers_and_grows_without_them() {
        let ms = StdDuration::from_millis;
        let mut patience = Patience { usual: StdDuration::ZERO, late: 0 };
        assert_eq!(patience.now(), ms(20));
        patience.took(None);
        patience.took(None);
        assert_eq!(patience.now(), ms(80));
        (0..40).for_each(|_| patience.took(None));
        assert_eq!(patience.now(), ms(500));
        // A busy node that takes 30 ms is not asked twice.
        (0..100).for_each(|_| patience.took(Some(ms(30))));
        assert!((ms(115)..=ms(120)).contains(&patience.now()), "{:?}", patience.now());
    }
}
