//! The adapter between noq's QUIC and moq-net: it offers a connection, or a session of WebTransport in one, with the
//! operations that moq-net polls. A stream that is dropped before its end is reset, and so is one whose group is late. It
//! stops the stream that answers a request when the request is cancelled, and counts what is written.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use moq_net::web_transport_trait::{self as wt, poll};
use moq_noq::{
    Connection, ConnectionError, PathId, ReadError, Stopped, StoppedError, VarInt, WriteError,
};

use suiro_quic::Span;
pub use suiro_quic::Written;

use crate::TransportError;
use crate::deadline::{self, Groups};
use crate::order::{self, Order};
use crate::requests::{self, Request, Requests};
use crate::signal::Signal;
use crate::webtransport::{self, Http};

/// An operation in progress. Dropping it cancels it.
type Begun<T> = Pin<Box<dyn Future<Output = T> + Send + Sync>>;

/// Polls the operation in `slot`, and begins one if there is none.
fn step<T>(
    slot: &mut Option<Begun<T>>,
    context: &mut Context<'_>,
    begin: impl FnOnce() -> Begun<T>,
) -> Poll<T> {
    let output = ready!(slot.get_or_insert_with(begin).as_mut().poll(context));
    *slot = None;
    Poll::Ready(output)
}

type Uni<T> = Result<T, ConnectionError>;
type Bi = Result<(moq_noq::SendStream, moq_noq::RecvStream), ConnectionError>;

/// A connection, or a session of WebTransport in one. Each clone has its own pending operations.
pub struct Session {
    connection: Connection,
    protocol: Option<Arc<str>>,
    /// `None`: MoQT directly in QUIC.
    http: Option<Arc<Http>>,
    written: Arc<Written>,
    /// The groups that are sent in it, if they have a deadline.
    groups: Option<Arc<Groups>>,
    /// What it asks for, if that can be cancelled.
    requests: Option<Arc<Requests>>,
    accept_uni: Option<Begun<Uni<moq_noq::RecvStream>>>,
    accept_bi: Option<Begun<Bi>>,
    open_uni: Option<Begun<Uni<moq_noq::SendStream>>>,
    open_bi: Option<Begun<Bi>>,
    datagram: Option<Begun<Result<Bytes, ConnectionError>>>,
    closed: Option<Begun<ConnectionError>>,
}

impl Session {
    /// A connection whose handshake is done. `protocol` is what was negotiated by ALPN.
    pub fn new(connection: Connection, protocol: Option<String>) -> Self {
        let written = crate::control::written(&connection);
        Self::with(connection, protocol.map(Arc::from), None, written)
    }

    /// A session of WebTransport, which has that protocol.
    pub fn over_http(connection: Connection, protocol: Option<&str>, http: Arc<Http>) -> Self {
        let written = crate::control::written(&connection);
        Self::with(connection, protocol.map(Arc::from), Some(http), written)
    }

    fn with(
        connection: Connection,
        protocol: Option<Arc<str>>,
        http: Option<Arc<Http>>,
        written: Arc<Written>,
    ) -> Self {
        Self {
            connection,
            protocol,
            http,
            written,
            groups: None,
            requests: None,
            accept_uni: None,
            accept_bi: None,
            open_uni: None,
            open_bi: None,
            datagram: None,
            closed: None,
        }
    }

    /// The same, whose groups have a deadline if there are `groups`.
    pub fn with_deadline(self, groups: Option<Arc<Groups>>) -> Self {
        Self { groups, ..self }
    }

    /// The same, whose subscriptions can be cancelled with `requests`.
    pub fn with_requests(self, requests: Option<Arc<Requests>>) -> Self {
        Self { requests, ..self }
    }

    /// The counters of the connection.
    pub fn written(&self) -> Arc<Written> {
        Arc::clone(&self.written)
    }

    /// A stream of objects if it is unidirectional, else of requests.
    fn sending(&self, stream: moq_noq::SendStream, unidirectional: bool) -> SendStream {
        self.written.opened();
        let http = self.http.is_some();
        let order = Order { subscriber: 0, publisher: order::DEFAULT };
        SendStream {
            stream,
            http,
            protocol: self.protocol.clone(),
            order,
            written: self.written(),
            span: Span::of(order.number()),
            groups: self.groups.clone(),
            sending: None,
            request: None,
            stopped: None,
            begun: !unidirectional,
            ended: false,
        }
    }

    fn receiving(&self, stream: moq_noq::RecvStream) -> RecvStream {
        let http = self.http.is_some();
        RecvStream { stream, http, cancelled: None, is_silent: false, ended: false }
    }
}

impl Clone for Session {
    fn clone(&self) -> Self {
        let http = self.http.clone();
        Self::with(self.connection.clone(), self.protocol.clone(), http, self.written())
            .with_deadline(self.groups.clone())
            .with_requests(self.requests.clone())
    }
}

impl poll::Session for Session {
    type SendStream = SendStream;
    type RecvStream = RecvStream;
    type Error = TransportError;

    fn poll_accept_uni(&mut self, cx: &mut Context<'_>) -> Poll<Result<RecvStream, Self::Error>> {
        let (connection, http) = (&self.connection, &self.http);
        let begin = || -> Begun<_> {
            let (connection, http) = (connection.clone(), http.clone());
            Box::pin(async move {
                let Some(http) = http else { return connection.accept_uni().await };
                match http.accepted_uni.lock().await.recv().await {
                    Some(stream) => Ok(stream),
                    None => Err(connection.closed().await),
                }
            })
        };
        let stream = ready!(step(&mut self.accept_uni, cx, begin))?;
        Poll::Ready(Ok(self.receiving(stream)))
    }

    fn poll_accept_bi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<poll::BiStreams<Self>, Self::Error>> {
        let (connection, http) = (&self.connection, &self.http);
        let begin = || -> Begun<_> {
            let (connection, http) = (connection.clone(), http.clone());
            Box::pin(async move {
                let Some(http) = http else { return connection.accept_bi().await };
                match http.accepted_bi.lock().await.recv().await {
                    Some(streams) => Ok(streams),
                    None => Err(connection.closed().await),
                }
            })
        };
        let (send, receive) = ready!(step(&mut self.accept_bi, cx, begin))?;
        Poll::Ready(Ok((self.sending(send, false), self.receiving(receive))))
    }

    fn poll_open_uni(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream, Self::Error>> {
        let (connection, http) = (&self.connection, &self.http);
        let begin = || -> Begun<_> {
            let (connection, http) = (connection.clone(), http.clone());
            Box::pin(async move {
                let mut stream = connection.open_uni().await?;
                if let Some(http) = http {
                    begins(&mut stream, &http.uni).await?;
                }
                Ok(stream)
            })
        };
        let stream = ready!(step(&mut self.open_uni, cx, begin))?;
        Poll::Ready(Ok(self.sending(stream, true)))
    }

    fn poll_open_bi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<poll::BiStreams<Self>, Self::Error>> {
        let (connection, http) = (&self.connection, &self.http);
        let begin = || -> Begun<_> {
            let (connection, http) = (connection.clone(), http.clone());
            Box::pin(async move {
                let (mut send, receive) = connection.open_bi().await?;
                if let Some(http) = http {
                    begins(&mut send, &http.bi).await?;
                }
                Ok((send, receive))
            })
        };
        let (send, receive) = ready!(step(&mut self.open_bi, cx, begin))?;
        let (mut send, mut receive) = (self.sending(send, false), self.receiving(receive));
        if let Some(requests) = &self.requests {
            let (request, cancelled) = Request::new(requests);
            (send.request, receive.cancelled) = (Some(request), Some(cancelled));
        }
        Poll::Ready(Ok((send, receive)))
    }

    fn poll_send_datagram(
        &mut self,
        _: &mut Context<'_>,
        payload: &[u8],
    ) -> Poll<Result<(), Self::Error>> {
        // A full buffer loses its oldest datagram, as a network does.
        let bytes = match &self.http {
            Some(http) => [&http.datagram, payload].concat().into(),
            None => Bytes::copy_from_slice(payload),
        };
        let length = bytes.len() as u64;
        let sent = self.connection.send_datagram(bytes);
        if sent.is_ok() {
            self.written.sent_datagram(length);
            let place = order::datagram(self.protocol.as_deref(), payload);
            if let Some((groups, place)) = self.groups.as_ref().zip(place) {
                groups.passed(place);
            }
        }
        Poll::Ready(sent.map_err(TransportError::from))
    }

    fn poll_recv_datagram(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Self::Error>> {
        let connection = &self.connection;
        let begin = || -> Begun<_> {
            let connection = connection.clone();
            Box::pin(async move { connection.read_datagram().await })
        };
        loop {
            let datagram = ready!(step(&mut self.datagram, cx, begin))?;
            let Some(http) = &self.http else { return Poll::Ready(Ok(datagram)) };
            // A datagram with another header does not belong to the session.
            if let Some(payload) = webtransport::payload(&datagram, &http.datagram) {
                return Poll::Ready(Ok(payload));
            }
        }
    }

    fn max_datagram_size(&self) -> usize {
        let beginning = self.http.as_ref().map_or(0, |http| http.datagram.len());
        self.connection.max_datagram_size().unwrap_or(0).saturating_sub(beginning)
    }

    fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    fn close(&mut self, code: u32, reason: &str) {
        match &self.http {
            Some(http) => http.close(code, reason),
            None => self.connection.close(VarInt::from_u32(code), reason.as_bytes()),
        }
    }

    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Self::Error> {
        let connection = &self.connection;
        let begin = || -> Begun<_> {
            let connection = connection.clone();
            Box::pin(async move { connection.closed().await })
        };
        let closed = ready!(step(&mut self.closed, cx, begin));
        let ended = self.http.as_ref().and_then(|http| http.ended());
        Poll::Ready(match ended {
            Some((code, reason)) => TransportError::Ended(code, reason),
            None => closed.into(),
        })
    }

    fn stats(&self) -> impl wt::Stats {
        Stats(self.connection.path_stats(PathId::ZERO))
    }
}

/// Writes the header of a WebTransport stream: its type and the number of its session. The peer cannot assign the stream to
/// a session before it has read the header, so it is sent with the highest priority; what follows has the stream's own.
async fn begins(stream: &mut moq_noq::SendStream, bytes: &[u8]) -> Result<(), ConnectionError> {
    let _ = stream.set_priority(i32::MAX);
    // If the peer has stopped the stream already, the next write fails, so that is no error here.
    if let Err(WriteError::ConnectionLost(error)) = stream.write_all(bytes).await {
        return Err(error);
    }
    let _ = stream.set_priority(0);
    Ok(())
}

struct Stats(Option<moq_noq::PathStats>);

impl wt::Stats for Stats {
    fn bytes_sent(&self) -> Option<u64> {
        self.0.as_ref().map(|path| path.udp_tx.bytes)
    }

    fn bytes_received(&self) -> Option<u64> {
        self.0.as_ref().map(|path| path.udp_rx.bytes)
    }

    fn bytes_lost(&self) -> Option<u64> {
        self.0.as_ref().map(|path| path.lost_bytes)
    }

    fn packets_lost(&self) -> Option<u64> {
        self.0.as_ref().map(|path| path.lost_packets)
    }

    fn rtt(&self) -> Option<Duration> {
        self.0.as_ref().map(|path| path.rtt)
    }
}

/// The sending half of a stream. If it is dropped before [`poll::SendStream::finish`], it is reset, so that the peer never
/// takes a part of an object for the whole.
pub struct SendStream {
    stream: moq_noq::SendStream,
    /// Whether the stream belongs to a session of WebTransport, so that error codes are converted.
    http: bool,
    protocol: Option<Arc<str>>,
    order: Order,
    written: Arc<Written>,
    span: Span,
    groups: Option<Arc<Groups>>,
    /// Given when its group is late, if that may be given up.
    sending: Option<Arc<Signal>>,
    /// What it asks for, until that is known.
    request: Option<Request>,
    stopped: Option<Pin<Box<Stopped>>>,
    /// Whether the header of its objects is written, or it has none.
    begun: bool,
    ended: bool,
}

impl SendStream {
    fn place(&mut self) {
        self.span.place(self.order.number());
        // This fails only for a stream that has ended, which needs no priority.
        let _ = self.stream.set_priority(self.order.number());
    }

    /// Takes what the header of its objects says.
    fn begin(&mut self, bytes: &[u8]) {
        let Some(header) = order::header(self.protocol.as_deref(), bytes) else { return };
        if let Some(publisher) = header.publisher {
            self.order.publisher = publisher;
            self.place();
        }
        self.sending = self.groups.as_ref().and_then(|groups| groups.began(header));
    }

    /// Resets the stream if its group is late, and returns whether it was. If not, the task is woken when it is.
    fn is_given_up(&mut self, cx: &Context<'_>) -> bool {
        if !self.sending.as_ref().is_some_and(|sending| sending.is_given(cx)) {
            return false;
        }
        (self.sending, self.ended) = (None, true);
        if self.abandon(deadline::CODE) {
            self.written.gave_up();
        }
        true
    }

    /// Resets the stream, and returns whether it was: not if everything has been delivered, or it has been reset already.
    fn abandon(&mut self, code: u32) -> bool {
        let is_reset = self.stream.reset(wire(self.http, code)).is_ok();
        if is_reset {
            self.written.reset(&self.span);
        }
        is_reset
    }
}

impl poll::SendStream for SendStream {
    type Error = TransportError;

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Self::Error>> {
        if !self.begun {
            self.begun = true;
            self.begin(bytes);
        }
        if self.is_given_up(cx) {
            return Poll::Ready(Err(TransportError::Late));
        }
        let count = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.written.add(&mut self.span, count as u64);
        if let Some(request) = &mut self.request
            && request.is_known(self.protocol.as_deref(), &bytes[..count])
        {
            self.request = None;
        }
        Poll::Ready(Ok(count))
    }

    fn set_priority(&mut self, order: u8) {
        self.order.subscriber = order;
        self.place();
    }

    fn finish(&mut self) -> Result<(), Self::Error> {
        self.ended = true;
        self.stream.finish().map_err(|closed| WriteError::from(closed).into())
    }

    fn reset(&mut self, code: u32) {
        self.ended = true;
        self.abandon(code);
    }

    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let stopped = self.stopped.get_or_insert_with(|| Box::pin(self.stream.stopped()));
        let Poll::Ready(ended) = stopped.as_mut().poll(cx) else {
            let given_up = self.is_given_up(cx);
            return if given_up { Poll::Ready(Err(TransportError::Late)) } else { Poll::Pending };
        };
        self.stopped = None;
        Poll::Ready(match ended {
            Ok(_) => Ok(()),
            Err(StoppedError::ConnectionLost(error)) => Err(error.into()),
            Err(StoppedError::ZeroRttRejected) => Err(WriteError::ZeroRttRejected.into()),
        })
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if !self.ended {
            // By default noq would finish it, and the peer would take a part of an object for the whole.
            self.abandon(0);
        }
    }
}

/// The receiving half of a stream. Dropped before its end, it asks the sender to stop.
pub struct RecvStream {
    stream: moq_noq::RecvStream,
    /// Whether the stream belongs to a session of WebTransport, so that error codes are converted.
    http: bool,
    /// Given when the request that it answers is cancelled.
    cancelled: Option<Arc<Signal>>,
    /// Whether it is stopped, and its reader gets neither more of it nor its end.
    is_silent: bool,
    ended: bool,
}

impl RecvStream {
    /// Stops the stream if its request is cancelled. Returns whether it is; if not, the task is woken when it is.
    fn is_cancelled(&mut self, cx: &Context<'_>) -> bool {
        let Some(cancelled) = &self.cancelled else { return self.is_silent };
        if !cancelled.is_given(cx) {
            return false;
        }
        (self.cancelled, self.is_silent) = (None, true);
        // This fails only for a stream that has ended.
        let _ = self.stream.stop(wire(self.http, requests::CODE));
        true
    }
}

/// Converts an error code of MoQT to the one that is sent: with WebTransport, codes of HTTP/3.
fn wire(http: bool, code: u32) -> VarInt {
    if http { webtransport::code(code) } else { VarInt::from_u32(code) }
}

impl poll::RecvStream for RecvStream {
    type Error = TransportError;

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<Result<Option<usize>, Self::Error>> {
        if into.is_empty() {
            return Poll::Ready(Ok(Some(0)));
        }
        if self.ended {
            return Poll::Ready(Ok(None));
        }
        if self.is_cancelled(cx) {
            return Poll::Pending;
        }
        let count = ready!(self.stream.poll_read(cx, into))?;
        self.ended = count == 0;
        Poll::Ready(Ok((count > 0).then_some(count)))
    }

    fn poll_read_chunk(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
    ) -> Poll<Result<Option<Bytes>, Self::Error>> {
        if most == 0 {
            return Poll::Ready(Ok(Some(Bytes::new())));
        }
        if self.ended {
            return Poll::Ready(Ok(None));
        }
        if self.is_cancelled(cx) {
            return Poll::Pending;
        }
        let chunk = ready!(pin!(self.stream.read_chunk(most)).poll(cx))?;
        self.ended = chunk.is_none();
        Poll::Ready(Ok(chunk))
    }

    fn stop(&mut self, code: u32) {
        self.ended = true;
        // This fails only for a stream that has ended.
        let _ = self.stream.stop(wire(self.http, code));
    }

    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.ended {
            return Poll::Ready(Ok(()));
        }
        if self.is_cancelled(cx) {
            return Poll::Pending;
        }
        match ready!(pin!(self.stream.received_reset()).poll(cx)) {
            Ok(Some(code)) => Poll::Ready(Err(ReadError::Reset(code).into())),
            // Everything has arrived but has not been read yet; the reader polls again after it has.
            Ok(None) => Poll::Pending,
            Err(error) => Poll::Ready(Err(ReadError::from(error).into())),
        }
    }
}
