//! Sends a body on while it comes, as fast as the fault of a request allows.

use bytes::Bytes;
use suiro_units::{BitRate, Duration, Time};
use tokio::sync::mpsc;

use super::fault::Met;
use super::object::Following;
use crate::Clock;
use crate::server::Cut;

/// How often a slow body goes on.
const STEP: Duration = Duration::from_millis(20);
/// How long the first part of a body has to leave before the body is cut off: a reset of HTTP/2 and HTTP/3 overtakes it otherwise.
const LEAVES: Duration = Duration::from_millis(20);

/// Where the pieces of a body go; one waits at most.
type Receiver = mpsc::Sender<Result<Bytes, Cut>>;

/// What a body comes from.
pub(super) enum Piecewise {
    Whole(Bytes),
    Coming(Following),
}

/// Nobody takes more of the body.
struct Over;

/// Sends a body piece by piece.
pub(super) struct Pass {
    clock: Clock,
    rate: Option<BitRate>,
    cut: bool,
    /// When a slow body may go on.
    due: Time,
    to: Receiver,
}

impl Pass {
    pub fn new(clock: Clock, fault: Option<Met>, to: Receiver) -> Self {
        let rate = match fault {
            Some(Met::Slow { rate, .. }) => rate,
            _ => None,
        };
        Self { clock, rate, cut: fault == Some(Met::Reset), due: clock.now(), to }
    }

    /// Sends all of it, or ends when the client has gone.
    pub async fn run(mut self, from: Piecewise) {
        // Whoever does not take more needs no more.
        let _ = match from {
            Piecewise::Whole(whole) => self.send(whole).await,
            Piecewise::Coming(following) => self.follow(following).await,
        };
    }

    async fn follow(&mut self, mut following: Following) -> Result<(), Over> {
        let mut next = 0;
        loop {
            let (pieces, end) = {
                let coming = following.borrow_and_update();
                let end = coming.end.as_ref().map(Result::is_ok);
                (coming.pieces[next..].to_vec(), end)
            };
            next += pieces.len();
            for piece in pieces {
                self.send(piece).await?;
            }
            match end {
                Some(true) => return Ok(()),
                // The client must not take what came for the whole.
                Some(false) => return self.put(Err(Cut)).await,
                None => {}
            }
            if following.changed().await.is_err() {
                return self.put(Err(Cut)).await;
            }
        }
    }

    async fn send(&mut self, mut piece: Bytes) -> Result<(), Over> {
        if self.cut {
            let half = piece.split_to(piece.len() / 2);
            if !half.is_empty() {
                self.put(Ok(half)).await?;
                self.clock.sleep_until(self.clock.now() + LEAVES).await;
            }
            self.put(Err(Cut)).await?;
            return Err(Over);
        }
        let Some(rate) = self.rate else { return self.put(Ok(piece)).await };
        self.due = self.due.max(self.clock.now());
        let step = usize::try_from((rate * STEP).get()).unwrap_or(usize::MAX).max(1);
        while !piece.is_empty() {
            let block = piece.split_to(step.min(piece.len()));
            self.due += suiro_units::Bytes::new(block.len() as u64) / rate;
            self.clock.sleep_until(self.due).await;
            self.put(Ok(block)).await?;
        }
        Ok(())
    }

    async fn put(&self, piece: Result<Bytes, Cut>) -> Result<(), Over> {
        self.to.send(piece).await.map_err(|_| Over)
    }
}
