//! Sockets whose packets do not take part in ECN: noq has no option for it.
//!
//! noq marks the packets of each path with ECT(0) until it finds that the path or the peer does not report the marks (RFC 9000
//! §13.4.2). Here the mark is taken off each packet before it is sent. The peer then reports none, so that noq stops at the
//! first acknowledgement, as on a path that clears these bits. Arriving packets are read as before: a peer that sends with ECN
//! learns of its marks.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use moq_noq::udp::{RecvMeta, Transmit};
use moq_noq::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime, UdpSender};

/// tokio, with sockets that send without ECN.
#[derive(Debug)]
pub(crate) struct WithoutEcn;

impl Runtime for WithoutEcn {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(at)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        TokioRuntime.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Box<dyn AsyncUdpSocket>> {
        Ok(Box::new(Socket(TokioRuntime.wrap_udp_socket(socket)?)))
    }

    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}

#[derive(Debug)]
struct Socket(Box<dyn AsyncUdpSocket>);

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(Sender(self.0.create_sender()))
    }

    fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_recv(context, buffers, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.0.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.0.may_fragment()
    }
}

#[derive(Debug)]
struct Sender(Pin<Box<dyn UdpSender>>);

impl UdpSender for Sender {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let unmarked = Transmit { ecn: None, ..transmit.clone() };
        self.0.as_mut().poll_send(&unmarked, context)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.0.max_transmit_segments()
    }
}
