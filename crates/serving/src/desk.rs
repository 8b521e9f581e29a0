//! Requests that are answered by one loop, which owns what they are about.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

/// A request that waits for its reply.
#[derive(Debug)]
pub struct Waiting<Ask, Reply> {
    /// The request.
    pub ask: Ask,
    /// Where the reply goes.
    pub reply: oneshot::Sender<Reply>,
}

/// Hands a request to the loop that takes them from `desk`, and waits for its reply. `None` if as many requests wait as the
/// desk has room for, or if the loop has not answered within `patience`.
pub async fn answered<Ask, Reply>(
    desk: &mpsc::Sender<Waiting<Ask, Reply>>,
    ask: Ask,
    patience: Duration,
) -> Option<Reply> {
    let (reply, answered) = oneshot::channel();
    desk.try_send(Waiting { ask, reply }).ok()?;
    tokio::time::timeout(patience, answered).await.ok()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_full_desk_and_a_loop_that_is_silent_give_no_reply() {
        let (desk, mut asked) = mpsc::channel(1);
        let patience = Duration::from_secs(5);
        let (first, ()) = tokio::join!(answered(&desk, 1, patience), async {
            let Waiting { ask, reply } = asked.recv().await.unwrap();
            reply.send(ask + 1).unwrap();
        });
        assert_eq!(first, Some(2));
        assert_eq!(answered(&desk, 3, patience).await, None, "no loop has taken it");
        assert_eq!(answered(&desk, 4, patience).await, None, "the desk is full");
    }
}
