//! Streams of HTTP/3 that any machine may send, through what bounds them, and through `h3`.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use hyper::Request;
use suiro_http::http3::HEAD_MAX;
use suiro_http::http3::frames::{FrameError, Frames};

/// A stream whose sender has sent all of it, of which so many bytes come at a time. What is sent on it is lost.
#[derive(Clone)]
struct Stream {
    frames: Frames,
    rest: Bytes,
    read: usize,
}

impl Stream {
    fn new(frames: Frames, stream: &[u8], read: usize) -> Self {
        Self { frames, rest: Bytes::copy_from_slice(stream), read }
    }

    fn piece(&mut self) -> Result<Option<Bytes>, FrameError> {
        if let Some(piece) = self.frames.take()? {
            return Ok(Some(piece));
        }
        if self.rest.is_empty() {
            return self.frames.end().map(|()| None);
        }
        let read = self.read.min(self.rest.len());
        self.frames.push(self.rest.split_to(read));
        self.frames.take()
    }
}

impl quic::RecvStream for Stream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        Poll::Ready(self.piece().map_err(|error| StreamErrorIncoming::Unknown(Box::new(error))))
    }

    fn stop_sending(&mut self, _: u64) {}

    fn recv_id(&self) -> StreamId {
        quic::SendStream::<Bytes>::send_id(self)
    }
}

impl quic::SendStream<Bytes> for Stream {
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, _: T) -> Result<(), StreamErrorIncoming> {
        Ok(())
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self, _: u64) {}

    fn send_id(&self) -> StreamId {
        StreamId::try_from(0u64).expect("the first has number 0")
    }
}

/// A connection on which there is a stream in one direction, or one with a request or a response.
struct Connection {
    uni: Option<Stream>,
    bi: Option<Stream>,
}

impl quic::OpenStreams<Bytes> for Connection {
    type BidiStream = Stream;
    type SendStream = Stream;

    fn poll_open_bidi(&mut self, _: &mut Context<'_>) -> Poll<Result<Stream, StreamErrorIncoming>> {
        self.bi.take().map_or(Poll::Pending, |stream| Poll::Ready(Ok(stream)))
    }

    fn poll_open_send(&mut self, _: &mut Context<'_>) -> Poll<Result<Stream, StreamErrorIncoming>> {
        Poll::Ready(Ok(Stream::new(Frames::of_unidirectional(), b"", 1)))
    }

    fn close(&mut self, _: Code, _: &[u8]) {}
}

impl quic::Connection<Bytes> for Connection {
    type RecvStream = Stream;
    type OpenStreams = Self;

    fn poll_accept_recv(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<Stream, ConnectionErrorIncoming>> {
        self.uni.take().map_or(Poll::Pending, |stream| Poll::Ready(Ok(stream)))
    }

    fn poll_accept_bidi(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Result<Stream, ConnectionErrorIncoming>> {
        self.bi.take().map_or(Poll::Pending, |stream| Poll::Ready(Ok(stream)))
    }

    fn opener(&self) -> Self {
        Self { uni: None, bi: self.bi.clone() }
    }
}

/// The result of what does not wait for ever.
fn now<T>(work: impl Future<Output = T>) -> Option<T> {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

/// Whether a server takes a request, and how many fields its head has.
fn requested(stream: &[u8], read: usize) -> Option<usize> {
    let stream = Stream::new(Frames::of_request(), stream, read);
    now(async {
        let mut builder = h3::server::builder();
        builder.max_field_section_size(HEAD_MAX);
        let connection = Connection { uni: None, bi: Some(stream) };
        let mut connection = builder.build::<_, Bytes>(connection).await.ok()?;
        let (request, _stream) = connection.accept().await.ok()??.resolve_request().await.ok()?;
        Some(request.headers().len())
    })
    .expect("a whole request is there")
}

/// The body of a response, and whether it has ended; `None` if it has no head.
fn responded(stream: &[u8], read: usize) -> Option<(Vec<u8>, bool)> {
    let stream = Stream::new(Frames::of_request(), stream, read);
    now(async {
        let mut builder = h3::client::builder();
        builder.max_field_section_size(HEAD_MAX);
        let connection = Connection { uni: None, bi: Some(stream) };
        let (_driver, mut sender) = builder.build::<_, _, Bytes>(connection).await.ok()?;
        let request = Request::get("https://a/").body(()).expect("it is a request");
        let mut stream = sender.send_request(request).await.ok()?;
        let response = stream.recv_response().await.ok()?;
        assert!(response.headers().len() as u64 <= HEAD_MAX / 32);
        let mut body = Vec::new();
        loop {
            match stream.recv_data().await {
                Ok(Some(mut data)) => body.extend(data.copy_to_bytes(data.remaining())),
                Ok(None) => return Some((body, true)),
                Err(_) => return Some((body, false)),
            }
        }
    })
    .expect("a whole response is there")
}

/// A stream in one direction, to a server that waits for requests then, unless it ends the connection.
fn controlled(stream: &[u8], read: usize) -> Option<bool> {
    let stream = Stream::new(Frames::of_unidirectional(), stream, read);
    now(async {
        let connection = Connection { uni: Some(stream), bi: None };
        let mut connection = h3::server::builder().build::<_, Bytes>(connection).await.ok()?;
        Some(connection.accept().await.is_ok())
    })
    .flatten()
}

/// A stream of HTTP/3: a byte for its kind, one for how many bytes come at a time, and itself. However it is cut, the pieces of
/// it are what it is made of, and `h3` makes the same of them.
pub fn http3(data: &[u8]) {
    let Some(([kind, read], stream)) = data.split_first_chunk::<2>() else { return };
    let (read, whole) = (usize::from(*read) + 1, stream.len().max(1));
    let in_one_direction = *kind == b'u';
    let frames = match in_one_direction {
        true => Frames::of_unidirectional(),
        false => Frames::of_request(),
    };
    let mut pieces = Stream::new(frames, stream, read);
    let mut passed = 0;
    while let Ok(Some(piece)) = pieces.piece() {
        let end = passed + piece.len();
        assert_eq!(stream.get(passed..end), Some(&piece[..]));
        assert!(!piece.is_empty() && piece.len() <= read);
        passed = end;
    }
    match *kind {
        b'u' => {
            let ended = [read, whole].map(|read| controlled(stream, read));
            // Of a stream of pushes, `h3` does not take a number that comes in several pieces.
            assert!(stream.first() != Some(&0) || ended[0] == ended[1], "{ended:?}");
        }
        b'r' => {
            let fields = requested(stream, read);
            assert!(fields.is_none_or(|fields| fields as u64 <= HEAD_MAX / 32));
            assert_eq!(fields, requested(stream, whole));
        }
        _ => {
            let body = responded(stream, read);
            assert!(body.as_ref().is_none_or(|(body, _)| body.len() <= stream.len()));
            assert_eq!(body, responded(stream, whole));
        }
    }
}
