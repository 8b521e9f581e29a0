//! Bodies of responses: whole, or piece by piece as the pieces are captured.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use suiro_units::Time;

use crate::Clock;

/// A response's body.
pub(super) enum Body {
    /// All of it is there.
    Whole(Option<Bytes>),
    /// It comes with time.
    Live(Live),
}

/// A body whose pieces are each released at a time; its length is not given, so HTTP/1.1 sends each piece as one chunk
/// (RFC 9112 §7.1).
pub(super) struct Live {
    clock: Clock,
    pieces: VecDeque<(Time, Bytes)>,
    sleep: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    sent: u64,
    /// Called at the end, or when the client is gone, with the number of bytes that were handed to
    /// the connection.
    over: Option<Box<dyn FnOnce(u64) + Send>>,
}

impl Live {
    pub(super) fn new(clock: Clock, pieces: impl IntoIterator<Item = (Time, Bytes)>) -> Self {
        Self { clock, pieces: pieces.into_iter().collect(), sleep: None, sent: 0, over: None }
    }

    /// Has `over` called once, with the number of bytes that were sent.
    pub(super) fn when_over(&mut self, over: impl FnOnce(u64) + Send + 'static) {
        self.over = Some(Box::new(over));
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(over) = self.over.take() {
            over(self.sent);
        }
    }
}

impl Body {
    /// Nothing.
    pub(super) const EMPTY: Self = Self::Whole(None);

    /// These bytes.
    pub(super) fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self::Whole((!bytes.is_empty()).then_some(bytes))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let live = match self.get_mut() {
            Self::Whole(bytes) => return Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Self::Live(live) => live,
        };
        let Some((at, _)) = live.pieces.front() else { return Poll::Ready(None) };
        if *at > live.clock.now() {
            let (clock, at) = (live.clock, *at);
            let sleep = || Box::pin(async move { clock.sleep_until(at).await }) as Pin<Box<_>>;
            ready!(live.sleep.get_or_insert_with(sleep).as_mut().poll(context));
        }
        live.sleep = None;
        let piece = live.pieces.pop_front().map(|(_, bytes)| bytes).unwrap_or_default();
        live.sent += piece.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Live(live) => live.pieces.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Self::Live(_) => SizeHint::default(),
        }
    }
}
