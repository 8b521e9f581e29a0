//! Whose turn it is among the responses on a connection of HTTP/2.
//!
//! h2 sends what it has of several responses in turns. So it is given a response piece by piece, and nothing more of it while one of a
//! higher rank has something to send.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::{Request, Version};
use tokio::time::Sleep;

use crate::progress::{Progress, UnderWay, Untaken};

/// What h2 is given at once: the content of a frame (RFC 9113 §4.2).
const PIECE: usize = 16 << 10;
/// A response of which the connection takes nothing for so long, because its client does not, keeps no others waiting. On a link
/// with less than 65 kbit/s for each response that h2 has something of, a piece takes longer: there, less urgent ones go on.
const PATIENCE: Duration = Duration::from_secs(2);

/// Which request of its connection it is, from 0; an extension of requests over HTTP/2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number(pub u64);

/// The rank of a response over HTTP/2, among its extensions: the highest is sent first, and responses of the same take turns. 0
/// without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank(pub i32);

/// The turns of one connection. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns {
    shared: Arc<Mutex<State>>,
    progress: Progress,
}

#[derive(Debug, Default)]
struct State {
    requests: u64,
    /// Counts what h2 is given and takes.
    events: u64,
    /// Responses that have something to send.
    ready: BTreeMap<u64, Ready>,
    /// Those of them that wait for their turn.
    waiting: BTreeMap<u64, Waker>,
}

#[derive(Debug)]
struct Ready {
    rank: i32,
    /// The event with which h2 was given a piece, until it asks for more.
    given: Option<u64>,
    /// It keeps no others waiting.
    passed_over: bool,
}

impl Turns {
    /// The turn of a request, which gets its number; `None` if it is not of HTTP/2.
    pub fn next(&self, request: &mut Request<impl Sized>) -> Option<Turn> {
        if request.version() != Version::HTTP_2 {
            return None;
        }
        let mut state = self.lock();
        let number = state.requests;
        state.requests += 1;
        request.extensions_mut().insert(Number(number));
        let under_way = self.progress.asked();
        let turns = self.clone();
        Some(Turn { turns, number, rank: 0, patience: None, _under_way: under_way })
    }

    /// Whether anything goes on over the connection.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock().expect("no holder panics")
    }
}

impl State {
    fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    /// Responses that go before one of this rank.
    fn before(&mut self, rank: i32) -> impl Iterator<Item = &mut Ready> {
        self.ready.values_mut().filter(move |other| other.rank > rank && !other.passed_over)
    }

    /// Everybody who waits looks again.
    fn wake(&mut self) {
        std::mem::take(&mut self.waiting).into_values().for_each(Waker::wake);
    }
}

/// When a response may send. It lasts as long as the response.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Turns,
    number: u64,
    rank: i32,
    /// Runs while it waits; with the last event before that.
    patience: Option<(Pin<Box<Sleep>>, u64)>,
    _under_way: UnderWay,
}

impl Turn {
    /// h2 asks for more: it has taken what it was given.
    fn taken(&self) {
        let mut state = self.turns.lock();
        let Some(own) = state.ready.get_mut(&self.number) else { return };
        if own.given.take().is_some() {
            own.passed_over = false;
            state.event();
        }
    }

    /// A piece as h2 gets it.
    fn given(&self, piece: Bytes) -> Bytes {
        Bytes::from_owner(Given { piece, _untaken: self.turns.progress.given() })
    }

    /// Ready when h2 may be given a piece.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.turns.lock();
        let own = Ready { rank: self.rank, given: None, passed_over: false };
        state.ready.entry(self.number).or_insert(own);
        while state.before(self.rank).next().is_some() {
            let events = state.events;
            let begin = || (Box::pin(tokio::time::sleep(PATIENCE)), events);
            let (sleep, since) = self.patience.get_or_insert_with(begin);
            if sleep.as_mut().poll(context).is_pending() {
                state.waiting.insert(self.number, context.waker().clone());
                return Poll::Pending;
            }
            let since = *since;
            let stuck = |other: &&mut Ready| other.given.is_some_and(|given| given <= since);
            state.before(self.rank).filter(stuck).for_each(|other| other.passed_over = true);
            state.wake();
            self.patience = None;
        }
        self.patience = None;
        let event = state.event();
        if let Some(own) = state.ready.get_mut(&self.number) {
            own.given = Some(event);
        }
        Poll::Ready(())
    }

    /// It has nothing to send for now.
    fn leave(&mut self) {
        let mut state = self.turns.lock();
        state.waiting.remove(&self.number);
        if state.ready.remove(&self.number).is_some() {
            state.wake();
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A piece of a response, until h2 has written it. The response ends before that: h2 takes 32 KiB of it ahead.
struct Given {
    piece: Bytes,
    _untaken: Untaken,
}

impl AsRef<[u8]> for Given {
    fn as_ref(&self) -> &[u8] {
        &self.piece
    }
}

/// A body that is sent when its turn comes; over HTTP/1.1, which has no turns, at once.
#[derive(Debug)]
pub(crate) struct Turned<B> {
    body: B,
    /// What came of the body and was not given to h2.
    piece: Bytes,
    turn: Option<Turn>,
}

impl<B> Turned<B> {
    pub fn new(body: B, mut turn: Option<Turn>, rank: Option<Rank>) -> Self {
        if let (Some(turn), Some(Rank(rank))) = (&mut turn, rank) {
            turn.rank = rank;
        }
        Self { body, piece: Bytes::new(), turn }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Turned<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        let Some(turn) = &mut this.turn else {
            return Pin::new(&mut this.body).poll_frame(context);
        };
        turn.taken();
        if this.piece.is_empty() {
            match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => this.piece = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                nothing => {
                    turn.leave();
                    return nothing;
                }
            }
        }
        ready!(turn.poll(context));
        let piece = this.piece.split_to(this.piece.len().min(PIECE));
        Poll::Ready(Some(Ok(Frame::data(turn.given(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.piece.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // hyper asks before it takes anything.
        if self.piece.is_empty() { self.body.size_hint() } else { SizeHint::default() }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full};
    use tokio::time::timeout;

    use super::*;

    /// A body that never has anything.
    struct Nothing;

    impl Body for Nothing {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            Poll::Pending
        }
    }

    fn turned<B>(turns: &Turns, rank: i32, body: B) -> Turned<B> {
        let mut request = Request::new(());
        *request.version_mut() = Version::HTTP_2;
        let turn = turns.next(&mut request);
        Turned::new(body, turn, Some(Rank(rank)))
    }

    /// A response of so many pieces.
    fn response(turns: &Turns, rank: i32, pieces: usize) -> Turned<Full<Bytes>> {
        turned(turns, rank, Full::new(vec![b'.'; pieces * PIECE].into()))
    }

    /// Whether h2 gets a whole piece when it asks.
    fn gets<B>(body: &mut Turned<B>) -> bool
    where
        B: Body<Data = Bytes, Error = std::convert::Infallible> + Unpin,
    {
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(body).poll_frame(&mut context) {
            Poll::Ready(Some(Ok(frame))) => {
                assert_eq!(frame.into_data().expect("data").len(), PIECE);
                true
            }
            Poll::Ready(_) => panic!("it has ended"),
            Poll::Pending => false,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_goes_on_when_all_of_the_more_urgent_one_is_taken() {
        let turns = Turns::default();
        let (mut low, mut urgent) = (response(&turns, 1, 3), response(&turns, 2, 2));
        assert!(gets(&mut low) && gets(&mut urgent));
        assert!(!gets(&mut low));
        assert!(gets(&mut urgent) && urgent.is_end_stream());
        assert!(!gets(&mut low), "h2 has not taken the last piece");
        drop(urgent);
        assert!(gets(&mut low) && gets(&mut low) && low.is_end_stream());
    }

    #[tokio::test(start_paused = true)]
    async fn responses_of_one_rank_take_turns() {
        let turns = Turns::default();
        let mut both = [response(&turns, 1, 3), response(&turns, 1, 3)];
        for _ in 0..3 {
            assert!(both.iter_mut().all(gets));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_has_nothing_yet_keeps_no_other_waiting() {
        let turns = Turns::default();
        let (mut low, mut live) = (response(&turns, 1, 2), turned(&turns, 2, Nothing));
        assert!(!gets(&mut live) && gets(&mut low) && !gets(&mut live) && gets(&mut low));
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_its_client_does_not_take_keeps_others_waiting_for_two_seconds() {
        let turns = Turns::default();
        let (mut low, mut urgent) = (response(&turns, 1, 4), response(&turns, 2, 9));
        let second = Duration::from_secs(1);
        assert!(gets(&mut urgent));
        // As long as it is taken, however slowly, it goes first.
        for _ in 0..5 {
            assert!(timeout(PATIENCE - second / 2, low.frame()).await.is_err());
            assert!(gets(&mut urgent));
        }
        assert!(timeout(2 * PATIENCE, low.frame()).await.is_ok());
        assert!(gets(&mut low));
        assert!(gets(&mut urgent) && !gets(&mut low), "it is taken again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_stuck_when_no_response_is_taken() {
        let turns = Turns::default();
        let (mut one, mut live) = (response(&turns, 1, 2), turned(&turns, 1, Nothing));
        let (progress, minute) = (turns.progress(), Duration::from_secs(60));
        assert!(!gets(&mut live));
        assert!(timeout(5 * minute, progress.stuck(minute)).await.is_err(), "nothing is given");
        let piece = one.frame().await.expect("it has not ended").expect("data");
        assert!(timeout(3 * minute, progress.stuck(minute)).await.is_ok());
        drop((one, live));
        let idle = timeout(5 * minute, progress.idle(minute)).await;
        assert!(idle.is_err(), "h2 still writes a piece of a response that has ended");
        assert!(timeout(3 * minute, progress.stuck(minute)).await.is_ok(), "or it does not");
        drop(piece);
        assert!(timeout(3 * minute, progress.idle(minute)).await.is_ok());
    }

    #[test]
    fn over_http1_a_body_is_sent_as_it_is() {
        let turns = Turns::default();
        let turn = turns.next(&mut Request::new(()));
        let mut body = Turned::new(Full::new(Bytes::from(vec![b'.'; PIECE])), turn, None);
        assert!(gets(&mut body) && body.is_end_stream());
    }
}
