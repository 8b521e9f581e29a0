//! Whether clients take what is sent to them over a connection that many responses share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Whether anything goes on over a connection. Its clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Requests under way.
    requests: AtomicUsize,
    /// Pieces of responses that the connection was given and has not taken.
    untaken: AtomicUsize,
    /// Counts what happens.
    events: AtomicU64,
}

/// A request under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay(Progress);

/// A piece of a response that the connection was given, until it is taken and this is dropped.
#[derive(Debug)]
pub struct Untaken(Progress);

impl Progress {
    /// A request came.
    pub(crate) fn asked(&self) -> UnderWay {
        self.0.requests.fetch_add(1, Relaxed);
        self.event();
        UnderWay(self.clone())
    }

    /// The connection is given a piece of a response.
    pub fn given(&self) -> Untaken {
        self.0.untaken.fetch_add(1, Relaxed);
        self.event();
        Untaken(self.clone())
    }

    /// Returns when for so long, or for up to twice as long, nothing was taken of what the connection has.
    pub async fn stuck(&self, within: Duration) {
        self.quiet(within, |counts| counts.untaken.load(Relaxed) > 0).await;
    }

    /// Returns when for so long, or for up to twice as long, there was no request, and nothing was left of a response to an earlier
    /// one.
    pub(crate) async fn idle(&self, within: Duration) {
        let nothing = |counts: &Counts| {
            counts.requests.load(Relaxed) == 0 && counts.untaken.load(Relaxed) == 0
        };
        self.quiet(within, nothing).await;
    }

    async fn quiet(&self, within: Duration, counts: impl Fn(&Counts) -> bool) {
        loop {
            let before = self.0.events.load(Relaxed);
            tokio::time::sleep(within).await;
            if self.0.events.load(Relaxed) == before && counts(&self.0) {
                return;
            }
        }
    }

    fn event(&self) {
        self.0.events.fetch_add(1, Relaxed);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.requests.fetch_sub(1, Relaxed);
        self.0.event();
    }
}

impl Drop for Untaken {
    fn drop(&mut self) {
        self.0.0.untaken.fetch_sub(1, Relaxed);
        self.0.event();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{sleep, timeout};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_noticed_and_who_takes_little_is_not() {
        let progress = Progress::default();
        let one = progress.given();
        let slow = async {
            for _ in 0..10 {
                sleep(MINUTE - Duration::from_secs(1)).await;
                drop(progress.given());
            }
        };
        tokio::select! {
            biased;
            () = progress.stuck(MINUTE) => panic!("another response is taken"),
            () = slow => {}
        }
        assert!(timeout(3 * MINUTE, progress.stuck(MINUTE)).await.is_ok());
        drop(one);
        assert!(timeout(10 * MINUTE, progress.stuck(MINUTE)).await.is_err(), "all is taken");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_requests_is_idle_and_one_that_waits_for_an_answer_is_not() {
        let progress = Progress::default();
        let request = progress.asked();
        assert!(timeout(10 * MINUTE, progress.idle(MINUTE)).await.is_err());
        drop(request);
        assert!(timeout(3 * MINUTE, progress.idle(MINUTE)).await.is_ok());
    }
}
