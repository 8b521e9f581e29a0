//! noq's QUIC as `h3` wants it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use moq_noq::{ConnectionError, ReadError, Stopped, VarInt, WriteError};

use super::frames::{FrameError, Frames};
use super::{CANCELLED, EXCESSIVE_LOAD};

/// Bytes that are read from a stream at once.
const READ: usize = 64 << 10;

type Pending<T> = Pin<Box<dyn Future<Output = Result<T, ConnectionError>> + Send + Sync>>;
type Bi = (moq_noq::SendStream, moq_noq::RecvStream);

/// A connection whose handshake is done. Each clone has its own operations in progress.
pub(crate) struct Quic {
    connection: moq_noq::Connection,
    accept_uni: Option<Pending<moq_noq::RecvStream>>,
    accept_bi: Option<Pending<Bi>>,
    open_uni: Option<Pending<moq_noq::SendStream>>,
    open_bi: Option<Pending<Bi>>,
    streams: Streams,
}

impl Quic {
    pub(crate) fn new(connection: moq_noq::Connection) -> Self {
        Self::with(connection, Streams::default())
    }

    fn with(connection: moq_noq::Connection, streams: Streams) -> Self {
        let (accept_uni, accept_bi, open_uni, open_bi) = (None, None, None, None);
        Self { connection, accept_uni, accept_bi, open_uni, open_bi, streams }
    }

    /// The streams that the peer has opened.
    pub(crate) fn streams(&self) -> Streams {
        self.streams.clone()
    }
}

impl Clone for Quic {
    fn clone(&self) -> Self {
        Self::with(self.connection.clone(), self.streams())
    }
}

/// What `h3` does not pass on about the streams that the peer has opened. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Streams(Arc<Mutex<BTreeMap<u64, Stream>>>);

/// A stream on which nothing has been sent.
struct Stream {
    /// Its rank among what the connection has to send: the highest goes first, and 0 is that of a stream without one.
    rank: Option<i32>,
    /// Ready when the peer takes no more of it.
    stopped: Option<Stopped>,
}

impl Streams {
    fn opened(&self, stream: &moq_noq::SendStream) {
        let new = Stream { rank: None, stopped: Some(stream.stopped()) };
        self.lock().insert(id(stream.id()).into_inner(), new);
    }

    /// Ranks a stream on which nothing has been sent.
    pub(crate) fn rank(&self, stream: StreamId, rank: i32) {
        if let Some(known) = self.lock().get_mut(&stream.into_inner()) {
            known.rank = Some(rank);
        }
    }

    /// Returns when the peer takes no more of what is sent on a stream (STOP_SENDING), or the connection has ended. Asked once,
    /// before anything is sent.
    pub(crate) fn refused(&self, stream: StreamId) -> impl Future<Output = ()> + Send + use<> {
        let known = self.lock().get_mut(&stream.into_inner()).and_then(|it| it.stopped.take());
        async move {
            match known {
                Some(stopped) => drop(stopped.await),
                None => std::future::pending().await,
            }
        }
    }

    fn take(&self, stream: &moq_noq::SendStream) -> Option<Stream> {
        self.lock().remove(&id(stream.id()).into_inner())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Stream>> {
        self.0.lock().expect("no holder panics")
    }
}

/// Polls the operation in `slot`, and begins one if there is none.
fn step<T>(
    slot: &mut Option<Pending<T>>,
    context: &mut Context<'_>,
    begin: impl FnOnce() -> Pending<T>,
) -> Poll<Result<T, ConnectionError>> {
    let done = ready!(slot.get_or_insert_with(begin).as_mut().poll(context));
    *slot = None;
    Poll::Ready(done)
}

impl quic::Connection<Bytes> for Quic {
    type RecvStream = Receiving;
    type OpenStreams = Self;

    fn poll_accept_recv(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Receiving, ConnectionErrorIncoming>> {
        let connection = self.connection.clone();
        let begin = || Box::pin(async move { connection.accept_uni().await }) as Pending<_>;
        let accepted = ready!(step(&mut self.accept_uni, context, begin));
        let receiving = |stream| Receiving::new(stream, Frames::of_unidirectional());
        Poll::Ready(accepted.map(receiving).map_err(|error| ended(&error)))
    }

    fn poll_accept_bidi(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Both, ConnectionErrorIncoming>> {
        let connection = self.connection.clone();
        let begin = || Box::pin(async move { connection.accept_bi().await }) as Pending<_>;
        let accepted = ready!(step(&mut self.accept_bi, context, begin));
        let known = |streams: Bi| {
            self.streams.opened(&streams.0);
            Both::new(streams, Some(self.streams()))
        };
        Poll::Ready(accepted.map(known).map_err(|error| ended(&error)))
    }

    fn opener(&self) -> Self {
        self.clone()
    }
}

impl quic::OpenStreams<Bytes> for Quic {
    type BidiStream = Both;
    type SendStream = Sending;

    fn poll_open_bidi(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Both, StreamErrorIncoming>> {
        let connection = self.connection.clone();
        let begin = || Box::pin(async move { connection.open_bi().await }) as Pending<_>;
        let opened = ready!(step(&mut self.open_bi, context, begin));
        Poll::Ready(opened.map(|streams| Both::new(streams, None)).map_err(|error| lost(&error)))
    }

    fn poll_open_send(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Sending, StreamErrorIncoming>> {
        let connection = self.connection.clone();
        let begin = || Box::pin(async move { connection.open_uni().await }) as Pending<_>;
        let opened = ready!(step(&mut self.open_uni, context, begin));
        Poll::Ready(opened.map(|stream| Sending::new(stream, None)).map_err(|error| lost(&error)))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.connection.close(number(code.value()), reason);
    }
}

/// A stream in both directions.
pub(crate) struct Both {
    send: Sending,
    receive: Receiving,
}

impl Both {
    fn new((send, receive): Bi, known: Option<Streams>) -> Self {
        let receive = Receiving::new(receive, Frames::of_request());
        Self { send: Sending::new(send, known), receive }
    }
}

impl quic::BidiStream<Bytes> for Both {
    type SendStream = Sending;
    type RecvStream = Receiving;

    fn split(self) -> (Sending, Receiving) {
        (self.send, self.receive)
    }
}

impl quic::SendStream<Bytes> for Both {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(context)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(context)
    }

    fn reset(&mut self, code: u64) {
        self.send.reset(code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl quic::RecvStream for Both {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.receive.poll_data(context)
    }

    fn stop_sending(&mut self, code: u64) {
        self.receive.stop_sending(code);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

/// The sending side of a stream. One that is dropped before its end is reset.
pub(crate) struct Sending {
    stream: moq_noq::SendStream,
    /// What `h3` has handed over and the stream has not taken.
    waiting: Option<WriteBuf<Bytes>>,
    is_over: bool,
    /// Where it is known; `None` if it is not, or sends already.
    known: Option<Streams>,
}

impl Sending {
    fn new(stream: moq_noq::SendStream, known: Option<Streams>) -> Self {
        Self { stream, waiting: None, is_over: false, known }
    }

    /// What is known of it, the first time.
    fn take_known(&mut self) -> Option<Stream> {
        self.known.take()?.take(&self.stream)
    }
}

impl quic::SendStream<Bytes> for Sending {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let Some(waiting) = &mut self.waiting {
            if !waiting.has_remaining() {
                self.waiting = None;
                break;
            }
            let taken = ready!(Pin::new(&mut self.stream).poll_write(context, waiting.chunk()));
            match taken {
                Ok(bytes) => waiting.advance(bytes),
                Err(error) => {
                    (self.waiting, self.is_over) = (None, true);
                    return Poll::Ready(Err(unwritten(error)));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.waiting.is_some() {
            let error = "the stream has not taken what came before".to_owned();
            let connection_error = ConnectionErrorIncoming::InternalError(error);
            return Err(StreamErrorIncoming::ConnectionErrorIncoming { connection_error });
        }
        if let Some(rank) = self.take_known().and_then(|known| known.rank) {
            // A stream that is closed by now needs none.
            let _ = self.stream.set_priority(rank);
        }
        self.waiting = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(context))?;
        self.is_over = true;
        // A stream that is reset by now needs no end.
        let _ = self.stream.finish();
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self, code: u64) {
        self.is_over = true;
        let _ = self.stream.reset(number(code));
    }

    fn send_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.take_known();
        if !self.is_over {
            let _ = self.stream.reset(VarInt::from_u32(CANCELLED));
        }
    }
}

/// The receiving side of a stream. One that is dropped before its end is refused.
pub(crate) struct Receiving {
    stream: moq_noq::RecvStream,
    buffer: Vec<u8>,
    frames: Frames,
    is_over: bool,
}

impl Receiving {
    fn new(stream: moq_noq::RecvStream, frames: Frames) -> Self {
        Self { stream, buffer: Vec::new(), frames, is_over: false }
    }
}

impl quic::RecvStream for Receiving {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        if self.is_over {
            return Poll::Ready(Ok(None));
        }
        loop {
            match self.frames.take() {
                Ok(Some(piece)) => return Poll::Ready(Ok(Some(piece))),
                Ok(None) => {}
                Err(error) => {
                    self.stop_sending(EXCESSIVE_LOAD.into());
                    return Poll::Ready(Err(unframed(error)));
                }
            }
            self.buffer.resize(READ, 0);
            match ready!(self.stream.poll_read(context, &mut self.buffer)) {
                Ok(0) => {
                    self.is_over = true;
                    return Poll::Ready(self.frames.end().map(|()| None).map_err(unframed));
                }
                Ok(bytes) => self.frames.push(Bytes::copy_from_slice(&self.buffer[..bytes])),
                Err(error) => {
                    self.is_over = true;
                    return Poll::Ready(Err(unread(error)));
                }
            }
        }
    }

    fn stop_sending(&mut self, code: u64) {
        self.is_over = true;
        let _ = self.stream.stop(number(code));
    }

    fn recv_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.stream.stop(VarInt::from_u32(CANCELLED));
        }
    }
}

/// A code of HTTP/3 in a frame of QUIC; one that has no place there is that of no error.
fn number(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::from_u32(super::NO_ERROR))
}

fn id(id: moq_noq::StreamId) -> StreamId {
    StreamId::try_from(u64::from(VarInt::from(id))).expect("numbers of streams have 62 bits")
}

fn ended(error: &ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            ConnectionErrorIncoming::ApplicationClose { error_code: close.error_code.into_inner() }
        }
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other.clone())),
    }
}

fn lost(error: &ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error: ended(error) }
}

fn unwritten(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => {
            StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() }
        }
        WriteError::ConnectionLost(error) => lost(&error),
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}

/// What `h3` is to make of it. Its traits leave us no code: it ends a connection with `H3_INTERNAL_ERROR`, where RFC 9114 §7.1
/// wants `H3_FRAME_ERROR` for `Short` and `Cut`. For a frame of the control stream that is `TooLong`, it does so with
/// `H3_CLOSED_CRITICAL_STREAM`, where §10.5 has `H3_EXCESSIVE_LOAD`.
fn unframed(error: FrameError) -> StreamErrorIncoming {
    match error {
        FrameError::TooLong(_) => StreamErrorIncoming::Unknown(Box::new(error)),
        // These are errors of the connection.
        FrameError::Short | FrameError::Cut => StreamErrorIncoming::ConnectionErrorIncoming {
            connection_error: ConnectionErrorIncoming::InternalError(error.to_string()),
        },
    }
}

fn unread(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(code) => {
            StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() }
        }
        ReadError::ConnectionLost(error) => lost(&error),
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}
