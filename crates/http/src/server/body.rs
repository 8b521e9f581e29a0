//! Bodies of responses: whole, or piece by piece as the pieces are captured, or as they come from elsewhere.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use suiro_units::Time;
use tokio::sync::mpsc;

use crate::Clock;

/// A body ends before its end. Its client must not take what came for the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body is cut off")]
pub(crate) struct Cut;

/// A response's body.
pub(crate) enum Body {
    /// All of it is there.
    Whole(Option<Bytes>),
    /// It comes with time.
    Live(Live),
    /// It comes from elsewhere.
    Passed(Passed),
}

/// A body whose pieces are each released at a time; its length is not given, so HTTP/1.1 sends each piece as one chunk
/// (RFC 9112 §7.1).
pub(crate) struct Live {
    clock: Clock,
    pieces: VecDeque<(Time, Bytes)>,
    sleep: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    sent: Sent,
}

/// A body whose pieces are passed on as they come.
pub(crate) struct Passed {
    pieces: mpsc::Receiver<Result<Bytes, Cut>>,
    length: Option<u64>,
    sent: Sent,
}

/// How much was handed to the connection, and who is to know of it at the end, or when the client is gone.
#[derive(Default)]
struct Sent {
    bytes: u64,
    over: Option<Box<dyn FnOnce(u64) + Send>>,
}

impl Drop for Sent {
    fn drop(&mut self) {
        if let Some(over) = self.over.take() {
            over(self.bytes);
        }
    }
}

impl Live {
    pub fn new(clock: Clock, pieces: impl IntoIterator<Item = (Time, Bytes)>) -> Self {
        let pieces = pieces.into_iter().collect();
        Self { clock, pieces, sleep: None, sent: Sent::default() }
    }

    /// When the first of its pieces is released; `None` if there is none.
    pub fn begins(&self) -> Option<Time> {
        self.pieces.front().map(|(at, _)| *at)
    }

    /// The bytes of all its pieces.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some((at, _)) = self.pieces.front() else { return Poll::Ready(None) };
        if *at > self.clock.now() {
            let (clock, at) = (self.clock, *at);
            let sleep = || Box::pin(async move { clock.sleep_until(at).await }) as Pin<Box<_>>;
            ready!(self.sleep.get_or_insert_with(sleep).as_mut().poll(context));
        }
        self.sleep = None;
        Poll::Ready(self.pieces.pop_front().map(|(_, bytes)| bytes))
    }
}

impl Passed {
    /// A body of that length, if it is known.
    pub fn new(pieces: mpsc::Receiver<Result<Bytes, Cut>>, length: Option<u64>) -> Self {
        Self { pieces, length, sent: Sent::default() }
    }
}

impl Body {
    /// Nothing.
    pub const EMPTY: Self = Self::Whole(None);

    /// These bytes.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self::Whole((!bytes.is_empty()).then_some(bytes))
    }

    /// Has `over` called once, with the number of bytes that were sent: at once if all of it is there.
    pub fn when_over(&mut self, over: impl FnOnce(u64) + Send + 'static) {
        match self {
            Self::Whole(bytes) => over(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Live(Live { sent, .. }) | Self::Passed(Passed { sent, .. }) => {
                sent.over = Some(Box::new(over));
            }
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let (piece, sent) = match self.get_mut() {
            Self::Whole(bytes) => return Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Self::Live(live) => (ready!(live.poll(context)).map(Ok), &mut live.sent),
            Self::Passed(passed) => (ready!(passed.pieces.poll_recv(context)), &mut passed.sent),
        };
        if let Some(Ok(piece)) = &piece {
            sent.bytes += piece.len() as u64;
        }
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Live(live) => live.pieces.is_empty(),
            Self::Passed(passed) => passed.length == Some(passed.sent.bytes),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let exact = SizeHint::with_exact;
        match self {
            Self::Whole(bytes) => exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Self::Live(_) => SizeHint::default(),
            Self::Passed(passed) => {
                let left = passed.length.map(|length| length.saturating_sub(passed.sent.bytes));
                left.map_or_else(SizeHint::default, exact)
            }
        }
    }
}
